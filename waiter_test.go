package minutes_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
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

func TestWaitForMinutes_PollsUntilMinutesAreReady(t *testing.T) {
	t.Parallel()
	job := func(t *testing.T, srv *minutestest.Server) {
		c := testkit.Client(srv)
		m := testkit.Uploaded(t, c, "Weekly")
		start := time.Now()
		var seen []minutes.Status
		minuted, err := c.Meetings.WaitForMinutes(t.Context(), m.ID, &minutes.WaitOptions{
			Format:   minutes.FormatMarkdown,
			OnStatus: func(m *minutes.Meeting) { seen = append(seen, m.Status) },
		})
		require.NoError(t, err)
		assert.Contains(t, minuted.Content, "Weekly")
		assert.Equal(t, minutes.FormatMarkdown, minuted.Format)
		assert.Equal(t, []minutes.Status{"audio_uploaded", "transcribing", "generating_minutes", "minutes_ready"}, seen)
		assert.GreaterOrEqual(t, time.Since(start), 15*time.Minute)
		assert.Less(t, time.Since(start), 16*time.Minute)
		polls := srv.Requests("meetings.get")
		require.NotEmpty(t, polls)
		assert.Equal(t, start, polls[0].At, "the first poll is at once")
		for i := 1; i < len(polls); i++ {
			assert.GreaterOrEqual(t, polls[i].At.Sub(polls[i-1].At), 30*time.Second)
		}
	}
	t.Run("server made in the bubble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { job(t, minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))) })
	})
	t.Run("server made outside the bubble", func(t *testing.T) {
		t.Parallel()
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		synctest.Test(t, func(t *testing.T) { job(t, srv) })
	})
}

// inBubble runs a test of an uploaded meeting, whose stages take long.
func inBubble(t *testing.T, name string, test func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			c := testkit.Client(srv)
			test(t, srv, c, testkit.Uploaded(t, c, "Weekly"))
		})
	})
}

func asWaitError(t *testing.T, err error, id string) *minutes.WaitError {
	t.Helper()
	wait, ok := errors.AsType[*minutes.WaitError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, id, wait.MeetingID)
	return wait
}

func TestWait_EndsOnFailureOrContext(t *testing.T) {
	t.Parallel()
	for _, status := range []minutes.Status{
		minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed, minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected,
	} {
		t.Run("failed as "+string(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				srv.Script(minutestest.Script{Outcome: status})
				c := testkit.Client(srv)
				m := testkit.Uploaded(t, c, "Doomed")
				_, err := c.Meetings.WaitForMinutes(t.Context(), m.ID, nil)
				failed, ok := errors.AsType[*minutes.MeetingFailedError](err)
				require.True(t, ok, "%v", err)
				assert.Equal(t, status, failed.Status)
				assert.Equal(t, m.ID, failed.Meeting.ID)
				assert.Equal(t, "Doomed", failed.Meeting.Title)
				assert.Contains(t, err.Error(), string(status))
			})
		})
	}
	inBubble(t, "ctx deadline", func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		start := time.Now()
		_, err := c.Meetings.Wait(ctx, m.ID, nil)
		wait := asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 5*time.Minute, time.Since(start))
		require.NotNil(t, wait.Meeting)
		assert.Equal(t, minutes.StatusTranscribing, wait.Meeting.Status)
	})
	inBubble(t, "ctx canceled with a cause", func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("shutting down")
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		_, err := c.Meetings.Wait(ctx, m.ID, nil)
		asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
	})
	inBubble(t, "ctx done before", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.Meetings.Wait(ctx, m.ID, nil)
		asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, srv.Requests("meetings.get"))
	})
	inBubble(t, "meeting deleted", func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		time.AfterFunc(time.Minute, func() { assert.NoError(t, c.Meetings.Delete(context.Background(), m.ID)) })
		start := time.Now()
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		wait := asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, minutes.ErrNotFound)
		require.NotNil(t, wait.Meeting, "as last seen")
		assert.Less(t, time.Since(start), 2*time.Minute)
	})
	inBubble(t, "key revoked", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		time.AfterFunc(time.Minute, func() {
			srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key(srv.Key()).Revoked = true })
		})
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, minutes.ErrUnauthenticated)
	})
	inBubble(t, "twenty failed polls in a row", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: 3, Times: 20}, minutestest.Refuse(minutes.ErrInternal))
		start := time.Now()
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		wait := asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, minutes.ErrInternal)
		assert.Equal(t, minutes.StatusAudioUploaded, wait.Meeting.Status)
		assert.GreaterOrEqual(t, time.Since(start), 10*time.Minute)
		assert.Len(t, srv.Requests("meetings.get"), 22)
	})
}

func TestWait_ContinuesAfterFailures(t *testing.T) {
	t.Parallel()
	inBubble(t, "after nineteen failed polls", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: 2, Times: 19}, minutestest.LoseResponse())
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		assert.NoError(t, err)
	})
	inBubble(t, "after failed polls that are not in a row", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		for _, nth := range []int{1, 13} {
			srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: nth, Times: 11}, minutestest.BadGateway())
		}
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
	})
	inBubble(t, "after failed polls of an earlier wait", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		srv.Inject(minutestest.Match{Operation: "meetings.get", Times: 25}, minutestest.BadGateway())
		testkit.WaitFor(t, c, m.ID, 9*time.Minute+35*time.Second, nil)
		require.GreaterOrEqual(t, len(srv.Requests("meetings.get")), 19)
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
	})
	inBubble(t, "after sixty 429s", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		srv.Inject(minutestest.Match{Operation: "meetings.get", Times: 60}, minutestest.RateLimit(""))
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
	})
	inBubble(t, "after five 429s, with longer pauses", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: 2, Times: 5}, minutestest.RateLimit(""))
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
		polls := srv.Requests("meetings.get")
		var pauses []time.Duration
		for i := 2; i < 8; i++ {
			pauses = append(pauses, polls[i].At.Sub(polls[i-1].At).Truncate(time.Second))
		}
		assert.Equal(t, []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second,
		}, pauses)
	})
	inBubble(t, "if minutes are not ready although the status says so", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		inj := srv.Inject(minutestest.Match{Operation: "meetings.minutes", Times: 3}, minutestest.Refuse(minutes.ErrMinutesNotReady))
		_, err := c.Meetings.WaitForMinutes(t.Context(), m.ID, nil)
		assert.NoError(t, err)
		_ = inj
		reads := srv.Requests("meetings.minutes")
		require.Len(t, reads, 4)
		assert.Equal(t, 30*time.Second, reads[1].At.Sub(reads[0].At))
	})
	inBubble(t, "until a state after Until", func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		start := time.Now()
		got, err := c.Meetings.Wait(t.Context(), m.ID, &minutes.WaitOptions{Until: minutes.StatusTranscribed})
		require.NoError(t, err)
		assert.Equal(t, minutes.StatusGeneratingMinutes, got.Status, "past it counts, too")
		assert.Less(t, time.Since(start), 13*time.Minute)
		_, err = c.Meetings.Transcript(t.Context(), m.ID)
		assert.NoError(t, err)
	})
}

func TestWait_KeepsTheMinimumPollInterval(t *testing.T) {
	t.Parallel()
	inBubble(t, "a second wait uses the poll of the first", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
		n := len(srv.Requests("meetings.get"))
		time.Sleep(29 * time.Second)
		again, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
		assert.Equal(t, minutes.StatusMinutesReady, again.Status)
		assert.Len(t, srv.Requests("meetings.get"), n)
		time.Sleep(2 * time.Second)
		_, err = c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
		assert.Len(t, srv.Requests("meetings.get"), n+1)
	})
	inBubble(t, "a wait after a canceled one keeps the minimum poll interval", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, err := c.Meetings.Wait(ctx, m.ID, nil)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.LessOrEqual(t, len(srv.Requests("meetings.get")), 6)
	})
	inBubble(t, "two waits for one meeting share polls", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		done := make(chan *minutes.Meeting, 2)
		for range 2 {
			go func() {
				got, err := c.Meetings.Wait(t.Context(), m.ID, nil)
				assert.NoError(t, err)
				done <- got
			}()
		}
		a, b := <-done, <-done
		assert.Equal(t, a, b)
		assert.NotSame(t, a, b, "one caller's changes are not the other's")
		assert.LessOrEqual(t, len(srv.Requests("meetings.get")), 31)
	})
}

// A wait ends at the state in Until, or at a later one. An unknown state does not end it.
func TestWait_EndsAtUntilOrLater(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		until    minutes.Status
		statuses []minutes.Status // one for each poll
		end      minutes.Status
	}{
		"created":          {minutes.StatusCreated, []minutes.Status{"created"}, "created"},
		"at it":            {minutes.StatusTranscribing, []minutes.Status{"created", "audio_uploaded", "transcribing"}, "transcribing"},
		"past it":          {minutes.StatusAudioUploaded, []minutes.Status{"created", "transcribing"}, "transcribing"},
		"at the end":       {minutes.StatusTranscribed, []minutes.Status{"minutes_ready"}, "minutes_ready"},
		"not shown":        {"", []minutes.Status{"transcribed", "generating_minutes", "minutes_ready"}, "minutes_ready"},
		"unknown":          {minutes.StatusCreated, []minutes.Status{"being_translated", "audio_uploaded"}, "audio_uploaded"},
		"unknown, the end": {"", []minutes.Status{"transcribing", "being_translated", "minutes_ready"}, "minutes_ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				polls := 0
				c, _ := testkit.Responding(t, func(req *http.Request) (*http.Response, error) {
					polls++
					return testkit.Canned(200, fmt.Sprintf(`{"id":"mtg_1","status":%q}`, test.statuses[polls-1]))(req)
				})
				var notified []minutes.Status
				m, err := c.Meetings.Wait(t.Context(), "mtg_1", &minutes.WaitOptions{Until: test.until, OnStatus: func(m *minutes.Meeting) { notified = append(notified, m.Status) }})
				require.NoError(t, err)
				require.Equal(t, test.end, m.Status)
				require.Equal(t, test.statuses, notified)
				require.Len(t, test.statuses, polls)
			})
		})
	}
}

// A slow OnStatus does not delay other waits.
func TestWait_SlowOnStatusDelaysNoOtherWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		slow, quick := testkit.Uploaded(t, c, "Slow"), testkit.Uploaded(t, c, "Quick")
		began := time.Now()
		var wg sync.WaitGroup
		for _, wait := range []func(o *minutes.WaitOptions){
			func(o *minutes.WaitOptions) { _, _ = c.Meetings.Wait(t.Context(), slow.ID, o) },
			func(o *minutes.WaitOptions) {
				for range c.Meetings.WaitAll(t.Context(), slices.Values([]string{slow.ID}), o) {
				}
			},
		} {
			wg.Go(func() { wait(&minutes.WaitOptions{OnStatus: func(*minutes.Meeting) { time.Sleep(time.Hour) }}) })
		}
		time.Sleep(time.Second)
		_, err := c.Meetings.Wait(t.Context(), quick.ID, nil)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 2*time.Minute)
		wg.Wait()
		require.GreaterOrEqual(t, time.Since(began), time.Hour)
	})
}

func TestWait_RejectsInvalidParams(t *testing.T) {
	t.Parallel()
	srv := minutestest.NewServer(t)
	c := testkit.Client(srv)
	for name, test := range map[string]struct {
		id    string
		opts  *minutes.WaitOptions
		param string
	}{
		"empty id":      {"", nil, "id"},
		"relative id":   {"..", nil, "id"},
		"unknown state": {"mtg_1", &minutes.WaitOptions{Until: "done"}, "opts.Until"},
		"failure state": {"mtg_1", &minutes.WaitOptions{Until: minutes.StatusMinutesFailed}, "opts.Until"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.Meetings.Wait(t.Context(), test.id, test.opts)
			bad, ok := errors.AsType[*minutes.ParamError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, test.param, bad.Param)
		})
	}
	t.Cleanup(func() { assert.Empty(t, srv.Requests()) })
}

// If OnStatus ends its goroutine, as a test's FailNow does, the wait ends.
func TestWait_EndsIfOnStatusDoesNotReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which fails if the poller continues
		srv := minutestest.NewServer(t)
		c, l := testkit.WatchPolls(srv)
		m := testkit.Uploaded(t, c, "meeting")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = c.Meetings.Wait(t.Context(), m.ID, &minutes.WaitOptions{OnStatus: func(*minutes.Meeting) { runtime.Goexit() }})
		})
		wg.Wait()
		time.Sleep(time.Hour)
		assert.Len(t, l.At(), 1)
	})
}

// If ctx ends while polls fail or are held back, the error contains the last failure.
// Otherwise it does not.
func TestWait_ReportsWhyPollsFailed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits int
		match minutestest.Match
		fault minutestest.Fault
		code  minutes.ErrorCode
		after time.Duration // the context ends, or five minutes
	}{
		"a service that is out":           {1, minutestest.Match{}, minutestest.BadGateway(), "", 0},
		"a fault of the service":          {1, minutestest.Match{}, minutestest.Refuse(minutes.ErrInternal), minutes.ErrInternal, 0},
		"held back":                       {1, minutestest.Match{}, minutestest.RateLimit(""), minutes.ErrRateLimited, 0},
		"pages of a service that is out":  {50, minutestest.Match{}, minutestest.BadGateway(), "", 0},
		"pages that are held back":        {50, minutestest.Match{}, minutestest.RateLimit(""), minutes.ErrRateLimited, 0},
		"a page of a service that is out": {50, minutestest.Match{}, minutestest.BadGateway(), "", 20 * time.Second},
		"a fault that is over":            {1, minutestest.Match{Times: 3}, minutestest.BadGateway(), "", 0},
		"pages, and a fault that is over": {50, minutestest.Match{Times: 3}, minutestest.BadGateway(), "", 0},
		"held back, but no longer":        {1, minutestest.Match{Times: 2}, minutestest.RateLimit(""), minutes.ErrRateLimited, 0},
		"only the listing":                {50, minutestest.Match{Operation: "meetings.list"}, minutestest.BadGateway(), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, test.waits, 1, testkit.Ages)
				over := test.match.Times > 0 || test.match.Operation != ""
				if test.match.Times == 0 {
					test.match.Times = minutestest.Always
				}
				srv.Inject(test.match, test.fault)
				c := testkit.Client(srv)
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(test.after, 5*time.Minute))
				defer cancel()
				check := func(err error) {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					var wait *minutes.WaitError
					assert.ErrorAs(t, err, &wait)
					var response *minutes.Error
					if over {
						assert.NotErrorAs(t, err, &response)
						return
					}
					if assert.ErrorAs(t, err, &response) && test.code != "" {
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

// If ctx ends before a retry of the minutes, the error contains the last failure, too.
func TestWaitForMinutes_KeepsTheLastError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		m := testkit.Uploaded(t, c, "Ready, it says")
		srv.Inject(minutestest.Match{Operation: "meetings.minutes", Times: minutestest.Always}, minutestest.Refuse(minutes.ErrMinutesNotReady))
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Minute+time.Second, func() { cancel(cause) })
		_, err := c.Meetings.WaitForMinutes(ctx, m.ID, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, minutes.ErrMinutesNotReady)
	})
}

// AudioTimeout ends the wait for a meeting without audio.
func TestWait_AudioTimeoutEndsIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		noAudio time.Duration
		upload  bool
		ends    time.Duration
	}{
		"in half an hour": {30 * time.Minute, false, 30 * time.Minute},
		"in no time":      {1, false, 30 * time.Second}, // at the second poll: the first is in the second of the creation
		"no AudioTimeout": {0, false, 0},
		"it has audio":    {30 * time.Minute, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
				id := testkit.Waiting(t, srv)
				if test.upload {
					require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
				}
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(testbase.Many(600, 45))*time.Minute)
				defer cancel()
				var statuses []minutes.Status
				onStatus := func(m *minutes.Meeting) { statuses = append(statuses, m.Status) }
				_, err := testkit.Client(srv).Meetings.Wait(ctx, id, &minutes.WaitOptions{AudioTimeout: test.noAudio, OnStatus: onStatus})
				assert.Equal(t, slices.Compact(slices.Clone(statuses)), statuses, "OnStatus gets each status once")
				wait, ok := errors.AsType[*minutes.WaitError](err)
				require.True(t, ok, "%v", err)
				require.NotNil(t, wait.Meeting)
				if test.ends == 0 {
					assert.NotErrorIs(t, err, minutes.ErrNoAudio)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				assert.ErrorIs(t, err, minutes.ErrNoAudio)
				assert.Equal(t, minutes.StatusCreated, wait.Meeting.Status)
				assert.InDelta(t, test.ends, time.Since(began), float64(32*time.Second))
			})
		})
	}
}

// Pages of the listing that lag behind the service do not end a wait with ErrNoAudio.
func TestWait_ErrNoAudioNeedsMoreThanAPage(t *testing.T) {
	t.Parallel()
	for name, upload := range map[string]bool{"with audio": true, "without audio": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				var lag lateListing
				c := testkit.WatchedBy(srv, &lag)
				lag.next = srv.HTTPClient().Transport
				other := testkit.Client(srv)
				var ids []string
				for i := range 60 {
					m, _, err := other.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: fmt.Sprint(i), Date: "2026-11-20"})
					require.NoError(t, err)
					ids = append(ids, m.ID)
				}
				began := time.Now()
				const limit = 10 * time.Minute
				if upload {
					go func() {
						time.Sleep(limit - 20*time.Second)
						for _, id := range ids {
							assert.NoError(t, other.Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
						}
					}()
				}
				for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), &minutes.WaitOptions{AudioTimeout: limit, Until: minutes.StatusAudioUploaded}) {
					if upload {
						assert.NoError(t, err)
					} else {
						assert.ErrorIs(t, err, minutes.ErrNoAudio)
						assert.Less(t, time.Since(began), limit+3*time.Minute)
					}
				}
			})
		})
	}
}

// lateListing answers each request for a page with the response of a minute before.
type lateListing struct {
	next http.RoundTripper
	mu   sync.Mutex
	kept []keptPage
}

type keptPage struct {
	at   time.Time
	url  string
	body []byte
}

func (l *lateListing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/meetings") || r.Method != http.MethodGet {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, keptPage{time.Now(), r.URL.String(), body})
	for _, page := range l.kept {
		if page.url == r.URL.String() && time.Since(page.at) <= time.Minute {
			body = page.body
			break
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, err
}

// A wait that follows the same Client's Delete does not return what the Client saw before.
func TestWait_FailsAfterDelete(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]minutestest.Fault{
		"deleted": minutestest.Delay(0), "response lost": minutestest.LoseResponse(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				c := testkit.Client(srv, minutes.WithMaxRetries(0))
				m := testkit.Uploaded(t, c, "Weekly")
				_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
				require.NoError(t, err)
				time.Sleep(10 * time.Second)
				srv.Inject(minutestest.Match{Operation: "meetings.delete"}, fault)
				_ = c.Meetings.Delete(t.Context(), m.ID)
				_, err = c.Meetings.Wait(t.Context(), m.ID, nil)
				require.ErrorIs(t, err, minutes.ErrNotFound)
			})
		})
	}
}

// A later snapshot does not change the meeting of an error.
func TestWait_ReturnsACopyInItsError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = c.Meetings.Wait(t.Context(), m.ID, &minutes.WaitOptions{AudioTimeout: time.Second})
		wait, ok := errors.AsType[*minutes.WaitError](err)
		require.True(t, ok, "%v", err)
		_, err = c.Meetings.Update(t.Context(), m.ID, &minutes.MeetingUpdateParams{Title: new("Monthly")})
		require.NoError(t, err)
		assert.Equal(t, "Weekly", wait.Meeting.Title)
	})
}

// A wait that begins later gets the next snapshot, whichever waits begin after it.
func TestWait_LaterWaitsGetTheNextSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
		c := testkit.Client(srv)
		m := testkit.Uploaded(t, c, "Weekly")
		srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: 12}, minutestest.BadGateway())
		var wg sync.WaitGroup
		wg.Go(func() { testkit.WaitFor(t, c, m.ID, 10*time.Minute, nil) })
		for len(srv.Requests("meetings.get")) < 12 { // the poll that fails
			time.Sleep(time.Second)
		}
		var notified []minutes.Status
		wg.Go(func() {
			testkit.WaitFor(t, c, m.ID, 2*time.Minute, &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) { notified = append(notified, m.Status) }})
		})
		synctest.Wait()
		wg.Go(func() { testkit.WaitFor(t, c, m.ID, 2*time.Minute, nil) })
		wg.Wait()
		synctest.Wait()
		assert.Equal(t, []minutes.Status{minutes.StatusTranscribing}, notified)
	})
}
