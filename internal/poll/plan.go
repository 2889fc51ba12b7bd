package poll

import (
	"container/heap"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// The floor is what the interface asks for between two looks at a meeting, and a
// little more, since clocks are not that exact.
const (
	floor    = 30*time.Second + time.Millisecond/2
	maxFloor = 5 * time.Minute // how far Cache-Control can raise it

	leastPace = 4    // requests a second: no lane is slower, unless it was refused
	steady    = 330  // with up to so many requests, a turn is as short as the floor
	headroom  = 1.03 // the pace is so much over what a turn needs

	maxLooks  = 64 // under way
	maxFailed = 20 // looks in a row, of one meeting

	never time.Duration = math.MaxInt64 / 2
)

// plan decides what to ask the service next. It is pure: it knows no clock, no
// lock, no goroutine and no network. It is asked what comes next at a given
// time, and is told what came back.
//
// Every meeting waited for is looked at by a page of the listing or by itself.
// Looks and pages go out on a lane each, at the pace that a turn needs, so that
// neither waits for the other.
type plan struct {
	watches map[string]*watch // what is waited for, or was seen within the floor
	random  *rand.Rand

	failures map[*watch]failures // of those whose last look failed

	waiting  int // watches that somebody waits for
	paged    int // of the waiting, those that pages look at
	unproven int // of the waiting, those that the next full sweep should look for

	due     [3]dueHeap // by role: the newcomers, and the singles
	looking int        // looks under way

	looks   lane
	listing lane
	sweep   sweep
}

// role says how a watch is looked at: by a page of the listing, or by a look of its
// own. It is chosen at the end of each sweep (see choose); until then, a watch is paged
// where a page has shown many, or where it belongs to a crowd that waits for this sweep.
type role uint8

const (
	idle     role = iota // nobody waits
	newcomer             // not seen since it joined: by itself when it is due, unless a crowd of them waits for a sweep
	single               // by itself, when it is due
	paged                // by the pages of a sweep
)

// choose gives a watch its role at the end of a sweep: what was shown where pages paid
// is looked at by pages, everything else by itself.
func (p *plan) choose(w *watch) {
	s := &p.sweep
	shown := w.sweep == s.number
	switch {
	case w.role == idle:
	case shown && s.best.gain > 0 && s.best.from <= w.page && w.page <= s.best.to:
		p.put(w, paged)
		s.due = min(s.due, w.due)
	case w.role == paged:
		p.put(w, single)
		if !shown && !s.broken {
			p.doubt(w)
		}
	}
}

// failures are looks in a row that failed.
type failures struct {
	looks int
	since time.Duration
	told  bool // the observer was told that these are several
}

func newPlan(random *rand.Rand) plan {
	return plan{watches: make(map[string]*watch), random: random, failures: make(map[*watch]failures),
		looks: lane{share: 1}, listing: lane{share: 1}, sweep: sweep{patience: leastPatience, due: never, began: -maxFloor}}
}

// join takes in a watch that somebody begins to wait for. What was looked at
// within the floor waits for the rest of it. fresh says that the waiter has been
// told of what was seen, so that there is no hurry.
func (p *plan) join(w *watch, now time.Duration, fresh bool) {
	if p.waiting++; p.waiting == 1 {
		p.sweep.retry = now + floor // what the first ones want is known by then
	}
	p.doubt(w)
	w.due = max(w.free, now)
	if fresh {
		w.due = max(w.free, w.seen+max(floor, w.interval()))
	}
	p.put(w, newcomer)
}

// doubt lets the next full sweep find out whether pages show a watch.
func (p *plan) doubt(w *watch) {
	if !w.unproven {
		w.unproven = true
		p.unproven++
	}
}

// leave takes out a watch that nobody waits for any more.
func (p *plan) leave(w *watch) {
	if w.unproven {
		w.unproven = false
		p.unproven--
	}
	delete(p.failures, w)
	p.put(w, idle)
	if p.waiting--; p.waiting == 0 {
		p.reset()
	}
}

// reset forgets what is of no use once nobody waits: only what keeps the next
// waits from asking too much is kept. The replies of requests under way are
// dropped.
func (p *plan) reset() {
	s := &p.sweep
	if s.on {
		s.last = s.times
	}
	p.sweep = sweep{patience: leastPatience, due: never, number: s.number, began: s.began, last: s.last}
	p.looking = 0
}

// put gives a watch its role. Which role it has tells whether the sweep seeks it, so
// that sought is counted before and after.
func (p *plan) put(w *watch, r role) {
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
	if (r == newcomer || r == single) && !w.looking { // else its reply will put it there
		heap.Push(&p.due[r], w)
	}
}

// alone is how many looks a turn needs, as far as is known. A crowd of newcomers
// is likely to be shown by pages.
func (p *plan) alone() int {
	newcomers := len(p.due[newcomer])
	if newcomers >= crowd && !p.sweep.broken {
		newcomers /= pageSize
	}
	return len(p.due[single]) + p.looking + newcomers
}

// turn is how long the looks at all meetings are spread over.
func (p *plan) turn() time.Duration { return turnOf(p.alone() + p.pages()) }

// turnOf is a turn of so many requests. Twice the requests make it √2 longer and
// the pace √2 higher.
func turnOf(requests int) time.Duration {
	return time.Duration(float64(floor) * math.Sqrt(max(1, float64(requests)/steady)))
}

// jittered only ever adds.
func (p *plan) jittered(d time.Duration) time.Duration {
	return d + time.Duration(p.random.Int64N(int64(floor/32)))
}

// pace is how many requests a second let so many be made in a turn.
func (p *plan) pace(requests int) float64 {
	return max(leastPace, headroom*float64(requests)/p.turn().Seconds())
}

// action is what to ask the service now: for a meeting, or for a page.
type action struct {
	look *watch
	page bool
}

// next returns what is to be done at now, or else when to ask again.
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
	p.looks.use(now, p.pace(p.alone()))
	p.looking++
	w.looking = true
	w.free = now + floor // also where its reply is never seen
	return action{look: w}, now
}

// nextLook takes out the watch to look at now, or says when to ask again. Newcomers
// are looked at at once, unless there is a crowd of them, which waits for a sweep,
// though no longer than a floor.
func (p *plan) nextLook(now time.Duration) (*watch, time.Duration) {
	if p.looking >= maxLooks {
		return nil, never
	}
	next, at := single, p.due[single].firstDue()
	newcomers := p.due[newcomer]
	first := newcomers.firstDue()
	if newcomers.countDue(now, 0, crowd) >= crowd && !p.sweep.broken {
		first += floor
	}
	if first <= max(at, now) {
		next, at = newcomer, first
	}
	if at = max(at, p.looks.free()); at > now {
		return nil, at
	}
	return heap.Pop(&p.due[next]).(*watch), now
}

// setDue lets a watch be due then.
func (p *plan) setDue(w *watch, due time.Duration) {
	w.due = due
	switch {
	case w.place > 0:
		heap.Fix(&p.due[w.role], int(w.place-1))
	case w.role == paged:
		p.sweep.due = min(p.sweep.due, due)
	}
}

// sighted takes in that a watch was shown, by whatever.
func (p *plan) sighted(w *watch, now time.Duration) {
	w.seen = now
	delete(p.failures, w)
	if w.role == newcomer {
		p.put(w, single)
	}
	p.setDue(w, max(w.free, now+p.jittered(max(p.turn(), w.interval()))))
}

// again lets a watch be looked at at once, whatever was seen before.
func (p *plan) again(w *watch, now time.Duration) {
	w.free = now
	if w.role == paged {
		p.put(w, single)
	}
	p.setDue(w, now)
}

// hurry brings a watch forward to when one more waiter wants it looked at.
func (p *plan) hurry(w *watch, interval time.Duration) {
	p.setDue(w, min(w.due, max(w.free, w.seen+max(floor, interval))))
}

// lookEnded takes in that a look is over.
func (p *plan) lookEnded(w *watch) {
	p.looking--
	w.looking = false
	if w.role == newcomer || w.role == single {
		p.put(w, single)
	}
}

// looked takes in a reply to a look; maxAge is its Cache-Control's. Where the
// service was out, it is back, and its failures count no more. Those that the
// observer was told of are kept, until it can be told that these looks work, too.
func (p *plan) looked(w *watch, now, maxAge time.Duration) {
	p.lookEnded(w)
	if p.looks.isOut(p.turn()) {
		maps.DeleteFunc(p.failures, func(_ *watch, f failures) bool { return !f.told })
	}
	p.looks.good(now)
	w.free = now + min(max(floor, maxAge), maxFloor)
	p.sighted(w, now)
}

// lookRefused takes in a 429. It is no look: the watch stays due.
func (p *plan) lookRefused(w *watch, now, asked, retryAfter time.Duration) {
	p.lookEnded(w)
	p.looks.refused(now, asked, retryAfter)
	w.free = now
}

// lookFailed takes in a look that failed; it waits a turn. Where the service is out,
// that is a failed look for everybody. It returns those of whom too many have
// failed in a row.
func (p *plan) lookFailed(w *watch, now, asked time.Duration) (tooMany []*watch) {
	p.lookEnded(w)
	w.free = now + floor
	p.setDue(w, now+p.jittered(max(p.turn(), w.interval())))
	failing := []*watch{w}
	if p.looks.failed(now, asked, p.turn()) {
		failing = slices.Collect(maps.Values(p.watches))
	}
	for _, w := range failing {
		if w.role == idle {
			continue
		}
		f, before := p.failures[w]
		if !before {
			f.since = now
		}
		if f.looks++; f.looks >= maxFailed {
			tooMany = append(tooMany, w)
		}
		p.failures[w] = f
	}
	return tooMany
}
