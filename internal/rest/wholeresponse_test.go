package rest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestWholeResponse_HasTimeout(t *testing.T) {
	t.Parallel()
	// A body of net/http ends with the context of its attempt.
	half := testbase.ReaderFunc(func([]byte) (int, error) {
		time.Sleep(30*time.Second + 1)
		return 0, context.DeadlineExceeded
	})
	for name, a := range map[string]answer{
		"no response": {after: time.Hour},
		"half a body": {status: 200, body: half},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := newClient(&service{answers: []answer{a}}, noRetries).Call(t.Context(), get)
				require.Equal(t, 30*time.Second, time.Since(start).Truncate(time.Second))
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller has no deadline")
				require.ErrorContains(t, err, "no response within 30s")
			})
		})
	}
}

func TestWholeResponse_ReadsResponseUpToLimit(t *testing.T) {
	t.Parallel()
	buffer := new(bytes.Buffer) // for all, because it grows to megabytes
	for name, test := range map[string]struct {
		status    int
		max, want int64
	}{"2xx": {200, 0, 4 << 20}, "own limit": {200, 100, 100}, "error": {404, 0, 4 << 20}} {
		t.Run(name, func(t *testing.T) {
			endless := testbase.ReaderFunc(func(p []byte) (int, error) { return len(p), nil })
			resp, err := newClient(
				&service{answers: []answer{{status: test.status, body: endless}}},
			).Call(t.Context(), Request{Path: "/", MaxBody: test.max, Buffer: buffer})
			require.NoError(t, err)
			require.Equal(t, test.want, resp.CutAt)
			length := int64(len(resp.Body)) // Len would print megabytes
			require.Equal(t, test.want, length)
		})
	}
	resp, err := newClient(
		&service{answers: []answer{{status: 200, body: strings.NewReader("12345")}}},
	).Call(t.Context(), Request{Path: "/", MaxBody: 5})
	require.NoError(t, err)
	require.Zero(t, resp.CutAt)
	require.Equal(t, "12345", string(resp.Body))
}

// Even a body that was not read to its end is closed, because otherwise it would keep its
// connection.
func TestWholeResponse_ClosesBodyOverLimit(t *testing.T) {
	t.Parallel()
	body := &closing{Reader: testbase.ReaderFunc(func(p []byte) (int, error) { return len(p), nil })}
	c := newClient(testbase.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
	}))
	in := get
	in.MaxBody = 100
	_, err := c.Call(t.Context(), in)
	require.NoError(t, err)
	require.True(t, body.closed)
}

// closing is a body that knows whether it is closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestWholeResponse_ToleratesCarelessTransports(t *testing.T) {
	t.Parallel()
	endless := testbase.ReaderFunc(func([]byte) (int, error) { select {} })
	for name, test := range map[string]struct {
		resp   *http.Response
		status int
	}{
		"neither response nor error": {nil, 0},
		"no body, no header":         {&http.Response{StatusCode: 204}, 204},
		"another protocol": {
			&http.Response{StatusCode: 101, Body: io.NopCloser(endless)},
			101,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := newClient(
				testbase.RoundTripper(func(*http.Request) (*http.Response, error) { return test.resp, nil }),
				noRetries,
			).Call(t.Context(), get)
			require.Equal(t, test.status == 0, err != nil)
			require.Equal(t, test.status, resp.Status)
			require.Empty(t, resp.Body)
		})
	}
}

func TestWholeResponse_ReusesConnectionsAfterFailures(t *testing.T) {
	t.Parallel()
	statuses := []int{200, 500, 404, 409, 302, 401, 501, 200}
	var served, opened atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(served.Add(1)) - 1
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(statuses[n%len(statuses)])
		_, _ = io.WriteString(w, strings.Repeat("<p>no</p>", 10_000))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	base, err := url.Parse(srv.URL)
	require.NoError(t, err)
	c := newClient(testbase.OwnTransport(t), noRetries, func(cfg *Config) { cfg.Base = base })
	for range 20 {
		_, _ = c.Call(t.Context(), get)
	}
	require.EqualValues(t, 20, served.Load())
	require.EqualValues(t, 1, opened.Load())
}

// An abandoned attempt may still write its request when the next one begins. The race detector
// finds shared state.
func TestWholeResponse_MayStillWriteDuringTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		deaf := &http.Transport{
			DisableKeepAlives: true,
			DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
				conn, far := net.Pipe()
				go func() { // reads slowly, and never responds
					defer far.Close()
					p := make([]byte, 512)
					for {
						if _, err := far.Read(p); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				}()
				return conn, nil
			},
		}
		attempts := 0
		c := newClient(testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			attempts++
			if attempts <= 3 {
				return deaf.RoundTrip(req)
			}
			return (&service{answers: []answer{{status: 200}}}).RoundTrip(req)
		}))
		_, err := c.Call(
			t.Context(),
			Request{Method: http.MethodPut, Path: "/", Repeatable: true, Body: strings.Repeat("x", 50_000)},
		)
		require.NoError(t, err)
		require.Equal(t, 4, attempts)
		time.Sleep(time.Minute) // the servers notice
	})
}
