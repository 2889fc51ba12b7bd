package rest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Response is a response whose body is in memory.
type Response struct {
	Status  int
	Header  http.Header
	Limit   int64 // at which a longer body was cut; 0 if the body is whole
	content *body
}

// Failure is a request that did not succeed. Its Response is the last one to any of the
// attempts; Status is 0 if there was none.
type Failure struct {
	Response
	Route *route.Route
	Path  string
	// RetryAfter is what the response asks for, or what is left of the rate-limit pause
	// that held the request back.
	RetryAfter         time.Duration
	Paused             bool    // a rate-limit pause held the request back
	MayHaveTakenEffect bool    // in one of the attempts
	Causes             []error // what else ended the request, without secrets
}

// body is a body in memory. Closing it does nothing.
type body struct {
	bytes.Reader // of stored
	stored       bytes.Buffer
	limited      io.LimitedReader // of the network
}

func (*body) Close() error { return nil }

var bodies = sync.Pool{New: func() any { return new(body) }}

// Received reports whether there was a response at all.
func (r *Response) Received() bool { return r.content != nil }

// Body returns the body, if Received. It is valid until Release.
func (r *Response) Body() []byte { return r.content.stored.Bytes() }

// Release frees the body for reuse, unless it is large. Status and Header stay valid.
func (r *Response) Release() {
	if r.content != nil && r.content.stored.Cap() <= 1<<20 {
		bodies.Put(r.content)
	}
	r.content = nil
}

// read reads the whole body, up to limit if the status is 2xx, and puts what it has read
// in its place. If the body breaks off, r keeps the part before.
func (r *Response) read(resp *http.Response, limit int64) error {
	if resp.StatusCode/100 != 2 {
		limit = 256 << 10
	}
	if r.content == nil {
		r.content = bodies.Get().(*body)
	}
	r.Status, r.Header, r.Limit = resp.StatusCode, resp.Header, 0
	b := r.content
	b.stored.Reset()
	b.limited = io.LimitedReader{R: resp.Body, N: limit + 1}
	_, err := b.stored.ReadFrom(&b.limited)
	if b.limited.N == 0 {
		r.Limit = limit
	}
	b.limited.R = nil
	_ = resp.Body.Close() // all of it has been read, or nothing more is wanted
	b.Reset(b.stored.Bytes())
	resp.Body = b
	resp.Header.Del("Location") // net/http would follow it, or fail if it is not a URL
	if err != nil {
		return fmt.Errorf("the response broke off: %w", err)
	}
	return nil
}
