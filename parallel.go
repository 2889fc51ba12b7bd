package minutes

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// A loop is the loop of a caller who ranges over WaitAll, ProcessAll or Follow. The work for each
// meeting runs on a goroutine of its own. But the body of the loop, OnStatus and Handled use the
// caller's variables, so they must all run on the caller's goroutine: work hands functions to it,
// and run calls one after the other.
type loop struct {
	body   func(*Result, error) bool
	tasks  chan func()        // for the caller's goroutine
	over   chan struct{}      // closed when nobody receives from tasks any more
	cancel context.CancelFunc // ends all work
	unseen chan struct{}      // holds a token for each meeting from its fetch until the body has its Result

	// stopReading cancels the ctx of the inputs, which ends every wait of theirs. A sequence of the
	// caller's goes on until it next yields. The work goes on.
	stopReading context.CancelFunc

	// workers are the goroutines that work on inputs.
	workers sync.WaitGroup
	// inputsEnded is closed when there are no further inputs.
	inputsEnded chan struct{}

	// The following fields belong to the caller's goroutine.
	working int   // how many inputs are being worked on
	left    bool  // the body has left the loop
	stopped error // why no further input is read, which the body gets last; nil if the inputs just end
}

const (
	// maxUnseen is how many fetched results of a loop may wait for its body, so that a slow body
	// does not fill the memory with minutes.
	maxUnseen = 8
	// moment is how long the end of a loop waits for its sequence of inputs. If the sequence is
	// blocked, for example because it receives from a channel, nobody can end it.
	moment = 100 * time.Millisecond
)

// inputs yields what a loop works on, and may block. Its ctx is done when the loop reads no further
// input. Its error, which only Follow's returns, aborts the loop.
type inputs[In any] func(ctx context.Context, yield func(In) bool) error

// parallel calls work for each input, each on a goroutine of its own, and returns when all work has
// ended. What ends a loop early:
//
//   - The body leaves it: parallel cancels the work.
//   - ctx is done, or a call of abort: parallel reads no further input, cancels the work, and yields
//     the reason last.
//   - A rejected key: parallel reads no further input, lets the work go on, and yields the reason last.
func parallel[In any](
	ctx context.Context, body func(*Result, error) bool, inputs inputs[In], work func(context.Context, *loop, In),
) {
	if ctx.Err() != nil { // then run would end at once, and the first input could be lost
		body(nil, &WaitError{Err: rest.WithCause(ctx, nil)})
		return
	}
	ctx = ContextWithResponse(ctx, nil) // one Response cannot hold those of concurrent requests
	ctx, cancel := context.WithCancel(ctx)
	readingCtx, stopReading := context.WithCancel(ctx)
	l := &loop{
		body: body, tasks: make(chan func()), over: make(chan struct{}), cancel: cancel, stopReading: stopReading,
		unseen: make(chan struct{}, maxUnseen), inputsEnded: make(chan struct{}),
	}
	go func() {
		defer close(l.inputsEnded)
		more := true
		err := inputs(readingCtx, func(in In) bool {
			more = more && l.begin(func() { work(ctx, l, in) }) // more is false if inputs went on after a false
			return more
		})
		if err != nil {
			l.abort(rest.WithCause(ctx, err))
		}
	}()
	defer l.endWork()
	l.run(ctx)
	if !l.left && l.stopped != nil {
		body(nil, &WaitError{Err: l.stopped})
	}
}

// run calls the functions of onLoop, until the body has left the loop, or no work is left and no
// input follows.
func (l *loop) run(ctx context.Context) {
	reading := true
	for !l.left {
		if l.stopped == nil {
			l.stopped = rest.WithCause(ctx, nil) // nil unless ctx is done
		}
		switch {
		case l.working > 0:
			// No case for ctx.Done is needed: when ctx is done, each worker ends, and its last task lowers
			// working.
			task := <-l.tasks
			task()
		case reading && l.stopped == nil:
			select {
			case task := <-l.tasks:
				task()
			case <-l.inputsEnded:
				reading = false
			case <-ctx.Done():
			}
		default: // the inputs have ended, or stopped is set
			select {
			case task := <-l.tasks: // an input that waits in begin: a sequence cannot take it back
				task()
			default:
				return
			}
		}
	}
}

// onLoop calls f on the caller's goroutine and waits until f has returned. If the loop is over,
// onLoop returns false without calling f.
func (l *loop) onLoop(f func()) bool {
	done := make(chan struct{})
	task := func() {
		defer close(done) // even if f panics
		f()
	}
	select {
	case l.tasks <- task:
		<-done
		return true
	case <-l.over:
		return false
	}
}

// begin calls work on a goroutine of its own, and reports whether the loop takes further inputs.
func (l *loop) begin(work func()) (more bool) {
	l.onLoop(func() {
		l.working++
		l.workers.Go(func() {
			defer l.onLoop(func() { l.working-- }) // without effect if the body has left
			work()
		})
		more = l.stopped == nil // otherwise this input is still worked on, and is the last one
	})
	return more
}

// yield passes a result to the body of the loop, and returns false if the loop is over. If the
// service rejected the key, no further input is read, but the work is not canceled. So each pending
// meeting gets a result of its own, with what its own next request gets. (Follow yields no such
// result, because it calls abort before.)
func (l *loop) yield(r *Result) (more bool) {
	l.onLoop(func() {
		rejection := endsAll(r.Err)
		if rejection != nil {
			l.stopped = cmp.Or[error](l.stopped, rejection)
			l.stopReading()
		}
		l.left = !l.body(r, nil)
		more = !l.left
	})
	return more
}

// onStatus returns f as a function that calls f on the caller's goroutine.
func (l *loop) onStatus(f func(*Meeting)) func(*Meeting) {
	if f == nil {
		return nil
	}
	return func(m *Meeting) {
		l.onLoop(func() { f(m) })
	}
}

// abort cancels all work, and ends the loop with an error.
func (l *loop) abort(err error) {
	l.onLoop(func() {
		l.stopped = cmp.Or(l.stopped, err)
		l.cancel()
	})
}

// endWork cancels the work and waits for it, and a moment for the inputs.
func (l *loop) endWork() {
	l.cancel()
	close(l.over)
	l.workers.Wait()
	select {
	case <-l.inputsEnded:
	case <-time.After(moment):
	}
}
