package minutes

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// A loop is the loop of a caller who ranges over WaitAll, ProcessAll or Follow. The work for each
// meeting runs on a goroutine of its own, but results and callbacks must not: they touch the caller's
// variables, which the loop's body uses, too. So everything that concerns the loop is a function that
// runs on the loop's goroutine, and the fields below over belong to that goroutine.
type loop struct {
	body   func(*Result, error) bool
	calls  chan func()
	over   chan struct{} // closed when nobody receives from calls any more
	cancel func()        // ends all work

	reading bool  // there may be further inputs
	working int   // the work under way
	left    bool  // the body has left the loop
	end     error // why the whole loop ends
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
		l.end = cmp.Or(l.end, err)
		l.cancel()
	})
}

// next returns what to do next on the loop's goroutine, or nil if the loop is over. An input that was
// read when the loop ends still counts, because a sequence that reads a channel cannot give it back.
func (l *loop) next() func() {
	switch {
	case l.left:
		return nil
	case l.working > 0, l.reading && l.end == nil:
		return <-l.calls
	}
	select {
	case call := <-l.calls:
		return call
	default:
		return nil
	}
}

// inputs yields what a loop works on, and may block. Its error stops the loop.
type inputs[In any] func(ctx context.Context, yield func(In) bool) error

// parallel calls work for each input, each on a goroutine of its own, until all work has ended. If the
// body leaves the loop, parallel cancels the work and waits for it. When ctx is done, or after loop.end
// is set, it takes no further input, and at the end it yields a nil Result with the reason.
func parallel[In any](ctx context.Context, body func(*Result, error) bool, inputs inputs[In], work func(context.Context, *loop, In)) {
	ctx, cancel := context.WithCancel(ContextWithResponse(ctx, nil)) // one Response cannot hold those of concurrent requests
	l := &loop{body: body, calls: make(chan func()), over: make(chan struct{}), cancel: cancel, reading: true}
	var all sync.WaitGroup
	defer all.Wait()
	defer close(l.over)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.stop(rest.WithCause(ctx, nil)) })()
	begin := func(in In) (more bool) {
		l.do(func() {
			l.working++
			all.Go(func() {
				defer l.do(func() { l.working-- })
				work(ctx, l, in)
			})
			more = l.end == nil
		})
		return more
	}
	go func() {
		if err := inputs(ctx, begin); err != nil {
			l.stop(err)
		}
		l.do(func() { l.reading = false })
	}()
	for call := l.next(); call != nil; call = l.next() {
		call()
	}
	if !l.left && l.end != nil {
		body(nil, &WaitError{Err: l.end})
	}
}

// fetch calls get until the minutes or the transcript are ready, at intervals like the poller's. At most
// eight requests of a Client are under way at a time. Between two requests a fetch does not count, so
// meetings whose minutes are never ready do not stop the others.
func fetch[T any](ctx context.Context, c *core, m *Meeting, get func(context.Context) (T, error)) (T, error) {
	for began := time.Now(); ; {
		out, err := inSlot(ctx, c.fetchSlots, get)
		if err == nil {
			return out, nil
		}
		f := failureOf(err)
		switch {
		case errors.Is(err, ErrMinutesNotReady), errors.Is(err, ErrTranscriptNotReady), f.Kind == poll.RateLimited:
			began = time.Now()
		case ctx.Err() != nil, f.Kind == poll.Transient:
		case f.Kind != poll.Foreign, time.Since(began) >= poll.Hopeless:
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
