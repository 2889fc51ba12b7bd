package minutestest

import (
	"fmt"
	"io"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// The types that describe what a Server holds. Package world defines them, and its documentation
// has their fields.
type (
	// World is [world.World], the content with which a [Server] begins.
	//
	// Its fields are Stages Stages; Organisations []Organisation; PageSizes []int.
	World = world.World
	// Stages is [world.Stages]: how long a meeting stays in each status between its audio and its
	// minutes.
	//
	// Its fields are Prepare, Transcribe, Write time.Duration.
	Stages = world.Stages
	// Organisation is [world.Organisation]: one customer of the service, with everything that
	// belongs to it.
	//
	// Its fields are ID, Name string; Credits, TranscribeSeconds *int; NextResetAt string;
	// MaxMembers, MaxTerms *int; Suspended, Expired, APIDisabled, PersonalKeysDisabled bool;
	// Members []Member; Integrations []Integration; Projects []Project; Templates []Template;
	// Vocabulary []minutes.VocabularyEntry; Keys []Key; Meetings []WorldMeeting.
	Organisation = world.Organisation
	// Member is [world.Member]: a person in an organisation.
	//
	// Its fields are ID, Name, Email, Role, Description string; Status minutes.MemberStatus; Admin
	// bool.
	Member = world.Member
	// Integration is [world.Integration]: a program with access to the service.
	//
	// Its fields are ID, Name string; DefaultVisibility minutes.Visibility; Inactive bool.
	Integration = world.Integration
	// Project is [world.Project]: a group of meetings.
	//
	// Its fields are ID, Name string; Archived bool.
	Project = world.Project
	// Template is [world.Template]: a form of minutes.
	//
	// Its fields are ID, Name, Source, Description string; IsDefault bool; Version *int.
	Template = world.Template
	// Key is [world.Key]: an API key of a member or an integration.
	//
	// Its fields are Secret, MemberID, IntegrationID string; Scopes []minutes.Scope; IPAllowlist
	// []string; ExpiresAt minutes.UnixTime; Revoked bool.
	Key = world.Key
	// WorldMeeting is [world.MeetingSpec]: a meeting, or many alike, for a World or
	// [Server.AddMeetings].
	//
	// Its fields are Title, Date, ExternalID string; Status minutes.Status; CreatorID string;
	// Visibility minutes.Visibility; ParticipantIDs, SharedWith []string; ProjectID string; Count
	// int.
	WorldMeeting = world.MeetingSpec
	// Script is [world.Script]: how a meeting proceeds and ends; see [Server.Script].
	//
	// Its fields are MeetingID, ExternalID, Title string; Outcome minutes.Status; Transcript,
	// Markdown, HTML string; Duration time.Duration; Stages *Stages; Hold minutes.Status;
	// ListedAfter, VisibleAfter, NoticedAfter, ClockSkew time.Duration.
	Script = world.Script
	// Meeting is [world.Meeting]: everything about one meeting, including what no client can see.
	//
	// Its fields are ID, Organisation, Creator, Title, Date, Time, ExternalID, ProjectID,
	// TemplateID string; Visibility minutes.Visibility; ParticipantIDs, SharedWith []string;
	// Status minutes.Status; Reason string; Held bool; DurationSeconds *int; CreatedAt, UpdatedAt
	// time.Time; History []Transition; Audio *Audio; Transcript, Markdown, HTML string.
	Meeting = world.Meeting
	// Transition is [world.Transition]: a change of a meeting's status.
	//
	// Its fields are Status minutes.Status; At time.Time.
	Transition = world.Transition
	// Audio is [world.Audio]: a recording as it arrived.
	//
	// Its fields are ContentType string; Size int64; SHA256 string; ReceivedAt time.Time; Bytes
	// []byte.
	Audio = world.Audio
)

// LoadWorld reads a World from JSON and checks it. The error names the path of each invalid value:
//
//	organisations[0].keys[1].member_id: no member "emp_x"
//
// The World must have at least one organisation. Unknown fields and anything after the World are
// errors, because a typing error must not pass for a default.
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

// DefaultWorld returns the World of a [Server] without [WithWorld]. Its organisation org_acme has
// these keys, all with every scope:
//
//	key_ci   of the integration int_ci
//	key_ada  of Ada Lovelace, an administrator
//	key_ben  of Ben Okafor, who is not an administrator
//
// It also has a member in each status, two active projects and an archived one, two templates, and
// a few terms of vocabulary. Its quota is a billion credits, of which each set of minutes costs
// one, and a billion seconds, so that no suite uses it up. Every stage takes no time. Each call
// returns a new World, so you may change it.
func DefaultWorld() World {
	return World{Organisations: []Organisation{{
		ID:                "org_acme",
		Name:              "Acme",
		Credits:           new(1_000_000_000),
		TranscribeSeconds: new(1_000_000_000),
		Members:           defaultMembers(),
		Integrations: []Integration{
			{ID: "int_ci", Name: "CI", DefaultVisibility: minutes.VisibilityOrganisation},
		},
		Projects: []Project{
			{ID: "prj_apollo", Name: "Apollo"},
			{ID: "prj_gemini", Name: "Gemini"},
			{ID: "prj_mercury", Name: "Mercury", Archived: true},
		},
		Templates: []Template{
			{
				ID:          "tpl_standard",
				Name:        "Standard minutes",
				Source:      "service",
				Description: "Summary, decisions and actions.",
				IsDefault:   true,
				Version:     new(1),
			},
			{
				ID:          "tpl_decisions",
				Name:        "Decisions only",
				Source:      "organisation",
				Description: "What was decided, and nothing else.",
			},
		},
		Vocabulary: defaultVocabulary(),
		Keys: []Key{
			{Secret: "key_ci", IntegrationID: "int_ci"},
			{Secret: "key_ada", MemberID: "emp_ada"},
			{Secret: "key_ben", MemberID: "emp_ben"},
		},
	}}}
}

// defaultVocabulary has terms with and without variants.
func defaultVocabulary() []minutes.VocabularyEntry {
	return []minutes.VocabularyEntry{
		{
			Term:     "Kubernetes",
			Variants: []minutes.VocabularyVariant{{Text: "cooper netties", Source: minutes.VariantSourceAuto}},
		},
		{
			Term:     "PostgreSQL",
			Variants: []minutes.VocabularyVariant{{Text: "post gress", Source: minutes.VariantSourceManual}},
		},
		{Term: "Grafana", Variants: []minutes.VocabularyVariant{}},
	}
}

// defaultMembers has a member in each status.
func defaultMembers() []Member {
	return []Member{
		{
			ID:          "emp_ada",
			Name:        "Ada Lovelace",
			Email:       "ada@acme.example",
			Role:        "Head of Engineering",
			Description: "Decides what is built and in which order.",
			Status:      minutes.MemberStatusActive,
			Admin:       true,
		},
		{
			ID:          "emp_ben",
			Name:        "Ben Okafor",
			Email:       "ben@acme.example",
			Role:        "Engineer",
			Description: "Looks after the database and its backups.",
			Status:      minutes.MemberStatusActive,
		},
		{
			ID:     "emp_chloe",
			Name:   "Chloé Martin",
			Email:  "chloe@acme.example",
			Role:   "Designer",
			Status: minutes.MemberStatusInvited,
		},
		{
			ID:     "emp_dai",
			Name:   "Dai Nguyen",
			Role:   "Guest",
			Status: minutes.MemberStatusNoAccount,
		},
		{
			ID:     "emp_eve",
			Name:   "Eve Larsen",
			Email:  "eve@acme.example",
			Role:   "Engineer",
			Status: minutes.MemberStatusDeactivated,
		},
	}
}
