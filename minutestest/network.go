package minutestest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
)

// The two hosts of the in-memory network: the service and its storage.
const (
	apiHost     = "api.minutes.test"
	storageHost = "storage.minutes.test"
)

var errClosed = errors.New("the Server is closed")

// network is the wire of one Server: clients in this process reach it with real HTTP/1.1 over
// connections in memory. Three tricks make that work in testing/synctest bubbles, which end only if
// nothing in them sleeps or waits for the world outside:
//
//   - Every dial makes a connection with an [http.Server] of its own, in the goroutine that dials.
//     So both ends are in the bubble of the caller. It serves one request, because an idle
//     connection, kept for reuse, would keep its bubble from ending.
//   - A connection is two pipes, one for each direction (connection.go). So the server can end its
//     response and still read what the client has yet to send, as with TCP; a client that is
//     rejected early then reads the response instead of losing it to a reset.
//   - Where net/http closes its half of a connection and then sleeps for half a second before it
//     closes the other, our CloseWrite ends its goroutine instead of returning to that sleep.
type network struct {
	handler http.Handler
	// dialError is asked before a request is sent; an error is that of the connection.
	dialError func(*http.Request) error
	// bubble is whether the Server was made in a bubble.
	bubble bool
	// clients is the number of clients of their own, made so far.
	clients atomic.Uint64

	mu     sync.Mutex
	closed bool
	// live has the connections until their client closes them.
	live map[*serverEnd]struct{}
	// bodies are neither read to the end nor closed.
	bodies map[*openBody]struct{}
}

func newNetwork(h http.Handler, dialError func(*http.Request) error) *network {
	return &network{
		handler:   h,
		dialError: dialError,
		bubble:    inBubble(),
		live:      make(map[*serverEnd]struct{}),
		bodies:    make(map[*openBody]struct{}),
	}
}

// inBubble reports whether the caller runs in a testing/synctest bubble, by the clock: the time of
// a bubble never has a monotonic reading, that of the world always has.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}

// client returns an HTTP client that connects only to this network, for use inside bubbles or
// outside. The audit distinguishes clients by number.
func (n *network) client(number uint64, bubble bool) *http.Client {
	dial := func(_ context.Context, _, addr string) (net.Conn, error) { return n.dial(number, addr) }
	return &http.Client{Transport: &roundTripper{
		network: n,
		bubble:  bubble,
		transport: &http.Transport{
			DialContext:           dial,
			DialTLSContext:        dial, // https without the cryptography
			DisableKeepAlives:     true,
			ExpectContinueTimeout: 2 * time.Second,
		},
	}}
}

// roundTripper is the transport of a client.
type roundTripper struct {
	network   *network
	transport *http.Transport
	// bubble is whether the client was made in a bubble.
	bubble bool
}

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.bubble != inBubble() {
		closeBody(req)
		return wrongSide(req, t.bubble), nil
	}
	err := t.network.dialError(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := t.transport.RoundTrip(req)
	if err != nil || resp.Body == http.NoBody {
		return resp, err
	}
	resp.Body = t.network.newOpenBody(resp.Body, req)
	return resp, nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// wrongSide is the response to a Client that was made inside a bubble and used outside, or the
// other way round. Its clock would jump by years, so its timers would never or always be due. An
// error would be repeated like any other of a network, but no client repeats a request that it
// should not have sent.
func wrongSide(req *http.Request, madeInside bool) *http.Response {
	message := "minutestest: this Client was made outside the synctest bubble that uses it: " +
		"call Server.Client inside the bubble"
	if madeInside {
		message = "minutestest: this Client was made inside a synctest bubble and is used outside: " +
			"call Server.Client outside any bubble"
	}
	body := engine.ErrorJSON(minutes.ErrBadRequest, message, "req_fake", nil)
	return &http.Response{
		Status:        "400 Bad Request",
		StatusCode:    http.StatusBadRequest,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {engine.JSON}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}

func (n *network) dial(number uint64, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host != apiHost && host != storageHost {
		return nil, &net.DNSError{Err: "no such host in this in-memory network", Name: host, IsNotFound: true}
	}
	client, server := newConnection(inBubble())
	server.gone = func() {
		n.mu.Lock()
		delete(n.live, server)
		n.mu.Unlock()
	}

	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, fmt.Errorf("minutestest: dial %s: %w", addr, errClosed)
	}
	n.live[server] = struct{}{}
	n.mu.Unlock()

	srv := newHTTPServer(n.handler)
	srv.BaseContext = func(net.Listener) context.Context {
		return context.WithValue(server.ctx, sender{}, number)
	}
	// Not nil, so that no time goes into setting up HTTP/2.
	srv.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	// Serve starts the connection's goroutine and returns at the second Accept; the connection
	// lives on.
	_ = srv.Serve(&oneListener{conn: server})
	return client, nil
}

// sender is the key of a context's value that says which client sent a request.
type sender struct{}

func senderOf(r *http.Request) uint64 {
	number, _ := r.Context().Value(sender{}).(uint64)
	return number
}

// close ends the network: dials fail from now on and connections are cut. One of another bubble is
// left to end with its request, and with its bubble.
func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	live := slices.Collect(maps.Keys(n.live))
	n.mu.Unlock()

	for _, conn := range live {
		if n.mine(conn.bubble) {
			conn.reset()
		}
	}
	for _, body := range n.open() {
		_ = body.Close() // or the transport would wait for its reader for good
	}
}

// mine reports whether the caller may use an object that was made in a bubble, or was not. An
// object made in a bubble can be used only in that bubble.
func (n *network) mine(bubble bool) bool { return !bubble || n.bubble && inBubble() }

type oneListener struct{ conn net.Conn }

func (l *oneListener) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, io.EOF
	}
	conn := l.conn
	l.conn = nil
	return conn, nil
}

func (l *oneListener) Close() error   { return nil }
func (l *oneListener) Addr() net.Addr { return pipeAddr(apiHost) }
