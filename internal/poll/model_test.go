package poll

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The model test runs the plan alone, without clock, goroutines and network,
// against random worlds. What a world does is drawn from a stream of bytes, so
// that a fuzzer can draw it, too.

// model is a plan, the service that it asks, and those who wait.
type model struct {
	t      testing.TB
	random *rand.Rand
	plan   plan
	now    time.Duration
	list   []*thing // the newest last
	things []*thing // everything that is waited for now
	events events
	pages  map[string]read // by cursor
	sweep  sweep           // the last one
	steps  int
	keys   int

	manners
	longest   time.Duration // turn
	held      time.Duration // looks, by 429s
	heldUntil time.Duration
	cost      costs
}

// costs are requests.
type costs struct {
	paid     int           // by the plan
	sudden   int           // that somebody asked for: first looks, and those after an upload
	needed   int           // turn by turn, by pages alone or by looks alone, whichever is cheaper
	reckoned time.Duration // how far needed goes
}

// manners are what the service does to its callers.
type manners struct {
	order    int // 0: by creation, 1: by change, 2: none
	slow     time.Duration
	lose     float64 // pages
	fail     float64 // looks
	limit    float64 // 429s
	asks     time.Duration
	bar      float64 // cursors that are refused
	short    float64 // pages that are not full
	churn    float64 // things that happen between two steps
	interval time.Duration
}

// thing is a meeting.
type thing struct {
	watch
	model *model
	key   int
	gone  bool
	last  time.Duration // when a look at it was answered
	paged time.Duration // when a page showed it, since the last upload
	since time.Duration // it has been unseen since
}

func (x *thing) Notify(Snapshot, bool, time.Duration) (over, confirm bool) { return false, false }
func (x *thing) Fail(string, Snapshot, error)                              {}
func (x *thing) Interval() time.Duration                                   { return x.model.interval }

// read is when a sweep read a page.
type read struct {
	sweep uint32
	asked time.Duration
}

type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

func newModel(t testing.TB, random *rand.Rand) *model {
	m := &model{t: t, random: random, now: time.Minute, pages: make(map[string]read)}
	m.plan = newPlan(random)
	m.cost.reckoned = m.now
	draw := func(most float64) float64 { return most * max(0, random.Float64()*2-1) }
	m.manners = manners{
		order: max(0, random.IntN(5)-2), slow: time.Duration(draw(float64(3 * time.Second))),
		lose: draw(0.3), fail: draw(0.3), limit: draw(0.1), asks: time.Duration(draw(float64(time.Minute))),
		bar: draw(0.1), short: draw(1), churn: draw(0.5),
	}
	if random.IntN(8) == 0 {
		m.lose = 1
	}
	if random.IntN(8) == 0 {
		m.interval = time.Duration(random.Int64N(int64(5 * time.Minute)))
	}
	for range random.IntN(400) {
		m.create()
	}
	for range random.IntN(200) {
		m.wait()
	}
	return m
}

func (m *model) create() *thing {
	m.keys++
	x := &thing{watch: watch{id: fmt.Sprint(m.keys)}, model: m, key: m.keys}
	m.list = append(m.list, x)
	return x
}

// wait begins a wait, for a thing of the listing or for a new one.
func (m *model) wait() {
	var x *thing
	if len(m.list) > 0 && m.random.IntN(2) == 0 {
		x = m.list[m.random.IntN(len(m.list))]
	} else {
		x = m.create()
	}
	if x.waited() {
		return
	}
	m.join(x)
}

func (m *model) join(x *thing) {
	m.plan.watches[x.id] = &x.watch
	x.since = m.now
	x.waiters = append(x.waiters, waiting{x, false})
	m.plan.join(&x.watch, m.now, x.seen > 0 && m.now-x.seen < minPollInterval)
	m.things = append(m.things, x)
	m.cost.sudden++
}

func (m *model) leave(x *thing) {
	x.drop(x)
	if x.role != idle {
		m.plan.leave(&x.watch)
	}
	if m.plan.waiting == 0 { // as the Poller does
		m.events = nil
		for _, w := range m.plan.watches {
			w.polling = false
		}
	}
	m.things = slices.DeleteFunc(m.things, func(y *thing) bool { return x == y })
}

// churned does one of the things that happen meanwhile.
func (m *model) churned() {
	some := func() *thing {
		if len(m.list) == 0 {
			return m.create()
		}
		return m.list[m.random.IntN(len(m.list))]
	}
	switch x := some(); m.random.IntN(8) {
	case 0, 1:
		m.wait()
	case 2:
		m.create()
	case 3: // deleted
		x.gone = true
		m.list = slices.DeleteFunc(m.list, func(y *thing) bool { return x == y })
	case 4: // changed
		if m.order == 1 {
			m.list = append(slices.DeleteFunc(m.list, func(y *thing) bool { return x == y }), x)
			m.keys++
			x.key = m.keys
		}
	case 5:
		if x.waited() {
			m.leave(x)
		}
	case 6: // somebody else saw it
		if x.waited() {
			x.free = max(x.free, m.now+minPollInterval)
			m.plan.recorded(&x.watch, m.now)
			x.last, x.since = m.now, m.now
		}
	case 7: // an upload
		if x.waited() && !x.polling {
			m.plan.pollNow(&x.watch, m.now)
			x.last, x.paged = 0, 0
			m.cost.sudden++
		}
	}
}

func (m *model) after(d time.Duration, do func()) {
	heap.Push(&m.events, event{m.now + d, do})
}

func (m *model) latency() time.Duration {
	return time.Duration(m.random.Int64N(int64(200*time.Millisecond + m.slow)))
}

// holds is require.True for what is asked millions of times: testify's take most
// of the test's time.
func (m *model) holds(ok bool, format string, args ...any) {
	if !ok {
		m.t.Helper()
		m.t.Fatalf(format, args...)
	}
}

// step does what the plan wants, or lets time pass.
func (m *model) step() {
	m.steps++
	for m.random.Float64() < m.churn {
		m.churned()
	}
	m.check()
	m.reckon()
	m.longest = max(m.longest, m.plan.cycle())
	if until := m.plan.polls.until; until > m.heldUntil {
		m.held += until - max(m.heldUntil, m.now)
		m.heldUntil = until
	}
	do := m.plan.decide(m.now)
	switch {
	case do.page:
		m.page(m.plan.sweep.cursor, m.now)
		return
	case do.poll != nil:
		m.look(do.poll)
		return
	}
	m.holds(do.wake > m.now, "at %v: the plan wants to be asked again at once: %v", m.now, do.wake)
	if len(m.events) > 0 && m.events[0].at <= do.wake {
		e := heap.Pop(&m.events).(event)
		m.now = max(m.now, e.at)
		e.do()
		return
	}
	m.now = min(do.wake, m.now+time.Hour)
}

// reckon adds what the turns since the last time would have cost, had it been known
// which is cheaper. Where pages may fail to show anything, looks are.
func (m *model) reckon() {
	for ; m.cost.reckoned+m.plan.cycle() <= m.now; m.cost.reckoned += m.plan.cycle() {
		needed, deepest := 0, len(m.list)
		for _, x := range m.things {
			if x.gone {
				deepest = 0
				continue
			}
			needed++
			at, _ := slices.BinarySearchFunc(m.list, x.key, func(y *thing, key int) int { return y.key - key })
			deepest = min(deepest, at)
		}
		if m.order != 2 && m.short+m.lose+m.bar+m.limit == 0 {
			needed = min(needed, (len(m.list)-deepest+pageSize-1)/pageSize)
		}
		m.cost.needed += needed
	}
}

// cheap holds what the plan has paid against what was needed, known in hindsight: a
// quarter more, beside a few pages to find out.
func (m *model) cheap() {
	require.LessOrEqual(m.t, m.cost.paid, m.cost.sudden+m.cost.needed*5/4+64, "%+v", m.manners)
}

func (m *model) look(w *watch) {
	m.cost.paid++
	x := w.waiters[0].Waiter.(*thing)
	if x.last != 0 {
		m.holds(m.now-x.last >= minPollInterval, "%s is looked at within the floor: after %v", x.id, m.now-x.last)
		m.holds(m.now-x.last >= min(m.interval, m.now-x.since), "%s is looked at within its interval, %v: after %v", x.id, m.interval, m.now-x.last)
	}
	if x.paged != 0 {
		m.holds(m.now-x.paged >= minPollInterval, "%s is looked at within the floor of a page: after %v", x.id, m.now-x.paged)
	}
	asked, plan := m.now, &m.plan
	x.last = m.now
	m.after(m.latency(), func() {
		switch r := m.random.Float64(); {
		case r < m.limit:
			plan.pollRateLimited(w, m.now, asked, m.asks)
			x.last = 0
		case r < m.limit+m.fail && w.seen > asked:
			plan.pollEnded(w)
		case r < m.limit+m.fail && !x.gone:
			x.last = m.now
			if slices.Contains(plan.pollFailed(w, m.now, asked), w) {
				m.leave(x)
			}
		case x.gone:
			plan.pollEnded(w)
			m.leave(x)
		default:
			plan.polled(w, m.now, 0)
			x.last, x.since = m.now, m.now
		}
	})
}

func (m *model) page(cursor string, asked time.Duration) {
	m.cost.paid++
	plan := &m.plan
	number := plan.sweep.number
	if number != m.sweep.number {
		require.GreaterOrEqual(m.t, plan.sweep.began-m.sweep.began, minPollInterval, "a sweep begins within the floor")
		m.sweep = plan.sweep
	}
	// Deletions, and pages of any length, may bring a page to another place.
	const slack = 2 * time.Second
	if p, again := m.pages[cursor]; again && m.order == 0 && m.short == 0 && p.sweep != number {
		require.GreaterOrEqual(m.t, m.now-p.asked, minPollInterval-slack, "a page is read again within the floor")
	}
	m.after(m.latency(), func() {
		switch r := m.random.Float64(); {
		case r < m.limit:
			plan.pageRateLimited(m.now, asked, m.asks)
			return
		case r < m.limit+m.lose:
			plan.pageLost(m.now)
			return
		case cursor != "" && r < m.limit+m.lose+m.bar:
			plan.pageRejected(m.now)
			return
		}
		m.pages[cursor] = read{number, asked}
		from := len(m.list)
		if cursor != "" {
			var key int
			fmt.Sscan(cursor, &key)
			from, _ = slices.BinarySearchFunc(m.list, key, func(x *thing, key int) int { return x.key - key })
		}
		size := pageSize
		if m.random.Float64() < m.short {
			size = m.random.IntN(pageSize)
		}
		to := max(0, from-size)
		var shown []*watch
		for _, x := range slices.Backward(m.list[to:from]) {
			if m.order == 2 {
				x = m.list[m.random.IntN(len(m.list))]
			}
			if x.waited() {
				x.since, x.paged = m.now, m.now
				if m.random.IntN(8) > 0 {
					shown = append(shown, &x.watch)
					continue
				}
				x.seen = m.now // its wait is over, and another one begins
				m.leave(x)
				m.join(x)
			}
		}
		next := ""
		if to > 0 {
			next = fmt.Sprint(m.keys + 1)
			if to < len(m.list) {
				next = fmt.Sprint(m.list[to].key)
			}
		}
		plan.pageRead(m.now, asked, shown, next)
	})
}

// check holds the plan against what it must never be.
func (m *model) check() {
	p, s := &m.plan, &m.plan.sweep
	for _, l := range []lane{p.polls, p.listing} {
		m.holds(leastShare <= l.share && l.share <= 1, "a lane uses %v of its pace", l.share)
		m.holds(l.until <= m.now+max(maxAsked, 2*p.cycle()), "a lane pauses for too long: %v", l.until-m.now)
	}
	waiting, pages, unproven, sought := 0, 0, 0, 0
	if m.steps%64 == 0 {
		for _, w := range p.watches {
			if w.waited() {
				waiting++
			}
			if w.role == paged {
				pages++
			}
			if w.unproven {
				unproven++
			}
			if p.seeks(w) {
				sought++
			}
			m.holds(w.waited() == (w.role != idle), "%s: who waits has a role, not %v", w.id, w.role)
			toLook := (w.role == newcomer || w.role == single) && !w.polling
			m.holds((w.place > 0) == toLook, "%s: who is to be looked at stands in a heap, not at %d", w.id, w.place)
		}
		require.Equal(m.t, []int{waiting, pages, unproven}, []int{p.waiting, p.paged, p.unproven})
		if s.on {
			require.Equal(m.t, sought, s.sought)
		}
		for w := range p.failures {
			require.True(m.t, w.waited(), "a failure is kept for nobody")
		}
		bound := 3*m.longest + 2*m.interval + 2*stuck + time.Minute
		if m.limit > 0 { // as slow as looks can become
			bound += time.Duration(float64(time.Second) / (leastPace * leastShare) * float64(p.waiting+maxPolls))
		}
		for _, x := range m.things {
			if !x.gone && m.fail == 0 {
				m.holds(m.now-x.since <= bound+m.held, "%s is unseen for too long: %v (%+v)", x.id, m.now-x.since, m.manners)
			}
		}
	}
	if p.waiting == 0 {
		require.Empty(m.t, p.due[newcomer])
		require.Empty(m.t, p.due[single])
		require.False(m.t, s.on)
		require.Zero(m.t, p.paged+p.unproven+len(p.failures)+p.polling)
	}
}

// TestModel runs many random worlds.
func TestModel(t *testing.T) {
	t.Parallel()
	worlds, steps := 40, 2000
	if os.Getenv("MINUTES_LONG") != "" {
		worlds = 500
	}
	for seed := range worlds {
		m := newModel(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		for range steps {
			m.step()
		}
		m.cheap()
		for len(m.things) > 0 {
			m.leave(m.things[0])
		}
		m.check()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzModel lets the fuzzer choose the world.
func FuzzModel(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		m := newModel(t, rand.New(rand.NewPCG(a, b)))
		for range 500 {
			m.step()
		}
		m.cheap()
		for len(m.things) > 0 {
			m.leave(m.things[0])
		}
		m.check()
	})
}
