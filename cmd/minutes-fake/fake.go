package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// fake is the service from one reset to the next, with what the control API has added to it.
type fake struct {
	*minutestest.Server
	world  minutestest.World
	closed context.Context // done when the fake is replaced
	end    func()

	mu      sync.Mutex
	faults  []*fault
	added   int // faults, also those that were removed
	scripts []*script
	sizes   []int // of pages
	ahead   time.Duration
}

// fault is a fault as the control API shows it.
type fault struct {
	ID string `json:"id"`
	faultSpec
	Seen    int `json:"seen"`    // requests that matched, until the fault was used up
	Applied int `json:"applied"` // requests that went wrong

	injection *minutestest.Injection
}

// faultSpec is a fault as it is sent.
type faultSpec struct {
	Match    minutestest.Match   `json:"match,omitzero"`
	Faults   []minutestest.Fault `json:"faults"`
	Optional bool                `json:"optional,omitempty"`
	From     world.Duration      `json:"from,omitempty"` // the window of time, counted from now
	To       world.Duration      `json:"to,omitempty"`
}

// script is a script, and whether there was a meeting for it.
type script struct {
	minutestest.Script

	matched bool
}

// newFake returns a fake with a world.
func (p *process) newFake(w minutestest.World) (f *fake, err error) {
	f = &fake{}
	f.closed, f.end = context.WithCancel(context.Background())
	if len(w.Organisations) == 0 {
		return nil, errors.New("organisations: at least one expected")
	}
	usual := minutestest.DefaultWorld().Stages
	w.Stages = minutestest.Stages{Prepare: cmp.Or(w.Stages.Prepare, usual.Prepare), Transcribe: cmp.Or(w.Stages.Transcribe, usual.Transcribe), Write: cmp.Or(w.Stages.Write, usual.Write)}
	f.world = w
	w.Stages = faster(w.Stages, p.settings.speed)
	requests := newRequestLog(p.settings.log, p.lines)
	options := append(p.settings.options(), minutestest.WithWorld(w), minutestest.WithLog(func(r minutestest.Request) {
		f.match(r.MeetingID)
		logRequest(requests, r)
	}))
	defer func() {
		if v := recover(); v != nil { // since New panics if the world or -without-audit is invalid
			err = fmt.Errorf("%v", v)
		}
	}()
	f.Server = minutestest.New(options...)
	return f, nil
}

// match notes that there is a meeting for scripts, which may be gone when that matters.
func (f *fake) match(meetingID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.scripts, func(s *script) bool { return !s.matched }) {
		return
	}
	if m, ok := f.Meeting(meetingID); ok {
		f.matchAll(m)
	}
}

func (f *fake) matchAll(meetings ...minutestest.Meeting) {
	for _, s := range f.scripts {
		s.matched = s.matched || slices.ContainsFunc(meetings, func(m minutestest.Meeting) bool {
			return (s.MeetingID == "" || s.MeetingID == m.ID) && (s.Title == "" || s.Title == m.Title) && (s.ExternalID == "" || s.ExternalID == m.ExternalID)
		})
	}
}

// unused returns why a fault is of no use so far, or "".
func (t *fault) unused() string {
	wanted := t.Match.Times
	switch {
	case t.Optional:
		return ""
	case wanted < 0 || wanted == 0 && t.To > 0:
		wanted = 1 // at least
	case wanted == 0:
		wanted = len(t.Faults)
	}
	seen, applied := t.injection.Seen(), t.injection.Applied()
	if applied >= wanted {
		return ""
	}
	return fmt.Sprintf("fault %s (%s) was applied to %d requests, and %d matched: correct its match, or set \"optional\": true", t.ID, t.Faults[0], applied, seen)
}

// useless returns why faults and scripts were of no use.
func (f *fake) useless() (faults, scripts []string) {
	meetings := f.Meetings()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.matchAll(meetings...)
	for _, t := range f.faults {
		if text := t.unused(); text != "" {
			faults = append(faults, text)
		}
	}
	for _, s := range f.scripts {
		if !s.matched {
			scripts = append(scripts, fmt.Sprintf("no meeting matched the script for meeting_id %q, external_id %q, title %q", s.MeetingID, s.ExternalID, s.Title))
		}
	}
	return faults, scripts
}

// complaints returns what -strict minds.
func (f *fake) complaints() (list []string) {
	for _, v := range f.Violations() {
		list = append(list, v.String())
	}
	faults, scripts := f.useless()
	return slices.Concat(list, faults, scripts)
}
