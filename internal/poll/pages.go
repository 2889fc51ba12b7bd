package poll

import "time"

// sweep reads pages of the listing one after the other. It goes on as long as more
// pages are worth reading for what it still seeks. It remembers the stretch of pages
// that saved most looks: a later sweep reads that stretch alone, from the cursor
// before it. No order of the listing is assumed: what no page shows gets a look.
type sweep struct {
	on      bool
	full    bool   // it seeks every meeting waited for, from the top; otherwise only the paged ones
	reading bool   // a page is under way
	broken  bool   // the last sweep broke off
	number  uint32 // number of this sweep, or of the last one
	cursor  string // cursor of the next page
	sought  int    // meetings still to be found
	drought int    // pages read in excess of meetings found, lately; never below 0

	run  stretch // the stretch that ends at the page read last
	best stretch // the best stretch of this sweep, or of the last one

	began time.Duration   // begin of this sweep, or of the last one
	times []time.Duration // when each page of this sweep was asked for
	last  []time.Duration // the last sweep's times, from its best stretch on

	due      time.Duration // when the paged meetings are due
	retry    time.Duration // when a full sweep is tried again, even without a crowd
	patience int           // turns between two tries
}

// stretch is a number of pages in a row.
type stretch struct {
	cursor   string // cursor of the first page
	from, to int32  // index of the first page and of the last
	gain     int    // looks saved: meetings shown minus pages read
}

const (
	pageSize      = 50
	crowd         = 32                  // newcomers that are worth a sweep
	handful       = 5                   // single looks that are worth a try
	gather        = time.Second / 10    // time for a crowd to assemble
	stuck         = minPollInterval / 2 // a page that takes longer is lost
	leastPatience = 2                   // least turns between two tries
	maxPatience   = 64                  // most turns between two tries
)

// seeks reports whether the sweep still has to find a watch.
func (p *plan) seeks(w *watch) bool {
	s := &p.sweep
	return s.on && w.sweep != s.number && (s.full && w.role != idle || w.role == paged)
}

// sweepAt returns when the next sweep should begin, or never.
func (p *plan) sweepAt() time.Duration {
	at := min(p.crowdAt(), p.retryAt())
	if p.paged > 0 {
		at = min(at, p.sweep.due)
	}
	return max(at, p.sweep.began+p.cycle())
}

// crowdAt returns when a full sweep for a crowd should begin, or never. The crowd must be at least
// a quarter of the pages that the last sweep read, so that no long sweep begins for a few meetings.
// The crowd may gather, but not longer than until a single is due: pages may show that, too.
func (p *plan) crowdAt() time.Duration {
	if p.sweep.broken || p.unproven < max(crowd, len(p.sweep.last)/4) {
		return never
	}
	return min(p.due[newcomer].firstDue()+gather, p.due[single].firstDue())
}

// retryAt returns when a full sweep is worth a try even without a crowd, or never.
func (p *plan) retryAt() time.Duration {
	if len(p.due[single])+len(p.due[newcomer]) < handful {
		return never
	}
	return p.sweep.retry
}

// begin begins a sweep: a full one for a crowd or as a try, else of the best stretch.
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

// toTop makes the sweep begin at the top of the listing and seek every meeting. A
// crowd of newcomers waits for it.
func (p *plan) toTop() {
	p.sweep.full, p.sweep.cursor = true, ""
	crowded := len(p.due[newcomer]) >= crowd
	for _, w := range p.watches {
		if w.role == newcomer && crowded {
			p.setRole(w, paged)
		}
		w.unproven = false
	}
	p.unproven, p.sweep.sought = 0, p.waiting // replaces what setRole has counted
}

// enough reports whether another page is not worth reading. Pages that show nothing
// are read up to a quarter of the looks that they may save.
func (s *sweep) enough() bool { return 4*s.drought >= s.sought-1 }

// pages returns how many pages the sweep, or the next one, probably takes: as many as last time,
// but no fewer than those read so far and what full pages need to show the rest.
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

// nextPage returns when the next page may be asked for. It begins and ends sweeps.
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
	longest := cycleOf(p.waiting) // as long as looks alone would take
	switch {
	case len(s.times) > 0:
		longest *= 2
	case s.full: // no page has paid yet
		longest = stuck
	}
	held := p.polls.until           // a pause of looks holds for pages, too
	if len(s.times) < len(s.last) { // the same place of the listing not twice within a floor
		held = max(held, s.last[len(s.times)]+minPollInterval)
	}
	giveUp := max(s.began+longest, held+stuck)
	if s.enough() || now >= giveUp {
		p.end(now, !s.enough())
		return p.nextPage(now)
	}
	return min(max(held, p.listing.free()), giveUp)
}

// pageRead records a page, whose request was sent at sentAt, with the watches it shows.
func (p *plan) pageRead(now, sentAt time.Duration, shown []*watch, next string) {
	s := &p.sweep
	s.reading = false
	p.listing.good(now)
	found := 0
	for _, w := range shown {
		if w.role == idle {
			continue
		}
		p.recorded(w, now)
		if w.sweep == s.number {
			continue // shown before in this sweep
		}
		found++
		if p.seeks(w) {
			s.sought--
		}
		w.sweep, w.page = s.number, int32(len(s.times))
	}
	for _, w := range shown {
		if found >= handful && w.role != idle {
			p.setRole(w, paged) // for now: end chooses again
		}
	}
	s.count(found)
	s.times = append(s.times, sentAt)
	s.cursor = next
	if next == "" || s.enough() {
		p.end(now, false)
	}
}

// count records how many meetings a page showed. A run goes on as long as its gain is
// above 0. The best stretch is the run with the greatest gain.
func (s *sweep) count(found int) {
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

// pageLost records a page that did not arrive. It is asked for again.
func (p *plan) pageLost(now time.Duration) {
	p.sweep.reading = false
	p.listing.pause(now, 0)
}

// pageRateLimited records a 429 to a page.
func (p *plan) pageRateLimited(now, sentAt, retryAfter time.Duration) {
	p.sweep.reading = false
	p.listing.refused(now, sentAt, retryAfter)
}

// pageRejected records that the service refuses a page. If that is due to a sweep's first
// cursor, the sweep begins at the top.
func (p *plan) pageRejected(now time.Duration) {
	s := &p.sweep
	s.reading = false
	if len(s.times) == 0 && s.cursor != "" {
		p.toTop()
		return
	}
	p.end(now, true)
}

// end ends a sweep and chooses the role of each watch by what the sweep showed.
func (p *plan) end(now time.Duration, broken bool) {
	s := &p.sweep
	s.on, s.broken, s.due = false, broken, never
	for _, w := range p.watches {
		p.choose(w)
	}
	s.last = s.times[min(int(s.best.from), len(s.times)):]
	if broken && !s.full {
		s.patience = leastPatience // pages have saved looks before: try again soon
	}
	if broken || s.full {
		s.retry = now + time.Duration(s.patience)*p.cycle()
	}
}
