package rest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

const key = "key_0123456789/abc+def=="

func newClient(t *testing.T, base string, rt http.RoundTripper, opts ...minutes.Option) *minutes.Client {
	t.Helper()
	c, err := minutes.New(base, key, append([]minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: rt})}, opts...)...)
	require.NoError(t, err)
	return c
}

// A transport that tries a second server when the first one hangs up may have had
// the request carried out by the first: that the second was never reached proves
// nothing.
func TestFailOver(t *testing.T) {
	t.Parallel()
	var done atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		done.Add(1)
		panic(http.ErrAbortHandler) // the reply is lost
	}))
	defer srv.Close()
	first := http.DefaultTransport.(*http.Transport).Clone()
	defer first.CloseIdleConnections()
	second := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, testbase.ErrRefused }}
	failOver := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		again := req.Clone(req.Context())
		again.Body = body
		if resp, err := first.RoundTrip(req); err == nil {
			return resp, nil
		}
		return second.RoundTrip(again)
	})
	_, err := newClient(t, srv.URL, failOver, minutes.WithRetries(4, 0, 0)).Members.Create(t.Context(), &minutes.MemberCreateParams{Name: "Fay"})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.EqualValues(t, 1, done.Load())
}

// A transport that says nothing about its connections, and fails to dial, has
// sent nothing.
func TestDialThatIsNotTraced(t *testing.T) {
	t.Parallel()
	attempts := 0
	_, err := newClient(t, "https://minutes.example", testbase.RoundTripper(func(*http.Request) (*http.Response, error) {
		attempts++
		return nil, testbase.ErrRefused
	}), minutes.WithRetries(4, 0, 0)).Members.Create(t.Context(), &minutes.MemberCreateParams{Name: "Fay"})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Equal(t, 5, attempts)
}

// A connection of the pool that was lost says nothing about a new one: a request
// that got it may have been read.
func TestLostConnectionIsNoMissingOne(t *testing.T) {
	t.Parallel()
	for _, lost := range []error{io.EOF, syscall.ECONNRESET, errors.New("http: server closed idle connection")} {
		attempts := 0
		_, err := newClient(t, "https://minutes.example", testbase.RoundTripper(func(*http.Request) (*http.Response, error) {
			attempts++
			return nil, lost
		}), minutes.WithRetries(4, 0, 0)).Projects.Create(t.Context(), "Apollo")
		require.ErrorIs(t, err, lost)
		require.Equal(t, 1, attempts)
	}
}

// A Retry-After in a far future holds the Client back for a minute, as any that
// is too long, and the caller is told at once.
func TestRetryAfterFarAway(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"Fri, 31 Dec 9999 23:59:59 GMT", "9223372036854775807", "2147483647"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				status := http.StatusTooManyRequests
				c := newClient(t, "https://minutes.example", testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					defer func() { status = http.StatusOK }()
					return &http.Response{
						StatusCode: status, Header: http.Header{"Retry-After": {value}}, Request: req,
						Body: io.NopCloser(strings.NewReader(`{"credits_remaining":1,"transcribe_seconds_remaining":1}`)),
					}, nil
				}))
				start := time.Now()
				_, err := c.Usage.Get(t.Context())
				require.ErrorIs(t, err, minutes.ErrRateLimited)
				require.Zero(t, time.Since(start))
				e, ok := errors.AsType[*minutes.Error](err)
				require.True(t, ok)
				require.Greater(t, e.RetryAfter, 10*365*24*time.Hour)
				_, err = c.Usage.Get(t.Context())
				require.NoError(t, err)
				require.Equal(t, time.Minute, time.Since(start))
			})
		})
	}
}

// Without a least wait, repeats still draw apart.
func TestNoLeastWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		c := newClient(t, "https://minutes.example", testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			at = append(at, time.Now())
			return nil, io.ErrUnexpectedEOF
		}), minutes.WithRetries(8, 0, time.Minute))
		for range 50 {
			at = nil
			_, err := c.Usage.Get(t.Context())
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Len(t, at, 9)
			for n := range 8 {
				wait := at[n+1].Sub(at[n])
				assert.LessOrEqual(t, wait, min(time.Minute, time.Second/2<<(n+1)))
			}
			assert.Greater(t, at[8].Sub(at[0]), time.Second)
		}
	})
}

// What may be repeated stays with the operation, whatever the method of its route.
func TestRepeatsStayWithTheOperation(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		attempts := 0
		c := newClient(t, "https://minutes.example", testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			attempts++
			assert.Equal(t, method, req.Method)
			return nil, io.ErrUnexpectedEOF
		}), minutes.WithRetries(4, 0, 0), minutes.WithRoute(minutes.OpProjectsCreate, method, "/p"), minutes.WithRoute(minutes.OpUsageGet, method, "/u"))
		_, err := c.Projects.Create(t.Context(), "Apollo")
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, 1, attempts, method)
		_, err = c.Usage.Get(t.Context())
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, 6, attempts, method)
	}
}
