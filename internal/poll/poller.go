package poll

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

// maxUnsent is how many requests may wait to be sent, so that the user's calls never wait behind
// more.
const maxUnsent = 2

// Poller polls the meetings that somebody awaits. It runs no goroutine while nobody waits.
type Poller[M any] struct {
	service Service[M]
	log     func(error)

	// mu protects the following fields and all that the Poller keeps of meetings, subscriptions and
	// discoveries.
	mu   sync.Mutex
	plan plan
	// meetings are those that somebody awaits, and those that were polled in the last three intervals, so
	// that the next poll does not come too early, and that pages can contradict the last one.
	meetings    map[string]*meeting[M]
	discoveries []*Discovery[M]
	// epoch is when the Poller's clock was 0. It is a minute before New, because to the plan 0
	// means never.
	epoch time.Time
	// latest is the latest time of that clock, which never goes back.
	latest time.Duration
	// numbered is how many requests have a number.
	numbered int64
	// forgot is when meetings that nobody needs were last removed.
	forgot time.Duration

	// ctx is that of the requests under way. It is nil while nobody waits.
	ctx    context.Context
	cancel context.CancelFunc
	// timer runs the Poller when the next request is due.
	timer *time.Timer
	// unsent is how many requests under way have not been sent yet.
	unsent int

	// trouble is the last 429, or the last failure of an outage. Only a good response makes it nil,
	// so a wait that begins in an outage knows it even before its first GET.
	trouble error
	// listTrouble is the failure of the last page, or nil.
	listTrouble error
	// keylessSince is when the present row of failures began that end all waits later. It is 0 if
	// something else came last.
	keylessSince time.Duration
	// lastGood is when the last good response to a request came. It is zero if none has.
	lastGood time.Time
	// failing is the state that was logged last.
	failing bool
	// toLog has the changes of failing to log once the lock is free.
	toLog []error
}

// meeting is a meeting with the subscriptions that await it.
type meeting[M any] struct {
	watch
	subscriptions []*Subscription[M]
	// last is the last snapshot.
	last Snapshot[M]
	// stale is how many pages in a row were older than the last snapshot. It is 0 again after a GET that
	// shows another change, because then the clocks of the service's machines may differ.
	stale int
	// trouble is the failure of the last GET.
	trouble error
}

// New returns a Poller. It calls log, while it holds no lock, with an error when its requests begin
// to fail, and with nil when they work again.
func New[M any](service Service[M], log func(error)) *Poller[M] {
	now := time.Now()
	p := &Poller[M]{service: service, log: log, meetings: make(map[string]*meeting[M]), epoch: now.Add(-time.Minute)}
	p.latest = time.Minute
	p.plan.phase = phaseOf(now)
	p.plan.stop()
	return p
}

// phaseOf returns the phase of a Poller that begins at a time. The fraction of a millisecond
// differs even between Pollers that begin together, and multiples of the golden ratio
// spread even if it hardly differs. In virtual time it is 0, so tests of the user's program are
// deterministic.
func phaseOf(now time.Time) time.Duration {
	nanoseconds := now.Nanosecond() % int(time.Millisecond)
	_, part := math.Modf(float64(nanoseconds) * math.Phi)
	return time.Duration(part * float64(maxPhase))
}

// now returns the time of the Poller's clock. It does not go back if a Client is used inside a
// test's bubble of virtual time and was made outside: then its requests fail, but at once.
func (p *Poller[M]) now() time.Duration {
	p.latest = max(p.latest, time.Since(p.epoch))
	return p.latest
}

// Sending marks a point in time: a request that is sent from now on has a number at least as high.
// Call it before a request whose response goes to Record.
func (p *Poller[M]) Sending() Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sending()
}

func (p *Poller[M]) sending() Sent {
	p.numbered++
	return Sent{Number: p.numbered, At: time.Now()}
}

// Record records a response to the user's own request about one meeting. It counts as a poll. sent
// comes from Sending, which the caller called before the request was sent.
func (p *Poller[M]) Record(s Snapshot[M], sent Sent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Sent = sent
	p.trouble = nil
	p.got(p.meeting(s.ID), s)
	p.run()
}

// ShownLately reports whether a response about a meeting alone has shown it less than an interval
// ago. Then a 404 does not mean that it is gone, because reads may lag behind writes.
func (p *Poller[M]) ShownLately(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.meetings[id]
	return m != nil && m.shownLately(p.now())
}

// Ask makes a GET of a meeting necessary that no page replaces, and that is sent after this call.
// With atOnce, the GET does not wait for the interval, unless a response has already shown audio:
// the user uploads, and wants to see it. Ask works for an unknown meeting as well, so that the
// response to a request that is under way does not count for it.
func (p *Poller[M]) Ask(id string, atOnce bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.meeting(id)
	audioUnknown := m.last.ID == "" || m.last.Idle
	p.plan.ask(&m.watch, p.now(), p.sending().Number, atOnce && audioUnknown)
	p.run()
}

// Stats returns how many meetings are awaited, the earliest creation of these, and when the last good
// response to a request came.
func (p *Poller[M]) Stats() (awaited int, oldest, lastGood time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.meetings {
		created := m.last.Created
		if m.awaited && !created.IsZero() && (oldest.IsZero() || created.Before(oldest)) {
			oldest = created
		}
	}
	return p.plan.awaited, oldest, p.lastGood
}

// ListTrouble returns why the last page could not be read, or nil.
func (p *Poller[M]) ListTrouble() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listTrouble
}

// run starts or ends the polling, makes the requests that the plan decides on, and sets the timer
// for the next one. It follows each change of the plan, so nothing else needs to know when the next
// request is due.
func (p *Poller[M]) run() {
	p.plan.sweepAlways = len(p.discoveries) > 0
	if p.plan.awaited == 0 && !p.plan.sweepAlways {
		p.stop()
		return
	}
	if p.ctx == nil {
		p.start()
	}
	// If two are unsent, no timer is needed: the first that is sent runs this again.
	for p.unsent < maxUnsent {
		now := p.now()
		next := p.plan.decide(now)
		if next.get == nil && !next.page {
			p.timer.Reset(next.wake - now)
			return
		}
		p.unsent++
		go p.request(p.ctx, next, now)
	}
}

func (p *Poller[M]) start() {
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.plan.start(p.now())
	p.timer = time.AfterFunc(never, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.run()
	})
}

// stop cancels the requests under way. The service may have answered them, so the GETs among them
// count as polls.
func (p *Poller[M]) stop() {
	if p.ctx == nil {
		return
	}
	p.cancel()
	p.timer.Stop()
	p.ctx = nil
	p.unsent = 0
	p.keylessSince = 0
	p.plan.stop()
	for _, m := range p.meetings {
		if m.state == underWay {
			p.plan.enter(&m.watch, due)
			m.notBefore = max(m.notBefore, p.now()+Interval)
		}
	}
}

// outcome is what became of a request.
type outcome[M any] struct {
	// Page is what it shows: after a GET, one meeting.
	Page[M]
	// failure is nil after a good response.
	failure *Failure
	sent    Sent
	// needless means that the GET was not sent, because meanwhile another response had shown the
	// meeting, or nobody awaits it.
	needless bool
}

// request sends the request that the plan has decided on, without the lock, and then takes the lock
// for its outcome.
func (p *Poller[M]) request(ctx context.Context, next decision, decided time.Duration) {
	var o outcome[M]
	// Once the request is sent, or never will be, another one may wait to be sent.
	noLongerUnsent := sync.OnceFunc(func() {
		if ctx.Err() == nil {
			p.unsent--
			p.run()
		}
	})
	send := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		noLongerUnsent()
		o.sent = p.sending()
		w := next.get
		o.needless = w != nil && (!w.awaited || w.seen >= decided && w.asked == 0)
		return ctx.Err() == nil && !o.needless
	}
	if next.page {
		o.Page, o.failure = p.service.Page(ctx, next.cursor, send)
	} else {
		o.Shown = make([]Snapshot[M], 1)
		o.Shown[0], o.failure = p.service.Get(ctx, next.get.id, send)
	}
	p.mu.Lock()
	noLongerUnsent()
	if ctx.Err() == nil { // otherwise nobody waits any more
		p.ended(next, o)
		p.run()
	}
	logged := p.toLog
	p.toLog = nil
	p.mu.Unlock()
	for _, err := range logged {
		p.log(err)
	}
}

// ended passes on the outcome of a request, and ends the waits and discoveries that a failure
// concerns.
func (p *Poller[M]) ended(request decision, o outcome[M]) {
	for i := range o.Shown {
		o.Shown[i].Page = request.page
		o.Shown[i].Sent = o.sent
	}
	if request.page {
		p.pageEnded(request.cursor, o)
	} else {
		p.getEnded(p.meetings[request.get.id], o)
	}
}

// getEnded passes on the outcome of a GET.
func (p *Poller[M]) getEnded(m *meeting[M], o outcome[M]) {
	p.plan.getEnded(&m.watch)
	switch {
	case o.needless:
		return
	case p.endsAll(o.failure):
		p.endAll(o.failure.Err)
	case o.failure == nil:
		p.got(m, o.Shown[0])
	default:
		m.trouble = o.failure.Err
		if p.plan.getFailed(&m.watch, p.now(), o.failure) {
			p.endWaits(m, o.failure.Err)
		}
	}
	p.report(o.failure, m.getFailures == inARow)
}

// endsAll reports whether the outcome of a request ends all waits and discoveries: a rejected key does
// so at once, and a key that cannot be had after ten minutes.
func (p *Poller[M]) endsAll(f *Failure) bool {
	if f == nil {
		p.lastGood = time.Now()
	}
	if f == nil || f.ends() != failure.AllLater {
		p.keylessSince = 0
		return f != nil && f.ends() == failure.AllAtOnce
	}
	if p.keylessSince == 0 {
		p.keylessSince = p.now()
	}
	return p.now()-p.keylessSince >= Hopeless
}

// pageEnded passes on the outcome of a page.
func (p *Poller[M]) pageEnded(cursor string, o outcome[M]) {
	p.listTrouble = nil
	if o.failure != nil {
		p.listTrouble = o.failure.Err
	}
	switch {
	case p.endsAll(o.failure):
		p.endAll(o.failure.Err)
	case o.failure == nil:
		p.pageRead(cursor, o)
	default:
		p.plan.pageFailed(p.now(), o.failure)
		if o.failure.ends() == failure.AtOnce && cursor == firstPage {
			p.endDiscoveries(o.failure.Err)
		}
	}
	p.report(o.failure, false)
}

// got takes a good response about one meeting alone.
func (p *Poller[M]) got(m *meeting[M], s Snapshot[M]) {
	p.publish(m, s)
	p.plan.got(&m.watch, p.now(), s.Sent.Number, s.MaxAge)
}

// pageRead takes a good page. A snapshot that is older than the last one does not count.
func (p *Poller[M]) pageRead(cursor string, o outcome[M]) {
	page := listPage{sentAt: o.sent.At.Sub(p.epoch), next: o.Next}
	if o.Next == cursor { // the list never ends: that is its end
		page.next = ""
	}
	for _, d := range p.discoveries {
		unfinished, wantsNext := d.see(o.Page, cursor == firstPage, page.next == "")
		page.discovered += unfinished
		page.wantsNext = page.wantsNext || wantsNext
	}
	for _, s := range o.Shown {
		m := p.meetings[s.ID]
		switch {
		case m == nil:
		case p.publish(m, s):
			page.shown = append(page.shown, &m.watch)
		case m.stale >= contradictions:
			p.plan.distrust(p.now())
		}
	}
	p.plan.pageRead(p.now(), page)
}

// publish keeps a snapshot and sends it to the subscriptions, even if nothing has changed: time
// alone may end a wait, such as one for audio. It reports whether the snapshot counts. A later GET
// always does, because the clocks of the service's machines differ. A later page only does if its
// Updated is not lower than that of the last snapshot, because pages may lag behind.
func (p *Poller[M]) publish(m *meeting[M], s Snapshot[M]) bool {
	switch {
	case s.Sent.Number < m.last.Sent.Number:
		return false
	case s.Page && s.Updated.Before(m.last.Updated):
		m.stale++
		return false
	case s.Page || !s.Updated.Equal(m.last.Updated):
		m.stale = 0
	}
	m.last = s
	m.trouble = nil
	m.mayWait = m.patience()
	for _, sub := range m.subscriptions {
		sub.publish(Update[M]{Snapshot: s})
	}
	return true
}

// patience returns how long the next GET may be put off, if all waits allow it: a thirtieth of the
// time since the last change of a meeting that has no audio, or has not changed for hours.
func (m *meeting[M]) patience() time.Duration {
	if slices.ContainsFunc(m.subscriptions, func(s *Subscription[M]) bool { return !s.rarely }) {
		return 0
	}
	unchanged := m.last.Sent.At.Sub(latest(m.last.Created, m.last.Updated))
	if !m.last.Idle && unchanged < stuckAfter {
		return 0
	}
	return unchanged / 30
}

// endWaits ends all waits for a meeting with an error.
func (p *Poller[M]) endWaits(m *meeting[M], err error) {
	for _, s := range m.subscriptions {
		s.publish(Update[M]{Snapshot: m.last, Err: err})
	}
	m.subscriptions = nil
	if m.awaited {
		p.plan.leave(&m.watch)
	}
}

// endAll ends all waits and discoveries with an error.
func (p *Poller[M]) endAll(err error) {
	for _, m := range p.meetings {
		p.endWaits(m, err)
	}
	p.endDiscoveries(err)
}

// report keeps the failure of requests in general for waits that end soon. It logs when requests
// begin to fail, even if only those about one meeting do, and when they work again. Without a good
// page nobody would find new meetings, so a discovery warns at the first failure of the list.
func (p *Poller[M]) report(f *Failure, meetingFails bool) {
	var err error
	if f != nil {
		err = f.Err
	}
	plan := &p.plan
	listFails := plan.pageFailures >= inARow || plan.pageFailures > 0 && plan.sweepAlways
	switch {
	case f == nil:
		p.trouble = nil
	case plan.failures >= inARow || f.Kind == failure.RateLimited:
		p.trouble = err
	}
	failing := meetingFails || listFails || plan.failures >= inARow
	begins := f != nil && failing && !p.failing
	ends := f == nil && !failing && p.failing
	if begins || ends {
		p.failing = failing
		p.toLog = append(p.toLog, err)
	}
}

// meeting returns the meeting with this id. Once an interval, it removes those that nobody needs
// any more.
func (p *Poller[M]) meeting(id string) *meeting[M] {
	if now := p.now(); now > p.forgot+Interval {
		p.forgot = now
		maps.DeleteFunc(p.meetings, func(_ string, m *meeting[M]) bool {
			needed := max(m.notBefore, m.seen+Interval) + contradictions*Interval
			return !m.awaited && m.state != underWay && needed < now
		})
	}
	m := p.meetings[id]
	if m == nil {
		m = &meeting[M]{watch: watch{id: id}}
		p.meetings[id] = m
	}
	return m
}
