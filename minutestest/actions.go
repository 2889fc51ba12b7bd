package minutestest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// action is a call of the test or program that changed the service: Script,
// Update, Advance or Release. The inspector shows it beside the requests.
type action struct {
	N         int      `json:"n"` // from 1
	At        millis   `json:"at"`
	After     int      `json:"after"` // seq of the last request that had arrived
	Name      string   `json:"name"`  // of the method, and of the organisation
	MeetingID string   `json:"meeting_id,omitempty"`
	Changes   []string `json:"changes,omitempty"` // for people
}

// The actions kept of a Server, and how much of each.
const (
	maxActions = 1000
	maxChanges = 20
	maxChange  = 160 // characters
)

// actions keeps the last actions of a Server.
type actions struct {
	mu    sync.Mutex
	count int // also of those no longer kept
	list  []action
}

func (a *actions) add(what action) {
	if more := len(what.Changes) - maxChanges; more > 0 {
		what.Changes = append(what.Changes[:maxChanges:maxChanges], fmt.Sprintf("and %d more", more))
	}
	for i, text := range what.Changes {
		what.Changes[i] = shorten(text)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	what.N = a.count
	a.list = append(a.list[max(0, len(a.list)+1-maxActions):], what)
}

// after returns the actions after the first n, and how many there were.
func (a *actions) after(n int) ([]action, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list[max(0, len(a.list)-(a.count-n)):]), a.count
}

func (a *actions) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count, a.list = 0, nil
}

func shorten(text string) string {
	if r := []rune(text); len(r) > maxChange {
		return string(r[:maxChange]) + "…"
	}
	return text
}

// did records an action that happened now.
func (s *Server) did(name, meetingID string, changes ...string) {
	s.actions.add(action{
		At: millisOf(time.Now()), After: int(s.journal.seq.Load()),
		Name: name, MeetingID: meetingID, Changes: changes,
	})
}

// statusOf returns a meeting's status, or "" if there is no such meeting.
func (s *Server) statusOf(meetingID string) minutes.Status {
	m, _ := s.engine.Meeting(meetingID)
	return m.Status
}

// summary describes a script in one line.
func (s Script) summary() string {
	whose := "all meetings"
	switch {
	case s.Title != "":
		whose = fmt.Sprintf("title %q", s.Title)
	case s.ExternalID != "":
		whose = fmt.Sprintf("external id %q", s.ExternalID)
	case s.MeetingID != "":
		whose = "this meeting"
	}
	var says []string
	for _, part := range []struct {
		set  bool
		text string
	}{
		{s.Outcome != "", "outcome " + string(s.Outcome)},
		{s.Hold != "", "hold " + string(s.Hold)},
		{s.Stages != (Stages{}), fmt.Sprintf("stages %v, %v, %v", s.Stages.Prepare, s.Stages.Transcribe, s.Stages.Write)},
		{s.Transcript != "", "transcript"},
		{s.Markdown != "" || s.HTML != "", "minutes"},
	} {
		if part.set {
			says = append(says, part.text)
		}
	}
	return whose + ": " + cmp.Or(strings.Join(says, ", "), "script removed")
}

// changes lists what differs between two states of an organisation. The
// secrets of keys are not in it.
func changes(before, after map[string]any) []string {
	list := differences("", before, after)
	if len(list) == 0 {
		list = []string{"no change"}
	}
	return list
}

// decoded returns o as decoded JSON. Later changes of o do not affect it.
func decoded(o Organisation) map[string]any {
	var fields map[string]any
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return nil
	}
	return fields
}

// differences compares two JSON values with the same path.
func differences(place string, before, after any) []string {
	if list, ok := before.([]any); ok {
		before = byName(list)
	}
	if list, ok := after.([]any); ok {
		after = byName(list)
	}
	a, isObject := before.(map[string]any)
	b, stillObject := after.(map[string]any)
	switch {
	case reflect.DeepEqual(before, after):
		return nil
	case strings.HasSuffix(place, ".secret"):
		return []string{place + " changed"}
	case isObject && stillObject:
		names := maps.Clone(a)
		maps.Copy(names, b)
		var list []string
		for _, name := range slices.Sorted(maps.Keys(names)) {
			list = append(list, differences(strings.TrimPrefix(place+"."+name, "."), a[name], b[name])...)
		}
		return list
	case isObject:
		return []string{place + " removed"}
	case stillObject:
		return []string{place + " added"}
	}
	return []string{fmt.Sprintf("%s: %s → %s", place, shown(before, after), shown(after, before))}
}

// shown is a value for people. JSON omits false, so the other value decides whether
// a missing one is false or not set.
func shown(value, other any) string {
	if _, isBool := other.(bool); isBool && value == nil {
		return "false"
	}
	if value == nil {
		return "not set"
	}
	text, _ := json.Marshal(value)
	return string(text)
}

// byName makes an object of a list: members and projects are named by their
// ids, terms by themselves, and keys by the member or integration behind them.
func byName(list []any) map[string]any {
	named := make(map[string]any, len(list))
	for i, element := range list {
		name := fmt.Sprint(i)
		if fields, ok := element.(map[string]any); ok {
			for _, field := range []string{"id", "term", "integration_id", "member_id"} {
				if id, ok := fields[field].(string); ok && id != "" {
					name = id
					break
				}
			}
		}
		for base, n := name, 2; named[name] != nil; n++ {
			name = fmt.Sprintf("%s (%d)", base, n)
		}
		named[name] = element
	}
	return named
}
