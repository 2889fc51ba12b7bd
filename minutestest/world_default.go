package minutestest

import (
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// DefaultWorld returns the World of a [Server] without [WithWorld]: the organisation org_acme with
// the keys
//
//	key_ci   of the integration int_ci
//	key_ada  of Ada Lovelace, an administrator
//	key_ben  of Ben Okafor, who is no administrator
//
// all with every scope, a member in each status, two projects and an archived one, two templates, a
// few terms of vocabulary, and a quota of 1,000 credits, one for each set of minutes, and 360,000
// seconds. Each call returns a new World, which you may change.
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
