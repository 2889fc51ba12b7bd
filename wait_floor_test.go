package minutes_test

import (
	"context"
	"fmt"
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
	"github.com/meeting-minutes/minutes-go/internal/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

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
				srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
				require.NoError(t, srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing}))
				_, l := testkit.WatchLooks(srv)
				says := header
				c := clientOf(srv, minutes.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := l.RoundTrip(r)
					if err == nil {
						resp.Header.Set("Cache-Control", says)
					}
					return resp, err
				})}))
				m := uploaded(t, c, "Weekly")
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
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c, l := testkit.WatchLooks(srv)
		m := uploaded(t, c, "Long")
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
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		ids := crowd(t, srv, clientOf(srv), 1100, 1, testkit.Ages)
		c := clientOf(srv, minutes.WithRateLimit(0, 0))
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
			srv := minutestest.NewServer(t, minutestest.WithWorld(generous()), minutestest.WithoutAudit())
			c := clientOf(srv, minutes.WithRateLimit(0, 0))
			var ids []string
			all := func(t *testing.T) {
				for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), &minutes.WaitOptions{Until: minutes.StatusAudioUploaded}) {
					require.NoError(t, err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				ids = crowd(t, srv, clientOf(srv), n, 1, testkit.Ages)
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
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		require.NoError(t, srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing}))
		c := clientOf(srv)
		m := uploaded(t, c, "Weekly")
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

// A job that comes back to a meeting that is waited for leaves that wait as it
// is: it ends with its context, and then nobody asks any more.
func TestProcessComesBackToAWait(t *testing.T) {
	t.Parallel()
	for name, interval := range map[string]time.Duration{"fresh": 0, "looked at long ago": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
				require.NoError(t, srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing}))
				c, l := testkit.WatchLooks(srv)
				p := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "job-1"}
				m, _, err := c.Meetings.Create(t.Context(), p)
				require.NoError(t, err)
				require.NoError(t, c.Meetings.Upload(t.Context(), m.ID, audio(10), nil))
				var wg sync.WaitGroup
				wg.Go(func() {
					seen := testkit.WaitFor(t, c, m.ID, 20*time.Minute, &minutes.WaitOptions{Interval: interval})
					assert.Equal(t, minutes.StatusTranscribing, seen.Status)
				})
				time.Sleep(5*time.Minute + 10*time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				_, err = c.Meetings.Process(ctx, p, audio(10), nil)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				wg.Wait()
				synctest.Wait()
				assert.Zero(t, l.TooSoon([]string{m.ID}), "looks within the floor")
				synctest.Wait()
				testkit.RequireQuiet(t, l)
			})
		})
	}
}

// What a job returned is its caller's; a wait that is served from what the job
// saw does not see what the caller makes of it.
func TestProcessResultIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := clientOf(srv)
		p := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "job-1", ParticipantIDs: []string{"emp_ada"}}
		_, err := c.Meetings.Process(t.Context(), p, audio(10), nil)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		r, err := c.Meetings.Process(t.Context(), p, audio(10), nil)
		require.NoError(t, err)
		n := len(srv.Requests("meetings.get"))
		r.Meeting.Title, r.Meeting.ParticipantIDs[0], *r.Meeting.DurationSeconds = "mine", "me", -1
		m, err := c.Meetings.Wait(t.Context(), r.Meeting.ID, nil)
		require.NoError(t, err)
		require.Len(t, srv.Requests("meetings.get"), n)
		assert.Equal(t, "Weekly", m.Title)
		assert.Equal(t, []string{"emp_ada"}, m.ParticipantIDs)
		assert.NotEqual(t, -1, *m.DurationSeconds)
	})
}
