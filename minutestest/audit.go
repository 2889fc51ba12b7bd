package minutestest

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// maxViolations is how many violations the audit keeps: a program that breaks a rule a thousand
// times has only one mistake.
const maxViolations = 1000

// audit watches what clients do. [ViolationKind] says what a client is.
type audit struct {
	ignored  []ViolationKind
	interval time.Duration // between two polls of a meeting
	meeting  func(id string) (Meeting, bool)

	mu         sync.Mutex
	polls      map[string]map[client]*polls // by meeting
	violations []Violation
	creates    map[create]int // those that may have taken effect, with their seq
	lists      map[place]int  // seq of the last list page of each place
}

func newAudit() *audit {
	return &audit{interval: MinPollInterval, polls: map[string]map[client]*polls{}, creates: map[create]int{}, lists: map[place]int{}}
}

// client is one subject of the audit.
type client struct {
	number uint64 // of an in-memory client of its own; 0: another
	key    string // of another
}

// polls is what the audit knows of a client and a meeting.
type polls struct {
	workers    int    // at most; always 1 for an in-memory client of its own
	last       []poll // the last polls, as many as there are workers
	rejections int    // of upload URLs, because the meeting has its audio, since a poll showed none
}

// poll is what a poll found, and when.
type poll struct {
	at     time.Time
	status minutes.Status
}

// place is where a client creates and lists objects of one sort.
type place struct {
	client client
	path   string
}

// create is the same for creates that repeat each other.
type create struct {
	place place
	body  string
}

// client says who sent a request. A socket does not show which program is at its other end, so
// there the key has to do.
func (e *entry) client() client {
	if e.sender != 0 {
		return client{number: e.sender}
	}
	return client{key: e.key}
}

// watch checks one request and its response.
func (a *audit) watch(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch route.Operation(e.Operation) {
	case "":
		return
	case route.MeetingsGet:
		a.watchPoll(e)
	case route.MeetingsCreate:
		if e.externalID == "" {
			a.watchRepeat(e)
		}
		if e.sender == 0 && e.Status == http.StatusOK && !e.Lost {
			a.of(e).workers++ // it returns a meeting that exists, so it may be another worker's
		}
	case route.MembersCreate, route.ProjectsCreate:
		a.watchRepeat(e)
	case route.MeetingsList, route.MembersList, route.ProjectsList:
		if e.shown() {
			// The Server may notice a lost create only after the list page that follows it, so the
			// numbers of the requests count.
			a.lists[e.place()] = max(a.lists[e.place()], e.Seq)
		}
	case engine.StoragePut:
		if e.Header["Authorization"] != nil {
			a.add(ViolationCredential, e, "an Authorization header was sent to storage")
		}
		a.forgetPolls(e.MeetingID)
	case route.MeetingsUploadURL:
		a.watchUploadURL(e)
		a.forgetPolls(e.MeetingID)
	}
	a.watchContentType(e)
}

// shown reports whether the client was shown what it asked for.
func (e *entry) shown() bool {
	return e.Status == http.StatusOK && !e.Lost && e.Method == http.MethodGet
}

func (e *entry) place() place { return place{e.client(), e.Path} }

// watchPoll compares a GET with an earlier one of the same client: with the last one, or with the
// last but one if there may be two workers, and so on.
func (a *audit) watchPoll(e *entry) {
	if !e.shown() {
		return
	}
	p := a.of(e)
	var before poll
	if len(p.last) == p.workers {
		before, p.last = p.last[0], p.last[1:]
	}
	p.last = append(p.last, poll{e.at, e.found})
	if e.found == minutes.StatusCreated {
		p.rejections = 0 // the client may ask for an upload URL: it has been shown no audio
	}
	since := e.at.Sub(before.at)
	if e.found.Final() || before.status != e.found || since < 0 || since >= a.interval {
		return
	}
	how := fmt.Sprintf("again after %v instead of %v, and was %s both times", since, a.interval, e.found)
	if p.workers > 1 {
		how = fmt.Sprintf("%d times in %v, and was %s; %d workers may poll it %[4]d times in %[5]v", p.workers+1, since, e.found, p.workers, a.interval)
	}
	a.add(ViolationPoll, e, "{meeting} was polled "+how)
}

// of returns the polls of a request's client and meeting.
func (a *audit) of(e *entry) *polls {
	if a.polls[e.MeetingID] == nil {
		a.polls[e.MeetingID] = make(map[client]*polls)
	}
	p := a.polls[e.MeetingID][e.client()]
	if p == nil {
		p = &polls{workers: 1}
		a.polls[e.MeetingID][e.client()] = p
	}
	return p
}

// forgetPolls excuses the next poll of a meeting.
func (a *audit) forgetPolls(meetingID string) {
	for _, p := range a.polls[meetingID] {
		p.last = nil
	}
}

// watchUploadURL finds a client that asks for an upload URL again and again after the service has
// said that the meeting has its audio. A client may get this error twice, because two of its
// goroutines may be too late, and once more for each further worker.
func (a *audit) watchUploadURL(e *entry) {
	if e.Lost || e.Code != string(minutes.ErrBadRequest) || e.found == "" || e.found == minutes.StatusCreated {
		return
	}
	p := a.of(e)
	if p.rejections++; p.rejections > p.workers+1 {
		a.add(ViolationUploadURL, e, "asked for an upload URL again for {meeting}, which is "+string(e.found)+" and so has its audio")
	}
}

// watchRepeat compares a create with those that may have taken effect before, unless the client has
// listed what exists since then.
func (a *audit) watchRepeat(e *entry) {
	c := create{e.place(), string(e.body)}
	first, again := a.creates[c]
	delete(a.creates, c)
	// The service may not have read the body of a rejected request.
	if !e.rejected && (e.Lost || e.Status == 0 || e.Status >= 500) {
		a.creates[c] = e.Seq
	}
	if again && a.lists[c.place] < first {
		a.add(ViolationRepeat, e, fmt.Sprintf("%s %s was sent again with the same body, though the first may have taken effect", e.Method, e.Path))
	}
}

// watchContentType checks how a JSON body was sent.
func (a *audit) watchContentType(e *entry) {
	if len(e.body) == 0 {
		return
	}
	contentType, encoding := e.Header.Get("Content-Type"), e.Header.Get("Content-Encoding")
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		a.add(ViolationContentType, e, fmt.Sprintf("the body of %s %s was sent with Content-Type %q", e.Method, e.Path, contentType))
	} else if encoding != "" && encoding != "identity" {
		a.add(ViolationContentType, e, fmt.Sprintf("the body of %s %s was sent with Content-Encoding %q", e.Method, e.Path, encoding))
	}
}

// watchOpenBody records that a client left a response open.
func (a *audit) watchOpenBody(body *openBody) {
	a.mu.Lock()
	defer a.mu.Unlock()
	op, meetingID := engine.Identify(body.req)
	a.record(Violation{
		Kind: ViolationOpenBody, At: body.at, Operation: minutes.Operation(op), MeetingID: meetingID,
		Text: fmt.Sprintf("the response to %s %s was neither read to its end nor closed", body.req.Method, body.req.URL.Path),
	})
}

// add adds a violation of e. In text, {meeting} stands for the meeting.
func (a *audit) add(kind ViolationKind, e *entry, text string) {
	if e.Caller != "" {
		text += ", by " + e.Caller
	}
	a.record(Violation{Kind: kind, At: e.At, Seq: e.Seq, Operation: e.Operation, MeetingID: e.MeetingID, Caller: e.Caller, Text: text})
}

// record keeps a violation. The caller holds mu.
func (a *audit) record(v Violation) {
	if slices.Contains(a.ignored, v.Kind) || len(a.violations) == maxViolations {
		return
	}
	if m, ok := a.meeting(v.MeetingID); ok {
		v.Title, v.ExternalID = m.Title, m.ExternalID
	}
	v.Text, v.Remedy = strings.ReplaceAll(v.Text, "{meeting}", v.meeting()), remedies[v.Kind]
	a.violations = append(a.violations, v)
}

// after returns the violations after the first n.
func (a *audit) after(n int) []Violation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.violations[min(n, len(a.violations)):])
}

// check returns an error for options that cannot be.
func (a *audit) check() error {
	for _, kind := range a.ignored {
		if !slices.Contains(violationKinds, kind) {
			return fmt.Errorf("WithoutAudit: %q is not one of %s", kind, violationKinds)
		}
	}
	if a.interval <= 0 {
		return fmt.Errorf("WithMinPollInterval: %s is not positive", a.interval)
	}
	return nil
}
