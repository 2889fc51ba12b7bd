package rest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// limiter decides when a request may go out. A 429 says that all of the Client's
// requests are too many, so it cools all of them down; after that the rate paces
// them. It does not sit in the transport, where its waits would count as the
// attempt's.
type limiter struct {
	rate *rate.Limiter

	mu    sync.Mutex
	until time.Time // end of the cool-down
}

// coolDown holds every request of the Client back for d from now on, a minute at
// most. It returns for how long, 0 where they are held back for longer already.
func (l *limiter) coolDown(d time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d = min(d, backoff.Longest)
	until := time.Now().Add(d)
	if !until.After(l.until) {
		return 0
	}
	l.until = until
	return d
}

// cooling returns what is left of the cool-down, 0 or less if it is over.
func (l *limiter) cooling() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A longer rest than coolDown can ask for means that the clock was set
	// back, or that it is another clock; do not wait for the old one.
	if d := time.Until(l.until); d <= backoff.Longest {
		return d
	}
	return 0
}

// A wait that the deadline cuts short ends as the deadline would end it.
var (
	errCooling = fmt.Errorf("the cool-down after a 429 outlasts the context's deadline: %w", context.DeadlineExceeded)
	errPaced   = fmt.Errorf("the rate limit outlasts the context's deadline: %w", context.DeadlineExceeded)
)

// wait returns when a request may go out, or at once where ctx will not live
// to see that.
func (l *limiter) wait(ctx context.Context) error {
	for {
		for d := l.cooling(); d > 0; d = l.cooling() {
			if ctx.Err() == nil && !backoff.Outlives(ctx, d) {
				return errCooling
			}
			if err := backoff.Sleep(ctx, d); err != nil {
				return err
			}
		}
		err := l.pace(ctx)
		if err != nil || l.cooling() <= 0 { // else a 429 has arrived meanwhile
			return err
		}
	}
}

// pace waits for the rate.
func (l *limiter) pace(ctx context.Context) error {
	err := l.rate.Wait(ctx)
	if err != nil && ctx.Err() == nil {
		return errPaced // the limiter's own refusal has a text alone (golang/go#54541)
	}
	return err
}
