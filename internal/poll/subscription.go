package poll

import (
	"cmp"
	"slices"
)

// Update is the latest news of a meeting.
type Update[M any] struct {
	// Snapshot is the last one. It has no Meeting if Err came before the first.
	Snapshot Snapshot[M]
	// Err, if not nil, means that the wait is over.
	Err error
}

// Subscription is one wait for a meeting.
type Subscription[M any] struct {
	p       *Poller[M]
	m       *meeting[M]
	rarely  bool
	updates chan Update[M]
}

// Subscribe waits for a meeting. If its last response is less than an interval old and nobody has
// called Ask since, that snapshot is the first update. Otherwise a GET is made as soon as the interval
// allows, or at once after Ask with atOnce. rarely allows a meeting that has no audio, or has not
// changed for hours, to be polled rarely.
func (p *Poller[M]) Subscribe(id string, rarely bool) *Subscription[M] {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	m := p.meeting(id)
	s := &Subscription[M]{p: p, m: m, rarely: rarely, updates: make(chan Update[M], 1)}
	m.subscriptions = append(m.subscriptions, s)
	lastSuffices := m.seen > 0 && now-m.seen < Interval && m.asked == 0
	if lastSuffices {
		s.publish(Update[M]{Snapshot: m.last})
	}
	p.plan.join(&m.watch, now, lastSuffices, rarely)
	p.run()
	return s
}

// C returns the channel of updates. It holds one: the newest.
func (s *Subscription[M]) C() <-chan Update[M] { return s.updates }

// publish replaces the update that the channel holds. Only the Poller sends, with its lock held, so
// this never blocks.
func (s *Subscription[M]) publish(u Update[M]) {
	select {
	case <-s.updates:
	default:
	}
	s.updates <- u
}

// Cancel ends the wait. It returns the last failure, unless polls of the meeting and requests in
// general work again.
func (s *Subscription[M]) Cancel() error {
	p := s.p
	m := s.m
	p.mu.Lock()
	defer p.mu.Unlock()
	err := cmp.Or(m.trouble, p.trouble)
	m.subscriptions = slices.DeleteFunc(m.subscriptions, func(x *Subscription[M]) bool { return x == s })
	if m.awaited && len(m.subscriptions) == 0 {
		p.plan.leave(&m.watch)
		p.run()
	}
	return err
}
