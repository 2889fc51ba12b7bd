package backoff

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// SharedTransport is the default transport of all Clients. If each Client had its own, a
// discarded Client would leave a pool of connections behind.
var SharedTransport = sync.OnceValue(func() http.RoundTripper {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  2 * time.Second, // how long an upload waits for permission to send the body
		OnProxyConnectResponse: CheckProxy,
		// Without pings, the transport uses a dead connection until the kernel gives up.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
})

// StorageTransport is the default transport of all uploads. It uses HTTP/1.1, as S3 does:
// over HTTP/2, a server often allows only 64 KiB for each round trip.
var StorageTransport = sync.OnceValue(func() http.RoundTripper {
	t := SharedTransport().(*http.Transport).Clone()
	t.ForceAttemptHTTP2, t.Protocols = false, new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.TLSClientConfig = nil // Clone sets its NextProtos to h2
	return t
})
