package storage

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// connection is the TCP connection of an attempt until the whole request has been written. However the
// attempt ends before that, even with its process, the connection is reset, because some storage takes
// an orderly end for the end of the recording, and keeps the part. Only a transport of net/http shows
// its connection.
type connection struct{ tcp atomic.Pointer[net.TCPConn] }

// trace returns a context whose request reports its connection to c.
func (c *connection) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			tcp := tcpOf(info.Conn)
			if tcp != nil {
				_ = tcp.SetLinger(0) // which makes each close a reset
			}
			c.tcp.Store(tcp)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err != nil {
				return
			}
			tcp := c.tcp.Swap(nil)
			if tcp != nil {
				_ = tcp.SetLinger(-1) // otherwise a close would discard what the kernel has yet to send
			}
		},
	})
}

// reset closes the connection below TLS, whose own Close would announce an orderly end.
func (c *connection) reset() {
	tcp := c.tcp.Load()
	if tcp != nil {
		_ = tcp.Close()
	}
}

// tcpOf returns the TCP connection below conn, or nil if there is none or other requests share it.
func tcpOf(conn net.Conn) *net.TCPConn {
	for {
		tcp, ok := conn.(*net.TCPConn)
		if ok {
			return tcp
		}
		secure, ok := conn.(*tls.Conn)
		if !ok || secure.ConnectionState().NegotiatedProtocol == "h2" {
			return nil
		}
		conn = secure.NetConn()
	}
}
