package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
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

func TestWaitAll_YieldsEachIDOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		srv.Script(minutestest.Script{Title: "bad", Outcome: minutes.StatusTranscriptionFailed})
		good, bad := testkit.Uploaded(t, c, "good"), testkit.Uploaded(t, c, "bad")
		ids := []string{good.ID, bad.ID, good.ID, "", "mtg_unknown", "mtg_unknown"}
		got := map[string]int{}
		for m, err := range testkit.Meetings(c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil)) {
			var failed *minutes.MeetingFailedError
			var wait *minutes.WaitError
			switch {
			case err == nil:
				got["done "+m.ID]++
			case errors.As(err, &failed):
				assert.Nil(t, m)
				got["failed "+failed.Meeting.ID]++
			case errors.As(err, &wait):
				assert.Nil(t, m)
				got["gone "+wait.MeetingID]++
			}
		}
		assert.Equal(t, map[string]int{"done " + good.ID: 1, "failed " + bad.ID: 1, "gone ": 1, "gone mtg_unknown": 1}, got)
	})
	t.Run("ends with its context, once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			c := testkit.Client(srv)
			ids := make([]string, 10)
			for i := range ids {
				ids[i] = testkit.Uploaded(t, c, strconv.Itoa(i)).ID
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n := 0
			for m, err := range testkit.Meetings(c.Meetings.WaitAll(ctx, slices.Values(ids), nil)) {
				n++
				assert.Nil(t, m)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
			assert.Equal(t, 1, n)
		})
	})
	t.Run("stops when the loop does", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			c := testkit.Client(srv)
			a, b := testkit.Uploaded(t, c, "a"), testkit.Uploaded(t, c, "b")
			srv.Advance(a.ID, minutes.StatusMinutesReady)
			for m, err := range testkit.Meetings(c.Meetings.WaitAll(t.Context(), slices.Values([]string{b.ID, a.ID}), nil)) {
				require.NoError(t, err)
				assert.Equal(t, a.ID, m.ID)
				break
			}
			synctest.Wait()
			n := len(srv.Requests())
			time.Sleep(time.Hour)
			assert.Len(t, srv.Requests(), n)
		})
	})
}

// A wait that pages serve ends like a single one: a deleted meeting ends only its own wait, a
// rejected key ends all.
func TestWaitAll_EndsBesideManyOthers(t *testing.T) {
	t.Parallel()
	const after = 5 * time.Minute
	for name, test := range map[string]struct {
		strike func(t *testing.T, srv *minutestest.Server, ids []string)
		is     error
		ends   int
	}{
		"vanished": {func(t *testing.T, srv *minutestest.Server, ids []string) {
			for _, id := range ids[20:23] {
				assert.NoError(t, testkit.Client(srv).Meetings.Delete(t.Context(), id))
			}
		}, minutes.ErrNotFound, 3},
		"revoked": {func(t *testing.T, srv *minutestest.Server, _ []string) {
			srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key(srv.Key()).Revoked = true })
		}, minutes.ErrUnauthenticated, 50},
		"suspended": {func(t *testing.T, srv *minutestest.Server, _ []string) {
			srv.Update("org_acme", func(o *minutestest.Organisation) { o.Suspended = true })
		}, minutes.ErrOrganisationSuspended, 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
				c, l := testkit.WatchPolls(srv)
				began := time.Now()
				time.AfterFunc(after, func() { test.strike(t, srv, ids) })
				ctx, cancel := context.WithTimeout(t.Context(), 2*after)
				defer cancel()
				ended := map[string]bool{}
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					if errors.Is(err, context.DeadlineExceeded) {
						break
					}
					require.ErrorIs(t, err, test.is)
					wait, ok := errors.AsType[*minutes.WaitError](err)
					require.True(t, ok, "%T", err)
					require.NotNil(t, wait.Meeting, "as last seen")
					require.Equal(t, wait.MeetingID, wait.Meeting.ID)
					ended[wait.MeetingID] = true
					require.LessOrEqual(t, time.Since(began), after+2*time.Minute)
				}
				require.Len(t, ended, test.ends)
				require.Positive(t, l.Pages())
			})
		})
	}
}

// WaitAll yields a repeated id once: if its meeting has ended, while it waits, and while another
// caller waits, too.
func TestWaitAll_YieldsARepeatedIDOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pause time.Duration // after the id, before the next
		other bool          // another wait was first
	}{
		"at once":                        {0, false},
		"still in progress":              {2 * time.Minute, false},
		"ended a moment ago":             {15*time.Minute + 40*time.Second, false},
		"ended long ago":                 {time.Hour, false},
		"waited for by another":          {0, true},
		"another, and still in progress": {2 * time.Minute, true},
		"another, and both ended":        {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				c := testkit.Client(srv)
				m, last := testkit.Uploaded(t, c, "Twice"), testkit.Uploaded(t, c, "Last")
				var wg sync.WaitGroup
				if test.other {
					wg.Go(func() {
						_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
						assert.NoError(t, err)
					})
					synctest.Wait()
				}
				var ids iter.Seq[string] = func(yield func(string) bool) {
					for _, id := range []string{m.ID, last.ID, m.ID, m.ID} {
						if !yield(id) {
							return
						}
						if id == m.ID {
							time.Sleep(test.pause)
						}
					}
				}
				yielded := map[string]int{}
				for m, err := range testkit.Meetings(c.Meetings.WaitAll(t.Context(), ids, nil)) {
					require.NoError(t, err)
					yielded[m.ID]++
				}
				wg.Wait()
				assert.Equal(t, map[string]int{m.ID: 1, last.ID: 1}, yielded)
			})
		})
	}
}

// WaitAll yields a repeated id once, even if its meeting ended while ids were read and nothing has
// been yielded since.
func TestWaitAll_YieldsARepeatedIDOnceAfterItsEnd(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"fresh": 15*time.Minute + 40*time.Second, "long ago": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				c := testkit.Client(srv)
				m := testkit.Uploaded(t, c, "Twice")
				var ids iter.Seq[string] = func(yield func(string) bool) {
					if yield(m.ID) {
						time.Sleep(pause)
						yield(m.ID)
					}
				}
				var yielded []string
				for m, err := range testkit.Meetings(c.Meetings.WaitAll(t.Context(), ids, nil)) {
					require.NoError(t, err)
					yielded = append(yielded, m.ID)
				}
				assert.Equal(t, []string{m.ID}, yielded)
			})
		})
	}
}

// WaitAll calls OnStatus after the first poll and for each change.
func TestWaitAll_CallsOnStatusForEachChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		ids := []string{testkit.Uploaded(t, c, "a").ID, testkit.Uploaded(t, c, "b").ID}
		notified := map[string][]minutes.Status{}
		o := &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) { notified[m.ID] = append(notified[m.ID], m.Status) }}
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), o) {
			require.NoError(t, err)
		}
		all := []minutes.Status{"audio_uploaded", "transcribing", "generating_minutes", "minutes_ready"}
		assert.Equal(t, map[string][]minutes.Status{ids[0]: all, ids[1]: all}, notified)
	})
}

// results returns the meetings of a WaitAll.
func results(c *minutes.Client, ctx context.Context, ids iter.Seq[string], o *minutes.WaitOptions) iter.Seq2[*minutes.Meeting, error] {
	return func(yield func(*minutes.Meeting, error) bool) {
		for r, err := range c.Meetings.WaitAll(ctx, ids, o) {
			if r == nil {
				r = &minutes.Result{}
			}
			if !yield(r.Meeting, err) {
				return
			}
		}
	}
}

// WaitAll rejects invalid parameters before any request.
func TestWaitAll_RejectsInvalidParams(t *testing.T) {
	t.Parallel()
	ids := slices.Values([]string{"mtg_1"})
	for name, test := range map[string]struct {
		ctx   context.Context
		ids   iter.Seq[string]
		opts  *minutes.WaitOptions
		param string
	}{
		"no context":            {nil, ids, nil, "ctx"},
		"no ids":                {t.Context(), nil, nil, "ids"},
		"unknown state":         {t.Context(), ids, &minutes.WaitOptions{Until: "done"}, "opts.Until"},
		"negative AudioTimeout": {t.Context(), ids, &minutes.WaitOptions{AudioTimeout: -1}, "opts.AudioTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testkit.Silent(t)
			seqs := []iter.Seq2[*minutes.Meeting, error]{results(c, test.ctx, test.ids, test.opts)}
			for _, seq := range seqs {
				n := 0
				for m, err := range seq {
					n++
					assert.Nil(t, m)
					bad, ok := errors.AsType[*minutes.ParamError](err)
					if assert.True(t, ok, "%v", err) {
						assert.Equal(t, test.param, bad.Param)
					}
				}
				assert.Equal(t, 1, n)
			}
		})
	}
}

// While the loop's body runs for one meeting, WaitAllForMinutes fetches the minutes of those that were ready before.
func TestWaitAllForMinutes_FetchesWhileTheBodyRuns(t *testing.T) {
	t.Parallel()
	for range 20 { // the order of events is random
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			c := testkit.Client(srv)
			var ids []string
			for i := range 6 {
				status := minutes.StatusMinutesReady
				if i >= 3 {
					status = minutes.StatusMinutesFailed
				}
				added := srv.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Weekly", CreatorID: "emp_ada", Visibility: minutes.VisibilityOrganisation, Status: status})
				_, err := c.Meetings.Get(t.Context(), added[0]) // so that all waits end at once
				require.NoError(t, err)
				ids = append(ids, added...)
			}
			began := time.Now()
			for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
				if err != nil {
					time.Sleep(time.Hour)
				}
			}
			fetches := srv.Requests(minutes.OpMeetingsMinutes)
			require.Len(t, fetches, 3)
			for _, r := range fetches {
				assert.Less(t, r.At.Sub(began), time.Minute)
			}
		})
	}
}

// OnStatus runs on the goroutine of the loop, so that it needs no lock. The loop can be left
// while events are pending.
func TestWaitAllForMinutes_OnStatusRunsOnTheLoop(t *testing.T) {
	t.Parallel()
	for _, leave := range []bool{false, true} {
		t.Run(fmt.Sprint(leave), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				c := testkit.Client(srv)
				var ids []string
				for range 10 {
					ids = append(ids, testkit.Uploaded(t, c, "Weekly").ID)
				}
				notified := 0 // the race detector checks that one goroutine counts
				o := &minutes.WaitOptions{OnStatus: func(*minutes.Meeting) { notified++ }}
				for r, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), o) {
					require.NoError(t, err)
					require.NotNil(t, r.Minutes)
					notified++
					if leave {
						break
					}
				}
				if !leave {
					assert.GreaterOrEqual(t, notified, 2*len(ids))
				}
			})
		})
	}
}

// When ctx ends, or the loop is left, the fetches under way end, too.
func TestWaitAllForMinutes_EndsFetches(t *testing.T) {
	t.Parallel()
	for _, leave := range []bool{false, true} {
		t.Run(fmt.Sprint(leave), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				c := testkit.Client(srv, minutes.WithRateLimit(0, 0))
				var ids []string
				for range 20 {
					ids = append(ids, testkit.Uploaded(t, c, "Weekly").ID)
				}
				time.Sleep(time.Hour)
				srv.Inject(minutestest.Match{Operation: "meetings.minutes", Nth: 2, Times: minutestest.Always}, minutestest.Delay(20*time.Second)).Optional()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began, ends := time.Now(), 0
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					if leave {
						break
					}
					if err != nil {
						ends++
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
				}
				if leave {
					assert.Less(t, time.Since(began), 10*time.Second)
				} else {
					assert.Equal(t, 10*time.Second, time.Since(began))
					assert.GreaterOrEqual(t, ends, 8)
				}
				synctest.Wait()
				before := len(srv.Requests())
				time.Sleep(time.Hour)
				assert.Len(t, srv.Requests(), before)
			})
		})
	}
}

// If the listing does not work, the Client polls each meeting.
func TestWaitAll_PollsEachMeetingWithoutListing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]minutestest.Fault{
		"rejected":       minutestest.Refuse(minutes.ErrInsufficientScope),
		"broken":         minutestest.Refuse(minutes.ErrInternal),
		"lost":           minutestest.Reset(),
		"no such route":  minutestest.Respond(404, "text/html", "<h1>Not found</h1>"),
		"not JSON":       minutestest.Respond(200, "text/html", "<h1>Welcome</h1>"),
		"too many":       minutestest.RateLimit(""),
		"far too many":   minutestest.RateLimit("300"),
		"cut":            minutestest.Truncate(20),
		"never answered": minutestest.Delay(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, testbase.Many(100, 25), 1, 10*time.Minute)
				srv.Inject(minutestest.Match{Operation: "meetings.list", Times: minutestest.Always}, fault)
				c, l := testkit.WatchPolls(srv)
				for m, err := range testkit.Meetings(c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil)) {
					require.NoError(t, err)
					assert.Equal(t, minutes.StatusMinutesReady, m.Status)
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 64*time.Second)
				}
				assert.Zero(t, l.TooSoon(ids), "polls within the minimum interval")
			})
		})
	}
}

// A page notifies older waits even if others join while it is read. The others do not get a
// snapshot that is older than their wait.
func TestWaitAll_PageNotifiesWhileOthersJoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 60, 1, testkit.Ages)
		c, l := testkit.WatchLatePolls(srv, 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		listed, fresh := ids[:50], ids[50:]
		var wg sync.WaitGroup
		notified := 0
		wg.Go(func() {
			for m, err := range testkit.Meetings(c.Meetings.WaitAll(ctx, slices.Values(listed), nil)) {
				if err == nil {
					notified++
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 45*time.Second)
				}
			}
		})
		time.Sleep(3 * time.Minute)
		srv.Advance(listed[7], minutes.StatusMinutesReady)
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
		assert.Equal(t, 1, notified)
	})
}
