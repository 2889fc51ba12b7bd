package engine

import (
	"net/http"
	"slices"

	minutes "github.com/meeting-minutes/minutes-go"
)

// meeting returns the meeting in the path, or an error if the caller does not
// see it. The caller of meeting holds the lock.
func (c *call) meeting() (*meeting, *apiError) {
	m := c.org.meetings[c.x.MeetingID]
	if m == nil || !m.visibleTo(c.key.caller) {
		return nil, errMeetingNotFound
	}
	// The id of the path would keep the whole URL in memory wherever it is kept.
	c.x.MeetingID, c.x.MeetingStatus = m.id, m.status
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
	c.w.Header().Set("Cache-Control", c.world.pace)
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
	url := c.world.storageBase(c.r) + c.world.presign(c.org.id, m.id, contentType, c.now)
	return uploadJSON{url, int(uploadURLValidity.Seconds()), http.MethodPut}, nil
}

func (c *call) getMinutes(m *meeting) (any, *apiError) {
	q, ok := parameters(c.r.URL.RawQuery, "format")
	if !ok {
		return nil, errQuery
	}
	format := minutes.FormatHTML
	if s := q["format"]; s != nil && *s != "" {
		format = minutes.Format(*s)
	}
	if format != minutes.FormatHTML && format != minutes.FormatMarkdown {
		return nil, errFormat
	}
	if m.status != minutes.StatusMinutesReady {
		return nil, errMinutesNotReady
	}
	written := m.job.written.minutes()
	content := written.HTML
	if format == minutes.FormatMarkdown {
		content = written.Markdown
	}
	return minutesJSON{format, m.template, content}, nil
}

func (c *call) getTranscript(m *meeting) (any, *apiError) {
	if m.job == nil || m.job.spoken == nil {
		return nil, errTranscriptNotReady
	}
	return map[string]string{"transcript": m.job.spoken.transcript()}, nil
}
