package backoff

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// SharedTransport serves every Client without a transport of its own. Otherwise each
// Client that comes and goes would leave a pool of connections behind.
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
		// Otherwise a connection that is lost without a sign is used until the kernel gives up.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
})

// StorageTransport serves the uploads of every Client without a transport of its own. It
// speaks HTTP/1.1, as S3 does: HTTP/2 uploads wait for the server's window, often 64 KiB for
// each round trip. Each upload has its own connection: if an idle one was lost without a
// sign, the upload would only notice after its time limits.
var StorageTransport = sync.OnceValue(func() http.RoundTripper {
	t := SharedTransport().(*http.Transport).Clone()
	t.ForceAttemptHTTP2, t.Protocols = false, new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.TLSClientConfig = nil // Clone sets its NextProtos to h2
	t.DisableKeepAlives = true
	return t
})
