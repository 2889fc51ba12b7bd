// Package poll decides when to look at what, for any number of waits at once.
//
// Many meetings are shown by one page of the listing; a single one costs a look
// of its own. The plan is pure: it chooses between the two (plan.go), reads pages in
// sweeps (pages.go), and paces the requests, slower after a 429 (lane.go). The Poller
// carries it out: it owns the lock, the timer and the requests under way. Who waits
// for a meeting, and what was seen of it, is a watch (watch.go).
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
	// Look looks at one meeting. It may have to wait for its turn first, and asks
	// wanted then; unless the look is still wanted, it fails without a request.
	// maxAge is for how long the reply says that it holds.
	Look(ctx context.Context, id string, wanted func() bool) (s Sighting, maxAge time.Duration, f *Failure)
	// Page reads a page of the listing, the first one where cursor is empty; next
	// is empty at the end.
	Page(ctx context.Context, cursor string) (page []Sighting, next string, f *Failure)
}

// Failure is a request that failed. Without RateLimited and Transient it is a
// refusal that would come again.
type Failure struct {
	Err         error
	RateLimited bool          // 429
	RetryAfter  time.Duration // as long as the service asks to wait
	Transient   bool          // no reply, or a fault that may pass
}

// Observer is told what somebody on call asks about. Its methods run on goroutines
// of their own, without the Poller's lock.
type Observer interface {
	// LookFailed is told of a look that failed otherwise than by a 429, and of how
	// many have failed in a row. several says that these have become several.
	LookFailed(id string, inARow int, several bool, err error)
	// LooksWork is told of the first sighting after several looks that failed.
	LooksWork(id string, failed int)
	// Turned is told of each turn that ended.
	Turned(Turn)
}

// several failed looks in a row are worth a warning.
const several = 3

// Turn is what was asked in a turn. It ends early where nobody waits any more.
type Turn struct {
	Took         time.Duration
	Waits        int // meetings waited for at its end
	Pages, Looks int

	began, ends time.Duration // ends is 0 where nobody waits
}

// keepWhole is the number of meetings waited for up to which what was seen of
// each is kept whole; beyond it, only its state is. What nobody waits for is kept
// whole as long as it is kept at all, for who may come to wait.
const keepWhole = 1000

// Poller looks at meetings for every wait of a Client. It makes a goroutine for
// each request under way and holds none else.
type Poller struct {
	service Service

	// Observer may be set before the first wait.
	Observer Observer

	began  time.Time
	latest time.Duration // what now returned last

	mu       sync.Mutex
	plan     plan
	trouble  error         // how the last look failed
	troubled time.Duration // when that was
	keeps    bool          // what nobody waits for, until forget

	ctx    context.Context // of the requests under way, from the first waiter to the last
	cancel context.CancelFunc
	timer  *time.Timer // wakes the plan; nil while nobody waits
	wake   time.Duration
	turn   Turn // under way
}

// New returns a Poller that makes no request before somebody waits.
func New(s Service) *Poller {
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return &Poller{service: s, began: time.Now(), plan: newPlan(random)}
}

// Now is the time that sightings are told with, counted from the Poller's
// beginning. It goes on evenly where the wall clock is set, and no two are the
// same: what came first is known where the clock is coarse, too.
func (p *Poller) Now() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()
}

// now is Now with the lock held. A clock that has gone back is another one: the
// Client was made outside a synctest bubble, or was in another.
func (p *Poller) now() time.Duration {
	now := time.Since(p.began)
	if now < p.latest-time.Second && p.plan.waiting == 0 {
		p.restart()
		now = 0
	}
	p.latest = max(now, p.latest+1)
	return p.latest
}

// restart forgets what is known by a clock that is gone. It is no part of now,
// which would need half a kilobyte of every waiting goroutine's stack for it.
//
//go:noinline
func (p *Poller) restart() {
	p.began, p.latest, p.keeps = time.Now(), 0, false
	p.plan = newPlan(p.plan.random)
}

// Join lets who wait for a meeting. What was seen within the floor is told at
// once, which may be all. lookedAt is when somebody else has looked at the
// meeting, or zero. Who waits for the meeting already waits on.
func (p *Poller) Join(who Waiter, id string, lookedAt time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.join(who, id, lookedAt)
}

// join is no part of Join, where a goroutine that waits for the lock would need
// room for both.
//
//go:noinline
func (p *Poller) join(who Waiter, id string, lookedAt time.Time) {
	now := p.now()
	w := p.watch(id)
	if w.has(who) {
		return
	}
	fresh := w.last != nil && now-w.seen < floor
	if fresh && who.See(w.sighting(), true, 0) {
		p.settle(w)
		return
	}
	alone := !w.waited()
	w.add(who, fresh || w.state == "")
	if ago := time.Since(lookedAt); 0 <= ago && ago < floor {
		w.free = max(w.free, now-ago+floor)
	}
	if alone {
		p.plan.join(w, now, fresh)
	} else {
		p.plan.hurry(w, who.Interval())
	}
	p.stir(now)
}

// Leave ends a wait and returns what was seen last; where looks have been
// failing, or are held back, with the reason.
func (p *Poller) Leave(who Waiter, id string) (last Sighting, trouble error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.plan.watches[id]
	if w == nil || !w.has(who) {
		return Sighting{ID: id}, nil
	}
	now := p.now()
	if _, failing := p.plan.failures[w]; failing || p.troubled > w.seen && (p.plan.looks.until > now || p.plan.looks.bad > 0) {
		trouble = p.trouble
	}
	if last = w.sighting(); last.Value != nil {
		last.Value = last.Value.Copy(nil)
	}
	w.drop(who)
	p.settle(w)
	return last, trouble
}

// Saw takes in what the service showed, to a request begun at asked, otherwise
// than by a look or a page of the Poller's: the next look is a floor away.
func (p *Poller) Saw(s Sighting, asked time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	w := p.watch(s.ID)
	w.free = max(w.free, now+floor)
	if !w.old(s, asked) {
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

// Again lets a meeting be looked at at once: something that began at since makes
// what was seen old. A look that came back later, or is under way, still counts.
func (p *Poller) Again(id string, since time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	w := p.plan.watches[id]
	if w == nil || w.looking || w.seen >= since && w.free-floor >= since {
		return
	}
	w.last, w.seen = nil, now
	p.plan.lookNow(w, now)
	p.stir(now)
}

// tell tells a watch's waiters, and clears up where none is left. It reports
// whether somebody still waits.
func (p *Poller) tell(w *watch, s Sighting, asked time.Duration) bool {
	p.observeRecovery(w)
	w.tell(s, asked)
	w.seen = p.now()
	if p.plan.waiting > keepWhole && !s.Final && w.waited() {
		w.last = nil
	}
	return p.settle(w)
}

// settle clears up after waiters may have left. It reports whether somebody still
// waits.
func (p *Poller) settle(w *watch) bool {
	if w.waited() {
		return true
	}
	if w.role != idle {
		p.plan.leave(w)
	}
	if !p.keeps {
		p.keeps = true
		began := p.began
		time.AfterFunc(floor+gather, func() { p.forget(began) })
	}
	if p.plan.waiting == 0 {
		p.pause()
	}
	return false
}

// forget drops what nobody waits for once its floor is over. It is called by a timer,
// which may be of another clock than the one that began last.
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
	if p.keeps = next < never; p.keeps { // seldom, since this goes through all
		time.AfterFunc(max(next-now+gather, time.Second), func() { p.forget(began) })
	}
	if len(p.plan.watches) == 0 {
		p.plan.watches = make(map[string]*watch) // what was large stays so
	}
}

// pause ends the requests under way, as nobody waits any more.
func (p *Poller) pause() {
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
		for _, w := range p.plan.watches {
			if w.looking { // the service may have shown it, to nobody
				w.free = p.now() + floor
			}
			w.looking = false
		}
	}
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.turned(p.now())
}

// step does what the plan wants done now and sets the timer for what comes next.
func (p *Poller) step(now time.Duration) {
	for p.plan.waiting > 0 {
		if p.cancel == nil {
			p.ctx, p.cancel = context.WithCancel(context.Background())
		}
		do, wake := p.plan.next(now)
		switch {
		case do.page:
			p.turn.Pages++
			go p.page(p.ctx, p.plan.sweep.cursor, now)
		case do.look != nil:
			p.turn.Looks++
			go p.look(p.ctx, do.look, now)
		default:
			p.wakeAt(now, wake)
			return
		}
	}
}

// wakeAt sets the timer.
func (p *Poller) wakeAt(now, at time.Duration) {
	p.wake = at
	if p.timer == nil {
		p.timer = time.AfterFunc(at-now, p.tick)
	} else {
		p.timer.Reset(at - now)
	}
}

// stir has the plan asked soon. A goroutine that waits does not ask it itself,
// for that would cost it a larger stack.
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
	p.turned(now)
	p.step(now)
}

// turned tells the observer of a turn that has ended, and begins the next.
func (p *Poller) turned(now time.Duration) {
	t := p.turn
	waits := p.plan.waiting
	if waits > 0 && now < t.ends || waits == 0 && t.ends == 0 {
		return
	}
	if p.turn = (Turn{}); waits > 0 {
		p.turn.began, p.turn.ends = now, now+p.plan.turn()
	}
	if p.Observer != nil && t.ends > 0 {
		t.Took, t.Waits = now-t.began, waits
		go p.Observer.Turned(t)
	}
}

// observeFailure tells the observer of a failed look, the nth in a row.
func (p *Poller) observeFailure(w *watch, n int, err error) {
	f, waits := p.plan.failures[w]
	warn := waits && n >= several && !f.told
	if warn {
		f.told = true
		p.plan.failures[w] = f
	}
	if p.Observer != nil {
		go p.Observer.LookFailed(w.id, n, warn, err)
	}
}

// observeRecovery tells the observer that a meeting is seen again, where it has been
// told of several failures.
func (p *Poller) observeRecovery(w *watch) {
	if f := p.plan.failures[w]; f.told && p.Observer != nil {
		go p.Observer.LooksWork(w.id, f.looks)
	}
}

// look makes one look.
func (p *Poller) look(ctx context.Context, w *watch, asked time.Duration) {
	s, maxAge, failed := p.service.Look(ctx, w.id, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return w.seen <= asked
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
		old := w.old(s, asked)
		p.observeRecovery(w)
		p.plan.looked(w, now, maxAge)
		if !old {
			p.tell(w, s, asked)
		}
	case failed.RateLimited:
		p.trouble, p.troubled = failed.Err, now
		p.plan.lookRefused(w, now, asked, failed.RetryAfter)
	case w.seen > asked: // by other means, which the look may not even have gone out for
		p.plan.lookEnded(w)
	case !failed.Transient:
		p.plan.lookEnded(w)
		p.observeFailure(w, p.plan.failures[w].looks+1, failed.Err)
		p.fail(w, failed.Err)
	default:
		p.trouble, p.troubled = failed.Err, now
		tooMany := p.plan.lookFailed(w, now, asked)
		if f := p.plan.failures[w]; f.looks > 0 { // somebody still waits
			p.observeFailure(w, f.looks, failed.Err)
		}
		for _, w := range tooMany {
			f := p.plan.failures[w]
			p.fail(w, fmt.Errorf("%d looks in a row failed, here or at others, over %v: %w", f.looks, (now-f.since).Round(time.Second), failed.Err))
		}
	}
}

// fail ends every wait for a meeting.
func (p *Poller) fail(w *watch, err error) {
	w.fail(err)
	p.settle(w)
}

// page reads one page.
func (p *Poller) page(ctx context.Context, cursor string, asked time.Duration) {
	limited, cancel := context.WithTimeout(ctx, stuck)
	defer cancel()
	page, next, failed := p.service.Page(limited, cursor)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	shown := p.tellPage(asked, page)
	if ctx.Err() != nil {
		return // nobody waits for the next one
	}
	defer func() { p.step(now) }()
	switch {
	case failed == nil:
		p.plan.pageRead(now, asked, shown, next)
	case failed.RateLimited:
		p.plan.pageRefused(now, asked, failed.RetryAfter)
	case failed.Transient || limited.Err() != nil:
		p.plan.pageLost(now)
	default:
		p.plan.pageBarred(now)
	}
}

// tellPage tells the waiters what a page shows, and returns who still waits.
func (p *Poller) tellPage(asked time.Duration, page []Sighting) []*watch {
	shown := make([]*watch, 0, len(page))
	for _, s := range page {
		w := p.plan.watches[s.ID]
		if w == nil {
			continue
		}
		old := w.old(s, asked)
		if old && w.waited() || !old && p.tell(w, s, asked) {
			shown = append(shown, w)
		}
	}
	return shown
}
