package minutes_test

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The busiest minute has few requests, with a full scan, while all meetings end within some
// minutes. TestScenarios in internal/poll checks the averages.
func TestWait_ManyWaitsNeedFewRequests(t *testing.T) {
	t.Parallel()
	const cycle = 30 * time.Second
	for name, test := range map[string]struct {
		meetings, stride int
		perMinute        int // requests, at most
		perSecond        int
	}{
		"dense: pages":                         {meetings: 10_000, stride: 1, perMinute: 500, perSecond: 15},
		"every third: pages":                   {meetings: 3_000, stride: 3, perMinute: 150, perSecond: 10},
		"sparse: single polls":                 {meetings: 4_000, stride: 400, perMinute: 32, perSecond: 10},
		"further apart than a page: no page":   {meetings: 4_000, stride: 80, perMinute: 140, perSecond: 10},
		"every thirtieth: pages far apart":     {meetings: 9_000, stride: 30, perMinute: 600, perSecond: 20},
		"too few for a page":                   {meetings: 19, stride: 1, perMinute: 38, perSecond: 10},
		"enough for a page, all on the newest": {meetings: 50, stride: 1, perMinute: 4, perSecond: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, within := test.meetings, 10*time.Minute
				if n >= 5000 {
					within = 3 * time.Minute // enough cycles, and faster
				}
				n = testbase.Many(n, min(n, max(300, 30*test.stride), 900))
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, n, test.stride, within)
				c, l := testkit.WatchPolls(srv)
				start := time.Now()
				var wg sync.WaitGroup
				late := make([]time.Duration, len(ids))
				for i, id := range ids {
					wg.Go(func() {
						m, err := c.Meetings.Wait(t.Context(), id, nil)
						if assert.NoError(t, err) {
							late[i] = time.Since(m.UpdatedAt.Time())
						}
					})
				}
				wg.Wait()
				latest := slices.Max(late)
				t.Logf("%d waits: %d requests, %d of them pages, in %s; at most %d a minute and %d a second; notified at most %s late",
					len(ids), l.Len(), l.Pages(), time.Since(start).Round(time.Second), l.Most(time.Minute), l.Most(time.Second), latest.Round(time.Second))
				assert.LessOrEqual(t, l.Most(time.Minute), test.perMinute)
				assert.LessOrEqual(t, l.Most(time.Second), test.perSecond)
				assert.LessOrEqual(t, latest, 3*cycle)
				assert.Zero(t, l.TooSoon(ids), "polls within the minimum interval")
			})
		})
	}
}

// Waits that begin one after the other cost few requests, too.
func TestWait_SteadyArrivalsNeedFewRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := testkit.Generous()
		w.Stages.Prepare = 5 * time.Minute
		srv := minutestest.NewServer(t, minutestest.WithWorld(w))
		c, l := testkit.WatchPolls(srv)
		n := testbase.Many(1000, 150) // one a second, so up to 300 wait at a time
		ids := make([]string, n)
		var wg sync.WaitGroup
		for i := range n {
			ids[i] = testkit.Uploaded(t, c, "meeting").ID
			wg.Go(func() {
				m, err := c.Meetings.Wait(t.Context(), ids[i], nil)
				if assert.NoError(t, err) {
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 62*time.Second)
				}
			})
			time.Sleep(time.Second)
		}
		wg.Wait()
		t.Logf("%d requests, %d of them pages; at most %d a minute", l.Len(), l.Pages(), l.Most(time.Minute))
		assert.Less(t, l.Len(), n*3, "ten polls each would be ten thousand")
		assert.Zero(t, l.TooSoon(ids), "polls within the minimum interval")
	})
}

// A wait is notified in time, whatever interval another wait for the same meeting has.
func TestWait_IgnoresTheIntervalsOfOthers(t *testing.T) {
	t.Parallel()
	for name, crowded := range map[string]int{"single polls": 0, "pages": 49} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, crowded+1, 1, 10*time.Minute)
				c, l := testkit.WatchPolls(srv)
				var wg sync.WaitGroup
				for _, id := range ids {
					wg.Go(func() {
						_, err := c.Meetings.Wait(t.Context(), id, &minutes.WaitOptions{Interval: 4 * time.Hour})
						assert.NoError(t, err)
					})
				}
				time.Sleep(time.Second)
				m, err := c.Meetings.Wait(t.Context(), ids[0], nil)
				require.NoError(t, err)
				assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 62*time.Second)
				wg.Wait()
				assert.Zero(t, l.TooSoon(ids), "polls within the minimum interval")
			})
		})
	}
}

// A long interval also saves pages. It need not be a multiple of thirty seconds.
func TestWaitAll_LongIntervalSavesPages(t *testing.T) {
	t.Parallel()
	for interval, most := range map[time.Duration]int{
		30 * time.Second: 125,
		45 * time.Second: 85,
		10 * time.Minute: 7,
	} {
		t.Run(interval.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 50, 1, 1000*time.Hour)
				c, l := testkit.WatchPolls(srv)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), &minutes.WaitOptions{Interval: interval}) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				assert.LessOrEqual(t, l.Len(), most)
				assert.GreaterOrEqual(t, l.Len(), most*9/10)
			})
		})
	}
}

// A newcomer does not wait for the long interval of the others. A page that shows a change
// notifies a wait before its own interval.
func TestWait_PageMayShowAChangeBeforeTheInterval(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others, own time.Duration
		notified    time.Duration // after the change, at least
		most        time.Duration
		pages       int // in an hour
	}{
		"short interval among long": {4 * time.Hour, 0, 0, 31 * time.Second, 10},
		"long interval among short": {0, 10 * time.Minute, 0, 31 * time.Second, 121},
		"both long":                 {10 * time.Minute, 10 * time.Minute, 7 * time.Minute, 11 * time.Minute, 9},
		"both short":                {0, 0, 0, 31 * time.Second, 121},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
				c, l := testkit.WatchPolls(srv)
				own := ids[30]
				ids = slices.Delete(ids, 30, 31)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() { testkit.Follow(ctx, t, c, ids, &minutes.WaitOptions{Interval: test.others}) })
				time.Sleep(45 * time.Second)
				var notified []time.Time
				wg.Go(func() {
					_, err := c.Meetings.Wait(t.Context(), own, &minutes.WaitOptions{
						Interval: test.own,
						OnStatus: func(*minutes.Meeting) { notified = append(notified, time.Now()) },
					})
					assert.NoError(t, err)
				})
				came := time.Now()
				time.Sleep(2 * time.Minute)
				changed := time.Now()
				_, err := srv.Advance(own, minutes.StatusMinutesReady)
				require.NoError(t, err)
				wg.Wait()
				synctest.Wait()
				assert.LessOrEqual(t, l.Pages(), test.pages)
				require.Len(t, notified, 2)
				assert.LessOrEqual(t, notified[0].Sub(came), 31*time.Second)
				assert.GreaterOrEqual(t, notified[1].Sub(changed), test.notified)
				assert.LessOrEqual(t, notified[1].Sub(changed), test.most)
				assert.Zero(t, l.TooSoon(append(ids, own)), "polls within the minimum interval")
			})
		})
	}
}

// A meeting far down the listing, with a long interval, does not delay pages.
func TestWait_LongIntervalDoesNotDelayPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		old := testkit.Crowd(t, srv, 1, 1, testkit.Ages)
		testkit.Crowd(t, srv, 700, 700, time.Hour)
		ids := testkit.Crowd(t, srv, 50, 1, 20*time.Minute)
		c, l := testkit.WatchPolls(srv)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Wait(ctx, old[0], &minutes.WaitOptions{Interval: 4 * time.Hour})
			assert.ErrorIs(t, err, context.Canceled)
		})
		for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
			assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 62*time.Second)
		}
		cancel()
		wg.Wait()
		synctest.Wait()
		assert.Zero(t, l.TooSoon(append(ids, old...)), "polls within the minimum interval")
	})
}

// A 429 pauses polls for as long as the service asks, at most five minutes. Without a
// Retry-After the pause is a second, doubled for each 429 in a row.
func TestWait_PausesAfter429(t *testing.T) {
	t.Parallel()
	limit, ok := minutestest.RateLimit, minutestest.Delay(0)
	const s = time.Second
	for name, test := range map[string]struct {
		maxAge string // of the polls
		faults []minutestest.Fault
		pauses []time.Duration // to the next request
	}{
		"once":               {"", []minutestest.Fault{limit("")}, []time.Duration{s}},
		"again":              {"", []minutestest.Fault{limit(""), limit(""), limit(""), limit("")}, []time.Duration{s, 2 * s, 4 * s, 8 * s}},
		"as asked":           {"", []minutestest.Fault{limit("200")}, []time.Duration{200 * s}},
		"asked for little":   {"", []minutestest.Fault{limit("2"), limit("2")}, []time.Duration{2 * s, 2 * s}},
		"asked for too much": {"", []minutestest.Fault{limit("100000")}, []time.Duration{300 * s}},
		"recovered":          {"", []minutestest.Fault{limit(""), limit(""), ok, limit("")}, []time.Duration{s, 2 * s, 30 * s, s}},
		"after max-age":      {"max-age=120", []minutestest.Fault{ok, limit(""), limit("")}, []time.Duration{120 * s, s, 2 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				id := testkit.Crowd(t, srv, 1, 1, testkit.Ages)[0]
				_, l := testkit.WatchPolls(srv)
				c := testkit.WatchedBy(srv, testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := l.RoundTrip(r)
					if err == nil && test.maxAge != "" {
						resp.Header.Set("Cache-Control", test.maxAge)
					}
					return resp, err
				}))
				srv.Inject(minutestest.Match{Operation: "meetings.get"}, test.faults...)
				testkit.WaitFor(t, c, id, 30*time.Minute, nil)
				synctest.Wait()
				at := l.At()
				for i, pause := range test.pauses {
					assert.InDelta(t, pause+s/2, at[i+1].Sub(at[i]), float64(s/2+s/10))
				}
			})
		})
	}
}

// A 429 halves the pace, which recovers after good responses.
func TestWaitAll_SlowsDownAfter429(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		stride := testbase.Many(100, 60) // no pages
		ids := testkit.Crowd(t, srv, 20*stride, stride, testkit.Ages)
		require.Len(t, ids, 20)
		c, l := testkit.WatchPolls(srv)
		srv.Inject(minutestest.Match{Operation: "meetings.get"}, minutestest.RateLimit("10"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		began := time.Now()
		for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		synctest.Wait()
		within := func(from, to time.Duration) (n int) {
			for _, at := range l.At() {
				if since := at.Sub(began); since >= from && since < to {
					n++
				}
			}
			return n
		}
		assert.LessOrEqual(t, within(0, 10*time.Second), 3, "the pause; a page among them")
		assert.InDelta(t, 13, within(10*time.Second, 15*time.Second), 4, "half of five a second")
		assert.InDelta(t, 20*8+20, within(60*time.Second, 300*time.Second), 40, "and the pages of a search")
		assert.Zero(t, l.TooSoon(ids), "polls within the minimum interval")
	})
}

// With the longest possible interval, the Client polls once.
func TestWait_LongestIntervalPollsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c, l := testkit.WatchPolls(srv)
		m := testkit.Uploaded(t, c, "Long")
		time.Sleep(time.Second)
		for range 3 {
			testkit.WaitFor(t, c, m.ID, 5*time.Second, &minutes.WaitOptions{Interval: math.MaxInt64})
		}
		testkit.WaitFor(t, c, m.ID, 10*time.Minute, &minutes.WaitOptions{Interval: math.MaxInt64})
		assert.Len(t, l.Of(m.ID), 1)
		assert.Zero(t, l.TooSoon([]string{m.ID}), "polls within the minimum interval")
	})
}

// The cost of a wait does not grow with the number of waits for the same meeting. This test
// would take many minutes if it did.
func TestWait_CostDoesNotGrowWithWaitsForOneMeeting(t *testing.T) {
	t.Parallel()
	n := testbase.Many(40_000, 1000)
	for name, test := range map[string]func(*testing.T, *minutes.Client, string){
		"at once": func(t *testing.T, c *minutes.Client, id string) {
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					_, err := c.Meetings.Wait(t.Context(), id, nil)
					assert.NoError(t, err)
				})
			}
			wg.Wait()
		},
		"at once, and all leave": func(t *testing.T, c *minutes.Client, id string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					_, err := c.Meetings.Wait(ctx, id, nil)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				})
			}
			wg.Wait()
		},
		"one after the other": func(t *testing.T, c *minutes.Client, id string) {
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = c.Meetings.Wait(t.Context(), id, nil) })
			for range n {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				_, err := c.Meetings.Wait(ctx, id, nil)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				cancel()
			}
			wg.Wait()
		},
		"WaitAlls": func(t *testing.T, c *minutes.Client, id string) {
			var wg sync.WaitGroup
			for range n / 4 {
				wg.Go(func() {
					for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values([]string{id}), nil) {
						assert.NoError(t, err)
					}
				})
			}
			wg.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				m := testkit.Uploaded(t, testkit.Client(srv), "Weekly")
				c, l := testkit.WatchPolls(srv)
				test(t, c, m.ID)
				synctest.Wait()
				assert.LessOrEqual(t, l.Len(), 40)
				testkit.RequireQuiet(t, l)
			})
		})
	}
}

// At most two polls wait in the rate limiter, so the caller's own requests come soon.
func TestWaitAll_CallsOfTheUserComeFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 6000, 60, 1000*time.Hour)
		c := testkit.Client(srv, minutes.WithRateLimit(2, 2))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			for range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			}
		})
		other, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Other", Date: "2026-11-20"})
		require.NoError(t, err)
		for range 15 {
			time.Sleep(37 * time.Second)
			began := time.Now()
			_, err := c.Meetings.Get(t.Context(), other.ID)
			require.NoError(t, err)
			assert.LessOrEqual(t, time.Since(began), 1500*time.Millisecond)
		}
		cancel()
		wg.Wait()
	})
}
