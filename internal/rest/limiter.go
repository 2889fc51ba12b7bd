package rest

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// limiter decides when a request may go out. A 429 says that all of the Client's
// requests are too many, so it cools all of them down; after that the rate paces
// them. It does not sit in the transport, where its waits would count as the
// attempt's.
type limiter struct {
	rate  *rate.Limiter // nil: none
	until atomic.Int64  // end of the cool-down, in Unix nanoseconds
}

// coolDown holds every request of the Client back for d from now on, a minute at
// most. It returns for how long, 0 where they are held back for longer already.
func (l *limiter) coolDown(d time.Duration) time.Duration {
	d = min(d, backoff.Longest)
	until := time.Now().Add(d).UnixNano()
	for {
		old := l.until.Load()
		if old >= until {
			return 0
		}
		if l.until.CompareAndSwap(old, until) {
			return d
		}
	}
}

// cooling returns what is left of the cool-down, 0 or less if it is over.
func (l *limiter) cooling() time.Duration {
	until := l.until.Load()
	if until == 0 {
		return 0 // spares the usual case the clock
	}
	// A longer rest than coolDown can ask for means that the clock was set
	// back, or that it is another clock; do not wait for the old one.
	if d := time.Duration(until - time.Now().UnixNano()); d <= backoff.Longest {
		return d
	}
	return 0
}

// tooSoonError says that the context's deadline is too short for a wait.
type tooSoonError struct {
	text    string
	cooling time.Duration // what is left of a cool-down
}

func (e *tooSoonError) Error() string { return e.text }

// Is: a wait that the deadline cuts short ends as the deadline would end it.
func (e *tooSoonError) Is(target error) bool { return target == context.DeadlineExceeded }

// wait returns when a request may go out, or at once where ctx will not live
// to see that.
func (l *limiter) wait(ctx context.Context) error {
	for paced := false; ; {
		var err error
		switch d := l.cooling(); {
		case d > 0 && ctx.Err() == nil && !backoff.Outlives(ctx, d):
			return &tooSoonError{"the cool-down after a 429 outlasts the context's deadline", d}
		case d > 0: // also where a 429 arrived while the rate held the request back
			paced, err = false, backoff.Sleep(ctx, d)
		case !paced:
			paced, err = true, l.pace(ctx)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// pace waits for the rate.
func (l *limiter) pace(ctx context.Context) error {
	if l.rate == nil {
		return ctx.Err()
	}
	err := l.rate.Wait(ctx)
	if err != nil && ctx.Err() == nil {
		// The limiter's own refusal has a text alone (golang/go#54541).
		return &tooSoonError{text: "the rate limit outlasts the context's deadline"}
	}
	return err
}
