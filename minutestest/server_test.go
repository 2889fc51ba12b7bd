package minutestest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func TestMain(m *testing.M) { testbase.Main(m) }

// fakeTB is a test that a test can watch fail.
type fakeTB struct {
	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf("fatal: "+format, args...)
	runtime.Goexit()
}

func (f *fakeTB) Cleanup(cleanup func()) { f.cleanups = append(f.cleanups, cleanup) }

// nested runs a test within a test and returns how it fails.
func nested(test func(tb *fakeTB)) []string {
	tb := &fakeTB{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(tb)
	}()
	<-done
	for _, v := range slices.Backward(tb.cleanups) {
		v()
	}
	return tb.errors
}

// caller is a plain HTTP client of a Server, with none of the SDK's caution.
type caller struct {
	client *http.Client
	base   string
	key    string
}

func callerOf(s *minutestest.Server) *caller {
	return &caller{s.HTTPClient(), minutestest.BaseURL, s.Key()}
}

// response is a response as a caller sees it.
type response struct {
	status int
	header http.Header
	text   string
	err    error
}

func (a response) field(name string) string {
	var fields map[string]any
	_ = json.Unmarshal([]byte(a.text), &fields)
	text, _ := fields[name].(string)
	return text
}

func (a response) code() string {
	var envelope struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(a.text), &envelope)
	return envelope.Error.Code
}

// send makes one request, to a path of the service or to any URL.
func (c *caller) send(method, url, body string, set ...func(*http.Request)) response {
	if strings.HasPrefix(url, "/") {
		url = c.base + url
	}
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, url, reader)
	if err != nil {
		return response{err: err}
	}
	if strings.HasPrefix(url, c.base+"/v1") {
		req.Header.Set("Authorization", "Bearer "+c.key)
		req.Header.Set("Content-Type", "application/json")
	}
	for _, f := range set {
		f(req)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return response{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(text), err}
}

func withHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// unjudged returns a Server that does not fail the test, which looks at the violations itself.
func unjudged(t *testing.T, opts ...minutestest.Option) *minutestest.Server {
	s := minutestest.New(opts...)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

const audioType = "audio/ogg"

// create makes a meeting and returns its id.
func (c *caller) create(t testing.TB, title string) string {
	t.Helper()
	a := c.send("POST", "/v1/meetings", fmt.Sprintf(`{"title":%q,"date":"2026-11-21"}`, title))
	require.NoError(t, a.err)
	require.Equal(t, http.StatusCreated, a.status, a.text)
	return a.field("id")
}

func (c *caller) uploadURL(t testing.TB, id string) string {
	t.Helper()
	a := c.send("POST", "/v1/meetings/"+id+"/upload-url", `{"content_type":"`+audioType+`"}`)
	require.NoError(t, a.err)
	require.Equal(t, http.StatusOK, a.status, a.text)
	return a.field("upload_url")
}

// upload makes a meeting with audio and returns its id.
func (c *caller) upload(t testing.TB, title, audio string) string {
	t.Helper()
	id := c.create(t, title)
	a := c.send("PUT", c.uploadURL(t, id), audio, withHeader("Content-Type", audioType))
	require.NoError(t, a.err)
	require.Equal(t, http.StatusOK, a.status, a.text)
	return id
}

func (c *caller) status(t testing.TB, id string) minutes.Status {
	t.Helper()
	a := c.send("GET", "/v1/meetings/"+id, "")
	require.NoError(t, a.err)
	require.Equal(t, http.StatusOK, a.status, a.text)
	return minutes.Status(a.field("status"))
}

// slow is the default World with stages of minutes.
func slow() minutestest.World {
	w := minutestest.DefaultWorld()
	w.Stages = minutestest.Stages{Prepare: time.Minute, Transcribe: 10 * time.Minute, Write: 5 * time.Minute}
	return w
}

// A Server serves bubbles that begin after it, one after the other, and its own.
func TestServer_ServesManyBubbles(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t, minutestest.WithWorld(slow()))
	for i := range testbase.Many(300, 4) {
		synctest.Test(t, func(t *testing.T) {
			srv := s
			if i%2 == 1 {
				srv = minutestest.NewServer(t, minutestest.WithWorld(slow()))
			}
			c := callerOf(srv)
			id := c.upload(t, "Weekly", "audio")
			time.Sleep(16*time.Minute - 1)
			assert.Equal(t, minutes.StatusGeneratingMinutes, c.status(t, id))
			time.Sleep(time.Nanosecond)
			assert.Equal(t, minutes.StatusMinutesReady, c.status(t, id))
			m, ok := srv.Meeting(id)
			require.True(t, ok)
			assert.Len(t, m.History, 6)
			assert.Nil(t, m.Audio.Bytes)
		})
	}
}

func TestListen_ServesOnASocket(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	base, err := s.Listen("")
	require.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := &caller{&http.Client{Transport: transport}, base, s.Key()}
	id := c.create(t, "Over a socket")
	url := c.uploadURL(t, id)
	assert.True(t, strings.HasPrefix(url, base+"/"), url)
	a := c.send("PUT", url, "audio", withHeader("Content-Type", audioType))
	assert.Equal(t, http.StatusOK, a.status)

	_, err = s.Listen(strings.TrimPrefix(base, "http://"))
	require.ErrorContains(t, err, "address already in use")
	require.NoError(t, s.Close())
	require.Error(t, c.send("GET", "/v1/meetings", "").err)
	require.NoError(t, s.Close(), "twice")
}

func TestListen_FailsInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := minutestest.NewServer(t).Listen("")
		require.ErrorContains(t, err, "bubble")
	})
}

func TestHandler_ServesServiceAndStorage(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	srv := httptest.NewTLSServer(s.Handler())
	defer srv.Close()
	c := &caller{srv.Client(), srv.URL, s.Key()}
	assert.True(t, strings.HasPrefix(c.uploadURL(t, c.create(t, "Over TLS")), srv.URL+"/"))
}

func TestWithAudio_KeepsAudio(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t, minutestest.WithAudio())
	m, ok := s.Meeting(callerOf(s).upload(t, "Kept", "every byte"))
	require.True(t, ok)
	assert.Equal(t, "every byte", string(m.Audio.Bytes))
}

func TestClient_HasItsOwnKey(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	m, created, err := s.Client().Meetings.Create(t.Context(),
		&minutes.MeetingCreateParams{Title: "Ours", Date: "2026-11-21", Visibility: minutes.VisibilityPrivate})
	require.NoError(t, err)
	assert.True(t, created)
	_, err = s.ClientWithKey("key_ben").Meetings.Get(t.Context(), m.ID)
	require.ErrorIs(t, err, minutes.ErrNotFound)
	_, err = s.ClientWithKey("key_x").Meetings.Get(t.Context(), m.ID)
	require.ErrorIs(t, err, minutes.ErrUnauthenticated)
}

func TestKey_IsTheFirstWithEveryScope(t *testing.T) {
	t.Parallel()
	w := minutestest.DefaultWorld()
	o := &w.Organisations[0]
	o.Keys = []minutestest.Key{
		{Secret: "personal", MemberID: "emp_ada"},
		{Secret: "limited", IntegrationID: "int_ci", Scopes: []minutes.Scope{minutes.ScopeMeetingsRead}},
		{Secret: "revoked", IntegrationID: "int_ci", Revoked: true},
		{Secret: "expiring", IntegrationID: "int_ci", ExpiresAt: 1},
		{Secret: "good", IntegrationID: "int_ci"},
	}
	assert.Equal(t, "good", minutestest.NewServer(t, minutestest.WithWorld(w)).Key())
	o.Keys[4].Scopes = []minutes.Scope{"minutes:read", "meetings:delete", "meetings:write", "meetings:read",
		"employees:write", "employees:read"}
	assert.Equal(t, "good", minutestest.NewServer(t, minutestest.WithWorld(w)).Key(), "with a list of all")
	o.Keys = o.Keys[:4]
	assert.Empty(t, minutestest.NewServer(t, minutestest.WithWorld(w)).Key())
}

// Advance needs no clock, and no bubble.
func TestAdvance_MovesMeetings(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t, minutestest.WithWorld(slow()))
	c := callerOf(s)
	id := c.upload(t, "Quick", "audio")
	status := s.Advance(id, "")
	assert.Equal(t, minutes.StatusTranscribing, status)
	status = s.Advance(id, minutes.StatusMinutesReady)
	assert.Equal(t, minutes.StatusMinutesReady, status)
	assert.Equal(t, minutes.StatusMinutesReady, c.status(t, id))
}

func TestDocumentation_ListsAllDecisions(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/assumptions.md")
	require.NoError(t, err)
	for n := range 25 {
		assert.Contains(t, string(page), fmt.Sprintf("**D%d**", n+1))
	}
}
