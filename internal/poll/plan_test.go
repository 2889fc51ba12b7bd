package poll

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

const now = time.Minute

// planAt returns a plan at now, with newcomers that somebody awaits since then.
func planAt(newcomers int) (*plan, []*watch) {
	p := &plan{}
	p.stop()
	var all []*watch
	for i := range newcomers {
		all = append(all, &watch{id: fmt.Sprint(i)})
		p.join(all[i], now, false, false)
	}
	return p, all
}

// polled lets each of the meetings have a good response at now.
func polled(p *plan, all []*watch) {
	for _, w := range all {
		p.got(w, now, 1, 0)
	}
}

// getFails lets a GET of each of the meetings fail at now.
func getFails(p *plan, kind failure.Kind, all ...*watch) {
	for _, w := range all {
		getEnds(p, w)
		p.getFailed(w, now, &Failure{Kind: kind})
	}
}

// getEnds lets a GET of a meeting end.
func getEnds(p *plan, w *watch) {
	p.unschedule(w)
	p.enter(w, underWay)
	p.polling++
	p.getEnded(w)
}

// pageBegins lets a sweep begin or go on, until it reads a page.
func pageBegins(t *testing.T, p *plan, at time.Duration) {
	t.Helper()
	for {
		next := p.decide(max(at, p.pacedUntil))
		if next.page {
			return
		}
		require.NotNil(t, next.get, "a sweep begins")
		p.getEnded(next.get)
		p.got(next.get, at, 1, 0)
	}
}

// page lets a sweep read one page, an interval after now, which shows the meetings.
func page(t *testing.T, p *plan, next string, shown ...*watch) {
	t.Helper()
	const at = now + Interval
	pageBegins(t, p, at)
	p.pageRead(at, listPage{sentAt: at, shown: shown, next: next})
}

// sweepInVain lets a sweep read pages that show nothing until it ends, and returns how many.
func sweepInVain(t *testing.T, p *plan, at time.Duration) (pages int) {
	t.Helper()
	for pages == 0 || p.sweep != nil {
		pageBegins(t, p, at)
		p.pageRead(at, listPage{sentAt: at, next: "next"})
		pages++
	}
	return pages
}

func dueAt(_ *plan, w []*watch) any        { return w[0].dueAt }
func firstInLine(p *plan, _ []*watch) any  { return p.queue[0].id }
func sweeping(p *plan, _ []*watch) any     { return p.sweep != nil }
func depth(p *plan, _ []*watch) any        { return p.depth }
func pausedUntil(p *plan, _ []*watch) any  { return p.pausedUntil }
func retryAt(p *plan, _ []*watch) any      { return p.retryAt }
func cycleAt(p *plan, _ []*watch) any      { return p.cycle(now) }
func stateOfFirst(_ *plan, w []*watch) any { return w[0].state }
func nextIsPage(p *plan, _ []*watch) any   { return p.decide(now + 2*Interval).page }
func wakesAt(p *plan, _ []*watch) any      { return p.decide(now + Interval).wake }
func pageAt(p *plan, _ []*watch) any       { return p.pageAt(now) }

// pagesFail lets the next page fail this many times, an interval after now.
func pagesFail(p *plan, kind failure.Kind, times int) {
	for range times {
		p.pageFailed(now+Interval, &Failure{Kind: kind})
	}
}

func TestPlan_DecidesByItsRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		n    int
		act  func(t *testing.T, p *plan, w []*watch)
		want func(p *plan, w []*watch) any
		is   any
	}{
		// When a GET is due.
		{"a newcomer is due before all others", 1, nil, dueAt, now - Interval},
		{"newcomers keep their order in longer cycles", 4 * perInterval, func(_ *testing.T, p *plan, _ []*watch) {
			p.join(&watch{id: "late"}, now+time.Second, false, false)
		}, firstInLine, "0"},
		{"a second wait for one leaves it its place", 1, func(_ *testing.T, p *plan, w []*watch) {
			p.join(w[0], now+time.Minute, false, false)
		}, dueAt, now - Interval},
		{"and so does somebody who asks for its GET", 1, func(_ *testing.T, p *plan, w []*watch) {
			p.ask(w[0], now+time.Minute, 2, true)
		}, dueAt, now - Interval},
		{"a poll puts a meeting off by an interval", 1, func(_ *testing.T, p *plan, w []*watch) {
			polled(p, w)
		}, dueAt, now + Interval},
		{"max-age puts it off further", 1, func(_ *testing.T, p *plan, w []*watch) {
			p.got(w[0], now, 1, time.Minute)
		}, dueAt, now + time.Minute},
		{"but five minutes at most", 1, func(_ *testing.T, p *plan, w []*watch) {
			p.got(w[0], now, 1, time.Hour)
		}, dueAt, now + MaxAsked},
		{"330 requests fit into a cycle", 330, nil, cycleAt, Interval},
		{"four times the requests make the cycle twice as long", 4 * 330, nil, cycleAt, 2 * Interval},
		{"meetings that are expected on a page take none", 4 * 330, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+2*Interval)
			p.pageRead(now+2*Interval, listPage{sentAt: now + 2*Interval, shown: w})
		}, cycleAt, Interval},
		{"the first two cycles are longer by the phase", 1, func(_ *testing.T, p *plan, _ []*watch) {
			p.phase = time.Second
			p.start(now - Interval)
		}, cycleAt, Interval + time.Second},
		{"and no others", 1, func(_ *testing.T, p *plan, _ []*watch) {
			p.phase = time.Second
			p.start(now - 2*(Interval+time.Second))
		}, cycleAt, Interval},
		{"a failed GET comes again after an interval", 1, func(_ *testing.T, p *plan, w []*watch) {
			for range 10 {
				getFails(p, failure.Lost, w[0])
			}
		}, dueAt, now + Interval},
		{"a GET with a 429 stays due", 1, func(_ *testing.T, p *plan, w []*watch) {
			getFails(p, failure.RateLimited, w[0])
		}, dueAt, now - Interval},
		{"and keeps its place before what falls due later", 1, func(_ *testing.T, p *plan, w []*watch) {
			next := p.decide(now)
			p.getEnded(next.get)
			p.getFailed(next.get, now+time.Minute, &Failure{Kind: failure.RateLimited})
		}, dueAt, now - Interval},
		{"a page puts off no GET that somebody asked for", 1, func(_ *testing.T, p *plan, w []*watch) {
			polled(p, w)
			p.ask(w[0], now, 2, false)
			p.onPage(w[0], now, true)
		}, dueAt, now + Interval},

		{"after a page, a GET that is due comes first", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			p.depth = 2 // so that the sweep goes on
			page(t, p, "2", w[:2]...)
		}, nextIsPage, false},
		{"after a GET, a page that is due comes first", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			p.depth = 2 // so that the sweep goes on
			page(t, p, "2", w[:2]...)
			p.decide(now + 2*Interval)
			p.pacedUntil = 0
		}, nextIsPage, true},
		{"32 GETs are under way at a time", 40, func(_ *testing.T, p *plan, _ []*watch) {
			for range 32 {
				p.began = now + Interval // no sweep
				p.decide(now + Interval)
				p.pacedUntil = 0
			}
		}, wakesAt, never},
		{"after a failure, one request at a time", 3, func(_ *testing.T, p *plan, w []*watch) {
			getFails(p, failure.Lost, w[0])
			p.decide(now)
			p.pacedUntil = 0
		}, wakesAt, never},

		{"an answer to an earlier request is not what was asked for", 1, func(_ *testing.T, p *plan, w []*watch) {
			p.ask(w[0], now, 5, false)
			p.got(w[0], now, 4, 0)
			p.onPage(w[0], now, true)
		}, dueAt, now + Interval},
		{"the answer to a later one is", 1, func(_ *testing.T, p *plan, w []*watch) {
			p.ask(w[0], now, 5, false)
			p.got(w[0], now, 5, 0)
			p.onPage(w[0], now, true)
		}, dueAt, never},

		{"the user's own GET makes no second one while one is under way", 1, func(_ *testing.T, p *plan, w []*watch) {
			p.decide(now)
			p.got(w[0], now, 1, 0)
		}, func(p *plan, _ []*watch) any { return len(p.queue) }, 0},
		{"after the user's own GET, no page is needed", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "", w...)
			p.got(w[0], now, 1, 0)
		}, dueAt, now + Interval},

		// Outages.
		{"the third failure in a row is an outage", 3, func(_ *testing.T, p *plan, w []*watch) {
			getFails(p, failure.Lost, w...)
		}, pausedUntil, now + time.Second},
		{"a pause lasts half a minute at most", 3, func(_ *testing.T, p *plan, w []*watch) {
			for range 100 {
				getFails(p, failure.Lost, w...)
			}
		}, pausedUntil, now + 30*time.Second},
		{"or longer, if the service asks for it", 3, func(_ *testing.T, p *plan, w []*watch) {
			getFails(p, failure.Lost, w[0], w[1])
			getEnds(p, w[2])
			p.getFailed(w[2], now, &Failure{Kind: failure.Lost, RetryAfter: time.Minute})
		}, pausedUntil, now + time.Minute},
		{"a rejected page ends an outage", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			getFails(p, failure.Lost, w[:3]...)
			pagesFail(p, failure.Rejected, 1)
		}, pausedUntil, time.Duration(0)},
		{"pages alone can be an outage", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			pagesFail(p, failure.Lost, 3)
		}, pausedUntil, now + Interval + time.Second},
		{"two failures after a good response are none", 2, func(_ *testing.T, p *plan, w []*watch) {
			polled(p, w)
			getFails(p, failure.Lost, w...)
		}, pausedUntil, time.Duration(0)},
		{"a page between them ends the row", few, func(t *testing.T, p *plan, w []*watch) {
			getFails(p, failure.Lost, w[0], w[1])
			page(t, p, "")
			getFails(p, failure.Lost, w[2])
		}, pausedUntil, time.Duration(0)},
		{"a good response ends an outage", 3, func(_ *testing.T, p *plan, w []*watch) {
			getFails(p, failure.Lost, w...)
			polled(p, w)
		}, pausedUntil, time.Duration(0)},
		{"foreign failures are none", 3, func(_ *testing.T, p *plan, w []*watch) {
			getFails(p, failure.ForeignStatus, w...)
		}, pausedUntil, time.Duration(0)},

		// The window.
		{"four waits are not worth a page", 4, nil, pageAt, never},
		{"five are", 5, nil, pageAt, now - Interval},
		{"a page of the window puts off the GETs of what it shows", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "next", w[:2]...)
		}, dueAt, never},
		{"a page that saves one GET does not pay", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "next", w[0])
		}, dueAt, now + 2*Interval},
		{"nor does one that shows meetings which nobody awaits", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "next", w[0], &watch{id: "a"}, &watch{id: "b"})
		}, dueAt, now + 2*Interval},
		{"or which are polled rarely", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			w[1].mayWait = time.Hour
			page(t, p, "next", w[0], w[1])
		}, dueAt, now + 2*Interval},
		{"unless a Discovery needs it anyway", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			p.sweepAlways = true
			page(t, p, "next", w[0])
		}, dueAt, never},
		{"pages that show nothing pay with the next one", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			p.depth = 5
			page(t, p, "2")
			page(t, p, "3")
			page(t, p, "", w[:4]...)
		}, depth, 3},
		{"if that saves more GETs than they cost", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			p.depth = 5
			page(t, p, "2")
			page(t, p, "3")
			page(t, p, "", w[:3]...)
		}, depth, 0},
		{"a page that shows the same meetings again saves none", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			p.depth = 2
			page(t, p, "2", w...)
			page(t, p, "", w...)
		}, depth, 1},
		{"so does a page with meetings that are new to a Discovery", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			p.pageRead(now+Interval, listPage{sentAt: now + Interval, discovered: 2, next: "2"})
		}, depth, 1},
		{"a sweep looks a page further for eight meetings not found", 16, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "2")
			page(t, p, "3")
		}, sweeping, false},
		{"and not less", 16, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "2")
		}, sweeping, true},
		{"but not for those that have left", 16, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			p.leave(w[15])
			p.pageRead(now+Interval, listPage{sentAt: now + Interval, next: "2"})
		}, sweeping, false},
		{"but for those that join", 15, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			p.join(&watch{id: "late"}, now+Interval, false, false)
			p.pageRead(now+Interval, listPage{sentAt: now + Interval, next: "2"})
		}, sweeping, true},
		{"nor for those that are polled rarely", 16, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			w[15].mayWait = time.Hour
			page(t, p, "2")
		}, sweeping, false},
		{"what a sweep does not show falls due when it ends", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "", w...)
			pageBegins(t, p, now+3*Interval)
			p.pageRead(now+3*Interval, listPage{sentAt: now + 3*Interval, shown: w[1:]})
		}, stateOfFirst, due},
		{"after a sweep, the meeting with the oldest GET has one that no page replaces", few, func(
			t *testing.T, p *plan, w []*watch,
		) {
			polled(p, w)
			w[0].notBefore -= second
			page(t, p, "", w...)
			const at = now + unchecked + Interval
			pageBegins(t, p, at)
			p.pageRead(at, listPage{sentAt: at, shown: w})
			p.onPage(w[0], at, true)
		}, dueAt, now + unchecked + Interval - headStart},
		{"a page beyond the window is checked as well", 3 * few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			w[0].notBefore--
			const at = now + unchecked + Interval
			pageBegins(t, p, at)
			p.pageRead(at, listPage{sentAt: at, shown: w[:1]})
		}, dueAt, now + unchecked + Interval - headStart},
		{"and so is a meeting that is polled rarely", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			for _, w := range w {
				w.mayWait = time.Minute
			}
			w[0].notBefore--
			const at = now + unchecked + Interval
			p.sweepAlways = true
			pageBegins(t, p, at)
			p.pageRead(at, listPage{sentAt: at, shown: w})
		}, dueAt, now + unchecked + Interval - headStart},
		{"but not before pages have put its GETs off for five minutes", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+unchecked-second)
			p.pageRead(now+unchecked-second, listPage{sentAt: now + unchecked - second, shown: w})
		}, dueAt, never},
		{"pages that GETs contradict put off no GET", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			p.distrust(now)
			p.sweepAlways = true
			page(t, p, "", w...)
		}, dueAt, now + Interval},
		{"and not what they have put off", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "", w...)
			p.distrust(now + Interval)
		}, dueAt, now + 2*Interval},
		{"for five minutes no sweep begins", few, func(_ *testing.T, p *plan, w []*watch) {
			polled(p, w)
			p.distrust(now)
		}, pageAt, now + withoutPages},
		{"a sweep that takes longer than GETs ends", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			p.pageRead(now+2*Interval, listPage{sentAt: now + Interval, shown: w[:3], next: "2"})
		}, sweeping, false},
		{"one that does not goes on", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			p.pageRead(now+Interval*3/2, listPage{sentAt: now + Interval, shown: w[:3], next: "2"})
		}, sweeping, true},
		{"but not if its pages together take longer", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			p.pageRead(now+Interval*3/2, listPage{sentAt: now + Interval, shown: w[:3], next: "2"})
			pageBegins(t, p, now+Interval*3/2)
			p.pageRead(now+Interval*2, listPage{sentAt: now + Interval*3/2, shown: w[3:6], next: "3"})
		}, sweeping, false},
		{"no meeting waits for a slow sweep that a Discovery needs", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			p.pageRead(now+2*Interval, listPage{sentAt: now + Interval, shown: w, next: "2", wantsNext: true})
		}, stateOfFirst, due},

		// Pages that fail.
		{"429s for more than a minute end a sweep", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "2", w[:2]...)
			pagesFail(p, failure.RateLimited, 20)
			p.pageFailed(now+Interval+61*time.Second, &Failure{Kind: failure.RateLimited})
		}, sweeping, false},
		{"so do three, while four GETs succeed", 40, func(t *testing.T, p *plan, w []*watch) {
			page(t, p, "2", w[:2]...)
			pagesFail(p, failure.RateLimited, 2)
			polled(p, w[:4])
			pagesFail(p, failure.RateLimited, 1)
		}, sweeping, false},
		{"but not while three do", 40, func(t *testing.T, p *plan, w []*watch) {
			page(t, p, "2", w[:2]...)
			pagesFail(p, failure.RateLimited, 2)
			polled(p, w[:3])
			pagesFail(p, failure.RateLimited, 1)
		}, sweeping, true},
		{"nor two", 40, func(t *testing.T, p *plan, w []*watch) {
			page(t, p, "2", w[:2]...)
			pagesFail(p, failure.RateLimited, 1)
			polled(p, w[:4])
			pagesFail(p, failure.RateLimited, 1)
		}, sweeping, true},
		{"a list that is limited is asked again after five minutes", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "2", w[:2]...)
			pagesFail(p, failure.RateLimited, 20)
			p.pageFailed(now+Interval+61*time.Second, &Failure{Kind: failure.RateLimited})
		}, retryAt, now + Interval + 61*time.Second + 5*time.Minute},
		{"429s for a minute do not, because a quota may be used up", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "2", w[:2]...)
			pagesFail(p, failure.RateLimited, 20)
			p.pageFailed(now+Interval+60*time.Second, &Failure{Kind: failure.RateLimited})
		}, sweeping, true},
		{"a GET with a 429 shows that not only the list is limited", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "2", w[:2]...)
			pagesFail(p, failure.RateLimited, 20)
			p.pageFailed(now+Interval+61*time.Second, &Failure{Kind: failure.RateLimited})
			getFails(p, failure.RateLimited, w[0])
		}, retryAt, time.Duration(0)},
		{"a list that fails is asked again within half a minute", few, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			for range 20 {
				p.sweep = new(sweep)
				pagesFail(p, failure.Lost, 1)
			}
		}, retryAt, now + Interval + 30*time.Second},
		{"the list is not asked before its Retry-After", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			pageBegins(t, p, now+Interval)
			p.pageFailed(now+Interval, &Failure{Kind: failure.RateLimited, RetryAfter: time.Minute})
		}, retryAt, now + Interval + time.Minute},
		{"a rejected cursor ends a sweep", 40, func(t *testing.T, p *plan, w []*watch) {
			polled(p, w)
			page(t, p, "2", w[:2]...)
			pagesFail(p, failure.Rejected, 1)
		}, sweeping, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, w := planAt(c.n)
			if c.act != nil {
				c.act(t, p, w)
			}
			got := c.want(p, w)
			require.Equal(t, c.is, got)
		})
	}
}

func TestPlan_LooksFurtherForWhatNoSweepHasSoughtInVain(t *testing.T) {
	t.Parallel()
	p, w := planAt(32)
	require.Equal(t, 4, sweepInVain(t, p, now+Interval), "a page for each eight meetings")
	polled(p, w)
	require.Equal(t, 1, sweepInVain(t, p, now+3*Interval), "one page for all that were sought in vain")
	p.join(&watch{id: "late"}, now+4*Interval, false, false)
	require.Equal(t, 1, sweepInVain(t, p, now+5*Interval), "and not more for one that joins")
	for range 16 {
		p.join(&watch{}, now+6*Interval, false, false)
	}
	require.Equal(t, 2, sweepInVain(t, p, now+7*Interval), "but a page for each eight that join")
	require.Equal(t, 6, sweepInVain(t, p, now+lookAgain+8*Interval), "and now and then for all")
	require.Equal(t, 1, sweepInVain(t, p, now+lookAgain+10*Interval))
}
