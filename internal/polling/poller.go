// Package poll decides when to poll which meeting, for any number of waits at once.
//
// A GET shows one meeting; a page of the list shows many. The plan is pure: it decides which request comes next and when
// (plan.go), and which pages are worth reading (window.go). The Poller owns the lock, the timer and the requests. It publishes
// what they show to the subscriptions, and judges nothing. A Follower finds new meetings on the pages (follower.go).
package poll

import (
	"context"
	"sync"
	"time"
)

// Kind says what a failure means.
type Kind int

// The kinds of failures.
const (
	RateLimited Kind = iota // 429
	Transient               // 5xx or a lost connection: never ends a wait
	Passing                 // may pass; ends a wait after ten minutes without a good response about the meeting
	Rejected                // about this request or this meeting: ends its wait
	KeyRejected             // ends all waits
)

// Failure is the outcome of a request that failed.
type Failure struct {
	Err        error
	Kind       Kind
	RetryAfter time.Duration // how long the service asks to wait; 0 if it does not say
}

// Snapshot is one meeting as a response showed it. M is the meeting as the caller keeps it.
type Snapshot[M any] struct {
	ID               string
	Final            bool // the status no longer changes
	Idle             bool // no audio yet
	Created, Updated time.Time
	Meeting          M
	Page             bool      // a list page showed it, so it may be old
	SentAt           time.Time // when its request was sent; the Poller sets it for its own requests
}

// Update is the latest news about a meeting.
type Update[M any] struct {
	Snapshot Snapshot[M]
	Has      bool  // there is a Snapshot
	Err      error // not nil: the wait is over
}

// Service makes the requests: one attempt each, without retries. It returns soon after ctx has ended. It calls send just
// before the request goes out, without any lock that send's caller may need; if send returns false, it fails without a request.
type Service[M any] interface {
	Get(ctx context.Context, id string, send func() bool) (s Snapshot[M], maxAge time.Duration, f *Failure)
	// Page reads the page at cursor, the first page if cursor is empty. next is empty at the end of the list.
	Page(ctx context.Context, cursor string, send func() bool) (shown []Snapshot[M], next string, f *Failure)
}

// Trouble reports that requests began to fail, with the last error, or, if Err is nil, that they work again.
type Trouble struct {
	Err  error
	List bool // only pages of the list are concerned
}

// gather is the time in which waits that begin together assemble, so that pages can show many of them.
const gather = 20 * time.Millisecond

// Poller polls the meetings that somebody awaits. No goroutine of it runs while nobody does.
type Poller[M any] struct {
	svc Service[M]
	log func(Trouble)

	mu        sync.Mutex
	plan      plan
	meetings  map[string]*meeting[M] // those awaited, and those polled within the last interval
	followers []*Follower[M]
	base      time.Time
	last      time.Duration // the latest time that now returned
	swept     time.Duration // when meetings was last swept out

	ctx    context.Context // of the requests under way; nil while nobody waits
	cancel context.CancelFunc
	timer  *time.Timer
	wake   time.Duration
	unsent int // requests under way that are not sent yet

	trouble   error // the last failure of several, or the last 429
	troubled  time.Duration
	warned    [2]bool // of trouble with all requests, and with the list
	toLog     []Trouble
	listFails int
}

// meeting is a meeting with the subscriptions that await it.
type meeting[M any] struct {
	watch
	last    Snapshot[M]
	has     bool
	changed time.Duration // snapshots whose request was sent before this time are no good to begin a wait with
	trouble error         // the failure of its last GET
	subs    []*Subscription[M]
}

// New returns a Poller. log, which may be nil, is called without a lock held.
func New[M any](svc Service[M], log func(Trouble)) *Poller[M] {
	p := &Poller[M]{svc: svc, log: log, meetings: make(map[string]*meeting[M]), base: time.Now()}
	p.plan.stop()
	return p
}

// now returns the time since New. Each time is later than the one before.
func (p *Poller[M]) now() time.Duration {
	p.last = max(time.Since(p.base), p.last+1)
	return p.last
}

// unlock releases the lock, and then logs what happened meanwhile.
func (p *Poller[M]) unlock() {
	events := p.toLog
	p.toLog = nil
	p.mu.Unlock()
	for _, e := range events {
		if p.log != nil {
			p.log(e)
		}
	}
}

// waiting reports whether anybody waits.
func (p *Poller[M]) waiting() bool { return p.plan.awaited+p.plan.followers > 0 }

// wakeBy lets the loop run at the given time at the latest.
func (p *Poller[M]) wakeBy(now, at time.Duration) {
	if !p.waiting() {
		return
	}
	if p.ctx == nil {
		p.ctx, p.cancel = context.WithCancel(context.Background())
		p.wake = never
	}
	if p.timer == nil || at < p.wake {
		p.setTimer(now, at)
	}
}

func (p *Poller[M]) setTimer(now, at time.Duration) {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.wake, p.timer = at, time.AfterFunc(at-now, p.tick)
}

func (p *Poller[M]) tick() {
	p.mu.Lock()
	defer p.unlock()
	p.run()
}

// maxUnsent is how many requests may wait to be sent. The user's calls never wait behind more.
const maxUnsent = 2

// run starts the requests that the plan decides to make now, and sets the timer for the next.
func (p *Poller[M]) run() {
	for p.waiting() {
		now := p.now()
		if p.unsent >= maxUnsent {
			p.setTimer(now, never)
			return
		}
		do := p.plan.decide(now)
		switch {
		case do.page:
			p.unsent++
			go p.page(p.ctx, do.cursor, now)
		case do.get != nil:
			p.unsent++
			go p.get(p.ctx, p.meetings[do.get.id], now)
		default:
			p.setTimer(now, max(do.wake, now))
			return
		}
	}
}

// stopIfIdle cancels the requests under way if nobody waits any more. The service may have answered them.
func (p *Poller[M]) stopIfIdle() {
	if p.waiting() || p.ctx == nil {
		return
	}
	p.cancel()
	p.timer.Stop()
	p.ctx, p.cancel, p.timer, p.unsent = nil, nil, nil, 0
	p.plan.stop()
	for _, m := range p.meetings {
		if m.getting {
			m.getting, m.free = false, p.now()+interval
		}
	}
}

// sent records, once, that a request is not held back any more.
func (p *Poller[M]) sent(ctx context.Context, done *bool) {
	if !*done && ctx.Err() == nil {
		*done = true
		if p.unsent--; p.unsent == maxUnsent-1 {
			p.wakeBy(p.last, p.last)
		}
	}
}

// get makes the GET of one meeting that the plan decided on at the given time.
func (p *Poller[M]) get(ctx context.Context, m *meeting[M], decided time.Duration) {
	var sent, off bool
	sentAt := time.Now()
	s, maxAge, f := p.svc.Get(ctx, m.id, func() bool {
		p.mu.Lock()
		defer p.unlock()
		sentAt = time.Now()
		p.sent(ctx, &sent)
		off = m.seen > decided && m.urgent == 0 || !m.awaited // another response has shown it meanwhile
		return !off && ctx.Err() == nil
	})
	p.mu.Lock()
	defer p.unlock()
	p.sent(ctx, &sent)
	if ctx.Err() != nil { // nobody waits any more
		return
	}
	p.plan.getEnded(&m.watch, p.now())
	switch {
	case off:
	case f != nil:
		p.getFailed(m, f)
	default:
		s.SentAt = sentAt
		p.plan.works()
		p.plan.getsGood++
		p.works(false)
		p.got(m, s, maxAge)
	}
	p.stopIfIdle()
	p.run()
}

// got records a good response about one meeting alone.
func (p *Poller[M]) got(m *meeting[M], s Snapshot[M], maxAge time.Duration) {
	now := p.now()
	m.trouble = nil
	p.publish(m, s)
	p.plan.got(&m.watch, now, s.SentAt.Sub(p.base), maxAge, m.rarely(now))
}

// getFailed records a GET that failed, and ends the waits that it concerns.
func (p *Poller[M]) getFailed(m *meeting[M], f *Failure) {
	now := p.now()
	switch f.Kind {
	case KeyRejected:
		p.endAll(f.Err)
	case Rejected:
		p.plan.works()
		p.works(false)
		p.end(m, f.Err)
	default:
		p.plan.getFailed(&m.watch, now, f)
		m.trouble = f.Err
		p.fails(now, f)
		for _, x := range p.hopeless(m, f, now) {
			p.end(x, f.Err)
		}
	}
}

// hopeless returns the meetings whose waits a failure that may pass has ended.
func (p *Poller[M]) hopeless(m *meeting[M], f *Failure, now time.Duration) (over []*meeting[M]) {
	if f.Kind != Passing {
		return nil
	}
	for _, x := range p.meetings {
		if x.awaited && (x == m || p.plan.streak >= several) && p.plan.hopeless(&x.watch, now) {
			over = append(over, x)
		}
	}
	return over
}

// end ends all waits for a meeting with an error.
func (p *Poller[M]) end(m *meeting[M], err error) {
	for _, s := range m.subs {
		s.news(Update[M]{Snapshot: m.last, Has: m.has, Err: err})
	}
	m.subs = nil
	if m.awaited {
		p.plan.leave(&m.watch)
	}
}

// endAll ends all waits and followers with an error.
func (p *Poller[M]) endAll(err error) {
	for _, m := range p.meetings {
		p.end(m, err)
	}
	p.endFollowers(err)
}

// page reads the page of the list that the plan decided on.
func (p *Poller[M]) page(ctx context.Context, cursor string, decided time.Duration) {
	var sent bool
	sentAt, began := time.Now(), decided
	shown, next, f := p.svc.Page(ctx, cursor, func() bool {
		p.mu.Lock()
		defer p.unlock()
		sentAt, began = time.Now(), p.now()
		p.sent(ctx, &sent)
		return ctx.Err() == nil
	})
	p.mu.Lock()
	defer p.unlock()
	p.sent(ctx, &sent)
	if ctx.Err() != nil { // nobody waits any more
		return
	}
	if f != nil {
		p.pageFailed(cursor, f)
	} else {
		if next == cursor { // the list never ends: take it for its end
			next = ""
		}
		p.works(true)
		p.pageRead(shown, cursor, next, sentAt, began)
	}
	p.stopIfIdle()
	p.run()
}

// pageRead publishes a page's snapshots. A snapshot that is older than the last one does not count.
func (p *Poller[M]) pageRead(page []Snapshot[M], cursor, next string, sentAt time.Time, began time.Duration) {
	now := p.now()
	for i := range page {
		page[i].Page, page[i].SentAt = true, sentAt
	}
	found, more := p.discover(page, cursor, next)
	var awaited []shown
	for _, s := range page {
		m := p.meetings[s.ID]
		if m == nil || !p.publish(m, s) {
			continue
		}
		m.trouble = nil
		if m.awaited {
			awaited = append(awaited, shown{&m.watch, m.rarely(now)})
		} else {
			m.seen, m.sweep = now, p.plan.sweeps
		}
	}
	p.plan.pageRead(now, began, awaited, found, next, more)
}

// pageFailed records a page that failed.
func (p *Poller[M]) pageFailed(cursor string, f *Failure) {
	now := p.now()
	p.plan.pageFailed(now, f)
	switch {
	case f.Kind == KeyRejected:
		p.endAll(f.Err)
		return
	case f.Kind == Rejected && cursor == "":
		p.endFollowers(f.Err)
	case f.Kind == RateLimited:
	default:
		p.fails(now, f)
		p.listFailed(f.Err)
	}
	p.passLost()
}

// fails keeps a failure for waits that end soon, and reports it once several requests in a row have failed.
func (p *Poller[M]) fails(now time.Duration, f *Failure) {
	if f.Kind != RateLimited && p.plan.streak < several {
		return
	}
	p.trouble, p.troubled = f.Err, now
	if f.Kind != RateLimited {
		p.warn(0, f.Err)
	}
}

// listFailed reports that the list cannot be read: at once if somebody follows it.
func (p *Poller[M]) listFailed(err error) {
	if p.listFails++; p.plan.followers > 0 || p.listFails >= several {
		p.warn(1, err)
	}
}

// warn reports trouble once.
func (p *Poller[M]) warn(which int, err error) {
	if !p.warned[which] {
		p.warned[which] = true
		p.toLog = append(p.toLog, Trouble{Err: err, List: which == 1})
	}
}

// works reports that requests work again, if there was trouble.
func (p *Poller[M]) works(page bool) {
	if page {
		p.listFails = 0
	}
	for which, warned := range p.warned {
		if warned && (which == 0 || page) {
			p.warned[which] = false
			p.toLog = append(p.toLog, Trouble{List: which == 1})
		}
	}
}
