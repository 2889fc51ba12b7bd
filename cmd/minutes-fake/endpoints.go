package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
		c.p.replace(next)
	}
	return nil, err
}

func (c call) scripts() (any, error) {
	return object{"scripts": some(c.f.Scripts())}, nil
}

func (c call) addScript(s minutestest.Script) (any, error) {
	c.f.Script(s)
	return s, nil
}

func (c call) removeScripts() (any, error) {
	for _, s := range c.f.Scripts() {
		c.f.Script(s.Target())
	}
	return nil, nil
}

func (c call) faults() (any, error) {
	list := make([]fault, len(c.f.faults))
	for i, t := range c.f.faults {
		list[i] = *t
		list[i].Seen, list[i].Applied = t.injection.Seen(), t.injection.Applied()
	}
	return object{"faults": list}, nil
}

func (c call) addFault(spec faultSpec) (any, error) {
	t := &fault{faultSpec: spec}
	if len(t.Faults) == 0 {
		return nil, errors.New("faults: at least one expected")
	}
	to := cmp.Or(t.To, math.MaxInt64) // without it, for ever
	switch {
	case t.From < 0:
		return nil, errors.New("from: a duration from 0 on expected")
	case to <= t.From:
		return nil, errors.New("to: a later time than from expected")
	}
	t.injection = c.f.Inject(t.Match, t.Faults...)
	c.f.added++
	t.ID = fmt.Sprintf("flt_%d", c.f.added)
	if t.From > 0 || t.To > 0 {
		t.injection.During(time.Duration(t.From), time.Duration(to))
	}
	if t.Optional {
		t.injection.Optional()
	}
	c.f.faults = append(c.f.faults, t)
	return *t, nil
}

func (c call) removeFaults() (any, error) {
	id := c.URL.Query().Get("id")
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

type meetingSpec struct {
	Organisation string `json:"organisation"`
	minutestest.WorldMeeting
}

func (c call) addMeetings(sent meetingSpec) (any, error) {
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

type statusSpec struct {
	Until minutes.Status `json:"until"`
}

func (c call) advance(to statusSpec) (any, error) {
	if _, err := c.meeting(); err != nil {
		return nil, err
	}
	err := minutestest.Try(func() { c.f.Advance(c.PathValue("id"), to.Until) })
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "until: "): // since no meeting can ever come there
		return nil, err
	case err != nil:
		return nil, &problem{http.StatusConflict, err.Error()}
	}
	return c.meeting()
}

func (c call) clock() (any, error) {
	return object{"now": c.f.Now(), "ahead": c.f.ahead.String()}, nil
}

type clockSpec struct {
	Advance world.Duration `json:"advance"`
}

func (c call) advanceClock(by clockSpec) (any, error) {
	if by.Advance <= 0 {
		return nil, errors.New(`advance: a duration over 0 expected, such as "168h"`)
	}
	if err := minutestest.Try(func() { c.f.AdvanceClock(time.Duration(by.Advance)) }); err != nil {
		return nil, fmt.Errorf("advance: %w", err)
	}
	c.f.ahead += time.Duration(by.Advance)
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
