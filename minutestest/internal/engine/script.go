package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Selector names the meetings a script is for: those with this id, this
// external id or this title, or, being zero, all of every organisation. At
// most one field may be set.
type Selector struct {
	MeetingID  string
	ExternalID string
	Title      string
}

// Script sets the course of a meeting. A zero field leaves the matter to a
// script with a wider selector, and in the end to the natural course.
type Script struct {
	// Outcome is the state the meeting ends in: one of the four failure states,
	// or minutes_ready for the natural course (which quota and the recording
	// itself may still turn into a failure).
	Outcome minutes.Status

	// Transcript is the speech, one "spk_0: words" a line. A line without a
	// label continues the turn before it.
	Transcript string

	// Minutes are the finished minutes. A format that is "" is written from the
	// transcript.
	Minutes Minutes

	// Stages replaces the durations of all stages.
	Stages *Stages

	// Hold stops the meeting in this state, audio_uploaded, transcribing,
	// transcribed or generating_minutes, until it is released or advanced.
	Hold minutes.Status
}

// Minutes are written minutes in both formats.
type Minutes struct {
	Markdown string
	HTML     string
}

// scripts holds the scripts by their selectors.
type scripts map[Selector]Script

// of returns the script for m: each field from the narrowest script that sets
// it.
func (s scripts) of(m *meeting) Script {
	sc := s[Selector{MeetingID: m.id}]
	if m.externalID != "" {
		sc = sc.or(s[Selector{ExternalID: m.externalID}])
	}
	return sc.or(s[Selector{Title: m.title}]).or(s[Selector{}])
}

func (sc Script) or(wider Script) Script {
	sc.Outcome = cmp.Or(sc.Outcome, wider.Outcome)
	sc.Transcript = cmp.Or(sc.Transcript, wider.Transcript)
	sc.Minutes.Markdown = cmp.Or(sc.Minutes.Markdown, wider.Minutes.Markdown)
	sc.Minutes.HTML = cmp.Or(sc.Minutes.HTML, wider.Minutes.HTML)
	sc.Stages = cmp.Or(sc.Stages, wider.Stages)
	sc.Hold = cmp.Or(sc.Hold, wider.Hold)
	return sc
}

func (sc Script) check() error {
	if sc.Outcome != "" && !sc.Outcome.Final() {
		return fmt.Errorf("engine: a meeting cannot end in %q", sc.Outcome)
	}
	switch sc.Hold {
	case "", minutes.StatusAudioUploaded, minutes.StatusTranscribing, minutes.StatusTranscribed, minutes.StatusGeneratingMinutes:
	default:
		return fmt.Errorf("engine: a meeting cannot be held in %q", sc.Hold)
	}
	if !utf8.ValidString(sc.Transcript) || !utf8.ValidString(sc.Minutes.Markdown) || !utf8.ValidString(sc.Minutes.HTML) {
		return errors.New("engine: a script is not UTF-8")
	}
	if sc.Stages != nil {
		return sc.Stages.check("script")
	}
	return nil
}

func (sel Selector) matches(m *meeting) bool {
	return (sel.MeetingID == "" || sel.MeetingID == m.id) &&
		(sel.ExternalID == "" || sel.ExternalID == m.externalID) &&
		(sel.Title == "" || sel.Title == m.title)
}

// Script sets the course of the meetings that sel names, from now on: of later
// meetings, and the rest of those under way. It replaces an earlier script of
// the same selector; the zero Script removes it. If several scripts match a
// meeting, each field comes from the narrowest that sets it: by id, by external
// id, by title, for all.
func (s *Service) Script(sel Selector, sc Script) error {
	switch sel {
	case Selector{MeetingID: sel.MeetingID}, Selector{ExternalID: sel.ExternalID}, Selector{Title: sel.Title}:
	default:
		return errors.New("engine: a selector names a meeting id, an external id or a title, not several")
	}
	if err := sc.check(); err != nil {
		return err
	}
	if sc.Stages != nil {
		sc.Stages = new(*sc.Stages)
	}
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := wallClock()
	for _, o := range w.orgOrder { // the past keeps the script it had
		o.settle(now)
	}
	w.scripts[sel] = sc
	if sc == (Script{}) {
		delete(w.scripts, sel)
	}
	for _, o := range w.orgOrder {
		for _, m := range o.meetings {
			if m.job != nil && !m.status.Final() && sel.matches(m) {
				o.plan(m, now)
			}
		}
	}
	return nil
}

// find returns a meeting by its id, with its organisation locked, or nil.
func (s *Service) find(id string) (*organisation, *meeting) {
	for _, o := range s.world.Load().orgOrder {
		o.lock(wallClock())
		if m := o.meetings[id]; m != nil {
			return o, m
		}
		o.unlock()
	}
	return nil, nil
}

// Release lets a held meeting continue, and reports whether it was held. The
// rest of its stage, if any, still has to pass.
func (s *Service) Release(id string) bool {
	o, m := s.find(id)
	if o == nil {
		return false
	}
	defer o.unlock()
	if m.job == nil || !m.job.held {
		return false
	}
	m.job.released = true
	o.plan(m, wallClock())
	return true
}

// Advance moves a meeting on without a clock, held or not, until it is in
// state until or in a final one; with until "" by one state. It returns the
// state reached. A meeting that is not there, has no audio or is already
// final or past until is an error.
func (s *Service) Advance(id string, until minutes.Status) (minutes.Status, error) {
	if until != "" && place(until) == 0 && !until.Failed() {
		return "", fmt.Errorf("engine: a meeting cannot come to %q", until)
	}
	o, m := s.find(id)
	if o == nil {
		return "", fmt.Errorf("engine: there is no meeting %q", id)
	}
	defer o.unlock()
	switch {
	case m.job == nil:
		return m.status, fmt.Errorf("engine: meeting %s has no audio", id)
	case m.status == until:
		return m.status, nil
	case m.status.Final(), !until.Failed() && until != "" && place(m.status) > place(until):
		return m.status, fmt.Errorf("engine: meeting %s is %s already", id, m.status)
	}
	for {
		o.schedule.remove(m)
		o.step(m, wallClock())
		if until == "" || m.status == until || m.status.Final() {
			return m.status, nil
		}
	}
}

// place returns the position of a state after the arrival of the audio on the
// way to minutes_ready, from 1, or 0 if it is not part of it.
func place(s minutes.Status) int {
	return 1 + slices.Index([]minutes.Status{minutes.StatusAudioUploaded, minutes.StatusTranscribing, minutes.StatusTranscribed, minutes.StatusGeneratingMinutes, minutes.StatusMinutesReady}, s)
}
