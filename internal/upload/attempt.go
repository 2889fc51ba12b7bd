package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/roundtrip"
)

// Timeouts end an attempt that no longer moves.
type Timeouts struct {
	Stall    time.Duration // the transport reads no more of the recording for so long
	Response time.Duration // no response for so long after the whole recording was handed over
}

// outcome is what happened in an attempt.
type outcome struct {
	Response
	err       error         // why there was no response
	aborted   bool          // by the recording or a callback; the network is not to blame
	untrusted bool          // the store's certificate is not valid
	stalled   bool          // one of the Timeouts was over
	expect    bool          // the request had the header Expect
	sent      int64         // bytes of the recording that were handed over to the transport
	sentAll   bool          // all of them were
	took      time.Duration // of the whole attempt
	urlLeft   time.Duration // until the URL expires
	noTime    bool          // ctx has ended, or will before the next attempt
}

// attempt makes one PUT.
func (u *Upload) attempt(ctx context.Context) outcome {
	began, sent := time.Now(), new(atomic.Int64)
	o, err := run(ctx, func() outcome { return u.put(ctx, sent) })
	if err != nil {
		o = outcome{err: u.mask.Err(err), aborted: true}
	}
	o.sent = sent.Load()
	o.sentAll = o.sent == u.Recording.Size
	o.expect = u.header.Get("Expect") != ""
	o.took, o.urlLeft = time.Since(began), time.Until(u.expires)
	return o
}

// put makes the request. It does not return before all of the request has ended.
func (u *Upload) put(caller context.Context, sent *atomic.Int64) outcome {
	ctx, cancel := context.WithCancelCause(caller)
	defer cancel(nil)
	timer := time.AfterFunc(u.Timeouts.Stall, func() {
		why := fmt.Sprintf("no byte of the upload moved for %v", u.Timeouts.Stall)
		if sent.Load() >= u.Recording.Size {
			why = fmt.Sprintf("no response for %v after the whole recording was handed over", u.Timeouts.Response)
		}
		cancel(fmt.Errorf("%s: %w", why, os.ErrDeadlineExceeded)) // a net.Error; the caller's context has not expired
	})
	defer timer.Stop()
	b := &body{Recording: u.Recording, ctx: ctx, abort: cancel, sent: sent, lock: make(chan struct{}, 1)}
	b.moved = func(sent, total int64) {
		limit := u.Timeouts.Stall
		if sent == total {
			limit = u.Timeouts.Response
		}
		timer.Reset(limit)
		if u.Progress != nil {
			u.Progress(sent, total)
		}
	}
	conn := new(roundtrip.Conn)
	resp, err := roundtrip.Do(u.Transport, (&http.Request{
		Method: http.MethodPut, URL: u.target, Host: u.target.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: u.header.Clone(), Body: io.NopCloser(b), ContentLength: u.Recording.Size,
	}).WithContext(conn.Trace(ctx)))
	var o outcome
	if err == nil {
		o.Response = readResponse(resp, u.mask)
	} else if o.stalled = ctx.Err() != nil && caller.Err() == nil; o.stalled {
		err = context.Cause(ctx)
	}
	cancel(nil)
	b.lock <- struct{}{} // waits for a Read that is under way; there is no other, since ctx has ended
	readErr := b.err
	<-b.lock
	switch {
	case o.StatusCode/100 == 2:
	case readErr != nil:
		return outcome{err: u.unreadable(readErr), aborted: true}
	case err != nil:
		o.untrusted, o.err = roundtrip.Untrusted(err), u.mask.Err(err)
		// Name the address if there was no connection to it. A proxy's errors seldom do.
		if hop := conn.Hop(); sent.Load() == 0 && conn.NeverMade(err) && !strings.Contains(o.err.Error(), hop) {
			o.err = fmt.Errorf("no connection to %s: %w", hop, o.err)
		}
	}
	return o
}

// errGoexit is for callbacks that end as a test's FailNow does.
var errGoexit = errors.New("a callback ended its goroutine (runtime.Goexit)")

// run returns what f returns. f runs on another goroutine. If it has not returned soon after ctx has ended, run
// leaves it to end by itself.
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
	case <-time.After(100 * time.Millisecond): // for f to see the end of ctx and return
		return none, context.Cause(ctx)
	}
}
