package backoff

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"sync/atomic"
)

// RoundTrip returns the result of next.RoundTrip, held to the contract of
// http.RoundTripper: either an error, or a response with a body.
func RoundTrip(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(req)
	switch {
	case err != nil:
		return nil, explainProxy(next, req, err)
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

// ProxyError reports that a proxy rejected the CONNECT request, so that there was no
// connection to the server.
type ProxyError struct {
	Host   string // of the proxy
	Status int
}

func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy %s rejected the connection: %d %s", e.Host, e.Status, http.StatusText(e.Status))
}

// CheckProxy returns a ProxyError unless the proxy accepted the CONNECT request. It is
// for http.Transport's OnProxyConnectResponse.
func CheckProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{proxy.Host, resp.StatusCode}
}

// explainProxy returns the error of a proxy's rejection if err is one. A transport
// without CheckProxy returns only the text of the status, such as "Forbidden".
func explainProxy(next http.RoundTripper, req *http.Request, err error) error {
	t, ok := next.(*http.Transport)
	if !ok || t.Proxy == nil {
		return err
	}
	proxy, proxyErr := t.Proxy(req)
	if proxyErr != nil { // its text may show the proxy's password
		return &net.OpError{Op: "proxyconnect", Err: errors.New("the proxy's address cannot be used")}
	}
	for status := 400; proxy != nil && status < 600; status++ {
		if err.Error() == http.StatusText(status) {
			return &ProxyError{proxy.Host, status}
		}
	}
	return err
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
	_, proxy := errors.AsType[*ProxyError](err)
	return !c.got.Load() && (c.Hop() != "" || notDialed || proxy || Permanent(err))
}

// Permanent reports whether a retry would certainly end with the same err, because there
// is no connection that both sides accept: the server's certificate cannot be verified, it
// speaks another version of TLS or none, or a proxy rejected the client.
func Permanent(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	proxy, rejected := errors.AsType[*ProxyError](err)
	return untrusted || noTLS || errors.Is(err, http.ErrSchemeMismatch) || rejected && proxy.Status < 500 ||
		err != nil && tlsVersion.MatchString(err.Error())
}

// tlsVersion matches errors of crypto/tls that have no type of their own.
var tlsVersion = regexp.MustCompile("tls: .*protocol version")
