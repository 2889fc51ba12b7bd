package poll

import "time"

// Sighting is what a look, or a page, showed of one meeting.
type Sighting struct {
	ID    string
	State string // what is compared to tell a change
	Final bool   // it will not change any more
	Value Value  // all that was shown; nil where that was not kept
}

// Value is the caller's own form of a meeting.
type Value interface {
	// Copy returns a copy. It may take over's place, which nobody uses any more
	// and which may be nil.
	Copy(over Value) Value
}

// Waiter waits for one meeting or for many. Its methods are called with the
// Poller's lock held: they must not block and must not call the Poller.
type Waiter interface {
	// See is told of a sighting that was asked for at that time. changed says
	// that the waiter has not heard of this state yet. See reports whether the
	// wait for this meeting is over.
	See(s Sighting, changed bool, asked time.Duration) (over bool)
	// Fail ends the wait for a meeting.
	Fail(last Sighting, err error)
	// Interval is the least time between two looks that this waiter wants.
	Interval() time.Duration
}

// watch is one meeting that is waited for, or was seen a moment ago. There may be
// very many, so it is kept small. Times are counted from the Poller's beginning.
type watch struct {
	id    string
	state string // as last seen; "" before the first look
	last  Value  // as last seen, where that is kept whole

	first Waiter          // who waits
	more  map[Waiter]bool // the others, and whether they heard of state; nil while there are none

	seen time.Duration // when it was last seen, by whatever
	free time.Duration // the floor since the last look at this meeting ends then
	due  time.Duration // when it is to be looked at by itself

	place int32  // in a heap, from 1; 0: in none
	page  int32  // that showed it, counted within that sweep
	sweep uint32 // the last one that showed it

	role     role
	heard    bool // first heard of state
	looking  bool // a look is under way
	unproven bool // the next full sweep should look for it
}

func (w *watch) waited() bool { return w.first != nil }

// interval is the least time between two looks that a waiter wants.
func (w *watch) interval() time.Duration {
	if w.first == nil {
		return 0
	}
	least := w.first.Interval()
	for who := range w.more {
		least = min(least, who.Interval())
	}
	return least
}

// add takes a waiter in that is not there yet.
func (w *watch) add(who Waiter, heard bool) {
	if w.first == nil {
		w.first, w.heard = who, heard
		return
	}
	if w.more == nil {
		w.more = make(map[Waiter]bool)
	}
	w.more[who] = heard
}

func (w *watch) has(who Waiter) bool {
	_, more := w.more[who]
	return more || w.first == who
}

// drop takes a waiter out.
func (w *watch) drop(who Waiter) {
	if w.first != who {
		delete(w.more, who)
		return
	}
	w.first = nil
	for next, heard := range w.more {
		w.first, w.heard = next, heard
		delete(w.more, next)
		break
	}
}

// tell lets every waiter know what was seen. Those whose wait is over leave.
func (w *watch) tell(s Sighting, asked time.Duration) {
	changed := s.State != w.state
	w.state, w.last = s.State, s.Value
	for who, heard := range w.more {
		if who.See(s, changed || !heard, asked) {
			delete(w.more, who)
		} else {
			w.more[who] = true
		}
	}
	if w.first != nil {
		over := w.first.See(s, changed || !w.heard, asked)
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
	for who := range w.more {
		who.Fail(w.sighting(), err)
	}
	if w.first != nil {
		w.first.Fail(w.sighting(), err)
	}
	w.first, w.more = nil, nil
}

// old reports whether a sighting may be older than what was seen last: it was
// asked for before that came. Nobody is told of it, so that no meeting seems to go
// back. What is final is never old.
func (w *watch) old(s Sighting, asked time.Duration) bool {
	return w.seen > asked && (!s.Final || s.State == w.state)
}

// sighting is what was seen last.
func (w *watch) sighting() Sighting { return Sighting{ID: w.id, State: w.state, Value: w.last} }

// dueHeap orders watches by when they are due.
type dueHeap []*watch

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i+1), int32(j+1)
}

// countDue counts those that are due, up to so many, from the ith on downwards.
func (h dueHeap) countDue(now time.Duration, i, most int) int {
	if most <= 0 || i >= len(h) || h[i].due > now {
		return 0
	}
	n := 1 + h.countDue(now, 2*i+1, most-1)
	return n + h.countDue(now, 2*i+2, most-n)
}

// first is when the first one is due.
func (h dueHeap) first() time.Duration {
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
