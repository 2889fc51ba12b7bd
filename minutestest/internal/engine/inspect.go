package engine

import (
	"encoding/hex"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// MeetingState is everything about one meeting.
type MeetingState struct {
	ID              string
	Organisation    string
	Creator         string // id of the member or integration
	Title           string
	Date            string
	Time            string
	ExternalID      string
	ProjectID       string
	TemplateID      string
	Visibility      minutes.Visibility
	ParticipantIDs  []string
	SharedWith      []string
	Status          minutes.Status
	Held            bool // by a script, in Status
	DurationSeconds *int // as the API shows it
	CreatedAt       time.Time
	UpdatedAt       time.Time

	History    []Transition // created first
	Audio      *Audio       // nil before it arrived
	Transcript string       // "" while there is none
	Minutes    Minutes      // zero while there are none
}

// Transition is one change of a meeting's status.
type Transition struct {
	Status minutes.Status
	At     time.Time
}

// Audio is a recording as it arrived.
type Audio struct {
	ContentType string
	Size        int64
	SHA256      string // in lower-case hexadecimal
	ReceivedAt  time.Time
	Bytes       []byte // only with Config.KeepAudio; not to be changed
}

// Meeting returns the state of a meeting, as of now.
func (s *Service) Meeting(id string) (MeetingState, bool) {
	o, m := s.find(id)
	if o == nil {
		return MeetingState{}, false
	}
	defer o.unlock()
	state := MeetingState{
		ID: m.id, Organisation: o.id, Creator: m.creator, Title: m.title, Date: m.date, Time: m.time,
		ExternalID: m.externalID, ProjectID: m.project, TemplateID: m.template, Visibility: m.visibility,
		ParticipantIDs: slices.Clone(m.participants), SharedWith: slices.Clone(m.sharedWith),
		Status: m.status, DurationSeconds: m.durationSeconds(), CreatedAt: m.created, UpdatedAt: m.updated,
		History: m.history(),
	}
	j := m.job
	if j == nil {
		return state, true
	}
	state.Held = j.held
	state.Audio = &Audio{ContentType: j.contentType, Size: j.size, SHA256: hex.EncodeToString(j.sha256[:]), ReceivedAt: j.received, Bytes: j.bytes}
	if j.spoken != nil {
		state.Transcript = j.spoken.transcript()
	}
	if j.written != nil {
		state.Minutes = j.written.minutes()
	}
	return state, true
}
