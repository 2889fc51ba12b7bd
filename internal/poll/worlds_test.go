package poll

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// world is a service in memory, and what happens there for an hour.
type world struct {
	waits     int // meetings waited for from the beginning
	newer     int // meetings that nobody waits for, above those
	spread    int // only one in so many is waited for; 0: all
	sparse    int // meetings below, of which one in sparseOne is waited for
	sparseOne int
	foreign   time.Duration // somebody else creates a meeting so often
	joining   time.Duration // the waits begin one after the other in this time
	batch     int           // so many meetings of others are imported after ten minutes
	delete    time.Duration // one waited for is deleted so often
	edit      time.Duration // one waited for is changed so often (which moves it, where the order is by change)
	byChange  bool
	shuffled  bool          // the listing has no order at all
	slow      time.Duration // how long a page takes
	newcomers time.Duration // a further wait on a meeting that is ready begins so often
	cut       float64       // the share of pages that are lost
	cutLooks  float64       // and of looks
	refuse    bool          // the listing answers 429 alone
	hang      bool          // the listing never answers
	short     bool          // pages hold anything from none to all
	deadly    bool          // cursors live for ten minutes
	edge      float64       // requests a second that are let through; 0: all
	edgeUntil time.Duration
	last      time.Duration // meetings end within this time; an hour where 0
}

type meeting struct {
	id      string
	key     int64 // orders the listing
	ends    time.Duration
	waited  bool
	deleted bool
	joined  time.Duration
	looked  time.Duration // the last look
	seen    time.Duration // the last look or page
	first   time.Duration // from joined to being seen
	told    time.Duration // from the end to the waiter's hearing of it
	over    bool
}

func (m *meeting) Copy(Value) Value { return m }

type hour struct {
	world
	t       testing.TB
	random  *rand.Rand
	began   time.Time
	mu      sync.Mutex
	list    []*meeting // by key, the newest last
	byID    map[string]*meeting
	keys    int64
	tokens  float64
	refill  time.Duration
	seconds map[int]int

	looks, pages, refused, within, passed int
	unseen, told, through                 time.Duration
	firsts                                []time.Duration
	running                               bool
}

var (
	errLimited = errors.New("429")
	errLost    = errors.New("lost")
	errBarred  = errors.New("400")
	errGone    = errors.New("404")
)

func (h *hour) now() time.Duration { return time.Since(h.began) }

func failed(err error) *Failure {
	return &Failure{Err: err, RateLimited: errors.Is(err, errLimited), Transient: errors.Is(err, errLost)}
}

func (h *hour) count() bool {
	now := h.now()
	h.tick()
	if h.edge > 0 && (h.edgeUntil == 0 || now < h.edgeUntil) {
		h.tokens = min(max(h.edge, 1), h.tokens+h.edge*(now-h.refill).Seconds())
		h.refill = now
		if h.tokens < 1 {
			h.refused++
			return false
		}
		h.tokens--
		h.passed++
	}
	return true
}

func (h *hour) tick() {
	if now := h.now(); now < time.Hour {
		h.seconds[int(now/time.Second)]++
	}
}

func (h *hour) show(m *meeting) Sighting {
	now := h.now()
	if m.waited && m.joined <= now && !m.over {
		since := max(m.seen, m.joined)
		h.unseen = max(h.unseen, now-since)
		if m.seen == 0 {
			m.first = now - m.joined
			h.firsts = append(h.firsts, m.first)
		}
		m.seen = now
	}
	state := "busy"
	if now >= m.ends {
		state = "ready"
	}
	return Sighting{ID: m.id, State: state, Final: state == "ready", Value: m}
}

func (h *hour) Look(ctx context.Context, id string) (Sighting, time.Duration, *Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks++
	if !h.count() {
		return Sighting{}, 0, failed(errLimited)
	}
	m := h.byID[id]
	if now := h.now(); m.looked > 0 && now-m.looked < floor {
		h.within++
	}
	m.looked = h.now()
	if m.deleted {
		return Sighting{}, 0, failed(errGone)
	}
	if h.random.Float64() < h.cutLooks {
		return Sighting{}, 0, failed(errLost)
	}
	return h.show(m), 0, nil
}

func (h *hour) Page(ctx context.Context, cursor string) ([]Sighting, string, *Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages++
	if h.refuse {
		h.tick()
		return nil, "", failed(errLimited)
	}
	if !h.count() {
		return nil, "", failed(errLimited)
	}
	if h.slow > 0 || h.hang {
		d := h.slow
		if h.hang {
			d = time.Hour
		}
		h.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
		h.mu.Lock()
		if ctx.Err() != nil {
			return nil, "", failed(errLost)
		}
	}
	if h.random.Float64() < h.cut {
		return nil, "", failed(errLost)
	}
	from := len(h.list)
	if cursor != "" {
		var key, born int64
		fmt.Sscanf(cursor, "%d@%d", &key, &born)
		if h.deadly && h.now()-time.Duration(born) > 10*time.Minute {
			return nil, "", failed(errBarred)
		}
		if h.shuffled {
			from = int(key)
		} else {
			from, _ = slices.BinarySearchFunc(h.list, key, func(m *meeting, key int64) int { return int(m.key - key) })
		}
	}
	size := pageSize
	if h.short {
		size = h.random.IntN(pageSize + 1)
	}
	to := max(0, from-size)
	page := make([]Sighting, 0, size)
	for _, m := range slices.Backward(h.list[to:from]) {
		if h.shuffled {
			m = h.list[h.random.IntN(len(h.list))]
		}
		page = append(page, h.show(m))
	}
	if to == 0 {
		return page, "", nil
	}
	next := h.keys + 1
	if to < len(h.list) {
		next = h.list[to].key
	}
	if h.shuffled {
		next = int64(to)
	}
	return page, fmt.Sprintf("%d@%d", next, h.now()), nil
}

func (h *hour) create(waited bool) *meeting {
	h.keys++
	m := &meeting{id: "mtg_" + strconv.FormatInt(h.keys, 10), key: h.keys, waited: waited}
	h.list = append(h.list, m)
	h.byID[m.id] = m
	return m
}

// one is a waiter of one meeting.
type one struct {
	h    *hour
	m    *meeting
	over chan struct{}
}

func (o *one) Interval() time.Duration { return 0 }
func (o *one) See(s Sighting, _ bool, _ time.Duration) bool {
	if !s.Final {
		return false
	}
	close(o.over)
	return true
}
func (o *one) Fail(Sighting, error) { close(o.over) }

func (h *hour) follow(p *Poller, m *meeting) {
	m.joined = h.now()
	o := &one{h, m, make(chan struct{})}
	go func() {
		p.Join(o, m.id, time.Time{})
		<-o.over
		h.mu.Lock()
		defer h.mu.Unlock()
		m.over = true
		if !m.deleted {
			m.told = h.now() - max(m.ends, m.joined)
			h.told = max(h.told, m.told)
		}
	}()
}

func (h *hour) touch(m *meeting) {
	at := slices.Index(h.list, m)
	h.list = slices.Delete(h.list, at, at+1)
	h.keys++
	m.key = h.keys
	h.list = append(h.list, m)
}

func runWorld(t testing.TB, w world, seed uint64) *hour {
	h := &hour{world: w, t: t, random: rand.New(rand.NewPCG(seed, 7)), began: time.Now().Add(-time.Millisecond), byID: map[string]*meeting{}, seconds: map[int]int{}}
	h.tokens = h.edge
	last := w.last
	if last == 0 {
		last = time.Hour
	}
	var ours []*meeting
	own := func() *meeting {
		m := h.create(true)
		m.ends = time.Duration(h.random.Int64N(int64(last)))
		if m.ends < 2*time.Minute {
			m.ends = 2 * time.Minute
		}
		ours = append(ours, m)
		return m
	}
	for i := range w.sparse {
		if i%w.sparseOne == 0 {
			own()
		} else {
			h.create(false)
		}
	}
	if w.joining == 0 {
		for range w.waits {
			own()
			for range max(0, w.spread-1) {
				h.create(false)
			}
		}
	}
	for range w.newer {
		h.create(false)
	}
	p := New(h)
	for _, m := range ours {
		h.follow(p, m)
	}
	every := func(d time.Duration, do func()) {
		if d == 0 {
			return
		}
		go func() {
			for h.now() < time.Hour {
				time.Sleep(d)
				h.mu.Lock()
				do()
				h.mu.Unlock()
			}
		}()
	}
	every(w.foreign, func() { h.create(false) })
	alive := func() *meeting {
		for range 1000 {
			if m := ours[h.random.IntN(len(ours))]; !m.over && !m.deleted {
				return m
			}
		}
		return nil
	}
	every(w.delete, func() {
		if m := alive(); m != nil {
			m.deleted = true
			h.list = slices.DeleteFunc(h.list, func(o *meeting) bool { return o == m })
		}
	})
	every(w.edit, func() {
		if m := alive(); m != nil && w.byChange {
			h.touch(m)
		}
	})
	if w.batch > 0 {
		go func() {
			time.Sleep(10 * time.Minute)
			h.mu.Lock()
			defer h.mu.Unlock()
			for range w.batch {
				h.create(false)
			}
		}()
	}
	if w.joining > 0 {
		go func() {
			for range w.waits {
				time.Sleep(w.joining / time.Duration(w.waits))
				h.mu.Lock()
				m := own()
				m.ends = max(m.ends, h.now()+time.Minute)
				h.mu.Unlock()
				h.follow(p, m)
			}
		}()
	}
	var firsts []*meeting
	every(w.newcomers, func() {
		m := h.create(true)
		firsts = append(firsts, m)
		h.follow(p, m)
	})
	time.Sleep(time.Hour)
	synctest.Wait()
	h.mu.Lock()
	h.running = false
	h.mu.Unlock()
	// those still under way end now
	for _, m := range h.byID {
		if m.waited && !m.over {
			h.mu.Lock()
			m.ends = 0
			m.joined = h.now()
			h.mu.Unlock()
		}
	}
	looks, pages, told, unseen, within, refused := h.looks, h.pages, h.told, h.unseen, h.within, h.refused
	h.refuse, h.hang, h.cut, h.cutLooks = false, false, 0, 0
	time.Sleep(20 * time.Minute)
	synctest.Wait()
	h.looks, h.pages, h.told, h.unseen, h.within, h.refused = looks, pages, told, unseen, within, refused
	h.firsts = nil
	for _, m := range firsts {
		h.firsts = append(h.firsts, m.first)
	}
	left := 0
	for _, m := range h.byID {
		if m.waited && !m.over {
			left++
		}
	}
	if left > 0 {
		t.Errorf("%d still wait", left)
	}
	if len(p.plan.watches) > 0 || p.resting != nil {
		t.Errorf("%d watches are kept", len(p.plan.watches))
	}
	return h
}

var worlds = []struct {
	name string
	world
}{
	{"60", world{waits: 60}},
	{"1000", world{waits: 1000}},
	{"10000", world{waits: 10_000}},
	{"10000, foreign", world{waits: 10_000, foreign: time.Second}},
	{"10000 under 5000", world{waits: 10_000, newer: 5000}},
	{"1000 under 2000", world{waits: 1000, newer: 2000}},
	{"10000 joining", world{waits: 10_000, joining: 30 * time.Minute}},
	{"10 over 100000", world{waits: 10, spread: 10_000}},
	{"100 over 100000", world{waits: 100, spread: 1000}},
	{"1 in 30 of 20000", world{waits: 667, spread: 30}},
	{"1 in 60 of 40000", world{waits: 667, spread: 60}},
	{"5000 over 1000 sparse", world{waits: 5000, sparse: 100_000, sparseOne: 100}},
	{"5000 over 1000 sparse 40", world{waits: 5000, sparse: 40_000, sparseOne: 40}},
	{"10000, import", world{waits: 10_000, batch: 600}},
	{"600, deleted", world{waits: 600, delete: time.Minute}},
	{"10000, deleted", world{waits: 10_000, delete: time.Second}},
	{"1000 by change", world{waits: 1000, edit: time.Second, byChange: true}},
	{"10000 by change", world{waits: 10_000, edit: time.Second / 4, byChange: true, foreign: time.Second}},
	{"1000 shuffled", world{waits: 1000, shuffled: true}},
	{"10000, newcomers", world{waits: 10_000, newcomers: 17 * time.Second}},
	{"10000, newcomers, slow 1s", world{waits: 10_000, newcomers: 17 * time.Second, slow: time.Second}},
	{"30, newcomers", world{waits: 30, newcomers: 17 * time.Second}},
	{"1000 slow 2s", world{waits: 1000, slow: 2 * time.Second}},
	{"1000 lost pages", world{waits: 1000, cut: 0.1}},
	{"10000 lost pages", world{waits: 10_000, cut: 0.05, cutLooks: 0.05}},
	{"25 cut", world{waits: 25, cut: 1}},
	{"1000 cut", world{waits: 1000, cut: 1}},
	{"20 refused", world{waits: 20, refuse: true}},
	{"1000 refused", world{waits: 1000, refuse: true}},
	{"1000 hang", world{waits: 1000, hang: true}},
	{"20 hang", world{waits: 20, hang: true}},
	{"1000 short", world{waits: 1000, short: true}},
	{"10000 short", world{waits: 10000, short: true}},
	{"10000 under 5000 deadly", world{waits: 10_000, newer: 5000, deadly: true}},
	{"edge 30 of 1000 single", world{waits: 1000, spread: 1000, edge: 30, edgeUntil: 40 * time.Minute, last: 24 * time.Hour}},
	{"edge 10 of 1000 single", world{waits: 1000, spread: 1000, edge: 10, edgeUntil: 40 * time.Minute, last: 24 * time.Hour}},
	{"edge 6 of 10000", world{waits: 10000, edge: 6, edgeUntil: 40 * time.Minute, last: 24 * time.Hour}},
	{"edge 2 of 10000", world{waits: 10000, edge: 2, edgeUntil: 40 * time.Minute, last: 24 * time.Hour}},
	{"1 in 30, no ends", world{waits: 667, spread: 30, last: 24 * time.Hour}},
	{"1 in 60, no ends", world{waits: 667, spread: 60, last: 24 * time.Hour}},
	{"10000, no ends", world{waits: 10000, last: 24 * time.Hour}},
	{"100 over 100000, no ends", world{waits: 100, spread: 1000, last: 24 * time.Hour}},
	{"10 over 100000, no ends", world{waits: 10, spread: 10000, last: 24 * time.Hour}},
	{"5000 over 1000 sparse, no ends", world{waits: 5000, sparse: 100_000, sparseOne: 100, last: 24 * time.Hour}},
	{"5000 over 1000 sparse 40, no ends", world{waits: 5000, sparse: 40_000, sparseOne: 40, last: 24 * time.Hour}},
}

func TestWorldsTable(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			start := time.Now()
			synctest.Test(t, func(t *testing.T) {
				h := runWorld(t, w.world, 1)
				most := 0
				for _, n := range h.seconds {
					most = max(most, n)
				}
				slices.Sort(h.firsts)
				var f50, f95 time.Duration
				if n := len(h.firsts); n > 0 {
					f50, f95 = h.firsts[n/2], h.firsts[n*95/100]
				}
				fmt.Printf("%-34s %6.0f/min (%6.0f looks) most %3d  told %6.1f unseen %6.1f within %d refused %d through %.0f%% firsts %.1f %.1f\n",
					w.name, float64(h.looks+h.pages)/60, float64(h.looks)/60, most, h.told.Seconds(), h.unseen.Seconds(), h.within, h.refused,
					100*float64(h.passed)/2400/max(h.world.edge, 1), f50.Seconds(), f95.Seconds())
			})
			_ = start
		})
	}
}
