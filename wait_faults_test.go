package minutes_test

import (
	"cmp"
	"context"
	"fmt"
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
				c := clientOf(srv)
				m := uploaded(t, c, "Weekly")
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
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c := clientOf(srv)
		m := uploaded(t, c, "Weekly")
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
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c := clientOf(srv)
		m := uploaded(t, c, "Weekly")
		srv.Inject(minutestest.Match{Operation: "meetings.get", Times: 25}, minutestest.BadGateway())
		testkit.WaitFor(t, c, m.ID, 9*time.Minute+35*time.Second, nil)
		require.GreaterOrEqual(t, len(srv.Requests("meetings.get")), 19)
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
	})
}

// What was seen before a look that showed nothing is as old as it was: it is not
// served for the floor after that look.
func TestWaitIsNotServedFromAFailedLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c, l := testkit.WatchLooks(srv)
		m := uploaded(t, c, "Old title")
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

// A 429 holds all looks back for the floor, for what the service asks, up to five
// minutes, or for twice what the last one did; a look that succeeds in between
// makes an end of that.
func TestWaitHeldBack(t *testing.T) {
	t.Parallel()
	limit := minutestest.RateLimit
	ok := minutestest.Delay(0)
	for name, test := range map[string]struct {
		maxAge string // of single looks
		faults []minutestest.Fault
		pauses []time.Duration // to the next request
	}{
		"once":                {"", []minutestest.Fault{limit("")}, []time.Duration{30 * time.Second}},
		"again":               {"", []minutestest.Fault{limit(""), limit("")}, []time.Duration{30 * time.Second, time.Minute}},
		"as asked":            {"", []minutestest.Fault{limit("200")}, []time.Duration{200 * time.Second}},
		"asked for little":    {"", []minutestest.Fault{limit("2"), limit("2")}, []time.Duration{30 * time.Second, time.Minute}},
		"asked for too much":  {"", []minutestest.Fault{limit("100000")}, []time.Duration{5 * time.Minute}},
		"recovered":           {"", []minutestest.Fault{limit(""), limit(""), ok, limit("")}, []time.Duration{30 * time.Second, time.Minute, 30 * time.Second, 30 * time.Second}},
		"from a raised floor": {"max-age=120", []minutestest.Fault{ok, limit(""), limit("")}, []time.Duration{2 * time.Minute, 2 * time.Minute, 4 * time.Minute}},
	} {
		for op, n := range map[minutes.Operation]int{"meetings.get": 1, "meetings.list": 50} {
			if n > 1 && test.maxAge != "" {
				continue
			}
			t.Run(name+", "+string(op), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
					ids := crowd(t, srv, clientOf(srv), n, 1, testkit.Ages)
					_, l := testkit.WatchLooks(srv)
					c := clientOf(srv, minutes.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
						resp, err := l.RoundTrip(r)
						if err == nil && test.maxAge != "" {
							resp.Header.Set("Cache-Control", test.maxAge)
						}
						return resp, err
					})}))
					srv.Inject(minutestest.Match{Operation: op}, test.faults...)
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
					defer cancel()
					for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
						require.ErrorIs(t, err, context.DeadlineExceeded)
					}
					synctest.Wait()
					var pauses []time.Duration
					for i := range test.pauses {
						pauses = append(pauses, l.At()[i+1].Sub(l.At()[i]).Round(10*time.Second))
					}
					assert.Equal(t, test.pauses, pauses)
				})
			})
		}
	}
}

// Looks that went out together and were refused together pause once.
func TestWaitHeldBackTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c, l := testkit.WatchLateLooks(srv, time.Second)
		ids := []string{uploaded(t, c, "a").ID, uploaded(t, c, "b").ID, uploaded(t, c, "c").ID}
		srv.Inject(minutestest.Match{Operation: "meetings.get", Times: 3}, minutestest.RateLimit(""))
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
		}
		require.Zero(t, l.At()[2].Sub(l.At()[0]), "together")
		assert.LessOrEqual(t, l.At()[3].Sub(l.At()[0]), 32*time.Second)
	})
}

// A key that may not list, or may not any more, is told so once.
func TestPollerAsksOnceWhereListsAreRefused(t *testing.T) {
	t.Parallel()
	for _, nth := range []int{1, 3, 4} {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), 60, 1, testkit.Ages)
				srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: nth, Times: minutestest.Always}, minutestest.Refuse(minutes.ErrInsufficientScope))
				c, l := testkit.WatchLooks(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				synctest.Wait()
				assert.Equal(t, nth, l.Pages())
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// A wait whose context ends while looks fail, or are held back, tells how they
// failed; one that had been going well does not tell of what is over.
func TestWaitTellsOfTheTrouble(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits int
		match minutestest.Match
		fault minutestest.Fault
		code  minutes.Code
		after time.Duration // the context ends, or five minutes
	}{
		"a service that is out":            {1, minutestest.Match{}, minutestest.BadGateway(), "", 0},
		"a fault of the service":           {1, minutestest.Match{}, minutestest.Refuse(minutes.ErrInternal), minutes.ErrInternal, 0},
		"held back":                        {1, minutestest.Match{}, minutestest.RateLimit(""), minutes.ErrRateLimited, 0},
		"pages of a service that is out":   {50, minutestest.Match{}, minutestest.BadGateway(), "", 0},
		"pages that are held back":         {50, minutestest.Match{}, minutestest.RateLimit(""), minutes.ErrRateLimited, 0},
		"a page of a service that is out":  {50, minutestest.Match{}, minutestest.BadGateway(), "", 20 * time.Second},
		"trouble that is over":             {1, minutestest.Match{Times: 3}, minutestest.BadGateway(), "", 0},
		"pages, of a trouble that is over": {50, minutestest.Match{Times: 3}, minutestest.BadGateway(), "", 0},
		"held back, and that is over":      {1, minutestest.Match{Times: 2}, minutestest.RateLimit(""), minutes.ErrRateLimited, 0},
		"the listing alone":                {50, minutestest.Match{Operation: "meetings.list"}, minutestest.BadGateway(), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), test.waits, 1, testkit.Ages)
				over := test.match.Times > 0 || test.match.Operation != ""
				if test.match.Times == 0 {
					test.match.Times = minutestest.Always
				}
				srv.Inject(test.match, test.fault)
				c := clientOf(srv)
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(test.after, 5*time.Minute))
				defer cancel()
				check := func(err error) {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					var wait *minutes.WaitError
					assert.ErrorAs(t, err, &wait)
					var reply *minutes.Error
					if over {
						assert.NotErrorAs(t, err, &reply)
						return
					}
					if assert.ErrorAs(t, err, &reply) && test.code != "" {
						assert.ErrorIs(t, err, test.code)
					}
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					_, err := c.Meetings.Wait(ctx, ids[0], nil)
					check(err)
				})
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					check(err)
				}
				wg.Wait()
				synctest.Wait()
			})
		})
	}
}
