package engine

import (
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// job is the processing of a recording that has arrived.
type job struct {
	contentType string
	size        int64
	sha256      [32]byte
	bytes       []byte // only if recordings are kept
	received    time.Time

	seconds    int  // of the recording, which transcription takes
	unreadable bool // not a recording that can be processed
	blocked    bool // too little quota when it arrived
	reserved   int  // seconds set aside at present

	since    time.Time // of the present state
	due      time.Time // when it ends, if slot is not 0
	slot     int       // index in the schedule, from 1
	held     bool      // a script holds the meeting in the present state
	released bool      // the hold was released

	history []Transition
	spoken  *spoken  // from transcribed on
	written *written // from minutes_ready on
}

// arrive starts the processing of a recording that has arrived completely.
func (o *organisation) arrive(m *meeting, j *job) {
	m.job = j
	switch outcome := o.world.scripts.of(m).Outcome; {
	case j.unreadable, outcome == minutes.StatusAudioRejected, outcome == minutes.StatusTranscribeBlocked:
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

// enter moves m to a state, and sets when that state ends.
func (o *organisation) enter(m *meeting, status minutes.Status, at time.Time) {
	j := m.job
	m.status, m.updated = status, at
	j.since, j.held, j.released = at, false, false
	j.history = append(j.history, Transition{status, at})
	o.plan(m, at)
}

// plan sets when m's present state ends, not before earliest.
func (o *organisation) plan(m *meeting, earliest time.Time) {
	o.touch(m)
	o.schedule.remove(m)
	if m.status.Final() {
		return
	}
	j, sc := m.job, o.world.scripts.of(m)
	if j.held = sc.Hold == m.status && !j.released; j.held {
		return
	}
	stages := o.world.stages
	if sc.Stages != nil {
		stages = *sc.Stages
	}
	if j.due = j.since.Add(stages.of(m.status)); j.due.Before(earliest) {
		j.due = earliest
	}
	o.schedule.add(m)
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

// step ends m's present state. This is the whole of section 3
// of the interface, with the source states of D12.
func (o *organisation) step(m *meeting, at time.Time) {
	j, outcome := m.job, o.world.scripts.of(m).Outcome
	switch m.status {
	case minutes.StatusAudioUploaded:
		switch {
		case j.unreadable, outcome == minutes.StatusAudioRejected:
			o.release(j)
			o.enter(m, minutes.StatusAudioRejected, at)
		case j.blocked, outcome == minutes.StatusTranscribeBlocked,
			j.reserved == 0 && j.seconds > o.free(): // a script was changed since the arrival
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

// lock locks the organisation, and brings it up to now: everything that has
// fallen due happens at the time at which it fell due, the earliest first.
func (o *organisation) lock(now time.Time) {
	o.world.mu.Lock()
	o.settle(now)
}

func (o *organisation) unlock() { o.world.mu.Unlock() }

func (o *organisation) settle(now time.Time) {
	for {
		next := o.schedule.first()
		switch {
		case o.armed && !o.resetAt.After(now) && (next == nil || !o.resetAt.After(next.job.due)):
			o.topUp()
		case next != nil && !next.job.due.After(now):
			o.schedule.remove(next)
			o.step(next, next.job.due)
		default:
			o.arm(now)
			return
		}
	}
}
