package engine

import (
	"maps"
	"math"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// job is what becomes of a meeting once its audio has arrived.
type job struct {
	contentType string
	size        int64
	sha256      [32]byte
	bytes       []byte // only if recordings are kept
	received    instant

	seconds  int  // what transcription takes
	refused  bool // not a recording that can be processed
	blocked  bool // too little quota when it arrived
	reserved int  // seconds set aside at present

	since    instant // of the present state
	due      instant // when it ends, where slot is not 0
	slot     int     // place in the schedule, from 1
	held     bool    // a script keeps the meeting in the present state
	released bool    // and no longer may

	history []change
	spoken  *spoken  // from transcribed on
	written *written // from minutes_ready on
}

type change struct {
	status minutes.Status
	at     instant
}

// arrive starts the job of a recording that has wholly arrived.
func (o *organisation) arrive(m *meeting, j *job) {
	m.job = j
	j.history = append(make([]change, 0, 6), change{minutes.StatusCreated, m.created})
	switch outcome := o.world.scripts.of(m).Outcome; {
	case j.refused, outcome == minutes.StatusAudioRejected, outcome == minutes.StatusTranscribeBlocked:
	case j.seconds > o.free():
		j.blocked = true
	default:
		o.reserve(j)
	}
	o.enter(m, minutes.StatusAudioUploaded, j.received)
}

func (o *organisation) reserve(j *job) {
	j.reserved = j.seconds
	o.reserved += j.seconds
}

// enter moves m to a state at an instant, and sets when that state ends.
func (o *organisation) enter(m *meeting, status minutes.Status, at instant) {
	j := m.job
	m.status, m.updated = status, at
	j.since, j.held, j.released = at, false, false
	j.history = append(j.history, change{status, at})
	o.plan(m, at)
}

// plan sets when m's present state ends, not before earliest.
func (o *organisation) plan(m *meeting, earliest instant) {
	o.touch(m)
	o.unplan(m)
	if m.status.Final() {
		return
	}
	j, sc := m.job, o.world.scripts.of(m)
	if j.held = sc.Hold == m.status && !j.released; j.held {
		o.held[m] = struct{}{}
		return
	}
	stages := o.world.stages
	if sc.Stages != nil {
		stages = *sc.Stages
	}
	j.due = max(earliest, later(j.since, stages.of(m.status)))
	o.schedule.add(m)
}

// unplan forgets when m's present state ends.
func (o *organisation) unplan(m *meeting) {
	o.schedule.remove(m)
	delete(o.held, m)
}

// underWay lists the meetings that still have something ahead.
func (o *organisation) underWay() []*meeting {
	return append(slices.Clone(o.schedule.heap), slices.Collect(maps.Keys(o.held))...)
}

// later adds without overflow: a stage may be meant to last for ever.
func later(t instant, d time.Duration) instant {
	if d > 0 && t > math.MaxInt64-instant(d) {
		return math.MaxInt64
	}
	return t.add(d)
}

func (s Stages) of(status minutes.Status) time.Duration {
	switch status {
	case minutes.StatusAudioUploaded:
		return s.Prepare
	case minutes.StatusTranscribing:
		return s.Transcribe
	case minutes.StatusTranscribed:
		return s.Queue
	case minutes.StatusGeneratingMinutes:
		return s.Write
	}
	return 0
}

// step ends m's present state at an instant. This is the whole of section 3
// of the interface, with the source states of D12.
func (o *organisation) step(m *meeting, at instant) {
	j, outcome := m.job, o.world.scripts.of(m).Outcome
	switch m.status {
	case minutes.StatusAudioUploaded:
		switch {
		case j.refused, outcome == minutes.StatusAudioRejected:
			o.release(j)
			o.enter(m, minutes.StatusAudioRejected, at)
		case j.blocked, outcome == minutes.StatusTranscribeBlocked,
			j.reserved == 0 && j.seconds > o.free(): // a script has changed its mind since the arrival
			o.release(j)
			o.enter(m, minutes.StatusTranscribeBlocked, at)
		default:
			if j.reserved == 0 {
				o.reserve(j)
			}
			o.enter(m, minutes.StatusTranscribing, at)
		}
	case minutes.StatusTranscribing:
		if outcome == minutes.StatusTranscriptionFailed {
			o.release(j)
			o.enter(m, minutes.StatusTranscriptionFailed, at)
			return
		}
		o.take(j)
		j.spoken = o.transcribe(m)
		o.enter(m, minutes.StatusTranscribed, at)
	case minutes.StatusTranscribed:
		o.enter(m, minutes.StatusGeneratingMinutes, at)
	case minutes.StatusGeneratingMinutes:
		if outcome == minutes.StatusMinutesFailed || !o.spend(minutesCredits) {
			o.enter(m, minutes.StatusMinutesFailed, at)
			return
		}
		j.written = o.write(m)
		o.enter(m, minutes.StatusMinutesReady, at)
	}
}

// settle brings the organisation up to now: all that has fallen due happens
// at the instant at which it fell due, the earliest first.
func (o *organisation) settle(now instant) {
	for {
		next := o.schedule.first()
		switch {
		case o.armed && o.resetAt <= now && (next == nil || o.resetAt <= next.job.due):
			o.topUp()
		case next != nil && next.job.due <= now:
			o.schedule.remove(next)
			o.step(next, next.job.due)
		default:
			o.armed = o.armed || o.waiting(now)
			return
		}
	}
}

// unsettled reports whether settle has anything to do.
func (o *organisation) unsettled(now instant) bool {
	next := o.schedule.first()
	return next != nil && next.job.due <= now || o.waiting(now)
}

// lock locks the organisation, settled.
func (o *organisation) lock(now instant) {
	o.mu.Lock()
	o.settle(now)
}

// rlock locks the organisation for reading, settled. Mostly there is nothing
// to settle, and readers do not stand in each other's way.
func (o *organisation) rlock(now instant) {
	o.mu.RLock()
	if !o.unsettled(now) {
		return
	}
	o.mu.RUnlock()
	o.lock(now)
	o.mu.Unlock()
	o.mu.RLock()
}

// schedule is a heap of the meetings under way, the one whose state ends
// first at the root, and of two at the same instant the older one.
type schedule struct{ heap []*meeting }

func (s *schedule) first() *meeting {
	if len(s.heap) == 0 {
		return nil
	}
	return s.heap[0]
}

func (s *schedule) add(m *meeting) {
	s.heap = append(s.heap, m)
	s.set(len(s.heap)-1, m)
	s.up(len(s.heap) - 1)
}

// remove takes m out, if it is there.
func (s *schedule) remove(m *meeting) {
	i := m.job.slot - 1
	if i < 0 {
		return
	}
	m.job.slot = 0
	last := len(s.heap) - 1
	moved := s.heap[last]
	s.heap[last] = nil
	s.heap = s.heap[:last]
	if i == last {
		return
	}
	s.set(i, moved)
	s.up(i)
	s.down(moved.job.slot - 1)
}

func (s *schedule) set(i int, m *meeting) {
	s.heap[i] = m
	m.job.slot = i + 1
}

func (s *schedule) less(i, j int) bool {
	a, b := s.heap[i], s.heap[j]
	if a.job.due != b.job.due {
		return a.job.due < b.job.due
	}
	return a.seq < b.seq
}

func (s *schedule) swap(i, j int) {
	a, b := s.heap[i], s.heap[j]
	s.set(i, b)
	s.set(j, a)
}

func (s *schedule) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !s.less(i, parent) {
			return
		}
		s.swap(i, parent)
		i = parent
	}
}

func (s *schedule) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if right := child + 1; right < len(s.heap) && s.less(right, child) {
			child = right
		}
		if !s.less(child, i) {
			return
		}
		s.swap(i, child)
		i = child
	}
}
