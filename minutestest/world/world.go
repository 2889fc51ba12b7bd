// Package world has the types that describe what the in-memory fake holds: the [World] that it
// begins with, the [Script] of a meeting, and the [Meeting] that it has become. Package minutestest
// has an alias of each, so most users never import this package.
package world

import (
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// World is what a fake begins with: organisations with their people, keys and settings. It has the
// same form in Go and as JSON. Everything but ids, and the secrets of keys, may be left out.
type World struct {
	Stages        Stages         `json:"stages,omitzero"`
	Organisations []Organisation `json:"organisations"`

	// PageSizes makes list pages short, or empty, which the API lets them be: the sizes of a list's
	// pages, in turn. A page never holds more than the caller's limit.
	PageSizes []int `json:"page_sizes,omitempty"`
}

// Stages are how long a meeting stays in the statuses between its audio and its minutes. A stage
// that is left out, or zero, takes 20, 50 and 50 milliseconds in a World and the World's own time
// in a [Script]. As JSON, the stages are durations such as "20ms" or "1m30s".
type Stages struct {
	Prepare    time.Duration // in audio_uploaded
	Transcribe time.Duration // in transcribing
	Write      time.Duration // in generating_minutes
}

// Organisation is one customer of the service. No organisation ever sees anything of another.
type Organisation struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`

	Credits           *int   `json:"credits,omitempty"`            // left this period; nil: 1,000
	TranscribeSeconds *int   `json:"transcribe_seconds,omitempty"` // left this period; nil: 360,000
	NextResetAt       string `json:"next_reset_at,omitempty"`      // YYYY-MM-DD of the top-up, 00:00 UTC; "": none
	MaxMembers        *int   `json:"max_members,omitempty"`        // nil: 1,000
	MaxTerms          *int   `json:"max_terms,omitempty"`          // nil: 500

	Suspended            bool `json:"suspended,omitempty"`              // every key: ORGANISATION_SUSPENDED
	Expired              bool `json:"expired,omitempty"`                // every key: ORGANISATION_EXPIRED
	APIDisabled          bool `json:"api_disabled,omitempty"`           // every key: API_ACCESS_DISABLED
	PersonalKeysDisabled bool `json:"personal_keys_disabled,omitempty"` // personal keys: PERSONAL_API_KEYS_DISABLED

	Members      []Member                  `json:"members,omitempty"`
	Integrations []Integration             `json:"integrations,omitempty"`
	Projects     []Project                 `json:"projects,omitempty"`
	Templates    []Template                `json:"templates,omitempty"` // none: tpl_standard
	Vocabulary   []minutes.VocabularyEntry `json:"vocabulary,omitempty"`
	Keys         []Key                     `json:"keys,omitempty"` // of members and integrations

	// Meetings are those that a World begins with, the oldest first. Only a World holds any: an
	// organisation that is read or updated later has none.
	Meetings []MeetingSpec `json:"meetings,omitempty"`
}

// Member is a person of an organisation.
type Member struct {
	ID          string               `json:"id"`             // begins with emp_
	Name        string               `json:"name,omitempty"` // "": the id
	Email       string               `json:"email,omitempty"`
	Role        string               `json:"role,omitempty"`
	Description string               `json:"description,omitempty"`
	Status      minutes.MemberStatus `json:"status,omitempty"` // "": active
	Admin       bool                 `json:"admin,omitempty"`  // may change and delete every visible meeting
}

// Integration is a program that an administrator has given access. It is no member, so no list
// shows it.
type Integration struct {
	ID                string             `json:"id"`
	Name              string             `json:"name,omitempty"`
	DefaultVisibility minutes.Visibility `json:"default_visibility,omitempty"` // "": organisation
	Inactive          bool               `json:"inactive,omitempty"`           // its keys: API_ACCESS_DISABLED
}

// Project groups meetings. An archived one is not listed and takes none.
type Project struct {
	ID       string `json:"id"`             // begins with prj_
	Name     string `json:"name,omitempty"` // "": the id
	Archived bool   `json:"archived,omitempty"`
}

// Template shapes minutes. Of several, the first with IsDefault is the default; of several without,
// the first.
type Template struct {
	ID          string `json:"id"`               // begins with tpl_
	Name        string `json:"name,omitempty"`   // "": the id
	Source      string `json:"source,omitempty"` // "": service
	Description string `json:"description,omitempty"`
	IsDefault   bool   `json:"is_default,omitempty"`
	Version     *int   `json:"version,omitempty"`
}

// Key is an API key: a member's own (a personal key) or an integration's.
type Key struct {
	Secret        string           `json:"secret"`                   // the key itself, as a client sends it
	MemberID      string           `json:"member_id,omitempty"`      // whose it is: this,
	IntegrationID string           `json:"integration_id,omitempty"` // or that
	Scopes        []string         `json:"scopes,omitzero"`          // nil: all of them; empty but not nil: none
	IPAllowlist   []string         `json:"ip_allowlist,omitempty"`   // addresses and CIDR blocks; empty: from anywhere
	ExpiresAt     minutes.UnixTime `json:"expires_at,omitempty"`     // 0: never
	Revoked       bool             `json:"revoked,omitempty"`        // UNAUTHENTICATED, as an expired one
}

// MeetingSpec describes a meeting that a fake begins with or is given later, or many of the same
// kind. One past created has a recording of one second. A meeting whose status is not final
// continues by itself. The steps before its status cost no quota.
type MeetingSpec struct {
	Title          string             `json:"title"`
	Date           string             `json:"date,omitempty"`        // "": 2026-01-01
	ExternalID     string             `json:"external_id,omitempty"` // if Count is more than one, "-1", "-2" and so on are added
	Status         minutes.Status     `json:"status,omitempty"`      // "": minutes_ready
	CreatorID      string             `json:"creator_id,omitempty"`  // a member or integration; "": the first integration, or member
	Visibility     minutes.Visibility `json:"visibility,omitempty"`  // "": as in a create
	ParticipantIDs []string           `json:"participant_ids,omitempty"`
	SharedWith     []string           `json:"shared_with,omitempty"` // kept only for shared
	ProjectID      string             `json:"project_id,omitempty"`
	Count          int                `json:"count,omitempty"` // how many; 0: one
}

// Organisation returns the organisation with this id, or nil.
func (w *World) Organisation(id string) *Organisation {
	return find(w.Organisations, func(o *Organisation) bool { return o.ID == id })
}

// Member returns the member with this id, or nil.
func (o *Organisation) Member(id string) *Member {
	return find(o.Members, func(m *Member) bool { return m.ID == id })
}

// Integration returns the integration with this id, or nil.
func (o *Organisation) Integration(id string) *Integration {
	return find(o.Integrations, func(i *Integration) bool { return i.ID == id })
}

// Project returns the project with this id, or nil.
func (o *Organisation) Project(id string) *Project {
	return find(o.Projects, func(p *Project) bool { return p.ID == id })
}

// Template returns the template with this id, or nil.
func (o *Organisation) Template(id string) *Template {
	return find(o.Templates, func(t *Template) bool { return t.ID == id })
}

// Key returns the key with this secret, or nil.
func (o *Organisation) Key(secret string) *Key {
	return find(o.Keys, func(k *Key) bool { return k.Secret == secret })
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

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
