package poll

import (
	"container/heap"
	"math"
	"time"
)

const (
	interval  = 30*time.Second + time.Millisecond/2 // between two GETs of a meeting; the rest makes up for inexact clocks
	maxAsked  = 5 * time.Minute                     // the longest max-age or Retry-After that is obeyed
	maxPause  = 30 * time.Second                    // the longest pause in an outage
	bearable  = 10 * time.Minute                    // so long a failure that may pass is borne
	steady    = 330                                 // so many requests fit into one interval; more make the cycle longer
	leastPace = 8                                   // requests a second that are always allowed
	maxPolls  = 32                                  // requests under way at a time
	several   = 3                                   // failures in a row that are more than an accident
	never     = time.Duration(math.MaxInt64 / 2)
)

// plan decides which request comes next. It is pure: it has no clock, lock, goroutine or network. Times are the Poller's.
//
// Each awaited meeting is due for a GET at one time. A response about it alone puts that off by a cycle. A page that shows it
// puts that off until the next sweep has ended without showing it (window.go). Nothing else does.
type plan struct {
	due     dueHeap    // every awaited meeting whose GET is not under way
	kinds   [kinds]int // of those
	awaited int
	polling int // GETs under way
	window

	slot    time.Duration // no request before this time at the present pace,
	until   time.Duration // or before this one, because requests fail
	lastGet bool          // the last request was a GET
	streak  int           // failures in a row
}

// watch is what the plan knows of one meeting.
type watch struct {
	id      string
	free    time.Duration // no GET before this time
	due     time.Duration // when its GET is due; never if held
	seen    time.Duration // when a response or a page last showed it; 0 if none has
	patient time.Duration // so long it may wait for the next look, as last seen
	rarely  time.Duration // the same if that is longer than a cycle, or 0
	urgent  time.Duration // since when it needs a GET that no page replaces; 0 if it does not
	passing time.Duration // when its first failure that may pass came, since it was seen; 0 if none
	sweep   int           // the last sweep that showed it
	failed  int           // its failures in a row
	place   int32         // in the heap, plus 1; 0 if not there
	awaited bool
	fresh   bool // a newcomer: nobody has seen it or looked for it at the top of the list
	getting bool // its GET is under way
	held    bool // the next sweep probably shows it
}

// kind is how a watch is looked at.
type kind int

const (
	alone    kind = iota // by a GET every cycle
	seldom               // less often
	newcomer             // by a GET at once
	expected             // a newcomer that waits for the pages at the top
	onPages              // by sweeps
	kinds
)

func (w *watch) kind() kind {
	switch {
	case w.held && w.fresh:
		return expected
	case w.held:
		return onPages
	case w.fresh:
		return newcomer
	case w.rarely > 0:
		return seldom
	}
	return alone
}

// take takes a watch out of the heap. Each change of a watch is between take and put.
func (p *plan) take(w *watch) {
	if w.place > 0 {
		p.kinds[w.kind()]--
		heap.Remove(&p.due, int(w.place-1))
	}
}

// put puts a watch into the heap, if that is its place.
func (p *plan) put(w *watch) {
	if w.awaited && !w.getting {
		p.kinds[w.kind()]++
		heap.Push(&p.due, w)
	}
}

// setDue sets when a watch is due, if nothing special has happened. Newcomers precede everything that waits already.
func (p *plan) setDue(w *watch, now time.Duration) {
	switch {
	case w.held:
		w.due = never
	case w.urgent > 0:
		w.due = max(w.free, w.urgent)
	case w.seen == 0:
		w.due = max(w.free, now-p.cycle())
	default:
		w.due = max(w.free, w.seen+max(p.cycle(), w.rarely))
	}
}

// join adds a meeting that somebody awaits from now on. known means that its last snapshot is good enough to begin with.
func (p *plan) join(w *watch, now time.Duration, known bool) {
	w.awaited, w.fresh = true, !known
	p.awaited++
	if !known {
		w.seen, w.sweep, w.rarely = 0, 0, 0
		p.joined++
	}
	w.held = known && w.sweep > 0 && w.sweep == p.sweeps && w.rarely == 0 && w.urgent == 0 && !p.slow()
	p.setDue(w, now)
	p.put(w)
}

// leave removes a meeting that nobody awaits any more.
func (p *plan) leave(w *watch) {
	p.take(w)
	w.awaited, w.held, w.failed, w.passing = false, false, 0, 0
	p.awaited--
}

// stop forgets the requests under way and the window, because nobody waits any more.
func (p *plan) stop() {
	p.polling = 0
	p.window = window{sweeps: p.sweeps + 1, began: -never}
}

// requests returns how many requests a cycle takes.
func (p *plan) requests() int {
	return p.kinds[alone] + p.kinds[newcomer] + p.kinds[expected]/perPage + p.polling + p.pages()
}

// cycle returns the time in which every meeting is seen once. Beyond steady, twice the requests make it √2 times longer, and
// the pace √2 times higher.
func (p *plan) cycle() time.Duration { return cycleOf(p.requests()) }

func cycleOf(requests int) time.Duration {
	return time.Duration(float64(interval) * math.Sqrt(max(1, float64(requests)/steady)))
}

// decision is the request to make now: a GET, a page, or neither.
type decision struct {
	get    *watch
	page   bool
	cursor string        // of the page
	wake   time.Duration // if neither, when to decide again
}

// decide decides which request to make now. If a page and a GET are due, they alternate. After a failure, one request at a
// time finds out whether things work again.
func (p *plan) decide(now time.Duration) decision {
	busy := p.polling > 0 || p.reading
	if p.awaited+p.followers == 0 || p.polling >= maxPolls || p.streak > 0 && busy {
		return decision{wake: never}
	}
	pageAt, getAt := p.nextPage(now), never
	if len(p.due) > 0 {
		getAt = p.due[0].due
	}
	if at := max(p.slot, p.until, min(pageAt, getAt)); at > now {
		return decision{wake: at}
	}
	p.slot = now + time.Duration(float64(time.Second)/max(leastPace, float64(p.requests())/p.cycle().Seconds()))
	p.lastGet = pageAt > now || getAt <= now && !p.lastGet
	if !p.lastGet {
		p.reading = true
		return decision{page: true, cursor: p.pass().cursor}
	}
	w := p.due[0]
	p.take(w)
	w.getting = true
	p.polling++
	return decision{get: w}
}

// got records a good response about one meeting alone, to a GET of the plan or to a call of the user, sent at sentAt.
func (p *plan) got(w *watch, now, sentAt, maxAge time.Duration) {
	p.take(w)
	w.free = max(w.free, now+min(max(interval, maxAge), maxAsked))
	if sentAt >= w.urgent {
		w.urgent = 0
	}
	p.saw(w, now)
	p.setDue(w, now)
	p.put(w)
	p.good++
}

// saw records that a response showed a meeting.
func (p *plan) saw(w *watch, now time.Duration) {
	w.seen, w.failed, w.passing, w.rarely, w.fresh = now, 0, 0, 0, false
	if w.patient > p.cycle() {
		w.rarely = w.patient
	}
}

// ask makes a GET of a meeting necessary that no page replaces. atOnce means even within its interval.
func (p *plan) ask(w *watch, now time.Duration, atOnce bool) {
	p.take(w)
	if w.urgent, w.held = now, false; atOnce {
		w.free = now
	}
	p.setDue(w, now)
	p.put(w)
}

// getEnded records that a GET has ended, whatever its outcome.
func (p *plan) getEnded(w *watch, now time.Duration) {
	p.polling--
	w.getting = false
	p.setDue(w, now)
	p.put(w)
}

// getFailed records the failure of a GET, after getEnded. A 429 leaves the meeting due, behind what is due already. After
// another failure its GET comes later each time, so that others need not suffer. hopeless means that failures which are not
// transient have lasted too long, without a good response about the meeting.
func (p *plan) getFailed(w *watch, now time.Duration, f *Failure) (hopeless bool) {
	p.take(w)
	defer p.put(w)
	delay := interval << min(w.failed, 4)
	switch f.Kind {
	case RateLimited:
		if !w.held {
			w.due = max(w.free, now)
		}
		if p.limited > 0 { // not only the list is limited
			p.limited, p.good, p.fails, p.retryAt = 0, 0, 0, 0
		}
		return false
	case Transient:
		p.failed(now, f.RetryAfter)
	default: // not counted as an outage, so that each meeting finds out for itself
		delay = min(delay, 2*time.Minute)
		if w.passing == 0 {
			w.passing = now
		}
		hopeless = now-w.passing >= bearable
	}
	w.failed++
	w.fresh, w.held = false, false
	w.free = now + max(interval, min(f.RetryAfter, maxAsked))
	w.due = max(w.free, now+min(delay, maxAsked))
	return hopeless
}

// works records that the service works: it has answered, even if with a rejection.
func (p *plan) works() { p.streak = 0 }

// failed records the failure of a request. Several in a row are an outage: then requests pause, longer after each failure.
func (p *plan) failed(now, retryAfter time.Duration) {
	if p.streak++; p.streak >= several {
		p.until = now + max(min(time.Second<<min(p.streak-several, 10), maxPause), min(retryAfter, maxAsked))
	}
}

// dueHeap orders watches by the time at which they are due.
type dueHeap []*watch

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i+1), int32(j+1)
}

// Push is for container/heap.
func (h *dueHeap) Push(x any) {
	*h = append(*h, x.(*watch))
	(*h)[len(*h)-1].place = int32(len(*h))
}

// Pop is for container/heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	w.place = 0
	return w
}
