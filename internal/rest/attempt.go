package rest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/roundtrip"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// answered stands in for every reply, since apiCall.read has already read the real one:
// net/http finds no redirect to follow, and go-retryablehttp nothing to drain.
var answered = &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}

// RoundTrip makes one attempt: the Client is the transport of its own http.Client. It
// reads the whole reply within the attempt's time limit, so a reply that breaks off
// counts as a lost connection and no body is left open.
//
// The Client has no CloseIdleConnections: go-retryablehttp would call it when a request
// fails, and close the connections of all requests.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	call := req.Context().(*apiCall)
	call.attempts.Add(1)
	call.status = 0
	if c.Observe != nil {
		call.began = time.Now()
	}
	ctx, cancel := context.WithTimeout(call, c.Timeout)
	defer cancel()
	// Trace the connection if the request must not be repeated after the server may have
	// read it. Also for DELETE: a 404 to its repeat means success if the first may have arrived.
	if !call.repeatable || call.outcome.Route.Method == http.MethodDelete {
		call.conn = new(roundtrip.Conn)
		ctx = call.conn.Trace(ctx)
	}
	attempt := req.WithContext(ctx)
	attempt.Header = call.header()
	resp, err := roundtrip.Do(c.Transport, attempt)
	if err == nil {
		err = call.read(resp)
	}
	switch {
	case err == nil:
		return answered, nil
	case ctx.Err() != nil && call.Err() == nil: // os.ErrDeadlineExceeded, since the caller's own context has not expired
		err = fmt.Errorf("no reply within %v: %w", c.Timeout, os.ErrDeadlineExceeded)
	}
	return nil, err
}

// Try identifies an attempt. ctx.Value(Try{}) returns it.
type Try struct {
	Operation route.Operation
	ID        string // the meeting's id; "" if the path holds none
	Number    int    // the attempt's, from 1
	Once      bool   // the request is never repeated
}

// Value returns the Try for the key Try{}. It is made only when it is asked for.
func (c *apiCall) Value(key any) any {
	if key == (Try{}) {
		return Try{c.outcome.Route.Operation, c.id, int(c.attempts.Load()), c.once}
	}
	return c.Context.Value(key)
}

// Attempt describes an attempt that has ended.
type Attempt struct {
	Took     time.Duration
	Err      error         // nil if there was a reply; may show a secret
	Again    bool          // another attempt follows
	Wait     time.Duration // before another attempt; set even if Again is false
	CoolDown time.Duration // of all requests, begun by this attempt; 0: none, or a longer one was running
	*Failure               // what is known so far; must not be changed
}

// Reply is the reply to a request, already read.
type Reply struct {
	Status int
	Header http.Header
	Cut    int64 // the limit at which a longer body was cut; 0: the body is whole
	body   *bytes.Buffer
}

// buffers holds buffers for bodies.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Came reports whether there was a reply at all.
func (r *Reply) Came() bool { return r.body != nil }

// Body returns the body, if Came. It is valid until Release.
func (r *Reply) Body() []byte { return r.body.Bytes() }

// Release gives the body's buffer back, unless it is large. Status and Header stay valid.
func (r *Reply) Release() {
	if r.body != nil && r.body.Cap() <= 1<<20 {
		buffers.Put(r.body)
	}
	r.body = nil
}

// read reads the whole reply. If the body breaks off, the part before is kept.
func (c *apiCall) read(resp *http.Response) error {
	limit := int64(1 << 20) // for an error reply
	if resp.StatusCode/100 == 2 {
		limit = c.limit
	}
	c.status = resp.StatusCode
	c.outcome.RetryAfter = backoff.RetryAfter(resp.StatusCode, resp.Header)
	last := &c.outcome.Reply
	last.Status, last.Header, last.Cut = resp.StatusCode, resp.Header, 0
	if last.body == nil {
		last.body = buffers.Get().(*bytes.Buffer)
	}
	last.body.Reset()
	c.limited = io.LimitedReader{R: resp.Body, N: limit + 1}
	_, err := last.body.ReadFrom(&c.limited)
	c.limited.R = nil // somebody may keep the call, as a context
	if c.limited.N <= 0 {
		last.Cut = limit
	}
	_ = resp.Body.Close() // nothing to do about an error
	// For a 429 or 5xx the status is enough, even if the body broke off, unless ctx has ended.
	if enough := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500; err != nil && (!enough || c.Err() != nil) {
		return fmt.Errorf("the reply broke off: %w", err)
	}
	return nil
}
