package contract_test

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

// repeat says which requests are retried after a failure.
type repeat int

const (
	never  repeat = iota // none: the failure is final
	always               // all: the service did nothing
	safely               // those that may be made twice: the failed one may have taken effect
)

// failure is one column of the matrix.
type failure struct {
	name   string
	fault  func() minutestest.Fault // of the server
	dial   error                    // or of the way to it
	repeat repeat
	stored repeat // the same for the PUT to storage

	// The caller's error if the failure persists.
	status     int // 0: no response
	code       minutes.Code
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
		return fixed(minutestest.Reply(status, "text/html", "<html><body>"+http.StatusText(status)+"</body></html>"))
	}
	const gone = "https://elsewhere.example/v1/employees"
	return []failure{
		{name: "429", fault: fixed(minutestest.RateLimit("")), repeat: always, stored: always, status: 429, code: minutes.ErrRateLimited},
		{name: "429 for seconds", fault: fixed(minutestest.RateLimit("7")), repeat: always, stored: always, status: 429, code: minutes.ErrRateLimited, retryAfter: 7 * time.Second},
		{name: "429 until a date", fault: func() minutestest.Fault {
			return minutestest.RateLimit(time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat))
		}, repeat: always, stored: always, status: 429, code: minutes.ErrRateLimited}, // which has passed by the last try
		{name: "429 for an hour", fault: fixed(minutestest.RateLimit("3600")), status: 429, code: minutes.ErrRateLimited, retryAfter: time.Hour},
		{name: "500", fault: fixed(minutestest.Refuse(minutes.ErrInternal)), repeat: safely, stored: safely, status: 500, code: minutes.ErrInternal, storedCode: "InternalError", envelope: true},
		{name: "502 with a page", fault: fixed(minutestest.BadGateway()), repeat: safely, stored: safely, status: 502},
		{name: "502 after the effect", fault: fixed(minutestest.BadGateway().AfterEffect()), repeat: safely, stored: safely, status: 502, effect: true},
		{name: "503", fault: reply(503), repeat: safely, stored: safely, status: 503},
		{name: "503 for seconds", fault: func() minutestest.Fault { return retryAfter(503, "11") }, repeat: safely, stored: safely, status: 503, retryAfter: 11 * time.Second},
		{name: "503 for an hour", fault: func() minutestest.Fault { return retryAfter(503, "3600") }, status: 503, retryAfter: time.Hour},
		{name: "504", fault: reply(504), repeat: safely, stored: safely, status: 504},
		{name: "501", fault: reply(501), status: 501},
		{name: "499", fault: reply(499), stored: safely, status: 499},
		{name: "408", fault: reply(408), stored: always, status: 408},
		{name: "409", fault: fixed(minutestest.Refuse(minutes.ErrExternalIDTaken)), stored: always, status: 409, code: minutes.ErrExternalIDTaken, storedCode: "OperationAborted", envelope: true},
		{name: "400", fault: fixed(minutestest.Refuse(minutes.ErrInvalidRequest)), status: 400, code: minutes.ErrInvalidRequest, storedCode: "InvalidArgument", envelope: true},
		{name: "401", fault: fixed(minutestest.Refuse(minutes.ErrUnauthenticated)), status: 401, code: minutes.ErrUnauthenticated, storedCode: "InvalidToken", envelope: true},
		{name: "403", fault: fixed(minutestest.Refuse(minutes.ErrInsufficientScope)), status: 403, code: minutes.ErrInsufficientScope, storedCode: "AccessDenied", envelope: true},
		{name: "404 of a gateway", fault: reply(404), status: 404},
		{name: "connection refused", dial: testbase.ErrRefused, repeat: always, stored: always, is: syscall.ECONNREFUSED},
		{name: "no such host", dial: testbase.ErrNoHost, repeat: always, stored: always},
		{name: "TLS: no certificate to trust", dial: testbase.ErrUntrusted, as: func(err error) bool {
			_, ok := errors.AsType[*tls.CertificateVerificationError](err)
			return ok
		}},
		{name: "TLS: no handshake", dial: testbase.ErrHandshake, as: func(err error) bool {
			_, ok := errors.AsType[tls.RecordHeaderError](err)
			return ok
		}},
		{name: "reset before the effect", fault: fixed(minutestest.Reset()), repeat: safely, stored: safely, is: syscall.ECONNRESET},
		{name: "reset after the effect", fault: fixed(minutestest.LoseReply()), repeat: safely, stored: safely, is: syscall.ECONNRESET, effect: true},
		{name: "truncated", fault: fixed(minutestest.Truncate(5)), repeat: safely, stored: safely, status: 2, is: io.ErrUnexpectedEOF, effect: true},
		{name: "no reply", fault: fixed(minutestest.Delay(10 * time.Minute)), repeat: safely, stored: safely, as: timedOut},
		{name: "slow reply", fault: fixed(minutestest.Drip(time.Hour)), repeat: safely, status: 2, as: timedOut, effect: true},
		{name: "redirect", fault: reply(302), status: 302, location: gone},
		{name: "redirect with body", fault: reply(307), status: 307, location: gone},
		{name: "redirect nowhere", fault: reply(301), status: 301, location: "http://%zz?X=" + testkit.Key},
	}
}

// retryAfter is an answer of a gateway with the header.
func retryAfter(status int, value string) minutestest.Fault {
	var f minutestest.Fault
	form := fmt.Sprintf(`{"kind":"reply","status":%d,"body":"try later","retry_after":%q}`, status, value)
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

// apply lets the job meet the failure, once or for good.
func (f failure) apply(srv *minutestest.Server, l *testkit.Line, op minutes.Operation, times int) *minutestest.Injection {
	l.Location = f.location
	if f.dial != nil {
		l.Dial, l.Dials = f.dial, times
		return nil
	}
	fault := f.fault()
	if op == minutestest.OpUpload && f.envelope {
		fault = minutestest.RefuseUpload(f.status, f.storedCode)
	}
	return srv.Inject(minutestest.Match{Operation: op, Times: times}, fault).Optional()
}

// Each operation meets each failure, once and for good: how many requests it makes, and
// what the caller gets.
func TestFailures_AreRetriedOnlyIfSafe(t *testing.T) {
	t.Parallel()
	for _, j := range testkit.Jobs() {
		for _, f := range failures() {
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

	wantTries, fails := 1, true
	switch {
	case j.Upload() && f.effect, j.Op == "meetings.delete" && f.name == "slow reply":
		fails = false                      // the meeting tells that the testkit.Audio is there; 204 has no body to be slow
		if j.Upload() && f.status >= 500 { // for storage, nothing was stored: the Client does not check before it retries
			wantTries = map[bool]int{true: 2, false: 5}[times == 1]
		}
	case !f.mayBeRepeated(j):
	case times == 1:
		wantTries, fails = 2, false
	default:
		wantTries = 5
	}
	assert.Equal(t, wantTries, l.Count(), "tries")
	reached := wantTries
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

// mayBeRepeated reports whether the job may be repeated after the failure.
func (f failure) mayBeRepeated(j testkit.Job) bool {
	allowed := f.repeat
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
		// 204 has no body to break off, so the first reply is lost as a whole;
		// the others are half a NOT_FOUND.
		require.Contains(t, []int{0, http.StatusNotFound}, e.StatusCode)
		return
	default:
		require.Equal(t, 2, e.StatusCode/100, "the reply broke off, but its status had come")
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
	require.NotErrorIs(t, err, context.Canceled, "nobody has cancelled anything")
	require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller has set no deadline")
}

// A context that ends ends each operation at once, wherever it waits.
func TestContext_EndsBackOff(t *testing.T) {
	t.Parallel()
	shutdown := errors.New("shutting down")
	for _, j := range testkit.Jobs() {
		for name, end := range map[string]func(context.Context) (context.Context, func()){
			"cancelled": func(ctx context.Context) (context.Context, func()) {
				ctx, cancel := context.WithCancel(ctx)
				return ctx, cancel
			},
			"cancelled for a cause": func(ctx context.Context) (context.Context, func()) {
				ctx, cancel := context.WithCancelCause(ctx)
				return ctx, func() { cancel(shutdown) }
			},
		} {
			t.Run(j.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					id := j.MeetingFor(t, srv)
					srv.Inject(minutestest.Match{Operation: j.Op}, minutestest.RateLimit("20"))
					l := &testkit.Line{Op: j.Op}
					c := l.On(srv)
					ctx, cancel := end(t.Context())
					start := time.Now()
					time.AfterFunc(5*time.Second, cancel)
					err := j.Call(ctx, c, id)
					require.Equal(t, 5*time.Second, time.Since(start), "at once")
					require.ErrorIs(t, err, context.Canceled)
					if name == "cancelled for a cause" {
						require.ErrorIs(t, err, shutdown)
					}
					require.Equal(t, 1, l.Count())
					testkit.RequireStatus(t, err, 429)
				})
			})
		}
		t.Run(j.Name+"/deadline before the retry", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := j.MeetingFor(t, srv)
				srv.Inject(minutestest.Match{Operation: j.Op}, minutestest.RateLimit("20"))
				l := &testkit.Line{Op: j.Op}
				c := l.On(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 19*time.Second)
				defer cancel()
				start := time.Now()
				err := j.Call(ctx, c, id)
				require.Zero(t, time.Since(start), "the response is worth more than the wait")
				require.Equal(t, 1, l.Count())
				testkit.RequireStatus(t, err, 429)
			})
		})
		t.Run(j.Name+"/deadline within an attempt", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := j.MeetingFor(t, srv)
				srv.Inject(minutestest.Match{Operation: j.Op}, minutestest.Delay(time.Hour))
				l := &testkit.Line{Op: j.Op}
				c := l.On(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				start := time.Now()
				err := j.Call(ctx, c, id)
				require.Equal(t, 4*time.Second, time.Since(start))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 1, l.Count())
				testkit.RequireStatus(t, err, 0)
			})
		})
	}
}
