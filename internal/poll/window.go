package poll

import (
	"container/heap"
	"time"
)

const (
	perPage  = 50 // meetings
	pays     = 2  // a page pays if it saves so many GETs
	beyond   = 2  // a sweep reads so many pages beyond the last one that paid
	few      = 5  // fewer waits are not worth a page, unless one has shown them
	crowd    = 32 // so many newcomers are not polled one by one if a sweep from the top can show them
	giveUp   = 8  // 429s to pages in a row, none to a GET meanwhile, mean that the list is limited and GETs are not
	maxRetry = 10 * time.Minute
	atTheTop = ""
)

// window is the window of pages at the top of the list, where awaited meetings nearly always are. Once a cycle, a sweep reads
// it: as many pages as paid in the last sweep, or pay now, and a few more, so that it can grow. The meetings on its pages are
// held: they have no GET until a sweep has ended without showing them. Every sweep ends, so no meeting is held for ever.
type window struct {
	sweeps    int           // number of the latest sweep
	began     time.Duration // when it began
	depth     int           // pages up to the last one that paid, in the last sweep that ended
	joined    int           // newcomers since the latest sweep began
	followers int           // each needs a sweep every cycle

	sweep   *sweep // under way; nil if none is
	reading bool   // its next page is under way
	fails   int    // requests for the next page that failed in a row
	limited int    // 429s to pages in a row
	retryAt time.Duration
}

// sweep is one reading of the list, from the top.
type sweep struct {
	again  bool          // a crowd made it begin before the last one ended
	cursor string        // of the next page
	read   int           // pages
	shown  int           // awaited meetings
	paid   int           // pages up to the last one that paid
	spent  time.Duration // from requests for pages to their responses
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

// slow reports whether the sweep, with one page more, would take longer than polling each meeting. Then it holds nothing, and
// GETs do better. An eighth more is granted, so that a service at the edge does not change from one to the other.
func (p *plan) slow() bool {
	s := p.sweep
	return s != nil && s.read > 0 && s.spent+s.spent/time.Duration(s.read) > cycleOf(p.awaited)*9/8
}

// nextPage returns when the next page may be requested. It begins sweeps. A crowd makes the next one begin at once, even if
// another is under way further down, but only once in a row: otherwise crowd after crowd could keep it from the deeper pages.
func (p *plan) nextPage(now time.Duration) time.Duration {
	if p.reading {
		return never
	}
	soon := p.fresh >= crowd && p.joined >= crowd && (p.sweep == nil || !p.sweep.again)
	if p.sweep != nil && !soon {
		return p.retryAt
	}
	at := p.sweepAt()
	if soon {
		at = now
	}
	if at = max(at, p.retryAt); at > now {
		return at
	}
	p.sweeps++
	p.sweep, p.began, p.joined = &sweep{again: p.sweep != nil}, now, 0
	return now
}

// sweepAt returns when the next sweep begins, or never if it would be in vain. While no meeting is held, a sweep before the
// first GET is due would save nothing.
func (p *plan) sweepAt() time.Duration {
	switch {
	case p.held > 0 || p.followers > 0:
		return p.began + p.cycle()
	case p.awaited >= few && len(p.due) > 0:
		return max(p.began+p.cycle(), p.due[0].due)
	}
	return never
}

// release makes all held meetings due that no sweep has shown since the given one.
func (p *plan) release(now time.Duration, since int) {
	for _, w := range p.due {
		if w.held && w.sweep < since {
			p.count(w, -1)
			w.held = false
			p.count(w, 1)
			p.setDue(w, now)
		}
	}
	heap.Init(&p.due)
}

// pageRead records a page, whose request was sent at sentAt, and the meetings that it shows. found is the number of unfinished
// meetings that are new to a follower; they pay like awaited ones. more means that a follower wants the next page.
func (p *plan) pageRead(now, sentAt time.Duration, page []*watch, found int, next string, more bool) {
	p.works()
	p.reading, p.fails, p.limited, p.retryAt = false, 0, 0, 0
	s, gain := p.sweep, found
	for _, w := range page {
		if w.awaited && w.patient <= p.cycle() && w.sweep < p.sweeps {
			gain++
		}
	}
	s.shown += gain - found
	s.cursor, s.spent, s.read = next, s.spent+now-sentAt, s.read+1
	if gain >= pays {
		s.paid = s.read
	}
	depth := max(s.paid, p.depth)
	for _, w := range page {
		p.take(w)
		w.seen, w.failed, w.passing, w.sweep = now, 0, 0, p.sweeps
		if w.urgent == 0 {
			w.held = w.awaited && s.read <= depth
			p.setDue(w, now)
		}
		p.put(w)
	}
	all := s.shown >= p.awaited // those that left since may be missed, which costs a GET or two
	switch slow := p.slow(); {
	case next == "" || !more && (slow || s.read >= depth+beyond || s.read >= depth && all):
		p.endSweep(now, s.paid)
	case slow:
		p.release(now, p.sweeps+1)
	}
}

// endSweep ends the sweep. The meetings that it should have shown, and did not, fall due.
func (p *plan) endSweep(now time.Duration, depth int) {
	p.sweep, p.depth = nil, depth
	p.release(now, p.sweeps)
}

// pageFailed records a page that failed. The same page is requested again, later each time. Several failures end the sweep,
// and so does a rejected cursor, because it has probably expired. GETs go on meanwhile. A 429 alone is not counted: it pauses
// all requests (in internal/rest), and if GETs replaced pages then, there would be even more requests for the same limit.
func (p *plan) pageFailed(now time.Duration, cursor string, f *Failure) {
	p.reading = false
	p.retryAt = now + min(f.RetryAfter, maxAsked)
	switch {
	case f.Kind == RateLimited:
		if p.limited++; p.limited < giveUp {
			return
		}
		p.fails = max(p.fails, several)
	case f.Kind == Rejected && cursor == atTheTop:
		p.works()
		p.fails = max(p.fails, several)
	case f.Kind == Rejected:
		p.works()
		p.endSweep(now, max(p.depth, p.sweep.paid))
		return
	default:
		p.failed(now, 0) // a Retry-After of the list must not stop GETs
	}
	p.fails++
	p.retryAt = max(p.retryAt, now+backoff(p.fails-1, maxRetry))
	if p.fails >= several {
		p.endSweep(now, max(p.depth, p.sweep.paid))
	}
}
