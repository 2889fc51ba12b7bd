package poll

import (
	"container/heap"
	"context"
	"math"
	"sync"
	"time"
)

type Snapshot[M any] struct {
	ID               string
	Final, Idle      bool
	Created, Updated time.Time
	Meeting          M
	Page             bool
	SentAt           time.Time
}
type Kind int

const (
	RateLimited Kind = iota
	Transient
	Passing
	Rejected
	KeyRejected
)

type Failure struct {
	Err        error
	Kind       Kind
	RetryAfter time.Duration
}
type Service[M any] interface {
	Get(ctx context.Context, id string, send func() bool) (s Snapshot[M], maxAge time.Duration, f *Failure)
	Page(ctx context.Context, cursor string, send func() bool) (shown []Snapshot[M], next string, f *Failure)
}
type Trouble struct{ Err error }

type watch[M any] struct {
	id          string
	subs        map[*Subscription[M]]bool
	due         time.Time
	free        time.Time
	index       int
	busy        bool
	seen        time.Time
	shown       time.Time
	last        Snapshot[M]
	has         bool
	fails       int
	fresh, held bool
}
type dues[M any] []*watch[M]

func (d dues[M]) Len() int           { return len(d) }
func (d dues[M]) Less(i, j int) bool { return d[i].due.Before(d[j].due) }
func (d dues[M]) Swap(i, j int)      { d[i], d[j] = d[j], d[i]; d[i].index = i; d[j].index = j }
func (d *dues[M]) Push(x any)        { w := x.(*watch[M]); w.index = len(*d); *d = append(*d, w) }
func (d *dues[M]) Pop() any {
	o := *d
	w := o[len(o)-1]
	*d = o[:len(o)-1]
	w.index = -1
	return w
}

type Poller[M any] struct {
	mu      sync.Mutex
	svc     Service[M]
	ws      map[string]*watch[M]
	heap    dues[M]
	running bool
	wake    chan struct{}
	cancel  context.CancelFunc
	fols    map[*Follower[M]]bool

	under, held     int
	slot            time.Time
	sweeping        bool
	paging          bool
	began           time.Time
	cursor          string
	idle, pages     int
	lastPages       int
	onPages, lastOn int
	probe, page429  bool
	pageAt          time.Time
	pageFails       int
	failing         bool
	limitedAt       time.Time
	turn            bool
	dead            error
	deep            bool
	took            time.Duration
	lanes           []*lane
	cursors         []string
	news            int
}

type lane struct {
	cursor string
	read   []string
	idle   int
	busy   bool
	over   bool
}

func (p *Poller[M]) freeLane() *lane {
	for _, l := range p.lanes {
		if !l.busy && !l.over {
			return l
		}
	}
	return nil
}

func New[M any](svc Service[M], log func(Trouble)) *Poller[M] {
	return &Poller[M]{svc: svc, ws: map[string]*watch[M]{}, wake: make(chan struct{}, 1), fols: map[*Follower[M]]bool{}}
}
func (p *Poller[M]) start() {
	if p.running {
		select {
		case p.wake <- struct{}{}:
		default:
		}
		return
	}
	p.running = true
	p.under, p.held, p.sweeping, p.paging = 0, 0, false, false
	ctx, c := context.WithCancel(context.Background())
	p.cancel = c
	go p.run(ctx)
}
func (p *Poller[M]) run(ctx context.Context) {
	for {
		p.mu.Lock()
		if len(p.ws) == 0 && len(p.fols) == 0 {
			p.running = false
			p.cancel()
			p.mu.Unlock()
			return
		}
		at := p.decide(ctx, time.Now())
		p.mu.Unlock()
		var tc <-chan time.Time
		if !at.IsZero() {
			tc = time.After(time.Until(at))
		}
		select {
		case <-p.wake:
		case <-tc:
		}
	}
}
func (p *Poller[M]) n() int { return max(0, len(p.ws)-p.onPages) + p.lastPages }
func (p *Poller[M]) cycle() time.Duration {
	root := func(n int) time.Duration {
		return time.Duration(30 * float64(time.Second) * math.Sqrt(max(1, float64(n)/330)))
	}
	return min(max(root(p.n()), p.took), root(max(p.n(), len(p.ws))))
}
func (p *Poller[M]) capped() time.Duration {
	return time.Duration(30 * float64(time.Second) * math.Sqrt(max(1, float64(len(p.ws))/330)))
}
func (p *Poller[M]) decide(ctx context.Context, now time.Time) time.Time {
	for {
		lim := 32
		if p.failing {
			lim = 1
		}
		if p.under >= lim || p.held >= 2 {
			return time.Time{}
		}
		if now.Before(p.slot) {
			return p.slot
		}
		if !p.sweeping && (len(p.ws) >= 4 || len(p.fols) > 0) && (!now.Before(p.began.Add(p.cycle())) || p.news >= 32) {
			p.sweeping, p.began, p.cursor, p.idle, p.pages, p.onPages = true, now, "", 0, 0, 0
			p.news = 0
			p.lanes = []*lane{{}}
			if p.took > 15*time.Second && len(p.cursors) > 4 && len(p.fols) == 0 {
				p.lanes = append(p.lanes, &lane{cursor: p.cursors[len(p.cursors)/2]})
			}
		}
		var next time.Time
		pageOK := p.sweeping && p.freeLane() != nil && !now.Before(p.pageAt)
		if p.sweeping && p.freeLane() != nil {
			next = p.pageAt
		} else if !p.sweeping {
			next = p.began.Add(p.cycle())
		}
		getOK := false
		for len(p.heap) > 0 {
			w := p.heap[0]
			if w.due.After(now) {
				if next.IsZero() || w.due.Before(next) {
					next = w.due
				}
				break
			}
			if w.fresh && p.sweeping && p.pageFails == 0 && p.deepCrowd() {
				w.due = now.Add(time.Second)
				heap.Fix(&p.heap, 0)
				continue
			}
			getOK = true
			break
		}
		if !pageOK && !getOK {
			if p.sweeping && p.freeLane() == nil && (next.IsZero() || next.Before(now)) {
				return time.Time{}
			}
			if next.Before(now) || next.Equal(now) {
				return now.Add(time.Millisecond)
			}
			return next
		}
		rate := max(8, float64(p.n())/p.cycle().Seconds())
		p.slot = now.Add(time.Duration(float64(time.Second) / rate))
		p.under++
		p.held++
		if pageOK && (!getOK || p.turn) {
			p.turn = false
			l := p.freeLane()
			l.busy = true
			go p.page(ctx, l, p.began)
		} else {
			p.turn = true
			w := heap.Pop(&p.heap).(*watch[M])
			w.busy = true
			p.probe = false
			go p.get(ctx, w)
		}
	}
}
func (p *Poller[M]) deepCrowd() bool {
	n := 0
	for _, w := range p.heap[:min(len(p.heap), 64)] {
		if w.fresh {
			n++
		}
	}
	return n >= 32
}
func (p *Poller[M]) sent(sent *bool) func() bool {
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		*sent = true
		p.held--
		p.start()
		return true
	}
}
func (p *Poller[M]) failed(f *Failure) {
	if f == nil {
		p.failing = false
		return
	}
	switch f.Kind {
	case RateLimited:
		p.limitedAt = time.Now()
		p.failing = true
	case KeyRejected:
		for _, w := range p.ws {
			for s := range w.subs {
				s.put(Update[M]{Err: f.Err})
			}
			if w.index >= 0 && !w.busy {
				heap.Remove(&p.heap, w.index)
			}
		}
		clear(p.ws)
		p.dead = f.Err
		for fo := range p.fols {
			fo.tell()
		}
	case Rejected:
		p.failing = false
	default:
		p.failing = true
	}
}
func (p *Poller[M]) get(ctx context.Context, w *watch[M]) {
	sent := false
	s, maxAge, f := p.svc.Get(ctx, w.id, p.sent(&sent))
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.start2()
	if ctx.Err() != nil {
		return
	}
	p.under--
	if !sent {
		p.held--
	}
	now := time.Now()
	w.busy = false
	p.failed(f)
	if p.ws[w.id] != w {
		return
	}
	if f == nil || f.Kind != RateLimited {
		w.free = now.Add(max(30*time.Second, maxAge))
	}
	switch {
	case f == nil:
		if p.page429 {
			p.page429 = false
			p.pageFails++
			p.pageAt = now.Add(min(10*time.Minute, time.Second<<min(p.pageFails, 12)))
		}
		w.fails, w.fresh = 0, false
		w.due = now.Add(p.cycle())
		if w.due.Before(w.free) {
			w.due = w.free
		}
		p.publish(w, s)
	case f.Kind == RateLimited:
	default:
		w.fails++
		w.due = now.Add(min(5*time.Minute, 30*time.Second<<(w.fails-1)))
	}
	heap.Push(&p.heap, w)
}
func (p *Poller[M]) start2() {
	if p.running {
		p.start()
	}
}
func (p *Poller[M]) publish(w *watch[M], s Snapshot[M]) bool {
	if w.has && s.Updated.Before(w.last.Updated) {
		return false
	}
	w.last, w.has = s, true
	for sub := range w.subs {
		sub.put(Update[M]{Snapshot: s, Has: true})
	}
	return true
}
func (p *Poller[M]) page(ctx context.Context, l *lane, began time.Time) {
	sent := false
	shown, next, f := p.svc.Page(ctx, l.cursor, p.sent(&sent))
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.start2()
	if ctx.Err() != nil {
		return
	}
	p.under--
	if !sent {
		p.held--
	}
	l.busy = false
	now := time.Now()
	p.failed(f)
	if f == nil {
		l.read = append(l.read, l.cursor)
	}
	if f != nil {
		if f.Kind == Rejected {
			l.over = true
			p.end()
		} else if f.Kind != RateLimited {
			p.pageFails++
			p.pageAt = now.Add(min(10*time.Minute, time.Second<<min(p.pageFails, 12)))
			if p.pageFails%3 == 0 {
				for _, l := range p.lanes {
					l.over = true
				}
				p.end()
			}
		} else {
			p.pageAt = now
			p.page429, p.probe, p.turn = true, true, false
		}
		return
	}
	p.pageFails = 0
	p.page429, p.probe = false, false
	p.pages++
	gain := 0
	for _, s := range shown {
		w := p.ws[s.ID]
		if w == nil || w.busy {
			continue
		}
		if !p.publish(w, s) {
			continue
		}
		if w.shown.Before(p.began) {
			gain++
			p.onPages++
		}
		w.shown = now
		w.fresh = false
		w.due = now.Add(1000 * time.Hour)
		w.held = true
		heap.Fix(&p.heap, w.index)
	}
	go_on := false
	for fo := range p.fols {
		if fo.page(shown) {
			go_on = true
		}
	}
	if gain >= 2 {
		l.idle = 0
	} else {
		l.idle++
	}
	l.cursor = next
	if now.Sub(p.began) > p.capped() && time.Since(p.limitedAt) > 2*p.cycle() && len(p.fols) == 0 {
		for _, l := range p.lanes {
			l.over = true
		}
		p.end()
	}
	if next == "" || (l.idle >= 2 && !go_on) {
		l.over = true
		p.end()
	}
}
func (p *Poller[M]) end() {
	p.cursors = nil
	for _, l := range p.lanes {
		if !l.over {
			return
		}
		p.cursors = append(p.cursors, l.read...)
	}
	p.sweeping = false
	p.took = time.Since(p.began)
	for _, w := range p.ws {
		if w.held && w.shown.Before(p.began) {
			w.held = false
			w.due = w.shown.Add(p.cycle())
			if w.due.Before(w.free) {
				w.due = w.free
			}
			if !w.busy {
				heap.Fix(&p.heap, w.index)
			}
		}
	}
	p.lastPages = p.pages
	p.lastOn, p.onPages = p.onPages, 0
	for fo := range p.fols {
		fo.first = false
	}
}
func (p *Poller[M]) Subscribe(id string, patient bool) *Subscription[M] {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &Subscription[M]{p: p, id: id, c: make(chan Update[M], 1)}
	w := p.ws[id]
	if w == nil {
		w = &watch[M]{id: id, subs: map[*Subscription[M]]bool{}, due: time.Now().Add(-time.Minute), fresh: true}
		p.ws[id] = w
		heap.Push(&p.heap, w)
		p.news++
	} else if w.has {
		s.put(Update[M]{Snapshot: w.last, Has: true})
	}
	w.subs[s] = true
	p.start()
	return s
}
func (p *Poller[M]) Follow(since time.Time) *Follower[M] {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &Follower[M]{p: p, since: since, known: map[string]bool{}, ready: make(chan struct{}, 1), first: true}
	p.fols[f] = true
	p.start()
	return f
}

type Subscription[M any] struct {
	p  *Poller[M]
	id string
	c  chan Update[M]
}

func (s *Subscription[M]) put(u Update[M]) {
	select {
	case <-s.c:
	default:
	}
	s.c <- u
}
func (s *Subscription[M]) C() <-chan Update[M] { return s.c }
func (s *Subscription[M]) Confirm()            {}
func (s *Subscription[M]) Cancel() error {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.ws[s.id]
	if w != nil {
		delete(w.subs, s)
		if len(w.subs) == 0 {
			delete(p.ws, s.id)
			if !w.busy {
				heap.Remove(&p.heap, w.index)
			}
		}
	}
	p.start2()
	return nil
}

type Update[M any] struct {
	Snapshot Snapshot[M]
	Has      bool
	Err      error
}
type Follower[M any] struct {
	p     *Poller[M]
	since time.Time
	known map[string]bool
	found []Snapshot[M]
	ready chan struct{}
	first bool
}

func (f *Follower[M]) tell() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}
func (f *Follower[M]) page(shown []Snapshot[M]) bool {
	fresh, old := 0, false
	for _, s := range shown {
		if s.Created.Before(f.since) {
			old = true
			continue
		}
		if !f.known[s.ID] {
			f.known[s.ID] = true
			f.found = append(f.found, s)
			fresh++
		}
	}
	if fresh > 0 {
		f.tell()
	}
	return !old && fresh > 0
}
func (f *Follower[M]) Next(ctx context.Context) ([]Snapshot[M], error) {
	for {
		f.p.mu.Lock()
		found, err := f.found, f.p.dead
		f.found = nil
		f.p.mu.Unlock()
		if len(found) > 0 {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.ready:
		}
	}
}
func (f *Follower[M]) Cancel() {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	delete(f.p.fols, f)
	f.p.start2()
}
