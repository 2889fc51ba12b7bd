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
			t.Ended()
		} else {
			t.Limited(sentAt, 0)
		}
	}
	return accepted
}

func TestThrottle_SharesLimitFairly(t *testing.T) {
	t.Parallel()
	for _, perSecond := range []int{2, 40} {
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
func TestThrottle_LetsBackgroundHaveEveryFifthRequest(t *testing.T) {
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
		assert.InDelta(t, 480, polls, 10)
	})
}

func TestPace_PausesLongerAfterMore429s(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Unix(0, 0)
	for _, want := range []int{2, 4, 8, 16, 16} {
		p.send(now)
		sentAt := now
		now = now.Add(time.Second)
		assert.Equal(t, time.Duration(want)*time.Second, p.rejected(now, sentAt, 0, 1))
		assert.Zero(t, p.rejected(now, sentAt, 0, 1), "of a request sent together with the other")
		now = p.until
	}
	p.send(now)
	sentAt := now
	now = now.Add(time.Second)
	assert.Equal(t, 20*time.Second, p.rejected(now, sentAt, 20*time.Second, 1))
	assert.Equal(t, time.Minute, p.rejected(now, sentAt, time.Hour, 1), "not longer")
}

func TestThrottle_ForgetsOld429(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle(rate.NewLimiter(rate.Inf, 0))
		require.NoError(t, throttle.Wait(t.Context(), false))
		throttle.Limited(time.Now(), 0)
		time.Sleep(6 * time.Minute)
		began := time.Now()
		for range 100 {
			require.NoError(t, throttle.Wait(t.Context(), false))
		}
		assert.Zero(t, time.Since(began))
	})
}
