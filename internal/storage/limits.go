package storage

import (
	"sync"
	"time"
)

// Limits end a request that has come to a standstill.
type Limits struct {
	Stall time.Duration // while the body is sent: no byte moves for so long
	Reply time.Duration // once all of it was handed over: no reply for so long
}

// timeoutError is a time-out as net.Error knows them. It is no
// context.DeadlineExceeded, since the caller's context is not done.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string   { return e.text }
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Temporary() bool { return true }

// check returns the error of a body that has not moved for so long.
func (l Limits) check(still time.Duration, whole bool) error {
	switch {
	case whole && still >= l.Reply:
		return &timeoutError{"no reply for " + l.Reply.String() + " after the whole recording was handed over"}
	case !whole && still >= l.Stall:
		return &timeoutError{"no byte of the upload moved for " + l.Stall.String()}
	}
	return nil
}

// watch calls giveUp when a limit has passed, give or take a look.
func (l Limits) watch(b *body, giveUp func(error)) (stop func()) {
	every := min(l.Stall, l.Reply) / 4
	var (
		mu    sync.Mutex
		timer *time.Timer
		over  bool
		last  = b.sent.Load()
		since = time.Now()
	)
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(every, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if now := b.sent.Load(); now != last {
			last, since = now, time.Now()
		} else if err := l.check(time.Since(since), last >= b.Size); err != nil {
			giveUp(err)
			return
		}
		timer.Reset(every)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}
