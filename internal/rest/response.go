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

// Response is the result of a request: the last response that any attempt received, and the
// Causes if the request failed. The body is in memory.
type Response struct {
	Route  *route.Route
	Path   string
	Status int         // 0 if there was no response
	Header http.Header // nil if there was no response
	Limit  int64       // the length after which the body was cut; 0 if it is whole
	// RetryAfter is how long the response asks to wait, or the rest of the rate-limit pause
	// that prevented the request.
	RetryAfter         time.Duration
	Paused             bool    // a rate-limit pause prevented the request
	MayHaveTakenEffect bool    // the service may have carried out the request
	Causes             []error // errors of the network and of the context, without secrets

	body    *bytes.Buffer    // nil if there is none
	limited io.LimitedReader // reads the body
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

// read reads and closes the body. It reads up to limit bytes of a 2xx. If the body breaks off, r
// has the first part. read removes body and header from resp, because net/http would follow a
// Location, or fail if that is not a URL.
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
	_ = resp.Body.Close() // read to the end, or to the limit
	resp.Header, resp.Body = nil, http.NoBody
	if err != nil {
		return fmt.Errorf("the response broke off: %w", err)
	}
	return nil
}
