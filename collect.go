package minutes

import (
	"context"
	"errors"
	"iter"
)

// collector is the loop of WaitAll, WaitAllForMinutes and ProcessAll: it reads inputs,
// begins work for each and yields each result as the work ends.
//
// begin, dispatch, canceled and yield run on the loop's goroutine. Each returns false
// if the loop was left.
type collector[In any] struct {
	ctx    context.Context // done when the loop ends, at the latest
	cancel context.CancelFunc
	begin  func(In) bool
	yield  func(*Result, error) bool // yields what start's work returned

	running int // started and not yet received from ended
	ended   chan ended

	waiting  int             // waits that have not ended
	events   <-chan struct{} // receives when dispatch has something to do; nil without waits
	dispatch func() bool
	canceled func(unread bool) bool // called once ctx is done; unread: there are more inputs
}

// ended is the result of work.
type ended struct {
	result *Result
	err    error
}

func newCollector[In any](ctx context.Context) *collector[In] {
	c := &collector[In]{ended: make(chan ended)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// run returns when all work has ended, or was canceled since the loop was left.
func (c *collector[In]) run(inputs iter.Seq[In]) {
	defer c.stop()
	next, done := background(c.ctx, inputs), c.ctx.Done()
	for next != nil || c.waiting > 0 || c.running > 0 {
		goOn := true
		select {
		case in, more := <-next:
			if more {
				goOn = c.begin(in)
			} else {
				next = nil
			}
		case <-c.events:
			goOn = c.dispatch()
		case e := <-c.ended:
			c.running--
			goOn = c.yield(e.result, e.err)
		case <-done:
			unread := next != nil
			next, done = nil, nil
			goOn = c.canceled(unread)
		}
		if !goOn {
			return
		}
	}
}

var errEndedGoroutine = errors.New("minutes: a callback or the transport ended its goroutine (runtime.Goexit)")

// start does work on another goroutine, which ends after the loop has received the result.
// If a callback ends that goroutine, as a test's FailNow does, work ends with an error.
func (c *collector[In]) start(result *Result, work func() error) {
	c.running++
	go func() {
		err := errEndedGoroutine
		defer func() { c.ended <- ended{result, err} }()
		err = work()
	}()
}

// stop cancels what is still running and waits for its end.
func (c *collector[In]) stop() {
	c.cancel()
	for ; c.running > 0; c.running-- {
		<-c.ended
	}
}

// background reads seq on another goroutine, since seq may block. It closes the channel
// when seq ends, unless ctx is done. Once ctx is done, the yield of seq returns false.
func background[T any](ctx context.Context, seq iter.Seq[T]) <-chan T {
	next := make(chan T)
	go func() {
		defer func() {
			if ctx.Err() == nil {
				close(next)
			}
		}()
		for v := range seq {
			select {
			case next <- v:
			case <-ctx.Done():
				return
			}
		}
	}()
	return next
}
