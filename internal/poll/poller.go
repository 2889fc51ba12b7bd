// Package poll decides when to poll which meeting, for any number of waits at once.
//
// A page of the listing shows many meetings; a poll is a GET of one. The plan is pure: it decides
// which request comes next (plan.go), which pages to read (stretch.go), how fast (pacer.go) and
// which failures end waits (failures.go). The Poller owns the lock and the timer: it asks the
// plan, makes each attempt, reports the outcome (requests.go), and waits. A watch is a meeting and
// its waiters (watch.go).
package poll

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Service makes the requests. Each method makes one attempt, does not retry, and
// returns soon after ctx has ended.
type Service interface {
	// Poll gets one meeting. It may have to wait before it can send its request.
	// It calls wanted just before sending; if wanted returns false, it fails without
	// a request. maxAge is from the response's Cache-Control.
	Poll(ctx context.Context, id string, wanted func() bool) (s Snapshot, maxAge time.Duration, f *Failure)
	// Page reads the page of the listing at cursor, the first page if cursor is
	// empty. It calls wanted as Poll does. next is empty at the end of the listing.
	Page(ctx context.Context, cursor string, wanted func() bool) (page []Snapshot, next string, f *Failure)
}

// Failure is the outcome of a request that failed. If it is neither RateLimited nor
// Transient, the service rejected the request and would reject it again.
type Failure struct {
	Err         error
	RateLimited bool          // 429
	RetryAfter  time.Duration // how long the service asks to wait; 0 if it does not say
	Transient   bool          // no response, or a fault that may pass
	KeyRejected bool          // the service rejected the key
	NotBefore   time.Duration // if positive, the poll was not sent: another process made one; how long to wait
}

// Observer receives events for logs and metrics. The Poller calls its methods on
// separate goroutines, without its lock.
type Observer interface {
	// PollsFail reports, once, that several polls in a row have failed, except by a 429.
	PollsFail(id string, inARow int, err error)
	// PollsRecovered reports the first snapshot after PollsFail.
	PollsRecovered(id string, failed int)
	// CycleEnded reports a cycle that has ended.
	CycleEnded(Cycle)
}

// maxQueued is the number of requests that may wait in the Client's rate limiter. The user's
// calls never wait behind more.
const maxQueued = 2

// several is the number of failed polls in a row that are worth a warning.
const several = 3

// Cycle counts the requests of one cycle. A cycle ends early if nobody waits any more.
type Cycle struct {
	Took         time.Duration
	Waits        int // awaited meetings at its end
	Pages, Polls int

	began, ends time.Duration // ends is 0 if nobody waits
}

// Poller polls meetings for every wait of a Client. Each request under way has a
// goroutine; there is no other.
type Poller struct {
	service  Service
	Observer Observer // may be set before the first wait

	mu        sync.Mutex
	followers []*follower
	began     time.Time
	latest    time.Duration // what now returned last
	plan      plan
	trouble   error         // why the last failed poll failed
	troubled  time.Duration // when it failed
	forgotten time.Duration // when forget last ran

	queued int             // requests that wait to be sent
	ctx    context.Context // of the requests under way; ends when nobody waits
	cancel context.CancelFunc
	timer  *time.Timer   // calls tick; nil if nobody waits
	wake   time.Duration // when the timer fires
	cycle  Cycle         // the current one
}

// New returns a Poller. It makes no request before somebody waits.
func New(s Service) *Poller {
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return &Poller{service: s, began: time.Now(), plan: newPlan(random)}
}

// Now returns the time of the Poller's clock, which dates snapshots. Each call returns a
// later time, even if the system's clock is coarse.
func (p *Poller) Now() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()
}

// now is Now with the lock held.
func (p *Poller) now() time.Duration {
	p.latest = max(time.Since(p.began), p.latest+1)
	return p.latest
}

// Join adds a waiter to a meeting. If the meeting has a fresh snapshot, Join notifies
// the waiter at once, which may end the wait.
func (p *Poller) Join(waiter Waiter, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.join(waiter, id, now)
	p.reschedule(now)
}

// join is Join with the lock held.
func (p *Poller) join(waiter Waiter, id string, now time.Duration) {
	w := p.watch(id)
	fresh := w.fresh(now)
	if fresh {
		if over, _ := waiter.Notify(w.last, true, 0); over {
			p.releaseIfIdle(w)
			return
		}
	}
	waited := w.waited()
	w.waiters = append(w.waiters, waiting{waiter, fresh})
	if waited {
		p.plan.hurry(w, waiter.Interval(w.last))
	} else {
		p.plan.join(w, now, fresh)
	}
}

// Leave ends a wait and returns the last snapshot. If polls of the meeting fail or are
// held back, it also returns the reason. If the wait is over already, it returns neither.
func (p *Poller) Leave(waiter Waiter, id string) (last Snapshot, trouble error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.plan.watches[id]
	if w == nil || !w.drop(waiter) {
		return Snapshot{}, nil
	}
	_, failing := p.plan.failures[w]
	heldBack := p.plan.pacer.until > p.now() || p.plan.pacer.limited+p.plan.pacer.failed > 0
	if failing || heldBack && p.troubled > w.seen {
		trouble = p.trouble
	}
	p.releaseIfIdle(w)
	return w.last, trouble
}

// Record records a snapshot from a request that is not the Poller's, sent at sentAt. The
// next poll is at least the minimum poll interval later.
func (p *Poller) Record(s Snapshot, sentAt time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	w := p.watch(s.ID)
	w.free = max(w.free, now+minPollInterval)
	if !w.old(s, sentAt) {
		p.notify(w, s, sentAt)
	}
	p.plan.recorded(w, now)
	p.reschedule(now)
}

func (p *Poller) watch(id string) *watch {
	w := p.plan.watches[id]
	if w == nil {
		w = &watch{id: id}
		p.plan.watches[id] = w
	}
	return w
}

// Invalidate makes the last snapshot of a meeting count as old, so that the next poll is
// immediate. It does nothing if a poll is under way, or if a poll or a new state has
// arrived after since.
func (p *Poller) Invalidate(id string, since time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	w := p.plan.watches[id]
	// A page moves only seen, and a long max-age moves only free; a poll moves both. A page
	// may be older than its request, unless it shows a new state.
	if w == nil || w.polling || w.changed >= since || w.seen >= since && w.free-minPollInterval >= since {
		return
	}
	w.stale, w.seen = true, now
	p.plan.pollNow(w, now)
	p.reschedule(now)
}

// Forget makes the last snapshot of a meeting count as old, so that the next wait polls.
func (p *Poller) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.plan.watches[id]; w != nil {
		w.stale, w.seen = true, p.now()
	}
}

// notify records a snapshot and notifies the waiters. It removes those whose wait is over, and
// reports whether somebody still waits.
func (p *Poller) notify(w *watch, s Snapshot, sentAt time.Duration) bool {
	p.observeRecovery(w)
	changed := s.State != w.last.State
	if w.seen = p.now(); changed && w.last.State != "" {
		w.changed = w.seen
	}
	w.last, w.stale = s, false
	w.waiters = slices.DeleteFunc(w.waiters, func(x waiting) bool {
		over, confirm := x.Notify(s, changed || !x.notified, sentAt)
		w.confirm = w.confirm || confirm
		return over
	})
	for i := range w.waiters {
		w.waiters[i].notified = true
	}
	return p.releaseIfIdle(w)
}

// releaseIfIdle cleans up if the meeting has no waiter left. It reports whether somebody
// still waits.
func (p *Poller) releaseIfIdle(w *watch) bool {
	if w.waited() {
		return true
	}
	if w.role != idle {
		p.plan.leave(w)
	}
	p.stopIfIdle()
	return false
}

// stopIfIdle stops if nobody waits any more.
func (p *Poller) stopIfIdle() {
	if p.plan.waiting == 0 && p.timer != nil {
		p.stop()
	}
	p.forget()
}

// forget deletes the watches that nobody waits for and whose snapshot has expired. It visits
// all, so it runs at most once in a minimum poll interval.
func (p *Poller) forget() {
	now := p.now()
	if now < p.forgotten+minPollInterval {
		return
	}
	p.forgotten = now
	maps.DeleteFunc(p.plan.watches, func(_ string, w *watch) bool {
		return !w.waited() && !w.polling && max(w.free, w.seen+minPollInterval) <= now
	})
}

// stop cancels the requests under way and the timer. Nobody waits any more.
func (p *Poller) stop() {
	p.cancel()
	p.timer.Stop()
	p.timer = nil
	p.endCycle(p.now())
	for _, w := range p.plan.watches {
		if w.polling { // the service may have answered the poll
			w.free = p.now() + minPollInterval
		}
		w.polling = false
	}
	time.AfterFunc(2*minPollInterval, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.forget()
	})
}

// run starts the requests that the plan decides to make now. Then it sets the timer for the next.
func (p *Poller) run(now time.Duration) {
	p.endCycle(now)
	for p.plan.waiting > 0 {
		if p.queued >= maxQueued {
			p.wakeAt(now, never)
			return
		}
		do := p.plan.decide(now)
		switch {
		case do.page:
			p.queued++
			go p.page(p.ctx, do.cursor, now)
		case do.poll != nil:
			p.queued++
			go p.poll(p.ctx, do.poll, now)
		default:
			p.wakeAt(now, do.wake)
			return
		}
	}
}

// wakeAt sets the timer.
func (p *Poller) wakeAt(now, wake time.Duration) {
	if p.timer == nil {
		p.ctx, p.cancel = context.WithCancel(context.Background())
		p.queued = 0
	} else {
		p.timer.Stop()
	}
	p.wake, p.timer = wake, time.AfterFunc(wake-now, p.tick)
}

// reschedule lets the timer fire now, since something has changed. It does not call run
// itself: of waits that begin together, the plan should see all.
func (p *Poller) reschedule(now time.Duration) {
	if p.plan.waiting > 0 && (p.timer == nil || p.wake > now) {
		p.wakeAt(now, now)
	}
}

func (p *Poller) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run(p.now())
}

// endCycle ends the cycle if it is over, reports it to the observer and begins the next.
func (p *Poller) endCycle(now time.Duration) {
	c, waits := p.cycle, p.plan.waiting
	if waits > 0 && now < c.ends || waits == 0 && c.ends == 0 {
		return
	}
	if p.cycle = (Cycle{}); waits > 0 {
		p.cycle.began, p.cycle.ends = now, now+p.plan.cycle()
	}
	if p.Observer != nil && c.ends > 0 {
		c.Took, c.Waits = now-c.began, waits-p.plan.following
		go p.Observer.CycleEnded(c)
	}
}
