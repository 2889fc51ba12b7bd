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
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/recent"
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
	polls      map[string]map[string]*polls // by meeting and client
	violations recent.List[Violation]
	creates    map[create]int // those that may have taken effect, with their seq
	lists      map[create]int // seq of the last list page of each place
}

func newAudit() *audit {
	return &audit{interval: MinPollInterval, polls: map[string]map[string]*polls{}, creates: map[create]int{}, lists: map[create]int{}, violations: recent.List[Violation]{Max: maxViolations}}
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

// create is the same for creates that repeat each other, and, without a body, for where a client
// creates and lists objects of one sort.
type create struct{ client, path, body string }

// client says who sent a request. A socket does not show which program is at its other end, so
// there the key has to do.
func (e *entry) client() string {
	if e.sender != 0 {
		return fmt.Sprint(e.sender)
	}
	return "key " + e.key
}

// watch checks one request and its response.
func (a *audit) watch(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e.Operation {
	case "":
		return
	case minutes.OpMeetingsGet:
		a.watchPoll(e)
	case minutes.OpMeetingsCreate:
		if e.externalID == "" {
			a.watchRepeat(e)
		}
		if e.sender == 0 && e.Status == http.StatusOK && !e.Lost {
			a.of(e).workers++ // it returns a meeting that exists, so it may be another worker's
		}
	case minutes.OpMembersCreate, minutes.OpProjectsCreate:
		a.watchRepeat(e)
	case minutes.OpMeetingsList, minutes.OpMembersList, minutes.OpProjectsList:
		if e.shown() {
			// The Server may notice a lost create only after the list page that follows it, so the
			// numbers of the requests count.
			a.lists[e.place()] = max(a.lists[e.place()], e.Seq)
		}
	case minutes.OpUpload:
		if e.Header["Authorization"] != nil {
			a.add(ViolationCredential, e, "an Authorization header was sent to storage")
		}
		a.forgetPolls(e.MeetingID)
	case minutes.OpMeetingsUploadURL:
		a.watchUploadURL(e)
		a.forgetPolls(e.MeetingID)
	}
	a.watchContentType(e)
}

// shown reports whether the client was shown what it asked for.
func (e *entry) shown() bool {
	return e.Status == http.StatusOK && !e.Lost && e.Method == http.MethodGet
}

func (e *entry) place() create { return create{client: e.client(), path: e.Path} }

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
		a.polls[e.MeetingID] = make(map[string]*polls)
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
	c := e.place()
	c.body = string(e.body)
	first, again := a.creates[c]
	delete(a.creates, c)
	// The service may not have read the body of a rejected request.
	if !e.rejected && (e.Lost || e.Status == 0 || e.Status >= 500) {
		a.creates[c] = e.Seq
	}
	if again && a.lists[e.place()] < first {
		a.add(ViolationRepeat, e, fmt.Sprintf("%s %s was sent again with the same body, though the first may have taken effect", e.Method, e.Path))
	}
}

// watchContentType checks how a JSON body was sent.
func (a *audit) watchContentType(e *entry) {
	if len(e.body) == 0 {
		return
	}
	contentType, encoding := e.Header.Get("Content-Type"), e.Header.Get("Content-Encoding")
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" || encoding != "" && encoding != "identity" {
		a.add(ViolationContentType, e, fmt.Sprintf("the body of %s %s was sent with Content-Type %q and Content-Encoding %q", e.Method, e.Path, contentType, encoding))
	}
}

// watchOpenBody records that a client left a response open.
func (a *audit) watchOpenBody(body *openBody) {
	a.mu.Lock()
	defer a.mu.Unlock()
	op, meetingID := engine.Identify(body.req)
	a.record(Violation{
		Kind: ViolationOpenBody, At: body.at, Operation: op, MeetingID: meetingID,
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
	if slices.Contains(a.ignored, v.Kind) {
		return
	}
	if m, ok := a.meeting(v.MeetingID); ok {
		v.Title, v.ExternalID = m.Title, m.ExternalID
	}
	v.Text, v.Remedy = strings.ReplaceAll(v.Text, "{meeting}", v.meeting()), remedies[v.Kind]
	a.violations.Add(v)
}

// check returns an error for options that cannot be.
func (a *audit) check() error {
	for _, kind := range a.ignored {
		if !slices.Contains(violationKinds, kind) {
			return fmt.Errorf("violation kind %q is not one of %s", kind, violationKinds)
		}
	}
	if a.interval <= 0 {
		return fmt.Errorf("WithMinPollInterval: %s is not positive", a.interval)
	}
	return nil
}

// MinPollInterval is the shortest time between two polls of a meeting that the service allows.
// [WithMinPollInterval] sets another for one Server.
const MinPollInterval = 30 * time.Second

// ViolationKind names a rule that a client broke. The constants are the complete list, and their
// comments say when a violation can be a false positive.
//
// The audit judges each client by itself. In memory, every result of [Server.Client],
// [Server.ClientWithKey] and [Server.NewHTTPClient] is a client, so a program that your test starts
// again is a new one. Requests through [Server.HTTPClient], [Server.Listen] or [Server.Handler] are told
// apart only by their key, because a connection does not show which process made it.
//
// Workers with such a shared key look like one client. So each time a create returns an existing
// meeting, as in Process with an ExternalID, the audit allows that meeting one more poller. It never
// reports Process, whether two workers run it at once or one continues after another was killed.
type ViolationKind string

const (
	// ViolationPoll: a client polled a meeting again within [MinPollInterval], and both GETs found the
	// same unfinished status. An upload of its recording or a request for its upload URL, by any client,
	// permits each client one early GET. List pages and the responses of creates and updates are no
	// polls, so they neither cause nor excuse a violation.
	//
	// Your program's own Get just before a Wait counts as a poll, so use WaitOptions.OnStatus instead. A
	// false positive needs two processes that share a key over a socket, so look like one client, and wait
	// for one meeting, not both with Process.
	// Give each process its own key.
	ViolationPoll ViolationKind = "poll"
	// ViolationCredential: an Authorization header was sent to storage, which must not see the key. It
	// is never a false positive.
	ViolationCredential ViolationKind = "credential"
	// ViolationRepeat: a client sent the same create of a meeting, member or project again, although the
	// first one may have taken effect, because it got a 5xx or no complete response. Creates with an
	// external_id are safe to repeat, and so are all other requests. If the client has listed
	// the meetings, members or projects in between, it may create again, because it could see whether the
	// first create took effect. It may be a false positive if you want two of the same, such
	// as two members of one name.
	ViolationRepeat ViolationKind = "repeat"
	// ViolationUploadURL: a client requested an upload URL for a meeting that has its audio, although
	// the service had already rejected two such requests for that reason. A poll that shows the meeting
	// as created starts the count again. It may be a false positive if three goroutines of a client
	// continue one meeting with Resume at the same time.
	ViolationUploadURL ViolationKind = "upload_url"
	// ViolationContentType: a request to the API had a body that was not sent as application/json, or
	// that claimed a Content-Encoding. It is never a false positive, although the fake reads the body
	// anyway.
	ViolationContentType ViolationKind = "content_type"
	// ViolationOpenBody: when the Server closed, a client had a response that it had neither read to its
	// end nor closed, and did neither within a tenth of a second. Only in-memory clients are watched. It
	// may be a false positive if the program still runs when its test ends.
	ViolationOpenBody ViolationKind = "open_body"
)

var violationKinds = []ViolationKind{ViolationPoll, ViolationCredential, ViolationRepeat, ViolationUploadURL, ViolationContentType, ViolationOpenBody}

// remedies say what to do about each kind.
var remedies = map[ViolationKind]string{
	ViolationPoll:        "wait that long between two polls of a meeting",
	ViolationCredential:  "send the PUT to the upload URL without an Authorization header",
	ViolationRepeat:      "list what exists before you create it again; a meeting with an external_id needs no check",
	ViolationUploadURL:   "read the meeting's status first; it has its audio if it is not created",
	ViolationContentType: "send JSON with Content-Type: application/json and without Content-Encoding",
	ViolationOpenBody:    "read each response to its end, or close its Body",
}

// Violation is one case of a client that broke a rule of the service. It contains no secrets.
type Violation struct {
	Kind       ViolationKind     `json:"kind"`
	At         time.Time         `json:"at"`            // of the request
	Seq        int               `json:"seq,omitempty"` // of the [Request]
	Operation  minutes.Operation `json:"operation,omitempty"`
	MeetingID  string            `json:"meeting_id,omitempty"`
	Title      string            `json:"title,omitempty"`       // of the meeting
	ExternalID string            `json:"external_id,omitempty"` // of the meeting
	Caller     string            `json:"caller,omitempty"`      // id of the member or integration behind the key
	Text       string            `json:"text"`                  // the problem, for people
	Remedy     string            `json:"remedy"`                // what to do about it, for people
}

// String describes the violation in one line.
func (v Violation) String() string {
	text := fmt.Sprintf("violation (%s): %s", v.Kind, v.Text)
	if v.Seq != 0 {
		text += fmt.Sprintf(" (request %d)", v.Seq)
	}
	return text + ": " + v.Remedy
}

// Violations returns the violations so far, in the order in which the audit noticed them. It keeps the
// last thousand, because so many mostly repeat the same mistake.
func (s *Server) Violations() []Violation {
	list, _ := s.audit.violations.Since(0)
	return list
}

// meeting names the meeting of a violation as people know it.
func (v *Violation) meeting() string {
	if v.Title == "" {
		return "meeting " + v.MeetingID
	}
	return fmt.Sprintf("meeting %s (%q)", v.MeetingID, v.Title)
}

// grouped returns a line for each group of violations that are alike: of one kind, and about one
// meeting. A program that polls too often does so again and again.
func grouped(violations []Violation) (lines []string) {
	type alike struct {
		kind      ViolationKind
		meetingID string
	}
	count := map[alike]int{}
	var first []Violation
	for _, v := range violations {
		group := alike{v.Kind, v.MeetingID}
		if count[group]++; count[group] == 1 {
			first = append(first, v)
		}
	}
	for _, v := range first {
		line := v.String()
		if n := count[alike{v.Kind, v.MeetingID}]; n > 1 {
			line += fmt.Sprintf(" (%d times)", n)
		}
		lines = append(lines, line)
	}
	return lines
}
