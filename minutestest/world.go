package minutestest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// World is what a [Server] begins with: organisations with their people, keys
// and settings. It has the same form in Go and as JSON; see [LoadWorld].
// Everything but ids, and the secrets of keys, may be left out.
type World struct {
	Stages        Stages         `json:"stages,omitzero"`
	Organisations []Organisation `json:"organisations"`
}

// Stages are how long a meeting stays in the states between its audio and
// its minutes. A stage that is left out, or zero, takes 20, 50 and 50
// milliseconds in a World and the World's own time in a [Script]. As JSON, the
// stages are durations such as "20ms" or "1m30s".
type Stages struct {
	Prepare    time.Duration // in audio_uploaded
	Transcribe time.Duration // in transcribing
	Write      time.Duration // in generating_minutes
}

// Organisation is one customer of the service. No organisation ever sees
// anything of another.
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

	// Meetings are those that the World begins with, the oldest first. Update
	// takes none; [Server.AddMeetings] adds more.
	Meetings []WorldMeeting `json:"meetings,omitempty"`
}

// Member is a person of an organisation.
type Member struct {
	ID          string               `json:"id"` // begins with emp_
	Name        string               `json:"name,omitempty"`
	Email       string               `json:"email,omitempty"`
	Role        string               `json:"role,omitempty"`
	Description string               `json:"description,omitempty"`
	Status      minutes.MemberStatus `json:"status,omitempty"` // "": active
	Admin       bool                 `json:"admin,omitempty"`  // may change and delete every visible meeting
}

// Integration is a program that an administrator has given access.
type Integration struct {
	ID                string             `json:"id"`
	Name              string             `json:"name,omitempty"`
	DefaultVisibility minutes.Visibility `json:"default_visibility,omitempty"` // "": organisation
	Inactive          bool               `json:"inactive,omitempty"`           // its keys: API_ACCESS_DISABLED
}

// Project groups meetings. An archived one is not listed and takes none.
type Project struct {
	ID       string `json:"id"` // begins with prj_
	Name     string `json:"name,omitempty"`
	Archived bool   `json:"archived,omitempty"`
}

// Template shapes minutes. Of several, the first with IsDefault is the
// default; of several without, the first.
type Template struct {
	ID          string `json:"id"` // begins with tpl_
	Name        string `json:"name,omitempty"`
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

// Member returns the member with this id, or nil.
func (o *Organisation) Member(id string) *Member {
	return find(o.Members, func(m *Member) bool { return m.ID == id })
}

// Integration returns the integration with this id, or nil.
func (o *Organisation) Integration(id string) *Integration {
	return find(o.Integrations, func(i *Integration) bool { return i.ID == id })
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

const byteOrderMark = "\ufeff"

// LoadWorld reads a World as JSON and checks it. An error names the path of the
// invalid value or unknown field:
//
//	organisations[0].keys[1].member_id: no member "emp_x"
//
// A World that is read has an organisation at least. A byte order mark before it
// is skipped; a name that is given twice, bytes that are not UTF-8, and anything
// after the World, are errors.
func LoadWorld(r io.Reader) (World, error) {
	var w World
	data, err := io.ReadAll(r)
	if err != nil {
		return World{}, fmt.Errorf("world: %w", err)
	}
	if bytes.HasPrefix(data, []byte(byteOrderMark)) {
		copy(data, "   ") // so that offsets in the file stay the same
	}
	if err := strictUnmarshal(data, &w); err != nil {
		return World{}, fmt.Errorf("world: %w", err)
	}
	if err := w.check(); err != nil {
		return World{}, fmt.Errorf("world: %w", err)
	}
	if len(w.Organisations) == 0 {
		return World{}, errors.New("world: organisations: at least one expected")
	}
	return w, nil
}

// or fills the stages that are left out from other.
func (s Stages) or(other Stages) Stages {
	return Stages{
		Prepare:    cmp.Or(s.Prepare, other.Prepare),
		Transcribe: cmp.Or(s.Transcribe, other.Transcribe),
		Write:      cmp.Or(s.Write, other.Write),
	}
}

var defaultStages = Stages{Prepare: 20 * time.Millisecond, Transcribe: 50 * time.Millisecond, Write: 50 * time.Millisecond}
