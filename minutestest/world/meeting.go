package world

import (
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Script says what becomes of meetings. It is for those with a certain id, external id or title,
// or, when none of the three is set, for all; where several scripts are for one meeting, the
// narrowest counts, in that order. A field that a script leaves empty is left to the next wider one, and in
// the end to the natural course: minutes from a short conversation, after the stages of the World.
// As JSON, durations are texts such as "20ms" or "1h30m".
type Script struct {
	// The meetings; one of these at most.
	MeetingID  string `json:"meeting_id,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	Title      string `json:"title,omitempty"`

	// Outcome is the status the meeting ends in: one of the four failure statuses, or
	// minutes_ready. Quota and the recording itself can still turn minutes_ready into a failure.
	Outcome minutes.Status `json:"outcome,omitempty"`
	// Transcript is the spoken text: turns such as "spk_0: Good morning.", one per line.
	Transcript string `json:"transcript,omitempty"`
	// Markdown and HTML are the minutes. A format left empty is written from the transcript.
	Markdown string `json:"markdown,omitempty"`
	HTML     string `json:"html,omitempty"`
	// Duration is the length of the recording, whatever its bytes say. It counts when the audio
	// arrives.
	Duration time.Duration `json:"-"` // "duration"
	// Stages are the durations of the stages.
	Stages Stages `json:"stages,omitzero"`
	// Hold stops the meeting in this status, one of audio_uploaded, transcribing, transcribed and
	// generating_minutes, until it is released or advanced.
	Hold minutes.Status `json:"hold,omitempty"`
	// ListedAfter is how long after its creation no list contains the meeting, nor a search for its
	// external id, although a GET finds it: as in a service whose index is late.
	ListedAfter time.Duration `json:"-"` // "listed_after"
}

// Meeting is everything about one meeting, including the parts that no client is shown.
type Meeting struct {
	ID              string             `json:"id"`
	Organisation    string             `json:"organisation"` // its id
	Creator         string             `json:"creator"`      // id of the member or integration
	Title           string             `json:"title"`
	Date            string             `json:"date"`
	Time            string             `json:"time,omitempty"`
	ExternalID      string             `json:"external_id,omitempty"`
	ProjectID       string             `json:"project_id,omitempty"`
	TemplateID      string             `json:"template_id"`
	Visibility      minutes.Visibility `json:"visibility"`
	ParticipantIDs  []string           `json:"participant_ids,omitempty"`
	SharedWith      []string           `json:"shared_with,omitempty"`
	Status          minutes.Status     `json:"status"`
	Reason          string             `json:"reason,omitempty"` // why it failed, for people
	Held            bool               `json:"held,omitempty"`   // in Status, by a script
	DurationSeconds *int               `json:"duration_seconds,omitempty"`
	CreatedAt       time.Time          `json:"created_at"`
	UpdatedAt       time.Time          `json:"updated_at"`

	History    []Transition `json:"history"`              // from created on
	Audio      *Audio       `json:"audio,omitempty"`      // nil: it has not arrived
	Transcript string       `json:"transcript,omitempty"` // once there is one
	Markdown   string       `json:"markdown,omitempty"`   // the minutes
	HTML       string       `json:"html,omitempty"`       // the same
}

// Transition is a change of a meeting's status.
type Transition struct {
	Status minutes.Status `json:"status"`
	At     time.Time      `json:"at"`
}

// Audio is a recording as it arrived.
type Audio struct {
	ContentType string    `json:"content_type"`
	Size        int64     `json:"size"`   // in bytes
	SHA256      string    `json:"sha256"` // in lower-case hexadecimal
	ReceivedAt  time.Time `json:"received_at"`
	Bytes       []byte    `json:"-"` // kept on demand only; not to be changed
}
