package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

type object = map[string]any

// some returns list, which JSON must not show as null.
func some[T any](list []T) []T { return append([]T{}, list...) }

func (c call) health() (any, error) {
	return object{"status": "ok", "base_url": c.p.baseURL, "version": version(), "since": c.p.began, "log_lines_dropped": c.p.lines.dropped.Load()}, nil
}

func (c call) reset() (any, error) {
	next, err := c.p.newFake(c.p.world)
	if err == nil {
		c.p.begin(next)
	}
	return nil, err
}

func (c call) scripts() (any, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return object{"scripts": some(c.f.scripts)}, nil
}

// addScript replaces the script for the same meetings. An empty one removes it.
func (c call) addScript() (any, error) {
	var s minutestest.Script
	if err := c.read(&s); err != nil {
		return nil, err
	}
	quick := s
	quick.Stages = faster(s.Stages, c.p.settings.speed)
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.Script(quick)
	empty := minutestest.Script{MeetingID: s.MeetingID, ExternalID: s.ExternalID, Title: s.Title}
	c.f.scripts = slices.DeleteFunc(c.f.scripts, func(old minutestest.Script) bool {
		return old.MeetingID == s.MeetingID && old.ExternalID == s.ExternalID && old.Title == s.Title
	})
	if s != empty {
		c.f.scripts = append(c.f.scripts, s)
	}
	return s, nil
}

func (c call) removeScripts() (any, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	for _, s := range c.f.scripts { // an empty script removes the one for the same meetings
		c.f.Script(minutestest.Script{MeetingID: s.MeetingID, ExternalID: s.ExternalID, Title: s.Title})
	}
	c.f.scripts = nil
	return nil, nil
}

func (c call) faults() (any, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	list := make([]fault, len(c.f.faults))
	for i, t := range c.f.faults {
		list[i] = *t
		list[i].Seen, list[i].Applied = t.injection.Seen(), t.injection.Applied()
	}
	return object{"faults": list}, nil
}

func (c call) addFault() (any, error) {
	t := &fault{}
	if err := c.read(&t.faultSpec); err != nil {
		return nil, err
	}
	if len(t.Faults) == 0 {
		return nil, errors.New("faults: at least one expected")
	}
	if t.From < 0 || t.To < t.From || t.To == t.From && t.To > 0 {
		return nil, errors.New("to: a later time than from expected")
	}
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	t.injection = c.f.Inject(t.Match, t.Faults...)
	c.f.added++
	t.ID = fmt.Sprintf("flt_%d", c.f.added)
	if t.To > 0 {
		t.injection.During(time.Duration(t.From), time.Duration(t.To))
	}
	if t.Optional {
		t.injection.Optional()
	}
	c.f.faults = append(c.f.faults, t)
	return *t, nil
}

func (c call) removeFaults() (any, error) {
	id := c.URL.Query().Get("id")
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	before := len(c.f.faults)
	c.f.faults = slices.DeleteFunc(c.f.faults, func(t *fault) bool {
		if id != "" && id != t.ID {
			return false
		}
		t.injection.Stop()
		return true
	})
	if id != "" && len(c.f.faults) == before {
		return nil, &problem{http.StatusNotFound, fmt.Sprintf("there is no fault %q", id)}
	}
	return nil, nil
}

func (c call) meetings() (any, error) {
	q := c.URL.Query()
	return object{"meetings": some(slices.DeleteFunc(c.f.Meetings(), func(m minutestest.Meeting) bool {
		return q.Has("title") && m.Title != q.Get("title") || q.Has("external_id") && m.ExternalID != q.Get("external_id")
	}))}, nil
}

func (c call) addMeetings() (any, error) {
	var sent struct {
		Organisation string `json:"organisation"`
		minutestest.WorldMeeting
	}
	if err := c.read(&sent); err != nil {
		return nil, err
	}
	return object{"ids": c.f.AddMeetings(cmp.Or(sent.Organisation, c.f.World().Organisations[0].ID), sent.WorldMeeting)}, nil
}

func (c call) meeting() (any, error) {
	if m, ok := c.f.Meeting(c.PathValue("id")); ok {
		return m, nil
	}
	return nil, &problem{http.StatusNotFound, fmt.Sprintf("there is no meeting %q", c.PathValue("id"))}
}

func (c call) deleteMeeting() (any, error) {
	if _, err := c.meeting(); err != nil {
		return nil, err
	}
	c.f.see(c.PathValue("id"))
	c.f.Delete(c.PathValue("id"))
	return nil, nil
}

func (c call) advance() (any, error) {
	var to struct {
		Until minutes.Status `json:"until"`
	}
	if _, err := c.meeting(); err != nil {
		return nil, err
	}
	if c.ContentLength != 0 {
		if err := c.read(&to); err != nil {
			return nil, err
		}
	}
	if err := minutestest.Try(func() { c.f.Advance(c.PathValue("id"), to.Until) }); err != nil {
		return nil, &problem{http.StatusConflict, err.Error()}
	}
	return c.meeting()
}

func (c call) clock() (any, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return object{"now": c.f.Now(), "ahead": c.f.ahead.String()}, nil
}

func (c call) advanceClock() (any, error) {
	var by struct {
		Advance world.Duration `json:"advance"`
	}
	if err := c.read(&by); err != nil {
		return nil, err
	}
	if by.Advance <= 0 {
		return nil, errors.New(`advance: a duration over 0 expected, such as "168h"`)
	}
	c.f.mu.Lock()
	c.f.ahead += time.Duration(by.Advance)
	c.f.AdvanceClock(time.Duration(by.Advance))
	c.f.mu.Unlock()
	return c.clock()
}

func (c call) requests() (any, error) {
	q := c.URL.Query()
	after, err := strconv.Atoi(cmp.Or(q.Get("after"), "0"))
	if err != nil || after < 0 {
		return nil, fmt.Errorf("after: %q is no whole number from 0", q.Get("after"))
	}
	var of []minutes.Operation
	for _, name := range q["operation"] {
		of = append(of, minutes.Operation(name))
		if err := (minutestest.Match{Operation: minutes.Operation(name)}).Validate(); err != nil {
			return nil, fmt.Errorf("operation: there is no operation %q", name)
		}
	}
	return object{"requests": some(slices.Collect(c.f.RequestsAfter(after, of...)))}, nil
}

func (c call) violations() (any, error) {
	faults, scripts := c.f.useless()
	return object{"violations": some(c.f.Violations()), "unused_faults": some(faults), "unmatched_scripts": some(scripts)}, nil
}
