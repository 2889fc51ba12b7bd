package rest

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// longestPause is the pause after twenty 429s in a row.
	longestPause = 5 * time.Minute
	// overdueGaps is how many of the user's requests go before one in the background that waits.
	// The share that this leaves delays somebody who imports recordings as fast as the rate limit
	// allows by less than a tenth.
	overdueGaps = 14
	// overdueTime is when a request in the background goes although fewer have gone.
	overdueTime = time.Minute
)

// Throttle decides when a Client may send its next request: within its rate limit, after the pause
// that follows a 429, and at a pace that it shares fairly with other processes which the service
// limits together with it.
//
// Nothing is known about the service's limit: it may belong to a process, a key or an address, and
// other processes may use it up. Nor does a 429 prove that there is a limit, because some gateways
// reject a few requests at random. The Throttle distinguishes these cases by which of the last
// responses were 429s:
//
//   - A 429 changes no pace if there was none among the sixteen responses before it. Otherwise it
//     halves the pace of the requests in the background, which can wait: that is what makes
//     processes share a limit fairly. The user's requests fail if they wait for long. So they have
//     a pace of their own, which only a 429 to one of them lowers, by the square of the share of
//     429s among the sixteen responses before it: by a quarter if half of them were, and hardly if
//     one in twenty is rejected at random.
//   - If nothing but 429s came back, each further one doubles the pause, because some limits count
//     rejected requests, too, and never end while all processes go on asking. The doubling reaches
//     ten seconds only after fifteen of them, a minute or two. Otherwise a process that is merely
//     unlucky would lose its share, and one with a quota for each minute would miss the beginning
//     of the next.
//
// A pace that was lowered grows by an amount that depends on nothing but the time since then. All
// processes gain the same and lose in proportion to what they have; so they approach equal shares.
// The growth is quadratic, because that finds a small share as well as a large one: it is 0.1
// requests a second after ten seconds, 3.6 after a minute, and 90 after five.
type Throttle struct {
	// limit is the Client's own rate limit.
	limit *rate.Limiter
	// users is the line of the user's requests.
	users line
	// background is the line of the poller's requests.
	background line

	// mu guards what follows, and the lines apart from their tokens.
	mu sync.Mutex
	// pausedUntil is the end of the pause after a 429.
	pausedUntil time.Time
	// history has a bit for each of the last responses, the newest lowest: 1 is a 429. Of
	// requests that were under way together, only the first 429 counts, because one limit rejected
	// them all.
	history uint32
	// lastLimited is when the last 429 came that counts.
	lastLimited time.Time
	// backgroundSince is when the background request at the head of its line got there. It is
	// unused while that line is empty.
	backgroundSince time.Time
}

// line returns the one of the user's requests, or of those in the background.
func (t *Throttle) line(background bool) *line {
	if background {
		return &t.background
	}
	return &t.users
}

// NewThrottle returns a Throttle within a limit.
func NewThrottle(limit *rate.Limiter) *Throttle {
	return &Throttle{
		limit:      limit,
		users:      line{token: make(chan struct{}, 1)},
		background: line{token: make(chan struct{}, 1)},
	}
}

// ErrPaused means that a rate-limit pause outlasts the context's deadline, so that the caller would
// get DeadlineExceeded in the end.
var ErrPaused = fmt.Errorf("the rate-limit pause outlasts the context's deadline: %w", context.DeadlineExceeded)

// Wait returns once a request may be sent. It returns ErrPaused if ctx's deadline comes before the
// end of the pause, which it checks at the beginning and while the request is the first of its
// line.
func (t *Throttle) Wait(ctx context.Context, background bool) error {
	if t.paused(ctx, background) {
		return ErrPaused
	}
	own := t.line(background)
	other := t.line(!background)
	select {
	case own.token <- struct{}{}:
		defer func() { <-own.token }()
	case <-ctx.Done(): // then neither the loop nor the line matters
	}
	for began := time.Now(); ctx.Err() == nil && !t.paused(ctx, background); {
		left := t.send(background, began, len(other.token) > 0)
		if left <= 0 {
			return nil
		}
		_ = Sleep(ctx, left)
	}
	if t.paused(ctx, background) { // a 429 has come meanwhile
		return ErrPaused
	}
	return ctx.Err()
}

// paused reports whether 429s hold the next request back until after ctx's deadline.
func (t *Throttle) paused(ctx context.Context, background bool) bool {
	left := t.Left(background)
	if errors.Is(ctx.Err(), context.Canceled) { // which the caller reports as such
		return false
	}
	return left > 0 && tooLate(ctx, left)
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

// send notes a request if it may be sent now. Otherwise it returns how long the request must
// wait. began is when it became the first of its line. If the other line has a request, too, the
// user's goes first, unless the one in the background is overdue.
func (t *Throttle) send(background bool, began time.Time, contended bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if background {
		t.backgroundSince = began
	}
	l := t.line(background)
	if left := max(t.pausedUntil.Sub(now), l.notBefore.Sub(now)); left > 0 {
		return left
	}
	gap := gapOf(min(t.users.pace.perSecond(now), float64(t.limit.Limit())))
	reserved := t.limit.ReserveN(now, 1)
	left := reserved.DelayFrom(now)
	first := &t.users
	overdue := now.Sub(t.backgroundSince) >= min(overdueGaps*gap, overdueTime)
	if overdue && !t.background.notBefore.After(now) { // one that its own pace holds back delays nobody
		first = &t.background
	}
	if contended && l != first {
		left = max(left, gap/8) // then it looks whether the other one has gone
	}
	if left > 0 {
		reserved.CancelAt(now)
		return left
	}
	l.sent(now)
	return 0
}

// Limited notes that a request, sent at sentAt, in the background or by the user, was rejected with
// a 429, which asks for a pause. It returns the pause if this 429 started or extended it, else 0.
// If the request was sent before the last 429 came that counts, only the pause can change.
func (t *Throttle) Limited(sentAt time.Time, pause time.Duration, background bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if sentAt.After(t.lastLimited) {
		t.lastLimited = now
		before := bits.OnesCount16(uint16(t.history))
		t.history = t.history<<1 | 1
		if before > 0 {
			t.background.lowerPace(now, 1.0/2)
			if !background {
				share := float64(before) / 16
				t.users.lowerPace(now, share*share)
			}
		}
		pause = max(pause, pauseAfter(t.history))
	}
	if !now.Add(pause).After(t.pausedUntil) {
		return 0
	}
	t.pausedUntil = now.Add(pause)
	return pause
}

// pauseAfter returns the pause, with jitter, after the 429s that came last without another response
// among them.
func pauseAfter(history uint32) time.Duration {
	inARow := bits.TrailingZeros32(^history) // 429s
	// Each one more doubles it, up to the twentieth. After a single 429, it is less than a
	// millisecond.
	longest := longestPause >> max(0, 20-inARow)
	return longest/2 + rand.N(longest/2)
}

// Accepted notes a response other than a 429.
func (t *Throttle) Accepted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history <<= 1
}

// Left returns how long 429s hold the next request back. At 0 or less, they do not.
func (t *Throttle) Left(background bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(time.Until(t.pausedUntil), time.Until(t.line(background).notBefore))
}
