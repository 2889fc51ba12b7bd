package minutes

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// sharedTransport carries the requests of every Client that was given no
// transport, as http.DefaultTransport does for others: Clients that come and
// go do not each leave a pool of connections behind.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: 2 * time.Second, // uploads wait this long for leave to send the body
	}
})

// wire makes one try of an API call. It reads the whole reply within the try's
// time limit, so that a reply that breaks off counts as a lost connection and
// no body is left open. It hides two things of the transport from net/http and
// go-retryablehttp: CloseIdleConnections, which a failure of one call would use
// to close every other call's connections, and a Location, which is refused
// anyway and whose parse error would print it.
type wire struct {
	next    http.RoundTripper
	timeout *tryTimeoutError // of one try
}

// Replies are read through a limit.
const (
	maxReply   = 64 << 20 // a long meeting's minutes or transcript and then some
	maxRefusal = 1 << 20
)

var errNoReply = errors.New("the transport returned neither a reply nor an error")

// tryTimeoutError says that one try took too long. It is no
// context.DeadlineExceeded, since the caller's context is not done.
type tryTimeoutError struct{ after time.Duration }

func (e *tryTimeoutError) Error() string { return "no reply within " + e.after.String() }

// Timeout and Temporary make it a net.Error.
func (e *tryTimeoutError) Timeout() bool   { return true }
func (e *tryTimeoutError) Temporary() bool { return true }

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	call := req.Context().(*call)
	call.tries++
	ctx, cancel := context.WithTimeoutCause(call, w.timeout.after, w.timeout)
	defer cancel()
	try := req.WithContext(call.trace(ctx))
	try.Header = call.header()
	resp, err := w.next.RoundTrip(try)
	if err == nil && resp == nil {
		err = errNoReply
	}
	if err == nil {
		err = call.read(resp)
	}
	if err != nil {
		if ctx.Err() != nil && call.Err() == nil {
			err = w.timeout
		}
		return nil, err
	}
	return resp, nil
}

// header is made for each try: what is abandoned may still read its own. The
// values are made once and never written to.
func (c *call) header() http.Header {
	h := make(http.Header, 4)
	h["Authorization"] = *c.core.authorization
	h["User-Agent"] = c.core.userAgent
	h["Accept"] = jsonType
	if c.req.ContentLength > 0 {
		h["Content-Type"] = jsonType
	}
	return h
}

var jsonType = []string{"application/json"}

// brokenReply says that a reply ended before its end. What is left of it is kept
// as the call's last.
type brokenReply struct {
	status int
	err    error
}

func (e *brokenReply) Error() string { return "the reply broke off: " + e.err.Error() }
func (e *brokenReply) Unwrap() error { return e.err }

// trace watches whether this try got a connection, for a call that must not be
// repeated once it may have been read, and for a deletion, whose repeat reads a
// NOT_FOUND in its light.
func (c *call) trace(ctx context.Context) context.Context {
	if c.again && c.row.Method != http.MethodDelete {
		return ctx
	}
	t := new(tryTrace)
	c.traced = t
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.got.Store(true) },
	})
}

// refuseSwitch takes away what comes with a 101: a connection that speaks
// another protocol, whose reading no context ends.
func refuseSwitch(resp *http.Response) {
	if resp.StatusCode == http.StatusSwitchingProtocols && resp.Body != nil {
		_ = resp.Body.Close() // nothing to be done about it
		resp.Body = http.NoBody
	}
}

// read takes the whole reply into the call.
func (c *call) read(resp *http.Response) error {
	refuseSwitch(resp)
	limit := int64(maxRefusal)
	success := resp.StatusCode/100 == 2
	if success {
		limit = maxReply
	}
	c.last.status, c.last.header = resp.StatusCode, resp.Header
	if c.last.body == nil {
		c.last.body = bodies.Get().(*bodyBuffer)
	}
	buf := c.last.body
	buf.Reset()
	c.last.tooLong = false
	if resp.Body != nil {
		buf.limited = io.LimitedReader{R: resp.Body, N: limit + 1}
		_, err := buf.ReadFrom(&buf.limited)
		buf.limited.R = nil
		c.last.tooLong = buf.limited.N <= 0
		_ = resp.Body.Close() // nothing to be done about it
		// The status of a 429 or a 5xx says enough, unless ctx ended the reading.
		if enough := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500; err != nil && (!enough || c.Err() != nil) {
			return &brokenReply{resp.StatusCode, err}
		}
	}
	resp.Body = http.NoBody
	if resp.Header["Location"] != nil { // a transport's replies may share what is only read
		resp.Header.Del("Location")
	}
	return nil
}
