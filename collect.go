package minutes

import (
	"context"
	"errors"
	"iter"
)

// collector is the loop of WaitAll, WaitAllForMinutes, Follow and ProcessAll. It reads inputs,
// starts work for each input, and yields each result. The functions begin, dispatch, canceled and
// yield run on the goroutine of the loop. They return false if the caller has left the loop.
type collector[In any] struct {
	ctx   context.Context // of run; done at the end of the loop
	begin func(In) bool
	yield func(*Result, error) bool // yields the result of start's work

	ready   []func() // calls of start to make when fewer than maxFetches are running
	running int      // started and not yet received from ended
	ended   chan ended

	waiting  int             // waits that have not ended
	events   <-chan struct{} // receives when there are events to dispatch; nil without waits
	dispatch func() bool
	canceled func(unread bool) bool // called when ctx is done; unread means that there are more inputs
}

// maxFetches limits the meetings whose minutes are being fetched, or fetched and not yielded.
const maxFetches = 8

type ended struct {
	result *Result
	err    error
}

// run returns when all work has ended. If the caller leaves the loop, run cancels the work.
func (c *collector[In]) run(ctx context.Context, inputs iter.Seq[In]) {
	ctx, cancel := context.WithCancel(ctx)
	c.ctx, c.ended = ctx, make(chan ended)
	defer func() {
		cancel()
		for ; c.running > 0; c.running-- {
			<-c.ended
		}
	}()
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
		c.startReady()
	}
}

// startReady makes as many calls of ready as maxFetches allows.
func (c *collector[In]) startReady() {
	for ; len(c.ready) > 0 && c.running < maxFetches; c.ready = c.ready[1:] {
		c.ready[0]()
	}
}

// start calls work on another goroutine. The loop receives the result.
func (c *collector[In]) start(result *Result, work func() error) {
	c.running++
	go func() {
		e := ended{result, errEndedGoroutine}
		defer func() { c.ended <- e }()
		e.err = work()
	}()
}

var errEndedGoroutine = errors.New("minutes: a callback or the transport ended its goroutine (runtime.Goexit)")

// background reads seq on another goroutine, because seq may block. It closes the channel when seq
// ends, unless ctx is done. After ctx is done, the yield function of seq returns false.
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
