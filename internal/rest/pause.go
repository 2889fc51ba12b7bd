package rest

import (
	"context"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// pause is the rate-limit pause of a Client. A 429 pauses all requests, because together they
// are too many. After the pause, the Client sends them one at a time, with a gap between two.
// A 429 doubles the gap; every other attempt shrinks it. Polls wait until no other request does.
type pause struct {
	mu      sync.Mutex
	until   time.Time
	gap     time.Duration // between two requests; 0 for no gap
	grownAt time.Time     // when gap last grew
	lastAt  time.Time     // when the last request was sent
	calls   int           // number of waiting requests that are not polls
}

const minGap, maxGap = 250 * time.Millisecond, 4 * time.Second

// ended records that an attempt has ended. If d is not 0, it pauses all requests for d. It
// returns d, or 0 if the pause was already longer.
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
	if now.Add(-o.Took).After(p.grownAt) { // the gap grows once for requests that were sent together
		p.gap, p.grownAt = min(max(2*p.gap, minGap), maxGap), now
	}
	if until := now.Add(d); until.After(p.until) {
		p.until = until
		return d
	}
	return 0
}

// wait waits until a request may be sent, and records it as sent. If the wait would be longer
// than ctx's deadline allows, it returns a pausedError at once.
func (p *pause) wait(ctx context.Context, poll bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !poll {
		p.calls++
		defer func() { p.calls-- }()
	}
	for {
		left := max(time.Until(p.until), time.Until(p.lastAt.Add(p.gap)))
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

// pausedError reports that a rate-limit pause outlasts the context's deadline. It is the rest of
// the pause.
type pausedError time.Duration

func (pausedError) Error() string {
	return "the rate-limit pause after a 429 outlasts the context's deadline: context deadline exceeded"
}

func (pausedError) Is(target error) bool { return target == context.DeadlineExceeded }

// left returns the rest of the pause. At 0 or less, the pause is over.
func (p *pause) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.until)
}
