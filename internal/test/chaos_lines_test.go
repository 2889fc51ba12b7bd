package test

import (
	"context"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// transports are how one Client connects to the service and to storage.
type transports struct{ api, storage http.RoundTripper }

// drawTransports draws one of three ways: a connection for each request; the Client's own
// transports, of which that for the API shares one connection over HTTP/2; and a pool of few
// connections over HTTP/1.1, in which requests wait for a connection.
func (w *witness) drawTransports(rnd *rand.Rand) transports {
	size := 1 + rnd.IntN(3)
	switch rnd.IntN(3) {
	case 0:
		shared := w.srv.HTTPClient().Transport
		return transports{shared, shared}
	case 1:
		api, storage := rest.APITransport(nil).(*http.Transport).Clone(), rest.StorageTransport(nil).(*http.Transport).Clone()
		api.Protocols = new(http.Protocols)
		api.Protocols.SetUnencryptedHTTP2(true)
		return transports{w.overLines(api), w.overLines(storage)}
	default:
		pool := w.overLines(http.DefaultTransport.(*http.Transport).Clone())
		pool.ForceAttemptHTTP2, pool.MaxConnsPerHost = false, size
		return transports{pool, pool}
	}
}

// overLines makes t dial lines.
func (w *witness) overLines(t *http.Transport) *http.Transport {
	pipe := testbase.PipeTo(w.srv.Handler())
	t.Proxy = nil
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := pipe(ctx, network, addr)
		l := &line{Conn: conn, witness: w, left: math.MaxInt64, closed: make(chan struct{})}
		l.pinged = t.Protocols != nil && t.Protocols.UnencryptedHTTP2()
		return l, err
	}
	return t
}

// A line is a connection in memory that may die: it carries no more bytes in either
// direction, and neither end notices.
type line struct {
	net.Conn
	witness *witness
	pinged  bool // over HTTP/2: the Client notices

	mu      sync.Mutex
	left    int64  // how many bytes it carries until it dies
	kind    string // of the trouble that kills it
	written int64  // bytes that its client wrote after its death
	closed  chan struct{}
	once    sync.Once
}

const (
	sendBuffer   = 32 << 10         // of a dead line, which takes no more from its client
	maxDeadLines = 31 * time.Second // two pings over HTTP/2, and a moment
)

// dieAfter has the line die once it has carried n bytes more.
func (l *line) dieAfter(n int64, kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left > n {
		l.left, l.kind = n, kind
	}
}

// carries reports whether n bytes pass.
func (l *line) carries(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	alive := l.left > 0
	l.left -= int64(n)
	if alive && l.left <= 0 {
		l.witness.applied(l.kind)
		if l.pinged {
			time.AfterFunc(maxDeadLines, l.checkClosed)
		}
	}
	return l.left > 0
}

// checkClosed checks that the Client closed the line after its death.
func (l *line) checkClosed() {
	select {
	case <-l.closed:
	default:
		l.witness.deviation("a dead connection was still open after %v", maxDeadLines)
	}
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if l.carries(n) {
		return n, err
	}
	<-l.closed
	return 0, net.ErrClosed
}

func (l *line) Write(p []byte) (int, error) {
	if l.carries(len(p)) {
		return l.Conn.Write(p)
	}
	l.mu.Lock()
	l.written += int64(len(p))
	full := l.written > sendBuffer
	l.mu.Unlock()
	if full {
		<-l.closed
		return 0, net.ErrClosed
	}
	return len(p), nil
}

func (l *line) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

// trace returns the context of a request that records when its attempt got a connection.
// The connection dies if what says so.
func (w *witness) trace(ctx context.Context, t *attempt, s *step, what trouble) context.Context {
	var asked time.Time
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked = time.Now() },
		GotConn: func(info httptrace.GotConnInfo) {
			s.note(func() { t.connected = time.Now() })
			l, ok := info.Conn.(*line)
			if ok && what.dies > 0 {
				l.dieAfter(what.dies, what.kind)
			}
			if ok && time.Since(asked) > 0 {
				w.applied(slowPool)
			}
		},
	})
}

// slowPool is the kind of trouble that a pool of few connections causes by itself.
const slowPool = "slow pool"
