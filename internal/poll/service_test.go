package poll

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

const floor = 30 * time.Second // the service asks for it between two polls of a meeting

// Statuses of a meeting. They only rise, so that a wait that saw a later one has seen them all.
const (
	idle = iota // no audio yet
	working
	changed
	final
)

// simulated is a meeting of the service, with the measurements of its wait, if it has one.
type simulated struct {
	id    string
	place int                      // in its list, the oldest first
	since [final + 1]time.Time     // when each status began
	skew  [final + 1]time.Duration // of the clock that wrote each status

	owner    int // the process that waits for it, or -1
	joined   time.Time
	known    int       // the highest status that its wait has received
	polled   time.Time // the last response to its GET
	polledBy *process
	seen     time.Time // the last response that showed it to its process
	over     bool      // its wait has ended
}

func (m *simulated) status(at time.Time) int {
	status := final
	for status > idle && at.Before(m.since[status]) {
		status--
	}
	return status
}

// updated returns the time of the last change. Statuses that began later are skipped.
func (m *simulated) updated(at time.Time) time.Time { return m.since[m.status(at)] }

func (m *simulated) snapshot(at time.Time) Snapshot[int] {
	s := m.status(at)
	return Snapshot[int]{
		ID: m.id, Final: s == final, Idle: s == idle, Meeting: s,
		Created: m.since[idle].Add(m.skew[idle]), Updated: m.since[s].Add(m.skew[s]),
	}
}

// service is a simulated service. Its lists are in the order of creation, and each process has its
// own if they lie apart. It keeps the measures of all processes, too.
type service struct {
	scenario
	random *rand.Rand
	began  time.Time

	mu     sync.Mutex
	lists  [][]*simulated
	byID   map[string]*simulated
	tokens float64 // of the edge
	filled time.Time
	used   map[int64]int // of the quota, by minute
	measures
}

// request is one that reached the service. A page has no meeting.
type request struct {
	at      time.Duration // since the scenario began
	meeting *simulated
}

var (
	errLimited  = errors.New("429")
	errDown     = errors.New("503")
	errLost     = errors.New("connection lost")
	errCursor   = errors.New("400: unknown cursor")
	errRevoked  = errors.New("401")
	errRecalled = errors.New("called off by the poller")
)

// admit reports whether the edge accepts a request: from a bucket of one second's worth or burst, and within
// the quota of the calendar minute.
func (s *service) admit(now time.Time) bool {
	s.requests++
	s.bySecond[int64(now.Sub(s.began)/time.Second)]++
	if s.edge > 0 {
		s.tokens = min(max(1, s.edge, s.burst), s.tokens+s.edge*now.Sub(s.filled).Seconds())
		s.filled = now
		if s.tokens < 1 {
			return false
		}
		s.tokens--
	}
	minute := now.Unix() / 60
	s.used[minute]++
	return s.quota == 0 || s.used[minute] <= s.quota
}

// accept is the edge and the faults of the service: it returns how long the response takes, and the
// failure.
func (s *service) accept(r request, takes time.Duration) (time.Duration, *Failure) {
	if !s.admit(time.Now()) {
		s.limited++
		f := &Failure{Err: errLimited, Kind: failure.RateLimited}
		if s.asks {
			now := time.Now()
			f.RetryAfter = now.Truncate(time.Minute).Add(time.Minute).Sub(now).Round(time.Second)
		}
		return s.latency, f
	}
	if s.fault != nil {
		if f := s.fault(r); f != nil {
			if f.Kind == failure.KeyRejected {
				s.rejected++
			}
			return s.latency, f
		}
	}
	if s.random.Float64() < s.loss {
		return takes, &Failure{Err: errLost, Kind: failure.Lost}
	}
	return takes, nil
}

// get is a GET of one meeting.
func (s *service) get(p *process, id string) (m *simulated, at Snapshot[int], takes time.Duration, f *Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	m = s.byID[id]
	s.gets++
	takes, f = s.accept(request{now.Sub(s.began), m}, s.latency)
	if f != nil && f.Kind == failure.RateLimited {
		return m, at, takes, f // which is not a poll
	}
	if m.polledBy == p && now.Sub(m.polled) < floor {
		s.early++
	}
	m.polled = now.Add(takes)
	m.polledBy = p
	return m, m.snapshot(now), takes, f
}

// list is a list page of the process, with the time that it takes.
func (s *service) list(process int, cursor string) (
	page []*simulated, at time.Time, next string, takes time.Duration, f *Failure,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	at = now.Add(-s.lag)
	if s.lagsUpTo > 0 {
		at = at.Add(-time.Duration(s.random.Int64N(int64(s.lagsUpTo))))
	}
	if s.frozen > 0 && at.After(s.began.Add(s.frozen)) {
		at = s.began.Add(s.frozen)
	}
	order := s.order(process, at)
	from, known := s.find(order, cursor, now)
	to := max(0, from-s.size)
	takes = s.latency + s.pageTakes + time.Duration((len(order)-from)/s.size)*s.deeper
	takes, f = s.accept(request{at: now.Sub(s.began)}, takes)
	if f != nil {
		return nil, at, "", takes, f
	}
	if !known {
		return nil, at, "", takes, &Failure{Err: errCursor, Kind: failure.Rejected}
	}
	page = slices.Clone(order[to:from])
	slices.Reverse(page)
	if to > 0 {
		next = order[to].id + "," + strconv.FormatInt(now.UnixNano(), 10)
	}
	return page, at, next, takes, nil
}

// order is the list as it was at a time, the newest last.
func (s *service) order(process int, at time.Time) []*simulated {
	list := s.lists[process%len(s.lists)]
	n := len(list)
	for n > 0 && list[n-1].since[idle].After(at) {
		n--
	}
	if !s.byChange {
		return list[:n]
	}
	order := slices.Clone(list[:n])
	slices.SortStableFunc(order, func(a, b *simulated) int { return a.updated(at).Compare(b.updated(at)) })
	return order
}

// find returns the place below the meeting that a cursor names.
func (s *service) find(order []*simulated, cursor string, now time.Time) (from int, ok bool) {
	if cursor == "" {
		return len(order), true
	}
	id, issued, _ := strings.Cut(cursor, ",")
	nanos, _ := strconv.ParseInt(issued, 10, 64)
	if s.cursorLives > 0 && now.Sub(time.Unix(0, nanos)) > s.cursorLives {
		return 0, false
	}
	if !s.byChange {
		return s.byID[id].place, true
	}
	return slices.Index(order, s.byID[id]), true
}

// add adds the next meeting of a process's list. Its status changes later at times that the
// scenario gives.
func (s *service) add(list int, created, change, finished time.Time) *simulated {
	m := &simulated{id: "m" + strconv.Itoa(len(s.byID)), place: len(s.lists[list]), owner: -1}
	m.since = [...]time.Time{created, created, change, finished}
	if s.audio > 0 {
		m.since[working] = created.Add(s.audio)
	}
	if s.skew > 0 {
		for i := range m.skew {
			m.skew[i] = time.Duration((2*s.random.Float64() - 1) * float64(s.skew))
		}
	}
	s.byID[m.id] = m
	s.lists[list] = append(s.lists[list], m)
	return m
}

// shown records that a response showed meetings to their process.
func (s *service) shown(process int, meetings ...*simulated) {
	s.mu.Lock()
	defer s.mu.Unlock()
	awaited := 0
	for _, m := range meetings {
		if m.owner == process && !m.over && !m.joined.IsZero() {
			awaited++
			s.unseen[process] = max(s.unseen[process], time.Since(m.seen))
			m.seen = time.Now()
		}
	}
	if awaited == 0 {
		s.vain++
	}
}

// await records that a process begins to wait for a meeting.
func (s *service) await(process int, m *simulated) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.owner = process
	m.joined = time.Now()
	m.seen = m.joined
	m.known = -1
}

// received records that a wait received a status.
func (s *service) received(m *simulated, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if status < m.known {
		s.back++
	}
	s.first(m, now)
	s.delays(m, status, now)
	m.known = max(m.known, status)
	m.over = m.over || status == final
}

// first records the first status of a wait. Those that begin at once do not count if others follow.
func (s *service) first(m *simulated, now time.Time) {
	if m.known >= 0 {
		return
	}
	m.known = m.status(m.joined)
	if m.joined.After(s.began) || s.crowd == 0 && s.newcomers == 0 {
		s.firsts = append(s.firsts, now.Sub(m.joined))
	}
}

// delays records how late the statuses up to this one were received.
func (s *service) delays(m *simulated, status int, now time.Time) {
	for k := m.known + 1; k <= status; k++ {
		if k == m.status(m.since[k]) && m.since[k].After(m.joined) { // it was not skipped
			s.late[m.owner] = append(s.late[m.owner], now.Sub(m.since[k]))
			if k == final {
				s.told = append(s.told, now.Sub(m.since[k]))
			}
		}
	}
}

// forget makes the requests until now count for nothing.
func (s *service) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = 0
}

// finish adds what no wait has received until the end.
func (s *service) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, m := range s.byID {
		followed := s.since > 0 && m.since[idle].After(s.began)
		if followed && s.done[m.id] == 0 && m.since[final].Before(now.Add(-5*time.Minute)) {
			s.lost++
		}
		if m.owner < 0 || m.over {
			continue
		}
		if s.rejected > 0 {
			s.wrong++
		}
		s.unseen[m.owner] = max(s.unseen[m.owner], now.Sub(m.seen))
		s.first(m, now)
		s.delays(m, m.status(now), now)
	}
	s.lasted = now.Sub(s.began) - s.after
}

// measures are those of a scenario.
type measures struct {
	requests, gets, limited int
	vain                    int // pages that showed no awaited meeting
	early                   int // GETs within the floor
	back                    int // statuses older than the last
	twice                   int // meetings that Follow found again in a run
	lost                    int // meetings that ended, and Follow has not seen through
	rejected                int // requests after the key was revoked
	wrong                   int // waits that ended with an error, or did not although the key was revoked

	firsts   []time.Duration   // from a wait's beginning to its first status
	late     [][]time.Duration // by process: from a change to the wait's notification
	told     []time.Duration   // likewise for final statuses, of all processes
	unseen   []time.Duration   // by process: the longest time
	bySecond map[int64]int     // requests
	userTook []time.Duration   // how long the user's calls took
	found    map[string]int    // how often Follow's runs found each meeting
	done     map[string]int    // how often they saw it through
	lasted   time.Duration
}

func (c *measures) perMinute() float64 { return float64(c.requests) / c.lasted.Minutes() }

// peak is the largest part of a cycle's requests that came in one second, after two cycles.
func (c *measures) peak() float64 {
	all := 0
	most := 0
	for second, n := range c.bySecond {
		if second >= 60 {
			all += n
			most = max(most, n)
		}
	}
	cycles := (c.lasted - time.Minute).Seconds() / Interval.Seconds()
	return float64(most) / (float64(all) / cycles)
}

func (c *measures) notified(q float64) time.Duration { return quantile(slices.Concat(c.late...), q) }

// spread is the p99 of the slowest process, compared with the median of all.
func (c *measures) spread() float64 {
	var each []time.Duration
	for _, late := range c.late {
		each = append(each, quantile(late, 0.99))
	}
	return float64(quantile(each, 1)) / float64(max(1, quantile(each, 0.5)))
}

func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// sleep waits like a response does.
func sleep(ctx context.Context, d time.Duration) *Failure {
	select {
	case <-ctx.Done():
		return &Failure{Err: ctx.Err(), Kind: failure.Lost}
	case <-time.After(d):
		return nil
	}
}
