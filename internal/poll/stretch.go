package poll

import (
	"cmp"
	"slices"
	"time"
)

const (
	pageSize    = 50
	stuck       = minPollInterval / 2 // a page that takes longer is lost
	slowPage    = 2 * time.Second     // a page that takes n times as long must save n times as many polls
	searchShare = 16                  // polls of single meetings that pay for one page of a search
	giveUpAfter = 4                   // failed pages in a row that end a scan
)

// listing is what the plan knows of the listing. It knows stretches of pages that pay off, and
// reads each again once a cycle. Searches look for more: the fresh search at the top, where
// newcomers nearly always are, and the deep search below. No order of the listing is assumed:
// what no page shows gets a poll.
type listing struct {
	stretches []*stretch
	scan      scan
	reading   bool // a page is under way

	unsearched map[*watch]bool // what the next fresh search looks for
	deep       string          // cursor where the deep search goes on
	credit     float64         // pages that the deep search may read without success

	following int           // followers; they need the first page once a cycle,
	topBegan  time.Duration // when it was last requested,
	passAt    string        // and the page at this cursor, unless it is empty

	fails   int           // pages in a row that failed
	retryAt time.Duration // no page before this time
	arrived time.Duration // when the last page arrived
}

// stretch is a number of pages in a row that show awaited meetings, the first at least two.
type stretch struct {
	cursor  string // of the first page
	pages   int
	members []*watch      // those that point back, and some that have left
	began   time.Duration // when the first page was requested
	due     time.Duration
}

// scan reads pages one after the other.
type scan struct {
	kind   scanKind
	cursor string   // of the next page
	old    *stretch // the stretch that is read again, with others that it met; nil in a search
	left   int      // polls that it may still save, by finding members of old or newcomers
	excess int      // pages read in excess of meetings found, lately
	run    *stretch // the stretch that ends at the page read last; nil if that page pays nothing
}

type scanKind uint8

const (
	noScan scanKind = iota
	rereadScan
	freshScan
	deepScan
)

func newListing() listing {
	return listing{unsearched: make(map[*watch]bool)}
}

// searching reports whether a fresh search looks for a crowd of newcomers and pays off, or is due.
func (l *listing) searching() bool {
	s := &l.scan
	pays := s.kind == freshScan && (s.run != nil || s.left > searchShare*s.excess)
	return pays || len(l.unsearched) >= crowd
}

// pages returns how many pages a cycle takes.
func (l *listing) pages() int {
	n := 0
	for _, s := range l.stretches {
		n += s.pages
	}
	switch s := &l.scan; {
	case s.old != nil:
		n += s.old.pages
	case s.run != nil:
		n += s.run.pages
	}
	return n
}

// live drops the members that have left and returns how many there are.
func (s *stretch) live() int {
	s.members = slices.DeleteFunc(s.members, func(w *watch) bool {
		if w.role == idle && w.stretch == s {
			w.stretch = nil
		}
		return w.stretch != s
	})
	return len(s.members)
}

// nextPage returns when the next page may be requested. It begins scans.
func (p *plan) nextPage(now time.Duration) time.Duration {
	switch {
	case p.reading:
		return never
	case p.retryAt > now:
		return p.retryAt
	case p.scan.kind == noScan:
		return p.begin(now)
	}
	return now
}

// nextStretch returns the stretch that is due first.
func (p *plan) nextStretch() (next *stretch) {
	for _, s := range p.stretches {
		if next == nil || s.due < next.due {
			next = s
		}
	}
	return next
}

// freshAt returns when the fresh search should begin, or never.
func (p *plan) freshAt() time.Duration {
	at := never
	if len(p.unsearched) >= few {
		at = p.due[single].firstDue()
	}
	if min(len(p.unsearched), len(p.due[newcomer])) >= crowd {
		at = min(at, p.due[newcomer].firstDue()+gather)
	}
	return at
}

// begin begins the next scan: a fresh search, a reread of a stretch, or else a deep search. It
// returns when, if none is due now.
func (p *plan) begin(now time.Duration) time.Duration {
	fresh := p.freshAt()
	if top := p.topBegan + minPollInterval; p.following > 0 && top < fresh {
		i := slices.IndexFunc(p.stretches, func(s *stretch) bool { return s.cursor == "" && s.due < top+p.cycle()/8 })
		if i >= 0 {
			p.stretches[i].due = min(p.stretches[i].due, top)
		} else {
			fresh = top
		}
	}
	next := p.nextStretch()
	switch {
	case fresh <= now:
		p.scan = scan{kind: freshScan, left: len(p.unsearched)}
		clear(p.unsearched)
	case next != nil && next.due <= now:
		p.scan = scan{kind: rereadScan, cursor: next.cursor}
		p.take(next)
		if 2*p.scan.left <= next.pages { // most have ended, or belong to other stretches
			p.endScan()
			return p.begin(now)
		}
	case p.passAt != "":
		p.scan = scan{kind: freshScan, cursor: p.passAt}
	case p.credit >= 1 && len(p.due[single]) >= 2:
		p.scan = scan{kind: deepScan, cursor: p.deep, left: 4 * int(p.credit)}
	case next != nil:
		return min(fresh, next.due)
	default:
		return fresh
	}
	if p.scan.cursor == "" {
		p.topBegan = now
	}
	return now
}

// pageRead records a page, whose request was sent at sentAt, with the awaited meetings it shows.
func (p *plan) pageRead(now, sentAt time.Duration, shown []*watch, next string) {
	s := &p.scan
	p.reading, p.fails, p.arrived = false, 0, now
	p.works(now)
	saved := make([]*watch, 0, len(shown))
	for _, w := range shown {
		if x := w.stretch; s.old != nil && x != nil && x != s.run && x.due < s.old.due+p.cycle()/4 {
			p.take(x)
		}
		if w.stretch == nil || w.stretch == s.old {
			saved = append(saved, w)
		}
		delete(p.unsearched, w)
	}
	p.extend(saved, now, sentAt)
	for _, w := range shown {
		p.recorded(w, now)
	}
	if s.cursor = next; s.enough() {
		p.endScan()
	}
}

// take lets the scan read a stretch to its end.
func (p *plan) take(x *stretch) {
	i := slices.Index(p.stretches, x)
	if i < 0 { // taken before
		return
	}
	p.stretches = slices.Delete(p.stretches, i, i+1)
	s := &p.scan
	s.left += x.live()
	if s.old == nil {
		s.old = x
		return
	}
	for _, w := range x.members {
		w.stretch = s.old
	}
	s.old.members = append(s.old.members, x.members...)
	s.old.pages += x.pages
}

// extend adds a page to the run, with the watches of which it saved a poll. Two begin a run, and
// one extends it; of a slow page, more (see slowPage).
func (p *plan) extend(saved []*watch, now, sentAt time.Duration) {
	s, price := &p.scan, max(1, int((now-sentAt)/slowPage))
	if s.run == nil && len(saved) >= 2*price {
		s.run = &stretch{cursor: s.cursor, began: sentAt}
	} else if len(saved) < price {
		p.closeRun()
	}
	s.excess = max(0, s.excess+price-len(saved))
	if s.run != nil {
		s.run.pages++
		s.run.members = append(s.run.members, saved...)
	}
	for _, w := range saved {
		if s.kind == freshScan || s.old != nil && w.stretch == s.old {
			s.left--
		}
		if w.stretch = s.run; s.run != nil {
			p.setRole(w, member)
		} else if w.role == member {
			p.setRole(w, single)
		}
	}
}

// enough reports whether another page is not worth reading. A scan may read one page in vain for
// four polls that it may save.
func (s *scan) enough() bool {
	return s.cursor == "" || s.left <= 0 || 4*s.excess >= s.left
}

// endScan ends a scan. Members that a reread has not found count as new.
func (p *plan) endScan() {
	s := p.scan
	p.closeRun()
	p.scan = scan{}
	if s.old != nil {
		p.lose(s.old)
	}
	switch s.kind {
	case freshScan:
		if p.deep == "" {
			p.deep = s.cursor
		}
	case deepScan:
		p.deep = s.cursor
		p.credit -= float64(s.excess)
	}
}

// lose makes the remaining members of a stretch newcomers.
func (p *plan) lose(s *stretch) {
	s.live()
	for _, w := range s.members {
		w.stretch = nil
		p.unsearched[w] = true
		if w.role == member {
			p.setRole(w, newcomer)
		}
	}
}

// closeRun keeps the stretch that ends before a cursor.
func (p *plan) closeRun() {
	s := p.scan.run
	p.scan.run = nil
	if s == nil || s.live() == 0 {
		return
	}
	slices.SortFunc(s.members, func(a, b *watch) int { return cmp.Compare(a.interval(), b.interval()) })
	last := s.members[min(s.pages, len(s.members))-1] // when it is due, as many are due as it has pages
	every := max(p.cycle(), last.interval())
	s.due = s.began + p.jittered(every)
	p.stretches = append(p.stretches, s)
	for _, w := range s.members {
		if max(w.interval(), p.cycle()) < every/2 { // due much earlier
			p.setRole(w, single)
		}
	}
}

// pageFailed records a page that was lost. It is requested again. If the service is out, that
// counts as a failure of every wait, unless the page was only slow. pageFailed returns the watches
// whose waits end by that.
func (p *plan) pageFailed(now, sentAt, retryAfter time.Duration, slow bool) (ended []*watch) {
	p.pageDelayed(now, retryAfter)
	if p.fails >= giveUpAfter {
		p.giveUp(now)
	}
	if p.pacer.fail(nil, now, sentAt, retryAfter) && !slow {
		return p.countFailures(nil, now, true)
	}
	return nil
}

// giveUp ends a scan whose next page cannot be read. Polls show what it has not read; a stretch is
// tried again.
func (p *plan) giveUp(now time.Duration) {
	s, rest := p.scan, p.scan.old
	if rest == nil {
		p.endScan()
		p.deep = ""
		return
	}
	p.closeRun()
	p.scan = scan{}
	rest.cursor, rest.due, rest.pages = s.cursor, now+minPollInterval, min(rest.pages, rest.live())
	p.stretches = append(p.stretches, rest)
	for _, w := range rest.members {
		p.setRole(w, single)
	}
}

// pageDelayed delays the next page, longer after each failure in a row.
func (p *plan) pageDelayed(now, retryAfter time.Duration) {
	p.reading = false
	p.fails++
	p.retryAt = now + max(min(firstPause<<min(p.fails-1, 10), minPollInterval), min(retryAfter, maxOutage))
}

// pageRateLimited records a 429 to a page. The first in a row delays polls, too. Polls find
// out whether more than the listing is limited, and for how long.
func (p *plan) pageRateLimited(now, sentAt, retryAfter time.Duration) {
	p.pageDelayed(now, min(retryAfter, maxRetryAfter))
	if p.fails == 1 {
		p.pacer.rateLimited(now, sentAt, 0)
	}
}

// pageRejected records that the service rejects a page. If the cursor may have expired, the scan
// ends. Otherwise the listing fails, and probably goes on to.
func (p *plan) pageRejected(now time.Duration, key bool) {
	if p.scan.cursor == "" || key {
		p.pageDelayed(now, minPollInterval<<min(p.fails, 5))
		return
	}
	p.reading = false
	p.works(now)
	p.scan.cursor = ""
	p.endScan()
}
