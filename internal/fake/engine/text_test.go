package engine_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// done returns a meeting whose minutes are ready.
func (s *rig) done(key, fields string) string {
	id := s.create(key, fields)
	s.upload(key, id, 1)
	return id
}

// TestVocabulary is section 2.10 with D15, D19, D20 and D25.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *world.Organisation) { o.MaxTerms = new(3) }))
	require.Equal(t,
		`{"terms":["Kubernetes"],"entries":[{"term":"Kubernetes","variants":[{"text":"cooper `+
			`netties","source":"auto"}]}],"max_terms":3}`,
		s.request("ci", "GET /v1/vocabulary", "").is(200, "").Body.String())
	for _, body := range []string{`{}`, `{"terms":null}`, `{"terms":["a"," "]}`, `{"terms":"a"}`,
		`{"terms":["a","b","c","d"]}`, `{"terms":[1]}`} {
		require.Equal(t, []any{"terms"},
			s.request("ci", "PUT /v1/vocabulary", body).is(400, "INVALID_REQUEST").detail("fields"), body)
	}
	require.Equal(t,
		`{"terms":["b","Kubernetes"],"entries":[{"term":"b","variants":[]},{"term":"Kubernetes","variants":[`+
			`{"text":"cooper netties","source":"auto"}]}],"max_terms":3}`,
		s.request("ci", "PUT /v1/vocabulary", `{"terms":[" b ","Kubernetes","b","b "]}`).is(200, "").Body.String())
	for _, body := range []string{`{}`, `{"term":null}`, `{"term":" "}`, `{"term":["a"]}`} {
		require.Equal(t, []any{"term"},
			s.request("ci", "POST /v1/vocabulary/terms", body).is(400, "INVALID_REQUEST").detail("fields"), body)
	}
	s.request("ci", "POST /v1/vocabulary/terms", `{"term":" B"}`).is(201, "")
	for _, known := range []string{"b", " Kubernetes", "B "} { // the first, one between and the last
		again := s.request("ci", "POST /v1/vocabulary/terms", `{"term":"`+known+`"}`).is(200, "")
		require.Equal(t, `["b","Kubernetes","B"]`, again.field("terms"))
	}
	s.request("ci", "POST /v1/vocabulary/terms", `{"term":"one more"}`).is(400, "INVALID_REQUEST")
	require.Equal(t, `{"terms":[],"entries":[],"max_terms":3}`,
		s.request("ci", "PUT /v1/vocabulary", `{"terms":[]}`).is(200, "").Body.String())
	require.Equal(t, "500", s.request("globex", "GET /v1/vocabulary", "").field("max_terms"))
	require.NoError(t, s.update("org_acme", func(o *world.Organisation) {
		o.Vocabulary = []minutes.VocabularyEntry{
			{Term: "A", Variants: []minutes.VocabularyVariant{{Text: "a"}, {Text: "á", Source: "auto"}}},
			{Term: "B", Variants: []minutes.VocabularyVariant{{Text: "b"}}},
		}
	}))
	require.Equal(t,
		`{"terms":["A","B"],"entries":[{"term":"A","variants":[{"text":"a","source":"manual"},`+
			`{"text":"á","source":"auto"}]},{"term":"B","variants":[{"text":"b","source":"manual"}]}],"max_terms":3}`,
		s.request("ci", "GET /v1/vocabulary", "").Body.String())
}

// TestMembers is sections 2.3 and 4.1 with D16, D18 and D19.
func TestMembers(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *world.Organisation) { o.MaxMembers = new(8) }))
	list := s.request("ci", "GET /v1/employees", "").is(200, "").Body.String()
	require.True(t, strings.HasPrefix(list,
		`{"members":[{"id":"emp_ada","name":"Ada Lovelace","role":"Engineer","status":"active"},`+
			`{"id":"emp_bob","name":"Bob <Builder> & Sons","role":null,"status":"active"}`), list)
	require.NotContains(t, list, "int_")
	for body, want := range map[string]string{
		`{}`: "INVALID_REQUEST [name]", `{"name":" "}`: "INVALID_REQUEST [name]",
		`{"name":"` + strings.Repeat("é", 81) + `"}`: "INVALID_REQUEST [name]",
		`{"name":"x","role":"` + strings.Repeat("é", 81) + `","description":"` + strings.Repeat("é",
			301) + `"}`: "INVALID_REQUEST [role description]",
		`{"name":1,"email":"nope"}`:              "INVALID_REQUEST [name email]",
		`{"name":"x","email":7}`:                 "INVALID_REQUEST [email]",
		`{"name":"x","email":"nope"}`:            "INVALID_EMAIL [email]",
		`{"name":"x","email":"X <x@y.example>"}`: "INVALID_EMAIL [email]",
		`{"name":"x","email":" x@y.example"}`:    "INVALID_EMAIL [email]",
		`{"name":"x","email":"x@y..example"}`:    "INVALID_EMAIL [email]",
		`{"name":"x","email":"x@"}`:              "INVALID_EMAIL [email]",
		`{"name":"x","email":"@y"}`:              "INVALID_EMAIL [email]",
		`{"name":"x","email":"a@b@c"}`:           "INVALID_EMAIL [email]",
		`{"name":"x","email":"x y@z"}`:           "INVALID_EMAIL [email]",
	} {
		r := s.request("ci", "POST /v1/employees", body)
		require.Equal(t, want, fmt.Sprint(r.x.Code, " ", r.detail("fields")), body)
	}
	for _, email := range []string{"ADA@acme.example", "Gone@Acme.Example"} {
		r := s.request("ci", "POST /v1/employees", `{"name":"x","email":"`+email+`"}`).is(409, "EMAIL_TAKEN")
		require.Contains(t, []any{"emp_ada", "emp_gone"}, r.detail("member_id"))
		require.NotEmpty(t, r.detail("name"))
	}
	r := s.request("ci", "POST /v1/employees",
		`{"name":" Eve ","email":"eve@acme.example","role":" Lead ","description":"Knows."}`).is(201, "")
	require.Equal(t, `{"id":"`+r.field("id")+`","name":"Eve","role":"Lead","status":"no_account"}`, r.Body.String())
	require.Regexp(t, `^emp_`, r.field("id"))
	s.request("ci", "POST /v1/employees",
		`{"name":"`+strings.Repeat("é", 80)+`","email":"","role":"","description":null}`).is(201, "")
	s.request("ci", "POST /v1/employees", `{"name":"x"}`).is(409, "MEMBER_LIMIT_EXCEEDED")
	s.request("ci", "POST /v1/employees", `{"name":"x","email":"EVE@acme.example"}`).is(409, "EMAIL_TAKEN")
	s.request("ci", "POST /v1/meetings",
		`{"title":"x","date":"2026-01-01","participant_ids":["`+r.field("id")+`"]}`).is(201, "")
}

// TestProjectsTemplatesUsage is sections 2.4, 2.5 and 2.9.
func TestProjectsTemplatesUsage(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *world.Organisation) { o.NextResetAt = "2099-12-01" }))
	require.Equal(t, `{"projects":[{"id":"prj_apollo","name":"Apollo"}]}`,
		s.request("ci", "GET /v1/projects", "").is(200, "").Body.String())
	require.Equal(t, `{"projects":[]}`, s.request("globex", "GET /v1/projects", "").is(200, "").Body.String())
	tooLong := `{"name":"` + strings.Repeat("é", 121) + `"}`
	for _, body := range []string{`{}`, `{"name":" "}`, tooLong, `{"name":null}`} {
		require.Equal(t, []any{"name"},
			s.request("ci", "POST /v1/projects", body).is(400, "INVALID_REQUEST").detail("fields"))
	}
	r := s.request("ci", "POST /v1/projects", `{"name":" `+strings.Repeat("é", 120)+` "}`).is(201, "")
	require.Equal(t, `{"id":"`+r.field("id")+`","name":"`+strings.Repeat("é", 120)+`"}`, r.Body.String())
	require.Regexp(t, `^prj_`, r.field("id"))
	s.create("ci", `"project_id":"`+r.field("id")+`"`)
	require.Equal(t,
		`{"templates":[{"id":"tpl_standard","name":"Standard `+
			`minutes","source":"service","description":null,"is_default":false,"version":1},`+
			`{"id":"tpl_brief","name":"Brief","source":"organisation","description":"Actions first, then `+
			`decisions.","is_default":true,"version":null}]}`,
		s.request("ci", "GET /v1/templates", "").is(200, "").Body.String())
	require.Equal(t,
		`{"templates":[{"id":"tpl_standard","name":"Standard `+
			`minutes","source":"service","description":null,"is_default":true,"version":null}]}`,
		s.request("globex", "GET /v1/templates", "").Body.String())
	require.Equal(t, `{"credits_remaining":1000,"next_reset_at":"2099-12-01","transcribe_seconds_remaining":360000}`,
		s.request("ci", "GET /v1/usage", "").is(200, "").Body.String())
	require.Equal(t, `{"credits_remaining":1000,"next_reset_at":null,"transcribe_seconds_remaining":360000}`,
		s.request("globex", "GET /v1/usage", "").Body.String())
}

// The first of several default templates is the default, and the first of all if none is marked (D25).
func TestDefaultTemplate_IsTheFirst(t *testing.T) {
	t.Parallel()
	for want, marked := range map[string][]bool{
		"tpl_0": {false, false, false},
		"tpl_1": {false, true, true},
		"tpl_2": {false, false, true},
	} {
		s := newRig(t, withAcme(func(o *world.Organisation) {
			o.Templates = nil
			for i, isDefault := range marked {
				o.Templates = append(o.Templates, world.Template{ID: fmt.Sprint("tpl_", i), IsDefault: isDefault})
			}
		}))
		m := s.request("ci", "GET /v1/meetings/"+s.create("ci", ""), "")
		assert.Equal(t, want, m.field("template_id"))
	}
}

// said returns the transcript and the minutes, as Markdown and HTML, of a new meeting.
func (s *rig) said(fields string) (transcript, markdown, html string) {
	at := "GET /v1/meetings/" + s.done("ci", fields)
	return s.request("ci", at+"/transcript", "").is(200, "").field("transcript"),
		s.request("ci", at+"/minutes?format=markdown", "").is(200, "").field("content"),
		s.request("ci", at+"/minutes", "").is(200, "").field("content")
}

// TestTranscript is D14 and section 1: labels, no ids, no names, the vocabulary's spelling.
func TestTranscript(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *world.Organisation) {
		o.Members = append(o.Members, world.Member{ID: "emp_ada2", Name: "Ada II"})
		o.Vocabulary = append(o.Vocabulary,
			minutes.VocabularyEntry{Term: "emp_bob", Variants: []minutes.VocabularyVariant{{Text: "bop"}}})
	}))
	text, _, _ := s.said(`"participant_ids":["emp_ada","emp_bob","emp_cy"]`)
	for line := range strings.Lines(text) {
		assert.Regexp(t, `^spk_[012]: \S`, line)
	}
	assert.Contains(t, text, "Weekly")
	assert.NotContains(t, text, "Ada")
	for said, want := range map[string]string{
		"emp_ada2 and emp_ada's": "a colleague and a colleague's", "bop": "a colleague", "emp_zz": "emp_zz",
		"spk_1: I moved cooper netties.\n\nspk_0: Yes": "spk_1: I moved Kubernetes.\n\nspk_0: Yes",
	} {
		require.NoError(t, s.Script(world.Script{Transcript: said}))
		text, _, _ = s.said("")
		assert.Equal(t, want, text)
	}
}

// TestMinutes is section 2.6 and 4.2, with D24 and D25.
func TestMinutes(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.done("ci", `"participant_ids":["emp_ada","emp_bob"],"time":"09:30"`)
	at := "GET /v1/meetings/" + id + "/minutes"
	before := s.request("ci", at, "").is(200, "")
	assert.Equal(t, "html", before.field("format"))
	assert.Equal(t, "tpl_brief", before.field("template_id"))
	s.request("ci", at+"?format=", "").is(200, "")
	for _, q := range []string{"?format=pdf", "?format=HTML"} {
		s.request("ci", at+q, "").is(400, "INVALID_REQUEST")
	}
	s.request("ci", "GET /v1/meetings/none/minutes?format=pdf", "").is(404, "NOT_FOUND")
	s.request("ci", "GET /v1/meetings/"+s.create("ci", "")+"/minutes?format=pdf", "").is(400, "INVALID_REQUEST")
	s.request("ci", "PATCH /v1/meetings/"+id, `{"title":"Later","date":"2027-01-01"}`).is(200, "")
	assert.Equal(t, before.field("content"), s.request("ci", at, "").field("content"), "written once")
	markdown := s.request("ci", at+"?format=markdown", "").field("content")
	for _, part := range []string{"# Weekly\n", "2026-03-02 09:30\n", "Duration:** 0:00:01\n",
		"Participants:** Ada Lovelace, Bob <Builder> & Sons\n", "*Brief*", "- **Ada Lovelace:** Good morning",
		"- **Bob <Builder> & Sons:** Since"} {
		assert.Contains(t, markdown, part)
	}
	names := "Ada Lovelace, Bob &lt;Builder&gt; &amp; Sons</li>"
	for _, part := range []string{"<h1>Weekly</h1>", names, "<em>Brief</em>"} {
		assert.Contains(t, before.field("content"), part)
	}
	d := xml.NewDecoder(strings.NewReader(before.field("content")))
	for _, err := d.Token(); !errors.Is(err, io.EOF); _, err = d.Token() {
		require.NoError(t, err, "well-formed")
	}
}

// Both formats say the same, and HTML shows all text unchanged.
func TestMinutes_HaveTwoFormats(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *world.Organisation) {
		o.Templates = []world.Template{{ID: "tpl_a", Name: "Brief & <short>"}}
	}))
	require.NoError(t, s.Script(world.Script{Transcript: "spk_0: We agreed on a < b."}))
	_, markdown, html := s.said(`"title":"<Weekly> & more","participant_ids":["emp_bob"]`)
	assert.Equal(t, `# <Weekly> & more

*Brief & <short>*

- **Date:** 2026-03-02
- **Duration:** 0:00:01
- **Participants:** Bob <Builder> & Sons

## Summary

None.

## Decisions

- **Bob <Builder> & Sons:** We agreed on a < b.

## Actions

None.
`, markdown)
	assert.Equal(t, `<article>
<h1>&lt;Weekly&gt; &amp; more</h1>
<p><em>Brief &amp; &lt;short&gt;</em></p>
<ul>
<li><strong>Date:</strong> 2026-03-02</li>
<li><strong>Duration:</strong> 0:00:01</li>
<li><strong>Participants:</strong> Bob &lt;Builder&gt; &amp; Sons</li>
</ul>
<h2>Summary</h2>
<ul>
<li>None.</li>
</ul>
<h2>Decisions</h2>
<ul>
<li><strong>Bob &lt;Builder&gt; &amp; Sons:</strong> We agreed on a &lt; b.</li>
</ul>
<h2>Actions</h2>
<ul>
<li>None.</li>
</ul>
</article>
`, html)
}

// In minutes from a script, the label names the speaker, even if it is no member, and a format that
// the script leaves out is written from its transcript.
func TestMinutes_FollowScript(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	require.NoError(t,
		s.Script(world.Script{HTML: "<p>mine</p>", Transcript: "spk_1: I agree.\nspk_7: Me too: yes.\nHe left."}))
	_, markdown, html := s.said(`"participant_ids":["emp_ada","emp_gone"]`)
	assert.Equal(t, "<p>mine</p>", html)
	assert.Contains(t, markdown, "- **Gone:** I agree.\n- **Speaker 8:** Me too: yes.\n- **Somebody:** He left.\n")
}

// The transcript has the vocabulary's spelling, the longest variant first.
func TestTranscript_IsCorrected(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *world.Organisation) {
		o.Vocabulary = []minutes.VocabularyEntry{
			{Term: "Barrel", Variants: []minutes.VocabularyVariant{{Text: "Cooper"}}},
			{Term: "Kubernetes", Variants: []minutes.VocabularyVariant{{Text: "cooper netties"}}},
			{Term: "C++", Variants: []minutes.VocabularyVariant{{Text: "c plus plus"}, {Text: "++"}}},
			{Term: "Ärger", Variants: []minutes.VocabularyVariant{{Text: "ärger"}}},
		}
	}))
	for in, want := range map[string]string{
		"Cooper Netties and cooper": "Kubernetes and Barrel", "supercooper coopers": "supercooper coopers",
		"COOPER.":          "Barrel.",
		"c plus plus, x++": "C++, xC++", "ÄRGER": "Ärger",
	} {
		require.NoError(t, s.Script(world.Script{Transcript: in}))
		text, _, _ := s.said("")
		assert.Equal(t, want, text, in)
	}
}
