// Package poll decides when to poll which meeting, for any number of waits at once.
//
// A GET shows one meeting; a page of the list shows many. The plan is pure: it decides which request comes next and when
// (plan.go), and which pages are worth reading (window.go). The Poller owns the lock, the timer and the requests. It publishes
// what they show to the subscriptions, and judges nothing. A Discovery finds new meetings on the pages (discovery.go).
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

// Update is the latest news of a meeting.
type Update[M any] struct {
	Snapshot Snapshot[M] // the latest; without a Meeting if Err came before the first
	Err      error       // not nil: the wait is over
}

// Service makes the requests: one attempt each, without retries. It returns soon after ctx has ended. It calls send just
// before the request goes out, without any lock that send's caller may need; if send returns false, it fails without a request.
type Service[M any] interface {
	Get(ctx context.Context, id string, send func() bool) (s Snapshot[M], maxAge time.Duration, f *Failure)
	// Page reads the page at cursor, the first page if cursor is empty. next is empty at the end of the list.
	Page(ctx context.Context, cursor string, send func() bool) (shown []Snapshot[M], next string, f *Failure)
}

const maxUnsent = 2 // requests that wait to be sent; the user's calls never wait behind more

// Poller polls the meetings that somebody awaits. No goroutine of it runs while nobody does.
type Poller[M any] struct {
	svc Service[M]
	log func(error)

	mu          sync.Mutex
	plan        plan
	meetings    map[string]*meeting[M] // those awaited, and those seen within the last interval
	discoveries []*Discovery[M]
	base        time.Time
	last        time.Duration // the latest time that now returned
	forgot      time.Duration // when meetings was last cleared

	ctx    context.Context // of the requests under way; nil while nobody waits
	cancel context.CancelFunc
	timer  *time.Timer
	unsent int // requests under way that are not sent yet

	trouble  error // the last 429, or the last of several failures in a row
	troubled time.Duration
	failing  bool    // what the log was told last
	toLog    []error // once the lock is released
}

// meeting is a meeting with the subscriptions that await it.
type meeting[M any] struct {
	watch
	last    Snapshot[M] // none if it has no ID
	trouble error       // the failure of its last GET
	subs    []*Subscription[M]
}

// New returns a Poller. It calls log, without a lock held, with an error when its requests begin to fail, and with nil when
// they work again.
func New[M any](svc Service[M], log func(error)) *Poller[M] {
	p := &Poller[M]{svc: svc, log: log, meetings: make(map[string]*meeting[M]), base: time.Now()}
	p.plan.stop()
	return p
}

// now returns the time since New. Each time is later than the one before.
func (p *Poller[M]) now() time.Duration {
	p.last = max(time.Since(p.base), p.last+1)
	return p.last
}

// run starts or ends the polling, makes the requests that the plan decides on, and sets the timer for the next one. It
// follows each change of the plan, so nothing else needs to know when the next request is due.
func (p *Poller[M]) run() {
	p.plan.followed = len(p.discoveries) > 0
	if p.plan.awaited == 0 && !p.plan.followed {
		p.stop()
		return
	} else if p.ctx == nil {
		p.ctx, p.cancel = context.WithCancel(context.Background())
		p.timer = time.AfterFunc(never, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.run()
		})
	}
	for p.unsent < maxUnsent {
		now := p.now()
		switch do := p.plan.decide(now); {
		case do.page:
			go p.page(p.ctx, do.cursor)
		case do.get != nil:
			go p.get(p.ctx, p.meetings[do.get.id], now)
		default:
			p.timer.Reset(do.wake - p.last)
			return
		}
		p.unsent++
	}
}

// stop cancels the requests under way. The service may have answered them, so the GETs among them count as polls.
func (p *Poller[M]) stop() {
	if p.ctx == nil {
		return
	}
	p.cancel()
	p.timer.Stop()
	p.ctx, p.unsent = nil, 0
	p.plan.stop()
	for _, m := range p.meetings {
		if m.getting {
			m.getting, m.free = false, p.now()+interval
		}
		m.held = false
	}
}

// request makes a request without the lock, and records its outcome with the lock. useful reports, just before the request is
// sent, whether it still is.
func (p *Poller[M]) request(ctx context.Context, useful func() bool, send func(func() bool), record func(sentAt time.Time)) {
	unsent, sentAt := true, time.Now()
	sent := func() {
		if unsent && ctx.Err() == nil {
			unsent = false
			p.unsent--
			p.run()
		}
	}
	send(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		sentAt = time.Now()
		sent()
		return ctx.Err() == nil && useful()
	})
	p.mu.Lock()
	sent()
	if ctx.Err() == nil { // otherwise nobody waits any more
		record(sentAt)
		p.run()
	}
	logged := p.toLog
	p.toLog = nil
	p.mu.Unlock()
	for _, err := range logged {
		p.log(err)
	}
}

// get makes the GET of one meeting that the plan decided on at the given time.
func (p *Poller[M]) get(ctx context.Context, m *meeting[M], decided time.Duration) {
	var s Snapshot[M]
	var maxAge time.Duration
	var f *Failure
	useful := true
	p.request(ctx, func() bool {
		useful = m.awaited && (m.seen < decided || m.urgent > 0) // no other response has shown it meanwhile
		return useful
	}, func(send func() bool) {
		s, maxAge, f = p.svc.Get(ctx, m.id, send)
	}, func(sentAt time.Time) {
		p.plan.getEnded(&m.watch, p.now())
		if !useful {
			return
		}
		if s.SentAt = sentAt; f == nil {
			p.plan.works()
			p.got(m, s, maxAge)
		} else {
			p.getFailed(m, f)
		}
		p.report(f, m.failed == several)
	})
}

// got records a good response about one meeting alone.
func (p *Poller[M]) got(m *meeting[M], s Snapshot[M], maxAge time.Duration) {
	p.publish(m, s)
	p.plan.got(&m.watch, p.now(), s.SentAt.Sub(p.base), maxAge)
}

// getFailed records a GET that failed, and ends the waits that it concerns.
func (p *Poller[M]) getFailed(m *meeting[M], f *Failure) {
	ends := false
	switch f.Kind {
	case KeyRejected:
		p.endAll(f.Err)
	case Rejected: // an answer about the meeting, which counts as a poll
		p.plan.works()
		m.free, ends = max(m.free, p.now()+interval), true
	default:
		m.trouble = f.Err
		ends = p.plan.getFailed(&m.watch, p.now(), f)
	}
	if ends {
		p.end(m, f.Err)
	}
}

// end ends all waits for a meeting with an error.
func (p *Poller[M]) end(m *meeting[M], err error) {
	for _, s := range m.subs {
		s.news(Update[M]{Snapshot: m.last, Err: err})
	}
	if m.subs = nil; m.awaited {
		p.plan.leave(&m.watch)
	}
}

// endAll ends all waits and discoveries with an error.
func (p *Poller[M]) endAll(err error) {
	for _, m := range p.meetings {
		p.end(m, err)
	}
	p.endDiscoveries(err)
}

// page reads the page of the list that the plan decided on.
func (p *Poller[M]) page(ctx context.Context, cursor string) {
	var page []Snapshot[M]
	var next string
	var f *Failure
	p.request(ctx, func() bool { return true }, func(send func() bool) {
		page, next, f = p.svc.Page(ctx, cursor, send)
	}, func(sentAt time.Time) {
		switch {
		case f == nil:
			if next == cursor { // the list never ends: take that for its end
				next = ""
			}
			p.pageRead(page, cursor, next, sentAt)
		case f.Kind == KeyRejected:
			p.endAll(f.Err)
		default:
			p.plan.pageFailed(p.now(), f)
			if f.Kind == Rejected && cursor == atTheTop {
				p.endDiscoveries(f.Err)
			}
		}
		p.report(f, false)
	})
}

// pageRead publishes the snapshots of a page. A snapshot that is older than the last one does not count.
func (p *Poller[M]) pageRead(page []Snapshot[M], cursor, next string, sentAt time.Time) {
	for i := range page {
		page[i].Page, page[i].SentAt = true, sentAt
	}
	unfinished, more := 0, false
	for _, d := range p.discoveries {
		found, wants := d.see(page, cursor == atTheTop, next == "")
		more = more || wants
		for _, s := range found {
			p.meeting(s.ID) // its snapshot is kept, so that a wait can begin with it
			if !s.Final {
				unfinished++
			}
		}
	}
	var shown []*watch
	for _, s := range page {
		if m := p.meetings[s.ID]; m != nil && p.publish(m, s) {
			shown = append(shown, &m.watch)
		}
	}
	p.plan.pageRead(p.now(), sentAt.Sub(p.base), shown, unfinished, next, more)
}

// report keeps a failure for waits that end soon. It logs when requests begin to fail, and when they work again. Without a
// good page nobody would find new meetings, so a discovery warns at the first failure of the list.
func (p *Poller[M]) report(f *Failure, failing bool) {
	failing = failing || p.plan.streak >= several || p.plan.fails >= several || p.plan.fails > 0 && p.plan.followed
	var err error
	if f != nil {
		err = f.Err
		if failing || f.Kind == RateLimited {
			p.trouble, p.troubled = err, p.now()
		}
	}
	if failing == (err != nil) && failing != p.failing {
		p.failing = failing
		p.toLog = append(p.toLog, err)
	}
}
