package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// ask sends one request to the control API, as in "GET /health", and returns
// the status and the object in the response.
func (p *program) ask(t *testing.T, what, body string) (int, map[string]any) {
	t.Helper()
	method, path, _ := strings.Cut(what, " ")
	status, text := p.send(t, method, p.control()+path, body, "")
	var response map[string]any
	if text != "" {
		require.NoError(t, json.Unmarshal([]byte(text), &response), text)
	}
	return status, response
}

// call sends one request to the service, with the program's own key.
func (p *program) call(t *testing.T, what, body string) (int, map[string]any) {
	t.Helper()
	method, path, _ := strings.Cut(what, " ")
	status, text := p.send(t, method, p.baseURL()+path, body, p.env["MINUTES_API_KEY"])
	var response map[string]any
	if strings.HasPrefix(text, "{") {
		require.NoError(t, json.Unmarshal([]byte(text), &response), text)
	}
	return status, response
}

// meeting creates a meeting, with audio if there is some.
func (p *program) meeting(t *testing.T, title, audio string) string {
	t.Helper()
	status, m := p.call(t, "POST /v1/meetings", `{"title":"`+title+`","date":"2026-11-21"}`)
	require.Equal(t, http.StatusCreated, status)
	id := m["id"].(string)
	if audio != "" {
		_, target := p.call(t, "POST /v1/meetings/"+id+"/upload-url", `{"content_type":"audio/wav"}`)
		req, err := http.NewRequestWithContext(t.Context(), "PUT", target["upload_url"].(string), strings.NewReader(audio))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "audio/wav")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	return id
}

// The control API rejects bad requests and names the field.
func TestControl_RejectsBadRequests(t *testing.T) {
	t.Parallel()
	p := launch(t)
	id := p.meeting(t, "Weekly", "")
	const acme = "/organisations/org_acme"
	for _, tc := range []struct {
		what, body string
		status     int
		field      string
	}{
		{"GET /nowhere", "", 404, ""},
		{"GET /v1/meetings", "", 404, ""},
		{"GET //world", "", 404, ""},
		{"GET /world/", "", 404, ""},
		{"GET /requests/../world", "", 404, ""},
		{"GET /world?pretty=1", "", 400, "pretty"},
		{"GET /requests?operations=usage.get", "", 400, "operations"},
		{"GET /violations?after=1", "", 400, "after"},
		{"DELETE /health", "", 405, ""},
		{"GET /organisations/org_none", "", 404, ""},
		{"PATCH /organisations/org_none", `{}`, 404, ""},
		{"PATCH " + acme, ``, 400, ""},
		{"PATCH " + acme, `[]`, 400, ""},
		{"PATCH " + acme, `null`, 400, ""},
		{"PATCH " + acme, `{} {}`, 400, ""},
		{"PATCH " + acme, `{}}`, 400, ""},
		{"PATCH " + acme, "{\"name\":\"\xff\"}", 400, ""},
		{"POST /scripts", `null`, 400, ""},
		{"POST /scripts", `{"outcome":"minutes_ready"}]`, 400, ""},
		{"PATCH " + acme, `{"credit":1}`, 400, "credit"},
		{"PATCH " + acme, `{"credits":"many"}`, 400, "credits"},
		{"PATCH " + acme, `{"credits":-1}`, 400, "credits"},
		{"PATCH " + acme, `{"id":"org_other"}`, 400, "id"},
		{"PATCH " + acme, `{"members":[{"id":"emp_a","status":"away"}]}`, 400, "members[0].status"},
		{"PUT " + acme, `{"keys":[{"secret":"k","member_id":"emp_x"}]}`, 400, "keys[0].member_id"},
		{"GET " + acme + "/meetings/x", "", 404, ""},
		{"GET " + acme + "/members/emp_none", "", 404, ""},
		{"PATCH " + acme + "/members/emp_none", `{}`, 404, ""},
		{"DELETE " + acme + "/members/emp_none", "", 404, ""},
		{"PATCH " + acme + "/members/emp_ben", `{"status":"away"}`, 400, "status"},
		{"PATCH " + acme + "/members/emp_ben", `{"nmae":"x"}`, 400, "nmae"},
		{"PATCH " + acme + "/members/emp_ben", `{"id":"emp_x"}`, 400, "id"},
		{"PUT " + acme + "/members/fay", `{}`, 400, "id"},
		{"PUT " + acme + "/members/emp_fay", `{"id":"emp_x"}`, 400, "id"},
		{"PUT " + acme + "/members/emp_fay", `{"email":"ADA@acme.example"}`, 400, "email"},
		{"PUT " + acme + "/keys/k", `{}`, 400, ""},
		{"PUT " + acme + "/keys/k", `{"integration_id":"int_ci","scopes":["all"]}`, 400, "scopes[0]"},
		{"POST /scripts", `{"outcome":"transcribing"}`, 400, "outcome"},
		{"POST /scripts", `{"hold":"created"}`, 400, "hold"},
		{"POST /scripts", `{"stages":{"write":"-1s"}}`, 400, "stages.write"},
		{"POST /scripts", `{"stages":{"write":1}}`, 400, "stages.write"},
		{"POST /scripts", `{"titel":"x"}`, 400, "titel"},
		{"POST /scripts", `{"title":"x","external_id":"y"}`, 400, ""},
		{"POST /organisations/org_none/meetings", `{"title":"x"}`, 404, ""},
		{"POST " + acme + "/meetings", `{}`, 400, "title"},
		{"POST " + acme + "/meetings", `{"titel":"x"}`, 400, "titel"},
		{"POST " + acme + "/meetings", `{"title":"x","status":"done"}`, 400, "status"},
		{"POST " + acme + "/meetings", `{"title":"x","creator_id":"emp_x"}`, 400, "creator_id"},
		{"POST " + acme + "/meetings", `{"title":"x","count":-1}`, 400, "count"},
		{"POST " + acme + "/meetings", `{"title":"x","participant_ids":["emp_x"]}`, 400, ""},
		{"GET " + acme + "/meetings", "", 405, ""},
		{"POST /faults", `{}`, 400, "faults"},
		{"POST /faults", `{"fault":[]}`, 400, "fault"},
		{"POST /faults", `{"match":{"operation":"meetings.make"},"faults":[{"kind":"reset"}]}`, 400, "match.operation"},
		{"POST /faults", `{"match":{"path":"["},"faults":[{"kind":"reset"}]}`, 400, "match.path"},
		{"POST /faults", `{"match":{"nth":-1},"faults":[{"kind":"reset"}]}`, 400, "match.nth"},
		{"POST /faults", `{"match":{"times":-2},"faults":[{"kind":"reset"}]}`, 400, "match.times"},
		{"POST /faults", `{"faults":[{"kind":"refuse","code":"NO_SUCH"}]}`, 400, "faults[0].code"},
		{"POST /faults", `{"faults":[{"kind":"respond","status":99}]}`, 400, "faults[0].status"},
		{"POST /faults", `{"faults":[{"kind":"drip","over":"-1s"}]}`, 400, "faults[0].over"},
		{"POST /faults", `{"faults":[{"kind":"delay","delay":"soon"}]}`, 400, "faults[0].delay"},
		{"POST /faults", `{"faults":["reset"]}`, 400, "faults[0]"},
		{"POST /faults", `{"faults":[{"kind":"refuse_upload","status":503}]}`, 400, "faults[0].code"},
		{"POST /faults", `{"faults":[{"kind":"reset_upload","after_effect":true}]}`, 400, "faults[0].after_effect"},
		{"POST /faults", `{"match":{"operations":"x"},"faults":[{"kind":"reset"}]}`, 400, "match.operations"},
		{"POST /faults", `{"match":{"nth":"x"},"faults":[{"kind":"reset"}]}`, 400, "match.nth"},
		{"POST /faults", `{"faults":[{"kind":"reset"},{"kind":"explode"}]}`, 400, "faults[1].kind"},
		{"POST /faults", `{"faults":[{"kind":"reset","status":500}]}`, 400, "faults[0].status"},
		{"POST /faults", `{"faults":[{"kind":"reset","when":"now"}]}`, 400, "faults[0].when"},
		{"POST /faults", `{"faults":[{"kind":"refuse_upload","status":503,"code":"SlowDown"}]}`, 400, "faults[0].kind"},
		{"POST /faults", `{"faults":[{"kind":"bad_certificate"}]}`, 400, "faults[0].kind"},
		{"POST /faults", `{"faults":[{"kind":"call"}]}`, 400, "faults[0].request"},
		{"POST /faults", `{"faults":[{"kind":"reset"}],"from":"soon","to":"5m"}`, 400, "from"},
		{"POST /faults", `{"faults":[{"kind":"reset"}],"to":"-5m"}`, 400, "to"},
		{"POST /faults", `{"faults":[{"kind":"reset"}],"from":"5m","to":"1m"}`, 400, "to"},
		{"GET /faults/flt_9", "", 404, ""},
		{"DELETE /faults/flt_9", "", 404, ""},
		{"PUT /page-size", `{"sizes":[]}`, 400, "sizes"},
		{"PUT /page-size", `{"sizes":[2,0]}`, 400, "sizes[1]"},
		{"PUT /page-size", `{"sizes":[-1,2]}`, 400, "sizes[0]"},
		{"GET /meetings/mtg_none", "", 404, ""},
		{"GET /meetings/mtg_none/audio", "", 404, ""},
		{"GET /meetings/" + id + "/audio", "", 404, ""},
		{"POST /meetings/mtg_none/advance", "", 404, ""},
		{"POST /meetings/mtg_none/release", "", 404, ""},
		{"POST /meetings/" + id + "/release", "", 409, ""},
		{"POST /meetings/" + id + "/advance", "", 409, ""},
		{"POST /meetings/" + id + "/advance", `{"until":"tomorrow"}`, 400, "until"},
		{"GET /requests?operation=meetings.make", "", 400, "operation"},
		{"GET /requests?after=x", "", 400, "after"},
		{"GET /requests/x", "", 400, "seq"},
		{"GET /requests/4711", "", 404, ""},
	} {
		status, response := p.ask(t, tc.what, tc.body)
		assert.Equal(t, tc.status, status, "%s %s", tc.what, tc.body)
		problem, _ := response["problem"].(map[string]any)
		require.NotNil(t, problem, "%s: %v", tc.what, response)
		assert.EqualValues(t, tc.status, problem["status"])
		assert.NotEmpty(t, problem["message"])
		assert.NotContains(t, problem["message"], "engine")
		assert.NotContains(t, problem["message"], "minutestest")
		field, _ := problem["field"].(string)
		assert.Equal(t, tc.field, field, "%s %s: %s", tc.what, tc.body, problem["message"])
	}
	_, list := p.ask(t, "GET /faults", "")
	assert.Empty(t, list["faults"], "nothing invalid was added")
}

func TestControl_NamesLineAndColumnOfMalformedJSON(t *testing.T) {
	t.Parallel()
	p := launch(t)
	for body, want := range map[string]string{
		`{"title":`:                        "line 1, column 9: unexpected end of JSON input",
		"{\n  \"title\": \"x\",\n}":        "line 3, column 1: invalid character '}' looking for beginning of object key string",
		`{'title': 'x'}`:                   `line 1, column 2: invalid character '\'' looking for beginning of object key string`,
		`{"title":"é"} {}`:                 "line 1, column 15: invalid character '{' after top-level value",
		`{"title":"x","stages":{"write":}`: "line 1, column 32: invalid character '}' looking for beginning of value",
	} {
		for _, what := range []string{"POST /scripts", "POST /faults", "PATCH /organisations/org_acme", "PUT /page-size"} {
			status, response := p.ask(t, what, body)
			assert.Equal(t, http.StatusBadRequest, status)
			assert.Equal(t, map[string]any{"status": 400.0, "message": want}, response["problem"], "%s %s", what, body)
		}
	}
}

// The control API rejects requests that a web page may have sent, from another
// site or by a DNS name for this machine: the page could read the keys.
func TestControl_RejectsWebPages(t *testing.T) {
	t.Parallel()
	p := launch(t)
	own := strings.TrimPrefix(p.control(), "http://")
	_, port, err := net.SplitHostPort(own)
	require.NoError(t, err)
	const json = "application/json"
	for name, tc := range map[string]struct {
		method, path, host string
		header             map[string]string
		want               int
	}{
		"as ever":                         {"GET", "/world", "", nil, 200},
		"localhost":                       {"GET", "/world", "localhost:" + port, nil, 200},
		"a name below it":                 {"GET", "/world", "Fake.LOCALHOST:" + port, nil, 200},
		"another address":                 {"GET", "/world", "[::1]:" + port, nil, 200},
		"without a port":                  {"GET", "/world", "127.0.0.1", nil, 200},
		"rebound":                         {"GET", "/world", "evil.example:" + port, nil, 403},
		"rebound, no port":                {"GET", "/world", "evil.example", nil, 403},
		"name in -control":                {"GET", "/world", "next:" + port, nil, 403},
		"ends in localhost":               {"GET", "/world", "evillocalhost:" + port, nil, 403},
		"like localhost":                  {"GET", "/world", "localhost.evil.example:" + port, nil, 403},
		"like an address":                 {"GET", "/world", "127.0.0.1.evil.example:" + port, nil, 403},
		"page of the control API":         {"POST", "/faults", "", map[string]string{"Content-Type": json, "Origin": p.control(), "Sec-Fetch-Site": "same-origin"}, 400},
		"typed in the address bar":        {"GET", "/", "", map[string]string{"Sec-Fetch-Site": "none"}, 200},
		"another site":                    {"POST", "/reset", "", map[string]string{"Origin": "http://evil.example"}, 403},
		"another port":                    {"POST", "/reset", "", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		"another scheme":                  {"POST", "/reset", "", map[string]string{"Origin": "https://" + own}, 403},
		"a file, or a sandbox":            {"POST", "/reset", "", map[string]string{"Origin": "null"}, 403},
		"a page's word for it":            {"POST", "/reset", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a neighbour":                     {"DELETE", "/page-size", "", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"a picture":                       {"GET", "/world", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a form":                          {"POST", "/faults", "", map[string]string{"Content-Type": "text/plain"}, 415},
		"another form":                    {"PATCH", "/organisations/org_acme", "", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415},
		"no content type":                 {"PUT", "/page-size", "", map[string]string{"Content-Type": ""}, 415},
		"a picture of the page":           {"GET", "/", "", map[string]string{"Accept": "text/html", "Sec-Fetch-Site": "cross-site"}, 403},
		"live events of a same-site page": {"GET", "/events", "", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"rebound events":                  {"GET", "/events", "evil.example:" + port, nil, 403},
		"nearly JSON":                     {"POST", "/scripts", "", map[string]string{"Content-Type": "application/jsonp"}, 415},
		"JSON with a parameter":           {"POST", "/faults", "", map[string]string{"Content-Type": "Application/JSON; charset=utf-8"}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body io.Reader
			if _, typed := tc.header["Content-Type"]; typed {
				body = strings.NewReader("{}")
			}
			req, err := http.NewRequestWithContext(t.Context(), tc.method, p.control()+tc.path, body)
			require.NoError(t, err)
			req.Host = tc.host
			for name, value := range tc.header {
				req.Header.Set(name, value)
			}
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, tc.want, resp.StatusCode, "accepted requests may not end")
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, "control", resp.Header.Get("Minutes-Fake"))
			if tc.want >= 400 {
				assert.Contains(t, string(text), `"problem"`)
				assert.NotContains(t, string(text), "key_ci")
			}
		})
	}
}

// The name in -control counts as an own name.
func TestControl_AcceptsItsOwnHostName(t *testing.T) {
	t.Parallel()
	c := newControl(nil, minutestest.World{}, &edge{}, new(counts), settings{control: "Fake.internal:8081"}, "")
	for host, want := range map[string]int{"fake.internal:8081": 200, "fake.internal": 200, "fake.internal.evil.example": 403, "": 200} {
		r := httptest.NewRequest("GET", "/health", nil)
		r.Host = host
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, host)
	}
}

// A recording can contain anything, so it must not be a page of this site.
func TestRecordings_AreNotServedAsPages(t *testing.T) {
	t.Parallel()
	p := launch(t, "-keep-audio")
	resp, err := http.Get(p.control() + "/meetings/" + p.meeting(t, "Weekly", "<script>") + "/audio")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
	assert.Equal(t, "attachment", resp.Header.Get("Content-Disposition"))
}

// An empty form has a Content-Type, and a request without a body needs none.
func TestControl_RejectsEmptyForms(t *testing.T) {
	t.Parallel()
	p := launch(t)
	for contentType, want := range map[string]int{"application/x-www-form-urlencoded": 415, "text/plain": 415, "application/json": 204, "": 204} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", p.control()+"/reset", nil)
		require.NoError(t, err)
		if contentType != "" {
			req.Header.Set("Content-Type", contentType)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, want, resp.StatusCode, contentType)
	}
}

// A browser is shown a page at the control address, and what it lives on;
// others are shown the list of endpoints, as ever.
func TestControl_ServesInspector(t *testing.T) {
	t.Parallel()
	p := launch(t)
	get := func(path, accept string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), "GET", p.control()+path, nil)
		require.NoError(t, err)
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		require.Equal(t, http.StatusOK, resp.StatusCode)
		assert.Equal(t, "control", resp.Header.Get("Minutes-Fake"))
		return resp
	}
	page := get("/", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	assert.Equal(t, "text/html; charset=utf-8", page.Header.Get("Content-Type"))
	assert.Contains(t, page.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	for _, accept := range []string{"", "*/*", "application/json"} {
		list := get("/", accept)
		assert.Equal(t, "application/json; charset=utf-8", list.Header.Get("Content-Type"))
		assert.Equal(t, "Accept", list.Header.Get("Vary"))
	}

	id := p.meeting(t, "Weekly", "")
	events := bufio.NewReader(get("/events", "text/event-stream").Body)
	first, err := events.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "event: state\n", first)
	data, err := events.ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, data, id)
	assert.NotContains(t, data, p.env["MINUTES_API_KEY"])

	_, request := p.ask(t, "GET /requests/1", "")
	assert.Equal(t, "meetings.create", request["operation"])
}

// Neither API is mistaken for the other.
func TestControl_HasItsOwnPathsAndErrors(t *testing.T) {
	t.Parallel()
	p := launch(t)
	for _, base := range []string{p.baseURL(), p.control()} {
		resp, err := http.Get(base + "/health")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		if base == p.control() {
			assert.Equal(t, "control", resp.Header.Get("Minutes-Fake"))
			assert.Equal(t, http.StatusOK, resp.StatusCode)
		} else {
			assert.Empty(t, resp.Header.Get("Minutes-Fake"))
			assert.Equal(t, http.StatusUnauthorized, resp.StatusCode)
		}
	}
	_, index := p.ask(t, "GET /", "")
	assert.Len(t, index["endpoints"], len((&control{}).endpoints()))
}

// Keys, people and quota change under a client's feet.
func TestControl_ChangesOrganisations(t *testing.T) {
	t.Parallel()
	p := launch(t)
	const acme = "/organisations/org_acme"
	status, o := p.ask(t, "PATCH "+acme, `{"credits":7,"next_reset_at":"2099-01-01"}`)
	require.Equal(t, 200, status)
	assert.EqualValues(t, 7, o["credits"])
	assert.Len(t, o["members"], 5, "what was not sent stays")
	_, usage := p.call(t, "GET /v1/usage", "")
	assert.EqualValues(t, 7, usage["credits_remaining"])
	assert.Equal(t, "2099-01-01", usage["next_reset_at"])
	_, o = p.ask(t, "PATCH "+acme, `{"next_reset_at":null}`)
	assert.Nil(t, o["next_reset_at"])

	_, part := p.ask(t, "PUT "+acme+"/keys/key_new", `{"integration_id":"int_ci","scopes":[]}`)
	assert.Equal(t, map[string]any{"secret": "key_new", "integration_id": "int_ci", "scopes": []any{}}, part)
	code := func(key string) int {
		status, _ := p.send(t, "GET", p.baseURL()+"/v1/usage", "", key)
		return status
	}
	assert.Equal(t, 403, code("key_new"), "no scope")
	p.ask(t, "PATCH "+acme+"/keys/key_new", `{"scopes":null}`)
	assert.Equal(t, 200, code("key_new"), "every scope")
	p.ask(t, "PUT "+acme+"/keys/key_new", `{"integration_id":"int_ci","revoked":true}`)
	assert.Equal(t, 401, code("key_new"))
	status, _ = p.ask(t, "DELETE "+acme+"/keys/key_new", "")
	assert.Equal(t, 204, status)
	status, _ = p.ask(t, "GET "+acme+"/keys/key_new", "")
	assert.Equal(t, 404, status)

	p.ask(t, "PATCH "+acme+"/members/emp_ben", `{"status":"deactivated"}`)
	assert.Equal(t, 401, code("key_ben"))
	p.ask(t, "PATCH "+acme, `{"suspended":true}`)
	assert.Equal(t, 403, code("key_ci"))

	_, whole := p.ask(t, "GET "+acme, "")
	whole["suspended"] = false
	text, err := json.Marshal(whole)
	require.NoError(t, err)
	status, _ = p.ask(t, "PUT "+acme, string(text))
	require.Equal(t, 200, status)
	assert.Equal(t, 200, code("key_ci"))
	_, world := p.ask(t, "GET /world", "")
	_, whole = p.ask(t, "GET "+acme, "")
	assert.Equal(t, []any{whole}, world["organisations"])

	_, o = p.ask(t, "PUT "+acme, `{"name":"Bare"}`)
	assert.Nil(t, o["members"], "what was not sent is gone")
	assert.Equal(t, 401, code("key_ci"))

	status, _ = p.ask(t, "POST /reset", "")
	require.Equal(t, 204, status)
	assert.Equal(t, 200, code("key_ben"), "as it was")
}

// A fault is applied as often as asked, counts, and ends when it is deleted.
func TestControl_InjectsFaults(t *testing.T) {
	t.Parallel()
	p := launch(t)
	status, fault := p.ask(t, "POST /faults", `{"match":{"operation":"usage.get","nth":2,"times":3},"faults":[{"kind":"rate_limit"},{"kind":"respond","status":502,"content_type":"text/html","body":"<h1>no</h1>"}]}`)
	require.Equal(t, 201, status)
	id := fault["id"].(string)
	var got []int
	for range 3 {
		status, _ := p.call(t, "GET /v1/usage", "")
		got = append(got, status)
	}
	assert.Equal(t, []int{200, 429, 502}, got)
	_, fault = p.ask(t, "GET /faults/"+id, "")
	assert.EqualValues(t, 3, fault["seen"])
	assert.EqualValues(t, 2, fault["applied"])
	_, list := p.ask(t, "GET /faults", "")
	assert.Equal(t, []any{fault}, list["faults"])
	status, _ = p.ask(t, "DELETE /faults/"+id, "")
	assert.Equal(t, 204, status)
	status, _ = p.call(t, "GET /v1/usage", "")
	assert.Equal(t, 200, status, "it was to be applied once more")

	_, later := p.ask(t, "POST /faults", `{"faults":[{"kind":"reset"}]}`)
	assert.NotEqual(t, id, later["id"], "an id is never used again")
	p.ask(t, "POST /reset", "")
	status, _ = p.call(t, "GET /v1/usage", "")
	assert.Equal(t, 200, status)
	_, list = p.ask(t, "GET /faults", "")
	assert.Empty(t, list["faults"])
}

// A fault of the kind call changes the service when a request arrives: midway.
func TestCall_ChangesTheServiceMidway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ match, call, problem, want string }{
		"credits":       {"storage.put", `"request":"PATCH /organisations/org_acme","json":{"credits":0}`, "", "minutes_failed"},
		"seconds":       {"storage.put", `"request":"PATCH /organisations/org_acme","json":{"transcribe_seconds":0}`, "", "transcribe_blocked"},
		"seconds later": {"storage.put", `"request":"PATCH /organisations/org_acme","json":{"transcribe_seconds":0},"after_effect":true`, "", "minutes_ready"},
		"delayed":       {"storage.put", `"request":"PATCH /organisations/org_acme","json":{"credits":0},"delay":"10ms"`, "", "minutes_failed"},
		"the meeting":   {"storage.put", `"request":"POST /meetings/{id}/advance","json":{"until":"transcribing"},"after_effect":true`, "", "transcribing"},
		"a problem":     {"storage.put", `"request":"PATCH /organisations/org_acme","json":{"credits":-1}`, "credits: -1 is negative", "minutes_ready"},
		"a key":         {"meetings.get", `"request":"PATCH /organisations/org_acme/keys/key_ci","json":{"revoked":true}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t)
			status, _ := p.ask(t, "POST /faults", `{"match":{"operation":"`+c.match+`"},"faults":[{"kind":"call",`+c.call+`}]}`)
			require.Equal(t, 201, status)
			if name == "the meeting" {
				p.ask(t, "POST /scripts", `{"hold":"transcribing"}`)
			}
			id := p.meeting(t, "Weekly", "hello")
			if c.want == "" {
				status, _ = p.call(t, "GET /v1/meetings/"+id, "")
				assert.Equal(t, 401, status)
			} else if name != "the meeting" {
				p.ask(t, "POST /meetings/"+id+"/advance", `{"until":"minutes_ready"}`)
			}
			_, m := p.ask(t, "GET /meetings/"+id, "")
			if c.want != "" {
				assert.Equal(t, c.want, m["status"])
			}
			_, fault := p.ask(t, "GET /faults/flt_1", "")
			assert.EqualValues(t, 1, fault["applied"])
			problem, _ := fault["faults"].([]any)[0].(map[string]any)["problem"].(string)
			assert.Equal(t, c.problem, problem)
		})
	}
	p := launch(t)
	for request, want := range map[string]string{
		"GET /world":             "GET /world is not a request that changes the world; GET / lists the control API",
		"PATCH /v1/meetings/x":   "PATCH /v1/meetings/x is not a request that changes the world; GET / lists the control API",
		"/organisations":         `"/organisations" is not a method and a path, such as PATCH /organisations/org_acme`,
		"PATCH":                  `"PATCH" is not a method and a path, such as PATCH /organisations/org_acme`,
		"PATCH organisations/x":  `"PATCH organisations/x" is not a method and a path, such as PATCH /organisations/org_acme`,
		"PA TCH /organisations/": `"PA TCH /organisations/" is not a method and a path, such as PATCH /organisations/org_acme`,
	} {
		status, response := p.ask(t, "POST /faults", `{"faults":[{"kind":"reset"},{"kind":"call","request":"`+request+`"}]}`)
		assert.Equal(t, 400, status)
		assert.Equal(t, map[string]any{"status": 400.0, "field": "faults[1].request", "message": want}, response["problem"])
	}
	_, response := p.ask(t, "POST /faults", `{"faults":[{"kind":"call","request":"PATCH /organisations/org_acme","delay":"-1s"}]}`)
	assert.Equal(t, "faults[0].delay", response["problem"].(map[string]any)["field"])
	_, response = p.ask(t, "POST /faults", `{"faults":[{"kind":"call","reqest":"PATCH /x"}]}`)
	assert.Equal(t, map[string]any{"status": 400.0, "field": "faults[0].reqest", "message": "no such field"}, response["problem"])
}

// Meetings are scripted, held, moved and looked into.
func TestControl_ListsAndMovesMeetings(t *testing.T) {
	t.Parallel()
	p := launch(t, "-keep-audio")
	status, _ := p.ask(t, "POST /scripts", `{"title":"Held","hold":"audio_uploaded","outcome":"minutes_failed","stages":{"prepare":"1h","transcribe":"1h","write":"1h"}}`)
	require.Equal(t, 200, status)
	id := p.meeting(t, "Held", "hello")
	_, m := p.ask(t, "GET /meetings/"+id, "")
	assert.Equal(t, "audio_uploaded", m["status"])
	assert.Equal(t, true, m["held"])
	sum := sha256.Sum256([]byte("hello"))
	audio := m["audio"].(map[string]any)
	assert.EqualValues(t, 5, audio["size"])
	assert.Equal(t, hex.EncodeToString(sum[:]), audio["sha256"])
	status, bytes := p.send(t, "GET", p.control()+"/meetings/"+id+"/audio", "", "")
	assert.Equal(t, 200, status)
	assert.Equal(t, "hello", bytes)

	_, moved := p.ask(t, "POST /meetings/"+id+"/advance", "")
	assert.Equal(t, "transcribing", moved["status"], "by one")
	_, moved = p.ask(t, "POST /meetings/"+id+"/advance", `{"until":"minutes_ready"}`)
	assert.Equal(t, "minutes_failed", moved["status"], "to its end")
	_, m = p.ask(t, "GET /meetings/"+id, "")
	assert.Len(t, m["history"], 6)

	p.ask(t, "POST /scripts", `{"title":"Released","hold":"audio_uploaded","stages":{"prepare":"1ns","transcribe":"1h"}}`)
	id = p.meeting(t, "Released", "hello")
	status, moved = p.ask(t, "POST /meetings/"+id+"/release", "")
	assert.Equal(t, 200, status)
	assert.Equal(t, false, moved["held"])
	status, moved = p.ask(t, "POST /meetings/"+id+"/release", "")
	assert.Equal(t, 409, status, "no longer")
	assert.Equal(t, "no script holds meeting "+id+", which is transcribing; release it once held is true, or advance it", moved["problem"].(map[string]any)["message"])
}

// -speed shortens the stages of the world and of scripts alike.
func TestSpeed_ShortensStages(t *testing.T) {
	t.Parallel()
	p := launch(t, "-speed", "1e9")
	_, world := p.ask(t, "GET /world", "")
	assert.Equal(t, map[string]any{"prepare": "1ns", "transcribe": "1ns", "write": "1ns"}, world["stages"])
	_, script := p.ask(t, "POST /scripts", `{"stages":{"prepare":"1m0s","transcribe":"1m0s","write":"1m0s"}}`)
	assert.Equal(t, "1m0s", script["stages"].(map[string]any)["write"], "returned as it was sent")
	id := p.meeting(t, "Weekly", "hello")
	_, m := p.ask(t, "GET /meetings/"+id, "")
	assert.Equal(t, "minutes_ready", m["status"])
}

func TestControl_AddsMeetingsOfOthers(t *testing.T) {
	t.Parallel()
	p := launch(t)
	status, response := p.ask(t, "POST /organisations/org_acme/meetings", `{"title":"Standup","creator_id":"emp_ada","visibility":"organisation","status":"audio_uploaded","external_id":"s","count":3}`)
	require.Equal(t, http.StatusOK, status, "%v", response)
	ids := response["ids"].([]any)
	require.Len(t, ids, 3)
	_, m := p.ask(t, "POST /meetings/"+ids[2].(string)+"/advance", `{"until":"minutes_ready"}`)
	assert.Equal(t, "minutes_ready", m["status"])
	_, m = p.ask(t, "GET /meetings/"+ids[2].(string), "")
	assert.Equal(t, []any{"emp_ada", "s-3"}, []any{m["creator"], m["external_id"]})
	_, page := p.call(t, "GET /v1/meetings", "")
	assert.Len(t, page["meetings"], 3)
}

func TestControl_SetsPageSize(t *testing.T) {
	t.Parallel()
	p := launch(t)
	for range 5 {
		p.meeting(t, "Weekly", "")
	}
	lengths := func() (list []int) {
		for cursor := ""; ; {
			_, page := p.call(t, "GET /v1/meetings?limit=3&cursor="+cursor, "")
			list = append(list, len(page["meetings"].([]any)))
			next, more := page["next_cursor"].(string)
			if cursor = next; !more {
				return list
			}
		}
	}
	_, sizes := p.ask(t, "PUT /page-size", `{"sizes":[2,0,1]}`)
	assert.Equal(t, []any{2.0, 0.0, 1.0}, sizes["sizes"])
	assert.Equal(t, []int{2, 0, 1, 1, 1}, lengths())
	_, again := p.ask(t, "GET /page-size", "")
	assert.Equal(t, sizes, again)
	p.ask(t, "DELETE /page-size", "")
	assert.Equal(t, []int{3, 2}, lengths())
	_, sizes = p.ask(t, "GET /page-size", "")
	assert.Empty(t, sizes["sizes"])
}

// Requests, here and in the log, show everything except secrets.
func TestControl_ReturnsRequests(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "json", "-edge-limit", "1000000")
	p.ask(t, "POST /scripts", `{"hold":"transcribing"}`) // both polls find the same
	p.ask(t, "POST /scripts", `{"title":"Weekly","hold":"audio_uploaded"}`)
	id := p.meeting(t, "Weekly", "hello")
	p.call(t, "GET /v1/meetings/"+id, "")
	p.call(t, "GET /v1/meetings/"+id, "")
	p.call(t, "GET /v1/meetings/mtg_none", "")
	_, all := p.ask(t, "GET /requests", "")
	assert.Len(t, all["requests"], 6)
	_, some := p.ask(t, "GET /requests?operation=meetings.get&operation=storage.put&after=3", "")
	require.Len(t, some["requests"], 3)
	last := some["requests"].([]any)[2].(map[string]any)
	assert.Equal(t, "NOT_FOUND", last["code"])
	_, none := p.ask(t, "GET /requests?after=6", "")
	assert.Equal(t, []any{}, none["requests"])
	_, seen := p.ask(t, "GET /violations", "")
	require.Len(t, seen["violations"], 1)
	assert.Equal(t, "poll", seen["violations"].([]any)[0].(map[string]any)["kind"])

	var lines []string
	require.Eventually(t, func() bool {
		lines = strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
		return len(lines) >= 6
	}, time.Minute, time.Millisecond)
	require.Len(t, lines, 6, "one line a request, and none for the control API")
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[5]), &line))
	for _, name := range []string{"method", "path", "operation", "status", "code", "request_id", "took"} {
		assert.NotEmpty(t, line[name], name)
	}
	for _, secret := range []string{"key_ci", "Signature"} {
		assert.NotContains(t, p.stderr.String(), secret)
	}
}

func TestRateLimit_AppliesPerKey(t *testing.T) {
	t.Parallel()
	p := launch(t, "-edge-limit", "1", "-log", "text")
	rejected := 0
	for n := 0; rejected == 0 && n < 100; n++ { // two requests in one second of the clock
		if status, _ := p.call(t, "GET /v1/usage", ""); status == http.StatusTooManyRequests {
			rejected++
		}
	}
	assert.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), `fault="edge limit" status=429`) }, time.Minute, time.Millisecond)
	_, health := p.ask(t, "GET /health", "")
	assert.Equal(t, "ok", health["status"])
	assert.EqualValues(t, rejected, health["rejected_at_edge"])
}

// Requests are counted beyond what the journal keeps.
func TestControl_CountsRequests(t *testing.T) {
	t.Parallel()
	p := launch(t)
	counts := func() map[string]any {
		_, response := p.ask(t, "GET /requests/counts", "")
		return response["counts"].(map[string]any)
	}
	require.Empty(t, counts())
	p.meeting(t, "Weekly", "audio")
	p.call(t, "GET /v1/meetings/mtg_none", "")
	p.call(t, "GET /nowhere", "")
	p.call(t, "GET /nowhere", "")
	want := map[string]any{
		"meetings.create": map[string]any{"201": 1.0}, "meetings.upload_url": map[string]any{"200": 1.0}, "storage.put": map[string]any{"200": 1.0},
		"meetings.get": map[string]any{"404": 1.0}, "": map[string]any{"404": 2.0},
	}
	require.Equal(t, want, counts())
	p.ask(t, "POST /reset", "")
	require.Empty(t, counts())
}
