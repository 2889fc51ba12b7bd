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
func Run[T any](ctx context.Context, f func() (T, error), late func(T)) (value T, err error) {
	ended, left := make(chan struct{}), make(chan struct{})
	defer close(left)
	var result T
	failure := errors.New("the call ended its goroutine") // as a test's FailNow does
	go func() {
		defer func() {
			select {
			case ended <- struct{}{}:
			case <-left:
				if failure == nil {
					late(result)
				}
			}
		}()
		result, failure = f()
	}()
	select {
	case <-ended:
		return result, failure
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return result, failure
	case <-time.After(grace):
		return value, context.Cause(ctx)
	}
}
