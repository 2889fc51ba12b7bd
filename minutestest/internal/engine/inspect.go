package engine

import (
	"encoding/hex"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// MeetingState is everything about one meeting.
type MeetingState struct {
	MeetingLine     // without its Reason
	Date            string
	Time            string
	ProjectID       string
	TemplateID      string
	Visibility      minutes.Visibility
	ParticipantIDs  []string
	SharedWith      []string
	DurationSeconds *int // as the API shows it
	UpdatedAt       time.Time
	Audio           *Audio  // nil before it arrived
	Transcript      string  // "" while there is none
	Minutes         Minutes // zero while there are none
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
		MeetingLine: m.line(o.id), Date: m.date, Time: m.time, ProjectID: m.project, TemplateID: m.template, Visibility: m.visibility,
		ParticipantIDs: slices.Clone(m.participants), SharedWith: slices.Clone(m.sharedWith),
		DurationSeconds: m.durationSeconds(), UpdatedAt: m.updated,
	}
	j := m.job
	if j == nil {
		return state, true
	}
	state.Audio = &Audio{ContentType: j.contentType, Size: j.size, SHA256: hex.EncodeToString(j.sha256[:]), ReceivedAt: j.received, Bytes: j.bytes}
	if j.spoken != nil {
		state.Transcript = j.spoken.transcript()
	}
	if j.written != nil {
		state.Minutes = j.written.minutes()
	}
	return state, true
}
