package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// byOperation is a transport that sends each operation to a separate service.
func byOperation(services map[route.Operation]*service) http.RoundTripper {
	return testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		info, _ := AttemptOf(req.Context())
		return services[info.Operation].RoundTrip(req)
	})
}

func noRetries(cfg *Config) { cfg.Retries = backoff.Policy{} }

// A Retry-After over a minute is returned at once, and pauses the Client for a minute.
func TestPause_HoldsBackAllRequests(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"20": 20 * time.Second, "60": time.Minute, "61": time.Minute, "86400": time.Minute, "2147483647": time.Minute,
		"99999999999999999999": time.Minute, "Fri, 31 Dec 9999 23:59:59 GMT": time.Minute,
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{answers: []answer{{status: 429, retryAfter: value}, {status: 200}}}
				c, other := newClient(s, noRetries), newClient(s)
				start := time.Now()
				failure := do(t.Context(), c, usage)
				require.Equal(t, http.StatusTooManyRequests, failure.Status)
				require.Zero(t, time.Since(start))
				if want == time.Minute {
					require.GreaterOrEqual(t, failure.RetryAfter, time.Minute)
				}
				var calls sync.WaitGroup
				for _, row := range route.Table {
					calls.Go(func() {
						assert.Nil(t, do(t.Context(), c, Request{Operation: row.Operation, ID: "mtg_1"}))
						assert.GreaterOrEqual(t, time.Since(start), want, row.Operation)
						assert.Less(t, time.Since(start), want+5*time.Second, row.Operation)
					})
				}
				calls.Go(func() {
					assert.Nil(t, do(t.Context(), other, usage))
					assert.Zero(t, time.Since(start), "another Client")
				})
				for _, deadline := range []time.Duration{time.Nanosecond, want - time.Second} {
					calls.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), deadline)
						defer cancel()
						failure := do(ctx, c, usage)
						assert.Zero(t, time.Since(start), "at once")
						assert.True(t, failure.Paused)
						assert.Equal(t, want, failure.RetryAfter)
						assert.ErrorIs(t, failure.err(), context.DeadlineExceeded)
					})
				}
				calls.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(3*time.Second, cancel)
					assert.ErrorIs(t, do(ctx, c, usage).err(), context.Canceled)
					assert.Equal(t, 3*time.Second, time.Since(start))
				})
				calls.Wait()
			})
		})
	}
}

// A later 429 can extend the pause of waiting requests, but never shortens it.
func TestPause_OnlyGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(byOperation(map[route.Operation]*service{
			route.MembersList:  {answers: []answer{{status: 429, retryAfter: "30", after: 5 * time.Second}, {status: 200}}},
			route.ProjectsList: {answers: []answer{{status: 429, retryAfter: "10"}, {status: 200}}},
			route.UsageGet:     {answers: []answer{{status: 200}}},
		}))
		start := time.Now()
		var calls sync.WaitGroup
		for op, delay := range map[route.Operation]time.Duration{route.MembersList: 0, route.ProjectsList: 1, route.UsageGet: time.Second} {
			calls.Go(func() {
				time.Sleep(delay)
				assert.Nil(t, do(t.Context(), c, Request{Operation: op}))
				assert.InDelta(t, 35, time.Since(start).Seconds(), 1)
			})
		}
		calls.Wait()
	})
}

// A request that needs a retry fails at once if the 429 of another one pauses the Client
// for longer than its deadline.
func TestPause_OfAnotherRequestOutlastsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(byOperation(map[route.Operation]*service{
			route.MembersList:  {answers: []answer{{status: 429, retryAfter: "3600"}}},
			route.ProjectsList: {answers: []answer{{status: 502, after: time.Second}}},
		}))
		start := time.Now()
		time.AfterFunc(500*time.Millisecond, func() { do(t.Context(), c, Request{Operation: route.MembersList}) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		require.Equal(t, http.StatusBadGateway, do(ctx, c, Request{Operation: route.ProjectsList}).Status)
		require.Equal(t, time.Second, time.Since(start))
	})
}

// A 429 for a polled page pauses no other request. A 429 for a poll of a single meeting does.
func TestPause_NotForPolledPages(t *testing.T) {
	t.Parallel()
	for in, want := range map[route.Operation]time.Duration{route.MeetingsList: 0, route.MeetingsGet: 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(&service{answers: []answer{{status: 429, retryAfter: "20"}, {status: 200}}})
			start := time.Now()
			require.NotNil(t, do(t.Context(), c, Request{Operation: in, ID: "mtg_1", Once: true}))
			require.Nil(t, do(t.Context(), c, usage))
			require.Equal(t, want, time.Since(start))
		})
	}
}

// After a pause, polls wait until no call of the user is waiting.
func TestPause_CallsGoBeforePolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{answers: []answer{{status: 429, retryAfter: "20"}, {status: 200}}}
		c := newClient(s, noRetries)
		require.NotNil(t, do(t.Context(), c, usage))
		var all sync.WaitGroup
		for i := range 20 {
			in := Request{Operation: route.MeetingsGet, ID: "mtg_1", Once: i%2 == 0}
			all.Go(func() { assert.Nil(t, do(t.Context(), c, in)) })
		}
		all.Wait()
		require.Equal(t, 21, s.count())
		for i, req := range s.reqs[1:] {
			info, _ := AttemptOf(req.Context())
			require.Equal(t, i >= 10, info.Poll, "request %d", i)
		}
	})
}

func TestDo_SendsNothingIfNoLongerWanted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{answers: []answer{{status: 429, retryAfter: "20"}, {status: 200}}}
		c := newClient(s, noRetries)
		require.NotNil(t, do(t.Context(), c, usage))
		start := time.Now()
		failure := do(t.Context(), c, Request{Operation: route.UsageGet, Wanted: func() bool {
			assert.Equal(t, 20*time.Second, time.Since(start), "after the pause")
			return false
		}})
		require.ErrorContains(t, failure.err(), "canceled before it was sent")
		require.Equal(t, 1, s.count())
	})
}

func slow(perSecond float64, burst int) func(*Config) {
	return func(cfg *Config) { cfg.Rate = rate.NewLimiter(rate.Limit(perSecond), burst) }
}

// If a 429 arrives, requests that wait for the rate limit also wait for the pause.
func TestRateLimit_PauseReachesWaitingRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{answers: []answer{{status: 429, retryAfter: "10", after: time.Second / 2}, {status: 200}}}
		c := newClient(s, slow(1, 1))
		start := time.Now()
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() { assert.Nil(t, do(t.Context(), c, usage)) })
		}
		calls.Wait()
		require.Equal(t, 4, s.count())
		for i, at := range s.sent[1:] {
			assert.GreaterOrEqual(t, at.Sub(start), 10*time.Second+time.Second/2+time.Duration(i)*time.Second)
		}
	})
}

func TestRateLimit_CountsRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{answers: []answer{{status: 502}, {status: 502}, {status: 502}, {status: 502}, {status: 200}}}
		c := newClient(s, slow(0.1, 2))
		start := time.Now()
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() { assert.Nil(t, do(t.Context(), c, usage)) })
		}
		calls.Wait()
		require.Equal(t, 6, s.count())
		for i, at := range s.sent {
			require.InDelta(t, max(0, float64(i-1)*10), at.Sub(start).Seconds(), 1e-6, "request %d", i)
		}
	})
}

func TestRateLimit_EndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(&service{answers: []answer{{status: 200}}}, slow(0.1, 1))
		require.Nil(t, do(t.Context(), c, usage))
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		require.ErrorIs(t, do(short, c, usage).err(), context.DeadlineExceeded)
		require.Zero(t, time.Since(start), "at once")

		canceled, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(io.ErrNoProgress) })
		err := do(canceled, c, usage).err()
		require.True(t, errors.Is(err, context.Canceled) && errors.Is(err, io.ErrNoProgress), "%v", err)
		require.Equal(t, time.Second, time.Since(start))
	})
}

// strict is a service behind an edge that accepts one request per interval, and rejects all others
// with a bare 429, like nginx without a burst.
type strict struct {
	interval time.Duration

	mu   sync.Mutex
	last time.Time
}

func (s *strict) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	status := http.StatusOK
	if now := time.Now(); now.Sub(s.last) < s.interval {
		status = http.StatusTooManyRequests
	} else {
		s.last = now
	}
	return (&service{answers: []answer{{status: status}}}).RoundTrip(req)
}

// Requests that are rejected together do not all come back at once. Each one succeeds within the
// default retries, at no less than a quarter of the rate.
func TestPause_IsFollowedByAGradualStart(t *testing.T) {
	t.Parallel()
	all := []struct{ perSecond, callers, each int }{{1, 6, 5}, {2, 20, 5}, {5, 40, 5}, {20, 300, 2}}
	for _, test := range all[:testbase.Many(4, 3)] {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			t.Parallel()
			for range testbase.Many(5, 1) {
				synctest.Test(t, func(t *testing.T) {
					s := &strict{interval: time.Second / time.Duration(test.perSecond)}
					c := newClient(s, func(cfg *Config) {
						cfg.Retries = backoff.Policy{Max: 4, WaitMin: time.Second / 2, WaitMax: 15 * time.Second}
					})
					start := time.Now()
					var calls sync.WaitGroup
					for range test.callers {
						calls.Go(func() {
							for range test.each {
								assert.Nil(t, do(t.Context(), c, usage))
							}
						})
					}
					calls.Wait()
					fastest := s.interval * time.Duration(test.callers*test.each)
					assert.Less(t, time.Since(start), 4*fastest)
				})
			}
		})
	}
}

// Without further 429s the requests soon reach their earlier rate.
func TestPause_GapCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(&service{answers: []answer{{status: 429, retryAfter: "1"}, {status: 200}}})
		start := time.Now()
		for range 100 {
			require.Nil(t, do(t.Context(), c, usage))
		}
		require.Less(t, time.Since(start), 6*time.Second)
		start = time.Now()
		require.Nil(t, do(t.Context(), c, usage))
		require.Zero(t, time.Since(start))
	})
}
