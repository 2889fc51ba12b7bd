package poll

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/failure"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

const perPage = 50

// model drives a plan by random operations, and checks after each what must always hold.
type model struct {
	plan
	t       require.TestingT
	random  func(n int) int // from 0 to n-1
	now     time.Duration
	watches []*watch
	polled  map[*watch]time.Duration // when it was last answered alone; no entry if it may be polled at once
	shown   map[*watch]time.Duration // when a response about it alone last showed it
	getting []*watch                 // under way, without those that stop forgot
	sentAt  time.Duration            // of the page under way
	shows   int                      // how many of the meetings pages show
}

func newModel(t require.TestingT, random func(int) int) *model {
	m := &model{t: t, random: random, now: time.Second, shows: 80}
	m.polled = make(map[*watch]time.Duration)
	m.shown = make(map[*watch]time.Duration)
	m.plan.stop()
	for i := range 80 {
		m.watches = append(m.watches, &watch{id: fmt.Sprint(i)})
	}
	return m
}

// step does one operation.
func (m *model) step() {
	m.now++
	w := m.watches[m.random(len(m.watches))]
	switch m.random(20) {
	case 0:
		for range m.random(40) {
			m.join(m.watches[m.random(len(m.watches))])
		}
	case 1:
		m.join(w)
	case 2:
		m.leave(w)
		for i := range m.random(50) / 49 * len(m.watches) { // or all
			m.leave(m.watches[i])
		}
	case 3:
		m.got(w, time.Duration(m.random(2)*m.random(400))*time.Second)
	case 4, 13:
		m.ask(w)
		if m.random(20) == 0 {
			m.plan.distrust(m.now)
		}
	case 5, 6:
		m.now += time.Duration(m.random(8_000)) * time.Millisecond
	case 7, 8, 9, 10:
		m.endGet(m.failure)
	case 11, 12:
		m.endPage(m.failure)
	default:
		m.decide()
	}
	m.check()
}

func (m *model) join(w *watch) {
	if !w.awaited {
		w.mayWait = time.Duration(m.random(2)*m.random(600)) * time.Second
	}
	m.plan.join(w, m.now, w.seen > 0 && m.now-w.seen < Interval, m.random(2) == 0)
}

func (m *model) leave(w *watch) {
	if !w.awaited {
		return
	}
	m.plan.leave(w)
	if m.awaited == 0 {
		m.plan.stop()
		for _, w := range m.getting { // as the Poller does
			w.state = due
			w.notBefore = m.now + Interval
		}
		m.getting = nil
	}
}

func (m *model) ask(w *watch) {
	if w.awaited {
		atOnce := m.random(4) == 0
		m.plan.ask(w, m.now, int64(m.now), atOnce)
		if atOnce {
			delete(m.polled, w)
		}
	}
}

// decide starts the request that the plan wants, if any.
func (m *model) decide() {
	next := m.plan.decide(m.now)
	switch {
	case next.page:
		m.sentAt = m.now
	case next.get != nil:
		at, polled := m.polled[next.get]
		m.demand(next.get.awaited && (!polled || m.now-at >= Interval), next.get, "is polled too early")
		m.getting = append(m.getting, next.get)
	default:
		idle := len(m.getting) == 0 && !m.reading && m.awaited > 0
		m.demand(next.wake > m.now && (!idle || next.wake < never), nil, "nothing is planned")
	}
}

func (m *model) answered(w *watch) { m.polled[w] = m.now }

// got lets a good response about a meeting alone come, which asks not to poll it for maxAge.
func (m *model) got(w *watch, maxAge time.Duration) {
	m.answered(w)
	m.shown[w] = m.now
	m.plan.got(w, m.now, int64(m.now), maxAge)
}

// endGet ends a GET: well, if outcome returns nil.
func (m *model) endGet(outcome func() *Failure) {
	if len(m.getting) == 0 {
		return
	}
	w := m.getting[0]
	m.getting = m.getting[1:]
	before := w.dueAt
	m.plan.getEnded(w)
	switch f := outcome(); {
	case f == nil:
		m.got(w, 0)
	default:
		if f.Kind != failure.RateLimited {
			m.answered(w)
		}
		ends := m.plan.getFailed(w, m.now, f)
		if ends {
			m.leave(w)
		}
		at, shown := m.shown[w]
		isGone := !shown || m.now-at >= Interval
		m.demand(f.Kind != failure.Gone || ends == isGone, w, "is given up too early or too late after a 404")
		m.demand(f.Kind != failure.RateLimited || w.dueAt == before, w, "has lost its place after a 429")
	}
}

// endPage ends a page: well, if outcome returns nil. It shows some meetings at random.
func (m *model) endPage(outcome func() *Failure) {
	if !m.reading {
		return
	}
	if f := outcome(); f != nil {
		m.plan.pageFailed(m.now, f)
		return
	}
	var page []*watch
	dues := map[*watch]time.Duration{}
	asked := map[*watch]bool{}
	for i := m.random(m.shows); i < m.shows && len(page) < perPage; i += 1 + m.random(4) {
		w := m.watches[i]
		page = append(page, w)
		dues[w] = w.dueAt
		asked[w] = w.asked > 0
	}
	next := []string{"", "next"}[min(1, m.random(8))]
	m.plan.pageRead(m.now, listPage{
		sentAt: m.sentAt, shown: page, discovered: m.random(3), next: next, wantsNext: m.random(9) == 0,
	})
	checked := 0
	for w, before := range dues {
		switch {
		case w.asked > 0 && !asked[w]: // by the plan itself
			checked++
		case w.awaited && m.now >= m.trustedAt:
			m.demand(w.dueAt >= min(before, m.now+Interval), w, "is not put off by a page")
		}
		trusted := m.now >= m.trustedAt || before == never
		m.demand(trusted || !w.awaited || w.state != expected, w, "is put off by a page that GETs contradict")
	}
	m.demand(checked <= 1, nil, "more than one GET checks a page")
}

func (m *model) failure() *Failure {
	if m.random(4) > 0 {
		return nil
	}
	kinds := []failure.Kind{failure.RateLimited, failure.Lost, failure.ForeignStatus, failure.Gone, failure.Rejected}
	f := &Failure{Kind: kinds[m.random(len(kinds))]}
	if m.random(4) == 0 {
		f.RetryAfter = time.Duration(m.random(600)) * time.Second
	}
	return f
}

// check checks that nothing is forgotten: each awaited meeting is due or its GET is under way, and
// a meeting that waits for a sweep has one.
func (m *model) check() {
	expectedOnes := 0
	awaited := 0
	for _, w := range m.watches {
		if w.awaited {
			awaited++
		}
		m.demand((w.place > 0) == (w.awaited && w.state != underWay), w, "is in the heap, or not, by mistake")
		if w.place == 0 {
			continue
		}
		if w.state == expected {
			expectedOnes++
		}
		m.demand(m.queue[w.place-1] == w, w, "has a wrong place")
		m.demand((w.state == expected) == (w.dueAt == never), w, "is due, or not, by mistake")
		m.demand(w.state != expected || m.sweep != nil || m.pageAt(m.now) < never, w, "waits for no sweep")
		m.demand(w.dueAt >= w.notBefore, w, "is due too early")
	}
	m.demand(expectedOnes == m.expected, nil, "expected is wrong")
	m.demand(awaited == m.awaited, nil, "awaited is wrong")
	m.demand(len(m.getting) == m.polling, nil, "polling is wrong")
}

func (m *model) demand(holds bool, w *watch, text string) {
	if !holds {
		require.Fail(m.t, text, "%+v", w)
	}
}

// settle lets the service work. Within half an hour, every awaited meeting must be seen, even if no
// page shows it. Within another hour it must be polled, even if each page shows it.
func (m *model) settle() {
	began := m.now
	m.shows = 40
	m.work(30 * time.Minute)
	for _, w := range m.watches {
		m.demand(!w.awaited || w.seen > began, w, "is forgotten")
	}
	began = m.now
	m.random = func(int) int { return 0 } // each page shows the same
	m.work(time.Hour)
	for _, w := range m.watches {
		m.demand(!w.awaited || m.shown[w] > began, w, "is only seen on pages")
	}
}

// work lets requests succeed for a while.
func (m *model) work(lasts time.Duration) {
	succeeds := func() *Failure { return nil }
	for ends := m.now + lasts; m.now < ends; m.now += time.Second / 2 {
		m.endGet(succeeds)
		m.endPage(succeeds)
		m.decide()
		m.check()
	}
}

func TestPlan_KeepsItsPromisesWhateverHappens(t *testing.T) {
	t.Parallel()
	for seed := range testbase.Many(300, 10) {
		m := newModel(t, rand.New(rand.NewPCG(uint64(seed), 1)).IntN)
		for range 3000 {
			m.step()
		}
		m.settle()
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("newcomers, pages, failures"))
	f.Fuzz(func(t *testing.T, operations []byte) {
		m := newModel(t, func(n int) int {
			if len(operations) < 2 {
				operations = nil
				return 0
			}
			x := binary.BigEndian.Uint16(operations)
			operations = operations[2:]
			return int(x) % n
		})
		for len(operations) > 0 {
			m.step()
		}
		m.random = rand.New(rand.NewPCG(1, 1)).IntN
		m.settle()
	})
}
