package storage

import (
	"context"
	"errors"
	"time"
)

// grace is how long to wait for a call after its context is done, since it needs a moment to notice.
const grace = 100 * time.Millisecond

// Run calls f on another goroutine and returns what f returns. If f blocks although ctx is done, Run
// returns the cause of ctx, and f may still be running. If f succeeds after that, late gets the value.
func Run[T any](ctx context.Context, f func() (T, error), late func(T)) (T, error) {
	var value T
	err := errors.New("the call ended its goroutine") // as a test's FailNow does
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		value, err = f()
	}()
	select {
	case <-ended:
		return value, err
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return value, err
	case <-time.After(grace):
	}
	go func() {
		<-ended
		if err == nil {
			late(value)
		}
	}()
	var none T
	return none, context.Cause(ctx)
}
