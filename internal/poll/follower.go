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
	news  chan news[M] // holds one
	known map[string]bool
	since time.Time // a meeting created before is not new
}

type news[M any] struct {
	found []Snapshot[M]
	err   error // the last news
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
	f := &Follower[M]{p: p, news: make(chan news[M], 1), known: make(map[string]bool), since: since}
	p.followers = append(p.followers, f)
	p.plan.followers++
	if s := p.plan.sweep; s == nil || s.read > 0 {
		p.plan.began = -never // so that the next sweep begins as soon as possible
	}
	p.discovery = discovery{}
	p.run()
	return f
}

// Next returns meetings that it has not returned before. It fails if ctx is done, or, maybe with the last meetings, if the
// service rejects the list or the key.
func (f *Follower[M]) Next(ctx context.Context) ([]Snapshot[M], error) {
	select {
	case n := <-f.news:
		return n.found, n.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
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
		p.run()
	}
}

// publish adds to what Next returns. Only the Poller sends, with its lock held, so this never blocks.
func (f *Follower[M]) publish(n news[M]) {
	select {
	case old := <-f.news:
		n.found = append(old.found, n.found...)
	default:
	}
	f.news <- n
}

// endFollowers ends all followers with an error.
func (p *Poller[M]) endFollowers(err error) {
	for _, f := range p.followers {
		f.publish(news[M]{err: err})
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
	if len(found) > 0 {
		f.publish(news[M]{found: found})
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
