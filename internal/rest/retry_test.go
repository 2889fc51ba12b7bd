package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestRetry_OnlyIfSafe(t *testing.T) {
	t.Parallel()
	const never, repeatable, always = 0, 1, 2
	lost := func(err error) answer { return answer{err: err} }
	for name, test := range map[string]struct {
		answer answer
		retry  int
	}{
		"429":                   {answer{status: 429}, always},
		"429 for a minute":      {answer{status: 429, retryAfter: "60"}, always},
		"429 for longer":        {answer{status: 429, retryAfter: "61"}, never},
		"connection refused":    {lost(testbase.ErrRefused), always},
		"no such host":          {lost(testbase.ErrNoHost), always},
		"503 of a proxy":        {lost(&ProxyError{"proxy", "503 Service Unavailable"}), always},
		"407 of a proxy":        {lost(&ProxyError{"proxy", "407 Proxy Authentication Required"}), never},
		"untrusted certificate": {lost(testbase.ErrUntrusted), never},
		"no TLS":                {lost(testbase.ErrHandshake), never},
		"500":                   {answer{status: 500}, repeatable},
		"502":                   {answer{status: 502}, repeatable},
		"503":                   {answer{status: 503}, repeatable},
		"503 for longer":        {answer{status: 503, retryAfter: "3600"}, never},
		"504":                   {answer{status: 504}, repeatable},
		"reset":                 {lost(syscall.ECONNRESET), repeatable},
		"idle connection lost":  {lost(errors.New("http: server closed idle connection")), repeatable},
		"timeout":               {answer{after: time.Hour}, repeatable},
		"truncated 200":         {answer{status: 200, body: testbase.Failing(io.ErrUnexpectedEOF)}, repeatable},
		"truncated 404":         {answer{status: 404, body: testbase.Failing(io.ErrUnexpectedEOF)}, repeatable},
		"truncated 500":         {answer{status: 500, body: testbase.Failing(io.ErrUnexpectedEOF)}, repeatable},
		"truncated 429":         {answer{status: 429, body: testbase.Failing(io.ErrUnexpectedEOF)}, always},
		"501":                   {answer{status: 501}, never},
		"408":                   {answer{status: 408}, never},
		"409":                   {answer{status: 409}, never},
		"404":                   {answer{status: 404}, never},
		"redirect":              {answer{status: 307, location: "https://elsewhere.example/"}, never},
		"redirect to nowhere":   {answer{status: 301, location: "http://[::1:%zz"}, never},
	} {
		for _, r := range []Request{get, create, {Method: http.MethodGet, Path: "/", Repeatable: true, Once: true}} {
			t.Run(fmt.Sprintf("%s/%s/once=%t", name, r.Method, r.Once), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &service{answers: []answer{test.answer}}
					var last Attempt
					resp, err := newClient(s, func(cfg *Config) {
						cfg.Observe = func(_ context.Context, a Attempt) { last = a }
					}).Call(t.Context(), r)
					attempts := 1
					if !r.Once && (test.retry == always || test.retry == repeatable && r.Repeatable) {
						attempts = 5
					}
					require.Len(t, s.sent, attempts)
					require.False(t, last.WillRetry)
					require.Equal(t, test.answer.status, resp.Status)
					brokeOff := test.answer.status != 0 && test.answer.status != 429 && test.answer.status < 500 &&
						test.answer.body != nil
					require.Equal(t, test.answer.status == 0 || brokeOff, err != nil)
					if test.answer.err != nil {
						require.ErrorIs(t, err, test.answer.err)
					}
				})
			})
		}
	}
}

// The wait before a retry is random, from half of the longest wait to all of it.
func TestRetry_Waits(t *testing.T) {
	t.Parallel()
	waits := func(n ...time.Duration) []time.Duration { return n }
	const s = time.Second
	doubling := append(waits(s/2, s, 2*s, 4*s, 8*s, 16*s), slices.Repeat(waits(30*s), 14)...)
	for name, test := range map[string]struct {
		answer  answer
		asked   time.Duration   // by the service, on top of
		backoff []time.Duration // the longest
	}{
		"502":                     {answer{status: 502}, 0, doubling},
		"lost":                    {answer{err: io.EOF}, 0, waits(s/2, s)},
		"503 for 3 s":             {answer{status: 503, retryAfter: "3"}, 3 * s, waits(s/2, s)},
		"500 ignores Retry-After": {answer{status: 500, retryAfter: "30"}, 0, waits(s/2, s)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				retries := len(test.backoff)
				waited := make([][]time.Duration, retries) // by the number of the retry
				for range testbase.Many(100, 50) {
					sv := &service{answers: []answer{test.answer}}
					_, _ = newClient(sv, func(cfg *Config) { cfg.MaxRetries = retries }).Call(t.Context(), get)
					require.Len(t, sv.sent, retries+1)
					for n := range retries {
						waited[n] = append(waited[n], sv.sent[n+1].Sub(sv.sent[n]))
					}
				}
				for n, longest := range test.backoff {
					least := slices.Min(waited[n])
					most := slices.Max(waited[n])
					require.GreaterOrEqual(t, least, test.asked+longest/2, "retry %d", n)
					require.LessOrEqual(t, most, test.asked+longest, "retry %d", n)
					require.Greater(t, most-least, longest/3, "retry %d: jitter", n)
				}
			})
		})
	}
}

// outage is a service that cannot be reached, or whose proxy says so, until the outage ends.
func outage(status int, lasts time.Duration) http.RoundTripper {
	began := time.Now()
	return testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		a := answer{status: status, err: testbase.ErrRefused}
		if time.Since(began) >= lasts {
			a = answer{status: 200}
		}
		return (&service{answers: []answer{a}}).RoundTrip(req)
	})
}

// With the default number of retries, a short outage ends hardly any call, even if the call begins
// with the outage.
func TestRetry_SurvivesShortOutages(t *testing.T) {
	t.Parallel()
	calls := testbase.Many(500, 50)
	for _, test := range []struct {
		lasts time.Duration
		least float64 // the share of the calls that survive
	}{{3 * time.Second, 0.99}, {5 * time.Second, 0.99}, {10 * time.Second, 0.9}, {15 * time.Second, 0.9}} {
		for _, status := range []int{0, 502} {
			synctest.Test(t, func(t *testing.T) {
				survived := 0
				for range calls {
					c := newClient(outage(status, test.lasts), func(cfg *Config) { cfg.MaxRetries = DefaultMaxRetries })
					resp, err := c.Call(t.Context(), get)
					if err == nil && resp.Status == http.StatusOK {
						survived++
					}
				}
				require.GreaterOrEqual(t, float64(survived), float64(calls)*test.least, "%v of %d", test.lasts, status)
			})
		}
	}
}

// A patient request goes on for its Patience after the first failure, however few retries there
// are.
func TestRetry_GoesOnForPatience(t *testing.T) {
	t.Parallel()
	patient := get
	patient.Patience = time.Minute
	unsafe := create
	unsafe.Patience = time.Minute
	once := patient
	once.Once = true
	for name, test := range map[string]struct {
		maxRetries int
		in         Request
		lasts      time.Duration
		survives   bool
	}{
		"default":          {DefaultMaxRetries, patient, time.Minute, true},
		"one retry":        {1, patient, time.Minute, true},
		"no retries":       {0, patient, time.Second, false},
		"too long":         {1, patient, 2 * time.Minute, false},
		"not safe":         {1, unsafe, time.Second / 10, false},
		"one attempt":      {1, once, time.Second / 10, false},
		"without patience": {1, get, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range testbase.Many(100, 20) {
				synctest.Test(t, func(t *testing.T) {
					c := newClient(outage(502, test.lasts), func(cfg *Config) { cfg.MaxRetries = test.maxRetries })
					resp, err := c.Call(t.Context(), test.in)
					require.NoError(t, err)
					require.Equal(t, test.survives, resp.Status == http.StatusOK)
				})
			}
		})
	}
}

// If a retry could come after the deadline, Call returns the response at once.
func TestRetry_NotAfterDeadline(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer   answer
		deadline time.Duration
		attempts int
	}{
		"503, longer than Retry-After":  {answer{status: 503, retryAfter: "20"}, 21 * time.Second, 2},
		"503, shorter than Retry-After": {answer{status: 503, retryAfter: "20"}, 19 * time.Second, 1},
		"429, longer than the pause":    {answer{status: 429, retryAfter: "20"}, 21 * time.Second, 2},
		"429, shorter than the pause":   {answer{status: 429, retryAfter: "20"}, 19 * time.Second, 1},
		"shorter than the backoff":      {answer{status: 502}, 400 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{answers: []answer{test.answer, {status: 404}}}
				ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
				defer cancel()
				resp, err := newClient(s).Call(ctx, get)
				require.NoError(t, err)
				require.Len(t, s.sent, test.attempts)
				if test.attempts == 1 {
					require.Equal(t, test.answer.status, resp.Status)
					require.Equal(t, s.sent[0], time.Now(), "at once")
				}
			})
		})
	}
}

func TestRetry_EndsWithContext(t *testing.T) {
	t.Parallel()
	shutdown := errors.New("shutting down")
	for name, test := range map[string]struct {
		answer answer
		status int
	}{
		"during an attempt":          {answer{after: time.Hour}, 0},
		"before a retry":             {answer{status: 503, retryAfter: "20"}, 503},
		"during a pause":             {answer{status: 429, retryAfter: "20"}, 429},
		"after a lost connection":    {answer{err: syscall.ECONNRESET, after: 5 * time.Second}, 0},
		"while the body breaks off":  {answer{status: 201, after: 5*time.Second - 1, body: slowly(shutdown)}, 201},
		"as a 429 breaks off":        {answer{status: 429, after: 5*time.Second - 1, body: slowly(shutdown)}, 429},
		"as a whole 503 has arrived": {answer{status: 503, after: 5*time.Second - 1, body: slowly(io.EOF)}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{answers: []answer{test.answer}}
				ctx, cancel := context.WithCancelCause(t.Context())
				start := time.Now()
				time.AfterFunc(5*time.Second, func() { cancel(shutdown) })
				resp, err := newClient(s).Call(ctx, get)
				require.Less(t, time.Since(start), 5*time.Second+2)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, shutdown)
				require.Len(t, s.sent, 1)
				require.Equal(t, test.status, resp.Status)
				require.Equal(t, 1, strings.Count(err.Error(), "context canceled"), err)
				require.Equal(t, 1, strings.Count(err.Error(), "shutting down"), err)
				require.NotContains(t, err.Error(), "no response within", "the caller has left")
			})
		})
	}
	t.Run("never as a final response arrives", func(t *testing.T) {
		t.Parallel()
		for _, status := range []int{200, 404, 500} {
			ctx, cancel := context.WithCancel(t.Context())
			body := testbase.ReaderFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF })
			resp, err := newClient(&service{answers: []answer{{status: status, body: body}}}).Call(ctx, create)
			require.NoError(t, err)
			require.Equal(t, status, resp.Status)
		}
	})
}

// slowly returns a body that ends with err, a nanosecond after its context.
func slowly(err error) io.Reader {
	return testbase.ReaderFunc(func([]byte) (int, error) { time.Sleep(2 * time.Nanosecond); return 0, err })
}

func TestRetry_RecordsEffect(t *testing.T) {
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
		"truncated 404": {answer{status: 404, body: testbase.Failing(io.EOF)}, false},
		"404":           {answer{status: 404}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				resp, err := newClient(&service{answers: []answer{test.first, {status: 404}}}).Call(t.Context(), get)
				require.NoError(t, err)
				require.Equal(t, test.want, resp.MayHaveTakenEffect)
			})
		})
	}
}

// If a later attempt is lost, the caller gets the response of an earlier one, and the error.
func TestRetry_KeepsLastResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{answers: []answer{
			{status: 503, retryAfter: "7", body: strings.NewReader("first")},
			{err: io.EOF},
		}}
		resp, err := newClient(s).Call(t.Context(), get)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, "EOF", err.Error(), "without the URL of a *url.Error")
		require.Equal(t, 503, resp.Status)
		require.Equal(t, "first", string(resp.Body))
		require.Equal(t, 7*time.Second, resp.RetryAfter)
	})
}

// A 4xx says that nothing was done, which is not certain any more once a later attempt was lost.
func TestRetry_ForgetsARejectionBeforeALostConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cut := iotest.ErrReader(io.ErrUnexpectedEOF)
		for _, test := range []struct {
			rejection answer
			r         Request
		}{{answer{status: 429, retryAfter: "7"}, create}, {answer{status: 409, body: cut}, get}} {
			resp, err := newClient(&service{answers: []answer{test.rejection, {err: io.EOF}}}).Call(t.Context(), test.r)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, &Response{Request: resp.Request, MayHaveTakenEffect: true}, resp)
		}
	})
}

func TestRetry_ReportsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		s := &service{answers: []answer{
			{
				status:     429,
				retryAfter: "3",
				after:      2 * time.Second,
			}, {err: io.EOF}, {status: 503, retryAfter: "9"}, {after: time.Hour}, {status: 404},
		}}
		var got []Attempt
		c := newClient(s, func(cfg *Config) {
			cfg.Observe = func(ctx context.Context, a Attempt) {
				assert.Equal(t, 7, ctx.Value(key{}))
				if a.Response != nil {
					assert.Equal(t, a.Status, a.Response.Status)
				}
				assert.Equal(t, a.Err != nil, a.Response == nil)
				a.Response = nil
				a.Request = nil
				got = append(got, a)
			}
		})
		_, err := c.Call(
			context.WithValue(t.Context(), key{}, 7),
			Request{Operation: "op", ID: "mtg_1", Path: "/", Repeatable: true},
		)
		require.NoError(t, err)
		require.Len(t, got, 5)
		require.Equal(t,
			Attempt{
				Number:    1,
				Status:    429,
				Took:      2 * time.Second,
				WillRetry: true,
				RetryIn:   got[0].RetryIn,
				Pause:     got[0].Pause,
			},
			got[0],
		)
		require.GreaterOrEqual(t, got[0].RetryIn, got[0].Pause)
		require.GreaterOrEqual(t, got[0].Pause, 3*time.Second)
		require.GreaterOrEqual(t, got[1].RetryIn, time.Second)
		require.Equal(t, Attempt{Number: 2, Err: io.EOF, WillRetry: true, RetryIn: got[1].RetryIn}, got[1])
		require.Equal(t, Attempt{Number: 3, Status: 503, WillRetry: true, RetryIn: 11 * time.Second}, got[2])
		require.ErrorIs(t, got[3].Err, os.ErrDeadlineExceeded)
		require.Equal(t, Attempt{Number: 5, Status: 404}, got[4])
		for i, req := range s.reqs {
			a := AttemptOf(req.Context())
			require.Equal(t, i+1, a.Number)
			require.Equal(t, "op mtg_1", a.Request.Operation+" "+a.Request.ID)
		}
	})
	require.Nil(t, AttemptOf(t.Context()))
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const far = (1<<31 - 1) * time.Second
	synctest.Test(t, func(t *testing.T) { // where it is midnight of 1 January 2000
		for value, want := range map[string]time.Duration{
			"0": 0, "1": time.Second, "120": 2 * time.Minute, "007": 7 * time.Second,
			"2147483647": far, "2147483648": far, "99999999999999999999999": far,
			"Sat, 01 Jan 2000 00:00:30 GMT":    30 * time.Second,
			"Saturday, 01-Jan-00 00:00:30 GMT": 30 * time.Second,
			"Sat Jan  1 00:00:30 2000":         30 * time.Second,
			"Fri, 31 Dec 1999 23:00:00 GMT":    0,
			"":                                 0, "-1": 0, "+1": 0, "1.5": 0, "soon": 0, "1 2": 0, "0x10": 0,
			"2026-11-20T12:00:30Z": 0,
		} {
			for _, status := range []int{429, 503} {
				assert.Equal(t,
					want,
					RetryAfter(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {value}}}),
					"%q",
					value,
				)
			}
			for _, status := range []int{200, 400, 500, 502} {
				header := http.Header{"Retry-After": {value}}
				assert.Zero(t, RetryAfter(&http.Response{StatusCode: status, Header: header}))
			}
		}
		for date, want := range map[string]time.Duration{ // the server's time, whatever this machine's is
			"Fri, 31 Dec 1999 23:50:00 GMT": 10*time.Minute + 30*time.Second,
			"Sat, 01 Jan 2000 00:10:00 GMT": 0,
			"today":                         30 * time.Second,
		} {
			header := http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:00:30 GMT"}, "Date": {date}}
			assert.Equal(t, want, RetryAfter(&http.Response{StatusCode: 429, Header: header}), date)
		}
		assert.Zero(t, RetryAfter(&http.Response{StatusCode: 429}))
		assert.Zero(t, RetryAfter(nil))
	})
}
