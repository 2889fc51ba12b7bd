package rest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Throttle decides when a Client may send its next request: within its rate limit, after the pause that follows a 429, and
// at a pace that it shares fairly with other processes which the service limits together with it.
//
// Requests stand in line for the gate, which lets one after the other through. One in the background goes there only if none
// of the user's is in line, or after the time of three requests. So a user who calls without a break cannot stop the polling.
type Throttle struct {
	limit *rate.Limiter
	// Each of these channels has room for one token: that of the request whose turn it is there.
	users, background, gate chan struct{}

	mu   sync.Mutex
	pace pace
}

// NewThrottle returns a Throttle within a limit.
func NewThrottle(limit *rate.Limiter) *Throttle {
	return &Throttle{limit: limit, users: make(chan struct{}, 1), background: make(chan struct{}, 1), gate: make(chan struct{}, 1)}
}

// ErrPaused means that a rate-limit pause outlasts the context's deadline, so that the caller would get DeadlineExceeded in
// the end.
var ErrPaused = fmt.Errorf("the rate-limit pause after a 429 outlasts the context's deadline: %w", context.DeadlineExceeded)

// Wait returns once a request may be sent. If ctx's deadline comes before the end of the pause, it returns ErrPaused at once.
func (t *Throttle) Wait(ctx context.Context, background bool) error {
	if left := t.Left(); left > 0 && left > timeLeft(ctx) {
		return ErrPaused
	}
	line := t.users
	if background {
		line = t.background
	}
	if err := enter(ctx, line); err != nil {
		return err
	}
	defer func() { <-line }()
	if background {
		if err := t.giveWay(ctx); err != nil {
			return err
		}
	}
	if err := enter(ctx, t.gate); err != nil {
		return err
	}
	defer func() { <-t.gate }()
	for left := t.send(); left > 0; left = t.send() { // the others wait behind this one
		if err := Sleep(ctx, min(left, time.Second)); err != nil { // meanwhile, the pace grows, or a 429 comes
			return err
		}
	}
	return nil
}

// enter waits until the token fits into the channel: first come, first served.
func enter(ctx context.Context, place chan<- struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// giveWay lets the user's requests go first, for the time of three requests and at most for a minute.
func (t *Throttle) giveWay(ctx context.Context) error {
	const looks = 10
	t.mu.Lock()
	perSecond := min(t.pace.perSecond(time.Now()), float64(t.limit.Limit()))
	t.mu.Unlock()
	step := min(time.Minute, time.Duration(3/perSecond*float64(time.Second))) / looks
	for i := 0; i < looks && len(t.users) > 0; i++ {
		if err := Sleep(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// send records a request if it may be sent now. Otherwise it returns how long the request must wait.
func (t *Throttle) send() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if left := t.pace.left(now); left > 0 {
		return left
	}
	r := t.limit.ReserveN(now, 1)
	if left := r.DelayFrom(now); left > 0 {
		r.CancelAt(now)
		return left
	}
	t.pace.send(now)
	return 0
}

// Ended records that an attempt ended with anything but a 429.
func (t *Throttle) Ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pace.row = 0
}

// Limited records that an attempt, sent at sentAt, got a 429 with a Retry-After, or 0 if there was none. It returns the pause
// that this started or extended, else 0.
func (t *Throttle) Limited(sentAt time.Time, retryAfter time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pace.rejected(time.Now(), sentAt, retryAfter, rand.Float64())
}

// Left returns how long the pause, and the pace after it, hold the next request back. At 0 or less, they do not.
func (t *Throttle) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pace.left(time.Now())
}
