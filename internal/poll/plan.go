package poll

import (
	"container/heap"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// floor is the least time between two looks at a meeting. The interface asks for 30
// seconds; the rest makes up for inexact clocks.
const (
	floor    = 30*time.Second + time.Millisecond/2
	maxFloor = 5 * time.Minute // the most that Cache-Control can raise the floor to

	leastPace = 4    // requests a second: no lane is slower, unless it was refused
	steady    = 330  // up to this many requests fit into one floor
	headroom  = 1.03 // go 3 % faster than needed

	maxLooks  = 64 // looks under way at a time
	maxFailed = 20 // failed looks in a row that end the waits for a meeting

	never time.Duration = math.MaxInt64 / 2
)

// plan decides what to ask the service next. It is pure: it has no clock, lock, goroutine or
// network. The Poller calls next to learn what to do now, and tells the plan what came back.
//
// Every meeting waited for is seen by a page of the listing or by a look, its own GET.
// Looks and pages have a lane each, at the pace that a turn needs, so that neither
// waits for the other.
type plan struct {
	watches map[string]*watch // meetings waited for, or seen within the floor
	random  *rand.Rand

	failures map[*watch]failures // failed looks in a row, of the watches that have some

	waiting  int // watches that somebody waits for
	paged    int // watches whose role is paged
	unproven int // watches that the next full sweep should look for

	due     [3]dueHeap // indexed by role; idle's stays empty
	looking int        // looks under way

	looks   lane
	listing lane
	sweep   sweep
}

// role says how a watch is seen: by a page, or by a look of its own. The end of each
// sweep chooses the role (see choose). Before that, a watch becomes paged if a page
// shows many meetings, or if it belongs to a crowd that waits for the sweep (pages.go).
type role uint8

const (
	idle     role = iota // nobody waits
	newcomer             // not seen since it joined: looked at when due, but a crowd of newcomers waits for a sweep
	single               // looked at when due
	paged                // seen by the pages of a sweep
)

// choose gives a watch its role at the end of a sweep: paged if the best stretch of
// pages showed it and that saved looks (counted in pages.go), otherwise single.
func (p *plan) choose(w *watch) {
	s := &p.sweep
	shown := w.sweep == s.number
	switch {
	case w.role == idle:
	case shown && s.best.gain > 0 && s.best.from <= w.page && w.page <= s.best.to:
		p.setRole(w, paged)
		s.due = min(s.due, w.due)
	case w.role == paged:
		p.setRole(w, single)
		if !shown && !s.broken {
			p.doubt(w)
		}
	}
}

// failures are failed looks in a row.
type failures struct {
	looks int           // how many
	since time.Duration // time of the first
	told  bool          // the observer has been warned of them
}

func newPlan(random *rand.Rand) plan {
	return plan{watches: make(map[string]*watch), random: random, failures: make(map[*watch]failures),
		looks: lane{share: 1}, listing: lane{share: 1}, sweep: sweep{patience: leastPatience, due: never, began: -maxFloor}}
}

// join adds a watch that somebody begins to wait for. It is due now, or at the end of
// the floor if it was looked at within the floor. fresh means that the waiter knows
// the last sighting, so the next look is not urgent.
func (p *plan) join(w *watch, now time.Duration, fresh bool) {
	if p.waiting++; p.waiting == 1 {
		p.sweep.retry = now + floor // by then it is known what the first waiters want
	}
	p.doubt(w)
	w.due = max(w.free, now)
	if fresh {
		w.due = max(w.free, w.seen+max(floor, w.interval()))
	}
	p.setRole(w, newcomer)
}

// doubt makes the next full sweep find out whether pages show a watch.
func (p *plan) doubt(w *watch) {
	if !w.unproven {
		w.unproven = true
		p.unproven++
	}
}

// leave removes a watch that nobody waits for any more.
func (p *plan) leave(w *watch) {
	if w.unproven {
		w.unproven = false
		p.unproven--
	}
	delete(p.failures, w)
	p.setRole(w, idle)
	if p.waiting--; p.waiting == 0 {
		p.reset()
	}
}

// reset is called when nobody waits any more. It keeps only what stops the next
// waits from asking too often. The Poller drops the replies of requests under way.
func (p *plan) reset() {
	s := &p.sweep
	if s.on {
		s.last = s.times
	}
	p.sweep = sweep{patience: leastPatience, due: never, number: s.number, began: s.began, last: s.last}
	p.looking = 0
}

// setRole gives a watch its role. It adjusts sought, since the sweep seeks by role.
func (p *plan) setRole(w *watch, r role) {
	if p.seeks(w) {
		p.sweep.sought--
	}
	if w.place > 0 {
		heap.Remove(&p.due[w.role], int(w.place-1))
	}
	if w.role == paged {
		p.paged--
	}
	if w.role = r; r == paged {
		p.paged++
	}
	if p.seeks(w) {
		p.sweep.sought++
	}
	if (r == newcomer || r == single) && !w.looking { // a look under way: lookEnded will push it
		heap.Push(&p.due[r], w)
	}
}

// singleLooks returns how many looks a turn probably needs. A crowd of newcomers
// counts as pages, which probably show it.
func (p *plan) singleLooks() int {
	newcomers := len(p.due[newcomer])
	if newcomers >= crowd && !p.sweep.broken {
		newcomers /= pageSize
	}
	return len(p.due[single]) + p.looking + newcomers
}

// turn returns the length of a turn: the time in which every meeting is seen once.
func (p *plan) turn() time.Duration { return turnOf(p.singleLooks() + p.pages()) }

// turnOf returns the length of a turn of so many requests. Beyond steady, twice the
// requests make the turn √2 longer and the pace √2 higher.
func turnOf(requests int) time.Duration {
	return time.Duration(float64(floor) * math.Sqrt(max(1, float64(requests)/steady)))
}

// jittered adds up to a 32nd of the floor at random. It never subtracts.
func (p *plan) jittered(d time.Duration) time.Duration {
	return d + time.Duration(p.random.Int64N(int64(floor/32)))
}

// pace returns how many requests a second are needed for so many in a turn.
func (p *plan) pace(requests int) float64 {
	return max(leastPace, headroom*float64(requests)/p.turn().Seconds())
}

// action is the request to make now: a look, a page, or neither.
type action struct {
	look *watch
	page bool
}

// next returns the request to make now. If there is none, wake is when to call again.
func (p *plan) next(now time.Duration) (do action, wake time.Duration) {
	if p.waiting == 0 {
		return action{}, never
	}
	wake = p.nextPage(now)
	if wake <= now {
		p.sweep.reading = true
		p.listing.use(now, p.pace(p.pages()))
		return action{page: true}, now
	}
	w, at := p.nextLook(now)
	if w == nil {
		return action{}, min(wake, at)
	}
	p.looks.use(now, p.pace(p.singleLooks()))
	p.looking++
	w.looking = true
	w.free = now + floor // also if its reply never arrives
	return action{look: w}, now
}

// nextLook removes the watch to look at now from its heap, or returns when to call
// again. Newcomers that are due go first. A crowd of them waits for a sweep, at most a
// floor. If the last sweep broke off, it does not wait: no crowd starts a sweep then.
func (p *plan) nextLook(now time.Duration) (*watch, time.Duration) {
	if p.looking >= maxLooks {
		return nil, never
	}
	next, at := single, p.due[single].firstDue()
	newcomers := p.due[newcomer]
	newcomersAt := newcomers.firstDue()
	if newcomers.countDue(now, 0, crowd) >= crowd && !p.sweep.broken {
		newcomersAt += floor
	}
	if newcomersAt <= max(at, now) {
		next, at = newcomer, newcomersAt
	}
	if at = max(at, p.looks.free()); at > now {
		return nil, at
	}
	return heap.Pop(&p.due[next]).(*watch), now
}

// setDue sets when a watch is due.
func (p *plan) setDue(w *watch, due time.Duration) {
	w.due = due
	switch {
	case w.place > 0:
		heap.Fix(&p.due[w.role], int(w.place-1))
	case w.role == paged:
		p.sweep.due = min(p.sweep.due, due)
	}
}

// sighted records that a watch was seen, by any request.
func (p *plan) sighted(w *watch, now time.Duration) {
	w.seen = now
	delete(p.failures, w)
	if w.role == newcomer {
		p.setRole(w, single)
	}
	p.setDue(w, max(w.free, now+p.jittered(max(p.turn(), w.interval()))))
}

// lookNow makes a watch due now, even within its floor.
func (p *plan) lookNow(w *watch, now time.Duration) {
	w.free = now
	if w.role == paged {
		p.setRole(w, single)
	}
	p.setDue(w, now)
}

// hurry makes a watch due earlier if a new waiter, with this interval, wants that.
func (p *plan) hurry(w *watch, interval time.Duration) {
	p.setDue(w, min(w.due, max(w.free, w.seen+max(floor, interval))))
}

// lookEnded records the end of a look.
func (p *plan) lookEnded(w *watch) {
	p.looking--
	w.looking = false
	if w.role == newcomer || w.role == single {
		p.setRole(w, single)
	}
}

// looked records a good reply to a look; maxAge is from its Cache-Control. If the
// service was out, it works again: forget the failures, except those already
// reported, which need a recovery message.
func (p *plan) looked(w *watch, now, maxAge time.Duration) {
	p.lookEnded(w)
	if p.looks.isOut(p.turn()) {
		maps.DeleteFunc(p.failures, func(_ *watch, f failures) bool { return !f.told })
	}
	p.looks.good(now)
	w.free = now + min(max(floor, maxAge), maxFloor)
	p.sighted(w, now)
}

// lookRefused records a 429 to a look. The look does not count: the watch stays due.
func (p *plan) lookRefused(w *watch, now, sentAt, retryAfter time.Duration) {
	p.lookEnded(w)
	p.looks.refused(now, sentAt, retryAfter)
	w.free = now
}

// lookFailed records a look that failed. The next one is a turn later. During an outage the failure
// counts for every watch. It returns the watches with maxFailed failures in a row.
func (p *plan) lookFailed(w *watch, now, sentAt time.Duration) (tooMany []*watch) {
	p.lookEnded(w)
	w.free = now + floor
	p.setDue(w, now+p.jittered(max(p.turn(), w.interval())))
	failing := []*watch{w}
	if p.looks.failed(now, sentAt, p.turn()) {
		failing = slices.Collect(maps.Values(p.watches))
	}
	for _, other := range failing {
		if other.role == idle {
			continue
		}
		f, before := p.failures[other]
		if !before {
			f.since = now
		}
		if f.looks++; f.looks >= maxFailed {
			tooMany = append(tooMany, other)
		}
		p.failures[other] = f
	}
	return tooMany
}
