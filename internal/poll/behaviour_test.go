package poll_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
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

// The busiest minute, a full sweep that is tried in it included, where all
// meetings end within some minutes: stretches of pages thin out all the time.
// TestWorlds has the averages.
func TestPaceOfManyWaits(t *testing.T) {
	t.Parallel()
	const turn = 30 * time.Second
	for name, test := range map[string]struct {
		meetings, stride int
		perMinute        int // requests, at most
		perSecond        int
	}{
		"dense: pages":                         {meetings: 10_000, stride: 1, perMinute: 500, perSecond: 15},
		"every third: pages":                   {meetings: 3_000, stride: 3, perMinute: 150, perSecond: 10},
		"sparse: single looks":                 {meetings: 4_000, stride: 400, perMinute: 24, perSecond: 10},
		"further apart than a page: no page":   {meetings: 4_000, stride: 80, perMinute: 140, perSecond: 10},
		"every thirtieth: pages far apart":     {meetings: 9_000, stride: 30, perMinute: 600, perSecond: 20},
		"a handful":                            {meetings: 19, stride: 1, perMinute: 38, perSecond: 10},
		"enough for a page, all on the newest": {meetings: 50, stride: 1, perMinute: 4, perSecond: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, within := test.meetings, 10*time.Minute
				if n >= 5000 {
					within = 3 * time.Minute // enough turns to see, and quicker
				}
				n = testkit.Many(n, min(n, 900))
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, n, test.stride, within)
				c, l := testkit.WatchLooks(srv)
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
				t.Logf("%d waits: %d requests, %d of them pages, in %s; at most %d a minute and %d a second; told at most %s late",
					len(ids), l.Len(), l.Pages(), time.Since(start).Round(time.Second), l.Most(time.Minute), l.Most(time.Second), latest.Round(time.Second))
				assert.LessOrEqual(t, l.Most(time.Minute), test.perMinute)
				assert.LessOrEqual(t, l.Most(time.Second), test.perSecond)
				assert.LessOrEqual(t, latest, 3*turn)
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// Meetings that come one after the other, as an integration makes them.
func TestSteadyArrivals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := testkit.Generous()
		w.Stages.Prepare = 5 * time.Minute
		srv := minutestest.NewServer(t, minutestest.WithWorld(w))
		c, l := testkit.WatchLooks(srv)
		n := testkit.Many(1000, 400) // one a second, so about 300 wait at a time
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
		assert.Less(t, l.Len(), n*3, "ten looks each, one by one, would be ten thousand")
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A wait that leaves while a page is under way, and comes back after it, has
// been shown its meeting all the same; and it is not lost.
func TestShownInBetween(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ leaves, back time.Duration }{
		"in the trial":           {leaves: time.Second / 2, back: 1500 * time.Millisecond},
		"after the trial":        {leaves: time.Second / 2, back: 10 * time.Second},
		"in a sweep":             {leaves: 31_500 * time.Millisecond, back: 32_500 * time.Millisecond},
		"between two sweeps":     {leaves: 31_500 * time.Millisecond, back: 45 * time.Second},
		"long after it had left": {leaves: 31_500 * time.Millisecond, back: 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 100, 1, 10*time.Minute)
				guest := ids[99] // on the first page of two
				require.NoError(t, srv.Script(minutestest.Script{MeetingID: guest, Hold: minutes.StatusTranscribing}))
				srv.Inject(minutestest.Match{Operation: "meetings.list", Times: minutestest.Always}, minutestest.Delay(time.Second))
				c, l := testkit.WatchLooks(srv)
				var wg sync.WaitGroup
				wg.Go(func() {
					for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids[:99]), nil) {
						assert.NoError(t, err)
					}
				})
				wg.Go(func() {
					time.Sleep(5 * time.Minute)
					_, err := srv.Advance(guest, minutes.StatusMinutesReady)
					assert.NoError(t, err)
				})
				start := time.Now()
				short, cancel := context.WithTimeout(t.Context(), test.leaves)
				defer cancel()
				_, err := c.Meetings.Wait(short, guest, nil)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				time.Sleep(test.back - time.Since(start))
				long, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err = c.Meetings.Wait(long, guest, nil)
				require.NoError(t, err)
				wg.Wait()
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// Many leave when most have been found.
func TestLeftInATrial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 180, 1, 10*time.Minute)
		srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: 3}, minutestest.Delay(20*time.Second))
		c, l := testkit.WatchLooks(srv)
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
		defer leave()
		var wg sync.WaitGroup
		for i, id := range ids {
			wg.Go(func() {
				if i >= 40 {
					_, err := c.Meetings.Wait(ctx, id, nil)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				if i == 0 {
					time.Sleep(15 * time.Second) // stirs the poller
				}
				_, err := c.Meetings.Wait(t.Context(), id, nil)
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A wait is told in its own time, whatever interval another wait for the same
// meeting has.
func TestIntervalsOfOthers(t *testing.T) {
	t.Parallel()
	for name, crowded := range map[string]int{"single looks": 0, "pages": 49} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, crowded+1, 1, 10*time.Minute)
				c, l := testkit.WatchLooks(srv)
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
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// Where meetings are looked at in pages, a long interval saves pages, too, and
// one that is no multiple of the floor is kept to.
func TestIntervalOfMany(t *testing.T) {
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
				c, l := testkit.WatchLooks(srv)
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

// A service whose pages are short keeps nobody waiting.
func TestShortPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		old := testkit.Crowd(t, srv, 3, 1, 10*time.Minute)
		foreign := testkit.Many(1500, 300)
		testkit.Crowd(t, srv, foreign, foreign, 10*time.Minute) // nobody's, but one
		ids := append(old, testkit.Crowd(t, srv, testkit.Many(3000, 600), 1, 10*time.Minute)...)
		srv.SetPageSize(func(int, int) int { return 10 })
		srv.Inject(minutestest.Match{Operation: "meetings.list", Times: minutestest.Always}, minutestest.Delay(20*time.Millisecond))
		c, l := testkit.WatchLooks(srv)
		var wg sync.WaitGroup
		for _, id := range ids {
			wg.Go(func() {
				m, err := c.Meetings.Wait(t.Context(), id, nil)
				if assert.NoError(t, err) {
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 92*time.Second)
				}
			})
		}
		wg.Wait()
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A service that is out is asked once in a while, not for each meeting by itself;
// one whose listing alone is out, is. There are pages again when it is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	const out = 2 * time.Minute
	waits := testkit.Many(400, 100)
	for name, test := range map[string]struct {
		listing bool          // alone
		start   time.Duration // of the waits
		back    int           // minutes
		most    int           // requests within a minute of the outage
		late    time.Duration // after back, or the meeting's end
		pages   int           // minutes until there are pages again
	}{
		"all":             {false, 0, 8, 12, 61 * time.Second, 5},
		"all, at a start": {false, out, 8, 12, 100 * time.Second, 5},
		"the listing":     {true, 0, 8, 2*waits + 10, 64 * time.Second, 7}, // as long again, at most
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, waits, 1, 20*time.Minute)
				began, back := time.Now(), time.Duration(test.back)*time.Minute
				c, l := testkit.WatchLooks(srv)
				network := l.Next
				l.Next = testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
					since := time.Since(began)
					list := strings.HasSuffix(r.URL.Path, "/meetings")
					if since >= out && since < back && (list || !test.listing) {
						return &http.Response{StatusCode: 502, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
					}
					return network.RoundTrip(r)
				})
				time.Sleep(test.start)
				for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
					require.NoError(t, err)
					end := m.UpdatedAt.Time()
					if end.Before(began.Add(back)) {
						end = began.Add(back)
					}
					assert.LessOrEqual(t, time.Since(end), test.late)
				}
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
				var perMinute []int
				for _, at := range l.At() {
					minute := int(at.Sub(began) / time.Minute)
					for len(perMinute) <= minute {
						perMinute = append(perMinute, 0)
					}
					perMinute[minute]++
				}
				assert.LessOrEqual(t, slices.Max(perMinute[2:test.back]), test.most)
				assert.LessOrEqual(t, slices.Max(perMinute[test.back+test.pages:]), 3*waits/50, "pages again, and a full sweep now and then")
			})
		})
	}
}

// A service that stays out ends all waits, after many turns and few requests.
func TestOutForGood(t *testing.T) {
	t.Parallel()
	for name, sick := range map[string]time.Duration{"from the start": 0, "later": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 130, 1, 1000*time.Hour)
				c, l := testkit.WatchLooks(srv)
				time.AfterFunc(sick, func() {
					srv.Inject(minutestest.Match{Times: minutestest.Always}, minutestest.BadGateway())
				})
				began, ended := time.Now(), map[string]bool{}
				for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
					wait, ok := errors.AsType[*minutes.WaitError](err)
					require.True(t, ok, "%v", err)
					ended[wait.MeetingID] = true
					failed, ok := errors.AsType[*minutes.Error](err)
					require.True(t, ok, "%v", err)
					assert.Equal(t, 502, failed.StatusCode)
					if sick > 0 {
						assert.NotNil(t, wait.Meeting)
					}
				}
				assert.Len(t, ended, len(ids))
				assert.InDelta(t, sick+11*time.Minute, time.Since(began), float64(2*time.Minute))
				assert.Less(t, l.Len(), 100, "five minutes of pages among them")
			})
		})
	}
}

// A page whose reply is lost may have shown its meetings.
func TestLostPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 115, 1, 10*time.Minute)
		_, l := testkit.WatchLooks(srv)
		lost := 0
		hc := &http.Client{Transport: testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := l.RoundTrip(r)
			if strings.HasSuffix(r.URL.Path, "/meetings") && l.Pages() == 9 {
				lost++
				_ = resp.Body.Close()
				return nil, io.ErrUnexpectedEOF
			}
			return resp, err
		})}
		c := testkit.Client(srv, minutes.WithHTTPClient(hc))
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
		}
		assert.Equal(t, 1, lost)
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A page that took its time counts from when it came.
func TestSlowPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 150, 1, 10*time.Minute)
		for nth := 2; nth < 12; nth += 4 {
			srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: nth}, minutestest.Delay(20*time.Second))
		}
		c, l := testkit.WatchLooks(srv)
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
		}
		assert.Greater(t, l.Pages(), 12)
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A key that may not list, or a service that refuses to, is followed by GETs.
func TestWithoutLists(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]minutestest.Fault{
		"refused":         minutestest.Refuse(minutes.ErrInsufficientScope),
		"broken":          minutestest.Refuse(minutes.ErrInternal),
		"lost":            minutestest.Reset(),
		"no such route":   minutestest.Reply(404, "text/html", "<h1>Not found</h1>"),
		"not what it was": minutestest.Reply(200, "text/html", "<h1>Welcome</h1>"),
		"too many":        minutestest.RateLimit(""),
		"far too many":    minutestest.RateLimit("300"),
		"cut":             minutestest.Truncate(20),
		"never answered":  minutestest.Delay(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, testkit.Many(100, 30), 1, 10*time.Minute)
				srv.Inject(minutestest.Match{Operation: "meetings.list", Times: minutestest.Always}, fault)
				c, l := testkit.WatchLooks(srv)
				for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
					require.NoError(t, err)
					assert.Equal(t, minutes.StatusMinutesReady, m.Status)
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 64*time.Second)
				}
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// A listing whose cursors lead in a circle does not keep a sweep going.
func TestCursorCircle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 150, 1, 10*time.Minute)
		// The second page leads to the second page, by another cursor each time.
		var second string
		n := 0
		next := regexp.MustCompile(`"next_cursor":"([^"]*)`)
		loop := testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			query := r.URL.Query()
			if query.Get("cursor") != "" {
				query.Set("cursor", second)
				r.URL.RawQuery = query.Encode()
			}
			resp, err := srv.HTTPClient().Transport.RoundTrip(r)
			if err != nil || !strings.HasSuffix(r.URL.Path, "/meetings") {
				return resp, err
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if query.Get("cursor") == "" {
				second = string(next.FindSubmatch(body)[1])
			}
			n++
			body = next.ReplaceAll(body, fmt.Appendf(nil, `"next_cursor":"%d`, n))
			resp.Body = io.NopCloser(bytes.NewReader(body))
			return resp, err
		})
		c, l := testkit.WatchLooks(srv)
		l.Next = loop
		ended := 0
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
			ended++
		}
		assert.Equal(t, len(ids), ended)
		assert.Less(t, l.Pages(), 400)
	})
}

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

// A look that takes longer than the floor is the look of whoever comes
// meanwhile.
func TestLookLongerThanTheFloor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: srv.HTTPClient().Transport, Timeout: 5 * time.Minute}))
		keeps, slow := testkit.Uploaded(t, c, "Keeps the poller going"), testkit.Uploaded(t, c, "Slow")
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
func TestFurthestComesBack(t *testing.T) {
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
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 60, 1, testkit.Ages)
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
func TestFurthestLeavesDuringAPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 60, 1, testkit.Ages)
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

// A page is read only when the single looks before it are there, and are a floor
// ago.
func TestPageAfterLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
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
func TestComesDuringAPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 60, 1, testkit.Ages)
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
// what a page shows sooner than an interval is told sooner.
func TestIntervalsBesidePages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others, own time.Duration
		told        time.Duration // after the change, at least
		most        time.Duration
		pages       int // in an hour
	}{
		"in a hurry among the patient": {4 * time.Hour, 0, 0, 31 * time.Second, 10},
		"patient among the hurried":    {0, 10 * time.Minute, 0, 31 * time.Second, 121},
		"both patient":                 {10 * time.Minute, 10 * time.Minute, 7 * time.Minute, 11 * time.Minute, 9},
		"both hurried":                 {0, 0, 0, 31 * time.Second, 121},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
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
func TestLongIntervalBesidePages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		old := testkit.Crowd(t, srv, 1, 1, testkit.Ages)
		testkit.Crowd(t, srv, 700, 700, time.Hour)
		ids := testkit.Crowd(t, srv, 50, 1, 20*time.Minute)
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
func TestFirstSweepEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		testkit.Crowd(t, srv, 700, 701, testkit.Ages)
		ids := testkit.Crowd(t, srv, 120, 1, testkit.Ages)
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
		assert.LessOrEqual(t, l.Len(), 6, "and hardly a single look")
	})
}

// A page that is refused for its cursor, or lost while single looks succeed, does
// not make an end of pages.
func TestPagesGoOn(t *testing.T) {
	t.Parallel()
	turns := testkit.Many(120, 28)
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
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				far := testkit.Crowd(t, srv, 1, 1, testkit.Ages)
				testkit.Crowd(t, srv, 700, 701, testkit.Ages)
				ids := append(far, testkit.Crowd(t, srv, 120, 1, testkit.Ages)...)
				srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: 20, Times: test.times}, test.fault)
				c, l := testkit.WatchLooks(srv)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(turns)*30*time.Second)
				defer cancel()
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				synctest.Wait()
				assert.Greater(t, l.Pages(), 2*turns-40, "two a turn")
				assert.LessOrEqual(t, l.Most(time.Minute), test.most)
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
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
				for i := range testkit.Many(100, 25) {
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

// A 429 pauses for as long as the service asks, five minutes at most, or for a
// second, which doubles with each in a row; a look that succeeds in between makes
// an end of that.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	limit, ok := minutestest.RateLimit, minutestest.Delay(0)
	const s = time.Second
	for name, test := range map[string]struct {
		maxAge string // of the looks
		faults []minutestest.Fault
		pauses []time.Duration // to the next request
	}{
		"once":                {"", []minutestest.Fault{limit("")}, []time.Duration{s}},
		"again":               {"", []minutestest.Fault{limit(""), limit(""), limit(""), limit("")}, []time.Duration{s, 2 * s, 4 * s, 8 * s}},
		"as asked":            {"", []minutestest.Fault{limit("200")}, []time.Duration{200 * s}},
		"asked for little":    {"", []minutestest.Fault{limit("2"), limit("2")}, []time.Duration{2 * s, 2 * s}},
		"asked for too much":  {"", []minutestest.Fault{limit("100000")}, []time.Duration{300 * s}},
		"recovered":           {"", []minutestest.Fault{limit(""), limit(""), ok, limit("")}, []time.Duration{s, 2 * s, 30 * s, s}},
		"from a raised floor": {"max-age=120", []minutestest.Fault{ok, limit(""), limit("")}, []time.Duration{120 * s, s, 2 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				id := testkit.Crowd(t, srv, 1, 1, testkit.Ages)[0]
				_, l := testkit.WatchLooks(srv)
				c := testkit.WatchedBy(srv, testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
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

// A pause halves the pace, which comes back while all goes well.
func TestPaceAfterARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 20*100, 100, testkit.Ages) // no pages
		require.Len(t, ids, 20)
		c, l := testkit.WatchLooks(srv)
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
		assert.InDelta(t, 20*8, within(60*time.Second, 300*time.Second), 25)
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A key that may not list, or may not any more, is told so with growing patience.
func TestAsksSeldomWhereListsAreRefused(t *testing.T) {
	t.Parallel()
	for _, nth := range []int{1, 3, 4} {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, testkit.Many(60, 30), 1, testkit.Ages)
				srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: nth, Times: minutestest.Always}, minutestest.Refuse(minutes.ErrInsufficientScope))
				c, l := testkit.WatchLooks(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				synctest.Wait()
				assert.LessOrEqual(t, l.Pages(), nth+5, "2, 4, 8 and 16 turns later")
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// An upload that asks for the audio has its answer from a look that begins
// afterwards, a single one or a page, and as soon as the floor allows.
func TestUploadDuringALook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others   int // are waited for
		interval time.Duration
		lost     bool          // the reply, not the audio
		takes    time.Duration // to learn so
	}{
		"a look, and the audio did not arrive":      {0, 0, false, 0},
		"a look, and the audio arrived":             {0, 0, true, 0},
		"long after a look, no audio":               {0, 4 * time.Hour, false, 0},
		"long after a look, and the audio arrived":  {0, 4 * time.Hour, true, 0},
		"a page, and the audio did not arrive":      {49, 0, false, 0},
		"a page, and the audio arrived":             {49, 0, true, 0},
		"long after a page, no audio":               {49, 4 * time.Hour, false, 0},
		"long after a page, the audio arrived":      {49, 4 * time.Hour, true, 0},
		"the second page of an upload, no audio":    {49, 0, false, 40 * time.Second},
		"the second page of an upload, which ended": {49, 0, true, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, test.others, 1, testkit.Ages)
				id := testkit.Waiting(t, srv)
				require.NoError(t, srv.Script(minutestest.Script{MeetingID: id, Hold: minutes.StatusAudioUploaded}))
				ids = append(ids, id)
				c, _ := testkit.WatchLateLooks(srv, 10*time.Second)
				fault := minutestest.ResetUpload(0)
				if test.lost {
					fault = minutestest.LoseReply()
				}
				srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, MeetingID: id}, fault.Delayed(test.takes))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() {
					for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), &minutes.WaitOptions{Interval: test.interval}) {
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
				})
				lost := time.Now().Add(45 * time.Second) // during the second look, if there is one
				time.Sleep(45*time.Second - test.takes)
				rec, sum := testkit.Noise(200_000)
				require.NoError(t, c.Meetings.Upload(t.Context(), id, rec, nil))
				testkit.RequireArrived(t, srv, id, sum)
				assert.LessOrEqual(t, time.Since(lost), 51*time.Second) // jitter adds a second at most
				assert.Len(t, srv.Requests("meetings.upload_url")[test.others:], 1, "the same URL serves again")
				wg.Wait()
				synctest.Wait()
			})
		})
	}
}

// An upload that asks for the audio during a look that is refused has its answer
// from the next one.
func TestUploadDuringALookThatIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		id := testkit.Waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: "meetings.get"}, minutestest.RateLimit("").Delayed(10*time.Second))
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.Reset())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Wait(t.Context(), id, nil)
			assert.NoError(t, err)
		})
		time.Sleep(time.Second)
		require.NoError(t, c.Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
		assert.Len(t, srv.Requests("meetings.get"), 2)
		wg.Wait()
		synctest.Wait()
	})
}

// An upload that asks for the audio during a look that fails has its answer from
// the next one.
func TestUploadDuringALookThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Looked at", Date: "2026-11-20"})
		require.NoError(t, err)
		srv.Inject(minutestest.Match{Operation: "meetings.get"}, minutestest.BadGateway().Delayed(10*time.Second))
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.Reset())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
			assert.NoError(t, err)
		})
		time.Sleep(time.Second)
		require.NoError(t, c.Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
		assert.Len(t, srv.Requests("meetings.get"), 2)
		wg.Wait()
	})
}

// The answer's Cache-Control raises the floor, for looks and for what a second
// wait is served, up to five minutes, and as long as the service says so.
func TestWaitCacheControl(t *testing.T) {
	t.Parallel()
	for header, floor := range map[string]time.Duration{
		"":                             30 * time.Second,
		"no-store":                     30 * time.Second,
		"private, max-age=10":          30 * time.Second,
		"private, max-age=120":         2 * time.Minute,
		"max-age=120, private":         2 * time.Minute,
		`Max-Age = "120"`:              2 * time.Minute,
		"s-maxage=200,max-age=120":     2 * time.Minute,
		"max-age=100000":               5 * time.Minute,
		"max-age=99999999999999999999": 5 * time.Minute,
		"max-age=-5":                   30 * time.Second,
		"max-age=soon":                 30 * time.Second,
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				require.NoError(t, srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing}))
				_, l := testkit.WatchLooks(srv)
				says := header
				c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := l.RoundTrip(r)
					if err == nil {
						resp.Header.Set("Cache-Control", says)
					}
					return resp, err
				})}))
				m := testkit.Uploaded(t, c, "Weekly")
				begun := time.Now()
				testkit.WaitFor(t, c, m.ID, floor-time.Second, nil)
				testkit.WaitFor(t, c, m.ID, 900*time.Millisecond, nil)
				require.Len(t, l.At(), 1)
				testkit.WaitFor(t, c, m.ID, 20*time.Minute-time.Since(begun), nil)
				at := l.Of(m.ID)
				require.Greater(t, len(at), 3)
				for i, at2 := range at[1:] {
					assert.GreaterOrEqual(t, at2.Sub(at[i]), floor)
					assert.LessOrEqual(t, at2.Sub(at[i]), floor+floor/30)
				}
				says = ""
				time.Sleep(10 * time.Minute)
				n := l.Len()
				testkit.WaitFor(t, c, m.ID, 2*time.Minute, nil)
				assert.Len(t, l.At(), n+4)
			})
		})
	}
}

// An interval longer than time goes on is one look, and no look too soon.
func TestWaitIntervalForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c, l := testkit.WatchLooks(srv)
		m := testkit.Uploaded(t, c, "Long")
		time.Sleep(time.Second)
		for range 3 {
			testkit.WaitFor(t, c, m.ID, 5*time.Second, &minutes.WaitOptions{Interval: math.MaxInt64})
		}
		testkit.WaitFor(t, c, m.ID, 10*time.Minute, &minutes.WaitOptions{Interval: math.MaxInt64})
		assert.Len(t, l.Of(m.ID), 1)
		assert.Zero(t, l.TooSoon([]string{m.ID}), "looks within the floor")
	})
}

// The meeting as last seen is kept as it was last seen, also where a crowd came
// meanwhile, of which no more than the status is kept; and a final status is
// served at once all the same.
func TestWaitInACrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 1100, 1, testkit.Ages)
		c := testkit.Client(srv, minutes.WithRateLimit(0, 0))
		first, last := ids[0], ids[1]
		require.NoError(t, srv.Script(minutestest.Script{MeetingID: first, Hold: minutes.StatusTranscribing}))
		var wg sync.WaitGroup
		wg.Go(func() {
			seen := testkit.WaitFor(t, c, first, 10*time.Minute, nil)
			if assert.NotNil(t, seen) {
				assert.Equal(t, minutes.StatusTranscribing, seen.Status)
			}
		})
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
		defer cancel()
		wg.Go(func() {
			for m, err := range c.Meetings.WaitAll(ctx, slices.Values(ids[1:]), nil) {
				if err != nil {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					break
				}
				assert.Equal(t, last, m.ID)
				begun := time.Now()
				again, err := c.Meetings.Wait(t.Context(), m.ID, nil)
				if assert.NoError(t, err) {
					assert.Equal(t, m, again)
					assert.Zero(t, time.Since(begun))
				}
			}
		})
		time.Sleep(2 * time.Minute)
		_, err := srv.Advance(first, minutes.StatusTranscribing)
		require.NoError(t, err)
		_, err = srv.Advance(last, minutes.StatusMinutesReady)
		require.NoError(t, err)
		wg.Wait()
		synctest.Wait()
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
				time.Sleep(10 * time.Minute)
				var told []minutes.Status
				late, stop := context.WithTimeout(t.Context(), 5*time.Minute)
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

// What was seen before a look that showed nothing is as old as it was: it is not
// served for the floor after that look.
func TestWaitIsNotServedFromAFailedLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c, l := testkit.WatchLooks(srv)
		m := testkit.Uploaded(t, c, "Old title")
		srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: 2}, minutestest.BadGateway())
		var wg sync.WaitGroup
		wg.Go(func() { testkit.WaitFor(t, c, m.ID, 2*time.Minute, nil) })
		time.Sleep(32 * time.Second)
		require.Len(t, srv.Requests("meetings.get"), 2)
		_, err := c.Meetings.Update(t.Context(), m.ID, &minutes.MeetingUpdateParams{Title: new("New title")})
		require.NoError(t, err)
		got, err := c.Meetings.Wait(t.Context(), m.ID, &minutes.WaitOptions{Until: minutes.StatusAudioUploaded})
		require.NoError(t, err)
		assert.Equal(t, "New title", got.Title)
		wg.Wait()
		synctest.Wait()
		assert.Zero(t, l.TooSoon([]string{m.ID}), "looks within the floor")
	})
}

// What may pass is waited out, a turn for each; what will not ends the wait.
func TestWaitFaults(t *testing.T) {
	t.Parallel()
	html := func(status int) minutestest.Fault { return minutestest.Reply(status, "text/html", "<h1>Sorry</h1>") }
	for name, test := range map[string]struct {
		fault  minutestest.Fault
		passes bool
	}{
		"400 of something in front": {html(400), true},
		"401 of something in front": {html(401), false},
		"403 of something in front": {html(403), false},
		"404 of something in front": {html(404), true},
		"408 with a code":           {minutestest.Reply(408, "application/json", `{"error":{"code":"SLOW","message":"x"}}`), true},
		"410 with a code":           {minutestest.Reply(410, "application/json", `{"error":{"code":"GONE","message":"x"}}`), false},
		"502 of something in front": {html(502), true},
		"welcome":                   {html(200), true},
		"a refusal":                 {minutestest.Refuse(minutes.ErrBadRequest), false},
		"a refused scope":           {minutestest.Refuse(minutes.ErrInsufficientScope), false},
		"an unknown meeting":        {minutestest.Refuse(minutes.ErrNotFound), false},
		"a lost reply":              {minutestest.LoseReply(), true},
		"a cut reply":               {minutestest.Truncate(20), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				c := testkit.Client(srv)
				m := testkit.Uploaded(t, c, "Weekly")
				srv.Inject(minutestest.Match{Operation: "meetings.get"}, test.fault)
				begun := time.Now()
				_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
				if !test.passes {
					var wait *minutes.WaitError
					require.ErrorAs(t, err, &wait)
					require.Zero(t, time.Since(begun))
					return
				}
				require.NoError(t, err)
				require.Len(t, srv.Requests("meetings.get"), 2)
				require.GreaterOrEqual(t, time.Since(begun), 30*time.Second)
			})
		})
	}
}

// Twenty failed looks in a row end a wait; as many with one between them that
// succeeds do not.
func TestWaitFailuresInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		m := testkit.Uploaded(t, c, "Weekly")
		for _, nth := range []int{1, 13} {
			srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: nth, Times: 11}, minutestest.BadGateway())
		}
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
	})
}

// Each wait has twenty failed looks of its own, also where it goes on within the
// floor where another left.
func TestWaitCountsItsOwnFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		m := testkit.Uploaded(t, c, "Weekly")
		srv.Inject(minutestest.Match{Operation: "meetings.get", Times: 25}, minutestest.BadGateway())
		testkit.WaitFor(t, c, m.ID, 9*time.Minute+35*time.Second, nil)
		require.GreaterOrEqual(t, len(srv.Requests("meetings.get")), 19)
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
	})
}

// Too many failures in a row say how many, over what time.
func TestWaitErrorOfTooManyFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv, minutes.WithRetries(0, 0, 0))
		m := testkit.Uploaded(t, c, "Weekly")
		for op, text := range map[minutes.Operation]string{
			"meetings.get":     `waiting for meeting mtg_\w+.*: 20 looks in a row failed, over (9m3\d|9m4\d)s: .*502`,
			"meetings.minutes": `waiting for meeting mtg_\w+.*: 20 requests in a row failed, over 9m30s: .*502`,
		} {
			inj := srv.Inject(minutestest.Match{Operation: op, Times: minutestest.Always}, minutestest.BadGateway())
			_, err := c.Meetings.WaitForMinutes(t.Context(), m.ID, nil)
			_, ok := errors.AsType[*minutes.WaitError](err)
			require.True(t, ok)
			assert.Regexp(t, text, err.Error())
			inj.Stop()
			time.Sleep(time.Hour)
		}
	})
}

// Neither 429 nor "not ready" on what a job has come to ends it.
func TestWaitRefusedForNow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		operation minutes.Operation
		fault     minutestest.Fault
	}{
		"429 on the minutes":                {"meetings.minutes", minutestest.RateLimit("")},
		"429 on the transcript":             {"meetings.transcript", minutestest.RateLimit("")},
		"no minutes although it says so":    {"meetings.minutes", minutestest.Refuse(minutes.ErrMinutesNotReady)},
		"no transcript although it says so": {"meetings.transcript", minutestest.Refuse(minutes.ErrTranscriptNotReady)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				srv.Inject(minutestest.Match{Operation: test.operation, Times: 150}, test.fault)
				c := testkit.Client(srv, minutes.WithRetries(0, 0, 0))
				began := time.Now()
				p := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "job-1"}
				r, err := c.Meetings.Process(t.Context(), p, testkit.Audio(10), &minutes.ProcessOptions{Transcript: true})
				require.NoError(t, err)
				assert.NotNil(t, r.Minutes)
				assert.NotEmpty(t, r.Transcript)
				assert.Greater(t, time.Since(began), 150*30*time.Second)
				if test.operation == "meetings.minutes" {
					srv.Inject(minutestest.Match{Operation: test.operation, Times: 50}, test.fault)
				}
				_, err = c.Meetings.WaitForMinutes(t.Context(), r.Meeting.ID, nil)
				require.NoError(t, err)
			})
		})
	}
}

// A wait whose meeting a page has shown since does not tell of a look that failed
// before.
func TestWaitTellsOfNoTroubleThatAPageOutlived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
		srv.Inject(minutestest.Match{Operation: "meetings.get", Times: minutestest.Always}, minutestest.BadGateway())
		c := testkit.Client(srv)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		check := func(err error) {
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			_, failed := errors.AsType[*minutes.Error](err)
			assert.False(t, failed, "%v", err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Wait(ctx, ids[0], nil)
			check(err)
		})
		time.Sleep(time.Second)
		for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			check(err)
		}
		wg.Wait()
		synctest.Wait()
	})
}

// What a wait with a long interval has seen is served to others while it is
// fresh, and no longer.
func TestWaitIsNotServedWhatIsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		m := testkit.Uploaded(t, c, "Old title")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.Meetings.Wait(ctx, m.ID, &minutes.WaitOptions{Interval: 24 * time.Hour}) })
		time.Sleep(10 * time.Hour)
		_, err := c.Meetings.Update(t.Context(), m.ID, &minutes.MeetingUpdateParams{Title: new("New title")})
		require.NoError(t, err)
		got, err := c.Meetings.Wait(t.Context(), m.ID, &minutes.WaitOptions{Until: minutes.StatusAudioUploaded})
		require.NoError(t, err)
		assert.Equal(t, "New title", got.Title)
		assert.Equal(t, minutes.StatusMinutesReady, got.Status)
		cancel()
		wg.Wait()
	})
}

// Whatever the Client sees of a single meeting is a look: a wait that begins
// within the floor is served from it, and looks when the floor is over.
func TestWaitAfterTheClientSawTheMeeting(t *testing.T) {
	t.Parallel()
	params := func() *minutes.MeetingCreateParams {
		return &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "job-1"}
	}
	for name, see := range map[string]func(*minutes.Client, context.Context, string) (*minutes.Meeting, error){
		"Get": func(c *minutes.Client, ctx context.Context, id string) (*minutes.Meeting, error) {
			return c.Meetings.Get(ctx, id)
		},
		"Create": func(c *minutes.Client, ctx context.Context, _ string) (*minutes.Meeting, error) {
			m, _, err := c.Meetings.Create(ctx, params())
			return m, err
		},
		"FindByExternalID": func(c *minutes.Client, ctx context.Context, _ string) (*minutes.Meeting, error) {
			return c.Meetings.FindByExternalID(ctx, "job-1")
		},
		"Update": func(c *minutes.Client, ctx context.Context, id string) (*minutes.Meeting, error) {
			return c.Meetings.Update(ctx, id, &minutes.MeetingUpdateParams{Time: new("10:00")})
		},
		"SetParticipants": func(c *minutes.Client, ctx context.Context, id string) (*minutes.Meeting, error) {
			return c.Meetings.SetParticipants(ctx, id, []string{"emp_ada"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				m, _, err := testkit.Client(srv).Meetings.Create(t.Context(), params())
				require.NoError(t, err)
				c, l := testkit.WatchLooks(srv)
				seen, err := see(c, t.Context(), m.ID)
				require.NoError(t, err)
				began, n := time.Now(), len(srv.Requests("meetings.get"))
				time.Sleep(10 * time.Second)
				var told []*minutes.Meeting
				var at []time.Time
				testkit.WaitFor(t, c, m.ID, 19*time.Second, &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) {
					told, at = append(told, m), append(at, time.Now())
				}})
				assert.Len(t, srv.Requests("meetings.get"), n, "the floor")
				require.Equal(t, []*minutes.Meeting{seen}, told)
				assert.Equal(t, 10*time.Second, at[0].Sub(began))
				testkit.WaitFor(t, c, m.ID, 3*time.Second, nil)
				assert.Len(t, srv.Requests("meetings.get"), n+1)
				if name != "SetParticipants" { // which is refused by then
					require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
					_, err = srv.Advance(m.ID, minutes.StatusMinutesReady)
					require.NoError(t, err)
					time.Sleep(time.Minute)
					_, err = see(c, t.Context(), m.ID)
					require.NoError(t, err)
					n, began = len(srv.Requests("meetings.get")), time.Now()
					got, err := c.Meetings.Wait(t.Context(), m.ID, nil)
					require.NoError(t, err)
					assert.Equal(t, minutes.StatusMinutesReady, got.Status)
					assert.Len(t, srv.Requests("meetings.get"), n, "a final status is served at once")
					assert.Zero(t, time.Since(began))
				}
				synctest.Wait()
				testkit.RequireQuiet(t, l)
			})
		})
	}
}

// What the Client sees while a wait is under way is told to it, and puts its
// next look off.
func TestWaitHearsOfAGet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		require.NoError(t, srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing}))
		c, l := testkit.WatchLooks(srv)
		m := testkit.Uploaded(t, c, "Weekly")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
			assert.NoError(t, err)
		})
		for range 20 {
			time.Sleep(31 * time.Second / 2)
			_, err := c.Meetings.Update(t.Context(), m.ID, &minutes.MeetingUpdateParams{Time: new("10:00")})
			require.NoError(t, err)
		}
		assert.Len(t, l.Of(m.ID), 1, "the first look, and then the replies of Update")
		_, err := srv.Advance(m.ID, minutes.StatusMinutesReady)
		require.NoError(t, err)
		begun := time.Now()
		_, err = c.Meetings.FindByExternalID(t.Context(), "none")
		require.ErrorIs(t, err, minutes.ErrNotFound)
		_, err = c.Meetings.Get(t.Context(), m.ID)
		require.NoError(t, err)
		wg.Wait()
		assert.Zero(t, time.Since(begun))
	})
}

// An upload, or a request for an upload URL, begins anew: the look after it is
// made at once.
func TestWaitBeginsAnewAfterAnUpload(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*minutes.Client, context.Context, string) error{
		"Upload": func(c *minutes.Client, ctx context.Context, id string) error {
			return c.Meetings.Upload(ctx, id, testkit.Audio(10), nil)
		},
		"UploadURL": func(c *minutes.Client, ctx context.Context, id string) error {
			_, err := c.Meetings.UploadURL(ctx, id, "audio/mpeg")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				id := testkit.Waiting(t, srv)
				c, l := testkit.WatchLooks(srv)
				testkit.WaitFor(t, c, id, time.Second, nil)
				time.Sleep(time.Second)
				require.NoError(t, act(c, t.Context(), id))
				time.Sleep(time.Second)
				require.Len(t, l.Of(id), 1)
				seen := testkit.WaitFor(t, c, id, time.Second, nil)
				require.Len(t, l.Of(id), 2)
				want := minutes.StatusCreated
				if name == "Upload" {
					want = minutes.StatusAudioUploaded
				}
				assert.Equal(t, want, seen.Status)
			})
		})
	}
}

// What was asked for before a meeting was last seen may be older: a wait does not
// hear that a meeting went back.
func TestWaitNeverGoesBack(t *testing.T) {
	t.Parallel()
	for name, meetings := range map[string]int{"a look": 1, "a page": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, meetings, 1, testkit.Ages)
				require.NoError(t, srv.Script(minutestest.Script{MeetingID: ids[0], Hold: minutes.StatusTranscribing}))
				c, l := testkit.WatchLateLooks(srv, 10*time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				told := map[string][]minutes.Status{}
				var wg sync.WaitGroup
				wg.Go(func() {
					o := &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) { told[m.ID] = append(told[m.ID], m.Status) }}
					for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), o) {
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
				})
				time.Sleep(2 * time.Minute)
				for n := l.Len(); l.Len() == n; { // it was answered, and the answer is on its way
					time.Sleep(time.Second / 10)
				}
				_, err := srv.Advance(ids[0], minutes.StatusTranscribing)
				require.NoError(t, err)
				_, err = c.Meetings.Update(t.Context(), ids[0], &minutes.MeetingUpdateParams{Time: new("10:00")})
				require.NoError(t, err)
				wg.Wait()
				synctest.Wait()
				assert.Equal(t, []minutes.Status{minutes.StatusAudioUploaded, minutes.StatusTranscribing}, told[ids[0]])
			})
		})
	}
}

// A look that waits for the Client's limiter is not made where the meeting is
// seen otherwise meanwhile: the next one is a floor away from that.
func TestLookHeldBackByTheLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		c := testkit.Client(srv, minutes.WithRateLimit(0.1, 1))
		_, err := c.Usage.Get(t.Context()) // the next one may go out in ten seconds
		require.NoError(t, err)
		before := len(srv.Requests("meetings.get"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Update(ctx, id, &minutes.MeetingUpdateParams{Time: new("10:00")})
			assert.NoError(t, err)
		})
		synctest.Wait()
		began := time.Now()
		_, err = c.Meetings.Wait(ctx, id, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wg.Wait()
		looks := srv.Requests("meetings.get")[before:]
		require.Len(t, looks, 1)
		assert.GreaterOrEqual(t, looks[0].At.Sub(began), 40*time.Second)
	})
}

// A look that was refused was a look, too.
func TestWaitAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		for range 2 {
			_, err := c.Meetings.Wait(t.Context(), "mtg_gone", nil)
			require.ErrorIs(t, err, minutes.ErrNotFound)
		}
		looks := srv.Requests("meetings.get")
		require.Len(t, looks, 2)
		assert.GreaterOrEqual(t, looks[1].At.Sub(looks[0].At), minutestest.PollFloor)
	})
}

// The first look waits for what is left of the floor since another process
// looked.
func TestWaitLookedAt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at    func(now time.Time) time.Time
		first time.Duration
	}{
		"never":         {func(time.Time) time.Time { return time.Time{} }, 0},
		"a moment ago":  {func(now time.Time) time.Time { return now }, 30 * time.Second},
		"20 s ago":      {func(now time.Time) time.Time { return now.Add(-20 * time.Second) }, 10 * time.Second},
		"20 s, no zone": {func(now time.Time) time.Time { return now.Add(-20 * time.Second).UTC().Round(0) }, 10 * time.Second},
		"long ago":      {func(now time.Time) time.Time { return now.Add(-30 * time.Second) }, 0},
		"to come":       {func(now time.Time) time.Time { return now.Add(time.Second) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				one, all := testkit.Uploaded(t, testkit.Client(srv), "One"), testkit.Uploaded(t, testkit.Client(srv), "All")
				for id, wait := range map[string]func(*minutes.Client, context.Context, *minutes.WaitOptions){
					one.ID: func(c *minutes.Client, ctx context.Context, o *minutes.WaitOptions) {
						_, _ = c.Meetings.Wait(ctx, one.ID, o)
					},
					all.ID: func(c *minutes.Client, ctx context.Context, o *minutes.WaitOptions) {
						for range c.Meetings.WaitAll(ctx, slices.Values([]string{all.ID}), o) {
						}
					},
				} {
					c, l := testkit.WatchLooks(srv)
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute-time.Second)
					wait(c, ctx, &minutes.WaitOptions{LookedAt: test.at(began), Interval: time.Hour})
					cancel()
					require.Len(t, l.Of(id), 1)
					assert.InDelta(t, test.first, l.Of(id)[0].Sub(began), float64(time.Millisecond))
				}
			})
		})
	}
}

// However many wait for one meeting, at once or one after the other, each costs
// the same. These would take many minutes if it grew with the square.
func TestWaitsForOneMeeting(t *testing.T) {
	t.Parallel()
	n := testkit.Many(40_000, 2000)
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
				c, l := testkit.WatchLooks(srv)
				test(t, c, m.ID)
				synctest.Wait()
				assert.LessOrEqual(t, l.Len(), 40)
				testkit.RequireQuiet(t, l)
			})
		})
	}
}
