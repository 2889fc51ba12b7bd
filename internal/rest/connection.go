package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// connecting is what a transport reports of a request's way to a connection. Only those of net/http
// report anything.
type connecting struct {
	began     atomic.Bool // it looks for a connection
	connected atomic.Bool // it has one, with TLS, so that the request may be sent
}

// trace returns a context whose request reports to c.
func (c *connecting) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.began.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.connected.Store(true) },
	})
}

// failed reports whether there was no connection.
func (c *connecting) failed() bool { return c.began.Load() && !c.connected.Load() }

// NeverSent reports whether err proves that there was no connection, so that the server cannot have
// received the request.
func NeverSent(err error) bool {
	op, isOp := errors.AsType[*net.OpError](err)
	if isOp && (op.Op == "dial" || op.Op == "proxyconnect") {
		return true
	}
	_, isDNS := errors.AsType[*net.DNSError](err)
	_, isProxy := errors.AsType[*ProxyError](err)
	return isDNS || isProxy || Misconfigured(err) || refusedStream(err)
}

// refusedStream reports whether an HTTP/2 server said that it has not processed the request, in which
// case http.Transport would have repeated it. The errors have no type.
func refusedStream(err error) bool {
	if err == nil {
		return false
	}
	_, why, ok := strings.Cut(err.Error(), "http2: Transport: cannot retry err [")
	return ok && !strings.Contains(why, "PROTOCOL_ERROR") // which says less
}

// Misconfigured reports whether the caller, the server or a proxy is set up in such a way that a
// retry would fail, too: one side rejects the other's certificate or version of TLS, the server has no
// TLS, a proxy rejected the connection with less than a 500, or the caller's header is invalid. err is
// that of a transport.
func Misconfigured(err error) bool {
	if err == nil {
		return false
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	if untrusted || noTLS || errors.Is(err, http.ErrSchemeMismatch) {
		return true
	}
	if proxy, rejected := errors.AsType[*ProxyError](err); rejected && proxy.Status < "5" {
		return true
	}
	text := err.Error() // these errors have no type
	_, ofTLS, _ := strings.Cut(text, "tls: ")
	lasting := []string{"certificate", "handshake failure", "protocol version"}
	otherTLS := slices.ContainsFunc(lasting, func(why string) bool { return strings.Contains(ofTLS, why) })
	return otherTLS || strings.Contains(text, "net/http: invalid header")
}

// ProxyError reports that a proxy rejected the CONNECT request, so that there was no connection to
// the server.
type ProxyError struct {
	Host   string // of the proxy
	Status string // such as "403 Forbidden"
}

func (e *ProxyError) Error() string {
	return "the proxy " + e.Host + " rejected the connection: " + e.Status
}

// CheckProxy returns a ProxyError unless the proxy accepted the CONNECT request. It is for
// http.Transport's OnProxyConnectResponse; without it, the error would only be the text of the
// status, such as "Forbidden".
func CheckProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{proxy.Host, resp.Status}
}
