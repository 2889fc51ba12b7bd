package openapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Every endpoint of the control API responds as its document says, also with
// errors.
func TestControlAPI_MatchesItsDocument(t *testing.T) {
	t.Parallel()
	c := newChecker(t, "docs/openapi-control.yaml")
	env := launch(t, "-keep-audio")
	control, service := proxy(t, env["MINUTES_CONTROL_URL"], c), env["MINUTES_BASE_URL"]
	ask := func(base, what, body string) map[string]any {
		method, path, _ := strings.Cut(what, " ")
		if !strings.HasPrefix(path, "/") {
			base, path = path, ""
		}
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		if base == service {
			req.Header.Set("Authorization", "Bearer "+env["MINUTES_API_KEY"])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		var response map[string]any
		_ = json.Unmarshal(text, &response)
		return response
	}
	create := func(title string) string {
		id, _ := ask(service, "POST /v1/meetings", `{"title":"`+title+`","date":"2026-11-21","external_id":"`+title+`"}`)["id"].(string)
		url, _ := ask(service, "POST /v1/meetings/"+id+"/upload-url", `{"content_type":"application/json"}`)["upload_url"].(string)
		ask("", "PUT "+url, `"audio"`)
		return id
	}
	ask(control, "POST /scripts", `{"title":"Held","hold":"audio_uploaded","transcript":"spk_0: Hello.","stages":{"write":"1m30s"}}`)
	id := create("Held")
	ask(service, "GET /v1/meetings/"+id, "")
	ask(service, "GET /v1/meetings/"+id, "")
	const acme = "/organisations/org_acme"
	for _, step := range [][2]string{
		{"GET /", ""}, {"GET /health", ""}, {"GET /openapi.json", ""}, {"GET /world", ""}, {"GET " + acme, ""}, {"GET /organisations/org_x", ""},
		{"PATCH " + acme, `{"credits":7}`}, {"PATCH " + acme, `{"credits":"x"}`}, {"PATCH " + acme, `{`},
		{"GET " + acme + "/members/emp_ada", ""}, {"PUT " + acme + "/members/emp_fay", `{"name":"Fay"}`}, {"PATCH " + acme + "/members/emp_fay", `{"status":"invited"}`},
		{"DELETE " + acme + "/members/emp_fay", ""}, {"GET " + acme + "/keys/key_ada", ""}, {"GET " + acme + "/templates/tpl_standard", ""},
		{"GET " + acme + "/projects/prj_apollo", ""}, {"GET " + acme + "/integrations/int_ci", ""}, {"GET " + acme + "/keys/x", ""},
		{"POST /scripts", `{"hold":"created"}`},
		{"POST " + acme + "/meetings", `{"title":"Standup","creator_id":"emp_ada","status":"audio_uploaded","count":3}`}, {"POST " + acme + "/meetings", `{}`},
		{"GET /meetings/" + id, ""}, {"GET /meetings/x", ""}, {"GET /meetings/" + id + "/audio", ""},
		{"POST /meetings/" + id + "/release", ""}, {"POST /meetings/" + id + "/release", ""},
		{"POST /meetings/" + id + "/advance", ""}, {"POST /meetings/" + id + "/advance", `{"until":"minutes_ready"}`}, {"GET /meetings/" + id, ""},
		{"POST /faults", `{"match":{"title":"Held","times":-1},"faults":[{"kind":"respond","status":502,"header":{"A":"b"},"delay":"1s"}],"from":"1h","to":"2h"}`},
		{"POST /faults", `{"faults":[{"kind":"call","request":"PATCH /organisations/org_acme","json":{"credits":0}}]}`}, {"DELETE /faults/flt_2", ""},
		{"POST /faults", `{"faults":[{"kind":"x"}]}`}, {"GET /faults", ""}, {"GET /faults/flt_1", ""}, {"DELETE /faults/flt_1", ""}, {"GET /faults/flt_1", ""},
		{"PUT /page-size", `{"sizes":[1,0,2]}`}, {"GET /page-size", ""}, {"DELETE /page-size", ""}, {"GET /page-size", ""},
		{"GET /requests", ""}, {"GET /requests?operation=meetings.get&after=2", ""}, {"GET /requests?x=1", ""}, {"GET /requests/counts", ""}, {"GET /requests/1", ""}, {"GET /requests/99", ""},
		{"GET /violations", ""}, {"GET /report", ""},
		{"PUT " + acme, `{"name":"Bare"}`}, {"POST /reset", ""}, {"GET /violations", ""}, {"GET /requests", ""},
	} {
		ask(control, step[0], step[1])
	}
	c.report(t, 47)
}
