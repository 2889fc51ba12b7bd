package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

func getHealth(p *process, _ *fake, _ *http.Request) (any, error) {
	return map[string]any{"status": "ok", "base_url": p.baseURL, "version": version(), "since": p.began, "log_lines_dropped": p.lines.dropped.Load()}, nil
}

func reset(p *process, _ *fake, _ *http.Request) (any, error) {
	next, err := p.newFake(p.world)
	if err == nil {
		p.begin(next)
	}
	return nil, err
}

// tree is a JSON object. Worlds are merged in this form, because it shows which fields were sent.
type tree = map[string]any

func (f *fake) worldNow() tree {
	now := minutestest.World{Stages: f.world.Stages}
	for i := range f.world.Organisations {
		o, _ := f.Organisation(f.world.Organisations[i].ID)
		now.Organisations = append(now.Organisations, o)
	}
	var t tree
	text, _ := json.Marshal(now)
	_ = json.Unmarshal(text, &t)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sizes != nil {
		t["page_sizes"] = f.sizes
	}
	return t
}

// worldOf checks a world, and takes the sizes of pages out of it.
func worldOf(t tree) (w minutestest.World, sizes []int, err error) {
	if sent := t["page_sizes"]; sent != nil {
		text, _ := json.Marshal(sent)
		if err := json.Unmarshal(text, &sizes); err != nil || len(sizes) == 0 || slices.Min(sizes) < 0 || sizes[len(sizes)-1] == 0 {
			return w, nil, errors.New("page_sizes: numbers from 0 expected, the last one over 0")
		}
	}
	delete(t, "page_sizes")
	text, err := json.Marshal(t)
	if err == nil {
		w, err = minutestest.LoadWorld(strings.NewReader(string(text)))
	}
	return w, sizes, err
}

// setSizes makes pages as long as sizes say: the first, the second and so on, and all further ones
// as the last.
func (f *fake) setSizes(sizes []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sizes = sizes; sizes == nil {
		f.SetPageSize(nil)
		return
	}
	f.SetPageSize(func(limit, page int) int { return min(limit, sizes[min(page, len(sizes)-1)]) })
}

func getWorld(_ *process, f *fake, _ *http.Request) (any, error) { return f.worldNow(), nil }

func putWorld(p *process, _ *fake, r *http.Request) (any, error) {
	var sent tree
	if err := read(r, &sent); err != nil {
		return nil, err
	}
	w, sizes, err := worldOf(sent)
	if err != nil {
		return nil, err
	}
	next, err := p.newFake(w)
	if err != nil {
		return nil, err
	}
	next.setSizes(sizes)
	p.begin(next)
	return next.worldNow(), nil
}

// patchWorld checks the whole result before it changes anything. Then it changes each organisation
// as it is at that moment, so that no credit is lost that a request spends meanwhile.
func patchWorld(_ *process, f *fake, r *http.Request) (any, error) {
	var sent tree
	if err := read(r, &sent); err != nil {
		return nil, err
	}
	w, sizes, err := worldOf(merge(f.worldNow(), sent).(tree))
	switch {
	case err != nil:
		return nil, err
	case sent["stages"] != nil:
		return nil, errors.New(`stages: a script sets them: POST /scripts {"stages": …}`)
	case len(w.Organisations) != len(f.world.Organisations):
		return nil, errors.New("organisations: a patch neither adds nor removes any; PUT /world does")
	}
	patches, _ := sent["organisations"].([]any)
	for _, patch := range patches {
		id, _ := patch.(tree)["id"].(string)
		if err := f.Update(id, func(o *minutestest.Organisation) { mergeInto(o, patch) }); err != nil {
			return nil, err
		}
	}
	if _, ok := sent["page_sizes"]; ok {
		f.setSizes(sizes)
	}
	return f.worldNow(), nil
}

// mergeInto merges a patch that has been checked into o.
func mergeInto(o *minutestest.Organisation, patch any) {
	var t tree
	text, _ := json.Marshal(o)
	_ = json.Unmarshal(text, &t)
	text, _ = json.Marshal(merge(t, patch))
	var merged minutestest.Organisation
	if json.Unmarshal(text, &merged) == nil {
		*o = merged
	}
}

// merge is a JSON merge patch (RFC 7396), but lists of objects are merged, too: an element changes
// the one with its id, secret or term, or is added.
func merge(into, patch any) any {
	switch patch := patch.(type) {
	case tree:
		object, ok := into.(tree)
		if !ok {
			object = tree{}
		}
		for name, value := range patch {
			if value == nil {
				delete(object, name)
			} else {
				object[name] = merge(object[name], value)
			}
		}
		return object
	case []any:
		list, _ := into.([]any)
		if len(patch) == 0 || nameOf(patch[0]) == "" {
			return patch
		}
		for _, e := range patch {
			at := slices.IndexFunc(list, func(old any) bool { return nameOf(old) == nameOf(e) })
			if at < 0 {
				list = append(list, merge(nil, e))
			} else {
				list[at] = merge(list[at], e)
			}
		}
		return list
	}
	return patch
}

// nameOf returns what identifies an element of a list, or "".
func nameOf(e any) string {
	object, _ := e.(tree)
	for _, field := range []string{"secret", "id", "term"} {
		if name, ok := object[field].(string); ok {
			return name
		}
	}
	return ""
}

func getScripts(_ *process, f *fake, _ *http.Request) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []minutestest.Script{}
	for _, s := range f.scripts {
		list = append(list, s.Script)
	}
	return tree{"scripts": list}, nil
}

func postScript(p *process, f *fake, r *http.Request) (any, error) {
	var s minutestest.Script
	if err := read(r, &s); err != nil {
		return nil, err
	}
	course := s
	course.Stages = faster(s.Stages, p.settings.speed)
	if err := f.Script(course); err != nil {
		return nil, err
	}
	f.addScript(s)
	return s, nil
}

func deleteScripts(_ *process, f *fake, _ *http.Request) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.scripts { // an empty script removes the one for the same meetings
		if err := f.Script(minutestest.Script{MeetingID: s.MeetingID, ExternalID: s.ExternalID, Title: s.Title}); err != nil {
			return nil, err
		}
	}
	f.scripts = nil
	return nil, nil
}

func getFaults(_ *process, f *fake, _ *http.Request) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []fault{}
	for _, t := range f.faults {
		shown := *t
		shown.Seen, shown.Applied = t.injection.Seen(), t.injection.Applied()
		list = append(list, shown)
	}
	return tree{"faults": list}, nil
}

func postFault(_ *process, f *fake, r *http.Request) (any, error) {
	var sent faultSpec
	if err := read(r, &sent); err != nil {
		return nil, err
	}
	from, to := time.Duration(sent.From), time.Duration(sent.To)
	switch {
	case len(sent.Faults) == 0:
		return nil, errors.New("faults: at least one expected")
	case from < 0 || to < from || to == from && to > 0:
		return nil, errors.New("to: a later time than from expected")
	}
	if err := sent.Match.Validate(sent.Faults...); err != nil {
		return nil, err
	}
	for _, one := range sent.Faults {
		if slices.Contains([]string{"bad_certificate"}, one.String()) {
			return nil, fmt.Errorf("faults: only clients within a Go program can see %s", one)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added++
	t := &fault{ID: fmt.Sprintf("flt_%d", f.added), faultSpec: sent, injection: f.Inject(sent.Match, sent.Faults...)}
	if to > 0 {
		t.injection.During(from, to)
	}
	f.faults = append(f.faults, t)
	return t, nil
}

func deleteFaults(_ *process, f *fake, r *http.Request) (any, error) {
	id, one := queryOne(r.URL.Query(), "id")
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := len(f.faults)
	f.faults = slices.DeleteFunc(f.faults, func(t *fault) bool {
		if one && t.ID != id {
			return false
		}
		t.injection.Stop()
		return true
	})
	if one && len(f.faults) == kept {
		return nil, notFound("there is no fault %q", id)
	}
	return nil, nil
}

func getMeetings(_ *process, f *fake, r *http.Request) (any, error) {
	title, byTitle := queryOne(r.URL.Query(), "title")
	ref, byRef := queryOne(r.URL.Query(), "external_id")
	list := slices.DeleteFunc(f.Meetings(), func(m minutestest.Meeting) bool { return byTitle && m.Title != title || byRef && m.ExternalID != ref })
	return tree{"meetings": append([]minutestest.Meeting{}, list...)}, nil
}

func postMeetings(_ *process, f *fake, r *http.Request) (any, error) {
	var sent struct {
		Organisation string `json:"organisation"`
		minutestest.WorldMeeting
	}
	if err := read(r, &sent); err != nil {
		return nil, err
	}
	organisation := cmp.Or(sent.Organisation, f.world.Organisations[0].ID)
	ids, err := f.AddMeetings(organisation, sent.WorldMeeting)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(plain(err), "meetings[0]."))
	}
	return tree{"ids": ids}, nil
}

func getMeeting(_ *process, f *fake, r *http.Request) (any, error) {
	if m, ok := f.Meeting(r.PathValue("id")); ok {
		return m, nil
	}
	return nil, notFound("there is no meeting %q", r.PathValue("id"))
}

func deleteMeeting(_ *process, f *fake, r *http.Request) (any, error) {
	f.match(r.PathValue("id"))
	if !f.Delete(r.PathValue("id")) {
		return nil, notFound("there is no meeting %q", r.PathValue("id"))
	}
	return nil, nil
}

func postAdvance(p *process, f *fake, r *http.Request) (any, error) {
	var to struct {
		Until minutes.Status `json:"until"`
	}
	if r.ContentLength != 0 {
		if err := read(r, &to); err != nil {
			return nil, err
		}
	}
	m, err := getMeeting(p, f, r)
	if err != nil {
		return nil, err
	}
	if _, err := f.Advance(m.(minutestest.Meeting).ID, to.Until); err != nil {
		return nil, &problem{http.StatusConflict, plain(err)}
	}
	return getMeeting(p, f, r)
}

func getClock(_ *process, f *fake, _ *http.Request) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return tree{"now": f.Now(), "ahead": f.ahead.String()}, nil
}

func postClock(p *process, f *fake, r *http.Request) (any, error) {
	var by struct {
		Advance world.Duration `json:"advance"`
	}
	if err := read(r, &by); err != nil {
		return nil, err
	}
	if by.Advance <= 0 {
		return nil, errors.New(`advance: a duration over 0 such as "168h" expected`)
	}
	f.mu.Lock()
	f.ahead += time.Duration(by.Advance)
	f.AdvanceClock(time.Duration(by.Advance))
	f.mu.Unlock()
	return getClock(p, f, r)
}

func getRequests(_ *process, f *fake, r *http.Request) (any, error) {
	q := r.URL.Query()
	after, err := strconv.Atoi(cmp.Or(q.Get("after"), "0"))
	if err != nil || after < 0 {
		return nil, fmt.Errorf("after: %q is no whole number from 0", q.Get("after"))
	}
	var operations []minutes.Operation
	for _, name := range q["operation"] {
		op := minutes.Operation(name)
		if err := (minutestest.Match{Operation: op}).Validate(); err != nil {
			return nil, fmt.Errorf("operation: there is no operation %q", name)
		}
		operations = append(operations, op)
	}
	return tree{"requests": requestList(f.RequestsAfter(after, operations...))}, nil
}

// requestList is a list that is made when it is written.
type requestList iter.Seq[minutestest.Request]

func (l requestList) MarshalJSON() ([]byte, error) {
	list := slices.Collect(iter.Seq[minutestest.Request](l))
	return json.Marshal(append([]minutestest.Request{}, list...))
}

func getViolations(_ *process, f *fake, _ *http.Request) (any, error) {
	faults, scripts := f.useless()
	return tree{"violations": append([]minutestest.Violation{}, f.Violations()...), "unused_faults": append([]string{}, faults...), "unmatched_scripts": append([]string{}, scripts...)}, nil
}
