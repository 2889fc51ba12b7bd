package minutestest

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// onBothWires runs a test over the in-memory network and over a socket.
func onBothWires(t *testing.T, test func(t *testing.T, s *Server, c *caller)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s := NewServer(t)
		test(t, s, callerOf(s))
	})
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		s := NewServer(t)
		base, err := s.Listen("")
		require.NoError(t, err)
		// A connection used before would have net/http itself repeat a GET.
		transport := &http.Transport{ExpectContinueTimeout: 2 * time.Second, DisableKeepAlives: true}
		test(t, s, &caller{&http.Client{Transport: transport}, base, s.Key()})
	})
}

// Each fault hits the second of three GETs, once, and the client sees it.
func TestFaults_OfTheService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault Fault
		see   func(t *testing.T, a response)
	}{
		"reset":         {Reset(), func(t *testing.T, a response) { require.ErrorIs(t, a.err, syscall.ECONNRESET) }},
		"lost response": {LoseResponse(), func(t *testing.T, a response) { require.ErrorIs(t, a.err, syscall.ECONNRESET) }},
		"rate limit": {RateLimit(""), func(t *testing.T, a response) {
			assert.Equal(t, 429, a.status)
			assert.Empty(t, a.header.Get("Retry-After"))
			assert.Equal(t, "text/plain; charset=utf-8", a.header.Get("Content-Type"))
			assert.Empty(t, a.code())
		}},
		"rate limit for a time": {RateLimit("30"), func(t *testing.T, a response) {
			assert.Equal(t, 429, a.status)
			assert.Equal(t, "30", a.header.Get("Retry-After"))
		}},
		"rate limit with headers": {RateLimit("").WithHeader("Retry-After", "9").WithHeader("X-Edge", "yes"), func(t *testing.T, a response) {
			assert.Equal(t, []string{"9", "yes"}, []string{a.header.Get("Retry-After"), a.header.Get("X-Edge")})
		}},
		"internal": {Refuse(minutes.ErrInternal), func(t *testing.T, a response) {
			assert.Equal(t, 500, a.status)
			assert.Equal(t, "INTERNAL_ERROR", a.code())
			assert.Contains(t, a.text, `"request_id":"req_`)
		}},
		"internal, after effect": {Refuse(minutes.ErrInternal).AfterEffect(), func(t *testing.T, a response) {
			assert.Equal(t, "INTERNAL_ERROR", a.code())
		}},
		"bad gateway": {BadGateway(), func(t *testing.T, a response) {
			assert.Equal(t, 502, a.status)
			assert.Contains(t, a.header.Get("Content-Type"), "text/html")
			assert.Contains(t, a.text, "<h1>")
		}},
		"response": {Respond(200, "", "null"), func(t *testing.T, a response) {
			assert.Equal(t, 200, a.status)
			assert.NotContains(t, a.header, "Content-Type")
			assert.Equal(t, "null", a.text)
		}},
		"truncated": {Truncate(5), func(t *testing.T, a response) {
			require.ErrorIs(t, a.err, io.ErrUnexpectedEOF)
			assert.Equal(t, 200, a.status)
			assert.Len(t, a.text, 5)
		}},
		"truncated by a byte": {Truncate(1 << 40), func(t *testing.T, a response) {
			require.ErrorIs(t, a.err, io.ErrUnexpectedEOF)
			assert.Equal(t, a.header.Get("Content-Length"), strconv.Itoa(len(a.text)+1))
		}},
		"delay": {Delay(10 * time.Millisecond), func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 200, a.status)
		}},
		"delayed response": {Delay(10 * time.Millisecond).AfterEffect(), func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 200, a.status)
			assert.True(t, json.Valid([]byte(a.text)))
		}},
		"drip": {Drip(10 * time.Millisecond), func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 200, a.status)
			assert.True(t, json.Valid([]byte(a.text)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, s *Server, caller *caller) {
				i := s.Inject(Match{Operation: "meetings.list", Nth: 2}, c.fault)
				var hit response
				for n := range 3 {
					a := caller.call("GET", "/v1/meetings", "")
					if n == 1 {
						hit = a
						c.see(t, a)
						continue
					}
					require.NoError(t, a.err)
					assert.Equal(t, http.StatusOK, a.status)
					assert.Contains(t, a.text, `"meetings"`)
				}
				assert.Equal(t, 1, i.Applied())
				assert.Equal(t, 2, i.Seen())
				requests := s.Requests()
				require.Len(t, requests, 3)
				assert.Equal(t, c.fault.String(), requests[1].Fault)
				if a := hit; a.err == nil || a.status != 0 {
					assert.Equal(t, a.status, requests[1].Status)
				} else {
					assert.Zero(t, requests[1].Status, "no response was sent")
				}
				assert.Equal(t, hit.code(), requests[1].Code)
			})
		})
	}
}

// Refuse responds with the status that section 7 gives the code.
func TestRefuse_HasTheCodesStatus(t *testing.T) {
	t.Parallel()
	for status, codes := range map[int]string{
		400: "INVALID_REQUEST BAD_REQUEST INVALID_EMAIL INVALID_LIMIT INVALID_CURSOR INVALID_DATE INVALID_DATE_RANGE INVALID_TIME INVALID_EXTERNAL_ID INVALID_SHARED_WITH",
		401: "UNAUTHENTICATED",
		403: "IP_NOT_ALLOWED API_ACCESS_DISABLED PERSONAL_API_KEYS_DISABLED INSUFFICIENT_SCOPE ORGANISATION_SUSPENDED ORGANISATION_EXPIRED FORBIDDEN",
		404: "NOT_FOUND",
		409: "EMAIL_TAKEN MEMBER_LIMIT_EXCEEDED EXTERNAL_ID_TAKEN MINUTES_NOT_READY TRANSCRIPT_NOT_READY PARTICIPANTS_LOCKED",
		500: "INTERNAL_ERROR",
	} {
		for code := range strings.FieldsSeq(codes) {
			s := NewServer(t)
			s.Inject(Match{}, Refuse(minutes.ErrorCode(code)))
			a := callerOf(s).call("GET", "/v1/usage", "")
			assert.Equal(t, status, a.status, code)
			assert.Equal(t, code, a.code())
		}
	}
}

// If a truncated response has no body, it is lost.
func TestTruncate_WithoutABody(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, s *Server, c *caller) {
		id := c.create(t, "Gone")
		s.Inject(Match{Operation: "meetings.delete"}, Truncate(0))
		a := c.call("DELETE", "/v1/meetings/"+id, "")
		require.ErrorIs(t, a.err, syscall.ECONNRESET)
		assert.Zero(t, a.status)
		_, ok := s.Meeting(id)
		assert.False(t, ok, "it has taken effect")
	})
}

// Whether a fault lets the request take effect, or keeps it from it.
func TestFaults_BeforeAndAfterEffect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  Fault
		effect bool
	}{
		"reset":                     {Reset(), false},
		"reset, after effect":       {Reset().AfterEffect(), true},
		"reset while uploading":     {ResetUpload(3), false},
		"lost response":             {LoseResponse(), true},
		"rate limit":                {RateLimit("1"), false},
		"refuse":                    {Refuse(minutes.ErrInternal), false},
		"refuse, after effect":      {Refuse(minutes.ErrInternal).AfterEffect(), true},
		"bad gateway":               {BadGateway(), false},
		"bad gateway, after effect": {BadGateway().AfterEffect(), true},
		"truncate":                  {Truncate(3), true},
		"delay":                     {Delay(time.Millisecond), true},
		"delay, after effect":       {Delay(time.Millisecond).AfterEffect(), true},
		"drip":                      {Drip(time.Millisecond), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, s *Server, caller *caller) {
				s.Inject(Match{Operation: "projects.create"}, c.fault.Delayed(time.Millisecond))
				caller.call("POST", "/v1/projects", `{"name":"Applied"}`)
				assert.Equal(t, c.effect, strings.Contains(caller.call("GET", "/v1/projects", "").text, "Applied"))
			})
		})
	}
}

// Faults of storage, met by an upload that sends its body at once and by one that waits for leave
// to.
func TestFaults_OfStorage(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for name, c := range map[string]struct {
		fault   Fault
		arrives bool
		see     func(t *testing.T, a response)
	}{
		"rejected": {RefuseUpload(503, "SlowDown"), false, func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 503, a.status)
			assert.Contains(t, a.header.Get("Content-Type"), "application/xml")
			var rejection struct {
				XMLName                  xml.Name `xml:"Error"`
				Code, Message, RequestId string
			}
			require.NoError(t, xml.Unmarshal([]byte(a.text), &rejection))
			assert.Equal(t, "SlowDown", rejection.Code)
			assert.NotEmpty(t, rejection.Message)
			assert.NotEmpty(t, rejection.RequestId)
		}},
		"reset":             {Reset(), false, func(t *testing.T, a response) { require.Error(t, a.err) }},
		"reset after bytes": {ResetUpload(100_000), false, func(t *testing.T, a response) { require.Error(t, a.err) }},
		"lost response":     {LoseResponse(), true, func(t *testing.T, a response) { require.ErrorIs(t, a.err, syscall.ECONNRESET) }},
		"expired": {ExpireURL(), false, func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 403, a.status)
			assert.Contains(t, a.text, "<Code>AccessDenied</Code><Message>Request has expired</Message>")
		}},
		"rejected, after effect": {RefuseUpload(403, "AccessDenied").AfterEffect(), true, func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 403, a.status)
		}},
	} {
		for _, expect := range []string{"", "100-continue"} {
			t.Run(name+expect, func(t *testing.T) {
				t.Parallel()
				onBothWires(t, func(t *testing.T, s *Server, caller *caller) {
					if expect == "" && caller.base != BaseURL && !c.arrives {
						t.Skip("a socket may lose a response that comes before the body")
					}
					id := caller.create(t, "Applied")
					url := caller.uploadURL(t, id)
					i := s.Inject(Match{Operation: minutes.OpUpload, MeetingID: id}, c.fault)
					put := func() response {
						return caller.call("PUT", url, strings.Repeat("x", size), withHeader("Content-Type", audioType), withHeader("Expect", expect))
					}
					c.see(t, put())
					m, _ := s.Meeting(id)
					assert.Equal(t, c.arrives, m.Audio != nil)
					if !c.arrives {
						assert.Equal(t, http.StatusOK, put().status, "the URL still serves")
					}
					assert.Equal(t, 1, i.Applied())
				})
			})
		}
	}
}

func TestResetUpload_CountsBytes(t *testing.T) {
	t.Parallel()
	s := NewServer(t)
	c := callerOf(s)
	url := c.uploadURL(t, c.create(t, "Applied"))
	s.Inject(Match{Operation: minutes.OpUpload}, ResetUpload(100_000), ResetUpload(0))
	require.Error(t, c.call("PUT", url, strings.Repeat("x", 1<<20), withHeader("Content-Type", audioType)).err)
	require.Error(t, c.call("PUT", url, strings.Repeat("x", 1<<20), withHeader("Content-Type", audioType)).err)
	puts := s.Requests(minutes.OpUpload)
	assert.EqualValues(t, 100_000, puts[0].Bytes)
	assert.EqualValues(t, 0, puts[1].Bytes)
}

// A wait of hours is the bubble's, and ends with its client.
func TestFaults_UseVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(t)
		c := callerOf(s)
		for _, fault := range []Fault{Delay(time.Hour), Drip(time.Hour), Refuse(minutes.ErrInternal).Delayed(time.Hour)} {
			start := time.Now()
			s.Inject(Match{}, fault)
			require.NoError(t, c.call("GET", "/v1/usage", "").err)
			assert.Equal(t, time.Hour, time.Since(start), fault)
		}
		c.client = &http.Client{Transport: c.client.Transport, Timeout: time.Minute}
		for _, fault := range []Fault{Delay(time.Hour), Drip(time.Hour)} {
			start := time.Now()
			s.Inject(Match{}, fault)
			require.Error(t, c.call("POST", "/v1/projects", `{"name":"x"}`).err)
			synctest.Wait()
			assert.Equal(t, time.Minute, time.Since(start))
		}
		hit := s.Requests("projects.create")
		require.Len(t, hit, 2, "both ended with their client")
		assert.Equal(t, time.Minute, hit[0].Took)
		assert.Equal(t, 1, strings.Count(c.call("GET", "/v1/projects", "").text, `"x"`), "only the second took effect")
		assert.Len(t, s.Violations(), 1, "and was a repeat")
		s.forgive()
	})
}

func TestFaults_WorkOnABareHandler(t *testing.T) {
	t.Parallel()
	s := NewServer(t, WithoutAudit())
	s.Inject(Match{}, Reset(), Truncate(4))
	request := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/v1/usage", nil)
		r.Header.Set("Authorization", "Bearer "+s.Key())
		s.Handler().ServeHTTP(w, r)
		return w
	}
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { request() })
	assert.Equal(t, 4, request().Body.Len())
	assert.Len(t, s.Requests(), 2)
}

func TestInject_SelectsMatchingRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		match func(id string) Match
		want  string // which of the calls below are hit
	}{
		"everything":   {func(string) Match { return Match{Times: Always} }, "12345"},
		"one":          {func(string) Match { return Match{} }, "1"},
		"from third":   {func(string) Match { return Match{Nth: 3, Times: Always} }, "345"},
		"third, twice": {func(string) Match { return Match{Nth: 3, Times: 2} }, "34"},
		"operation":    {func(string) Match { return Match{Operation: "meetings.get", Times: Always} }, "235"},
		"key":          {func(string) Match { return Match{Key: "key_ada", Times: Always} }, "3"},
		"meeting":      {func(id string) Match { return Match{MeetingID: id, Times: Always} }, "23"},
		"path":         {func(string) Match { return Match{Path: "/v1/meetings", Times: Always} }, "1"},
		"pattern":      {func(string) Match { return Match{Path: "/v1/*", Times: Always} }, "14"},
		"all at once": {func(id string) Match {
			return Match{Operation: "meetings.get", MeetingID: id, Path: "/v1/*/*", Key: "key_ci"}
		}, "2"},
		"unknown route": {func(string) Match { return Match{Path: "/v1/unknown"} }, "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewServer(t, WithoutAudit())
			caller := callerOf(s)
			first, second := caller.create(t, "One"), caller.create(t, "Two")
			s.Inject(c.match(first), Respond(418, "", ""))
			hit := ""
			for _, call := range []struct{ n, key, path string }{
				{"1", "key_ci", "/v1/meetings"},
				{"2", "key_ci", "/v1/meetings/" + first},
				{"3", "key_ada", "/v1/meetings/" + first},
				{"4", "key_ci", "/v1/unknown"},
				{"5", "key_ci", "/v1/meetings/" + second},
			} {
				caller.key = call.key
				if caller.call("GET", call.path, "").status == 418 {
					hit += call.n
				}
			}
			assert.Equal(t, c.want, hit)
		})
	}
}

// A request is hit once; injections take their turns in order.
func TestInject_AppliesEarliestInjectionFirst(t *testing.T) {
	t.Parallel()
	s := NewServer(t)
	c := callerOf(s)
	a := s.Inject(Match{Operation: "usage.get"}, Respond(501, "", ""), Respond(502, "", ""))
	b := s.Inject(Match{Operation: "usage.get", Times: 3}, Respond(503, "", ""), Respond(504, "", ""))
	var got []int
	for range 6 {
		got = append(got, c.call("GET", "/v1/usage", "").status)
	}
	assert.Equal(t, []int{501, 502, 503, 504, 503, 200}, got)
	assert.Equal(t, 2, a.Applied())
	assert.Equal(t, 3, b.Applied())

	// Each counts the requests that the others apply to.
	s.Inject(Match{}, Respond(501, "", ""))
	s.Inject(Match{Nth: 2}, Respond(502, "", ""))
	assert.Equal(t, 501, c.call("GET", "/v1/usage", "").status)
	assert.Equal(t, 502, c.call("GET", "/v1/usage", "").status)

	always := s.Inject(Match{Times: Always}, BadGateway())
	assert.Equal(t, 502, c.call("GET", "/v1/usage", "").status)
	always.Stop()
	assert.Equal(t, 200, c.call("GET", "/v1/usage", "").status)
}

// The count is exact however many call at once.
func TestInject_CountsConcurrentRequestsExactly(t *testing.T) {
	t.Parallel()
	s := NewServer(t)
	i := s.Inject(Match{Operation: "usage.get", Nth: 11, Times: 50}, RateLimit(""))
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	for range 10 {
		wg.Go(func() {
			c := callerOf(s)
			for range 20 {
				a := c.call("GET", "/v1/usage", "")
				mu.Lock()
				counts[a.status]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, map[int]int{200: 150, 429: 50}, counts)
	assert.Equal(t, 50, i.Applied())
}

func TestInject_UnusedFailsTheTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		test func(s *Server)
		want string
	}{
		"never matched": {func(s *Server) { s.Inject(Match{Operation: "usage.get"}, Reset()) }, `the fault "reset", injected into requests {"operation":"usage.get"}, was applied 0 times, and 0 requests matched`},
		"too late":      {func(s *Server) { s.Inject(Match{Nth: 2}, Reset()); callerOf(s).call("GET", "/v1/usage", "") }, `"reset", injected into requests {"nth":2}, was applied 0 times, and 1 request matched`},
		"half":          {func(s *Server) { s.Inject(Match{}, BadGateway(), Reset()); callerOf(s).call("GET", "/v1/usage", "") }, `"reset", injected into requests {}, was applied 1 time, and 1 request matched`},
		"always, never": {func(s *Server) { s.Inject(Match{Times: Always}, Reset()) }, "was applied 0 times"},
		"always, once":  {func(s *Server) { s.Inject(Match{Times: Always}, Reset()); callerOf(s).call("GET", "/v1/usage", "") }, ""},
		"optional":      {func(s *Server) { s.Inject(Match{}, Reset()).Optional() }, ""},
		"stopped":       {func(s *Server) { s.Inject(Match{}, Reset()).Stop() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := nested(func(tb *fakeTB) { c.test(NewServer(tb)) })
			if c.want == "" {
				assert.Empty(t, failures)
				return
			}
			require.Len(t, failures, 1)
			assert.Contains(t, failures[0], c.want)
			assert.Regexp(t, `^minutestest: fault_test\.go:\d+: .*: correct its Match, or call Optional$`, failures[0])
		})
	}
}

func TestFault_JSONRoundTrip(t *testing.T) {
	t.Parallel()
	for _, f := range []Fault{
		Delay(2 * time.Second), Reset(), LoseResponse(), ResetUpload(65536), RateLimit("30"), Refuse(minutes.ErrInternal),
		RefuseUpload(503, "SlowDown"), BadGateway(), Truncate(10), Drip(5 * time.Second), Truncate(0),
		Refuse(minutes.ErrNotFound).AfterEffect().Delayed(time.Minute),
		ExpireURL(), SlowUpload(1000), ShowStatus("archiving"), RateLimit("").WithHeader("Retry-After", "5"),
	} {
		text, err := json.Marshal(f)
		require.NoError(t, err)
		var again Fault
		require.NoError(t, json.Unmarshal(text, &again), string(text))
		assert.Equal(t, f, again, string(text))
	}
	for text, want := range map[string]string{
		`{"kind":"explode"}`:                                `"explode"`,
		`{}`:                                                `kind ""`,
		`{"kind":"reset","byte":1}`:                         `unknown field "byte"`,
		`{"kind":"delay","delay":"2"}`:                      "\"2\" is not a duration",
		`{"kind":"delay","delay":"-2s"}`:                    "negative",
		`{"kind":"truncate","bytes":-1}`:                    "bytes: -1 is negative",
		`{"kind":"reset_upload","bytes":-1}`:                "bytes: -1 is negative",
		`{"kind":"refuse","code":"NOPE"}`:                   `no code "NOPE"`,
		`{"kind":"respond","status":99}`:                    "status 99",
		`{"kind":"refuse_upload","status":503}`:             "without a code",
		`{"kind":"reset_upload","after_effect":true}`:       "never comes after the effect",
		`{"kind":"slow_upload"}`:                            "not at least 1",
		`{"kind":"show_status"}`:                            "without a status",
		`{"kind":"call"}`:                                   "works only within one process",
		`{"kind":"reset","header":{"A":"b"}}`:               "reset has no response of its own",
		`{"kind":"delay","delay":"2s","retry_after":"1"}`:   "retry_after: delay has no response of its own",
		`{"kind":"rate_limit","header":{"A":1}}`:            "a number does not fit here",
		`{"kind":"rate_limit","header":"A"}`:                "header: a string does not fit here",
		`{"kind":"bad_certificate"}`:                        "works only within one process",
		`{"kind":"respond","status":"502"}`:                 "status: a string does not fit here",
		`{"kind":"respond","status":502,"content_type":[]}`: "content_type: a array does not fit here",
	} {
		var f Fault
		require.ErrorContains(t, json.Unmarshal([]byte(text), &f), want)
	}
	var m Match
	require.NoError(t, json.Unmarshal([]byte(`{"operation":"meetings.get","nth":2,"times":-1}`), &m))
	assert.Equal(t, Match{Operation: "meetings.get", Nth: 2, Times: Always}, m)
	require.NoError(t, m.Validate())
	for _, bad := range []Match{{Operation: "x"}, {Path: "["}, {Nth: -1}, {Times: -2}} {
		require.Error(t, bad.Validate())
	}
}

// net/http alone would swallow a panic in a function of the test, and the test could pass.
func TestCall_PanicCrashesTheProgram(t *testing.T) {
	const variable = "MINUTESTEST_PANIC"
	if os.Getenv(variable) != "" {
		s := New()
		s.Inject(Match{}, Call(func(Request) { boom() }))
		callerOf(s).call("GET", "/v1/meetings", "")
		select {}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCall_PanicCrashesTheProgram$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "panic: minutestest: a function of the test panicked: runtime error: invalid memory address")
	assert.Contains(t, string(out), "minutestest.boom(")
}

func boom() {
	var key *Key
	key.Revoked = true
}
