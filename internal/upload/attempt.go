package upload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// Timeouts end an attempt that makes no progress.
type Timeouts struct {
	// Stall limits the time to connect, the time from then to the first read of the recording, and
	// the time between two reads. Each read returns at most maxRead bytes.
	Stall time.Duration
	// Response limits the time from the last read to the response.
	Response time.Duration
}

// Outcome is what happened in an attempt.
type Outcome struct {
	Response                     // StatusCode is 0 if there was none
	Target         *url.URL      // a secret
	Err            error         // why StatusCode is 0
	Stalled        bool          // one of the Timeouts ended the attempt
	Sent           int64         // bytes of the recording that the transport has read
	Size           int64         // of the recording
	Took           time.Duration // from the beginning to the end
	urlLeft        time.Duration // until the URL expires
	rejectedHeader string        // an optional header that the next attempts omit, because storage rejected it; or ""
	noRetry        bool          // another attempt would fail, too, even with another URL
}

// attempt makes one PUT.
func (u *Upload) attempt(ctx context.Context) (o Outcome) {
	began := time.Now()
	b := newBody(ctx, u.Recording)
	defer b.abort(nil)
	header, err := u.header(ctx)
	if err == nil {
		o, err = run(ctx, func() Outcome { return u.put(ctx, header, b) })
	}
	if err != nil {
		o = Outcome{Err: u.urlMask.Err(err), noRetry: true}
	}
	o.Sent, o.Took = b.at.Load(), time.Since(began)
	o.Target, o.Size, o.urlLeft = u.target, u.Recording.Size, time.Until(u.expires)
	o.rejectedHeader = headerRejectedBy(o.Response, header)
	return o
}

// header returns the header of the next attempt. With Content-MD5, storage rejects an incomplete
// recording. Content-MD5 is not signed, and only AWS version 4 allows a header that is not signed.
func (u *Upload) header(ctx context.Context) (http.Header, error) {
	h := http.Header{"Content-Type": {u.Recording.ContentType}, "User-Agent": u.UserAgent}
	if !u.withoutExpect {
		h.Set("Expect", "100-continue")
	}
	if u.WithoutMD5 || u.target.Query().Get("X-Amz-Algorithm") != "AWS4-HMAC-SHA256" {
		return h, nil
	}
	var err error
	if u.md5 == "" {
		u.md5, err = digest(ctx, u.Recording)
	}
	h.Set("Content-Md5", u.md5)
	return h, err
}

// put makes the request. When it returns, the transport has stopped reading b.
func (u *Upload) put(attemptCtx context.Context, header http.Header, b *body) (o Outcome) {
	timer := u.stallTimer(b)
	defer timer.Stop()
	traced := httptrace.WithClientTrace(b.ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { timer.Stop() }, // waiting for a free connection is not a stall
		ConnectStart: func(string, string) { timer.Reset(u.Timeouts.Stall) },
		GotConn:      func(httptrace.GotConnInfo) { timer.Reset(u.Timeouts.Stall) },
	})
	resp, err := backoff.RoundTrip(u.Transport, (&http.Request{
		Method: http.MethodPut, URL: u.target, Host: u.target.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header.Clone(), Body: io.NopCloser(b), ContentLength: b.Size,
		Close: true, // otherwise net/http would send the rest of b after an early response
	}).WithContext(traced))
	early := b.at.Load() < b.Size // the response came before the whole recording was read
	switch {
	case err != nil && b.ctx.Err() != nil && attemptCtx.Err() == nil: // aborted by the stall timer or by b.Read
		err, o.Stalled = context.Cause(b.ctx), true
	case err == nil:
		o.Response = readResponse(resp, u.target.Host, u.urlMask)
		if early && o.StatusCode/100 == 2 && o.Message == "" {
			o.Message = u.target.Host + " responded before it had the whole recording"
		}
	}
	b.abort(nil)
	readErr := b.wait()
	switch {
	case o.StatusCode/100 == 2: // storage may have the recording, even if readErr is not nil
	case readErr != nil:
		return Outcome{Err: u.urlMask.Err(readErr), noRetry: true}
	case err != nil:
		o.Err = u.urlMask.Err(err)
		o.noRetry = backoff.Permanent(err) && b.at.Load() == 0 // otherwise audio may have arrived
	}
	return o
}

// stallTimer returns a timer that aborts b. Each read restarts the timer.
func (u *Upload) stallTimer(b *body) *time.Timer {
	timer := time.AfterFunc(u.Timeouts.Stall, func() {
		why := fmt.Sprintf("no byte moved for %v, after %d of %d", u.Timeouts.Stall, b.at.Load(), b.Size)
		if b.at.Load() >= b.Size {
			why = fmt.Sprintf("no response for %v after the whole recording was sent", u.Timeouts.Response)
		}
		b.abort(fmt.Errorf("%s: %w", why, os.ErrDeadlineExceeded)) // not context.DeadlineExceeded, which is about the caller's context
	})
	b.onRead = func(at int64) {
		limit := u.Timeouts.Stall
		if at == b.Size {
			limit = u.Timeouts.Response
		}
		timer.Reset(limit)
		if u.Progress != nil {
			u.Progress(at, b.Size)
		}
	}
	return timer
}
