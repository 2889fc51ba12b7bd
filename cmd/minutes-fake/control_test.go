package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatchWorld_MergesByIDAndSecret(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	organisation := func(w map[string]any) map[string]any { return w["organisations"].([]any)[0].(map[string]any) }
	before := organisation(p.control("GET /world"))
	after := organisation(p.control(`PATCH /world {"organisations":[` +
		`{"id":"org_acme","credits":0,"name":null,"keys":[{"secret":"key_ada","revoked":true}],` +
		`"members":[{"id":"emp_ada","role":"CTO"},{"id":"emp_fay","name":"Fay"}],"projects":[]}]}`))
	assert.Equal(t, after, organisation(p.control("GET /world")))
	assert.InDelta(t, 0, after["credits"], 0)
	assert.Nil(t, after["name"], "null removes")
	assert.Nil(t, after["projects"], "an empty list removes all")
	assert.Len(t, after["keys"], len(before["keys"].([]any)))
	assert.Equal(t, map[string]any{"secret": "key_ada", "member_id": "emp_ada", "revoked": true},
		after["keys"].([]any)[1])
	members := after["members"].([]any)
	assert.Len(t, members, len(before["members"].([]any))+1)
	assert.Equal(t, "CTO", members[0].(map[string]any)["role"])
	assert.Equal(t, "Ada Lovelace", members[0].(map[string]any)["name"], "what is not sent stays")
	assert.Equal(t, "emp_fay", members[len(members)-1].(map[string]any)["id"])
	_, usage := p.api("GET /v1/usage")
	assert.InDelta(t, 0, usage["credits_remaining"], 0)
}

// An invalid request changes nothing. Its message begins with the place of the mistake.
func TestControl_RejectsInvalidRequests(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	before := p.control("GET /world")
	for _, row := range []struct{ what, want string }{
		{`PATCH /world {"organisations":[{"id":"org_acme","credits":-1}]}`, "credits: -1 is negative"},
		{`PATCH /world {"organisations":[{"id":"org_acme","keys":[{"secret":"key_x","member_id":"emp_x"}]}]}`,
			`keys[3].member_id: no member "emp_x"`},
		{`PATCH /world {"organisations":[{"id":"org_acme","colour":"red"}]}`, `unknown field "colour"`},
		{`PATCH /world {"organisations":[{"name":"x"}]}`, "organisations[0].id: missing"},
		{`PATCH /world {"page_sizes":[0]}`, "page_sizes: "},
		{`PATCH /world {"stages":{"write":"x"}}`, `"x" is not a duration`},
		{`PUT /world {"organisations":[]}`, "organisations: at least one expected"},
		{`PATCH /world {"organisations":[]}`, "organisations: at least one expected"},
		{`PATCH /world {"organisations":[{"id":"org_acem","credits":0}]}`,
			`organisations[0].id: there is no organisation "org_acem", only ["org_acme"]; POST /organisations makes`},
		{`PATCH /world {"organisations":[7]}`, "organisations"},
		{`POST /faults {"match":{"operation":"storage.put"},"faults":[{"kind":"refuse","code":"INTERNAL_ERROR"}]}`,
			"refuse: it is not an error of storage; use refuse_upload"},
		{`POST /faults {"faults":[{"kind":"refuse","code":"RATE_LIMITED"}]}`,
			"refuse: code: the API's 429 has no code, so there is no \"RATE_LIMITED\"; use rate_limit"},
		{`POST /faults {"faults":[{"kind":"rate_limit","retry_after":"2s"}]}`,
			`rate_limit: retry_after: "2s" is neither a number of seconds nor an HTTP date`},
		{`POST /faults {"faults":[{"kind":"reset","bytes":10}]}`, "reset: bytes: it belongs to reset_upload, truncate"},
		{`POST /faults {"faults":[{"kind":"rate_limit","status":503}]}`,
			"rate_limit: status: it belongs to refuse_upload, respond"},
		{`PUT /world {"organisations":[{"id":"o","keys":[{"secret":"k","member_id":"emp_x"}]}]}`,
			"organisations[0].keys[0].member_id: "},
		{`PUT /world {`, "the JSON value is not complete"},
		{`POST /scripts {"hold":"created"}`, "hold: "},
		{`POST /scripts {"hold":"transcribed","outcome":"transcription_failed"}`,
			`hold: a meeting that ends in "transcription_failed" never comes to "transcribed"`},
		{`POST /scripts {"titel":"x"}`, `unknown field "titel"`},
		{`POST /scripts {"title":null,"outcome":"minutes_failed"}`,
			"title: null says nothing; give a value, or leave the field out"},
		{`POST /scripts {"external_id":"","outcome":"minutes_failed"}`, `external_id: "" says nothing; `},
		{`POST /scripts {"title":"x","stages":{"write":null}}`, "stages.write: null says nothing; "},
		{`POST /faults {"match":{"title":""},"faults":[{"kind":"reset"}]}`, `match.title: "" says nothing; `},
		{`POST /faults {"match":{"times":0},"faults":[{"kind":"reset"}]}`, "match.times: 0 says nothing; "},
		{`POST /faults {"match":null,"faults":[{"kind":"reset"}]}`, "match: null says nothing; "},
		{`POST /meetings {"title":"x","count":0}`, "count: 0 says nothing; "},
		{"POST /meetings/" + p.create("x") + `/advance {"until":null}`, "until: null says nothing; "},
		{`POST /faults {}`, "faults: at least one expected"},
		{`POST /faults {"faults":[{"kind":"x"}]}`, "kind: "},
		{`POST /faults {"faults":[{"kind":"bad_certificate"}]}`,
			"fault: bad_certificate: it works only within one process"},
		{`POST /faults {"faults":[{"kind":"reset"}],"from":"2s","to":"1s"}`, "to: "},
		{`POST /faults {"match":{"operation":"meetings.get"},"faults":[{"kind":"slow_upload","bytes_per_second":1}]}`,
			"match storage.put"},
		{`POST /faults {"match":{"operation":"usage.get"},"faults":[{"kind":"show_status","meeting_status":"x"}]}`,
			"usage.get shows none; match one of meetings.list, "},
		{`POST /faults {"kind":"reset"}`, `unknown field "kind"; known here: match, faults, optional, from, to`},
		{`POST /faults {"faults":[{"kind":"reset"}],"times":3}`, `there is one in match`},
		{`POST /faults {"match":{"from":"0s"},"faults":[{"kind":"reset"}]}`, `match: unknown field "from"; `},
		{`POST /faults {"match":{"from":"0s"},"faults":[{"kind":"reset"}]}`, `there is one beside match`},
		{`POST /faults {"faults":[{"kind":"reset"}],"to":"0s"}`, "to: a later time than from expected"},
		{`PATCH /world {"credits":0}`, `there is one in organisations`},
		{`PATCH /world {"organisations":[{"id":"org_acme","keys":[{"secret":"key_cii","revoked":true}]}]}`,
			`give either a member_id or an integration_id; this request would add "key_cii", which did not exist`},
		{`PATCH /world {"organisations":[{"id":"org_acme","keys":[{"secret":"key_cii","member_id":"emp_x"}]}]}`,
			`keys[3].member_id: no member "emp_x"; this request would add "key_cii", which did not exist`},
		{`POST /reset {"credits":0}`, `unknown field "credits"; known here: none`},
		{`DELETE /scripts {"title":"x"}`, `unknown field "title"`},
		{`DELETE /faults {"id":"flt_1"}`, `unknown field "id"`},
		{`POST /faults {"faults":[{"kind":"reset"}],"from":"-2s","to":"1s"}`, "from: "},
		{`POST /faults {"match":{"operation":"x"},"faults":[{"kind":"reset"}]}`, "operation: "},
		{`POST /meetings {"title":"x","creator_id":"emp_x"}`, `creator_id: `},
		{`POST /meetings {"organisation":"org_x","title":"x"}`, `there is no organisation "org_x"`},
		{`POST /clock {"advance":"-1h"}`, "advance: "},
		{`POST /clock {"advance":"2000000h"}`,
			"advance: 2000000h0m0s more would move the clock by over 100 years in total"},
		{`POST /clock {"advance":"week"}`, `"week" is not a duration`},
		{`GET /requests?operation=x`, `operation: "x" is not one of members.list, `},
		{`GET /requests?after=-1`, "after: "},
		{`GET /requests?operations=x`, `takes no parameter "operations"; known here: operation, after, caller, `},
		{`GET /world?title=x`, `/world takes no parameter "title"; known here: none`},
	} {
		status, object := p.ask("MINUTES_CONTROL_URL", row.what)
		assert.Equal(t, http.StatusBadRequest, status, row.what)
		problem, _ := object["problem"].(map[string]any)
		message, _ := problem["message"].(string)
		assert.Contains(t, message, row.want, row.what)
		assert.NotRegexp(t, `minutestest|With[A-Z]|Optional\b|json:`, message)
	}
	_, object := p.ask("MINUTES_CONTROL_URL",
		`PATCH /world {"organisations":[{"id":"org_acme","max_terms":0,"vocabulary":[{"term":"x"}]}]}`)
	problem, _ := object["problem"].(map[string]any)
	assert.Equal(t, "organisations[0].vocabulary: 4 terms, 0 at most", problem["message"], "whatever x is called")
	assert.Equal(t, before, p.control("GET /world"))
	for what, want := range map[string]int{
		"GET /nothing": 404, "GET /v1/meetings": 404, "GET /meetings/x": 404, "DELETE /meetings/x": 404,
		"DELETE /faults?id=flt_9": 404, "POST /world": 404,
		"POST /meetings/" + p.meeting("Weekly") + `/advance {"until":"nope"}`: 400,
		"POST /scripts " + strings.Repeat(" ", maxBody) + "{}":                413,
	} {
		status, object := p.ask("MINUTES_CONTROL_URL", what)
		assert.Equal(t, want, status, "%.40s", what)
		assert.NotEmpty(t, object["problem"])
	}
}

// A request to what the control API does not have gets a list of what it has there.
func TestControl_ListsWhatItHasInstead(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	for what, want := range map[string]string{
		"GET /reset":           "has no GET /reset, but POST /reset; GET /openapi.json",
		"POST /world":          "has no POST /world, but GET /world, PATCH /world, PUT /world; ",
		"DELETE /faults/flt_1": "has no DELETE /faults/flt_1, but DELETE /faults, GET /faults, POST /faults; ",
		"POST /":               "has no POST /, but GET /; ",
		"GET /fault":           "has no GET /fault, but DELETE /faults, GET /faults, POST /faults; ",
		"POST /resets":         "has no POST /resets, but POST /reset; ",
		"GET /v1/meetings": "has no GET /v1/meetings; GET /openapi.json describes it, " +
			"and the service is at http://",
	} {
		status, object := p.ask("MINUTES_CONTROL_URL", what)
		assert.Equal(t, http.StatusNotFound, status, what)
		problem, _ := object["problem"].(map[string]any)
		assert.Contains(t, problem["message"], want)
	}
}

// The control API has no keys, so it rejects what a web page may have sent.
func TestControl_RejectsWebPages(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for _, tc := range []struct {
		change func(*http.Request)
		want   int
	}{
		{host("evil.example"), 403},
		{host("evil.example:8081"), 403},
		{header("Origin", "https://evil.example"), 403},
		{header("Sec-Fetch-Site", "cross-site"), 403},
		{header("Sec-Fetch-Site", "same-site"), 403},
		{header("Content-Type", "text/plain"), 415},
		{host("localhost:8081"), 200},
		{host("[::1]:8081"), 200},
		{header("Origin", p.env["MINUTES_CONTROL_URL"]), 200},
		{header("Sec-Fetch-Site", "same-origin"), 200},
	} {
		status, _ := p.ask("MINUTES_CONTROL_URL", `POST /scripts {"outcome":"minutes_failed"}`, tc.change)
		assert.Equal(t, tc.want, status)
	}
	named := launch(t, "-log", "none", "-control", "localhost:0")
	status, _ := named.ask("MINUTES_CONTROL_URL", "GET /world", host("fake:1"))
	assert.Equal(t, 403, status)
	assert.True(t, isOwnHost("Fake:1", "fake:8081"), "the name in -control")
	machine, err := os.Hostname() // as other containers call it
	require.NoError(t, err)
	status, _ = named.ask("MINUTES_CONTROL_URL", "GET /world", host(machine+":1"))
	assert.Equal(t, 200, status)
}

// Everything that a reset removes is gone, and numbers start again.
func TestReset_RestoresTheInitialWorld(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	begin := p.control("GET /world")
	for range 2 {
		p.control(`PATCH /world {"organisations":[{"id":"org_acme","credits":1}],"page_sizes":[1]}`)
		p.control(`POST /scripts {"title":"Weekly","outcome":"minutes_failed"}`)
		assert.Equal(t, "flt_1",
			p.control(`POST /faults {"match":{"operation":"usage.get"},"faults":[{"kind":"reset"}]}`)["id"])
		p.control(`POST /clock {"advance":"168h"}`)
		p.control(`POST /meetings {"title":"Old","count":3}`)
		p.api("GET /v1/meetings")
		first := p.control("GET /requests")["requests"].([]any)[0].(map[string]any)
		assert.InDelta(t, 1, first["seq"], 0)
		p.control("POST /reset")
		assert.Equal(t, begin, p.control("GET /world"))
		for _, list := range []string{"scripts", "faults", "meetings", "requests"} {
			assert.Empty(t, p.control("GET /" + list)[list], list)
		}
		assert.Equal(t, "0s", p.control("GET /clock")["ahead"])
	}
	p.control(`PUT /world {"organisations":[{"id":"org_a"}]}`)
	status, _ := p.api("GET /v1/usage")
	assert.Equal(t, http.StatusUnauthorized, status, "the old key is unknown in another world")
	p.control("POST /reset")
	assert.Equal(t, begin, p.control("GET /world"))
}

func TestClock_MovesTheServiceOn(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	_, m := p.api(`POST /v1/meetings {"title":"Weekly","date":"2026-11-21"}`)
	_, target := p.api("POST /v1/meetings/" + m["id"].(string) + `/upload-url {"content_type":"application/json"}`)
	p.control(`POST /meetings {"title":"Standup","status":"audio_uploaded"}`)
	assert.Equal(t, "168h0m0s", p.control(`POST /clock {"advance":"168h"}`)["ahead"])
	status, _ := p.ask("", "PUT "+target["upload_url"].(string)+` "audio"`)
	assert.Equal(t, http.StatusForbidden, status, "the upload URL has expired")
	standup := p.control("GET /meetings?title=Standup")["meetings"].([]any)[0].(map[string]any)
	assert.Equal(t, "minutes_ready", standup["status"])
}

func TestAdvance_MovesHeldMeetings(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	p.control(`POST /scripts {"title":"Held","hold":"transcribing","stages":{"prepare":"1h"}}`)
	path := "/meetings/" + p.meeting("Held")
	assert.Equal(t, "transcribing", p.control("POST " + path + "/advance")["status"])
	assert.Equal(t, true, p.control("GET " + path)["held"])
	assert.Equal(t, "minutes_ready", p.control("POST " + path + `/advance {"until":"minutes_ready"}`)["status"])
	status, _ := p.ask("MINUTES_CONTROL_URL", "POST "+path+"/advance")
	assert.Equal(t, http.StatusConflict, status)
}

// Nothing that a client or a clock has done before makes a difference.
func TestAdvance_RejectsAStatusAfterTheEnd(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	p.control(`POST /scripts {"title":"Fails","outcome":"minutes_failed"}`)
	p.control(`POST /scripts {"title":"Fails slowly","outcome":"minutes_failed","stages":{"transcribe":"1h"}}`)
	p.control(`POST /scripts {"title":"Succeeds slowly","stages":{"transcribe":"1h"}}`)
	for title, until := range map[string]string{
		"Fails": "minutes_ready", "Fails slowly": "minutes_ready",
		"Succeeds": "minutes_failed", "Succeeds slowly": "minutes_failed",
	} {
		path := "POST /meetings/" + p.meeting(title) + `/advance {"until":"` + until + `"}`
		for range 2 {
			status, object := p.ask("MINUTES_CONTROL_URL", path)
			assert.Equal(t, http.StatusConflict, status, title)
			problem, _ := object["problem"].(map[string]any)
			assert.Contains(t, problem["message"], "a script's outcome", title)
		}
	}
}

// The inspector's events end at a reset. A page that asks for them again gets those of the next
// fake.
func TestEvents_GoOnWithTheNextFakeAfterAReset(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	watch := func() (first string, rest io.ReadCloser) {
		resp, err := http.Get(p.env["MINUTES_CONTROL_URL"] + "/events")
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
		}
		return lines.Text(), resp.Body
	}
	p.meeting("Before the reset")
	state, before := watch()
	assert.Contains(t, state, "Before the reset")
	p.control("POST /reset")
	_, err := io.Copy(io.Discard, before)
	require.NoError(t, err, "they have ended in order")
	p.meeting("After the reset")
	state, _ = watch()
	assert.Contains(t, state, "After the reset")
	assert.NotContains(t, state, "Before the reset")
}

func TestMeetings_AreListedWithAndWithoutFilters(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	p.control(`POST /meetings {"title":"Weekly","external_id":"w"}`)
	p.control(`POST /meetings {"title":"Standup"}`)
	for query, want := range map[string]int{
		"": 2, "?title=Weekly": 1, "?title=weekly": 0, "?external_id=w": 1, "?external_id=": 1,
		"?title=Standup&external_id=w": 0,
	} {
		assert.Len(t, p.control("GET /meetings" + query)["meetings"], want, query)
	}
}

// A fault with a window applies to every request in it, also if the window begins now or has no end.
func TestFaults_ApplyToAllRequestsInTheirWindow(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	ids := map[any]bool{}
	for window, want := range map[string]int{
		`"optional":true`: 1, `"from":"0s"`: 3, `"from":"1ns"`: 3, `"to":"1h"`: 3, `"from":"0s","to":"1h"`: 3,
		`"from":"1h","optional":true`: 0,
	} {
		added := p.control(`POST /faults {"faults":[{"kind":"rate_limit"}],` + window + `}`)
		for range 3 {
			p.api("GET /v1/usage")
		}
		shown := p.control("GET /faults")["faults"].([]any)[0].(map[string]any)
		assert.InDelta(t, want, shown["applied"], 0, window)
		assert.Equal(t, added["from"], shown["from"], window)
		assert.Equal(t, strings.Contains(window, "from"), shown["from"] != nil, window)
		p.control("DELETE /faults")
		ids[added["id"]] = true
	}
	assert.Len(t, ids, 6, "no id is used twice")
}

// A test suite asks which faults and scripts were of no use, and how often a fault was applied.
func TestViolations_ListWhatWasOfNoUse(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	p.control(`POST /scripts {"title":"Weekly","outcome":"minutes_failed"}`)
	p.control(`POST /faults {"match":{"operation":"usage.get","nth":3},"faults":[{"kind":"reset"}]}`)
	for range 2 {
		p.api("GET /v1/usage")
	}
	fault := p.control("GET /faults")["faults"].([]any)[0].(map[string]any)
	assert.Equal(t, []any{2.0, 0.0}, []any{fault["seen"], fault["applied"]})
	found := p.control("GET /violations")
	assert.Empty(t, found["violations"])
	assert.Equal(t, []any{`no meeting matched the script for {"title":"Weekly"}`}, found["unmatched_scripts"])
	require.Len(t, found["unused_faults"], 1)
	assert.Contains(t, found["unused_faults"].([]any)[0], "flt_1: ")
}

// Each request to the control API sees the whole effect of those before it.
func TestControl_TakesRequestsInTurn(t *testing.T) {
	t.Parallel()
	const requests = 100
	p := &process{}
	done := 0
	endpoint := func(request) (any, error) {
		before := done
		runtime.Gosched() // to another request, if that need not wait
		done = before + 1
		return nil, nil
	}
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			_, err := p.run(&tenant{}, endpoint, httptest.NewRequest(http.MethodGet, "/world", nil))
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.Equal(t, requests, done)
}

func TestDocument_DescribesEveryEndpoint(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	served := map[string]bool{}
	_, document := p.ask("MINUTES_CONTROL_URL", "GET /openapi.json")
	for path, item := range document["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				served[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	list := p.control("GET /")["endpoints"].([]any)
	for _, pattern := range list {
		assert.True(t, served[pattern.(string)], "%s is not in the document", pattern)
	}
	assert.Len(t, list, len(served))
}

// Each request of examples/situations.http works, README.md has some of them, and the world beside it is
// valid.
func TestReadme_WorksAsItSays(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	situations, err := os.ReadFile("examples/situations.http")
	require.NoError(t, err)
	p := launch(t, "-log", "none")
	all := map[string]bool{}
	request := regexp.MustCompile(`(?m)^([A-Z]+) \{\{control\}\}(\S+)\nContent-Type: application/json\n\n(.*)$`)
	for _, found := range request.FindAllStringSubmatch(string(situations), -1) {
		what := found[1] + " " + found[2] + " " + found[3]
		p.control(what)
		all[what] = true
	}
	assert.Greater(t, len(all), 35)
	assert.Len(t, all, strings.Count(string(situations), "###"))
	rows := regexp.MustCompile("`((?:POST|PATCH|PUT) /[a-z]+ \\{[^`]*)`").FindAllSubmatch(readme, -1)
	for _, row := range rows {
		assert.True(t, all[string(row[1])], "examples/situations.http lacks %s", row[1])
	}
	assert.Greater(t, len(rows), 5)
	world, err := os.ReadFile("examples/world.json")
	require.NoError(t, err)
	p.control("PUT /world " + string(world))
	_, described := p.ask("MINUTES_CONTROL_URL", "GET /openapi.json")
	schemas := described["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range []string{"World", "Stages", "Organisation", "Member", "Integration", "Project", "Template",
		"Term", "Variant", "Key", "MeetingSpec"} {
		for field := range schemas[name].(map[string]any)["properties"].(map[string]any) {
			assert.Contains(t, string(world), `"`+field+`": `, "the world has every field of %s", name)
		}
	}
}
