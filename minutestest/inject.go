package minutestest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Always, as [Match.Times], applies a fault to every request from the nth on.
const Always = -1

// Match selects the requests that get a fault. An empty field matches every request, and Nth counts only
// the requests that match. Operations are those of package minutes, such as minutes.OpMeetingsCreate and
// minutes.OpUpload. If your program works on several meetings at once, set Title or ExternalID, because
// otherwise the nth request differs from run to run.
type Match struct {
	Operation  minutes.Operation `json:"operation,omitempty"`
	Key        string            `json:"key,omitempty"`         // the secret of the API key; uploads never match, because they carry none
	MeetingID  string            `json:"meeting_id,omitempty"`  // in the path, uploads included
	ExternalID string            `json:"external_id,omitempty"` // of the meeting in the path, of the one to create, or that a list asks for
	Title      string            `json:"title,omitempty"`       // of the meeting in the path, or of the one to create
	Path       string            `json:"path,omitempty"`        // a pattern of path.Match: "/v1/meetings/*"

	Nth   int `json:"nth,omitempty"`   // the first matching request that gets the fault, from 1; 0 means 1
	Times int `json:"times,omitempty"` // how many requests get a fault; 0: as many as faults are given; Always: all that follow
}

// Validate returns why [Server.Inject] would reject m or these faults, for example because the API has
// no such operation. The error names the invalid field: "match: operation: …", "fault: code: …".
func (m Match) Validate(what ...Fault) error {
	if route.Table.Of(string(m.Operation)) == nil && m.Operation != "" && m.Operation != minutes.OpUpload {
		return fmt.Errorf("match: operation: %q is not one of %s", m.Operation, operations())
	}
	if _, err := path.Match(m.Path, ""); err != nil {
		return fmt.Errorf("match: path: %q is no pattern", m.Path)
	}
	if m.Nth < 0 {
		return fmt.Errorf("match: nth: %d is negative; for all that follow, set times, not nth, to %d", m.Nth, Always)
	}
	if m.Times < Always {
		return fmt.Errorf("match: times: %d is neither a number of times nor %d, for good", m.Times, Always)
	}
	for _, fault := range what {
		if fault.is(clientSide) != what[0].is(clientSide) {
			return errors.New("fault: kind: faults of the connection happen before a request is sent, so they do not go together with other kinds; inject them by themselves")
		}
		if err := fault.check(); err != nil {
			return err
		}
		switch kind := fault.form.Kind; {
		case fault.is(ofStorage) && m.Operation != minutes.OpUpload && (m.Operation != "" || kind == kindRefuseUpload):
			return fmt.Errorf("fault: kind: %s is a fault of storage; match %s", kind, minutes.OpUpload)
		case kind == kindRefuse && m.Operation == minutes.OpUpload:
			return fmt.Errorf("fault: kind: %s is not an error of storage; use %s", kind, kindRefuseUpload)
		case kind == kindShowStatus && m.Operation != "" && !strings.HasPrefix(string(m.Operation), "meetings."):
			return fmt.Errorf("fault: kind: %s changes responses with meetings, but %s has none", kind, m.Operation)
		}
	}
	return nil
}

func operations() string {
	var list []string
	for _, row := range route.Table {
		list = append(list, row.Operation)
	}
	return strings.Join(append(list, string(minutes.OpUpload)), ", ")
}

func (m Match) matches(e *entry) bool {
	for _, field := range []struct{ want, got string }{
		{string(m.Operation), string(e.Operation)}, {m.Key, e.key}, {m.MeetingID, e.MeetingID},
		{m.ExternalID, e.externalID}, {m.Title, e.title},
	} {
		if field.want != "" && field.want != field.got {
			return false
		}
	}
	ok, _ := path.Match(m.Path, e.Path)
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
	return m
}

// Injection is what [Server.Inject] returns: use it to limit the faults, or to see how often they were
// applied.
type Injection struct {
	faults *faults
	match  Match
	what   []Fault
	times  int    // Always or more than 0
	line   string // of the call of Inject in a test, such as "weekly_test.go:42: "

	// Guarded by faults.mu.
	optional      bool
	stopped       bool
	from, to      time.Time // zero: no window
	seen, applied int
}

// Inject makes requests fail from now on. The first request that m selects gets the first fault, the
// next one the second, and so on; if m.Times exceeds the number of faults, they start over. A request
// gets one fault at most, so if several injections match, the earliest is applied and the others wait
// for the next request. They still count the request for their Nth.
//
// With [NewServer], an injection that was applied fewer times than it says fails the test, unless it is
// [Injection.Optional]. With [Always], once is enough. An invalid Match or Fault fails the test at once.
func (s *Server) Inject(m Match, what ...Fault) *Injection {
	s.helper()
	i := &Injection{faults: &s.faults, match: m, what: slices.Clone(what), times: cmp.Or(m.Times, len(what))}
	err := m.Validate(what...)
	if err == nil && len(what) == 0 {
		err = errors.New("no fault given")
	}
	if err != nil {
		s.fail("Inject", err)
		return i
	}
	if _, file, line, ok := runtime.Caller(1); ok && s.inTest {
		i.line = fmt.Sprintf("%s:%d: ", filepath.Base(file), line)
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = append(s.faults.list, i)
	return i
}

// Optional lets the test pass even if i is applied too seldom, and returns i.
func (i *Injection) Optional() *Injection {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.optional = true
	return i
}

// During limits i to a window of time, counted from now, and returns i. It then applies to all requests
// in the window, unless the Match sets Times. If no request matches in the window, the test fails, as
// for any fault that was never applied; [Injection.Optional] permits it.
//
//	srv.Inject(minutestest.Match{}, minutestest.Reset()).During(time.Minute, 6*time.Minute) // an outage
func (i *Injection) During(from, to time.Duration) *Injection {
	now := time.Now()
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.from, i.to = now.Add(from), now.Add(to)
	if i.match.Times == 0 {
		i.times = Always
	}
	return i
}

// Stop ends i, which then applies to no further request and cannot fail the test.
func (i *Injection) Stop() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.stopped, i.optional = true, true
}

// Seen returns how many requests have matched, including those before the nth and those that got the
// fault of another injection. It no longer counts once i is used up or stopped, or outside its window.
func (i *Injection) Seen() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.seen
}

// Applied returns how many requests i was applied to.
func (i *Injection) Applied() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.applied
}

// left reports whether i is still to be applied. The caller holds faults.mu.
func (i *Injection) left() bool {
	return !i.stopped && (i.times == Always || i.applied < i.times)
}

// open reports whether now is in the window of i.
func (i *Injection) open(now time.Time) bool {
	return i.to.IsZero() || !now.Before(i.from) && now.Before(i.to)
}

func (i *Injection) clientSide() bool { return i.what[0].is(clientSide) }

// rejects reports whether a fault of i is a response of the API, which storage never sends.
func (i *Injection) rejects() bool {
	return slices.ContainsFunc(i.what, func(f Fault) bool { return f.form.Kind == kindRefuse })
}

// unused says what i has still to do, or "".
func (i *Injection) unused() string {
	if i.optional || !i.left() || i.times == Always && i.applied > 0 {
		return ""
	}
	return fmt.Sprintf("%sthe fault %q, injected into requests %s, was applied %s, and %s matched", i.line, i.what[i.applied%len(i.what)], i.match, plural(i.applied, "time"), plural(i.seen, "request"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// faults are the injections of a Server, in order.
type faults struct {
	mu   sync.Mutex
	list []*Injection
}

// waiting returns the injections that are not used up, of the faults on the client's side or of the
// others.
func (f *faults) waiting(clientSide bool) (list []*Injection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.list {
		if i.left() && i.clientSide() == clientSide {
			list = append(list, i)
		}
	}
	return list
}

// UnusedFaults describes each injection that would fail the test given to [NewServer] if the test ended now,
// because it was applied fewer times than it says.
func (s *Server) UnusedFaults() (list []string) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	for _, i := range s.faults.list {
		if text := i.unused(); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// take returns the fault for a request, if there is one. The client asks before it sends the
// request, the Server when it has arrived.
func (s *Server) take(e *entry, clientSide bool) (Fault, bool) {
	waiting := s.faults.waiting(clientSide)
	if waiting == nil {
		return Fault{}, false
	}
	if m, ok := s.engine.Meeting(e.MeetingID); ok {
		e.externalID, e.title = m.ExternalID, m.Title
	}
	now := time.Now()
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	var first *Injection
	for _, i := range waiting {
		if !i.left() || !i.open(now) || !i.match.matches(e) || e.Operation == minutes.OpUpload && i.rejects() {
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
	fault := first.what[first.applied%len(first.what)]
	first.applied++
	return fault, true
}

// dialFault returns what keeps the connection for r from being made, or nil.
func (s *Server) dialFault(r *http.Request) error {
	if s.faults.waiting(true) == nil {
		return nil
	}
	unsent := r.Clone(r.Context())
	unsent.Body = nil
	if r.GetBody != nil { // otherwise it can be read once only
		unsent.Body, _ = r.GetBody()
	}
	fault, ok := s.take(s.arrived(unsent), true)
	if !ok {
		return nil
	}
	if fault.form.Delay > 0 && !pause(r.Context(), time.Duration(fault.form.Delay)) {
		return r.Context().Err()
	}
	return fault.dialError(r.URL.Hostname())
}
