package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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

type responder = func(*http.Request) (*http.Response, error)

// meetingIn responds with a meeting that was created at the given time.
func meetingIn(status minutes.Status, created time.Time) responder {
	return testkit.Canned(200, fmt.Sprintf(`{"id":"mtg_1","status":%q,"created_at":%d}`, status, created.Unix()))
}

// A status ends a wait if it is Until, a later one in the normal order, or a failure.
func TestWait_JudgesStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		until, status minutes.Status
		ends, fails   bool
	}{
		"early":             {until: minutes.StatusMinutesReady, status: minutes.StatusTranscribing},
		"the status":        {until: minutes.StatusMinutesReady, status: minutes.StatusMinutesReady, ends: true},
		"the first status":  {until: minutes.StatusCreated, status: minutes.StatusCreated, ends: true},
		"a later status":    {until: minutes.StatusTranscribing, status: minutes.StatusGeneratingMinutes, ends: true},
		"an earlier status": {until: minutes.StatusTranscribing, status: minutes.StatusAudioUploaded},
		"an unknown status": {until: minutes.StatusCreated, status: "being_translated"},
		"a failure":         {until: minutes.StatusCreated, status: minutes.StatusMinutesFailed, ends: true, fails: true},
		"no audio for ever": {until: minutes.StatusMinutesReady, status: minutes.StatusCreated},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := testkit.Responding(t, meetingIn(test.status, time.Now()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			_, err := c.Meetings.Wait(ctx, "mtg_1", &minutes.WaitOptions{Until: test.until})
			failed, fails := errors.AsType[*minutes.MeetingFailedError](err)
			require.Equal(t, test.fails, fails, name)
			require.Equal(t, !test.ends, errors.Is(err, context.DeadlineExceeded), name)
			if fails {
				require.Equal(t, []any{"mtg_1", test.status, test.status}, []any{failed.MeetingID, failed.Status, failed.Meeting.Status})
			} else if test.ends {
				require.NoError(t, err, name)
			}
		})
	}
}

// Only a poll that was sent after the limit proves that there is no audio.
func TestWait_EndsAfterAudioTimeout(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then minutes.Status
		err  error
	}{
		"none":              {minutes.StatusCreated, minutes.ErrNoAudio},
		"audio, after all":  {minutes.StatusMinutesReady, nil},
		"audio, in the end": {minutes.StatusTranscribing, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			created, status := time.Now(), minutes.StatusCreated
			c, mock := testkit.Responding(t, func(r *http.Request) (*http.Response, error) { return meetingIn(status, created)(r) })
			time.Sleep(time.Hour - time.Second)
			_, err := c.Meetings.Get(t.Context(), "mtg_1")
			require.NoError(t, err)
			status = test.then
			time.Sleep(2 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			_, err = c.Meetings.Wait(ctx, "mtg_1", &minutes.WaitOptions{AudioTimeout: time.Hour})
			require.ErrorIs(t, err, test.err, name)
			require.Equal(t, 2, mock.GetTotalCallCount(), name)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		created := time.Now()
		c, _ := testkit.Responding(t, meetingIn(minutes.StatusCreated, created))
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Meetings.Wait(ctx, "mtg_1", &minutes.WaitOptions{AudioTimeout: time.Hour})
		require.ErrorIs(t, err, minutes.ErrNoAudio)
		require.Equal(t, time.Hour, time.Since(created), "the first poll was sent late enough")
	})
}

// A list page does not prove that there is no audio, neither to a wait nor to Resume: only a GET does.
func TestWait_ConfirmsWhatPagesShow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		ids := srv.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Silent", Status: minutes.StatusCreated, Count: 40})
		c, began := testkit.Client(srv), time.Now()
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
			for r, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), &minutes.WaitOptions{AudioTimeout: 10 * time.Minute}) {
				if assert.ErrorIs(t, err, minutes.ErrNoAudio) {
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
	const atOnce, never = 0, 50 * time.Minute
	envelope := func(status int, code minutes.ErrorCode) responder {
		return testkit.Canned(status, fmt.Sprintf(`{"error":{"code":%q,"message":"m","request_id":"r"}}`, code), "Content-Type", "application/json")
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
		"redirect":                       {testkit.Canned(302, "", "Location", "https://elsewhere.example"), 10 * time.Minute, false},
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

// An untrusted certificate ends the fetch of minutes after ten minutes, whatever an earlier attempt got.
func TestWaitForMinutes_EndsForUntrustedCertificate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, asked := minutestest.NewServer(t, minutestest.WithoutAudit()), 0
		m := testkit.Uploaded(t, testkit.Client(srv), "Weekly")
		srv.Advance(m.ID, minutes.StatusMinutesReady)
		c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if op, _ := testkit.Identify(r); op != minutes.OpMeetingsMinutes {
				return srv.HTTPClient().Transport.RoundTrip(r)
			}
			if asked++; asked%2 == 0 {
				return nil, testbase.ErrUntrusted
			}
			return testkit.Canned(500, `{"error":{"code":"INTERNAL_ERROR","message":"m","request_id":"r"}}`, "Content-Type", "application/json")(r)
		})}), minutes.WithMaxRetries(1))
		began := time.Now()
		_, err := c.Meetings.WaitForMinutes(t.Context(), m.ID, nil)
		require.ErrorIs(t, err, testbase.ErrUntrusted)
		require.InDelta(t, 10*time.Minute, time.Since(began), float64(time.Minute))
	})
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
			testkit.WaitFor(t, c, "mtg_1", time.Hour, nil)
			mu.Lock()
			defer mu.Unlock()
			require.Greater(t, len(polls), 1, name)
			require.InEpsilon(t, 1.1*test.want.Seconds(), polls[1].Sub(polls[0]).Seconds(), 0.1001, name)
		})
	}
}
