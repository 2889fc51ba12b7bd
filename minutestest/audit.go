package minutestest

import (
	"fmt"
	"hash/maphash"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// after returns the violations after the first n.
func (a *audit) after(n int) []Violation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.violations[min(n, len(a.violations)):])
}

// What the audit remembers has bounds, so that a Server may run for weeks.
const (
	maxPolled     = 1 << 16 // swept when there are more
	maxRepeats    = 4096
	maxViolations = 1000
)

// audit watches what clients do.
type audit struct {
	off      bool // all of it
	ignored  []ViolationKind
	interval time.Duration // between two polls of a meeting
	describe func(*Violation)
	seed     maphash.Seed

	full       atomic.Bool // of violations
	mu         sync.Mutex
	looks      map[string][]look // by meeting
	violations []Violation
	repeats    map[uint64]struct{} // writes that may have taken effect
	refusals   map[uint64]struct{} // programs that know that a meeting has its audio
}

// look is the last time a program was shown a meeting.
type look struct {
	program program
	at      time.Time
	status  minutes.Status
}

// program is what the audit judges: what comes through one client with one key.
type program struct {
	client uint64 // of the in-memory network; 0 is that of all others
	key    string
}

func newAudit() *audit {
	return &audit{seed: maphash.MakeSeed(), interval: MinPollInterval, describe: func(*Violation) {}}
}

func (a *audit) ignore(kinds []ViolationKind) {
	if len(kinds) == 0 {
		kinds = violationKinds
	}
	a.ignored = append(a.ignored, kinds...)
	a.off = !slices.ContainsFunc(violationKinds, func(k ViolationKind) bool { return !slices.Contains(a.ignored, k) })
}

func (a *audit) reset() {
	a.mu.Lock()
	a.looks, a.violations, a.repeats, a.refusals = nil, nil, nil, nil
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
		a.watchUploadURL(e)
		a.anew(e.MeetingID)
	}
	if e.Operation != engine.StoragePut {
		a.watchContentType(e)
	}
	if e.method == http.MethodPost || e.method == http.MethodPatch {
		a.watchRepeat(e)
	}
}

// watchUploadURL looks for a program that asks for an upload URL again after
// the service has said that the meeting has its audio.
func (a *audit) watchUploadURL(e *entry) {
	if e.Code != minutes.ErrBadRequest || e.MeetingStatus == "" || e.MeetingStatus == minutes.StatusCreated {
		return
	}
	id := a.identity(e, nil)
	a.mu.Lock()
	_, again := a.refusals[id]
	a.refusals = remember(a.refusals, id)
	a.mu.Unlock()
	if again {
		a.add(ViolationUploadURL, e, "asked for an upload URL again for {meeting}, which is "+string(e.MeetingStatus)+" and so has its audio")
	}
}

// watchContentType looks at how a JSON body was sent.
func (a *audit) watchContentType(e *entry) {
	if len(e.Body) == 0 {
		return
	}
	contentType, encoding := e.header.Get("Content-Type"), e.header.Get("Content-Encoding")
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		a.add(ViolationContentType, e, fmt.Sprintf("the body of %s %s was sent with Content-Type %q", e.method, e.url.Path, contentType))
	} else if encoding != "" && encoding != "identity" {
		a.add(ViolationContentType, e, fmt.Sprintf("the body of %s %s was sent with Content-Encoding %q", e.method, e.url.Path, encoding))
	}
}

// watchPoll compares a GET with the same program's last one.
func (a *audit) watchPoll(e *entry) {
	if e.Status != http.StatusOK || e.lost || e.method != http.MethodGet {
		return // the client was shown nothing
	}
	now := look{e.program(), e.at, e.MeetingStatus}
	a.mu.Lock()
	last, again := a.look(e.MeetingID, now)
	a.mu.Unlock()

	if since := now.at.Sub(last.at); again && last.status == now.status && since >= 0 && since < a.interval && !a.full.Load() {
		a.add(ViolationPoll, e, fmt.Sprintf("{meeting} was polled %v after the last poll, and was %s both times", since, now.status))
	}
}

// look replaces the same program's last look by now, and returns that.
func (a *audit) look(meetingID string, now look) (last look, again bool) {
	looks := a.looks[meetingID]
	i := slices.IndexFunc(looks, func(l look) bool { return l.program == now.program })
	if i >= 0 {
		last, again = looks[i], true
	}
	switch {
	case now.status.Final():
		// It will not change, and may be looked at as often as one likes.
		if len(looks) > 0 {
			delete(a.looks, meetingID)
		}
	case i >= 0:
		looks[i] = now
	default:
		if a.looks == nil {
			a.looks = make(map[string][]look)
		}
		if len(a.looks) >= maxPolled {
			a.sweep(now.at)
		}
		a.looks[meetingID] = append(looks, now)
	}
	return last, again
}

// sweep forgets the looks that are too old to matter, and all of them where
// that would have to be done again at once.
func (a *audit) sweep(now time.Time) {
	for id, looks := range a.looks {
		if !slices.ContainsFunc(looks, func(l look) bool { return now.Sub(l.at) < a.interval }) {
			delete(a.looks, id)
		}
	}
	if len(a.looks) > maxPolled/2 {
		clear(a.looks)
	}
}

// anew forgets the looks at a meeting.
func (a *audit) anew(meetingID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.looks, meetingID)
}

// watchRepeat compares a write with those that may have taken effect before.
func (a *audit) watchRepeat(e *entry) {
	row, _ := route.Of(e.Operation)
	if row.Repeat == route.Always || row.Repeat == route.WithExternalID && e.ExternalID != "" {
		return
	}
	// Body and external id of a refused one may not even have been read.
	mayHaveTakenEffect := !e.refused && (e.lost || e.Status == 0 || e.Status >= 500)
	id := a.identity(e, e.Body)
	a.mu.Lock()
	_, again := a.repeats[id]
	if mayHaveTakenEffect {
		a.repeats = remember(a.repeats, id)
	} else {
		delete(a.repeats, id)
	}
	a.mu.Unlock()
	if again {
		a.add(ViolationRepeat, e, fmt.Sprintf("%s %s was sent again with the same body, though the first may have taken effect", e.method, e.url.Path))
	}
}

// remember adds id to a set of bounded size.
func remember(set map[uint64]struct{}, id uint64) map[uint64]struct{} {
	if set == nil || len(set) >= maxRepeats {
		set = make(map[uint64]struct{})
	}
	set[id] = struct{}{}
	return set
}

// identity is the same for requests of one program that are repeats of each other.
func (a *audit) identity(e *entry, body []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(a.seed)
	for _, s := range []string{e.method, e.url.Path, e.KeySecret} {
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0)
	}
	maphash.WriteComparable(&h, e.client)
	_, _ = h.Write(body)
	return h.Sum64()
}

func (e *entry) program() program { return program{e.client, e.KeySecret} }

func (a *audit) openBody(at time.Time, req *http.Request) {
	op, meetingID := engine.Identify(req)
	a.record(Violation{
		Kind: ViolationOpenBody, At: at, Operation: minutes.Operation(op), MeetingID: meetingID,
		Text: fmt.Sprintf("the response to %s %s was neither read to its end nor closed", req.Method, req.URL.Path),
	})
}

// add records a violation. In text, {meeting} stands for the meeting.
func (a *audit) add(kind ViolationKind, e *entry, text string) {
	v := Violation{
		Kind: kind, At: e.at, Seq: int(e.seq), Operation: minutes.Operation(e.Operation),
		MeetingID: e.MeetingID, Caller: e.Caller, Text: text,
	}
	if e.Caller != "" {
		v.Text += ", by " + e.Caller
	}
	a.record(v)
}

func (a *audit) record(v Violation) {
	if slices.Contains(a.ignored, v.Kind) || a.full.Load() {
		return
	}
	a.describe(&v)
	v.Text, v.Remedy = strings.ReplaceAll(v.Text, "{meeting}", v.meeting()), remedies[v.Kind]
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.violations) < maxViolations {
		a.violations = append(a.violations, v)
	}
	a.full.Store(len(a.violations) == maxViolations)
}
