package minutes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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

// During an outage the Client sends few requests, however many waits there are. If only the listing
// fails, the Client polls each meeting. It reads pages again after the outage.
func TestWaitAll_SurvivesOutage(t *testing.T) {
	t.Parallel()
	const out = 2 * time.Minute
	waits := testbase.Many(400, 100)
	for name, test := range map[string]struct {
		listing bool          // only the listing fails
		start   time.Duration // of the waits
		back    int           // minutes
		most    int           // requests within a minute of the outage
		late    time.Duration // after back, or the meeting's end
		pages   int           // minutes until the Client reads pages again
	}{
		"all":             {false, 0, 8, 15, 61 * time.Second, 5},
		"all, at a start": {false, out, 8, 15, 100 * time.Second, 5},
		"the listing":     {true, 0, 8, 2*waits + 10, 64 * time.Second, 7}, // as long again, at most
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, waits, 1, 20*time.Minute)
				began, back := time.Now(), time.Duration(test.back)*time.Minute
				c, l := testkit.WatchPolls(srv)
				network := l.Next
				l.Next = testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
					since := time.Since(began)
					list := strings.HasSuffix(r.URL.Path, "/meetings")
					if since >= out && since < back && (list || !test.listing) {
						return &http.Response{StatusCode: 502, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
					}
					return network.RoundTrip(r)
				})
				time.Sleep(test.start)
				for m, err := range testkit.Meetings(c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil)) {
					require.NoError(t, err)
					end := m.UpdatedAt.Time()
					if end.Before(began.Add(back)) {
						end = began.Add(back)
					}
					assert.LessOrEqual(t, time.Since(end), test.late)
				}
				assert.Zero(t, l.TooSoon(ids), "polls within the minimum interval")
				var perMinute []int
				for _, at := range l.At() {
					minute := int(at.Sub(began) / time.Minute)
					for len(perMinute) <= minute {
						perMinute = append(perMinute, 0)
					}
					perMinute[minute]++
				}
				assert.LessOrEqual(t, slices.Max(perMinute[2:test.back]), test.most)
				assert.LessOrEqual(t, slices.Max(perMinute[test.back+test.pages:18]), 3*waits/50, "pages again, until few waits are left")
			})
		})
	}
}

// A failed poll does not make an older snapshot fresh.
func TestWait_FailedPollDoesNotRefreshTheSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c, l := testkit.WatchPolls(srv)
		m := testkit.Uploaded(t, c, "Old title")
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
		assert.Zero(t, l.TooSoon([]string{m.ID}), "polls within the minimum interval")
	})
}

// Transient failures cost a cycle each. A rejection in the service's envelope ends the wait.
func TestWait_RetriesOnlyTransientFailures(t *testing.T) {
	t.Parallel()
	html := func(status int) minutestest.Fault { return minutestest.Respond(status, "text/html", "<h1>Sorry</h1>") }
	for name, test := range map[string]struct {
		fault  minutestest.Fault
		passes bool
	}{
		"400 of a proxy":       {html(400), true},
		"401 of a proxy":       {html(401), true},
		"403 of a proxy":       {html(403), true},
		"a rejected key":       {minutestest.Refuse(minutes.ErrUnauthenticated), false},
		"404 of a proxy":       {html(404), true},
		"408 with a code":      {minutestest.Respond(408, "application/json", `{"error":{"code":"SLOW","message":"x"}}`), true},
		"410 with a code":      {minutestest.Respond(410, "application/json", `{"error":{"code":"GONE","message":"x"}}`), false},
		"502 of a proxy":       {html(502), true},
		"welcome":              {html(200), true},
		"a rejection":          {minutestest.Refuse(minutes.ErrBadRequest), false},
		"a rejected scope":     {minutestest.Refuse(minutes.ErrInsufficientScope), false},
		"an unknown meeting":   {minutestest.Refuse(minutes.ErrNotFound), false},
		"a lost response":      {minutestest.LoseResponse(), true},
		"a truncated response": {minutestest.Truncate(20), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				c := testkit.Client(srv)
				m := testkit.Uploaded(t, c, "Weekly")
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

// A 429 or "not ready" for the minutes or the transcript does not end a job.
func TestProcess_RetriesIfMinutesAreNotReady(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		operation minutes.Operation
		fault     minutestest.Fault
	}{
		"429 on the minutes":                {"meetings.minutes", minutestest.RateLimit("")},
		"429 on the transcript":             {"meetings.transcript", minutestest.RateLimit("")},
		"no minutes although it says so":    {"meetings.minutes", minutestest.Refuse(minutes.ErrMinutesNotReady)},
		"no transcript although it says so": {"meetings.transcript", minutestest.Refuse(minutes.ErrTranscriptNotReady)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				srv.Inject(minutestest.Match{Operation: test.operation, Times: 40}, test.fault)
				c := testkit.Client(srv, minutes.WithMaxRetries(0))
				began := time.Now()
				p := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "job-1"}
				r, err := c.Meetings.Process(t.Context(), p, testkit.Audio(10), &minutes.ProcessOptions{Transcript: true})
				require.NoError(t, err)
				assert.NotNil(t, r.Minutes)
				assert.NotNil(t, r.Transcript)
				assert.Greater(t, time.Since(began), 40*30*time.Second)
				if test.operation == "meetings.minutes" {
					srv.Inject(minutestest.Match{Operation: test.operation, Times: 20}, test.fault)
				}
				_, err = c.Meetings.WaitForMinutes(t.Context(), r.Meeting.ID, nil)
				require.NoError(t, err)
			})
		})
	}
}

// The error of a wait does not contain a failed poll if a page has shown the meeting since.
func TestWait_OmitsAFailureBeforeTheLastPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
		srv.Inject(minutestest.Match{Operation: "meetings.get", Times: minutestest.Always}, minutestest.BadGateway())
		c := testkit.Client(srv)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		check := func(err error) {
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			_, failed := errors.AsType[*minutes.Error](err)
			assert.False(t, failed, "%v", err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Wait(ctx, ids[0], nil)
			check(err)
		})
		time.Sleep(time.Second)
		for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			check(err)
		}
		wg.Wait()
		synctest.Wait()
	})
}

// An expired certificate, or an edge that rejects requests, does not end a wait if someone fixes it
// within nine minutes. After twenty failed polls it does.
func TestWait_SurvivesAnEdgeThatRejects(t *testing.T) {
	t.Parallel()
	forbidden := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 403, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<h1>Forbidden</h1>")), Request: r}, nil
	}
	untrusted := func(*http.Request) (*http.Response, error) { return nil, testbase.ErrUntrusted }
	for name, edge := range map[string]testbase.RoundTripper{"bare 403": forbidden, "certificate": untrusted} {
		bad := []time.Duration{time.Minute, time.Hour, 9 * time.Minute}
		for _, bad := range bad[:testbase.Many(len(bad), 2)] {
			for _, waits := range []int{1, 60} {
				t.Run(fmt.Sprint(name, " ", bad, " ", waits), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
						within := 20 * time.Minute
						if bad == time.Hour {
							within = 1000 * time.Hour
						}
						ids := testkit.Crowd(t, srv, waits, 1, within)
						began := time.Now()
						c := testkit.WatchedBy(srv, testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
							if since := time.Since(began); since >= time.Minute && since < time.Minute+bad {
								return edge(r)
							}
							return srv.HTTPClient().Transport.RoundTrip(r)
						}))
						for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
							if bad < time.Hour {
								require.NoError(t, err)
								continue
							}
							require.ErrorContains(t, err, "consecutive status checks failed")
							_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
							require.Equal(t, name == "certificate", untrusted, "%v", err)
							require.GreaterOrEqual(t, time.Since(began), 10*time.Minute)
							require.Less(t, time.Since(began), 15*time.Minute)
						}
					})
				})
			}
		}
	}
}

// It does not matter what an earlier attempt of the same call returned.
func TestWaitForMinutes_SurvivesUntrustedCertificateAfterError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		m := testkit.Uploaded(t, testkit.Client(srv), "Weekly")
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsMinutes}, minutestest.Refuse(minutes.ErrInternal))
		var fetches atomic.Int64
		c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if op, _ := testkit.Identify(r); op == minutes.OpMeetingsMinutes && fetches.Add(1) == 2 {
				return nil, testbase.ErrUntrusted
			}
			return srv.HTTPClient().Transport.RoundTrip(r)
		})}))
		_, err := c.Meetings.WaitForMinutes(t.Context(), m.ID, nil)
		require.NoError(t, err)
		require.EqualValues(t, 3, fetches.Load())
	})
}

// After a rejected poll, the next one keeps the minimum poll interval.
func TestWait_RejectedPollCountsAsPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		for range 2 {
			_, err := c.Meetings.Wait(t.Context(), "mtg_gone", nil)
			require.ErrorIs(t, err, minutes.ErrNotFound)
		}
		polls := srv.Requests("meetings.get")
		require.Len(t, polls, 2)
		assert.GreaterOrEqual(t, polls[1].At.Sub(polls[0].At), minutestest.MinPollInterval)
	})
}
