package engine

import (
	"net/http"
	"net/netip"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Config is the initial state of a Service. The zero value has no
// organisations: every call is UNAUTHENTICATED.
type Config struct {
	Organisations []Organisation
	Stages        Stages

	// StorageBase returns scheme://host of the upload URLs for the caller of r.
	// Nil: the scheme and host that r itself came to.
	StorageBase func(r *http.Request) string

	// KeepAudio is the most bytes of all recordings together to keep for
	// MeetingState.Audio. A recording beyond that is hashed and counted only.
	KeepAudio int64

	// MinPollInterval is what Cache-Control asks of clients that poll; 0: 30 s.
	MinPollInterval time.Duration

	// Seed makes ids, cursors and upload URLs the same on each run; 0 does not.
	Seed uint64
}

// Stages holds the time that a meeting spends in each state on the way to
// minutes. A zero stage passes at once.
type Stages struct {
	Prepare    time.Duration // in audio_uploaded
	Transcribe time.Duration // in transcribing
	Queue      time.Duration // in transcribed; usually zero
	Write      time.Duration // in generating_minutes
}

// PageSize returns how many meetings a page of a listing may hold: page number
// page, from 0, if the caller asks for limit. Results are clamped to 0..limit.
// Many goroutines call it at once, without a lock.
type PageSize func(limit, page int) int

// Organisation is one customer of the service: its settings, people and keys.
// Nil pointers mean the service's default (decisions D15 and D23).
type Organisation struct {
	ID   string
	Name string

	Credits           *int   // left this period
	TranscribeSeconds *int   // left this period
	NextResetAt       string // YYYY-MM-DD of the next top-up, at 00:00 UTC; "": none

	// The quota after a top-up. Nil: Credits and TranscribeSeconds as they were
	// when the organisation was first configured.
	PeriodCredits           *int
	PeriodTranscribeSeconds *int

	MaxMembers *int
	MaxTerms   *int

	Suspended            bool // ORGANISATION_SUSPENDED
	Expired              bool // ORGANISATION_EXPIRED
	APIDisabled          bool // API_ACCESS_DISABLED
	PersonalKeysDisabled bool // PERSONAL_API_KEYS_DISABLED

	Members      []Member
	Integrations []Integration
	Projects     []Project
	Templates    []Template
	Vocabulary   []Term
	Keys         []Key
}

// Member is a person of an organisation.
type Member struct {
	ID          string
	Name        string
	Email       string
	Role        string
	Description string
	Status      minutes.MemberStatus // "": active
	Admin       bool
}

// Integration is a program that an administrator has admitted. It is not a
// member, and no list shows it.
type Integration struct {
	ID                string
	Name              string
	DefaultVisibility minutes.Visibility // "": organisation
	Inactive          bool               // its keys get API_ACCESS_DISABLED
}

// Project groups meetings. Archived projects are not listed and take no
// meetings.
type Project struct {
	ID       string
	Name     string
	Archived bool
}

// Template shapes minutes.
type Template struct {
	ID          string
	Name        string
	Source      string // "": "service"
	Description string
	IsDefault   bool // of several or none, the first counts
	Version     *int
}

// Term is one entry of the vocabulary.
type Term struct {
	Term     string
	Variants []Variant
}

// Variant is a known wrong spelling of a term.
type Variant struct {
	Text   string `json:"text"`
	Source string `json:"source"` // auto or manual; "": manual
}

// Key is an API key: a member's own, or an integration's.
type Key struct {
	Secret        string
	MemberID      string         // a personal key
	IntegrationID string         // an integration key
	Scopes        []string       // nil: all; empty and not nil: none
	Allowlist     []netip.Prefix // empty: every address
	ExpiresAt     time.Time      // zero: never
	Revoked       bool
}
