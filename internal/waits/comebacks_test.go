package waits_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
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

// Where all waits leave, also while something is under way, and some come back,
// these are followed as before, and nothing is shown within the floor of what was
// under way.
func TestAllLeaveAndComeBack(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, test := range map[string]struct {
		waits       int
		network     testkit.Slow
		leave, back time.Duration
		come        int           // back
		stay        time.Duration // then
		most        int           // requests in that time
		visits      [2]time.Duration
	}{
		"during a page":                     {waits: 50, network: testkit.Slow{Back: s}, leave: s / 2, back: 2 * s, come: 50, most: 25},
		"during a page, a few come back":    {waits: 50, network: testkit.Slow{Back: s}, leave: s / 2, back: 2 * s, come: 5, most: 105},
		"during a page that comes late":     {waits: 50, network: testkit.Slow{Back: 5 * s, Careless: true}, leave: s, back: 2 * s, come: 50, most: 25},
		"after a page":                      {waits: 50, leave: s / 2, back: 2 * s, come: 50, most: 25},
		"after a page, a few come back":     {waits: 50, leave: s / 2, back: 2 * s, come: 5, most: 105},
		"after pages":                       {waits: 50, leave: 5 * time.Minute, back: 5*time.Minute + s, come: 50, most: 25},
		"one came during the page":          {waits: 50, network: testkit.Slow{Back: s}, leave: 2 * s, back: 3 * s, come: 50, stay: 40 * s, most: 2, visits: [2]time.Duration{s / 2, s / 2}},
		"one left before, and came back":    {waits: 50, network: testkit.Slow{Back: s}, leave: 70 * s, back: 71 * s, come: 5, most: 105, visits: [2]time.Duration{62*s + s/2, 65 * s}},
		"during a look":                     {waits: 1, network: testkit.Slow{Out: 14 * s, Back: 6 * s}, leave: 15 * s, back: 16 * s, come: 1, most: 25},
		"during a look that comes late":     {waits: 1, network: testkit.Slow{Back: 20 * s, Careless: true}, leave: 15 * s, back: 16 * s, come: 1, most: 25},
		"during looks that come late":       {waits: 5, network: testkit.Slow{Back: 20 * s, Careless: true}, leave: 15 * s, back: 16 * s, come: 5, most: 105},
		"during looks, more come back":      {waits: 5, network: testkit.Slow{Out: 14 * s, Back: 6 * s}, leave: 15 * s, back: 16 * s, come: 50, most: 25},
		"after a look":                      {waits: 1, leave: s, back: 2 * s, come: 1, most: 25},
		"after a look that was lost":        {waits: 1, network: testkit.Slow{Out: 19 * s, Loses: io.ErrUnexpectedEOF}, leave: 25 * s, back: 31 * s, come: 1, most: 25},
		"between two looks, more come back": {waits: 5, leave: 10 * s, back: 11 * s, come: 50, most: 25},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
				_, l := testkit.WatchLooks(srv)
				network := test.network
				network.Next, network.Until = l, time.Now().Add(test.leave)
				c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: &network, Timeout: time.Minute}), minutes.WithRateLimit(0, 0))
				stay := cmp.Or(test.stay, 10*time.Minute)
				var wg sync.WaitGroup
				start, first, guest := time.Now(), ids[:test.waits], ids[0]
				if v := test.visits; v[0] > 0 {
					first = first[1:]
					wg.Go(func() {
						if v[0] < v[1] {
							testkit.WaitFor(t, c, guest, v[0], nil)
						}
						time.Sleep(v[1] - time.Since(start))
						testkit.WaitFor(t, c, guest, test.leave-v[1], nil)
					})
				}
				ctx, cancel := context.WithTimeout(t.Context(), test.leave)
				defer cancel()
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(first), nil) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				wg.Wait()
				synctest.Wait()
				time.Sleep(test.back - time.Since(start))
				synctest.Wait()
				n := l.Len()
				for _, id := range ids[:test.come] {
					wg.Go(func() { assert.NotNil(t, testkit.WaitFor(t, c, id, stay, nil)) })
				}
				wg.Wait()
				synctest.Wait()
				for _, id := range ids[:test.come] {
					assert.Less(t, time.Since(l.Last(id)), time.Minute, "still followed")
				}
				assert.LessOrEqual(t, l.Len()-n, test.most)
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
				synctest.Wait()
				testkit.RequireQuiet(t, l)
			})
		})
	}
}

// A meeting that is waited for anew is found again, however long another that
// was left before it stays fresh.
func TestForgetsInAnyOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c, l := testkit.WatchLooks(srv)
		keeps, slow, m := testkit.Uploaded(t, c, "Keeps the poller going"), testkit.Uploaded(t, c, "Slow"), testkit.Uploaded(t, c, "Left and come back to")
		srv.Inject(minutestest.Match{Operation: "meetings.get", MeetingID: slow.ID}, minutestest.Delay(25*time.Second))
		var wg sync.WaitGroup
		wg.Go(func() { testkit.WaitFor(t, c, keeps.ID, 2*time.Minute, nil) })
		wg.Go(func() { testkit.WaitFor(t, c, slow.ID, time.Second, nil) })
		wg.Go(func() { testkit.WaitFor(t, c, m.ID, 2*time.Second, nil) })
		time.Sleep(31 * time.Second)
		seen := testkit.WaitFor(t, c, m.ID, 2*time.Minute, nil)
		require.NotNil(t, seen)
		assert.Equal(t, minutes.StatusTranscribing, seen.Status)
		wg.Wait()
		synctest.Wait()
		assert.Zero(t, l.TooSoon([]string{keeps.ID, slow.ID, m.ID}), "looks within the floor")
		synctest.Wait()
		testkit.RequireQuiet(t, l)
	})
}

// Jobs that come back one after the other, each to a meeting that has its audio
// already, keep nobody who waits from being told in time.
func TestSteadyComebacks(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Second, 20 * time.Second, 40 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := testkit.Generous()
				w.Stages.Prepare = 10 * time.Minute
				srv := minutestest.NewServer(t, minutestest.WithWorld(w))
				crashed := testkit.Client(srv, minutes.WithRateLimit(0, 0)) // the worker that made them
				c, l := testkit.WatchLooks(srv)
				var ids []string
				var wg sync.WaitGroup
				for i := range testbase.Many(100, 25) {
					p := &minutes.MeetingCreateParams{Title: "meeting", Date: "2026-11-20", ExternalID: fmt.Sprint("job-", i)}
					m, _, err := crashed.Meetings.Create(t.Context(), p)
					require.NoError(t, err)
					require.NoError(t, crashed.Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
					ids = append(ids, m.ID)
					wg.Go(func() {
						r, err := c.Meetings.Process(t.Context(), p, testkit.Audio(10), nil)
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

// Jobs that come back to finished meetings do not keep others from being looked
// at in pages.
func TestFinishedComebacks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		job := func(c *minutes.Client, i int) {
			p := &minutes.MeetingCreateParams{Title: "done", Date: "2026-11-20", ExternalID: fmt.Sprint("job-", i%4)}
			_, err := c.Meetings.Process(t.Context(), p, testkit.Audio(10), nil)
			assert.NoError(t, err)
		}
		for i := range 4 {
			job(testkit.Client(srv), i)
		}
		ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
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
		assert.LessOrEqual(t, l.Len()-l.Pages(), 2, "hardly a single look")
	})
}

// A Client that moves to a clock that is behind, as between bubbles, looks there
// at once, by itself or in a page, and is not served what it saw by the other.
func TestWaitOfAnotherClock(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()), minutestest.WithoutAudit())
			c := testkit.Client(srv, minutes.WithRateLimit(0, 0))
			var ids []string
			all := func(t *testing.T) {
				for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), &minutes.WaitOptions{Until: minutes.StatusAudioUploaded}) {
					require.NoError(t, err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				ids = testkit.Crowd(t, srv, n, 1, testkit.Ages)
				time.Sleep(time.Hour)
				all(t)
			})
			seen := len(srv.Requests("meetings.get", "meetings.list"))
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				all(t)
				require.Less(t, time.Since(begun), time.Minute)
			})
			require.Greater(t, len(srv.Requests("meetings.get", "meetings.list")), seen)
		})
	}
}

// A Client may be used outside synctest bubbles and in one after the other.
func TestOneClientInManyBubbles(t *testing.T) {
	t.Parallel()
	c, _ := testkit.Answering(t, func(r *http.Request) (*http.Response, error) {
		id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		return testkit.Canned(http.StatusOK, `{"id":"`+id+`","status":"created"}`)(r)
	})
	see := func(t *testing.T, id string) {
		m, err := c.Meetings.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, id, m.ID)
	}
	see(t, "mtg_1")
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			for _, d := range []time.Duration{0, 20 * time.Second, 40 * time.Second} {
				ctx, cancel := context.WithTimeout(t.Context(), d+time.Millisecond)
				_, err := c.Meetings.Wait(ctx, "mtg_1", nil)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				time.Sleep(d / 4)
			}
			see(t, "mtg_2")
		})
		see(t, "mtg_1")
	}
}

// A latecomer is told of the next look, whoever else comes after it.
func TestOnStatusOfTwoLatecomers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		require.NoError(t, srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing}))
		c := testkit.Client(srv)
		m := testkit.Uploaded(t, c, "Weekly")
		srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: 12}, minutestest.BadGateway())
		var wg sync.WaitGroup
		wg.Go(func() { testkit.WaitFor(t, c, m.ID, 10*time.Minute, nil) })
		for len(srv.Requests("meetings.get")) < 12 { // the one that shows nothing
			time.Sleep(time.Second)
		}
		var told []minutes.Status
		wg.Go(func() {
			testkit.WaitFor(t, c, m.ID, 2*time.Minute, &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) { told = append(told, m.Status) }})
		})
		synctest.Wait()
		wg.Go(func() { testkit.WaitFor(t, c, m.ID, 2*time.Minute, nil) })
		wg.Wait()
		synctest.Wait()
		assert.Equal(t, []minutes.Status{minutes.StatusTranscribing}, told)
	})
}

// OnStatus hears the first look, also of a meeting that others have waited for
// and of which no more than the status is kept.
func TestOnStatusOfALatecomer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 1100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, n, 1, 1000*time.Hour)
				c := testkit.Client(srv, minutes.WithRateLimit(0, 0))
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() {
					for range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					}
				})
				time.Sleep(time.Duration(testbase.Many(10, 2)) * time.Minute)
				var told []minutes.Status
				late, stop := context.WithTimeout(t.Context(), time.Duration(testbase.Many(5, 2))*time.Minute)
				defer stop()
				_, err := c.Meetings.Wait(late, ids[0], &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) { told = append(told, m.Status) }})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, []minutes.Status{minutes.StatusAudioUploaded}, told)
				cancel()
				wg.Wait()
			})
		})
	}
}
