package minutes_test

import (
	"context"
	"fmt"
	"log/slog"
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

// events collects the attempts that an observer receives.
type events struct {
	mu   sync.Mutex
	list []minutes.Attempt
}

func (e *events) observe(_ context.Context, a minutes.Attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, a)
}

// all returns the attempts so far, in order.
func (e *events) all() []minutes.Attempt {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// answers counts responses by operation and status.
type answers map[minutes.Operation]map[int]int

func (a answers) count(op minutes.Operation, status int) {
	if a[op] == nil {
		a[op] = make(map[int]int)
	}
	a[op][status]++
}

// The attempts account for everything that the service received: requests by operation and status,
// and retries.
func TestWithObserver_SeesEveryRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		for op, faults := range map[minutes.Operation][]minutestest.Fault{
			minutes.OpMeetingsCreate:     {minutestest.RateLimit("3"), minutestest.LoseResponse()},
			minutes.OpMeetingsUploadURL:  {minutestest.BadGateway()},
			minutes.OpUpload:             {minutestest.RefuseUpload(503, "SlowDown"), minutestest.ResetUpload(100)},
			minutes.OpMeetingsMinutes:    {minutestest.Refuse(minutes.ErrInternal), minutestest.RateLimit("")},
			minutes.OpMeetingsTranscript: {minutestest.Refuse(minutes.ErrTranscriptNotReady)},
		} {
			srv.Inject(minutestest.Match{Operation: op}, faults...)
		}
		srv.Inject(
			minutestest.Match{Operation: minutes.OpMeetingsGet},
			minutestest.Refuse(minutes.ErrInternal),
			minutestest.RateLimit("2"),
		)
		heard := new(events)
		c := testkit.Client(srv, minutes.WithObserver(heard.observe))
		jobs := func(yield func(minutes.Job) bool) {
			for i := range 8 {
				params := weekly(fmt.Sprint("weekly-", i))
				open := testkit.Audio(1000)
				if !yield(minutes.Job{Params: params, Source: open}) {
					return
				}
			}
		}
		for r, err := range c.Meetings.ProcessAll(t.Context(), jobs, &minutes.ProcessOptions{Transcript: true}) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
		}
		synctest.Wait()

		served := answers{}
		for _, r := range srv.Requests() {
			if r.Fault != "" && strings.Contains(r.Fault, "reset") {
				r.Status = 0
			}
			served.count(r.Operation, r.Status)
		}
		seen := answers{}
		repeats := 0
		announced := 0
		polled := 0
		for _, a := range heard.all() {
			seen.count(a.Operation, a.StatusCode)
			if a.Number > 1 {
				repeats++
			}
			if a.WillRetry {
				announced++
			} else {
				assert.Zero(t, a.RetryIn, "%+v", a)
			}
			if a.Shared {
				polled++
			}
			if a.Operation == minutes.OpUpload {
				assert.True(t, a.Sent == 1000 || a.StatusCode != 200, "%+v", a)
			} else {
				assert.Zero(t, a.Sent, "%+v", a)
			}
			assert.Equal(t, a.StatusCode == 0, a.Err != nil, "%+v", a)
			assert.Equal(t, a.StatusCode/100 > 2, a.Code != "" || a.StatusCode == 502, "%+v", a)
		}
		assert.Equal(t, served, seen)
		assert.Equal(t, 5, repeats, "one for each fault, except for polls and fetches, which are one attempt each")
		assert.Equal(t, repeats, announced)
		assert.Positive(t, polled)
	})
}

// An Attempt has its duration and the wait that follows.
func TestAttempt_HasDurationAndWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(
			minutestest.Match{Operation: minutes.OpUsageGet},
			minutestest.RateLimit("3").Delayed(2*time.Second),
			minutestest.Reset(),
		)
		heard := new(events)
		c := testkit.Client(srv, minutes.WithObserver(heard.observe))
		_, err := c.Usage.Get(t.Context())
		require.NoError(t, err)
		attempts := heard.all()
		require.Len(t, attempts, 3)
		require.Equal(t, minutes.Attempt{
			AttemptInfo: minutes.AttemptInfo{
				Operation: minutes.OpUsageGet,
				Number:    1,
			}, Method: "GET", URL: minutestest.BaseURL + "/v1/usage",
			StatusCode: 429, Code: minutes.ErrRateLimited, Duration: 2 * time.Second,
			WillRetry: true, RetryIn: attempts[0].RetryIn, Pause: attempts[0].Pause,
		}, attempts[0])
		require.ErrorContains(t, attempts[1].Err, "reset")
		require.Equal(t, 3, attempts[2].Number)
		require.False(t, attempts[2].WillRetry)
	})
}

// The Attempt of an upload reports a stall, or storage's rejection.
func TestAttempt_ReportsStallAndRejection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(
			minutestest.Match{Operation: minutes.OpUpload},
			minutestest.Delay(time.Hour),
			minutestest.RefuseUpload(400, "InvalidDigest"),
		)
		heard := new(events)
		c := testkit.Client(srv, minutes.WithObserver(heard.observe), minutes.WithMaxRetries(1))
		id := testkit.Waiting(t, srv)
		require.Error(t, c.Meetings.Upload(t.Context(), id, testkit.Audio(1000), nil))
		var attempts []minutes.Attempt
		for _, a := range heard.all() {
			if a.Operation == minutes.OpUpload {
				require.Equal(t, id, a.MeetingID)
				require.Regexp(t, `^https://[^/?]+/[^?]+$`, a.URL)
				attempts = append(attempts, a)
			}
		}
		require.Len(t, attempts, 2)
		require.True(t, attempts[0].Stalled)
		require.True(t, attempts[0].WillRetry)
		require.Error(t, attempts[0].Err)
		require.GreaterOrEqual(t, attempts[0].Duration, time.Minute)
		require.False(t, attempts[1].Stalled)
		require.False(t, attempts[1].WillRetry)
		require.Equal(t, minutes.ErrorCode("InvalidDigest"), attempts[1].Code)
		require.Equal(t, 400, attempts[1].StatusCode)
		require.Equal(t, 2, attempts[1].Number)
	})
}

// The Client logs when the requests of its waits begin to fail, with the error, and once when they
// work again.
func TestWithLogger_ReportsFailingPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		out := new(testbase.Buffer)
		c := testkit.Client(srv, minutes.WithLogger(slog.New(slog.NewTextHandler(out, nil))))
		id := testkit.Uploaded(t, c, "Weekly").ID
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet, Nth: 2, Times: 5}, minutestest.BadGateway())
		_, err := c.Meetings.Wait(t.Context(), id, nil)
		require.NoError(t, err)
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], `level=WARN msg="minutes: polling is failing; waits continue" error=`)
		require.Contains(t, lines[0], id+": 502")
		require.Regexp(t, `level=WARN msg="minutes: polling works again"`, lines[1])
	})
}

// An observer may use the Client. Several observers are all called, in order.
func TestWithObserver_MayUseTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		srv.Inject(
			minutestest.Match{Operation: minutes.OpMeetingsGet, Nth: 2},
			minutestest.RateLimit("1"),
			minutestest.BadGateway(),
		)
		var c *minutes.Client
		var within, others atomic.Int32
		c = testkit.Client(srv, minutes.WithObserver(func(ctx context.Context, _ minutes.Attempt) {
			if ctx.Value(testKey{}) != nil {
				return
			}
			_, err := c.Usage.Get(context.WithValue(ctx, testKey{}, true))
			assert.NoError(t, err)
			within.Add(1)
		}), minutes.WithObserver(func(ctx context.Context, _ minutes.Attempt) {
			if ctx.Value(testKey{}) == nil {
				others.Add(1)
				assert.Equal(t, within.Load(), others.Load())
			}
		}))
		_, err := c.Meetings.Wait(t.Context(), testkit.Uploaded(t, c, "Weekly").ID, nil)
		require.NoError(t, err)
		synctest.Wait()
		require.Positive(t, others.Load())
	})
}

type testKey struct{}

// Transports and observers find the attempt and the caller's own values in the context.
func TestAttemptFromContext_FindsAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.Refuse(minutes.ErrInternal))
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.ResetUpload(1))
		var sent, heard []minutes.AttemptInfo
		transport := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			a, ok := minutes.AttemptFromContext(req.Context())
			assert.True(t, ok)
			assert.Equal(t,
				a.Operation == minutes.OpMeetingsGet,
				req.Context().Value(testKey{}) == nil,
				"the poller has no caller's context",
			)
			sent = append(sent, a)
			return srv.HTTPClient().Transport.RoundTrip(req)
		})
		c := testkit.Client(
			srv,
			minutes.WithHTTPClient(&http.Client{Transport: transport}),
			minutes.WithObserver(func(_ context.Context, a minutes.Attempt) {
				heard = append(heard, a.AttemptInfo)
			}),
		)
		ctx := context.WithValue(t.Context(), testKey{}, true)
		_, err := c.Usage.Get(ctx)
		require.NoError(t, err)
		id := testkit.Waiting(t, srv)
		require.NoError(t, c.Meetings.Upload(ctx, id, testkit.Audio(100_000), nil))
		_, err = c.Meetings.Wait(ctx, id, &minutes.WaitOptions{Until: minutes.StatusAudioUploaded})
		require.NoError(t, err)
		want := []minutes.AttemptInfo{
			{Operation: minutes.OpUsageGet, Number: 1},
			{Operation: minutes.OpUsageGet, Number: 2},
			{Operation: minutes.OpMeetingsUploadURL, MeetingID: id, Number: 1},
			{Operation: minutes.OpUpload, MeetingID: id, Number: 1},
			{Operation: minutes.OpMeetingsGet, MeetingID: id, Number: 1, Shared: true}, // whether it arrived after all
			{Operation: minutes.OpMeetingsUploadURL, MeetingID: id, Number: 1},
			{Operation: minutes.OpUpload, MeetingID: id, Number: 2},
			{Operation: minutes.OpMeetingsGet, MeetingID: id, Number: 1, Shared: true},
		}
		require.Equal(t, want, sent)
		require.Equal(t, want, heard)
	})
	a, ok := minutes.AttemptFromContext(context.Background())
	require.False(t, ok)
	require.Zero(t, a)
}

// Uploads use the storage transport, and have no header of the API.
func TestWithStorageHTTPClient_ServesOnlyUploads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		through := func(hosts *[]string) *http.Client {
			return &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				*hosts = append(*hosts, req.URL.Host)
				return srv.HTTPClient().Transport.RoundTrip(req)
			})}
		}
		var api, storage []string
		own := []minutes.Option{minutes.WithHTTPClient(through(&api)), minutes.WithStorageHTTPClient(through(&storage))}
		for range 2 {
			c := testkit.Client(srv, own...)
			require.NoError(t, c.Meetings.Upload(t.Context(), testkit.Waiting(t, srv), testkit.Audio(10), nil))
			require.Equal(t, []string{"api.minutes.test"}, api)
			require.Equal(t, []string{"storage.minutes.test"}, storage)
			slices.Reverse(own) // their order does not matter
			api = nil
			storage = nil
		}
	})
}

func TestWithLogger_LogsEachAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(
			minutestest.Match{Operation: "meetings.get"},
			minutestest.Refuse(minutes.ErrInternal),
			minutestest.RateLimit("3"),
			minutestest.Reset(),
		)
		out := new(testbase.Buffer)
		log := slog.New(
			slog.NewTextHandler(
				out,
				&slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				}},
			),
		)
		c := testkit.Client(srv, minutes.WithLogger(log), minutes.WithMaxRetries(4))
		j := testkit.Jobs()[len(testkit.Jobs())-1]
		id := j.MeetingFor(t, srv)
		_, err := c.Meetings.Get(t.Context(), id)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 5)
		require.Contains(t, lines[2], "level=INFO")
		require.Contains(t, lines[2], "rate limited; all API requests pause")
		lines = slices.Delete(lines, 2, 3)
		for i, want := range [][]string{
			{"status=500", "code=INTERNAL_ERROR", "request_id=req_", "wait=500ms"},
			{"status=429", "code=RATE_LIMITED", "wait="},
			{`error="`, "connection reset", "wait=2s"},
			{"status=200"},
		} {
			want = append(
				want,
				"level=DEBUG",
				"operation=meetings.get",
				"method=GET",
				"url="+minutestest.BaseURL+"/v1/meetings/"+id,
				fmt.Sprintf("attempt=%d", i+1),
			)
			for _, w := range want {
				require.Contains(t, lines[i], w)
			}
			require.NotRegexp(t, `meeting=|sent=`, lines[i], "those are of uploads")
		}
		require.NotContains(t, lines[3], "wait")

		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(503, "SlowDown"))
		require.NoError(t, j.Call(t.Context(), c, id))
		for _, w := range []string{
			"operation=storage.put", "meeting=" + id, "method=PUT", "url=https://storage.minutes.test/storage/",
			"status=503", "SlowDown", "request_id=req_", "attempt=1", "attempt=2", "status=200", "sent=3000",
		} {
			require.Contains(t, out.String(), w)
		}
		require.NotContains(t, out.String(), "Signature")
		require.NotContains(t, out.String(), srv.Key())
	})
}
