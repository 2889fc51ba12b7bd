package backoff

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"sync/atomic"
)

// RoundTrip calls next.RoundTrip and enforces the contract of http.RoundTripper: it returns
// either an error or a response with a body. The error names the proxy, if there is one.
func RoundTrip(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := next.RoundTrip(req)
	switch {
	case err != nil:
		return nil, nameHost(next, req, err)
	case resp == nil:
		return nil, errors.New("the transport returned neither a response nor an error")
	case resp.StatusCode == http.StatusSwitchingProtocols && resp.Body != nil:
		_ = resp.Body.Close() // a connection of another protocol, whose reads no context ends
		resp.Body = nil
	}
	resp.Body = cmp.Or(resp.Body, io.ReadCloser(http.NoBody))
	return resp, nil
}

// ProxyError reports that a proxy rejected the CONNECT request, so that there was no
// connection to the server.
type ProxyError struct {
	Host   string // of the proxy
	Status string // such as "403 Forbidden"
}

func (e *ProxyError) Error() string {
	return "the proxy " + e.Host + " rejected the connection: " + e.Status
}

// CheckProxy returns a ProxyError unless the proxy accepted the CONNECT request. It is
// for http.Transport's OnProxyConnectResponse.
func CheckProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{proxy.Host, resp.Status}
}

// nameHost adds the proxy to err if there is one, and the server to an error of TLS. If the
// proxy rejected the connection, a transport without CheckProxy only returns the text of the
// status, such as "Forbidden": nameHost returns a ProxyError.
func nameHost(next http.RoundTripper, req *http.Request, err error) error {
	t, ok := next.(*http.Transport)
	if !ok || req.Context().Err() != nil {
		return err
	}
	var proxy *url.URL
	if t.Proxy != nil {
		var proxyErr error
		if proxy, proxyErr = t.Proxy(req); proxyErr != nil { // its text may show the proxy's password
			return &net.OpError{Op: "proxyconnect", Err: errors.New("the proxy's address cannot be used")}
		}
	}
	_, known := errors.AsType[*ProxyError](err)
	switch {
	case proxy == nil && Permanent(err):
		return fmt.Errorf("connecting to %s: %w", req.URL.Host, err)
	case proxy == nil || known:
		return err
	}
	for status := 400; status < 600; status++ {
		if http.StatusText(status) == err.Error() {
			return &ProxyError{proxy.Host, strconv.Itoa(status) + " " + err.Error()}
		}
	}
	return fmt.Errorf("through the proxy %s: %w", proxy.Host, err)
}

// Conn records whether one round trip got a connection. net/http may still report to it after
// the round trip.
type Conn struct{ asked, got atomic.Bool }

// Trace returns the context for the request.
func (c *Conn) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.got.Store(true) },
	})
}

// NeverMade reports whether the round trip that ended with err certainly got no
// connection. A dial error alone does not prove that: the transport may have lost a connection
// before it dialed again.
func (c *Conn) NeverMade(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	notDialed := ok && (op.Op == "dial" || op.Op == "proxyconnect")
	_, proxy := errors.AsType[*ProxyError](err)
	return !c.got.Load() && (c.asked.Load() || notDialed || proxy || Permanent(err))
}

// Permanent reports whether a retry would certainly fail with the same err: the server's
// certificate cannot be verified, the server speaks another version of TLS or none, or a proxy
// rejected the connection.
func Permanent(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	proxy, rejected := errors.AsType[*ProxyError](err)
	return untrusted || noTLS || errors.Is(err, http.ErrSchemeMismatch) || rejected && proxy.Status < "5" ||
		err != nil && tlsVersion.MatchString(err.Error())
}

// tlsVersion matches errors of crypto/tls that have no type.
var tlsVersion = regexp.MustCompile("tls: .*protocol version")
