package backoff

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// RoundTrip returns the result of next.RoundTrip, held to the contract of
// http.RoundTripper: either an error, or a response with a body.
func RoundTrip(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(req)
	if t, ok := next.(*http.Transport); ok && err != nil && t.Proxy != nil {
		if _, proxyErr := t.Proxy(req); proxyErr != nil {
			// The text of proxyErr may show the proxy's password.
			err = &net.OpError{Op: "proxyconnect", Err: errors.New("the proxy's address cannot be used")}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case resp == nil:
		return nil, errors.New("the transport returned neither a response nor an error")
	case resp.Body == nil:
		resp.Body = http.NoBody
	case resp.StatusCode == http.StatusSwitchingProtocols:
		// The body is a connection of another protocol. No context ends a read from it.
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, nil
}

// Conn records what net/http reports about the connection of one round trip. Its
// goroutines may outlive the round trip.
type Conn struct {
	hop atomic.Value // the address, a string
	got atomic.Bool
}

// Trace returns the context for the request.
func (c *Conn) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(hop string) { c.hop.Store(hop) },
		GotConn: func(httptrace.GotConnInfo) { c.got.Store(true) },
	})
}

// Hop returns the address of the connection, the server's or a proxy's. It is "" if no
// connection was requested, or if the transport does not trace its connections.
func (c *Conn) Hop() string {
	hop, _ := c.hop.Load().(string)
	return hop
}

// NeverMade reports whether the round trip that ended with err certainly got no
// connection. err alone does not prove that if the transport traces its connections:
// it may have dialed again after it lost a connection.
func (c *Conn) NeverMade(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	notDialed := ok && (op.Op == "dial" || op.Op == "proxyconnect")
	return !c.got.Load() && (c.Hop() != "" || notDialed || Untrusted(err))
}

// Untrusted reports whether err is a certificate that cannot be verified. A retry does
// not help.
func Untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}
