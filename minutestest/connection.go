package minutestest

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// lingerTime is how long the server goes on reading what a client sends after it has responded and
// closed.
const lingerTime = 10 * time.Second

// pipes are one end of a connection: one pipe for each direction (the second trick of network).
type pipes struct {
	in, out net.Conn
	// isReset is whether the server has reset the connection, so that both ends see ECONNRESET.
	isReset *atomic.Bool
}

func newConnection(bubble bool) (*clientEnd, *serverEnd) {
	upOut, upIn := net.Pipe()     // client to server
	downOut, downIn := net.Pipe() // server to client
	isReset := new(atomic.Bool)
	ctx, cancel := context.WithCancel(context.Background())
	server := &serverEnd{
		pipes:  pipes{in: upIn, out: downOut, isReset: isReset},
		ctx:    ctx,
		cancel: cancel,
		bubble: bubble,
	}
	client := &clientEnd{pipes: pipes{in: downIn, out: upOut, isReset: isReset}, server: server}
	return client, server
}

func (p *pipes) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	return n, p.seen("read", err)
}

func (p *pipes) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	return n, p.seen("write", err)
}

// seen converts the end of a pipe into the error that a socket reports.
func (p *pipes) seen(op string, err error) error {
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)
	switch {
	case ended && p.isReset.Load():
		return &net.OpError{Op: op, Net: "tcp", Err: errReset}
	case ended && op == "write":
		return &net.OpError{Op: op, Net: "tcp", Err: errBrokenPipe}
	}
	return err
}

func (p *pipes) SetDeadline(t time.Time) error {
	return errors.Join(p.in.SetReadDeadline(t), p.out.SetWriteDeadline(t))
}
func (p *pipes) SetReadDeadline(t time.Time) error  { return p.in.SetReadDeadline(t) }
func (p *pipes) SetWriteDeadline(t time.Time) error { return p.out.SetWriteDeadline(t) }

// clientEnd is the end that a transport holds.
type clientEnd struct {
	pipes
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
	pipes
	// ctx is that of the requests served on this connection.
	ctx    context.Context
	cancel context.CancelFunc
	// bubble is whether the connection was made in a bubble.
	bubble bool
	// gone is called when the client has closed its end.
	gone func()

	closing sync.Once
}

// CloseWrite ends the response, as a server does that rejects a request while it is still being
// sent. It does not return, because net/http would sleep now (the third trick of network). What
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
