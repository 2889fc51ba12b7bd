package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/secret"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// service is a fake transport. answers[i] is its answer to attempt i, and the last answer repeats.
type service struct {
	answers []answer

	mu   sync.Mutex
	sent []time.Time
	reqs []*http.Request
}

// answer is a response, or an error if status is 0.
type answer struct {
	status     int
	retryAfter string
	err        error
	body       io.Reader
	after      time.Duration
	location   string
}

func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	a := s.answers[min(len(s.sent), len(s.answers)-1)]
	s.sent, s.reqs = append(s.sent, time.Now()), append(s.reqs, req)
	s.mu.Unlock()
	if backoff.Sleep(req.Context(), a.after) != nil {
		return nil, context.Cause(req.Context())
	}
	if a.status == 0 {
		return nil, a.err
	}
	resp := &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: req}
	if a.body != nil {
		resp.Body = io.NopCloser(a.body)
	}
	if a.retryAfter != "" {
		resp.Header.Set("Retry-After", a.retryAfter)
	}
	if a.location != "" {
		resp.Header.Set("Location", a.location)
	}
	return resp, nil
}

func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

const apiKey = "key_0123456789abcdef"

func newClient(transport http.RoundTripper, change ...func(*Config)) *Client {
	cfg := Config{
		Base: "https://minutes.example/base", Authorization: []string{"Bearer " + apiKey}, UserAgent: []string{"test/1"},
		Routes: route.Table, Transport: transport, Timeout: 30 * time.Second,
		Retries: backoff.Policy{Max: 4}, Rate: rate.NewLimiter(rate.Inf, 0), Mask: secret.Mask{apiKey},
	}
	for _, f := range change {
		f(&cfg)
	}
	return New(cfg)
}

// do makes a request, releases its response, and returns it if it is a failure.
func do(ctx context.Context, c *Client, in Request) *Response {
	resp := c.Do(ctx, in)
	resp.Release()
	if resp.OK() {
		return nil
	}
	return resp
}

// err returns the causes of a failure, joined.
func (r *Response) err() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.Causes...)
}

var usage = Request{Operation: route.UsageGet}

func TestDo_RetriesOnlySafeRequests(t *testing.T) {
	t.Parallel()
	requests := map[string]struct {
		in         Request
		repeatable bool
	}{
		"GET":                            {usage, true},
		"PUT":                            {Request{Operation: route.VocabularyReplace, Body: []string{"a"}}, true},
		"DELETE":                         {Request{Operation: route.MeetingsDelete, ID: "mtg_1"}, true},
		"upload URL":                     {Request{Operation: route.MeetingsUploadURL, ID: "mtg_1"}, true},
		"POST":                           {Request{Operation: route.ProjectsCreate, Body: []string{"a"}}, false},
		"PATCH":                          {Request{Operation: route.MeetingsUpdate, ID: "mtg_1", Body: []string{"a"}}, false},
		"create":                         {Request{Operation: route.MeetingsCreate, Body: []string{"a"}}, false},
		"create with an external id":     {Request{Operation: route.MeetingsCreate, HasExternalID: true, Body: []string{"a"}}, true},
		"POST moved to GET by its route": {Request{Route: &route.Route{Method: http.MethodGet, Path: "/p"}}, false},
		"GET moved to POST by its route": {Request{Route: &route.Route{Method: http.MethodPost, Path: "/p", Repeat: route.Always}}, true},
	}
	lost := func(err error) answer { return answer{err: err} }
	for name, test := range map[string]struct {
		answer answer
		always bool // whatever the request
		never  bool
	}{
		"429":                   {answer: answer{status: 429}, always: true},
		"connection refused":    {answer: lost(testbase.ErrRefused), always: true},
		"no such host":          {answer: lost(testbase.ErrNoHost), always: true},
		"untrusted certificate": {answer: lost(testbase.ErrUntrusted), never: true},
		"no TLS":                {answer: lost(testbase.ErrHandshake), never: true},
		"plain HTTP":            {answer: lost(http.ErrSchemeMismatch), never: true},
		"500":                   {answer: answer{status: 500}},
		"502":                   {answer: answer{status: 502}},
		"503":                   {answer: answer{status: 503}},
		"504":                   {answer: answer{status: 504}},
		"reset":                 {answer: lost(syscall.ECONNRESET)},
		"EOF":                   {answer: lost(io.EOF)},
		"idle connection lost":  {answer: lost(errors.New("http: server closed idle connection"))},
		"timeout":               {answer: answer{after: time.Hour}},
		"501":                   {answer: answer{status: 501}, never: true},
		"408":                   {answer: answer{status: 408}, never: true},
		"409":                   {answer: answer{status: 409}, never: true},
		"404":                   {answer: answer{status: 404}, never: true},
		"redirect":              {answer: answer{status: 307, location: "https://elsewhere.example/"}, never: true},
		"redirect to nowhere":   {answer: answer{status: 301, location: "http://[::1:%zz"}, never: true},
		"429 for an hour":       {answer: answer{status: 429, retryAfter: "3600"}, never: true},
	} {
		for kind, request := range requests {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &service{answers: []answer{test.answer}}
					failure := do(t.Context(), newClient(s), request.in)
					require.NotNil(t, failure)
					attempts := 1
					if test.always || request.repeatable && !test.never {
						attempts = 5
					}
					require.Equal(t, attempts, s.count())
					require.Equal(t, test.answer.status, failure.Status)
					require.Equal(t, test.answer.status == 0, failure.err() != nil)
					if test.answer.err != nil {
						require.ErrorIs(t, failure.err(), test.answer.err)
					}
				})
			})
		}
	}
}

// Each attempt has the API key and the whole body, on the path of the base URL.
func TestDo_SendsTheSameRequestAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var bodies []string
		c := newClient(testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(req.Body)
			assert.NoError(t, err)
			bodies = append(bodies, string(body))
			assert.Equal(t, "PUT https://minutes.example/base/v1/meetings/mtg%2F1/participants?a=b+c", req.Method+" "+req.URL.String())
			assert.Equal(t, http.Header{
				"Authorization": {"Bearer " + apiKey}, "User-Agent": {"test/1"}, "Accept": {"application/json"}, "Content-Type": {"application/json"},
			}, req.Header)
			req.Header.Set("Authorization", "changed by a careless transport")
			return nil, io.EOF
		}))
		for _, query := range []any{url.Values{"a": {"b c"}}, struct {
			A string `url:"a"`
		}{"b c"}} {
			bodies = nil
			in := Request{Operation: route.MeetingsSetParticipants, ID: "mtg/1", Body: []int{7}, Query: query}
			require.NotNil(t, do(t.Context(), c, in))
			require.Equal(t, []string{"[7]", "[7]", "[7]", "[7]", "[7]"}, bodies)
		}
	})
}

func TestDo_RejectsUnsendableRequests(t *testing.T) {
	t.Parallel()
	for _, in := range []Request{
		{Operation: route.UsageGet, Body: make(chan int)},
		{Operation: route.UsageGet, Query: 7},
		{Route: &route.Route{Method: http.MethodGet, Path: "/%zz"}},
	} {
		s := &service{answers: []answer{{status: 200}}}
		failure := do(t.Context(), newClient(s), in)
		require.Error(t, failure.err())
		require.Zero(t, s.count())
	}
}

// If a later attempt is lost, the failure has the response of an earlier one.
func TestDo_KeepsLastResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{answers: []answer{{status: 503, retryAfter: "7", body: strings.NewReader("first")}, {err: io.EOF}}}
		failure := newClient(s).Do(t.Context(), usage)
		require.False(t, failure.OK())
		require.Equal(t, 503, failure.Status)
		require.Equal(t, "first", string(failure.Body()))
		require.Equal(t, 7*time.Second, failure.RetryAfter)
		require.ErrorIs(t, failure.err(), io.EOF)
		require.Equal(t, 5, s.count())
		failure.Release()
	})
}

func TestDo_RecordsWhetherItMayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first answer
		want  bool
	}{
		"lost":          {answer{err: io.EOF}, true},
		"502":           {answer{status: 502}, true},
		"timeout":       {answer{after: time.Hour}, true},
		"429":           {answer{status: 429}, false},
		"no connection": {answer{err: testbase.ErrRefused}, false},
		"404":           {answer{status: 404}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{answers: []answer{test.first, {status: 404}}}
				failure := do(t.Context(), newClient(s), Request{Operation: route.MeetingsDelete, ID: "mtg_1"})
				require.Equal(t, 404, failure.Status)
				require.Equal(t, test.want, failure.MayHaveTakenEffect)
			})
		})
	}
}

// If the first server closes the connection, a transport may send the request to a second one. The
// first may have carried it out, so a dial error of the second proves nothing.
func TestDo_DoesNotRepeatPOSTAfterFailOver(t *testing.T) {
	t.Parallel()
	var handled atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		handled.Add(1)
		panic(http.ErrAbortHandler) // the response is lost
	}))
	defer srv.Close()
	first := testbase.OwnTransport(t)
	second := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, testbase.ErrRefused }}
	failOver := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		again := req.Clone(req.Context())
		again.Body = body
		if resp, err := first.RoundTrip(req); err == nil {
			return resp, nil
		}
		return second.RoundTrip(again)
	})
	c := newClient(failOver, func(cfg *Config) { cfg.Base = srv.URL })
	failure := do(t.Context(), c, Request{Operation: route.MembersCreate, Body: []int{1}})
	require.ErrorIs(t, failure.err(), syscall.ECONNREFUSED)
	require.EqualValues(t, 1, handled.Load())
}

func TestDo_AttemptHasTimeLimit(t *testing.T) {
	t.Parallel()
	// A body of net/http ends with the context of its attempt.
	half := testbase.ReaderFunc(func([]byte) (int, error) {
		time.Sleep(30*time.Second + 1)
		return 0, context.DeadlineExceeded
	})
	for name, a := range map[string]answer{"no response": {after: time.Hour}, "half a body": {status: 200, body: half}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				failure := do(t.Context(), newClient(&service{answers: []answer{a}}), usage)
				require.Equal(t, 150*time.Second, time.Since(start).Truncate(time.Second))
				require.ErrorIs(t, failure.err(), os.ErrDeadlineExceeded)
				require.NotErrorIs(t, failure.err(), context.DeadlineExceeded, "the caller has no deadline")
				require.ErrorContains(t, failure.err(), "no response within 30s")
			})
		})
	}
}

func TestDo_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	shutdown := errors.New("shutting down")
	for name, test := range map[string]struct {
		answer answer
		status int
	}{
		"during an attempt":                     {answer{after: time.Hour}, 0},
		"during the wait for a retry":           {answer{status: 503, retryAfter: "20"}, 503},
		"during a pause":                        {answer{status: 429, retryAfter: "20"}, 429},
		"during the wait after a lost response": {answer{err: syscall.ECONNREFUSED, after: time.Second}, 0},
		"while the service is unreachable":      {answer{err: testbase.ErrRefused, after: time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{answers: []answer{test.answer}}
				c := newClient(s, func(cfg *Config) {
					cfg.Retries = backoff.Policy{Max: 4, WaitMin: 10 * time.Second, WaitMax: 10 * time.Second}
				})
				ctx, cancel := context.WithCancelCause(t.Context())
				start := time.Now()
				time.AfterFunc(5*time.Second, func() { cancel(shutdown) })
				failure := do(ctx, c, usage)
				require.Equal(t, 5*time.Second, time.Since(start))
				require.ErrorIs(t, failure.err(), context.Canceled)
				require.ErrorIs(t, failure.err(), shutdown)
				require.Equal(t, 1, s.count())
				require.Equal(t, test.status, failure.Status)
				if test.answer.err != nil {
					require.ErrorIs(t, failure.err(), syscall.ECONNREFUSED)
					require.Equal(t, 1, strings.Count(failure.err().Error(), "connection refused"))
				}
				require.Equal(t, 1, strings.Count(failure.err().Error(), "context canceled"))
			})
		})
	}
	t.Run("deadline before the retry", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &service{answers: []answer{{status: 503, retryAfter: "20"}}}
			ctx, cancel := context.WithTimeout(t.Context(), 19*time.Second)
			defer cancel()
			start := time.Now()
			failure := do(ctx, newClient(s), usage)
			require.Zero(t, time.Since(start), "the response is worth more than the wait")
			require.Equal(t, 503, failure.Status)
			require.Empty(t, failure.Causes)
		})
	})
}

// If the context ends as a response arrives, the error has both, unless the response
// would not be retried anyway.
func TestDo_ContextEndsWithResponse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status   int
		brokeOff bool
		in       Request
		canceled bool
	}{
		"to be retried":        {503, false, usage, true},
		"a rejection":          {403, false, usage, false},
		"a truncated 200":      {200, true, Request{Operation: route.ProjectsCreate}, true},
		"a truncated 404":      {404, true, Request{Operation: route.ProjectsCreate}, true},
		"a truncated 429":      {429, true, Request{Operation: route.ProjectsCreate}, true},
		"a truncated 500":      {500, true, Request{Operation: route.ProjectsCreate}, true},
		"500, not retried":     {500, false, Request{Operation: route.ProjectsCreate}, false},
		"success is a success": {200, false, usage, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			body := testbase.ReaderFunc(func([]byte) (int, error) {
				cancel()
				if test.brokeOff {
					return 0, ctx.Err()
				}
				return 0, io.EOF
			})
			failure := do(ctx, newClient(&service{answers: []answer{{status: test.status, body: body}}}), test.in)
			if test.status == 200 && !test.brokeOff {
				require.Nil(t, failure)
				return
			}
			require.Equal(t, test.status, failure.Status)
			require.Equal(t, test.canceled, errors.Is(failure.err(), context.Canceled))
		})
	}
}

// The wait before retry n uses the full range of backoff.Policy, and is at least Retry-After.
func TestDo_WaitsBetweenAttempts(t *testing.T) {
	t.Parallel()
	const waitMin, waitMax = time.Second, 10 * time.Second
	for name, test := range map[string]struct {
		answer answer
		least  time.Duration
	}{
		"502":                     {answer{status: 502}, 0},
		"503 for 3 s":             {answer{status: 503, retryAfter: "3"}, 3 * time.Second},
		"429 for 40 s":            {answer{status: 429, retryAfter: "40"}, 40 * time.Second},
		"500 ignores Retry-After": {answer{status: 500, retryAfter: "30"}, 0},
		"lost":                    {answer{err: io.EOF}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var low, high [4]time.Duration
				for i := range 100 {
					s := &service{answers: []answer{test.answer}}
					c := newClient(s, func(cfg *Config) { cfg.Retries = backoff.Policy{Max: 4, WaitMin: waitMin, WaitMax: waitMax} })
					require.NotNil(t, do(t.Context(), c, usage))
					require.Len(t, s.sent, 5)
					for n := range low {
						wait := s.sent[n+1].Sub(s.sent[n])
						if i == 0 {
							low[n] = wait
						}
						low[n], high[n] = min(low[n], wait), max(high[n], wait)
					}
				}
				for n := range low {
					least, most := max(waitMin, test.least), max(min(waitMax, waitMin<<(n+1)), test.least+waitMin)
					require.GreaterOrEqual(t, low[n], least, "retry %d", n+1)
					require.LessOrEqual(t, high[n], most, "retry %d", n+1)
					require.Greater(t, high[n]-low[n], (most-least)*2/3, "retry %d: full jitter", n+1)
				}
			})
		})
	}
}

func TestDo_AcceptsAnyRetryPolicy(t *testing.T) {
	t.Parallel()
	for _, p := range []backoff.Policy{
		{}, {WaitMin: time.Hour, WaitMax: time.Hour}, {Max: 1}, {Max: 1, WaitMax: time.Hour}, {Max: 2, WaitMin: 1, WaitMax: math.MaxInt64}, {Max: 70, WaitMin: 1, WaitMax: 1},
	} {
		for _, a := range []answer{{status: 429}, {status: 429, retryAfter: "1"}, {status: 502}, {err: io.EOF}} {
			t.Run(fmt.Sprintf("%+v %+v", p, a), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &service{answers: []answer{a}}
					require.NotNil(t, do(t.Context(), newClient(s, func(cfg *Config) { cfg.Retries = p }), usage))
					require.Equal(t, p.Max+1, s.count())
				})
			})
		}
	}
}

// An abandoned attempt may still write its request when the next one begins. The race detector
// finds shared state.
func TestDo_AbandonedAttemptStillWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var conns atomic.Int32
		deaf := &http.Transport{DisableKeepAlives: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			conn, far := net.Pipe()
			conns.Add(1)
			go func() { // reads slowly, and never responds
				defer far.Close()
				p := make([]byte, 512)
				for {
					if _, err := far.Read(p); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
			return conn, nil
		}}
		attempts := 0
		c := newClient(testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if attempts++; attempts <= 3 {
				return deaf.RoundTrip(req)
			}
			return (&service{answers: []answer{{status: 200}}}).RoundTrip(req)
		}))
		require.Nil(t, do(t.Context(), c, Request{Operation: route.VocabularyReplace, Body: strings.Repeat("x", 50_000)}))
		require.EqualValues(t, 3, conns.Load())
		time.Sleep(time.Minute) // the servers notice
	})
}

func TestDo_ReusesConnectionsAfterFailures(t *testing.T) {
	t.Parallel()
	statuses := []int{200, 500, 503, 404, 409, 302, 401, 502, 200} // after a 429 it would wait
	var served, opened atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(served.Add(1)) - 1
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(statuses[n%len(statuses)])
		_, _ = io.WriteString(w, strings.Repeat("<p>no</p>", 10_000))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	c := newClient(testbase.OwnTransport(t), func(cfg *Config) { cfg.Base = srv.URL })
	for range 20 {
		_ = do(t.Context(), c, usage)
	}
	require.Greater(t, served.Load(), int32(20))
	require.EqualValues(t, 1, opened.Load())
}

func TestDo_ReadsResponseUpToLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status    int
		max, want int64
	}{"2xx": {200, 0, 4 << 20}, "own limit": {200, 100, 100}, "error": {404, 100, 256 << 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endless := testbase.ReaderFunc(func(p []byte) (int, error) { return len(p), nil })
			resp := newClient(&service{answers: []answer{{status: test.status, body: endless}}}).Do(t.Context(), Request{Operation: route.UsageGet, MaxResponse: test.max})
			require.Equal(t, test.want, resp.Limit)
			require.Len(t, resp.Body(), int(test.want)+1)
			resp.Release()
			require.Empty(t, resp.Body())
		})
	}
}

// The observer sees each attempt with its context. So does the transport.
func TestDo_ReportsEachAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		s := &service{answers: []answer{{status: 429, retryAfter: "3", after: 2 * time.Second}, {err: io.EOF}, {status: 200}}}
		var got []Attempt
		var infos []AttemptInfo
		c := newClient(s, func(cfg *Config) {
			cfg.Observe = func(ctx context.Context, a Attempt) {
				info, ok := AttemptOf(ctx)
				assert.True(t, ok)
				assert.Equal(t, 7, ctx.Value(key{}))
				a.Response = nil
				got, infos = append(got, a), append(infos, info)
			}
		})
		require.Nil(t, do(context.WithValue(t.Context(), key{}, 7), c, Request{Operation: route.MeetingsGet, ID: "mtg_1"}))
		require.Len(t, got, 3)
		want := Outcome{Status: 429, Took: 2 * time.Second, retryAfter: 3 * time.Second}
		require.Equal(t, Attempt{Outcome: want, Retry: true, Wait: 3 * time.Second, Pause: 3 * time.Second}, got[0])
		require.ErrorIs(t, got[1].Err, io.EOF)
		require.True(t, got[1].Retry)
		require.Equal(t, Attempt{Outcome: Outcome{Status: 200}}, got[2])
		for i, info := range infos {
			require.Equal(t, AttemptInfo{Operation: route.MeetingsGet, ID: "mtg_1", Number: i + 1}, info)
			sent, ok := AttemptOf(s.reqs[i].Context())
			require.True(t, ok)
			require.Equal(t, info, sent)
		}
	})
}
