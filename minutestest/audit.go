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
	maxCreates    = 4096
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
	polls      map[string][]*polls // by meeting
	violations []Violation
	creates    map[create]uint64 // those that may have taken effect, with their seq
	listings   map[uint64]uint64 // seq of the last listing at each place
}

// polls is what the audit knows of a program and a meeting.
type polls struct {
	program    program
	workers    int    // at most; see [ViolationKind]
	last       []poll // the last polls, as many as there are workers
	rejections int    // of upload URLs, because the meeting has its audio, since a poll showed none
}

// poll is what a poll found, and when.
type poll struct {
	at     time.Time
	status minutes.Status
}

// program is one subject of the audit: everything that comes through one client with one key.
type program struct {
	client uint64 // of the in-memory network; 0 is that of all others
	key    string
}

// create is the same for creates of one program that repeat each other. It holds hashes.
type create struct{ place, body uint64 }

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
	a.polls, a.violations, a.creates, a.listings = nil, nil, nil, nil
	a.full.Store(false)
	a.mu.Unlock()
}

// watch checks one request and its response.
func (a *audit) watch(e *entry) {
	switch e.Operation {
	case "":
		return
	case route.MeetingsGet:
		a.watchPoll(e)
	case route.MeetingsCreate:
		a.watchCreate(e)
		if e.ExternalID == "" {
			a.watchRepeat(e)
		}
	case route.MembersCreate, route.ProjectsCreate:
		a.watchRepeat(e)
	case route.MeetingsList, route.MembersList, route.ProjectsList:
		a.watchListing(e)
	case engine.StoragePut:
		if e.StorageAuthorization {
			a.add(ViolationCredential, e, "an Authorization header was sent to storage")
		}
		a.forgetPolls(e.MeetingID)
	case route.MeetingsUploadURL:
		a.watchUploadURL(e)
		a.forgetPolls(e.MeetingID)
	}
	if e.Operation != engine.StoragePut {
		a.watchContentType(e)
	}
}

// watchCreate counts the workers of a program. A create that returns a meeting that
// exists may be that of another worker, or of the process after a crash.
func (a *audit) watchCreate(e *entry) {
	if e.Status != http.StatusOK || e.lost {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(e).workers++
}

// watchUploadURL finds a program that asks for an upload URL again and again after
// the service has said that the meeting has its audio. Each worker may get this error
// once. A second worker that continues with Resume shows no sign of itself, so the
// program may get it once more.
func (a *audit) watchUploadURL(e *entry) {
	if e.lost || e.Code != minutes.ErrBadRequest || e.MeetingStatus == "" || e.MeetingStatus == minutes.StatusCreated {
		return
	}
	a.mu.Lock()
	p := a.of(e)
	p.rejections++
	again := p.rejections > p.workers+1
	a.mu.Unlock()
	if again {
		a.add(ViolationUploadURL, e, "asked for an upload URL again for {meeting}, which is "+string(e.MeetingStatus)+" and so has its audio")
	}
}

// watchContentType checks how a JSON body was sent.
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

// watchPoll compares a GET with an earlier one of the same program: with the last one,
// or with the last but one if there may be two workers, and so on.
func (a *audit) watchPoll(e *entry) {
	if e.Status != http.StatusOK || e.lost || e.method != http.MethodGet {
		return // the client was shown nothing
	}
	a.mu.Lock()
	p := a.of(e)
	var before poll
	if again := len(p.last) == p.workers; again {
		before, p.last = p.last[0], p.last[1:]
	}
	p.last = append(p.last, poll{e.at, e.MeetingStatus})
	if e.MeetingStatus == minutes.StatusCreated {
		p.rejections = 0 // the program may ask for an upload URL: it has been shown no audio
	}
	workers := p.workers
	a.mu.Unlock()

	since := e.at.Sub(before.at)
	if e.MeetingStatus.Final() || before.status != e.MeetingStatus || since < 0 || since >= a.interval || a.full.Load() {
		return
	}
	how := fmt.Sprintf("again after %v instead of %v, and was %s both times", since, a.interval, e.MeetingStatus)
	if workers > 1 {
		how = fmt.Sprintf("%d times in %v, and was %s; %d workers may poll it %[4]d times in %[5]v", workers+1, since, e.MeetingStatus, workers, a.interval)
	}
	a.add(ViolationPoll, e, "{meeting} was polled "+how)
}

// of returns the polls of a request's program and meeting. The caller
// holds mu.
func (a *audit) of(e *entry) *polls {
	list := a.polls[e.MeetingID]
	i := slices.IndexFunc(list, func(p *polls) bool { return p.program == e.program() })
	if i >= 0 {
		return list[i]
	}
	if a.polls == nil {
		a.polls = make(map[string][]*polls)
	}
	if len(a.polls) >= maxPolled {
		a.sweep(e.at)
	}
	p := &polls{program: e.program(), workers: 1}
	a.polls[e.MeetingID] = append(list, p)
	return p
}

// sweep forgets the meetings whose polls are too old to matter, and all meetings if
// that would have to be done again at once.
func (a *audit) sweep(now time.Time) {
	for id, list := range a.polls {
		if !slices.ContainsFunc(list, func(p *polls) bool { return len(p.last) > 0 && now.Sub(p.last[len(p.last)-1].at) < a.interval }) {
			delete(a.polls, id)
		}
	}
	if len(a.polls) > maxPolled/2 {
		clear(a.polls)
	}
}

// forgetPolls excuses the next poll of a meeting.
func (a *audit) forgetPolls(meetingID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.polls[meetingID] {
		p.last = nil
	}
}

// watchRepeat compares a create with those that may have taken effect before, unless the
// program has listed what exists since then.
func (a *audit) watchRepeat(e *entry) {
	// The service may not have read the body of a rejected request.
	mayHaveTakenEffect := !e.rejected && (e.lost || e.Status == 0 || e.Status >= 500)
	c := create{a.place(e), maphash.Bytes(a.seed, e.Body)}
	a.mu.Lock()
	first, again := a.creates[c]
	again = again && a.listings[c.place] < first
	delete(a.creates, c)
	if mayHaveTakenEffect {
		a.makeRoom()
		a.creates[c] = e.seq
	}
	a.mu.Unlock()
	if again {
		a.add(ViolationRepeat, e, fmt.Sprintf("%s %s was sent again with the same body, though the first may have taken effect", e.method, e.url.Path))
	}
}

// watchListing remembers the listings that a program got. The Server may notice a create
// that was lost only after the listing that follows it, so their numbers count.
func (a *audit) watchListing(e *entry) {
	if e.Status != http.StatusOK || e.lost || e.method != http.MethodGet {
		return
	}
	place := a.place(e)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.makeRoom()
	a.listings[place] = max(a.listings[place], e.seq)
}

// makeRoom forgets creates and listings if there are many. The caller holds mu.
func (a *audit) makeRoom() {
	if a.creates == nil || len(a.creates)+len(a.listings) >= maxCreates {
		a.creates, a.listings = make(map[create]uint64), make(map[uint64]uint64)
	}
}

// place is the same for requests of one program to one path.
func (a *audit) place(e *entry) uint64 {
	var h maphash.Hash
	h.SetSeed(a.seed)
	maphash.WriteComparable(&h, e.program())
	_, _ = h.WriteString(e.url.Path)
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

// add records a violation. In text, {meeting} is replaced by the meeting.
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
