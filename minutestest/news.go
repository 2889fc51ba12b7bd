package minutestest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// millis is an instant as JavaScript counts: in milliseconds since 1970.
type millis float64

func millisOf(t time.Time) millis { return millis(t.UnixMicro()) / 1000 }

// news is the data of the page: everything, or the changes.
type news struct {
	Now        millis        `json:"now"`
	Name       string        `json:"name,omitempty"`   // of the test
	Failed     bool          `json:"failed,omitempty"` // the test
	Total      int           `json:"total"`            // number of meetings
	Meetings   []meetingNews `json:"meetings,omitempty"`
	Requests   []requestNews `json:"requests,omitempty"`
	Violations []Violation   `json:"violations,omitempty"`
	Actions    []action      `json:"actions,omitempty"`
	World      *worldNews    `json:"world,omitempty"`
}

type meetingNews struct {
	ID           string         `json:"id"`
	Organisation string         `json:"organisation"`
	Creator      string         `json:"creator"`
	Title        string         `json:"title"`
	ExternalID   string         `json:"external_id,omitempty"`
	Status       minutes.Status `json:"status"`
	Held         bool           `json:"held,omitempty"`
	Reason       string         `json:"reason,omitempty"` // why the meeting failed
	History      []stateNews    `json:"history"`
}

type stateNews struct {
	Status minutes.Status `json:"status"`
	At     millis         `json:"at"`
}

type requestNews struct {
	Seq       int               `json:"seq"`
	At        millis            `json:"at"`
	Took      millis            `json:"took"`
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

// worldNews changes seldom. It is sent as a whole when it does.
type worldNews struct {
	Organisations []organisationNews `json:"organisations"`
	Faults        []faultNews        `json:"faults,omitempty"`
	Scripts       []Script           `json:"scripts,omitempty"`
}

type organisationNews struct {
	ID                string    `json:"id"`
	Name              string    `json:"name,omitempty"`
	Credits           int       `json:"credits"`
	TranscribeSeconds int       `json:"transcribe_seconds"`
	NextResetAt       string    `json:"next_reset_at,omitempty"`
	Rejected          string    `json:"rejected,omitempty"` // why all its keys are rejected
	Callers           []keyNews `json:"callers,omitempty"`
}

// keyNews is a key without its secret.
type keyNews struct {
	ID      string `json:"id"` // of the member or integration behind it
	Name    string `json:"name"`
	Revoked bool   `json:"revoked,omitempty"`
}

type faultNews struct {
	Match   Match   `json:"match,omitzero"`
	Faults  []Fault `json:"faults"`
	Seen    int     `json:"seen"`
	Applied int     `json:"applied"`
	Unused  string  `json:"unused,omitempty"` // why it fails a test that ends now
}

// What the page shows at most.
const (
	maxMeetings = 10_000
	maxParts    = 200 // organisations, keys of one, faults, scripts
)

// newsreader remembers what it has returned. The zero value has returned nothing.
type newsreader struct {
	begun      bool
	resets     uint64
	changes    uint64
	ended      uint64
	violations int
	actions    int
	world      []byte
}

// read returns the changes since the last read. Kind is "state" if it returns
// everything, "news" for changes, and "" if there are none.
func (n *newsreader) read(s *Server) (found news, kind string) {
	if resets := s.journal.resets.Load(); !n.begun || n.resets != resets {
		*n = newsreader{begun: true, resets: resets}
		kind = "state"
	}
	found.Now = millisOf(time.Now())
	var lines []Meeting
	lines, found.Total, n.changes = s.engine.Changes(n.changes, maxMeetings)
	for i := range lines {
		found.Meetings = append(found.Meetings, newsOfMeeting(&lines[i]))
	}
	var entries []entry
	entries, n.ended = s.journal.ended(n.ended)
	for i := range entries {
		found.Requests = append(found.Requests, entries[i].news())
	}
	// After the requests, since a violation is recorded before its request.
	found.Violations = s.audit.after(n.violations)
	n.violations += len(found.Violations)
	found.Actions, n.actions = s.actions.after(n.actions)
	world := s.worldNews()
	if text, err := json.Marshal(world); err == nil && !bytes.Equal(text, n.world) {
		n.world, found.World = text, world
	}
	changed := len(found.Meetings)+len(found.Requests)+len(found.Violations)+len(found.Actions) > 0 || found.World != nil
	if kind == "" && changed {
		kind = "news"
	}
	return found, kind
}

func newsOfMeeting(l *Meeting) meetingNews {
	m := meetingNews{ID: l.ID, Organisation: l.Organisation, Creator: l.Creator, Title: l.Title, ExternalID: l.ExternalID, Status: l.Status, Held: l.Held, Reason: l.Reason}
	for _, t := range l.History {
		m.History = append(m.History, stateNews{t.Status, millisOf(t.At)})
	}
	return m
}

func (e *entry) news() requestNews {
	return requestNews{
		Seq: int(e.seq), At: millisOf(e.at), Took: millis(e.took) / millis(time.Millisecond),
		Operation: minutes.Operation(e.Operation), MeetingID: e.hide(e.MeetingID), Caller: e.Caller,
		Method: e.hide(e.method), Path: e.hide(e.url.Path), Bytes: e.StorageBytes,
		Status: e.Status, Code: cmp.Or(e.StorageCode, string(e.Code)), Fault: e.fault, Lost: e.lost,
	}
}

func (s *Server) worldNews() *worldNews {
	w := &worldNews{Organisations: []organisationNews{}, Faults: s.faults.news()}
	for _, begun := range s.world.Organisations[:min(len(s.world.Organisations), maxParts)] {
		if o, ok := s.Organisation(begun.ID); ok {
			w.Organisations = append(w.Organisations, newsOfOrganisation(&o))
		}
	}
	scripts := s.engine.Scripts()
	w.Scripts = scripts[:min(len(scripts), maxParts)]
	return w
}

func newsOfOrganisation(o *Organisation) organisationNews {
	n := organisationNews{ID: o.ID, Name: o.Name, Credits: *o.Credits, TranscribeSeconds: *o.TranscribeSeconds, NextResetAt: o.NextResetAt}
	switch {
	case o.Suspended:
		n.Rejected = "suspended"
	case o.Expired:
		n.Rejected = "expired"
	case o.APIDisabled:
		n.Rejected = "no API access"
	}
	for _, k := range o.Keys[:min(len(o.Keys), maxParts)] {
		who := keyNews{ID: cmp.Or(k.IntegrationID, k.MemberID), Revoked: k.Revoked}
		if i := o.Integration(k.IntegrationID); i != nil {
			who.Name = i.Name
		} else if m := o.Member(k.MemberID); m != nil {
			who.Name = m.Name
		}
		n.Callers = append(n.Callers, who)
	}
	return n
}

// news returns the last injections.
func (f *faults) news() []faultNews {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []faultNews
	for _, i := range f.list[max(0, len(f.list)-maxParts):] {
		n := faultNews{Match: i.match, Faults: i.what, Seen: i.seen, Applied: i.applied, Unused: i.unused()}
		if n.Match.Key != "" {
			n.Match.Key = masked
		}
		list = append(list, n)
	}
	return list
}
