package minutestest

import (
	"errors"
	"fmt"
	"io"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// The types that describe what a Server holds. Package world has their fields.
type (
	// World is what a [Server] begins with: organisations with their people, keys and settings. As JSON,
	// which [LoadWorld] reads, its fields have the same names; everything may be left out but ids, a
	// key's secret and owner, a meeting's title and words of vocabulary:
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
	// Stages sets how long a meeting stays in each status between its audio and its minutes.
	Stages = world.Stages
	// Organisation is one customer of the service, with everything that belongs to it.
	Organisation = world.Organisation
	// Member is a person in an organisation, whether or not they can sign in.
	Member = world.Member
	// Integration is a program to which an administrator has given access.
	Integration = world.Integration
	// Project groups meetings.
	Project = world.Project
	// Template determines the form of minutes.
	Template = world.Template
	// Key is an API key: a member's own (a personal key) or an integration's.
	Key = world.Key
	// WorldMeeting describes one meeting, or many alike, for a new [Server] or [Server.AddMeetings].
	WorldMeeting = world.MeetingSpec
	// Script sets how a meeting proceeds and ends; see [Server.Script]. It applies to the meeting with
	// the given id, external id or title, or to all meetings if none of them is set. If several scripts
	// match a meeting, each field comes from the most specific script that sets it: by id, then by
	// external id, then by title. Otherwise the meeting becomes minutes of a short conversation, after
	// the World's stages.
	Script = world.Script
	// Meeting is everything about one meeting, including what no client can see.
	Meeting = world.Meeting
	// Transition is a change of a meeting's status.
	Transition = world.Transition
	// Audio is a recording as it arrived; its bytes are kept only with [WithAudio].
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
		err = world.Decode(data, &w)
	}
	if err == nil {
		err = engine.Check(w)
	}
	if err == nil && len(w.Organisations) == 0 {
		err = errors.New("organisations: at least one expected")
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
// terms of vocabulary. Its quota is 360,000 seconds and 1,000 credits, of which each set of minutes
// costs one. Each call returns a new World, so you may change it.
func DefaultWorld() World {
	return World{
		Stages: Stages{Prepare: 20 * time.Millisecond, Transcribe: 50 * time.Millisecond, Write: 50 * time.Millisecond},
		Organisations: []Organisation{{
			ID:   "org_acme",
			Name: "Acme",
			Members: []Member{
				{ID: "emp_ada", Name: "Ada Lovelace", Email: "ada@acme.example", Role: "Head of Engineering", Description: "Decides what is built and in which order.", Status: minutes.MemberActive, Admin: true},
				{ID: "emp_ben", Name: "Ben Okafor", Email: "ben@acme.example", Role: "Engineer", Description: "Looks after the database and its backups.", Status: minutes.MemberActive},
				{ID: "emp_chloe", Name: "Chloé Martin", Email: "chloe@acme.example", Role: "Designer", Status: minutes.MemberInvited},
				{ID: "emp_dai", Name: "Dai Nguyen", Role: "Guest", Status: minutes.MemberNoAccount},
				{ID: "emp_eve", Name: "Eve Larsen", Email: "eve@acme.example", Role: "Engineer", Status: minutes.MemberDeactivated},
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
