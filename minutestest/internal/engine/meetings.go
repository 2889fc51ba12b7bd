package engine

import (
	"cmp"
	"net/http"
	"slices"

	minutes "github.com/meeting-minutes/minutes-go"
)

// meeting returns the meeting in the path, or an error if the caller does not
// see it. The caller of meeting holds the lock.
func (c *call) meeting() (*meeting, *apiError) {
	m := c.org.byID[c.x.MeetingID]
	if m == nil || !m.visibleTo(c.key.caller) {
		return nil, errMeetingNotFound
	}
	c.x.MeetingStatus = m.status
	return m, nil
}

// onMeeting makes a handler of an operation on the meeting in the path that
// has no body.
func onMeeting(operate func(*call, *meeting) (any, *apiError)) handler {
	return func(c *call) (any, *apiError) {
		c.org.lock(c.now)
		defer c.org.unlock()
		m, err := c.meeting()
		if err != nil {
			return nil, err
		}
		return operate(c, m)
	}
}

// changing begins an operation that changes the meeting in the path: it reads
// the body with read, locks the organisation, and returns errors in the order
// of D6 and D25. Without an error, the organisation stays locked.
func (c *call) changing(read func(*form)) (*meeting, *apiError) {
	c.org.lock(c.now)
	_, err := c.meeting() // 404 comes before 400
	c.org.unlock()
	if err != nil {
		return nil, err
	}
	f, err := c.body()
	if err == nil {
		read(f)
		err = f.err()
	}
	c.org.lock(c.now)
	m, gone := c.meeting() // it may have been deleted while the body arrived
	switch {
	case gone != nil:
		err = gone
	case err == nil && !m.changeableBy(c.key):
		err = errForbidden
	}
	if err != nil {
		c.org.unlock()
		return nil, err
	}
	return m, nil
}

func (c *call) getMeeting(m *meeting) (any, *apiError) {
	c.w.Header().Set("Cache-Control", c.state.pace)
	return m.json(), nil
}

func (c *call) deleteMeeting(m *meeting) (any, *apiError) {
	if !m.changeableBy(c.key) {
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
	defer c.org.unlock()
	if err := c.org.known(participants, ""); err != nil {
		return nil, err
	}
	if m.job != nil {
		return nil, errParticipantsLocked
	}
	if !slices.Equal(participants, m.participants) {
		m.participants, m.updated = participants, c.now
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
	defer c.org.unlock()
	if m.job != nil {
		return nil, errHasAudio // D11
	}
	url := c.state.StorageBase(c.r) + c.state.presign(c.org.ID, m.id, contentType, c.now)
	return uploadJSON{url, int(uploadURLValidity.Seconds()), http.MethodPut}, nil
}

func (c *call) getMinutes(m *meeting) (any, *apiError) {
	q, err := c.parameters("format")
	if err != nil {
		return nil, err
	}
	format := minutes.Format(cmp.Or(q.Get("format"), string(minutes.FormatHTML)))
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

func (c *call) getTranscript(m *meeting) (any, *apiError) {
	switch m.status {
	case minutes.StatusTranscribed, minutes.StatusGeneratingMinutes, minutes.StatusMinutesReady, minutes.StatusMinutesFailed:
		return map[string]string{"transcript": m.job.transcript}, nil
	}
	return nil, errTranscriptNotReady
}

// patch is the body of a PATCH. A nil field is left unchanged.
type patch struct {
	title, date, time, project *string
}

func (p *patch) read(f *form) {
	p.title = present(f.trimmed("title", maxTitle, false))
	if p.title != nil && *p.title == "" {
		f.fault("title", nil)
	}
	p.date = present(f.date("date"))
	p.time = present(f.timeOfDay("time"))
	p.project = present(f.text("project_id"))
}

// present returns a field that was found, or nil.
func present(s string, found bool) *string {
	if !found {
		return nil
	}
	return &s
}

func (c *call) updateMeeting() (any, *apiError) {
	var p patch
	m, err := c.changing(p.read)
	if err != nil {
		return nil, err
	}
	o := c.org
	defer o.unlock()
	if p.project != nil {
		if err := o.known(nil, *p.project); err != nil {
			return nil, err
		}
	}
	reindex := replace(&m.title, p.title)
	reindex = replace(&m.date, p.date) || reindex
	reindex = replace(&m.project, p.project) || reindex
	changed := replace(&m.time, p.time) || reindex // the time is for display only, and free
	if reindex && m.status == minutes.StatusMinutesReady {
		o.spend(reindexCredits) // D9: with no credit left it still succeeds
	}
	if changed {
		m.updated = c.now
		o.touch(m)
	}
	return m.json(), nil
}

// replace sets a field, unless to is nil, and reports whether that changes it.
func replace(field, to *string) bool {
	if to == nil || *to == *field {
		return false
	}
	*field = *to
	return true
}
