package poll

import (
	"container/heap"
	"time"
)

const (
	perPage  = 50
	crowd    = 32 // so many newcomers wait for the pages at the top of the list
	few      = 5  // so many are worth a sweep
	beyond   = 2  // a sweep reads so many pages beyond the last one that paid
	pays     = 2  // a page pays if it saves so many GETs
	probeAt  = 4  // after so many 429s to pages in a row, a GET finds out whether the list alone is limited
	atTheTop = ""
)

// window is the window of pages at the top of the list, where awaited meetings nearly always are. Once a cycle, a sweep reads
// it: as many pages as paid in the last sweep, or pay now, and a few more, so that it can grow. A page pays if it saves GETs.
// The meetings on its pages are held: they have no GET until a sweep has ended without showing them. A sweep always ends.
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
	good        int   // and GETs that succeeded meanwhile, none with a 429
	retryAt     time.Duration
}

// pass is a way down the list.
type pass struct {
	cursor string        // of the next page
	read   int           // pages
	paid   int           // pages up to the last one that paid
	spent  time.Duration // from requests for pages to their responses
}

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
		n = max(n, l.sweep.read)
	}
	return n
}

// slow reports whether the sweep, with one page more, would take so long that GETs are better. Then it holds nothing.
func (p *plan) slow() bool {
	s := p.sweep
	return s != nil && s.read > 0 && s.spent+s.spent/time.Duration(s.read) > cycleOf(p.awaited)*9/8
}

// nextPage returns when the next page may be requested. It begins passes.
func (p *plan) nextPage(now time.Duration) time.Duration {
	if p.reading {
		return never
	}
	if p.kinds[newcomer] >= crowd && p.look == nil && p.fails == 0 {
		p.hold()
		if p.sweep == nil && now >= p.began+p.cycle()/2 {
			p.soon = true
		} else {
			p.look = &pass{}
		}
	}
	if p.pass() == nil {
		if at := max(p.sweepAt(), p.retryAt); at > now {
			return at
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
	case p.depth > 0 || p.joined >= few || p.kinds[onPages]+p.kinds[expected] > 0 || p.followers > 0:
		return p.began + p.cycle()
	}
	return never
}

// hold lets the newcomers wait until pages have been read.
func (p *plan) hold() {
	for _, w := range p.due {
		if w.kind() == newcomer && w.urgent == 0 {
			p.kinds[newcomer]--
			p.kinds[expected]++
			w.held, w.due = true, never
		}
	}
	heap.Init(&p.due)
}

// release makes held newcomers due, and all held meetings that no sweep has shown since the given one.
func (p *plan) release(now time.Duration, since int) {
	for _, w := range p.due {
		if w.held && (w.fresh || w.sweep < since) {
			p.kinds[w.kind()]--
			w.held, w.fresh = false, false
			p.kinds[w.kind()]++
			p.setDue(w, now)
		}
	}
	heap.Init(&p.due)
}

// probe makes a held meeting due.
func (p *plan) probe(now time.Duration) {
	if n := len(p.due); n > 0 && p.due[n-1].held {
		w := p.due[n-1]
		p.take(w)
		w.held, w.fresh, w.due = false, false, max(w.free, now)
		p.put(w)
	}
}

// pageRead records a page, whose request was sent at sentAt, and the meetings that it shows. found is the number of unfinished
// meetings that are new to a follower; they pay like awaited ones. more means that a follower wants the next page.
func (p *plan) pageRead(now, sentAt time.Duration, page []*watch, found int, next string, more bool) {
	p.works()
	p.reading, p.fails, p.limited, p.good, p.retryAt = false, 0, 0, 0, 0
	s, looking := p.pass(), p.look != nil
	gain := found
	for _, w := range page {
		if w.awaited && w.patient <= p.cycle() && (w.fresh || !looking && w.sweep < p.sweeps) {
			gain++
		}
	}
	s.cursor, s.spent, s.read = next, s.spent+now-sentAt, s.read+1
	if gain >= pays {
		s.paid = s.read
	}
	for _, w := range page {
		p.pageShowed(w, now, s.read <= max(s.paid, p.depth) || looking && w.held)
	}
	depth := s.paid
	if !looking {
		depth = max(depth, p.depth)
	}
	switch slow := p.slow(); {
	case next == "" || !more && (slow || s.read >= depth+beyond):
		p.endPass(now, s.paid)
	case slow:
		p.release(now, p.sweeps+1)
	}
}

// pageShowed records that a page showed a meeting. If the page is in the window, the meeting is held.
func (p *plan) pageShowed(w *watch, now time.Duration, inWindow bool) {
	p.take(w)
	p.saw(w, now)
	w.sweep = p.sweeps
	if w.urgent == 0 {
		w.held = w.awaited && inWindow && w.rarely == 0
		p.setDue(w, now)
	}
	p.put(w)
}

// endPass ends the present pass. depth is that of the next sweep.
func (p *plan) endPass(now time.Duration, depth int) {
	if p.look != nil {
		p.look = nil
		p.release(now, 0)
	} else if p.sweep != nil {
		p.sweep, p.depth = nil, depth
		p.release(now, p.sweeps)
	}
}

// pageFailed records a page that failed. The same page is requested again, later each time. Several failures end the passes,
// and so does a rejected cursor, which has probably expired. GETs go on meanwhile.
func (p *plan) pageFailed(now time.Duration, cursor string, f *Failure) {
	p.reading = false
	p.retryAt = now + min(f.RetryAfter, maxAsked)
	switch f.Kind {
	case RateLimited:
		if p.limited++; p.limited%probeAt == 0 {
			p.probe(now)
		}
		if p.limited < 2*probeAt || p.good < 2 {
			return
		}
		p.fails = max(p.fails, several)
	case Rejected:
		if p.works(); cursor == atTheTop {
			p.fails = max(p.fails, several)
		}
	default:
		p.failed(now, 0) // a Retry-After of the list must not stop GETs
	}
	if f.Kind != Rejected || cursor == atTheTop {
		p.fails++
		p.retryAt = max(p.retryAt, now+min(time.Second<<min(p.fails-1, 10), 2*maxAsked))
	}
	if p.fails >= several || f.Kind == Rejected {
		depth := p.depth
		if p.sweep != nil {
			depth = max(depth, p.sweep.paid)
		}
		p.endPass(now, depth) // a look
		p.endPass(now, depth)
		p.joined = few // the list is worth another sweep
	}
}
