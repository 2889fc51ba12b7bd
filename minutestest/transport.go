package minutestest

import (
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
)

// The two hosts of the in-memory network: the service and its storage.
const (
	apiHost     = "api.minutes.test"
	storageHost = "storage.minutes.test"
)

var errClosed = errors.New("the Server is closed")

// network is the wire of one Server. Every dial makes a new connection, with its own [http.Server]
// behind it, in the goroutine that dials: a caller in a testing/synctest bubble has both ends in
// that bubble.
//
// Connections serve one request each. An idle one, kept for reuse, would keep its bubble from
// ending.
type network struct {
	handler http.Handler
	fails   func(*http.Request) error // before r is sent
	bubble  bool                      // the Server was made in a bubble
	clients atomic.Uint64             // of their own, made so far

	mu     sync.Mutex
	closed bool
	live   map[*serverEnd]struct{} // until their client closes
	bodies map[*openBody]struct{}  // neither read to the end nor closed
}

func newNetwork(h http.Handler, fails func(*http.Request) error) *network {
	return &network{handler: h, fails: fails, bubble: inBubble(), live: make(map[*serverEnd]struct{}), bodies: make(map[*openBody]struct{})}
}

// inBubble reports whether the caller runs in a testing/synctest bubble, by the clock: the time of
// a bubble never has a monotonic reading, that of the world always has.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}

// client returns a client whose every connection leads here. One of its own has a number, by which
// the audit knows it.
func (n *network) client(ofItsOwn bool) *http.Client {
	number := uint64(0)
	if ofItsOwn {
		number = n.clients.Add(1)
	}
	dial := func(_ context.Context, _, addr string) (net.Conn, error) { return n.dial(number, addr) }
	return &http.Client{Transport: &roundTripper{n, &http.Transport{
		DialContext:           dial,
		DialTLSContext:        dial, // https without the cryptography
		DisableKeepAlives:     true,
		ExpectContinueTimeout: 2 * time.Second,
	}}}
}

func (n *network) dial(number uint64, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host != apiHost && host != storageHost {
		return nil, &net.DNSError{Err: "no such host in this in-memory network", Name: host, IsNotFound: true}
	}
	client, server := newLink(inBubble())
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
	srv.BaseContext = func(net.Listener) context.Context { return context.WithValue(server.ctx, sender{}, number) }
	// Not nil, so that no time goes into setting up HTTP/2.
	srv.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	// Serve starts the connection's goroutine and returns at the second Accept; the connection
	// lives on.
	_ = srv.Serve(&oneListener{conn: server})
	return client, nil
}

// sender is the key of a context's value that says which client sent a request.
type sender struct{}

// senderOf returns the number of the client of its own that sent r, or 0.
func senderOf(r *http.Request) uint64 {
	number, _ := r.Context().Value(sender{}).(uint64)
	return number
}

// close ends the network: dials fail from now on and connections are cut. One of another bubble is
// left to end with its request, and with its bubble.
func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	live, bodies := slices.Collect(maps.Keys(n.live)), slices.Collect(maps.Keys(n.bodies))
	n.mu.Unlock()

	for _, end := range live {
		if n.mine(end.bubble) {
			end.reset()
		}
	}
	for _, body := range bodies {
		if n.mine(body.bubble) {
			body.cancel() // or the transport would wait for its reader for good
		}
	}
}

// mine reports whether the caller may use an object that was made in a bubble, or was not. An
// object made in a bubble can be used only in that bubble.
func (n *network) mine(bubble bool) bool { return !bubble || n.bubble && inBubble() }

// leftOpen returns the responses that are still open after their readers had a moment to end: a
// caller that was just canceled may be about to close.
func (n *network) leftOpen() (left []*openBody) {
	const moment = 100 * time.Millisecond
	for range 10 {
		if left = n.open(); len(left) == 0 {
			return nil
		}
		time.Sleep(moment / 10)
	}
	return n.open()
}

// open returns the responses that were neither read to the end nor closed, the oldest first.
func (n *network) open() []*openBody {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []*openBody
	for body := range n.bodies {
		if n.mine(body.bubble) {
			list = append(list, body)
		}
	}
	slices.SortFunc(list, func(a, b *openBody) int { return a.at.Compare(b.at) })
	return list
}

// roundTripper is the transport of a network. It records which responses are open.
type roundTripper struct {
	network   *network
	transport *http.Transport
}

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.network.fails(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	ctx, cancel := context.WithCancel(req.Context())
	resp, err := t.transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Request = req
	if resp.Body == http.NoBody {
		cancel()
		return resp, nil
	}
	body := &openBody{ReadCloser: resp.Body, network: t.network, cancel: cancel, bubble: inBubble(), at: time.Now(), req: req}
	resp.Body = body
	t.network.mu.Lock()
	t.network.bodies[body] = struct{}{}
	t.network.mu.Unlock()
	return resp, nil
}

func (t *roundTripper) CloseIdleConnections() { t.transport.CloseIdleConnections() }

// openBody is the body of a response until it has been read or closed.
type openBody struct {
	io.ReadCloser
	network *network
	cancel  context.CancelFunc
	bubble  bool
	at      time.Time
	req     *http.Request
}

func (o *openBody) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil {
		o.done()
	}
	return n, err
}

func (o *openBody) Close() error {
	defer o.done()
	return o.ReadCloser.Close()
}

func (o *openBody) done() {
	o.network.mu.Lock()
	delete(o.network.bodies, o)
	o.network.mu.Unlock()
	o.cancel()
}

// oneListener accepts one connection, once.
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
