package poll

import (
	"container/heap"
	"time"
)

// window is the window of pages at the top of the list, where awaited meetings nearly always are. Once a cycle, a sweep reads
// it: as many pages as paid in the last sweep, or pay now, and a few more, so that it can grow. A page pays if it saves GETs.
// A sweep always ends, so the meetings held for it are never forgotten.
//
// A crowd of newcomers is looked for at the top, without ending the sweep that is under way further down.
type window struct {
	sweeps    int           // number of the latest sweep
	began     time.Duration // when it began
	depth     int           // pages up to the last one that paid, in the last sweep that ended
	joined    int           // newcomers since the latest sweep began
	followers int           // each needs a sweep every cycle
	soon      bool          // the next sweep begins as soon as possible

	sweep, look *pass // under way; nil if none
	reading     bool  // a page is under way
	fails       int   // requests for the next page that failed in a row
	limited     int   // 429s to pages in a row,
	getsGood    int   // and GETs that succeeded meanwhile; a 429 to one resets both
	retryAt     time.Duration
}

// pass is a way down the list.
type pass struct {
	cursor string        // of the next page
	page   int           // pages read
	paid   int           // pages up to the last one that paid
	spent  time.Duration // from requests for pages to their responses
}

// next returns how long the pages will have taken after the next one.
func (s *pass) next() time.Duration { return s.spent + s.spent/time.Duration(max(1, s.page)) }

// pass returns the pass whose next page comes next.
func (l *window) pass() *pass {
	if l.look != nil {
		return l.look
	}
	return l.sweep
}

// pages returns how many pages a cycle takes.
func (l *window) pages() int {
	n := 0
	if l.depth > 0 {
		n = l.depth + beyond
	}
	if l.sweep != nil {
		n = max(n, l.sweep.page)
	}
	return n
}

// nextPage returns when the next page may be requested. It begins passes.
func (p *plan) nextPage(now time.Duration) time.Duration {
	if p.reading {
		return never
	}
	if p.newcomers >= crowd && p.look == nil && p.fails == 0 {
		p.hold()
		if p.sweep == nil && now >= p.began+p.cycle()/2 {
			p.soon = true
		} else {
			p.look = &pass{}
		}
	}
	if p.pass() == nil {
		at := p.sweepAt()
		if at > now || p.retryAt > now {
			return max(at, p.retryAt)
		}
		p.sweeps++
		p.sweep, p.began, p.joined, p.soon = &pass{}, now, 0, false
	}
	return p.retryAt
}

// sweepAt returns when the next sweep begins, or never if none would pay.
func (p *plan) sweepAt() time.Duration {
	switch {
	case p.soon:
		return 0
	case p.depth > 0 || p.joined >= fewJoined || p.held > 0 || p.followers > 0:
		return p.began + p.cycle()
	}
	return never
}

// hold lets the newcomers wait until pages have been read.
func (p *plan) hold() {
	for _, w := range p.due {
		if w.fresh && !w.held && w.urgent == 0 {
			p.count(w, -1)
			w.held, w.due = true, never
			p.count(w, 1)
		}
	}
	heap.Init(&p.due)
}

// release makes held meetings due that have not been shown since the given sweep: newcomers among them, or all.
func (p *plan) release(now time.Duration, since int, all bool) {
	for _, w := range p.due {
		if w.held && (w.fresh || all) && w.sweep < since {
			p.count(w, -1)
			w.held, w.fresh = false, false
			p.count(w, 1)
			p.putDue(w, now)
		}
	}
	heap.Init(&p.due)
}

// slow reports whether the sweep takes so long that GETs are better. Then it holds nothing.
func (p *plan) slow() bool { return p.sweep != nil && p.sweep.next() > cycleOf(p.awaited)*9/8 }

// probe makes a held meeting due. Its GET tells whether only the list answers 429.
func (p *plan) probe(now time.Duration) {
	if n := len(p.due); n > 0 && p.due[n-1].held {
		w := p.due[n-1]
		p.change(w)
		w.held, w.fresh, w.due = false, false, max(w.free, now)
		p.put(w)
	}
}

// shown is an awaited meeting on a page.
type shown struct {
	*watch
	rarely time.Duration // at least so long until the next look at it
}

// pageRead records a page, whose request was sent at sentAt, and the awaited meetings that it shows. found is the number of
// unfinished meetings that are new to a follower; they pay like awaited ones. more means that a follower wants the next page.
func (p *plan) pageRead(now, sentAt time.Duration, page []shown, found int, next string, more bool) {
	p.works()
	p.reading, p.fails, p.limited, p.getsGood, p.retryAt = false, 0, 0, 0, 0
	s := p.pass()
	gain := found
	for _, w := range page {
		if w.rarely <= p.cycle() && (w.fresh || p.look == nil && w.sweep < p.sweeps) {
			gain++
		}
	}
	s.page++
	s.cursor, s.spent = next, s.spent+now-sentAt
	if gain >= pays {
		s.paid = s.page
	}
	for _, w := range page {
		p.pageShowed(w, now, s.page <= max(s.paid, p.depth) || p.look != nil && w.held)
	}
	depth := s.paid
	if p.look == nil {
		depth = max(depth, p.depth)
	}
	switch {
	case next == "" || !more && (p.slow() || s.page >= depth+beyond):
		p.endPass(now, s.paid)
	case p.slow():
		p.release(now, p.sweeps+1, true)
	}
}

// pageShowed records that a page showed a meeting. If the page is in the window, the meeting is held.
func (p *plan) pageShowed(w shown, now time.Duration, inWindow bool) {
	p.change(w.watch)
	p.saw(w.watch, now, w.rarely)
	w.sweep = p.sweeps
	if w.urgent == 0 {
		w.held = inWindow && w.watch.rarely == 0
		p.putDue(w.watch, now)
	}
	p.put(w.watch)
}

// endPass ends the present pass. depth is that of the next sweep.
func (p *plan) endPass(now time.Duration, depth int) {
	if p.look != nil {
		p.look = nil
		p.release(now, p.sweeps+1, false)
		return
	}
	if p.sweep != nil {
		p.sweep, p.depth = nil, depth
		p.release(now, p.sweeps, true)
	}
}

// giveUp ends all passes, because the list cannot be read now.
func (p *plan) giveUp(now time.Duration) {
	depth := p.depth
	if p.sweep != nil {
		depth = max(depth, p.sweep.paid)
	}
	for range 2 {
		p.endPass(now, depth)
	}
}

// pageFailed records a page that failed. The same page is requested again, later each time, and several failures end the
// passes. GETs go on meanwhile.
func (p *plan) pageFailed(now time.Duration, f *Failure) {
	p.reading = false
	switch {
	case f.Kind == RateLimited:
		p.retryAt = now + min(f.RetryAfter, maxAsked)
		if p.limited++; p.limited%4 == 0 {
			p.probe(now)
		}
		if p.limited < limitedOut || p.getsGood < 2 {
			return
		}
		p.fails = max(p.fails, 4)
	case f.Kind == Rejected && p.pass() != nil && p.pass().cursor != "": // the cursor has expired
		p.works()
		p.giveUp(now)
		return
	case f.Kind == Rejected:
		p.works()
		p.fails = max(p.fails, several-1)
	default:
		p.failed(now, 0)
	}
	p.fails++
	pause := min(time.Second<<min(p.fails-1, 10), 2*maxAsked)
	if p.retryAt = now + max(pause, min(f.RetryAfter, maxAsked)); p.fails >= several || f.Kind == RateLimited {
		p.giveUp(now)
	}
}
