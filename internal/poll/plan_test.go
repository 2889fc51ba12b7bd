package poll

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// planAt returns a plan at a minute, with so many meetings awaited since then.
func planAt(newcomers int) (*plan, []*watch) {
	p := &plan{}
	p.stop()
	var all []*watch
	for i := range newcomers {
		all = append(all, &watch{id: fmt.Sprint(i)})
		p.join(all[i], time.Minute, false, false)
	}
	return p, all
}

// polled lets each of the meetings have a good response at a minute.
func polled(p *plan, all []*watch) {
	for _, w := range all {
		p.got(w, time.Minute, 1, 0)
	}
}

// page lets a sweep begin, and read one page that shows the meetings.
func page(t *testing.T, p *plan, now time.Duration, next string, shown ...*watch) {
	t.Helper()
	for {
		do := p.decide(max(now, p.slot))
		if do.page {
			break
		}
		require.NotNil(t, do.get, "a sweep begins")
		p.getEnded(do.get, now)
	}
	p.pageRead(now, now, shown, 0, next, false)
}

func TestPlan_DecidesByItsRules(t *testing.T) {
	t.Parallel()
	const now = time.Minute
	gets := func(p *plan, w *watch, f *Failure) {
		p.take(w)
		w.getting = true
		p.polling++
		p.getEnded(w, now)
		p.getFailed(w, now, f)
	}
	for _, c := range []struct {
		name string
		n    int
		do   func(t *testing.T, p *plan, w []*watch)
		want func(p *plan, w []*watch) any
		is   any
	}{
		{"a newcomer is due before all others", 1, nil, due, now - Interval},
		{"a poll puts a meeting off by an interval", 1, func(_ *testing.T, p *plan, w []*watch) { polled(p, w) }, due, now + Interval},
		{"max-age puts it off further", 1, func(_ *testing.T, p *plan, w []*watch) { p.got(w[0], now, 1, time.Minute) }, due, now + time.Minute},
		{"but five minutes at most", 1, func(_ *testing.T, p *plan, w []*watch) { p.got(w[0], now, 1, time.Hour) }, due, now + MaxAsked},
		{"twice the requests make the cycle √2 longer", 2 * steady, nil,
			func(p *plan, _ []*watch) any { return p.cycle() / time.Second }, time.Duration(42)},
		{"a failed GET comes later", 1, func(_ *testing.T, p *plan, w []*watch) {
			gets(p, w[0], &Failure{Kind: Transient})
			gets(p, w[0], &Failure{Kind: Transient})
		}, due, now + 2*Interval},
		{"a GET with a 429 stays due", 1, func(_ *testing.T, p *plan, w []*watch) { gets(p, w[0], &Failure{}) }, due, now - Interval},
		{"the third failure in a row is an outage", 3, func(_ *testing.T, p *plan, w []*watch) {
			for _, w := range w {
				gets(p, w, &Failure{Kind: Transient})
			}
		}, func(p *plan, _ []*watch) any { return p.until }, now + time.Second},
		{"two failures after a good response are none", 2, func(_ *testing.T, p *plan, w []*watch) {
			polled(p, w)
			gets(p, w[0], &Failure{Kind: Transient})
			gets(p, w[1], &Failure{Kind: Transient})
		}, func(p *plan, _ []*watch) any { return p.until }, time.Duration(0)},
		{"a page between them ends the row", few, func(t *testing.T, p *plan, w []*watch) {
			gets(p, w[0], &Failure{Kind: Transient})
			gets(p, w[1], &Failure{Kind: Transient})
			page(t, p, now+Interval, "")
			gets(p, w[2], &Failure{Kind: Transient})
		}, func(p *plan, _ []*watch) any { return p.until }, time.Duration(0)},
		{"failures that may pass are none", 3, func(_ *testing.T, p *plan, w []*watch) {
			for _, w := range w {
				gets(p, w, &Failure{Kind: Foreign})
			}
		}, func(p *plan, _ []*watch) any { return p.until }, time.Duration(0)},
		{"few waits are not worth a page", few - 1, nil, func(p *plan, _ []*watch) any { return p.sweepAt() }, never},
		{"a page of the window puts off the GETs of what it shows", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, now+Interval, "next", w[:2]...)
		}, due, never},
		{"a page that saves one GET holds nothing", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, now+Interval, "next", w[0])
		}, due, now + 2*Interval},
		{"a sweep ends two pages beyond the last one that paid", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, now+Interval, "2", w[:2]...)
			page(t, p, now+Interval, "3")
			page(t, p, now+Interval, "4")
		}, sweeping, false},
		{"and not before", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, now+Interval, "2", w[:2]...)
			page(t, p, now+Interval, "3")
		}, sweeping, true},
		{"unless it has shown every meeting", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, now+Interval, "2", w...)
		}, sweeping, false},
		{"eight 429s end a sweep", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, now+Interval, "2", w[:2]...)
			for range giveUp {
				p.pageFailed(now, &Failure{Kind: RateLimited})
			}
		}, sweeping, false},
		{"seven do not", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, now+Interval, "2", w[:2]...)
			for range giveUp - 1 {
				p.pageFailed(now, &Failure{Kind: RateLimited})
			}
		}, sweeping, true},
		{"a GET with a 429 shows that not only the list is limited", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, now+Interval, "2", w[:2]...)
			for range giveUp {
				p.pageFailed(now, &Failure{Kind: RateLimited})
			}
			gets(p, w[0], &Failure{Kind: RateLimited})
		}, func(p *plan, _ []*watch) any { return p.retryAt }, time.Duration(0)},
		{"a rejected cursor ends a sweep", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, now+Interval, "2", w[:2]...)
			p.pageFailed(now, &Failure{Kind: Rejected})
		}, sweeping, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, w := planAt(c.n)
			if c.do != nil {
				c.do(t, p, w)
			}
			got := c.want(p, w)
			require.Equal(t, c.is, got)
		})
	}
}

func due(_ *plan, w []*watch) any      { return w[0].due }
func sweeping(p *plan, _ []*watch) any { return p.sweep != nil }
