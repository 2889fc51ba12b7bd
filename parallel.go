package minutes

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// A loop is the loop of a caller who ranges over WaitAll, ProcessAll or Follow. The work for each
// meeting runs on a goroutine of its own, but results and callbacks must not: they touch the caller's
// variables, which the loop's body uses, too. So the work sends them to the loop's goroutine.
type loop struct {
	body   func(*Result, error) bool
	calls  chan func()
	ended  chan struct{} // receives from each work that ends
	over   chan struct{} // closed when nobody receives from calls any more
	cancel func()        // ends all work

	left bool  // the body has left the loop; belongs to the loop's goroutine
	end  error // why the whole loop ends; belongs to the loop's goroutine
}

// run calls work, and reports its end.
func (l *loop) run(work func()) {
	defer func() { l.ended <- struct{}{} }()
	work()
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

// stop ends the whole loop, and all work, with an error.
func (l *loop) stop(err error) {
	l.do(func() {
		l.end = err
		l.cancel()
	})
}

// parallel calls work for each input, each on a goroutine of its own, until all work has ended. If the
// body leaves the loop, parallel cancels the work and waits for it. When ctx is done, or after loop.end
// is set, parallel takes no further input but one that has been read already, and at the end it yields a
// nil Result with the reason.
func parallel[In any](ctx context.Context, body func(*Result, error) bool, inputs inputs[In], work func(context.Context, *loop, In)) {
	ctx, cancel := context.WithCancel(ContextWithResponse(ctx, nil)) // one Response cannot hold those of concurrent requests
	l := &loop{body: body, calls: make(chan func()), ended: make(chan struct{}), over: make(chan struct{}), cancel: cancel}
	running := 0
	defer func() {
		cancel()
		close(l.over)
		for ; running > 0; running-- {
			<-l.ended
		}
	}()
	next, done := background(ctx, l, inputs), ctx.Done()
	take := func(in In, more bool) {
		if !more {
			next = nil
			return
		}
		running++
		go l.run(func() { work(ctx, l, in) })
	}
	for !l.left && (next != nil || running > 0) {
		select {
		case in, more := <-next:
			take(in, more)
		case call := <-l.calls:
			call()
		case <-l.ended:
			running--
		case <-done:
			done, l.end = nil, cmp.Or(l.end, rest.WithCause(ctx, nil))
		}
		if l.end != nil {
			select {
			case in, more := <-next: // otherwise lost, since a sequence that reads a channel cannot give it back
				take(in, more)
			default:
			}
			next = nil
		}
	}
	if !l.left && l.end != nil {
		body(nil, &WaitError{Err: l.end})
	}
}

// inputs yields what a loop works on. Its error stops the loop.
type inputs[In any] func(ctx context.Context, yield func(In) bool) error

// background reads from inputs on another goroutine, because inputs may block.
func background[In any](ctx context.Context, l *loop, from inputs[In]) <-chan In {
	read := make(chan In)
	go func() {
		err := from(ctx, func(in In) bool {
			select {
			case read <- in:
				return ctx.Err() == nil
			case <-l.over:
				return false
			}
		})
		switch {
		case ctx.Err() != nil:
		case err != nil:
			l.stop(err)
		default:
			close(read)
		}
	}()
	return read
}

// fetch calls get until the minutes or the transcript are ready, at intervals like the poller's. At most
// eight requests of a Client are under way at a time. Between two requests a fetch does not count, so
// meetings whose minutes are never ready do not stop the others.
func fetch[T any](ctx context.Context, c *core, m *Meeting, get func(context.Context) (T, error)) (T, error) {
	for began := time.Now(); ; {
		out, err := inSlot(ctx, c.fetches, get)
		if err == nil {
			return out, nil
		}
		f := failureOf(err)
		switch {
		case errors.Is(err, ErrMinutesNotReady), errors.Is(err, ErrTranscriptNotReady), f.Kind == poll.RateLimited:
			began = time.Now()
		case ctx.Err() != nil, f.Kind == poll.Transient:
		case f.Kind != poll.Passing, time.Since(began) >= poll.Hopeless:
			return out, &WaitError{MeetingID: m.ID, Meeting: m, Err: err}
		}
		if rest.Sleep(ctx, max(poll.Interval, min(f.RetryAfter, poll.MaxAsked))) != nil {
			return out, &WaitError{MeetingID: m.ID, Meeting: m, Err: rest.WithCause(ctx, err)}
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
