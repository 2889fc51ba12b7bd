package inspector

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// action is a call of the test or program that changed the service: Script, Update, Advance or
// Release. The inspector shows it beside the requests.
type action struct {
	N         int      `json:"n"` // from 1
	At        Millis   `json:"at"`
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

// actions keeps the last actions of a service.
type actions struct {
	mu    sync.Mutex
	count int // also of those no longer kept
	list  []action
}

func (a *actions) add(what action) {
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

// Did records an action that happened now: the name of the method, the meeting if it is about one,
// and what changed, for people.
func (i *Inspector) Did(name, meetingID string, changes ...string) {
	for n, text := range changes {
		changes[n] = fmt.Sprintf("%.*s", maxChange, text)
	}
	i.actions.add(action{At: MillisOf(i.source.Engine().Now()), After: i.source.Arrived(), Name: name, MeetingID: meetingID, Changes: changes})
}

// Changes names the settings in which two states of an organisation differ. It shows no value,
// which may be a secret.
func Changes(before, after world.Organisation) string {
	var names []string
	a, b := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range a.NumField() {
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "nothing") + " changed"
}
