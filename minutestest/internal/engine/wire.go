package engine

import (
	"bytes"
	"encoding/json"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// encode returns v as the JSON of a response. HTML is for the reader to escape.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // there is nothing in the types below that cannot be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// optional returns nil, which is null in JSON, for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return new(s)
}

type meetingJSON struct {
	ID              string             `json:"id"`
	Title           string             `json:"title"`
	Date            string             `json:"date"`
	Time            *string            `json:"time"`
	Status          minutes.Status     `json:"status"`
	Visibility      minutes.Visibility `json:"visibility"`
	TemplateID      string             `json:"template_id"`
	ParticipantIDs  []string           `json:"participant_ids"` // never null
	ProjectID       *string            `json:"project_id"`
	ExternalID      *string            `json:"external_id"`
	DurationSeconds *int               `json:"duration_seconds,omitempty"`
	CreatedAt       int64              `json:"created_at"`
	UpdatedAt       int64              `json:"updated_at"`
}

// json returns the current state of m; later changes of m do not show in it.
func (m *meeting) json() meetingJSON {
	return meetingJSON{
		ID: m.id, Title: m.title, Date: m.date, Time: optional(m.time), Status: m.status, Visibility: m.visibility,
		TemplateID: m.template, ParticipantIDs: append([]string{}, m.participants...), ProjectID: optional(m.project), ExternalID: optional(m.externalID),
		DurationSeconds: m.durationSeconds(), CreatedAt: m.created.Unix(), UpdatedAt: m.updated.Unix(),
	}
}

type pageJSON struct {
	Meetings   []meetingJSON `json:"meetings"` // never null
	NextCursor string        `json:"next_cursor,omitempty"`
}

type uploadJSON struct {
	UploadURL string `json:"upload_url"`
	ExpiresIn int    `json:"expires_in"`
	Method    string `json:"method"`
}

type minutesJSON struct {
	Format     minutes.Format `json:"format"`
	TemplateID string         `json:"template_id"`
	Content    string         `json:"content"`
}

type memberJSON struct {
	ID     string               `json:"id"`
	Name   string               `json:"name"`
	Role   *string              `json:"role"`
	Status minutes.MemberStatus `json:"status"`
}

func memberOf(m *world.Member) memberJSON {
	return memberJSON{ID: m.ID, Name: m.Name, Role: optional(m.Role), Status: m.Status}
}

type projectJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type templateJSON struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Source      string  `json:"source"`
	Description *string `json:"description"`
	IsDefault   bool    `json:"is_default"`
	Version     *int    `json:"version"`
}

type usageJSON struct {
	CreditsRemaining           int     `json:"credits_remaining"`
	TranscribeSecondsRemaining int     `json:"transcribe_seconds_remaining"`
	NextResetAt                *string `json:"next_reset_at"`
}
