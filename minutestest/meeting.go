package minutestest

import (
	"math"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Meeting is everything about one meeting, including the parts that no client is
// shown.
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
	Held            bool               `json:"held,omitempty"` // in Status, by a script
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
	Bytes       []byte    `json:"-"` // kept by [WithAudio] alone; not to be changed
}

// Meetings returns the meetings of all organisations as they are now, the
// oldest first.
func (s *Server) Meetings() []Meeting {
	lines, _, _ := s.engine.Changes(0, math.MaxInt)
	list := make([]Meeting, 0, len(lines))
	for _, line := range slices.Backward(lines) {
		if m, ok := s.Meeting(line.ID); ok {
			list = append(list, m)
		}
	}
	return list
}

// Meeting returns the current state of a meeting of any organisation.
func (s *Server) Meeting(id string) (Meeting, bool) {
	m, ok := s.engine.Meeting(id)
	if !ok {
		return Meeting{}, false
	}
	state := Meeting{
		ID: m.ID, Organisation: m.Organisation, Creator: m.Creator,
		Title: m.Title, Date: m.Date, Time: m.Time,
		ExternalID: m.ExternalID, ProjectID: m.ProjectID, TemplateID: m.TemplateID,
		Visibility: m.Visibility, ParticipantIDs: m.ParticipantIDs, SharedWith: m.SharedWith,
		Status: m.Status, Held: m.Held, DurationSeconds: m.DurationSeconds,
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
		Transcript: m.Transcript, Markdown: m.Minutes.Markdown, HTML: m.Minutes.HTML,
	}
	for _, t := range m.History {
		state.History = append(state.History, Transition(t))
	}
	if m.Audio != nil {
		state.Audio = new(Audio(*m.Audio))
	}
	return state, true
}
