package poll

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"
)

// minPollInterval is the shortest time between two polls of a meeting. The interface
// asks for 30 seconds; the rest makes up for inexact clocks.
const (
	minPollInterval = 30*time.Second + time.Millisecond/2
	maxMaxAge       = 5 * time.Minute // the longest that Cache-Control can make it

	leastPace = 4   // requests a second: the pacer is no slower, except after a 429
	steady    = 330 // up to this many requests fit into one minimum poll interval

	maxPolls = 64               // polls under way at a time
	crowd    = 32               // newcomers that wait for a search
	few      = 5                // newcomers polled at once; more are worth a search
	gather   = time.Second / 50 // time for a crowd to assemble

	never time.Duration = math.MaxInt64 / 2
)

// plan decides which request to make next. It is pure: it has no clock, lock, goroutine or
// network. The Poller calls decide before each request and reports each outcome.
//
// Every awaited meeting is shown by a page of the listing, if the plan knows a stretch of
// pages that pays off (stretch.go), or else by its own poll. Both share one pacer.
type plan struct {
	watches map[string]*watch // meetings with waiters or a fresh snapshot
	random  *rand.Rand
	pacer   pacer

	waiting  int                 // watches with waiters, and followers
	due      [4]dueHeap          // by role; idle's stays empty
	polling  int                 // polls under way
	pollLast bool                // the last request was a poll
	crowded  bool                // a crowd of newcomers waits for a search
	failures map[*watch]failures // failed polls in a row

	rejected     int  // requests in a row whose key the service rejected
	pollRejected bool // a poll is among them

	listing
}

// role says how a watch is polled.
type role uint8

const (
	idle     role = iota // nobody waits
	newcomer             // not shown since it joined, or lost: polled when due, but a crowd waits for a search
	single               // polled when due
	member               // shown by the pages of a stretch; polled only if these fail
)

func newPlan(random *rand.Rand) plan {
	return plan{watches: make(map[string]*watch), random: random, failures: make(map[*watch]failures),
		pacer: pacer{share: 1}, listing: newListing()}
}

// join adds a watch that got its first waiter. It is due now, or at the end of its minimum
// poll interval. fresh means that the waiter knows the last snapshot. Then a watch that has just
// left is a member of its stretch again.
func (p *plan) join(w *watch, now time.Duration, fresh bool) {
	p.waiting++
	w.due = max(w.free, now)
	if fresh {
		w.due = max(w.free, w.seen+max(minPollInterval, w.interval()))
	}
	if fresh && w.stretch != nil {
		p.setRole(w, member)
		p.hurry(w, w.interval())
		return
	}
	w.stretch = nil
	p.unsearched[w] = true
	p.setRole(w, newcomer)
	if p.scan.kind == freshScan && len(p.unsearched) <= few { // only a crowd waits for the next search
		p.setRole(w, single)
	}
}

// leave removes a watch that has lost its last waiter.
func (p *plan) leave(w *watch) {
	delete(p.failures, w)
	delete(p.unsearched, w)
	if w.role == newcomer && p.scan.kind == freshScan {
		p.scan.left--
		p.scan.excess--
	}
	p.setRole(w, idle)
	p.waiterGone()
}

// waiterGone counts one awaited meeting, or one follower, less.
func (p *plan) waiterGone() {
	if p.waiting--; p.waiting == 0 { // the Poller drops the requests under way
		p.listing, p.polling = newListing(), 0
		for _, w := range p.watches {
			w.stretch = nil
		}
	}
}

// setRole gives a watch its role, and so its heap.
func (p *plan) setRole(w *watch, r role) {
	if w.place > 0 {
		heap.Remove(&p.due[w.role], int(w.place-1))
	}
	if w.role = r; r != idle && !w.polling { // a poll under way: pollEnded will push it
		heap.Push(&p.due[r], w)
	}
}

// setDue sets when a watch is due.
func (p *plan) setDue(w *watch, due time.Duration) {
	if w.due = due; w.place > 0 {
		heap.Fix(&p.due[w.role], int(w.place-1))
	}
}

// requests returns how many requests a cycle takes.
func (p *plan) requests() int {
	newcomers := len(p.due[newcomer])
	if p.crowded {
		newcomers /= pageSize // pages probably show them
	}
	return len(p.due[single]) + p.polling + newcomers + p.pages()
}

// cycle returns the time in which every meeting is shown once. Beyond steady, twice the
// requests make it √2 longer and the pace √2 higher.
func (p *plan) cycle() time.Duration { return cycleOf(p.requests()) }

func cycleOf(requests int) time.Duration {
	return time.Duration(float64(minPollInterval) * math.Sqrt(max(1, float64(requests)/steady)))
}

// jittered adds up to a 32nd of the minimum poll interval at random. It never subtracts.
func (p *plan) jittered(d time.Duration) time.Duration {
	return d + time.Duration(p.random.Int64N(int64(minPollInterval/32)))
}

// decision is the request to make now: a poll, a page, or neither.
type decision struct {
	poll   *watch
	page   bool
	cursor string        // of the page
	wake   time.Duration // if neither, when to decide again
}

// decide returns the request to make now. If both kinds are due, they alternate. A page after a poll
// goes ahead of the pacer, which then waits longer: pages show more, and a slow one delays the next.
func (p *plan) decide(now time.Duration) decision {
	if p.waiting == 0 {
		return decision{wake: never}
	}
	if p.pacer.until > now {
		return decision{wake: p.pacer.until}
	}
	if p.pacer.out() && (p.polling > 0 || p.reading) { // one request at a time finds out whether it is over
		return decision{wake: never}
	}
	fewAt := p.fewAt()
	if fewAt <= now {
		return decision{poll: p.takePoll(newcomer, now)}
	}
	pageAt := p.nextPage(now)
	if p.pacer.slot > now && (pageAt > now || !p.pollLast) {
		return decision{wake: min(p.pacer.slot, fewAt)}
	}
	r, pollAt := p.nextPoll(now)
	if pageAt > now && pollAt > now {
		return decision{wake: min(pageAt, pollAt)}
	}
	p.pacer.use(now, max(leastPace, float64(p.requests())/p.cycle().Seconds()))
	if pageAt <= now && (pollAt > now || p.pollLast) {
		p.reading, p.pollLast = true, false
		return decision{page: true, cursor: p.scan.cursor}
	}
	p.pollLast = true
	return decision{poll: p.takePoll(r, now)}
}

// fewAt returns when to poll a newcomer ahead of the pacer: soon, if there are only a few.
func (p *plan) fewAt() time.Duration {
	newcomers := p.due[newcomer]
	if n := len(newcomers); n == 0 || n+p.polling > few || newcomers[0].seen > 0 {
		return never
	}
	return newcomers[0].due + gather
}

// nextPoll returns the role whose first watch to poll next, and when. Members wait for their page,
// and a crowd of newcomers for the search.
func (p *plan) nextPoll(now time.Duration) (role, time.Duration) {
	if p.polling >= maxPolls {
		return idle, never
	}
	r, at := single, p.due[single].firstDue()
	if membersAt := p.patience(p.due[member].firstDue()); membersAt < at {
		r, at = member, membersAt
	}
	newcomers := p.due[newcomer]
	newcomersAt := newcomers.firstDue()
	if p.crowded = len(newcomers) >= crowd && p.searching(); p.crowded {
		newcomersAt = p.patience(newcomersAt)
		p.crowded = newcomersAt > now
	}
	if newcomersAt < at {
		r, at = newcomer, newcomersAt
	}
	return r, at
}

// patience returns until when watches that are due wait for pages that may show them: while pages
// arrive, but not much longer than a cycle of polls would take. While 429s slow both down, they
// wait on.
func (p *plan) patience(due time.Duration) time.Duration {
	until := max(due, p.arrived, p.pacer.until) + stuck
	if p.pacer.share == 1 {
		until = min(until, due+max(stuck, cycleOf(3*p.waiting)-minPollInterval))
	}
	return until
}

// takePoll returns the first watch with this role, and expects its poll. Polls earn credit for the search.
func (p *plan) takePoll(r role, now time.Duration) *watch {
	w := heap.Pop(&p.due[r]).(*watch)
	if r == single {
		p.credit += 1.0 / searchShare
	}
	p.polling++
	w.polling, w.confirm = true, false
	w.free = now + minPollInterval // also if its response never arrives
	return w
}

// recorded records that a request showed a watch.
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

// pollNow makes a watch due now, even within its minimum poll interval.
func (p *plan) pollNow(w *watch, now time.Duration) {
	w.free = now
	if w.role == member {
		p.setRole(w, single)
	}
	p.setDue(w, now)
}

// hurry makes a watch due earlier if a new waiter, with this interval, wants that.
func (p *plan) hurry(w *watch, interval time.Duration) {
	p.setDue(w, min(w.due, max(w.free, w.seen+max(minPollInterval, interval))))
	if w.role == member && w.due < w.stretch.due-p.cycle()/2 {
		p.setRole(w, single)
	}
}

// pollEnded records the end of a poll.
func (p *plan) pollEnded(w *watch) {
	p.polling--
	w.polling = false
	p.setRole(w, w.role)
}

// polled records a good response to a poll; maxAge is from its Cache-Control.
func (p *plan) polled(w *watch, now, maxAge time.Duration) {
	p.pollEnded(w)
	p.works(now)
	w.free = now + min(max(minPollInterval, maxAge), maxMaxAge)
	p.recorded(w, now)
}

// pollRateLimited records a 429 to a poll. The poll does not count: the watch stays due.
func (p *plan) pollRateLimited(w *watch, now, sentAt, retryAfter time.Duration) {
	p.pollEnded(w)
	p.pacer.rateLimited(now, sentAt, retryAfter)
	w.free = now
}

// pollPutOff records a poll that was not sent, since another process has just made one.
func (p *plan) pollPutOff(w *watch, now, wait time.Duration) {
	p.pollEnded(w)
	w.free = now + wait
	p.setDue(w, now+p.jittered(wait))
}

// pollFailed records a poll that failed. It returns the watches whose waits end by that.
func (p *plan) pollFailed(w *watch, now, sentAt, retryAfter time.Duration) (ended []*watch) {
	p.pollEnded(w)
	w.free = now + max(minPollInterval, min(retryAfter, maxOutage))
	p.setDue(w, max(w.free, now+p.jittered(max(p.cycle(), w.interval()))))
	return p.countFailures(w, now, p.pacer.fail(w, now, sentAt, retryAfter))
}
