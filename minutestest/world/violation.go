package world

import (
	"fmt"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// ViolationKind names a rule of the service that a client broke. Package minutestest has the
// constants.
type ViolationKind string

// Violation is one case of a client that broke a rule of the service. It contains no secrets.
type Violation struct {
	Kind ViolationKind `json:"kind"`
	// At is the time of the request.
	At time.Time `json:"at"`
	// Seq is that of the [Request]; 0: there is none.
	Seq       int               `json:"seq,omitzero"`
	Operation minutes.Operation `json:"operation,omitempty"`
	MeetingID string            `json:"meeting_id,omitempty"`
	// Title is the meeting's.
	Title string `json:"title,omitempty"`
	// ExternalID is the meeting's.
	ExternalID string `json:"external_id,omitempty"`
	// Caller is the id of the member or integration behind the key.
	Caller string `json:"caller,omitempty"`
	// Text is the problem, for people.
	Text string `json:"text"`
	// Remedy is what to do about it, for people.
	Remedy string `json:"remedy"`
}

// String describes the violation in one line.
func (v Violation) String() string {
	text := fmt.Sprintf("violation (%s): %s", v.Kind, v.Text)
	if v.Seq != 0 {
		text += fmt.Sprintf(" (request %d)", v.Seq)
	}
	return text + ": " + v.Remedy
}
