package rest

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// secureServer is a server for HTTP/2 and HTTP/1.1, whose header Proto says which one it was.
func secureServer(t *testing.T) *httptest.Server {
	srv := httptest.NewUnstartedServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Proto", r.Proto) }),
	)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func TestTransports_ChooseProtocol(t *testing.T) {
	t.Parallel()
	srv := secureServer(t)
	tlsConfig := srv.Client().Transport.(*http.Transport).TLSClientConfig
	likeDefault := http.DefaultTransport.(*http.Transport).Clone()
	likeDefault.TLSClientConfig = tlsConfig.Clone()
	h1 := new(http.Protocols)
	h1.SetHTTP1(true)
	for name, test := range map[string]struct {
		transport *http.Transport
		api       string
	}{
		"the server's own": {srv.Client().Transport.(*http.Transport), "HTTP/2.0"},
		"like the default": {likeDefault, "HTTP/2.0"},
		"with h2 in its TLS": {
			&http.Transport{
				ForceAttemptHTTP2: true,
				TLSClientConfig:   &tls.Config{RootCAs: tlsConfig.RootCAs, NextProtos: []string{"h2", "http/1.1"}},
			},
			"HTTP/2.0",
		},
		"without HTTP/2":            {&http.Transport{TLSClientConfig: tlsConfig.Clone()}, "HTTP/1.1"},
		"with protocols of its own": {&http.Transport{Protocols: h1, TLSClientConfig: tlsConfig.Clone()}, "HTTP/1.1"},
		"with pings of its own": {
			&http.Transport{
				ForceAttemptHTTP2: true,
				HTTP2:             &http.HTTP2Config{SendPingTimeout: time.Hour},
				TLSClientConfig:   tlsConfig.Clone(),
			},
			"HTTP/2.0",
		},
		"with its HTTP/2 turned off": {
			&http.Transport{
				TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{},
				TLSClientConfig: tlsConfig.Clone(),
			},
			"HTTP/1.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := test.transport.Clone() // which initialises what Clone does
			api := APITransport(test.transport).(*http.Transport)
			storage := StorageTransport(test.transport).(*http.Transport)
			defer api.CloseIdleConnections()
			defer storage.CloseIdleConnections()
			for next, want := range map[*http.Transport]string{api: test.api, storage: "HTTP/1.1"} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, http.NoBody)
				require.NoError(t, err)
				resp, err := next.RoundTrip(req)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, want, resp.Header.Get("Proto"))
				require.NotSame(t, test.transport, next)
				require.Positive(t, next.IdleConnTimeout, "a discarded Client leaves no connections behind")
			}
			require.Positive(t, storage.ExpectContinueTimeout)
			require.Positive(t, api.HTTP2.PingTimeout+api.HTTP2.SendPingTimeout)
			want := 15 * time.Second
			if before.HTTP2 != nil && before.HTTP2.SendPingTimeout > 0 {
				want = before.HTTP2.SendPingTimeout
			}
			require.Equal(t, want, api.HTTP2.SendPingTimeout)
			requireUnchanged(t, before, test.transport)
		})
	}
}

// requireUnchanged compares the exported fields of two transports, except those that Clone itself
// initialises.
func requireUnchanged(t *testing.T, before, after *http.Transport) {
	initialised := []string{"HTTP2", "TLSNextProto", "TLSClientConfig"}
	for field, value := range reflect.ValueOf(before).Elem().Fields() {
		now := reflect.ValueOf(after).Elem().FieldByIndex(field.Index)
		switch {
		case !field.IsExported(), slices.Contains(initialised, field.Name):
		case value.Kind() == reflect.Func:
			require.Equal(t, value.Pointer(), now.Pointer(), field.Name)
		default:
			require.Equal(t, value.Interface(), now.Interface(), field.Name)
		}
	}
	if before.TLSClientConfig != nil {
		require.Equal(t, before.TLSClientConfig.NextProtos, after.TLSClientConfig.NextProtos)
	}
}

func TestTransports_Defaults(t *testing.T) {
	t.Parallel()
	api := APITransport(nil)
	storage := StorageTransport(nil)
	require.Same(t, api, APITransport(nil), "one pool of connections for all Clients")
	require.Same(t, storage, StorageTransport(nil))
	require.NotSame(t, api, storage)
	require.Equal(t, 15*time.Second, APITransport(nil).(*http.Transport).HTTP2.SendPingTimeout)
	require.False(t, StorageTransport(nil).(*http.Transport).Protocols.HTTP2())
	custom := testbase.RoundTripper(nil)
	require.IsType(t, custom, APITransport(custom))
	require.IsType(t, custom, StorageTransport(custom))
}

// forgetful is a server that answers the requests of each connection, until the connection has been idle
// for a while. Then it reads another request, and closes the connection without an answer, which nobody
// can tell from an answer that was lost.
type forgetful struct {
	idle time.Duration

	mu       sync.Mutex
	dials    int
	requests int
}

func (f *forgetful) dial(context.Context, string, string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	near, far := net.Pipe()
	go f.serve(far)
	return near, nil
}

func (f *forgetful) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	last := time.Now()
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		f.mu.Lock()
		f.requests++
		f.mu.Unlock()
		if time.Since(last) >= f.idle {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		last = time.Now()
	}
}

// A request that must not be repeated never goes over a connection that has been idle for a second,
// because the server may just be closing it. Others do.
func TestTransports_KeepRequestsOffIdleConnections(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		request Request
		after   time.Duration // the first request
		dials   int
	}{
		"a create, at once":       {create, 0, 1},
		"a create, after a while": {create, maxIdle + 1, 2},
		"a create, after minutes": {create, 80 * time.Second, 2},
		"a GET, after a minute":   {get, time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &forgetful{idle: 2 * time.Minute}
				if !test.request.Repeatable {
					server.idle = time.Second
				}
				c := newClient(APITransport(&http.Transport{DialContext: server.dial}), noRetries)
				c.Base.Scheme = "http"
				for range 2 {
					_, err := c.Call(t.Context(), test.request)
					require.NoError(t, err)
					time.Sleep(test.after)
				}
				require.Equal(t, test.dials, server.dials)
				require.Equal(t, 2, server.requests)
				time.Sleep(2 * time.Minute) // until all connections are closed
			})
		})
	}
}

// http.Transport repeats a request by itself if it is lost on a connection that had been used before and
// the request has the header Idempotency-Key, even a POST. Only the Client may decide that.
func TestTransports_RepeatNothing(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		for _, body := range []any{[]string{"a"}, nil} {
			synctest.Test(t, func(t *testing.T) {
				server := &forgetful{idle: time.Millisecond}
				c := newClient(APITransport(&http.Transport{DialContext: server.dial}))
				c.Base.Scheme = "http"
				r := Request{Method: http.MethodPost, Path: "/v1/meetings", Body: body}
				r.Header = http.Header{header: {"1"}}
				_, err := c.Call(t.Context(), r)
				require.NoError(t, err)
				time.Sleep(time.Millisecond)
				resp, err := c.Call(t.Context(), r)
				require.Error(t, err)
				require.True(t, resp.MayHaveTakenEffect)
				require.Equal(t, 2, server.requests)
				time.Sleep(time.Minute)
			})
		}
	}
}
