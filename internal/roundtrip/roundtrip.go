// Package roundtrip makes one round trip through the caller's transport, and says
// whether it had a connection. API calls and uploads both go through it.
package roundtrip

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// Do returns what next does, held to the promise of http.RoundTripper: an error, or
// a reply with a body.
func Do(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(req)
	if t, ok := next.(*http.Transport); ok && err != nil && t.Proxy != nil {
		if _, wrong := t.Proxy(req); wrong != nil {
			// Its text may show the proxy's password.
			err = &net.OpError{Op: "proxyconnect", Err: errors.New("the proxy's address cannot be used")}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case resp == nil:
		return nil, errors.New("the transport returned neither a reply nor an error")
	case resp.Body == nil:
		resp.Body = http.NoBody
	case resp.StatusCode == http.StatusSwitchingProtocols:
		// A connection that speaks another protocol, whose reading no context ends.
		_ = resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, nil
}

// Conn is what net/http tells of the connection of a round trip, from goroutines
// that may outlive it.
type Conn struct {
	hop atomic.Value // the string that a connection was asked for with
	got atomic.Bool
}

// Trace returns the context for the request.
func (c *Conn) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(hop string) { c.hop.Store(hop) },
		GotConn: func(httptrace.GotConnInfo) { c.got.Store(true) },
	})
}

// Hop is the address that was to be connected to, the server's or a proxy's; "" if
// that did not begin, or the transport does not tell.
func (c *Conn) Hop() string {
	hop, _ := c.hop.Load().(string)
	return hop
}

// NeverMade reports that the round trip that ended with err certainly got no
// connection. err alone does not tell where the transport tells more: it may have
// tried another way after it lost a connection.
func (c *Conn) NeverMade(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	notDialled := ok && (op.Op == "dial" || op.Op == "proxyconnect")
	return !c.got.Load() && (c.Hop() != "" || notDialled || Untrusted(err))
}

// Untrusted reports a certificate that is not the server's: another attempt will
// not cure it.
func Untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}
