package minutestest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/inspector"
)

// Inspector returns the page of [Server.Report], live: what happens is shown as
// it happens. It is for a server of one's own, while a program runs:
//
//	go http.ListenAndServe("127.0.0.1:8081", srv.Inspector())
//
// It shows all meetings to everybody who can reach it, so it belongs on a
// loopback address. The program minutes-fake has it at its control address,
// behind checks that keep out the pages of other sites. Sixteen may watch at
// once; a seventeenth is answered with 503.
func (s *Server) Inspector() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", inspector.Serve)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /requests/{seq}", func(w http.ResponseWriter, r *http.Request) {
		seq, _ := strconv.ParseUint(r.PathValue("seq"), 10, 63)
		e, ok := s.journal.find(seq)
		detail(w, e.request, ok)
	})
	mux.HandleFunc("GET /meetings/{id}", func(w http.ResponseWriter, r *http.Request) {
		m, ok := s.Meeting(r.PathValue("id"))
		detail(w, func() Meeting { return m }, ok)
	})
	return mux
}

func detail[T any](w http.ResponseWriter, of func() T, ok bool) {
	if !ok {
		http.Error(w, "not kept", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(of())
}

const (
	maxStreams = 16
	shownLate  = 50 * time.Millisecond // at most, unless that took much of the machine
	keepAlive  = 15 * time.Second      // between two events
	stuck      = 10 * time.Second      // a reader that takes no event for so long is given up
)

// events is the stream of server-sent events that the page lives on: one
// "state" with all there is, at first and after a Reset, and then a "news" with
// what is new. It costs nothing while nobody looks: it asks, and nobody tells.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	defer s.streams.Add(-1)
	if s.streams.Add(1) > maxStreams {
		http.Error(w, "too many are watching", http.StatusServiceUnavailable)
		return
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Time{}) // there is nothing more to read
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodHead {
		return
	}
	var (
		reader newsreader
		told   time.Time
	)
	for {
		began := time.Now()
		found, kind := reader.read(s)
		// A twentieth of one processor is enough for a page.
		next := max(shownLate, 20*time.Since(began))
		if kind != "" || time.Since(told) >= keepAlive {
			_ = conn.SetWriteDeadline(time.Now().Add(stuck))
			if writeEvent(w, cmp.Or(kind, "news"), found) != nil || conn.Flush() != nil {
				return
			}
			told = time.Now()
		}
		if !pause(r.Context(), next) {
			return
		}
	}
}

func writeEvent(w io.Writer, kind string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, text)
	return err
}

// millis is an instant as JavaScript counts: in milliseconds since 1970.
type millis float64

func millisOf(t time.Time) millis { return millis(t.UnixMicro()) / 1000 }

// news is what the page shows at a glance: all, or what is new.
type news struct {
	Now        millis        `json:"now"`
	Name       string        `json:"name,omitempty"` // of the test
	Total      int           `json:"total"`          // meetings there are
	Meetings   []meetingNews `json:"meetings,omitempty"`
	Requests   []requestNews `json:"requests,omitempty"`
	Violations []Violation   `json:"violations,omitempty"`
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
	Lost      bool              `json:"lost,omitempty"` // the client has not seen the whole reply
}

// worldNews is what changes seldom. It is told as a whole when it does.
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
	Refused           string    `json:"refused,omitempty"` // why, where all its keys are
	Callers           []keyNews `json:"callers,omitempty"`
}

// keyNews is a key without its secret.
type keyNews struct {
	ID      string `json:"id"` // of the member or integration behind it
	Name    string `json:"name"`
	Revoked bool   `json:"revoked,omitempty"`
}

type faultNews struct {
	Match  Match   `json:"match,omitzero"`
	Faults []Fault `json:"faults"`
	Seen   int     `json:"seen"`
	Struck int     `json:"struck"`           // times it was applied
	Unused string  `json:"unused,omitempty"` // why it fails a test that ends now
}

// What the page shows at most.
const (
	maxMeetings = 10_000
	maxParts    = 200 // organisations, keys of one, faults, scripts
)

// newsreader knows what has been told. The zero newsreader knows nothing.
type newsreader struct {
	begun      bool
	resets     uint64
	changes    uint64
	answered   uint64
	violations int
	world      []byte
}

// read returns what is new: a "state" with all there is, "news", or "" for
// none.
func (n *newsreader) read(s *Server) (found news, kind string) {
	if resets := s.resets.Load(); !n.begun || n.resets != resets {
		*n = newsreader{begun: true, resets: resets}
		kind = "state"
	}
	found.Now = millisOf(time.Now())
	var lines []engine.MeetingLine
	lines, found.Total, n.changes = s.engine.Changes(n.changes, maxMeetings)
	for i := range lines {
		found.Meetings = append(found.Meetings, newsOfMeeting(&lines[i]))
	}
	var entries []entry
	entries, n.answered = s.journal.answered(n.answered)
	for i := range entries {
		found.Requests = append(found.Requests, entries[i].news())
	}
	// After the requests: a violation is there before its request.
	found.Violations = s.audit.after(n.violations)
	n.violations += len(found.Violations)
	world := s.worldNews()
	if text, err := json.Marshal(world); err == nil && !bytes.Equal(text, n.world) {
		n.world, found.World = text, world
	}
	if kind == "" && len(found.Meetings)+len(found.Requests)+len(found.Violations) > 0 || kind == "" && found.World != nil {
		kind = "news"
	}
	return found, kind
}

func newsOfMeeting(l *engine.MeetingLine) meetingNews {
	m := meetingNews{ID: l.ID, Organisation: l.Organisation, Creator: l.Creator, Title: l.Title, ExternalID: l.ExternalID, Status: l.Status, Held: l.Held}
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
			w.Organisations = append(w.Organisations, o.news())
		}
	}
	for _, sc := range s.engine.Scripts(maxParts) {
		script := Script{
			MeetingID: sc.MeetingID, ExternalID: sc.ExternalID, Title: sc.Title,
			Outcome: sc.Outcome, Transcript: sc.Transcript, Markdown: sc.Minutes.Markdown, HTML: sc.Minutes.HTML, Hold: sc.Hold,
		}
		if sc.Stages != nil {
			script.Stages = Stages{sc.Stages.Prepare, sc.Stages.Transcribe, sc.Stages.Write}
		}
		w.Scripts = append(w.Scripts, script)
	}
	return w
}

func (o *Organisation) news() organisationNews {
	n := organisationNews{ID: o.ID, Name: o.Name, Credits: *o.Credits, TranscribeSeconds: *o.TranscribeSeconds, NextResetAt: o.NextResetAt}
	switch {
	case o.Suspended:
		n.Refused = "suspended"
	case o.Expired:
		n.Refused = "expired"
	case o.APIDisabled:
		n.Refused = "no API access"
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

// news tells of the last injections.
func (f *faults) news() []faultNews {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []faultNews
	for _, i := range f.list[max(0, len(f.list)-maxParts):] {
		n := faultNews{Match: i.match, Faults: i.what, Seen: i.seen, Struck: i.applied, Unused: i.unused()}
		if n.Match.Key != "" {
			n.Match.Key = masked
		}
		list = append(list, n)
	}
	return list
}
