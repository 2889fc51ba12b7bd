package minutestest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
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
	maxChange  = 160 // characters
)

// actions keeps the last actions of a Server.
type actions struct {
	mu    sync.Mutex
	count int // also of those no longer kept
	list  []action
}

func (a *actions) add(what action) {
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

// changes lists the settings in which two states of an organisation differ. What is in a list is
// not shown, because it may be a secret.
func changes(before, after Organisation) []string {
	was, is := settings(before), settings(after)
	names := maps.Clone(was)
	maps.Copy(names, is)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		switch a, b := was[name], is[name]; {
		case reflect.DeepEqual(a, b):
		case reflect.ValueOf(names[name]).Kind() == reflect.Slice:
			list = append(list, name+" changed")
		default:
			list = append(list, fmt.Sprintf("%s: %s → %s", name, shown(a), shown(b)))
		}
	}
	if list == nil {
		list = []string{"no change"}
	}
	return list
}

// settings returns o as decoded JSON.
func settings(o Organisation) (fields map[string]any) {
	if text, err := json.Marshal(o); err == nil {
		_ = json.Unmarshal(text, &fields)
	}
	return fields
}

// shown is a setting for people. JSON omits what is false or empty.
func shown(value any) string {
	if value == nil {
		return "not set"
	}
	return fmt.Sprint(value)
}
