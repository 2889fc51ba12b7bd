// Package storage makes a PUT of a recording to storage, and decides what follows it. It knows HTTP and
// the errors of S3, but not the service: the caller gets the upload URL and polls the meeting.
//
//	Put.Send  makes one attempt and returns its Outcome (put.go, body.go, connection.go)
//	Run       calls a function that may block for longer than its context (run.go)
//	Decide    decides what follows, without a clock or any I/O (decide.go)
package storage

import (
	"bytes"
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
	// URL is presigned, so its query is a secret.
	URL *url.URL
	// Audio is read from its beginning in each attempt. If it has the method Stat, as a file has, an
	// attempt ends without being stored if the size is not Size, or if someone writes to it meanwhile.
	Audio io.ReaderAt
	// Size is the length of Audio in bytes.
	Size int64
	// ContentType is the one that the URL is signed for.
	ContentType string
	// UserAgent is the value of that header.
	UserAgent string
	// WithoutExpect omits the header Expect: 100-continue, because storage rejected it.
	WithoutExpect bool
	// Progress, unless nil, is called after each read of the recording, but never after Send has returned.
	Progress func(sent, total int64)

	// Transport connects to storage.
	Transport http.RoundTripper
	// Mask removes the secrets of URL, and others, from errors.
	Mask *rest.Mask
	// Stall limits the time to connect, the time between two reads of the recording, and the time of
	// each read, including Progress.
	Stall time.Duration
	// Response limits the time from the last read to the response.
	Response time.Duration
}

// Outcome is how an attempt ended.
type Outcome struct {
	// StatusCode is 0 if there was no response.
	StatusCode int
	// Code is that of an error, such as "SlowDown".
	Code string
	// Message is that of an error. With a 2xx, it says why the 2xx does not prove that all is stored.
	Message string
	// RequestID is storage's, of an error.
	RequestID string
	// RetryAfter is how long storage asks to wait; 0 if it does not.
	RetryAfter time.Duration
	// Err is why there was no response; without secrets.
	Err error
	// Sent is how many bytes of the recording the transport has read.
	Sent int64
	// Took is the time from the beginning to the end of the attempt.
	Took time.Duration
}

// Busy reports whether storage rejected the attempt because it has too much to do.
func (o Outcome) Busy() bool {
	return o.StatusCode == http.StatusTooManyRequests || o.StatusCode == http.StatusServiceUnavailable
}

var (
	// ErrUnreadable is in the Err of an Outcome if the recording could not be read.
	ErrUnreadable = errors.New("reading the recording")
	// ErrChanged is in it, too, if that was because the recording changed.
	ErrChanged = errors.New("it changed during the upload")
	// ErrStalled is in it if Put.Stall or Put.Response ended the attempt. It is not
	// context.DeadlineExceeded, which is about the caller's context.
	ErrStalled = fmt.Errorf("upload timeout: %w", os.ErrDeadlineExceeded)
)

// Send makes the attempt. It returns soon after ctx is done, or after one of the timeouts Stall and
// Response has passed, even if Audio, Progress or Transport blocks. Only the blocked call may then still
// be running, with this copy of the Put.
func (p Put) Send(ctx context.Context) Outcome {
	began := time.Now()
	b := &body{Put: &p, turn: make(chan struct{}, 1)}
	b.ctx, b.abort = context.WithCancelCause(ctx)
	b.watchdog = time.AfterFunc(p.Stall, b.stalled)
	o, err := Run(b.ctx, func() (Outcome, error) { return p.roundTrip(b) }, func(Outcome) {})
	cause := context.Cause(b.ctx) // nil unless ctx, the watchdog or a failed read ended the attempt
	// A 2xx counts even if reading failed, because storage may have the recording. Any other response
	// does not, because the failed read has caused it.
	success := o.StatusCode/100 == 2
	if o.StatusCode == 0 || !success && errors.Is(cause, ErrUnreadable) {
		o = Outcome{Err: cmp.Or(cause, err)}
	}
	b.endReads()
	o.Sent = b.sent.Load()
	o.Took = time.Since(began)
	return o
}

// roundTrip sends the request and reads the response.
func (p *Put) roundTrip(b *body) (Outcome, error) {
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
	// The transport hears of the end of ctx only after the reset.
	ctx, end := context.WithCancelCause(context.WithoutCancel(b.ctx))
	defer end(nil)
	stop := context.AfterFunc(b.ctx, func() {
		b.connection.reset()
		end(context.Cause(b.ctx))
	})
	defer stop()
	resp, err := p.Transport.RoundTrip(req.WithContext(b.connection.trace(ctx)))
	switch {
	case err != nil:
		return Outcome{}, p.Mask.Err(err)
	case resp == nil:
		return Outcome{}, errors.New("the transport returned neither a response nor an error")
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	defer resp.Body.Close()
	whole := b.sent.Load() == p.Size
	if resp.StatusCode/100 == 2 {
		return Outcome{StatusCode: resp.StatusCode, Message: p.doubt(resp, whole)}, nil
	}
	return p.readError(resp), nil
}

// maxText is how much of a response is read, in bytes.
const maxText = 64 << 10

// doubt returns why a 2xx does not prove that the recording is stored, or "". An HTML page is that of
// another server, such as a proxy that asks for a login. A Content-Type alone is not a page: some storage
// sends text/html without a body.
func (p *Put) doubt(resp *http.Response, whole bool) string {
	if strings.Contains(strings.ToLower(resp.Header.Get("Content-Type")), "html") {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxText))
		if err != nil || len(bytes.TrimSpace(text)) > 0 {
			return "the response is not from storage: " + p.Mask.Page(p.URL.Host, resp.Header, text)
		}
	}
	if !whole {
		return p.URL.Host + " responded before it had the whole recording"
	}
	return ""
}

// readError reads a response that is not a 2xx.
func (p *Put) readError(resp *http.Response) Outcome {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxText)) // if it breaks off, its beginning may say enough
	// Other elements of the error may contain the key id and the signature.
	var e struct {
		XMLName   struct{} `xml:"Error"`
		Code      string
		Message   string
		RequestID string `xml:"RequestId"`
	}
	_ = xml.Unmarshal(text, &e) // if the XML breaks off, e has the elements before
	label := func(s string) string { return p.Mask.Label(strings.TrimSpace(s)) }
	o := Outcome{
		StatusCode: resp.StatusCode,
		Code:       label(e.Code),
		Message:    p.Mask.Text(strings.TrimSpace(e.Message)),
		RequestID:  label(cmp.Or(e.RequestID, resp.Header.Get("X-Amz-Request-Id"))),
		RetryAfter: rest.RetryAfter(resp),
	}
	switch {
	case o.Code != "" || o.Message != "":
	case resp.StatusCode/100 == 3:
		o.Message = p.Mask.Redirect(p.URL.Host, resp.Header)
	default:
		o.Message = "the response is not an XML error of storage: " + p.Mask.Page(p.URL.Host, resp.Header, text)
	}
	return o
}
