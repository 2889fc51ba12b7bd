package poll

import (
	"math"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

const (
	// Interval is the time between two GETs of a meeting. The half millisecond is for inexact
	// clocks.
	Interval = 30*time.Second + time.Millisecond/2
	// MaxAsked is the longest max-age or Retry-After that is obeyed, apart from that of a 429, for which
	// internal/rest pauses all requests.
	MaxAsked = 5 * time.Minute
	// Hopeless is how long a wait lasts while nothing but foreign failures comes.
	Hopeless = 10 * time.Minute
	// maxPhase is the longest phase of a Poller.
	maxPhase = 9 * time.Second
	// stuckAfter is how long a meeting with audio stays unchanged until it may be polled rarely.
	stuckAfter = 6 * time.Hour
	// maxPause is the longest pause in an outage.
	maxPause = 30 * time.Second
	// inARow is how many failures in a row are more than an accident.
	inARow = 3
	// headStart is how far in the past the first GET of a newcomer is due.
	headStart = Interval
	// perInterval is how many requests fit into one interval. If more are due, cycles get longer.
	perInterval = 330
	// leastPace is how many requests a second are always allowed.
	leastPace = 8
	// maxPolls is how many GETs may be under way at a time.
	maxPolls = 32

	never = time.Duration(math.MaxInt64 / 2)
)

// plan decides which request comes next. It has no clock, lock, goroutine or network, so a test can
// drive it through any history. All its times are those of the Poller's clock, which is never 0.
type plan struct {
	// queue holds every awaited meeting unless its GET is under way.
	queue queue
	// expected is how many of these are in the state expected.
	expected int
	// awaited is how many meetings somebody waits for.
	awaited int
	// polling is how many GETs are under way.
	polling int
	// window is what the plan knows of the list, such as the sweep under way.
	window

	// phase makes each of the first two cycles longer, so that Clients that begin together do not
	// stay in step.
	phase time.Duration
	// phaseEnds is when these cycles are over.
	phaseEnds time.Duration
	// pacedUntil is the earliest time of the next request that keeps the pace.
	pacedUntil time.Duration
	// pausedUntil is the end of a pause in an outage.
	pausedUntil time.Duration
	// lastGET means that the last request was a GET, and not a page.
	lastGET bool
	// failures is how many requests have failed in a row. Neither a 429 nor a rejection counts, nor
	// does a foreign failure of a GET.
	failures int
}

// requests returns how many requests a cycle takes, apart from the pages beyond the window.
func (p *plan) requests() int { return len(p.queue) - p.expected + p.polling + p.depth }

// cycle returns the time in which every meeting should be seen once.
func (p *plan) cycle(now time.Duration) time.Duration {
	cycle := cycleOf(p.requests())
	if now < p.phaseEnds {
		cycle += p.phase
	}
	return cycle
}

// cycleOf returns the length of a cycle with this many requests. Beyond perInterval, twice the
// requests make it √2 times longer, and the pace √2 times higher: so neither the delay nor the load
// grows as fast as the number of meetings.
func cycleOf(requests int) time.Duration {
	return time.Duration(float64(Interval) * math.Sqrt(max(1, float64(requests)/perInterval)))
}

// start lets two cycles have the phase, after a time in which nobody waited.
func (p *plan) start(now time.Duration) { p.phaseEnds = now + 2*(Interval+p.phase) }

// stop forgets the window and the GETs under way, because nobody waits any more. An outage and the
// pace outlast it, because they concern the service: otherwise a program that begins one short wait
// after another would never pause. So the first GET of a new wait may come half a minute late, or
// five minutes if the service asked for that.
func (p *plan) stop() {
	p.polling = 0
	p.window = window{began: -never}
}

// join adds a wait for a meeting. lastSuffices means that the last snapshot of the meeting is good
// enough to begin with. rarely means that the wait allows the meeting to be polled rarely.
func (p *plan) join(w *watch, now time.Duration, lastSuffices, rarely bool) {
	if !rarely {
		w.mayWait = 0
	}
	if !w.awaited {
		p.awaited++
		w.awaited = true
		if w.state == expected { // a page has shown it while nobody awaited it: a Discovery read the list
			p.expected++
		}
		if !lastSuffices {
			p.seek(w, now)
			if w.state != underWay {
				p.enter(w, newcomer)
			}
		}
	}
	p.hasten(w, now)
}

// hasten makes the next GET of a meeting due earlier, if that follows from its state. A GET that is
// planned for an earlier time keeps its place in the queue.
func (p *plan) hasten(w *watch, now time.Duration) {
	next := p.nextGET(w, now)
	if w.place > 0 {
		next = min(next, w.dueAt)
	}
	p.schedule(w, next)
}

// leave removes a meeting that nobody awaits any more.
func (p *plan) leave(w *watch) {
	p.unschedule(w)
	if w.state != underWay {
		p.enter(w, due)
	}
	w.awaited = false
	w.getFailures = 0
	w.foreignSince = 0
	p.awaited--
	p.found(w)
}

// decision is the request to make now: a GET, a page, or neither.
type decision struct {
	get    *watch
	page   bool
	cursor string        // of the page
	wake   time.Duration // if neither, when to decide again
}

// decide decides which request to make now. If a page and a GET are due they alternate, so that
// neither keeps the other from being made. If it wakes never, the end of a request, or whatever
// else changes the plan, makes the Poller decide again.
func (p *plan) decide(now time.Duration) decision {
	switch {
	case p.polling >= maxPolls:
		return decision{wake: never}
	case p.failures > 0 && (p.polling > 0 || p.reading):
		// After a failure, one request at a time finds out whether requests work again.
		return decision{wake: never}
	}
	pageAt := p.pageAt(now) // never for fewer than five waits, unless some are expected: see window.go
	getAt := never
	if len(p.queue) > 0 {
		getAt = p.queue[0].dueAt
	}
	at := max(p.pacedUntil, p.pausedUntil, min(pageAt, getAt))
	if at > now {
		return decision{wake: at}
	}
	pace := max(leastPace, float64(p.requests())/p.cycle(now).Seconds())
	p.pacedUntil = now + time.Duration(float64(time.Second)/pace)
	pageDue := pageAt <= now
	getDue := getAt <= now
	get := getDue && !(pageDue && p.lastGET)
	p.lastGET = get
	if !get {
		if p.sweep == nil {
			p.beginSweep(now)
		}
		p.reading = true
		return decision{page: true, cursor: p.sweep.cursor}
	}
	w := p.queue[0]
	p.unschedule(w)
	p.enter(w, underWay)
	p.polling++
	return decision{get: w}
}

// ask makes a GET of a meeting necessary that no page replaces, with this number or a higher one.
// atOnce means even within the interval.
func (p *plan) ask(w *watch, now time.Duration, number int64, atOnce bool) {
	if w.state == expected {
		p.enter(w, due)
	}
	if atOnce {
		w.notBefore = min(w.notBefore, now)
	}
	w.asked = number
	p.hasten(w, now)
}

// works ends an outage, because there was a good response.
func (p *plan) works() {
	p.failures = 0
	p.pausedUntil = 0
}

// got takes a good response about one meeting alone, to a request with this number: to a GET,
// after getEnded, or to the user's own request.
func (p *plan) got(w *watch, now time.Duration, number int64, maxAge time.Duration) {
	p.works()
	p.goodGETs++
	w.gotAt = now
	w.notBefore = max(w.notBefore, now+min(max(Interval, maxAge), MaxAsked))
	if number >= w.asked {
		w.asked = 0
	}
	w.wasSeen(now)
	if w.state != underWay {
		p.enter(w, due)
	}
	p.schedule(w, p.nextGET(w, now))
}

// getEnded notes that a GET has ended, whatever its outcome. Its old dueAt keeps the meeting's
// place before those that are due later.
func (p *plan) getEnded(w *watch) {
	p.polling--
	p.enter(w, due)
	p.schedule(w, w.dueAt)
}

// getFailed passes on the failure of a GET, after getEnded, unless the key was rejected: that ends
// all waits. It ends the wait if the service rejects the request, if the meeting is gone, or if
// foreign failures have lasted too long.
func (p *plan) getFailed(w *watch, now time.Duration, f *Failure) (ends bool) {
	if f.ends() != failure.Later {
		w.foreignSince = 0
	}
	switch {
	case f.ends() == failure.AtOnce: // the service works, and its answer counts as a poll
		p.works()
		w.notBefore = max(w.notBefore, now+Interval)
		ends = f.Kind != failure.Gone || !w.shownLately(now)
		if !ends { // the next GET decides
			p.schedule(w, w.notBefore)
		}
		return ends
	case f.Kind == failure.RateLimited: // it stays due with its old time: internal/rest delays all requests after a 429
		if p.pageGot429 { // and now a GET as well, so it is not the list alone that is limited
			p.pageFailures = 0
			p.retryAt = 0
		}
		return false
	case f.ends() == failure.Never, f.ends() == failure.AllLater:
		p.failed(now, f.RetryAfter)
	default: // foreign, and not an outage: it may concern only this meeting, so it does not slow the others down
		if w.foreignSince == 0 {
			w.foreignSince = now
		}
		ends = now-w.foreignSince >= Hopeless
	}
	w.getFailures++
	w.notBefore = max(w.notBefore, now+max(Interval, min(f.RetryAfter, MaxAsked)))
	p.schedule(w, w.notBefore)
	return ends
}

// failed counts the failure of a request. Several in a row are an outage: then requests pause,
// longer after each failure.
func (p *plan) failed(now, retryAfter time.Duration) {
	p.failures++
	if p.failures >= inARow {
		p.pausedUntil = now + max(backoff(p.failures-inARow, maxPause), min(retryAfter, MaxAsked))
	}
}

// backoff doubles from a second on with each failure.
func backoff(failures int, most time.Duration) time.Duration {
	return min(time.Second<<min(failures, 10), most)
}
