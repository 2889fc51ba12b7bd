package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// done returns a meeting whose minutes are ready.
func (s *rig) done(key, fields string) string {
	id := s.create(key, fields)
	s.upload(key, id, 1)
	return id
}

// TestTranscript is D14 and section 1: labels, no ids, no names, the
// vocabulary's spelling.
func TestTranscript(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	r := s.do("ci", "POST /v1/meetings", `{"title":"emp_ada on Cooper Netties, not scooper netties","date":"2026-03-02","participant_ids":["emp_ada","emp_bob","emp_cy"]}`)
	id := r.field("id")
	s.upload("ci", id, 1)
	text := s.do("ci", "GET /v1/meetings/"+id+"/transcript", "").field("transcript")
	require.NotContains(t, text, "emp_")
	require.NotContains(t, text, "Ada")
	require.Contains(t, text, "a colleague on Kubernetes, not scooper netties")
	require.Contains(t, text, "\nspk_2: ")
	require.NoError(t, s.Script(Selector{}, Script{Transcript: "spk_1: I moved cooper netties. emp_bob's turn\nand more\n\nspk_0: We decided to wait. I'll call <them> & *others*. spk_9: no label here"}))
	id = s.done("ci", `"participant_ids":["emp_ada","emp_bob"]`)
	text = s.do("ci", "GET /v1/meetings/"+id+"/transcript", "").field("transcript")
	require.Equal(t, "spk_1: I moved Kubernetes. a colleague's turn and more\nspk_0: We decided to wait. I'll call <them> & *others*. spk_9: no label here", text)
	md := s.do("ci", "GET /v1/meetings/"+id+"/minutes?format=markdown", "").field("content")
	require.Contains(t, md, "## Decisions\n\n- **Ada Lovelace:** We decided to wait.")
	require.Contains(t, md, `I'll call \<them> & \*others\*.`)
	require.Contains(t, md, `Bob \<Builder> & Sons:** I moved Kubernetes.`)
	require.NoError(t, s.Script(Selector{}, Script{Transcript: "\r\n first\r\n  spk_3:  words : more \r\n\t\r\nspk: no label\nspk_x: nor this"}))
	require.Equal(t, "spk_0: first\nspk_3: words : more spk: no label spk_x: nor this", s.do("ci", "GET /v1/meetings/"+s.done("ci", "")+"/transcript", "").field("transcript"))
	html := s.do("ci", "GET /v1/meetings/"+id+"/minutes?format=html", "").field("content")
	require.Contains(t, html, "call &lt;them&gt; &amp; *others*")
}

// D14 for an id that is hidden in a longer word, or in a term of the
// vocabulary.
func TestTranscript_HasNoIDs(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *Organisation) {
		o.Members = append(o.Members, Member{ID: "dee", Name: "Dee"}, Member{ID: "emp_x-1", Name: "X"}, Member{ID: "emp_ada2", Name: "Ada II"})
		o.Vocabulary = append(o.Vocabulary, Term{Term: "emp_bob", Variants: []Variant{{Text: "bop"}}})
	}))
	for said, want := range map[string]string{
		"emp_ada's": "a colleague's", "emp_ada-led": "a colleague-led", "xemp_adax": "xa colleaguex", "emp_adaさん": "a colleagueさん", "emp_adaemp_bob": "a colleaguea colleague",
		"emp_emp_adaada": "emp_a colleagueada", "emp_x-1": "a colleague", "emp_x-12": "a colleague2", "emp_ada2": "a colleague", "emp_ada23": "a colleague3", "emp_zz-emp_ada": "emp_zz-a colleague",
		"dee, dee-dee and deed": "a colleague, a colleague-a colleague and deed", "bop": "a colleague", "emp_ emp EMP_ADA -": "emp_ emp EMP_ADA -", "--emp_ada--é-": "--a colleague--é-", "... ": "...",
	} {
		require.NoError(t, s.Script(Selector{}, Script{Transcript: "spk_0: " + said}))
		require.Equal(t, "spk_0: "+want, s.do("ci", "GET /v1/meetings/"+s.done("ci", "")+"/transcript", "").field("transcript"), said)
	}
}

// TestMinutes is section 2.6 and 4.2, with D24 and D25.
func TestMinutes(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.done("ci", `"participant_ids":["emp_ada","emp_gone"]`)
	at := "GET /v1/meetings/" + id + "/minutes"
	before := s.do("ci", at, "").is(200, "")
	require.Equal(t, "html", before.field("format"))
	require.Equal(t, "tpl_brief", before.field("template_id"))
	s.do("ci", at+"?format=", "").is(200, "")
	for _, q := range []string{"?format=pdf", "?format=HTML", "?format=html&format=html", "?format=%zz"} {
		s.do("ci", at+q, "").is(400, "INVALID_REQUEST")
	}
	s.do("ci", "GET /v1/meetings/none/minutes?format=pdf", "").is(404, "NOT_FOUND")
	s.do("ci", "GET /v1/meetings/"+s.create("ci", "")+"/minutes?format=pdf", "").is(400, "INVALID_REQUEST")
	s.do("ci", "PATCH /v1/meetings/"+id, `{"title":"Later","date":"2027-01-01"}`).is(200, "")
	require.Equal(t, before.field("content"), s.do("ci", at, "").field("content"), "written once")
	for _, name := range []string{"Weekly", "2026-03-02", "Ada Lovelace", "Gone", "Brief"} {
		require.Contains(t, before.field("content"), name)
		require.Contains(t, s.do("ci", at+"?format=markdown", "").field("content"), name)
	}
	// The template shapes them: this one puts actions first.
	require.Regexp(t, `(?s)<h2>Actions.*<h2>Decisions.*<h2>Summary`, before.field("content"))
	std := s.done("ci", `"template_id":"tpl_standard"`)
	require.Regexp(t, `(?s)<h2>Summary.*<h2>Decisions.*<h2>Actions`, s.do("ci", "GET /v1/meetings/"+std+"/minutes", "").field("content"))
	for _, format := range []string{"html", "markdown"} {
		require.Contains(t, s.do("ci", at+"?format="+format, "").field("content"), "Actions first, then decisions.", "what the template is for")
	}
	// Titles and names contain no markup, and a deleted participant has no name.
	r := s.do("ci", "POST /v1/meetings", `{"title":"R&D <b>\"1\"</b>","date":"2026-03-02","participant_ids":["emp_bob","emp_cy"]}`).is(201, "")
	require.NoError(t, s.Update("org_acme", func(o *Organisation) {
		o.Members = slices.DeleteFunc(o.Members, func(m Member) bool { return m.ID == "emp_cy" })
		o.Keys = slices.DeleteFunc(o.Keys, func(k Key) bool { return k.MemberID == "emp_cy" })
	}))
	s.upload("ci", r.field("id"), 1)
	html := s.do("ci", "GET /v1/meetings/"+r.field("id")+"/minutes", "").field("content")
	require.Contains(t, html, "<h1>R&amp;D &lt;b&gt;&#34;1&#34;&lt;/b&gt;</h1>")
	require.Contains(t, html, "<li><strong>Participants:</strong> Bob &lt;Builder&gt; &amp; Sons, A former member</li>")
	require.Contains(t, s.do("ci", "GET /v1/meetings/"+r.field("id")+"/minutes?format=markdown", "").field("content"), "# R&D \\<b>\"1\"\\</b>\n")
	// Who attends is named, said or not.
	require.NoError(t, s.Script(Selector{}, Script{Transcript: "spk_7: I will wait."}))
	id = s.done("ci", `"participant_ids":["emp_ada"]`)
	require.Contains(t, s.do("ci", "GET /v1/meetings/"+id+"/minutes?format=markdown", "").field("content"), "- **Participants:** Ada Lovelace\n")
	// A deleted template is replaced by the default one.
	id = s.create("ci", `"template_id":"tpl_standard"`)
	require.NoError(t, s.Update("org_acme", func(o *Organisation) { o.Templates = o.Templates[1:] }))
	s.upload("ci", id, 1)
	require.Contains(t, s.do("ci", "GET /v1/meetings/"+id+"/minutes?format=markdown", "").field("content"), "*Brief*")
	require.NoError(t, s.Script(Selector{}, Script{Minutes: Minutes{Markdown: "mine"}}))
	id = s.done("ci", "")
	require.Equal(t, "mine", s.do("ci", "GET /v1/meetings/"+id+"/minutes?format=markdown", "").field("content"))
	require.Contains(t, s.do("ci", "GET /v1/meetings/"+id+"/minutes", "").field("content"), "<h1>Weekly</h1>")
}

func TestClockTime(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]string{0: "0:00", 59: "0:59", 60: "1:00", 3599: "59:59", 3600: "1:00:00", 3661: "1:01:01", 36_000 + 61*60: "11:01:00"} {
		require.Equal(t, want, clockTime(seconds))
	}
}

func TestEscapeMarkdown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text, really!": "plain text, really!", "# a\n# b": `\# a # b`, "1. x": `1\. x`, "v1.2": "v1.2", "snake_case _em_": `snake_case \_em\_`, "[a](b)": `\[a\](b)`,
		"a & b": "a & b", "R&D": "R&D", "&lt;": `\&lt;`, "- x": `\- x`, "> x": `\> x`, "+ x": `\+ x`, "= x": `\= x`, "1) x": `1\) x`, "a > b": "a > b", "a\\b": `a\\b`, "<b>": `\<b>`, "\x01\u2028x": "x",
	} {
		require.Equal(t, want, escapeMarkdown(in), in)
	}
}

func TestCorrect(t *testing.T) {
	t.Parallel()
	terms := []Term{{"Kubernetes", []Variant{{"cooper netties", ""}, {"cooper", ""}}}, {"C++", []Variant{{"c plus plus", ""}, {"++", ""}}}, {"Ärger", []Variant{{"ärger", ""}}}, {"K8s", []Variant{{"Kates", ""}}}}
	for in, want := range map[string]string{
		"Cooper Netties and cooper": "Kubernetes and Kubernetes", "supercooper coopers": "supercooper coopers", "COOPER.": "Kubernetes.",
		"c plus plus, x++": "C++, xC++", "ÄRGER Ärgernis": "Ärger Ärgernis", "kates KATES": "K8s K8s", "": "",
	} {
		require.Equal(t, want, correct(in, terms), in)
	}
}

// TestVocabulary is section 2.10 with D15, D19, D20 and D25.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *Organisation) { o.MaxTerms = new(3) }))
	require.Equal(t, `{"terms":["Kubernetes"],"entries":[{"term":"Kubernetes","variants":[{"text":"cooper netties","source":"auto"}]}],"max_terms":3}`, s.do("ci", "GET /v1/vocabulary", "").is(200, "").Body.String())
	for _, body := range []string{`{}`, `{"terms":null}`, `{"terms":["a"," "]}`, `{"terms":"a"}`, `{"terms":["a","b","c","d"]}`, `{"terms":[1]}`} {
		require.Equal(t, []any{"terms"}, s.do("ci", "PUT /v1/vocabulary", body).is(400, "INVALID_REQUEST").detail("fields"), body)
	}
	require.Equal(t, `{"terms":["b","Kubernetes"],"entries":[{"term":"b","variants":[]},{"term":"Kubernetes","variants":[{"text":"cooper netties","source":"auto"}]}],"max_terms":3}`,
		s.do("ci", "PUT /v1/vocabulary", `{"terms":[" b ","Kubernetes","b","b "]}`).is(200, "").Body.String())
	for _, body := range []string{`{}`, `{"term":null}`, `{"term":" "}`, `{"term":["a"]}`} {
		require.Equal(t, []any{"term"}, s.do("ci", "POST /v1/vocabulary/terms", body).is(400, "INVALID_REQUEST").detail("fields"), body)
	}
	s.do("ci", "POST /v1/vocabulary/terms", `{"term":" B"}`).is(201, "")
	require.Equal(t, `["b","Kubernetes","B"]`, s.do("ci", "POST /v1/vocabulary/terms", `{"term":"B "}`).is(200, "").field("terms"))
	s.do("ci", "POST /v1/vocabulary/terms", `{"term":"one more"}`).is(400, "INVALID_REQUEST")
	require.Equal(t, `{"terms":[],"entries":[],"max_terms":3}`, s.do("ci", "PUT /v1/vocabulary", `{"terms":[]}`).is(200, "").Body.String())
	require.Equal(t, "500", s.do("globex", "GET /v1/vocabulary", "").field("max_terms"))
	require.NoError(t, s.Update("org_acme", func(o *Organisation) {
		o.Vocabulary = []Term{{"A", []Variant{{"a", ""}, {"á", "auto"}}}, {"B", []Variant{{"b", ""}}}}
	}))
	require.Equal(t, `{"terms":["A","B"],"entries":[{"term":"A","variants":[{"text":"a","source":"manual"},{"text":"á","source":"auto"}]},{"term":"B","variants":[{"text":"b","source":"manual"}]}],"max_terms":3}`,
		s.do("ci", "GET /v1/vocabulary", "").Body.String())
}

// TestMembers is sections 2.3 and 4.1 with D16, D18 and D19.
func TestMembers(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *Organisation) { o.MaxMembers = new(8) }))
	list := s.do("ci", "GET /v1/employees", "").is(200, "").Body.String()
	require.True(t, strings.HasPrefix(list, `{"members":[{"id":"emp_ada","name":"Ada Lovelace","role":"Engineer","status":"active"},{"id":"emp_bob","name":"Bob <Builder> & Sons","role":null,"status":"active"}`), list)
	require.NotContains(t, list, "int_")
	for body, want := range map[string]string{
		`{}`: "INVALID_REQUEST [name]", `{"name":" "}`: "INVALID_REQUEST [name]", `{"name":"` + strings.Repeat("é", 81) + `"}`: "INVALID_REQUEST [name]",
		`{"name":"x","role":"` + strings.Repeat("é", 81) + `","description":"` + strings.Repeat("é", 301) + `"}`: "INVALID_REQUEST [role description]",
		`{"name":1,"email":"nope"}`: "INVALID_REQUEST [name email]", `{"name":"x","email":7}`: "INVALID_REQUEST [email]",
		`{"name":"x","email":"nope"}`: "INVALID_EMAIL [email]", `{"name":"x","email":"X <x@y.example>"}`: "INVALID_EMAIL [email]", `{"name":"x","email":" x@y.example"}`: "INVALID_EMAIL [email]",
		`{"name":"x","email":"x@y..example"}`: "INVALID_EMAIL [email]", `{"name":"x","email":"x@"}`: "INVALID_EMAIL [email]", `{"name":"x","email":"@y"}`: "INVALID_EMAIL [email]", `{"name":"x","email":"a@b@c"}`: "INVALID_EMAIL [email]",
		`{"name":"x","email":"x@-y.example"}`: "INVALID_EMAIL [email]", `{"name":"x","email":"x@y_z"}`: "INVALID_EMAIL [email]", `{"name":"x","email":"x y@z"}`: "INVALID_EMAIL [email]",
	} {
		r := s.do("ci", "POST /v1/employees", body)
		require.Equal(t, want, fmt.Sprint(r.x.Code, " ", r.detail("fields")), body)
	}
	for _, email := range []string{"ADA@acme.example", "Gone@Acme.Example"} {
		r := s.do("ci", "POST /v1/employees", `{"name":"x","email":"`+email+`"}`).is(409, "EMAIL_TAKEN")
		require.Contains(t, []any{"emp_ada", "emp_gone"}, r.detail("member_id"))
		require.NotEmpty(t, r.detail("name"))
	}
	r := s.do("ci", "POST /v1/employees", `{"name":" Eve ","email":"eve@acme.example","role":" Lead ","description":"Knows."}`).is(201, "")
	require.Equal(t, `{"id":"`+r.field("id")+`","name":"Eve","role":"Lead","status":"no_account"}`, r.Body.String())
	require.Regexp(t, `^emp_`, r.field("id"))
	s.do("ci", "POST /v1/employees", `{"name":"`+strings.Repeat("é", 80)+`","email":"","role":"","description":null}`).is(201, "")
	s.do("ci", "POST /v1/employees", `{"name":"x"}`).is(409, "MEMBER_LIMIT_EXCEEDED")
	s.do("ci", "POST /v1/employees", `{"name":"x","email":"EVE@acme.example"}`).is(409, "EMAIL_TAKEN")
	s.do("ci", "POST /v1/meetings", `{"title":"x","date":"2026-01-01","participant_ids":["`+r.field("id")+`"]}`).is(201, "")
}

// TestProjectsTemplatesUsage is sections 2.4, 2.5 and 2.9.
func TestProjectsTemplatesUsage(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *Organisation) { o.NextResetAt = "2099-12-01" }))
	require.Equal(t, `{"projects":[{"id":"prj_apollo","name":"Apollo"}]}`, s.do("ci", "GET /v1/projects", "").is(200, "").Body.String())
	require.Equal(t, `{"projects":[]}`, s.do("globex", "GET /v1/projects", "").is(200, "").Body.String())
	for _, body := range []string{`{}`, `{"name":" "}`, `{"name":"` + strings.Repeat("é", 121) + `"}`, `{"name":null}`} {
		require.Equal(t, []any{"name"}, s.do("ci", "POST /v1/projects", body).is(400, "INVALID_REQUEST").detail("fields"))
	}
	r := s.do("ci", "POST /v1/projects", `{"name":" `+strings.Repeat("é", 120)+` "}`).is(201, "")
	require.Equal(t, `{"id":"`+r.field("id")+`","name":"`+strings.Repeat("é", 120)+`"}`, r.Body.String())
	require.Regexp(t, `^prj_`, r.field("id"))
	s.create("ci", `"project_id":"`+r.field("id")+`"`)
	require.Equal(t, `{"templates":[{"id":"tpl_standard","name":"Standard minutes","source":"service","description":null,"is_default":false,"version":1},`+
		`{"id":"tpl_brief","name":"Brief","source":"organisation","description":"Actions first, then decisions.","is_default":true,"version":null}]}`, s.do("ci", "GET /v1/templates", "").is(200, "").Body.String())
	require.Equal(t, `{"templates":[{"id":"tpl_standard","name":"Standard minutes","source":"service","description":null,"is_default":true,"version":null}]}`, s.do("globex", "GET /v1/templates", "").Body.String())
	require.Equal(t, `{"credits_remaining":1000,"transcribe_seconds_remaining":360000,"next_reset_at":"2099-12-01"}`, s.do("ci", "GET /v1/usage", "").is(200, "").Body.String())
	require.Equal(t, `{"credits_remaining":1000,"transcribe_seconds_remaining":360000,"next_reset_at":null}`, s.do("globex", "GET /v1/usage", "").Body.String())
}
