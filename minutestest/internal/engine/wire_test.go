package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWire speaks to storage over TCP in bytes, for what net/http does to a
// request before the engine sees it.
func TestWire(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Serve(w, r) }))
	defer server.Close()
	send := func(head, body string) (status int, continued bool) {
		t.Helper()
		id := s.create("ci", "")
		u, err := url.Parse(s.presigned("ci", id, "audio/wav"))
		require.NoError(t, err)
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\n%s\r\n%s", u.RequestURI(), head, body)
		if c, ok := conn.(*net.TCPConn); ok && body == "short" {
			require.NoError(t, c.CloseWrite())
		}
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		if resp.StatusCode == 100 {
			io.WriteString(conn, "hello")
			resp, err = http.ReadResponse(r, nil)
			require.NoError(t, err)
			continued = true
		}
		if body == "short" {
			require.Equal(t, "created", s.status("ci", id))
		}
		return resp.StatusCode, continued
	}
	for _, tc := range []struct {
		head, body string
		want       int
	}{
		{"Content-Type: audio/wav\r\nContent-Length: 0\r\n", "", 200},
		{"Content-Type: audio/wav\r\n", "", 411},
		{"Content-Type: audio/wav\r\nTransfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n", 411},
		{"Content-Type: audio/x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n", "", 403}, // and no byte of the body is asked for
	} {
		status, continued := send(tc.head, tc.body)
		require.Equal(t, tc.want, status, tc.head)
		require.False(t, continued)
	}
	status, continued := send("Content-Type: audio/wav\r\nContent-Length: 5\r\nExpect: 100-continue\r\n", "")
	require.Equal(t, 200, status)
	require.True(t, continued)
	status, _ = send("Content-Type: audio/wav\r\nContent-Length: 9\r\n", "short")
	require.Equal(t, 400, status)
}
