package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Source is what an Inspector shows. Nothing that it returns contains a secret, except the settings
// of organisations, whose keys the Inspector never shows.
type Source interface {
	Engine() *engine.Service
	Arrived() int                             // number of requests so far
	Requests(after int) (list []any, n int)   // those that ended after the first ones; n is the next after
	Violations(after int) (list []any, n int) // the same
	Faults() []any
}

// news is the data of the page: everything, or the changes.
type news struct {
	Now        time.Time       `json:"now"`
	Name       string          `json:"name,omitempty"`   // of the test
	Failed     bool            `json:"failed,omitempty"` // the test
	Total      int             `json:"total"`            // number of meetings
	Meetings   []world.Meeting `json:"meetings,omitempty"`
	Requests   []any           `json:"requests,omitempty"`
	Violations []any           `json:"violations,omitempty"`
	Actions    []action        `json:"actions,omitempty"`
	World      *worldNews      `json:"world,omitempty"`
}

// worldNews changes seldom. It is sent as a whole when it does.
type worldNews struct {
	world.World
	Faults  []any          `json:"faults,omitempty"`
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
		n.begun, kind = true, "state"
	}
	found.Now = s.Engine().Now()
	found.Meetings, found.Total, n.changes = s.Engine().Changes(n.changes, 10_000) // as many as the page shows
	for i := range found.Meetings {                                                // what only a click shows
		m := &found.Meetings[i]
		m.Transcript, m.Markdown, m.HTML, m.Audio = "", "", "", nil
	}
	found.Requests, n.ended = s.Requests(n.ended)
	// After the requests, since a violation is recorded before its request.
	found.Violations, n.violations = s.Violations(n.violations)
	found.Actions, n.actions = i.actions.Since(n.actions)
	now := worldOf(s)
	if text, err := json.Marshal(now); err == nil && !bytes.Equal(text, n.world) {
		n.world, found.World = text, now
	}
	changed := len(found.Meetings)+len(found.Requests)+len(found.Violations)+len(found.Actions) > 0 || found.World != nil
	if kind == "" && changed {
		kind = "news"
	}
	return found, kind
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
	At        time.Time `json:"at"`
	After     int       `json:"after"` // seq of the last request that had arrived
	Name      string    `json:"name"`  // of the method, and of the organisation
	MeetingID string    `json:"meeting_id,omitempty"`
	Changes   []string  `json:"changes,omitempty"` // for people
}

// Did records an action that happened now: the name of the method, the meeting if it is about one,
// and what changed, for people.
func (i *Inspector) Did(name, meetingID string, changes ...string) {
	for n, text := range changes {
		changes[n] = fmt.Sprintf("%.160s", text) // as much as the page shows
	}
	i.actions.Add(action{At: i.source.Engine().Now(), After: i.source.Arrived(), Name: name, MeetingID: meetingID, Changes: changes})
}
