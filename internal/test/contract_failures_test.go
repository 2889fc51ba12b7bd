package test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// retry says which requests the Client retries after a failure.
type retry int

const (
	never  retry = iota // none: the failure is final
	always              // all: the request had no effect
	safely              // those that may run twice: the request may have taken effect
)

// failure is one column of the table of jobs and failures.
type failure struct {
	name   string
	fault  func() minutestest.Fault // of the server
	dial   error                    // or of the connection
	retry  retry
	stored retry // the same for the PUT to storage

	// The caller's error if the failure persists.
	status     int // 0: no response
	code       minutes.ErrorCode
	storedCode string
	envelope   bool // with a request id
	retryAfter time.Duration
	is         error
	as         func(error) bool

	location string // of a redirect
	effect   bool   // the request took effect
}

func failures() []failure {
	fixed := func(f minutestest.Fault) func() minutestest.Fault { return func() minutestest.Fault { return f } }
	reply := func(status int) func() minutestest.Fault {
		return fixed(minutestest.Respond(status, "text/html", "<html><body>"+http.StatusText(status)+"</body></html>"))
	}
	const gone = "https://elsewhere.example/v1/employees"
	return []failure{
		{name: "429", fault: fixed(minutestest.RateLimit("")), retry: always, stored: always, status: 429, code: minutes.ErrRateLimited},
		{name: "429 for seconds", fault: fixed(minutestest.RateLimit("7")), retry: always, stored: always, status: 429, code: minutes.ErrRateLimited, retryAfter: 7 * time.Second},
		{name: "429 until a date", fault: func() minutestest.Fault {
			return minutestest.RateLimit(time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat))
		}, retry: always, stored: always, status: 429, code: minutes.ErrRateLimited}, // in the past at the last attempt
		{name: "429 for an hour", fault: fixed(minutestest.RateLimit("3600")), status: 429, code: minutes.ErrRateLimited, retryAfter: time.Hour},
		{name: "500", fault: fixed(minutestest.Refuse(minutes.ErrInternal)), retry: safely, stored: safely, status: 500, code: minutes.ErrInternal, storedCode: "InternalError", envelope: true},
		{name: "502 with a page", fault: fixed(minutestest.BadGateway()), retry: safely, stored: safely, status: 502},
		{name: "502 after the effect", fault: fixed(minutestest.BadGateway().AfterEffect()), retry: safely, stored: safely, status: 502, effect: true},
		{name: "503", fault: reply(503), retry: safely, stored: safely, status: 503},
		{name: "503 for seconds", fault: func() minutestest.Fault { return retryAfter(503, "11") }, retry: safely, stored: safely, status: 503, retryAfter: 11 * time.Second},
		{name: "503 for an hour", fault: func() minutestest.Fault { return retryAfter(503, "3600") }, status: 503, retryAfter: time.Hour},
		{name: "504", fault: reply(504), retry: safely, stored: safely, status: 504},
		{name: "501", fault: reply(501), status: 501, stored: always},
		{name: "499", fault: reply(499), stored: safely, status: 499},
		{name: "408", fault: reply(408), stored: always, status: 408},
		{name: "409", fault: fixed(minutestest.Refuse(minutes.ErrExternalIDTaken)), stored: always, status: 409, code: minutes.ErrExternalIDTaken, storedCode: "OperationAborted", envelope: true},
		{name: "400", fault: fixed(minutestest.Refuse(minutes.ErrInvalidRequest)), status: 400, code: minutes.ErrInvalidRequest, storedCode: "InvalidArgument", envelope: true},
		{name: "401", fault: fixed(minutestest.Refuse(minutes.ErrUnauthenticated)), status: 401, code: minutes.ErrUnauthenticated, storedCode: "InvalidToken", envelope: true},
		{name: "403", fault: fixed(minutestest.Refuse(minutes.ErrInsufficientScope)), status: 403, code: minutes.ErrInsufficientScope, storedCode: "AccessDenied", envelope: true},
		{name: "404 of a gateway", fault: reply(404), status: 404},
		{name: "connection refused", dial: testbase.ErrRefused, retry: always, stored: always, is: syscall.ECONNREFUSED},
		{name: "no such host", dial: testbase.ErrNoHost, retry: always, stored: always},
		{name: "TLS: no certificate to trust", dial: testbase.ErrUntrusted, as: func(err error) bool {
			_, ok := errors.AsType[*tls.CertificateVerificationError](err)
			return ok
		}},
		{name: "TLS: no handshake", dial: testbase.ErrHandshake, as: func(err error) bool {
			_, ok := errors.AsType[tls.RecordHeaderError](err)
			return ok
		}},
		{name: "reset before the effect", fault: fixed(minutestest.Reset()), retry: safely, stored: safely, is: syscall.ECONNRESET},
		{name: "reset after the effect", fault: fixed(minutestest.LoseResponse()), retry: safely, stored: safely, is: syscall.ECONNRESET, effect: true},
		{name: "truncated", fault: fixed(minutestest.Truncate(5)), retry: safely, stored: safely, status: 2, is: io.ErrUnexpectedEOF, effect: true},
		{name: "no reply", fault: fixed(minutestest.Delay(10 * time.Minute)), retry: safely, stored: safely, as: timedOut},
		{name: "slow reply", fault: fixed(minutestest.Drip(time.Hour)), retry: safely, status: 2, as: timedOut, effect: true},
		{name: "redirect", fault: reply(302), status: 302, location: gone},
		{name: "redirect with body", fault: reply(307), status: 307, location: gone},
		{name: "redirect nowhere", fault: reply(301), status: 301, location: "http://%zz?X=" + testkit.Key},
	}
}

// retryAfter returns a gateway's response with Retry-After.
func retryAfter(status int, value string) minutestest.Fault {
	var f minutestest.Fault
	form := fmt.Sprintf(`{"kind":"respond","status":%d,"body":"try later","retry_after":%q}`, status, value)
	if err := f.UnmarshalJSON([]byte(form)); err != nil {
		panic(err)
	}
	return f
}

func timedOut(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout()
}

// apply makes the job fail this often; minutestest.Always for every attempt.
func (f failure) apply(srv *minutestest.Server, l *testkit.Line, op minutes.Operation, times int) *minutestest.Injection {
	l.Location = f.location
	if f.dial != nil {
		l.Dial, l.Dials = f.dial, times
		return nil
	}
	fault := f.fault()
	if op == minutes.OpUpload && f.envelope {
		fault = minutestest.RefuseUpload(f.status, f.storedCode)
	}
	return srv.Inject(minutestest.Match{Operation: op, Times: times}, fault).Optional()
}

// Each operation gets each failure, once and always. The test checks the number of
// requests and the caller's error.
func TestFailures_AreRetriedOnlyIfSafe(t *testing.T) {
	t.Parallel()
	for i, j := range testkit.Jobs() {
		for k, f := range failures() {
			if !testbase.Long() && (i+k)%3 != 0 {
				continue // each job meets other failures
			}
			for _, times := range []int{1, minutestest.Always} {
				name := j.Name + "/" + f.name + "/once"
				if times < 0 {
					name = j.Name + "/" + f.name + "/always"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { testFailure(t, j, f, times) })
				})
			}
		}
	}
}

func testFailure(t *testing.T, j testkit.Job, f failure, times int) {
	srv := minutestest.NewServer(t)
	id := j.MeetingFor(t, srv)
	before := len(srv.Requests(j.Op))
	l := &testkit.Line{Op: j.Op}
	c := l.On(srv)
	f.apply(srv, l, j.Op, times)

	err := j.Call(t.Context(), c, id)

	wantAttempts, fails := 1, true
	switch {
	case j.Upload() && f.effect, j.Op == "meetings.delete" && f.name == "slow reply":
		fails = false                      // the meeting has its audio; a 204 has no body that could be slow
		if j.Upload() && f.status >= 500 { // means that nothing was stored: the Client retries without a check
			wantAttempts = map[bool]int{true: 2, false: 5}[times == 1]
		}
	case !f.retried(j):
	case times == 1:
		wantAttempts, fails = 2, false
	default:
		wantAttempts = 5
	}
	if j.Upload() && wantAttempts == 5 { // or more, for at least a minute
		assert.GreaterOrEqual(t, l.Count(), 5)
		wantAttempts = l.Count()
	}
	assert.Equal(t, wantAttempts, l.Count(), "attempts")
	reached := wantAttempts
	switch {
	case f.dial != nil && times == 1:
		reached--
	case f.dial != nil:
		reached = 0
	}
	synctest.Wait()
	assert.Len(t, srv.Requests(j.Op), before+reached, "requests that reached the server")
	if !fails {
		require.NoError(t, err)
		if j.Upload() {
			state, _ := srv.Meeting(id)
			require.NotNil(t, state.Audio)
		}
		return
	}
	require.Error(t, err)
	if j.Upload() {
		requireStorageError(t, f, err)
		return
	}
	requireAPIError(t, j, f, err)
}

// retried reports whether the Client retries the job after the failure.
func (f failure) retried(j testkit.Job) bool {
	allowed := f.retry
	if j.Upload() {
		allowed = f.stored
	}
	return allowed == always || allowed == safely && j.Repeats
}

func requireAPIError(t *testing.T, j testkit.Job, f failure, err error) {
	t.Helper()
	e, ok := errors.AsType[*minutes.Error](err)
	require.True(t, ok, "%T: %v", err, err)
	switch {
	case f.status != 2:
		require.Equal(t, f.status, e.StatusCode)
	case j.Op == "meetings.delete":
		// A 204 has no body to truncate, so the first response is lost as a whole.
		// The others are truncated NOT_FOUND errors.
		require.Contains(t, []int{0, http.StatusNotFound}, e.StatusCode)
		return
	default:
		require.Equal(t, 2, e.StatusCode/100, "the status arrived before the response broke off")
	}
	require.Equal(t, f.code, e.Code)
	if f.code != "" {
		require.ErrorIs(t, err, f.code)
	}
	require.Equal(t, f.envelope, e.RequestID != "", "request id %q", e.RequestID)
	require.Equal(t, f.retryAfter, e.RetryAfter)
	require.NotEmpty(t, e.Method)
	require.NotEmpty(t, e.Path)
	requireCause(t, f, err)
}

func requireStorageError(t *testing.T, f failure, err error) {
	t.Helper()
	e, ok := errors.AsType[*minutes.StorageError](err)
	require.True(t, ok, "%T: %v", err, err)
	require.Equal(t, f.status, e.StatusCode)
	require.Equal(t, f.storedCode, e.Code)
	require.Equal(t, f.envelope, e.RequestID != "", "request id %q", e.RequestID)
	requireCause(t, f, err)
}

func requireCause(t *testing.T, f failure, err error) {
	t.Helper()
	if f.is != nil {
		require.ErrorIs(t, err, f.is)
	}
	if f.as != nil {
		require.True(t, f.as(err), "%v", err)
	}
	require.NotErrorIs(t, err, context.Canceled, "no caller canceled the context")
	require.NotErrorIs(t, err, context.DeadlineExceeded, "no caller set a deadline")
}

// ending is how a context ends while a job waits.
type ending struct {
	fault minutestest.Fault
	end   func(context.Context) (context.Context, context.CancelFunc)

	after  time.Duration // when the call returns
	is     []error       // what its error matches
	status int           // of the last response
}

var errShutdown = errors.New("shutting down")

var endings = map[string]ending{
	"canceled": {
		fault: minutestest.RateLimit("20"), end: cancelAfter(5*time.Second, nil),
		after: 5 * time.Second, is: []error{context.Canceled}, status: 429,
	},
	"canceled with a cause": {
		fault: minutestest.RateLimit("20"), end: cancelAfter(5*time.Second, errShutdown),
		after: 5 * time.Second, is: []error{context.Canceled, errShutdown}, status: 429,
	},
	"deadline before the retry": { // the response is worth more than the wait
		fault: minutestest.RateLimit("20"), end: deadlineAfter(19 * time.Second),
		status: 429,
	},
	"deadline within an attempt": {
		fault: minutestest.Delay(time.Hour), end: deadlineAfter(4 * time.Second),
		after: 4 * time.Second, is: []error{context.DeadlineExceeded},
	},
}

func cancelAfter(d time.Duration, cause error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(d, func() { cancel(cause) })
		return ctx, func() { cancel(nil) }
	}
}

func deadlineAfter(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

// A context that ends stops each operation at once, wherever it waits.
func TestContext_EndsBackOff(t *testing.T) {
	t.Parallel()
	for _, j := range testkit.Jobs() {
		for name, e := range endings {
			t.Run(j.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					id := j.MeetingFor(t, srv)
					srv.Inject(minutestest.Match{Operation: j.Op}, e.fault)
					l := &testkit.Line{Op: j.Op}
					c := l.On(srv)
					ctx, cancel := e.end(t.Context())
					defer cancel()
					start := time.Now()
					err := j.Call(ctx, c, id)
					require.Equal(t, e.after, time.Since(start))
					for _, is := range e.is {
						require.ErrorIs(t, err, is)
					}
					require.Equal(t, 1, l.Count())
					testkit.RequireStatus(t, err, e.status)
				})
			})
		}
	}
}
