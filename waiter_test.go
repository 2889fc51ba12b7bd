package minutes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func TestWaitForMinutes(t *testing.T) {
	t.Parallel()
	job := func(t *testing.T, srv *minutestest.Server) {
		c := clientOf(srv)
		m := uploaded(t, c, "Weekly")
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
		looks := srv.Requests("meetings.get")
		require.NotEmpty(t, looks)
		assert.Equal(t, start, looks[0].At, "the first look is at once")
		for i := 1; i < len(looks); i++ {
			assert.GreaterOrEqual(t, looks[i].At.Sub(looks[i-1].At), 30*time.Second)
		}
	}
	t.Run("server made in the bubble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { job(t, minutestest.NewServer(t, minutestest.WithWorld(longStages()))) })
	})
	t.Run("server made outside the bubble", func(t *testing.T) {
		t.Parallel()
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		synctest.Test(t, func(t *testing.T) { job(t, srv) })
	})
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	for _, status := range []minutes.Status{
		minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed, minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected,
	} {
		t.Run("failed as "+string(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
				require.NoError(t, srv.Script(minutestest.Script{Outcome: status}))
				c := clientOf(srv)
				m := uploaded(t, c, "Doomed")
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
	inBubble := func(name string, test func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
				c := clientOf(srv)
				test(t, srv, c, uploaded(t, c, "Weekly"))
			})
		})
	}
	asWaitError := func(t *testing.T, err error, id string) *minutes.WaitError {
		wait, ok := errors.AsType[*minutes.WaitError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, id, wait.MeetingID)
		return wait
	}
	inBubble("deadline", func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
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
	inBubble("cancelled with a cause", func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("shutting down")
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		_, err := c.Meetings.Wait(ctx, m.ID, nil)
		asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
	})
	inBubble("done before it began", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.Meetings.Wait(ctx, m.ID, nil)
		asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, srv.Requests("meetings.get"))
	})
	inBubble("vanished", func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		time.AfterFunc(time.Minute, func() { assert.NoError(t, c.Meetings.Delete(context.Background(), m.ID)) })
		start := time.Now()
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		wait := asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, minutes.ErrNotFound)
		require.NotNil(t, wait.Meeting, "as last seen")
		assert.Less(t, time.Since(start), 2*time.Minute)
	})
	inBubble("key revoked", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		time.AfterFunc(time.Minute, func() {
			assert.NoError(t, srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key(srv.Key()).Revoked = true }))
		})
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, minutes.ErrUnauthenticated)
	})
	inBubble("twenty failed looks in a row", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: 3, Times: 20}, minutestest.Refuse(minutes.ErrInternal))
		start := time.Now()
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		wait := asWaitError(t, err, m.ID)
		assert.ErrorIs(t, err, minutes.ErrInternal)
		assert.Equal(t, minutes.StatusAudioUploaded, wait.Meeting.Status)
		assert.GreaterOrEqual(t, time.Since(start), 10*time.Minute)
		assert.Len(t, srv.Requests("meetings.get"), 22)
	})
	inBubble("nineteen failed looks are waited out", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: 2, Times: 19}, minutestest.LoseReply())
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		assert.NoError(t, err)
	})
	inBubble("429s stretch the pause and are recovered from", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		srv.Inject(minutestest.Match{Operation: "meetings.get", Nth: 2, Times: 5}, minutestest.RateLimit(""))
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
		looks := srv.Requests("meetings.get")
		var pauses []time.Duration
		for i := 2; i < 8; i++ {
			pauses = append(pauses, looks[i].At.Sub(looks[i-1].At).Round(5*time.Second))
		}
		assert.Equal(t, []time.Duration{
			30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 30 * time.Second,
		}, pauses)
	})
	inBubble("minutes not ready although the status says so", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		inj := srv.Inject(minutestest.Match{Operation: "meetings.minutes", Times: 3}, minutestest.Refuse(minutes.ErrMinutesNotReady))
		_, err := c.Meetings.WaitForMinutes(t.Context(), m.ID, nil)
		assert.NoError(t, err)
		_ = inj
		reads := srv.Requests("meetings.minutes")
		require.Len(t, reads, 4)
		assert.Equal(t, 30*time.Second, reads[1].At.Sub(reads[0].At))
	})
	inBubble("until transcribed", func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		start := time.Now()
		got, err := c.Meetings.Wait(t.Context(), m.ID, &minutes.WaitOptions{Until: minutes.StatusTranscribed})
		require.NoError(t, err)
		assert.Equal(t, minutes.StatusGeneratingMinutes, got.Status, "past it counts, too")
		assert.Less(t, time.Since(start), 13*time.Minute)
		_, err = c.Meetings.Transcript(t.Context(), m.ID)
		assert.NoError(t, err)
	})
	inBubble("a caller's interval is a floor too", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		_, err := c.Meetings.Wait(t.Context(), m.ID, &minutes.WaitOptions{Interval: 4 * time.Minute})
		require.NoError(t, err)
		assert.Len(t, srv.Requests("meetings.get"), 5)
	})
	inBubble("a shorter interval does not lower the floor", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		_, err := c.Meetings.Wait(t.Context(), m.ID, &minutes.WaitOptions{Interval: time.Second})
		require.NoError(t, err)
		assert.LessOrEqual(t, len(srv.Requests("meetings.get")), 31)
	})
	inBubble("a second wait is served from the first one's look", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
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
	inBubble("a wait that follows a cancelled one keeps the floor", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, err := c.Meetings.Wait(ctx, m.ID, nil)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.LessOrEqual(t, len(srv.Requests("meetings.get")), 6)
	})
	inBubble("two waits on one meeting share the looks", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
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

func TestWaitParams(t *testing.T) {
	t.Parallel()
	srv := minutestest.NewServer(t)
	c := clientOf(srv)
	for name, test := range map[string]struct {
		id    string
		opts  *minutes.WaitOptions
		param string
	}{
		"empty id":          {"", nil, "id"},
		"relative id":       {"..", nil, "id"},
		"unknown state":     {"mtg_1", &minutes.WaitOptions{Until: "done"}, "opts.Until"},
		"failure state":     {"mtg_1", &minutes.WaitOptions{Until: minutes.StatusMinutesFailed}, "opts.Until"},
		"negative interval": {"mtg_1", &minutes.WaitOptions{Interval: -1}, "opts.Interval"},
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

func TestWaitAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c := clientOf(srv)
		require.NoError(t, srv.Script(minutestest.Script{Title: "bad", Outcome: minutes.StatusTranscriptionFailed}))
		good, bad := uploaded(t, c, "good"), uploaded(t, c, "bad")
		ids := []string{good.ID, bad.ID, good.ID, "", "mtg_unknown", "mtg_unknown"}
		got := map[string]int{}
		for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
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
			srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
			c := clientOf(srv)
			ids := make([]string, 10)
			for i := range ids {
				ids[i] = uploaded(t, c, strconv.Itoa(i)).ID
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n := 0
			for m, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
				n++
				assert.Nil(t, m)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
			assert.Equal(t, 1, n)
		})
	})
	t.Run("stops when the loop does", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
			c := clientOf(srv)
			a, b := uploaded(t, c, "a"), uploaded(t, c, "b")
			_, err := srv.Advance(a.ID, minutes.StatusMinutesReady)
			require.NoError(t, err)
			for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values([]string{b.ID, a.ID}), nil) {
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

// A context that ends before all ids are read is told, though nothing that was
// read is waited for any more.
func TestWaitAllCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := clientOf(srv)
		read, unread := uploaded(t, c, "Read"), uploaded(t, c, "Not read")
		_, err := c.Meetings.Wait(t.Context(), read.ID, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ids := func(yield func(string) bool) {
			if yield(read.ID) {
				cancel()
				yield(unread.ID)
			}
		}
		var ended []string
		for m, err := range c.Meetings.WaitAll(ctx, ids, nil) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				ended = append(ended, "canceled")
				continue
			}
			ended = append(ended, m.ID)
		}
		assert.Equal(t, []string{read.ID, "canceled"}, ended)
	})
}

// What a wait with a long interval has seen is served to others while it is
// fresh, and no longer.
func TestWaitIsNotServedWhatIsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c := clientOf(srv)
		m := uploaded(t, c, "Old title")
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

// OnStatus hears the first look, also of a meeting that others have waited for
// and of which no more than the status is kept.
func TestOnStatusOfALatecomer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 1100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), n, 1, 1000*time.Hour)
				c := clientOf(srv, minutes.WithRateLimit(0, 0))
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

// A wait that ends between a refusal and the next try tells of both.
func TestWaitForMinutesKeepsTheRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := clientOf(srv)
		m := uploaded(t, c, "Ready, it says")
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

// A certificate that is not the service's does not become so by waiting.
func TestWaitWithABadCertificate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	c, err := minutes.New(srv.URL, "key_ci")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of waiting, where it goes on
	defer cancel()
	_, err = c.Meetings.Wait(ctx, "mtg_x", nil)
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	require.True(t, ok, "%v", err)
}

// A Client that moves to another clock, as between bubbles, does not sit out a
// pause of the old one.
func TestPauseOfAnotherClock(t *testing.T) {
	t.Parallel()
	srv := minutestest.NewServer(t, minutestest.WithoutAudit())
	c := clientOf(srv)
	srv.Inject(minutestest.Match{Operation: "meetings.get", Times: 4}, minutestest.RateLimit(""))
	synctest.Test(t, func(t *testing.T) {
		_, err := c.Meetings.Wait(t.Context(), uploaded(t, c, "x").ID, nil)
		require.NoError(t, err)
		assert.Greater(t, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), 7*time.Minute)
	})
	synctest.Test(t, func(t *testing.T) {
		_, err := c.Meetings.Wait(t.Context(), uploaded(t, c, "y").ID, nil)
		require.NoError(t, err)
		assert.Less(t, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), 2*time.Minute)
	})
}

// Meetings that somebody else has created, as they end.
func ExampleMeetingsService_WaitAll() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ids := []string{created(client, "Weekly"), "mtg_unknown"}

	for meeting, err := range client.Meetings.WaitAll(context.Background(), slices.Values(ids), nil) {
		switch {
		case errors.Is(err, minutes.ErrUnauthenticated):
			return // it will not do better with the others
		case err != nil:
			wait, _ := errors.AsType[*minutes.WaitError](err)
			fmt.Println(wait.MeetingID, errors.Is(err, minutes.ErrNotFound))
		default:
			fmt.Println(meeting.Title, meeting.Status)
		}
	}
	// Unordered output:
	// Weekly minutes_ready
	// mtg_unknown true
}

// The steps of Process, one by one.
func ExampleMeetingsService_WaitForMinutes() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	id := created(client, "Weekly")

	written, err := client.Meetings.WaitForMinutes(context.Background(), id, &minutes.WaitOptions{Format: minutes.FormatMarkdown})
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		fmt.Println("create another:", failed.Status)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(written.Content, "Weekly"))
	// Output: true
}
