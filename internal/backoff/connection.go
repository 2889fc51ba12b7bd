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
	"reflect"
	"regexp"
	"strings"
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
	case resp.StatusCode == http.StatusSwitchingProtocols && resp.Body != nil:
		_ = resp.Body.Close() // a connection of another protocol, where no context ends a read
		resp.Body = nil
	}
	resp.Body = cmp.Or(resp.Body, io.ReadCloser(http.NoBody))
	return resp, nil
}

// ProxyError reports that a proxy rejected the CONNECT request, so that there was no
// connection to the server.
type ProxyError struct {
	Host   string // of the proxy
	Status int    // 0 if unknown
	Reason string // the status's text
}

func (e *ProxyError) Error() string {
	status := strings.TrimPrefix(fmt.Sprint(e.Status, " "), "0 ")
	return "the proxy " + e.Host + " rejected the connection: " + status + e.Reason
}

// CheckProxy returns a ProxyError unless the proxy accepted the CONNECT request. It is
// for http.Transport's OnProxyConnectResponse.
func CheckProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	_, reason, _ := strings.Cut(resp.Status, " ")
	return &ProxyError{proxy.Host, resp.StatusCode, reason}
}

// explainProxy names the proxy in err, if there was one. It returns a ProxyError if err is
// the proxy's rejection: a transport without CheckProxy returns only the status's text,
// which the proxy may choose, such as "Forbidden". Other errors have a type, a colon or
// a quotation.
func explainProxy(next http.RoundTripper, req *http.Request, err error) error {
	t, ok := next.(*http.Transport)
	if !ok || t.Proxy == nil || req.Context().Err() != nil {
		return err
	}
	proxy, proxyErr := t.Proxy(req)
	if proxyErr != nil { // its text may show the proxy's password
		return &net.OpError{Op: "proxyconnect", Err: errors.New("the proxy's address cannot be used")}
	}
	_, known := errors.AsType[*ProxyError](err)
	if proxy == nil || known {
		return err
	}
	text, status := err.Error(), 599
	if reflect.TypeOf(err) != reflect.TypeOf(io.EOF) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.ContainsAny(text, `:"`) {
		return fmt.Errorf("through the proxy %s: %w", proxy.Host, err)
	}
	for status > 0 && http.StatusText(status) != text {
		status--
	}
	return &ProxyError{proxy.Host, status, text}
}

// Conn records what net/http reports about the connection of one round trip. Its
// goroutines may outlive the round trip.
type Conn struct{ asked, got atomic.Bool }

// Trace returns the context for the request.
func (c *Conn) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.got.Store(true) },
	})
}

// NeverMade reports whether the round trip that ended with err certainly got no
// connection. err alone does not prove that if the transport traces its connections:
// it may have dialed again after it lost a connection.
func (c *Conn) NeverMade(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	notDialed := ok && (op.Op == "dial" || op.Op == "proxyconnect")
	_, proxy := errors.AsType[*ProxyError](err)
	return !c.got.Load() && (c.asked.Load() || notDialed || proxy || Permanent(err))
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
