package poll

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The model test runs plans alone, without clock, goroutines and network, in random
// situations. A stream of random numbers draws the situation and what happens in it, so that
// a fuzzer can draw them, too.

// model is a simulated service and the plans of the processes that use it.
type model struct {
	t      testing.TB
	random *rand.Rand
	now    time.Duration
	list   []*thing // the newest last
	plans  []*planner
	events events
	bucket float64 // requests that the shared rate limit allows now
	filled time.Duration
	keys   int
	steps  int

	manners
}

// manners are how the service treats its callers.
type manners struct {
	order    int // 0: by creation, 1: by change, 2: none
	slow     time.Duration
	lose     float64 // pages
	fail     float64 // polls
	limit    float64 // requests a second that get through; 0: all
	asks     time.Duration
	reject   float64 // cursors
	short    float64 // pages that are not full
	churn    float64 // things that happen between two steps
	interval time.Duration
	bad      bool          // the polls of one meeting always fail
	dies     time.Duration // no page succeeds from then on
	limits   bool          // they get 429s then
}

// planner is one plan and what it awaits.
type planner struct {
	*model
	plan    plan
	things  []*thing
	wake    time.Duration
	epoch   int // requests of an older one have been canceled
	longest time.Duration
	held    time.Duration // by 429s
	until   time.Duration
	failing map[*watch]bool // whose polls have failed since a request succeeded; nil: a page

	paid      int           // requests
	sudden    int           // polls that somebody asked for: first ones, and those after an upload
	needed    float64       // cycle by cycle, by the cheaper of pages and polls, known in hindsight
	estimated time.Duration // needed counts up to this time
	deepest   int           // page of the listing that showed one of the things
}

// thing is a meeting.
type thing struct {
	watch
	planner *planner
	key     int
	gone    bool
	bad     bool
	polled  time.Duration // last response to a poll
	paged   time.Duration // when a page showed it, since the last upload
	since   time.Duration // it has been unseen since
}

func (x *thing) Notify(Snapshot, bool, time.Duration) (over, confirm bool) { return false, false }
func (x *thing) Fail(string, Snapshot, error)                              {}
func (x *thing) Interval(Snapshot) time.Duration                           { return x.planner.interval }

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
	m := &model{t: t, random: random, now: time.Hour, filled: time.Hour}
	draw := func(most float64) float64 { return most * max(0, random.Float64()*2-1) }
	m.manners = manners{
		order: max(0, random.IntN(5)-2), slow: time.Duration(draw(float64(3 * time.Second))),
		lose: draw(0.3), fail: draw(0.3), limit: draw(20), asks: time.Duration(draw(float64(time.Minute))),
		reject: draw(0.1), short: draw(1), churn: draw(0.5), bad: random.IntN(4) == 0,
	}
	if random.IntN(8) == 0 {
		m.lose = 1
	}
	m.dies = never
	if random.IntN(3) == 0 {
		m.dies, m.limits = m.now+time.Duration(random.Int64N(int64(time.Minute))), random.IntN(3) > 0
	}
	if random.IntN(8) == 0 {
		m.interval = time.Duration(random.Int64N(int64(5 * time.Minute)))
	}
	for range 1 + max(0, random.IntN(6)-3) {
		p := &planner{model: m, plan: newPlan(random), estimated: m.now, failing: make(map[*watch]bool)}
		m.plans = append(m.plans, p)
	}
	for range 1 + random.IntN(6) { // clusters
		for range random.IntN(400) {
			m.create()
		}
		p := m.plans[random.IntN(len(m.plans))]
		for range random.IntN(150) {
			p.join(m.create())
		}
	}
	return m
}

func (m *model) create() *thing {
	m.keys++
	x := &thing{watch: watch{id: fmt.Sprint(m.keys)}, key: m.keys}
	m.list = append(m.list, x)
	return x
}

func (p *planner) join(x *thing) {
	if x.waited() || x.gone {
		return
	}
	if x.planner != p {
		if x.planner != nil && x.polling {
			return
		}
		if x.planner != nil {
			delete(x.planner.plan.watches, x.id)
		}
		x.watch, x.planner, x.polled, x.paged = watch{id: x.id}, p, 0, 0
	}
	x.bad = p.bad && len(p.things) == 0 && p.plan.waiting == 0
	p.plan.watches[x.id] = &x.watch
	x.since = p.now
	x.waiters = append(x.waiters, waiting{Waiter: x})
	p.plan.join(&x.watch, p.now, x.seen > 0 && p.now-x.seen < minPollInterval)
	p.things = append(p.things, x)
	p.sudden++
	p.wake = 0
}

func (p *planner) leave(x *thing) {
	x.drop(x)
	if x.role != idle {
		p.plan.leave(&x.watch)
	}
	if p.plan.waiting == 0 { // as the Poller does
		p.epoch++
		for _, w := range p.plan.watches {
			w.polling = false
		}
	}
	p.things = slices.DeleteFunc(p.things, func(y *thing) bool { return x == y })
}

// happen lets one thing happen.
func (m *model) happen() {
	if len(m.list) == 0 {
		m.create()
	}
	x, p := m.list[m.random.IntN(len(m.list))], m.plans[m.random.IntN(len(m.plans))]
	switch m.random.IntN(8) {
	case 0:
		p.join(x)
	case 1:
		p.join(m.create())
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
			x.planner.leave(x)
		}
	case 6: // another request showed it
		if x.waited() {
			x.free = max(x.free, m.now+minPollInterval)
			x.planner.plan.recorded(&x.watch, m.now)
			x.polled, x.since = m.now, m.now
		}
	case 7: // an upload
		if x.waited() && !x.polling {
			x.planner.plan.pollNow(&x.watch, m.now)
			x.polled, x.paged, x.planner.wake = 0, 0, 0
			x.planner.sudden++
		}
	}
}

// after does something later, unless the requests of the planner have been canceled until then.
func (p *planner) after(do func()) {
	d, epoch := time.Duration(p.random.Int64N(int64(200*time.Millisecond+p.slow))), p.epoch
	heap.Push(&p.events, event{p.now + d, func() {
		if p.epoch == epoch {
			do()
			p.wake = 0
		}
	}})
}

// admit reports whether the shared rate limit lets a request through.
func (m *model) admit() bool {
	if m.limit == 0 {
		return true
	}
	m.bucket = min(m.limit, m.bucket+m.limit*(m.now-m.filled).Seconds())
	m.filled = m.now
	if m.bucket < 1 {
		return false
	}
	m.bucket--
	return true
}

// holds is require.True for checks that run millions of times.
func (m *model) holds(ok bool, format string, args ...any) {
	if !ok {
		m.t.Helper()
		m.t.Fatalf(format+" (%+v)", append(args, m.manners)...)
	}
}

// step lets every plan decide, or time pass.
func (m *model) step() {
	m.steps++
	for m.random.Float64() < m.churn/float64(len(m.plans)) {
		m.happen()
	}
	next := never
	for _, p := range m.plans {
		if p.wake <= m.now {
			p.decide()
		}
		next = min(next, p.wake)
	}
	if next <= m.now {
		return
	}
	if len(m.events) > 0 && m.events[0].at <= next {
		e := heap.Pop(&m.events).(event)
		m.now = max(m.now, e.at)
		e.do()
		return
	}
	m.now = min(next, m.now+time.Hour)
}

func (p *planner) decide() {
	p.check()
	p.estimate()
	p.longest = max(p.longest, p.plan.cycle())
	if until := p.plan.pacer.until; until > p.until {
		p.held += until - max(p.until, p.now)
		p.until = until
	}
	do := p.plan.decide(p.now)
	switch {
	case do.page:
		p.page(do.cursor, p.now)
	case do.poll != nil:
		p.poll(do.poll)
	default:
		p.holds(do.wake > p.now, "at %v: the plan wants to decide again at once: %v", p.now, do.wake)
		p.wake = do.wake
	}
}

func (p *planner) poll(w *watch) {
	p.paid++
	x := w.waiters[0].Waiter.(*thing)
	if x.polled != 0 {
		p.holds(p.now-x.polled >= minPollInterval, "%s is polled within the minimum poll interval: after %v", x.id, p.now-x.polled)
		p.holds(p.now-x.polled >= min(p.interval, p.now-x.since), "%s is polled within its interval: after %v", x.id, p.now-x.polled)
	}
	if x.paged != 0 {
		p.holds(p.now-x.paged >= minPollInterval, "%s is polled soon after a page: after %v", x.id, p.now-x.paged)
	}
	sent, limited := p.now, !p.admit()
	x.polled = p.now
	p.after(func() {
		switch failed := p.random.Float64() < p.fail || x.bad; {
		case limited:
			p.paid--
			p.plan.pollRateLimited(w, p.now, sent, p.asks)
			x.polled = 0
		case failed && w.seen > sent:
			p.plan.pollEnded(w)
		case failed && !x.gone:
			x.polled = p.now
			p.pollFailed(w, sent)
		case x.gone:
			clear(p.failing)
			p.plan.pollEnded(w)
			p.plan.works(p.now)
			p.leave(x)
		default:
			clear(p.failing)
			p.plan.polled(w, p.now, 0)
			x.polled, x.since = p.now, p.now
		}
	})
}

// pollFailed reports a failed poll. It concerns no other meeting, unless several requests have
// failed since the last one that succeeded.
func (p *planner) pollFailed(w *watch, sent time.Duration) {
	p.failing[w] = true
	others, until := maps.Clone(p.plan.failures), p.plan.pacer.until
	ended := p.plan.pollFailed(w, p.now, sent, 0)
	if len(p.failing) == 1 {
		after := maps.Clone(p.plan.failures)
		delete(others, w)
		delete(after, w)
		p.holds(maps.Equal(others, after), "%s fails, and that counts for others", w.id)
		p.holds(until == p.plan.pacer.until, "%s fails, and the pacer pauses", w.id)
	}
	p.end(ended)
}

// end ends the waits for watches with too many failures.
func (p *planner) end(ended []*watch) {
	for _, w := range ended {
		if w.waited() {
			p.leave(w.waiters[0].Waiter.(*thing))
		}
	}
}

func (p *planner) page(cursor string, sent time.Duration) {
	p.paid++
	limited := !p.admit()
	p.after(func() {
		switch r, dead := p.random.Float64(), sent >= p.dies; {
		case limited || dead && p.limits:
			p.paid--
			p.plan.pageRateLimited(p.now, sent, p.asks)
		case r < p.lose || dead:
			p.failing[nil] = true
			p.end(p.plan.pageFailed(p.now, sent, 0, false))
		case cursor != "" && r < p.lose+p.reject:
			clear(p.failing)
			p.plan.pageRejected(p.now, false)
		default:
			clear(p.failing)
			p.show(cursor, sent)
		}
	})
}

// show shows a page.
func (p *planner) show(cursor string, sent time.Duration) {
	from := len(p.list)
	if cursor != "" {
		var key int
		fmt.Sscan(cursor, &key)
		from, _ = slices.BinarySearchFunc(p.list, key, func(x *thing, key int) int { return x.key - key })
	}
	size := pageSize
	if p.random.Float64() < p.short {
		size = p.random.IntN(pageSize)
	}
	to := max(0, from-size)
	var shown []*watch
	for _, x := range slices.Backward(slices.Clone(p.list[to:from])) {
		if p.order == 2 {
			x = p.list[p.random.IntN(len(p.list))]
		}
		if x.planner != p || !x.waited() {
			continue
		}
		x.since, x.paged = p.now, p.now
		if p.random.IntN(8) > 0 || p.churn == 0 {
			shown = append(shown, &x.watch)
			continue
		}
		x.seen = p.now // its wait is over, and another one begins
		epoch := p.epoch
		p.leave(x)
		p.join(x)
		if epoch != p.epoch {
			return
		}
	}
	next := ""
	if to > 0 {
		next = fmt.Sprint(p.keys + 1)
		if to < len(p.list) {
			next = fmt.Sprint(p.list[to].key)
		}
	}
	old := p.plan.scan.old
	p.plan.pageRead(p.now, sent, shown, next)
	p.holds(old == nil || !slices.Contains(p.plan.stretches, old), "a stretch is kept as it was, though it was read again")
}

// estimate adds what the cycles since the last time would have cost, had it been known which is
// cheaper for each page: the page, or a poll of each meeting. If pages may fail, polls are.
func (p *planner) estimate() {
	for ; p.estimated+p.plan.cycle() <= p.now; p.estimated += p.plan.cycle() {
		paying := make(map[int]int)
		needed := 0
		for _, x := range p.things {
			if x.gone || p.order == 2 || p.short+p.lose+p.reject > 0 || p.now >= p.dies {
				needed++
				continue
			}
			at, _ := slices.BinarySearchFunc(p.list, x.key, func(y *thing, key int) int { return y.key - key })
			page := (len(p.list) - at) / pageSize
			p.deepest = max(p.deepest, page)
			paying[page]++
		}
		p.needed += float64(needed + len(paying))
	}
}

// cheap compares the cost of a plan with the cost known in hindsight. Polls pay for the search
// before it reaches the deepest page.
func (p *planner) cheap() {
	search := float64(searchShare * p.deepest)
	p.holds(float64(p.paid) <= 1.5*(float64(p.sudden)+p.needed)+search+64, "paid %d, sudden %d, needed %.0f", p.paid, p.sudden, p.needed)
}

// check checks what always holds.
func (p *planner) check() {
	c := &p.plan.pacer
	p.holds(minShare <= c.share && c.share <= 1, "the pacer uses %v of its pace", c.share)
	p.holds(c.until <= p.now+maxOutage, "the pacer pauses for too long: %v", c.until-p.now)
	if p.steps%64 != 0 {
		return
	}
	known := map[*stretch]bool{p.plan.scan.run: true, p.plan.scan.old: true}
	for _, s := range p.plan.stretches {
		known[s] = true
	}
	waiting := 0
	for _, w := range p.plan.watches {
		if w.waited() {
			waiting++
		}
		p.holds(w.waited() == (w.role != idle), "%s: an awaited meeting has a role, not %v", w.id, w.role)
		p.holds((w.place > 0) == (w.role != idle && !w.polling), "%s: place %d", w.id, w.place)
		p.holds(w.role != member || w.stretch != nil, "%s: a member of no stretch", w.id)
		p.holds(w.stretch == nil || known[w.stretch], "%s: of a stretch that was dropped", w.id)
		p.holds(w.role != idle || !p.plan.unsearched[w], "%s: kept by a search", w.id)
	}
	require.Equal(p.t, waiting, p.plan.waiting)
	for w := range p.plan.failures {
		require.True(p.t, w.waited(), "a failure is kept for nobody")
	}
	bound := 3*p.longest + 2*p.interval + 2*stuck + 2*time.Minute
	if p.limit > 0 { // as slow as the pacer can become, with a page after each poll
		bound += time.Duration(float64(time.Second)/(leastPace*minShare)*float64(2*p.plan.waiting+maxPolls)) + 4*p.held
	}
	for _, x := range p.things {
		if !x.gone && p.fail == 0 && !x.bad {
			p.holds(p.now-x.since <= bound, "%s is unseen for too long: %v, bound %v, role %v, due %v", x.id, p.now-x.since, bound, x.role, x.due-p.now)
		}
	}
}

func (m *model) run(steps int) {
	for range steps {
		m.step()
	}
	for _, p := range m.plans {
		p.cheap()
		for len(p.things) > 0 {
			p.leave(p.things[0])
		}
		p.check()
		require.Empty(m.t, p.plan.failures)
		for r := range p.plan.due {
			require.Empty(m.t, p.plan.due[r])
		}
	}
}

// TestModel runs many random situations.
func TestModel(t *testing.T) {
	t.Parallel()
	situations, steps := 30, 2000
	if os.Getenv("MINUTES_LONG") != "" {
		situations = 500
	}
	for seed := range situations {
		m := newModel(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m.t = t
			m.run(steps)
		})
	}
}

// FuzzModel lets the fuzzer choose the situation.
func FuzzModel(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		newModel(t, rand.New(rand.NewPCG(a, b))).run(500)
	})
}
