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

// Permanent reports whether a retry would certainly fail with the same err: the server's certificate cannot be verified, the
// server speaks another version of TLS or none, or a proxy rejected the connection with less than a 500.
func Permanent(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	proxy, rejected := errors.AsType[*ProxyError](err)
	return untrusted || noTLS || errors.Is(err, http.ErrSchemeMismatch) || rejected && proxy.Status < "5" ||
		err != nil && strings.Contains(err.Error(), "tls: ") && strings.Contains(err.Error(), "protocol version") // has no type
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
