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
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
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

// client returns a client whose every connection leads here. One that is a program of its own for the
// audit has a number.
func (n *network) client(number uint64) *http.Client {
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

	for _, end := range live {
		if n.mine(end.bubble) {
			end.reset()
		}
	}
	for _, body := range n.open() {
		_ = body.Close() // or the transport would wait for its reader for good
	}
}

// mine reports whether the caller may use an object that was made in a bubble, or was not. An
// object made in a bubble can be used only in that bubble.
func (n *network) mine(bubble bool) bool { return !bubble || n.bubble && inBubble() }

// leftOpen returns the responses that are still open after their readers had a moment to end: a
// caller that was just canceled may be about to close.
func (n *network) leftOpen() []*openBody {
	if len(n.open()) > 0 {
		time.Sleep(100 * time.Millisecond)
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
	resp, err := t.transport.RoundTrip(req)
	if err != nil || resp.Body == http.NoBody {
		return resp, err
	}
	body := &openBody{ReadCloser: resp.Body, network: t.network, bubble: inBubble(), at: time.Now(), req: req}
	resp.Body = body
	t.network.mu.Lock()
	t.network.bodies[body] = struct{}{}
	t.network.mu.Unlock()
	return resp, nil
}

// openBody is the body of a response until it has been read or closed.
type openBody struct {
	io.ReadCloser
	network *network
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
}

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

// lingerTime is how long a connection goes on taking what its client sends after the server has
// responded and closed. A client that is still sending then reads the response, instead of losing
// it to a reset.
const lingerTime = 10 * time.Second

// A connection is two pipes, one for each direction, so that the server can end its side and still
// take what the client has yet to send, as TCP can.
type link struct {
	in, out net.Conn
	isReset *atomic.Bool // by the server: both ends see ECONNRESET
}

func newLink(bubble bool) (*clientEnd, *serverEnd) {
	upOut, upIn := net.Pipe()     // client to server
	downOut, downIn := net.Pipe() // server to client
	isReset := new(atomic.Bool)
	ctx, cancel := context.WithCancel(context.Background())
	server := &serverEnd{link: link{in: upIn, out: downOut, isReset: isReset}, ctx: ctx, cancel: cancel, bubble: bubble}
	client := &clientEnd{link: link{in: downIn, out: upOut, isReset: isReset}, server: server}
	return client, server
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	return n, l.seen("read", err)
}

func (l *link) Write(p []byte) (int, error) {
	n, err := l.out.Write(p)
	return n, l.seen("write", err)
}

// seen converts the end of a pipe into the error that a socket reports.
func (l *link) seen(op string, err error) error {
	switch ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe); {
	case ended && l.isReset.Load():
		return &net.OpError{Op: op, Net: "tcp", Err: syscall.ECONNRESET}
	case ended && op == "write":
		return &net.OpError{Op: op, Net: "tcp", Err: syscall.EPIPE}
	}
	return err
}

func (l *link) SetDeadline(t time.Time) error {
	return errors.Join(l.in.SetReadDeadline(t), l.out.SetWriteDeadline(t))
}
func (l *link) SetReadDeadline(t time.Time) error  { return l.in.SetReadDeadline(t) }
func (l *link) SetWriteDeadline(t time.Time) error { return l.out.SetWriteDeadline(t) }

// clientEnd is the end that a transport holds.
type clientEnd struct {
	link
	server *serverEnd
}

// Close ends both directions and the context of the request being served.
func (c *clientEnd) Close() error {
	c.server.cancel()
	c.server.gone()
	return errors.Join(c.in.Close(), c.out.Close())
}

func (c *clientEnd) LocalAddr() net.Addr  { return loopback }
func (c *clientEnd) RemoteAddr() net.Addr { return pipeAddr(apiHost) }

// serverEnd is the end that an [http.Server] holds.
type serverEnd struct {
	link
	ctx    context.Context // of the requests served on this connection
	cancel context.CancelFunc
	bubble bool   // made in a bubble
	gone   func() // the client has closed its end

	closing sync.Once
}

// CloseWrite ends the response, as a server does that rejects a request while it is still being
// sent. It does not return: net/http calls it only to sleep for half a second before Close, because
// a socket does not linger. This one does, and a bubble cannot end while a goroutine sleeps. What
// net/http deferred closes the connection.
func (s *serverEnd) CloseWrite() error {
	_ = s.out.Close()
	runtime.Goexit()
	return nil
}

// Close ends the response, and lingers for what the client is still sending.
func (s *serverEnd) Close() error {
	s.closing.Do(func() {
		_ = s.out.Close()
		_ = s.in.SetReadDeadline(time.Now().Add(lingerTime))
		go func() {
			_, _ = io.Copy(io.Discard, s.in)
			_ = s.in.Close()
		}()
	})
	return nil
}

// reset cuts the connection: the client sees a reset, and nothing more.
func (s *serverEnd) reset() {
	s.closing.Do(func() {})
	s.isReset.Store(true)
	s.cancel()
	_ = s.out.Close()
	_ = s.in.Close()
}

func (s *serverEnd) LocalAddr() net.Addr  { return pipeAddr(apiHost) }
func (s *serverEnd) RemoteAddr() net.Addr { return loopback }

// loopback is where in-memory clients come from, as far as IP allowlists are concerned.
var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

type pipeAddr string

func (pipeAddr) Network() string  { return "tcp" }
func (a pipeAddr) String() string { return string(a) + ":443" }
