package engine

import (
	"cmp"
	"fmt"
	"slices"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// selector names the meetings a script is for: those with this id, this external id or this title,
// or, being zero, all of every organisation.
type selector struct{ meetingID, externalID, title string }

// scripts holds the scripts by their selectors.
type scripts map[selector]world.Script

func selectorOf(sc world.Script) selector { return selector{sc.MeetingID, sc.ExternalID, sc.Title} }

func scriptsFor(sc world.Script) scripts { return scripts{selectorOf(sc): sc} }

// of returns the script for m: each field from the narrowest script that sets it.
func (s scripts) of(m *meeting) (sc world.Script) {
	if len(s) == 0 {
		return sc
	}
	narrowestFirst := []selector{{meetingID: m.id}, {externalID: m.externalID}, {title: m.title}, {}}
	for i, sel := range narrowestFirst {
		wider, ok := s[sel]
		if !ok || sel == (selector{}) && i < len(narrowestFirst)-1 { // the meeting has no external id
			continue
		}
		sc.Outcome = cmp.Or(sc.Outcome, wider.Outcome)
		sc.Transcript = cmp.Or(sc.Transcript, wider.Transcript)
		sc.Markdown = cmp.Or(sc.Markdown, wider.Markdown)
		sc.HTML = cmp.Or(sc.HTML, wider.HTML)
		sc.Duration = cmp.Or(sc.Duration, wider.Duration)
		sc.Stages = orStages(sc.Stages, wider.Stages)
		sc.Hold = cmp.Or(sc.Hold, wider.Hold)
		sc.ListedAfter = cmp.Or(sc.ListedAfter, wider.ListedAfter)
	}
	return sc
}

// Script sets the course of the meetings that sc names, from now on: of later meetings, and the
// rest of those under way. It replaces an earlier script for the same meetings; one that sets
// nothing removes it.
func (s *Service) Script(sc world.Script) error {
	if err := checkScript(sc); err != nil {
		return err
	}
	sel := selectorOf(sc)
	now := s.lock() // the past keeps the script it had
	defer s.mu.Unlock()
	s.scripts[sel] = sc
	if sc == (world.Script{MeetingID: sel.meetingID, ExternalID: sel.externalID, Title: sel.title}) {
		delete(s.scripts, sel)
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
		return cmp.Or(cmp.Compare(a.MeetingID, b.MeetingID), cmp.Compare(a.ExternalID, b.ExternalID), cmp.Compare(a.Title, b.Title))
	})
	return list
}

// Release lets a held meeting continue, and reports whether it was held. The rest of its stage, if
// any, still has to pass.
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
	o.plan(m, s.Now())
	return true
}

// Advance moves a meeting on without a clock, held or not, until it is in status until or in a
// final one; with until "" by one status. It returns the status reached. A meeting that is not
// there, has no audio or is already final or past until is an error.
func (s *Service) Advance(id string, until minutes.Status) (minutes.Status, error) {
	target := slices.Index(statuses, until)
	if until != "" && target < 1 {
		return "", fmt.Errorf("a meeting cannot come to %q", until)
	}
	o, m := s.find(id)
	if o == nil {
		return "", fmt.Errorf("there is no meeting %q", id)
	}
	defer o.unlock()
	switch {
	case m.job == nil:
		return m.status, fmt.Errorf("meeting %s has no audio", id)
	case m.status == until:
		return m.status, nil
	case m.status.Final(), until != "" && slices.Index(statuses, m.status) > target:
		return m.status, fmt.Errorf("meeting %s is %s already", id, m.status)
	}
	for {
		o.step(m, s.Now())
		if until == "" || m.status == until || m.status.Final() {
			return m.status, nil
		}
	}
}
