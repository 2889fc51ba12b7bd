package minutestest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := minutestest.NewServer(t)
		c := callerOf(s)
		id := c.create(t, "Noted")
		target := c.uploadURL(t, id)
		time.Sleep(time.Minute)
		c.send("PUT", target, "audio", withHeader("Content-Type", audioType))
		c.send("GET", "/v1/meetings?limit=5&cursor=x", "", withHeader("X-Trace", "t1"))
		c.send("POST", "/v1/nowhere", `{"new":true}`)

		list := s.Requests()
		require.Len(t, list, 5)
		for i, r := range list {
			assert.Equal(t, i+1, r.Seq)
		}
		create := list[0]
		upload := list[2]
		page := list[3]
		nowhere := list[4]
		assert.EqualValues(t, "meetings.create", create.Operation)
		assert.Equal(t, "POST", create.Method)
		assert.Equal(t, minutestest.BaseURL, "https://"+create.Host)
		assert.Equal(t, id, create.MeetingID)
		assert.Equal(t, "int_ci", create.Caller)
		assert.Equal(t, http.StatusCreated, create.Status)
		assert.JSONEq(t, `{"title":"Noted","date":"2026-11-21"}`, create.Body)
		assert.Equal(t, "Bearer (masked)", create.Header.Get("Authorization"))

		assert.Equal(t, minutes.OpUpload, upload.Operation)
		assert.Contains(t, target, "https://"+upload.Host+"/")
		assert.Equal(t, time.Minute, upload.At.Sub(create.At))
		assert.EqualValues(t, 5, upload.Bytes)
		assert.Empty(t, upload.Body)
		assert.NotEmpty(t, upload.Query)

		assert.Equal(t, "5", page.Query.Get("limit"))
		assert.Equal(t, "t1", page.Header.Get("X-Trace"))
		assert.Equal(t, "INVALID_CURSOR", page.Code)
		assert.NotEmpty(t, page.RequestID)

		assert.Empty(t, nowhere.Operation)
		assert.Equal(t, "/v1/nowhere", nowhere.Path)
		assert.Equal(t, http.StatusNotFound, nowhere.Status)
		assert.JSONEq(t, `{"new":true}`, nowhere.Body, "tests of Do read it back")

		assert.Len(t, s.Requests("meetings.create", minutes.OpUpload), 2)
		assert.Empty(t, s.Requests("usage.get"))
	})
}

// Neither keys nor signatures get out, wherever a client has put them.
func TestRequests_AreMasked(t *testing.T) {
	t.Parallel()
	w := minutestest.DefaultWorld()
	w.Organisations[0].Keys[0].Secret = "SECRET"
	s := minutestest.NewServer(t, minutestest.WithWorld(w), minutestest.WithoutAudit())
	c := callerOf(s)
	id := c.create(t, "Noted")
	target := c.uploadURL(t, id)
	c.send("PUT", target, "audio", withHeader("Content-Type", audioType), withHeader("Authorization", "Bearer SECRET"))
	c.send("GET", "/v1/SECRET/usage", "", func(r *http.Request) { r.Host = "SECRET.example" })
	c.send("POST", "/v1/projects", `{"name":"`+strings.Repeat("x", 16<<10-12)+`SECRET"}`) // cut in the middle of it
	c.send("GET", "/v1/usage?key=SECRET", "", withHeader("X-Api-Key", "SECRET"), withHeader("Cookie", "a=SECRET"))
	c.send("GET", "/v1/usage?access_token=hidden-1&client_secret=hidden-2", "",
		withHeader("Cookie", "session=hidden-3; theme hidden-4"), withHeader("X-Auth-Token", "hidden-5"),
		withHeader("X-Api-Key", "hidden-6"), withHeader("Set-Cookie", "hidden-7"))
	c.send("POST", "/v1/projects", `{"name":"SECRET"}`)
	c.send("GET", "/v1/meetings/SECRET", "")
	c.send("PUT", "/v1/meetings/SECRET/participants?SECRET", `{"SECRET":[]}`, withHeader("Content-Type", "SECRET"))
	s.Inject(minutestest.Match{}, minutestest.LoseResponse(), minutestest.Reset())
	c.send("POST", "/v1/projects", `{"name":"SECRET"}`)
	c.send("POST", "/v1/projects", `{"name":"SECRET"}`)

	stranger := &caller{c.client, c.base, "SECRET-of-nobody"}
	assert.Equal(t, http.StatusUnauthorized,
		stranger.send("GET", "/v1/usage?key="+stranger.key, "", withHeader("X-Api-Key", stranger.key)).status)

	list := s.Requests()
	require.Len(t, list, 13)
	text, err := json.Marshal(list)
	require.NoError(t, err)
	shown := string(text) + fmt.Sprintf("%+v", list)
	assert.NotContains(t, shown, "SECRET")
	assert.NotContains(t, shown, "hidden-")
	_, query, _ := strings.Cut(target, "?")
	require.NotEmpty(t, query)
	for _, param := range strings.Split(query, "&") {
		_, value, _ := strings.Cut(param, "=")
		if len(value) > 8 {
			assert.NotContains(t, shown, value)
		}
	}
	assert.Contains(t, shown, "(masked)")
}

// A violation names the request, which may hold the key, and the meeting, which may be called so.
func TestViolations_AreMasked(t *testing.T) {
	t.Parallel()
	w := minutestest.DefaultWorld()
	w.Organisations[0].Keys[0].Secret = "SECRET"
	s := minutestest.New(minutestest.WithWorld(w))
	c := callerOf(s)
	id := c.create(t, "SECRET")
	c.status(t, id)
	c.status(t, id)
	c.send("PUT", "/v1/meetings/SECRET/participants", `{}`, withHeader("Content-Type", "SECRET"))
	req, err := http.NewRequest(http.MethodGet, c.base+"/v1/meetings/SECRET", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer SECRET")
	left, err := c.client.Do(req)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	assert.Equal(t, []minutestest.ViolationKind{
		minutestest.ViolationPoll, minutestest.ViolationContentType, minutestest.ViolationOpenBody,
	}, kinds(s.Violations()))
	_ = left.Body.Close()
	text, err := json.Marshal(s.Violations())
	require.NoError(t, err)
	assert.NotContains(t, string(text)+fmt.Sprintf("%+v", s.Violations()), "SECRET")
}

// An error is recorded with its code, from the service, from storage and from a fault.
func TestRequests_HaveCodes(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	c := callerOf(s)
	target := c.uploadURL(t, c.create(t, "Noted"))
	s.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(503, "SlowDown"))
	for range 2 {
		c.send("PUT", target, "audio", withHeader("Content-Type", "audio/other"))
	}
	c.send("GET", "/v1/meetings/mtg_none", "")
	const envelope = `{"error":{"code":"SLOW_DOWN","message":"m","request_id":"r"}}`
	s.Inject(minutestest.Match{}, minutestest.Respond(429, "application/json", envelope))
	c.send("GET", "/v1/usage", "")
	var codes []string
	for _, r := range s.Requests() {
		codes = append(codes, r.Code)
		assert.Equal(t, r.Code != "", r.Status >= 400)
		assert.Equal(t, r.Code != "", r.RequestID != "")
	}
	assert.Equal(t, []string{"", "", "SlowDown", "SignatureDoesNotMatch", "NOT_FOUND", "SLOW_DOWN"}, codes)
}

func TestRequest_JSON(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	c := callerOf(s)
	c.create(t, "Noted")
	c.send("POST", "/v1/projects", `{"name":`)
	text, err := json.Marshal(s.Requests())
	require.NoError(t, err)
	var list []map[string]any
	require.NoError(t, json.Unmarshal(text, &list))
	assert.Equal(t, map[string]any{"title": "Noted", "date": "2026-11-21"}, list[0]["body"])
	assert.Equal(t, `{"name":`, list[1]["body"])
	assert.Equal(t, "meetings.create", list[0]["operation"])
}

func TestJournal_IsBounded(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	const requests = 4096
	const bytes = 16 << 10
	callerOf(s).send("POST", "/v1/projects", `{"name":"`+strings.Repeat("x", 2*bytes)+`"}`)
	assert.Len(t, s.Requests()[0].Body, bytes)
	request := httptest.NewRequest("GET", "/", nil)
	for range requests + 10 {
		s.Handler().ServeHTTP(httptest.NewRecorder(), request)
	}
	list := s.Requests()
	require.Len(t, list, requests)
	assert.Equal(t, 12, list[0].Seq)
	assert.Equal(t, requests+11, list[requests-1].Seq)
	_, state, _ := reported(t, s)
	assert.Len(t, state.Requests, requests)
	assert.Equal(t, requests+11, state.Ended, "the report says how many there were")
}

func TestWithLog_LogsEachRequest(t *testing.T) {
	t.Parallel()
	var told []minutestest.Request
	s := minutestest.NewServer(t, minutestest.WithLog(func(r minutestest.Request) { told = append(told, r) }))
	c := callerOf(s)
	c.create(t, "Noted")
	s.Inject(minutestest.Match{}, minutestest.LoseResponse())
	c.send("GET", "/v1/usage", "")
	assert.Equal(t, s.Requests(), told)
	assert.Len(t, told, 2)
}

// A client with the last byte of a response finds the request in the journal.
func TestRequests_AreThereBeforeTheLastByte(t *testing.T) {
	t.Parallel()
	noted := false
	s := minutestest.NewServer(t, minutestest.WithLog(func(minutestest.Request) { noted = true }))
	w := &lastByte{httptest.NewRecorder(), func() { assert.True(t, noted) }}
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/usage", nil))
	assert.Equal(t, w.Header().Get("Content-Length"), strconv.Itoa(w.Body.Len()))
}

// lastByte is a response that calls a function when its last byte arrives.
type lastByte struct {
	*httptest.ResponseRecorder
	arrives func()
}

func (l *lastByte) Write(p []byte) (int, error) {
	if l.Header().Get("Content-Length") == strconv.Itoa(l.Body.Len()+len(p)) {
		l.arrives()
	}
	return l.ResponseRecorder.Write(p)
}
