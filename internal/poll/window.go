package poll

import (
	"container/heap"
	"time"
)

const (
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
	began    time.Duration // when the latest sweep began
	depth    int           // pages up to the last one that paid, in the last sweep that ended or in this one
	joined   int           // newcomers since the latest sweep began, less the GETs
	followed bool          // a Discovery needs a sweep every cycle

	sweep   *sweep // under way; nil if none is
	reading bool   // its next page is under way
	fails   int    // requests for the next page that failed in a row
	limited bool   // the last of them got a 429
	retryAt time.Duration
}

// sweep is one reading of the list, from the top.
type sweep struct {
	cursor string        // of the next page
	read   int           // pages
	shown  int           // awaited meetings
	paid   int           // pages up to the last one that paid
	spent  time.Duration // from requests for pages to their responses
}

// nextPage returns when the next page may be requested. It begins sweeps.
func (p *plan) nextPage(now time.Duration) time.Duration {
	at := max(p.retryAt, p.sweepAt())
	if p.sweep == nil && at <= now {
		p.sweep, p.began, p.joined = new(sweep), now, 0
	}
	return at
}

// sweepAt returns when a sweep begins or goes on, or never if it would be in vain. A crowd need not wait for the next cycle.
// While no meeting is held, a sweep before the first GET is due would save nothing.
func (p *plan) sweepAt() time.Duration {
	switch {
	case p.reading:
		return never
	case p.sweep != nil || p.joined >= crowd:
		return p.began
	case p.held > 0 || p.followed:
		return p.began + p.cycle()
	case p.awaited >= few && len(p.due) > 0:
		return max(p.began+p.cycle(), p.due[0].due)
	}
	return never
}

// release makes all held meetings due that no response has shown since the given time.
func (p *plan) release(now, since time.Duration) {
	for _, w := range p.due {
		if w.held && w.seen < since {
			p.held--
			w.held = false
			w.due = p.dueAt(w, now)
		}
	}
	heap.Init(&p.due)
}

// pageRead records a page, whose request was sent at sentAt, and the meetings that it shows. found is the number of unfinished
// meetings that are new to a Discovery; they pay like awaited ones. more means that a Discovery wants the next page.
func (p *plan) pageRead(now, sentAt time.Duration, page []*watch, found int, next string, more bool) {
	p.reading, p.fails, p.retryAt, p.streak = false, 0, 0, 0
	s, gain := p.sweep, found
	for _, w := range page {
		if w.awaited && w.patient <= p.cycle() {
			gain++
		}
	}
	s.shown += gain - found
	s.cursor, s.spent, s.read = next, s.spent+now-sentAt, s.read+1
	if gain >= pays {
		s.paid = s.read
		p.depth = max(p.depth, s.paid)
	}
	for _, w := range page {
		p.take(w)
		w.seen, w.failed, w.passing = now, 0, 0
		w.held = w.urgent == 0 && s.read <= p.depth
		p.put(w, p.dueAt(w, now))
	}
	all := s.shown >= p.awaited // those that left since may be missed, which costs a GET or two
	// With one page more, would the sweep take much longer than polling each meeting? Then it holds nothing, and GETs do better.
	slow := s.spent+s.spent/time.Duration(s.read) > cycleOf(p.awaited)*6/5
	switch {
	case next == "" || !more && (slow || s.read >= p.depth+beyond || s.read >= p.depth && all):
		p.depth = s.paid
		p.endSweep(now)
	case slow:
		p.release(now, never)
	}
}

// endSweep ends the sweep. The meetings that it should have shown, and did not, fall due.
func (p *plan) endSweep(now time.Duration) {
	p.sweep = nil
	p.release(now, p.began)
}

// pageFailed records a page that failed. The same page is requested again, later each time. Several failures end the sweep,
// and so does a rejection, because its cursor has probably expired. GETs go on meanwhile. After a few 429s the page stays due:
// they pause all requests (in internal/rest), and if GETs replaced pages then, there would be even more requests for the limit.
func (p *plan) pageFailed(now time.Duration, f *Failure) {
	p.reading = false
	p.fails++
	enough, delay := several, backoff(p.fails-1, maxRetry)
	switch p.limited = f.Kind == RateLimited; {
	case p.limited:
		if enough = giveUp; p.fails < enough {
			delay = 0
		}
	case f.Kind == Rejected:
		enough, p.streak = 1, 0
	default:
		p.failed(now, 0) // a Retry-After of the list must not stop GETs
	}
	p.retryAt = now + max(delay, min(f.RetryAfter, MaxAsked))
	if p.fails >= enough {
		p.endSweep(now)
	}
}
