package rest

import (
	"net"
	"net/http"
	"slices"
	"time"
)

// All Clients share the default transports, because a discarded Client would leave a pool of its
// own behind.
var (
	defaultAPI = forAPI(&http.Transport{
		Proxy: http.ProxyFromEnvironment,
		// The dial ends before an attempt does, so that nothing was sent.
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        100,
		MaxIdleConnsPerHost: 16,
		TLSHandshakeTimeout: 10 * time.Second,
	})
	defaultBrief   = forBrief(defaultAPI)
	defaultStorage = forStorage(defaultAPI)
)

// APITransport returns the transport for API requests: the default one if next is nil, and a clone
// with HTTP/2 pings if next is an *http.Transport, because without pings it would use a dead
// connection until the kernel gives up.
func APITransport(next http.RoundTripper) http.RoundTripper {
	return choose(next, defaultAPI, forAPI)
}

// StorageTransport returns the transport for uploads: the default one if next is nil, and a clone
// that uses HTTP/1.1, as S3 does, if next is an *http.Transport, because over HTTP/2 a server often
// allows only 64 KiB for each round trip.
func StorageTransport(next http.RoundTripper) http.RoundTripper {
	return choose(next, defaultStorage, forStorage)
}

func choose(
	next http.RoundTripper, byDefault *http.Transport, adapt func(*http.Transport) *http.Transport,
) http.RoundTripper {
	switch t := next.(type) {
	case nil:
		return byDefault
	case *http.Transport:
		return adapt(t)
	}
	return next
}

func forAPI(t *http.Transport) *http.Transport {
	t = clone(t)
	if t.HTTP2 == nil {
		t.HTTP2 = new(http.HTTP2Config)
	}
	if t.HTTP2.SendPingTimeout == 0 { // Clone may have set HTTP2
		t.HTTP2.SendPingTimeout = 15 * time.Second
		t.HTTP2.PingTimeout = 15 * time.Second
	}
	return t
}

func forStorage(t *http.Transport) *http.Transport {
	t = clone(t)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if t.TLSClientConfig != nil { // Clone adds h2 to its NextProtos
		protos := slices.Clone(t.TLSClientConfig.NextProtos)
		t.TLSClientConfig.NextProtos = slices.DeleteFunc(protos, func(p string) bool { return p == "h2" })
	}
	if t.ExpectContinueTimeout == 0 { // storage could not reject an upload before its body
		t.ExpectContinueTimeout = 2 * time.Second
	}
	return t
}

// maxIdle is less than the idle timeout of any server or balancer that we know; the shortest is five
// seconds (Node).
const maxIdle = time.Second

// transports chooses between two transports. A request that must not be repeated never goes over a
// connection that has been idle for maxIdle, because the server may be closing it, and then nobody could
// say whether the request arrived. Other requests keep their connections for longer.
type transports struct{ kept, brief http.RoundTripper }

// newTransports returns a link that uses next, which is that of APITransport.
func newTransports(next http.RoundTripper) *transports {
	t, ok := next.(*http.Transport)
	switch {
	case !ok:
		return &transports{next, next}
	case t == defaultAPI:
		return &transports{next, defaultBrief}
	}
	return &transports{next, forBrief(t)}
}

func (l *transports) RoundTrip(req *http.Request) (*http.Response, error) {
	if callOf(req.Context()).Repeatable {
		return l.kept.RoundTrip(req)
	}
	return l.brief.RoundTrip(req)
}

func forBrief(t *http.Transport) *http.Transport {
	t = t.Clone()
	t.IdleConnTimeout = maxIdle
	return t
}

// clone returns a copy of t, which never changes. Its idle connections end by themselves, since
// nobody can close those of a discarded Client.
func clone(t *http.Transport) *http.Transport {
	t = t.Clone()
	if t.IdleConnTimeout == 0 {
		t.IdleConnTimeout = 90 * time.Second
	}
	if t.OnProxyConnectResponse == nil {
		t.OnProxyConnectResponse = CheckProxy
	}
	return t
}
