package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
)

// TestMeetingJSON pins section 2.1 to the letter.
func TestMeetingJSON(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t)
		r := s.request("ci", "POST /v1/meetings", `{"title":" Größe \"1\" ","date":"2026-03-02"}`).is(201, "")
		require.Equal(t,
			`{"id":"`+r.field("id")+`","title":"Größe \"1\"","date":"2026-03-02","time":null,"status":"created",`+
				`"visibility":"organisation","template_id":"tpl_brief",`+
				`"participant_ids":[],`+
				`"project_id":null,"external_id":null,"created_at":946684800,"updated_at":946684800}`,
			r.Body.String())
		require.Regexp(t, `^mtg_[0-9a-z]{20}$`, r.field("id"))
		require.Equal(t, `"1" A`,
			s.request("ci", "POST /v1/meetings", `{"title":"\"1\" \u0041","date":"2026-03-02"}`).field("title"))
		r = s.request("ada", "POST /v1/meetings",
			`{"title":"T","date":"2024-02-29","time":"09:05","external_id":" x ","participant_ids":[`+
				`"emp_ada","emp_bob","emp_ada"],"project_id":"prj_apollo","shared_with":["emp_bob"],`+
				`"template_id":"tpl_standard","visibility":"shared","more":{"a":[1]}}`).is(201, "")
		require.Equal(t,
			`{"id":"`+r.field("id")+`","title":"T","date":"2024-02-29","time":"09:05","status":"created",`+
				`"visibility":"shared","template_id":"tpl_standard",`+
				`"participant_ids":["emp_ada","emp_bob"],"project_id":"prj_apollo","external_id":" x `+
				`","created_at":946684800,"updated_at":946684800}`, r.Body.String())
	})
}

// An id that nobody knows is named, because a body may have many.
func TestCreate_NamesUnknownIDs(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	for field, want := range map[string]string{
		`"participant_ids":["emp_ada","emp_none"]`: `There is no member "emp_none".`,
		`"project_id":"prj_none"`:                  `There is no project "prj_none".`,
		`"template_id":"tpl_none"`:                 `There is no template "tpl_none".`,
	} {
		r := s.request("ada", "POST /v1/meetings", `{"title":"x","date":"2026-01-01",`+field+`}`).is(404, "NOT_FOUND")
		var body struct{ Error struct{ Message string } }
		require.NoError(t, json.Unmarshal(r.Body.Bytes(), &body))
		require.Equal(t, want, body.Error.Message)
	}
}

// TestCreate_RejectsInvalidMeetings is the body of a create: D4, D5, D19, D20, D25.
func TestCreate_RejectsInvalidMeetings(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	for body, want := range map[string]string{
		``: "400 INVALID_REQUEST []", `[]`: "400 INVALID_REQUEST []", `null`: "400 INVALID_REQUEST []",
		`{`: "400 INVALID_REQUEST []", `"x"`: "400 INVALID_REQUEST []", `{} {}`: "400 INVALID_REQUEST []",
		"{\"title\":\"\xff\",\"date\":\"2026-01-01\"}": "400 INVALID_REQUEST []",
		`{}`:                                   "400 INVALID_REQUEST [title date]",
		`{"title":null,"date":null}`:           "400 INVALID_REQUEST [title date]",
		`{"title":" \t ","date":"2026-01-01"}`: "400 INVALID_REQUEST [title]",
		"{\"title\":\"\u2003\",\"date\":\"2026-01-01\"}": "400 INVALID_REQUEST [title]",
		`{"title":7,"date":"2026-01-01"}`:                "400 INVALID_REQUEST [title]",
		`{"Title":"x","date":"2026-01-01"}`:              "400 INVALID_REQUEST [title]",
		`{"title":"` + strings.Repeat("ä",
			301) + `","date":"2026-01-01"}`: "400 INVALID_REQUEST [title]",
		`{"title":" ` + strings.Repeat("ä", 300) + ` ","date":"2026-01-01"}`: "201",
		`{"title":"x\\u0000 \ud83d\ude00","date":"2026-01-01"}`:              "201",
		`{"title":"x","date":""}`:                                            "400 INVALID_DATE [date]",
		`{"title":"x","date":"2026-02-29"}`:                                  "400 INVALID_DATE [date]",
		`{"title":"x","date":"2026-2-09"}`:                                   "400 INVALID_DATE [date]",
		`{"title":"x","date":"0000-01-01"}`:                                  "400 INVALID_DATE [date]",
		`{"title":"x","date":"2026-01-01T00"}`:                               "400 INVALID_DATE [date]",
		`{"title":"x","date":20260101}`:                                      "400 INVALID_REQUEST [date]",
		`{"title":"x","date":"2026-01-01","time":"24:00"}`:                   "400 INVALID_TIME [time]",
		`{"title":"x","date":"2026-01-01","time":"9:00"}`:                    "400 INVALID_TIME [time]",
		`{"title":"x","date":"2026-01-01","time":"23:60"}`:                   "400 INVALID_TIME [time]",
		`{"title":"x","date":"2026-01-01","time":"0a:00"}`:                   "400 INVALID_TIME [time]",
		`{"title":"x","date":"2026-01-01","time":true}`:                      "400 INVALID_REQUEST [time]",
		`{"title":"x","date":"2026-01-01","external_id":""}`:                 "400 INVALID_EXTERNAL_ID [external_id]",
		`{"title":"x","date":"2026-01-01","external_id":"` + strings.Repeat("é",
			129) + `"}`: "400 INVALID_EXTERNAL_ID [external_id]",
		`{"title":"x","date":"2026-01-01","external_id":"` + strings.Repeat("é",
			128) + `"}`: "201",
		`{"title":"x","date":"2026-01-01","external_id":null,"time":null,"participant_ids":null,"project_id":null,` +
			`"shared_with":null,"template_id":null,"visibility":null}`: "201",
		`{"title":"x","date":"2026-01-01","time":"","project_id":"",` +
			`"template_id":"","visibility":""}`: "201",
		`{"title":"x","date":"2026-01-01","visibility":"public"}`:       "400 INVALID_REQUEST [visibility]",
		`{"title":"x","date":"2026-01-01","participant_ids":"emp_ada"}`: "400 INVALID_REQUEST [participant_ids]",
		`{"title":"x","date":"2026-01-01","participant_ids":[` +
			`"emp_ada",7]}`: "400 INVALID_REQUEST [participant_ids]",
		`{"title":"x","date":"2026-01-01","participant_ids":[null]}`: "400 INVALID_REQUEST [participant_ids]",
		`{"title":"","date":"nope","time":"nope","shared_with":[` +
			`"emp_no"]}`: "400 INVALID_REQUEST [title date time shared_with]",
		`{"title":"x","date":"nope","time":"nope"}`: "400 INVALID_DATE [date time]",
		`{"title":"x","date":"2026-01-01","participant_ids":[` +
			`"emp_none"]}`: "404 NOT_FOUND",
		`{"title":"x","date":"2026-01-01","participant_ids":[` +
			`"int_ci"]}`: "404 NOT_FOUND",
		`{"title":"x","date":"2026-01-01","participant_ids":[` +
			`"emp_gone"]}`: "201",
		`{"title":"x","date":"2026-01-01","project_id":"prj_none"}`:  "404 NOT_FOUND",
		`{"title":"x","date":"2026-01-01","project_id":"prj_old"}`:   "404 NOT_FOUND",
		`{"title":"x","date":"2026-01-01","template_id":"tpl_none"}`: "404 NOT_FOUND",
		`{"title":"x","date":"bad","template_id":"tpl_none"}`:        "400 INVALID_DATE [date]",
		`{"title":"x","date":"2026-01-01","visibility":"shared","shared_with":[` +
			`"emp_inv","emp_bob"]}`: "201",
		`{"title":"x","date":"2026-01-01","visibility":"private","shared_with":[` +
			`"emp_no"]}`: "400 INVALID_SHARED_WITH [shared_with]",
	} {
		r := s.request("ci", "POST /v1/meetings", body)
		got := fmt.Sprint(r.Code)
		if r.Code != 201 {
			got += " " + r.x.Code
		}
		if r.Code == 400 {
			got += " " + fmt.Sprint(r.detail("fields"))
		}
		require.Equal(t, want, got, "%.200s", body)
	}
	r := s.request("ci", "POST /v1/meetings",
		`{"title":"x","date":"2026-01-01","shared_with":[`+
			`"emp_bob","emp_no","emp_gone","int_ci","emp_none","emp_no"]}`).is(400, "INVALID_SHARED_WITH")
	require.Equal(t, []any{"emp_no", "emp_gone", "int_ci", "emp_none"}, r.detail("invalid"))
}

// TestDefaultVisibility is D2.
func TestDefaultVisibility(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	for key, want := range map[string]string{"ci": "organisation", "two": "private", "ada": "private"} {
		require.Equal(t, want, s.request(key, "GET /v1/meetings/"+s.create(key, ""), "").field("visibility"))
	}
}

// D3, and section 4.2 on requests that may be repeated.
func TestExternalID(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("bob", `"external_id":"crm-1"`)
	other := `{"title":"Other","date":"2026-01-01","external_id":"crm-1"}`
	again := s.request("bob", "POST /v1/meetings", other).is(200, "")
	require.Equal(t, id, again.field("id"))
	require.Equal(t, "Weekly", again.field("title"))
	s.request("ada", "POST /v1/meetings", `{"title":"Other","date":"2026-01-01","external_id":"crm-1"}`).is(409,
		"EXTERNAL_ID_TAKEN")
	shared := s.create("bob", `"external_id":"crm-2","visibility":"shared","shared_with":["emp_cy"]`)
	for key, want := range map[string]int{"bob": 200, "cy": 200, "ada": 409, "ci": 409, "two": 409} {
		again := s.request(key, "POST /v1/meetings",
			`{"title":"Other","date":"2026-01-01","external_id":"crm-2","visibility":"shared","shared_with":[`+
				`"emp_ada"]}`)
		require.Equal(t, want, again.Code, key)
		require.Equal(t, want == 200, strings.Contains(again.Body.String(), shared), "%s is shown %s", key, again.Body)
	}
	s.request("bob", "POST /v1/meetings", `{"title":"","date":"2026-01-01","external_id":"crm-1"}`).is(400,
		"INVALID_REQUEST")
	s.request("bob", "POST /v1/meetings",
		`{"title":"x","date":"2026-01-01","external_id":"crm-1","project_id":"prj_none"}`).is(404, "NOT_FOUND")
	s.request("globex", "POST /v1/meetings", `{"title":"x","date":"2026-01-01","external_id":"crm-1"}`).is(201, "")
	s.request("bob", "DELETE /v1/meetings/"+id, "").is(204, "")
	require.NotEqual(t, id, s.create("bob", `"external_id":"crm-1"`))
}

// D17 on every route: who can see a meeting, who can change it.
func TestVisibility(t *testing.T) {
	t.Parallel()
	type rights map[string]string // caller to "" (nothing), "r" or "rw"
	for name, tc := range map[string]struct {
		creator, fields string
		want            rights
	}{
		"private of a member": {"bob",
			`"visibility":"private","participant_ids":["emp_cy"],"shared_with":["emp_cy"]`, rights{"bob": "rw"}},
		"private of an integration": {"ci", `"visibility":"private"`, rights{"ci": "rw"}},
		"organisation": {"bob", `"visibility":"organisation"`,
			rights{"bob": "rw", "ada": "rw", "cy": "r", "ci": "rw", "two": "rw"}},
		"shared with Cy": {"bob", `"visibility":"shared","shared_with":["emp_cy"]`,
			rights{"bob": "rw", "cy": "r"}},
		"shared with an admin": {"bob", `"visibility":"shared","shared_with":["emp_ada"]`,
			rights{"bob": "rw", "ada": "rw"}},
		"shared by an integration": {"ci", `"visibility":"shared","shared_with":["emp_cy"]`,
			rights{"ci": "rw", "cy": "r"}},
		"shared with no one": {"bob", `"visibility":"shared"`, rights{"bob": "rw"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRig(t)
			id := s.create(tc.creator, `"external_id":"e",`+tc.fields)
			for _, key := range []string{"ada", "bob", "cy", "ci", "two", "globex"} {
				want := tc.want[key]
				at := "/v1/meetings/" + id
				listed := strings.Contains(s.request(key, "GET /v1/meetings", "").is(200, "").Body.String(), id)
				require.Equal(t, want != "", listed, "%s lists", key)
				found := s.request(key, "GET /v1/meetings?external_id=e", "").is(200, "").Body.String()
				require.Equal(t, want != "", strings.Contains(found, id), "%s finds", key)
				require.Equal(t, want != "",
					strings.Contains(s.request(key,
						"GET /v1/meetings?date_from=2026-03-01&date_to=2026-03-02", "").is(200, "").Body.String(), id),
					"%s filters", key)
				if want == "" {
					for _, what := range []string{"GET " + at, "PATCH " + at, "DELETE " + at,
						"PUT " + at + "/participants", "POST " + at + "/upload-url", "GET " + at + "/minutes",
						"GET " + at + "/transcript"} {
						s.request(key, what, "nonsense").is(404, "NOT_FOUND")
					}
					continue
				}
				s.request(key, "GET "+at, "").is(200, "")
				s.request(key, "GET "+at+"/minutes", "").is(409, "MINUTES_NOT_READY")
				s.request(key, "GET "+at+"/transcript", "").is(409, "TRANSCRIPT_NOT_READY")
				// 400 before FORBIDDEN.
				s.request(key, "PATCH "+at, `{"title":""}`).is(400, "INVALID_REQUEST")
				if want == "rw" {
					s.request(key, "PATCH "+at, `{"time":"10:00"}`).is(200, "")
					s.request(key, "PUT "+at+"/participants", `{"participant_ids":[]}`).is(200, "")
					s.request(key, "POST "+at+"/upload-url", `{"content_type":"audio/wav"}`).is(200, "")
					continue
				}
				// FORBIDDEN comes before unknown ids.
				s.request(key, "PATCH "+at, `{"project_id":"prj_none"}`).is(403, "FORBIDDEN")
				s.request(key, "PUT "+at+"/participants", `{"participant_ids":["emp_none"]}`).is(403, "FORBIDDEN")
				s.request(key, "POST "+at+"/upload-url", `{"content_type":"audio/wav"}`).is(403, "FORBIDDEN")
				s.request(key, "DELETE "+at, "").is(403, "FORBIDDEN")
			}
			for key, want := range tc.want {
				if want == "rw" {
					s.request(key, "DELETE /v1/meetings/"+id, "").is(204, "")
					s.request(key, "GET /v1/meetings/"+id, "").is(404, "NOT_FOUND")
					break
				}
			}
		})
	}
}

// TestPatch is the body of a PATCH: absent, null and empty (D5, D19, D25).
func TestPatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t)
		id := s.create("ci", `"time":"09:00","project_id":"prj_apollo"`)
		time.Sleep(time.Second)
		at := "PATCH /v1/meetings/" + id
		for body, want := range map[string]string{
			`{"title":""}`: "INVALID_REQUEST", `{"title":"  "}`: "INVALID_REQUEST", `{"date":""}`: "INVALID_DATE",
			`{"date":"x","time":"x"}`: "INVALID_DATE", `{"time":"25:00"}`: "INVALID_TIME",
			`{"time":7}`: "INVALID_REQUEST", `{"date":"x","project_id":1}`: "INVALID_REQUEST", `[]`: "INVALID_REQUEST",
			``: "INVALID_REQUEST",
		} {
			s.request("ci", at, body).is(400, want)
		}
		s.request("ci", at, `{"project_id":"prj_none"}`).is(404, "NOT_FOUND")
		s.request("ci", at, `{"project_id":"prj_old"}`).is(404, "NOT_FOUND") // archived
		same := s.request("ci", at, `{"title":null,"date":null,"time":null,"project_id":null,"other":1}`).is(200, "")
		require.Equal(t, "946684800", same.field("updated_at"), "nothing changed")
		require.Equal(t, "09:00", same.field("time"))
		require.Equal(t, "prj_apollo", same.field("project_id"))
		r := s.request("ci", at, `{"title":" New ","date":"2026-04-01","time":"","project_id":""}`).is(200, "")
		require.Equal(t, []string{"New", "2026-04-01", "null", "null", "946684801"},
			[]string{r.field("title"), r.field("date"), r.field("time"), r.field("project_id"), r.field("updated_at")})
		time.Sleep(time.Second)
		r = s.request("ci", at, `{"time":"10:30"}`).is(200, "")
		require.Equal(t, []string{"10:30", "946684802"}, []string{r.field("time"), r.field("updated_at")},
			"the time alone is a change")
		time.Sleep(time.Second)
		r = s.request("ci", at, `{"title":"Newer"}`).is(200, "")
		require.Equal(t, []string{"Newer", "946684803"}, []string{r.field("title"), r.field("updated_at")})
		require.Contains(t, s.request("ci", "GET /v1/meetings?date_from=2026-04-01", "").Body.String(), id)
		require.NotContains(t, s.request("ci", "GET /v1/meetings?date_to=2026-03-31", "").Body.String(), id)
	})
}

// The lock of section 3 and its position in the order.
func TestParticipants(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(cfg *engine.Config) { cfg.World.Stages.Prepare = time.Hour })
	id := s.create("ci", "")
	at := "PUT /v1/meetings/" + id + "/participants"
	bodies := []string{`{}`, `{"participant_ids":null}`, `{"participant_ids":[1]}`, `{"participant_ids":{}}`}
	for _, body := range bodies {
		fields := s.request("ci", at, body).is(400, "INVALID_REQUEST").detail("fields")
		require.Equal(t, []any{"participant_ids"}, fields)
	}
	s.request("ci", at, `{"participant_ids":["emp_none"]}`).is(404, "NOT_FOUND")
	require.Equal(t, `["emp_bob","emp_ada"]`,
		s.request("ci", at, `{"participant_ids":["emp_bob","emp_ada","emp_bob"]}`).is(200, "").field("participant_ids"))
	require.Equal(t, `[]`, s.request("ci", at, `{"participant_ids":[]}`).is(200, "").field("participant_ids"))
	s.upload("ci", id, 1)
	s.request("ci", at, `{"participant_ids":["emp_none"]}`).is(404, "NOT_FOUND")
	s.request("ci", at, `{"participant_ids":[]}`).is(409, "PARTICIPANTS_LOCKED")
	s.request("ci", "POST /v1/meetings/"+id+"/upload-url", `{"content_type":"audio/wav"}`).is(400, "BAD_REQUEST")
	s.request("ci", "POST /v1/meetings/"+id+"/upload-url", `{}`).is(400, "INVALID_REQUEST")
}
