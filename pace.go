package minutes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// maxCoolDown is how long one Retry-After can hold a whole Client back.
const maxCoolDown = 60 * time.Second

// pace decides when a request may go out. A 429 says that all of the Client's
// requests are too many, so it cools all of them down; after that the limiter
// paces. It does not sit in the transport, where its waits would count as the
// try's.
type pace struct {
	limiter *rate.Limiter // nil: none
	until   atomic.Int64  // end of the cool-down, in Unix nanoseconds
}

// coolDown holds every request of the Client back for d from now on.
func (p *pace) coolDown(d time.Duration) {
	until := time.Now().Add(min(d, maxCoolDown)).UnixNano()
	for {
		old := p.until.Load()
		if old >= until || p.until.CompareAndSwap(old, until) {
			return
		}
	}
}

// coolingFor returns what is left of the cool-down, 0 or less if it is over.
func (p *pace) coolingFor() time.Duration {
	until := p.until.Load()
	if until == 0 {
		return 0 // spares the usual case the clock
	}
	// A longer rest than coolDown can ask for means that the clock was set
	// back, or that it is another clock; do not wait for the old one.
	if d := time.Duration(until - time.Now().UnixNano()); d <= maxCoolDown {
		return d
	}
	return 0
}

// tooSoon reports a wait that the context's deadline is too short for.
type tooSoon struct {
	text string
	wait time.Duration // what is left of a cool-down
}

func (e *tooSoon) Error() string { return e.text }

// Is: a wait that the deadline cuts short ends as the deadline would end it.
func (e *tooSoon) Is(target error) bool { return target == context.DeadlineExceeded }

// wait returns when a request may go out, or at once where ctx will not live
// to see that.
func (p *pace) wait(ctx context.Context) error {
	for {
		if err := p.coolOff(ctx); err != nil {
			return err
		}
		if err := p.limit(ctx); err != nil {
			return err
		}
		if p.coolingFor() <= 0 {
			return nil
		}
		// A 429 arrived while the limiter had it wait.
	}
}

// coolOff waits until the cool-down is over.
func (p *pace) coolOff(ctx context.Context) error {
	for {
		d := p.coolingFor()
		if d <= 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
			if err := ctx.Err(); err != nil {
				return err
			}
			return &tooSoon{"the cool-down after a 429 outlasts the context's deadline", d}
		}
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
}

// limit waits for the limiter.
func (p *pace) limit(ctx context.Context) error {
	if p.limiter == nil {
		return ctx.Err()
	}
	err := p.limiter.Wait(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		// The limiter's own refusal has a text alone (golang/go#54541).
		return &tooSoon{text: "the rate limit outlasts the context's deadline"}
	}
	return err
}

// sleep waits for d, or for ctx to end.
func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
