package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestNeverSent(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		testbase.ErrRefused, testbase.ErrNoHost, &net.DNSError{}, &net.OpError{Op: "proxyconnect", Err: io.EOF},
		testbase.ErrUntrusted, testbase.ErrHandshake, &url.Error{Err: &ProxyError{"proxy", "502 Bad Gateway"}},
	} {
		assert.True(t, NeverSent(err), "%v", err)
	}
	for _, err := range []error{
		nil,
		io.EOF,
		&net.OpError{Op: "write", Err: io.EOF},
		&net.OpError{Op: "read", Err: io.EOF},
		http.ErrServerClosed,
	} {
		assert.False(t, NeverSent(err), "%v", err)
	}
}

// Without a connection, nothing was sent, even if the error is one that a request could have.
func TestRetry_IfThereWasNoConnection(t *testing.T) {
	t.Parallel()
	// breakOff starts a server that closes each connection once it has read something.
	breakOff := func() *url.URL {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.Close()
			}
		}()
		return &url.URL{Scheme: "http", Host: listener.Addr().String()}
	}
	impatient := &http.Transport{TLSHandshakeTimeout: 1}
	for name, test := range map[string]struct {
		scheme string
		next   *http.Transport
		retry  bool
	}{
		"during the TLS handshake":  {"https", &http.Transport{}, true},
		"TLS handshake timeout":     {"https", impatient, true},
		"during CONNECT to a proxy": {"https", &http.Transport{Proxy: http.ProxyURL(breakOff())}, true},
		"after the request":         {"http", &http.Transport{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := breakOff()
			base.Scheme = test.scheme
			ctx, cancel := context.WithCancel(t.Context())
			var first AttemptReport
			c := newClient(APITransport(test.next), func(cfg *Config) {
				cfg.Base = base
				cfg.Observe = func(_ context.Context, a AttemptReport) {
					first = a
					cancel()
				}
			})
			resp, err := c.Call(ctx, create)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, test.retry, first.WillRetry, "%v", err)
			require.Equal(t, !test.retry, resp.MayHaveTakenEffect)
		})
	}
}

// A server that speaks HTTP/2 may refuse a request before it has looked at it, for example because it is
// about to stop. Such a request is repeated, whatever it is. One that the server may have processed is not.
func TestRetry_IfHTTP2RefusesTheStream(t *testing.T) {
	t.Parallel()
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	const reset = "\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00"
	const goAway = "\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // before any stream
	for name, test := range map[string]struct {
		frame string
		retry bool
	}{
		"refused":        {reset + "\x07", true},
		"going away":     {goAway, true},
		"internal error": {reset + "\x02", false},
		"protocol error": {reset + "\x01", false},
	} {
		for _, body := range []any{[]string{"a"}, nil} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				certificate := httptest.NewUnstartedServer(nil)
				certificate.EnableHTTP2 = true
				certificate.StartTLS()
				certificate.Close()
				listener, err := tls.Listen("tcp", "127.0.0.1:0", certificate.TLS)
				require.NoError(t, err)
				defer listener.Close()
				go func() {
					for {
						conn, err := listener.Accept()
						if err != nil {
							return
						}
						go func() {
							defer conn.Close()
							_, _ = io.WriteString(conn, settings)
							received := []byte{}
							for !bytes.Contains(received, []byte("\x01\x04\x00\x00\x00\x01")) { // HEADERS of stream 1
								part := make([]byte, 1024)
								n, err := conn.Read(part)
								if err != nil {
									return
								}
								received = append(received, part[:n]...)
							}
							_, _ = io.WriteString(conn, test.frame)
							_, _ = io.Copy(io.Discard, conn)
						}()
					}
				}()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var first AttemptReport
				next := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
				c := newClient(APITransport(next), func(cfg *Config) {
					cfg.Base = &url.URL{Scheme: "https", Host: listener.Addr().String()}
					cfg.Observe = func(_ context.Context, a AttemptReport) {
						first = a
						cancel()
					}
				})
				_, err = c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/projects", Body: body})
				require.Error(t, err)
				require.Equal(t, test.retry, first.WillRetry, "%v", first.Err)
			})
		}
	}
}

// TLS failures and a proxy's 4xx are permanent. A proxy's 5xx is not. None of them reached the
// server.
func TestMisconfigured_ForTLSAndProxies(t *testing.T) {
	t.Parallel()
	status := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	says := func(status string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) {
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
	plain := (*httptest.Server).Start
	secure := (*httptest.Server).StartTLS
	proxy := func(h http.Handler) *http.Transport {
		return &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: serve(plain, 0, h).Host})}
	}
	newer := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13}}
	otherCipher := &http.Transport{TLSClientConfig: &tls.Config{ // the server has an RSA key
		MaxVersion:   tls.VersionTLS12,
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	}}
	for name, test := range map[string]struct {
		server *url.URL
		next   *http.Transport
		text   string
		want   bool
	}{
		"unknown certificate": {serve(secure, 0, status(200)), &http.Transport{}, "certificate", true},
		"older TLS":           {serve(secure, tls.VersionTLS12, status(200)), newer, "protocol version", true},
		"no common cipher":    {serve(secure, 0, status(200)), otherCipher, "handshake failure", true},
		"no TLS":              {serve(plain, 0, status(200)), &http.Transport{}, "HTTP response to HTTPS client", true},
		"proxy, 407":          {nil, proxy(status(407)), "connection: 407 Proxy Authentication Required", true},
		"proxy, its own 403":  {nil, proxy(says("403 Filtered")), "rejected the connection: 403 Filtered", true},
		"proxy, 502":          {nil, proxy(status(502)), "rejected the connection: 502 Bad Gateway", false},
		"no proxy": {
			nil, &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})}, "proxyconnect",
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := &url.URL{Scheme: "https", Host: "minutes.example"}
			if test.server != nil {
				base = test.server
			}
			for _, next := range []http.RoundTripper{APITransport(test.next), StorageTransport(test.next)} {
				_, err := newClient(next, noRetries, func(cfg *Config) { cfg.Base = base }).Call(t.Context(), create)
				require.ErrorContains(t, err, test.text)
				require.Equal(t, test.want, Misconfigured(err), "%v", err)
				require.True(t, NeverSent(err))
			}
		})
	}
	header := http.Header{"X-Trace": {"a\nb"}}
	_, err := newClient(
		&http.Transport{},
	).Call(t.Context(), Request{Method: http.MethodGet, Path: "/", Repeatable: true, Header: header})
	require.True(t, Misconfigured(err), "%v", err)
	for text, want := range map[string]bool{
		"tls: certificate required":     true, // and other complaints about the client's certificate
		"tls: bad certificate":          true,
		"tls: internal error":           false, // of the server's, which may be temporary
		"tls: bad record MAC":           false, // of the network
		"tls: use of closed connection": false,
		"a certificate outside of TLS":  false,
		"unsupported protocol version":  false,
	} {
		require.Equal(t, want, Misconfigured(&net.OpError{Op: "remote error", Err: errors.New(text)}), text)
	}
	require.False(t, Misconfigured(io.EOF))
	require.False(t, Misconfigured(nil))
}
