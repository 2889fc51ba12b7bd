// Package storage makes a PUT of a recording to storage, and decides what follows it. It knows HTTP
// and the errors of S3, but not the service: the caller gets the upload URL and polls the meeting.
//
//	Put.Do  makes one attempt and returns its Outcome (put.go, body.go, response.go)
//	Decide  decides what follows, without a clock or any I/O (decide.go)
//	Run     calls a function that may block for longer than its context (run.go)
package storage

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// Put is a PUT of a whole recording, to a presigned URL.
type Put struct {
	URL         *url.URL // a secret
	Audio       io.ReaderAt
	Size        int64
	ContentType string
	UserAgent   string
	// WithoutExpect omits the header Expect: 100-continue, because storage rejected it.
	WithoutExpect bool
	// Progress is called after each read of the recording, but never after Do has returned. It may
	// be nil.
	Progress func(sent, total int64)

	Transport http.RoundTripper
	Mask      rest.Mask // removes the secrets of URL, and others, from errors
	// Stall limits the time to connect, the time between two reads of the recording, and the time of
	// each read, including Progress. Response limits the time from the last read to the response.
	Stall, Response time.Duration
}

// Outcome is how an attempt ended.
type Outcome struct {
	StatusCode               int // 0 if there was no response
	Code, Message, RequestID string
	RetryAfter               time.Duration
	// Unproven means that storage, or somebody else, sent a 2xx that does not prove that the whole
	// recording is stored. Message says why.
	Unproven bool

	Err        error // why there was no response; without secrets
	Unreadable bool  // Err is that of reading the recording
	Stalled    bool  // Put.Stall or Put.Response ended the attempt

	Sent int64 // bytes of the recording that the transport has read
	Took time.Duration
}

// abortError is the cause of an attempt's context if the attempt itself ended it.
type abortError struct {
	error
	unreadable, stalled bool
}

func (e *abortError) Unwrap() error { return e.error }

// Do makes the attempt. It returns soon after ctx is done, and after Stall or Response at the latest,
// even if Audio, Progress or Transport blocks. Only the blocked call may then still be running.
func (p *Put) Do(ctx context.Context) Outcome {
	began := time.Now()
	b := newBody(ctx, p)
	o, err := Run(b.ctx, func() (Outcome, error) { return p.send(b), nil }, func(Outcome) {})
	cause := cmp.Or(context.Cause(b.ctx), err)
	own, aborted := errors.AsType[*abortError](cause)
	switch {
	case o.StatusCode/100 == 2: // storage may have the recording, whatever happened here
	case aborted && (own.unreadable || o.StatusCode == 0):
		o = Outcome{Err: own, Unreadable: own.unreadable, Stalled: own.stalled}
	case o.StatusCode == 0 && cause != nil:
		o = Outcome{Err: cause}
	}
	b.end()
	o.Sent, o.Took = b.at.Load(), time.Since(began)
	return o
}

// send makes the request and reads the response.
func (p *Put) send(b *body) Outcome {
	req := &http.Request{
		Method: http.MethodPut, URL: p.URL, Host: p.URL.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {p.ContentType}, "User-Agent": {p.UserAgent}},
		Body:          io.NopCloser(b),
		ContentLength: p.Size,
		Close:         true, // otherwise net/http would send the rest of b after an early response
	}
	if !p.WithoutExpect { // storage can reject the request before it gets the recording
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := p.Transport.RoundTrip(req.WithContext(b.ctx))
	if err == nil && resp == nil {
		err = errors.New("the transport returned neither a response nor an error")
	}
	if err != nil {
		return Outcome{Err: p.Mask.Err(err)}
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	whole := b.at.Load() == p.Size // before the response
	return read(resp, p.URL.Host, p.Mask, whole)
}
