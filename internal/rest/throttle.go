package rest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	leastPace = 0.15  // requests a second, so that the pace alone makes no pause longer than ten seconds
	growth    = 0.001 // of the pace, by the square of the seconds since the last 429
)

// Throttle decides when a Client may send its next request: within its rate limit, after the pause that follows a 429, and
// at a pace that it shares fairly with other processes which the service limits together with it.
//
// Nothing is known about the service's limit: it may belong to a process, a key or an address, and other processes may use it
// up. So each 429 halves the pace, or the number of requests in the last second if that is smaller. Then the pace grows by an
// amount that only depends on the time since that 429. All processes gain the same and lose in proportion to what they have; so
// they approach equal shares. The growth is quadratic, because that finds a small share as well as a large one: it is 0.1
// requests a second after ten seconds, 3.6 after a minute, and 90 after five.
type Throttle struct {
	limit *rate.Limiter
	// The user's requests stand in one line, those in the background in another. The first one of a line has its token.
	users, background chan struct{}

	mu      sync.Mutex
	next    time.Time // when 429s let the next request go: the end of the pause, and then of a gap after each request
	limited time.Time // the last 429 that halved the pace; zero if there was none, so that the pace has no bound
	halved  float64   // requests a second just after that 429
	sent    time.Time // the last request
	recent  float64   // requests in about the second before sent, each counting less the older it was
	since   time.Time // when the first request in the background became the first; it only counts while there is one
}

// NewThrottle returns a Throttle within a limit.
func NewThrottle(limit *rate.Limiter) *Throttle {
	return &Throttle{limit: limit, users: make(chan struct{}, 1), background: make(chan struct{}, 1)}
}

// ErrPaused means that a rate-limit pause outlasts the context's deadline, so that the caller would get DeadlineExceeded in
// the end.
var ErrPaused = fmt.Errorf("the rate-limit pause outlasts the context's deadline: %w", context.DeadlineExceeded)

// Wait returns once a request may be sent. If ctx's deadline comes before the end of the pause, it returns ErrPaused at once.
func (t *Throttle) Wait(ctx context.Context, background bool) error {
	if t.paused(ctx) {
		return ErrPaused
	}
	line, other := t.users, t.background
	if background {
		line, other = other, line
	}
	select {
	case line <- struct{}{}:
		defer func() { <-line }()
	case <-ctx.Done():
	}
	for began := time.Now(); ctx.Err() == nil && !t.paused(ctx); {
		left := t.send(background, began, len(other) > 0)
		if left <= 0 {
			return nil
		}
		_ = Sleep(ctx, left)
	}
	if t.paused(ctx) { // a 429 has come meanwhile
		return ErrPaused
	}
	return ctx.Err()
}

// paused reports whether 429s hold the next request back until after ctx's deadline.
func (t *Throttle) paused(ctx context.Context) bool {
	left := t.Left()
	return left > 0 && !errors.Is(ctx.Err(), context.Canceled) && tooLate(ctx, left)
}

// tooLate reports whether ctx's deadline comes before the end of a wait.
func tooLate(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= wait
}

// Sleep waits for d, or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}

// send records a request if it may be sent now. Otherwise it returns how long the request must wait. began is when it became
// the first of its line. If the other line has a request, too, the user's goes first, unless the one in the background is
// overdue: it has waited for the time of three requests, or for a minute.
func (t *Throttle) send(background bool, began time.Time, contended bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if background {
		t.since = began
	}
	if left := t.next.Sub(now); left > 0 {
		return left
	}
	gap := gapOf(min(t.perSecond(now), float64(t.limit.Limit())))
	r := t.limit.ReserveN(now, 1)
	left := r.DelayFrom(now)
	if overdue := now.Sub(t.since) >= min(3*gap, time.Minute); contended && overdue != background { // the other one's turn
		left = max(left, gap/8) // by then, the other one has gone
	}
	if left > 0 {
		r.CancelAt(now)
		return left
	}
	t.recent = 1 + t.recent*math.Exp(-now.Sub(t.sent).Seconds())
	t.sent, t.next = now, now.Add(gapOf(t.perSecond(now)))
	return 0
}

// perSecond returns the pace, in requests a second.
func (t *Throttle) perSecond(now time.Time) float64 {
	since := now.Sub(t.limited).Seconds()
	return t.halved + growth*since*since
}

// gapOf returns the time between two requests.
func gapOf(perSecond float64) time.Duration { return time.Duration(float64(time.Second) / perSecond) }

// Limited records that an attempt, sent at sentAt, was rejected, which asks for a pause. It returns the pause of all requests
// that this started or extended, else 0. If the attempt was sent before the last 429 came, it does not change the pace.
func (t *Throttle) Limited(sentAt time.Time, pause time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if sentAt.After(t.limited) {
		t.halved, t.limited = max(leastPace, min(t.perSecond(now), t.recent)/2), now
		pause = max(pause, gapOf(t.halved)*3/2) // if a quota is used up, few requests find out when it is not
	}
	if !now.Add(pause).After(t.next) {
		return 0
	}
	t.next = now.Add(pause)
	return pause
}

// Left returns how long 429s hold the next request back. At 0 or less, they do not.
func (t *Throttle) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.next)
}
