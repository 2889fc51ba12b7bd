package poll

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	margin   = 2 * time.Minute // how late a meeting may appear in the list, compared with newer ones
	remember = 24 * time.Hour  // so long a follower remembers the meetings that it has found
)

// Follower finds the meetings that are new to it, on every page that the Poller reads. Once a cycle it reads the list from the
// top, down to a page with nothing new and a meeting that has not changed since the reading before. So it misses none, whether
// the list is ordered by creation or by change. It compares times of the service only, so this machine's clock does not matter.
type Follower[M any] struct {
	p     *Poller[M]
	ready chan struct{}
	found []Snapshot[M]
	err   error

	known  map[string]time.Time // when the meetings found were created
	since  time.Time            // a meeting created before is not new
	mark   time.Time            // the latest time on the pages of the last reading that ended
	latest time.Time            // the latest time on the pages of this reading
	next   string               // cursor of its next page; empty if it has ended
}

// Follow finds meetings created at or after since.
func (p *Poller[M]) Follow(since time.Time) *Follower[M] {
	p.mu.Lock()
	defer p.unlock()
	f := &Follower[M]{p: p, ready: make(chan struct{}, 1), known: make(map[string]time.Time), since: since}
	p.followers = append(p.followers, f)
	p.plan.followers++
	p.plan.soon = true
	p.wakeBy(p.now())
	return f
}

// Next returns meetings that it has not returned before. It fails if ctx is done, or if the service rejects the list or the key.
func (f *Follower[M]) Next(ctx context.Context) ([]Snapshot[M], error) {
	for {
		f.p.mu.Lock()
		found, err := f.found, f.err
		f.found = nil
		f.p.unlock()
		if len(found) > 0 {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		select {
		case <-f.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Cancel ends the following.
func (f *Follower[M]) Cancel() {
	p := f.p
	p.mu.Lock()
	defer p.unlock()
	if i := slices.Index(p.followers, f); i >= 0 {
		p.followers = slices.Delete(p.followers, i, i+1)
		p.plan.followers--
		p.stopIfIdle()
	}
}

// signal wakes Next.
func (f *Follower[M]) signal() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// endFollowers ends all followers with an error.
func (p *Poller[M]) endFollowers(err error) {
	for _, f := range p.followers {
		f.err = err
		f.signal()
	}
	p.followers, p.plan.followers = nil, 0
}

// discover shows a page to the followers. It returns how many unfinished meetings are new to one, and whether one wants the
// next page.
func (p *Poller[M]) discover(page []Snapshot[M], cursor, next string) (unfinished int, more bool) {
	for _, f := range p.followers {
		found := f.find(page)
		for _, s := range found {
			p.meeting(s.ID) // its snapshot is kept, so that a wait can begin with it
			if !s.Final {
				unfinished++
			}
		}
		if p.plan.look == nil {
			more = f.wants(page, cursor, next, len(found) > 0) || more
		}
	}
	return unfinished, more
}

// find returns the meetings on a page that are new.
func (f *Follower[M]) find(page []Snapshot[M]) (found []Snapshot[M]) {
	for _, s := range page {
		if _, known := f.known[s.ID]; !known && !s.Created.Before(f.since) {
			f.known[s.ID] = s.Created
			found = append(found, s)
		}
	}
	if f.found = append(f.found, found...); len(found) > 0 {
		f.signal()
	}
	return found
}

// wants records a page of a sweep, and reports whether the next page is worth reading. A page that is not the next one of the
// reading is of a sweep that began before the follower, or after one that broke off.
func (f *Follower[M]) wants(page []Snapshot[M], cursor, next string, found bool) bool {
	if cursor == atTheTop {
		f.next, f.latest = atTheTop, time.Time{}
	} else if cursor != f.next {
		return false
	}
	old := latest(f.since, f.mark).Add(-margin)
	f.next = next
	for _, s := range page {
		changed := latest(s.Created, s.Updated)
		f.latest = latest(f.latest, changed)
		if !found && changed.Before(old) {
			f.next = ""
		}
	}
	if f.next == "" {
		f.mark = f.latest
		f.forget()
	}
	return f.next != ""
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// forget forgets meetings found long ago. From then on, no meeting as old as they are is new.
func (f *Follower[M]) forget() {
	floor := f.mark.Add(-2 * remember)
	if now := time.Now(); f.since.Before(floor) && f.mark.Before(now.Add(remember)) {
		f.since = floor.Add(remember)
		maps.DeleteFunc(f.known, func(_ string, created time.Time) bool { return created.Before(f.since) })
	}
}
