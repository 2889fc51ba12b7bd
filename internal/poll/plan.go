package poll

import (
	"container/heap"
	"math"
	"time"
)

const (
	Interval  = 30*time.Second + time.Millisecond/2 // between two GETs of a meeting; the rest is for inexact clocks
	MaxAsked  = 5 * time.Minute                     // the longest max-age or Retry-After that is obeyed
	Hopeless  = 10 * time.Minute                    // of failures that may pass, and of nothing else, end a wait
	maxPause  = 30 * time.Second                    // the longest pause in an outage
	steady    = 330                                 // so many requests fit into one interval; more make cycles longer
	leastPace = 8                                   // requests a second that are always allowed
	maxPolls  = 32                                  // GETs under way at a time
	several   = 3                                   // failures in a row that are more than an accident
	never     = time.Duration(math.MaxInt64 / 2)
)

// plan decides which request comes next. It has no clock, lock, goroutine or network, so a test can drive it through
// any history. All times are the Poller's.
//
// Each awaited meeting is due for a GET at one time. A response about it alone puts that time off by a cycle. A list page
// that shows it puts it off until a sweep of the list has ended without showing it (window.go). Nothing else does.
type plan struct {
	due     dueHeap // every awaited meeting whose GET is not under way
	held    int     // so many of these have no GET, because sweeps show them
	awaited int
	polling int // GETs under way
	window

	slot    time.Duration // no request before this time, to keep the pace,
	until   time.Duration // or before this one, because requests fail
	lastGet bool          // the last request was a GET
	streak  int           // failures in a row; a rejection is none
}

// watch is what the plan knows of one meeting.
type watch struct {
	id      string
	free    time.Duration // no GET before this time
	due     time.Duration // when its GET is due; never if held
	seen    time.Duration // when a response last showed it; 0 for a newcomer
	patient time.Duration // so long it may wait for its next GET, because it has no audio yet
	urgent  int64         // it needs a GET with a higher number, which no page replaces; 0 if it does not
	passing time.Duration // when its first failure that may pass came, since it was seen; 0 if none
	failed  int           // its failures in a row
	place   int32         // in the heap, plus 1; 0 if not there
	awaited bool
	getting bool // its GET is under way
	held    bool // the next sweep probably shows it
}

// take takes a watch out of the heap. Each change of a watch is between take and put, so that order and counter are right.
func (p *plan) take(w *watch) {
	if w.place > 0 {
		heap.Remove(&p.due, int(w.place-1))
		if w.held {
			p.held--
		}
	}
}

// put puts a watch into the heap, if that is its place.
func (p *plan) put(w *watch, due time.Duration) {
	w.due = due
	if w.awaited && !w.getting {
		heap.Push(&p.due, w)
		if w.held {
			p.held++
		}
	}
}

// dueAt returns when a watch is due, if its last GET has not failed. Newcomers precede all that waits already, because
// somebody has just begun to wait, while the others have a status at least. So do those that need a GET.
func (p *plan) dueAt(w *watch, now time.Duration) time.Duration {
	switch {
	case w.held:
		return never
	case w.seen == 0 || w.urgent > 0:
		return max(w.free, now-p.cycle())
	}
	return max(w.free, w.seen+max(p.cycle(), w.patient))
}

// join adds a wait for a meeting. known means that the last snapshot of the meeting is good enough to begin with.
func (p *plan) join(w *watch, now time.Duration, known, patient bool) {
	p.take(w)
	if !w.awaited {
		w.awaited = true
		p.awaited++
		w.held = w.held && known
		if !known {
			w.seen = 0
			p.joined++
		}
	}
	if !patient {
		w.patient = 0
	}
	p.put(w, p.dueAt(w, now))
}

// leave removes a meeting that nobody awaits any more.
func (p *plan) leave(w *watch) {
	p.take(w)
	w.awaited, w.failed, w.passing = false, 0, 0
	p.awaited--
}

// stop forgets the requests under way and the window, because nobody waits any more.
func (p *plan) stop() {
	p.polling = 0
	p.window = window{began: -never}
}

// requests returns how many requests a cycle takes, apart from the pages beyond the window.
func (p *plan) requests() int { return len(p.due) - p.held + p.polling + p.depth }

// cycle returns the time in which every meeting is seen once. Beyond steady, twice the requests make it √2 times longer, and
// the pace √2 times higher: so neither the delay nor the load grows as fast as the number of meetings.
func (p *plan) cycle() time.Duration { return cycleOf(p.requests()) }

func cycleOf(requests int) time.Duration {
	return time.Duration(float64(Interval) * math.Sqrt(max(1, float64(requests)/steady)))
}

// decision is the request to make now: a GET, a page, or neither.
type decision struct {
	get    *watch
	page   bool
	cursor string        // of the page
	wake   time.Duration // if neither, when to decide again
}

// decide decides which request to make now. If a page and a GET are due they alternate, so that neither keeps the other
// from being made. After a failure, one request at a time finds out whether things work again.
func (p *plan) decide(now time.Duration) decision {
	busy := p.polling > 0 || p.reading
	if p.awaited == 0 && !p.followed || p.polling >= maxPolls || p.streak > 0 && busy {
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
		return decision{page: true, cursor: p.sweep.cursor}
	}
	w := p.due[0]
	p.take(w)
	w.getting = true
	p.polling++
	p.joined = max(0, p.joined-1)
	return decision{get: w}
}

// got records a good response about one meeting alone, to a GET of the plan or to a call of the user, which has a number.
func (p *plan) got(w *watch, now time.Duration, number int64, maxAge time.Duration) {
	p.take(w)
	p.streak = 0
	w.free = max(w.free, now+min(max(Interval, maxAge), MaxAsked))
	if number >= w.urgent {
		w.urgent = 0
	}
	w.seen, w.failed, w.passing = now, 0, 0
	p.put(w, p.dueAt(w, now))
}

// ask makes a GET of a meeting necessary that no page replaces. atOnce means even within its interval. The GET
// must have a higher number.
func (p *plan) ask(w *watch, now time.Duration, number int64, atOnce bool) {
	p.take(w)
	if w.held = false; atOnce {
		w.free = now
	}
	if w.urgent == 0 || atOnce {
		w.urgent = number
	}
	p.put(w, p.dueAt(w, now))
}

// getEnded records that a GET has ended, whatever its outcome.
func (p *plan) getEnded(w *watch, now time.Duration) {
	p.polling--
	w.getting = false
	p.put(w, p.dueAt(w, now))
}

// getFailed records the failure of a GET, after getEnded. It ends the wait if the service rejects the request, or if failures
// that are not transient have lasted too long, without a good response about the meeting.
func (p *plan) getFailed(w *watch, now time.Duration, f *Failure) (ends bool) {
	delay := Interval << min(w.failed, 4) // longer each time, so that one bad meeting takes nothing from the others
	switch f.Kind {
	case RateLimited: // the service has not looked at the request, so it stays due
		if p.limited { // not only the list is limited, so pages need not wait
			p.fails, p.retryAt = 0, 0
		}
		return false
	case Rejected: // an answer about the meeting, which counts as a poll
		p.streak, w.free = 0, max(w.free, now+Interval)
		return true
	case Transient:
		p.failed(now, f.RetryAfter)
	default: // no outage: it may be about this meeting only, so each finds out for itself
		delay = min(delay, 2*time.Minute)
		if w.passing == 0 {
			w.passing = now
		}
		ends = now-w.passing >= Hopeless
	}
	p.take(w)
	w.failed++
	w.held = false
	w.free = now + max(Interval, min(f.RetryAfter, MaxAsked))
	p.put(w, max(w.free, now+min(delay, MaxAsked)))
	return ends
}

// failed records the failure of a request. Several in a row are an outage: then requests pause, longer after each failure.
func (p *plan) failed(now, retryAfter time.Duration) {
	if p.streak++; p.streak >= several {
		p.until = now + max(backoff(p.streak-several, maxPause), min(retryAfter, MaxAsked))
	}
}

// backoff doubles from a second on with each failure.
func backoff(failures int, most time.Duration) time.Duration {
	return min(time.Second<<min(failures, 10), most)
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
