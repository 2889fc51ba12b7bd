package poll

import (
	"slices"
	"time"
)

// Snapshot is one meeting as a request showed it. Nobody changes it.
type Snapshot struct {
	ID    string
	State string // a meeting has changed if its State has
	Final bool   // the meeting will not change any more
	Value any    // the caller's own form of the meeting
	Page  bool   // a page showed it, which may be older than its request

	Created, Updated int64 // in Unix seconds; only followers need them
}

// Waiter waits for one meeting or for many. The Poller calls its methods with the
// Poller's lock held: they must not block and must not call the Poller.
type Waiter interface {
	// Notify notifies the waiter of a snapshot, whose request was sent at sentAt or
	// later. changed means that this state is new to the waiter. Notify reports
	// whether the wait for this meeting is over, and whether a poll must confirm
	// what a page showed.
	Notify(s Snapshot, changed bool, sentAt time.Duration) (over, confirm bool)
	// Fail ends the wait for the meeting with this id.
	Fail(id string, last Snapshot, err error)
	// Interval returns the shortest time between two polls that the waiter wants for a
	// meeting, which was seen last in this snapshot.
	Interval(last Snapshot) time.Duration
}

// watch is one meeting that has waiters or a fresh snapshot. There may be very many.
// Times are the Poller's.
type watch struct {
	id      string
	last    Snapshot // zero before the first
	stale   bool     // Invalidate was called after last
	waiters []waiting

	seen    time.Duration // time of the last snapshot, by any request
	changed time.Duration // time of the last snapshot with another state than the one before
	free    time.Duration // no poll before this time
	due     time.Duration // time of the next poll, unless a page shows the meeting before

	place   int32    // index in its heap plus 1; 0 if in no heap
	stretch *stretch // whose pages showed it last; nil if none

	role    role
	polling bool // a poll is under way
	confirm bool // a poll must confirm what a page showed
}

// waiting is a waiter of a watch.
type waiting struct {
	Waiter
	notified bool // of the last snapshot
}

// waited reports whether somebody waits.
func (w *watch) waited() bool { return len(w.waiters) > 0 }

// fresh reports whether the last snapshot serves for a wait that begins now.
func (w *watch) fresh(now time.Duration) bool {
	return w.last.State != "" && !w.stale && now-w.seen < minPollInterval
}

// interval returns the shortest Interval of the waiters.
func (w *watch) interval() time.Duration {
	shortest := never
	for _, waiter := range w.waiters {
		shortest = min(shortest, waiter.Interval(w.last))
	}
	return shortest
}

// drop removes a waiter. It returns false if the waiter is not there.
func (w *watch) drop(waiter Waiter) bool {
	at := slices.IndexFunc(w.waiters, func(x waiting) bool { return x.Waiter == waiter })
	if at >= 0 {
		w.waiters = slices.Delete(w.waiters, at, at+1)
	}
	return at >= 0
}

// fail ends every wait.
func (w *watch) fail(err error) {
	for _, waiter := range w.waiters {
		waiter.Fail(w.id, w.last, err)
	}
	w.waiters = nil
}

// old reports whether a snapshot may show an older state than the last one: its request
// was sent before that arrived. A new final state is never old.
func (w *watch) old(s Snapshot, sentAt time.Duration) bool {
	return w.seen > sentAt && (!s.Final || s.State == w.last.State)
}
