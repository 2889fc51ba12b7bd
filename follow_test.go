package minutes_test

import (
	"context"
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
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
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

func TestFollow_DoesNotPollSkippedMeetings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		others(t, srv, time.Minute, 30, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint(i)) })
		skipped := 0
		got := follow(t, srv, direct(srv), time.Hour, &minutes.FollowOptions{Skip: func(m *minutes.Meeting) bool {
			skipped++
			return m.Title != "10"
		}})
		require.Equal(t, []string{"10"}, titles(got))
		require.Equal(t, 30, skipped)
		require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsGet)), 30)
		require.Len(t, srv.Requests(minutes.OpMeetingsMinutes), 1)
	})
}

func TestFollow_YieldsAtAnotherStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		testkit.Uploaded(t, testkit.Client(srv), "a")
		got := follow(t, srv, direct(srv), time.Hour, &minutes.FollowOptions{Until: minutes.StatusTranscribing, Transcript: true})
		require.Equal(t, minutes.StatusTranscribing, got.results["a"].Meeting.Status)
		require.Nil(t, got.results["a"].Minutes)
		require.Empty(t, srv.Requests(minutes.OpMeetingsMinutes))
		require.Empty(t, srv.Requests(minutes.OpMeetingsTranscript))
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
		"the listing answers 500":   {minutes.OpMeetingsList, 40, minutestest.Refuse(minutes.ErrInternal)},
		"the listing answers 429":   {minutes.OpMeetingsList, 40, minutestest.RateLimit("")},
		"the listing is lost":       {minutes.OpMeetingsList, 40, minutestest.LoseResponse()},
		"the listing hangs":         {minutes.OpMeetingsList, 10, minutestest.Delay(time.Hour)},
		"the listing is no JSON":    {minutes.OpMeetingsList, 10, minutestest.Respond(http.StatusOK, "text/html", "<title>Sign in</title>")},
		"polls answer 500":          {minutes.OpMeetingsGet, 60, minutestest.Refuse(minutes.ErrInternal)},
		"the minutes answer 500":    {minutes.OpMeetingsMinutes, 200, minutestest.Refuse(minutes.ErrInternal)},
		"the minutes answer 429":    {minutes.OpMeetingsMinutes, 20, minutestest.RateLimit("")},
		"the minutes are not ready": {minutes.OpMeetingsMinutes, 20, minutestest.Refuse(minutes.ErrMinutesNotReady)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				if test.of == minutes.OpMeetingsGet { // pages would be enough
					srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsList, Nth: 8, Times: 60}, minutestest.Refuse(minutes.ErrInternal))
				}
				srv.Inject(minutestest.Match{Operation: test.of, Nth: 2, Times: test.times}, test.fault)
				others(t, srv, time.Minute, 5, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint("meeting ", i)) })
				got := follow(t, srv, direct(srv), 2*time.Hour, nil)
				require.ErrorIs(t, got.end, context.DeadlineExceeded)
				require.Len(t, got.results, 5)
				for title := range got.results {
					require.NoError(t, got.errs[title])
				}
			})
		})
	}
}

func TestFollow_EndsWhenTheKeyIsRejected(t *testing.T) {
	t.Parallel()
	revoke := func(o *minutestest.Organisation, key string) { o.Key(key).Revoked = true }
	for name, test := range map[string]struct {
		meetings int
		change   func(o *minutestest.Organisation, key string)
		is       error
	}{
		"revoked while nothing is unfinished":   {0, revoke, minutes.ErrUnauthenticated},
		"revoked while meetings are unfinished": {5, revoke, minutes.ErrUnauthenticated},
		"may not read minutes": {5, func(o *minutestest.Organisation, key string) {
			o.Key(key).Scopes = []string{"meetings:read"}
		}, minutes.ErrInsufficientScope},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				for i := range test.meetings {
					testkit.Uploaded(t, testkit.Client(srv), fmt.Sprint(i))
				}
				time.AfterFunc(5*time.Minute, func() {
					srv.Update("org_acme", func(o *minutestest.Organisation) { test.change(o, srv.Key()) })
				})
				began := time.Now()
				got := follow(t, srv, direct(srv), time.Hour, nil)
				require.ErrorIs(t, got.end, test.is)
				require.True(t, minutes.KeyRejected(got.end))
				require.Empty(t, got.results)
				require.Less(t, time.Since(began), 17*time.Minute)
				n := len(srv.Requests())
				time.Sleep(time.Hour)
				require.Len(t, srv.Requests(), n, "no request follows")
			})
		})
	}
}

func TestFollow_WaitsForAudio(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"for ever": 0, "for four hours": 4 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				abandoned := testkit.Waiting(t, srv)
				m, _, err := testkit.Client(srv).Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "late", Date: "2026-11-20"})
				require.NoError(t, err)
				time.AfterFunc(3*time.Hour, func() {
					assert.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
				})
				got := follow(t, srv, direct(srv), 6*time.Hour, &minutes.FollowOptions{AudioTimeout: timeout})
				require.NoError(t, got.errs["late"])
				require.Contains(t, titles(got), "late")
				if timeout == 0 {
					require.Len(t, got.results, 1)
				} else {
					require.ErrorIs(t, got.errs["To be heard"], minutes.ErrNoAudio)
					require.Equal(t, abandoned, got.results["To be heard"].Meeting.ID)
				}
				require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsGet)), 2)
			})
		})
	}
}

// A busy loop body delays fetches, but not polls.
func TestFollow_SlowBodyDoesNotDelayPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		others(t, srv, time.Minute, 30, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint("meeting ", i)) })
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		seen := 0
		for result, err := range direct(srv).Meetings.Follow(ctx, nil) {
			if result == nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				break
			}
			require.NoError(t, err)
			if seen++; seen == 1 {
				pages := len(srv.Requests(minutes.OpMeetingsList))
				time.Sleep(time.Hour)
				require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsMinutes)), 8)
				require.Greater(t, len(srv.Requests(minutes.OpMeetingsList)), pages+100)
			}
		}
		require.Equal(t, 30, seen)
	})
}

func TestFollow_StopsWhenTheLoopIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		a := testkit.Uploaded(t, c, "a")
		testkit.Uploaded(t, c, "b")
		srv.Advance(a.ID, minutes.StatusMinutesReady)
		for result, err := range c.Meetings.Follow(t.Context(), nil) {
			require.NoError(t, err)
			require.Equal(t, a.ID, result.Meeting.ID)
			break
		}
		synctest.Wait()
		n := len(srv.Requests())
		time.Sleep(time.Hour)
		require.Len(t, srv.Requests(), n)
	})
}

// Two loops and a wait on one Client share its polls.
func TestFollow_ConcurrentLoopsSharePolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		since := time.Now()
		for i := range 110 { // more than a page
			testkit.Uploaded(t, direct(srv), fmt.Sprint("old ", i))
		}
		time.Sleep(time.Hour)
		others(t, srv, time.Minute, 30, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint("meeting ", i)) })
		c := direct(srv)
		two := make(chan followed, 2)
		for _, opts := range []*minutes.FollowOptions{{Since: since}, {Until: minutes.StatusTranscribed}} {
			go func() { two <- follow(t, srv, c, time.Hour, opts) }()
		}
		a, b := <-two, <-two
		require.ElementsMatch(t, []int{140, 30}, []int{len(a.results), len(b.results)})
		require.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsList)), 2*60+50)
	})
}

func TestFollow_RejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	c := testkit.Silent(t)
	for param, opts := range map[string]*minutes.FollowOptions{
		"opts.Until":        {Until: "soon"},
		"opts.AudioTimeout": {AudioTimeout: -1},
	} {
		for result, err := range c.Meetings.Follow(t.Context(), opts) {
			require.Nil(t, result)
			testkit.RequireParamError(t, err, param, "")
		}
	}
	var none context.Context
	for _, err := range c.Meetings.Follow(none, nil) {
		testkit.RequireParamError(t, err, "ctx", "")
	}
}

// Runs that are killed at random times handle every meeting. They repeat only a meeting whose run
// was killed.
func TestFollow_HandlesEveryMeetingDespiteKills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		meetings, kills := testbase.Many(300, 100), testbase.Many(100, 35)
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		rnd := rand.New(rand.NewPCG(3, 5))
		others(t, srv, 10*time.Second, meetings, func(c *minutes.Client, i int) { testkit.Uploaded(t, c, fmt.Sprint("meeting ", i)) })
		first := time.Now()
		handled, stored := map[string]int{}, map[string]bool{}
		run := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			opts := &minutes.FollowOptions{Since: first, Skip: func(m *minutes.Meeting) bool { return stored[m.ID] }}
			for result, err := range direct(srv).Meetings.Follow(ctx, opts) {
				if result == nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				require.NoError(t, err)
				handled[result.Meeting.ID]++
				time.Sleep(testkit.UpTo(rnd, 200*time.Millisecond)) // handles it
				if ctx.Err() != nil {
					return // killed before it could store that
				}
				stored[result.Meeting.ID] = true
			}
		}
		for range kills {
			run(testkit.UpTo(rnd, time.Minute))
		}
		run(2 * time.Hour)
		twice := 0
		for _, n := range handled {
			if n > 1 {
				twice++
			}
		}
		require.Len(t, handled, meetings)
		require.LessOrEqual(t, twice, meetings*2/100)
		t.Logf("%d of %d meetings were handled twice", twice, meetings)
	})
}
