package poll_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestMain(m *testing.M) { testbase.Main(m) }

const (
	floor    = 30 * time.Second
	pageSize = 50
	edgeLast = 40 * time.Minute // the edge has no limit afterwards
)

// scenario is the waits at a service, the events of an hour, and the behaviour of the service. It
// has many fields because each is a column of the table of scenarios. Most are zero in most of them.
type scenario struct {
	waits     int           // meetings with a wait from the beginning
	newer     int           // meetings above those, without a wait
	oneIn     int           // one meeting in so many has a wait; 0: all
	sparse    int           // further meetings with a wait, below those
	sparseIn  int           // one in so many there has a wait
	joining   time.Duration // the waits begin one after the other during this time
	newcomers time.Duration // interval between further waits, for meetings that are ready
	twice     bool          // a wait ends with its first poll, and another begins
	endless   bool          // one meeting in 24 ends within the hour; else all do

	foreign  time.Duration // interval between meetings that others create
	imported int           // number of meetings that others create at once, after ten minutes
	deleted  time.Duration // interval between deletions of meetings with a wait
	edited   time.Duration // interval between changes of a meeting

	order    order
	slow     time.Duration // how long a page takes
	lose     float64       // share of lost pages
	losePoll float64       // share of lost polls
	limited  bool          // the listing answers 429, whatever the query
	hanging  bool          // the listing never answers
	short    bool          // pages are of random length, and may be empty
	deadly   bool          // cursors live for ten minutes
	edge     float64       // requests a second that the edge accepts; 0: all
	quota    int           // requests that the edge accepts in each calendar minute; 0: all

	needs int // requests per cycle that cover every meeting; 0: few enough for the shortest cycle
}

type order int

const (
	byCreation order = iota
	byChange
	noOrder
)

// cycle is the length of a polling cycle: the minimum poll interval, more if a cycle has many
// requests, and up to a second of jitter. Slow pages, one after the other, may take longer.
func (w scenario) cycle() time.Duration {
	cycle := time.Duration(float64(floor) * math.Sqrt(max(1, float64(w.needs)/330)))
	return time.Second + max(cycle, time.Duration(w.waits/pageSize)*w.slow)
}

// meeting is one with a wait.
type meeting struct {
	id      string
	key     int64 // its place in the listing
	joined  time.Duration
	ends    time.Duration
	polled  time.Duration // the last poll
	seen    time.Duration // the last poll or page
	deleted bool          // at ends
	over    bool          // its wait has been notified
}

// row is a meeting in the listing. If m is nil, it has no wait.
type row struct {
	key int64
	m   *meeting
}

// service is the service of a scenario. It counts requests.
type service struct {
	scenario
	random *rand.Rand
	began  time.Time

	mu     sync.Mutex
	list   []row // the newest last
	ours   []*meeting
	byID   map[string]*meeting
	key    int64         // of the newest
	tokens float64       // of the edge
	filled time.Duration // when tokens was computed
	minute time.Duration // the last minute that used counts
	used   int           // of the quota
	counts counts
}

var (
	errLimited = errors.New("429")
	errLost    = errors.New("lost")
	errBarred  = errors.New("400")
	errGone    = errors.New("404")
)

func newService(w scenario) *service {
	return &service{scenario: w, random: rand.New(rand.NewPCG(1, 7)), began: time.Now().Add(-time.Millisecond),
		byID: make(map[string]*meeting), tokens: w.edge}
}

func (s *service) now() time.Duration { return time.Since(s.began) }

func failed(err error) *poll.Failure {
	return &poll.Failure{Err: err, RateLimited: errors.Is(err, errLimited), Transient: errors.Is(err, errLost)}
}

func (s *service) Poll(_ context.Context, id string, _ func() bool) (poll.Snapshot, time.Duration, *poll.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, now := s.byID[id], s.now()
	s.counts.poll(now)
	if !s.admit(now) {
		return poll.Snapshot{}, 0, failed(errLimited) // which is no poll
	}
	s.counts.floor(now, m)
	m.polled = now
	switch {
	case s.random.Float64() < s.losePoll:
		return poll.Snapshot{}, 0, failed(errLost)
	case m.deleted:
		return poll.Snapshot{}, 0, failed(errGone)
	}
	return s.show(row{m.key, m}), 0, nil
}

func (s *service) Page(ctx context.Context, cursor string, _ func() bool) ([]poll.Snapshot, string, *poll.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.page(s.now())
	if s.limited || !s.admit(s.now()) {
		return nil, "", failed(errLimited)
	}
	if !s.dawdle(ctx) || s.random.Float64() < s.lose {
		return nil, "", failed(errLost)
	}
	from, ok := s.find(cursor)
	if !ok {
		return nil, "", failed(errBarred)
	}
	size := pageSize
	if s.short {
		size = s.random.IntN(pageSize + 1)
	}
	to := max(0, from-size)
	page := make([]poll.Snapshot, 0, size)
	for _, r := range slices.Backward(s.list[to:from]) {
		if s.order == noOrder {
			r = s.list[s.random.IntN(len(s.list))]
		}
		page = append(page, s.show(r))
	}
	return page, s.cursor(to), nil
}

// admit reports whether the edge accepts a request. The edge is a bucket of one second's worth.
func (s *service) admit(now time.Duration) bool {
	if s.edge > 0 && now < edgeLast {
		s.tokens = min(s.edge, s.tokens+s.edge*(now-s.filled).Seconds())
		s.filled = now
		if s.tokens < 1 {
			return false
		}
		s.tokens--
	}
	if s.quota > 0 && now < edgeLast {
		if minute := now / time.Minute; minute != s.minute {
			s.minute, s.used = minute, 0
		}
		if s.used++; s.used > s.quota {
			return false
		}
	}
	s.counts.passed(now, s.cycle())
	return true
}

// dawdle takes as long as a page does, and reports whether the caller is still waiting.
func (s *service) dawdle(ctx context.Context) bool {
	d := s.slow
	if s.hanging {
		d = time.Hour
	}
	if d == 0 {
		return true
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// cursor is the cursor of the page after s.list[to].
func (s *service) cursor(to int) string {
	switch {
	case to == 0:
		return ""
	case s.order == noOrder:
		return fmt.Sprintf("%d@%d", to, s.now())
	case to == len(s.list): // an empty page at the top
		return fmt.Sprintf("%d@%d", s.key+1, s.now())
	}
	return fmt.Sprintf("%d@%d", s.list[to].key, s.now())
}

// find returns the end of the part of the list that follows a cursor.
func (s *service) find(cursor string) (from int, ok bool) {
	if cursor == "" {
		return len(s.list), true
	}
	var key int64
	var born time.Duration
	if _, err := fmt.Sscanf(cursor, "%d@%d", &key, &born); err != nil || s.deadly && s.now()-born > 10*time.Minute {
		return 0, false
	}
	if s.order == noOrder {
		return min(int(key), len(s.list)), true
	}
	return s.index(key), true
}

func (s *service) index(key int64) int {
	at, _ := slices.BinarySearchFunc(s.list, key, func(r row, key int64) int { return int(r.key - key) })
	return at
}

func (s *service) show(r row) poll.Snapshot {
	if r.m == nil {
		return poll.Snapshot{ID: "mtg_" + strconv.FormatInt(r.key, 10), State: "busy"}
	}
	m, now := r.m, s.now()
	s.counts.show(now, m)
	m.seen = now
	if now >= m.ends {
		return poll.Snapshot{ID: m.id, State: "ready", Final: true, Value: m}
	}
	return poll.Snapshot{ID: m.id, State: "busy", Value: m}
}

// other creates a meeting that has no wait.
func (s *service) other() {
	s.key++
	s.list = append(s.list, row{key: s.key})
}

// own creates a meeting that will have a wait.
func (s *service) own(ends time.Duration) *meeting {
	s.other()
	m := &meeting{id: "mtg_" + strconv.FormatInt(s.key, 10), key: s.key, ends: ends}
	s.list[len(s.list)-1].m = m
	s.ours = append(s.ours, m)
	s.byID[m.id] = m
	return m
}

func (s *service) delete(m *meeting) {
	m.deleted, m.ends = true, s.now()
	at := s.index(m.key)
	s.list = slices.Delete(s.list, at, at+1)
}

// edit changes a meeting, which moves it if the order is by change.
func (s *service) edit(m *meeting) {
	if s.order != byChange {
		return
	}
	at := s.index(m.key)
	s.list = slices.Delete(s.list, at, at+1)
	s.key++
	m.key = s.key
	s.list = append(s.list, row{m.key, m})
}
