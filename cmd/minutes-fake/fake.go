package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// fake is the service from one reset to the next, with what the control API has added to it.
type fake struct {
	*minutestest.Server
	closed context.Context // done when the fake is replaced
	end    func()

	mu      sync.Mutex
	faults  []*fault
	added   int // faults, also those that were removed
	scripts []minutestest.Script
	seen    map[string]bool // names of meetings that requests were about
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

// newFake returns a fake with a world.
func (p *process) newFake(w minutestest.World) (f *fake, err error) {
	f = &fake{seen: map[string]bool{}}
	f.closed, f.end = context.WithCancel(context.Background())
	if len(w.Organisations) == 0 {
		return nil, errNoOrganisation
	}
	usual := minutestest.DefaultWorld().Stages
	w.Stages = minutestest.Stages{Prepare: cmp.Or(w.Stages.Prepare, usual.Prepare), Transcribe: cmp.Or(w.Stages.Transcribe, usual.Transcribe), Write: cmp.Or(w.Stages.Write, usual.Write)}
	w.Stages = faster(w.Stages, p.settings.speed)
	requests := newRequestLog(p.settings.log, p.lines)
	options := append(p.settings.options(), minutestest.WithWorld(w), minutestest.WithLog(func(r minutestest.Request) {
		f.see(r.MeetingID)
		logRequest(requests, r)
	}))
	err = minutestest.Try(func() { f.Server = minutestest.New(options...) })
	return f, err
}

// see remembers the names of a meeting, because a script for it was of use even if it is deleted.
func (f *fake) see(meetingID string) {
	if m, ok := f.Meeting(meetingID); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen["title "+m.Title], f.seen["external_id "+m.ExternalID] = true, true
	}
}

// useless returns faults and scripts that were of no use.
func (f *fake) useless() (faults, scripts []string) {
	for _, text := range f.UnusedFaults() {
		faults = append(faults, text+`: correct its match, or set "optional": true`)
	}
	unmatched := f.UnmatchedScripts()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range unmatched {
		if name := cmp.Or(strings.TrimSuffix("title "+s.Title, "title "), "external_id "+s.ExternalID); !f.seen[name] {
			scripts = append(scripts, "no meeting matched the script for "+name)
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
