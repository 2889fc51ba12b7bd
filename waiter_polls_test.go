package minutes_test

import (
	"context"
	"net/http"
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

// A wait that begins during a slow poll of its meeting uses that poll.
func TestWait_SharesASlowPoll(t *testing.T) {
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
		polls := 0
		for _, r := range srv.Requests("meetings.get") {
			if r.MeetingID == slow.ID {
				polls++
			}
		}
		assert.Equal(t, 1, polls)
		wg.Wait()
		synctest.Wait()
	})
}

// The check after a lost upload uses a poll that was sent afterwards, as soon as the minimum
// poll interval allows.
func TestUpload_ChecksWithAPollSentAfterwards(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others   int // are waited for
		interval time.Duration
		lost     bool          // the response, not the audio
		takes    time.Duration // to learn so
	}{
		"a poll, and the audio did not arrive":      {0, 0, false, 0},
		"a poll, and the audio arrived":             {0, 0, true, 0},
		"long after a poll, no audio":               {0, 4 * time.Hour, false, 0},
		"long after a poll, and the audio arrived":  {0, 4 * time.Hour, true, 0},
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
				srv.Script(minutestest.Script{MeetingID: id, Hold: minutes.StatusAudioUploaded})
				ids = append(ids, id)
				c, _ := testkit.WatchLatePolls(srv, 10*time.Second)
				fault := minutestest.ResetUpload(0)
				if test.lost {
					fault = minutestest.LoseResponse()
				}
				srv.Inject(minutestest.Match{Operation: minutes.OpUpload, MeetingID: id}, fault.Delayed(test.takes))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() { testkit.Follow(ctx, t, c, ids, nil) })
				lost := time.Now().Add(45 * time.Second) // during the second poll, if there is one
				time.Sleep(45*time.Second - test.takes)
				rec, sum := testkit.Noise(200_000)
				require.NoError(t, c.Meetings.Upload(t.Context(), id, rec, nil))
				testkit.RequireArrived(t, srv, id, sum)
				assert.LessOrEqual(t, time.Since(lost), 62*time.Second) // a page and the poll that confirms it, ten seconds each; jitter
				wg.Wait()
				synctest.Wait()
			})
		})
	}
}

// If the poll under way fails, the check for the audio is the next one.
func TestUpload_ChecksWithTheNextPollIfOneFails(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]minutestest.Fault{"429": minutestest.RateLimit(""), "502": minutestest.BadGateway()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				c := testkit.Client(srv)
				id := testkit.Waiting(t, srv)
				srv.Inject(minutestest.Match{Operation: "meetings.get"}, fault.Delayed(10*time.Second))
				srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.ResetUpload(1))
				var wg sync.WaitGroup
				wg.Go(func() {
					_, err := c.Meetings.Wait(t.Context(), id, nil)
					assert.NoError(t, err)
				})
				time.Sleep(time.Second)
				require.NoError(t, c.Meetings.Upload(t.Context(), id, testkit.Audio(100_000), nil))
				assert.Len(t, srv.Requests("meetings.get"), 2)
				wg.Wait()
			})
		})
	}
}

// Cache-Control raises the minimum poll interval, up to five minutes, until a response no
// longer says so.
func TestWait_ObeysCacheControl(t *testing.T) {
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
				srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
				_, l := testkit.WatchPolls(srv)
				says := header
				c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
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

// Every response about a single meeting counts as a poll: a wait that begins within thirty
// seconds uses it, and polls afterwards.
func TestWait_UsesResponsesOfOtherCalls(t *testing.T) {
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
				c, l := testkit.WatchPolls(srv)
				seen, err := see(c, t.Context(), m.ID)
				require.NoError(t, err)
				began, n := time.Now(), len(srv.Requests("meetings.get"))
				time.Sleep(10 * time.Second)
				var notified []*minutes.Meeting
				var at []time.Time
				testkit.WaitFor(t, c, m.ID, 19*time.Second, &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) {
					notified, at = append(notified, m), append(at, time.Now())
				}})
				assert.Len(t, srv.Requests("meetings.get"), n, "minimum poll interval")
				require.Equal(t, []*minutes.Meeting{seen}, notified)
				assert.Equal(t, 10*time.Second, at[0].Sub(began))
				testkit.WaitFor(t, c, m.ID, 3*time.Second, nil)
				assert.Len(t, srv.Requests("meetings.get"), n+1)
				if name != "SetParticipants" { // which the service rejects by then
					require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
					srv.Advance(m.ID, minutes.StatusMinutesReady)
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

// Another call's response ends a wait, or delays its next poll.
func TestWait_EndsWhenAnotherCallSeesTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
		c, l := testkit.WatchPolls(srv)
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
		assert.Len(t, l.Of(m.ID), 1, "the first poll, and then the responses of Update")
		srv.Advance(m.ID, minutes.StatusMinutesReady)
		begun := time.Now()
		_, err := c.Meetings.FindByExternalID(t.Context(), "none")
		require.ErrorIs(t, err, minutes.ErrNotFound)
		_, err = c.Meetings.Get(t.Context(), m.ID)
		require.NoError(t, err)
		wg.Wait()
		assert.Zero(t, time.Since(begun))
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
		"Upload, whatever Cache-Control asks": func(c *minutes.Client, ctx context.Context, id string) error {
			return c.Meetings.Upload(ctx, id, testkit.Audio(10), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				id := testkit.Waiting(t, srv)
				c, l := testkit.WatchPolls(srv)
				if strings.Contains(name, "Cache-Control") {
					network := l.Next
					l.Next = testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
						resp, err := network.RoundTrip(r)
						if err == nil {
							resp.Header.Set("Cache-Control", "max-age=120")
						}
						return resp, err
					})
				}
				testkit.WaitFor(t, c, id, time.Second, nil)
				time.Sleep(time.Second)
				require.NoError(t, act(c, t.Context(), id))
				time.Sleep(time.Second)
				require.Len(t, l.Of(id), 1)
				seen := testkit.WaitFor(t, c, id, time.Second, nil)
				require.Len(t, l.Of(id), 2)
				want := minutes.StatusCreated
				if strings.HasPrefix(name, "Upload") && name != "UploadURL" {
					want = minutes.StatusAudioUploaded
				}
				assert.Equal(t, want, seen.Status)
			})
		})
	}
}

// A wait ignores the response to a request that was sent before the last snapshot arrived.
func TestWait_IgnoresAResponseOlderThanTheSnapshot(t *testing.T) {
	t.Parallel()
	for name, meetings := range map[string]int{"a poll": 1, "a page": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, meetings, 1, testkit.Ages)
				srv.Script(minutestest.Script{MeetingID: ids[0], Hold: minutes.StatusTranscribing})
				c, l := testkit.WatchLatePolls(srv, 10*time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				notified := map[string][]minutes.Status{}
				var wg sync.WaitGroup
				wg.Go(func() {
					o := &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) { notified[m.ID] = append(notified[m.ID], m.Status) }}
					for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), o) {
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
				})
				time.Sleep(2 * time.Minute)
				for n := l.Len(); l.Len() == n; { // it was answered, and the answer is on its way
					time.Sleep(time.Second / 10)
				}
				srv.Advance(ids[0], minutes.StatusTranscribing)
				_, err := c.Meetings.Update(t.Context(), ids[0], &minutes.MeetingUpdateParams{Time: new("10:00")})
				require.NoError(t, err)
				wg.Wait()
				synctest.Wait()
				assert.Equal(t, []minutes.Status{minutes.StatusAudioUploaded, minutes.StatusTranscribing}, notified[ids[0]])
			})
		})
	}
}

// A poll that waits for the rate limit is dropped if another request shows the meeting. The
// next poll keeps the minimum poll interval.
func TestWait_DropsAPollThatIsNoLongerNeeded(t *testing.T) {
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
		polls := srv.Requests("meetings.get")[before:]
		require.Len(t, polls, 1)
		assert.GreaterOrEqual(t, polls[0].At.Sub(began), 40*time.Second)
	})
}
