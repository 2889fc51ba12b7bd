package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
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

// checkRetry passes on what decide is to know of an attempt. decide_test.go has what follows.
func TestRetry_KnowsHowAnAttemptEnded(t *testing.T) {
	t.Parallel()
	brokenOff := testbase.Failing(io.ErrUnexpectedEOF)
	for name, test := range map[string]struct {
		answer   answer
		attempts [2]int // at a request that is repeatable, and at another one
		fails    bool
	}{
		"429":                 {answer{status: 429}, [2]int{5, 5}, false},
		"429 for longer":      {answer{status: 429, retryAfter: "61"}, [2]int{1, 1}, false},
		"429 that broke off":  {answer{status: 429, body: brokenOff}, [2]int{5, 5}, false},
		"503":                 {answer{status: 503}, [2]int{5, 1}, false},
		"500 that broke off":  {answer{status: 500, body: brokenOff}, [2]int{5, 1}, false},
		"200 that broke off":  {answer{status: 200, body: brokenOff}, [2]int{5, 1}, true},
		"404 that broke off":  {answer{status: 404, body: brokenOff}, [2]int{5, 1}, true},
		"reset":               {answer{err: syscall.ECONNRESET}, [2]int{5, 1}, true},
		"timeout":             {answer{after: time.Hour}, [2]int{5, 1}, true},
		"connection refused":  {answer{err: testbase.ErrRefused}, [2]int{5, 5}, true},
		"404":                 {answer{status: 404}, [2]int{1, 1}, false},
		"redirect":            {answer{status: 307, location: "https://elsewhere.example/"}, [2]int{1, 1}, false},
		"redirect to nowhere": {answer{status: 301, location: "http://[::1:%zz"}, [2]int{1, 1}, false},
	} {
		for i, r := range []Request{get, create} {
			for _, once := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/once=%t", name, r.Method, once), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						s := &service{answers: []answer{test.answer}}
						in := r
						in.Once = once
						var last AttemptReport
						resp, err := newClient(s, func(cfg *Config) {
							cfg.Observe = func(_ context.Context, a AttemptReport) { last = a }
						}).Call(t.Context(), in)
						attempts := test.attempts[i]
						if once {
							attempts = 1
						}
						require.Len(t, s.sent, attempts)
						require.False(t, last.WillRetry)
						require.Equal(t, test.answer.status, resp.Status)
						require.Equal(t, test.fails, err != nil)
						if test.answer.err != nil {
							require.ErrorIs(t, err, test.answer.err)
						}
					})
				})
			}
		}
	}
}

func TestRetry_WaitsAsDecided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{answers: []answer{{status: 503, retryAfter: "3"}, {err: io.EOF}, {status: 200}}}
		_, err := newClient(s).Call(t.Context(), get)
		require.NoError(t, err)
		first := s.sent[1].Sub(s.sent[0])
		second := s.sent[2].Sub(s.sent[1])
		require.GreaterOrEqual(t, first, 3*time.Second+time.Second/4)
		require.LessOrEqual(t, first, 3*time.Second+time.Second/2)
		require.GreaterOrEqual(t, second, time.Second/2)
		require.LessOrEqual(t, second, time.Second)
	})
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
// are, unless they are switched off.
func TestRetry_GoesOnForPatience(t *testing.T) {
	t.Parallel()
	patient := get
	patient.Patience = time.Minute
	for maxRetries, survives := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(outage(502, time.Minute), func(cfg *Config) { cfg.MaxRetries = maxRetries })
			resp, err := c.Call(t.Context(), patient)
			require.NoError(t, err)
			require.Equal(t, survives, resp.Status == http.StatusOK, "%d retries", maxRetries)
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
		"503":                            {answer{status: 503, retryAfter: "20"}, 19 * time.Second, 1},
		"429":                            {answer{status: 429, retryAfter: "20"}, 19 * time.Second, 1},
		"429, but the pause ends before": {answer{status: 429, retryAfter: "20"}, 21 * time.Second, 2},
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
				var last AttemptReport
				resp, err := newClient(s, func(cfg *Config) {
					cfg.Observe = func(_ context.Context, a AttemptReport) { last = a }
				}).Call(ctx, get)
				require.Less(t, time.Since(start), 5*time.Second+2)
				if last.Took != 5*time.Second { // otherwise both happen at once
					require.Equal(t, last.Took < 5*time.Second, last.WillRetry)
				}
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
			body := testbase.ReaderFunc(func([]byte) (int, error) {
				cancel()
				return 0, io.EOF
			})
			resp, err := newClient(&service{answers: []answer{{status: status, body: body}}}).Call(ctx, create)
			require.NoError(t, err)
			require.Equal(t, status, resp.Status)
		}
	})
}

// slowly returns a body that ends with err, a nanosecond after its context.
func slowly(err error) io.Reader {
	return testbase.ReaderFunc(func([]byte) (int, error) {
		time.Sleep(2 * time.Nanosecond)
		return 0, err
	})
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
		var got []AttemptReport
		c := newClient(s, func(cfg *Config) {
			cfg.Observe = func(ctx context.Context, a AttemptReport) {
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
			Request{Operation: "op", MeetingID: "mtg_1", Path: "/", Repeatable: true},
		)
		require.NoError(t, err)
		require.Len(t, got, 5)
		require.Equal(t,
			AttemptReport{
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
		require.Equal(t, AttemptReport{Number: 2, Err: io.EOF, WillRetry: true, RetryIn: got[1].RetryIn}, got[1])
		require.Equal(t, AttemptReport{Number: 3, Status: 503, WillRetry: true, RetryIn: 11 * time.Second}, got[2])
		require.ErrorIs(t, got[3].Err, os.ErrDeadlineExceeded)
		require.Equal(t, AttemptReport{Number: 5, Status: 404}, got[4])
		for i, req := range s.reqs {
			a := AttemptOf(req.Context())
			require.Equal(t, i+1, a.Number)
			require.Equal(t, "op mtg_1", a.Request.Operation+" "+a.Request.MeetingID)
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
