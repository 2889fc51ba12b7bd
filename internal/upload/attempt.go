package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// Timeouts end an attempt that no longer moves.
type Timeouts struct {
	// Stall: no part of the recording is handed over for so long. Parts have up to 32 KiB,
	// as the kernel's buffers for a slow connection: 546 bytes a second do for a minute.
	Stall    time.Duration
	Response time.Duration // no response for so long after the last byte
}

// Outcome is what happened in an attempt.
type Outcome struct {
	Response                // StatusCode is 0 if there was none
	Target    *url.URL      // a secret
	Err       error         // why there was no response
	Stalled   bool          // one of the Timeouts was over
	Sent      int64         // bytes of the recording that were handed over to the transport
	Size      int64         // of the recording
	Took      time.Duration // from the beginning to the end
	without   string        // the header that the store rejected; the next attempts leave it out
	permanent bool          // because of the recording, a callback or the store's certificate
	urlLeft   time.Duration // until the URL expires
	noTime    bool          // ctx has ended, or will before the next attempt
}

// attempt makes one PUT.
func (u *Upload) attempt(ctx context.Context) Outcome {
	began := time.Now()
	b, cancel := newBody(ctx, u.Recording)
	defer cancel(nil)
	o, err := run(ctx, func() Outcome { return u.put(ctx, b) })
	if err != nil {
		o = Outcome{Err: u.mask.Err(err), permanent: true}
	}
	o.Target, o.Sent, o.Size = u.target, b.sent.Load(), u.Recording.Size
	o.Took, o.urlLeft = time.Since(began), time.Until(u.expires)
	o.without = rejected(o.Response, u.header)
	return o
}

// stallTimer ends b's request if it no longer moves. It starts again with each part of b.
func (u *Upload) stallTimer(b *body) *time.Timer {
	timer := time.AfterFunc(u.Timeouts.Stall, func() {
		why := fmt.Sprintf("no byte moved for %v, after %d of %d", u.Timeouts.Stall, b.sent.Load(), b.Size)
		if b.sent.Load() >= b.Size {
			why = fmt.Sprintf("no response for %v after the whole recording was handed over", u.Timeouts.Response)
		}
		b.abort(fmt.Errorf("%s: %w", why, os.ErrDeadlineExceeded)) // a net.Error; the caller's context has not expired
	})
	b.moved = func(sent int64) {
		timer.Reset(u.Timeouts.Stall)
		if sent == b.Size {
			timer.Reset(u.Timeouts.Response)
		}
		if u.Progress != nil {
			u.Progress(sent, b.Size)
		}
	}
	return timer
}

// put makes the request, and returns once nothing of it is under way any more. It keeps no
// connection: on a kept one, net/http would send the recording even after an early response.
func (u *Upload) put(caller context.Context, b *body) (o Outcome) {
	timer := u.stallTimer(b)
	defer timer.Stop()
	ctx := httptrace.WithClientTrace(b.ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { timer.Stop() }, // to wait for a free connection is no stall
		ConnectStart: func(string, string) { timer.Reset(u.Timeouts.Stall) },
		GotConn:      func(httptrace.GotConnInfo) { timer.Reset(u.Timeouts.Stall) },
	})
	resp, err := backoff.RoundTrip(u.Transport, (&http.Request{
		Method: http.MethodPut, URL: u.target, Host: u.target.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: u.header.Clone(), Body: io.NopCloser(b), ContentLength: b.Size, Close: true,
	}).WithContext(ctx))
	if err == nil {
		early := b.sent.Load() < b.Size
		o.Response = readResponse(resp, u.target.Host, u.mask)
		if early && o.StatusCode/100 == 2 && o.Message == "" {
			o.Message = u.target.Host + " did not wait for the whole recording"
		}
	} else if o.Stalled = b.ctx.Err() != nil && caller.Err() == nil; o.Stalled {
		err = context.Cause(b.ctx)
	}
	b.abort(nil)
	switch readErr := b.end(); {
	case o.StatusCode/100 == 2:
	case readErr != nil:
		return Outcome{Err: u.unreadable(readErr), permanent: true}
	case err != nil:
		o.Err, o.permanent = u.mask.Err(err), backoff.Permanent(err) && b.sent.Load() == 0
	}
	return o
}

// errGoexit means that a callback ended its goroutine, as a test's FailNow does.
var errGoexit = errors.New("a callback ended its goroutine (runtime.Goexit)")

// run returns what f returns. If f does not return soon after ctx has ended, run leaves it
// to end by itself.
func run[T any](ctx context.Context, f func() T) (T, error) {
	var result, none T
	err := errGoexit // unless f returns
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = f(), nil
	}()
	select {
	case <-ended:
		return result, err
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return result, err
	case <-time.After(100 * time.Millisecond): // f has seen ctx end, and needs a moment to return
		return none, context.Cause(ctx)
	}
}
