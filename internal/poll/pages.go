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
	broken  bool   // the last one did not come to its end
	number  uint32 // of this sweep, or of the last one
	cursor  string // of the next page
	sought  int    // meetings still to be found
	drought int    // how many more pages than meetings they showed, lately

	run, best stretch // the one that ends at the page read last; the best of this sweep, or of the last

	began       time.Duration   // this sweep, or the last one
	times, last []time.Duration // when its pages were asked for, and the last one's, from its best stretch on

	due      time.Duration // when the paged meetings want the next one
	retry    time.Duration // when a full one is tried again, however few it may show
	patience int           // how many turns until then
}

// stretch is some pages in a row.
type stretch struct {
	cursor   string // before the first one
	from, to int32
	gain     int // looks saved: meetings shown, less pages read
}

const (
	pageSize      = 50
	crowd         = 32               // newcomers that are worth a sweep
	handful       = 5                // meetings looked at by themselves that are worth a try
	gather        = time.Second / 10 // for a crowd to assemble
	stuck         = floor / 2        // a page that takes longer is lost
	leastPatience = 2                // turns
	maxPatience   = 64
)

// seeks reports whether the sweep looks for a watch.
func (p *plan) seeks(w *watch) bool {
	s := &p.sweep
	return s.on && w.sweep != s.number && (s.full && w.role != idle || w.role == paged)
}

// sweepAt is when a sweep is to begin, never if nothing wants one.
func (p *plan) sweepAt() time.Duration {
	at := min(p.crowdAt(), p.retryAt())
	if p.paged > 0 {
		at = min(at, p.sweep.due)
	}
	return max(at, p.sweep.began+p.turn())
}

// crowdAt is when a crowd that no full sweep has looked for wants one.
func (p *plan) crowdAt() time.Duration {
	if p.sweep.broken || p.unproven < max(crowd, len(p.sweep.last)/4) {
		return never
	}
	return min(p.due[newcomer].firstDue()+gather, p.due[single].firstDue())
}

// retryAt is when a full sweep is worth a try all the same.
func (p *plan) retryAt() time.Duration {
	if len(p.due[single])+len(p.due[newcomer]) < handful {
		return never
	}
	return p.sweep.retry
}

// begin begins a sweep.
func (p *plan) begin(now time.Duration) {
	s := &p.sweep
	s.on, s.full, s.cursor = true, false, s.best.cursor
	s.number++
	s.began, s.times = now, nil
	s.sought, s.drought, s.run, s.best = p.paged, 0, stretch{}, stretch{}
	switch {
	case p.crowdAt() <= now:
		s.patience = leastPatience
		p.toTop()
	case p.retryAt() <= now:
		s.patience = min(2*s.patience, maxPatience)
		p.toTop()
	}
}

// toTop lets the sweep begin at the top of the listing and look for everything. A
// crowd of newcomers waits for it.
func (p *plan) toTop() {
	p.sweep.full, p.sweep.cursor = true, ""
	crowded := len(p.due[newcomer]) >= crowd
	for _, w := range p.watches {
		if w.role == newcomer && crowded {
			p.put(w, paged)
		}
		w.unproven = false
	}
	p.unproven, p.sweep.sought = 0, p.waiting
}

// enough reports whether another page cannot pay, or has become too unlikely to:
// pages that show nothing are read up to a quarter of the looks that they may save.
func (s *sweep) enough() bool { return 4*s.drought >= s.sought-1 }

// pages is how many pages the sweep, or the next one, is likely to take.
func (p *plan) pages() int {
	s := &p.sweep
	n := 0
	if p.paged > 0 {
		n = len(s.last)
	}
	if s.on {
		n = max(n, len(s.times)+s.sought/pageSize+1)
	}
	return n
}

// nextPage returns when the next page may be asked for, as things stand. It begins
// and ends sweeps.
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
	longest := turnOf(p.waiting) // as looks alone would take
	switch {
	case len(s.times) > 0:
		longest *= 2
	case s.full: // no page has paid yet
		longest = stuck
	}
	held := p.looks.until // a pause after a refused look is for all
	if len(s.times) < len(s.last) {
		held = max(held, s.last[len(s.times)]+floor)
	}
	giveUp := max(s.began+longest, held+stuck)
	if s.enough() || now >= giveUp {
		p.end(now, !s.enough())
		return p.nextPage(now)
	}
	return min(max(held, p.listing.free()), giveUp)
}

// pageRead takes in a page, asked for at that time, with the watches it shows.
func (p *plan) pageRead(now, asked time.Duration, shown []*watch, next string) {
	s := &p.sweep
	s.reading = false
	p.listing.good(now)
	found := 0
	for _, w := range shown {
		if w.role == idle {
			continue
		}
		p.sighted(w, now)
		if w.sweep == s.number {
			continue // twice in a sweep
		}
		found++
		if p.seeks(w) {
			s.sought--
		}
		w.sweep, w.page = s.number, int32(len(s.times))
	}
	for _, w := range shown {
		if found >= handful && w.role != idle {
			p.put(w, paged) // as far as is known yet; see end
		}
	}
	s.take(found)
	s.times = append(s.times, asked)
	s.cursor = next
	if next == "" || s.enough() {
		p.end(now, false)
	}
}

// take takes in how many meetings a page showed. The best stretch is that of the
// greatest gain; a run goes on as long as it has gained something.
func (s *sweep) take(found int) {
	page := int32(len(s.times))
	s.drought = max(0, s.drought+1-found)
	if s.run.gain <= 0 {
		s.run = stretch{cursor: s.cursor, from: page}
	}
	s.run.to = page
	s.run.gain += found - 1
	if s.run.gain > s.best.gain {
		s.best = s.run
	}
}

// pageLost takes in a page that did not arrive. It is asked for again.
func (p *plan) pageLost(now time.Duration) {
	p.sweep.reading = false
	p.listing.pause(now, 0)
}

// pageRefused takes in a 429 on a page.
func (p *plan) pageRefused(now, asked, retryAfter time.Duration) {
	p.sweep.reading = false
	p.listing.refused(now, asked, retryAfter)
}

// pageBarred takes in that the service will not serve this page. Where it is the
// cursor that is refused, the sweep begins at the top.
func (p *plan) pageBarred(now time.Duration) {
	s := &p.sweep
	s.reading = false
	if len(s.times) == 0 && s.cursor != "" {
		p.toTop()
		return
	}
	p.end(now, true)
}

// end ends a sweep, and chooses by what it showed how each watch is looked at next.
func (p *plan) end(now time.Duration, broken bool) {
	s := &p.sweep
	s.on, s.broken, s.due = false, broken, never
	for _, w := range p.watches {
		p.choose(w)
	}
	s.last = s.times[min(int(s.best.from), len(s.times)):]
	if broken && !s.full {
		s.patience = leastPatience // pages have paid before, so that it is tried again soon
	}
	if broken || s.full {
		s.retry = now + time.Duration(s.patience)*p.turn()
	}
}
