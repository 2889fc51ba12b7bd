package poll

import "time"

// Sighting is what a look or a page showed of one meeting.
type Sighting struct {
	ID    string
	State string // a meeting has changed if its State has
	Final bool   // the meeting will not change any more
	Value Value  // all that was shown; nil if that was not kept
}

// Value is the caller's own form of a meeting.
type Value interface {
	// Copy returns a copy. It may overwrite reuse, which may be nil and which
	// nobody else uses any more.
	Copy(reuse Value) Value
}

// Waiter waits for one meeting or for many. The Poller calls its methods with the
// Poller's lock held: they must not block and must not call the Poller.
type Waiter interface {
	// See notifies the waiter of a sighting, whose request was sent at sentAt or
	// later. changed means that this state is new to the waiter. See reports
	// whether the wait for this meeting is over.
	See(s Sighting, changed bool, sentAt time.Duration) (over bool)
	// Fail ends the wait for a meeting.
	Fail(last Sighting, err error)
	// Interval returns the least time between two looks that the waiter wants.
	Interval() time.Duration
}

// watch is one meeting that is waited for, or was seen within the floor. There may be
// very many, so the struct is kept small. Times count from the Poller's beginning.
type watch struct {
	id    string
	state string // as last seen; "" before the first sighting
	last  Value  // as last seen; nil if that was not kept

	first Waiter          // a waiter; nil if nobody waits
	more  map[Waiter]bool // the other waiters, and whether each knows the state; nil if there are none

	seen time.Duration // time of the last sighting, by any request
	free time.Duration // no look before this time
	due  time.Duration // time of the next look, unless a page shows the meeting before

	place int32  // index in its heap plus 1; 0 if in no heap
	page  int32  // index of the page that last showed it, within that sweep
	sweep uint32 // number of the last sweep that showed it

	role     role
	heard    bool // whether the waiter in first knows the state
	looking  bool // a look is under way
	unproven bool // the next full sweep should look for it
}

// waited reports whether somebody waits.
func (w *watch) waited() bool { return w.first != nil }

// interval returns the least Interval of the waiters, or 0 if there are none.
func (w *watch) interval() time.Duration {
	if w.first == nil {
		return 0
	}
	least := w.first.Interval()
	for waiter := range w.more {
		least = min(least, waiter.Interval())
	}
	return least
}

// add adds a waiter that is not there yet. heard says whether it knows the state.
func (w *watch) add(waiter Waiter, heard bool) {
	if w.first == nil {
		w.first, w.heard = waiter, heard
		return
	}
	if w.more == nil {
		w.more = make(map[Waiter]bool)
	}
	w.more[waiter] = heard
}

func (w *watch) has(waiter Waiter) bool {
	_, more := w.more[waiter]
	return more || w.first == waiter
}

// drop removes a waiter.
func (w *watch) drop(waiter Waiter) {
	if w.first != waiter {
		delete(w.more, waiter)
		return
	}
	w.first = nil
	for next, heard := range w.more {
		w.first, w.heard = next, heard
		delete(w.more, next)
		break
	}
}

// tell records a sighting and notifies every waiter. It removes those whose wait is over.
func (w *watch) tell(s Sighting, sentAt time.Duration) {
	changed := s.State != w.state
	w.state, w.last = s.State, s.Value
	for waiter, heard := range w.more {
		if waiter.See(s, changed || !heard, sentAt) {
			delete(w.more, waiter)
		} else {
			w.more[waiter] = true
		}
	}
	if w.first != nil {
		over := w.first.See(s, changed || !w.heard, sentAt)
		w.heard = true
		if over {
			w.drop(w.first)
		}
	}
	if len(w.more) == 0 {
		w.more = nil
	}
}

// fail ends every wait.
func (w *watch) fail(err error) {
	for waiter := range w.more {
		waiter.Fail(w.sighting(), err)
	}
	if w.first != nil {
		w.first.Fail(w.sighting(), err)
	}
	w.first, w.more = nil, nil
}

// old reports whether a sighting may show an older state: its request was sent before
// the last sighting. Then nobody is notified. A new final state is never old.
func (w *watch) old(s Sighting, sentAt time.Duration) bool {
	return w.seen > sentAt && (!s.Final || s.State == w.state)
}

// sighting returns what was seen last.
func (w *watch) sighting() Sighting { return Sighting{ID: w.id, State: w.state, Value: w.last} }

// dueHeap orders watches by their due time.
type dueHeap []*watch

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i+1), int32(j+1)
}

// countDue counts the watches due in the subtree at i, up to limit.
func (h dueHeap) countDue(now time.Duration, i, limit int) int {
	if limit <= 0 || i >= len(h) || h[i].due > now {
		return 0
	}
	n := 1 + h.countDue(now, 2*i+1, limit-1)
	return n + h.countDue(now, 2*i+2, limit-n)
}

// firstDue returns the earliest due time, or never if the heap is empty.
func (h dueHeap) firstDue() time.Duration {
	if len(h) == 0 {
		return never
	}
	return h[0].due
}

// Push is for container/heap.
func (h *dueHeap) Push(x any) {
	w := x.(*watch)
	*h = append(*h, w)
	w.place = int32(len(*h))
}

// Pop is for container/heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.place = 0
	return w
}
