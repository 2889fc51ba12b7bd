package poll_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// A fleet is a situation of users: several processes share one service and its rate limit, or the
// service fails for a while.
type fleet struct {
	scenario
	processes int  // each waits for its own part of the meetings
	mixed     bool // these parts do not lie apart
	clusters  int  // the meetings lie in so many places, with gap others between them
	gap       int
	long      time.Duration // the interval of all waits but the last ten
	ends      time.Duration // when all meetings have ended; 0: after an hour
	together  bool          // they all end then
	lasts     time.Duration // of the simulation; 0: an hour

	fault func(request) *poll.Failure
}

// request is one request to a fleet's service.
type request struct {
	now     time.Duration
	process int
	page    bool
	cursor  string
	meeting *meeting
}

var (
	errDown     = errors.New("503")
	errRejected = errors.New("401")
)

// between makes a fault only from one time to another.
func between(from, to time.Duration, fault func(request) *poll.Failure) func(request) *poll.Failure {
	return func(r request) *poll.Failure {
		if r.now < from || r.now >= to {
			return nil
		}
		return fault(r)
	}
}

func unavailable(retryAfter time.Duration) func(request) *poll.Failure {
	return func(request) *poll.Failure {
		return &poll.Failure{Err: errDown, Transient: true, RetryAfter: retryAfter}
	}
}

func listingOnly(fault func(request) *poll.Failure) func(request) *poll.Failure {
	return func(r request) *poll.Failure {
		if !r.page {
			return nil
		}
		return fault(r)
	}
}

func limitedFor(request) *poll.Failure { return failed(errLimited) }

// process is one of a fleet. It implements poll.Service.
type process struct {
	*fleetService
	number int
}

type fleetService struct {
	*service
	fleet
	log []entry
	end []ending

	pollers []*poll.Poller
}

// entry is a request in the log.
type entry struct {
	request
	failure *poll.Failure
}

// ending is when a wait ended, and how long after its meeting.
type ending struct {
	at, late time.Duration
	process  int
	failed   bool
	m        *meeting
}

func (p process) Poll(ctx context.Context, id string, wanted func() bool) (poll.Snapshot, time.Duration, *poll.Failure) {
	if !wanted() {
		return poll.Snapshot{}, 0, failed(errLost)
	}
	p.mu.Lock()
	r := request{p.now(), p.number, false, "", p.byID[id]}
	p.mu.Unlock()
	f := p.broken(ctx, r, 30*time.Second)
	var s poll.Snapshot
	if f == nil {
		s, _, f = p.service.Poll(ctx, id, wanted)
	}
	p.record(r, f)
	return s, 0, f
}

func (p process) Page(ctx context.Context, cursor string, wanted func() bool) (page []poll.Snapshot, next string, f *poll.Failure) {
	if !wanted() {
		return nil, "", failed(errLost)
	}
	p.mu.Lock()
	r := request{p.now(), p.number, true, cursor, nil}
	p.mu.Unlock()
	if f = p.broken(ctx, r, 30*time.Second); f == nil {
		page, next, f = p.service.Page(ctx, cursor, wanted)
	}
	p.record(r, f)
	return page, next, f
}

// broken returns the fault of a request. One that is no failure at all is a black hole.
func (p process) broken(ctx context.Context, r request, timeout time.Duration) *poll.Failure {
	p.mu.Lock()
	fault := p.fault
	p.mu.Unlock()
	if fault == nil {
		return nil
	}
	f := fault(r)
	if f != nil && f.Err == nil {
		select {
		case <-ctx.Done():
		case <-time.After(timeout):
		}
		return failed(errLost)
	}
	return f
}

func (p process) record(r request, f *poll.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, entry{r, f})
}

// member waits for one meeting in one process.
type member struct {
	process
	m        *meeting
	interval time.Duration
}

func (w member) Interval(poll.Snapshot) time.Duration { return w.interval }

func (w member) Notify(s poll.Snapshot, _ bool, _ time.Duration) (over, confirm bool) {
	if s.Final {
		w.ended(false)
	}
	return s.Final, false
}

func (w member) Fail(string, poll.Snapshot, error) { w.ended(true) }

func (w member) ended(failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.m.over = true
	now := w.now()
	w.end = append(w.end, ending{now, now - max(w.m.ends, w.m.joined), w.number, failed, w.m})
}

// run lets a fleet live. It runs in a bubble.
func (f fleet) run() *fleetService {
	s := &fleetService{service: newService(f.scenario), fleet: f}
	f.processes = max(1, f.processes)
	f.clusters = max(1, f.clusters)
	length := max(f.ends, time.Minute)
	if f.ends == 0 {
		length = time.Hour
	}
	each := max(1, f.waits/max(f.processes, f.clusters))
	for i := range f.waits {
		ends := max(2*time.Minute, time.Duration(s.random.Int64N(int64(length))))
		if f.together {
			ends = length
		}
		if last := i - f.waits + 10; f.long > 0 && last >= 0 {
			ends = time.Duration(last+1) * 9 * time.Minute
		}
		s.own(ends)
		for range f.oneIn - 1 {
			s.other()
		}
		if f.clusters > 1 && (i+1)%each == 0 {
			for range f.gap {
				s.other()
			}
		}
	}
	for range f.newer {
		s.other()
	}
	for i := range f.processes {
		s.pollers = append(s.pollers, poll.New(process{s, i}))
	}
	for i, m := range s.ours {
		m.joined = s.now()
		n := i * f.processes / len(s.ours)
		if f.mixed {
			n = i % f.processes
		}
		w := member{process{s, n}, m, 0}
		if i < len(s.ours)-10 {
			w.interval = f.long
		}
		s.pollers[n].Join(w, m.id)
	}
	s.happen(s.pollers[0])
	if s.lasts == 0 {
		s.lasts = time.Hour
	}
	time.Sleep(s.lasts)
	synctest.Wait()
	s.mu.Lock()
	s.log = slices.Clone(s.log)
	s.fault = nil
	for _, m := range s.ours {
		m.ends = min(m.ends, s.now())
	}
	s.service.edge, s.service.quota = 0, 0
	n := len(s.log)
	s.mu.Unlock()
	time.Sleep(2*time.Hour + f.long)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = s.log[:n]
	return s
}

func (s *fleetService) count(from, to time.Duration, of func(entry) bool) (n int) {
	for _, e := range s.log {
		if e.now >= from && e.now < to && of(e) {
			n++
		}
	}
	return n
}

func isPage(e entry) bool { return e.page }
func isPoll(e entry) bool { return !e.page }
func anyKind(entry) bool  { return true }
func isLimited(e entry) bool {
	return e.failure != nil && e.failure.RateLimited
}

// late returns how late a share of the waits were notified, of those that ended in this time.
func (s *fleetService) late(from, to time.Duration, share float64) time.Duration {
	var late []time.Duration
	for _, e := range s.end {
		if e.at >= from && e.at < to {
			late = append(late, e.late)
		}
	}
	if len(late) == 0 {
		return 0
	}
	slices.Sort(late)
	return late[min(len(late)-1, int(float64(len(late))*share))]
}

func (s *fleetService) failures() (n int) {
	for _, e := range s.end {
		if e.failed {
			n++
		}
	}
	return n
}

func (s *fleetService) String() string {
	last := s.log[len(s.log)-1].now
	out := fmt.Sprintf("pages %d polls %d limited %d; late p50 %v p99 %v max %v; failed waits %d\n", s.count(0, last+1, isPage), s.count(0, last+1, isPoll), s.count(0, last+1, isLimited),
		s.late(0, last, 0.5).Round(time.Second), s.late(0, last, 0.99).Round(time.Second), s.late(0, last, 1).Round(time.Second), s.failures())
	out += "by 5 min (pages/polls/429): "
	for at := time.Duration(0); at < last; at += 5 * time.Minute {
		out += fmt.Sprintf("%d/%d/%d ", s.count(at, at+5*time.Minute, isPage), s.count(at, at+5*time.Minute, isPoll), s.count(at, at+5*time.Minute, isLimited))
	}
	return out
}

const (
	minute = time.Minute
	day    = 24 * time.Hour
)

var fleets = []struct {
	name string
	fleet
	check func(t *testing.T, s *fleetService)
	quick bool
}{
	// Several processes on one rate limit, their meetings side by side: 6.7 requests a second each.
	{"ten processes, 125 %", fleet{scenario: scenario{waits: 10_000, edge: 83.3}, processes: 10, mixed: true, lasts: 40 * minute}, sharing(time.Minute), false},
	{"ten processes, 50 %", fleet{scenario: scenario{waits: 10_000, edge: 33.3}, processes: 10, mixed: true, lasts: 40 * minute}, sharing(3 * time.Minute), false},
	{"ten processes apart, 125 %", fleet{scenario: scenario{waits: 10_000, edge: 8.33}, processes: 10, lasts: 40 * minute}, sharing(5 * time.Minute), false},
	{"three processes, a minute of 429s", fleet{scenario: scenario{waits: 3000}, processes: 3, fault: between(10*minute, 11*minute, limitedFor)}, recovered(13 * minute), true},
	{"three processes, 429s for the first minute", fleet{scenario: scenario{waits: 3000}, processes: 3, fault: between(0, minute, limitedFor)}, recovered(3 * minute), false},

	{"1,000, the GET of one fails", fleet{scenario: scenario{waits: 1000}, fault: badMeeting}, oneBad, true},
	{"10,000, the GET of one fails", fleet{scenario: scenario{waits: 10_000}, fault: badMeeting}, oneBad, false},

	{"1,000 under 13,000", fleet{scenario: scenario{waits: 1000, newer: 13_000}, ends: day}, perMinute(60, 10*minute), true},
	{"1,000 under 20,000", fleet{scenario: scenario{waits: 1000, newer: 20_000}, ends: day}, perMinute(60, 10*minute), false},
	{"1,000 in two clusters", fleet{scenario: scenario{waits: 1000}, clusters: 2, gap: 5000, ends: day}, perMinute(60, 10*minute), true},
	{"1,000 in twenty clusters", fleet{scenario: scenario{waits: 1000}, clusters: 20, gap: 1000, ends: day}, perMinute(60, 10*minute), false},
	{"1,000 in twenty clusters, one 503", fleet{scenario: scenario{waits: 1000}, clusters: 20, gap: 1000, ends: day, fault: once(10*minute, unavailable(0))}, perMinute(60, 10*minute), true},
	{"yesterday's batch, one 503", fleet{scenario: scenario{waits: 1000, newer: 13_000}, ends: day, fault: once(10*minute, unavailable(0))}, perMinute(60, 10*minute), true},
	{"yesterday's batch, a 503 at the start", fleet{scenario: scenario{waits: 1000, newer: 13_000}, ends: day, fault: once(0, unavailable(0))}, perMinute(60, 10*minute), false},
	{"yesterday's batch, 15 min of 503s", fleet{scenario: scenario{waits: 1000, newer: 13_000}, ends: day, fault: listingOnly(between(10*minute, 25*minute, unavailable(0)))}, survived(perMinute(60, 30*minute)), false},

	{"20,000 that end together", fleet{scenario: scenario{waits: 20_000}, ends: 10 * minute, together: true, lasts: 20 * minute}, together, false},
	{"5,000 that end together", fleet{scenario: scenario{waits: 5000}, ends: 10 * minute, together: true, lasts: 20 * minute}, together, false},
	{"5,000, the key is revoked", fleet{scenario: scenario{waits: 5000}, ends: day, lasts: 20 * minute, fault: between(10*minute, day, rejected)}, revoked, true},
	{"1,000 spread, the key is revoked", fleet{scenario: scenario{waits: 1000, oneIn: 200}, ends: day, lasts: 20 * minute, fault: between(10*minute, day, rejected)}, revoked, true},
	{"500, the listing rejects the key", fleet{scenario: scenario{waits: 500}, ends: day, lasts: 20 * minute, fault: listingOnly(between(5*minute, day, rejected))}, survived(nil), true},
	{"200 spread, 503 with Retry-After 900", fleet{scenario: scenario{waits: 200, oneIn: 1000}, ends: day, fault: between(10*minute, 30*minute, unavailable(15*minute))}, survived(nil), true},
	{"200, 503 with Retry-After 900", fleet{scenario: scenario{waits: 200}, ends: day, fault: between(10*minute, 30*minute, unavailable(15*minute))}, survived(nil), true},
	{"5,000 each hour, ten each cycle", fleet{scenario: scenario{waits: 5010}, ends: day, long: time.Hour, lasts: 2 * time.Hour}, patient, true},
	{"1,000, one page of the listing fails", fleet{scenario: scenario{waits: 1000}, ends: day, fault: badPage}, survived(brokenPage), false},
	{"1,000, listing down for 40 min", fleet{scenario: scenario{waits: 1000}, ends: day, lasts: 70 * minute, fault: listingOnly(between(10*minute, 50*minute, unavailable(0)))}, survived(perMinute(45, 51*minute)), false},
	{"1,000, black hole for 16 min", fleet{scenario: scenario{waits: 1000}, ends: day, fault: between(10*minute, 26*minute, hole)}, survived(perMinute(45, 27*minute)), true},
	{"300 spread, black hole for 16 min", fleet{scenario: scenario{waits: 300, oneIn: 200}, ends: day, fault: between(10*minute, 26*minute, hole)}, survived(nil), false},
}

// sharing checks that processes share a rate limit fairly, and that they read pages.
func sharing(late time.Duration) func(t *testing.T, s *fleetService) {
	return func(t *testing.T, s *fleetService) {
		assert.LessOrEqual(t, s.late(0, s.lasts, 0.99), late, "notified at the latest, for 99 of 100")
		polls, all := s.count(0, day, isPoll), len(s.log)
		assert.Less(t, polls, all/10, "polls")
		for i := range s.processes {
			mine := s.count(0, day, func(e entry) bool { return e.process == i && e.failure == nil })
			assert.GreaterOrEqual(t, mine, (all-s.count(0, day, isLimited))/s.processes/2, "requests of process %d", i)
		}
	}
}

func recovered(at time.Duration) func(t *testing.T, s *fleetService) {
	return func(t *testing.T, s *fleetService) {
		assert.LessOrEqual(t, s.late(at, day, 1), 62*time.Second, "notified at the latest")
		assert.LessOrEqual(t, s.count(0, 50*minute, isPoll), 150, "polls")
	}
}

func together(t *testing.T, s *fleetService) {
	assert.Less(t, s.late(0, day, 1), time.Minute, "notified at the latest")
}

func oneBad(t *testing.T, s *fleetService) {
	assert.LessOrEqual(t, s.late(0, day, 1), 62*time.Second, "notified at the latest")
	assert.LessOrEqual(t, s.count(0, 50*minute, isPoll), 150, "polls")
}

// perMinute bounds the requests a minute from some time on.
func perMinute(most float64, from time.Duration) func(t *testing.T, s *fleetService) {
	return func(t *testing.T, s *fleetService) {
		to := s.log[len(s.log)-1].now
		assert.LessOrEqual(t, float64(s.count(from, to, anyKind))/(to-from).Minutes(), most, "requests a minute")
	}
}

// survived checks that no wait has ended by failures.
func survived(and func(*testing.T, *fleetService)) func(t *testing.T, s *fleetService) {
	return func(t *testing.T, s *fleetService) {
		assert.Zero(t, s.failures(), "waits that failed")
		if and != nil {
			and(t, s)
		}
	}
}

// revoked checks that a revoked key ends all waits at once.
func revoked(t *testing.T, s *fleetService) {
	var rejections []entry
	for _, e := range s.log {
		if e.failure != nil && e.failure.KeyRejected {
			rejections = append(rejections, e)
		}
	}
	assert.GreaterOrEqual(t, len(rejections), 2)
	assert.LessOrEqual(t, len(rejections), 65, "requests with a revoked key")
	assert.LessOrEqual(t, s.end[len(s.end)-1].at, rejections[1].now+5*time.Second, "last wait ends")
	for _, m := range s.ours {
		assert.True(t, m.over)
	}
}

// patient checks that a few waits with a short interval cost the others nothing.
func patient(t *testing.T, s *fleetService) {
	perMinute(30, 10*minute)(t, s)
	for _, e := range s.end {
		if e.m.key > 5000 && e.at < s.lasts {
			assert.LessOrEqual(t, e.late, 62*time.Second, "notified of %s", e.m.id)
		}
	}
}

// brokenPage checks that the pages above a broken one go on.
func brokenPage(t *testing.T, s *fleetService) {
	perMinute(1000, 10*minute)(t, s)
	assert.LessOrEqual(t, s.late(0, s.lasts, 1), 52*time.Second, "notified at the latest")
}

// badPage fails if it is to show the meetings from the 700th on.
func badPage(r request) *poll.Failure {
	if r.page && strings.HasPrefix(r.cursor, "701@") {
		return &poll.Failure{Err: errDown, Transient: true}
	}
	return nil
}

func badMeeting(r request) *poll.Failure {
	if !r.page && r.meeting.id == "mtg_77" {
		return &poll.Failure{Err: errDown, Transient: true}
	}
	return nil
}

func rejected(request) *poll.Failure { return &poll.Failure{Err: errRejected, KeyRejected: true} }
func hole(request) *poll.Failure     { return &poll.Failure{} }

func once(from time.Duration, fault func(request) *poll.Failure) func(request) *poll.Failure {
	done := false
	return func(r request) *poll.Failure {
		if done || r.now < from {
			return nil
		}
		done = true
		return fault(r)
	}
}

func TestFleets(t *testing.T) {
	t.Parallel()
	for _, f := range fleets {
		if !f.quick && !testbase.Long() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := f.run()
				t.Log(s)
				f.check(t, s)
				for _, m := range s.ours {
					if !assert.True(t, m.over, "%s is forgotten", m.id) {
						break
					}
				}
			})
		})
	}
}
