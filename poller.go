package minutes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// The rules of polling. The interface asks for thirty seconds between two looks
// at a meeting (section 6).
const (
	pollFloor      = 30 * time.Second
	maxFloor       = 5 * time.Minute // how far Cache-Control can raise the floor
	maxPause       = 5 * time.Minute // how far 429s in a row can stretch the pause
	maxFailedLooks = 20              // in a row, of one meeting
	maxInterval    = 1e5 * time.Hour // what a time in nanos can still be added to

	// Requests of a poller are spread: so many may go out together, and then at
	// this rate, or at what one turn needs where that is more.
	pollBurst = 3
	pollRate  = 5 // a second

	maxLooksInFlight = 64

	// keepWhole is the number of meetings waited for up to which each is kept
	// as last seen; beyond it, only its status is.
	keepWhole = 1000
)

// poller looks at meetings for every wait of a Client. It runs on one
// goroutine, from the first waiter to the last, plus one for each request that
// is under way. Waiters only block on a channel; none makes a request itself,
// which would cost it a stack.
//
// A look is a GET of a meeting, or a page of the listing that shows it; which of
// the two is the poller's choice (sweep.go). This file keeps the accounts of who
// waits for what; poll.go makes the requests.
type poller struct {
	core  *core
	began time.Time // see nanos

	mu      sync.Mutex
	watches map[string]*watch // what is waited for, or was looked at within the floor
	resting []*watch          // the latter, by when the last waiter left
	waiting int               // watches that somebody waits for
	run     *run              // nil while nobody waits

	floor       time.Duration // between two looks at a meeting
	lastShown   time.Time     // when any meeting was last shown, by a GET or a page
	pausedUntil time.Time     // after a 429
	pause       time.Duration // how long the last one was
	trouble     error         // how the last look, or page, that failed did so
}

// watch is one meeting that is waited for. There may be a great many, so it is
// kept small.
type watch struct {
	id      string
	waiter  *waiter   // the first one; nil: nobody waits
	more    []*waiter // the others
	status  Status    // as last seen, "" before the first look
	meeting *Meeting  // as last seen, where that is kept whole
	looked  int64     // when it was last looked at, in nanos; 0: never
	due     int64     // when it is to be looked at again
	place   int32     // in the heap of singles, from 1; 0: not there
	shownIn uint32    // the last sweep that showed it
	cameIn  uint32    // the page that was under way when it came
	failed  uint8     // looks in a row
	looking bool      // a GET is under way
	listed  bool      // sweeps look at it
	rests   bool      // among the resting
	old     bool      // what was seen is older than looked, which showed nothing
	untold  bool      // somebody came too late for the first look's OnStatus; see waiter.late
	isNew   bool      // among the newcomers
}

// waiter is one Wait, or one WaitAll for many meetings. There may be many of
// these, too: it is kept to 80 bytes.
type waiter struct {
	interval time.Duration
	onStatus func(*Meeting)  // nil: does not want to hear of each change
	told     Status          // what the waiter of one meeting told onStatus last
	until    int8            // the rank of the status it waits for
	once     bool            // wants the next look that begins from now on, whatever it shows
	stale    bool            // a look that began before is under way
	left     int32           // meetings it still waits for
	ready    chan struct{}   // holds one when there are events
	events   []event         // guarded by the poller's mutex
	late     map[*watch]bool // it came too late for the first look's OnStatus
}

// event is what a waiter hears of a meeting.
type event struct {
	meeting *Meeting
	err     error
	over    bool // this meeting's wait is over
}

func newPoller(c *core) *poller {
	return &poller{core: c, began: time.Now(), watches: make(map[string]*watch), floor: pollFloor}
}

// nanos is how a watch keeps a time, in a third of the space: Unix nanoseconds
// that go on evenly where the clock of the wall is set.
func (p *poller) nanos(t time.Time) int64 { return p.began.UnixNano() + int64(t.Sub(p.began)) }

// timeOf is what nanos was called with.
func (p *poller) timeOf(nanos int64) time.Time {
	return p.began.Add(time.Duration(nanos - p.began.UnixNano()))
}

func newWaiter(o WaitOptions) *waiter {
	return &waiter{
		until:    int8(o.Until.rank()),
		interval: o.Interval,
		onStatus: o.OnStatus,
		ready:    make(chan struct{}, 1),
	}
}

// wait blocks until the meeting has come to where the options want it.
//
// Ten thousand goroutines may stand here, and a stack that ever grew beyond its
// first two kilobytes stays at four. So what lies on the stack while others are
// called is kept small here and in its callers, and the rest is done by
// functions that return before the next is called.
func (p *poller) wait(ctx context.Context, id string, w *waiter) (*Meeting, error) {
	p.add(w, id)
	for {
		done := w.block(ctx)
		if end := p.listen(w); end != nil {
			return end.meeting, end.err
		}
		if done {
			return nil, p.leave(ctx, w, id)
		}
	}
}

// block returns when there are events, or when ctx is done.
func (w *waiter) block(ctx context.Context) (done bool) {
	select {
	case <-w.ready:
		return false
	case <-ctx.Done():
		return true // what has arrived meanwhile counts all the same
	}
}

// listen tells OnStatus what the waiter of one meeting has to hear, and returns
// how its wait ended, if it did.
//
//go:noinline
func (p *poller) listen(w *waiter) *event {
	for _, e := range p.take(w) {
		if w.onStatus != nil && e.meeting != nil && e.meeting.Status != w.told {
			w.told = e.meeting.Status
			p.tellCaller(w, e.meeting)
		}
		switch {
		case e.err != nil:
			return &event{err: e.err}
		case e.over:
			return &e
		}
	}
	return nil
}

// tellCaller calls OnStatus. Where that panics, or ends its goroutine, as a
// test's FailNow does, nobody waits any more.
func (p *poller) tellCaller(w *waiter, m *Meeting) {
	returned := false
	defer func() {
		if !returned {
			p.leaveAll(w)
		}
	}()
	w.onStatus(m)
	returned = true
}

// waitAll is wait for many meetings.
func (p *poller) waitAll(ctx context.Context, ids iter.Seq[string], o WaitOptions, yield func(*Meeting, error) bool) {
	w := newWaiter(o)
	defer p.leaveAll(w)
	ended := make(map[string]struct{}) // while ids are read: what a duplicate must not wake
	pass := func() bool {
		for _, e := range p.take(w) {
			if o.OnStatus != nil && e.meeting != nil {
				o.OnStatus(e.meeting)
			}
			if !e.over {
				continue
			}
			if ended != nil {
				ended[e.id()] = struct{}{}
			}
			if e.err != nil {
				e.meeting = nil
			}
			if !yield(e.meeting, e.err) {
				return false
			}
		}
		return true
	}
	unread := false // ids, when ctx ended
	for id := range ids {
		if unread = ctx.Err() != nil; unread {
			break
		}
		if !pass() { // what has ended while ids blocked
			return
		}
		if _, again := ended[id]; again {
			continue
		}
		if err := checkID("ids", id); err != nil {
			ended[id] = struct{}{}
			if !yield(nil, &WaitError{MeetingID: id, Err: err}) {
				return
			}
		} else {
			p.add(w, id)
		}
		if !pass() {
			return
		}
	}
	ended = nil
	for unread || p.concerns(w) {
		done := false
		select {
		case <-w.ready:
		case <-ctx.Done():
			done = true
		}
		if !pass() {
			return
		}
		if done && (unread || p.concerns(w)) {
			yield(nil, &WaitError{Err: p.interrupted(ctx, w)})
			return
		}
	}
}

// id is the meeting's.
func (e event) id() string {
	if wait, ok := errors.AsType[*WaitError](e.err); ok {
		return wait.MeetingID
	}
	return e.meeting.ID
}

// add lets w wait for a meeting.
func (p *poller) add(w *waiter, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.forget(now)
	m := p.watches[id]
	if m == nil || m.waiter == nil && !p.isFresh(m, now) {
		m = &watch{id: id}
		p.watches[id] = m
	}
	if m.awaitedBy(w) {
		return // the same id twice in one WaitAll
	}
	// What was seen within the floor is as good as a look.
	w.stale = true
	if m.meeting == nil || m.old || !p.isFresh(m, now) {
		if m.status != "" && w.onStatus != nil {
			m.untold = true
			w.comesLate(m)
		}
	} else if p.tell(w, m.meeting, true) {
		return
	}
	w.left++
	if m.waiter == nil {
		m.waiter = w
		p.waiting++
		m.failed = 0
	} else {
		m.more = append(m.more, w)
	}
	if p.run == nil {
		p.start()
	}
	p.run.admit(m, w)
	p.run.stir()
}

// hasAudio reports whether a meeting has its audio, after an upload that may have
// put it there: any status but created says so, a failure too, which is a wait's
// to report. The answer is the next look at the meeting, so that no other is made
// within the floor: at once, unless a wait has looked since the upload began, or
// the next page will show it.
func (p *poller) hasAudio(ctx context.Context, id string) (bool, error) {
	w := newWaiter(WaitOptions{Until: StatusAudioUploaded})
	w.once = true
	p.add(w, id)
	select {
	case <-w.ready:
	case <-ctx.Done():
		return false, p.leave(ctx, w, id)
	}
	e := p.take(w)[0]
	if wait, ok := errors.AsType[*WaitError](e.err); ok {
		return false, wait.Err
	}
	return e.meeting.Status != StatusCreated, nil
}

// anew lets a meeting be looked at again within the floor: a new upload has begun
// since, whose URL was asked for then. A look that somebody made meanwhile still
// counts.
func (p *poller) anew(id string, then time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.watches[id]; m != nil && !m.looking && m.looked < p.nanos(then) {
		m.looked = 0
	}
}

// shown takes in a meeting that the service has just shown by other means than
// a look, so that the next look is a turn away.
func (p *poller) shown(seen *Meeting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.forget(now)
	if m := p.watches[seen.ID]; m != nil && (m.waiter != nil || p.isFresh(m, now)) {
		return // what waits have seen will do
	}
	m := &watch{id: seen.ID, status: seen.Status.intern(), looked: p.nanos(now)}
	if p.waiting <= keepWhole {
		m.meeting = seen.clone()
	}
	p.watches[m.id] = m
	p.rest(m)
	if !m.status.Final() { // else it does not matter whether it is shown again
		p.lastShown = now
	}
}

// take returns what w has to hear.
func (p *poller) take(w *waiter) []event {
	p.mu.Lock()
	defer p.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// concerns reports whether there is, or will be, anything for w to hear.
func (p *poller) concerns(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.left > 0 || len(w.events) > 0
}

// leave ends a wait whose ctx is done.
func (p *poller) leave(ctx context.Context, w *waiter, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &WaitError{MeetingID: id, Err: ctxError(ctx)}
	if m := p.watches[id]; m != nil {
		if p.failing(m) {
			e.Err = afterTrouble(e.Err, p.trouble)
		}
		e.Meeting = m.lastSeen()
		p.drop(m, w)
	}
	return e
}

// interrupted is why a wait for many ends before they do: ctx, and what has
// kept one of them from being looked at, if anything did.
func (p *poller) interrupted(ctx context.Context, w *waiter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.watches {
		if p.failing(m) && m.awaitedBy(w) {
			return afterTrouble(ctxError(ctx), p.trouble)
		}
	}
	return ctxError(ctx)
}

// failing reports whether the looks at a meeting have been failing, or are held
// back. The caller holds mu.
func (p *poller) failing(m *watch) bool {
	out := p.run != nil && p.run.lost > 0 && !p.run.works
	return p.trouble != nil && (m.failed > 0 || out || p.paused(time.Now()))
}

// afterTrouble lets a caller whose context ended see what had kept it waiting.
func afterTrouble(end, trouble error) error { return fmt.Errorf("%w; before that: %w", end, trouble) }

// leaveAll ends whatever w still waits for.
func (p *poller) leaveAll(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.left > 0 {
		for _, m := range p.watches {
			p.drop(m, w)
		}
	}
}

// lastSeen is a copy of the meeting as last seen, or what is left of it.
func (m *watch) lastSeen() *Meeting {
	switch {
	case m.meeting != nil:
		return m.meeting.clone()
	case m.status != "":
		return &Meeting{ID: m.id, Status: m.status}
	}
	return nil
}

// clone keeps one waiter from changing what another reads.
func (m *Meeting) clone() *Meeting {
	c := *m
	c.ParticipantIDs = slices.Clone(m.ParticipantIDs)
	if m.DurationSeconds != nil {
		c.DurationSeconds = new(*m.DurationSeconds)
	}
	return &c
}

// drop takes w off a watch, if it is on it. When nobody waits any more, the run
// ends. The caller holds mu.
func (p *poller) drop(m *watch, w *waiter) {
	if m.waiter == w {
		m.waiter = nil
		if n := len(m.more); n > 0 {
			m.waiter, m.more = m.more[n-1], m.more[:n-1]
		}
	} else if at := slices.Index(m.more, w); at >= 0 {
		m.more = slices.Delete(m.more, at, at+1)
	} else {
		return
	}
	w.left--
	if m.waiter != nil {
		return
	}
	m.more = nil
	p.rest(m)
	p.waiting--
	if p.run != nil {
		p.run.singles.remove(m)
	}
	if p.waiting == 0 && p.run != nil {
		p.end()
	}
}

// rest keeps a watch that nobody waits for until the floor has passed.
func (p *poller) rest(m *watch) {
	if !m.rests {
		m.rests = true
		p.resting = append(p.resting, m)
	}
}

// forget drops watches that nobody waits for and that were looked at longer ago
// than the floor; until then, one of them still keeps the next wait from looking
// too soon. The caller holds mu.
func (p *poller) forget(now time.Time) {
	n := 0
	for _, m := range p.resting {
		if m.waiter == nil {
			if p.isFresh(m, now) {
				break
			}
			if p.watches[m.id] == m {
				delete(p.watches, m.id)
			}
		}
		m.rests = false
		n++
	}
	p.resting = p.resting[n:]
	if len(p.resting) == 0 {
		p.resting = nil
	}
	if n > 0 && len(p.watches) == 0 {
		p.watches = make(map[string]*watch) // one that was large stays so
	}
}

// isFresh reports whether the meeting was looked at within the floor. An age
// below zero is another clock's.
func (p *poller) isFresh(m *watch, now time.Time) bool {
	age := time.Duration(p.nanos(now) - m.looked)
	return m.looking || m.looked != 0 && 0 <= age && age < p.floor
}

// touch takes in that a meeting was looked at, or may have been, although that
// shows nothing.
func (p *poller) touch(m *watch, now time.Time) { m.looked, m.old = p.nanos(now), true }

// saw takes in what a look showed and tells the waiters. The caller holds mu.
func (p *poller) saw(m *watch, seen *Meeting, now time.Time) {
	changed, untold := m.status != seen.Status, m.untold
	m.looked, m.old, m.failed, m.untold = p.nanos(now), false, 0, false
	m.status = seen.Status.intern()
	m.meeting = nil
	if p.waiting <= keepWhole || m.status.Final() {
		m.meeting = seen
	}
	for _, w := range m.waiters() {
		late := untold && w.late[m]
		delete(w.late, m)
		if p.tell(w, seen, changed || late) {
			p.drop(m, w)
		}
	}
}

// awaitedBy reports whether w waits for the meeting.
func (m *watch) awaitedBy(w *waiter) bool { return m.waiter == w || slices.Contains(m.more, w) }

// fail ends every wait for a meeting. The caller holds mu.
func (p *poller) fail(m *watch, err error) {
	for _, w := range m.waiters() {
		w.hear(event{err: &WaitError{MeetingID: m.id, Meeting: m.lastSeen(), Err: err}, over: true})
		p.drop(m, w)
	}
}

// waiters is a copy, since telling one that its wait is over takes it off.
func (m *watch) waiters() []*waiter {
	if m.waiter == nil {
		return nil
	}
	return append([]*waiter{m.waiter}, m.more...)
}

// tell lets a waiter hear of the meeting if it wants to, and reports whether its
// wait is over.
func (p *poller) tell(w *waiter, seen *Meeting, changed bool) bool {
	failed := seen.Status.Failed()
	over := failed || seen.Status.rank() >= int(w.until) || w.once && !w.stale
	w.stale = false
	if !over && !(changed && w.onStatus != nil) {
		return false
	}
	e := event{meeting: seen.clone(), over: over}
	if failed {
		e.err = &MeetingFailedError{Status: seen.Status, Meeting: e.meeting}
	}
	w.hear(e)
	return over
}

// comesLate remembers that the waiter is to be told of the next look at a
// meeting, whatever that shows.
func (w *waiter) comesLate(m *watch) {
	if w.late == nil {
		w.late = make(map[*watch]bool)
	}
	w.late[m] = true
}

// hear never blocks: a waiter that is busy takes several events at once.
func (w *waiter) hear(e event) {
	w.events = append(w.events, e)
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// least is the least time between two looks at the meeting.
func (m *watch) least(floor time.Duration) time.Duration {
	least := m.waiter.interval
	for _, w := range m.more {
		least = min(least, w.interval)
	}
	return max(least, floor)
}
