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
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

type object = map[string]any

// some returns list, which JSON must not show as null.
func some[T any](list []T) []T { return append([]T{}, list...) }

func (r request) health() (any, error) {
	return object{
		"status":            "ok",
		"base_url":          r.process.baseURL,
		"version":           version(),
		"since":             r.process.began,
		"log_lines_dropped": r.process.lines.dropped.Load(),
	}, nil
}

func (r request) reset() (any, error) {
	err := r.process.checkClaims(r.tenant, r.tenant.world)
	if err != nil {
		return nil, err
	}
	next, err := r.process.newFake(r.tenant.world)
	if err == nil {
		r.process.replace(r.tenant, next)
	}
	return nil, err
}

func (r request) scripts() (any, error) {
	return object{"scripts": some(r.fake.Scripts())}, nil
}

func (r request) addScript(s minutestest.Script) (any, error) {
	r.fake.Script(s)
	return s, nil
}

func (r request) removeScripts() (any, error) {
	for _, s := range r.fake.Scripts() {
		r.fake.Script(s.Target())
	}
	return nil, nil
}

func (r request) faults() (any, error) {
	list := make([]fault, len(r.fake.faults))
	for i, t := range r.fake.faults {
		list[i] = *t
		list[i].Seen = t.injection.Seen()
		list[i].Applied = t.injection.Applied()
	}
	return object{"faults": list}, nil
}

func (r request) addFault(spec faultSpec) (any, error) {
	t := &fault{faultSpec: spec}
	if len(t.Faults) == 0 {
		return nil, errors.New("faults: at least one expected")
	}
	from := *cmp.Or(t.From, new(strictjson.Duration(0)))
	to := *cmp.Or(t.To, new(strictjson.Duration(math.MaxInt64)))
	switch {
	case from < 0:
		return nil, errors.New("from: a duration from 0 on expected")
	case to <= from:
		return nil, errors.New("to: a later time than from expected")
	}
	t.injection = r.fake.Inject(t.Match, t.Faults...)
	r.fake.added++
	t.ID = fmt.Sprintf("flt_%d", r.fake.added)
	if t.From != nil || t.To != nil {
		t.injection.During(time.Duration(from), time.Duration(to))
	}
	if t.Optional {
		t.injection.Optional()
	}
	r.fake.faults = append(r.fake.faults, t)
	return *t, nil
}

func (r request) removeFaults() (any, error) {
	id := r.URL.Query().Get("id")
	isMeant := func(t *fault) bool { return id == "" || id == t.ID }
	if id != "" && !slices.ContainsFunc(r.fake.faults, isMeant) {
		return nil, &problem{http.StatusNotFound, fmt.Sprintf("there is no fault %q; there are %s", id, r.faultIDs())}
	}
	for _, t := range r.fake.faults {
		if isMeant(t) {
			t.injection.Stop()
		}
	}
	r.fake.faults = slices.DeleteFunc(r.fake.faults, isMeant)
	return nil, nil
}

// faultIDs lists the faults.
func (r request) faultIDs() string {
	var ids []string
	for _, t := range r.fake.faults {
		ids = append(ids, t.ID)
	}
	return cmp.Or(strings.Join(ids, ", "), "none")
}

func (r request) meetings() (any, error) {
	q := r.URL.Query()
	list := slices.DeleteFunc(r.fake.Meetings(), func(m minutestest.Meeting) bool {
		otherTitle := q.Has("title") && m.Title != q.Get("title")
		otherID := q.Has("external_id") && m.ExternalID != q.Get("external_id")
		return otherTitle || otherID
	})
	return object{"meetings": some(list)}, nil
}

type meetingSpec struct {
	Organisation string `json:"organisation"`
	minutestest.WorldMeeting
}

func (r request) addMeetings(sent meetingSpec) (any, error) {
	organisation := cmp.Or(sent.Organisation, r.fake.World().Organisations[0].ID)
	return object{"ids": r.fake.AddMeetings(organisation, sent.WorldMeeting)}, nil
}

func (r request) meeting() (any, error) {
	if m, ok := r.fake.Meeting(r.PathValue("id")); ok {
		return m, nil
	}
	return nil, &problem{http.StatusNotFound, fmt.Sprintf("there is no meeting %q", r.PathValue("id"))}
}

func (r request) deleteMeeting() (any, error) {
	if _, err := r.meeting(); err != nil {
		return nil, err
	}
	r.fake.Delete(r.PathValue("id"))
	return nil, nil
}

type statusSpec struct {
	Until minutes.Status `json:"until"`
}

func (r request) advance(to statusSpec) (any, error) {
	if _, err := r.meeting(); err != nil {
		return nil, err
	}
	err := mistake.Catch(func() { r.fake.Advance(r.PathValue("id"), to.Until) })
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "until: "): // since no meeting can ever come there
		return nil, err
	case err != nil:
		return nil, &problem{http.StatusConflict, err.Error()}
	}
	return r.meeting()
}

func (r request) clock() (any, error) {
	return object{"now": r.fake.Now(), "ahead": r.fake.ahead.String()}, nil
}

type clockSpec struct {
	Advance strictjson.Duration `json:"advance"`
}

func (r request) advanceClock(by clockSpec) (any, error) {
	if by.Advance <= 0 {
		return nil, errors.New(`advance: a duration over 0 expected, such as "168h"`)
	}
	err := mistake.Catch(func() { r.fake.AdvanceClock(time.Duration(by.Advance)) })
	if err != nil {
		return nil, fmt.Errorf("advance: %w", err)
	}
	r.fake.ahead += time.Duration(by.Advance)
	return r.clock()
}

func (r request) requests() (any, error) {
	q := r.URL.Query()
	after, err := strconv.Atoi(cmp.Or(q.Get("after"), "0"))
	if err != nil || after < 0 {
		return nil, fmt.Errorf("after: %q is not a whole number from 0", q.Get("after"))
	}
	var of []minutes.Operation
	for _, name := range q["operation"] {
		of = append(of, minutes.Operation(name))
	}
	var status int
	if q.Has("status") {
		status, err = strconv.Atoi(q.Get("status"))
		if err != nil {
			return nil, fmt.Errorf("status: %q is not a status such as 429", q.Get("status"))
		}
	}
	wait, err := r.wait()
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Collect(r.fake.RequestsAfter(after, of...)), func(sent minutestest.Request) bool {
		m, _ := r.fake.Meeting(sent.MeetingID)
		return q.Has("status") && sent.Status != status || !r.isAbout(sent.Caller, sent.MeetingID, m.Title)
	})
	if len(list) == 0 && time.Since(r.began) < wait {
		return nil, errNotYet
	}
	return object{"requests": some(list)}, nil
}

// wait is how long the client waits for the first match.
func (r request) wait() (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	const longest = time.Minute
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		return 0, fmt.Errorf("wait: %q is not a duration up to 1m, such as 5s", text)
	}
	return d, nil
}

// isAbout reports whether a request or a violation is one of those that the parameters ask for.
func (r request) isAbout(caller, meetingID, title string) bool {
	q := r.URL.Query()
	for name, value := range map[string]string{"caller": caller, "meeting_id": meetingID, "title": title} {
		if q.Has(name) && q.Get(name) != value {
			return false
		}
	}
	return true
}

func (r request) violations() (any, error) {
	faults, scripts := r.fake.useless()
	return object{
		"violations": some(slices.DeleteFunc(r.fake.Violations(), func(v minutestest.Violation) bool {
			return !r.isAbout(v.Caller, v.MeetingID, v.Title)
		})),
		"unused_faults":     some(faults),
		"unmatched_scripts": some(scripts),
	}, nil
}
