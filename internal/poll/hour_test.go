package poll_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/poll"
)

// counts are the figures of an hour.
type counts struct {
	polls, pages     int
	within           int // polls of a meeting within the minimum poll interval
	most             int // requests in a second
	notified, unseen time.Duration
	firsts           []time.Duration // from the beginning of a wait to its first poll, of those that began later than the others
	failed           int             // waits that were given up

	recent  []time.Duration // requests of the last second
	through int             // requests that passed the edge
	after   []int           // the same, a cycle each, once the edge has let go
}

// request counts one, and reports whether it was within the hour.
func (c *counts) request(now time.Duration) bool {
	if now >= time.Hour {
		return false
	}
	c.recent = append(c.recent, now)
	for now-c.recent[0] >= time.Second {
		c.recent = c.recent[1:]
	}
	c.most = max(c.most, len(c.recent))
	return true
}

func (c *counts) page(now time.Duration) {
	if c.request(now) {
		c.pages++
	}
}

func (c *counts) poll(now time.Duration) {
	if c.request(now) {
		c.polls++
	}
}

// floor counts a poll that comes too soon after the last one.
func (c *counts) floor(now time.Duration, m *meeting) {
	if m.polled > 0 && now-m.polled < floor {
		c.within++
	}
}

func (c *counts) passed(now, cycle time.Duration) {
	if now < edgeLast {
		c.through++
		return
	}
	cycles := int((now - edgeLast) / cycle)
	for len(c.after) <= cycles {
		c.after = append(c.after, 0)
	}
	c.after[cycles]++
}

// show counts for how long a meeting was unseen.
func (c *counts) show(now time.Duration, m *meeting) {
	if m.joined == 0 || m.over || now >= time.Hour {
		return
	}
	c.unseen = max(c.unseen, now-max(m.seen, m.joined))
	if m.seen == 0 && m.joined > time.Second {
		c.firsts = append(c.firsts, now-m.joined)
	}
}

// over counts how long after its end a waiter was notified.
func (c *counts) over(now time.Duration, m *meeting) {
	m.over = true
	if now < time.Hour {
		c.notified = max(c.notified, now-max(m.ends, m.joined))
	}
}

func (c *counts) perMinute() float64 { return float64(c.polls+c.pages) / 60 }

// first is the time to the first poll of 19 of 20 waits.
func (c *counts) first() time.Duration {
	if len(c.firsts) == 0 {
		return 0
	}
	slices.Sort(c.firsts)
	return c.firsts[len(c.firsts)*95/100]
}

// share is how much of what the edge allows got through.
func (c *counts) share(edge float64) float64 { return float64(c.through) / (edge * edgeLast.Seconds()) }

// back is how many cycles the pace took to come back once the edge let go.
func (c *counts) back(needs int) int {
	for i, n := range c.after {
		if 10*n >= 9*needs {
			return i + 1
		}
	}
	return len(c.after) + 1
}

// waiter waits for one meeting.
type waiter struct {
	s *service
	m *meeting
}

func (w waiter) Interval(poll.Snapshot) time.Duration { return 0 }

func (w waiter) Notify(seen poll.Snapshot, _ bool, _ time.Duration) (over, confirm bool) {
	if seen.Final {
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		w.s.counts.over(w.s.now(), w.m)
	}
	return seen.Final, false
}

func (w waiter) Fail(string, poll.Snapshot, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.counts.show(w.s.now(), w.m)
	w.s.counts.over(w.s.now(), w.m)
	if !w.m.deleted {
		w.s.counts.failed++
	}
}

// spend lets an hour pass in a scenario, and then all that is left of it end. It
// runs in a bubble.
func spend(t testing.TB, w scenario) *counts {
	s := newService(w)
	s.fill()
	p := poll.New(s)
	for _, m := range s.ours {
		s.follow(p, m)
	}
	s.happen(p)
	time.Sleep(time.Hour)
	synctest.Wait()
	s.finish()
	time.Sleep(time.Hour / 2)
	synctest.Wait()
	for _, m := range s.ours {
		if !assert.True(t, m.over, "%s is forgotten", m.id) {
			break
		}
	}
	assert.Zero(t, p.Kept(), "meetings that nobody waits for any more")
	return &s.counts
}

func (s *service) follow(p *poll.Poller, m *meeting) {
	s.mu.Lock()
	m.joined = s.now()
	s.mu.Unlock()
	if s.twice {
		p.Join(glance{p, waiter{s, m}}, m.id)
	} else {
		p.Join(waiter{s, m}, m.id)
	}
}

// glance waits for the first poll of a meeting, and then as a waiter does.
type glance struct {
	p *poll.Poller
	waiter
}

func (g glance) Notify(poll.Snapshot, bool, time.Duration) (over, confirm bool) {
	go g.p.Join(g.waiter, g.m.id)
	return true, false
}

// fill creates the first meetings.
func (s *service) fill() {
	for i := range s.sparse * s.sparseIn {
		if i%s.sparseIn == 0 {
			s.own(s.end())
		} else {
			s.other()
		}
	}
	if s.joining == 0 {
		for range s.waits {
			s.own(s.end())
			for range s.oneIn - 1 {
				s.other()
			}
		}
	}
	for range s.newer {
		s.other()
	}
}

// end is when a meeting ends.
func (s *service) end() time.Duration {
	last := time.Hour
	if s.endless {
		last *= 24
	}
	return max(2*time.Minute, time.Duration(s.random.Int64N(int64(last))))
}

// happen lets things happen for the hour.
func (s *service) happen(p *poll.Poller) {
	s.every(s.foreign, s.other)
	s.every(s.deleted, func() { s.toSome(s.delete) })
	s.every(s.edited, func() { s.toSome(s.edit) })
	if s.imported > 0 {
		time.AfterFunc(10*time.Minute, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			for range s.imported {
				s.other()
			}
		})
	}
	s.join(p, s.newcomers, time.Hour, s.now)
	s.join(p, s.joining/time.Duration(max(1, s.waits)), s.joining, func() time.Duration { return max(s.end(), s.now()+time.Minute) })
}

// join begins a further wait every d, until last, on a meeting that ends when
// ends says.
func (s *service) join(p *poll.Poller, d, last time.Duration, ends func() time.Duration) {
	if d == 0 {
		return
	}
	go func() {
		for s.now() < last {
			time.Sleep(d)
			s.mu.Lock()
			m := s.own(ends())
			s.mu.Unlock()
			s.follow(p, m)
		}
	}()
}

// every does something so often.
func (s *service) every(d time.Duration, do func()) {
	if d == 0 {
		return
	}
	go func() {
		for s.now() < time.Hour {
			time.Sleep(d)
			s.mu.Lock()
			do()
			s.mu.Unlock()
		}
	}()
}

// toSome does something to a meeting that has not ended.
func (s *service) toSome(do func(*meeting)) {
	for range 1000 {
		if m := s.ours[s.random.IntN(len(s.ours))]; !m.over && !m.deleted {
			do(m)
			return
		}
	}
}

// finish counts the unseen meetings at the end of the hour, and ends everything.
func (s *service) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose, s.losePoll, s.limited, s.hanging = 0, 0, false, false
	for _, m := range s.ours {
		if !m.over {
			s.counts.unseen = max(s.counts.unseen, time.Hour-max(m.seen, m.joined))
			m.ends = min(m.ends, time.Hour)
		}
	}
}
