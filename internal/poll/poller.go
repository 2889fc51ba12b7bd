// Package poll decides when to poll which meeting, for any number of waits at once.
//
// A GET shows one meeting; a page of the list shows many. The plan is pure: it decides which request comes next and when
// (plan.go), and which pages are worth reading (window.go). The Poller owns the lock, the timer and the requests. It publishes
// what they show to the subscriptions, and judges nothing. A Discovery finds new meetings on the pages (discovery.go).
package poll

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Kind says what a failure means.
type Kind int

// The kinds of failures.
const (
	RateLimited Kind = iota // 429
	Transient               // 5xx or a lost connection: never ends a wait
	Foreign                 // may pass; ends a wait after ten minutes without a good response about the meeting
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
	MaxAge           time.Duration // how long the service asks not to poll the meeting again; 0 if it does not say

	Page bool // a list page showed it, so it may be old; the Poller sets this
	Sent Sent // the request that it answers; the Poller sets this
}

// Sent says when a request was sent. Numbers tell which of two requests was sent later. Times cannot, because two requests
// may have the same time.
type Sent struct {
	Number int64 // 1 for the Poller's first request; higher for each later one
	At     time.Time
}

// Update is the latest news of a meeting.
type Update[M any] struct {
	Snapshot Snapshot[M] // the latest; without a Meeting if Err came before the first
	Err      error       // not nil: the wait is over
}

// Service makes the requests: one attempt each, without retries. It returns soon after ctx has ended. It calls send just
// before the request goes out, without any lock that send's caller may need; if send returns false, it fails without a request.
type Service[M any] interface {
	Get(ctx context.Context, id string, send func() bool) (s Snapshot[M], f *Failure)
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
	numbered    int64         // how many requests have a number
	forgot      time.Duration // when meetings was last cleared

	ctx    context.Context // of the requests under way; nil while nobody waits
	cancel context.CancelFunc
	timer  *time.Timer
	unsent int // requests under way that are not sent yet

	trouble error   // the last 429, or the last of several failures in a row; nil once requests work again
	failing bool    // the last report to the log
	toLog   []error // once the lock is released
}

// meeting is a meeting with the subscriptions that await it.
type meeting[M any] struct {
	watch
	last    Snapshot[M]
	trouble error // the failure of its last GET
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

// Sending numbers a request that the caller is about to send.
func (p *Poller[M]) Sending() Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sending()
}

func (p *Poller[M]) sending() Sent {
	p.numbered++
	return Sent{Number: p.numbered, At: time.Now()}
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
		do := p.plan.decide(now)
		if do.get == nil && !do.page {
			p.timer.Reset(do.wake - p.last)
			return
		}
		go p.request(p.ctx, do, now)
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
	p.ctx, p.unsent, p.trouble = nil, 0, nil
	p.plan.stop()
	for _, m := range p.meetings {
		if m.getting {
			m.getting, m.free = false, p.now()+Interval
		}
		m.held = false
	}
}

// response is the outcome of a request: of a GET a snapshot, of a page several and the next cursor, or a failure.
type response[M any] struct {
	shown []Snapshot[M]
	next  string
	f     *Failure
	sent  Sent
	off   bool // the GET was called off, because another response had shown the meeting
}

// request makes the request that the plan decided on at the given time without the lock, and records its outcome with it.
func (p *Poller[M]) request(ctx context.Context, do decision, decided time.Duration) {
	r := response[M]{shown: make([]Snapshot[M], 1)}
	sent := sync.OnceFunc(func() {
		if ctx.Err() == nil {
			p.unsent--
			p.run()
		}
	})
	send := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		sent()
		w := do.get
		r.sent = p.sending()
		r.off = w != nil && (!w.awaited || w.seen >= decided && w.urgent == 0)
		return ctx.Err() == nil && !r.off
	}
	if do.page {
		r.shown, r.next, r.f = p.svc.Page(ctx, do.cursor, send)
	} else {
		r.shown[0], r.f = p.svc.Get(ctx, do.get.id, send)
	}
	p.mu.Lock()
	sent()
	if ctx.Err() == nil { // otherwise nobody waits any more
		p.record(do, r)
		p.run()
	}
	logged := p.toLog
	p.toLog = nil
	p.mu.Unlock()
	for _, err := range logged {
		p.log(err)
	}
}

// record records the outcome of a request, and ends the waits and discoveries that a failure concerns.
func (p *Poller[M]) record(do decision, r response[M]) {
	var m *meeting[M]
	if do.get != nil {
		m = p.meetings[do.get.id]
		if p.plan.getEnded(&m.watch, p.now()); r.off {
			return
		}
	}
	for i := range r.shown {
		r.shown[i].Page, r.shown[i].Sent = do.page, r.sent
	}
	switch f := r.f; {
	case f == nil && do.page:
		p.pageRead(do.cursor, r)
	case f == nil:
		p.got(m, r.shown[0])
	case f.Kind == KeyRejected:
		for _, m := range p.meetings {
			p.end(m, f.Err)
		}
		p.endDiscoveries(f.Err)
	case do.page:
		p.plan.pageFailed(p.now(), f)
		if f.Kind == Rejected && do.cursor == atTheTop {
			p.endDiscoveries(f.Err)
		}
	default:
		m.trouble = f.Err
		if p.plan.getFailed(&m.watch, p.now(), f) {
			p.end(m, f.Err)
		}
	}
	p.report(r.f, m != nil && m.failed == several)
}

// got records a good response about one meeting alone.
func (p *Poller[M]) got(m *meeting[M], s Snapshot[M]) {
	p.publish(m, s)
	p.plan.got(&m.watch, p.now(), s.Sent.Number, s.MaxAge)
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

// pageRead publishes the snapshots of a page. A snapshot that is older than the last one does not count.
func (p *Poller[M]) pageRead(cursor string, r response[M]) {
	if r.next == cursor { // the list never ends: take that for its end
		r.next = ""
	}
	unfinished, more := 0, false
	for _, d := range p.discoveries {
		n, wants := d.see(r.shown, cursor == atTheTop, r.next == "")
		unfinished, more = unfinished+n, more || wants
	}
	var shown []*watch
	for _, s := range r.shown {
		if m := p.meetings[s.ID]; m != nil && p.publish(m, s) {
			shown = append(shown, &m.watch)
		}
	}
	p.plan.pageRead(p.now(), r.sent.At.Sub(p.base), shown, unfinished, r.next, more)
}

// report keeps a failure for waits that end soon. It logs when requests begin to fail, and when they work again. Without a
// good page nobody would find new meetings, so a discovery warns at the first failure of the list.
func (p *Poller[M]) report(f *Failure, failing bool) {
	failing = failing || p.plan.streak >= several || p.plan.fails >= several || p.plan.fails > 0 && p.plan.followed
	switch {
	case f == nil && !failing:
		p.trouble = nil
	case f != nil && (failing || f.Kind == RateLimited):
		p.trouble = f.Err
	}
	if failing == (f != nil) && failing != p.failing {
		p.failing = failing
		p.toLog = append(p.toLog, p.trouble)
	}
}

// Subscription is one wait for a meeting.
type Subscription[M any] struct {
	p       *Poller[M]
	m       *meeting[M]
	patient bool
	updates chan Update[M]
}

// Subscribe waits for a meeting. Its first poll is at once, unless the last one is less than an interval old: then its snapshot
// is the first update. patient allows a meeting without audio to wait for a thirtieth of its age between two polls.
func (p *Poller[M]) Subscribe(id string, patient bool) *Subscription[M] {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	m := p.meeting(id)
	s := &Subscription[M]{p: p, m: m, patient: patient, updates: make(chan Update[M], 1)}
	m.subs = append(m.subs, s)
	known := m.seen > 0 && now-m.seen < Interval && m.urgent == 0
	if known {
		s.news(Update[M]{Snapshot: m.last})
	}
	p.plan.join(&m.watch, now, known, patient)
	p.run()
	return s
}

// C returns the channel of updates. It holds one: the newest.
func (s *Subscription[M]) C() <-chan Update[M] { return s.updates }

// news publishes an update. Only the Poller sends, with its lock held, so this never blocks.
func (s *Subscription[M]) news(u Update[M]) {
	select {
	case <-s.updates:
	default:
	}
	s.updates <- u
}

// Cancel ends the wait. It returns the last failure, unless polls of the meeting and requests in general work again.
func (s *Subscription[M]) Cancel() error {
	p, m := s.p, s.m
	p.mu.Lock()
	defer p.mu.Unlock()
	err := cmp.Or(m.trouble, p.trouble)
	m.subs = slices.DeleteFunc(m.subs, func(x *Subscription[M]) bool { return x == s })
	if m.awaited && len(m.subs) == 0 {
		p.plan.leave(&m.watch)
		p.run()
	}
	return err
}

// meeting returns the meeting with this id. It forgets, now and then, those that nobody needs any more.
func (p *Poller[M]) meeting(id string) *meeting[M] {
	if now := p.now(); now > p.forgot+Interval {
		p.forgot = now
		maps.DeleteFunc(p.meetings, func(_ string, m *meeting[M]) bool {
			return !m.awaited && !m.getting && max(m.free, m.seen+Interval) < now
		})
	}
	m := p.meetings[id]
	if m == nil {
		m = &meeting[M]{watch: watch{id: id}}
		p.meetings[id] = m
	}
	return m
}

// publish keeps a snapshot and sends it to the subscriptions, even if nothing has changed: time alone may end a wait, such as
// one for audio. A snapshot that is older than the last one counts for nothing, so that no status goes back.
func (p *Poller[M]) publish(m *meeting[M], s Snapshot[M]) bool {
	order := s.Updated.Compare(m.last.Updated)
	if order < 0 || order == 0 && s.Sent.Number < m.last.Sent.Number {
		return false
	}
	m.last, m.trouble = s, nil
	m.patient = 0
	if s.Idle && !slices.ContainsFunc(m.subs, func(x *Subscription[M]) bool { return !x.patient }) {
		m.patient = s.Sent.At.Sub(s.Created) / 30
	}
	for _, sub := range m.subs {
		sub.news(Update[M]{Snapshot: s})
	}
	return true
}

// Record records a response to the user's own request about one meeting. It counts as a poll. sent comes from Sending, called
// before the request was sent.
func (p *Poller[M]) Record(s Snapshot[M], sent Sent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Sent = sent
	p.got(p.meeting(s.ID), s)
}

// Ask makes a GET of a meeting necessary that no page replaces: after the interval, or at once, because the user uploads audio
// and no response has shown it. The meeting need not be known: a response that was sent before may still come.
func (p *Poller[M]) Ask(id string, atOnce bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.meeting(id)
	p.plan.ask(&m.watch, p.now(), p.sending().Number, atOnce && (m.last.ID == "" || m.last.Idle))
	p.run()
}
