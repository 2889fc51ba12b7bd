package minutes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// followed is what a loop around Follow saw, by title.
type followed struct {
	results map[string]*minutes.Result
	errs    map[string]error
	after   map[string]time.Duration // since the meeting's end
	loopErr error                    // without a Result
}

// follow runs a loop around Follow for d.
func follow(
	t testing.TB, srv *minutestest.Server, c *minutes.Client, d time.Duration, opts *minutes.FollowOptions,
) followed {
	t.Helper()
	got := followed{map[string]*minutes.Result{}, map[string]error{}, map[string]time.Duration{}, nil}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for result, err := range c.Meetings.Follow(ctx, opts) {
		if err != nil {
			assert.Nil(t, result)
			got.loopErr = err
			continue
		}
		title := result.Meeting.Title
		assert.NotContains(t, got.results, title, "yielded twice")
		got.results[title] = result
		got.errs[title] = result.Err
		if m, ok := srv.Meeting(result.Meeting.ID); ok {
			got.after[title] = time.Since(m.History[len(m.History)-1].At)
		}
	}
	return got
}

// direct returns a Client that needs no connection.
func direct(srv *minutestest.Server, opts ...minutes.Option) *minutes.Client {
	noConnection := minutes.WithHTTPClient(testkit.Direct(srv))
	return testkit.Client(srv, append([]minutes.Option{noConnection}, opts...)...)
}

func titles(got followed) (all []string) {
	for title := range maps.Keys(got.results) {
		all = append(all, title)
	}
	return all
}

// others calls f with another Client from time to time.
func others(t testing.TB, srv *minutestest.Server, every time.Duration, n int, f func(c *minutes.Client, i int)) {
	t.Helper()
	c := srv.Client(minutes.WithHTTPClient(testkit.Direct(srv)), minutes.WithRateLimit(0, 0))
	ctx := t.Context()
	go func() {
		for i := range n {
			select {
			case <-time.After(every):
				f(c, i)
			case <-ctx.Done():
			}
		}
	}()
}

func TestFollow_YieldsEachMeetingThatOthersCreate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		srv.Script(
			minutestest.Script{Title: "meeting 3", Outcome: minutes.StatusTranscriptionFailed},
			minutestest.Script{Title: "meeting 4", Outcome: minutes.StatusAudioRejected})
		testkit.Uploaded(t, direct(srv), "old")
		time.Sleep(time.Hour)
		others(t, srv, 127*time.Second, 10, func(c *minutes.Client, i int) {
			m := testkit.Uploaded(t, c, fmt.Sprint("meeting ", i))
			if i == 5 {
				time.Sleep(4 * time.Minute)
				assert.NoError(t, c.Meetings.Delete(t.Context(), m.ID))
			}
		})
		opts := &minutes.FollowOptions{Format: minutes.FormatMarkdown, Transcript: true}
		got := follow(t, srv, direct(srv), 45*time.Minute, opts)

		require.ErrorIs(t, got.loopErr, context.DeadlineExceeded)
		require.Len(t, got.results, 9)
		for title, r := range got.results {
			var failed *minutes.MeetingFailedError
			if title == "meeting 3" || title == "meeting 4" {
				require.ErrorAs(t, got.errs[title], &failed)
				require.Equal(t, failed.Status, r.Meeting.Status)
				require.Nil(t, r.Minutes)
			} else {
				require.NoError(t, got.errs[title])
				require.Equal(t, minutes.StatusMinutesReady, r.Meeting.Status)
				require.Contains(t, r.Minutes.Content, "# "+title)
				require.NotNil(t, r.Transcript)
			}
			require.LessOrEqual(t, got.after[title], 32*time.Second, title)
		}
		require.NotContains(t, titles(got), "old")
		require.NotContains(t, titles(got), "meeting 5", "deleted")
		require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsList)), 2*45, "one page a cycle")
		require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsGet)), 30, "the pages show nearly all")
	})
}

func TestFollow_YieldsMeetingsCreatedSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := direct(srv)
		testkit.Uploaded(t, c, "too old")
		time.Sleep(time.Hour)
		since := time.Now()
		for i := range 60 {
			testkit.Uploaded(t, c, fmt.Sprint(i))
		}
		time.Sleep(24 * time.Hour)
		handled := func(m *minutes.Meeting) bool { return m.Title == "17" }
		got := follow(t, srv, direct(srv), time.Minute, &minutes.FollowOptions{Since: since, Handled: handled})
		require.Len(t, got.results, 59)
		require.NotContains(t, titles(got), "17")
		require.NotContains(t, titles(got), "too old")
		require.Empty(t, srv.Requests(minutes.OpMeetingsGet))
		require.Len(t, srv.Requests(minutes.OpMeetingsMinutes), 59)
	})
}

// Follow yields a meeting at Until, and then fetches nothing. It does not poll what is handled.
func TestFollow_YieldsAtUntilWhatIsNotHandled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		others(t, srv, time.Minute, 10, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint(i)) })
		asked := map[string]int{}
		handled := func(m *minutes.Meeting) bool {
			asked[m.Title]++
			return m.Title != "7" || asked["7"] == 3
		}
		opts := &minutes.FollowOptions{Until: minutes.StatusTranscribing, Handled: handled}
		got := follow(t, srv, direct(srv), time.Hour, opts)
		require.Equal(t, []string{"7"}, titles(got))
		require.Len(t, asked, 10)
		for title, times := range asked {
			want := map[bool]int{false: 1, true: 3}[title == "7"]
			require.Equal(t, want, times, "when found, before the Result, after it")
		}
		require.Equal(t, minutes.StatusTranscribing, got.results["7"].Meeting.Status)
		require.Nil(t, got.results["7"].Minutes)
		require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsGet)), 10)
		require.Empty(t, srv.Requests(minutes.OpMeetingsMinutes))
	})
}

func TestFollow_WaitsForAudio(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		testkit.Waiting(t, srv) // for ever
		m, _, err := direct(srv).Meetings.Create(t.Context(),
			&minutes.MeetingCreateParams{Title: "late", Date: "2026-11-20"})
		require.NoError(t, err)
		time.AfterFunc(time.Hour, func() {
			assert.NoError(t, direct(srv).Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
		})
		got := follow(t, srv, direct(srv), 2*time.Hour, nil)
		require.Equal(t, []string{"late"}, titles(got))
		require.NoError(t, got.errs["late"])
		require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsGet)), 2*24, "one in five minutes, for each")
	})
}

// A busy loop body delays no poll. When the loop is left, nothing goes on.
func TestFollow_SlowBodyDelaysNoPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		testbase.Timeout(t, 24*time.Hour)
		srv := minutestest.NewServer(t)
		others(t, srv, time.Minute, 8, func(c *minutes.Client, i int) {
			testkit.Uploaded(t, c, fmt.Sprint("meeting ", i))
		})
		seen := 0
		for r, err := range direct(srv).Meetings.Follow(t.Context(), nil) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
			seen++
			if seen == 1 {
				pages := len(srv.Requests(minutes.OpMeetingsList))
				time.Sleep(20 * time.Minute)
				require.Greater(t, len(srv.Requests(minutes.OpMeetingsList)), pages+33)
			} else if seen == 8 {
				break
			}
		}
		requireIdle(t, srv)
	})
}

// Temporary failures delay a meeting, but lose none.
func TestFollow_OutlastsFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of    minutes.Operation
		times int
		fault minutestest.Fault
	}{
		"the list answers 500":      {minutes.OpMeetingsList, 8, minutestest.Refuse(minutes.ErrInternal)},
		"the list answers 429":      {minutes.OpMeetingsList, 8, minutestest.RateLimit("")},
		"the list is a page":        {minutes.OpMeetingsList, 8, minutestest.Respond(200, "text/html", "<p>Sign in")},
		"polls answer 500":          {minutes.OpMeetingsGet, 10, minutestest.Refuse(minutes.ErrInternal)},
		"polls answer 404":          {minutes.OpMeetingsGet, 3, minutestest.Refuse(minutes.ErrNotFound)},
		"the minutes answer 500":    {minutes.OpMeetingsMinutes, 24, minutestest.Refuse(minutes.ErrInternal)},
		"the minutes are not ready": {minutes.OpMeetingsMinutes, 12, minutestest.Refuse(minutes.ErrMinutesNotReady)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				if test.of == minutes.OpMeetingsGet { // pages would be enough
					pages := minutestest.Match{Operation: minutes.OpMeetingsList, Nth: 12, Times: 10}
					srv.Inject(pages, minutestest.Refuse(minutes.ErrInternal))
				}
				srv.Inject(minutestest.Match{Operation: test.of, Nth: 2, Times: test.times}, test.fault)
				others(t, srv, time.Minute, 3, func(c *minutes.Client, i int) {
					testkit.Uploaded(t, c, fmt.Sprint("meeting ", i))
				})
				got := follow(t, srv, direct(srv), 30*time.Minute, nil)
				require.ErrorIs(t, got.loopErr, context.DeadlineExceeded)
				require.Len(t, got.results, 3)
				for title := range got.results {
					require.NoError(t, got.errs[title])
				}
			})
		})
	}
}

// Follow ends if the service rejects the request for the list.
func TestFollow_EndsWhenTheServiceRejectsTheList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		time.AfterFunc(5*time.Minute, func() {
			srv.Update("org_acme", func(o *minutestest.Organisation) {
				o.Key(srv.Key()).Scopes = []minutes.Scope{minutes.ScopeMinutesRead}
			})
		})
		began := time.Now()
		got := follow(t, srv, direct(srv), time.Hour, nil)
		require.ErrorIs(t, got.loopErr, minutes.ErrInsufficientScope)
		require.Less(t, time.Since(began), 7*time.Minute)
		requireIdle(t, srv)
	})
}

// Any error but a failure of the meeting may be temporary. Follow yields it, and tries again ever
// later, until the error is gone or the meeting is handled.
func TestFollow_TriesAgainEverLater(t *testing.T) {
	t.Parallel()
	const always = minutestest.Always
	gaps := []time.Duration{
		0, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, 80 * time.Minute, 160 * time.Minute,
		320 * time.Minute, 640 * time.Minute, 1280 * time.Minute, 24 * time.Hour, 24 * time.Hour,
	}
	passed := time.Duration(testbase.Many(4*24*60, 80)) * time.Minute
	yields := testbase.Many(len(gaps), 4)
	for name, test := range map[string]struct {
		faults  int
		handled func(yields int) bool // of the bad meeting; nil: no Handled
		within  time.Duration
		want    int // yields of the bad meeting
		last    error
	}{
		"up to once a day": {always, nil, passed, yields, minutes.ErrForbidden},
		"with Handled":     {always, func(int) bool { return false }, 40 * time.Minute, 3, minutes.ErrForbidden},
		"until it works":   {2, nil, 40 * time.Minute, 3, nil},
		"until Handled says so": {
			always, func(n int) bool { return n == 2 }, 40 * time.Minute, 2, minutes.ErrForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				bad := testkit.Uploaded(t, direct(srv), "bad")
				testkit.Uploaded(t, direct(srv), "good")
				minutesOf := minutestest.Match{
					Operation: minutes.OpMeetingsMinutes,
					MeetingID: bad.ID,
					Times:     test.faults,
				}
				srv.Inject(minutesOf, minutestest.Refuse(minutes.ErrForbidden))
				var yielded []error
				opts := new(minutes.FollowOptions)
				if test.handled != nil {
					opts.Handled = func(m *minutes.Meeting) bool { return m.ID == bad.ID && test.handled(len(yielded)) }
				}
				ctx, cancel := context.WithTimeout(t.Context(), test.within)
				defer cancel()
				last := time.Now()
				for r, err := range direct(srv).Meetings.Follow(ctx, opts) {
					if err != nil {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						break
					}
					if r.MeetingID != bad.ID {
						require.NoError(t, r.Err)
						continue
					}
					require.Less(t, len(yielded), test.want)
					require.InDelta(t, gaps[len(yielded)], time.Since(last), float64(time.Minute))
					yielded = append(yielded, r.Err)
					last = time.Now()
				}
				require.Len(t, yielded, test.want)
				require.ErrorIs(t, yielded[test.want-1], test.last)
			})
		})
	}
}

// Follow yields a meeting until Handled returns true, so a store that fails loses nothing.
func TestFollow_YieldsUntilHandled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Script(minutestest.Script{Title: "failed", Outcome: minutes.StatusMinutesFailed})
		failures := map[string]int{"never": 0, "once": 1, "failed": 2}
		for title := range failures {
			testkit.Uploaded(t, direct(srv), title)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		began := time.Now()
		yields := map[string][]time.Duration{}
		handled := func(m *minutes.Meeting) bool { return len(yields[m.Title]) > failures[m.Title] }
		for r, err := range direct(srv).Meetings.Follow(ctx, &minutes.FollowOptions{Handled: handled}) {
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				break
			}
			require.Equal(t, r.Meeting.Title != "failed", r.Err == nil && r.Minutes != nil)
			yields[r.Meeting.Title] = append(yields[r.Meeting.Title], time.Since(began).Truncate(time.Minute))
		}
		require.Equal(t, map[string][]time.Duration{
			"never":  {0},
			"once":   {0, 10 * time.Minute},
			"failed": {0, 10 * time.Minute, 30 * time.Minute},
		}, yields)
	})
}

// A meeting that nobody ever marks as handled costs one request each time, even if the list has long
// gone on to newer ones. Once it is deleted, nothing is yielded.
func TestFollow_UnmarkedMeetingCostsLittle(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		outcome minutes.Status
		until   minutes.Status
	}{
		"ready":         {minutes.StatusMinutesReady, minutes.StatusMinutesReady},
		"failed":        {minutes.StatusTranscriptionFailed, minutes.StatusMinutesReady},
		"without fetch": {minutes.StatusMinutesReady, minutes.StatusTranscribing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				kept := time.Duration(testbase.Many(7*24, 6)) * time.Hour
				most := testbase.Many(14, 6)
				srv := minutestest.NewServer(t)
				srv.Script(minutestest.Script{Title: "unmarked", Outcome: test.outcome})
				unmarked := testkit.Uploaded(t, direct(srv), "unmarked")
				for range 120 { // on the pages before
					time.Sleep(time.Minute)
					testkit.Uploaded(t, direct(srv), "newer")
				}
				var costs, costsBefore atomic.Int64 // requests about the meeting: all, and until it is deleted
				observer := minutes.WithObserver(func(_ context.Context, a minutes.Attempt) {
					if a.MeetingID == unmarked.ID {
						costs.Add(1)
					}
				})
				time.AfterFunc(kept, func() {
					costsBefore.Store(costs.Load())
					assert.NoError(t, direct(srv).Meetings.Delete(t.Context(), unmarked.ID))
				})
				ctx, cancel := context.WithTimeout(t.Context(), kept*9/7)
				defer cancel()
				yields := 0
				opts := &minutes.FollowOptions{
					Since: time.Now().Add(-24 * time.Hour), Until: test.until,
					Handled: func(m *minutes.Meeting) bool { return m.Title == "newer" },
				}
				for r, err := range direct(srv, observer).Meetings.Follow(ctx, opts) {
					if err != nil {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						break
					}
					require.Equal(t, unmarked.ID, r.MeetingID)
					require.NotErrorIs(t, r.Err, minutes.ErrNotFound)
					yields++
				}
				require.LessOrEqual(t, yields, most)
				require.Greater(t, yields, most-2)
				require.LessOrEqual(t, costsBefore.Load(), int64(most))
				require.LessOrEqual(t, costs.Load(), int64(yields+2), "and one or two that notice the deletion")
			})
		})
	}
}

// With Once, each run yields what is ready and not handled yet, and ends. It makes no poll.
func TestFollow_OnceYieldsWhatIsReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Script(
			minutestest.Script{Title: "slow", Stages: &minutestest.Stages{Write: time.Hour}},
			minutestest.Script{Title: "failed", Outcome: minutes.StatusTranscriptionFailed})
		since := time.Now()
		for i := range 120 {
			testkit.Uploaded(t, direct(srv), fmt.Sprint(i))
		}
		for range 5 {
			testkit.Uploaded(t, direct(srv), "slow")
			testkit.Uploaded(t, direct(srv), "failed")
		}
		testkit.Waiting(t, srv)
		stored := map[string]bool{}
		for _, yields := range []int{125, 0, 5} {
			before := len(srv.Requests())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			opts := &minutes.FollowOptions{
				Since: since, Once: true, Handled: func(m *minutes.Meeting) bool { return stored[m.ID] },
			}
			seen := 0
			for r, err := range direct(srv).Meetings.Follow(ctx, opts) {
				require.NoError(t, err)
				require.Equal(t, r.Meeting.Title == "failed", r.Minutes == nil)
				stored[r.MeetingID] = true
				seen++
			}
			require.NoError(t, ctx.Err())
			cancel()
			require.Equal(t, yields, seen)
			pages := 0
			for _, r := range srv.Requests()[before:] {
				require.NotEqual(t, minutes.OpMeetingsGet, r.Operation)
				if r.Operation == minutes.OpMeetingsList {
					pages++
				}
			}
			require.Equal(t, 3, pages)
			time.Sleep(50 * time.Minute)
		}
	})
}

// A meeting is yielded once even if it is not handled, and an outage of the list delays a run.
func TestFollow_OnceEndsWhateverHandledSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		testbase.Timeout(t, 24*time.Hour)
		srv := minutestest.NewServer(t)
		testkit.Uploaded(t, direct(srv), "Weekly")
		outage := minutestest.Match{Operation: minutes.OpMeetingsList, Times: 3}
		srv.Inject(outage, minutestest.Refuse(minutes.ErrInternal))
		opts := &minutes.FollowOptions{
			Since: time.Now().Add(-time.Hour), Once: true, Handled: func(*minutes.Meeting) bool { return false },
		}
		yields := 0
		for _, err := range direct(srv).Meetings.Follow(t.Context(), opts) {
			require.NoError(t, err)
			yields++
		}
		require.Equal(t, 1, yields)
		requireIdle(t, srv)
	})
}

// If the minutes of one meeting fail for ever, Follow goes on, but the log and Stats show it. A run with
// Once ends nevertheless, and its Result says why.
func TestFollow_ShowsMinutesThatFailForEver(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]minutes.ErrorCode{
		"500": minutes.ErrInternal, "not ready": minutes.ErrMinutesNotReady,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				testbase.Timeout(t, 24*time.Hour)
				srv := minutestest.NewServer(t)
				began := time.Now()
				testkit.Uploaded(t, direct(srv), "broken")
				testkit.Uploaded(t, direct(srv), "broken, too")
				broken := minutestest.Match{Operation: minutes.OpMeetingsMinutes, Times: minutestest.Always}
				injection := srv.Inject(broken, minutestest.Refuse(code))
				out := new(testbase.Buffer)
				c := direct(srv, minutes.WithLogger(slog.New(slog.NewTextHandler(out, nil))))
				time.AfterFunc(time.Hour, func() {
					s := c.Stats()
					assert.Equal(t, 2, s.Waiting)
					assert.WithinDuration(t, began, s.Oldest, time.Second)
					injection.Stop()
				})
				got := follow(t, srv, c, 2*time.Hour, &minutes.FollowOptions{Since: began})
				require.Len(t, got.results, 2)
				require.NoError(t, got.errs["broken"])
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				require.Len(t, lines, 2)
				require.Contains(t, lines[0], `msg="minutes: fetching minutes or a transcript is failing; the call `+
					`continues" meeting=mtg_`)
				require.Contains(t, lines[1], `msg="minutes: fetching minutes works again"`)
				require.Zero(t, c.Stats().Waiting)

				srv.Inject(broken, minutestest.Refuse(code))
				started := time.Now()
				got = follow(t, srv, direct(srv), 2*time.Hour, &minutes.FollowOptions{Since: began, Once: true})
				require.NoError(t, got.loopErr)
				require.ErrorIs(t, got.errs["broken"], code)
				require.True(t, minutes.Retryable(got.errs["broken"]))
				require.Less(t, time.Since(started), 20*time.Minute)
			})
		})
	}
}

// If the list failed when ctx ends Follow, the error says so, as that of a wait does for its polls.
func TestFollow_SaysWhyItFoundNothing(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"once": true, "on and on": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				since := time.Now()
				down := minutestest.Match{Operation: minutes.OpMeetingsList, Times: minutestest.Always}
				injection := srv.Inject(down, minutestest.BadGateway())
				opts := &minutes.FollowOptions{Since: since, Once: once}
				got := follow(t, srv, direct(srv), 5*time.Minute, opts)
				require.ErrorIs(t, got.loopErr, context.DeadlineExceeded)
				failed, ok := errors.AsType[*minutes.Error](got.loopErr)
				require.True(t, ok, "%v", got.loopErr)
				require.Equal(t, 502, failed.StatusCode)
				injection.Stop()
				if !once {
					got = follow(t, srv, direct(srv), 5*time.Minute, opts)
					require.EqualError(t, got.loopErr, "minutes: waiting for meetings: context deadline exceeded")
				}
			})
		})
	}
}

// AudioTimeout does not lose a meeting: if its audio comes later, Follow yields its minutes as
// well.
func TestFollow_YieldsMeetingWhoseAudioComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		time.AfterFunc(100*time.Minute, func() {
			assert.NoError(t, direct(srv).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
		})
		var got []error
		for r, err := range direct(srv).Meetings.Follow(t.Context(), &minutes.FollowOptions{AudioTimeout: time.Hour}) {
			require.NoError(t, err)
			got = append(got, r.Err)
			if r.Err == nil {
				break
			}
		}
		require.Len(t, got, 4, "after 60, 70, 90 and 130 minutes")
		require.ErrorIs(t, got[2], minutes.ErrNoAudio)
	})
}

// Follow asks Handled right before it fetches, so two processes with one table do not both fetch
// everything.
func TestFollow_FetchesOnceForTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		meetings := testbase.Many(60, 20)
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()),
			minutestest.WithoutAudit(minutestest.ViolationPoll)) // each process keeps the interval for itself
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsMinutes, Times: minutestest.Always},
			minutestest.Delay(50*time.Millisecond))
		for i := range meetings {
			testkit.Uploaded(t, direct(srv), fmt.Sprint(i))
		}
		var mu sync.Mutex
		stored := map[string]bool{}
		handled := func(m *minutes.Meeting) bool {
			mu.Lock()
			defer mu.Unlock()
			return stored[m.ID]
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		var processes sync.WaitGroup
		for range 2 {
			c := direct(srv)
			processes.Go(func() {
				opts := &minutes.FollowOptions{Since: time.Now().Add(-time.Hour), Handled: handled}
				for r, err := range c.Meetings.Follow(ctx, opts) {
					if err != nil {
						return
					}
					time.Sleep(10 * time.Millisecond) // stores the minutes
					mu.Lock()
					stored[r.MeetingID] = true
					mu.Unlock()
				}
			})
			time.Sleep(15 * time.Second)
		}
		processes.Wait()
		require.Len(t, stored, meetings)
		fetches := len(srv.Requests(minutes.OpMeetingsMinutes))
		require.LessOrEqual(t, fetches, meetings+10, "each process may be at eight of them")
	})
}

// Without Since, Follow begins two minutes before the call.
func TestFollow_BeginsTwoMinutesAgo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		testkit.Uploaded(t, direct(srv), "three minutes old")
		time.Sleep(2 * time.Minute)
		testkit.Uploaded(t, direct(srv), "one minute old")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"one minute old"}, titles(follow(t, srv, direct(srv), time.Hour, nil)))
	})
}

// behind is a service whose clock is ten minutes behind this machine's.
func behind(srv *minutestest.Server) http.RoundTripper {
	const by = 10 * time.Minute
	times := regexp.MustCompile(`("(?:cre|upd)ated_at":)(\d+)`)
	return testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := testkit.Direct(srv).Transport.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		body = times.ReplaceAllFunc(body, func(field []byte) []byte {
			parts := times.FindSubmatch(field)
			seconds, _ := strconv.ParseInt(string(parts[2]), 10, 64)
			return strconv.AppendInt(parts[1], seconds-int64(by/time.Second), 10)
		})
		resp.Body = io.NopCloser(bytes.NewReader(body))
		resp.ContentLength = int64(len(body))
		resp.Header.Del("Content-Length")
		resp.Header.Set("Date", time.Now().Add(-by).UTC().Format(http.TimeFormat))
		return resp, nil
	})
}

// A clock that is wrong loses no meeting.
func TestFollow_BeginsByTheServicesClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		testkit.Uploaded(t, direct(srv), "too old")
		time.Sleep(3 * time.Minute)
		others(t, srv, 2*time.Minute, 20, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint(i)) })
		c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: behind(srv)}))
		got := follow(t, srv, c, time.Hour, nil)
		require.Len(t, got.results, 20)
		require.NotContains(t, titles(got), "too old")
	})
}

// Runs that are killed at random times handle every meeting. They repeat only a meeting whose run
// was killed before it could store that.
func TestFollow_HandlesEveryMeetingDespiteKills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		meetings := testbase.Many(60, 20)
		kills := testbase.Many(20, 7)
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		rnd := rand.New(rand.NewPCG(3, 5))
		others(t, srv, 10*time.Second, meetings, func(c *minutes.Client, i int) {
			testkit.Uploaded(t, c, fmt.Sprint("meeting ", i))
		})
		first := time.Now()
		handled := map[string]int{}
		stored := map[string]bool{}
		for i := range kills + 1 {
			life := testkit.UpTo(rnd, time.Minute)
			if i == kills {
				life = 20 * time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), life)
			opts := &minutes.FollowOptions{Since: first, Handled: func(m *minutes.Meeting) bool { return stored[m.ID] }}
			for r, err := range direct(srv).Meetings.Follow(ctx, opts) {
				if err != nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					break
				}
				require.NoError(t, r.Err)
				handled[r.MeetingID]++
				time.Sleep(testkit.UpTo(rnd, 200*time.Millisecond)) // handles it
				stored[r.MeetingID] = ctx.Err() == nil
			}
			cancel()
		}
		require.Len(t, handled, meetings)
		twice := 0
		for _, n := range handled {
			twice += n - 1
		}
		require.LessOrEqual(t, twice, 2)
	})
}

// Two processes with one table, whose stores fail one time in three, and which are killed again and
// again, store every meeting.
func TestFollow_StoresEveryMeetingDespiteFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		days := testbase.Many(30, 1)
		meetings := testbase.Many(100, 30)
		const kills = 6
		length := time.Duration(days) * 24 * time.Hour
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()),
			minutestest.WithoutAudit(minutestest.ViolationPoll)) // each process keeps the interval for itself
		srv.Script(minutestest.Script{Title: "meeting 17", Outcome: minutes.StatusTranscriptionFailed})
		others(t, srv, length*2/3/time.Duration(meetings), meetings, func(c *minutes.Client, i int) {
			testkit.Uploaded(t, c, fmt.Sprint("meeting ", i))
		})
		var mu sync.Mutex
		stored := map[string]int{}
		failures := 0
		handled := func(m *minutes.Meeting) bool {
			mu.Lock()
			defer mu.Unlock()
			return stored[m.ID] > 0
		}
		store := func(rnd *rand.Rand, r *minutes.Result) {
			mu.Lock()
			defer mu.Unlock()
			if rnd.IntN(3) == 0 {
				failures++
				return
			}
			stored[r.MeetingID]++
		}
		run := func(life time.Duration, rnd *rand.Rand) {
			ctx, cancel := context.WithTimeout(t.Context(), life)
			defer cancel()
			opts := &minutes.FollowOptions{Since: time.Now().Add(-length), Handled: handled}
			for r, err := range direct(srv).Meetings.Follow(ctx, opts) {
				if err != nil {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				store(rnd, r)
			}
		}
		began := time.Now()
		var processes sync.WaitGroup
		for process := range uint64(2) {
			rnd := rand.New(rand.NewPCG(process, 7))
			processes.Go(func() {
				for range kills / 2 {
					run(testkit.UpTo(rnd, length/3), rnd)
				}
				run(length-time.Since(began), rnd)
			})
		}
		processes.Wait()
		require.Len(t, stored, meetings)
		require.Greater(t, failures, meetings/4)
	})
}

// The service sends creation times in whole seconds, so a meeting of the same second counts.
func TestFollow_YieldsMeetingOfTheSameSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := direct(srv)
		time.Sleep(300 * time.Millisecond)
		since := time.Now()
		time.Sleep(200 * time.Millisecond)
		testkit.Uploaded(t, c, "Weekly")
		require.Contains(t, follow(t, srv, c, time.Hour, &minutes.FollowOptions{Since: since}).results, "Weekly")
	})
}

// Handled is not asked again about a meeting that is not yielded anyway.
func TestFollow_AsksHandledOnlyForWhatItYields(t *testing.T) {
	t.Parallel()
	const meetings = 3
	for name, test := range map[string]struct {
		event func(t *testing.T, srv *minutestest.Server, cancel context.CancelFunc)
		want  int
	}{
		"nothing happens": {func(*testing.T, *minutestest.Server, context.CancelFunc) {}, 3 * meetings},
		"ctx is done": {func(_ *testing.T, _ *minutestest.Server, cancel context.CancelFunc) {
			cancel()
		}, meetings},
		"the key is rejected": {func(_ *testing.T, srv *minutestest.Server, _ context.CancelFunc) {
			srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key(srv.Key()).Revoked = true })
		}, meetings},
		"the meetings are deleted": {func(t *testing.T, srv *minutestest.Server, _ context.CancelFunc) {
			for _, m := range srv.Meetings() {
				assert.NoError(t, direct(srv).Meetings.Delete(t.Context(), m.ID))
			}
		}, meetings},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				for range meetings {
					testkit.Uploaded(t, direct(srv), "Weekly")
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				time.AfterFunc(5*time.Minute, func() { test.event(t, srv, cancel) })
				asked := 0
				handled := func(*minutes.Meeting) bool {
					asked++
					return false
				}
				for r, err := range direct(srv).Meetings.Follow(ctx, &minutes.FollowOptions{Handled: handled}) {
					if err == nil {
						require.NoError(t, r.Err)
					}
				}
				require.Equal(t, test.want, asked)
			})
		})
	}
}

// Nor is it asked if ctx is done while the body is busy with another meeting.
func TestFollow_AsksHandledNothingWhenContextIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Script(minutestest.Script{Title: "slow", Stages: &minutestest.Stages{Write: 10 * time.Minute}})
		testkit.Uploaded(t, direct(srv), "slow")
		testkit.Uploaded(t, direct(srv), "fast")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		handled := func(*minutes.Meeting) bool {
			assert.NoError(t, ctx.Err())
			return false
		}
		var yielded []string
		for r, err := range direct(srv).Meetings.Follow(ctx, &minutes.FollowOptions{Handled: handled}) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				continue
			}
			yielded = append(yielded, r.Meeting.Title)
			time.Sleep(time.Hour)
			cancel()
		}
		require.Equal(t, []string{"fast"}, yielded)
	})
}

// A key that is rejected when the minutes are fetched ends Follow, like one that is rejected by a
// poll.
func TestFollow_EndsIfTheMinutesRejectTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		testkit.Uploaded(t, testkit.Client(srv), "Weekly")
		fetches := minutestest.Match{Operation: minutes.OpMeetingsMinutes}
		srv.Inject(fetches, minutestest.Refuse(minutes.ErrUnauthenticated))
		began := time.Now()
		got := follow(t, srv, direct(srv), time.Hour, nil)
		require.True(t, minutes.KeyRejected(got.loopErr), "%v", got.loopErr)
		require.Empty(t, got.results)
		require.Less(t, time.Since(began), 2*time.Minute)
	})
}

// A 401 without a code may be a proxy's. So it is the error of one meeting, and Follow goes on.
func TestFollow_OutlastsA401OfAProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		testkit.Uploaded(t, testkit.Client(srv), "Weekly")
		fetches := minutestest.Match{Operation: minutes.OpMeetingsMinutes, Times: -1}
		srv.Inject(fetches, minutestest.Respond(401, "text/html", "<p>Sign in"))
		got := follow(t, srv, direct(srv), 25*time.Minute, nil) // before it tries again
		require.ErrorIs(t, got.loopErr, context.DeadlineExceeded)
		require.True(t, minutes.KeyRejected(got.errs["Weekly"]), "%v", got.errs["Weekly"])
	})
}
