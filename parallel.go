package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// A loop is the loop of a caller who ranges over WaitAll, ProcessAll or Follow. The work for each
// meeting runs on a goroutine of its own, but results and callbacks must not: they touch the caller's
// variables, which the loop's body uses, too. So the work sends them to the loop's goroutine.
type loop struct {
	body  func(*Result, error) bool
	calls chan func()
	over  chan struct{} // closed when nobody receives from calls any more

	left bool  // the body has left the loop; belongs to the loop's goroutine
	end  error // why the whole loop ends; belongs to the loop's goroutine
}

// do calls f on the loop's goroutine and waits until f has returned. If the loop is over, do returns
// false instead, maybe without calling f.
func (l *loop) do(f func()) bool {
	done := make(chan struct{})
	select {
	case l.calls <- func() { defer close(done); f() }: // closes done even if f panics
		<-done
		return true
	case <-l.over:
		return false
	}
}

// yield passes a result to the body of the loop. It returns false if the loop is over. After a
// rejected key, the loop begins no more work.
func (l *loop) yield(r *Result, err error) (goOn bool) {
	return l.do(func() {
		if e, ok := errors.AsType[*Error](err); ok && KeyRejected(e) {
			l.end = e
		}
		l.left = !l.body(r, err)
		goOn = !l.left
	}) && goOn
}

// onStatus returns f as a function that calls f on the loop's goroutine.
func (l *loop) onStatus(f func(*Meeting)) func(*Meeting) {
	if f == nil {
		return nil
	}
	return func(m *Meeting) { l.do(func() { f(m) }) }
}

// parallel calls work for each input, each on a goroutine of its own, until all work has ended. If
// the body leaves the loop, parallel cancels the work and waits for it. When ctx is done, or after
// loop.end is set, parallel reads no further input: one that has been read is canceled work. At the
// end parallel yields a nil Result with the reason.
func parallel[In any](ctx context.Context, inputs iter.Seq[In], body func(*Result, error) bool, work func(context.Context, *loop, In)) {
	l := &loop{body: body, calls: make(chan func()), over: make(chan struct{})}
	working, cancel := context.WithCancel(ContextWithResponse(ctx, nil)) // one Response cannot hold those of concurrent requests
	ended, running := make(chan struct{}), 0
	defer func() {
		cancel()
		close(l.over)
		for ; running > 0; running-- {
			<-ended
		}
	}()
	start := func(ctx context.Context, in In) {
		running++
		go func() {
			defer func() { ended <- struct{}{} }()
			work(ctx, l, in)
		}()
	}
	next, done := background(working, l.over, inputs), ctx.Done()
	for !l.left && (next != nil || running > 0) {
		select {
		case in, more := <-next:
			if !more {
				next = nil
				break
			}
			start(working, in)
		case call := <-l.calls:
			call()
		case <-ended:
			running--
		case <-done:
			done, l.end = nil, cmp.Or(l.end, rest.WithCause(ctx, nil))
		}
		if l.end != nil {
			if in, ok := waiting(next); ok {
				start(canceled(working, l.end), in) // so that the caller can account for it
			}
			next = nil
		}
	}
	if !l.left && l.end != nil {
		body(nil, &WaitError{Err: l.end})
	}
}

// waiting returns the input that has been read already, if any.
func waiting[In any](next <-chan In) (in In, ok bool) {
	select {
	case in, ok = <-next:
	default:
	}
	return in, ok
}

// canceled returns a context of ctx that is done because of err.
func canceled(ctx context.Context, err error) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(err)
	return ctx
}

// background reads seq on another goroutine, because seq may block, until over is closed. It closes
// the channel at the end of seq, unless ctx is done first.
func background[T any](ctx context.Context, over <-chan struct{}, seq iter.Seq[T]) <-chan T {
	next := make(chan T)
	go func() {
		for v := range seq {
			select {
			case next <- v:
			case <-over:
				return
			}
		}
		if ctx.Err() == nil {
			close(next)
		}
	}()
	return next
}

// These times limit a fetch, like the poller's requests.
const (
	refetchAfter  = 30 * time.Second
	maxRetryAfter = 5 * time.Minute
	maxForeign    = 10 * time.Minute // without a response of the service itself
)

// fetch calls get until the minutes or the transcript are ready. At most eight requests of a Client
// are under way at a time. Between two requests a fetch does not count, so meetings whose minutes are
// never ready do not stop the others.
func fetch[T any](ctx context.Context, c *core, m *Meeting, get func(context.Context) (T, error)) (T, error) {
	for began := time.Now(); ; {
		out, err := inSlot(ctx, c.fetches, get)
		if err == nil {
			return out, nil
		}
		f := failureOf(err)
		notReady := errors.Is(err, ErrMinutesNotReady) || errors.Is(err, ErrTranscriptNotReady)
		switch {
		case notReady, f.Kind == poll.RateLimited:
			began = time.Now()
		case ctx.Err() != nil, f.Kind == poll.Transient:
		case f.Kind != poll.Passing, time.Since(began) >= maxForeign:
			return out, &WaitError{MeetingID: m.ID, Meeting: m, Err: err}
		}
		if rest.Sleep(ctx, max(refetchAfter, min(f.RetryAfter, maxRetryAfter))) != nil {
			return out, &WaitError{MeetingID: m.ID, Meeting: m, Err: endOf(ctx, err)}
		}
	}
}

// inSlot calls get while it holds one of the slots.
func inSlot[T any](ctx context.Context, slots chan struct{}, get func(context.Context) (T, error)) (out T, err error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return out, rest.WithCause(ctx, nil)
	}
	defer func() { <-slots }()
	return get(ctx)
}
