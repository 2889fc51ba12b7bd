package poll

import (
	"context"
	"slices"
	"time"
)

const (
	// margin is how late a meeting may appear in the list, compared with newer ones. The clocks of the
	// service's machines may differ by as much.
	margin = 10 * time.Minute
	// recent is how long before its beginning a Discovery without since finds meetings.
	recent = 2 * time.Minute
	// perPageBack is the time for each further page of a reading back to since, so that such readings
	// cost a page a minute on average.
	perPageBack = time.Minute
	// leastBack is the least time between two of them.
	leastBack = 50 * time.Minute
)

// Discovery finds the meetings that are new to it, on every page that the Poller reads.
//
// It reads from the top until a page shows nothing new, and at least one meeting that has not
// changed since the last reading. So it misses no meeting that appears within the margin, whether
// the list is ordered by creation or by change. For those that appear later, because somebody shares
// them, it reads back to since again from time to time. It compares times of the service only, so
// this machine's clock does not matter.
type Discovery[M any] struct {
	p *Poller[M]
	// news holds what Next has not returned yet, in one value.
	news chan news[M]
	// known are the meetings that it has found.
	known map[string]bool
	// since is the earliest creation of a meeting that counts as new. It is zero until a first page
	// shows the service's time, if the caller has not set it.
	since time.Time
	// began is when the discovery began.
	began time.Duration
	// ahead is how far the service's clock is ahead of the Poller's, as far as pages have shown.
	ahead time.Duration

	// read means that the first reading has ended.
	read bool
	// reading means that it wants the next page of the sweep.
	reading bool
	// readingBegan is when this reading began, or the last one.
	readingBegan time.Duration
	// back means that this reading goes back to since.
	back bool
	// backAt is when the next such reading begins.
	backAt time.Duration
	// pages is how many pages this reading has.
	pages int
	// shown are the meetings on them.
	shown map[string]bool
	// unchanged is the time before which the last change of a meeting must lie to end a reading,
	// unless that goes back to since.
	unchanged time.Time
}

// news is what a Discovery has found.
type news[M any] struct {
	found []Snapshot[M]
	// read means that the first reading has ended.
	read bool
	// err, if not nil, ends the discovery.
	err error
}

// Discover finds meetings created at or after since. If since is zero, it finds those created from two
// minutes ago, by the service's clock.
func (p *Poller[M]) Discover(since time.Time) *Discovery[M] {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &Discovery[M]{
		p: p, news: make(chan news[M], 1), known: make(map[string]bool),
		since: since, began: p.now(), ahead: -never, shown: make(map[string]bool),
	}
	p.discoveries = append(p.discoveries, d)
	p.plan.began = -never // so that the next sweep begins as soon as possible
	p.run()
	return d
}

// Next returns meetings that it has not returned before. read means that it has read the list
// once, and has returned all that it found there. It fails if ctx is done, or, maybe with the last
// meetings, if the service rejects the list or the key.
func (d *Discovery[M]) Next(ctx context.Context) (found []Snapshot[M], read bool, err error) {
	select {
	case n := <-d.news:
		return n.found, n.read, n.err
	case <-ctx.Done():
		return nil, false, ctx.Err()
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
		n.read = n.read || old.read
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
func (d *Discovery[M]) see(page Page[M], first, last bool) (unfinished int, more bool) {
	d.setClock(page)
	if first {
		d.beginReading()
	}
	if d.since.IsZero() {
		return 0, false // it has begun during a sweep
	}
	d.countPage()
	until := d.unchanged
	if d.back {
		until = d.since.Add(-margin)
	}
	shownBefore := len(d.shown)
	var found []Snapshot[M]
	oneUnchanged := false
	for _, s := range page.Shown {
		d.shown[s.ID] = true
		if !d.known[s.ID] && !s.Created.Before(d.since) {
			d.known[s.ID] = true
			d.p.meeting(s.ID) // its snapshot is kept, so that a wait can begin with it
			found = append(found, s)
			if !s.Final {
				unfinished++
			}
		}
		oneUnchanged = oneUnchanged || lastChange(s).Before(until)
	}
	wasReading := d.reading
	switch {
	case !d.reading:
	case last || oneUnchanged && len(found) == 0:
		d.reading = false
		d.unchanged = latest(d.unchanged, d.serviceTime(d.readingBegan).Add(-margin))
	case len(page.Shown) > 0 && len(d.shown) == shownBefore: // the list repeats itself, maybe for ever
		d.reading = false
	}
	firstEnds := wasReading && !d.reading && !d.read
	d.read = d.read || firstEnds
	if len(found) > 0 || firstEnds {
		d.publish(news[M]{found: found, read: firstEnds})
	}
	return unfinished, d.reading
}

// beginReading begins a reading, once setClock knows its first page.
func (d *Discovery[M]) beginReading() {
	d.reading = true
	d.readingBegan = d.p.now()
	d.back = d.readingBegan >= d.backAt
	d.pages = 0
	clear(d.shown)
	if d.since.IsZero() {
		d.since = d.serviceTime(d.began).Add(-recent)
	}
	d.unchanged = latest(d.unchanged, d.since.Add(-margin))
}

// countPage counts a page of the reading. Each puts the next reading back to since off, even if this
// one is broken off: otherwise expired cursors would make it begin again in every cycle.
func (d *Discovery[M]) countPage() {
	if d.back && d.reading {
		d.backAt = d.readingBegan + max(leastBack, time.Duration(d.pages)*perPageBack)
		d.pages++
	}
}

// setClock compares the service's clock with the Poller's. The service's time is at least the latest
// that a page shows. It goes on even if nothing changes any more: otherwise many meetings that were
// created in one second would be read again in each cycle, for ever.
func (d *Discovery[M]) setClock(page Page[M]) {
	time := page.Now
	for _, s := range page.Shown {
		time = latest(time, lastChange(s))
	}
	d.ahead = max(d.ahead, time.Sub(d.p.epoch.Add(d.p.now())))
}

// serviceTime returns the service's time at a time of the Poller's clock.
func (d *Discovery[M]) serviceTime(at time.Duration) time.Time { return d.p.epoch.Add(at + d.ahead) }

// lastChange returns the last change of a meeting.
func lastChange[M any](s Snapshot[M]) time.Time { return latest(s.Created, s.Updated) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
