package rest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

// edge is a limit of a service, with room for one second's worth of requests, that throttles share.
type edge struct{ *rate.Limiter }

// spend makes requests through a throttle until ctx is done, and returns how many the edge accepted.
func (e edge) spend(ctx context.Context, t *Throttle, inBackground bool) (accepted int) {
	for t.Wait(ctx, inBackground) == nil {
		sentAt := time.Now()
		time.Sleep(time.Duration(20+rand.IntN(60)) * time.Millisecond)
		if e.Allow() {
			accepted++
			t.Accepted()
		} else {
			t.Limited(Rejection{SentAt: sentAt, Background: inBackground})
		}
	}
	return accepted
}

func TestThrottle_SharesLimitFairly(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		perSecond    int
		inBackground bool
		within       int // the largest share of a process, compared with the smallest
	}{
		{2, true, 3},
		{10, false, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
			defer cancel()
			e := edge{rate.NewLimiter(rate.Limit(row.perSecond), row.perSecond)}
			accepted := make([]int, 10)
			var all sync.WaitGroup
			for i := range accepted {
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Minute / 2) // the first ones have taken everything
					accepted[i] = e.spend(ctx, NewThrottle(rate.NewLimiter(rate.Inf, 0)), row.inBackground)
				})
			}
			all.Wait()
			sum := 0
			for _, n := range accepted {
				sum += n
			}
			assert.Less(t, slices.Max(accepted), row.within*slices.Min(accepted))
			assert.Greater(t, sum, row.perSecond*29*60/2)
		})
	}
}

// The user's requests go first, but not all the time.
func TestThrottle_LetsRequestsInBackgroundGiveWay(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		perSecond rate.Limit
		every     float64 // which request is one in the background
		lasts     time.Duration
	}{
		{"for eleven others", 4, 12, 10 * time.Minute},
		{"for a minute at most", 0.1, 7, time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), row.lasts)
				defer cancel()
				throttle := NewThrottle(rate.NewLimiter(row.perSecond, 1))
				all := edge{rate.NewLimiter(rate.Inf, 1)}
				var waits sync.WaitGroup
				for range 20 {
					waits.Go(func() { all.spend(ctx, throttle, false) })
				}
				var polls int
				waits.Go(func() { polls = all.spend(ctx, throttle, true) })
				waits.Wait()
				assert.InEpsilon(t, float64(row.perSecond)*row.lasts.Seconds()/row.every, polls, 0.05)
			})
		})
	}
}

// Even an overdue request in the background gives way while its own pace holds it back.
func TestThrottle_APollHeldBackByItsPaceDelaysNoCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(rate.NewLimiter(100, 1))
		for range 2 {
			require.NoError(t, throttle.Wait(t.Context(), true))
			time.Sleep(time.Second)
			throttle.Limited(Rejection{SentAt: time.Now(), Background: true})
		}
		var poll sync.WaitGroup
		poll.Go(func() { assert.NoError(t, throttle.Wait(t.Context(), true)) })
		synctest.Wait()
		held := throttle.Left(true)
		require.Greater(t, held, 2*time.Second)
		began := time.Now()
		for range 100 {
			require.NoError(t, throttle.Wait(t.Context(), false))
		}
		require.Less(t, time.Since(began), held)
		poll.Wait()
	})
}

// A poll that got a 429 has not had its turn, so it need not wait for eleven others again.
func TestThrottle_OwesARejectedPollItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		throttle := NewThrottle(rate.NewLimiter(1, 1))
		require.NoError(t, throttle.Wait(ctx, true))
		throttle.Limited(Rejection{SentAt: time.Now(), Background: true})
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				for throttle.Wait(ctx, false) == nil {
					throttle.Accepted()
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		require.NoError(t, throttle.Wait(ctx, true))
		require.Less(t, time.Since(began), 3*time.Second)
		cancel()
		calls.Wait()
	})
}

// The histories are of a Client that has sent eight requests of each kind in the last second. 1 is
// a 429.
func TestThrottle_A429LowersThePace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		history    uint32 // before the 429
		pace       float64
		ofUsers    float64 // after a 429 to a request of the user
		background float64
	}{
		{0b0000_0000_0000_0000, 4, 4, 4},                             // a single 429 proves nothing
		{0b1_0000_0000_0000_0000, 4, 4, 4},                           // an older one is forgotten
		{0b0000_0000_0000_0001, 4, 4 * 255.0 / 256, 2},               // two in a row
		{0b1000_0000_0000_0000, 4, 4 * 255.0 / 256, 2},               // or fifteen others between them
		{0b0101_0101_0101_0101, 4, 3, 2},                             // half of the requests
		{0b0000_0000_0000_0001, 1000, 8 * 255.0 / 256, 4},            // a pace that the Client does not use
		{0b1111_1111_1111_1111, 4, leastPace, 2},                     // all
		{0b0101_0101_0101_0101, leastPace / 2, leastPace, leastPace}, // never below the least
	} {
		for _, inBackground := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
				throttle.history = row.history
				for _, l := range []*lane{&throttle.users, &throttle.background} {
					l.recent = 8
					l.pace = pace{atLimit: row.pace, lowered: now}
				}
				throttle.Limited(Rejection{SentAt: now, Background: inBackground})
				users := row.ofUsers
				if inBackground {
					users = row.pace
				}
				assert.InDelta(t, users, throttle.users.pace.perSecond(now), 1e-9, "%016b", row.history)
				assert.InDelta(t, row.background, throttle.background.pace.perSecond(now), 1e-9, "%016b", row.history)
			})
		}
	}
}

// No gateway that rejects at random says when to come back, so even a single 429 that does so proves a
// limit. The user's calls go on at their pace nevertheless, because the pause holds them back anyway.
func TestThrottle_ARetryAfterLowersThePaceOfPolls(t *testing.T) {
	t.Parallel()
	for _, inBackground := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now()
			throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
			for _, l := range []*lane{&throttle.users, &throttle.background} {
				l.recent = 8
			}
			throttle.Limited(Rejection{SentAt: now, Background: inBackground, RetryAfter: time.Second})
			assert.Greater(t, throttle.users.pace.perSecond(now), 8.0)
			if inBackground {
				assert.InDelta(t, 4, throttle.background.pace.perSecond(now), 1e-9)
			} else {
				assert.Greater(t, throttle.background.pace.perSecond(now), 8.0)
			}
		})
	}
}

// Otherwise a user who always calls at the limit would put the polls off for ever.
func TestThrottle_A429HoldsBackItsOwnLine(t *testing.T) {
	t.Parallel()
	for _, inBackground := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
			for range 2 {
				throttle.Limited(Rejection{SentAt: time.Now(), Background: inBackground})
				time.Sleep(time.Second)
			}
			assert.Greater(t, throttle.Left(inBackground), time.Second)
			assert.LessOrEqual(t, throttle.Left(!inBackground), time.Duration(0))
		})
	}
}

// storm rejects all requests of a throttle for an hour.
type storm struct {
	throttle   *Throttle
	ends       time.Time
	retryAfter time.Duration

	mu       sync.Mutex
	rejected int
	// accepted is when it accepted the first request.
	accepted time.Time
	// unsent is how many requests failed after that without being sent.
	unsent int
}

// call makes one request.
func (s *storm) call(ctx context.Context, inBackground bool) {
	err := s.throttle.Wait(ctx, inBackground)
	sentAt := time.Now()
	if err == nil {
		time.Sleep(time.Second)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && !s.accepted.IsZero():
		s.unsent++
	case err != nil:
	case sentAt.Before(s.ends):
		s.rejected++
		s.throttle.Limited(Rejection{
			SentAt: sentAt, Background: inBackground, RetryAfter: s.retryAfter, Delay: Delay(0, 0),
		})
	default:
		if s.accepted.IsZero() {
			s.accepted = sentAt
		}
		s.throttle.Accepted()
	}
}

// repeat makes one request after the other, each with a time limit.
func (s *storm) repeat(inBackground bool, within time.Duration) {
	for time.Now().Before(s.ends.Add(10 * time.Minute)) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		s.call(ctx, inBackground)
		cancel()
		time.Sleep(3 * time.Second)
	}
}

// A pause that is longer than the service asked for does not outlive its reason by more than 45
// seconds, unless nobody knows when to come back or is in a hurry.
func TestThrottle_FindsTheEndOf429s(t *testing.T) {
	t.Parallel()
	const patient = time.Hour
	for _, row := range []struct {
		name       string
		retryAfter time.Duration
		users      time.Duration // the time limit of the user's calls; 0: there are none
		polls      bool
		within     time.Duration
	}{
		{"a wait", time.Second, 0, true, probeAfter},
		{"calls and a wait", time.Second, patient, true, probeAfter},
		{"calls with a deadline and a wait", time.Second, 20 * time.Second, true, probeAfter},
		{"calls with a deadline", 0, 20 * time.Second, false, probeAfter},
		{"calls with a deadline beside a wait", 0, 20 * time.Second, true, probeAfter},
		{"a wait that knows nothing", 0, 0, true, longestPause},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &storm{
					throttle:   NewThrottle(rate.NewLimiter(rate.Inf, 0)),
					ends:       time.Now().Add(time.Hour),
					retryAfter: row.retryAfter,
				}
				var all sync.WaitGroup
				if row.users > 0 {
					all.Go(func() { s.repeat(false, row.users) })
				}
				if row.polls {
					all.Go(func() { s.repeat(true, patient) })
				}
				all.Wait()
				assert.LessOrEqual(t, s.rejected, 130)
				assert.Less(t, s.accepted.Sub(s.ends), row.within+5*time.Second)
				assert.Zero(t, s.unsent, "calls that failed without a request after that")
			})
		})
	}
}

// A call without a deadline that is first in its lane does not keep one that has a deadline from
// finding the end of the 429s.
func TestThrottle_ProbesForACallBehindOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
		for range 25 {
			require.NoError(t, throttle.Wait(t.Context(), false))
			sentAt := time.Now()
			time.Sleep(time.Second)
			throttle.Limited(Rejection{SentAt: sentAt})
		}
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				assert.NoError(t, throttle.Wait(t.Context(), false))
				throttle.Accepted()
			})
		}
		synctest.Wait()
		require.Greater(t, throttle.Left(false), 2*time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.NoError(t, throttle.Wait(ctx, false))
		all.Wait()
	})
}

// While nothing but 429s comes back, the pause doubles, at last from ten seconds to five minutes.
func TestThrottle_PausesLongerAfterNothingBut429s(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
		reject := func() time.Duration {
			require.NoError(t, throttle.Wait(t.Context(), false))
			sentAt := time.Now()
			time.Sleep(time.Second)
			pause := throttle.Limited(Rejection{SentAt: sentAt})
			another := Rejection{SentAt: sentAt, Delay: time.Nanosecond}
			assert.Zero(t, throttle.Limited(another), "it was sent together with the last one")
			return pause
		}
		began := time.Now()
		for range 15 {
			assert.LessOrEqual(t, reject(), 10*time.Second)
		}
		assert.Greater(t, time.Since(began), time.Minute)
		for _, most := range []float64{18.75, 37.5, 75, 150, 300, 300} {
			assert.InDelta(t, most*3/4, reject().Seconds(), most/4)
		}
		throttle.Accepted()
		assert.LessOrEqual(t, reject(), 10*time.Second)
		asked := throttle.Limited(Rejection{SentAt: time.Now(), RetryAfter: 20 * time.Second})
		assert.Equal(t, 20*time.Second, asked, "the service asks for more")
	})
}

// Processes that the service began to reject together do not come back together.
func TestThrottle_PausesWithJitter(t *testing.T) {
	t.Parallel()
	var pauses []time.Duration
	for range 100 {
		pauses = append(pauses, pauseAfter(math.MaxUint32, longestPause))
	}
	assert.Less(t, slices.Min(pauses), 3*time.Minute)
	assert.Greater(t, slices.Max(pauses), 4*time.Minute)
}

// A pause that outlasts the deadline ends a wait, even if the 429 comes during the wait or while others are before it.
func TestThrottle_EndsAWaitThatIsInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
		began := time.Now()
		throttle.Limited(Rejection{SentAt: began, RetryAfter: 3 * time.Second})
		time.AfterFunc(time.Second, func() { throttle.Limited(Rejection{SentAt: began, RetryAfter: 30 * time.Second}) })
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				assert.ErrorIs(t, throttle.Wait(ctx, false), ErrPaused)
				assert.Less(t, time.Since(began), 15*time.Second)
			})
		}
		all.Wait()
		patient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		all.Go(func() { assert.NoError(t, throttle.Wait(patient, false)) })
		synctest.Wait()
		behind, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		inVain := time.Now()
		assert.ErrorIs(t, throttle.Wait(behind, false), ErrPaused)
		assert.Zero(t, time.Since(inVain), "at once, although others are before it")
		hasty, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		time.AfterFunc(time.Second, func() { throttle.Limited(Rejection{SentAt: began, RetryAfter: 50 * time.Second}) })
		assert.ErrorIs(t, throttle.Wait(hasty, false), ErrPaused, "behind the patient one until its deadline")
		all.Wait()
	})
}

func TestThrottle_ForgetsOld429s(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
		for range 2 {
			require.NoError(t, throttle.Wait(t.Context(), false))
			time.Sleep(time.Second)
			throttle.Limited(Rejection{SentAt: time.Now()})
		}
		time.Sleep(time.Hour)
		began := time.Now()
		for range 100 {
			require.NoError(t, throttle.Wait(t.Context(), false))
			throttle.Accepted()
		}
		assert.Less(t, time.Since(began), 10*time.Millisecond)
	})
}
