package poll

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// scenario is the meetings, the waits and the behaviour of the service during some time. It has
// many fields because each is a column of the table. Most are zero in most scenarios.
type scenario struct {
	waits     int           // meetings with a wait from the beginning, in all processes together
	oneIn     int           // one meeting in this many of the list has a wait; 0: each
	newer     int           // meetings above those, without a wait
	crowd     int           // further waits that begin together, after five minutes, for meetings that begin then
	newcomers time.Duration // the interval between further such waits
	processes int           // 0: one
	apart     bool          // each process has a list of its own; otherwise their meetings lie side by side
	phases    bool          // the pollers of the processes have phases; otherwise they stay in step
	alone     bool          // the yardstick polls, instead of a Poller
	lasts     time.Duration // 0: twenty minutes
	ends      int64         // each wait ends at a random time in this many times lasts; 0: ten
	fetches   bool          // after each wait, its process makes a call
	after     time.Duration // requests before this time do not count

	latency     time.Duration // of every request; 0: 50 ms
	loss        float64       // the share of lost responses
	pageTakes   time.Duration // the further time that a page takes
	deeper      time.Duration // the further time that it takes for each page above it
	lag         time.Duration // how old the state is that pages show
	lagsUpTo    time.Duration // its further age differs from page to page
	frozen      time.Duration // pages show nothing that is later than this time after the beginning; 0: all
	size        int           // of a page; 0: 50
	skew        time.Duration // each status is written by a machine whose clock is up to so much ahead or behind
	byChange    bool          // the list is ordered by the last change
	cursorLives time.Duration // 0: for ever
	edge        float64       // requests a second that the service accepts; 0: all
	burst       float64       // the size of its bucket; 0: one second's worth
	quota       int           // requests that it accepts in each calendar minute; 0: all
	asks        bool          // the 429s of the quota have a Retry-After, to the end of the minute
	calling     float64       // requests a second by the user's own calls
	limit       float64       // WithRateLimit; 0: none
	fault       func(request) *Failure
	poisoned    bool // one more wait is for a meeting that is in no list

	since    time.Duration // the first process follows the meetings since so long ago, instead of waiting
	audio    time.Duration // meetings get their audio so long after their creation
	others   time.Duration // the interval between meetings without a wait that begin later
	takes    time.Duration // from the creation of those to their end; 0: ten minutes
	stuck    bool          // those that it waits for never change again
	restarts int           // of the process that follows
}

func (w scenario) withDefaults() scenario {
	w.oneIn = max(1, w.oneIn)
	w.processes = max(1, w.processes)
	if w.lasts == 0 {
		w.lasts = 20 * time.Minute
	}
	if w.latency == 0 {
		w.latency = 50 * time.Millisecond
	}
	if w.size == 0 {
		w.size = 50
	}
	if w.ends == 0 {
		w.ends = 10
	}
	if w.takes == 0 {
		w.takes = 10 * time.Minute
	}
	return w
}

// run simulates a scenario, in a bubble.
func run(w scenario) *measures { return runWith(w, func(context.Context, []*process) {}) }

// runWith simulates a scenario and what else begins in its processes.
func runWith(w scenario, begin func(context.Context, []*process)) *measures {
	w = w.withDefaults()
	time.Sleep(time.Duration(17) * time.Second) // into a minute, for the quota
	s := &service{scenario: w, random: rand.New(rand.NewPCG(1, 7)), began: time.Now(), byID: map[string]*simulated{},
		tokens: w.edge, filled: time.Now(), used: map[int64]int{}}
	s.bySecond = make(map[int64]int)
	s.late = make([][]time.Duration, w.processes)
	s.unseen = make([]time.Duration, w.processes)
	s.found = map[string]int{}
	s.done = map[string]int{}
	// It has no deadline: otherwise a call would fail in a pause that outlasts the scenario.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	processes := make([]*process, w.processes)
	for i := range processes {
		processes[i] = newProcess(s, i, w.alone)
	}
	s.populate()
	s.beginWaits(ctx, processes)
	begin(ctx, processes)
	time.Sleep(w.lasts)
	cancel()
	s.finish()
	synctest.Wait()
	return &s.measures
}

// populate makes the meetings. The oldest of oneIn is the one with a wait.
func (s *service) populate() {
	lists := 1
	if s.apart {
		lists = s.processes
	}
	s.lists = make([][]*simulated, lists)
	n := s.waits * s.oneIn
	for i := range n + s.newer {
		m := s.old(i%lists, n+s.newer-i)
		switch {
		case i%s.oneIn != 0 || i >= n:
			m.since[final] = m.since[working] // it has ended before
		case s.stuck:
			m.since[changed] = s.began.Add(2 * s.lasts)
			m.since[final] = m.since[changed]
		case s.since > 0: // its audio came in the last hour
			m.since[working] = latest(m.since[working], s.began.Add(-time.Duration(i%60)*time.Minute))
		}
	}
}

// beginWaits begins the waits, those that come later as well, and what else happens.
func (s *service) beginWaits(ctx context.Context, processes []*process) {
	if s.since > 0 {
		go processes[0].followOn(ctx)
	} else {
		for i := range s.waits {
			p := i % s.processes
			go processes[p].wait(ctx, s.lists[p%len(s.lists)][i*s.oneIn/len(s.lists)], false)
		}
	}
	if s.poisoned {
		s.byID["poison"] = &simulated{id: "poison", place: -1, owner: -1}
		poison := processes[0].waiting.Subscribe("poison", false)
		context.AfterFunc(ctx, func() { _ = poison.Cancel() })
	}
	if s.crowd > 0 {
		go s.begin(ctx, processes[0], s.crowd, 5*time.Minute, 0)
	}
	if s.newcomers > 0 {
		go s.begin(ctx, processes[0], 1, s.newcomers, s.newcomers)
	}
	if s.others > 0 {
		go s.begin(ctx, nil, 1, s.others, s.others)
	}
	if s.after > 0 {
		time.AfterFunc(s.after, s.forget)
	}
	if s.calling > 0 {
		go processes[0].calls(ctx)
	}
}

// old adds a meeting that was created some time ago. It changes once.
func (s *service) old(list, place int) *simulated {
	created := s.began.Add(-time.Duration(place) * time.Second)
	if s.since > 0 {
		created = s.began.Add(-s.since + time.Duration(len(s.lists[list]))*(s.since/time.Duration(s.waits*s.oneIn)))
	}
	return s.add(list, created, s.began.Add(s.within(1)), s.began.Add(s.within(s.ends)))
}

// within is a random time in a multiple of the scenario's.
func (s *service) within(times int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.random.Int64N(times * int64(s.lasts)))
}

// begin adds n meetings after a while, and again at an interval, and waits for them unless p is
// nil.
func (s *service) begin(ctx context.Context, p *process, n int, after, interval time.Duration) {
	for ; sleep(ctx, after) == nil; after = interval {
		for range n {
			s.mu.Lock()
			now := time.Now()
			m := s.add(0, now, now.Add(s.takes/2), now.Add(s.takes))
			s.mu.Unlock()
			if p != nil {
				go p.wait(ctx, m, false)
			}
		}
		if interval == 0 {
			return
		}
	}
}

// followOn follows, with restarts at random times.
func (p *process) followOn(ctx context.Context) {
	for range p.restarts {
		run, cancel := context.WithTimeout(ctx, 2*p.within(1)/time.Duration(p.restarts+1))
		newProcess(p.service, p.number, false).follow(run, time.Now().Add(-p.since))
		cancel()
	}
	p.follow(ctx, time.Now().Add(-p.since))
}

// inBubble runs f in a bubble, which only a test has.
func inBubble(b *testing.B, f func()) {
	all := func(string, string) (bool, error) { return true, nil }
	test := testing.InternalTest{Name: b.Name(), F: func(t *testing.T) { synctest.Test(t, func(*testing.T) { f() }) }}
	if !testing.RunTests(all, []testing.InternalTest{test}) {
		b.FailNow()
	}
}
