// Package world has the types that describe what the in-memory fake contains: the [World] that it
// begins with, the [Script] of a meeting, and the [Meeting] itself. Package minutestest has an
// alias for each, so a test rarely imports this package, but the fields are documented here.
package world

import (
	"fmt"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
)

// World is what a fake begins with: organisations with their people, keys and settings. Its methods
// and those of [Organisation] find things by their ids.
//
// In Go as in JSON, required are only ids, a key's secret and owner, a meeting's title, and the
// terms and variants of a vocabulary:
//
//	{"stages": {"prepare": "20ms", "transcribe": "50ms", "write": "50ms"},
//	 "page_sizes": [10, 0],
//	 "organisations": [{
//	   "id": "org_acme", "name": "Acme",
//	   "credits": 100, "transcribe_seconds": 36000, "next_reset_at": "2026-12-01",
//	   "max_members": 1000, "max_terms": 500,
//	   "suspended": false, "expired": false, "api_disabled": false, "personal_keys_disabled": false,
//	   "members": [{"id": "emp_ada", "name": "Ada Lovelace", "email": "ada@acme.example", "role": "Engineer",
//	     "description": "", "status": "active", "admin": true}],
//	   "integrations": [{"id": "int_ci", "name": "CI", "default_visibility": "organisation", "inactive": false}],
//	   "projects": [{"id": "prj_apollo", "name": "Apollo", "archived": false}],
//	   "templates": [{"id": "tpl_standard", "name": "Standard minutes", "source": "service", "description": "",
//	     "is_default": true, "version": 1}],
//	   "vocabulary": [{"term": "Kubernetes", "variants": [{"text": "cooper netties", "source": "auto"}]}],
//	   "keys": [{"secret": "key_ci", "integration_id": "int_ci", "scopes": ["meetings:read"],
//	     "ip_allowlist": ["10.0.0.0/8"], "expires_at": 1, "revoked": false}],
//	   "meetings": [{"title": "Weekly", "creator_id": "emp_ada", "status": "created", "count": 3}]}]}
type World struct {
	// Stages are those of every meeting that has no [Script] with others.
	Stages Stages `json:"stages,omitzero"`

	// Organisations are one or more.
	Organisations []Organisation `json:"organisations"`

	// PageSizes makes list pages of meetings short or empty, as the API permits. The first page of
	// a list has the first size, the next page the second, and so on; after the last size they
	// start over. A page never has more meetings than the caller's limit.
	PageSizes []int `json:"page_sizes,omitempty"`
}

// Stages sets how long a meeting stays in the statuses between its audio and its minutes. Stages{}
// means that the minutes are ready as soon as the audio has arrived. As JSON, the stages are
// durations such as "20ms" or "1m30s".
type Stages struct {
	Prepare    time.Duration // in audio_uploaded
	Transcribe time.Duration // in transcribing
	Write      time.Duration // in generating_minutes
}

// Organisation is one customer of the service. Organisations never see anything of each other.
type Organisation struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`

	// Credits and TranscribeSeconds are the quota left this period; nil: 1,000 and 360,000.
	Credits           *int `json:"credits,omitzero"`
	TranscribeSeconds *int `json:"transcribe_seconds,omitzero"`

	// NextResetAt is the day of the top-up at 00:00 UTC, as YYYY-MM-DD; "": none.
	NextResetAt string `json:"next_reset_at,omitempty"`

	MaxMembers *int `json:"max_members,omitzero"` // nil: 1,000
	MaxTerms   *int `json:"max_terms,omitzero"`   // nil: 500

	// Suspended, Expired and APIDisabled reject requests with any key, with ORGANISATION_SUSPENDED,
	// ORGANISATION_EXPIRED and API_ACCESS_DISABLED.
	Suspended   bool `json:"suspended,omitzero"`
	Expired     bool `json:"expired,omitzero"`
	APIDisabled bool `json:"api_disabled,omitzero"`

	// PersonalKeysDisabled rejects requests with personal keys, with PERSONAL_API_KEYS_DISABLED.
	PersonalKeysDisabled bool `json:"personal_keys_disabled,omitzero"`

	Members      []Member                  `json:"members,omitempty"`
	Integrations []Integration             `json:"integrations,omitempty"`
	Projects     []Project                 `json:"projects,omitempty"`
	Templates    []Template                `json:"templates,omitempty"` // none: tpl_standard
	Vocabulary   []minutes.VocabularyEntry `json:"vocabulary,omitempty"`
	Keys         []Key                     `json:"keys,omitempty"` // of members and integrations

	// Meetings are those that a new organisation begins with, the oldest first. They are not
	// settings, so an organisation that you read or update later has none.
	Meetings []MeetingSpec `json:"meetings,omitempty"`
}

// Member is a person in an organisation, whether or not they can sign in.
type Member struct {
	ID          string               `json:"id"`             // begins with emp_
	Name        string               `json:"name,omitempty"` // "": the id
	Email       string               `json:"email,omitempty"`
	Role        string               `json:"role,omitempty"`
	Description string               `json:"description,omitempty"`
	Status      minutes.MemberStatus `json:"status,omitempty"` // "": active
	Admin       bool                 `json:"admin,omitzero"`   // may change and delete what it sees
}

// Integration is a program to which an administrator has given access. It is not a member, so no
// list shows it.
type Integration struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`

	// DefaultVisibility is that of its meetings; "": organisation.
	DefaultVisibility minutes.Visibility `json:"default_visibility,omitempty"`

	// Inactive rejects requests with its keys, with API_ACCESS_DISABLED.
	Inactive bool `json:"inactive,omitzero"`
}

// Project groups meetings. Lists omit an archived project, and no meeting can be added to it.
type Project struct {
	ID       string `json:"id"`             // begins with prj_
	Name     string `json:"name,omitempty"` // "": the id
	Archived bool   `json:"archived,omitzero"`
}

// Template determines the form of minutes. The default is the first template with IsDefault or, if
// none has it, the first of all.
type Template struct {
	ID          string `json:"id"`               // begins with tpl_
	Name        string `json:"name,omitempty"`   // "": the id
	Source      string `json:"source,omitempty"` // "": service
	Description string `json:"description,omitempty"`
	IsDefault   bool   `json:"is_default,omitzero"`
	Version     *int   `json:"version,omitzero"`
}

// Key is an API key, which belongs either to a member (a personal key) or to an integration.
type Key struct {
	// Secret is the key itself, as a client sends it.
	Secret string `json:"secret"`

	// MemberID or IntegrationID is the owner. Set one of them.
	MemberID      string `json:"member_id,omitempty"`
	IntegrationID string `json:"integration_id,omitempty"`

	// Scopes are what it may do; nil: everything, and empty but not nil: nothing.
	Scopes []minutes.Scope `json:"scopes,omitzero"`

	// IPAllowlist has addresses and CIDR blocks; empty: it may be used from anywhere.
	IPAllowlist []string `json:"ip_allowlist,omitempty"`

	// ExpiresAt is when requests with it begin to get UNAUTHENTICATED; 0: never.
	ExpiresAt minutes.UnixTime `json:"expires_at,omitzero"`

	// Revoked rejects requests with it, with UNAUTHENTICATED.
	Revoked bool `json:"revoked,omitzero"`
}

// MeetingSpec describes a meeting that a fake begins with or is given later, or many alike. Unless
// its status is created, the meeting has a recording of one second. It continues from its status by
// itself, and the steps before that cost no quota.
type MeetingSpec struct {
	Title string `json:"title"`
	Date  string `json:"date,omitempty"` // "": 2026-01-01

	// ExternalID gets "-1", "-2" and so on if Count is more than one.
	ExternalID string `json:"external_id,omitempty"`

	Status minutes.Status `json:"status,omitempty"` // "": minutes_ready

	// CreatorID is a member or integration; "": the first integration or, without one, the first
	// member.
	CreatorID string `json:"creator_id,omitempty"`

	// Visibility is the creator's default if it is "", as in a create.
	Visibility minutes.Visibility `json:"visibility,omitempty"`

	ParticipantIDs []string `json:"participant_ids,omitempty"`
	SharedWith     []string `json:"shared_with,omitempty"` // ignored unless Visibility is shared
	ProjectID      string   `json:"project_id,omitempty"`
	Count          int      `json:"count,omitzero"` // how many; 0: one
}

// Organisation returns a pointer to the organisation with this id, so that you can change it. Like
// the methods of [Organisation], it panics if there is none: the message names those that exist. In
// an update of a Server, that fails the test.
func (w *World) Organisation(id string) *Organisation {
	return find(w.Organisations, "organisation", id, func(o *Organisation) string { return o.ID })
}

// Member returns a pointer to the member with this id. It panics if there is none.
func (o *Organisation) Member(id string) *Member {
	return find(o.Members, "member", id, func(m *Member) string { return m.ID })
}

// Integration returns a pointer to the integration with this id. It panics if there is none.
func (o *Organisation) Integration(id string) *Integration {
	return find(o.Integrations, "integration", id, func(i *Integration) string { return i.ID })
}

// Project returns a pointer to the project with this id. It panics if there is none.
func (o *Organisation) Project(id string) *Project {
	return find(o.Projects, "project", id, func(p *Project) string { return p.ID })
}

// Template returns a pointer to the template with this id. It panics if there is none.
func (o *Organisation) Template(id string) *Template {
	return find(o.Templates, "template", id, func(t *Template) string { return t.ID })
}

// Key returns a pointer to the key with this secret. It panics if there is none.
func (o *Organisation) Key(secret string) *Key {
	return find(o.Keys, "key", secret, func(k *Key) string { return k.Secret })
}

// find returns the element of a list that has a name, which is an id or a secret.
func find[T any](list []T, kind, name string, nameOf func(*T) string) *T {
	names := []string{}
	for i := range list {
		element := &list[i]
		if nameOf(element) == name {
			return element
		}
		names = append(names, nameOf(element))
	}
	err := fmt.Errorf("there is no %s %q, only %q", kind, name, names)
	panic(mistake.Mistake{Method: "World", Err: err})
}

// Script sets how a meeting proceeds and ends. It applies to the meeting with the given id,
// external id or title, or to all meetings if none of them is set. If several scripts match a
// meeting, each field comes from the most specific script that sets it: by id, then by external id,
// then by title. A field that no script sets has its default, which is minutes of a short
// conversation, after the World's stages. As JSON, durations are strings such as "20ms" or "1h30m".
type Script struct {
	// MeetingID, ExternalID or Title says which meetings. Set at most one of them.
	MeetingID  string `json:"meeting_id,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	Title      string `json:"title,omitempty"`

	// Outcome is the status in which the meeting ends: one of the four failure statuses, or
	// minutes_ready. Too little quota or an unusable recording can still make it fail earlier.
	Outcome minutes.Status `json:"outcome,omitempty"`

	// Transcript is the spoken text, with a turn such as "spk_0: Good morning." on each line.
	Transcript string `json:"transcript,omitempty"`

	// Markdown and HTML are the minutes. An empty one is written from the transcript.
	Markdown string `json:"markdown,omitempty"`
	HTML     string `json:"html,omitempty"`

	// Duration is the recording's length, whatever its bytes say. Set it before the audio arrives.
	Duration time.Duration `json:"-"` // "duration"

	// Stages are how long the meeting stays in each status; nil: as long as in the World.
	Stages *Stages `json:"stages,omitzero"`

	// Hold stops the meeting in this status until it is released or advanced. The status is
	// audio_uploaded, transcribing, transcribed or generating_minutes.
	Hold minutes.Status `json:"hold,omitempty"`

	// ListedAfter is how long after its creation no list or search by external id contains the
	// meeting, although a GET finds it, as in a service whose index is late.
	ListedAfter time.Duration `json:"-"` // "listed_after"

	// VisibleAfter is how long after its creation no read finds the meeting, as in a service whose
	// reads lag behind its writes: a GET of it gets NOT_FOUND, and no list contains it. Writes do find it.
	VisibleAfter time.Duration `json:"-"` // "visible_after"

	// NoticedAfter is how long after an upload the service notices that storage has the recording. Until
	// then the meeting is created and gets upload URLs, but storage rejects a second recording with 403.
	NoticedAfter time.Duration `json:"-"` // "noticed_after"

	// ClockSkew is how far the clocks of the service's machines differ. Two machines take turns at
	// writing the meeting, and the clock of the second one is slow by ClockSkew. So updated_at is
	// too low in audio_uploaded, transcribed and minutes_ready, unless a PATCH changes the turns. If
	// the status before was short, updated_at even goes back. To see this before the minutes are
	// ready, hold the meeting in audio_uploaded or transcribed.
	ClockSkew time.Duration `json:"-"` // "clock_skew"
}

// Target returns a script for the same meetings that sets nothing. If you pass it to
// minutestest.Server.Script, it removes s.
func (s Script) Target() Script {
	return Script{MeetingID: s.MeetingID, ExternalID: s.ExternalID, Title: s.Title}
}

// Meeting is everything about one meeting, including what no client can see.
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
	Held            bool               `json:"held,omitzero"`    // in Status, by a Script
	DurationSeconds *int               `json:"duration_seconds,omitzero"`
	CreatedAt       time.Time          `json:"created_at"`
	UpdatedAt       time.Time          `json:"updated_at"` // with ClockSkew, as the API shows it

	History    []Transition `json:"history"`              // from created on
	Audio      *Audio       `json:"audio,omitzero"`       // nil: it has not arrived
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
	Bytes       []byte    `json:"-"` // only if the fake keeps recordings; do not change them
}
