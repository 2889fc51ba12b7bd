// Package storage makes a PUT of a recording to storage, and decides what follows it. It knows HTTP
// and the errors of S3, but not the service: the caller gets the upload URL and polls the meeting.
//
//	Put.Do  makes one attempt and returns its Outcome (put.go, body.go)
//	Run     calls a function that may block for longer than its context (body.go)
//	Decide  decides what follows, without a clock or any I/O (decide.go)
package storage

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
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
	// Progress, unless nil, is called after each read of the recording, but never after Do has returned.
	Progress func(sent, total int64)

	Transport http.RoundTripper
	Mask      *rest.Mask // removes the secrets of URL, and others, from errors
	// Stall limits the time to connect, the time between two reads of the recording, and the time of
	// each read, including Progress. Response limits the time from the last read to the response.
	Stall, Response time.Duration
}

// Outcome is how an attempt ended.
type Outcome struct {
	StatusCode               int    // 0 if there was no response
	Code, Message, RequestID string // of an error; the Message of a 2xx says why it does not prove that all is stored
	RetryAfter               time.Duration
	Err                      error // why there was no response; without secrets
	Sent                     int64 // bytes of the recording that the transport has read
	Took                     time.Duration
}

var (
	// ErrUnreadable is in the Err of an Outcome if the recording could not be read.
	ErrUnreadable = errors.New("reading the recording")
	// ErrStalled is in it if Put.Stall or Put.Response ended the attempt. It is no
	// context.DeadlineExceeded, which is about the caller's context.
	ErrStalled = fmt.Errorf("upload timeout: %w", os.ErrDeadlineExceeded)
)

// Do makes the attempt. It returns soon after ctx is done, and after Stall or Response at the latest, even if Audio,
// Progress or Transport blocks. Only the blocked call may then still be running, with this copy of the Put.
func (p Put) Do(ctx context.Context) Outcome {
	began := time.Now()
	b := &body{Put: &p, turn: make(chan struct{}, 1)}
	b.ctx, b.abort = context.WithCancelCause(ctx)
	b.watchdog = time.AfterFunc(p.Stall, b.stalled)
	o, err := Run(b.ctx, func() (Outcome, error) { return p.send(b) }, func(Outcome) {})
	cause := context.Cause(b.ctx)
	success := o.StatusCode/100 == 2 // storage may have the recording, whatever happened here
	if o.StatusCode == 0 || !success && errors.Is(cause, ErrUnreadable) {
		o = Outcome{Err: cmp.Or(cause, err)}
	}
	b.end()
	o.Sent, o.Took = b.sent.Load(), time.Since(began)
	return o
}

// send makes the request and reads the response.
func (p *Put) send(b *body) (Outcome, error) {
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
	switch {
	case err != nil:
		return Outcome{}, p.Mask.Err(err)
	case resp == nil:
		return Outcome{}, errors.New("the transport returned neither a response nor an error")
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	defer resp.Body.Close()
	return p.read(resp, b.sent.Load() == p.Size), nil
}

// read reads a response that came after the whole recording, or earlier.
func (p *Put) read(resp *http.Response, whole bool) Outcome {
	o, host := Outcome{StatusCode: resp.StatusCode}, p.URL.Host
	success := resp.StatusCode/100 == 2
	if success && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		if !whole {
			o.Message = host + " responded before it had the whole recording"
		}
		return o
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // if it breaks off, its beginning may say enough
	var e struct {                                           // its other elements may contain the key id and the signature
		XMLName   struct{} `xml:"Error"`
		Code      string
		Message   string
		RequestID string `xml:"RequestId"`
	}
	_ = xml.Unmarshal(text, &e) // if the XML breaks off, e has the elements before
	clean := func(s string) string { return p.Mask.Text(strings.TrimSpace(s)) }
	o.RetryAfter = rest.RetryAfter(resp)
	o.Code, o.Message = clean(e.Code), clean(e.Message)
	o.RequestID = clean(cmp.Or(e.RequestID, resp.Header.Get("X-Amz-Request-Id")))
	switch {
	case success: // such as the page of a proxy that asks for a login
		o.Message = "the response is not from storage: " + p.Mask.Page(host, resp.Header, text)
	case o.Code != "" || o.Message != "":
	case resp.StatusCode/100 == 3:
		o.Message = p.Mask.Redirect(host, resp.Header)
	default:
		o.Message = "the response is not an XML error of storage: " + p.Mask.Page(host, resp.Header, text)
	}
	return o
}
