package poll

import (
	"maps"
	"slices"
)

// Subscription is one wait for a meeting.
type Subscription[M any] struct {
	p       *Poller[M]
	m       *meeting[M]
	patient bool
	updates chan Update[M]
}

// Subscribe waits for a meeting. Its first poll is at once, unless the last one is less than an interval old: then its snapshot
// is the first update. patient allows a meeting without audio to wait for a thirtieth of its age between two polls.
func (p *Poller[M]) Subscribe(id string, patient bool) *Subscription[M] {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	m := p.meeting(id)
	s := &Subscription[M]{p: p, m: m, patient: patient, updates: make(chan Update[M], 1)}
	m.subs = append(m.subs, s)
	known := m.seen > 0 && now-m.seen < interval && m.urgent == 0
	if known {
		s.news(Update[M]{Snapshot: m.last})
	}
	p.plan.join(&m.watch, now, known, patient)
	p.run()
	return s
}

// C returns the channel of updates. It holds one: the newest.
func (s *Subscription[M]) C() <-chan Update[M] { return s.updates }

// news publishes an update. Only the Poller sends, with its lock held, so this never blocks.
func (s *Subscription[M]) news(u Update[M]) {
	select {
	case <-s.updates:
	default:
	}
	s.updates <- u
}

// Cancel ends the wait. It returns the last failure, unless a good response about the meeting came after it.
func (s *Subscription[M]) Cancel() error {
	p, m := s.p, s.m
	p.mu.Lock()
	defer p.mu.Unlock()
	err := m.trouble
	if err == nil && p.troubled > m.seen {
		err = p.trouble
	}
	if i := slices.Index(m.subs, s); i >= 0 {
		if m.subs = slices.Delete(m.subs, i, i+1); len(m.subs) == 0 {
			p.plan.leave(&m.watch)
			p.run()
		}
	}
	return err
}

// meeting returns the meeting with this id. It forgets, now and then, those that nobody needs any more.
func (p *Poller[M]) meeting(id string) *meeting[M] {
	if now := p.now(); now > p.forgot+interval {
		p.forgot = now
		maps.DeleteFunc(p.meetings, func(_ string, m *meeting[M]) bool {
			return !m.awaited && !m.getting && max(m.free, m.seen+interval) < now
		})
	}
	m := p.meetings[id]
	if m == nil {
		m = &meeting[M]{watch: watch{id: id}}
		p.meetings[id] = m
	}
	return m
}

// publish keeps a snapshot and sends it to the subscriptions, even if nothing has changed: time alone may end a wait, such as
// one for audio. A snapshot that is older than the last one counts for nothing, so that no status goes back.
func (p *Poller[M]) publish(m *meeting[M], s Snapshot[M]) bool {
	order := s.Updated.Compare(m.last.Updated)
	if m.last.ID != "" && (order < 0 || order == 0 && s.SentAt.Before(m.last.SentAt)) {
		return false
	}
	m.last, m.trouble = s, nil
	m.patient = 0
	if s.Idle && !slices.ContainsFunc(m.subs, func(x *Subscription[M]) bool { return !x.patient }) {
		m.patient = s.SentAt.Sub(s.Created) / 30
	}
	for _, sub := range m.subs {
		sub.news(Update[M]{Snapshot: s})
	}
	return true
}

// Record takes a response to the user's own request about one meeting. It counts as a poll.
func (p *Poller[M]) Record(s Snapshot[M]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got(p.meeting(s.ID), s, 0)
}

// Ask makes a GET of a meeting necessary that no page replaces: after the interval, or at once, because the user has changed
// the meeting. It need not be known: a response that was sent before may still come.
func (p *Poller[M]) Ask(id string, atOnce bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan.ask(&p.meeting(id).watch, p.now(), atOnce)
	p.run()
}
