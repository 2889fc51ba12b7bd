package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The error names the path of the invalid value.
func TestNew_RejectsInvalidConfigs(t *testing.T) {
	t.Parallel()
	bad := "\xff"
	for want, change := range map[string]func(*Organisation){
		`.id: is required`:                                           func(o *Organisation) { o.ID = "" },
		`.id: is not UTF-8`:                                          func(o *Organisation) { o.ID = bad },
		`.name: is not UTF-8`:                                        func(o *Organisation) { o.Name = bad },
		`.id: "org_globex" is there already`:                         func(o *Organisation) { o.ID = "org_globex" },
		`.next_reset_at: "soon" is not a date as YYYY-MM-DD`:         func(o *Organisation) { o.NextResetAt = "soon" },
		`.members[1].id: is required`:                                func(o *Organisation) { o.Members[1].ID = "" },
		`.members[1].id: "emp_ada" is there already`:                 func(o *Organisation) { o.Members[1].ID = "emp_ada" },
		`.members[1].name: is required`:                              func(o *Organisation) { o.Members[1].Name = "" },
		`.members[1].role: is not UTF-8`:                             func(o *Organisation) { o.Members[1].Role = bad },
		`.members[1].email: "bob" is not an address`:                 func(o *Organisation) { o.Members[1].Email = "bob" },
		`.members[1].email: "ADA@acme.example" is emp_ada's already`: func(o *Organisation) { o.Members[1].Email = "ADA@acme.example" },
		`.integrations[1].id: "emp_ada" is there already`:            func(o *Organisation) { o.Integrations[1].ID = "emp_ada" },
		`.projects[1].id: "prj_apollo" is there already`:             func(o *Organisation) { o.Projects[1].ID = "prj_apollo" },
		`.projects[1].name: is required`:                             func(o *Organisation) { o.Projects[1].Name = "" },
		`.templates[1].id: "tpl_standard" is there already`:          func(o *Organisation) { o.Templates[1].ID = "tpl_standard" },
		`.templates[1].name: is required`:                            func(o *Organisation) { o.Templates[1].Name = "" },
		`.templates[1].description: is not UTF-8`:                    func(o *Organisation) { o.Templates[1].Description = bad },
		`.templates[1].source: is not UTF-8`:                         func(o *Organisation) { o.Templates[1].Source = bad },
		`.vocabulary[1].term: "Kubernetes" is there already`:         func(o *Organisation) { o.Vocabulary = append(o.Vocabulary, Term{Term: " Kubernetes "}) },
		`.vocabulary[0].term: is required`:                           func(o *Organisation) { o.Vocabulary[0].Term = " " },
		`.vocabulary[0].variants[0].text: is required`:               func(o *Organisation) { o.Vocabulary[0].Variants[0].Text = "" },
		`.keys[1].secret: is another key's already`:                  func(o *Organisation) { o.Keys[1].Secret = "ada" },
	} {
		want = strings.TrimRight(want, "#")
		a, b := globex(), acme()
		change(&b)
		_, err := New(Config{Organisations: []Organisation{a, b}})
		require.ErrorContains(t, err, "engine: organisations[1]"+want)
		require.Equal(t, 1, strings.Count(err.Error(), "engine:"))
	}
	for _, stages := range []Stages{{Prepare: -1}, {Transcribe: -1}, {Queue: -1}, {Write: -1}} {
		_, err := New(Config{Stages: stages})
		require.EqualError(t, err, "engine: stages: durations cannot be negative")
		s := newRig(t)
		require.EqualError(t, s.Script(Selector{}, Script{Stages: &stages}), "engine: script: durations cannot be negative")
	}
	for _, sc := range []Script{{Transcript: bad}, {Minutes: Minutes{HTML: bad}}, {Minutes: Minutes{Markdown: bad}}} {
		require.EqualError(t, newRig(t).Script(Selector{}, sc), "engine: a script is not UTF-8")
	}
	twice := globex()
	twice.Templates = []Template{{ID: "a", Name: "A"}, {ID: "b", Name: "B", IsDefault: true}, {ID: "c", Name: "C", IsDefault: true}}
	s := newRig(t, func(cfg *Config) { cfg.Organisations[1] = twice })
	assert.Equal(t, "b", s.do("globex", "GET /v1/meetings/"+s.create("globex", ""), "").field("template_id"), "of several defaults, the first counts")
	assert.Equal(t, 1, strings.Count(s.do("globex", "GET /v1/templates", "").Body.String(), `"is_default":true`))
	assert.Equal(t, 3, strings.Count(s.do("globex", "GET /v1/templates", "").Body.String(), `"source":"service"`))
	none := new(0) // limits and quota of nothing are fine, and so is one id for things of several kinds
	o := acme()
	o.Projects[0].ID, o.Templates[0].ID, o.Members[0].Status = "emp_ada", "emp_ada", "active"
	o.MaxMembers, o.MaxTerms, o.Credits, o.TranscribeSeconds, o.PeriodCredits, o.PeriodTranscribeSeconds, o.Vocabulary = none, none, none, none, none, none, nil
	_, err := New(Config{Organisations: []Organisation{o}})
	require.NoError(t, err)
	o.MaxTerms, o.Vocabulary = nil, []Term{{"emp_ada", []Variant{{Text: "aida"}}}}
	_, err = New(Config{Organisations: []Organisation{o}})
	require.NoError(t, err)
	assert.Equal(t, []Variant{{Text: "aida"}}, o.Vocabulary[0].Variants, "a Config is left as it was")
}
