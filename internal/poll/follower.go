package poll

import (
	"context"
	"slices"
	"time"
)

const margin = 2 * time.Minute // how late a meeting may appear in the list, compared with newer ones

// Follower finds the meetings that are new to it, on every page that the Poller reads.
type Follower[M any] struct {
	p     *Poller[M]
	ready chan struct{}
	found []Snapshot[M]
	err   error
	known map[string]bool
	since time.Time // a meeting created before is not new
}

// discovery decides how far the sweeps read for all followers together: from the top down to a page with nothing new and a
// meeting that has not changed since the last such reading. So they miss no meeting, whether the list is ordered by creation
// or by change. It compares times of the service only, so this machine's clock does not matter.
type discovery struct {
	mark   time.Time // the latest time on the pages of the last reading that ended; zero if a follower needs a whole one
	latest time.Time // the latest time on the pages of this reading
	next   string    // cursor of its next page; atTheTop if it has ended
}

// Follow finds meetings created at or after since.
func (p *Poller[M]) Follow(since time.Time) *Follower[M] {
	p.mu.Lock()
	defer p.unlock()
	f := &Follower[M]{p: p, ready: make(chan struct{}, 1), known: make(map[string]bool), since: since}
	p.followers = append(p.followers, f)
	p.plan.followers++
	p.plan.began = -never // so that the next sweep begins as soon as possible
	p.discovery = discovery{}
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

// discover shows a page to the followers. It returns how many unfinished meetings are new to one, and whether the next page
// is worth reading.
func (p *Poller[M]) discover(page []Snapshot[M], cursor, next string) (unfinished int, more bool) {
	if len(p.followers) == 0 {
		return 0, false
	}
	since, isNew := p.followers[0].since, false
	for _, f := range p.followers {
		if f.since.Before(since) {
			since = f.since
		}
		for _, s := range f.find(page) {
			p.meeting(s.ID) // its snapshot is kept, so that a wait can begin with it
			isNew = true
			if !s.Final {
				unfinished++
			}
		}
	}
	return unfinished, p.read(page, cursor, next, since, isNew)
}

// find returns the meetings on a page that are new.
func (f *Follower[M]) find(page []Snapshot[M]) (found []Snapshot[M]) {
	for _, s := range page {
		if !f.known[s.ID] && !s.Created.Before(f.since) {
			f.known[s.ID] = true
			found = append(found, s)
		}
	}
	if f.found = append(f.found, found...); len(found) > 0 {
		f.signal()
	}
	return found
}

// read records a page, and reports whether the next one is worth reading. A page that is not the next one of this reading is
// of a sweep that began before the latest follower, or after a sweep that broke off: it does not count.
func (p *Poller[M]) read(page []Snapshot[M], cursor, next string, since time.Time, isNew bool) (more bool) {
	d := &p.discovery
	if cursor == atTheTop {
		d.latest = time.Time{}
	} else if cursor != d.next {
		return false
	}
	old := latest(since, d.mark).Add(-margin)
	d.next = next
	for _, s := range page {
		changed := latest(s.Created, s.Updated)
		d.latest = latest(d.latest, changed)
		if !isNew && changed.Before(old) {
			d.next = atTheTop
		}
	}
	if d.next == atTheTop {
		d.mark = d.latest
	}
	return d.next != atTheTop
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
