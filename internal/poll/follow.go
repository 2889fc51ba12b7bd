package poll

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// margin is how many seconds late a meeting may appear in the listing, compared with newer ones,
// including the difference between this machine's clock and the service's.
const margin = 120

// follower finds new meetings for a waiter, on every page that the Poller reads. Once a cycle it
// makes a pass: it reads the listing from the top, down to a meeting that has not changed since the
// pass before. So it misses none if the listing is ordered by creation or by change. A pass that
// fails is made again. Times are Unix seconds.
type follower struct {
	waiter Waiter
	known  map[string]int64 // when the meetings found were created, unless that is before floor
	floor  int64            // a meeting created before is not new
	later  int64            // the next floor, margin seconds later: a pass may miss a meeting that moves
	raised int64            // when floor became later
	depth  int64            // a meeting that has not changed since then ends a pass
	newest int64            // when the newest meeting was created
	again  bool             // the next pass reads down to floor, too: this one may miss a meeting
	began  int64            // when the present pass began
	next   string           // cursor of its next page; empty: the next pass begins at the top
}

// Follow makes a waiter wait for every meeting that was created at or after since and that a
// page shows from now on. Polls start with the page's snapshot. If the service rejects the key,
// it calls Fail without an id.
func (p *Poller) Follow(waiter Waiter, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	floor := since.Unix() - margin
	p.followers = append(p.followers, &follower{waiter: waiter, known: make(map[string]int64), floor: floor, later: floor, depth: floor, again: true})
	p.plan.following++
	p.plan.waiting++
	p.plan.topBegan = -minPollInterval
	p.reschedule(p.now())
}

// Unfollow ends Follow, and all waits of the waiter.
func (p *Poller) Unfollow(waiter Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers = slices.DeleteFunc(p.followers, func(f *follower) bool { return f.waiter == waiter })
	p.continuePass()
	for _, w := range p.plan.watches {
		if w.drop(waiter) {
			p.releaseIfIdle(w)
		}
	}
	p.plan.following--
	p.plan.waiterGone()
	p.stopIfIdle()
}

// showFollowers lets the followers join the meetings of a page that are new to them.
func (p *Poller) showFollowers(page []Snapshot, cursor, next string, sent time.Time) {
	for _, f := range p.followers {
		for _, s := range f.page(page, cursor, next, sent.Unix()) {
			p.join(f.waiter, s.ID, p.now())
		}
	}
	p.continuePass()
}

// passLost ends the passes that continue at a cursor that the service rejects.
func (p *Poller) passLost(cursor string) {
	for _, f := range p.followers {
		if f.next == cursor {
			f.next = ""
		}
	}
	p.continuePass()
}

// continuePass lets the plan read the next page of a pass.
func (p *Poller) continuePass() {
	p.plan.passAt = ""
	for _, f := range p.followers {
		p.plan.passAt = cmp.Or(p.plan.passAt, f.next)
	}
}

// page records a page, whose request was sent at sent, and returns the new meetings on it.
func (f *follower) page(page []Snapshot, cursor, next string, sent int64) (found []Snapshot) {
	unchanged := false
	for _, s := range page {
		f.newest = max(f.newest, s.Created)
		unchanged = unchanged || max(s.Created, s.Updated) < f.depth
		if _, known := f.known[s.ID]; !known && s.Created >= f.floor {
			f.known[s.ID] = s.Created
			if s.Created < f.depth { // the listing is late
				f.depth, f.again = f.floor, true
			}
			found = append(found, s)
		}
	}
	if cursor != f.next { // not of the pass
		return found
	}
	if cursor == "" {
		f.began = sent
	}
	if f.next = next; next == cursor || unchanged && len(found) == 0 {
		f.next = ""
	}
	if f.next == "" {
		f.passEnded(sent)
	}
	return found
}

// passEnded sets how far the next pass reads, and forgets the meetings that it will not take for
// new. Meetings prove how late it is at the service, so that an old page does no harm.
func (f *follower) passEnded(now int64) {
	if f.depth = f.began - margin; f.again {
		f.depth, f.again = f.floor, false
	}
	if f.began-f.raised < margin { // a pass may take long
		return
	}
	f.floor, f.later, f.raised = f.later, max(f.later, min(f.began, f.newest)), now
	maps.DeleteFunc(f.known, func(_ string, created int64) bool { return created < f.floor })
}
