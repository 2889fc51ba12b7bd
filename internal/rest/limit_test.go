package rest

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

func slow(perSecond float64, burst int) func(*Config) {
	return func(cfg *Config) { cfg.Throttle = NewThrottle(rate.NewLimiter(rate.Limit(perSecond), burst)) }
}

// A 429 pauses the requests of its Client, and of no other, for a minute at most.
func TestLimit_PausesAllRequests(t *testing.T) {
	t.Parallel()
	for retryAfter, pause := range map[string]time.Duration{"20": 20 * time.Second, "3600": time.Minute} {
		synctest.Test(t, func(t *testing.T) { testPause(t, retryAfter, pause) })
	}
}

func testPause(t *testing.T, retryAfter string, pause time.Duration) {
	s := &service{answers: []answer{{status: 429, retryAfter: retryAfter}, {status: 200}}}
	c := newClient(s, noRetries)
	other := newClient(s)
	start := time.Now()
	resp, err := c.Call(t.Context(), get)
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, resp.Status)
	require.Zero(t, time.Since(start))
	var calls sync.WaitGroup
	for _, in := range []Request{get, create, {Method: http.MethodGet, Path: "/", Background: true}} {
		calls.Go(func() {
			_, err := c.Call(t.Context(), in)
			assert.NoError(t, err)
			assert.GreaterOrEqual(t, time.Since(start), pause)
			assert.Less(t, time.Since(start), pause+20*time.Second)
		})
	}
	calls.Go(func() {
		_, err := other.Call(t.Context(), get)
		assert.NoError(t, err)
		assert.Zero(t, time.Since(start))
	})
	calls.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), pause-time.Second)
		defer cancel()
		resp, err := c.Call(ctx, get)
		assert.Zero(t, time.Since(start), "at once")
		assert.Zero(t, resp.Status)
		assert.Equal(t, c.Throttle.Left(false), resp.RetryAfter)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, "the rate-limit pause outlasts the context's deadline: context deadline exceeded")
	})
	calls.Wait()
}

func TestLimit_CountsRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{answers: []answer{{status: 502}, {status: 502}, {status: 200}}}
		c := newClient(s, slow(0.1, 1))
		_, err := c.Call(t.Context(), get)
		require.NoError(t, err)
		require.Len(t, s.sent, 3)
		for i, at := range s.sent {
			require.InDelta(t, float64(i)*10, at.Sub(s.sent[0]).Seconds(), 1e-6, "request %d", i)
		}
	})
}

// The wait for the limit is not part of an attempt, so the timeout of one does not end it.
func TestLimit_EndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(&service{answers: []answer{{status: 200}}}, slow(0.01, 1), func(cfg *Config) {
			cfg.Observe = func(_ context.Context, a AttemptReport) { assert.NoError(t, a.Err) }
		})
		_, err := c.Call(t.Context(), get)
		require.NoError(t, err)
		start := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		_, err = c.Call(short, get)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 90*time.Second, time.Since(start))
		start = time.Now()

		canceled, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { stop(io.ErrNoProgress) })
		_, err = c.Call(canceled, get)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, io.ErrNoProgress)
		require.Equal(t, 5*time.Second, time.Since(start))

		_, err = c.Call(t.Context(), get)
		require.NoError(t, err)
	})
}

func TestLimit_SendMayCallOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{answers: []answer{{status: 429, retryAfter: "20"}, {status: 200}}}
		c := newClient(s, noRetries)
		_, err := c.Call(t.Context(), get)
		require.NoError(t, err)
		start := time.Now()
		in := get
		in.Send = func() bool {
			assert.GreaterOrEqual(t, time.Since(start), 20*time.Second, "after the pause")
			return false
		}
		_, err = c.Call(t.Context(), in)
		require.EqualError(t, err, "canceled before it was sent")
		require.Len(t, s.sent, 1)
	})
}

// Twenty calls one after the other take little longer if one attempt by a Client that was idle gets a 429.
func TestLimit_A429HardlySlowsAnIdleClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes = 150 * time.Millisecond
		s := &service{answers: []answer{{status: 429, after: takes}, {status: 200, after: takes}}}
		c := newClient(s)
		began := time.Now()
		for range 20 {
			resp, err := c.Call(t.Context(), get)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, resp.Status)
		}
		require.Less(t, time.Since(began), 21*takes+time.Second/2)
	})
}

func TestLimit_AnyOtherResponseEndsLongPauses(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 404, 500} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{}
			for range 12 {
				s.answers = append(s.answers, answer{status: 429, after: time.Second})
			}
			s.answers = append(s.answers, answer{status: status, after: time.Second}, s.answers[0])
			c := newClient(s, noRetries)
			for i := range s.answers {
				_, err := c.Call(t.Context(), get)
				require.NoError(t, err)
				switch i {
				case 11:
					require.Greater(t, c.Throttle.Left(false), 9*time.Second)
				case 13:
					require.Less(t, c.Throttle.Left(false), 11*time.Second)
				}
			}
			require.Len(t, s.sent, 14)
		})
	}
}

// Requests in the background have a lane of their own, so that the user's calls pass them.
func TestLimit_CallsPassRequestsInBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(&service{answers: []answer{{status: 200}}}, slow(1, 1))
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				_, err := c.Call(t.Context(), Request{Method: http.MethodGet, Path: "/", Background: true})
				assert.NoError(t, err)
			})
		}
		synctest.Wait()
		began := time.Now()
		_, err := c.Call(t.Context(), get)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), time.Second)
		all.Wait()
	})
}
