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
	// probeAfter is the longest backoff if the service says when to come back, and for the user's requests
	// while one of them would fail otherwise. So an hour of 429s costs about 120 requests.
	probeAfter = 45 * time.Second
	// overdueGaps is how many of the user's requests go before one in the background that waits, which
	// leaves polls a twelfth. It was chosen for an import of 5,000 recordings at 60 requests a minute,
	// which takes four hours and ten minutes with all its fetches. With eleven, the last upload ends
	// after 4 h 17 to 4 h 36, and waits are notified within 45 minutes (p99). With four, the last upload
	// ends after 4 h 45 to 5 h 31; with fourteen, waits are notified within 66 minutes.
	overdueGaps = 11
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
//   - A 429 changes no pace if there was none among the sixteen responses before it, unless a request
//     in the background gets it with a Retry-After, which no rejection at random has. Otherwise it
//     halves the pace of the requests in the background, which can wait: that is what makes
//     processes share a limit fairly. The user's requests fail if they wait for long. So they have
//     a pace of their own, which only a 429 to one of them lowers, by the square of the share of
//     429s among the sixteen responses before it: by a quarter if half of them were, and hardly if
//     one in twenty is rejected at random.
//   - If nothing but 429s came back, each further one doubles a backoff, because some limits count
//     rejected requests, too, and never end while all processes go on asking. The doubling reaches
//     ten seconds only after fifteen of them, a minute or two. Otherwise a process that is merely
//     unlucky would lose its share, and one with a quota for each minute would miss the beginning
//     of the next. After it, one request finds out whether the 429s have ended, and the others wait
//     for its outcome.
//
// A pace that was lowered grows by an amount that depends on nothing but the time since then. All
// processes gain the same and lose in proportion to what they have; so they approach equal shares.
// The growth is quadratic, because that finds a small share as well as a large one: it is 0.1
// requests a second after ten seconds, 3.6 after a minute, and 90 after five.
type Throttle struct {
	// limit is the Client's own rate limit.
	limit *rate.Limiter
	// users is the lane of the user's requests.
	users lane
	// background is the lane of the poller's requests.
	background lane

	// mu guards what follows, and the lanes apart from their tokens.
	mu sync.Mutex
	// pausedUntil is the end of the pause that 429s have asked for.
	pausedUntil time.Time
	// backedOffUntil is the end of a backoff, or until when requests wait for the outcome of the first one
	// after it. Any response other than a 429 ends either, but not pausedUntil.
	backedOffUntil time.Time
	// probed is when that first one was sent.
	probed time.Time
	// hurried is how many of the user's requests wait whose deadline may come before the end of a backoff.
	hurried int
	// history has a bit for each of the last responses, the newest lowest: 1 is a 429. Of
	// requests that were under way together, only the first 429 counts, because one limit rejected
	// them all.
	history uint32
	// lastLimited is when the last 429 came that counts.
	lastLimited time.Time
	// backgroundSince is when the background request at the head of its lane got there. It is
	// unused while that lane is empty.
	backgroundSince time.Time
	// owed means that the last request in the background got a 429, so that its turn is still to come.
	owed bool
}

// lane returns the one of the user's requests, or of those in the background.
func (t *Throttle) lane(background bool) *lane {
	if background {
		return &t.background
	}
	return &t.users
}

// NewThrottle returns a Throttle within a limit.
func NewThrottle(limit *rate.Limiter) *Throttle {
	return &Throttle{
		limit:      limit,
		users:      lane{token: make(chan struct{}, 1)},
		background: lane{token: make(chan struct{}, 1)},
	}
}

// ErrPaused means that a rate-limit pause outlasts the context's deadline, so that the caller would
// get DeadlineExceeded in the end.
var ErrPaused = fmt.Errorf("the rate-limit pause outlasts the context's deadline: %w", context.DeadlineExceeded)

// Wait returns once a request may be sent. It returns ErrPaused if ctx's deadline comes before the
// end of the pause, which it checks at the beginning and while the request is the first of its lane.
func (t *Throttle) Wait(ctx context.Context, background bool) error {
	if !background && tooLate(ctx, longestPause) {
		t.hurry(1)
		defer t.hurry(-1)
	}
	if t.paused(ctx, background) {
		return ErrPaused
	}
	own := t.lane(background)
	other := t.lane(!background)
	select {
	case own.token <- struct{}{}:
		defer func() { <-own.token }()
	case <-ctx.Done(): // then neither the loop nor the lane matters
	}
	for began := time.Now(); ctx.Err() == nil && !t.paused(ctx, background); {
		left := t.send(background, began, len(other.token) > 0)
		if left <= 0 {
			return nil
		}
		_ = Sleep(ctx, min(left, time.Second)) // a response may end the backoff meanwhile
	}
	if t.paused(ctx, background) { // a 429 has come meanwhile
		return ErrPaused
	}
	return ctx.Err()
}

// hurry notes that a request with a deadline begins to wait (1) or ends to (-1).
func (t *Throttle) hurry(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hurried += n
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
// wait. began is when it became the first of its lane. contended means that the other lane has a
// request as well. Then the user's goes first, unless the one in the background is overdue.
func (t *Throttle) send(background bool, began time.Time, contended bool) (left time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if background {
		t.backgroundSince = began
	}
	left = t.heldBackUntil(background).Sub(now)
	if left > 0 {
		return left
	}
	reserved := t.limit.ReserveN(now, 1)
	left = reserved.DelayFrom(now)
	if contended {
		left = max(left, t.giveWay(now, background))
	}
	if left > 0 {
		reserved.CancelAt(now)
		return left
	}
	t.lane(background).sent(now)
	if background {
		t.owed = false
	}
	if t.history&1 == 1 {
		t.probed = now
		t.backedOffUntil = now.Add(pauseAfter(t.history, probeAfter))
	}
	return 0
}

// heldBackUntil returns until when 429s hold the next request of a lane back. A backoff yields to the
// user's requests from time to time if one of them would fail otherwise.
func (t *Throttle) heldBackUntil(background bool) time.Time {
	backedOff := t.backedOffUntil
	probe := t.probed.Add(probeAfter)
	if !background && t.hurried > 0 && probe.Before(backedOff) {
		backedOff = probe
	}
	return later(later(t.pausedUntil, backedOff), t.lane(background).notBefore)
}

// giveWay returns how long a request must wait until it looks whether that of the other lane has
// gone, or 0 if it is this one's turn. The user's requests go first until the other is overdue. They
// leave the time before that free for one request: otherwise they would use up the service's limit
// just before.
func (t *Throttle) giveWay(now time.Time, background bool) time.Duration {
	room := gapOf(t.users.pace.perSecond(now)) // at the service's limit, as far as 429s have shown it
	gap := max(room, gapOf(float64(t.limit.Limit())))
	overdue := t.backgroundSince
	if !t.owed {
		overdue = overdue.Add(min(overdueGaps*gap, overdueTime))
	}
	overdue = later(overdue, t.heldBackUntil(true)) // one that 429s hold back delays nobody
	switch {
	case background && overdue.After(now):
		return min(gap/8, overdue.Sub(now))
	case !background && overdue.Sub(now) <= room:
		return gap / 8
	}
	return 0
}

// Rejection is a request that was rejected with a 429.
type Rejection struct {
	// SentAt is when the request was sent.
	SentAt time.Time
	// Background means that it was not the user's.
	Background bool
	// RetryAfter is how long the service asked to wait. It is 0 if the service did not say.
	RetryAfter time.Duration
	// Delay is how long the pause lasts at least.
	Delay time.Duration
}

// Limited notes a rejection. It returns the pause if this 429 started or extended it, else 0. If the
// request was sent before the last 429 came that counts, only the pause can change.
func (t *Throttle) Limited(r Rejection) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	until := now.Add(max(r.RetryAfter, r.Delay))
	heldUntil := later(t.pausedUntil, t.backedOffUntil)
	t.owed = t.owed || r.Background
	if r.SentAt.After(t.lastLimited) {
		t.lastLimited = now
		t.lowerPaces(now, r)
		t.history = t.history<<1 | 1
		longest := longestPause
		if r.RetryAfter > 0 {
			longest = probeAfter
		}
		heldUntil = t.pausedUntil // because a new backoff replaces the last one
		t.backedOffUntil = now.Add(pauseAfter(t.history, longest))
	}
	t.pausedUntil = later(t.pausedUntil, until)
	until = later(until, t.backedOffUntil)
	if !until.After(heldUntil) {
		return 0
	}
	return until.Sub(now)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lowerPaces lowers the paces after a rejection, if it says that there is a limit.
func (t *Throttle) lowerPaces(now time.Time, r Rejection) {
	before := bits.OnesCount16(uint16(t.history)) // of the sixteen responses before
	asked := r.Background && r.RetryAfter > 0
	if before == 0 && !asked {
		return
	}
	t.background.lowerPace(now, 1.0/2)
	if !r.Background {
		share := float64(before) / 16
		t.users.lowerPace(now, share*share)
	}
	t.lane(r.Background).holdBack(now)
}

// pauseAfter returns the pause, with jitter, after the 429s that came last without another response
// among them. Each further one doubles it, up to the longest.
func pauseAfter(history uint32, longest time.Duration) time.Duration {
	inARow := bits.TrailingZeros32(^history)
	longest = min(longest, longestPause>>max(0, 20-inARow)) // after a single 429, less than a millisecond
	return longest/2 + rand.N(longest/2)
}

// Accepted notes a response other than a 429.
func (t *Throttle) Accepted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history <<= 1
	t.backedOffUntil = time.Time{}
}

// Left returns how long 429s hold the next request back. At 0 or less, they do not.
func (t *Throttle) Left(background bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.heldBackUntil(background))
}
