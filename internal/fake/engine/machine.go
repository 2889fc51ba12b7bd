package engine

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// recording is what storage has for a meeting.
type recording struct {
	audio   *world.Audio
	seconds int
}

// store gives m a recording, which the service notices at once unless a script says otherwise.
func (o *organisation) store(m *meeting, audio *world.Audio, seconds int) {
	late := o.service.scripts.of(m).NoticedAfter
	if late == 0 {
		o.arrive(m, audio, seconds)
		return
	}
	m.stored = &recording{audio, seconds}
	o.schedule(m, audio.ReceivedAt.Add(late))
}

// notice makes the service see what storage has for m.
func (o *organisation) notice(m *meeting, at time.Time) {
	audio := m.stored.audio
	audio.ReceivedAt = at
	o.unschedule(m)
	o.arrive(m, audio, m.stored.seconds)
	m.stored = nil
}

// arrive gives m its recording, which lasts this many seconds unless a script says otherwise.
func (o *organisation) arrive(m *meeting, audio *world.Audio, seconds int) {
	m.Audio = audio
	m.seconds = seconds
	if unprocessable(audio) == "" {
		scripted := o.service.scripts.of(m).Duration
		if scripted > 0 {
			m.seconds = int(math.Ceil(scripted.Seconds()))
		}
		m.blocked = !o.reserve(m)
	}
	o.enter(m, minutes.StatusAudioUploaded, audio.ReceivedAt)
}

// enter moves m to a status, and sets when that ends.
func (o *organisation) enter(m *meeting, status minutes.Status, at time.Time) {
	m.Status = status
	m.released = false
	m.History = append(m.History, world.Transition{Status: status, At: at})
	o.write(m, at)
	o.plan(m, at)
}

// plan sets when m's present status ends, not before earliest.
func (o *organisation) plan(m *meeting, earliest time.Time) {
	o.touch(m)
	o.unschedule(m)
	sc := o.service.scripts.of(m)
	m.Held = sc.Hold == m.Status && !m.released
	if m.Held || m.Status.Final() {
		return
	}
	var stage time.Duration // none in transcribed
	stages := *cmp.Or(sc.Stages, &o.service.stages)
	switch m.Status {
	case minutes.StatusAudioUploaded:
		stage = stages.Prepare
	case minutes.StatusTranscribing:
		stage = stages.Transcribe
	case minutes.StatusGeneratingMinutes:
		stage = stages.Write
	}
	speed := o.service.cfg.Speed
	if speed > 0 {
		stage = time.Duration(float64(stage) / speed)
	}
	entered := m.History[len(m.History)-1].At
	due := entered.Add(stage)
	if due.Before(earliest) {
		due = earliest
	}
	o.schedule(m, due)
}

// schedule sets when m's present status ends.
func (o *organisation) schedule(m *meeting, due time.Time) {
	m.due = due
	i, _ := slices.BinarySearchFunc(o.running, m, endsFirst)
	o.running = slices.Insert(o.running, i, m)
}

// endsFirst orders running meetings: of two that end at the same time, the older one is first.
func endsFirst(a, b *meeting) int {
	return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.seq, b.seq))
}

func (o *organisation) unschedule(m *meeting) {
	i, running := slices.BinarySearchFunc(o.running, m, endsFirst)
	if running {
		o.running = slices.Delete(o.running, i, i+1)
	}
}

// proceed ends m's present status as its script says.
func (o *organisation) proceed(m *meeting, at time.Time) {
	if m.stored != nil {
		o.notice(m, at)
		return
	}
	o.step(m, at, o.service.scripts.of(m).Outcome, false)
}

// step ends m's present status on the way to an outcome, which may be "". It can be free of charge. This
// is the whole of section 3 of the API reference, with the source statuses of D12.
func (o *organisation) step(m *meeting, at time.Time, outcome minutes.Status, free bool) {
	next := minutes.StatusTranscribed
	switch m.Status {
	case minutes.StatusAudioUploaded:
		next = o.admit(m, outcome)
	case minutes.StatusTranscribing:
		if outcome == minutes.StatusTranscriptionFailed {
			next = outcome
			o.refund(m)
			break
		}
		if free {
			o.refund(m)
		} else {
			o.charge(m)
		}
		m.Transcript = o.transcript(m)
	case minutes.StatusTranscribed:
		next = minutes.StatusGeneratingMinutes
	case minutes.StatusGeneratingMinutes:
		next = minutes.StatusMinutesFailed
		if outcome != next && (free || o.spend(minutesCredits)) {
			next = minutes.StatusMinutesReady
			m.Markdown, m.HTML = o.minutes(m)
		}
	}
	if next.Failed() {
		m.Reason = m.reason(next == outcome)
	}
	o.enter(m, next, at)
}

// admit decides what becomes of a recording that has been prepared.
func (o *organisation) admit(m *meeting, outcome minutes.Status) minutes.Status {
	next := minutes.StatusTranscribing
	switch {
	case unprocessable(m.Audio) != "" || outcome == minutes.StatusAudioRejected:
		next = minutes.StatusAudioRejected
		o.refund(m)
	case m.blocked || outcome == minutes.StatusTranscribeBlocked:
		next = minutes.StatusTranscribeBlocked
		o.refund(m)
	default:
		m.DurationSeconds = new(m.seconds) // shown from now on (D13)
	}
	return next
}

// settle brings the organisation up to now: everything that has fallen due happens at the time at
// which it fell due, the earliest first.
func (o *organisation) settle(now time.Time) {
	for {
		var next *meeting
		if len(o.running) > 0 {
			next = o.running[0]
		}
		switch {
		case o.toppedUpBy(now) && (next == nil || o.toppedUpBy(next.due)):
			o.topUp()
		case next != nil && !next.due.After(now):
			o.proceed(next, next.due)
		default:
			return
		}
	}
}

// oneSecond is a recording of one second.
var oneSecond = world.Audio{
	ContentType: "audio/mpeg",
	Size:        bytesPerSecond,
	SHA256:      fmt.Sprintf("%x", sha256.Sum256(make([]byte, bytesPerSecond))),
}

// skip takes a new meeting to a status, with a recording of one second and free of charge, whatever
// outcome a script sets. From there it continues by itself.
func (o *organisation) skip(m *meeting, status minutes.Status, now time.Time) {
	if status == minutes.StatusCreated {
		return
	}
	outcome := minutes.StatusMinutesReady
	if status.Failed() {
		outcome = status
	}
	audio := oneSecond
	audio.ReceivedAt = now
	m.Audio = &audio
	m.seconds = 1
	o.setAside(m)
	o.enter(m, minutes.StatusAudioUploaded, now)
	for m.Status != status && !m.Status.Final() {
		o.step(m, now, outcome, true)
	}
}

// scripts are those in force, by their targets.
type scripts map[world.Script]world.Script

// of returns the script for m: each field from the narrowest script that sets it.
func (s scripts) of(m *meeting) (sc world.Script) {
	if len(s) == 0 {
		return sc
	}
	for _, target := range append(m.targets(), world.Script{}) {
		wider, ok := s[target]
		if !ok {
			continue
		}
		sc.Outcome = cmp.Or(sc.Outcome, wider.Outcome)
		sc.Transcript = cmp.Or(sc.Transcript, wider.Transcript)
		sc.Markdown = cmp.Or(sc.Markdown, wider.Markdown)
		sc.HTML = cmp.Or(sc.HTML, wider.HTML)
		sc.Duration = cmp.Or(sc.Duration, wider.Duration)
		sc.Stages = cmp.Or(sc.Stages, wider.Stages)
		sc.Hold = cmp.Or(sc.Hold, wider.Hold)
		sc.ListedAfter = cmp.Or(sc.ListedAfter, wider.ListedAfter)
		sc.VisibleAfter = cmp.Or(sc.VisibleAfter, wider.VisibleAfter)
		sc.NoticedAfter = cmp.Or(sc.NoticedAfter, wider.NoticedAfter)
		sc.ClockSkew = cmp.Or(sc.ClockSkew, wider.ClockSkew)
	}
	return sc
}

// targets are those of the scripts for m alone, the narrowest first.
func (m *meeting) targets() []world.Script {
	list := []world.Script{{MeetingID: m.ID}}
	if m.ExternalID != "" {
		list = append(list, world.Script{ExternalID: m.ExternalID})
	}
	return append(list, world.Script{Title: m.Title})
}

// Script sets the course of the meetings that sc names, from now on: of later meetings, and the
// rest of those under way. It replaces an earlier script for the same meetings; one that sets
// nothing removes it.
func (s *Service) Script(sc world.Script) error {
	err := checkScript(sc)
	if err != nil {
		return err
	}
	now := s.lock() // the past keeps the script it had
	defer s.mu.Unlock()
	s.scripts[sc.Target()] = sc
	if sc == sc.Target() {
		delete(s.scripts, sc)
	}
	s.replan(now)
	return nil
}

// Scripts returns the scripts in force: the one for all meetings, then those for titles, for
// external ids and for ids, each sorted.
func (s *Service) Scripts() []world.Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []world.Script
	for _, sc := range s.scripts {
		list = append(list, sc)
	}
	slices.SortFunc(list, func(a, b world.Script) int {
		return cmp.Or(
			cmp.Compare(a.MeetingID, b.MeetingID),
			cmp.Compare(a.ExternalID, b.ExternalID),
			cmp.Compare(a.Title, b.Title),
		)
	})
	return list
}

// UnmatchedScripts returns the scripts for a meeting, an external id or a title that no meeting has had.
func (s *Service) UnmatchedScripts() []world.Script {
	list := s.Scripts()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(list, func(sc world.Script) bool {
		return sc.Target() == world.Script{} || s.named[sc.Target()]
	})
}

// Release lets a held meeting continue, and reports whether it was held. The rest of its stage, if
// any, still has to pass. It is an error if the meeting does not exist.
func (s *Service) Release(id string) (held bool, err error) {
	o, m, err := s.find(id)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if !m.Held {
		return false, nil
	}
	m.released = true
	o.plan(m, s.Now())
	return true, nil
}

// Advance moves a meeting on without a clock, held or not, until it is in status until; with until ""
// by one status. It is an error if the meeting does not exist, has no audio, has left until behind, ends
// before it comes to until or, with until "", is in a final status.
func (s *Service) Advance(id string, until minutes.Status) (minutes.Status, error) {
	if until != "" && !slices.Contains(statuses[1:], until) {
		return "", mistake.At("until", "a meeting cannot come to %q, only to one of %q", until, statuses[1:])
	}
	o, m, err := s.find(id)
	if err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	switch {
	case m.Audio == nil && m.stored == nil:
		return m.Status, fmt.Errorf("meeting %s has no audio", id)
	case until == "" && m.Status.Final(), m.Status != until && m.hasBeen(until):
		return m.Status, fmt.Errorf("meeting %s is %s already", id, m.Status)
	case until == "":
		o.proceed(m, s.Now())
		return m.Status, nil
	}
	for m.Status != until && !m.Status.Final() {
		o.proceed(m, s.Now())
	}
	if m.Status != until {
		return m.Status, fmt.Errorf("meeting %s has ended in %s, so it never comes to %s: "+
			"a script's outcome, the quota and the recording decide how a meeting ends", id, m.Status, until)
	}
	return m.Status, nil
}

// hasBeen reports whether m is or has been in a status.
func (m *meeting) hasBeen(status minutes.Status) bool {
	return slices.ContainsFunc(m.History, func(t world.Transition) bool { return t.Status == status })
}
