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

	known   map[string]time.Time // when the meetings found were created
	since   time.Time            // a meeting created before is not new
	mark    time.Time            // the latest time on the pages of the last reading that ended
	latest  time.Time            // the latest time on the pages of this reading
	reading bool                 // a reading has begun at the top and has not ended
}

// Follow finds meetings created at or after since.
func (p *Poller[M]) Follow(since time.Time) *Follower[M] {
	p.mu.Lock()
	defer p.unlock()
	f := &Follower[M]{p: p, ready: make(chan struct{}, 1), known: make(map[string]time.Time), since: since}
	p.followers = append(p.followers, f)
	p.plan.followers++
	p.plan.soon = true
	now := p.now()
	p.wakeBy(now, now)
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
	inSweep := p.plan.look == nil
	for _, f := range p.followers {
		found := f.find(page)
		for _, s := range found {
			p.meeting(s.ID, p.last) // its snapshot is kept, so that a wait can begin with it
			if !s.Final {
				unfinished++
			}
		}
		if inSweep && f.read(page, cursor == "", next == "", len(found) > 0) {
			more = true
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
	if len(found) > 0 {
		f.found = append(f.found, found...)
		f.signal()
	}
	return found
}

// read records a page of the sweep, and reports whether the next page is worth reading.
func (f *Follower[M]) read(page []Snapshot[M], first, last, found bool) (more bool) {
	if first {
		f.reading, f.latest = true, time.Time{}
	}
	if !f.reading {
		return false
	}
	end := f.since
	if f.mark.After(end) {
		end = f.mark
	}
	for _, s := range page {
		changed := s.Created
		if s.Updated.After(changed) {
			changed = s.Updated
		}
		if changed.After(f.latest) {
			f.latest = changed
		}
		last = last || !found && changed.Before(end.Add(-margin))
	}
	if !last {
		return true
	}
	f.reading, f.mark = false, f.latest
	f.forget()
	return false
}

// forget forgets meetings found long ago. From then on, no meeting as old as they are is new.
func (f *Follower[M]) forget() {
	floor := f.mark
	if now := time.Now(); floor.After(now) {
		floor = now
	}
	if floor = floor.Add(-2 * remember); floor.After(f.since) {
		f.since = floor.Add(remember)
		maps.DeleteFunc(f.known, func(_ string, created time.Time) bool { return created.Before(f.since) })
	}
}

// passLost lets the followers read from the top again if the sweep has ended early.
func (p *Poller[M]) passLost() {
	for _, f := range p.followers {
		f.reading = f.reading && p.plan.sweep != nil
	}
}
