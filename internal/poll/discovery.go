package poll

import (
	"context"
	"slices"
	"time"
)

// margin is how late a meeting may appear in the list, compared with newer ones. The clocks of the
// service's machines may differ by as much.
const margin = 10 * time.Minute

// Discovery finds the meetings that are new to it, on every page that the Poller reads.
//
// It reads from the top until a page shows nothing new, and at least one meeting that has not
// changed since the last reading. So it misses no meeting, whether the list is ordered by creation
// or by change. It compares times of the service only, so this machine's clock does not matter.
type Discovery[M any] struct {
	p *Poller[M]
	// news holds what Next has not returned yet, in one value.
	news chan news[M]
	// known are the meetings that it has found.
	known map[string]bool
	// since is the earliest creation of a meeting that counts as new.
	since time.Time

	// reading means that it wants the next page of the sweep.
	reading bool
	// shown are the meetings on the pages of this reading.
	shown map[string]bool
	// newest is the latest time of a creation or a change on the pages of this reading.
	newest time.Time
	// unchanged is the time before which the last change of a meeting must lie to end a reading.
	unchanged time.Time
}

// news is what a Discovery has found.
type news[M any] struct {
	found []Snapshot[M]
	// err, if not nil, ends the discovery.
	err error
}

// Discover finds meetings created at or after since.
func (p *Poller[M]) Discover(since time.Time) *Discovery[M] {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &Discovery[M]{
		p: p, news: make(chan news[M], 1), known: make(map[string]bool),
		since: since, shown: make(map[string]bool), unchanged: since.Add(-margin),
	}
	p.discoveries = append(p.discoveries, d)
	p.plan.began = -never // so that the next sweep begins as soon as possible
	p.run()
	return d
}

// Next returns meetings that it has not returned before. It fails if ctx is done, or, maybe with
// the last meetings, if the service rejects the list or the key.
func (d *Discovery[M]) Next(ctx context.Context) ([]Snapshot[M], error) {
	select {
	case n := <-d.news:
		return n.found, n.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Forget makes Next return a meeting again once a page shows it. Call it if the meeting is gone.
func (d *Discovery[M]) Forget(id string) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	delete(d.known, id)
}

// Cancel ends the discovery.
func (d *Discovery[M]) Cancel() {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.p.discoveries = slices.DeleteFunc(d.p.discoveries, func(x *Discovery[M]) bool { return x == d })
	d.p.run()
}

// publish adds to what Next returns. Only the Poller sends, with its lock held, so this never
// blocks.
func (d *Discovery[M]) publish(n news[M]) {
	select {
	case old := <-d.news:
		n.found = append(old.found, n.found...)
	default:
	}
	d.news <- n
}

// endDiscoveries ends all of them with an error.
func (p *Poller[M]) endDiscoveries(err error) {
	for _, d := range p.discoveries {
		d.publish(news[M]{err: err})
	}
	p.discoveries = nil
}

// see shows it a page of a sweep. It returns how many unfinished meetings are new to it, and
// whether it wants the next page.
func (d *Discovery[M]) see(page []Snapshot[M], first, last bool) (unfinished int, more bool) {
	if first {
		d.reading = true
		d.newest = time.Time{}
		clear(d.shown)
	}
	shownBefore := len(d.shown)
	var found []Snapshot[M]
	oneUnchanged := false
	for _, s := range page {
		d.shown[s.ID] = true
		if !d.known[s.ID] && !s.Created.Before(d.since) {
			d.known[s.ID] = true
			d.p.meeting(s.ID) // its snapshot is kept, so that a wait can begin with it
			found = append(found, s)
			if !s.Final {
				unfinished++
			}
		}
		changed := latest(s.Created, s.Updated)
		oneUnchanged = oneUnchanged || changed.Before(d.unchanged)
		d.newest = latest(d.newest, changed)
	}
	if len(found) > 0 {
		d.publish(news[M]{found: found})
	}
	switch {
	case !d.reading:
	case last || oneUnchanged && len(found) == 0:
		d.reading = false
		d.unchanged = latest(d.unchanged, d.newest.Add(-margin))
	case len(page) > 0 && len(d.shown) == shownBefore: // the list repeats itself, maybe for ever
		d.reading = false
	}
	return unfinished, d.reading
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
