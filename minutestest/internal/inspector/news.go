package inspector

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Source is what an Inspector shows. Nothing that it returns contains a secret, except the settings
// of organisations, whose keys the Inspector never shows.
type Source interface {
	Engine() *engine.Service
	Resets() uint64
	Arrived() int                                         // number of requests so far
	RequestsSince(n uint64) (list []Request, next uint64) // those that ended after the first n
	Request(seq int) (full any, ok bool)
	ViolationsSince(n int) []any
	Faults() []Fault
}

// Millis is an instant, or a duration, as JavaScript counts: in milliseconds, since 1970.
type Millis float64

// MillisOf returns t as Millis.
func MillisOf(t time.Time) Millis { return Millis(t.UnixMicro()) / 1000 }

// news is the data of the page: everything, or the changes.
type news struct {
	Now        Millis     `json:"now"`
	Name       string     `json:"name,omitempty"`   // of the test
	Failed     bool       `json:"failed,omitempty"` // the test
	Total      int        `json:"total"`            // number of meetings
	Meetings   []meeting  `json:"meetings,omitempty"`
	Requests   []Request  `json:"requests,omitempty"`
	Violations []any      `json:"violations,omitempty"`
	Actions    []action   `json:"actions,omitempty"`
	World      *worldNews `json:"world,omitempty"`
}

type meeting struct {
	ID           string         `json:"id"`
	Organisation string         `json:"organisation"`
	Creator      string         `json:"creator"`
	Title        string         `json:"title"`
	ExternalID   string         `json:"external_id,omitempty"`
	Status       minutes.Status `json:"status"`
	Held         bool           `json:"held,omitempty"`
	Reason       string         `json:"reason,omitempty"` // why the meeting failed
	History      []transition   `json:"history"`
}

type transition struct {
	Status minutes.Status `json:"status"`
	At     Millis         `json:"at"`
}

// Request is a line of the page's list.
type Request struct {
	Seq       int               `json:"seq"`
	At        Millis            `json:"at"`
	Took      Millis            `json:"took"`
	Operation minutes.Operation `json:"operation,omitempty"`
	MeetingID string            `json:"meeting_id,omitempty"`
	Caller    string            `json:"caller,omitempty"`
	Method    string            `json:"method"`
	Path      string            `json:"path"`
	Bytes     int64             `json:"bytes,omitempty"`
	Status    int               `json:"status,omitempty"`
	Code      string            `json:"code,omitempty"`
	Fault     string            `json:"fault,omitempty"`
	Lost      bool              `json:"lost,omitempty"` // the client did not get the whole response
}

// Fault is an injected fault, as the page shows it.
type Fault struct {
	Match   any    `json:"match"`
	Faults  any    `json:"faults"`
	Seen    int    `json:"seen"`
	Applied int    `json:"applied"`
	Unused  string `json:"unused,omitempty"` // why it fails a test that ends now
}

// worldNews changes seldom. It is sent as a whole when it does.
type worldNews struct {
	Organisations []organisation `json:"organisations"`
	Faults        []Fault        `json:"faults,omitempty"`
	Scripts       []world.Script `json:"scripts,omitempty"`
}

type organisation struct {
	ID                string `json:"id"`
	Name              string `json:"name,omitempty"`
	Credits           int    `json:"credits"`
	TranscribeSeconds int    `json:"transcribe_seconds"`
	NextResetAt       string `json:"next_reset_at,omitempty"`
	Rejected          string `json:"rejected,omitempty"` // why all its keys are rejected
	Callers           []key  `json:"callers,omitempty"`
}

// key is a key without its secret.
type key struct {
	ID      string `json:"id"` // of the member or integration behind it
	Name    string `json:"name"`
	Revoked bool   `json:"revoked,omitempty"`
}

// maxMeetings is how many meetings the page shows.
const maxMeetings = 10_000

// reader remembers what it has returned. The zero value has returned nothing.
type reader struct {
	begun      bool
	resets     uint64
	changes    uint64
	ended      uint64
	violations int
	actions    int
	world      []byte
}

// read returns the changes since the last read. Kind is "state" if it returns everything, "news"
// for changes, and "" if there are none.
func (n *reader) read(i *Inspector) (found news, kind string) {
	s := i.source
	if resets := s.Resets(); !n.begun || n.resets != resets {
		*n = reader{begun: true, resets: resets}
		kind = "state"
	}
	found.Now = MillisOf(s.Engine().Now())
	var meetings []world.Meeting
	meetings, found.Total, n.changes = s.Engine().Changes(n.changes, maxMeetings)
	for i := range meetings {
		found.Meetings = append(found.Meetings, lineOf(&meetings[i]))
	}
	found.Requests, n.ended = s.RequestsSince(n.ended)
	// After the requests, since a violation is recorded before its request.
	found.Violations = s.ViolationsSince(n.violations)
	n.violations += len(found.Violations)
	found.Actions, n.actions = i.actions.after(n.actions)
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

func lineOf(m *world.Meeting) meeting {
	line := meeting{ID: m.ID, Organisation: m.Organisation, Creator: m.Creator, Title: m.Title, ExternalID: m.ExternalID, Status: m.Status, Held: m.Held, Reason: m.Reason}
	for _, t := range m.History {
		line.History = append(line.History, transition{t.Status, MillisOf(t.At)})
	}
	return line
}

func worldOf(s Source) *worldNews {
	w := &worldNews{Organisations: []organisation{}, Faults: s.Faults(), Scripts: s.Engine().Scripts()}
	all := s.Engine().World().Organisations
	for i := range all {
		w.Organisations = append(w.Organisations, organisationOf(&all[i]))
	}
	return w
}

func organisationOf(o *world.Organisation) organisation {
	n := organisation{ID: o.ID, Name: o.Name, Credits: *o.Credits, TranscribeSeconds: *o.TranscribeSeconds, NextResetAt: o.NextResetAt}
	switch {
	case o.Suspended:
		n.Rejected = "suspended"
	case o.Expired:
		n.Rejected = "expired"
	case o.APIDisabled:
		n.Rejected = "no API access"
	}
	for _, k := range o.Keys {
		who := key{ID: cmp.Or(k.IntegrationID, k.MemberID), Revoked: k.Revoked}
		if i := o.Integration(k.IntegrationID); i != nil {
			who.Name = i.Name
		} else if m := o.Member(k.MemberID); m != nil {
			who.Name = m.Name
		}
		n.Callers = append(n.Callers, who)
	}
	return n
}
