package rest

import (
	"context"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// pause is the rate-limit pause of a Client: a 429 says that all requests together are
// too many. After a pause, requests are sent one at a time. The gap between two of them
// doubles if there are still 429s, and shrinks with every other attempt. Polls are sent
// when no other request waits.
type pause struct {
	mu      sync.Mutex
	until   time.Time
	gap     time.Duration // 0 if requests are not paced
	grownAt time.Time
	lastAt  time.Time // when the last paced request was sent
	calls   int       // that wait; polls do not count
}

const minGap, maxGap = 250 * time.Millisecond, 4 * time.Second

// ended takes note of an attempt that has ended. If d is not 0, every request is held back
// for d. It returns d, or 0 if a longer pause is running.
func (p *pause) ended(o Outcome, d time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if d == 0 {
		if p.gap -= p.gap / 20; p.gap < minGap/50 {
			p.gap = 0
		}
		return 0
	}
	if now.Add(-o.Took).After(p.grownAt) { // a crowd that was sent at once grows the gap once
		p.gap, p.grownAt = min(max(2*p.gap, minGap), maxGap), now
	}
	if until := now.Add(d); until.After(p.until) {
		p.until = until
		return d
	}
	return 0
}

// wait waits until a request may be sent, which is then the last one sent. If that is after
// ctx's deadline, it returns a pausedError at once.
func (p *pause) wait(ctx context.Context, poll bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !poll {
		p.calls++
		defer func() { p.calls-- }()
	}
	for {
		left := max(time.Until(p.until), time.Until(p.lastAt.Add(p.gap)))
		if left > backoff.Longest { // it began by the clock of another synctest bubble
			left = 0
		}
		if poll && p.calls > 0 {
			left = max(left, minGap)
		}
		if left <= 0 {
			p.lastAt = time.Now()
			return nil
		}
		if ctx.Err() == nil && backoff.Left(ctx) <= left {
			return pausedError(left)
		}
		p.mu.Unlock()
		err := backoff.Sleep(ctx, left)
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// pausedError means that a rate-limit pause, of at least this length, outlasts a deadline.
type pausedError time.Duration

func (pausedError) Error() string {
	return "the rate-limit pause after a 429 outlasts the context's deadline: context deadline exceeded"
}

func (pausedError) Is(target error) bool { return target == context.DeadlineExceeded }

// left returns how much is left of the pause. It is over at 0 or less.
func (p *pause) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := time.Until(p.until); d <= backoff.Longest {
		return d
	}
	return 0
}
