package minutes

import (
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// run is the poller at work, from the first waiter to the last. All of it is
// guarded by the poller's mutex.
type run struct {
	*poller
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // holds one when there is something new to decide

	singles dueHeap   // watches to be looked at one by one
	gets    int       // under way
	slot    time.Time // when the next request would go out at an even pace

	crowding bool // many are just beginning to wait

	listing
}

// start begins a run. The caller holds mu.
func (p *poller) start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.run = &run{poller: p, ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1), crowding: true}
	go p.run.loop()
}

// end ends the run; what its requests still bring is not used. The caller holds
// mu.
func (p *poller) end() {
	r := p.run
	p.run = nil
	r.cancel()
	// What is under way may show meetings all the same.
	now := time.Now()
	reading := r.sweep != nil && r.sweep.reading
	if reading || r.gets > 0 {
		p.lastShown = now
	}
	for _, m := range p.watches {
		if m.looking || reading {
			r.touch(m, now)
		}
		m.place, m.shownIn, m.cameIn, m.looking, m.listed, m.isNew = 0, 0, 0, false, false, false
	}
}

// stir makes the loop decide anew.
func (r *run) stir() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// admit takes in a watch that w waits for from now on.
func (r *run) admit(m *watch, w *waiter) {
	if r.sweep != nil && r.sweep.reading && (m.looked == 0 || w.once) {
		m.cameIn = r.pageNo
	}
	w.stale = m.looking
	// As soon as the floor and this waiter allow, whatever interval others have.
	if w.once {
		m.due = 0
	} else if m.looked != 0 {
		m.due = min(m.due, m.looked+int64(m.least(r.floor)))
	}
	if m.listed {
		r.listedDue = min(r.listedDue, m.due)
	}
	if m.place > 0 {
		r.single(m)
	}
	if m.looking || m.listed || m.isNew || m.place > 0 {
		return
	}
	if (m.looked == 0 || m.shownIn > 0) && r.keepsLists() {
		m.isNew = true
		r.newcomers = append(r.newcomers, newcomer{m, r.sweepNo})
		return
	}
	r.single(m)
}

// single has a watch looked at by itself when it is due.
func (r *run) single(m *watch) {
	m.listed = false
	if m.waiter == nil || m.looking {
		return
	}
	if m.looked != 0 {
		m.due = max(m.due, m.looked+int64(m.least(r.floor)))
	}
	r.singles.put(m)
}

// loop is the poller's goroutine.
func (r *run) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		r.mu.Lock()
		if r.crowding {
			r.crowding = false
			r.gather()
		}
		if r.ctx.Err() != nil {
			r.mu.Unlock()
			return
		}
		now := time.Now()
		next := r.step(now)
		r.mu.Unlock()
		timer.Reset(next.Sub(now))
	}
}

// gather lets a crowd that starts together assemble before the first request,
// which may then be a page instead of a GET. In a quiet program it takes some
// microseconds; in a busy one, no more than a few milliseconds. The caller holds
// mu.
func (r *run) gather() {
	const quiet, patience = 512, 5 * time.Millisecond
	start, before := time.Now(), 0
	for still := 0; still < quiet && time.Since(start) < patience; still++ {
		r.mu.Unlock()
		runtime.Gosched()
		r.mu.Lock()
		if r.waiting != before {
			before, still = r.waiting, 0
		}
	}
	if before > 1 {
		// On a machine that is short of processors, more of them may just be about
		// to run. In a synctest bubble this waits for all.
		r.mu.Unlock()
		time.Sleep(1 * time.Nanosecond)
		r.mu.Lock()
	}
}

// step sends what may be sent now and returns when to look again. Something new
// stirs the loop before that.
func (r *run) step(now time.Time) time.Time {
	r.forget(now)
	idle := now.Add(time.Hour)
	for {
		if r.paused(now) {
			return r.pausedUntil
		}
		if free := r.slot.Add(-(pollBurst - 1) * r.spacing(now)); now.Before(free) {
			return free
		}
		if m := r.takeProbe(now); m != nil {
			r.look(m, now)
			continue
		}
		page, pageAt := r.nextPage(now)
		single := len(r.singles) > 0 && r.gets < maxLooksInFlight && !r.holdsSingles(now)
		if page && !(r.pagedLast && single && r.singles[0].due <= r.nanos(now)) {
			r.pagedLast = true
			r.useSlot(now)
			r.sweep.reading = true
			r.pageNo++
			go r.readPage(r.sweep, r.pageParams())
			continue
		}
		next := idle
		if !pageAt.IsZero() {
			next = pageAt
		}
		if !single {
			return next
		}
		r.pagedLast = false
		m := r.singles[0]
		if due := r.timeOf(m.due); now.Before(due) {
			if due.Before(next) {
				next = due
			}
			return next
		}
		r.singles.remove(m)
		r.look(m, now)
	}
}

// look sends a GET.
func (r *run) look(m *watch, now time.Time) {
	r.useSlot(now)
	r.gets++
	m.looking = true
	r.touch(m, now) // in case its reply is never seen
	go r.get(m, m.looked)
}

// spacing is the time between two requests at an even pace: what one turn needs
// is spread over the turn.
func (r *run) spacing(now time.Time) time.Duration {
	const most = time.Second / pollRate
	if r.sweep != nil && r.sweep.trial {
		return min(r.sweep.spacing(r), most)
	}
	perTurn := r.pagesPerTurn()
	if !r.holdsSingles(now) {
		perTurn += len(r.singles) + r.gets
	}
	even := r.floor / time.Duration(max(perTurn, 1))
	return min(even, most)
}

func (r *run) useSlot(now time.Time) {
	if r.slot.Before(now) {
		r.slot = now
	}
	r.slot = r.slot.Add(r.spacing(now))
}

// get looks at one meeting, which is asked for now.
func (r *run) get(m *watch, asked int64) {
	seen, maxAge, err := r.core.look(r.ctx, m.id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	now := time.Now()
	r.gets--
	m.looking = false
	shown := m.looked != asked // by a page, meanwhile
	r.touch(m, now)
	r.lastShown = now
	defer r.stir()
	switch {
	case err == nil:
		r.pause = 0
		r.floor = min(max(pollFloor, maxAge), maxFloor)
		r.saw(m, seen, now)
		m.due = r.nanos(now) + int64(jitter(r.floor))
	case errors.Is(err, ErrRateLimited):
		// Refused at the edge: it counts neither as a look nor as a failure.
		r.holdBack(err, now)
		if !shown {
			m.looked = 0
		}
		m.due = r.nanos(now)
		m.freshen()
	case transient(err) && m.failed+1 < maxFailedLooks:
		m.failed++
		r.trouble = err
		m.due = r.nanos(now) + int64(jitter(r.floor))
		m.freshen()
	default:
		r.fail(m, err)
	}
	r.probed(m, err, now)
	if m.waiter != nil && !m.listed {
		r.single(m)
	}
}

// freshen has those who came during a look that failed be content with the next.
func (m *watch) freshen() {
	for _, w := range m.waiters() {
		w.stale = false
	}
}

// jitter only ever adds to the floor.
func jitter(floor time.Duration) time.Duration { return floor + rand.N(floor/30) }

// holdBack pauses all polling after a 429, twice as long each time, or as long
// as the service asks.
func (p *poller) holdBack(err error, now time.Time) {
	p.trouble = err
	if p.paused(now) {
		return // a request that went out before the pause
	}
	p.pause = min(max(2*p.pause, p.floor), maxPause)
	p.pausedUntil = now.Add(max(p.pause, askedFor(err)))
}

// paused reports a pause after a 429. A longer one than there can be is another
// clock's.
func (p *poller) paused(now time.Time) bool {
	left := p.pausedUntil.Sub(now)
	return left > 0 && left <= maxPause
}

// askedFor is how long the service asked to wait, as far as waits go along with
// that.
func askedFor(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return min(e.RetryAfter, maxPause)
	}
	return 0
}

// transient reports failures that may pass: no reply, a reply that makes no
// sense, a fault of the service or of something in front of it.
func transient(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || permanent(err) {
		return false
	}
	switch {
	case e.StatusCode == http.StatusUnauthorized, e.StatusCode == http.StatusForbidden:
		return false
	case e.StatusCode == http.StatusRequestTimeout, e.StatusCode == http.StatusTooManyRequests:
		return true
	case e.StatusCode/100 == 4:
		return e.Code == ""
	}
	return true
}

// look is a GET of a meeting that is not repeated when it fails, and the
// max-age of its Cache-Control.
func (c *core) look(ctx context.Context, id string) (*Meeting, time.Duration, error) {
	m, reply, err := doReply[Meeting](ctx, c, rest.Request{Operation: route.MeetingsGet, ID: id, Once: true})
	if err != nil {
		return nil, 0, err
	}
	return m, parseMaxAge(reply.Header.Get("Cache-Control")), nil
}

// parseMaxAge reads max-age out of a Cache-Control header, 0 where there is
// none that can be read.
func parseMaxAge(header string) time.Duration {
	for directive := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "max-age") {
			continue
		}
		seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // beyond the range it is the most there is
			return 0
		}
		return time.Duration(seconds) * time.Second
	}
	return 0
}

// dueHeap orders watches by when they are due.
type dueHeap []*watch

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i+1), int32(j+1)
}

// Push is for container/heap.
func (h *dueHeap) Push(x any) {
	m := x.(*watch)
	*h = append(*h, m)
	m.place = int32(len(*h))
}

// Pop is for container/heap.
func (h *dueHeap) Pop() any {
	old := *h
	last := len(old) - 1
	m := old[last]
	old[last] = nil
	*h = old[:last]
	m.place = 0
	return m
}

func (h *dueHeap) put(m *watch) {
	if m.place == 0 {
		heap.Push(h, m)
	} else {
		heap.Fix(h, int(m.place-1))
	}
}

func (h *dueHeap) remove(m *watch) {
	if m.place > 0 {
		heap.Remove(h, int(m.place-1))
	}
}
