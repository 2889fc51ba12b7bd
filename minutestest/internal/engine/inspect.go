package engine

import (
	"encoding/hex"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// MeetingState is all there is to know about one meeting.
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
	Held            bool // a script holds it in Status
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

// Meeting tells everything about a meeting, as of now.
func (s *Service) Meeting(id string) (MeetingState, bool) {
	o, m := s.find(id)
	if o == nil {
		return MeetingState{}, false
	}
	defer o.mu.Unlock()
	state := MeetingState{
		ID: m.id, Organisation: o.id, Creator: m.creator, Title: m.title, Date: m.date.String(), Time: m.time.String(),
		ExternalID: m.externalID, ProjectID: m.project, TemplateID: m.template, Visibility: m.visibility,
		ParticipantIDs: slices.Clone(m.participants), SharedWith: slices.Clone(m.sharedWith),
		Status: m.status, CreatedAt: m.created.time(), UpdatedAt: m.updated.time(),
		History: m.history(),
	}
	if seconds, ok := m.durationSeconds(); ok {
		state.DurationSeconds = &seconds
	}
	j := m.job
	if j == nil {
		return state, true
	}
	state.Held = j.held
	state.Audio = &Audio{ContentType: j.contentType, Size: j.size, SHA256: hex.EncodeToString(j.sha256[:]), ReceivedAt: j.received.time(), Bytes: j.bytes}
	if j.spoken != nil {
		state.Transcript = j.spoken.transcript()
	}
	if j.written != nil {
		state.Minutes = j.written.minutes()
	}
	return state, true
}
