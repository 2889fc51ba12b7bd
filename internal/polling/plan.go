package poll

import (
	"container/heap"
	"math"
	"time"
)

const (
	interval   = 30*time.Second + time.Millisecond/2 // between two GETs of a meeting; the rest makes up for inexact clocks
	maxAsked   = 5 * time.Minute                     // the longest max-age or Retry-After that is obeyed
	maxPause   = 30 * time.Second                    // the longest pause in an outage
	passesIn   = 10 * time.Minute                    // how long a failure that may pass is borne
	steady     = 330                                 // so many requests fit into one interval; more make the cycle longer
	leastPace  = 4                                   // requests a second that are always allowed
	maxPolls   = 32                                  // requests under way at a time
	several    = 3                                   // failures in a row that are more than an accident
	never      = time.Duration(math.MaxInt64 / 2)
	perPage    = 50
	crowd      = 32 // so many newcomers wait for the pages at the top of the list
	fewJoined  = 5  // so many newcomers are worth a sweep
	beyond     = 2  // a sweep reads so many pages beyond the last one that paid
	pays       = 2  // a page pays if it saves so many GETs
	limitedOut = 8  // 429s in a row to a page that count like several failures
)

// plan decides which request comes next. It is pure: it has no clock, lock, goroutine or network. Times are the Poller's.
//
// Each awaited meeting is due for a GET at one time. A response about it alone puts that off by a cycle. A page that shows it
// puts that off until the next sweep has ended without showing it (window.go). Nothing else does.
type plan struct {
	due       dueHeap // every awaited meeting whose GET is not under way
	awaited   int
	alone     int // of those in due, the ones that take a GET every cycle,
	held      int // the ones that wait for the end of a sweep,
	heldNew   int // of these, the ones that nobody has seen yet,
	newcomers int // and the ones not held that nobody has seen yet
	polling   int // GETs under way
	window

	slot    time.Duration // no request before this time at the present pace,
	until   time.Duration // or before this one, because requests fail
	lastGet bool          // the last request was a GET
	streak  int           // failures in a row
	passing time.Duration // when the first failure that may pass came, since the last success; 0 if none
}

// watch is what the plan knows of one meeting.
type watch struct {
	id      string
	free    time.Duration // no GET before this time
	due     time.Duration // when its GET is due; never if held
	seen    time.Duration // when a response or a page last showed it; 0 if none has
	joined  time.Duration // since when it is awaited
	rarely  time.Duration // at least so long between two looks at it, if longer than a cycle
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

// count adds w to the counters if n is 1, and takes it away again if n is -1.
func (p *plan) count(w *watch, n int) {
	switch {
	case w.held:
		p.held += n
		if w.fresh {
			p.heldNew += n
		}
	case w.rarely == 0:
		p.alone += n
	}
	if w.fresh && !w.held {
		p.newcomers += n
	}
}

// change takes a watch out of the heap. Each change of a watch is between change and put.
func (p *plan) change(w *watch) {
	if w.place > 0 {
		p.count(w, -1)
		heap.Remove(&p.due, int(w.place-1))
	}
}

// put puts a watch where it belongs.
func (p *plan) put(w *watch) {
	if w.awaited && !w.getting {
		p.count(w, 1)
		heap.Push(&p.due, w)
	}
}

// join adds a meeting that somebody awaits from now on. known means that its last snapshot is good enough to begin
// with. Others are due before everything that waits already.
func (p *plan) join(w *watch, now time.Duration, known bool) {
	p.change(w)
	w.awaited, w.joined, w.fresh = true, now, !known
	p.awaited++
	if !known {
		w.seen, w.sweep = 0, 0
		p.joined++
	}
	w.held = known && w.sweep > 0 && w.sweep == p.sweeps && w.urgent == 0 && !p.slow()
	p.putDue(w, now)
	p.put(w)
}

// putDue sets when a watch is due, if nothing special has happened.
func (p *plan) putDue(w *watch, now time.Duration) {
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

// leave removes a meeting that nobody awaits any more.
func (p *plan) leave(w *watch) {
	p.change(w)
	w.awaited, w.held, w.rarely, w.failed, w.passing = false, false, 0, 0, 0
	p.awaited--
}

// stop forgets the requests under way and the window, because nobody waits any more.
func (p *plan) stop() {
	p.polling = 0
	p.window = window{sweeps: p.sweeps + 1, began: -never}
}

// requests returns how many requests a cycle takes.
func (p *plan) requests() int {
	return p.alone + p.polling + p.heldNew/perPage + p.pages()
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
	underway := p.polling
	if p.reading {
		underway++
	}
	if p.awaited+p.followers == 0 || underway >= maxPolls || p.streak > 0 && underway > 0 {
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
	p.change(w)
	w.getting = true
	p.polling++
	return decision{get: w}
}

// got records a good response about one meeting alone, to a GET of the plan or to a call of the user. Its request was sent at
// sentAt; rarely is at least how long the meeting may wait for the next one.
func (p *plan) got(w *watch, now, sentAt, maxAge, rarely time.Duration) {
	p.change(w)
	w.free = max(w.free, now+min(max(interval, maxAge), maxAsked))
	if sentAt >= w.urgent {
		w.urgent = 0
	}
	p.saw(w, now, rarely)
	p.putDue(w, now)
	p.put(w)
}

// saw records that a response showed a meeting.
func (p *plan) saw(w *watch, now, rarely time.Duration) {
	w.seen, w.failed, w.passing, w.rarely, w.fresh = now, 0, 0, 0, false
	if rarely > p.cycle() {
		w.rarely = rarely
	}
}

// hurry makes a meeting due that need not be looked at rarely any more.
func (p *plan) hurry(w *watch, now time.Duration) {
	p.change(w)
	w.rarely = 0
	p.putDue(w, now)
	p.put(w)
}

// ask makes a GET of a meeting necessary that no page replaces. at once means even within its interval.
func (p *plan) ask(w *watch, now time.Duration, atOnce bool) {
	p.change(w)
	if w.urgent, w.held = now, false; atOnce {
		w.free = now
	}
	p.putDue(w, now)
	p.put(w)
}

// getEnded records that a GET has ended, whatever its outcome.
func (p *plan) getEnded(w *watch, now time.Duration) {
	p.polling--
	w.getting = false
	p.putDue(w, now)
	p.put(w)
}

// works records that the service works: it has answered, even if with a rejection.
func (p *plan) works() { p.streak, p.passing = 0, 0 }

// getFailed records the failure of a GET, after getEnded. A 429 leaves the meeting due, behind what is due already. After
// another failure the same GET comes later each time, because others need not suffer from a meeting that always fails.
func (p *plan) getFailed(w *watch, now time.Duration, f *Failure) {
	p.change(w)
	if f.Kind == RateLimited {
		p.limited, p.getsGood = 0, 0
		if !w.held {
			w.due = now
		}
		p.put(w)
		return
	}
	w.failed++
	w.fresh = false
	w.free = now + max(interval, min(f.RetryAfter, maxAsked))
	delay := interval
	if f.Kind == Transient {
		delay = min(interval<<min(w.failed-1, 4), maxAsked)
	} else if w.passing == 0 {
		w.passing = now
	}
	if f.Kind == Passing && p.passing == 0 {
		p.passing = now
	}
	if !w.held {
		w.due = max(w.free, now+delay)
	}
	p.put(w)
	p.failed(now, f.RetryAfter)
}

// failed records the failure of a request. Several in a row are an outage: then requests pause, longer after each failure.
func (p *plan) failed(now, retryAfter time.Duration) {
	if p.streak++; p.streak >= several {
		p.until = now + max(min(time.Second<<min(p.streak-several, 10), maxPause), min(retryAfter, maxAsked))
	}
}

// hopeless reports whether a meeting has had no good response for too long, while failures came that are not transient:
// its own, or those of all requests.
func (p *plan) hopeless(w *watch, now time.Duration) bool {
	own := w.passing > 0 && now-w.passing >= passesIn
	return own || p.passing > 0 && now-max(p.passing, w.joined, w.seen) >= passesIn
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
	w := x.(*watch)
	*h = append(*h, w)
	w.place = int32(len(*h))
}

// Pop is for container/heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.place = 0
	return w
}
