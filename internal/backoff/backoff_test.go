package backoff

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // where it is midnight of 1 January 2000
		for value, want := range map[string]time.Duration{
			"0": 0, "1": time.Second, "120": 2 * time.Minute, "007": 7 * time.Second,
			"2147483647": (1<<31 - 1) * time.Second, "2147483648": far,
			"9223372036854775807": far, "99999999999999999999999": far,
			"Sat, 01 Jan 2000 00:00:30 GMT":    30 * time.Second,
			"Saturday, 01-Jan-00 00:00:30 GMT": 30 * time.Second,
			"Sat Jan  1 00:00:30 2000":         30 * time.Second,
			"Fri, 31 Dec 1999 23:00:00 GMT":    0,
			"Fri, 31 Dec 9999 23:59:59 GMT":    far,
			"Thu, 01 Jan 1970 00:00:00 GMT":    0,
			"":                                 0, "-1": 0, "+1": 0, "1.5": 0, "1e3": 0, "soon": 0, "1 2": 0, "0x10": 0, "1_000": 0,
			"2026-11-20T12:00:30Z":             0,
			"Sat, 01 Jan 2000 00:00:30 +01:00": 0,
		} {
			for _, status := range []int{429, 503} {
				assert.Equal(t, want, RetryAfter(status, http.Header{"Retry-After": {value}}), "%q", value)
			}
			for _, status := range []int{200, 400, 500, 502} {
				assert.Zero(t, RetryAfter(status, http.Header{"Retry-After": {value}}))
			}
		}
		assert.Zero(t, RetryAfter(429, nil))
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "0", "7", "-1", "9223372036854775807", "Fri, 20 Nov 2026 12:00:30 GMT", "Friday, 20-Nov-26 12:00:30 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		d := RetryAfter(429, http.Header{"Retry-After": {value}})
		if d < 0 || d > far {
			t.Fatalf("%q: %v", value, d)
		}
		if wait := (Policy{1, time.Second, time.Minute}).Wait(1, d); wait < d {
			t.Fatalf("%q: waits %v of %v", value, wait, d)
		}
	})
}

// The wait before a retry is within its bounds for every policy.
func FuzzWait(f *testing.F) {
	f.Add(int64(0), int64(0), 1)
	f.Add(int64(0), int64(math.MaxInt64), 100)
	f.Add(int64(1), int64(math.MaxInt64), 70)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 1)
	f.Add(int64(5e8), int64(15e9), 3)
	f.Fuzz(func(t *testing.T, lo, hi int64, n int) {
		if lo < 0 || hi < lo || n < 1 || n > 100 {
			return
		}
		p := Policy{n, time.Duration(lo), time.Duration(hi)}
		if d := p.Wait(n, 0); d < p.WaitMin || d > p.WaitMax {
			t.Fatalf("%v", d)
		}
	})
}

// If WaitMin is 0, waits still grow, unless WaitMax is 0, too.
func TestWait_GrowsFromZero(t *testing.T) {
	t.Parallel()
	longest := func(p Policy, n int) (d time.Duration) {
		for range 1000 {
			d = max(d, p.Wait(n, 0))
		}
		return d
	}
	p := Policy{WaitMax: time.Minute}
	for n, most := range map[int]time.Duration{1: time.Second, 3: 4 * time.Second, 20: time.Minute} {
		assert.InDelta(t, float64(most), float64(longest(p, n)), float64(most)/5)
		assert.LessOrEqual(t, longest(p, n), most)
	}
	assert.Zero(t, longest(Policy{}, 5))
}

// The wait is at least the Retry-After, however long, and randomly a little longer.
func TestWait_IsAtLeastRetryAfter(t *testing.T) {
	t.Parallel()
	p := Policy{WaitMin: time.Second, WaitMax: time.Minute}
	for _, asked := range []time.Duration{time.Hour, far} {
		for range 100 {
			wait := p.Wait(1, asked)
			require.GreaterOrEqual(t, wait, asked)
			require.LessOrEqual(t, wait, asked+time.Second)
		}
	}
}

func TestCauses_AddTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why, first := errors.New("shutting down"), errors.New("lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		assert.Equal(t, []error{first}, Causes(ctx, first))
		assert.Greater(t, Left(ctx), far)
		start := time.Now()
		require.NoError(t, Sleep(ctx, time.Hour))
		assert.Equal(t, time.Hour, time.Since(start))
		time.AfterFunc(time.Minute, func() { cancel(why) })
		require.ErrorIs(t, Sleep(ctx, time.Hour), context.Canceled)
		assert.Equal(t, time.Hour+time.Minute, time.Since(start))
		assert.Equal(t, []error{first, why, context.Canceled}, Causes(ctx, first))
		assert.Equal(t, []error{why, context.Canceled}, Causes(ctx, why))
		require.ErrorIs(t, ContextError(ctx), why)
		require.ErrorIs(t, ContextError(ctx), context.Canceled)

		short, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		assert.Equal(t, time.Minute, Left(short))
		<-short.Done()
		assert.Zero(t, Left(short))
		assert.Equal(t, context.DeadlineExceeded, ContextError(short))
	})
}
