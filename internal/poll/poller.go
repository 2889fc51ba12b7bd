// Package poll decides when to look at which meeting, for any number of waits at once.
//
// One page of the listing shows many meetings; a look shows one. The plan is pure: it chooses
// between the two (plan.go), reads pages in sweeps (pages.go) and paces the requests, slower
// after a 429 (lane.go). The Poller carries the plan out: it owns the lock, the timer and the
// requests under way. A watch is a meeting and who waits for it (watch.go).
package poll

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Service is what is polled. Each method makes one request, which it does not
// repeat, and returns soon after ctx has ended.
type Service interface {
	// Look looks at one meeting. It may have to wait before it can send its request.
	// It calls wanted just before sending; if wanted returns false, it fails without
	// a request. maxAge is from the reply's Cache-Control.
	Look(ctx context.Context, id string, wanted func() bool) (s Sighting, maxAge time.Duration, f *Failure)
	// Page reads the page of the listing at cursor, the first page if cursor is
	// empty. next is empty at the end of the listing.
	Page(ctx context.Context, cursor string) (page []Sighting, next string, f *Failure)
}

// Failure is a request that failed. If it is neither RateLimited nor Transient, the
// service refused the request and would refuse it again.
type Failure struct {
	Err         error
	RateLimited bool          // 429
	RetryAfter  time.Duration // how long the service asks to wait; 0 if it does not say
	Transient   bool          // no reply, or a fault that may pass
}

// Observer is notified of what an operator wants to know. Its methods run on
// goroutines of their own, without the Poller's lock.
type Observer interface {
	// LookFailed reports a look that failed, but not by a 429, and how many have
	// failed in a row. several is true once, when these have become several.
	LookFailed(id string, inARow int, several bool, err error)
	// LooksWork reports the first sighting after several failed looks.
	LooksWork(id string, failed int)
	// Turned reports a turn that has ended.
	Turned(Turn)
}

// several is the number of failed looks in a row that are worth a warning.
const several = 3

// Turn counts the requests of one turn. A turn ends early if nobody waits any more.
type Turn struct {
	Took         time.Duration
	Waits        int // meetings waited for at its end
	Pages, Looks int

	began, ends time.Duration // ends is 0 if nobody waits
}

// keepWhole is the largest number of meetings waited for of which the Poller keeps the
// whole value. If there are more, it keeps only their states. It keeps the values of
// meetings that nobody waits for, until it forgets them: a waiter may come.
const keepWhole = 1000

// Poller looks at meetings for every wait of a Client. Each request under way has a
// goroutine; there is no other.
type Poller struct {
	service  Service
	Observer Observer // may be set before the first wait

	began  time.Time
	latest time.Duration // what now returned last

	mu         sync.Mutex
	plan       plan
	trouble    error         // why the last failed look failed
	troubled   time.Duration // when it failed
	forgetting bool          // a forget timer is running

	ctx     context.Context // of the requests under way; lives as long as somebody waits
	cancel  context.CancelFunc
	timer   *time.Timer   // calls tick; nil if nobody waits
	wake    time.Duration // when the timer fires
	current Turn          // the turn under way
}

// New returns a Poller that makes no request before somebody waits.
func New(s Service) *Poller {
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return &Poller{service: s, began: time.Now(), plan: newPlan(random)}
}

// Now returns the time since the Poller's beginning, which sightings are dated by. It is
// independent of the wall clock. Each call returns a later time, even on a coarse clock.
func (p *Poller) Now() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()
}

// now is Now with the lock held. If the clock went back, the Client moved between
// synctest bubbles: start again.
func (p *Poller) now() time.Duration {
	now := time.Since(p.began)
	if now < p.latest-time.Second && p.plan.waiting == 0 {
		p.restart()
		now = 0
	}
	p.latest = max(now, p.latest+1)
	return p.latest
}

// restart forgets everything that was seen by the former clock. It is kept out of now
// so that waiting goroutines need half a kilobyte less stack.
//
//go:noinline
func (p *Poller) restart() {
	p.began, p.latest, p.forgetting = time.Now(), 0, false
	p.plan = newPlan(p.plan.random)
}

// Join adds waiter to a meeting. If the meeting was seen within the floor, the waiter
// is notified at once; that may end the wait. lookedAt is when another process last
// looked at the meeting, or zero. A waiter that is already there is left alone.
func (p *Poller) Join(waiter Waiter, id string, lookedAt time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.join(waiter, id, lookedAt)
}

// join is Join with the lock held. It is kept out of Join so that goroutines waiting
// for the lock need less stack.
//
//go:noinline
func (p *Poller) join(waiter Waiter, id string, lookedAt time.Time) {
	now := p.now()
	w := p.watch(id)
	if w.has(waiter) {
		return
	}
	fresh := w.last != nil && now-w.seen < floor
	if fresh && waiter.See(w.sighting(), true, 0) {
		p.settle(w)
		return
	}
	waited := w.waited()
	w.add(waiter, fresh || w.state == "")
	if ago := time.Since(lookedAt); 0 <= ago && ago < floor {
		w.free = max(w.free, now-ago+floor)
	}
	if waited {
		p.plan.hurry(w, waiter.Interval())
	} else {
		p.plan.join(w, now, fresh)
	}
	p.stir(now)
}

// Leave ends a wait and returns what was seen last. If looks at the meeting fail or
// are held back, it also returns the reason.
func (p *Poller) Leave(waiter Waiter, id string) (last Sighting, trouble error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.plan.watches[id]
	if w == nil || !w.has(waiter) {
		return Sighting{ID: id}, nil
	}
	if p.inTrouble(w, p.now()) {
		trouble = p.trouble
	}
	if last = w.sighting(); last.Value != nil {
		last.Value = last.Value.Copy(nil)
	}
	w.drop(waiter)
	p.settle(w)
	return last, trouble
}

// inTrouble reports whether looks at a meeting fail or are held back.
func (p *Poller) inTrouble(w *watch, now time.Duration) bool {
	_, failing := p.plan.failures[w]
	heldBack := p.plan.looks.until > now || p.plan.looks.bad > 0
	return failing || heldBack && p.troubled > w.seen
}

// Saw records a meeting seen by a request that is not the Poller's, sent at sentAt. The
// next look is at least a floor later.
func (p *Poller) Saw(s Sighting, sentAt time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	w := p.watch(s.ID)
	w.free = max(w.free, now+floor)
	if !w.old(s, sentAt) {
		s.Value = s.Value.Copy(w.last)
		p.tell(w, s, 0)
	}
	p.plan.sighted(w, now)
	p.stir(now)
}

func (p *Poller) watch(id string) *watch {
	w := p.plan.watches[id]
	if w == nil {
		w = &watch{id: id}
		p.plan.watches[id] = w
	}
	return w
}

// Again drops what was seen of a meeting and looks at once, unless a look came back
// after since or is under way.
func (p *Poller) Again(id string, since time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	w := p.plan.watches[id]
	// A page alone moves seen, and a long max-age alone moves free; a look moves both.
	if w == nil || w.looking || w.seen >= since && w.free-floor >= since {
		return
	}
	w.last, w.seen = nil, now
	p.plan.lookNow(w, now)
	p.stir(now)
}

// tell notifies the waiters of a sighting. It reports whether somebody still waits.
func (p *Poller) tell(w *watch, s Sighting, sentAt time.Duration) bool {
	p.observeRecovery(w)
	w.tell(s, sentAt)
	w.seen = p.now()
	if p.plan.waiting > keepWhole && !s.Final && w.waited() {
		w.last = nil
	}
	return p.settle(w)
}

// settle cleans up if no waiter is left. It reports whether somebody still waits.
func (p *Poller) settle(w *watch) bool {
	if w.waited() {
		return true
	}
	if w.role != idle {
		p.plan.leave(w)
	}
	if !p.forgetting {
		p.forgetting = true
		began := p.began
		time.AfterFunc(floor+gather, func() { p.forget(began) })
	}
	if p.plan.waiting == 0 {
		p.pause()
	}
	return false
}

// forget deletes the watches that nobody waits for and whose floor is over. A timer
// calls it. If the clock was started again since, it does nothing.
func (p *Poller) forget(began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.began.Equal(began) {
		return
	}
	now, next := p.now(), never
	for id, w := range p.plan.watches {
		switch until := max(w.free, w.seen+floor); {
		case w.waited():
		case w.looking:
			next = min(next, now+floor)
		case until > now:
			next = min(next, until)
		default:
			delete(p.plan.watches, id)
		}
	}
	if p.forgetting = next < never; p.forgetting { // not often, since this visits every watch
		time.AfterFunc(max(next-now+gather, time.Second), func() { p.forget(began) })
	}
	if len(p.plan.watches) == 0 {
		p.plan.watches = make(map[string]*watch) // a map that was large stays large
	}
}

// pause ends the requests under way and stops the timer. Nobody waits any more.
func (p *Poller) pause() {
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
		for _, w := range p.plan.watches {
			if w.looking { // the service may have answered the look
				w.free = p.now() + floor
			}
			w.looking = false
		}
	}
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.endTurn(p.now())
}

// step makes the requests that the plan wants now and sets the timer for the next.
func (p *Poller) step(now time.Duration) {
	for p.plan.waiting > 0 {
		if p.cancel == nil {
			p.ctx, p.cancel = context.WithCancel(context.Background())
		}
		do, wake := p.plan.next(now)
		switch {
		case do.page:
			p.current.Pages++
			go p.page(p.ctx, p.plan.sweep.cursor, now)
		case do.look != nil:
			p.current.Looks++
			go p.look(p.ctx, do.look, now)
		default:
			p.wakeAt(now, wake)
			return
		}
	}
}

// wakeAt sets the timer to fire at at.
func (p *Poller) wakeAt(now, at time.Duration) {
	p.wake = at
	if p.timer == nil {
		p.timer = time.AfterFunc(at-now, p.tick)
	} else {
		p.timer.Reset(at - now)
	}
}

// stir makes the timer call step soon. A waiting goroutine does not call step itself,
// since it would need a larger stack.
func (p *Poller) stir(now time.Duration) {
	if p.plan.waiting > 0 && (p.timer == nil || p.wake > now) {
		p.wakeAt(now, now)
	}
}

func (p *Poller) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.wake = never
	p.endTurn(now)
	p.step(now)
}

// endTurn ends the turn if it is over, reports it to the observer and begins the next.
func (p *Poller) endTurn(now time.Duration) {
	t := p.current
	waits := p.plan.waiting
	if waits > 0 && now < t.ends || waits == 0 && t.ends == 0 {
		return
	}
	if p.current = (Turn{}); waits > 0 {
		p.current.began, p.current.ends = now, now+p.plan.turn()
	}
	if p.Observer != nil && t.ends > 0 {
		t.Took, t.Waits = now-t.began, waits
		go p.Observer.Turned(t)
	}
}

// observeFailure reports a failed look to the observer, the nth in a row.
func (p *Poller) observeFailure(w *watch, n int, err error) {
	f, known := p.plan.failures[w]
	warn := known && n >= several && !f.told
	if warn {
		f.told = true
		p.plan.failures[w] = f
	}
	if p.Observer != nil {
		go p.Observer.LookFailed(w.id, n, warn, err)
	}
}

// observeRecovery reports a sighting to the observer if it was warned of failures before.
func (p *Poller) observeRecovery(w *watch) {
	if f := p.plan.failures[w]; f.told && p.Observer != nil {
		go p.Observer.LooksWork(w.id, f.looks)
	}
}

// look makes one look.
func (p *Poller) look(ctx context.Context, w *watch, sentAt time.Duration) {
	s, maxAge, failed := p.service.Look(ctx, w.id, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return w.seen <= sentAt
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	now := p.now()
	defer func() { p.step(now) }()
	switch {
	case failed == nil:
		old := w.old(s, sentAt)
		p.observeRecovery(w)
		p.plan.looked(w, now, maxAge)
		if !old {
			p.tell(w, s, sentAt)
		}
	case failed.RateLimited:
		p.trouble, p.troubled = failed.Err, now
		p.plan.lookRefused(w, now, sentAt, failed.RetryAfter)
	case w.seen > sentAt: // the meeting was seen another way meanwhile; the look may not have been sent
		p.plan.lookEnded(w)
	case !failed.Transient:
		p.plan.lookEnded(w)
		p.observeFailure(w, p.plan.failures[w].looks+1, failed.Err)
		p.fail(w, failed.Err)
	default:
		p.trouble, p.troubled = failed.Err, now
		tooMany := p.plan.lookFailed(w, now, sentAt)
		if w.waited() {
			p.observeFailure(w, p.plan.failures[w].looks, failed.Err)
		}
		for _, other := range tooMany {
			f := p.plan.failures[other]
			p.fail(other, fmt.Errorf("%d looks in a row failed, here or at others, over %v: %w", f.looks, (now-f.since).Round(time.Second), failed.Err))
		}
	}
}

// fail ends every wait for a meeting.
func (p *Poller) fail(w *watch, err error) {
	w.fail(err)
	p.settle(w)
}

// page reads one page.
func (p *Poller) page(ctx context.Context, cursor string, sentAt time.Duration) {
	limited, cancel := context.WithTimeout(ctx, stuck)
	defer cancel()
	page, next, failed := p.service.Page(limited, cursor)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	shown := p.tellPage(sentAt, page)
	if ctx.Err() != nil {
		return // nobody waits any more
	}
	defer func() { p.step(now) }()
	switch {
	case failed == nil:
		p.plan.pageRead(now, sentAt, shown, next)
	case failed.RateLimited:
		p.plan.pageRefused(now, sentAt, failed.RetryAfter)
	case failed.Transient || limited.Err() != nil:
		p.plan.pageLost(now)
	default:
		p.plan.pageBarred(now)
	}
}

// tellPage notifies the waiters of a page. It returns its watches that are still waited for.
func (p *Poller) tellPage(sentAt time.Duration, page []Sighting) []*watch {
	shown := make([]*watch, 0, len(page))
	for _, s := range page {
		w := p.plan.watches[s.ID]
		if w == nil {
			continue
		}
		waited := w.waited()
		if !w.old(s, sentAt) {
			waited = p.tell(w, s, sentAt)
		}
		if waited {
			shown = append(shown, w)
		}
	}
	return shown
}
