package minutestest

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/internal/fake/recent"
)

// maxViolations is how many violations the audit keeps: a program that breaks a rule a thousand
// times has only one mistake.
const maxViolations = 1000

// audit checks what clients do. [ViolationKind] says what a client is, and has the rules.
type audit struct {
	ignored []ViolationKind
	// interval is the shortest time between two polls of a meeting.
	interval time.Duration
	meeting  func(id string) (Meeting, bool)

	mu sync.Mutex
	// histories is by meeting and client.
	histories  map[string]map[string]*history
	violations recent.List[Violation]
	// creates has the seq of each create that may have taken effect.
	creates map[repeat]int
	// lists has the seq of the last list page of each place.
	lists map[place]int
}

func newAudit(interval time.Duration, ignored []ViolationKind, meeting func(string) (Meeting, bool)) *audit {
	return &audit{
		ignored:    ignored,
		interval:   interval,
		meeting:    meeting,
		histories:  map[string]map[string]*history{},
		violations: recent.List[Violation]{Max: maxViolations},
		creates:    map[repeat]int{},
		lists:      map[place]int{},
	}
}

// history is what the audit knows of a client and a meeting.
type history struct {
	// workers is how many programs may be behind the client. Over a socket, they may share a key, so it
	// counts those it can tell apart. An in-memory client is always one.
	workers int
	// polls are the last ones of each operation that polls, as many as there are workers.
	polls map[minutes.Operation][]poll
	// rejections counts upload URLs that were rejected because the meeting has its audio, since a
	// poll showed none.
	rejections int
}

// poll is what a poll found, and when.
type poll struct {
	at    time.Time
	found string
}

// place is where a client creates and lists objects of one sort.
type place struct{ client, path string }

// repeat is a create; two that are equal repeat each other.
type repeat struct {
	place place
	body  string
}

// client says who sent a request. A socket does not show which program is at its other end, so
// there the key has to do.
func (x *exchange) client() string {
	if x.sender != 0 {
		return fmt.Sprint(x.sender)
	}
	return "key " + x.key
}

func (x *exchange) place() place { return place{client: x.client(), path: x.Path} }

// shown reports whether the client was shown what it asked for.
func (x *exchange) shown() bool {
	return x.Status == http.StatusOK && !x.Lost && x.Method == http.MethodGet
}

// check judges one request and its response.
func (a *audit) check(x *exchange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch x.Operation {
	case "":
		return
	case minutes.OpMeetingsGet:
		a.checkStatus(x)
	case minutes.OpMeetingsMinutes, minutes.OpMeetingsTranscript:
		a.checkNotReady(x)
	case minutes.OpMeetingsCreate:
		a.countWorkers(x)
		if x.names.ExternalID == "" {
			a.checkRepeat(x)
		}
	case minutes.OpMembersCreate:
		if x.names.Email == "" { // otherwise the second one gets EMAIL_TAKEN
			a.checkRepeat(x)
		}
	case minutes.OpProjectsCreate:
		a.checkRepeat(x)
	case minutes.OpMeetingsList, minutes.OpMembersList, minutes.OpProjectsList:
		a.noteList(x)
	case minutes.OpUpload:
		a.checkCredential(x)
		a.forgetPolls(x.MeetingID)
	case minutes.OpMeetingsUploadURL:
		a.checkUploadURL(x)
		a.forgetPolls(x.MeetingID)
	}
	a.checkContentType(x)
}

// of returns the history of a request's client and meeting.
func (a *audit) of(x *exchange) *history {
	clients := a.histories[x.MeetingID]
	if clients == nil {
		clients = map[string]*history{}
		a.histories[x.MeetingID] = clients
	}
	h := clients[x.client()]
	if h == nil {
		h = &history{workers: 1, polls: map[minutes.Operation][]poll{}}
		clients[x.client()] = h
	}
	return h
}

// countWorkers notes that several workers share a key over a socket: a create that returns a
// meeting that exists may be another worker's.
func (a *audit) countWorkers(x *exchange) {
	if x.sender == 0 && x.Status == http.StatusOK && !x.Lost {
		a.of(x).workers++
	}
}

// checkStatus finds a client that polls a meeting too early.
func (a *audit) checkStatus(x *exchange) {
	found := x.response.MeetingStatus
	if !x.shown() || found == "" {
		return
	}
	h := a.of(x)
	if found == minutes.StatusCreated {
		h.rejections = 0 // the client may ask for an upload URL: it has been shown no audio
	}
	now := poll{x.arrivedAt, string(found)}
	before := h.remember(x.Operation, now)
	since := now.at.Sub(before.at)
	switch {
	case !a.isEarly(before, now) || found.Final():
	case h.workers > 1:
		a.add(ViolationPoll, x, fmt.Sprintf("%s was polled %d times in %v, and was %s; ",
			a.nameOf(x.MeetingID), h.workers+1, since, found)+
			fmt.Sprintf("%d workers may poll it %d times in %v", h.workers, h.workers, a.interval))
	default:
		a.add(ViolationPoll, x, fmt.Sprintf("%s was polled again after %v instead of %v, and was %s both times",
			a.nameOf(x.MeetingID), since, a.interval, found))
	}
}

// checkNotReady finds a client that polls for minutes or a transcript instead of the meeting. After
// the end of a meeting, there is nothing to wait for.
func (a *audit) checkNotReady(x *exchange) {
	code := minutes.ErrorCode(x.Code)
	notReady := code == minutes.ErrMinutesNotReady || code == minutes.ErrTranscriptNotReady
	if !notReady || x.Lost || x.response.MeetingStatus.Final() {
		return
	}
	now := poll{x.arrivedAt, x.Code}
	before := a.of(x).remember(x.Operation, now)
	if a.isEarly(before, now) {
		a.add(ViolationPoll, x, fmt.Sprintf("%s %s of %s was sent again after %v instead of %v, and got %s both times",
			x.Method, x.Path, a.nameOf(x.MeetingID), now.at.Sub(before.at), a.interval, code))
	}
}

// remember adds a poll, and returns the earlier one that it follows: the last one or, if there may
// be two workers, the one before the last, and so on.
func (h *history) remember(op minutes.Operation, now poll) (before poll) {
	polls := h.polls[op]
	if len(polls) == h.workers {
		before = polls[0]
		polls = polls[1:]
	}
	h.polls[op] = append(polls, now)
	return before
}

// isEarly reports whether a poll came too early after one that found the same. A second, or a third
// of a very short interval, is left to timers and networks, which are not exact.
func (a *audit) isEarly(before, now poll) bool {
	since := now.at.Sub(before.at)
	slack := min(time.Second, a.interval/3)
	return now.found == before.found && since >= 0 && since < a.interval-slack
}

// forgetPolls excuses the next poll of a meeting.
func (a *audit) forgetPolls(meetingID string) {
	for _, h := range a.histories[meetingID] {
		clear(h.polls)
	}
}

// checkCredential finds a client that shows its key to storage.
func (a *audit) checkCredential(x *exchange) {
	if x.Header["Authorization"] != nil {
		a.add(ViolationCredential, x, "an Authorization header was sent to storage")
	}
}

// checkUploadURL finds a client that asks for an upload URL again and again after the service has
// said that the meeting has its audio. A client may get this error twice, because two of its
// goroutines may be too late, and once more for each further worker.
func (a *audit) checkUploadURL(x *exchange) {
	found := x.response.MeetingStatus
	if x.Lost || x.Code != string(minutes.ErrBadRequest) || found == "" || found == minutes.StatusCreated {
		return
	}
	h := a.of(x)
	h.rejections++
	if h.rejections > h.workers+1 {
		a.add(ViolationUploadURL, x, fmt.Sprintf("asked for an upload URL again for %s, ", a.nameOf(x.MeetingID))+
			fmt.Sprintf("which is %s and so has its audio", found))
	}
}

// noteList notes that a client could see what exists. The Server may notice a lost create only
// after the list page that follows it, so the numbers of the requests count.
func (a *audit) noteList(x *exchange) {
	if x.shown() {
		a.lists[x.place()] = max(a.lists[x.place()], x.Seq)
	}
}

// checkRepeat compares a create with those that may have taken effect before, unless the client has
// listed what exists since then.
func (a *audit) checkRepeat(x *exchange) {
	this := repeat{x.place(), string(x.body)}
	first, again := a.creates[this]
	delete(a.creates, this)
	// The service may not have read the body of a rejected request.
	if !x.rejected && (x.Lost || x.Status == 0 || x.Status >= 500) {
		a.creates[this] = x.Seq
	}
	if again && a.lists[this.place] < first {
		a.add(ViolationRepeat, x, x.Method+" "+x.Path+
			" was sent again with the same body, though the first may have taken effect")
	}
}

// checkContentType checks how a JSON body was sent.
func (a *audit) checkContentType(x *exchange) {
	if len(x.body) == 0 {
		return
	}
	contentType := x.Header.Get("Content-Type")
	encoding := x.Header.Get("Content-Encoding")
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" || encoding != "" && encoding != "identity" {
		a.add(ViolationContentType, x,
			fmt.Sprintf("the body of %s %s was sent with Content-Type %q and Content-Encoding %q",
				x.Method, x.Path, contentType, encoding))
	}
}

// noteOpenBody notes that a client left a response open.
func (a *audit) noteOpenBody(body *openBody) {
	a.mu.Lock()
	defer a.mu.Unlock()
	op, meetingID := engine.Identify(body.req)
	key := engine.KeyOf(body.req)
	text := fmt.Sprintf("the response to %s %s was neither read to its end nor closed",
		body.req.Method, body.req.URL.Path)
	a.keep(Violation{
		Kind:      ViolationOpenBody,
		At:        body.at,
		Operation: op,
		MeetingID: meetingID,
		Text:      text,
	}, key)
}

// add keeps a violation of x. The caller holds mu.
func (a *audit) add(kind ViolationKind, x *exchange, text string) {
	if x.Caller != "" {
		text += ", by " + x.Caller
	}
	a.keep(Violation{
		Kind:      kind,
		At:        x.At,
		Seq:       x.Seq,
		Operation: x.Operation,
		MeetingID: x.MeetingID,
		Caller:    x.Caller,
		Text:      text,
	}, x.key)
}

// keep keeps a violation, unless its kind is ignored, without the key that the client sent. The caller
// holds mu.
func (a *audit) keep(v Violation, key string) {
	if slices.Contains(a.ignored, v.Kind) {
		return
	}
	m, _ := a.meeting(v.MeetingID)
	v.MeetingID = hide(v.MeetingID, key)
	v.Title = hide(m.Title, key)
	v.ExternalID = hide(m.ExternalID, key)
	v.Text = hide(v.Text, key)
	v.Remedy = remedies[v.Kind]
	a.violations.Add(v)
}

// nameOf is a meeting as people know it.
func (a *audit) nameOf(meetingID string) string {
	m, _ := a.meeting(meetingID)
	if m.Title == "" {
		return "meeting " + meetingID
	}
	return fmt.Sprintf("meeting %s (%q)", meetingID, m.Title)
}
