package engine_test

import (
	"encoding/json"
	"encoding/xml"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// acme is an organisation with every kind of caller: Ada, an administrator; Bob and Cy, members; an
// integration; and people who cannot sign in.
func acme() world.Organisation {
	return world.Organisation{
		ID: "org_acme", Name: "Acme",
		Members: []world.Member{
			{ID: "emp_ada", Name: "Ada Lovelace", Email: "ada@acme.example", Role: "Engineer", Admin: true},
			{ID: "emp_bob", Name: "Bob <Builder> & Sons", Email: "bob@acme.example"},
			{ID: "emp_cy", Name: "Cy"},
			{ID: "emp_inv", Name: "Ina", Status: "invited"},
			{ID: "emp_no", Name: "Noah", Status: "no_account"},
			{ID: "emp_gone", Name: "Gone", Status: "deactivated", Email: "gone@acme.example"},
		},
		Integrations: []world.Integration{{ID: "int_ci", Name: "CI"},
			{ID: "int_two", Name: "Two", DefaultVisibility: "private"}, {ID: "int_off", Name: "Off", Inactive: true}},
		Projects: []world.Project{{ID: "prj_apollo", Name: "Apollo"}, {ID: "prj_old", Name: "Old", Archived: true}},
		Templates: []world.Template{
			{ID: "tpl_standard", Name: "Standard minutes", Source: "service", Version: new(1)},
			{ID: "tpl_brief", Name: "Brief", Source: "organisation", Description: "Actions first, then decisions.",
				IsDefault: true},
		},
		Vocabulary: []minutes.VocabularyEntry{{Term: "Kubernetes",
			Variants: []minutes.VocabularyVariant{{Text: "cooper netties", Source: "auto"}}}},
		Keys: []world.Key{
			{Secret: "ada", MemberID: "emp_ada"},
			{Secret: "bob", MemberID: "emp_bob"},
			{Secret: "cy", MemberID: "emp_cy"},
			{Secret: "ci", IntegrationID: "int_ci"},
			{Secret: "two", IntegrationID: "int_two"},
			{Secret: "off", IntegrationID: "int_off"},
		},
	}
}

func globex() world.Organisation {
	return world.Organisation{
		ID: "org_globex", Name: "Globex",
		Integrations: []world.Integration{{ID: "int_g", Name: "G"}},
		Keys:         []world.Key{{Secret: "globex", IntegrationID: "int_g"}},
	}
}

// rig is a service under test, spoken to through its handler.
type rig struct {
	t testing.TB
	*engine.Service
}

func newRig(t testing.TB, change ...func(*engine.Config)) *rig {
	t.Helper()
	cfg := engine.Config{World: world.World{Organisations: []world.Organisation{acme(), globex()}}}
	for _, f := range change {
		f(&cfg)
	}
	s, err := engine.New(cfg)
	require.NoError(t, err)
	return &rig{t, s}
}

// release lets a held meeting continue.
func (s *rig) release(id string) (held bool) {
	s.t.Helper()
	held, err := s.Release(id)
	require.NoError(s.t, err)
	return held
}

// withAcme changes the organisation most tests use.
func withAcme(f func(*world.Organisation)) func(*engine.Config) {
	return func(cfg *engine.Config) { f(&cfg.World.Organisations[0]) }
}

// response is a response, with what else the engine reports.
type response struct {
	t testing.TB
	*httptest.ResponseRecorder
	x engine.Response
}

// request sends one request. The parameter what has the method and target, as in
// "GET /v1/meetings"; key "" sends none.
func (s *rig) request(key, what, body string, change ...func(*http.Request)) *response {
	method, target, _ := strings.Cut(what, " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for _, f := range change {
		f(r)
	}
	x := s.Serve(r)
	w := httptest.NewRecorder()
	maps.Copy(w.Header(), x.Header)
	w.WriteHeader(x.Status)
	_, _ = w.Write(x.Body)
	return &response{s.t, w, x}
}

// json returns the response's body as an object.
func (r *response) json() map[string]any {
	r.t.Helper()
	var v map[string]any
	require.NoError(r.t, json.Unmarshal(r.Body.Bytes(), &v), "%d %s", r.Code, r.Body)
	return v
}

// field returns one field of the response's object as a string, numbers and null as JSON writes
// them.
func (r *response) field(name string) string {
	r.t.Helper()
	switch v := r.json()[name].(type) {
	case string:
		return v
	default:
		b, _ := json.Marshal(v)
		return string(b)
	}
}

// is requires a status, and the code of an error.
func (r *response) is(status int, code string) *response {
	r.t.Helper()
	require.Equal(r.t, status, r.Code, "%s", r.Body)
	require.Equal(r.t, status, r.x.Status)
	require.Equal(r.t, code, r.x.Code, "%s", r.Body)
	if code != "" {
		e := r.json()["error"].(map[string]any)
		require.Equal(r.t, code, e["code"])
		require.NotEmpty(r.t, e["message"])
		require.True(r.t, strings.HasPrefix(e["request_id"].(string), "req_"))
	}
	return r
}

// detail returns one of an error's details.
func (r *response) detail(name string) any {
	r.t.Helper()
	details, _ := r.json()["error"].(map[string]any)["details"].(map[string]any)
	return details[name]
}

func (r *response) storage(status int, code string) *response {
	r.t.Helper()
	require.Equal(r.t, status, r.Code, "%s", r.Body)
	require.Equal(r.t, code, r.x.Code)
	if code == "" {
		return r
	}
	require.Equal(r.t, "application/xml", r.Header().Get("Content-Type"))
	var e struct {
		XMLName                          xml.Name `xml:"Error"`
		Code, Message, RequestId, HostId string
	}
	require.NoError(r.t, xml.Unmarshal(r.Body.Bytes(), &e))
	require.Equal(r.t, code, e.Code)
	require.NotEmpty(r.t, e.Message)
	require.NotEmpty(r.t, e.RequestId)
	require.NotEmpty(r.t, e.HostId)
	return r
}

// create makes a meeting and returns its id. fields are JSON members beside title and date.
func (s *rig) create(key, fields string) string {
	s.t.Helper()
	if fields != "" {
		fields = "," + fields
	}
	body := `{"title":"Weekly","date":"2026-03-02"` + fields + `}`
	return s.request(key, "POST /v1/meetings", body).is(201, "").field("id")
}

func (s *rig) presigned(key, id, contentType string) string {
	s.t.Helper()
	return s.request(key, "POST /v1/meetings/"+id+"/upload-url", `{"content_type":"`+contentType+`"}`).is(200,
		"").field("upload_url")
}

func (s *rig) put(target, contentType, body string, change ...func(*http.Request)) *response {
	return s.request("", "PUT "+target, body, append([]func(*http.Request){func(r *http.Request) {
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Content-Length", "0")
	}}, change...)...)
}

// upload brings a recording to a meeting.
func (s *rig) upload(key, id string, size int) {
	s.t.Helper()
	s.put(s.presigned(key, id, "audio/x-raw"), "audio/x-raw", strings.Repeat("\x01", size)).storage(200, "")
}

func (s *rig) status(key, id string) string {
	s.t.Helper()
	return s.request(key, "GET /v1/meetings/"+id, "").is(200, "").field("status")
}

// Organisation returns the present settings of an organisation.
func (s *rig) Organisation(id string) (world.Organisation, bool) {
	w := s.World()
	for _, o := range w.Organisations {
		if o.ID == id {
			return o, true
		}
	}
	return world.Organisation{}, false
}

// update changes an organisation's settings.
func (s *rig) update(id string, change func(*world.Organisation)) error {
	return s.Update(func(w *world.World) error {
		for i := range w.Organisations {
			if w.Organisations[i].ID == id {
				change(&w.Organisations[i])
			}
		}
		return nil
	})
}
