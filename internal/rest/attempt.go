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

// answered is what net/http and go-retryablehttp see of every reply, which has been
// read by then: there is no redirect to follow, and nothing to drain.
var answered = &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}

// RoundTrip makes one attempt. It reads the whole reply within the attempt's time
// limit, so that a reply that breaks off counts as a lost connection and no body
// is left open.
//
// There is no CloseIdleConnections beside it: go-retryablehttp would call it when one
// request fails, and close every other's connections.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	call := req.Context().(*call)
	call.attempts.Add(1)
	call.heard = 0
	if c.Observe != nil {
		call.began = time.Now()
	}
	ctx, cancel := context.WithTimeout(call, c.Timeout)
	defer cancel()
	// One that must not be repeated once it may have been read has its connection traced,
	// and so has a deletion: a 404 to its repeat is a success if the first may have arrived.
	if !call.again || call.out.Route.Method == http.MethodDelete {
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
	case ctx.Err() != nil && call.Err() == nil: // os.ErrDeadlineExceeded on purpose: the caller's own context has not expired
		err = fmt.Errorf("no reply within %v: %w", c.Timeout, os.ErrDeadlineExceeded)
	}
	return nil, err
}

// Try says which attempt of which request a context belongs to. Among the values of
// the context, Try{} is its key.
type Try struct {
	Operation route.Operation
	ID        string // of the meeting, where the path holds one
	Number    int    // from 1
	Once      bool   // not to be repeated
}

// Value answers for Try{}, at no cost where nobody asks.
func (c *call) Value(key any) any {
	if key == (Try{}) {
		return Try{c.out.Route.Operation, c.id, int(c.attempts.Load()), c.once}
	}
	return c.Context.Value(key)
}

// Reply is the answer to a request, read as a whole.
type Reply struct {
	Status int
	Header http.Header
	Cut    int64 // the limit that a longer body was cut at; 0: it is whole
	body   *bytes.Buffer
}

// buffers are for bodies.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Came reports whether there was a reply at all.
func (r *Reply) Came() bool { return r.body != nil }

// Body is that of a reply that came. It is valid until Release.
func (r *Reply) Body() []byte { return r.body.Bytes() }

// Release gives the body's buffer back, unless it is large. Status and Header stay.
func (r *Reply) Release() {
	if r.body != nil && r.body.Cap() <= 1<<20 {
		buffers.Put(r.body)
	}
	r.body = nil
}

// read takes in the whole reply. Of one that breaks off it keeps what there is.
func (c *call) read(resp *http.Response) error {
	limit := int64(1 << 20) // of a refusal
	if resp.StatusCode/100 == 2 {
		limit = c.limit
	}
	c.heard = resp.StatusCode
	c.out.RetryAfter = backoff.RetryAfter(resp.StatusCode, resp.Header)
	last := &c.out.Reply
	last.Status, last.Header, last.Cut = resp.StatusCode, resp.Header, 0
	if last.body == nil {
		last.body = buffers.Get().(*bytes.Buffer)
	}
	last.body.Reset()
	c.limited = io.LimitedReader{R: resp.Body, N: limit + 1}
	_, err := last.body.ReadFrom(&c.limited)
	c.limited.R = nil // the call may be kept, as a context
	if c.limited.N <= 0 {
		last.Cut = limit
	}
	_ = resp.Body.Close() // nothing to be done about it
	// The status of a 429 or a 5xx says enough, unless ctx ended the reading.
	if enough := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500; err != nil && (!enough || c.Err() != nil) {
		return fmt.Errorf("the reply broke off: %w", err)
	}
	return nil
}
