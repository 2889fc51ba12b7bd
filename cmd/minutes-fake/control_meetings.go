package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func (c *control) script(r *http.Request) (any, error) {
	var s minutestest.Script
	if err := body(r, &s); err != nil {
		return nil, err
	}
	asked := s
	s.Stages = faster(s.Stages, c.settings.speed)
	if err := minutestest.Try(func() { c.fake.Script(s) }); err != nil {
		return nil, bad(scriptField(s), "%s", withoutOrigin(err))
	}
	return asked, nil
}

// scriptField names the field that keeps the service from taking a script.
func scriptField(s minutestest.Script) string {
	switch {
	case s.MeetingID != "" && s.ExternalID+s.Title != "" || s.ExternalID != "" && s.Title != "":
		return "" // not one, but two together
	case s.Outcome != "" && !s.Outcome.Final():
		return "outcome"
	case s.Stages.Prepare < 0:
		return "stages.prepare"
	case s.Stages.Transcribe < 0:
		return "stages.transcribe"
	case s.Stages.Write < 0:
		return "stages.write"
	}
	return "hold"
}

func (c *control) addMeetings(r *http.Request) (any, error) {
	var sent minutestest.WorldMeeting
	if err := body(r, &sent); err != nil {
		return nil, err
	}
	organisation := r.PathValue("organisation")
	if _, ok := c.fake.Organisation(organisation); !ok {
		return nil, noOrganisation(r)
	}
	var ids []string
	if err := minutestest.Try(func() { ids = c.fake.AddMeetings(organisation, sent) }); err != nil {
		place, text, _ := placed(withoutOrigin(err))
		return nil, bad(join("", strings.TrimPrefix(place, "meetings[0]")), "%s", text)
	}
	return map[string]any{"ids": ids}, nil
}

func (c *control) meeting(r *http.Request) (minutestest.Meeting, error) {
	m, ok := c.fake.Meeting(r.PathValue("id"))
	if !ok {
		return m, notFound("there is no meeting %q", r.PathValue("id"))
	}
	return m, nil
}

func (c *control) getMeeting(r *http.Request) (any, error) {
	m, err := c.meeting(r)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (c *control) getAudio(r *http.Request) (any, error) {
	m, err := c.meeting(r)
	switch {
	case err != nil:
		return nil, err
	case m.Audio == nil:
		return nil, notFound("meeting %s has no audio", m.ID)
	case !c.settings.keepAudio:
		return nil, notFound("recordings are not kept; start minutes-fake with -keep-audio")
	case int64(len(m.Audio.Bytes)) != m.Audio.Size:
		return nil, notFound("the recording of meeting %s is not kept: together they may take 256 MiB", m.ID)
	}
	return recording{m.Audio.ContentType, m.Audio.Bytes}, nil
}

// moved is the result of the requests that move a meeting.
func moved(m minutestest.Meeting) any {
	return struct {
		ID     string         `json:"id"`
		Status minutes.Status `json:"status"`
		Held   bool           `json:"held"`
	}{m.ID, m.Status, m.Held}
}

// comes are the states a meeting can be moved to.
var comes = []minutes.Status{
	"", minutes.StatusAudioUploaded, minutes.StatusTranscribing, minutes.StatusTranscribed, minutes.StatusGeneratingMinutes, minutes.StatusMinutesReady,
	minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed, minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected,
}

func (c *control) advance(r *http.Request) (any, error) {
	var to struct {
		Until minutes.Status `json:"until"`
	}
	if r.ContentLength != 0 {
		if err := body(r, &to); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(comes, to.Until) {
		return nil, bad("until", "a meeting cannot come to %q", to.Until)
	}
	m, err := c.meeting(r)
	if err != nil {
		return nil, err
	}
	if err := minutestest.Try(func() { c.fake.Advance(m.ID, to.Until) }); err != nil {
		return nil, conflict(err)
	}
	if m, err = c.meeting(r); err != nil {
		return nil, err
	}
	return moved(m), nil
}

func (c *control) release(r *http.Request) (any, error) {
	m, err := c.meeting(r)
	if err != nil {
		return nil, err
	}
	if !c.fake.Release(m.ID) {
		return nil, &problem{Status: http.StatusConflict, Message: fmt.Sprintf("no script holds meeting %s, which is %s; release it once held is true, or advance it", m.ID, m.Status)}
	}
	if m, err = c.meeting(r); err != nil {
		return nil, err
	}
	return moved(m), nil
}
