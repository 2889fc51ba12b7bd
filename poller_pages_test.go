package minutes_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A page is read only when the single looks before it are there, and are a floor
// ago.
func TestPollerPageAfterLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		ids := crowd(t, srv, clientOf(srv), 50, 1, testkit.Ages)
		c, l := testkit.WatchLateLooks(srv, 20*time.Second)
		var wg sync.WaitGroup
		for i, id := range ids {
			if i == 5 {
				time.Sleep(2 * time.Second)
			}
			wg.Go(func() { assert.NotNil(t, testkit.WaitFor(t, c, id, 5*time.Minute+7*time.Second, nil)) })
		}
		wg.Wait()
		synctest.Wait()
		assert.Greater(t, l.Pages(), 2)
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// Who comes while a page is under way does not keep others from the news in it;
// the newcomer is not told what the page may have shown before.
func TestPollerComesDuringAPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		ids := crowd(t, srv, clientOf(srv), 60, 1, testkit.Ages)
		c, l := testkit.WatchLateLooks(srv, 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		listed, fresh := ids[:50], ids[50:]
		var wg sync.WaitGroup
		told := 0
		wg.Go(func() {
			for m, err := range c.Meetings.WaitAll(ctx, slices.Values(listed), nil) {
				if err == nil {
					told++
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 45*time.Second)
				}
			}
		})
		time.Sleep(3 * time.Minute)
		_, err := srv.Advance(listed[7], minutes.StatusMinutesReady)
		require.NoError(t, err)
		goesOut := func() {
			for n := l.Pages(); l.Pages() == n; {
				time.Sleep(time.Second)
			}
		}
		wg.Go(func() {
			for range 10 {
				goesOut()
				wg.Go(func() {
					short, cancel := context.WithTimeout(ctx, 20*time.Second)
					defer cancel()
					_, _ = c.Meetings.Wait(short, listed[7], nil)
				})
			}
		})
		for i, id := range fresh {
			goesOut()
			_, err := c.Meetings.Update(t.Context(), id, &minutes.MeetingUpdateParams{Title: new("New title")})
			require.NoError(t, err)
			m, err := c.Meetings.Wait(t.Context(), id, &minutes.WaitOptions{Until: minutes.StatusAudioUploaded})
			require.NoError(t, err, i)
			assert.Equal(t, "New title", m.Title)
		}
		wg.Wait()
		synctest.Wait()
		assert.Equal(t, 1, told)
	})
}

// The long interval of those who are looked at in pages is not a newcomer's; and
// a long interval is kept to where pages show the meeting sooner.
func TestPollerIntervalsBesidePages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others, own time.Duration
		told        time.Duration // after the change, at least
		most        time.Duration
		pages       int // in an hour
	}{
		"in a hurry among the patient": {4 * time.Hour, 0, 0, 31 * time.Second, 10},
		"patient among the hurried":    {0, 10 * time.Minute, 7 * time.Minute, 11 * time.Minute, 121},
		"both patient":                 {10 * time.Minute, 10 * time.Minute, 7 * time.Minute, 11 * time.Minute, 9},
		"both hurried":                 {0, 0, 0, 31 * time.Second, 121},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), 50, 1, testkit.Ages)
				c, l := testkit.WatchLooks(srv)
				own := ids[30]
				ids = slices.Delete(ids, 30, 31)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() {
					for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), &minutes.WaitOptions{Interval: test.others}) {
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
				})
				time.Sleep(45 * time.Second)
				var told []time.Time
				wg.Go(func() {
					_, err := c.Meetings.Wait(t.Context(), own, &minutes.WaitOptions{
						Interval: test.own,
						OnStatus: func(*minutes.Meeting) { told = append(told, time.Now()) },
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
				require.Len(t, told, 2)
				assert.LessOrEqual(t, told[0].Sub(came), 31*time.Second)
				assert.GreaterOrEqual(t, told[1].Sub(changed), test.told)
				assert.LessOrEqual(t, told[1].Sub(changed), test.most)
				assert.Zero(t, l.TooSoon(append(ids, own)), "looks within the floor")
			})
		})
	}
}

// A meeting far down the listing that is looked at once in hours does not hold
// the pages up.
func TestPollerLongIntervalBesidePages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		old := crowd(t, srv, clientOf(srv), 1, 1, testkit.Ages)
		crowd(t, srv, clientOf(srv), 700, 700, time.Hour)
		ids := crowd(t, srv, clientOf(srv), 50, 1, 20*time.Minute)
		c, l := testkit.WatchLooks(srv)
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
		assert.Zero(t, l.TooSoon(append(ids, old...)), "looks within the floor")
	})
}

// The first sweep goes as far as it finds what is waited for, of which some may
// have ended, and no further.
func TestPollerFirstSweepEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		crowd(t, srv, clientOf(srv), 700, 701, testkit.Ages)
		ids := crowd(t, srv, clientOf(srv), 120, 1, testkit.Ages)
		for _, id := range ids[70:] {
			_, err := srv.Advance(id, minutes.StatusMinutesReady)
			require.NoError(t, err)
		}
		c, l := testkit.WatchLooks(srv)
		ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
		defer cancel()
		ended := 0
		for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			if err == nil {
				ended++
			}
		}
		synctest.Wait()
		assert.Equal(t, 50, ended)
		assert.Equal(t, 3, l.Pages())
		assert.Len(t, l.At(), 3, "and no single look")
	})
}

// Pages go no further than to the last meeting that they are for: the ones below
// it are looked at by themselves. Meetings made since, which are nobody's, cost a
// page, not one each.
func TestPollerPagesEndInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		maker := clientOf(srv, minutes.WithRateLimit(0, 0))
		params := func(i int) *minutes.MeetingCreateParams {
			return &minutes.MeetingCreateParams{Title: "long", Date: "2026-11-20", ExternalID: fmt.Sprint("job-", i)}
		}
		require.NoError(t, srv.Script(minutestest.Script{Title: "long", Hold: minutes.StatusAudioUploaded}))
		var below []string
		for i := range 5 {
			m, _, err := maker.Meetings.Create(t.Context(), params(i))
			require.NoError(t, err)
			require.NoError(t, maker.Meetings.Upload(t.Context(), m.ID, audio(10), nil))
			below = append(below, m.ID)
		}
		time.Sleep(2 * time.Second)
		ids := crowd(t, srv, maker, 30, 1, testkit.Ages)
		time.Sleep(2 * time.Second)
		c, l := testkit.WatchLooks(srv)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
		time.Sleep(40 * time.Second)
		for i := range below {
			wg.Go(func() {
				_, err := c.Meetings.Process(ctx, params(i), audio(10), nil) // it comes back
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		time.Sleep(2 * time.Minute)
		crowd(t, srv, maker, 20, 1000, testkit.Ages)
		wg.Wait()
		synctest.Wait()
		assert.Zero(t, l.TooSoon(append(ids, below...)), "looks within the floor")
		assert.LessOrEqual(t, l.Pages(), 24)
	})
}

// A page that is refused for its cursor, or lost while single looks succeed, does
// not make an end of pages.
func TestPollerPagesGoOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault minutestest.Fault
		times int
		most  int // requests a minute
	}{
		"cursor":     {minutestest.Refuse(minutes.ErrInvalidCursor), 1, 300},
		"lost":       {minutestest.BadGateway(), 1, 20},
		"lost twice": {minutestest.BadGateway(), 2, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				far := crowd(t, srv, clientOf(srv), 1, 1, testkit.Ages)
				crowd(t, srv, clientOf(srv), 700, 701, testkit.Ages)
				ids := append(far, crowd(t, srv, clientOf(srv), 120, 1, testkit.Ages)...)
				srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: 20, Times: test.times}, test.fault)
				c, l := testkit.WatchLooks(srv)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				synctest.Wait()
				assert.Greater(t, l.Pages(), 200)
				assert.LessOrEqual(t, l.Most(time.Minute), test.most)
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// Jobs that come back one after the other, each to a meeting that has its audio
// already, keep nobody who waits from being told in time.
func TestPollerSteadyComebacks(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Second, 20 * time.Second, 40 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := generous()
				w.Stages.Prepare = 10 * time.Minute
				srv := minutestest.NewServer(t, minutestest.WithWorld(w))
				crashed := clientOf(srv, minutes.WithRateLimit(0, 0)) // the worker that made them
				c, l := testkit.WatchLooks(srv)
				var ids []string
				var wg sync.WaitGroup
				for i := range 100 {
					p := &minutes.MeetingCreateParams{Title: "meeting", Date: "2026-11-20", ExternalID: fmt.Sprint("job-", i)}
					m, _, err := crashed.Meetings.Create(t.Context(), p)
					require.NoError(t, err)
					require.NoError(t, crashed.Meetings.Upload(t.Context(), m.ID, audio(10), nil))
					ids = append(ids, m.ID)
					wg.Go(func() {
						r, err := c.Meetings.Process(t.Context(), p, audio(10), nil)
						if assert.NoError(t, err) {
							assert.LessOrEqual(t, time.Since(r.Meeting.UpdatedAt.Time()), 92*time.Second)
						}
					})
					time.Sleep(every)
				}
				wg.Wait()
				synctest.Wait()
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// A page that shows a meeting when the floor has just passed is a look at it,
// though a look of its own would have come a moment later.
func TestPollerPageInPlaceOfALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		ids := crowd(t, srv, clientOf(srv), 50, 1, testkit.Ages)
		c, l := testkit.WatchLooks(srv)
		begun := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Wait(t.Context(), ids[0], nil)
			assert.NoError(t, err)
			assert.LessOrEqual(t, time.Since(begun), 31*time.Second)
		})
		time.Sleep(time.Second)
		_, err := srv.Advance(ids[0], minutes.StatusMinutesReady)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids[1:]), nil) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		wg.Wait()
		synctest.Wait()
		assert.Equal(t, 1+l.Pages(), l.Len(), "no look but the first")
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// Jobs that come back to finished meetings do not keep others from being looked
// at in pages.
func TestPollerFinishedComebacks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		job := func(c *minutes.Client, i int) {
			p := &minutes.MeetingCreateParams{Title: "done", Date: "2026-11-20", ExternalID: fmt.Sprint("job-", i%4)}
			_, err := c.Meetings.Process(t.Context(), p, audio(10), nil)
			assert.NoError(t, err)
		}
		for i := range 4 {
			job(clientOf(srv), i)
		}
		ids := crowd(t, srv, clientOf(srv), 50, 1, testkit.Ages)
		c, l := testkit.WatchLooks(srv)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				job(c, i)
				time.Sleep(10 * time.Second)
			}
		})
		time.Sleep(time.Second)
		for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		wg.Wait()
		synctest.Wait()
		assert.Equal(t, l.Pages(), l.Len(), "no single looks")
	})
}
