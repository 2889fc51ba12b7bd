package backoff_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

type closed struct {
	io.Reader
	times int
}

func (c *closed) Close() error { c.times++; return nil }

// RoundTrip returns an error, or a response whose body can be read and closed, whatever
// the transport returns.
func TestRoundTrip_ReturnsErrorOrReadableResponse(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	body := new(closed)
	for name, test := range map[string]struct {
		resp *http.Response
		err  error
		want string // the error
		shut int
	}{
		"a response":                {resp: &http.Response{StatusCode: 200, Body: body}},
		"a response without a body": {resp: &http.Response{StatusCode: 204}},
		"another protocol":          {resp: &http.Response{StatusCode: 101, Body: body}, shut: 1},
		"another, without a body":   {resp: &http.Response{StatusCode: 101}},
		"an error":                  {err: lost, want: "lost"},
		"both":                      {resp: &http.Response{StatusCode: 200}, err: lost, want: "lost"},
		"neither":                   {want: "neither a response nor an error"},
	} {
		t.Run(name, func(t *testing.T) {
			body.times = 0
			resp, err := backoff.RoundTrip(testbase.RoundTripper(func(*http.Request) (*http.Response, error) { return test.resp, test.err }), &http.Request{})
			require.Equal(t, test.shut, body.times)
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
				require.Nil(t, resp)
				return
			}
			require.NoError(t, err)
			require.NotNil(t, resp.Body)
			require.NoError(t, resp.Body.Close())
		})
	}
}

// A connection that was never made is not a connection that was lost.
func TestConn_NeverMade(t *testing.T) {
	t.Parallel()
	untraced := new(backoff.Conn)
	require.Empty(t, untraced.Hop())
	require.False(t, untraced.NeverMade(io.EOF))
	require.True(t, untraced.NeverMade(&net.OpError{Op: "dial", Err: io.EOF}))
	require.True(t, untraced.NeverMade(&net.OpError{Op: "proxyconnect", Err: io.EOF}))
	require.True(t, untraced.NeverMade(&tls.CertificateVerificationError{}))
	require.False(t, untraced.NeverMade(&net.OpError{Op: "write", Err: io.EOF}))

	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer srv.Close()
	tr := &http.Transport{}
	for _, alive := range []bool{true, false} {
		if !alive {
			srv.Close()
		}
		conn := new(backoff.Conn)
		req, err := http.NewRequestWithContext(conn.Trace(t.Context()), http.MethodGet, srv.URL, nil)
		require.NoError(t, err)
		_, err = backoff.RoundTrip(tr, req)
		require.Error(t, err)
		require.Equal(t, srv.Listener.Addr().String(), conn.Hop())
		require.Equal(t, !alive, conn.NeverMade(err))
		require.Equal(t, !alive, conn.NeverMade(io.EOF), "whatever the error says")
		require.Equal(t, !alive, conn.NeverMade(&net.OpError{Op: "dial", Err: io.EOF}), "of another way that was tried")
	}
}

func TestUntrusted_OnlyForCertificates(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	conn := new(backoff.Conn)
	req, err := http.NewRequestWithContext(conn.Trace(t.Context()), http.MethodGet, srv.URL, nil)
	require.NoError(t, err)
	_, err = backoff.RoundTrip(&http.Transport{}, req)
	require.True(t, backoff.Untrusted(err), "%v", err)
	require.True(t, conn.NeverMade(err))
	require.False(t, backoff.Untrusted(io.EOF))
}

// A transport that finds no address for its proxy sends nothing. Its error may hold the
// proxy's password.
func TestRoundTrip_HidesPasswordOfInvalidProxy(t *testing.T) {
	t.Parallel()
	next := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New(`bad "http://user:pass-word@proxy"`) }}
	conn := new(backoff.Conn)
	req, err := http.NewRequestWithContext(conn.Trace(t.Context()), http.MethodGet, "https://minutes.example", http.NoBody)
	require.NoError(t, err)
	_, err = backoff.RoundTrip(next, req)
	require.ErrorContains(t, err, "proxy")
	require.NotContains(t, err.Error(), "pass-word")
	require.True(t, conn.NeverMade(err))
}
