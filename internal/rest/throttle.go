package rest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Throttle decides when a Client may send its next request: within its rate limit, after the pause that follows a 429, and
// at a pace that it shares fairly with other processes which the service limits together with it.
//
// If both wait, the user's requests go before those in the background. Yet every fourth request is one in the background, so
// that a user who calls without a break cannot stop the polling.
type Throttle struct {
	limit *rate.Limiter // nil if there is none

	mu     sync.Mutex
	pace   pace
	queues [2][]chan struct{} // requests that wait: the user's, and those in the background
	row    int                // requests of the user in a row, while one in the background waited
	timer  *time.Timer        // runs while a request waits
}

const users, background = 0, 1 // the queues

const usersInRow = 3

// NewThrottle returns a Throttle within a limit, or without one if it is nil.
func NewThrottle(limit *rate.Limiter) *Throttle { return &Throttle{limit: limit} }

// PausedError reports that a rate-limit pause outlasts the context's deadline.
type PausedError struct{ Left time.Duration }

func (*PausedError) Error() string {
	return "the rate-limit pause after a 429 outlasts the context's deadline: context deadline exceeded"
}

// Is makes a PausedError a context.DeadlineExceeded, because that is what the caller would get in the end.
func (*PausedError) Is(target error) bool { return target == context.DeadlineExceeded }

// Wait returns once a request may be sent. If ctx's deadline comes before the end of the pause, it returns a *PausedError at once.
func (t *Throttle) Wait(ctx context.Context, inBackground bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	now := time.Now()
	if deadline, ok := ctx.Deadline(); ok {
		if left := t.pace.left(now); left > 0 && deadline.Before(now.Add(left)) {
			defer t.mu.Unlock()
			return &PausedError{left}
		}
	}
	if len(t.queues[users])+len(t.queues[background]) == 0 && t.left(now) <= 0 { // the usual case, without a queue
		defer t.mu.Unlock()
		t.pace.send(now)
		return nil
	}
	queue := users
	if inBackground {
		queue = background
	}
	turn := make(chan struct{})
	t.queues[queue] = append(t.queues[queue], turn)
	t.admit()
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		t.queues[queue] = slices.DeleteFunc(t.queues[queue], func(c chan struct{}) bool { return c == turn })
		return ctx.Err()
	}
}

// admit lets all requests go that may be sent now, and comes back when the next one may be.
func (t *Throttle) admit() {
	for len(t.queues[users])+len(t.queues[background]) > 0 {
		now := time.Now()
		if left := t.left(now); left > 0 {
			t.wake(left)
			return
		}
		t.pace.send(now)
		queue := t.next()
		close(t.queues[queue][0])
		t.queues[queue] = t.queues[queue][1:]
	}
}

// left returns how long the next request must wait. If it need not wait, it has taken a token of the limit.
func (t *Throttle) left(now time.Time) time.Duration {
	if left := t.pace.left(now); left > 0 || t.limit == nil {
		return left
	}
	r := t.limit.ReserveN(now, 1)
	left := r.DelayFrom(now)
	if left > 0 {
		r.CancelAt(now)
	}
	return left
}

// next chooses the queue whose turn it is.
func (t *Throttle) next() int {
	switch {
	case len(t.queues[background]) == 0:
		t.row = 0
		return users
	case len(t.queues[users]) == 0 || t.row >= usersInRow:
		t.row = 0
		return background
	}
	t.row++
	return users
}

func (t *Throttle) wake(after time.Duration) {
	if t.timer == nil {
		t.timer = time.AfterFunc(after, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.admit()
		})
		return
	}
	t.timer.Reset(after)
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

// Left returns how long the pause, and the pace after it, hold the next request back. At 0 or less, they do
// not.
func (t *Throttle) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pace.left(time.Now())
}
