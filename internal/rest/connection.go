package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// NeverSent reports whether err proves that there was no connection, so that the server cannot have received the request.
func NeverSent(err error) bool {
	op, isOp := errors.AsType[*net.OpError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	_, isProxy := errors.AsType[*ProxyError](err)
	return isOp && (op.Op == "dial" || op.Op == "proxyconnect") || isDNS || isProxy || Permanent(err)
}

// Permanent reports whether a retry would certainly fail with the same err of a transport: the server's certificate cannot be
// verified, the server speaks another version of TLS or none, a proxy rejected the connection with less than a 500, or the
// caller's header is invalid.
func Permanent(err error) bool {
	if err == nil {
		return false
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	proxy, rejected := errors.AsType[*ProxyError](err)
	text := err.Error() // some errors have no type
	return untrusted || noTLS || errors.Is(err, http.ErrSchemeMismatch) || rejected && proxy.Status < "5" ||
		strings.Contains(text, "tls: ") && strings.Contains(text, "protocol version") || strings.Contains(text, "net/http: invalid header")
}

// ProxyError reports that a proxy rejected the CONNECT request, so that there was no connection to the server.
type ProxyError struct {
	Host   string // of the proxy
	Status string // such as "403 Forbidden"
}

func (e *ProxyError) Error() string {
	return "the proxy " + e.Host + " rejected the connection: " + e.Status
}

// CheckProxy returns a ProxyError unless the proxy accepted the CONNECT request. It is for http.Transport's
// OnProxyConnectResponse; without it, the error would only be the text of the status, such as "Forbidden".
func CheckProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{proxy.Host, resp.Status}
}
