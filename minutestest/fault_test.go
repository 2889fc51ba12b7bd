package minutestest_test

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
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// onBothWires runs a test over the in-memory network and over a socket.
func onBothWires(t *testing.T, test func(t *testing.T, s *minutestest.Server, c *caller)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s := minutestest.NewServer(t)
		test(t, s, callerOf(s))
	})
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		s := minutestest.NewServer(t)
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
		fault minutestest.Fault
		see   func(t *testing.T, a response)
	}{
		"reset": {minutestest.Reset(),
			func(t *testing.T, a response) { require.ErrorIs(t, a.err, syscall.ECONNRESET) }},
		"lost response": {minutestest.LoseResponse(),
			func(t *testing.T, a response) { require.ErrorIs(t, a.err, syscall.ECONNRESET) }},
		"rate limit": {minutestest.RateLimit(""), func(t *testing.T, a response) {
			assert.Equal(t, 429, a.status)
			assert.Empty(t, a.header.Get("Retry-After"))
			assert.Equal(t, "text/plain; charset=utf-8", a.header.Get("Content-Type"))
			assert.Empty(t, a.code())
		}},
		"rate limit for a time": {minutestest.RateLimit("30"), func(t *testing.T, a response) {
			assert.Equal(t, 429, a.status)
			assert.Equal(t, "30", a.header.Get("Retry-After"))
		}},
		"rate limit with headers": {minutestest.RateLimit("").WithHeader("Retry-After", "9").WithHeader("X-Edge",
			"yes"), func(t *testing.T, a response) {
			assert.Equal(t, []string{"9", "yes"}, []string{a.header.Get("Retry-After"), a.header.Get("X-Edge")})
		}},
		"internal": {minutestest.Refuse(minutes.ErrInternal), func(t *testing.T, a response) {
			assert.Equal(t, 500, a.status)
			assert.Equal(t, "INTERNAL_ERROR", a.code())
			assert.Contains(t, a.text, `"request_id":"req_`)
		}},
		"internal, after effect": {minutestest.Refuse(minutes.ErrInternal).AfterEffect(),
			func(t *testing.T, a response) {
				assert.Equal(t, "INTERNAL_ERROR", a.code())
			}},
		"bad gateway": {minutestest.BadGateway(), func(t *testing.T, a response) {
			assert.Equal(t, 502, a.status)
			assert.Contains(t, a.header.Get("Content-Type"), "text/html")
			assert.Contains(t, a.text, "<h1>")
		}},
		"response": {minutestest.Respond(200, "", "null"), func(t *testing.T, a response) {
			assert.Equal(t, 200, a.status)
			assert.NotContains(t, a.header, "Content-Type")
			assert.Equal(t, "null", a.text)
		}},
		"truncated": {minutestest.Truncate(5), func(t *testing.T, a response) {
			require.ErrorIs(t, a.err, io.ErrUnexpectedEOF)
			assert.Equal(t, 200, a.status)
			assert.Len(t, a.text, 5)
		}},
		"truncated by a byte": {minutestest.Truncate(1 << 40), func(t *testing.T, a response) {
			require.ErrorIs(t, a.err, io.ErrUnexpectedEOF)
			assert.Equal(t, a.header.Get("Content-Length"), strconv.Itoa(len(a.text)+1))
		}},
		"delay": {minutestest.Delay(10 * time.Millisecond), func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 200, a.status)
		}},
		"delayed response": {minutestest.Delay(10 * time.Millisecond).AfterEffect(), func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 200, a.status)
			assert.True(t, json.Valid([]byte(a.text)))
		}},
		"drip": {minutestest.Drip(10 * time.Millisecond), func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 200, a.status)
			assert.True(t, json.Valid([]byte(a.text)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, s *minutestest.Server, caller *caller) {
				i := s.Inject(minutestest.Match{Operation: "meetings.list", Nth: 2}, c.fault)
				var hit response
				for n := range 3 {
					a := caller.send("GET", "/v1/meetings", "")
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
		400: "INVALID_REQUEST BAD_REQUEST INVALID_EMAIL INVALID_LIMIT INVALID_CURSOR INVALID_DATE " +
			"INVALID_DATE_RANGE INVALID_TIME INVALID_EXTERNAL_ID INVALID_SHARED_WITH",
		401: "UNAUTHENTICATED",
		403: "IP_NOT_ALLOWED API_ACCESS_DISABLED PERSONAL_API_KEYS_DISABLED INSUFFICIENT_SCOPE " +
			"ORGANISATION_SUSPENDED ORGANISATION_EXPIRED FORBIDDEN",
		404: "NOT_FOUND",
		409: "EMAIL_TAKEN MEMBER_LIMIT_EXCEEDED EXTERNAL_ID_TAKEN MINUTES_NOT_READY TRANSCRIPT_NOT_READY " +
			"PARTICIPANTS_LOCKED",
		500: "INTERNAL_ERROR",
	} {
		for code := range strings.FieldsSeq(codes) {
			s := minutestest.NewServer(t)
			s.Inject(minutestest.Match{}, minutestest.Refuse(minutes.ErrorCode(code)))
			a := callerOf(s).send("GET", "/v1/usage", "")
			assert.Equal(t, status, a.status, code)
			assert.Equal(t, code, a.code())
		}
	}
}

// If a truncated response has no body, it is lost.
func TestTruncate_WithoutABody(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, s *minutestest.Server, c *caller) {
		id := c.create(t, "Gone")
		s.Inject(minutestest.Match{Operation: "meetings.delete"}, minutestest.Truncate(0))
		a := c.send("DELETE", "/v1/meetings/"+id, "")
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
		fault  minutestest.Fault
		effect bool
	}{
		"reset":                     {minutestest.Reset(), false},
		"reset, after effect":       {minutestest.Reset().AfterEffect(), true},
		"lost response":             {minutestest.LoseResponse(), true},
		"rate limit":                {minutestest.RateLimit("1"), false},
		"refuse":                    {minutestest.Refuse(minutes.ErrInternal), false},
		"refuse, after effect":      {minutestest.Refuse(minutes.ErrInternal).AfterEffect(), true},
		"bad gateway":               {minutestest.BadGateway(), false},
		"bad gateway, after effect": {minutestest.BadGateway().AfterEffect(), true},
		"truncate":                  {minutestest.Truncate(3), true},
		"delay":                     {minutestest.Delay(time.Millisecond), true},
		"delay, after effect":       {minutestest.Delay(time.Millisecond).AfterEffect(), true},
		"drip":                      {minutestest.Drip(time.Millisecond), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, s *minutestest.Server, caller *caller) {
				s.Inject(minutestest.Match{Operation: "projects.create"}, c.fault.Delayed(time.Millisecond))
				caller.send("POST", "/v1/projects", `{"name":"Applied"}`)
				assert.Equal(t, c.effect, strings.Contains(caller.send("GET", "/v1/projects", "").text, "Applied"))
			})
		})
	}
}

// Faults of storage, met by an upload that sends its body at once and by one that waits for leave
// to.
func TestFaults_OfStorage(t *testing.T) {
	t.Parallel()
	const size = 1 << 17
	for name, c := range map[string]struct {
		fault   minutestest.Fault
		arrives bool
		see     func(t *testing.T, a response)
	}{
		"rejected": {minutestest.RefuseUpload(503, "SlowDown"), false, func(t *testing.T, a response) {
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
		"reset": {minutestest.Reset(), false, func(t *testing.T, a response) { require.Error(t, a.err) }},
		"reset after bytes": {minutestest.ResetUpload(100_000), false,
			func(t *testing.T, a response) { require.Error(t, a.err) }},
		"lost response": {minutestest.LoseResponse(), true,
			func(t *testing.T, a response) { require.ErrorIs(t, a.err, syscall.ECONNRESET) }},
		"expired": {minutestest.ExpireURL(), false, func(t *testing.T, a response) {
			require.NoError(t, a.err)
			assert.Equal(t, 403, a.status)
			assert.Contains(t, a.text, "<Code>AccessDenied</Code><Message>Request has expired</Message>")
		}},
		"rejected, after effect": {minutestest.RefuseUpload(403, "AccessDenied").AfterEffect(), true,
			func(t *testing.T, a response) {
				require.NoError(t, a.err)
				assert.Equal(t, 403, a.status)
			}},
	} {
		for _, expect := range []string{"", "100-continue"} {
			t.Run(name+expect, func(t *testing.T) {
				t.Parallel()
				onBothWires(t, func(t *testing.T, s *minutestest.Server, caller *caller) {
					if expect == "" && caller.base != minutestest.BaseURL && !c.arrives {
						t.Skip("a socket may lose a response that comes before the body")
					}
					id := caller.create(t, "Applied")
					url := caller.uploadURL(t, id)
					i := s.Inject(minutestest.Match{Operation: minutes.OpUpload, MeetingID: id}, c.fault)
					put := func() response {
						return caller.send("PUT", url, strings.Repeat("x", size), withHeader("Content-Type", audioType),
							withHeader("Expect", expect))
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
	s := minutestest.NewServer(t)
	c := callerOf(s)
	url := c.uploadURL(t, c.create(t, "Applied"))
	s.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.ResetUpload(100_000),
		minutestest.ResetUpload(0))
	require.Error(t, c.send("PUT", url, strings.Repeat("x", 1<<20), withHeader("Content-Type", audioType)).err)
	require.Error(t, c.send("PUT", url, strings.Repeat("x", 1<<20), withHeader("Content-Type", audioType)).err)
	puts := s.Requests(minutes.OpUpload)
	assert.EqualValues(t, 100_000, puts[0].Bytes)
	assert.EqualValues(t, 0, puts[1].Bytes)
}

// A wait of hours is the bubble's, and ends with its client.
func TestFaults_UseVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := unjudged(t)
		c := callerOf(s)
		for _, fault := range []minutestest.Fault{minutestest.Delay(time.Hour), minutestest.Drip(time.Hour),
			minutestest.Refuse(minutes.ErrInternal).Delayed(time.Hour)} {
			start := time.Now()
			s.Inject(minutestest.Match{}, fault)
			require.NoError(t, c.send("GET", "/v1/usage", "").err)
			assert.Equal(t, time.Hour, time.Since(start), fault)
		}
		c.client = &http.Client{Transport: c.client.Transport, Timeout: time.Minute}
		for _, fault := range []minutestest.Fault{minutestest.Delay(time.Hour), minutestest.Drip(time.Hour)} {
			start := time.Now()
			s.Inject(minutestest.Match{}, fault)
			require.Error(t, c.send("POST", "/v1/projects", `{"name":"x"}`).err)
			synctest.Wait()
			assert.Equal(t, time.Minute, time.Since(start))
		}
		hit := s.Requests("projects.create")
		require.Len(t, hit, 2, "both ended with their client")
		assert.Equal(t, time.Minute, hit[0].Took)
		assert.Equal(t, 1, strings.Count(c.send("GET", "/v1/projects", "").text, `"x"`), "only the second took effect")
	})
}

func TestFaults_WorkOnABareHandler(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t, minutestest.WithoutAudit())
	s.Inject(minutestest.Match{}, minutestest.Reset(), minutestest.Truncate(4))
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
		match func(id string) minutestest.Match
		want  string // which of the calls below are hit
	}{
		"everything": {func(string) minutestest.Match { return minutestest.Match{Times: minutestest.Always} },
			"12345"},
		"one": {func(string) minutestest.Match { return minutestest.Match{} }, "1"},
		"from third": {func(string) minutestest.Match { return minutestest.Match{Nth: 3, Times: minutestest.Always} },
			"345"},
		"third, twice": {func(string) minutestest.Match { return minutestest.Match{Nth: 3, Times: 2} }, "34"},
		"operation": {func(string) minutestest.Match {
			return minutestest.Match{Operation: "meetings.get", Times: minutestest.Always}
		}, "235"},
		"key": {func(string) minutestest.Match {
			return minutestest.Match{Key: "key_ada", Times: minutestest.Always}
		}, "3"},
		"meeting": {func(id string) minutestest.Match {
			return minutestest.Match{MeetingID: id, Times: minutestest.Always}
		}, "23"},
		"path": {func(string) minutestest.Match {
			return minutestest.Match{Path: "/v1/meetings", Times: minutestest.Always}
		}, "1"},
		"pattern": {func(string) minutestest.Match {
			return minutestest.Match{Path: "/v1/*", Times: minutestest.Always}
		}, "14"},
		"all at once": {func(id string) minutestest.Match {
			return minutestest.Match{Operation: "meetings.get", MeetingID: id, Path: "/v1/*/*", Key: "key_ci"}
		}, "2"},
		"unknown route": {func(string) minutestest.Match { return minutestest.Match{Path: "/v1/unknown"} }, "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := minutestest.NewServer(t, minutestest.WithoutAudit())
			caller := callerOf(s)
			first := caller.create(t, "One")
			second := caller.create(t, "Two")
			s.Inject(c.match(first), minutestest.Respond(418, "", ""))
			hit := ""
			for _, request := range []struct{ n, key, path string }{
				{"1", "key_ci", "/v1/meetings"},
				{"2", "key_ci", "/v1/meetings/" + first},
				{"3", "key_ada", "/v1/meetings/" + first},
				{"4", "key_ci", "/v1/unknown"},
				{"5", "key_ci", "/v1/meetings/" + second},
			} {
				caller.key = request.key
				if caller.send("GET", request.path, "").status == 418 {
					hit += request.n
				}
			}
			assert.Equal(t, c.want, hit)
		})
	}
}

// A request is hit once; injections take their turns in order.
func TestInject_AppliesEarliestInjectionFirst(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	c := callerOf(s)
	a := s.Inject(minutestest.Match{Operation: "usage.get"}, minutestest.Respond(501, "", ""),
		minutestest.Respond(502, "", ""))
	b := s.Inject(minutestest.Match{Operation: "usage.get", Times: 3}, minutestest.Respond(503, "", ""),
		minutestest.Respond(504, "", ""))
	var got []int
	for range 6 {
		got = append(got, c.send("GET", "/v1/usage", "").status)
	}
	assert.Equal(t, []int{501, 502, 503, 504, 503, 200}, got)
	assert.Equal(t, 2, a.Applied())
	assert.Equal(t, 3, b.Applied())

	// Each counts the requests that the others apply to.
	s.Inject(minutestest.Match{}, minutestest.Respond(501, "", ""))
	s.Inject(minutestest.Match{Nth: 2}, minutestest.Respond(502, "", ""))
	assert.Equal(t, 501, c.send("GET", "/v1/usage", "").status)
	assert.Equal(t, 502, c.send("GET", "/v1/usage", "").status)

	always := s.Inject(minutestest.Match{Times: minutestest.Always}, minutestest.BadGateway())
	assert.Equal(t, 502, c.send("GET", "/v1/usage", "").status)
	always.Stop()
	assert.Equal(t, 200, c.send("GET", "/v1/usage", "").status)
}

// The count is exact however many call at once.
func TestInject_CountsConcurrentRequestsExactly(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	i := s.Inject(minutestest.Match{Operation: "usage.get", Nth: 11, Times: 50}, minutestest.RateLimit(""))
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	for range 10 {
		wg.Go(func() {
			c := callerOf(s)
			for range 20 {
				a := c.send("GET", "/v1/usage", "")
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

func TestUnusedFaults_AreThoseOfEachInjection(t *testing.T) {
	t.Parallel()
	s := minutestest.New()
	defer s.Close()
	used := s.Inject(minutestest.Match{}, minutestest.BadGateway())
	unused := s.Inject(minutestest.Match{}, minutestest.Reset())
	optional := s.Inject(minutestest.Match{}, minutestest.Reset()).Optional()
	callerOf(s).send("GET", "/v1/usage", "")
	assert.Empty(t, used.Unused())
	assert.Contains(t, unused.Unused(), `the fault "reset"`)
	assert.Empty(t, optional.Unused())
	assert.Equal(t, []string{unused.Unused()}, s.UnusedFaults())
}

func TestInject_UnusedFailsTheTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		test func(s *minutestest.Server)
		want string
	}{
		"never matched": {func(s *minutestest.Server) {
			s.Inject(minutestest.Match{Operation: "usage.get"}, minutestest.Reset())
		}, `the fault "reset", injected into requests {"operation":"usage.get"}, was applied 0 times instead of 1, ` +
			`and 0 requests matched`},
		"too late": {func(s *minutestest.Server) {
			s.Inject(minutestest.Match{Nth: 2}, minutestest.Reset())
			callerOf(s).send("GET", "/v1/usage", "")
		}, `"reset", injected into requests {"nth":2}, was applied 0 times instead of 1, and 1 request matched`},
		"half": {func(s *minutestest.Server) {
			s.Inject(minutestest.Match{}, minutestest.BadGateway(), minutestest.Reset())
			callerOf(s).send("GET", "/v1/usage", "")
		}, `"reset", injected into requests {}, was applied 1 time instead of 2, and 1 request matched`},
		"nine times, once": {func(s *minutestest.Server) {
			s.Inject(minutestest.Match{Times: 9}, minutestest.BadGateway())
			callerOf(s).send("GET", "/v1/usage", "")
		}, "was applied 1 time instead of 9, and 1 request matched"},
		"always, never": {func(s *minutestest.Server) {
			s.Inject(minutestest.Match{Times: minutestest.Always}, minutestest.Reset())
		}, "was applied 0 times instead of at least 1, and 0 requests matched"},
		"always, once": {func(s *minutestest.Server) {
			s.Inject(minutestest.Match{Times: minutestest.Always}, minutestest.Reset())
			callerOf(s).send("GET", "/v1/usage", "")
		}, ""},
		"optional": {func(s *minutestest.Server) { s.Inject(minutestest.Match{}, minutestest.Reset()).Optional() }, ""},
		"stopped":  {func(s *minutestest.Server) { s.Inject(minutestest.Match{}, minutestest.Reset()).Stop() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := nested(func(tb *fakeTB) { c.test(minutestest.NewServer(tb)) })
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

// Every response with a meeting shows the other status, and no other response does.
func TestShowStatus_ChangesTheStatusOfMeetings(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	c := callerOf(s)
	id := s.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Weekly", Status: minutes.StatusCreated})[0]
	one := "/v1/meetings/" + id
	for op, send := range map[minutes.Operation]func() response{
		minutes.OpMeetingsList: func() response { return c.send("GET", "/v1/meetings", "") },
		minutes.OpMeetingsCreate: func() response {
			return c.send("POST", "/v1/meetings", `{"title":"Daily","date":"2026-11-21"}`)
		},
		minutes.OpMeetingsGet:    func() response { return c.send("GET", one, "") },
		minutes.OpMeetingsUpdate: func() response { return c.send("PATCH", one, `{"title":"Weekly"}`) },
		minutes.OpMeetingsSetParticipants: func() response {
			return c.send("PUT", one+"/participants", `{"participant_ids":["emp_ada"]}`)
		},
	} {
		s.Inject(minutestest.Match{Operation: op}, minutestest.ShowStatus("archiving"))
		a := send()
		assert.Contains(t, a.text, `"status":"archiving"`, op)
		assert.NotContains(t, a.text, `"status":"created"`, op)
	}
	s.Inject(minutestest.Match{}, minutestest.ShowStatus("archiving"))
	assert.NotContains(t, c.send("GET", "/v1/employees", "").text, "archiving")
}

func TestFault_JSONRoundTrip(t *testing.T) {
	t.Parallel()
	for _, f := range []minutestest.Fault{
		minutestest.Delay(2 * time.Second), minutestest.Reset(), minutestest.LoseResponse(),
		minutestest.ResetUpload(65536), minutestest.RateLimit("30"), minutestest.Refuse(minutes.ErrInternal),
		minutestest.RefuseUpload(503,
			"SlowDown"), minutestest.BadGateway(), minutestest.Truncate(10), minutestest.Drip(5 * time.Second),
		minutestest.Truncate(0),
		minutestest.Refuse(minutes.ErrNotFound).AfterEffect().Delayed(time.Minute),
		minutestest.ExpireURL(), minutestest.SlowUpload(1000), minutestest.ShowStatus("archiving"),
		minutestest.RateLimit("").WithHeader("Retry-After", "soon"),
		minutestest.Respond(999, "", ""),
	} {
		text, err := json.Marshal(f)
		require.NoError(t, err)
		var again minutestest.Fault
		require.NoError(t, json.Unmarshal(text, &again), string(text))
		assert.Equal(t, f, again, string(text))
	}
	for text, want := range map[string]string{
		`{"kind":"explode"}`:                                `"explode"`,
		`{}`:                                                `kind ""`,
		`{"kind":"reset","byte":1}`:                         `unknown field "byte"; known here: kind, status, `,
		`{"kind":"delay","delay":"2"}`:                      "\"2\" is not a duration",
		`{"kind":"delay","delay":"-2s"}`:                    "negative",
		`{"kind":"delay"}`:                                  "delay: a duration over 0 expected",
		`{"kind":"drip","over":"-2s"}`:                      "drip: over: -2s is negative",
		`{"kind":"truncate"}`:                               "truncate: bytes: missing",
		`{"kind":"reset_upload"}`:                           "reset_upload: bytes: missing",
		`{"kind":"reset","bytes":0}`:                        "bytes: it belongs to reset_upload, truncate",
		`{"kind":"truncate","bytes":-1}`:                    "bytes: -1 is negative",
		`{"kind":"reset_upload","bytes":-1}`:                "bytes: -1 is negative",
		`{"kind":"refuse","code":"NOPE"}`:                   `no code "NOPE"; there are API_ACCESS_DISABLED, `,
		`{"kind":"respond","status":99}`:                    "respond: status: 99 is not from 200 to 999",
		`{"kind":"respond"}`:                                "respond: status: missing; give one from 200 to 999",
		`{"kind":"refuse_upload","status":200,"code":"x"}`:  "refuse_upload: status: 200 is not from 300 to 999",
		`{"kind":"refuse_upload","status":503}`:             "refuse_upload: code: missing",
		`{"kind":"slow_upload","after_effect":true}`:        "never comes after the effect",
		`{"kind":"stale","lag":"-1s"}`:                      "stale: lag: -1s is negative",
		`{"kind":"reset","lag":"1s"}`:                       "reset: lag: it belongs to stale",
		`{"kind":"slow_upload"}`:                            "not at least 1",
		`{"kind":"show_status"}`:                            "show_status: meeting_status: missing",
		`{"kind":"call"}`:                                   "works only within one process",
		`{"kind":"reset","header":{"A":"b"}}`:               "reset: header: it has no response of its own",
		`{"kind":"delay","delay":"2s","retry_after":"1"}`:   "delay: retry_after: it has no response of its own",
		`{"kind":"rate_limit","header":{"A":1}}`:            "header.A: a string expected",
		`{"kind":"rate_limit","header":"A"}`:                "header: an object expected",
		`{"kind":"bad_certificate"}`:                        "works only within one process",
		`{"kind":"respond","status":304,"body":"x"}`:        "respond: body: a response with status 304 has none",
		`{"kind":"rate_limit","header":{"a":"1","A":"2"}}`:  `rate_limit: header: "a" is the same header as "A"`,
		`{"kind":"rate_limit","retry_after":"soon"}`:        "HTTP date; to send it anyway, use header",
		`{"kind":"respond","status":"502"}`:                 "status: a whole number expected",
		`{"kind":"respond","status":502,"content_type":[]}`: "content_type: a string expected",
	} {
		var f minutestest.Fault
		require.ErrorContains(t, json.Unmarshal([]byte(text), &f), want)
	}
	var m minutestest.Match
	require.NoError(t, json.Unmarshal([]byte(`{"operation":"meetings.get","nth":2,"times":-1}`), &m))
	assert.Equal(t, minutestest.Match{Operation: "meetings.get", Nth: 2, Times: minutestest.Always}, m)
}

// Respond sends what it is told to, even if that makes no sense to a client.
func TestRespond_SendsBrokenHeaders(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		value  string
	}{{429, "soon"}, {503, "-1"}, {429, "2.5"}, {503, ""}, {999, "99999999999999999999"}} {
		onBothWires(t, func(t *testing.T, s *minutestest.Server, c *caller) {
			fault := minutestest.Respond(tc.status, "text/plain", "no").WithHeader("Retry-After", tc.value)
			s.Inject(minutestest.Match{}, fault)
			a := c.send("GET", "/v1/usage", "")
			require.NoError(t, a.err)
			assert.Equal(t, tc.status, a.status)
			assert.Equal(t, []string{tc.value}, a.header.Values("Retry-After"))
			assert.Equal(t, "no", a.text)
		})
	}
}

// net/http alone would swallow a panic in a function of the test, and the test could pass.
func TestCall_PanicCrashesTheProgram(t *testing.T) {
	const variable = "MINUTESTEST_PANIC"
	if os.Getenv(variable) != "" {
		s := minutestest.New()
		s.Inject(minutestest.Match{}, minutestest.Call(func(minutestest.Request) { boom() }))
		callerOf(s).send("GET", "/v1/meetings", "")
		select {}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCall_PanicCrashesTheProgram$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out),
		"panic: minutestest: a function of the test panicked: runtime error: invalid memory address")
	assert.Contains(t, string(out), "minutestest_test.boom(")
}

func boom() {
	var key *minutestest.Key
	key.Revoked = true
}
