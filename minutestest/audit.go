package minutestest

import (
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// MinPollInterval is the shortest time between two polls of a meeting that the
// service asks of its clients.
const MinPollInterval = 30 * time.Second

// ViolationKind says what a client must not do.
type ViolationKind string

const (
	// ViolationPoll: a GET of a meeting found the unfinished status that the
	// same key's last GET of it had found less than [MinPollInterval] before. An upload,
	// or a request for an upload URL, in between begins anew, whoever made it and
	// whatever came of it.
	//
	// That is all: listings are judged by nobody and excuse nobody, and what a
	// create or an update shows is no GET. A program that finds its meeting again
	// after a restart, with FindByExternalID, and waits for it is judged by its
	// GETs alone. A caller's own Get just before a wait, or beside one, is a GET,
	// too: WaitOptions.OnStatus shows the same. A Client keeps the floor by what it
	// remembers; a new one is told of the old one's last look by
	// WaitOptions.LookedAt.
	ViolationPoll ViolationKind = "poll"
	// ViolationCredential: an Authorization header was sent to storage.
	ViolationCredential ViolationKind = "credential"
	// ViolationRepeat: a request was sent again that may have taken effect the
	// first time (5xx, a lost connection, a reply that was not waited for),
	// although doing it twice is not doing it once: a POST or PATCH with the
	// same key and body, other than one for an upload URL and a create with an
	// external_id.
	ViolationRepeat ViolationKind = "repeat"
	// ViolationUploadURL: an upload URL was asked for a meeting that has its
	// audio. Of two workers on one meeting, one may do so: a test of that
	// switches this off.
	ViolationUploadURL ViolationKind = "upload_url"
	// ViolationOpenBody: when the Server was closed, a reply was neither read
	// to its end nor closed, nor was it within a tenth of a second. Seen on
	// connections of [Server.HTTPClient] only.
	ViolationOpenBody ViolationKind = "open_body"
)

var violationKinds = []ViolationKind{ViolationPoll, ViolationCredential, ViolationRepeat, ViolationUploadURL, ViolationOpenBody}

// Violation is something a client did that the service asks it not to do.
// Nothing in it is secret.
type Violation struct {
	Kind      ViolationKind     `json:"kind"`
	At        time.Time         `json:"at"`            // of the request
	Seq       int               `json:"seq,omitempty"` // of the [Request]
	Operation minutes.Operation `json:"operation,omitempty"`
	MeetingID string            `json:"meeting_id,omitempty"`
	Caller    string            `json:"caller,omitempty"` // id of the member or integration behind the key
	Text      string            `json:"text"`             // what was wrong, for people
}

// String describes the violation in one line.
func (v Violation) String() string {
	if v.Seq == 0 {
		return fmt.Sprintf("violation (%s): %s", v.Kind, v.Text)
	}
	return fmt.Sprintf("violation (%s): %s (request %d)", v.Kind, v.Text, v.Seq)
}

// Violations returns what clients have done wrong so far, in the order in
// which it was seen, the first thousand.
func (s *Server) Violations() []Violation {
	return s.audit.after(0)
}

// after returns the violations after the first n.
func (a *audit) after(n int) []Violation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.violations[min(n, len(a.violations)):])
}

// What the audit remembers has bounds, so that a Server may run for weeks.
const (
	auditShards   = 64
	shardMeetings = 4096 // swept when there are more
	maxRepeats    = 4096
	maxViolations = 1000
)

// audit watches what clients do. Looks at meetings are kept apart by meeting,
// in shards, since they are what a busy service has most of.
type audit struct {
	off     bool // all of it
	ignored []ViolationKind
	seed    maphash.Seed
	shards  [auditShards]lookShard

	full       atomic.Bool // of violations
	mu         sync.Mutex
	violations []Violation
	repeats    map[uint64]struct{} // writes that may have taken effect
}

type lookShard struct {
	mu       sync.Mutex
	meetings map[string][]look
}

// look is the last time a key was shown a meeting.
type look struct {
	key    string
	at     time.Time
	status minutes.Status
}

func newAudit() *audit { return &audit{seed: maphash.MakeSeed()} }

func (a *audit) ignore(kinds []ViolationKind) {
	if len(kinds) == 0 {
		kinds = violationKinds
	}
	a.ignored = append(a.ignored, kinds...)
	a.off = !slices.ContainsFunc(violationKinds, func(k ViolationKind) bool { return !slices.Contains(a.ignored, k) })
}

// check returns what has been asked to be ignored and does not exist.
func (a *audit) check() error {
	for _, kind := range a.ignored {
		if !slices.Contains(violationKinds, kind) {
			return fmt.Errorf("%q is not one of %s", kind, violationKinds)
		}
	}
	return nil
}

func (a *audit) reset() {
	for i := range a.shards {
		shard := &a.shards[i]
		shard.mu.Lock()
		shard.meetings = nil
		shard.mu.Unlock()
	}
	a.mu.Lock()
	a.violations, a.repeats = nil, nil
	a.full.Store(false)
	a.mu.Unlock()
}

// watch looks at one request that has been answered.
func (a *audit) watch(e *entry) {
	switch e.Operation {
	case "":
		return
	case route.MeetingsGet:
		a.watchPoll(e)
	case engine.StoragePut:
		if e.StorageAuthorization {
			a.add(ViolationCredential, e, "an Authorization header was sent to storage")
		}
		a.anew(e.MeetingID)
	case route.MeetingsUploadURL:
		if e.Code == minutes.ErrBadRequest && e.MeetingStatus != "" && e.MeetingStatus != minutes.StatusCreated {
			a.add(ViolationUploadURL, e, fmt.Sprintf("an upload URL was asked for meeting %s, which is %s and so has its audio", e.MeetingID, e.MeetingStatus))
		}
		a.anew(e.MeetingID)
	}
	if e.method == http.MethodPost || e.method == http.MethodPatch {
		a.watchRepeat(e)
	}
}

// watchPoll compares a GET with the same key's last one.
func (a *audit) watchPoll(e *entry) {
	if e.Status != http.StatusOK || e.lost || e.method != http.MethodGet {
		return // the client was shown nothing
	}
	now := look{e.KeySecret, e.at, e.MeetingStatus}
	shard := a.shard(e.MeetingID)
	shard.mu.Lock()
	last, again := shard.look(e.MeetingID, now)
	shard.mu.Unlock()

	if since := now.at.Sub(last.at); again && last.status == now.status && since >= 0 && since < MinPollInterval && !a.full.Load() {
		a.add(ViolationPoll, e, fmt.Sprintf("meeting %s was found %s, %v after it was last found so", e.MeetingID, now.status, since))
	}
}

// look puts now in the place of the same key's last look, and returns that.
func (s *lookShard) look(meetingID string, now look) (last look, again bool) {
	looks := s.meetings[meetingID]
	i := slices.IndexFunc(looks, func(l look) bool { return l.key == now.key })
	if i >= 0 {
		last, again = looks[i], true
	}
	switch {
	case now.status.Final():
		// It will not change, and may be looked at as often as one likes.
		if len(looks) > 0 {
			delete(s.meetings, meetingID)
		}
	case i >= 0:
		looks[i] = now
	default:
		if s.meetings == nil {
			s.meetings = make(map[string][]look)
		}
		if len(s.meetings) >= shardMeetings {
			s.sweep(now.at)
		}
		s.meetings[meetingID] = append(looks, now)
	}
	return last, again
}

// sweep forgets the looks that are too old to matter, and all of them where
// that would have to be done again at once.
func (s *lookShard) sweep(now time.Time) {
	for id, looks := range s.meetings {
		if !slices.ContainsFunc(looks, func(l look) bool { return now.Sub(l.at) < MinPollInterval }) {
			delete(s.meetings, id)
		}
	}
	if len(s.meetings) > shardMeetings/2 {
		clear(s.meetings)
	}
}

func (a *audit) shard(meetingID string) *lookShard {
	return &a.shards[maphash.String(a.seed, meetingID)%auditShards]
}

// anew forgets the looks at a meeting.
func (a *audit) anew(meetingID string) {
	shard := a.shard(meetingID)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	delete(shard.meetings, meetingID)
}

// watchRepeat compares a write with those that may have taken effect before.
func (a *audit) watchRepeat(e *entry) {
	row, _ := route.Of(e.Operation)
	if row.Repeat == route.Always || row.Repeat == route.WithExternalID && e.ExternalID != "" {
		return
	}
	// Body and external id of a refused one may not even have been read.
	mayHaveTakenEffect := !e.refused && (e.lost || e.Status == 0 || e.Status >= 500)
	id := a.identity(e)
	a.mu.Lock()
	_, again := a.repeats[id]
	switch {
	case !mayHaveTakenEffect:
		delete(a.repeats, id)
	case len(a.repeats) >= maxRepeats:
		clear(a.repeats)
		fallthrough
	default:
		if a.repeats == nil {
			a.repeats = make(map[uint64]struct{})
		}
		a.repeats[id] = struct{}{}
	}
	a.mu.Unlock()
	if again {
		a.add(ViolationRepeat, e, fmt.Sprintf("%s %s was sent again with the same body, though the first may have taken effect", e.method, e.url.Path))
	}
}

// identity is the same for requests that are repeats of each other.
func (a *audit) identity(e *entry) uint64 {
	var h maphash.Hash
	h.SetSeed(a.seed)
	for _, s := range []string{e.method, e.url.Path, e.KeySecret} {
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0)
	}
	_, _ = h.Write(e.Body)
	return h.Sum64()
}

func (a *audit) openBody(at time.Time, req *http.Request) {
	op, meetingID := engine.Identify(req)
	a.record(Violation{
		Kind: ViolationOpenBody, At: at, Operation: minutes.Operation(op), MeetingID: meetingID,
		Text: fmt.Sprintf("the reply to %s %s was neither read to its end nor closed", req.Method, req.URL.Path),
	})
}

func (a *audit) add(kind ViolationKind, e *entry, text string) {
	if e.Caller != "" {
		text += ", by " + e.Caller
	}
	a.record(Violation{
		Kind: kind, At: e.at, Seq: int(e.seq), Operation: minutes.Operation(e.Operation),
		MeetingID: e.MeetingID, Caller: e.Caller, Text: text,
	})
}

func (a *audit) record(v Violation) {
	if slices.Contains(a.ignored, v.Kind) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.violations) < maxViolations {
		a.violations = append(a.violations, v)
	}
	a.full.Store(len(a.violations) == maxViolations)
}
