package minutestest

import (
	"fmt"
	"io"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/strictjson"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// The types that describe what a Server holds. Package world defines them; because they are aliases, their
// comments list the fields.
type (
	// World is what a [Server] begins with: organisations with their people, keys and settings. Its method
	// Organisation(id) returns a pointer to one of them, or nil.
	//
	//	Organisations      []Organisation
	//	Stages, PageSizes  Stages, []int  // of all organisations; see Server.SetPageSizes
	//
	// As JSON, which [LoadWorld] reads, the fields have the same names. Required are only ids, a key's
	// secret and owner, a meeting's title, and the terms and variants of a vocabulary:
	//
	//	{"stages":{"prepare":"20ms","transcribe":"50ms","write":"50ms"}, "page_sizes":[10,0],
	//	 "organisations":[{"id":"org_acme","name":"Acme","credits":100,"transcribe_seconds":36000,"next_reset_at":"2026-12-01",
	//	  "max_members":1000,"max_terms":500,"suspended":false,"expired":false,"api_disabled":false,"personal_keys_disabled":false,
	//	  "members":[{"id":"emp_ada","name":"Ada Lovelace","email":"ada@acme.example","role":"","description":"","status":"active","admin":true}],
	//	  "integrations":[{"id":"int_ci","name":"CI","default_visibility":"organisation","inactive":false}],
	//	  "projects":[{"id":"prj_apollo","name":"Apollo","archived":false}],
	//	  "templates":[{"id":"tpl_standard","name":"Standard minutes","source":"service","description":"","is_default":true,"version":1}],
	//	  "vocabulary":[{"term":"Kubernetes","variants":[{"text":"cooper netties","source":"auto"}]}],
	//	  "keys":[{"secret":"key_ci","integration_id":"int_ci","scopes":["meetings:read"],"ip_allowlist":["10.0.0.0/8"],"expires_at":1,"revoked":false}],
	//	  "meetings":[{"title":"Weekly","creator_id":"emp_ada","status":"created","count":3}]}]}
	World = world.World
	// Stages sets how long a meeting stays in each status between its audio and its minutes. Stages{} means
	// that the minutes are ready as soon as the audio has arrived.
	//
	//	Prepare, Transcribe, Write  time.Duration  // in audio_uploaded, transcribing, generating_minutes
	Stages = world.Stages
	// Organisation is one customer of the service, with everything that belongs to it. Its methods Member,
	// Integration, Project, Template and Key return a pointer to the one with that id or secret, or nil.
	//
	//	ID, Name                         string
	//	Credits, TranscribeSeconds       *int    // left this period; nil: 1,000 and 360,000
	//	NextResetAt                      string  // day of the top-up at 00:00 UTC, as YYYY-MM-DD; "": none
	//	MaxMembers, MaxTerms             *int    // nil: 1,000 and 500
	//	Suspended, Expired, APIDisabled  bool    // reject requests with any key
	//	PersonalKeysDisabled             bool    // rejects requests with personal keys
	//	Members, Integrations            []Member, []Integration
	//	Projects, Templates              []Project, []Template  // no templates: tpl_standard
	//	Vocabulary, Keys                 []minutes.VocabularyEntry, []Key
	//	Meetings                         []WorldMeeting  // the initial ones, oldest first; later empty
	Organisation = world.Organisation
	// Member is a person in an organisation, whether or not they can sign in.
	//
	//	ID, Name, Email, Role, Description  string  // ID begins with emp_; Name "": the id
	//	Status                              minutes.MemberStatus  // "": active
	//	Admin                               bool  // may change and delete every meeting they see
	Member = world.Member
	// Integration is a program to which an administrator has given access.
	//
	//	ID, Name           string
	//	DefaultVisibility  minutes.Visibility  // "": organisation
	//	Inactive           bool                // its keys get API_ACCESS_DISABLED
	Integration = world.Integration
	// Project groups meetings. Lists omit an archived project, and no meeting can be added to it.
	//
	//	ID, Name, Archived  string, string, bool  // ID begins with prj_; Name "": the id
	Project = world.Project
	// Template determines the form of minutes. The default is the first template with IsDefault or, if
	// none has it, the first of all.
	//
	//	ID, Name, Source, Description  string  // ID begins with tpl_; Name "": the id; Source "": service
	//	IsDefault, Version             bool, *int
	Template = world.Template
	// Key is an API key: a member's own (a personal key) or an integration's.
	//
	//	Secret                   string            // as a client sends it
	//	MemberID, IntegrationID  string            // its owner: set exactly one
	//	Scopes, IPAllowlist      []string          // nil: all scopes, any address; []string{}: no scopes
	//	ExpiresAt                minutes.UnixTime  // 0: never
	//	Revoked                  bool              // gets UNAUTHENTICATED
	Key = world.Key
	// WorldMeeting describes one meeting, or many alike, for a new [Server] or [Server.AddMeetings].
	// Unless its Status is created, the meeting has a recording of one second.
	//
	//	Title, ProjectID            string
	//	ExternalID                  string              // Count above 1 adds "-1", "-2" and so on
	//	Date, CreatorID             string              // "": 2026-01-01; first integration, else member
	//	Status                      minutes.Status      // "": minutes_ready
	//	Visibility                  minutes.Visibility  // "": the creator's default, as in a create
	//	ParticipantIDs, SharedWith  []string            // SharedWith counts only if Visibility is shared
	//	Count                       int                 // 0: one
	WorldMeeting = world.MeetingSpec
	// Script sets how a meeting proceeds and ends; see [Server.Script]. It applies to the meeting with
	// the given id, external id or title, or to all meetings if none of them is set. If several scripts
	// match a meeting, each field comes from the most specific script that sets it: by id, then by
	// external id, then by title, then the one for all. Its method Target returns the Script that removes it.
	// A meeting without a script becomes minutes of a short conversation, after the World's stages.
	//
	//	MeetingID, ExternalID, Title  string          // set at most one
	//	Outcome                       minutes.Status  // minutes_ready or one of the four failure statuses
	//	Transcript                    string          // a turn such as "spk_0: Good morning." on each line
	//	Markdown, HTML                string          // the minutes; "": written from the transcript
	//	Duration                      time.Duration   // of the recording; set it before the audio arrives
	//	Stages                        *Stages         // nil: as long as in the World
	//	Hold                          minutes.Status  // stops here until Server.Release or Server.Advance
	//	ListedAfter                   time.Duration   // lists omit the meeting for so long, although a GET finds it
	//	ClockSkew                     time.Duration   // updated_at of every second write is this much too low
	Script = world.Script
	// Meeting is everything about one meeting, including what no client can see.
	//
	//	ID, Title, Date, Time, ExternalID             string
	//	Organisation, Creator, ProjectID, TemplateID  string        // ids; Creator is a member or integration
	//	ParticipantIDs, SharedWith                    []string
	//	Status, Visibility                            minutes.Status, minutes.Visibility
	//	Reason                                        string        // why it failed, for people
	//	Held, DurationSeconds                         bool, *int    // held by a Script; nil unless the API shows it
	//	CreatedAt, UpdatedAt                          time.Time
	//	History, Audio                                []Transition, *Audio  // Audio nil: it has not arrived
	//	Transcript, Markdown, HTML                    string        // "": not written yet
	Meeting = world.Meeting
	// Transition is a change of a meeting's status.
	//
	//	Status, At  minutes.Status, time.Time
	Transition = world.Transition
	// Audio is a recording as it arrived.
	//
	//	ContentType, SHA256  string  // SHA256 in lower-case hexadecimal
	//	Size, ReceivedAt     int64, time.Time
	//	Bytes                []byte  // only with WithAudio; do not change them
	Audio = world.Audio
)

// LoadWorld reads a World from JSON and checks it. The error names the path of each invalid value:
//
//	organisations[0].keys[1].member_id: no member "emp_x"
//
// The World must have at least one organisation. Unknown fields and anything after the World are errors,
// because a typing error must not pass for a default.
func LoadWorld(r io.Reader) (World, error) {
	var w World
	data, err := io.ReadAll(r)
	if err == nil {
		err = strictjson.Decode(data, &w)
	}
	if err == nil {
		err = engine.Check(w)
	}
	if err != nil {
		return World{}, fmt.Errorf("world: %w", err)
	}
	return w, nil
}

// DefaultWorld returns the World of a [Server] without [WithWorld]. Its organisation org_acme has these
// keys, all with every scope:
//
//	key_ci   of the integration int_ci
//	key_ada  of Ada Lovelace, an administrator
//	key_ben  of Ben Okafor, who is no administrator
//
// It also has a member in each status, two active projects and an archived one, two templates, and a few
// terms of vocabulary. Its quota is a billion credits, of which each set of minutes costs one, and a billion
// seconds, so that no suite uses it up. Every stage takes no time. Each call returns a new World, so you may
// change it.
func DefaultWorld() World {
	return World{
		Organisations: []Organisation{{
			ID:                "org_acme",
			Name:              "Acme",
			Credits:           new(1_000_000_000),
			TranscribeSeconds: new(1_000_000_000),
			Members: []Member{
				{ID: "emp_ada", Name: "Ada Lovelace", Email: "ada@acme.example", Role: "Head of Engineering", Description: "Decides what is built and in which order.", Status: minutes.MemberStatusActive, Admin: true},
				{ID: "emp_ben", Name: "Ben Okafor", Email: "ben@acme.example", Role: "Engineer", Description: "Looks after the database and its backups.", Status: minutes.MemberStatusActive},
				{ID: "emp_chloe", Name: "Chloé Martin", Email: "chloe@acme.example", Role: "Designer", Status: minutes.MemberStatusInvited},
				{ID: "emp_dai", Name: "Dai Nguyen", Role: "Guest", Status: minutes.MemberStatusNoAccount},
				{ID: "emp_eve", Name: "Eve Larsen", Email: "eve@acme.example", Role: "Engineer", Status: minutes.MemberStatusDeactivated},
			},
			Integrations: []Integration{{ID: "int_ci", Name: "CI", DefaultVisibility: minutes.VisibilityOrganisation}},
			Projects: []Project{
				{ID: "prj_apollo", Name: "Apollo"},
				{ID: "prj_gemini", Name: "Gemini"},
				{ID: "prj_mercury", Name: "Mercury", Archived: true},
			},
			Templates: []Template{
				{ID: "tpl_standard", Name: "Standard minutes", Source: "service", Description: "Summary, decisions and actions.", IsDefault: true, Version: new(1)},
				{ID: "tpl_decisions", Name: "Decisions only", Source: "organisation", Description: "What was decided, and nothing else."},
			},
			Vocabulary: []minutes.VocabularyEntry{
				{Term: "Kubernetes", Variants: []minutes.VocabularyVariant{{Text: "cooper netties", Source: "auto"}}},
				{Term: "PostgreSQL", Variants: []minutes.VocabularyVariant{{Text: "post gress", Source: "manual"}}},
				{Term: "Grafana", Variants: []minutes.VocabularyVariant{}},
			},
			Keys: []Key{
				{Secret: "key_ci", IntegrationID: "int_ci"},
				{Secret: "key_ada", MemberID: "emp_ada"},
				{Secret: "key_ben", MemberID: "emp_ben"},
			},
		}},
	}
}
