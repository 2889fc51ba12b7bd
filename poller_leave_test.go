package minutes_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
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

// Where all waits leave, also while something is under way, and some come back,
// these are followed as before, and nothing is shown within the floor of what was
// under way.
func TestPollerAllLeaveAndComeBack(t *testing.T) {
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
		"during a page":                     {waits: 50, network: testkit.Slow{Back: s}, leave: s / 2, back: 2 * s, come: 50, most: 21},
		"during a page, a few come back":    {waits: 50, network: testkit.Slow{Back: s}, leave: s / 2, back: 2 * s, come: 5, most: 105},
		"during a page that comes late":     {waits: 50, network: testkit.Slow{Back: 5 * s, Careless: true}, leave: s, back: 2 * s, come: 50, most: 21},
		"after a page":                      {waits: 50, leave: s / 2, back: 2 * s, come: 50, most: 21},
		"after a page, a few come back":     {waits: 50, leave: s / 2, back: 2 * s, come: 5, most: 105},
		"after pages":                       {waits: 50, leave: 5 * time.Minute, back: 5*time.Minute + s, come: 50, most: 21},
		"one came during the page":          {waits: 50, network: testkit.Slow{Back: s}, leave: 2 * s, back: 3 * s, come: 50, stay: 40 * s, most: 2, visits: [2]time.Duration{s / 2, s / 2}},
		"one left before, and came back":    {waits: 50, network: testkit.Slow{Back: s}, leave: 70 * s, back: 71 * s, come: 5, most: 105, visits: [2]time.Duration{62*s + s/2, 65 * s}},
		"during a look":                     {waits: 1, network: testkit.Slow{Out: 14 * s, Back: 6 * s}, leave: 15 * s, back: 16 * s, come: 1, most: 21},
		"during a look that comes late":     {waits: 1, network: testkit.Slow{Back: 20 * s, Careless: true}, leave: 15 * s, back: 16 * s, come: 1, most: 21},
		"during looks that come late":       {waits: 5, network: testkit.Slow{Back: 20 * s, Careless: true}, leave: 15 * s, back: 16 * s, come: 5, most: 105},
		"during looks, more come back":      {waits: 5, network: testkit.Slow{Out: 14 * s, Back: 6 * s}, leave: 15 * s, back: 16 * s, come: 50, most: 25},
		"after a look":                      {waits: 1, leave: s, back: 2 * s, come: 1, most: 21},
		"after a look that was lost":        {waits: 1, network: testkit.Slow{Out: 19 * s, Loses: io.ErrUnexpectedEOF}, leave: 25 * s, back: 31 * s, come: 1, most: 21},
		"between two looks, more come back": {waits: 5, leave: 10 * s, back: 11 * s, come: 50, most: 21},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), 50, 1, testkit.Ages)
				_, l := testkit.WatchLooks(srv)
				network := test.network
				network.Next, network.Until = l, time.Now().Add(test.leave)
				c := clientOf(srv, minutes.WithHTTPClient(&http.Client{Transport: &network, Timeout: time.Minute}), minutes.WithRateLimit(0, 0))
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
func TestPollerForgetsInAnyOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c, l := testkit.WatchLooks(srv)
		keeps, slow, m := uploaded(t, c, "Keeps the poller going"), uploaded(t, c, "Slow"), uploaded(t, c, "Left and come back to")
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

// A look that takes longer than the floor is the look of whoever comes
// meanwhile.
func TestPollerLookLongerThanTheFloor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c := clientOf(srv, minutes.WithHTTPClient(&http.Client{Transport: srv.HTTPClient().Transport, Timeout: 5 * time.Minute}))
		keeps, slow := uploaded(t, c, "Keeps the poller going"), uploaded(t, c, "Slow")
		srv.Inject(minutestest.Match{Operation: "meetings.get", MeetingID: slow.ID}, minutestest.Delay(50*time.Second))
		var wg sync.WaitGroup
		wg.Go(func() { testkit.WaitFor(t, c, keeps.ID, 2*time.Minute, nil) })
		wg.Go(func() { testkit.WaitFor(t, c, slow.ID, time.Second, nil) })
		time.Sleep(40 * time.Second)
		seen := testkit.WaitFor(t, c, slow.ID, 20*time.Second, nil)
		assert.NotNil(t, seen)
		looks := 0
		for _, r := range srv.Requests("meetings.get") {
			if r.MeetingID == slow.ID {
				looks++
			}
		}
		assert.Equal(t, 1, looks)
		wg.Wait()
		synctest.Wait()
	})
}

// The meeting furthest down, which pages do not reach once it has left, is
// followed where its wait comes back.
func TestPollerFurthestComesBack(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, test := range map[string]struct{ comes, leaves, back time.Duration }{
		"found, and back after a sweep":       {0, 45 * s, 65 * s},
		"found, and back later":               {0, 45 * s, 75 * s},
		"found, and back after long":          {0, 45 * s, 95 * s},
		"never found, and back in a moment":   {45 * s, 110 * s, 115 * s},
		"never found, and back after a sweep": {45 * s, 110 * s, 125 * s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), 60, 1, testkit.Ages)
				c, l := testkit.WatchLooks(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() {
					for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids[1:]), nil) {
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
				})
				time.Sleep(test.comes)
				testkit.WaitFor(t, c, ids[0], test.leaves-test.comes, nil)
				time.Sleep(test.back - test.leaves)
				time.AfterFunc(2*time.Minute, func() {
					_, err := srv.Advance(ids[0], minutes.StatusMinutesReady)
					assert.NoError(t, err)
				})
				m, err := c.Meetings.Wait(ctx, ids[0], nil)
				require.NoError(t, err)
				assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 62*time.Second)
				wg.Wait()
				synctest.Wait()
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// The meeting furthest down is followed, too, where its wait left while a page
// was under way that shows it, and came back.
func TestPollerFurthestLeavesDuringAPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		ids := crowd(t, srv, clientOf(srv), 60, 1, testkit.Ages)
		c, l := testkit.WatchLateLooks(srv, 2*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids[1:]), nil) {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
		short, leave := context.WithCancel(ctx)
		wg.Go(func() {
			_, err := c.Meetings.Wait(short, ids[0], nil)
			assert.ErrorIs(t, err, context.Canceled)
		})
		for l.Pages() < 4 { // the second of the second sweep
			time.Sleep(time.Second / 2)
		}
		leave()
		time.Sleep(15 * time.Second)
		_, err := srv.Advance(ids[0], minutes.StatusMinutesReady)
		require.NoError(t, err)
		m, err := c.Meetings.Wait(ctx, ids[0], nil)
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 92*time.Second)
		wg.Wait()
		synctest.Wait()
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}
