package openapi_test

import (
	"encoding/json"
	"testing"
)

// Every endpoint of the control API responds as its document says, also with errors.
func TestControlAPI_MatchesItsDocument(t *testing.T) {
	t.Parallel()
	const document = "cmd/minutes-fake/openapi.json"
	c := newChecker(t, document)
	known := operations(t, document)
	env := launch(t)
	service := env["MINUTES_BASE_URL"]
	control := proxy(t, env["MINUTES_CONTROL_URL"], c, known)
	ask(t, control, `POST /scripts {
		"title": "Held", "hold": "audio_uploaded", "duration": "90s", "stages": {"write":"1m30s"}
	}`)
	ask(t, control, `POST /faults {
		"match": {"title":"Held","times":-1},
		"faults": [{"kind":"respond","status":502,"header":{"A":"b"},"delay":"1s"}],
		"from": "1h", "to": "2h"
	}`)
	var m struct{ ID string }
	created := ask(t, service, `POST /v1/meetings {"title":"Held","date":"2026-11-21","external_id":"held"}`)
	err := json.Unmarshal(created, &m)
	if err != nil {
		t.Fatal(err)
	}
	var target struct {
		URL string `json:"upload_url"`
	}
	directed := ask(t, service, "POST /v1/meetings/"+m.ID+`/upload-url {"content_type":"application/json"}`)
	err = json.Unmarshal(directed, &target)
	if err != nil {
		t.Fatal(err)
	}
	ask(t, "", "PUT "+target.URL+` "audio"`) // with the key, which is a violation
	for _, what := range []string{
		"GET /",
		"GET /health",
		"GET /openapi.json",
		"GET /world",
		"GET /scripts",
		"GET /faults",
		"GET /clock",
		"GET /report",
		`PATCH /world {"organisations":[{"id":"org_acme","credits":7}],"page_sizes":[0,2]}`,
		`PATCH /world {"credits":7}`,
		"POST /organisations",
		`POST /organisations {"id":"org_mine","credits":0}`,
		`POST /organisations {"credits":-1}`,
		"GET /organisations",
		"DELETE /organisations/org_mine",
		"DELETE /organisations/org_mine",
		"GET /requests?status=201&wait=1ms&title=Held",
		"GET /violations?caller=int_ci",
		"GET /meetings",
		"GET /meetings/" + m.ID,
		"GET /meetings/none",
		"POST /meetings/" + m.ID + "/advance",
		"POST /meetings/" + m.ID + `/advance {"until":"minutes_ready"}`,
		"POST /meetings/" + m.ID + "/advance",
		`POST /meetings {"title":"Old","creator_id":"emp_ada","count":3}`,
		"POST /meetings {}",
		`POST /clock {"advance":"168h"}`,
		`POST /clock {}`,
		"GET /requests",
		"GET /requests?after=x",
		"GET /requests?wait=x",
		"GET /violations?kind=x",
		"GET /violations",
		"DELETE /faults?id=flt_9",
		"DELETE /faults",
		"DELETE /scripts",
		"DELETE /meetings/" + m.ID,
		"DELETE /meetings/" + m.ID,
		"POST /faults {}",
		`POST /scripts {"hold":"created"}`,
		`PUT /world {"organisations":[{"id":"org_a"}]}`,
		`PUT /world {"organisations":[]}`,
		"POST /reset",
		"GET /requests",
	} {
		ask(t, control, what)
	}
	c.checked["GET /events"] = true // which never ends
	c.report(t, known)
}
