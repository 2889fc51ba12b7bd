package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Each job is cancelled while it waits for another try, in each way there is.
func TestContextEndsABackOff(t *testing.T) {
	t.Parallel()
	shutdown := errors.New("shutting down")
	for _, j := range testkit.Jobs() {
		for name, end := range map[string]func(context.Context) (context.Context, func()){
			"cancelled": func(ctx context.Context) (context.Context, func()) {
				ctx, cancel := context.WithCancel(ctx)
				return ctx, cancel
			},
			"cancelled for a cause": func(ctx context.Context) (context.Context, func()) {
				ctx, cancel := context.WithCancelCause(ctx)
				return ctx, func() { cancel(shutdown) }
			},
		} {
			t.Run(j.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					id := j.MeetingFor(t, srv)
					srv.Inject(minutestest.Match{Operation: j.Op}, minutestest.RateLimit("20"))
					l := &testkit.Line{Op: j.Op}
					c := l.On(srv)
					ctx, cancel := end(t.Context())
					start := time.Now()
					time.AfterFunc(5*time.Second, cancel)
					err := j.Call(ctx, c, id)
					require.Equal(t, 5*time.Second, time.Since(start), "at once")
					require.ErrorIs(t, err, context.Canceled)
					if name == "cancelled for a cause" {
						require.ErrorIs(t, err, shutdown)
					}
					require.Equal(t, 1, l.Count())
					testkit.RequireStatus(t, err, 429)
				})
			})
		}
		t.Run(j.Name+"/deadline before the next try", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := j.MeetingFor(t, srv)
				srv.Inject(minutestest.Match{Operation: j.Op}, minutestest.RateLimit("20"))
				l := &testkit.Line{Op: j.Op}
				c := l.On(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 19*time.Second)
				defer cancel()
				start := time.Now()
				err := j.Call(ctx, c, id)
				require.Zero(t, time.Since(start), "the reply at hand is worth more than the wait")
				require.Equal(t, 1, l.Count())
				testkit.RequireStatus(t, err, 429)
			})
		})
		t.Run(j.Name+"/deadline within a try", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := j.MeetingFor(t, srv)
				srv.Inject(minutestest.Match{Operation: j.Op}, minutestest.Delay(time.Hour))
				l := &testkit.Line{Op: j.Op}
				c := l.On(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				start := time.Now()
				err := j.Call(ctx, c, id)
				require.Equal(t, 4*time.Second, time.Since(start))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 1, l.Count())
				testkit.RequireStatus(t, err, 0)
			})
		})
	}
}

// What made another try needed is told when ctx ends the wait for it.
func TestContextEndsTheWaitAfterALostConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		l := &testkit.Line{Op: "usage.get", Dial: testbase.ErrRefused, Dials: 1}
		c := l.On(srv, minutes.WithRetries(4, 10*time.Second, 10*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := c.Usage.Get(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, 1, strings.Count(err.Error(), "connection refused"))
		require.Equal(t, 1, strings.Count(err.Error(), "context canceled"))
	})
}

// A context that ends just as a refusal arrives, or while it is being read,
// is told beside it; one that ends after an answer is not.
func TestContextEndsWithTheReply(t *testing.T) {
	t.Parallel()
	reply := func(cancel func(), status int, body io.Reader) *minutes.Client {
		c, err := testkit.New("https://minutes.example", testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if body == nil {
				cancel()
				body = strings.NewReader("{}")
			}
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), Request: req}, nil
		})}))
		require.NoError(t, err)
		return c
	}
	t.Run("to be repeated", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := reply(cancel, 503, nil).Usage.Get(ctx)
		testkit.RequireStatus(t, err, 503)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("an answer", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := reply(cancel, 403, nil).Usage.Get(ctx)
		testkit.RequireStatus(t, err, 403)
		require.NotErrorIs(t, err, context.Canceled)
	})
	for _, status := range []int{200, 404, 429, 500} {
		t.Run(fmt.Sprintf("cut off in a %d", status), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			body := io.MultiReader(strings.NewReader(`{"error":`), testbase.ReaderFunc(func([]byte) (int, error) {
				cancel()
				return 0, ctx.Err()
			}))
			// One that is not repeated anyway.
			_, err := reply(cancel, status, body).Projects.Create(ctx, "Half")
			testkit.RequireStatus(t, err, status)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

// A request that the limiter holds back when a 429 arrives cools down, too.
func TestCoolDownReachesTheLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{}, minutestest.RateLimit("10").Delayed(time.Second/2))
		c := testkit.Client(srv, minutes.WithRateLimit(1, 1))
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				_, err := c.Usage.Get(t.Context())
				assert.NoError(t, err)
			})
		}
		start := time.Now()
		calls.Wait()
		requests := srv.Requests()
		require.Len(t, requests, 4)
		for i, r := range requests[1:] {
			assert.GreaterOrEqual(t, r.At.Sub(start), 10*time.Second+time.Second/2+time.Duration(i)*time.Second)
		}
	})
}

// A 429 holds every goroutine of the Client, and no other Client.
func TestCoolDownIsShared(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		retryAfter string
		least      time.Duration
	}{
		{"20", 20 * time.Second},
		{"60", 60 * time.Second},
		{"61", 60 * time.Second}, // obeyed up to the cap, by those who were not told
		{"86400", 60 * time.Second},
		{"99999999999999999999", 60 * time.Second},
	} {
		t.Run(test.retryAfter, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				srv.Inject(minutestest.Match{Operation: "members.create"}, minutestest.RateLimit(test.retryAfter))
				c, other := testkit.Client(srv), testkit.Client(srv)
				start := time.Now()
				_, err := c.Members.Create(t.Context(), &minutes.MemberCreateParams{Name: "Fay"})
				if test.least < 60*time.Second || test.retryAfter == "60" {
					require.NoError(t, err)
					require.GreaterOrEqual(t, time.Since(start), test.least)
					require.Less(t, time.Since(start), test.least+time.Second)
					return
				}
				require.ErrorIs(t, err, minutes.ErrRateLimited)
				require.Zero(t, time.Since(start), "too long a wait is the caller's to decide")

				var calls sync.WaitGroup
				for _, j := range testkit.Jobs() {
					if j.Ready || j.Upload() || j.Op == "meetings.delete" {
						continue
					}
					calls.Go(func() {
						_ = j.Call(t.Context(), c, "mtg_nobodys")
						assert.Equal(t, test.least, time.Since(start), j.Name)
					})
				}
				calls.Go(func() {
					_, err := other.Usage.Get(t.Context())
					assert.NoError(t, err)
					assert.Zero(t, time.Since(start))
				})
				for _, patience := range []time.Duration{time.Nanosecond, 59 * time.Second} {
					calls.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						defer cancel()
						_, err := c.Usage.Get(ctx)
						assert.Zero(t, time.Since(start), "at once")
						assert.ErrorIs(t, err, context.DeadlineExceeded)
						assert.ErrorIs(t, err, minutes.ErrRateLimited)
						e, _ := errors.AsType[*minutes.Error](err)
						assert.Equal(t, test.least, e.RetryAfter)
					})
				}
				calls.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(3*time.Second, cancel)
					_, err := c.Usage.Get(ctx)
					assert.ErrorIs(t, err, context.Canceled)
					assert.Equal(t, 3*time.Second, time.Since(start))
				})
				calls.Wait()
			})
		})
	}
}

// A later 429 makes the cool-down longer for those that are held already, and
// never shorter.
func TestCoolDownOnlyGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		slow := minutestest.Match{Operation: "members.list"}
		srv.Inject(slow, minutestest.RateLimit("30").Delayed(5*time.Second))
		srv.Inject(minutestest.Match{Operation: "projects.list"}, minutestest.RateLimit("10"))
		c := testkit.Client(srv, minutes.WithRetries(1, 0, 0))
		start := time.Now()
		var calls sync.WaitGroup
		for _, call := range []func() error{
			func() error { _, err := c.Members.List(t.Context()); return err },
			func() error { _, err := c.Projects.List(t.Context()); return err },
			func() error { time.Sleep(time.Second); _, err := c.Usage.Get(t.Context()); return err },
		} {
			calls.Go(func() {
				assert.NoError(t, call())
				assert.Equal(t, 35*time.Second, time.Since(start))
			})
		}
		calls.Wait()
	})
}

// A cool-down that began by another clock, outside a synctest bubble or in another,
// holds nothing back.
func TestCoolDownOfAnotherClock(t *testing.T) {
	t.Parallel()
	srv := minutestest.NewServer(t)
	c := testkit.Client(srv, minutes.WithRetries(0, 0, 0))
	srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.RateLimit("60"))
	_, err := c.Usage.Get(t.Context())
	require.ErrorIs(t, err, minutes.ErrRateLimited)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := c.Usage.Get(t.Context())
		require.NoError(t, err)
		require.Zero(t, time.Since(start))
	})
}

// A call that has to be repeated fails at once where another's 429 holds the
// Client for longer than its deadline.
func TestCoolDownOfAnotherOutlastsTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: "members.list"}, minutestest.RateLimit("3600"))
		srv.Inject(minutestest.Match{Operation: "projects.list"}, minutestest.BadGateway().Delayed(time.Second))
		c := testkit.Client(srv)
		start := time.Now()
		time.AfterFunc(500*time.Millisecond, func() { _, _ = c.Members.List(t.Context()) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := c.Projects.List(ctx)
		testkit.RequireStatus(t, err, 502)
		require.Equal(t, time.Second, time.Since(start))
	})
}

// The limiter paces first tries and repeats alike, and storage never.
func TestLimiterCountsRepeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: "usage.get", Times: 6}, minutestest.BadGateway())
		l := &testkit.Line{Op: "usage.get"}
		c := l.On(srv, minutes.WithRateLimit(0.1, 2), minutes.WithRetries(6, 0, 0))
		start := time.Now()
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() { _, err := c.Usage.Get(t.Context()); assert.NoError(t, err) })
		}
		calls.Wait()
		require.Equal(t, 8, l.Count())
		for i, at := range l.Times {
			require.InDelta(t, max(0, float64(i-1)*10), at.Sub(start).Seconds(), 1e-6, "request %d", i)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		j := testkit.Jobs()[len(testkit.Jobs())-1]
		id := j.MeetingFor(t, srv)
		srv.Inject(minutestest.Match{Operation: j.Op, Times: 3}, minutestest.RateLimit(""))
		c := testkit.Client(srv, minutes.WithRateLimit(0.001, 1), minutes.WithRetries(3, 0, 0))
		start := time.Now()
		require.NoError(t, j.Call(t.Context(), c, id))
		require.Zero(t, time.Since(start))
	})
}

func TestLimiterAndDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv, minutes.WithRateLimit(0.1, 1))
		_, err := c.Usage.Get(t.Context())
		require.NoError(t, err)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		_, err = c.Usage.Get(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, time.Since(start), "at once")
		testkit.RequireStatus(t, err, 0)

		cancelled, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(io.ErrNoProgress) })
		_, err = c.Usage.Get(cancelled)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, io.ErrNoProgress)
		require.Equal(t, time.Second, time.Since(start))
	})
}

// The wait before repeat n lies between waitMin and the smaller of waitMax and
// waitMin·2ⁿ, uses all of that, and is never below Retry-After.
func TestWaitsBetweenTries(t *testing.T) {
	t.Parallel()
	const waitMin, waitMax = time.Second, 10 * time.Second
	runs := testbase.Many(300, 70) // of fewer, some would spread too little by chance
	for _, test := range []struct {
		name  string
		fault minutestest.Fault
		least time.Duration
	}{
		{"502", minutestest.BadGateway(), 0},
		{"503 for 3 s", retryAfter(503, "3"), 3 * time.Second},
		{"503 for 0 s", retryAfter(503, "0"), 0},
		{"503 for -1 s", retryAfter(503, "-1"), 0},
		{"503 for 1.5 s", retryAfter(503, "1.5"), 0},
		{"500 with a Retry-After", retryAfter(500, "30"), 0},
		{"429 for 40 s", minutestest.RateLimit("40"), 40 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				srv.Inject(minutestest.Match{Operation: "usage.get", Times: minutestest.Always}, test.fault)
				var low, high [5]time.Duration
				for i := range runs {
					l := &testkit.Line{Op: "usage.get"}
					_, err := l.On(srv, minutes.WithRetries(5, waitMin, waitMax)).Usage.Get(t.Context())
					require.Error(t, err)
					require.Len(t, l.Times, 6)
					for n := range low {
						wait := l.Times[n+1].Sub(l.Times[n])
						if i == 0 {
							low[n] = wait
						}
						low[n], high[n] = min(low[n], wait), max(high[n], wait)
					}
				}
				for n := range low {
					top := min(waitMax, waitMin<<(n+1))
					least := max(waitMin, test.least)
					most := max(top, test.least+waitMin)
					require.GreaterOrEqual(t, low[n], least, "repeat %d", n+1)
					require.LessOrEqual(t, high[n], most, "repeat %d", n+1)
					spread := high[n] - low[n]
					require.Greater(t, spread, (most-least)*3/4, "repeat %d: full jitter", n+1)
				}
			})
		})
	}
}

// No setting of WithRetries breaks anything.
func TestRetriesOptions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		max              int
		waitMin, waitMax time.Duration
		tries            int
	}{
		{0, 0, 0, 1}, {0, time.Hour, time.Hour, 1}, {1, 0, 0, 2}, {1, 0, time.Hour, 2}, {2, time.Nanosecond, math.MaxInt64, 3},
		{7, 0, 0, 8}, {70, 1, 1, 71},
	} {
		for _, fault := range []minutestest.Fault{minutestest.RateLimit(""), minutestest.RateLimit("1"), minutestest.BadGateway(), minutestest.Reset()} {
			t.Run(fmt.Sprintf("%d %v %v %v", test.max, test.waitMin, test.waitMax, fault), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					srv.Inject(minutestest.Match{Operation: "usage.get", Times: minutestest.Always}, fault)
					l := &testkit.Line{Op: "usage.get"}
					_, err := l.On(srv, minutes.WithRetries(test.max, test.waitMin, test.waitMax)).Usage.Get(t.Context())
					require.Error(t, err)
					require.Equal(t, test.tries, l.Count())
				})
			})
		}
	}
	t.Run("longest of all", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			srv.Inject(minutestest.Match{Operation: "usage.get"}, minutestest.RateLimit("50"))
			c := testkit.Client(srv, minutes.WithRetries(1, math.MaxInt64, math.MaxInt64))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			_, err := c.Usage.Get(ctx)
			require.ErrorIs(t, err, minutes.ErrRateLimited)
		})
	})
}

// A deletion that may have taken effect and then finds nothing has succeeded;
// one that certainly had none has not.
func TestDeleteAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		faults []minutestest.Fault
		dial   error
		ok     bool
	}{
		{"reply lost", []minutestest.Fault{minutestest.LoseReply()}, nil, true},
		{"502 after the effect", []minutestest.Fault{minutestest.BadGateway().AfterEffect()}, nil, true},
		{"500 after the effect", []minutestest.Fault{minutestest.Refuse(minutes.ErrInternal).AfterEffect()}, nil, true},
		{"503 after the effect", []minutestest.Fault{minutestest.Respond(503, "text/html", "<p>later").AfterEffect()}, nil, true},
		{"504 after the effect", []minutestest.Fault{minutestest.Respond(504, "text/html", "<p>later").AfterEffect()}, nil, true},
		{"time-out after the effect", []minutestest.Fault{minutestest.Delay(time.Hour).AfterEffect()}, nil, true},
		{"reply lost, then 429", []minutestest.Fault{minutestest.LoseReply(), minutestest.RateLimit("1")}, nil, true},
		{"reply lost, then half a NOT_FOUND", []minutestest.Fault{minutestest.LoseReply(), minutestest.Truncate(9)}, nil, true},
		{"429", []minutestest.Fault{minutestest.RateLimit("1")}, nil, false},
		{"never connected", nil, testbase.ErrRefused, false},
		{"half a NOT_FOUND", []minutestest.Fault{minutestest.Truncate(9)}, nil, false},
		{"nothing", nil, nil, false},
		{"page of a gateway", []minutestest.Fault{minutestest.LoseReply(), minutestest.Respond(404, "text/html", "<h1>no</h1>")}, nil, false},
		{"forbidden", []minutestest.Fault{minutestest.LoseReply(), minutestest.Refuse(minutes.ErrForbidden)}, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				m, _, err := testkit.Client(srv).Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Gone", Date: "2026-11-20"})
				require.NoError(t, err)
				if !test.ok && test.name != "page of a gateway" && test.name != "forbidden" {
					require.NoError(t, testkit.Client(srv).Meetings.Delete(t.Context(), m.ID)) // by somebody else
				}
				if test.faults != nil {
					srv.Inject(minutestest.Match{Operation: "meetings.delete"}, test.faults...)
				}
				l := &testkit.Line{Op: "meetings.delete", Dial: test.dial, Dials: 1}
				err = l.On(srv).Meetings.Delete(t.Context(), m.ID)
				if test.ok {
					require.NoError(t, err)
					return
				}
				require.Error(t, err)
			})
		})
	}
}

// A Create whose reply was lost finds its own meeting.
func TestCreateAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: "meetings.create"}, minutestest.LoseReply(), minutestest.Truncate(3), minutestest.BadGateway().AfterEffect())
		c := testkit.Client(srv)
		m, created, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Once", Date: "2026-11-20", ExternalID: "crm/1"})
		require.NoError(t, err)
		require.False(t, created, "as far as the last reply can tell")
		page, err := c.Meetings.List(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, page.Meetings, 1)
		require.Equal(t, m.ID, page.Meetings[0].ID)
	})
}

// One try has 30 s unless the caller's http.Client says otherwise; the call as
// a whole has what ctx gives it.
func TestTimeLimitOfATry(t *testing.T) {
	t.Parallel()
	for limit, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 7 * time.Second: 7 * time.Second, time.Hour: time.Hour} {
		t.Run(limit.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				srv.Inject(minutestest.Match{Operation: "usage.get", Times: 3}, minutestest.Delay(3*time.Hour))
				hc := &http.Client{Transport: srv.HTTPClient().Transport, Timeout: limit}
				c := testkit.Client(srv, minutes.WithHTTPClient(hc), minutes.WithRetries(2, 0, 0))
				start := time.Now()
				_, err := c.Usage.Get(t.Context())
				require.Equal(t, 3*want, time.Since(start))
				require.True(t, timedOut(err), "%v", err)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, limit, hc.Timeout)
			})
		})
	}
}

// The same over a transport that tells of the try's context, which is not the
// caller's.
func TestTimeLimitOfATryWhateverTheTransport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := testkit.New("https://minutes.example", testkit.Key, minutes.WithRetries(2, 0, 0), minutes.WithHTTPClient(&http.Client{
			Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}),
		}))
		require.NoError(t, err)
		start := time.Now()
		_, err = c.Usage.Get(t.Context())
		require.Equal(t, 90*time.Second, time.Since(start))
		require.True(t, timedOut(err))
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A try that was given up may still be writing its request when the next one
// is made: the race detector sees whether they share anything they change.
func TestAbandonedTryStillWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithoutAudit())
		var conns atomic.Int32
		near := srv.HTTPClient().Transport
		deaf := &http.Transport{DisableKeepAlives: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			conn, far := net.Pipe()
			conns.Add(1)
			go func() { // reads slowly, and never answers
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
		var tries int
		hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if tries++; tries <= 3 {
				return deaf.RoundTrip(req)
			}
			return near.RoundTrip(req)
		})}
		c := testkit.Client(srv, minutes.WithHTTPClient(hc), minutes.WithRetries(3, 0, 0))
		terms := make([]string, 400)
		for i := range terms {
			terms[i] = fmt.Sprint("term ", i, strings.Repeat("x", 100))
		}
		v, err := c.Vocabulary.Replace(t.Context(), terms)
		require.NoError(t, err)
		require.Equal(t, terms, v.Terms)
		require.EqualValues(t, 3, conns.Load())
		time.Sleep(time.Minute) // the servers notice
	})
}

// Connections serve again after failures: refusals of all kinds cost none.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	statuses := []int{200, 500, 503, 429, 404, 409, 302, 401, 502, 200}
	var served atomic.Int32
	var opened atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := testkit.New(srv.URL, testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: transport}), minutes.WithRetries(2, 0, 0), minutes.WithRateLimit(0, 0))
	require.NoError(t, err)
	for range 30 {
		_, err := c.Usage.Get(t.Context())
		require.Error(t, err)
	}
	require.Greater(t, served.Load(), int32(30))
	require.EqualValues(t, 1, opened.Load())
}

// A debug log tells what happened, try by try.
func TestDebugLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: "meetings.get"}, minutestest.Refuse(minutes.ErrInternal), minutestest.RateLimit("3"), minutestest.Reset())
		out := new(testbase.Buffer)
		log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		c := testkit.Client(srv, minutes.WithLogger(log), minutes.WithRetries(4, time.Second, time.Second))
		j := testkit.Jobs()[len(testkit.Jobs())-1]
		id := j.MeetingFor(t, srv)
		_, err := c.Meetings.Get(t.Context(), id)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 5)
		require.Contains(t, lines[2], "level=INFO")
		require.Contains(t, lines[2], "held back after a 429")
		lines = slices.Delete(lines, 2, 3)
		for i, want := range [][]string{
			{"status=500", "code=INTERNAL_ERROR", "request_id=req_", "wait=1s"},
			{"status=429", "code=RATE_LIMITED", "wait="},
			{`error="`, "connection reset", "wait=1s"},
			{"status=200"},
		} {
			want = append(want, "level=DEBUG", "operation=meetings.get", "method=GET", "path=/v1/meetings/"+id, fmt.Sprintf("attempt=%d", i+1))
			for _, w := range want {
				require.Contains(t, lines[i], w)
			}
		}
		require.NotContains(t, lines[3], "wait")

		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.RefuseUpload(503, "SlowDown"))
		require.NoError(t, j.Call(t.Context(), c, id))
		for _, w := range []string{"operation=storage.put", "meeting=" + id, "method=PUT", "host=storage.minutes.test", "path=/storage/", "status=503", "SlowDown", "request_id=req_", "attempt=1", "wait=1s", "attempt=2", "status=200", "sent=3000", "size=3000"} {
			require.Contains(t, out.String(), w)
		}
		require.NotContains(t, out.String(), "Signature")
		require.NotContains(t, out.String(), srv.Key())
	})
}
