package minutestest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Always applies a fault to every request from the nth on, if it is [Match.Times].
const Always = -1

// Match selects the requests that get a fault. An empty field matches every request, and Nth counts
// only the requests that match. Operations are those of package minutes, such as
// minutes.OpMeetingsCreate and minutes.OpUpload. If your program works on several meetings at once,
// set Title or ExternalID, because otherwise the nth request differs from run to run.
type Match struct {
	Operation minutes.Operation `json:"operation,omitempty"`
	// Key is the secret of the API key. Uploads never match, because they carry none.
	Key string `json:"key,omitempty"`
	// MeetingID is the meeting in the path, uploads included.
	MeetingID string `json:"meeting_id,omitempty"`
	// ExternalID is that of the meeting in the path, of the one to create, or the one that a list
	// asks for.
	ExternalID string `json:"external_id,omitempty"`
	// Title is that of the meeting in the path, or of the one to create.
	Title string `json:"title,omitempty"`
	// Path is a pattern of path.Match, such as "/v1/meetings/*".
	Path string `json:"path,omitempty"`
	// Header has headers with their values, such as Expect: 100-continue, all of which the request has.
	Header map[string]string `json:"header,omitempty"`
	// Body is a part of the body, as it was sent. Uploads never match.
	Body string `json:"body,omitempty"`

	// Nth is the first matching request that gets the fault, from 1; 0 means 1.
	Nth int `json:"nth,omitzero"`
	// Times is how many requests get a fault; 0: as many as faults are given; Always: all that
	// follow.
	Times int `json:"times,omitzero"`
}

// check returns why [Server.Inject] rejects m and these faults. The error begins with the field, or
// with the kind of the fault.
func (m Match) check(faults []Fault) error {
	err := m.checkFields()
	if err != nil {
		return mistake.At("match", "%s", err)
	}
	if len(faults) == 0 {
		return errors.New("no fault given")
	}
	for _, f := range faults {
		err := f.check()
		if err != nil {
			return err
		}
		if f.beforeSending() != faults[0].beforeSending() {
			return errors.New("faults of the connection happen before a request is sent, " +
				"so they do not go together with other kinds; inject them by themselves")
		}
		err = m.suits(f)
		if err != nil {
			return mistake.Errorf("%s: %s", f.form.Kind.name(), err)
		}
	}
	return nil
}

func (m Match) checkFields() error {
	_, badPattern := path.Match(m.Path, "")
	ofMeetings := strings.HasPrefix(string(m.Operation), "meetings.") || m.Operation == minutes.OpUpload
	noneInPath := []minutes.Operation{minutes.OpMeetingsList, minutes.OpMeetingsCreate}
	switch {
	case m.Operation != "" && !isOperation(m.Operation):
		return noSuchOperation(m.Operation)
	case badPattern != nil:
		return mistake.At("path", "%q is not a pattern", m.Path)
	case m.Path != "" && m.Path[0] != '/':
		return mistake.At("path", "%q does not begin with a slash, so no path matches it", m.Path)
	case m.Nth < 0:
		return mistake.At("nth", "%d is negative; for all that follow, set %s, not %s, to %d",
			m.Nth, mistake.Field("times"), mistake.Field("nth"), Always)
	case m.Times < Always:
		return mistake.At("times", "%d is neither a number of times nor %d, for good", m.Times, Always)
	case m.Key != "" && m.Operation == minutes.OpUpload:
		return mistake.At("key", "an upload carries none, so no %s matches", nameOf(m.Operation))
	case m.Operation != "" && !ofMeetings && cmp.Or(m.MeetingID, m.ExternalID, m.Title) != "":
		return mistake.At("operation", "%s is about no meeting, so it matches none", nameOf(m.Operation))
	case m.MeetingID != "" && slices.Contains(noneInPath, m.Operation):
		return mistake.At("meeting_id", "%s has no meeting in its path, so it matches none", nameOf(m.Operation))
	case m.Title != "" && m.Operation == minutes.OpMeetingsList:
		return mistake.At("title", "%s asks for no title, so it matches none", nameOf(m.Operation))
	case m.Body != "" && m.Operation == minutes.OpUpload:
		return mistake.At("body", "that of a recording is not looked at, so no %s matches", nameOf(m.Operation))
	}
	for name := range m.Header {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return mistake.At("header", "Authorization holds the key; match that instead")
		}
	}
	return nil
}

// suits returns why f cannot happen to the requests that m selects.
func (m Match) suits(f Fault) error {
	kind := f.kind()
	anywhere := m.Operation == ""
	upload := m.Operation == minutes.OpUpload
	switch {
	case kind.only == toStorage && !upload && (!anywhere || kind.responds):
		return mistake.Errorf("it is a fault of storage; match %s", nameOf(minutes.OpUpload))
	case kind.only == toAPI && upload:
		return mistake.Errorf("it is not an error of storage; use %s", kindRefuseUpload.name())
	case kind.among != nil && !anywhere && !slices.Contains(kind.among, m.Operation):
		return mistake.Errorf("it changes what a read of meetings shows; match one of %s", namesOf(kind.among))
	case f.form.Kind == kindShowStatus && !anywhere && !slices.Contains(showStatuses, m.Operation):
		return mistake.Errorf("it changes the status of meetings in a response, but %s shows none; match one of %s",
			nameOf(m.Operation), namesOf(showStatuses))
	}
	return nil
}

// reads are the operations that read meetings.
var reads = []minutes.Operation{
	minutes.OpMeetingsList,
	minutes.OpMeetingsGet,
	minutes.OpMeetingsMinutes,
	minutes.OpMeetingsTranscript,
}

// showStatuses are the operations whose responses have meetings with their status.
var showStatuses = []minutes.Operation{
	minutes.OpMeetingsList,
	minutes.OpMeetingsCreate,
	minutes.OpMeetingsGet,
	minutes.OpMeetingsUpdate,
	minutes.OpMeetingsSetParticipants,
}

func isOperation(op minutes.Operation) bool {
	return op == minutes.OpUpload || route.Table.Of(string(op)) != nil
}

// nameOf returns what JSON and Go call an operation.
func nameOf(op minutes.Operation) mistake.Name { return mistake.Operation(string(op)) }

func namesOf(list []minutes.Operation) mistake.Name {
	var names []mistake.Name
	for _, op := range list {
		names = append(names, nameOf(op))
	}
	return mistake.List(", ", names...)
}

// noSuchOperation returns the error of an operation that does not exist.
func noSuchOperation(op minutes.Operation) error {
	var known []minutes.Operation
	for _, row := range route.Table {
		known = append(known, minutes.Operation(row.Operation))
	}
	return mistake.At("operation", "%q is not one of %s", op, namesOf(append(known, minutes.OpUpload)))
}

func (m Match) matches(x *exchange) bool {
	for _, field := range []struct{ want, got string }{
		{string(m.Operation), string(x.Operation)},
		{m.Key, x.key},
		{m.MeetingID, x.MeetingID},
		{m.ExternalID, x.names.ExternalID},
		{m.Title, x.names.Title},
	} {
		if field.want != "" && field.want != field.got {
			return false
		}
	}
	for name, want := range m.Header {
		if x.r.Header.Get(name) != want {
			return false
		}
	}
	if m.Body != "" && !bytes.Contains(x.body, []byte(m.Body)) {
		return false
	}
	ok, _ := path.Match(m.Path, x.Path)
	return ok || m.Path == ""
}

// String describes m as JSON, without its key.
func (m Match) String() string {
	m.Times = 0
	text, _ := json.Marshal(m.masked())
	return string(text)
}

func (m Match) masked() Match {
	if m.Key != "" {
		m.Key = masked
	}
	m.Header = maps.Clone(m.Header)
	for name := range m.Header {
		if holdsCredential(name) {
			m.Header[name] = masked
		}
	}
	return m
}

// Injection is what [Server.Inject] returns: use it to limit the faults, or to see how often they
// were applied.
type Injection struct {
	server *Server
	match  Match
	faults []Fault
	// began is when it was injected or its window began, by the service's clock.
	began time.Time
	// calledAt is where a test called Inject, such as "weekly_test.go:42: ".
	calledAt string

	// mu is that of all Injections of the Server. It guards the rest.
	mu *sync.Mutex
	// times is how many requests get a fault: Always, or more than 0.
	times    int
	optional bool
	stopped  bool
	// from and to are the window of time; zero: none.
	from, to time.Time
	seen     int
	applied  int
}

// Inject makes requests fail from now on. The first request that m selects gets the first fault,
// the next one the second, and so on; if m.Times exceeds the number of faults, they start over. A
// request gets one fault at most: if it is the turn of several injections, the one injected first
// is applied. The others count the request for Nth, and give their fault to the next matching
// request.
//
// With [NewServer], an injection that was applied fewer times than it says fails the test, unless
// it is [Injection.Optional]. With [Always], once is enough. An invalid Match or Fault fails the
// test at once.
func (s *Server) Inject(m Match, faults ...Fault) *Injection {
	s.reporter.Helper()
	i := &Injection{
		server: s,
		match:  m,
		faults: slices.Clone(faults),
		began:  s.engine.Now(),
		mu:     &s.injections.mu,
		times:  cmp.Or(m.Times, len(faults)),
	}
	err := m.check(faults)
	if err != nil {
		s.reporter.Mistake("Inject", err)
		return i
	}
	if _, file, line, ok := runtime.Caller(1); ok && s.inTest {
		i.calledAt = fmt.Sprintf("%s:%d: ", filepath.Base(file), line)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	s.injections.list = append(s.injections.list, i)
	return i
}

// Optional returns i. The test then passes even if i is applied fewer times than asked.
func (i *Injection) Optional() *Injection {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.optional = true
	return i
}

// During limits i to a window of time, counted from now, and returns i. It then applies to all
// requests in the window, unless the Match sets Times. If no request matches in the window, the
// test fails, as for any fault that was never applied; [Injection.Optional] permits it. A window
// without any time in it fails the test at once.
//
//	srv.Inject(minutestest.Match{}, minutestest.Reset()).During(time.Minute, 6*time.Minute) // an outage
func (i *Injection) During(from, to time.Duration) *Injection {
	i.server.reporter.Helper()
	if from < 0 || to <= from {
		i.server.reporter.Mistake("During", mistake.At("to", "no time is from %s to %s, counted from now", from, to))
		return i
	}
	now := time.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.began = i.server.engine.Now().Add(from)
	i.from = now.Add(from)
	i.to = now.Add(to)
	if i.match.Times == 0 {
		i.times = Always
	}
	return i
}

// Stop ends i, which then applies to no further request and cannot fail the test.
func (i *Injection) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
}

// Seen returns how many requests have matched, including those before the nth and those that got
// the fault of another injection. Requests outside the window, and after i is used up or stopped,
// do not count.
func (i *Injection) Seen() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen
}

// Applied returns how many requests i was applied to.
func (i *Injection) Applied() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.applied
}

// left reports whether i is still to be applied. The caller holds i.mu.
func (i *Injection) left() bool {
	return !i.stopped && (i.times == Always || i.applied < i.times)
}

// open reports whether now is in the window of i.
func (i *Injection) open(now time.Time) bool {
	return i.to.IsZero() || !now.Before(i.from) && now.Before(i.to)
}

func (i *Injection) beforeSending() bool { return i.faults[0].beforeSending() }

// selects reports whether a request matches. It does not if a fault of i cannot happen to it, such as
// an error of the API to an upload.
func (i *Injection) selects(x *exchange) bool {
	for _, f := range i.faults {
		kind := f.kind()
		isElsewhere := kind.only == toAPI && x.Operation == minutes.OpUpload
		if isElsewhere || kind.among != nil && !slices.Contains(kind.among, x.Operation) {
			return false
		}
	}
	return i.match.matches(x)
}

// next is the fault that the next request gets.
func (i *Injection) next() Fault { return i.faults[i.applied%len(i.faults)] }

// Unused returns the text of [Server.UnusedFaults] about i, or "" if i fails no test.
func (i *Injection) Unused() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.unused()
}

// unused is Unused for those who hold mu.
func (i *Injection) unused() string {
	if i.optional || !i.left() || i.times == Always && i.applied > 0 {
		return ""
	}
	asked := strconv.Itoa(i.times)
	if i.times == Always {
		asked = "at least 1"
	}
	return fmt.Sprintf("%sthe fault %q, injected into requests %s, was applied %s instead of %s, and %s matched",
		i.calledAt, i.next(), i.match, plural(i.applied, "time"), asked, plural(i.seen, "request"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// injections are those of a Server, in order.
type injections struct {
	mu   sync.Mutex
	list []*Injection
}

// waits reports whether an injection may still be applied: of faults before a request is sent, or
// of others.
func (all *injections) waits(beforeSending bool) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.ContainsFunc(all.list, func(i *Injection) bool {
		return i.left() && i.beforeSending() == beforeSending
	})
}

// UnusedFaults describes each injection that would fail the test given to [NewServer] if the test
// ended now, because it was applied fewer times than it says.
func (s *Server) UnusedFaults() (list []string) {
	s.injections.mu.Lock()
	defer s.injections.mu.Unlock()
	for _, i := range s.injections.list {
		if text := i.unused(); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// claim returns the fault for a request, if there is one, which no other request gets then. The
// client asks before it sends the request, the Server when the request has arrived.
func (s *Server) claim(x *exchange, beforeSending bool) (Fault, bool) {
	if !s.injections.waits(beforeSending) { // as in most tests, which then need not look the meeting up
		return Fault{}, false
	}
	if m, ok := s.engine.Meeting(x.MeetingID); ok {
		x.names.ExternalID = m.ExternalID
		x.names.Title = m.Title
	}
	now := time.Now()
	s.injections.mu.Lock()
	defer s.injections.mu.Unlock()
	var first *Injection
	for _, i := range s.injections.list {
		if i.beforeSending() != beforeSending || !i.left() || !i.open(now) || !i.selects(x) {
			continue
		}
		i.seen++
		if first == nil && i.seen >= i.match.Nth {
			first = i
		}
	}
	if first == nil {
		return Fault{}, false
	}
	fault := first.next()
	fault.since = first.began
	first.applied++
	return fault, true
}

// dialError returns what keeps the connection for r from being made, or nil.
func (s *Server) dialError(r *http.Request) error {
	if !s.injections.waits(true) {
		return nil
	}
	unsent := r.Clone(r.Context())
	unsent.Body = nil
	if r.GetBody != nil { // otherwise it can be read once only
		unsent.Body, _ = r.GetBody()
	}
	fault, ok := s.claim(s.arrived(unsent), true)
	if !ok {
		return nil
	}
	if !sleep(r.Context(), time.Duration(fault.form.Delay)) {
		return r.Context().Err()
	}
	return fault.kind().dialError(r.URL.Hostname())
}
