package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Source is what an Inspector shows. Nothing that it returns contains a secret, except the settings
// of organisations, whose keys the Inspector never shows.
type Source interface {
	Engine() *engine.Service
	// Arrived is the number of requests so far.
	Arrived() int
	// Requests returns those that ended after the first ones. Pass n as after in the next call.
	Requests(after int) (list []world.Request, n int)
	// Violations does the same.
	Violations(after int) (list []world.Violation, n int)
	Faults() []Fault
}

// Fault is an injected fault, and how often it was applied.
type Fault struct {
	// Match is a minutestest.Match. That package imports this one, so its types cannot be named
	// here.
	Match any `json:"match"`
	// Faults is a list of minutestest.Fault.
	Faults  any `json:"faults"`
	Seen    int `json:"seen"`
	Applied int `json:"applied"`
	// Unused says why the fault would fail a test now; "": it would not.
	Unused string `json:"unused"`
}

// Test is the test that a report is about.
type Test struct {
	Name   string `json:"name,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

// news is the data of the page: everything, or the changes.
type news struct {
	Now time.Time `json:"now"`
	Test
	// Total is the number of meetings.
	Total int `json:"total"`
	// Ended is the number of requests that have ended, of which the page keeps the newest.
	Ended      int               `json:"ended"`
	Meetings   []world.Meeting   `json:"meetings,omitempty"`
	Requests   []world.Request   `json:"requests,omitempty"`
	Violations []world.Violation `json:"violations,omitempty"`
	Actions    []action          `json:"actions,omitempty"`
	World      *worldNews        `json:"world,omitempty"`
}

// worldNews changes seldom. It is sent as a whole when it does.
type worldNews struct {
	world.World
	Faults  []Fault        `json:"faults,omitempty"`
	Scripts []world.Script `json:"scripts,omitempty"`
}

// reader remembers what it has returned. The zero value has returned nothing.
type reader struct {
	begun      bool
	changes    uint64
	ended      int
	violations int
	actions    int
	world      []byte
}

// read returns the changes since the last read. Kind is "state" if it returns everything, "news"
// for changes, and "" if there are none.
func (n *reader) read(i *Inspector) (found news, kind string) {
	s := i.source
	if !n.begun {
		n.begun = true
		kind = "state"
	}
	found.Now = s.Engine().Now()
	found.Meetings, found.Total, n.changes = s.Engine().Changes(n.changes, mostMeetings)
	for i := range found.Meetings {
		shorten(&found.Meetings[i])
	}
	found.Requests, n.ended = s.Requests(n.ended)
	found.Ended = n.ended
	// After the requests, because the audit sees a request before the journal does.
	found.Violations, n.violations = s.Violations(n.violations)
	found.Actions, n.actions = i.actions.Since(n.actions)
	now := worldOf(s)
	text, err := json.Marshal(now)
	if err == nil && !bytes.Equal(text, n.world) {
		n.world = text
		found.World = now
	}
	changes := len(found.Meetings) + len(found.Requests) + len(found.Violations) + len(found.Actions)
	if kind == "" && (changes > 0 || found.World != nil) {
		kind = "news"
	}
	return found, kind
}

// mostMeetings is how many the page shows.
const mostMeetings = 10_000

// shorten removes what only a click shows.
func shorten(m *world.Meeting) {
	m.Transcript = ""
	m.Markdown = ""
	m.HTML = ""
	m.Audio = nil
}

// worldOf returns the settings without the secrets of keys.
func worldOf(s Source) *worldNews {
	w := &worldNews{s.Engine().World(), s.Faults(), s.Engine().Scripts()}
	for i := range w.Organisations {
		for j := range w.Organisations[i].Keys {
			w.Organisations[i].Keys[j].Secret = ""
		}
	}
	return w
}

// action is a call of the test or program that changed the service: Script, Update, Advance or
// Release. The inspector shows it beside the requests.
type action struct {
	At time.Time `json:"at"`
	// After is the seq of the last request that had arrived.
	After int `json:"after"`
	// Name is that of the method, and of the organisation.
	Name      string `json:"name"`
	MeetingID string `json:"meeting_id,omitempty"`
	// Changes are for people.
	Changes []string `json:"changes,omitempty"`
}

// Did notes an action that happened now: the name of the method, the meeting if it is about one,
// and what changed, for people.
func (i *Inspector) Did(name, meetingID string, changes ...string) {
	for n, text := range changes {
		changes[n] = fmt.Sprintf("%.160s", text) // as much as the page shows
	}
	i.actions.Add(action{
		At:        i.source.Engine().Now(),
		After:     i.source.Arrived(),
		Name:      name,
		MeetingID: meetingID,
		Changes:   changes,
	})
}
