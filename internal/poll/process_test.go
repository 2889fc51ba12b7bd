package poll

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/failure"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// process is one process of a user, with a poller and a throttle of its own. It implements Service.
type process struct {
	*service
	number   int
	throttle *rest.Throttle
	waiting  waiting
}

// waiting is what a poller offers to waits: Poller does, and so does each.
type waiting interface {
	Subscribe(id string, patient bool) subscription
}

type subscription interface {
	C() <-chan Update[int]
	Cancel() error
}

// core makes a Poller a waiting.
type core struct{ *Poller[int] }

func (c core) Subscribe(id string, patient bool) subscription { return c.Poller.Subscribe(id, patient) }

func newProcess(s *service, number int, alone bool) *process {
	limit := rate.NewLimiter(rate.Inf, 1)
	if s.limit > 0 {
		limit = rate.NewLimiter(rate.Limit(s.limit), 5)
	}
	p := &process{service: s, number: number, throttle: rest.NewThrottle(limit)}
	p.waiting = each{p}
	if !alone {
		poller := newPoller(p)
		if s.phases {
			poller.plan.phase = time.Duration(s.fraction() * float64(maxPhase))
		}
		p.waiting = core{poller}
	}
	return p
}

// leave waits until the throttle lets a poller's request go, as the Client does.
func (p *process) leave(ctx context.Context, send func() bool) *Failure {
	err := p.throttle.Wait(ctx, true)
	if err != nil {
		return &Failure{Err: err, Kind: failure.Lost}
	}
	if !send() {
		return &Failure{Err: errRecalled, Kind: failure.Lost}
	}
	return nil
}

// arrive waits for the response, and reports it to the throttle.
func (p *process) arrive(
	ctx context.Context, sentAt time.Time, takes time.Duration, f *Failure, background bool,
) *Failure {
	if canceled := sleep(ctx, takes); canceled != nil {
		f = canceled
	}
	switch {
	case f == nil || f.Kind == failure.Rejected || f.Kind == failure.KeyRejected:
		p.throttle.Accepted()
	case f.Kind == failure.RateLimited:
		p.throttle.Limited(rest.Rejection{
			SentAt:     sentAt,
			Background: background,
			RetryAfter: min(f.RetryAfter, rest.MaxRetryAfter),
			Delay:      rest.Delay(0, 0),
		})
	}
	return f
}

func (p *process) Get(ctx context.Context, id string, send func() bool) (Snapshot[int], *Failure) {
	if f := p.leave(ctx, send); f != nil {
		return Snapshot[int]{}, f
	}
	sentAt := time.Now()
	m, shown, takes, f := p.get(p, id)
	f = p.arrive(ctx, sentAt, takes, f, true)
	if f != nil {
		return Snapshot[int]{}, f
	}
	p.shown(p.number, m)
	return shown, nil
}

func (p *process) Page(ctx context.Context, cursor string, send func() bool) (Page[int], *Failure) {
	if f := p.leave(ctx, send); f != nil {
		return Page[int]{}, f
	}
	sentAt := time.Now()
	page, at, next, takes, f := p.list(p.number, cursor)
	f = p.arrive(ctx, sentAt, takes, f, true)
	if f != nil {
		return Page[int]{}, f
	}
	read := Page[int]{Next: next}
	for _, m := range page {
		read.Shown = append(read.Shown, m.snapshot(at))
	}
	p.shown(p.number, page...)
	return read, nil
}

// wait waits for a meeting until its final status, as Wait does.
func (p *process) wait(ctx context.Context, m *simulated, patient bool) {
	p.await(p.number, m)
	s := p.waiting.Subscribe(m.id, patient)
	defer func() { _ = s.Cancel() }()
	for {
		select {
		case <-ctx.Done():
			return
		case u := <-s.C():
			switch {
			case u.Err != nil:
				p.waitEnded(m)
				return
			default:
				p.received(m, u.Snapshot.Meeting)
				if u.Snapshot.Final {
					if p.fetches {
						go p.call(ctx)
					}
					return
				}
			}
		}
	}
}

func (p *process) waitEnded(m *simulated) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.over = true
	if p.rejected == 0 {
		p.wrong++
	}
}

// follow waits for each meeting that Follow finds, unless it has been seen through before.
func (p *process) follow(ctx context.Context, since time.Time) {
	d := p.waiting.(core).Discover(since)
	defer d.Cancel()
	met := map[string]bool{}
	for {
		found, _, err := d.Next(ctx)
		if err != nil {
			return
		}
		for _, s := range found {
			if p.discovered(s, met) {
				go p.through(ctx, p.byID[s.ID])
			}
		}
	}
}

// discovered records that Follow found a meeting, and reports whether it needs a wait.
func (p *process) discovered(s Snapshot[int], met map[string]bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if met[s.ID] {
		p.twice++
	}
	met[s.ID] = true
	p.found[s.ID]++
	if p.found[s.ID] == 1 {
		p.firsts = append(p.firsts, min(time.Since(s.Created), time.Since(p.began)))
	}
	if s.Final {
		p.done[s.ID] = 1
	}
	return p.done[s.ID] == 0
}

func (p *process) through(ctx context.Context, m *simulated) {
	p.wait(ctx, m, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case ctx.Err() == nil && m.over:
		p.done[m.id]++
	case p.restarts > 0: // the next run waits for it, unless it finds that the meeting has ended or is too old
		m.owner = -1
	}
}

// calls makes the user's calls, at random times, and each again after a 429.
func (p *process) calls(ctx context.Context) {
	for ctx.Err() == nil {
		if sleep(ctx, time.Duration(p.exponential()/p.calling*float64(time.Second))) == nil {
			go p.call(ctx)
		}
	}
}

func (p *process) call(ctx context.Context) {
	began := time.Now()
	for p.throttle.Wait(ctx, false) == nil {
		sentAt := time.Now()
		p.mu.Lock()
		takes, f := p.accept(request{at: sentAt.Sub(p.began)}, p.latency)
		p.mu.Unlock()
		if p.arrive(ctx, sentAt, takes, f, false) == nil {
			p.mu.Lock()
			p.userTook = append(p.userTook, time.Since(began))
			p.mu.Unlock()
			return
		}
	}
}

// each is the yardstick: a GET of each meeting every thirty seconds, and no pages.
type each struct{ *process }

type eachWait struct {
	updates chan Update[int]
	cancel  context.CancelFunc
}

func (e each) Subscribe(id string, _ bool) subscription {
	ctx, cancel := context.WithCancel(context.Background())
	w := &eachWait{make(chan Update[int], 1), cancel}
	go func() {
		for ctx.Err() == nil {
			if s, f := e.Get(ctx, id, func() bool { return true }); f == nil {
				select {
				case <-w.updates:
				default:
				}
				w.updates <- Update[int]{Snapshot: s}
			} else if f.Kind == failure.RateLimited {
				continue
			}
			sleep(ctx, floor)
		}
	}()
	return w
}

func (w *eachWait) C() <-chan Update[int] { return w.updates }
func (w *eachWait) Cancel() error {
	w.cancel()
	return nil
}

func (s *service) fraction() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.Float64()
}

func (s *service) exponential() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.ExpFloat64()
}
