package poll

import "time"

// sweep reads pages of the listing one after the other. It goes on while what
// it still looks for is worth more pages, and remembers which stretch of pages
// paid best: a later sweep reads that stretch alone, from the cursor before it.
// Nothing here leans on the order of the listing: what a sweep does not show is
// looked at by itself.
type sweep struct {
	on      bool
	full    bool   // it looks for every meeting waited for, from the top; else for the paged ones
	reading bool   // a page is under way
	number  uint32 // of this sweep, or of the last one
	cursor  string // of the next page
	index   int32  // of the next page
	sought  int    // meetings still to be found

	began, moved time.Duration   // the sweep, and its last page
	times, last  []time.Duration // when its pages, and those of the last one, were asked for

	drought  int     // pages by which the latest ones showed less than one meeting each
	run      stretch // which ends at the page read last
	best     stretch
	start    string        // the cursor before the best stretch of the last sweep
	worth    int           // how many that stretch showed
	again    time.Duration // when the next sweep may begin
	due      time.Duration // when the paged meetings want one
	retry    time.Duration // when a full one is tried again, however few it may show
	patience time.Duration // in turns, until then
	broken   bool          // the last one did not come to its end
}

// stretch is some pages in a row.
type stretch struct {
	cursor   string // before the first one
	from, to int32
	found    int
	gain     int // meetings shown beyond one a page, which a look each would have cost
}

const (
	pageSize    = 50
	crowd       = 32               // newcomers that are worth a sweep
	handful     = 5                // meetings looked at by themselves that are worth a try
	gather      = time.Second / 10 // for a crowd to assemble
	stuck       = floor / 2        // a sweep without a page for so long is given up
	maxPatience = 64
)

// seeks reports whether the sweep looks for a watch.
func (p *plan) seeks(w *watch) bool {
	s := &p.sweep
	return s.on && w.shown != s.number && (s.full && w.role != idle || w.role == paged)
}

// sweepAt is when a sweep is to begin, never if nothing wants one.
func (p *plan) sweepAt() time.Duration {
	s, at := &p.sweep, never
	if p.paged > 0 {
		at = s.due
	}
	return max(min(at, p.fullAt()), s.again)
}

// fullAt is when a full sweep is worth a try.
func (p *plan) fullAt() time.Duration {
	s, at := &p.sweep, never
	if len(p.singles)+len(p.newcomers) >= handful {
		at = s.retry
	}
	if !s.broken && p.unproven >= max(crowd, len(s.last)/4) {
		at = min(at, p.joined+gather)
	}
	return at
}

// begin begins a sweep. A full one takes the newcomers with it.
func (p *plan) begin(now time.Duration) {
	s := &p.sweep
	s.full = p.fullAt() <= now
	s.number++
	s.on, s.index, s.cursor = true, 0, s.start
	s.began, s.moved, s.times = now, now, nil
	s.drought, s.run, s.best = 0, stretch{}, stretch{}
	if s.full {
		p.toTop()
	}
	p.recount()
}

// toTop lets the sweep begin at the top of the listing and look for everything.
func (p *plan) toTop() {
	s := &p.sweep
	s.full, s.cursor = true, ""
	crowded := len(p.newcomers) >= crowd
	for _, w := range p.watches {
		if w.role == newcomer && crowded {
			p.put(w, paged)
		}
		w.unproven = false
	}
	p.unproven, p.joined = 0, never
}

func (p *plan) recount() {
	p.sweep.sought = 0
	for _, w := range p.watches {
		if p.seeks(w) {
			p.sweep.sought++
		}
	}
}

// enough reports whether another page cannot pay, or has become too unlikely to.
func (s *sweep) enough() bool { return 4*s.drought >= s.sought-1 }

// pages is how many pages the sweep, or the next one, is likely to take.
func (p *plan) pages() int {
	s := &p.sweep
	if !s.on {
		if p.paged == 0 {
			return 0
		}
		return len(s.last)
	}
	length := int(s.index-s.run.from) + 1
	ahead := int(s.index) + s.sought*length/(s.run.found+pageSize)
	if s.full {
		return ahead
	}
	return max(ahead, len(s.last))
}

// nextPage returns when the next page may be asked for, as things stand.
func (p *plan) nextPage(now time.Duration) time.Duration {
	s := &p.sweep
	if !s.on {
		if at := p.sweepAt(); at > now {
			return at
		}
		p.begin(now)
	}
	if s.reading {
		return never
	}
	held := p.looks.until // a pause after a refused look is for all
	if int(s.index) < len(s.last) {
		held = max(held, s.last[s.index]+floor)
	}
	if gaveUp := max(s.moved, held) + stuck; s.enough() || now >= gaveUp {
		p.end(now, !s.enough())
		return p.nextPage(now)
	} else {
		return min(max(held, p.listing.free()), gaveUp)
	}
}

// showed takes in a page, asked for at that time, with the watches it shows.
func (p *plan) showed(now, asked time.Duration, shown []*watch, next string) {
	s := &p.sweep
	s.reading, s.moved = false, now
	s.times = append(s.times, asked)
	p.listing.good(now)
	found := 0
	for _, w := range shown {
		if w.role == idle || w.shown == s.number {
			continue
		}
		if p.seeks(w) {
			s.sought--
		}
		w.shown, w.page = s.number, s.index
		found++
		p.saw(w, now)
	}
	s.take(found)
	s.index++
	s.cursor = next
	if next == "" || s.enough() {
		p.end(now, false)
	}
}

// take takes in how much a page showed. The best stretch is that of the greatest
// gain; a run goes on as long as it has gained something.
func (s *sweep) take(found int) {
	s.drought = max(0, s.drought+1-found)
	if s.run.gain <= 0 {
		s.run = stretch{cursor: s.cursor, from: s.index}
	}
	s.run.to = s.index
	s.run.found += found
	s.run.gain += found - 1
	if s.run.gain > s.best.gain {
		s.best = s.run
	}
}

// lost takes in a page that did not arrive. It is asked for again.
func (p *plan) lost(now time.Duration) {
	p.sweep.reading = false
	p.listing.pause(now, 0)
}

// pageRefused takes in a 429 on a page.
func (p *plan) pageRefused(now, asked, retryAfter time.Duration) {
	p.sweep.reading = false
	p.listing.refused(now, asked, retryAfter)
}

// barred takes in that the service will not serve this page. Where it is the
// cursor that is refused, the sweep begins at the top.
func (p *plan) barred(now time.Duration) {
	s := &p.sweep
	s.reading = false
	if s.index == 0 && s.cursor != "" {
		p.toTop()
		p.recount()
		return
	}
	p.end(now, true)
}

// end ends a sweep. What the best stretch showed will be looked at by the next
// one; everything else by itself.
func (p *plan) end(now time.Duration, broken bool) {
	s := &p.sweep
	s.on, s.broken = false, broken
	s.due = never
	for _, w := range p.watches {
		switch {
		case w.role == idle:
		case w.shown == s.number && s.best.gain > 0 && s.best.from <= w.page && w.page <= s.best.to:
			p.put(w, paged)
			s.due = min(s.due, w.due)
		case w.role == paged:
			p.put(w, single)
			if w.shown != s.number && !broken {
				p.prove(w, now)
			}
		}
	}
	s.start, s.last = s.best.cursor, s.times
	if int(s.best.from) <= len(s.last) {
		s.last = s.last[s.best.from:]
	}
	s.again = s.began + p.jittered(p.turn())
	if s.full || broken {
		s.patience = min(2*s.patience, maxPatience)
		if !broken && 4*(s.best.found-s.worth) >= p.waiting-s.worth {
			s.patience = 1
		}
		s.retry = now + s.patience*p.turn()
	}
	s.worth = s.best.found
}
