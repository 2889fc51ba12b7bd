package rest

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	firstBackoff = time.Second      // bounds the first pause after a 429; each next one in a row is bounded by twice as much
	maxBackoff   = 15 * time.Second // bounds the pauses that the Client chooses itself
	maxPause     = time.Minute
	recovery     = 30 * time.Second // in which the full share comes back
	minShare     = 1.0 / 16
	minRate      = 2.0              // requests a second: what is shared is at least that many
	measured     = 10 * time.Second // the time over which the rate is measured
	yieldTo      = 3                // requests of the user in a row; then a background request may go first
	yieldStep    = 50 * time.Millisecond
)

// Throttle decides when a Client may send a request. It owns the pause after a 429, the share of the rate that halves then, and
// the rate limit. It knows nothing of what the requests are for, only whether the user waits for them.
type Throttle struct {
	mu    sync.Mutex
	limit *rate.Limiter // nil: no limit
	pace  pace
	users int // requests of the user that wait here
	row   int // requests of the user sent since the last background request
}

// NewThrottle returns a Throttle that keeps to a limit, which may be nil.
func NewThrottle(limit *rate.Limiter) *Throttle {
	return &Throttle{limit: limit, pace: pace{share: 1}}
}

// PausedError reports that the pause after a 429 outlasts the deadline of a request's context.
type PausedError struct{ Left time.Duration }

func (e *PausedError) Error() string {
	return "the rate-limit pause after a 429 outlasts the context's deadline: context deadline exceeded"
}

// Is makes the error match context.DeadlineExceeded.
func (e *PausedError) Is(target error) bool { return target == context.DeadlineExceeded }

// Wait waits until a request may be sent: after the pause, in its share, and within the limit. A background request lets those
// of the user go first, but no more than three in a row. If ctx would be done before, Wait fails at once.
func (t *Throttle) Wait(ctx context.Context, background bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !background {
		t.users++
		defer func() { t.users-- }()
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		now := time.Now()
		yields := background && t.users > 0 && t.row < yieldTo
		left := max(t.pace.next().Sub(now), t.unlimited(now, background))
		if yields {
			left = max(left, yieldStep)
		}
		if left <= 0 {
			t.pace.sent(now)
			if t.row++; background {
				t.row = 0
			}
			return t.take(ctx, now)
		}
		if deadline, ok := ctx.Deadline(); ok && deadline.Sub(now) < left {
			return t.tooLong(now)
		}
		if err := t.sleep(ctx, left); err != nil {
			return err
		}
	}
}

// tooLong returns the error of a request whose context will be done before it may be sent.
func (t *Throttle) tooLong(now time.Time) error {
	if left := t.pace.until.Sub(now); left > 0 {
		return &PausedError{Left: left}
	}
	return context.DeadlineExceeded
}

// unlimited returns how long the limit has no room for a request that yields. Others queue up for the limit in take.
func (t *Throttle) unlimited(now time.Time, yields bool) time.Duration {
	if t.limit == nil || !yields || t.limit.Limit() == rate.Inf {
		return 0
	}
	missing := 1 - t.limit.TokensAt(now)
	return time.Duration(math.Ceil(missing / float64(t.limit.Limit()) * float64(time.Second)))
}

// take takes one request of the limit, and waits for its turn.
func (t *Throttle) take(ctx context.Context, now time.Time) error {
	if t.limit == nil {
		return nil
	}
	turn := t.limit.ReserveN(now, 1)
	left := turn.DelayFrom(now)
	if left == 0 {
		return nil
	}
	err := context.DeadlineExceeded
	if deadline, ok := ctx.Deadline(); !ok || deadline.Sub(now) >= left {
		err = t.sleep(ctx, left)
	}
	if err != nil {
		turn.Cancel()
	}
	return err
}

// sleep waits without the lock.
func (t *Throttle) sleep(ctx context.Context, d time.Duration) error {
	t.mu.Unlock()
	defer t.mu.Lock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended records that an attempt has ended with anything but a 429.
func (t *Throttle) Ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pace.good(time.Now())
}

// Limited records that an attempt, sent at sentAt, got a 429, which asked to wait for retryAfter. It returns the pause of all
// requests that this started or extended, or 0.
func (t *Throttle) Limited(sentAt time.Time, retryAfter time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pace.limited(time.Now(), sentAt, retryAfter, rand.Float64())
}

// Left returns the rest of the pause, or 0.
func (t *Throttle) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, time.Until(t.pace.until))
}

// pace decides how fast requests may follow each other. It is pure.
//
// After a 429 all requests pause. Then they are sent at half the rate that they had, or less after several, and the full share
// comes back while no 429 does. So several processes that share a limit share it fairly: who sends more is rejected more.
type pace struct {
	until time.Time // end of the pause
	row   int       // 429s in a row, those to requests sent together counted once
	share float64   // of full that is used now; 1 for no bound
	full  float64   // requests a second, measured when the share was last cut from 1
	grown time.Time // when the share last changed
	last  time.Time // when the last request was sent
	rate  float64   // requests a second lately, at last
}

// next returns when the next request may be sent.
func (p *pace) next() time.Time {
	at := p.until
	if p.share < 1 {
		if slot := p.last.Add(time.Duration(float64(time.Second) / (p.full * p.share))); slot.After(at) {
			at = slot
		}
	}
	return at
}

// sent records that a request is sent.
func (p *pace) sent(now time.Time) {
	p.rate = p.rateAt(now) + 1/measured.Seconds()
	p.last = now
}

func (p *pace) rateAt(now time.Time) float64 {
	return p.rate * math.Exp(-now.Sub(p.last).Seconds()/measured.Seconds())
}

// good records an attempt without a 429. During a pause it says nothing, because it was sent before.
func (p *pace) good(now time.Time) {
	if since := now.Sub(p.grown); p.share < 1 && now.After(p.until) && since > 0 {
		p.share = min(1, p.share+since.Seconds()/recovery.Seconds())
		p.grown = now
	}
	if now.After(p.until) {
		p.row = 0
	}
}

// limited records a 429. random is between 0 and 1.
func (p *pace) limited(now, sentAt time.Time, retryAfter time.Duration, random float64) time.Duration {
	pause := retryAfter
	if !sentAt.Before(p.until) { // not sent together with one that has been counted
		bound := min(firstBackoff<<min(p.row, 10), maxBackoff)
		pause = max(pause, time.Duration(random*float64(bound)))
		p.row++
		if p.share == 1 {
			p.full, p.share = max(minRate, 2*p.rateAt(now)), 0.5
		}
		p.share = max(minShare, p.share/2)
	}
	until := now.Add(min(pause, maxPause))
	if !until.After(p.until) {
		return 0
	}
	p.until, p.grown = until, until
	return until.Sub(now)
}
