package minutestest

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// Injection is a fault that was injected with [Server.Inject].
type Injection struct {
	faults *faults
	match  Match
	what   []Fault
	times  int    // Always or more than 0
	line   string // of the call of Inject, such as "weekly_test.go:42"

	// Guarded by faults.mu.
	optional      bool
	stopped       bool
	from, to      time.Time // zero: no window
	seen, applied int
}

// Inject makes requests fail. The first request that m selects gets the first fault, the next one
// the second and so on, from the beginning again if m.Times is more than there are faults. A
// request gets one fault: if several injections match, the earliest is applied, and the others wait
// for the next request.
//
// Each injection counts requests for itself, from now on. An injection that was not applied as
// often as it says fails the test of [NewServer], unless it is [Injection.Optional]; one without an
// end must have been applied once. A Match or a Fault that is invalid fails the test at once.
func (s *Server) Inject(m Match, what ...Fault) *Injection {
	s.helper()
	i, err := newInjection(&s.faults, m, what)
	if err != nil {
		s.fail("Inject", err)
		return &Injection{faults: &s.faults, match: m, optional: true, stopped: true}
	}
	if _, file, line, ok := runtime.Caller(1); ok {
		i.line = fmt.Sprintf("%s:%d", filepath.Base(file), line)
	}
	s.faults.add(i)
	return i
}

func newInjection(f *faults, m Match, what []Fault) (*Injection, error) {
	if err := m.Validate(what...); err != nil {
		return nil, err
	}
	if len(what) == 0 {
		return nil, errors.New("no fault given")
	}
	i := &Injection{faults: f, match: m, what: slices.Clone(what), times: m.Times}
	if i.times == 0 {
		i.times = len(what)
	}
	return i, nil
}

// Optional lets the test end before i was applied, and returns i.
func (i *Injection) Optional() *Injection {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.optional = true
	return i
}

// During limits i to a window of time, and returns i: from and to are counted from now. Unless its
// Match says how many, i is applied to all requests in the window.
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
	i.faults.count()
	return i
}

// Stop ends i: the Server applies it to no further request.
func (i *Injection) Stop() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.stopped, i.optional = true, true
	i.faults.count()
}

// Seen returns how many requests have matched, including those before the nth. It counts until i is
// used up.
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

// clientSide reports whether i is applied before a request is sent.
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
	return fmt.Sprintf("the fault %q, injected into requests %s, was applied %s, and %s matched", i.what[i.applied%len(i.what)], i.match, plural(i.applied, "time"), plural(i.seen, "request"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// faults are the injections of a Server, in order.
type faults struct {
	armed atomic.Int32 // injections that are not used up

	mu   sync.Mutex
	list []*Injection
}

func (f *faults) add(i *Injection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, i)
	f.count()
}

// count brings armed up to date. The caller holds mu.
func (f *faults) count() {
	n := int32(0)
	for _, i := range f.list {
		if i.left() {
			n++
		}
	}
	f.armed.Store(n)
}

func (f *faults) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.list {
		i.stopped = true
	}
	f.list = nil
	f.count()
}

// UnusedFaults describes each injection that fails the test of [NewServer] if the test ends now,
// because it was not applied as often as it says.
func (s *Server) UnusedFaults() (list []string) {
	for _, i := range s.faults.unused() {
		list = append(list, i.unused())
	}
	return list
}

// unused returns copies of the injections that are still to be applied.
func (f *faults) unused() (list []Injection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.list {
		if i.unused() != "" {
			list = append(list, *i)
		}
	}
	return list
}

// take returns the fault for r, if there is one. The client asks before it sends r, the Server when
// r has arrived.
func (s *Server) take(r *http.Request, clientSide bool) (Fault, bool) {
	if s.faults.armed.Load() == 0 {
		return Fault{}, false
	}
	op, meetingID := engine.Identify(r)
	t := target{operation: minutes.Operation(op), key: bearer(r), meetingID: meetingID, path: r.URL.Path}
	if s.faults.byName(clientSide) {
		s.name(r, &t)
	}
	return s.faults.take(t, clientSide)
}

// byName reports whether an injection asks for the names of meetings.
func (f *faults) byName(clientSide bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.list, func(i *Injection) bool {
		return i.left() && i.match.byName() && i.clientSide() == clientSide
	})
}

func (f *faults) take(t target, clientSide bool) (Fault, bool) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	var first *Injection
	for _, i := range f.list {
		if !i.left() || i.clientSide() != clientSide || !i.open(now) || !i.match.matches(t) || t.operation == minutes.OpUpload && i.rejects() {
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
	f.count()
	return fault, true
}

// bearer is the key that r carries, or "".
func bearer(r *http.Request) string {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// dialFault returns what keeps the connection for r from being made, or nil.
func (s *Server) dialFault(r *http.Request) error {
	unsent := r.Clone(r.Context())
	if r.GetBody == nil {
		unsent.Body = nil // it can be read once only
	}
	fault, ok := s.take(unsent, true)
	if !ok {
		return nil
	}
	if fault.form.Delay > 0 && !pause(r.Context(), time.Duration(fault.form.Delay)) {
		return r.Context().Err()
	}
	return fault.dialError(r.URL.Hostname())
}
