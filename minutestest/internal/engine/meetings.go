package engine

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
)

// meeting returns the meeting in the path, or an error if the caller does not see it.
func (c *call) meeting() (*meeting, *apiError) {
	m := c.org.byID[c.x.MeetingID]
	if m == nil || !m.visibleTo(c.caller.id) {
		return nil, errMeetingNotFound
	}
	c.x.MeetingStatus = m.status
	return m, nil
}

// changing returns the meeting in the path for a change of it, or an error in the order of D6 and
// D25. check checks the body.
func (c *call) changing(check func(*form)) (*meeting, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	if check(c.form); c.form.err() != nil {
		return nil, c.form.err()
	}
	if !m.changeableBy(&c.caller) {
		return nil, errForbidden
	}
	return m, nil
}

func (c *call) getMeeting() (any, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Cache-Control", c.service.pace)
	return m.json(), nil
}

func (c *call) deleteMeeting() (any, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	if !m.changeableBy(&c.caller) {
		return nil, errForbidden
	}
	c.org.remove(m)
	return nil, nil
}

func (c *call) setParticipants() (any, *apiError) {
	var participants []string
	m, err := c.changing(func(f *form) {
		var found bool
		if participants, found = f.list("participant_ids"); !found {
			f.fault("participant_ids", nil)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := c.org.known(participants, ""); err != nil {
		return nil, err
	}
	if m.job != nil {
		return nil, errParticipantsLocked
	}
	if !slices.Equal(participants, m.participants) {
		m.participants, m.updated = participants, c.now
		c.org.touch(m)
	}
	return m.json(), nil
}

func (c *call) uploadURL() (any, *apiError) {
	var contentType string
	m, err := c.changing(func(f *form) {
		contentType, _ = f.text("content_type")
		if _, ok := mediaType(contentType); !ok {
			f.fault("content_type", nil)
		}
	})
	if err != nil {
		return nil, err
	}
	if m.job != nil {
		return nil, errHasAudio // D11
	}
	url := c.service.cfg.StorageBase(c.r) + c.service.presign(c.org.ID, m.id, contentType, c.now)
	return uploadJSON{url, int(uploadURLValidity.Seconds()), http.MethodPut}, nil
}

func (c *call) getMinutes() (any, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	format := minutes.Format(cmp.Or(c.r.URL.Query().Get("format"), string(minutes.FormatHTML)))
	if format != minutes.FormatHTML && format != minutes.FormatMarkdown {
		return nil, errFormat
	}
	if m.status != minutes.StatusMinutesReady {
		return nil, errMinutesNotReady
	}
	content := m.job.html
	if format == minutes.FormatMarkdown {
		content = m.job.markdown
	}
	return minutesJSON{format, m.template, content}, nil
}

func (c *call) getTranscript() (any, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	switch m.status {
	case minutes.StatusTranscribed, minutes.StatusGeneratingMinutes, minutes.StatusMinutesReady, minutes.StatusMinutesFailed:
		return map[string]string{"transcript": m.job.transcript}, nil
	}
	return nil, errTranscriptNotReady
}

func (c *call) updateMeeting() (any, *apiError) {
	m, err := c.changing(func(f *form) {
		if title, found := f.trimmed("title", maxTitle, false); found && title == "" {
			f.fault("title", nil)
		}
		f.date("date")
		f.timeOfDay("time")
		f.text("project_id")
	})
	if err != nil {
		return nil, err
	}
	project, _ := c.form.text("project_id")
	if err := c.org.known(nil, project); err != nil {
		return nil, err
	}
	reindex := false
	for name, field := range map[string]*string{"title": &m.title, "date": &m.date, "project_id": &m.project} {
		reindex = c.form.replace(name, field) || reindex
	}
	if reindex && m.status == minutes.StatusMinutesReady {
		c.org.spend(reindexCredits) // D9: with no credit left it still succeeds
	}
	if c.form.replace("time", &m.time) || reindex { // the time is for display only, and free
		m.updated = c.now
		c.org.touch(m)
	}
	return m.json(), nil
}

// replace sets a field of a meeting to one of the body, if it is there, and reports whether that
// changes it.
func (f *form) replace(name string, field *string) bool {
	s, found := f.text(name)
	before := *field
	if found {
		*field = strings.TrimSpace(s)
	}
	return *field != before
}
