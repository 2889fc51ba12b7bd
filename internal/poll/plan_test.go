package poll

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// planFor returns a plan with so many watches that are due.
func planFor(watches int) (*plan, []*watch) {
	p := newPlan(rand.New(rand.NewPCG(1, 1)))
	ws := make([]*watch, watches)
	for i := range ws {
		ws[i] = joined(&p, fmt.Sprint(i), 0)
	}
	return &p, ws
}

func joined(p *plan, id string, seen time.Duration) *watch {
	x := &thing{watch: watch{id: id, seen: seen}, planner: &planner{model: new(model)}}
	x.waiters = append(x.waiters, waiting{Waiter: x})
	p.watches[id] = &x.watch
	p.join(&x.watch, time.Hour, seen > 0 && time.Hour-seen < minPollInterval)
	return &x.watch
}

func TestPlan_PollsFewNewcomersAtOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, few, crowd} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			p, ws := planFor(n)
			p.pacer.slot = time.Hour + time.Second
			do := p.decide(time.Hour)
			if n == crowd { // waits for a search
				require.Equal(t, p.pacer.slot, do.wake)
				require.True(t, p.decide(do.wake).page)
				return
			}
			require.Equal(t, time.Hour+gather, do.wake)
			require.Contains(t, ws, p.decide(do.wake).poll)
		})
	}
}

// A new waiter with a short interval does not wait for the pages of a stretch that is due much later.
func TestPlan_PollsMemberThatIsDueEarlier(t *testing.T) {
	t.Parallel()
	for later, want := range map[time.Duration]role{time.Second: member, time.Hour: single} {
		p, ws := planFor(1)
		ws[0].stretch = &stretch{due: time.Hour + minPollInterval + later}
		ws[0].seen, ws[0].due = time.Hour, time.Hour+minPollInterval+later
		p.setRole(ws[0], member)
		p.hurry(ws[0], 0)
		require.Equal(t, want, ws[0].role)
		require.Equal(t, time.Hour+minPollInterval, ws[0].due)
	}
}

// A member whose interval is much shorter than the stretch's is polled by itself.
func TestPlan_PollsMemberWithAShorterInterval(t *testing.T) {
	t.Parallel()
	p, ws := planFor(3)
	for _, w := range ws[1:] {
		w.waiters[0].Waiter.(*thing).planner.interval = time.Hour
	}
	p.scan = scan{kind: freshScan, left: len(ws)}
	p.pageRead(time.Hour, time.Hour, ws[:2], "next")
	p.pageRead(time.Hour, time.Hour, ws[2:], "")
	require.Equal(t, []role{single, member, member}, []role{ws[0].role, ws[1].role, ws[2].role})
}

// A page that takes n times slowPage must show 2n awaited meetings to begin a stretch, and n to extend it.
func TestPlan_KeepsSlowPagesThatShowMore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		takes       time.Duration
		first, next int // meetings that the pages show
		want        int // pages of the stretch
	}{
		{0, 1, 0, 0}, {0, 2, 0, 1}, {0, 2, 1, 2},
		{2*slowPage - 1, 2, 1, 2},
		{2 * slowPage, 3, 2, 0}, {2 * slowPage, 4, 1, 1}, {2 * slowPage, 4, 2, 2},
		{7 * slowPage, 13, 7, 0}, {7 * slowPage, 14, 7, 2},
	} {
		p, ws := planFor(pageSize)
		p.scan = scan{kind: freshScan, left: 100 * pageSize}
		now := time.Hour
		for _, shown := range [][]*watch{ws[:test.first], ws[test.first : test.first+test.next]} {
			sentAt := now
			now += test.takes
			p.pageRead(now, sentAt, shown, "next")
		}
		require.Equal(t, test.want, p.pages(), "%+v", test)
	}
}

// A page and a poll that are both due alternate. The page does not wait for its slot; the next poll
// waits for both.
func TestPlan_RequestsPageAheadOfThePacer(t *testing.T) {
	t.Parallel()
	p, ws := planFor(few + 1)
	for _, w := range ws {
		p.setRole(w, single)
	}
	now := time.Hour
	p.scan, p.pollLast = scan{kind: freshScan, left: 100}, true
	require.True(t, p.decide(now).page)
	p.pageRead(now, now, nil, "next")
	gap := p.pacer.slot - now
	require.Equal(t, p.pacer.slot, p.decide(now).wake, "two pages keep their distance")
	now = p.pacer.slot
	require.NotNil(t, p.decide(now).poll)
	require.True(t, p.decide(now).page)
	require.InDelta(t, now+2*gap, p.pacer.slot, 1)
	p.pageRead(now, now, nil, "next")
	require.Equal(t, p.pacer.slot, p.decide(now).wake)
}

// While a search goes on, a few that join do not wait until it ends. A crowd does.
func TestPlan_PollsFewNewcomersDuringASearch(t *testing.T) {
	t.Parallel()
	p, _ := planFor(crowd)
	require.True(t, p.decide(time.Hour+gather).page)
	roles := map[role]int{}
	for i := range crowd {
		roles[joined(p, fmt.Sprint("late ", i), 0).role]++
	}
	require.Equal(t, map[role]int{single: few, newcomer: crowd - few}, roles)
}

func TestPlan_LimitsPollsUnderWay(t *testing.T) {
	t.Parallel()
	p, _ := planFor(maxPolls + 1)
	now := time.Hour
	for range 1000 {
		if do := p.decide(now); do.page {
			p.pageRejected(now, false)
		}
		now += time.Second
	}
	require.Equal(t, maxPolls, p.polling)
}

// In an outage, one request at a time finds out whether it is over.
func TestPlan_SendsOneRequestInAnOutage(t *testing.T) {
	t.Parallel()
	p, ws := planFor(few)
	p.polling = outageAfter
	for _, w := range ws {
		p.pollFailed(w, time.Hour, time.Hour, 0)
	}
	now := p.pacer.until + time.Minute
	first := p.decide(now)
	require.True(t, first.page || first.poll != nil)
	require.Equal(t, decision{wake: never}, p.decide(now+time.Second))
}

func TestPacer_PausesLongerInOutage(t *testing.T) {
	t.Parallel()
	c, now, other := pacer{share: 1}, time.Hour, new(watch)
	for n, seconds := range []int{0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30} {
		var w *watch
		if n%2 == 1 {
			w = other
		}
		pause := time.Duration(seconds) * time.Second
		require.Equal(t, pause > 0, c.fail(w, now, now, 0), "failure %d", n+1)
		require.Equal(t, pause, max(0, c.until-now), "failure %d", n+1)
		if pause > 0 {
			require.False(t, c.fail(w, now+1, now, 0), "a request sent before the pause says nothing new")
			require.Equal(t, now+pause, c.until)
		}
		now = max(now, c.until)
	}
	c.fail(nil, now, now, time.Hour)
	require.Equal(t, now+maxOutage, c.until, "Retry-After")
	require.True(t, c.good(now))
	require.False(t, c.out())
	require.False(t, c.fail(nil, now, now, 0), "one failure is no outage")
}

func TestPacer_OneMeetingIsNoOutage(t *testing.T) {
	t.Parallel()
	c, w := pacer{share: 1}, new(watch)
	for range 100 {
		require.False(t, c.fail(w, time.Hour, time.Hour, 0))
	}
	require.Zero(t, c.until)
}

func TestPacer_SlowsDownAfter429(t *testing.T) {
	t.Parallel()
	c, now := pacer{share: 1}, time.Hour
	for n, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
		c.rateLimited(now, now, 0)
		require.Equal(t, now+time.Duration(seconds)*time.Second, c.until)
		require.InDelta(t, max(minShare, 1/float64(int(2)<<n)), c.share, 1e-9)
		c.rateLimited(now+1, now, 0)
		require.Equal(t, now+time.Duration(seconds)*time.Second, c.until, "a request sent before the pause says nothing new")
		now = c.until
	}
	c.rateLimited(now, now, time.Hour)
	require.Equal(t, now+maxRetryAfter, c.until, "Retry-After")
	now, before := c.until, c.share
	for range 15 {
		now += time.Second
		c.good(now)
	}
	require.InDelta(t, before+0.5, c.share, 1e-3, "after half an interval")
	c.good(now + 15*time.Second)
	require.InDelta(t, 1, c.share, 1e-9)
}

func TestPlan_OutageCountsForAll(t *testing.T) {
	t.Parallel()
	p, both := planFor(2)
	now := time.Hour
	for n := range outageAfter + 8 {
		p.polling++
		require.Empty(t, p.pollFailed(both[n%2], now, now, 0))
		now = max(now, p.pacer.until)
	}
	require.GreaterOrEqual(t, p.failures[both[0]].polls, 9)
	require.GreaterOrEqual(t, p.failures[both[1]].polls, 9)
	own := p.failures[both[1]].own
	require.InDelta(t, (outageAfter+8)/2, own, 1)
	p.polling++
	p.polled(both[0], now, 0)
	require.Len(t, p.failures, 1)
	require.Equal(t, own, p.failures[both[1]].polls, "after the outage, only a meeting's own failures count")
}

// A meeting fails more often than all other requests together while the service is out.
func TestPlan_BadMeetingEndsNoOtherWait(t *testing.T) {
	t.Parallel()
	p, ws := planFor(3)
	bad, now := ws[0], time.Hour
	fail := func(w *watch) (ended []*watch) {
		now = max(now, p.pacer.until)
		p.polling++
		return p.pollFailed(w, now, now, time.Minute)
	}
	for n := range maxFailed - 1 {
		for range 3 {
			require.NotContains(t, fail(bad), ws[1])
		}
		require.NotContains(t, fail(ws[1+n%2]), ws[1])
	}
	require.Equal(t, maxFailed-1, max(p.failures[ws[1]].polls, p.failures[ws[2]].polls))
	require.Subset(t, fail(ws[1]), ws[1:2], "its own failures, and those of other good meetings, count")
}

// A failure of another request does not count for a wait that must not poll yet.
func TestPlan_OutageCountsOnlyForWaitsThatMayPoll(t *testing.T) {
	t.Parallel()
	p, ws := planFor(3)
	ws[1].free = time.Hour + maxOutage
	p.countFailures(ws[0], time.Hour, true)
	require.Zero(t, p.failures[ws[1]].polls)
	require.Equal(t, 1, p.failures[ws[2]].polls)
}

// A watch that leaves and joins again is still a member of its stretch, while its snapshot is fresh.
func TestPlan_KeepsStretchOfWatchThatJoinsAgain(t *testing.T) {
	t.Parallel()
	for seen, want := range map[time.Duration]role{time.Second: member, time.Minute: newcomer} {
		p, ws := planFor(2)
		now, w := 2*time.Hour, ws[0]
		s := &stretch{members: []*watch{w}, due: now + minPollInterval}
		p.stretches = append(p.stretches, s)
		w.stretch, w.seen = s, now-seen
		p.setRole(w, member)
		p.leave(w)
		p.join(w, now, seen < minPollInterval)
		require.Equal(t, want, w.role)
		require.Equal(t, want == newcomer, p.unsearched[w])
		require.Equal(t, want == member, s.live() == 1)
	}
}

// Another meeting is deleted while a pass reads a listing that is late, so that the pass misses one.
func TestFollower_ReadsAgainIfTheListingIsLate(t *testing.T) {
	t.Parallel()
	f := &follower{known: make(map[string]int64), floor: 1000, later: 1000, depth: 9000 - margin}
	late, later, old := Snapshot{ID: "late", Created: 3000}, Snapshot{ID: "later", Created: 2000}, Snapshot{ID: "old", Created: 500}
	require.Equal(t, []Snapshot{late}, f.page([]Snapshot{late}, "", "2", 9000))
	require.Empty(t, f.page([]Snapshot{old}, "2", "3", 9000))
	require.Empty(t, f.next, "the pass is over")
	require.Empty(t, f.page([]Snapshot{late}, "", "2", 9030))
	require.Equal(t, "2", f.next, "a known meeting does not end the next pass")
	require.Equal(t, []Snapshot{later}, f.page([]Snapshot{later, old}, "2", "3", 9030))
	require.Empty(t, f.page([]Snapshot{old}, "3", "4", 9030))
	require.Empty(t, f.page([]Snapshot{late}, "", "2", 9060))
	require.Empty(t, f.next, "it ends the pass after that")
}

// A meeting that moves to the top during a long pass is found by the next one.
func TestFollower_KeepsItsFloorDuringALongPass(t *testing.T) {
	t.Parallel()
	f := &follower{known: make(map[string]int64), floor: 1000, later: 5000, raised: 9000, depth: 1000}
	f.began = 9000 + margin - 1
	f.passEnded(9000 + 3*margin)
	require.EqualValues(t, 1000, f.floor)
	f.began = 9000 + margin
	f.passEnded(9000 + 3*margin)
	require.EqualValues(t, 5000, f.floor)
}

func TestPlan_EndsWaitsAfterManyFailures(t *testing.T) {
	t.Parallel()
	p, ws := planFor(1)
	for n := range maxFailed - 1 {
		require.Empty(t, p.countFailures(ws[0], time.Hour+time.Duration(n)*time.Second, false))
	}
	require.Empty(t, p.countFailures(ws[0], time.Hour+minFailing-1, false), "too soon")
	require.Equal(t, ws, p.countFailures(ws[0], time.Hour+minFailing, false))
}

func TestPlan_RejectedKeyEndsAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		polls []bool
		works int // a response comes before this rejection
		all   bool
	}{
		"a poll and a page": {polls: []bool{true, false}, works: -1, all: true},
		"a page and a poll": {polls: []bool{false, true}, works: -1, all: true},
		"one poll":          {polls: []bool{true}, works: -1},
		"pages":             {polls: []bool{false, false, false}, works: -1},
		"not in a row":      {polls: []bool{true, true}, works: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := planFor(2)
			all := false
			for i, poll := range test.polls {
				if i == test.works {
					p.works(time.Hour)
				}
				all = p.keyRejected(poll)
			}
			require.Equal(t, test.all, all)
		})
	}
	t.Run("nobody waits in between", func(t *testing.T) {
		t.Parallel()
		p, ws := planFor(1)
		require.False(t, p.keyRejected(true))
		p.leave(ws[0])
		joined(p, "next", 0)
		require.True(t, p.keyRejected(true))
	})
}

// The first good response after 429s lets the next page be requested at once.
func TestPlan_RetriesPagesAtTheEndOf429s(t *testing.T) {
	t.Parallel()
	p, _ := planFor(1)
	for range 3 {
		p.pageRateLimited(time.Hour, time.Hour, 0)
	}
	require.Greater(t, p.retryAt, time.Hour)
	p.works(time.Hour)
	require.Equal(t, time.Hour, p.retryAt)
}
