package poll

import (
	"context"
	"slices"
	"time"
)

const margin = 2 * time.Minute // how late a meeting may appear in the list, compared with newer ones

// Discovery finds the meetings that are new to it, on every page that the Poller reads.
//
// Its readings go from the top down to a page with nothing new and a meeting that has not changed since the last reading. So
// it misses no meeting, whether the list is ordered by creation or by change. It compares times of the service only, so this
// machine's clock does not matter.
type Discovery[M any] struct {
	p     *Poller[M]
	news  chan news[M] // holds one
	known map[string]bool
	since time.Time // a meeting created before is not new

	reading bool      // it wants the next page of the sweep
	latest  time.Time // on the pages of this reading
	old     time.Time // a meeting that has not changed since then ends a reading
}

type news[M any] struct {
	found []Snapshot[M]
	err   error // the last news
}

// Discover finds meetings created at or after since.
func (p *Poller[M]) Discover(since time.Time) *Discovery[M] {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &Discovery[M]{p: p, news: make(chan news[M], 1), known: make(map[string]bool), since: since, old: since.Add(-margin)}
	p.discoveries = append(p.discoveries, d)
	p.plan.began = -never // so that the next sweep begins as soon as possible
	p.run()
	return d
}

// Next returns meetings that it has not returned before. It fails if ctx is done, or, maybe with the last meetings, if the
// service rejects the list or the key.
func (d *Discovery[M]) Next(ctx context.Context) ([]Snapshot[M], error) {
	select {
	case n := <-d.news:
		return n.found, n.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Cancel ends the discovery.
func (d *Discovery[M]) Cancel() {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.p.discoveries = slices.DeleteFunc(d.p.discoveries, func(x *Discovery[M]) bool { return x == d })
	d.p.run()
}

// publish adds to what Next returns. Only the Poller sends, with its lock held, so this never blocks.
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

// see shows it a page of a sweep. It returns how many unfinished meetings are new to it, and whether it wants the next page.
func (d *Discovery[M]) see(page []Snapshot[M], first, last bool) (unfinished int, more bool) {
	if first {
		d.reading, d.latest = true, time.Time{}
	}
	var found []Snapshot[M]
	unchanged := false
	for _, s := range page {
		if !d.known[s.ID] && !s.Created.Before(d.since) {
			d.known[s.ID] = true
			d.p.meeting(s.ID) // its snapshot is kept, so that a wait can begin with it
			found = append(found, s)
			if !s.Final {
				unfinished++
			}
		}
		changed := latest(s.Created, s.Updated)
		unchanged = unchanged || changed.Before(d.old)
		d.latest = latest(d.latest, changed)
	}
	if len(found) > 0 {
		d.publish(news[M]{found: found})
	}
	if d.reading && (last || unchanged && len(found) == 0) {
		d.reading, d.old = false, latest(d.old, d.latest.Add(-margin))
	}
	return unfinished, d.reading
}

func latest(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
