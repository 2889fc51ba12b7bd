package rest

import (
	"context"
	"math/rand/v2"
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
		} else {
			t.Limited(sentAt, 0)
		}
	}
	return accepted
}

func TestThrottle_SharesLimitFairly(t *testing.T) {
	t.Parallel()
	for _, perSecond := range []int{2, 10} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
			defer cancel()
			e := edge{rate.NewLimiter(rate.Limit(perSecond), perSecond)}
			accepted := make([]int, 10)
			var all sync.WaitGroup
			for i := range accepted {
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Minute / 2) // the first ones have taken everything
					accepted[i] = e.spend(ctx, NewThrottle(rate.NewLimiter(rate.Inf, 0)), true)
				})
			}
			all.Wait()
			sum, least, most := 0, accepted[0], accepted[0]
			for _, n := range accepted {
				sum, least, most = sum+n, min(least, n), max(most, n)
			}
			assert.Less(t, most, 3*least)
			assert.Greater(t, sum, perSecond*29*60/2)
		})
	}
}

// The user's requests go first, but not all the time.
func TestThrottle_LetsBackgroundHaveEveryFourthRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		throttle := NewThrottle(rate.NewLimiter(4, 1))
		all := edge{rate.NewLimiter(rate.Inf, 1)}
		var waits sync.WaitGroup
		for range 20 {
			waits.Go(func() { all.spend(ctx, throttle, false) })
		}
		var polls int
		waits.Go(func() { polls = all.spend(ctx, throttle, true) })
		waits.Wait()
		assert.InDelta(t, 600, polls, 10)
	})
}

// Each 429 halves the pace, so that pauses grow. Of requests that were sent together, only the first counts.
func TestThrottle_PausesLongerAfterMore429s(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
		for _, want := range []float64{3, 6, 10, 11} {
			require.NoError(t, throttle.Wait(t.Context(), false))
			sentAt := time.Now()
			time.Sleep(time.Second)
			assert.InDelta(t, want, throttle.Limited(sentAt, 0).Seconds(), 1.5)
			assert.Zero(t, throttle.Limited(sentAt, time.Second))
			assert.Equal(t, 20*time.Second, NewThrottle(throttle.limit).Limited(sentAt, 20*time.Second), "the service asks for more")
		}
	})
}

// A pause that outlasts the deadline ends a wait, even if the 429 comes during the wait or while others are before it.
func TestThrottle_EndsAWaitThatIsInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
		began := time.Now()
		throttle.Limited(began, 3*time.Second)
		time.AfterFunc(time.Second, func() { throttle.Limited(began, 30*time.Second) })
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
		time.AfterFunc(time.Second, func() { throttle.Limited(began, 50*time.Second) })
		assert.ErrorIs(t, throttle.Wait(hasty, false), ErrPaused, "behind the patient one until its deadline")
		all.Wait()
	})
}

func TestThrottle_ForgetsOld429(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
		require.NoError(t, throttle.Wait(t.Context(), false))
		throttle.Limited(time.Now(), 0)
		time.Sleep(time.Hour)
		began := time.Now()
		for range 100 {
			require.NoError(t, throttle.Wait(t.Context(), false))
		}
		assert.Less(t, time.Since(began), 10*time.Millisecond)
	})
}
