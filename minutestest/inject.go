package minutestest

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// OpUpload is the operation of a PUT of audio to storage. It is
// [minutes.OpUpload]; the operations of the service itself are the constants
// beside that, such as [minutes.OpMeetingsCreate].
const OpUpload = minutes.OpUpload

// Always, as [Match.Times], strikes every request from the nth on.
const Always = -1

// Match says which requests a fault strikes. Operations are those of package minutes,
// such as minutes.OpMeetingsCreate and minutes.OpUpload. An empty field matches every request; of the requests that match, the nth is the
// first to be struck.
type Match struct {
	Operation minutes.Operation `json:"operation,omitempty"`
	Key       string            `json:"key,omitempty"`        // the secret of the API key sent; uploads carry none
	MeetingID string            `json:"meeting_id,omitempty"` // in the path, uploads included
	Path      string            `json:"path,omitempty"`       // a pattern of path.Match: "/v1/meetings/*"

	Nth   int `json:"nth,omitempty"`   // the first that is struck, from 1; 0 is as 1
	Times int `json:"times,omitempty"` // how many are; 0: one for each fault; Always: all that follow
}

// Validate returns what keeps [Server.Inject] from taking m and these faults:
// an operation that is none of the interface's, above all. The error names the
// field at fault: "match: operation: …", "fault: code: …".
func (m Match) Validate(what ...Fault) error {
	if err := checkOperation(m.Operation); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	if _, err := path.Match(m.Path, ""); err != nil {
		return fmt.Errorf("match: path: %q is no pattern", m.Path)
	}
	if m.Nth < 0 {
		return fmt.Errorf("match: nth: %d is negative; all that follow are struck with times, not nth, of %d", m.Nth, Always)
	}
	if m.Times < Always {
		return fmt.Errorf("match: times: %d is neither a number of times nor %d, for good", m.Times, Always)
	}
	for _, fault := range what {
		if err := fault.check(); err != nil {
			return err
		}
		switch kind := fault.form.Kind; {
		case kind == kindRefuseUpload && m.Operation != OpUpload:
			return fmt.Errorf("fault: kind: %s is storage's answer; match %s", kind, OpUpload)
		case kind == kindRefuse && m.Operation == OpUpload:
			return fmt.Errorf("fault: kind: %s is not storage's answer; use %s", kind, kindRefuseUpload)
		}
	}
	return nil
}

// checkOperation refuses an operation that there is not. Like all that keeps a
// Match or a Fault from being taken, it begins with the field at fault.
func checkOperation(op minutes.Operation) error {
	if _, ok := route.Of(route.Operation(op)); ok || op == "" || op == OpUpload {
		return nil
	}
	return fmt.Errorf("operation: %q is not one of %s", op, operations())
}

// operations lists what [Match.Operation] can be.
func operations() string {
	var list []string
	for _, row := range route.Table {
		list = append(list, string(row.Operation))
	}
	return strings.Join(append(list, string(OpUpload)), ", ")
}

func (m Match) matches(op minutes.Operation, key, meetingID, urlPath string) bool {
	if m.Operation != "" && m.Operation != op || m.Key != "" && m.Key != key || m.MeetingID != "" && m.MeetingID != meetingID {
		return false
	}
	if m.Path == "" {
		return true
	}
	ok, _ := path.Match(m.Path, urlPath)
	return ok
}

// String describes m in a few words.
func (m Match) String() string {
	words := []string{"requests"}
	if m.Operation != "" {
		words[0] = string(m.Operation)
	}
	if m.Key != "" {
		words = append(words, "of one key")
	}
	if m.MeetingID != "" {
		words = append(words, "for "+m.MeetingID)
	}
	if m.Path != "" {
		words = append(words, "at "+m.Path)
	}
	if m.Nth > 1 {
		words = append(words, fmt.Sprintf("from number %d on", m.Nth))
	}
	return strings.Join(words, " ")
}

// Injection is a fault that waits for its requests, or has met them.
type Injection struct {
	faults *faults
	match  Match
	what   []Fault
	times  int // Always or more than 0

	// Guarded by faults.mu.
	optional     bool
	stopped      bool
	seen, struck int
}

// Inject has requests go wrong. The first request that m strikes gets the
// first fault, the next one the second and so on, from the beginning again
// where m.Times says more than there are faults. A request is struck once:
// where several injections want it, the earliest gets it, and the others the
// next that matches.
//
// Requests are counted from now on, by each injection for itself. An injection
// that has strikes left when a test ends fails a [NewServer]'s test, unless it
// is [Injection.Optional] or strikes for good and has struck. A Match or a
// Fault that cannot be fails at once.
func (s *Server) Inject(m Match, what ...Fault) *Injection {
	s.helper()
	i, err := newInjection(&s.faults, m, what)
	if err != nil {
		s.fail("Inject: %v", err)
		return &Injection{faults: &s.faults, match: m, optional: true, stopped: true}
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

// Optional lets i end without having struck, and returns it.
func (i *Injection) Optional() *Injection {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.optional = true
	return i
}

// Stop ends i: it strikes no more, and may have strikes left.
func (i *Injection) Stop() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.stopped, i.optional = true, true
	i.faults.count()
}

// Seen says how many requests have matched, those before the nth included.
// It is counted until i has no strikes left.
func (i *Injection) Seen() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.seen
}

// Struck says how many requests i has struck.
func (i *Injection) Struck() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.struck
}

// left reports whether i has strikes left. The caller holds faults.mu.
func (i *Injection) left() bool {
	return !i.stopped && (i.times == Always || i.struck < i.times)
}

// unused says what i has still to do, or "".
func (i *Injection) unused() string {
	if i.optional || !i.left() || i.times == Always && i.struck > 0 {
		return ""
	}
	return fmt.Sprintf("the fault %q, injected into %s, struck %d times, and %d requests matched", i.what[i.struck%len(i.what)], i.match, i.struck, i.seen)
}

// faults are the injections of a Server, in order.
type faults struct {
	armed atomic.Int32 // injections with strikes left

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

// unused lists the injections that have yet to strike.
func (f *faults) unused() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, i := range f.list {
		if text := i.unused(); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// take returns the fault that strikes r, if any.
func (f *faults) take(r *http.Request) (Fault, bool) {
	if f.armed.Load() == 0 {
		return Fault{}, false
	}
	op, meetingID := engine.Identify(r)
	key := bearer(r)

	f.mu.Lock()
	defer f.mu.Unlock()
	var strikes *Injection
	for _, i := range f.list {
		if !i.left() || !i.match.matches(minutes.Operation(op), key, meetingID, r.URL.Path) {
			continue
		}
		i.seen++
		if strikes == nil && i.seen >= i.match.Nth {
			strikes = i
		}
	}
	if strikes == nil {
		return Fault{}, false
	}
	fault := strikes.what[strikes.struck%len(strikes.what)]
	strikes.struck++
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
