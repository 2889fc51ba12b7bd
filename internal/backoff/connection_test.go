package backoff

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
			resp, err := RoundTrip(testbase.RoundTripper(func(*http.Request) (*http.Response, error) { return test.resp, test.err }), &http.Request{})
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

// NeverMade distinguishes a request that got no connection from one that lost its connection.
func TestConn_NeverMade(t *testing.T) {
	t.Parallel()
	untraced := new(Conn)
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
		conn := new(Conn)
		req, err := http.NewRequestWithContext(conn.Trace(t.Context()), http.MethodGet, srv.URL, nil)
		require.NoError(t, err)
		_, err = RoundTrip(tr, req)
		require.Error(t, err)
		require.Equal(t, !alive, conn.NeverMade(err))
		require.Equal(t, !alive, conn.NeverMade(io.EOF), "whatever the error says")
		require.Equal(t, !alive, conn.NeverMade(&net.OpError{Op: "dial", Err: io.EOF}), "the transport dialed again")
	}
}

// TLS failures and a proxy's 4xx are permanent. A proxy's 5xx is not.
func TestPermanent_ForTLSAndProxies(t *testing.T) {
	t.Parallel()
	answer := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	says := func(status string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) && status != "" {
				_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\n\r\n")
			}
			_ = conn.Close()
		})
	}
	serve := func(start func(*httptest.Server), version uint16, h http.Handler) *url.URL {
		srv := httptest.NewUnstartedServer(h)
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.TLS = &tls.Config{MaxVersion: version}
		start(srv)
		t.Cleanup(srv.Close)
		u, err := url.Parse(srv.URL)
		require.NoError(t, err)
		return &url.URL{Scheme: "https", Host: u.Host}
	}
	plain, secure := (*httptest.Server).Start, (*httptest.Server).StartTLS
	proxied := func(h http.Handler, hook bool) *http.Transport {
		proxy := serve(plain, 0, h)
		tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy.Host, User: url.UserPassword("user", "pass-word")})}
		if hook {
			tr.OnProxyConnectResponse = CheckProxy
		}
		return tr
	}
	newer := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13}}
	for name, test := range map[string]struct {
		server *url.URL
		next   *http.Transport
		text   string
		want   bool
	}{
		"unknown certificate":        {serve(secure, 0, answer(200)), &http.Transport{}, "certificate", true},
		"older TLS":                  {serve(secure, tls.VersionTLS12, answer(200)), newer, "protocol version", true},
		"no TLS":                     {serve(plain, 0, answer(200)), &http.Transport{}, "TLS handshake", true},
		"proxy, 407":                 {nil, proxied(answer(407), false), "rejected the connection: 407 Proxy Authentication Required", true},
		"proxy, 401":                 {nil, proxied(answer(401), false), "rejected the connection: 401 Unauthorized", true},
		"proxy, 403":                 {nil, proxied(answer(403), true), "rejected the connection: 403 Forbidden", true},
		"proxy, 407, with the hook":  {nil, proxied(answer(407), true), "rejected the connection: 407 Proxy Authentication Required", true},
		"proxy that gives a reason":  {nil, proxied(says("403 Filtered by policy"), false), "through the proxy 127.0.0.1:", false},
		"proxy, its own, with hook":  {nil, proxied(says("403 Filtered"), true), "rejected the connection: 403 Filtered", true},
		"proxy that hangs up":        {nil, proxied(says(""), false), "EOF", false},
		"proxy that sends nonsense":  {nil, proxied(says("x y"), false), "malformed HTTP status code", false},
		"proxy, 503":                 {nil, proxied(answer(503), false), "rejected the connection: 503 Service Unavailable", false},
		"proxy, 502, with the hook":  {nil, proxied(answer(502), true), "rejected the connection: 502 Bad Gateway", false},
		"connection lost by a proxy": {nil, &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})}, "proxyconnect", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := "https://minutes.example"
			if test.server != nil {
				target = test.server.String()
			}
			conn := new(Conn)
			req, err := http.NewRequestWithContext(conn.Trace(t.Context()), http.MethodGet, target, nil)
			require.NoError(t, err)
			_, err = RoundTrip(test.next, req)
			require.ErrorContains(t, err, test.text)
			require.Equal(t, test.want, Permanent(err), "%v", err)
			require.True(t, conn.NeverMade(err))
			require.Equal(t, test.server != nil, strings.Contains(err.Error(), "connecting to "+strings.TrimPrefix(target, "https://")), "%v", err)
			if !strings.HasPrefix(name, "proxy that") { // which may have answered the request
				require.True(t, new(Conn).NeverMade(err), "without a trace")
			}
			require.NotContains(t, err.Error(), "pass-word")
			require.Equal(t, test.next.Proxy != nil, strings.Contains(err.Error(), "the proxy 127.0.0.1:"), "%v", err)
			if proxy, ok := errors.AsType[*ProxyError](err); ok {
				require.Equal(t, test.want, proxy.Status < "5")
			}
		})
	}
	require.False(t, Permanent(io.EOF))
	require.False(t, Permanent(nil))
	require.False(t, Permanent(errors.New("unsupported protocol version")))
}

// A transport that finds no address for its proxy sends nothing. Its error may hold the
// proxy's password.
func TestRoundTrip_HidesPasswordOfInvalidProxy(t *testing.T) {
	t.Parallel()
	next := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New(`bad "http://user:pass-word@proxy"`) }}
	conn := new(Conn)
	req, err := http.NewRequestWithContext(conn.Trace(t.Context()), http.MethodGet, "https://minutes.example", http.NoBody)
	require.NoError(t, err)
	_, err = RoundTrip(next, req)
	require.ErrorContains(t, err, "proxy")
	require.NotContains(t, err.Error(), "pass-word")
	require.True(t, conn.NeverMade(err))
}
