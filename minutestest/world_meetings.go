package minutestest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// WorldMeeting is a meeting that a [Server] begins with, or many of the same
// kind. A meeting past created has a recording of one second. One that is not at
// its end goes on from its status. Meetings of the World cost no quota until then.
type WorldMeeting struct {
	Title          string             `json:"title"`
	Date           string             `json:"date,omitempty"`        // "": 2026-01-01
	ExternalID     string             `json:"external_id,omitempty"` // if Count is more than one, "-1", "-2" and so on are added
	Status         minutes.Status     `json:"status,omitempty"`      // "": minutes_ready
	CreatorID      string             `json:"creator_id,omitempty"`  // a member or integration; "": the first integration, or member
	Visibility     minutes.Visibility `json:"visibility,omitempty"`  // "": as in a create
	ParticipantIDs []string           `json:"participant_ids,omitempty"`
	SharedWith     []string           `json:"shared_with,omitempty"`
	ProjectID      string             `json:"project_id,omitempty"`
	Count          int                `json:"count,omitempty"` // how many; 0: one
}

// maxWorldMeetings bounds Count.
const maxWorldMeetings = 1_000_000

// sampled is w with one meeting of each kind.
func (w World) sampled() World {
	w.Organisations = slices.Clone(w.Organisations)
	for i := range w.Organisations {
		o := &w.Organisations[i]
		o.Meetings = slices.Clone(o.Meetings)
		for j := range o.Meetings {
			o.Meetings[j].Count = 1
		}
	}
	return w
}

func (c *checker) meetings(at string, o *Organisation) {
	for i, m := range o.Meetings {
		place := fmt.Sprintf("%s[%d]", at, i)
		if m.Title == "" {
			c.fault(place+".title", "missing")
		}
		if m.Count < 0 || m.Count > maxWorldMeetings {
			c.fault(place+".count", "%d is not from 0 to %d", m.Count, maxWorldMeetings)
		}
		oneOf(c, place+".status", m.Status, minutes.StatusCreated, minutes.StatusAudioUploaded, minutes.StatusTranscribing, minutes.StatusTranscribed,
			minutes.StatusGeneratingMinutes, minutes.StatusMinutesReady, minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed,
			minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected)
		creator := m.creator(o)
		if o.Member(creator) == nil && o.Integration(creator) == nil {
			c.fault(place+".creator_id", "no member or integration %q", creator)
		}
	}
}

func (m *WorldMeeting) creator(o *Organisation) string {
	switch {
	case m.CreatorID != "":
		return m.CreatorID
	case len(o.Integrations) > 0:
		return o.Integrations[0].ID
	case len(o.Members) > 0:
		return o.Members[0].ID
	}
	return ""
}

// populate creates the meetings of the World as clients would, through the
// engine alone. While it does, each creator has a key of its own and the
// organisation has quota without end.
func populate(service *engine.Service, w World) error {
	for i := range w.Organisations {
		o := &w.Organisations[i]
		if len(o.Meetings) == 0 {
			continue
		}
		var before engine.Organisation
		if err := service.Update(o.ID, func(e *engine.Organisation) { before = *e; open(e, o) }); err != nil {
			return err
		}
		for j := range o.Meetings {
			if err := createAll(service, o, &o.Meetings[j]); err != nil {
				return fmt.Errorf("organisations[%d].meetings[%d]: %w", i, j, err)
			}
		}
		if err := service.Update(o.ID, func(e *engine.Organisation) { *e = before }); err != nil {
			return err
		}
	}
	return nil
}

// open lets every creator of o's meetings in.
func open(e *engine.Organisation, o *Organisation) {
	e.Suspended, e.Expired, e.APIDisabled, e.PersonalKeysDisabled = false, false, false, false
	e.Credits, e.TranscribeSeconds = new(1<<40), new(1<<40)
	e.Keys = nil
	e.Members, e.Integrations = append([]engine.Member(nil), e.Members...), append([]engine.Integration(nil), e.Integrations...)
	for i := range e.Members {
		e.Members[i].Status = minutes.MemberActive
		e.Keys = append(e.Keys, engine.Key{Secret: populating(o, e.Members[i].ID), MemberID: e.Members[i].ID})
	}
	for i := range e.Integrations {
		e.Integrations[i].Inactive = false
		e.Keys = append(e.Keys, engine.Key{Secret: populating(o, e.Integrations[i].ID), IntegrationID: e.Integrations[i].ID})
	}
}

// populating is the key of a creator while meetings are created.
func populating(o *Organisation, id string) string {
	return "populating-" + url.PathEscape(o.ID+"/"+id)
}

func createAll(service *engine.Service, o *Organisation, m *WorldMeeting) error {
	for n := range max(m.Count, 1) {
		externalID := m.ExternalID
		if externalID != "" && m.Count > 1 {
			externalID = fmt.Sprintf("%s-%d", externalID, n+1)
		}
		if err := createOne(service, populating(o, m.creator(o)), externalID, m); err != nil {
			return err
		}
	}
	return nil
}

func createOne(service *engine.Service, key, externalID string, m *WorldMeeting) error {
	var meeting struct{ ID string }
	err := askEngine(service, key, "/v1/meetings", minutes.MeetingCreateParams{
		Title: m.Title, Date: cmp.Or(m.Date, "2026-01-01"), ExternalID: externalID, Visibility: m.Visibility,
		ParticipantIDs: m.ParticipantIDs, SharedWith: m.SharedWith, ProjectID: m.ProjectID,
	}, &meeting)
	status := cmp.Or(m.Status, minutes.StatusMinutesReady)
	if err != nil || status == minutes.StatusCreated {
		return err
	}
	if status.Failed() {
		only := engine.Selector{MeetingID: meeting.ID}
		if err := service.Script(only, engine.Script{Outcome: status}); err != nil {
			return err
		}
		defer func() { _ = service.Script(only, engine.Script{}) }()
	}
	var target struct {
		UploadURL string `json:"upload_url"`
	}
	if err := askEngine(service, key, "/v1/meetings/"+meeting.ID+"/upload-url", map[string]string{"content_type": "audio/mpeg"}, &target); err != nil {
		return err
	}
	put, err := http.NewRequestWithContext(context.Background(), http.MethodPut, target.UploadURL, bytes.NewReader(make([]byte, 16_000)))
	if err != nil {
		return err
	}
	put.Header.Set("Content-Type", "audio/mpeg")
	service.Serve(new(heldResponse), put)
	_, err = service.Advance(meeting.ID, status)
	return err
}

// askEngine sends one POST to the engine.
func askEngine(service *engine.Service, key, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, BaseURL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	var answer heldResponse
	service.Serve(&answer, r)
	if answer.statusCode() >= http.StatusBadRequest {
		var refusal struct {
			Error struct{ Code, Message string }
		}
		_ = json.Unmarshal(answer.body.Bytes(), &refusal)
		return fmt.Errorf("%s: %s", refusal.Error.Code, refusal.Error.Message)
	}
	return json.Unmarshal(answer.body.Bytes(), into)
}
