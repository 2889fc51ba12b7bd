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

// Response is how a request ended: the last response to any of its attempts, with the
// body in memory, and why there is no better one.
type Response struct {
	Route  *route.Route
	Path   string
	Status int         // 0 if there was no response
	Header http.Header // nil if there was no response
	Limit  int64       // at which a longer body was cut; 0 if the body is whole
	// RetryAfter is what the response asks for, or what is left of the rate-limit pause
	// that held the request back.
	RetryAfter         time.Duration
	Paused             bool    // a rate-limit pause held the request back
	MayHaveTakenEffect bool    // in one of the attempts
	Causes             []error // what ended the request besides the response, without secrets

	body    *bytes.Buffer    // nil if there is none
	limited io.LimitedReader // reads it
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// OK reports whether the request succeeded.
func (r *Response) OK() bool { return r.Causes == nil && r.Status/100 == 2 }

// Body returns the body. It is valid until Release.
func (r *Response) Body() []byte {
	if r.body == nil {
		return nil
	}
	return r.body.Bytes()
}

// Release frees the body for reuse, unless it is large. All other fields stay valid.
func (r *Response) Release() {
	if r.body != nil && r.body.Cap() <= 1<<20 {
		buffers.Put(r.body)
	}
	r.body = nil
}

// read reads and closes the body, up to limit if the status is 2xx. If the body breaks
// off, r keeps the part before. net/http sees neither body nor header: it would follow a
// Location, or fail if it is not a URL.
func (r *Response) read(resp *http.Response, limit int64) error {
	if resp.StatusCode/100 != 2 {
		limit = 256 << 10
	}
	if r.body == nil {
		r.body = buffers.Get().(*bytes.Buffer)
	}
	r.body.Reset()
	r.Status, r.Header, r.Limit = resp.StatusCode, resp.Header, 0
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.limited = io.LimitedReader{R: resp.Body, N: limit + 1}
	_, err := r.body.ReadFrom(&r.limited)
	if r.limited.N <= 0 {
		r.Limit = limit
	}
	r.limited.R = nil     // an observer may keep the Response
	_ = resp.Body.Close() // all of it has been read, or nothing more is wanted
	resp.Header, resp.Body = nil, http.NoBody
	if err != nil {
		return fmt.Errorf("the response broke off: %w", err)
	}
	return nil
}
