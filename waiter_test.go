package minutes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
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
	inBubble(t, "", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		start := time.Now()
		var seen []minutes.Status
		result, err := c.Meetings.WaitForMinutes(t.Context(), m.ID, &minutes.WaitOptions{
			Format:     minutes.FormatMarkdown,
			Transcript: true,
			OnStatus:   func(m *minutes.Meeting) { seen = append(seen, m.Status) },
		})
		require.NoError(t, err)
		require.NoError(t, result.Err)
		assert.Equal(t, m.ID, result.MeetingID)
		assert.Equal(t, minutes.StatusMinutesReady, result.Meeting.Status)
		assert.Contains(t, result.Minutes.Content, "Weekly")
		assert.Equal(t, minutes.FormatMarkdown, result.Minutes.Format)
		assert.NotEmpty(t, result.Transcript.Text)
		assert.Equal(t, []minutes.Status{"audio_uploaded", "transcribing", "generating_minutes", "minutes_ready"}, seen)
		assert.GreaterOrEqual(t, time.Since(start), 15*time.Minute)
		assert.Less(t, time.Since(start), 16*time.Minute)
		polls := srv.Requests("meetings.get")
		assert.Equal(t, start, polls[0].At, "the first poll is at once")
		for i := 1; i < len(polls); i++ {
			assert.GreaterOrEqual(t, polls[i].At.Sub(polls[i-1].At), 30*time.Second)
		}
	})
}

// inBubble runs a test of an uploaded meeting, whose stages take long.
func inBubble(
	t *testing.T, name string, test func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting),
) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			testbase.Timeout(t, 7*24*time.Hour)
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

func TestWait_Ends(t *testing.T) {
	t.Parallel()
	inBubble(t, "with its context, whose cause it names",
		func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
			cause := errors.New("shutting down")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, cause)
			defer cancel()
			start := time.Now()
			_, err := c.Meetings.Wait(ctx, m.ID, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, cause)
			assert.Equal(t, 5*time.Minute, time.Since(start))
			assert.Equal(t, minutes.StatusTranscribing, asWaitError(t, err, m.ID).Meeting.Status)
		})
	inBubble(t, "before a request, if ctx is done",
		func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := c.Meetings.Wait(ctx, m.ID, nil)
			asWaitError(t, err, m.ID)
			assert.ErrorIs(t, err, context.Canceled)
			assert.Empty(t, srv.Requests("meetings.get"))
		})
	inBubble(t, "if someone deletes the meeting",
		func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
			time.AfterFunc(time.Minute, func() {
				assert.NoError(t, testkit.Client(srv).Meetings.Delete(context.Background(), m.ID))
			})
			start := time.Now()
			_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
			assert.ErrorIs(t, err, minutes.ErrNotFound)
			require.NotNil(t, asWaitError(t, err, m.ID).Meeting, "as last seen")
			assert.Less(t, time.Since(start), 2*time.Minute)
		})
	inBubble(t, "if the caller has deleted the meeting",
		func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
			srv.Advance(m.ID, minutes.StatusMinutesReady)
			_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
			require.NoError(t, err)
			require.NoError(t, c.Meetings.Delete(t.Context(), m.ID))
			_, err = c.Meetings.Wait(t.Context(), m.ID, nil) // although the Client has just seen the meeting
			require.ErrorIs(t, err, minutes.ErrNotFound)
		})
}

// If ctx is done while polls fail, the error contains the last failure. Otherwise it does not.
func TestWait_ReportsWhyPollsFailed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		times int
		fault minutestest.Fault
		code  minutes.ErrorCode
	}{
		"500":                {minutestest.Always, minutestest.Refuse(minutes.ErrInternal), minutes.ErrInternal},
		"429":                {minutestest.Always, minutestest.RateLimit(""), minutes.ErrRateLimited},
		"a 500 that is over": {3, minutestest.Refuse(minutes.ErrInternal), ""},
		"a 429 that is over": {2, minutestest.RateLimit(""), ""},
	} {
		inBubble(t, name, func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
			srv.Inject(minutestest.Match{Operation: "meetings.get", Times: test.times}, test.fault)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			_, err := c.Meetings.Wait(ctx, m.ID, nil)
			asWaitError(t, err, m.ID)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, failed := errors.AsType[*minutes.Error](err)
			require.Equal(t, test.code != "", failed, "%v", err)
			if failed {
				require.ErrorIs(t, err, test.code)
			}
		})
	}
}

// A temporary failure of the minutes does not end WaitForMinutes: it asks again after thirty
// seconds. A rejection ends it.
func TestWaitForMinutes_AsksAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault  minutestest.Fault
		passes bool
	}{
		"not ready":   {minutestest.Refuse(minutes.ErrMinutesNotReady), true},
		"429":         {minutestest.RateLimit(""), true},
		"500":         {minutestest.Refuse(minutes.ErrInternal), true},
		"a proxy":     {minutestest.Respond(403, "text/html", "<h1>Sorry</h1>"), false}, // for ten minutes
		"the service": {minutestest.Refuse(minutes.ErrForbidden), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				c := direct(srv, minutes.WithMaxRetries(0))
				m := testkit.Uploaded(t, c, "Weekly")
				_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
				require.NoError(t, err)
				const times = 40
				srv.Inject(minutestest.Match{Operation: "meetings.minutes", Times: times}, test.fault).Optional()
				began := time.Now()
				_, err = c.Meetings.WaitForMinutes(t.Context(), m.ID, nil)
				if test.passes {
					require.NoError(t, err)
					require.Greater(t, time.Since(began), 10*time.Minute)
					require.Less(t, time.Since(began), times*5*time.Minute, "the longest pause after a 429")
					return
				}
				asWaitError(t, err, m.ID)
				_, api := errors.AsType[*minutes.Error](err)
				require.True(t, api, "%v", err)
				if name == "a proxy" {
					require.InDelta(t, 10*time.Minute, time.Since(began), float64(time.Minute))
				} else {
					require.Zero(t, time.Since(began))
				}
			})
		})
	}
	t.Run("until ctx is done, and then names the last failure", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			c := direct(srv)
			m := testkit.Uploaded(t, c, "Ready, it says")
			fetches := minutestest.Match{Operation: minutes.OpMeetingsMinutes, Times: minutestest.Always}
			srv.Inject(fetches, minutestest.Refuse(minutes.ErrMinutesNotReady))
			cause := errors.New("shutting down")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(5*time.Minute+time.Second, func() { cancel(cause) })
			_, err := c.Meetings.WaitForMinutes(ctx, m.ID, nil)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, cause)
			require.ErrorIs(t, err, minutes.ErrMinutesNotReady)
		})
	})
}

// Stats shows how many meetings a Client waits for, how old they are, and whether polls succeed.
func TestStats_DescribesWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		require.Zero(t, c.Stats())
		first := time.Now()
		ids := []string{testkit.Waiting(t, srv)}
		time.Sleep(time.Hour)
		ids = append(ids, testkit.Waiting(t, srv))
		ctx, cancel := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		for _, id := range ids {
			waits.Go(func() { _, _ = c.Meetings.Wait(ctx, id, nil) })
		}
		uploading := make(chan struct{})
		waits.Go(func() {
			_ = c.Meetings.Upload(ctx, ids[0], func(ctx context.Context) (minutes.Recording, error) {
				<-uploading
				return minutes.Recording{}, context.Canceled
			}, nil)
		})
		time.Sleep(10 * time.Second)
		polled := time.Now()
		synctest.Wait()
		s := c.Stats()
		require.WithinDuration(t, polled, s.Polled, 10*time.Second)
		require.WithinDuration(t, first, s.Oldest, time.Second)
		require.Equal(t, 2, s.Waiting)
		require.Equal(t, 1, s.Uploading)
		close(uploading)
		cancel()
		waits.Wait()
		s = c.Stats()
		require.Equal(t, minutes.Stats{Polled: s.Polled}, s)
	})
}

// Waits for one meeting share its polls. Each caller gets a copy.
func TestWait_SharesPolls(t *testing.T) {
	t.Parallel()
	inBubble(t, "at the same time", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		done := make(chan *minutes.Meeting, 2)
		for range 2 {
			go func() {
				got, err := c.Meetings.Wait(t.Context(), m.ID, nil)
				assert.NoError(t, err)
				done <- got
			}()
		}
		a := <-done
		b := <-done
		assert.Equal(t, a, b)
		assert.NotSame(t, a, b, "one caller's changes are not the other's")
		assert.LessOrEqual(t, len(srv.Requests("meetings.get")), 31)
	})
	inBubble(t, "that were rejected",
		func(t *testing.T, srv *minutestest.Server, c *minutes.Client, _ *minutes.Meeting) {
			for range 2 {
				_, err := c.Meetings.Wait(t.Context(), "mtg_gone", nil)
				require.ErrorIs(t, err, minutes.ErrNotFound)
			}
			polls := srv.Requests("meetings.get")
			require.Len(t, polls, 2)
			assert.GreaterOrEqual(t, polls[1].At.Sub(polls[0].At), minutestest.MinPollInterval)
		})
}

// A slow OnStatus does not delay other waits, not even for the same meeting.
func TestWait_SlowOnStatusDelaysNoOtherWait(t *testing.T) {
	t.Parallel()
	inBubble(t, "", func(t *testing.T, _ *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		slow := &minutes.WaitOptions{OnStatus: func(*minutes.Meeting) { time.Sleep(20 * time.Minute) }}
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.Meetings.Wait(t.Context(), m.ID, slow) })
		wg.Go(func() {
			for range c.Meetings.WaitAll(t.Context(), slices.Values([]string{m.ID}), slow) {
			}
		})
		time.Sleep(time.Second)
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 17*time.Minute)
		wg.Wait()
	})
}

// Every response about a single meeting counts as a poll: a wait that begins within thirty seconds
// uses it, and polls afterwards.
func TestWait_UsesResponsesOfOtherCalls(t *testing.T) {
	t.Parallel()
	for name, see := range map[string]func(*minutes.Client, context.Context, string) (*minutes.Meeting, error){
		"Get": func(c *minutes.Client, ctx context.Context, id string) (*minutes.Meeting, error) {
			return c.Meetings.Get(ctx, id)
		},
		"Create": func(c *minutes.Client, ctx context.Context, _ string) (*minutes.Meeting, error) {
			m, _, err := c.Meetings.Create(ctx, weekly("job-1"))
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
				m, _, err := testkit.Client(srv).Meetings.Create(t.Context(), weekly("job-1"))
				require.NoError(t, err)
				c := testkit.Client(srv)
				seen, err := see(c, t.Context(), m.ID)
				require.NoError(t, err)
				n := len(srv.Requests("meetings.get"))
				time.Sleep(10 * time.Second)
				var notified []*minutes.Meeting
				onStatus := func(m *minutes.Meeting) { notified = append(notified, m) }
				testkit.WaitFor(t, c, m.ID, 19*time.Second, &minutes.WaitOptions{OnStatus: onStatus})
				require.Equal(t, []*minutes.Meeting{seen}, notified)
				require.Len(t, srv.Requests("meetings.get"), n)
				testkit.WaitFor(t, c, m.ID, 3*time.Second, nil)
				require.Len(t, srv.Requests("meetings.get"), n+1)
			})
		})
	}
	inBubble(t, "that end it", func(t *testing.T, srv *minutestest.Server, c *minutes.Client, m *minutes.Meeting) {
		time.AfterFunc(5*time.Minute+time.Second, func() {
			srv.Advance(m.ID, minutes.StatusMinutesReady)
			_, err := c.Meetings.Get(t.Context(), m.ID)
			assert.NoError(t, err)
		})
		began := time.Now()
		_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
		require.NoError(t, err)
		require.Equal(t, 5*time.Minute+time.Second, time.Since(began))
	})
}

// After an upload, or a request for an upload URL, the next poll is immediate.
func TestWait_PollsAtOnceAfterAnUpload(t *testing.T) {
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
				c := testkit.Client(srv)
				testkit.WaitFor(t, c, id, time.Second, nil)
				require.NoError(t, act(c, t.Context(), id))
				seen := testkit.WaitFor(t, c, id, time.Second, nil)
				require.Len(t, srv.Requests("meetings.get"), 2)
				require.Equal(t, name == "Upload", seen.Status == minutes.StatusAudioUploaded)
			})
		})
	}
}

// A poll that waits for the rate limit is dropped if another request shows the meeting.
func TestWait_DropsAPollThatIsNoLongerNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		c := testkit.Client(srv, minutes.WithRateLimit(0.1, 1))
		_, err := c.Usage.Get(t.Context()) // the next one may go out in ten seconds
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Update(t.Context(), id, &minutes.MeetingUpdateParams{Time: new("10:00")})
			assert.NoError(t, err)
		})
		synctest.Wait()
		began := time.Now()
		testkit.WaitFor(t, c, id, time.Minute, nil)
		wg.Wait()
		polls := srv.Requests("meetings.get")
		require.Len(t, polls, 1)
		require.GreaterOrEqual(t, polls[0].At.Sub(began), 40*time.Second)
	})
}

type responder = func(*http.Request) (*http.Response, error)

// A list page does not prove that there is no audio, neither to a wait nor to Resume: only a GET
// does.
func TestWait_ConfirmsWhatPagesShow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		silent := minutestest.WorldMeeting{Title: "Silent", Status: minutes.StatusCreated, Count: 40}
		ids := srv.AddMeetings("org_acme", silent)
		c := direct(srv)
		began := time.Now()
		gets := func(id string) (at []time.Duration) {
			for _, r := range srv.Requests(minutes.OpMeetingsGet) {
				if r.MeetingID == id {
					at = append(at, r.At.Sub(began))
				}
			}
			return at
		}
		var waits sync.WaitGroup
		waits.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
			defer cancel()
			opts := &minutes.WaitOptions{AudioTimeout: 10 * time.Minute}
			for r, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), opts) {
				if assert.NoError(t, err) && assert.ErrorIs(t, r.Err, minutes.ErrNoAudio) {
					assert.GreaterOrEqual(t, gets(r.MeetingID)[len(gets(r.MeetingID))-1], 10*time.Minute)
				}
			}
		})
		nextPage := func() {
			for n := len(srv.Requests(minutes.OpMeetingsList)); len(srv.Requests(minutes.OpMeetingsList)) == n; {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(5 * time.Minute)
		nextPage()
		time.Sleep(20 * time.Second)
		_, err := c.Meetings.Get(t.Context(), ids[0])
		require.NoError(t, err)
		nextPage()
		polls := len(gets(ids[0]))
		ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second) // the next page comes later
		defer cancel()
		_, err = c.Meetings.Resume(ctx, ids[0], nil, nil)
		require.ErrorIs(t, err, minutes.ErrNoAudio)
		require.Len(t, gets(ids[0]), polls+1)
		waits.Wait()
		require.Less(t, time.Since(began), 15*time.Minute)
		require.Less(t, len(srv.Requests(minutes.OpMeetingsGet)), 4*len(ids), "pages have replaced polls")
	})
}

// A failed poll ends a wait at once, after ten minutes, or never. A rejected key ends all waits.
func TestWait_EndsByKindOfFailure(t *testing.T) {
	t.Parallel()
	const atOnce = 0
	const never = 15 * time.Minute
	envelope := func(status int, code minutes.ErrorCode) responder {
		body := fmt.Sprintf(`{"error":{"code":%q,"message":"m","request_id":"r"}}`, code)
		return testkit.Canned(status, body, "Content-Type", "application/json")
	}
	broken := func(err error) responder {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	brokenOff := func(r *http.Request) (*http.Response, error) {
		resp, err := testkit.Canned(200, "")(r)
		resp.Body = io.NopCloser(testbase.Failing(io.ErrUnexpectedEOF))
		return resp, err
	}
	for name, test := range map[string]struct {
		respond responder
		ends    time.Duration
		all     bool
	}{
		"429":                            {testkit.Canned(429, ""), never, false},
		"500":                            {envelope(500, minutes.ErrInternal), never, false},
		"502 of a proxy":                 {testkit.Canned(502, ""), never, false},
		"408":                            {envelope(408, "SLOW"), never, false},
		"lost connection":                {broken(io.EOF), never, false},
		"a 2xx that broke off":           {brokenOff, never, false},
		"certificate":                    {broken(testbase.ErrUntrusted), 10 * time.Minute, false},
		"redirect":                       {testkit.Canned(302, "", "Location", "/elsewhere"), 10 * time.Minute, false},
		"401 of a proxy":                 {testkit.Canned(401, ""), 10 * time.Minute, false},
		"403 of a proxy":                 {testkit.Canned(403, ""), 10 * time.Minute, false},
		"404 of a proxy":                 {testkit.Canned(404, ""), 10 * time.Minute, false},
		"a response that does not match": {testkit.Canned(200, "{}"), 10 * time.Minute, false},
		"rejected":                       {envelope(400, minutes.ErrBadRequest), atOnce, false},
		"gone":                           {envelope(404, minutes.ErrNotFound), atOnce, false},
		"a code of a later interface":    {envelope(410, "GONE"), atOnce, false},
		"a scope that the key lacks":     {envelope(403, minutes.ErrInsufficientScope), atOnce, false},
		"the key":                        {envelope(401, minutes.ErrUnauthenticated), atOnce, true},
		"the organisation":               {envelope(403, minutes.ErrOrganisationSuspended), atOnce, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			c, _ := testkit.Responding(t, func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/v1/meetings/mtg_other" {
					return testkit.Canned(200, `{"id":"mtg_other","status":"transcribing"}`)(r)
				}
				return test.respond(r)
			})
			ctx, cancel := context.WithTimeout(t.Context(), never)
			defer cancel()
			took := map[string]time.Duration{}
			var waits sync.WaitGroup
			var mu sync.Mutex
			for _, id := range []string{"mtg_other", "mtg_1"} {
				waits.Go(func() {
					_, err := c.Meetings.Wait(ctx, id, nil)
					assert.Error(t, err)
					mu.Lock()
					defer mu.Unlock()
					took[id] = time.Since(began)
				})
				synctest.Wait()
			}
			waits.Wait()
			require.GreaterOrEqual(t, took["mtg_1"], test.ends, name)
			require.Less(t, took["mtg_1"], test.ends+3*time.Minute, name)
			require.Equal(t, test.all, took["mtg_other"] < never, name)
		})
	}
}

// A poll that fails with a Retry-After, or succeeds with a max-age, puts off the next one.
func TestWait_ObeysHeaders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status        int
		header, value string
		want          time.Duration
	}{
		"no header":         {200, "X-None", "", 30 * time.Second},
		"no max-age":        {200, "Cache-Control", "no-store", 30 * time.Second},
		"negative":          {200, "Cache-Control", "max-age=-5", 30 * time.Second},
		"a word":            {200, "Cache-Control", "max-age=soon", 30 * time.Second},
		"at the end":        {200, "Cache-Control", "private, max-age=120", 2 * time.Minute},
		"at the beginning":  {200, "Cache-Control", "max-age=120, private", 2 * time.Minute},
		"in another style":  {200, "Cache-Control", `Max-Age = "120"`, 2 * time.Minute},
		"of shared caches":  {200, "Cache-Control", "s-maxage=200,max-age=120", 2 * time.Minute},
		"more than allowed": {200, "Cache-Control", "max-age=99999999999999999999", 5 * time.Minute},
		"Retry-After":       {503, "Retry-After", "120", 2 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var polls []time.Time
			c, _ := testkit.Responding(t, func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				polls = append(polls, time.Now())
				return testkit.Canned(test.status, `{"id":"mtg_1","status":"transcribing"}`, test.header, test.value)(r)
			})
			testkit.WaitFor(t, c, "mtg_1", 6*time.Minute, nil)
			mu.Lock()
			defer mu.Unlock()
			require.Greater(t, len(polls), 1, name)
			require.InEpsilon(t, 1.1*test.want.Seconds(), polls[1].Sub(polls[0]).Seconds(), 0.1001, name)
		})
	}
}

// A fetch holds its slot for one attempt, so minutes and transcripts that a gateway times out delay no
// others.
func TestWaitAll_SlowFailuresDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		slow := map[string]minutes.Operation{}
		var ids []string
		for i := range 40 {
			m := testkit.Uploaded(t, direct(srv), "Weekly")
			ids = append(ids, m.ID)
			switch {
			case i < 10:
				slow[m.ID] = minutes.OpMeetingsMinutes
			case i < 20:
				slow[m.ID] = minutes.OpMeetingsTranscript
			}
		}
		time.Sleep(time.Hour)
		slowFirst := func(yield func(string) bool) {
			for i, id := range ids {
				if i == 20 {
					time.Sleep(time.Second)
				}
				if !yield(id) {
					return
				}
			}
		}
		timeout := testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if op, id := testkit.Identify(r); op == slow[id] {
				time.Sleep(25 * time.Second)
				return testkit.Canned(504, "")(r)
			}
			return testkit.Direct(srv).Transport.RoundTrip(r)
		})
		c := direct(srv, minutes.WithHTTPClient(&http.Client{Transport: timeout}))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		ready := 0
		for r, err := range c.Meetings.WaitAll(ctx, slowFirst, &minutes.WaitOptions{Transcript: true}) {
			if err == nil && r.Err == nil {
				ready++
			}
		}
		require.Equal(t, 20, ready)
	})
}

// When ctx is done while polls fail, each wait names the failure of its own meeting.
func TestWait_ReportsItsOwnFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := testkit.Responding(t, func(r *http.Request) (*http.Response, error) {
			id := path.Base(r.URL.Path)
			body := fmt.Sprintf(`{"error":{"code":"INTERNAL_ERROR","message":"m","request_id":"of %s"}}`, id)
			return testkit.Canned(500, body, "Content-Type", "application/json")(r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var waits sync.WaitGroup
		for _, id := range []string{"mtg_1", "mtg_2", "mtg_3"} {
			waits.Go(func() {
				_, err := c.Meetings.Wait(ctx, id, nil)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				failure, ok := errors.AsType[*minutes.Error](err)
				if assert.True(t, ok, "%v", err) {
					assert.Equal(t, "of "+id, failure.RequestID)
				}
			})
		}
		waits.Wait()
	})
}

// A status of a later version ends no wait, but the log warns of it, once for each status.
func TestWait_WarnsOnceOfAnUnknownStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		statuses := []string{"created", "being_scanned", "being_translated", "transcribing", "being_scanned"}
		polls := map[string]int{}
		var mu sync.Mutex
		respond := testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			id := path.Base(r.URL.Path)
			status := "minutes_ready"
			if polls[id] < len(statuses) {
				status = statuses[polls[id]]
			}
			polls[id]++
			return testkit.Canned(200, fmt.Sprintf(`{"id":%q,"status":%q}`, id, status))(r)
		})
		var log bytes.Buffer
		c, err := testkit.New("https://minutes.example", testkit.Key,
			minutes.WithHTTPClient(&http.Client{Transport: respond}),
			minutes.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		for _, id := range []string{"mtg_1", "mtg_2"} {
			_, err := c.Meetings.Wait(t.Context(), id, nil)
			require.NoError(t, err)
		}
		require.Equal(t, 1, strings.Count(log.String(), "status=being_scanned"), log.String())
		require.Equal(t, 1, strings.Count(log.String(), "status=being_translated"))
		require.Equal(t, 2, strings.Count(log.String(), "unknown status"))
	})
}

// A text that is too long will not become shorter, so it is downloaded once. A page that is too long
// comes from another server, and may be gone the next time.
func TestWaitForMinutes_DownloadsTextThatIsTooLongOnce(t *testing.T) {
	t.Parallel()
	const over = 8<<20 + 1
	for name, test := range map[string]struct {
		transcript string
		requests   int
	}{
		"text":           {`{"text":"` + strings.Repeat("x", over), 1},
		"list":           {`[` + strings.Repeat("1,", over/2), 1},
		"page of others": {"<html>" + strings.Repeat("x", over), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				client := direct(srv)
				m := testkit.Uploaded(t, client, "Weekly")
				srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsTranscript},
					minutestest.Respond(200, "", test.transcript))
				r, err := client.Meetings.WaitForMinutes(t.Context(), m.ID, &minutes.WaitOptions{Transcript: true})
				require.Len(t, srv.Requests(minutes.OpMeetingsTranscript), test.requests)
				if test.requests > 1 {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, "the response is longer than 8388608 bytes")
				require.False(t, minutes.Retryable(err))
				require.NotNil(t, r.Minutes)
			})
		})
	}
}

// While the service is down, the fetches of any number of meetings make few requests.
func TestWaitAll_FetchesSpareAServiceThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		var ids []string
		for range testbase.Many(100, 24) {
			ids = append(ids, testkit.Uploaded(t, direct(srv), "Weekly").ID)
		}
		time.Sleep(time.Hour)
		down := srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsMinutes, Times: minutestest.Always},
			minutestest.Refuse(minutes.ErrInternal))
		time.AfterFunc(5*time.Minute, down.Stop)
		began := time.Now()
		for r, err := range direct(srv).Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
		}
		require.Less(t, time.Since(began), 6*time.Minute)
		perSecond := map[time.Duration]int{}
		for _, r := range srv.Requests(minutes.OpMeetingsMinutes) {
			if since := r.At.Sub(began); since < 5*time.Minute {
				perSecond[since.Truncate(time.Second)]++
			}
		}
		for _, n := range perSecond {
			require.LessOrEqual(t, n, 16, "eight slots, each of which rests for a second")
		}
	})
}
