package rest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Throttle holds requests back: during the rate-limit pause after a 429, and within the rate limit.
type Throttle struct {
	limit *rate.Limiter

	mu     sync.Mutex
	until  time.Time // end of the pause
	inARow int       // number of pauses since an attempt ended otherwise
	start  time.Time // of the last pause
}

// NewThrottle returns the Throttle of a Client.
func NewThrottle(limit *rate.Limiter) *Throttle { return &Throttle{limit: limit} }

// PausedError reports that the rate-limit pause outlasts the context's deadline.
type PausedError struct{ Left time.Duration }

func (*PausedError) Error() string {
	return "the rate-limit pause after a 429 outlasts the context's deadline: context deadline exceeded"
}

// Is makes the error match context.DeadlineExceeded.
func (*PausedError) Is(target error) bool { return target == context.DeadlineExceeded }

// Wait returns when a request may be sent.
func (t *Throttle) Wait(ctx context.Context, _ bool) error {
	for left := t.Left(); left > 0; left = t.Left() {
		if timeLeft(ctx) <= left {
			return &PausedError{left}
		}
		if err := Sleep(ctx, left); err != nil {
			return err
		}
	}
	err := t.limit.Wait(ctx)
	if err != nil && ctx.Err() == nil { // the limiter's error is only a text (golang/go#54541)
		err = fmt.Errorf("the rate limit outlasts the context's deadline: %w", context.DeadlineExceeded)
	}
	return err
}

// Ended records the end of an attempt without a 429.
func (t *Throttle) Ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inARow = 0
}

// Limited records that an attempt, sent at sentAt, got a 429. It returns the pause that this started
// or extended, or 0.
func (t *Throttle) Limited(sentAt time.Time, retryAfter time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if sentAt.After(t.start) {
		t.inARow, t.start = t.inARow+1, now
	}
	_, longest := delays(t.inARow, 0)
	pause := min(max(rand.N(longest)+1, retryAfter), MaxRetryAfter)
	if until := now.Add(pause); until.After(t.until) {
		t.until = until
		return pause
	}
	return 0
}

// Left returns the rest of the pause.
func (t *Throttle) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.until)
}

// Sleep waits for d, or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	return ctx.Err()
}
