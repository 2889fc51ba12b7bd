package engine

import (
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
