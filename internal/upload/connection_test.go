package upload

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// respondAfter returns a handler that reads n bytes of the recording, responds, and keeps the
// connection until the client closes it or has sent everything.
func respondAfter(n int64, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out := http.NewResponseController(w)
		_ = out.EnableFullDuplex()
		_, _ = io.CopyN(io.Discard, r.Body, n)
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(status)
		_ = out.Flush()
		for range 100 { // late enough to notice a client that continues to send
			if _, err := io.CopyN(io.Discard, r.Body, 1000); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// A 2xx proves nothing if it comes before the whole recording was sent, or with a page: a captive
// portal or another wrong host may have sent it.
func TestAttempt_DoubtsUnprovenSuccess(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]http.HandlerFunc{
		"before the body":   func(http.ResponseWriter, *http.Request) {},
		"after a part":      respondAfter(1000, http.StatusOK),
		"with a login page": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html><title>Log in</title>") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(handle)
			defer srv.Close()
			rec, _ := noise(8 << 20)
			o := put(t, srv.URL+"/k?s=1", ownTransport(t), rec).attempt(t.Context())
			require.Equal(t, 200, o.StatusCode)
			require.Equal(t, unclear, judge(o))
			require.Contains(t, o.Message, srv.Listener.Addr().String())
			require.NotContains(t, o.Message, "s=1")
		})
	}
}

// An early success stores nothing, even if the server keeps the connection: then net/http
// sends a small recording before it returns the response.
func TestAttempt_DoubtsEarlySuccessOnKeptConnection(t *testing.T) {
	t.Parallel()
	for range 20 {
		tr := &http.Transport{ExpectContinueTimeout: time.Minute, DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				in := bufio.NewReader(far)
				for {
					if line, err := in.ReadString('\n'); err != nil || line == "\r\n" {
						break
					}
				}
				_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				_, _ = io.Copy(io.Discard, in)
			}()
			return near, nil
		}}
		o := put(t, "http://storage.example/k?s=1", tr, audio(100)).attempt(t.Context())
		require.Equal(t, unclear, judge(o))
		tr.CloseIdleConnections()
	}
}

// Each attempt has its own connection. On one that is kept, net/http hands over the recording
// after an early response, and an idle one may have been lost without a sign.
func TestAttempt_HasItsOwnConnection(t *testing.T) {
	t.Parallel()
	connections := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		respondAfter(1000, http.StatusServiceUnavailable)(w, r)
	}))
	defer srv.Close()
	u := put(t, srv.URL+"/k?s=1", ownTransport(t), audio(1000))
	for range 2 {
		require.Equal(t, temporary, judge(u.attempt(t.Context())))
	}
	srv.Close()
	require.Len(t, connections, 2)
}

// The Stall timeout does not count the wait for a connection that another upload uses.
func TestAttempt_WaitsForConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const stall = time.Minute
		store := func(conn net.Conn) {
			defer conn.Close()
			in := bufio.NewReader(conn)
			for {
				req, err := http.ReadRequest(in)
				if err != nil {
					return // closed
				}
				_, _ = io.Copy(io.Discard, req.Body)
				time.Sleep(10 * stall)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}
		tr := &http.Transport{MaxConnsPerHost: 1, DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go store(far)
			return near, nil
		}}
		start := time.Now()
		var uploads sync.WaitGroup
		for range 2 {
			u := put(t, "http://storage.example/k?s=1", tr, audio(10))
			u.Timeouts = Timeouts{Stall: stall, Response: time.Hour}
			uploads.Go(func() { assert.Equal(t, stored, judge(u.attempt(t.Context()))) })
		}
		uploads.Wait()
		require.Equal(t, 20*stall, time.Since(start))
		tr.CloseIdleConnections()
	})
}
