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
	minPollInterval = 30*time.Second + time.Millisecond/2
	maxMaxAge       = 5 * time.Minute // the most that Cache-Control can raise the floor to

	leastPace = 4    // requests a second: no lane is slower, unless it was refused
	steady    = 330  // up to this many requests fit into one floor
	headroom  = 1.03 // go 3 % faster than needed

	maxPolls  = 64 // looks under way at a time
	maxFailed = 20 // failed looks in a row that end the waits for a meeting

	never time.Duration = math.MaxInt64 / 2
)

// plan decides what to ask the service next. It is pure: it has no clock, lock, goroutine or
// network. The Poller calls decide before each request and reports each outcome.
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
	polling int        // looks under way

	polls   lane
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
	polls    int           // how many
	since    time.Duration // time of the first
	reported bool          // the observer has been warned of them
}

func newPlan(random *rand.Rand) plan {
	return plan{watches: make(map[string]*watch), random: random, failures: make(map[*watch]failures),
		polls: lane{share: 1}, listing: lane{share: 1}, sweep: sweep{patience: leastPatience, due: never, began: -maxMaxAge}}
}

// join adds a watch that somebody begins to wait for. It is due now, or at the end of
// the floor if it was looked at within the floor. fresh means that the waiter knows
// the last sighting, so the next look is not urgent.
func (p *plan) join(w *watch, now time.Duration, fresh bool) {
	if p.waiting++; p.waiting == 1 {
		p.sweep.retry = now + minPollInterval // by then it is known what the first waiters want
	}
	p.doubt(w)
	w.due = max(w.free, now)
	if fresh {
		w.due = max(w.free, w.seen+max(minPollInterval, w.interval()))
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
	p.polling = 0
}

// setRole gives a watch its role. It adjusts sought, since the sweep seeks by role.
func (p *plan) setRole(w *watch, r role) {
	if w.confirm && r == paged {
		r = single
	}
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
	if (r == newcomer || r == single) && !w.polling { // a look under way: pollEnded will push it
		heap.Push(&p.due[r], w)
	}
}

// singlePolls returns how many looks a turn probably needs. A crowd of newcomers
// counts as pages, which probably show it.
func (p *plan) singlePolls() int {
	newcomers := len(p.due[newcomer])
	if newcomers >= crowd && !p.sweep.broken {
		newcomers /= pageSize
	}
	return len(p.due[single]) + p.polling + newcomers
}

// turn returns the length of a turn: the time in which every meeting is seen once.
func (p *plan) cycle() time.Duration { return cycleOf(p.singlePolls() + p.pages()) }

// cycleOf returns the length of a turn of so many requests. Beyond steady, twice the
// requests make the turn √2 longer and the pace √2 higher.
func cycleOf(requests int) time.Duration {
	return time.Duration(float64(minPollInterval) * math.Sqrt(max(1, float64(requests)/steady)))
}

// jittered adds up to a 32nd of the floor at random. It never subtracts.
func (p *plan) jittered(d time.Duration) time.Duration {
	return d + time.Duration(p.random.Int64N(int64(minPollInterval/32)))
}

// pace returns how many requests a second are needed for so many in a turn.
func (p *plan) pace(requests int) float64 {
	return max(leastPace, headroom*float64(requests)/p.cycle().Seconds())
}

// decision is the request to make now: a poll, a page, or neither.
type decision struct {
	poll *watch
	page bool
	wake time.Duration // if neither, when to decide again
}

// decide returns the request to make now.
func (p *plan) decide(now time.Duration) decision {
	if p.waiting == 0 {
		return decision{wake: never}
	}
	wake := p.nextPage(now)
	if wake <= now {
		p.sweep.reading = true
		p.listing.use(now, p.pace(p.pages()))
		return decision{page: true}
	}
	w, at := p.nextPoll(now)
	if w == nil {
		return decision{wake: min(wake, at)}
	}
	p.polls.use(now, p.pace(p.singlePolls()))
	p.polling++
	w.polling, w.confirm = true, false
	w.free = now + minPollInterval // also if its reply never arrives
	return decision{poll: w}
}

// nextPoll removes the watch to look at now from its heap, or returns when to call
// again. Newcomers that are due go first. A crowd of them waits for a sweep, at most a
// floor. If the last sweep broke off, it does not wait: no crowd starts a sweep then.
func (p *plan) nextPoll(now time.Duration) (*watch, time.Duration) {
	if p.polling >= maxPolls {
		return nil, never
	}
	next, at := single, p.due[single].firstDue()
	newcomers := p.due[newcomer]
	newcomersAt := newcomers.firstDue()
	if newcomers.countDue(now, 0, crowd) >= crowd && !p.sweep.broken {
		newcomersAt += minPollInterval
	}
	if newcomersAt <= max(at, now) {
		next, at = newcomer, newcomersAt
	}
	if at = max(at, p.polls.free()); at > now {
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

// recorded records that a watch was seen, by any request.
func (p *plan) recorded(w *watch, now time.Duration) {
	w.seen = now
	delete(p.failures, w)
	if w.role == newcomer {
		p.setRole(w, single)
	}
	p.setDue(w, max(w.free, now+p.jittered(max(p.cycle(), w.interval()))))
	if w.confirm && w.role != idle {
		p.setRole(w, single)
		p.setDue(w, max(w.free, now))
	}
}

// pollNow makes a watch due now, even within its floor.
func (p *plan) pollNow(w *watch, now time.Duration) {
	w.free = now
	if w.role == paged {
		p.setRole(w, single)
	}
	p.setDue(w, now)
}

// hurry makes a watch due earlier if a new waiter, with this interval, wants that.
func (p *plan) hurry(w *watch, interval time.Duration) {
	p.setDue(w, min(w.due, max(w.free, w.seen+max(minPollInterval, interval))))
}

// pollEnded records the end of a look.
func (p *plan) pollEnded(w *watch) {
	p.polling--
	w.polling = false
	if w.role == newcomer || w.role == single {
		p.setRole(w, single)
	}
}

// looked records a good reply to a look; maxAge is from its Cache-Control. If the
// service was out, it works again: forget the failures, except those already
// reported, which need a recovery message.
func (p *plan) polled(w *watch, now, maxAge time.Duration) {
	p.pollEnded(w)
	if p.polls.isOut(p.cycle()) {
		maps.DeleteFunc(p.failures, func(_ *watch, f failures) bool { return !f.reported })
	}
	p.polls.good(now)
	w.free = now + min(max(minPollInterval, maxAge), maxMaxAge)
	p.recorded(w, now)
}

// pollRateLimited records a 429 to a look. The look does not count: the watch stays due.
func (p *plan) pollRateLimited(w *watch, now, sentAt, retryAfter time.Duration) {
	p.pollEnded(w)
	p.polls.refused(now, sentAt, retryAfter)
	w.free = now
}

// pollFailed records a look that failed. The next one is a turn later. During an outage the failure
// counts for every watch. It returns the watches with maxFailed failures in a row.
func (p *plan) pollFailed(w *watch, now, sentAt time.Duration) (tooMany []*watch) {
	p.pollEnded(w)
	w.free = now + minPollInterval
	p.setDue(w, now+p.jittered(max(p.cycle(), w.interval())))
	failing := []*watch{w}
	if p.polls.failed(now, sentAt, p.cycle()) {
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
		if f.polls++; f.polls >= maxFailed {
			tooMany = append(tooMany, other)
		}
		p.failures[other] = f
	}
	return tooMany
}
