package minutestest

import (
	"fmt"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// MinPollInterval is the shortest time between two polls of a meeting that the service asks of its
// clients, unless [WithMinPollInterval] sets another.
const MinPollInterval = 30 * time.Second

// ViolationKind names something that a client must not do. The constants are the complete list, and
// their comments say when a violation can be a false positive.
//
// The audit judges each client by itself. In memory, every result of [Server.Client],
// [Server.ClientWithKey] and [Server.NewHTTPClient] is a client, so a program that your test starts
// again is a new one. Everything that comes through [Server.HTTPClient], [Server.Listen] or
// [Server.Handler] is told apart by its key, because a connection does not show which process made
// it. There, each create that returns a meeting that exists, as Process sends one with an
// ExternalID, counts as one more worker on that meeting, so Process is never reported: neither for
// two workers at once, nor for the process that continues after another was killed.
type ViolationKind string

const (
	// ViolationPoll: a client polled a meeting again within [MinPollInterval], and both GETs found
	// the same unfinished status. An upload, or a request for an upload URL, in between excuses the
	// next GET, whoever sent it. List pages and the responses of creates and updates are no polls,
	// so they neither cause nor excuse a violation.
	//
	// The program's own Get just before a Wait counts: use WaitOptions.OnStatus instead. It may be
	// a false positive only if two processes share a key over a socket and one of them continues
	// with Resume or Wait, because nothing shows that this is another worker: give it its own key.
	ViolationPoll ViolationKind = "poll"
	// ViolationCredential: an Authorization header was sent to storage. It is never a false
	// positive.
	ViolationCredential ViolationKind = "credential"
	// ViolationRepeat: a client created a meeting, member or project again, with the same body,
	// although the first create may have taken effect: it got a 5xx, lost its connection, or did
	// not wait for the response. Creates with an external_id are safe to repeat, and so are all
	// other requests. A list page of the meetings, members or projects in between excuses the next
	// create of one. It may be a false positive if two of the same are wanted, as two members of
	// one name.
	ViolationRepeat ViolationKind = "repeat"
	// ViolationUploadURL: a client requested an upload URL for a meeting that has its audio,
	// although the service had rejected two such requests for that reason. A poll that shows the
	// meeting as created starts the count again. It may be a false positive if three goroutines of
	// a client continue one meeting with Resume at the same time.
	ViolationUploadURL ViolationKind = "upload_url"
	// ViolationContentType: a request to the API had a body that was not sent as application/json,
	// or that claimed a Content-Encoding. The fake reads it as JSON anyway. It is never a false
	// positive.
	ViolationContentType ViolationKind = "content_type"
	// ViolationOpenBody: when the Server was closed, a client had neither read a response to its
	// end nor closed it, and did not within a tenth of a second. Only in-memory clients are watched
	// for it. It may be a false positive if the program still works when its test ends.
	ViolationOpenBody ViolationKind = "open_body"
)

var violationKinds = []ViolationKind{ViolationPoll, ViolationCredential, ViolationRepeat, ViolationUploadURL, ViolationContentType, ViolationOpenBody}

// remedies say what to do about each kind.
var remedies = map[ViolationKind]string{
	ViolationPoll:        "wait that long between two polls, as Wait does",
	ViolationCredential:  "send the PUT to the upload URL without an Authorization header",
	ViolationRepeat:      "list what exists before you create it again; a meeting with an external_id needs no check",
	ViolationUploadURL:   "read the meeting's status first; it has its audio if it is not created",
	ViolationContentType: "send JSON with Content-Type: application/json and without Content-Encoding",
	ViolationOpenBody:    "read each response to its end, or close its Body",
}

// Violation is something a client did that the service asks it not to do. It holds no secrets.
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

// Violations returns the violations so far, at most a thousand, in the order in which the audit
// noticed them.
func (s *Server) Violations() []Violation { return s.audit.after(0) }

// meeting names the meeting of a violation as people know it.
func (v *Violation) meeting() string {
	name := "meeting " + v.MeetingID
	var known []string
	if v.Title != "" {
		known = append(known, fmt.Sprintf("%q", v.Title))
	}
	if v.ExternalID != "" {
		known = append(known, fmt.Sprintf("external id %q", v.ExternalID))
	}
	if known == nil {
		return name
	}
	return name + " (" + strings.Join(known, ", ") + ")"
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
