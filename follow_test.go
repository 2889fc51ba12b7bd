package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// followed is what a loop around Follow saw, by title.
type followed struct {
	results map[string]*minutes.Result
	errs    map[string]error
	after   map[string]time.Duration // since the meeting's end
	end     error                    // without a Result
}

// follow runs a loop around Follow for d.
func follow(t testing.TB, srv *minutestest.Server, c *minutes.Client, d time.Duration, opts *minutes.FollowOptions) followed {
	t.Helper()
	got := followed{map[string]*minutes.Result{}, map[string]error{}, map[string]time.Duration{}, nil}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for result, err := range c.Meetings.Follow(ctx, opts) {
		if result == nil {
			got.end = err
			continue
		}
		title := result.Meeting.Title
		assert.NotContains(t, got.results, title, "yielded twice")
		got.results[title], got.errs[title] = result, err
		if m, ok := srv.Meeting(result.Meeting.ID); ok {
			got.after[title] = time.Since(m.History[len(m.History)-1].At)
		}
	}
	return got
}

// direct returns a Client that needs no connection.
func direct(srv *minutestest.Server) *minutes.Client {
	return testkit.Client(srv, minutes.WithHTTPClient(testkit.Direct(srv)))
}

func titles(got followed) (all []string) {
	for title := range maps.Keys(got.results) {
		all = append(all, title)
	}
	return all
}

// others calls f with another Client from time to time.
func others(t testing.TB, srv *minutestest.Server, every time.Duration, n int, do func(c *minutes.Client, i int)) {
	t.Helper()
	c := srv.Client(minutes.WithHTTPClient(testkit.Direct(srv)), minutes.WithRateLimit(0, 0))
	ctx := t.Context()
	go func() {
		for i := range n {
			select {
			case <-time.After(every):
				do(c, i)
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
		testkit.Uploaded(t, testkit.Client(srv), "old")
		time.Sleep(time.Hour)
		others(t, srv, 5*time.Minute, 10, func(c *minutes.Client, i int) {
			m := testkit.Uploaded(t, c, fmt.Sprint("meeting ", i))
			if i == 5 {
				time.Sleep(4 * time.Minute)
				assert.NoError(t, c.Meetings.Delete(t.Context(), m.ID))
			}
		})
		got := follow(t, srv, direct(srv), 2*time.Hour, &minutes.FollowOptions{Format: minutes.FormatMarkdown, Transcript: true})

		require.ErrorIs(t, got.end, context.DeadlineExceeded)
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
		require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsList)), 4*60, "one page a cycle")
		require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsGet)), 20, "the pages show nearly all")
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
		for i := range 130 {
			testkit.Uploaded(t, c, fmt.Sprint(i))
		}
		time.Sleep(24 * time.Hour)
		handled := func(m *minutes.Meeting) bool { return m.Title == "17" }
		got := follow(t, srv, direct(srv), time.Minute, &minutes.FollowOptions{Since: since, Skip: handled})
		require.Len(t, got.results, 129)
		require.NotContains(t, titles(got), "17")
		require.NotContains(t, titles(got), "too old")
		require.Empty(t, srv.Requests(minutes.OpMeetingsGet))
		require.Len(t, srv.Requests(minutes.OpMeetingsMinutes), 129)
	})
}

// Follow yields a meeting at Until, and then fetches nothing. It does not poll what Skip leaves out.
func TestFollow_YieldsAtUntilWhatSkipLetsThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		others(t, srv, time.Minute, 10, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint(i)) })
		skipped := 0
		got := follow(t, srv, direct(srv), time.Hour, &minutes.FollowOptions{Until: minutes.StatusTranscribing, Transcript: true, Skip: func(m *minutes.Meeting) bool {
			skipped++
			return m.Title != "7"
		}})
		require.Equal(t, []string{"7"}, titles(got))
		require.Equal(t, 10, skipped)
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
		m, _, err := testkit.Client(srv).Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "late", Date: "2026-11-20"})
		require.NoError(t, err)
		time.AfterFunc(time.Hour, func() {
			assert.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
		})
		got := follow(t, srv, direct(srv), 2*time.Hour, nil)
		require.Equal(t, []string{"late"}, titles(got))
		require.NoError(t, got.errs["late"])
		require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsGet)), 2)
	})
}

// A busy loop body delays no poll. When the loop is left, nothing goes on.
func TestFollow_SlowBodyDelaysNoPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		others(t, srv, time.Minute, 30, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint("meeting ", i)) })
		seen := 0
		for _, err := range direct(srv).Meetings.Follow(t.Context(), nil) {
			require.NoError(t, err)
			if seen++; seen == 1 {
				pages := len(srv.Requests(minutes.OpMeetingsList))
				time.Sleep(time.Hour)
				require.Greater(t, len(srv.Requests(minutes.OpMeetingsList)), pages+100)
			} else if seen == 30 {
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
		"the list is no JSON":       {minutes.OpMeetingsList, 8, minutestest.Respond(http.StatusOK, "text/html", "<title>Sign in</title>")},
		"polls answer 500":          {minutes.OpMeetingsGet, 10, minutestest.Refuse(minutes.ErrInternal)},
		"the minutes answer 500":    {minutes.OpMeetingsMinutes, 100, minutestest.Refuse(minutes.ErrInternal)},
		"the minutes are not ready": {minutes.OpMeetingsMinutes, 20, minutestest.Refuse(minutes.ErrMinutesNotReady)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				if test.of == minutes.OpMeetingsGet { // pages would be enough
					srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsList, Nth: 12, Times: 10}, minutestest.Refuse(minutes.ErrInternal))
				}
				srv.Inject(minutestest.Match{Operation: test.of, Nth: 2, Times: test.times}, test.fault)
				others(t, srv, time.Minute, 5, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint("meeting ", i)) })
				got := follow(t, srv, direct(srv), 90*time.Minute, nil)
				require.ErrorIs(t, got.end, context.DeadlineExceeded)
				require.Len(t, got.results, 5)
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
			srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key(srv.Key()).Scopes = []minutes.Scope{minutes.ScopeMinutesRead} })
		})
		began := time.Now()
		got := follow(t, srv, direct(srv), time.Hour, nil)
		require.ErrorIs(t, got.end, minutes.ErrInsufficientScope)
		require.Less(t, time.Since(began), 7*time.Minute)
		requireIdle(t, srv)
	})
}

// An error of one meeting that may pass is yielded. Follow asks Skip again after ten minutes, and
// tries again; without Skip, it does not.
func TestFollow_AsksSkipAgainAfterAnError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		skip func(yields int) bool // of the bad meeting, after so many yields
		want int                   // yields
	}{
		"Skip lets it through": {func(int) bool { return false }, 3},
		"Skip leaves it out":   {func(yields int) bool { return yields > 0 }, 1},
		"without Skip":         {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				bad := testkit.Uploaded(t, testkit.Client(srv), "bad")
				testkit.Uploaded(t, testkit.Client(srv), "good")
				srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsMinutes, MeetingID: bad.ID, Times: 2}, minutestest.Refuse(minutes.ErrForbidden)).Optional()
				var yielded []error
				opts := new(minutes.FollowOptions)
				if test.skip != nil {
					opts.Skip = func(m *minutes.Meeting) bool { return m.ID == bad.ID && test.skip(len(yielded)) }
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				for r, err := range direct(srv).Meetings.Follow(ctx, opts) {
					if r == nil {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						break
					}
					if r.MeetingID == bad.ID {
						require.Equal(t, len(yielded), int(time.Since(began)/(10*time.Minute)))
						yielded = append(yielded, err)
					}
				}
				require.Len(t, yielded, test.want)
				for n, err := range yielded {
					require.Equal(t, n < 2, errors.Is(err, minutes.ErrForbidden), "%v", err)
				}
			})
		})
	}
}

// Runs that are killed at random times handle every meeting. They repeat only a meeting whose run was
// killed before it could store that.
func TestFollow_HandlesEveryMeetingDespiteKills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const meetings, kills = 60, 20
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		rnd := rand.New(rand.NewPCG(3, 5))
		others(t, srv, 10*time.Second, meetings, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint("meeting ", i)) })
		first := time.Now()
		handled, stored := map[string]int{}, map[string]bool{}
		for i := range kills + 1 {
			life := testkit.UpTo(rnd, time.Minute)
			if i == kills {
				life = 20 * time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), life)
			opts := &minutes.FollowOptions{Since: first, Skip: func(m *minutes.Meeting) bool { return stored[m.ID] }}
			for r, err := range direct(srv).Meetings.Follow(ctx, opts) {
				if r == nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					break
				}
				require.NoError(t, err)
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

// The service tells creation times in whole seconds, so a meeting of the same second counts.
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

// A key that is rejected when the minutes are fetched ends Follow, like one that is rejected by a poll.
func TestFollow_EndsIfTheMinutesRejectTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		testkit.Uploaded(t, testkit.Client(srv), "Weekly")
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsMinutes}, minutestest.Refuse(minutes.ErrUnauthenticated))
		began := time.Now()
		got := follow(t, srv, direct(srv), time.Hour, nil)
		require.True(t, minutes.KeyRejected(got.end), "%v", got.end)
		require.Empty(t, got.results)
		require.Less(t, time.Since(began), 2*time.Minute)
	})
}
