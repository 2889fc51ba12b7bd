package poll

import (
	"container/heap"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

const (
	// few: fewer meetings begin no sweep, unless one of them is expected already or a Discovery needs
	// the page.
	few = 5
	// lookAhead is for how many meetings that a sweep has not shown it reads one page beyond the
	// window.
	lookAhead = 8
	// lookAgain is how often a sweep does so for meetings, too, that the sweeps before have sought in
	// vain.
	lookAgain = 15 * time.Minute
	// usedUp is the longest time for which a quota that is used up rejects all requests. Longer
	// 429s to pages, and none to a GET meanwhile, mean that the list is limited and GETs are not.
	usedUp = time.Minute
	// proof is how many good GETs mean the same earlier, after a few 429s in a row to pages.
	proof = 4
	// unchecked is how long pages may put off the GETs of a meeting until one of them checks the pages.
	unchecked = 5 * time.Minute
	// contradictions is how many pages in a row that are older than what a GET has shown mean that the list
	// stands still, or is half a minute or more behind.
	contradictions = 2
	// withoutPages is for how long GETs replace pages once it is clear that the list is limited, or that
	// it stands still.
	withoutPages = 5 * time.Minute

	firstPage = ""
)

// window is the pages at the top of the list that are worth reading, because together they save more
// GETs than they cost. A sweep reads them once a cycle, and some pages beyond, so that the window can
// grow. The meetings on the pages of the window become expected: they have no GET until a sweep has
// ended without showing them. Every sweep ends, so no meeting is forgotten. A list may lag behind, or
// stand still. So after each sweep, one meeting that pages have put off has a GET nevertheless.
type window struct {
	// depth is how many pages the window has.
	depth int
	// began is when the latest sweep began.
	began time.Duration
	// sweepAlways means that a Discovery needs a sweep in each cycle.
	sweepAlways bool

	// sweep is under way. It is nil between two sweeps.
	sweep *sweep
	// lookedAt is when the last sweep began that looked further for all that it sought.
	lookedAt time.Duration
	// reading means that its next page is under way.
	reading bool
	// pageFailures is how many requests for that page have failed in a row.
	pageFailures int
	// failingSince is when the first of these failed.
	failingSince time.Duration
	// goodGETs is how many GETs have succeeded since then.
	goodGETs int
	// pageGot429 means that the last of these got a 429.
	pageGot429 bool
	// retryAt is the earliest time of the next page after a failure.
	retryAt time.Duration
	// trustedAt is when pages put off GETs again.
	trustedAt time.Duration
}

// sweep is one reading of the list, from the top.
type sweep struct {
	// cursor is that of the next page.
	cursor string
	// pages is how many have been read.
	pages int
	// paid is the number of the last page up to which the sweep has paid for itself.
	paid int
	// saved is how many GETs the pages below that one save. These pages have not paid for themselves
	// yet.
	saved int
	// stillSought is how many meetings no page of this sweep has shown yet.
	stillSought int
	// inVain is how many of these, at its beginning, an earlier sweep had sought and not shown. It is 0
	// if the sweep looks further for them, too.
	inVain int
	// spent is the time from requests for pages to their responses.
	spent time.Duration
}

// pageAt returns when the next page may be requested, or the constant never if that would save
// nothing.
func (p *plan) pageAt(now time.Duration) time.Duration {
	switch {
	case p.reading: // one page at a time
		return never
	case p.sweep != nil: // the sweep goes on
		return p.retryAt
	case p.expected > 0 || p.sweepAlways: // a sweep begins once a cycle
		return max(p.retryAt, p.began+p.cycle(now))
	case p.awaited >= few && len(p.queue) > 0: // likewise, but not before a GET is due, which it may save
		return max(p.retryAt, p.trustedAt, p.began+p.cycle(now), p.queue[0].dueAt)
	}
	return never
}

// beginSweep begins a sweep, which should show all meetings that have no GET under way and are not
// polled rarely.
func (p *plan) beginSweep(now time.Duration) {
	p.sweep = new(sweep)
	p.began = now
	for _, w := range p.queue {
		p.seek(w, now)
	}
	if p.sweep.inVain == 0 || now-p.lookedAt >= lookAgain {
		p.sweep.inVain = 0
		p.lookedAt = now
	}
}

// seek makes the sweep under way, if there is one, look for a meeting, unless the meeting is polled
// rarely.
func (p *plan) seek(w *watch, now time.Duration) {
	if p.sweep != nil && w.sought != p.sweep && (w.state == expected || p.everyCycle(w, now)) {
		if w.sought != nil {
			p.sweep.inVain++
		}
		w.sought = p.sweep
		p.sweep.stillSought++
	}
}

// found ends the search for a meeting: a page has shown it, or nobody awaits it any more.
func (p *plan) found(w *watch) {
	if p.sweep != nil && w.sought == p.sweep {
		p.sweep.stillSought--
	}
	w.sought = nil
}

// listPage is a page that was read.
type listPage struct {
	// sentAt is when its request was sent.
	sentAt time.Duration
	// shown are the meetings on it that the Poller knows.
	shown []*watch
	// discovered is how many unfinished meetings on it are new to a Discovery. They count like
	// awaited ones.
	discovered int
	// next is the cursor of the next page. It is empty on the last page.
	next string
	// wantsNext means that a Discovery wants the next page.
	wantsNext bool
}

// pageRead passes on a page that was read.
func (p *plan) pageRead(now time.Duration, page listPage) {
	p.works()
	p.reading = false
	p.pageFailures = 0
	p.retryAt = 0
	s := p.sweep
	s.cursor = page.next
	s.pages++
	s.spent += now - page.sentAt
	trusted := now >= p.trustedAt
	if !trusted {
		page.shown = nil
	}
	p.countSavings(now, page)
	for _, w := range page.shown {
		p.onPage(w, now, s.pages <= p.depth)
	}
	// With one page more, would the sweep take much longer than polling each meeting? Then it ends.
	// If a Discovery needs it, it goes on, but no meeting waits for it.
	slow := s.spent+s.spent/time.Duration(s.pages) > cycleOf(p.awaited)*6/5
	// One page, if any, is enough for meetings that sink slowly, and for those sought in vain.
	further := max(min(s.stillSought/lookAhead, 1), (s.stillSought-s.inVain)/lookAhead)
	enough := slow || !trusted || s.pages >= p.depth+further
	switch {
	case page.next == "" || enough && !page.wantsNext:
		p.depth = s.paid
		p.endSweep(now)
	case slow:
		p.fallDue(now, func(*watch) bool { return true })
	}
}

// countSavings adds a page to the window if the pages since the last one that paid, together, save
// more GETs than they cost. A meeting counts only once in a sweep, so a list that repeats itself for
// ever does not pay for ever.
func (p *plan) countSavings(now time.Duration, page listPage) {
	s := p.sweep
	s.saved += page.discovered
	for _, w := range page.shown {
		if w.sought == s && p.everyCycle(w, now) {
			s.saved++
		}
	}
	cost := s.pages - s.paid
	if p.sweepAlways && s.paid == 0 { // the first page is read in any case
		cost--
	}
	if s.saved > cost {
		s.paid = s.pages
		s.saved = 0
		p.depth = max(p.depth, s.paid)
	}
}

// onPage notes that a page has shown a meeting. It puts the GET off, unless somebody has asked for
// one.
func (p *plan) onPage(w *watch, now time.Duration, inWindow bool) {
	p.found(w)
	w.wasSeen(now)
	if w.asked > 0 {
		return
	}
	switch {
	case w.state == underWay: // it stays so; the time below only counts after a 429 or without a GET
	case inWindow:
		p.enter(w, expected)
	default:
		p.enter(w, due)
	}
	p.schedule(w, p.nextGET(w, now))
}

// endSweep ends the sweep. The expected meetings that it has not shown fall due. To check what pages
// show, so does the meeting whose last GET is the oldest, expected or not: pages beyond the window put
// GETs off as well.
func (p *plan) endSweep(now time.Duration) {
	p.fallDue(now, func(w *watch) bool { return w.sought == p.sweep })
	p.sweep = nil
	var check *watch
	for _, w := range p.queue {
		old := w.notBefore <= now-max(unchecked, w.mayWait)
		if old && (check == nil || w.notBefore < check.notBefore) {
			check = w
		}
	}
	if check != nil {
		p.ask(check, now, 1, false) // 1: the next response to any GET will do
	}
}

// distrust lets no page put off a GET for a while, because several pages in a row were older than what
// GETs have shown.
func (p *plan) distrust(now time.Duration) {
	p.trustedAt = now + withoutPages
	p.fallDue(now, func(*watch) bool { return true })
}

// fallDue makes the GETs of some of the expected meetings due.
func (p *plan) fallDue(now time.Duration, which func(*watch) bool) {
	for _, w := range p.queue {
		if w.state == expected && which(w) {
			p.enter(w, due)
			w.dueAt = p.nextGET(w, now)
		}
	}
	heap.Init(&p.queue)
}

// pageFailed passes on a page that failed. The same page is requested again, later each time.
// Several failures end the sweep, and so does a rejection, because its cursor has probably expired.
// GETs go on meanwhile. After a 429 the page is due again at once, or after its Retry-After: 429s
// pause all requests (in internal/rest), and GETs instead of pages would only make the overload
// worse.
func (p *plan) pageFailed(now time.Duration, f *Failure) {
	p.reading = false
	if p.pageFailures == 0 {
		p.failingSince = now
		p.goodGETs = 0
	}
	p.pageFailures++
	p.pageGot429 = f.Kind == failure.RateLimited
	ends := p.pageFailures >= inARow
	delay := backoff(p.pageFailures-1, maxPause)
	switch {
	case p.pageGot429:
		ends = now-p.failingSince > usedUp || p.pageFailures >= inARow && p.goodGETs >= proof
		delay = 0
		if ends {
			delay = withoutPages
		}
	case f.ends() == failure.AtOnce:
		ends = true
		p.works()
	default:
		// Even a foreign failure, because a page is not about one meeting. If only the list fails,
		// the next good GET ends the row, and a Retry-After of the list must not stop GETs.
		p.failed(now, 0)
	}
	p.retryAt = now + max(delay, min(f.RetryAfter, MaxAsked))
	if ends {
		p.endSweep(now)
	}
}
