package minutestest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// WorldMeeting is a meeting that a [Server] begins with, or many of the same kind;
// [Server.AddMeetings] adds more. A meeting past created has a recording of one
// second. A meeting whose status is not final continues by itself. The steps
// before its status cost no quota.
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

// AddMeetings adds meetings of other creators, for tests of a program that follows all meetings of an organisation.
// Each has its Status at once, without regard to scripts, and continues from there by itself. With
// [minutes.StatusCreated] it has no audio yet. The steps before its Status cost no quota. AddMeetings returns the ids,
// in order.
//
//	ids, err := srv.AddMeetings("org_acme", minutestest.WorldMeeting{
//		Title: "Standup", CreatorID: "emp_ada", Status: minutes.StatusAudioUploaded, Count: 20,
//	})
//
// An error names the path, as in "meetings[0].title: missing". The meetings
// before that path have been added.
func (s *Server) AddMeetings(organisation string, meetings ...WorldMeeting) (ids []string, err error) {
	o, ok := s.Organisation(organisation)
	if !ok {
		return nil, fmt.Errorf("minutestest: AddMeetings: there is no organisation %q", organisation)
	}
	o.Meetings = meetings
	c := &checker{}
	c.meetings("meetings", &o)
	if c.faults == nil {
		ids, err = addMeetings(s.engine, "meetings", &o)
	}
	if err = errors.Join(append(c.faults, err)...); err != nil {
		return ids, methodError("AddMeetings", err)
	}
	s.did("AddMeetings "+organisation, "", fmt.Sprintf("%d meetings", len(ids)))
	return ids, nil
}

// populate adds the meetings of a World.
func populate(service *engine.Service, w World) error {
	for i := range w.Organisations {
		if _, err := addMeetings(service, fmt.Sprintf("organisations[%d].meetings", i), &w.Organisations[i]); err != nil {
			return err
		}
	}
	return nil
}

// addMeetings adds the meetings of o. place is the path of o.
func addMeetings(service *engine.Service, place string, o *Organisation) (ids []string, err error) {
	for i := range o.Meetings {
		m := &o.Meetings[i]
		for n := range max(m.Count, 1) {
			params := minutes.MeetingCreateParams{
				Title: m.Title, Date: cmp.Or(m.Date, "2026-01-01"), ExternalID: m.ExternalID, Visibility: m.Visibility,
				ParticipantIDs: m.ParticipantIDs, SharedWith: m.SharedWith, ProjectID: m.ProjectID,
			}
			if m.ExternalID != "" && m.Count > 1 {
				params.ExternalID = fmt.Sprintf("%s-%d", m.ExternalID, n+1)
			}
			body, err := json.Marshal(params)
			if err != nil {
				return ids, err
			}
			id, err := service.Add(o.ID, m.creator(o), body, cmp.Or(m.Status, minutes.StatusMinutesReady))
			if err != nil {
				return ids, fmt.Errorf("%s[%d]: %s", place, i, strings.TrimPrefix(err.Error(), "engine: "))
			}
			ids = append(ids, id)
		}
	}
	return ids, nil
}
