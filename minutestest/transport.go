package minutestest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

// The two hosts of the in-memory network: the service and its storage.
const (
	apiHost     = "api.minutes.test"
	storageHost = "storage.minutes.test"
)

// lingerTime is how long a connection goes on taking what its client sends
// after the server has answered and closed. A client that is still sending
// then reads the answer in peace, instead of losing it to a reset.
const lingerTime = 10 * time.Second

var errClosed = errors.New("the Server is closed")

// network is the wire of one Server. Every dial makes a connection of its own,
// with an [http.Server] of its own behind it, in the goroutine that dials: a
// caller in a testing/synctest bubble has both ends in that bubble.
//
// Connections serve one request each. An idle one, kept for reuse, would keep
// its bubble from ending.
type network struct {
	handler http.Handler
	bubble  bool // the Server was made in a bubble

	mu     sync.Mutex
	closed bool
	live   map[*serverEnd]struct{}
}

func newNetwork(h http.Handler) *network {
	return &network{handler: h, bubble: inBubble(), live: make(map[*serverEnd]struct{})}
}

// inBubble reports whether the caller runs in a testing/synctest bubble, by
// the clock: the time of a bubble never has a monotonic reading, that of the
// world always has.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}

// transport returns an [http.Transport] whose every connection leads here.
func (n *network) transport() *http.Transport {
	return &http.Transport{
		DialContext:           n.dial,
		DialTLSContext:        n.dial, // https without the cryptography
		DisableKeepAlives:     true,
		ExpectContinueTimeout: 2 * time.Second,
	}
}

func (n *network) dial(_ context.Context, _, addr string) (net.Conn, error) {
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

	srv := &http.Server{
		Handler:     n.handler,
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return context.WithValue(server.ctx, serverEndKey{}, server) },
		// Not nil, so that no time goes into setting up HTTP/2.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	// Serve starts the connection's goroutine and returns at the second
	// Accept; the connection lives on.
	_ = srv.Serve(&oneListener{conn: server})
	return client, nil
}

// close ends the network: dials fail from now on and connections are cut. One
// of another bubble is left to end with its request, and with its bubble.
func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	live := make([]*serverEnd, 0, len(n.live))
	for end := range n.live {
		live = append(live, end)
	}
	n.mu.Unlock()

	for _, end := range live {
		if n.mine(end) {
			end.reset()
		}
	}
}

// served remembers what was answered on a connection, for unread.
func (n *network) served(end *serverEnd, e *entry) {
	answered := &unreadAnswer{operation: e.Operation, meetingID: e.MeetingID, method: e.method, path: e.url.Path, at: time.Now()}
	n.mu.Lock()
	end.answered = answered
	n.mu.Unlock()
}

// unread returns the answers whose client has neither read them to the end nor
// closed them, of those that the caller may close.
func (n *network) unread() []*unreadAnswer {
	n.mu.Lock()
	defer n.mu.Unlock()
	var open []*unreadAnswer
	for end := range n.live {
		if end.answered != nil && n.mine(end) {
			open = append(open, end.answered)
		}
	}
	slices.SortFunc(open, func(a, b *unreadAnswer) int { return a.at.Compare(b.at) })
	return open
}

// unreadAnswer is what a client has been sent and may not have read.
type unreadAnswer struct {
	operation    route.Operation
	meetingID    string
	method, path string
	at           time.Time
}

// mine reports whether the caller may touch a connection: one of a bubble can
// be touched from inside that bubble alone.
func (n *network) mine(end *serverEnd) bool { return !end.bubble || n.bubble && inBubble() }

// serverEndKey is the context key of the connection a request came on.
type serverEndKey struct{}

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

// A connection is two pipes, one for each direction, so that the server can
// end its side and still take what the client has yet to send, as TCP can.
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

// seen turns the end of a pipe into what a socket reports in its place.
func (l *link) seen(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
		switch {
		case l.isReset.Load():
			return &net.OpError{Op: op, Net: "tcp", Err: syscall.ECONNRESET}
		case op == "write":
			return &net.OpError{Op: op, Net: "tcp", Err: syscall.EPIPE}
		}
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

	answered *unreadAnswer // guarded by network.mu
	closing  sync.Once
}

// Close ends the answer, and lingers for what the client is still sending.
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

// loopback is where in-memory clients come from, as far as IP allowlists are
// concerned.
var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

type pipeAddr string

func (pipeAddr) Network() string  { return "tcp" }
func (a pipeAddr) String() string { return string(a) + ":443" }
