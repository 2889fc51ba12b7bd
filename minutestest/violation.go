package minutestest

import (
	"fmt"
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// MinPollInterval is the minimum poll interval: the audit reports two polls of one meeting that are
// less than this apart. [WithMinPollInterval] sets another for one Server.
const MinPollInterval = 30 * time.Second

// ViolationKind names a rule that a client broke. The constants are the complete list, and their
// comments say when a violation can be a false positive.
//
// The audit judges each client by itself. In memory, every result of [Server.Client],
// [Server.ClientWithKey] and [Server.NewHTTPClient] is a client, so give a restarted program a new
// one. Requests through [Server.HTTPClient], [Server.Listen] or [Server.Handler] are
// distinguished only by their key, because a connection does not show which process made it.
//
// Workers with such a shared key look like one client. So each time a create returns an existing
// meeting, as in Process with an ExternalID, the audit allows that meeting one more poller. It
// never reports the polls of Process with an ExternalID, whether two workers run it at once or one
// continues after another was killed.
type ViolationKind = world.ViolationKind

const (
	// ViolationPoll: a client polled a meeting again within [MinPollInterval], and both GETs found
	// the same unfinished status. A client may be early by a second, or by a third of the interval
	// if [WithMinPollInterval] has made it shorter than three seconds, because timers and networks
	// are not exact. A client that asks again for minutes or a transcript that were not ready
	// polls, too, unless the meeting has failed. An upload of its recording or a request for its
	// upload URL, by any client, permits each client one early GET. List pages and the responses of
	// creates and updates are not polls, so they neither cause nor excuse a violation.
	//
	// Your program's own Get counts as a poll. A Wait that begins just after it with the same
	// Client uses its response, and so keeps the interval. But a second Get, or one during a Wait,
	// can be too early, so use WaitOptions.OnStatus instead.
	//
	// The violation is a false positive in two cases, both with one key shared over a socket: (1)
	// two processes wait for the same meeting, and at least one of them does not use Process; (2) a
	// process crashed during a wait, and the next one continues with Resume and a stored id. Give
	// each process, and the one after a crash, a key of its own.
	//
	// It is missed if several Clients stand for one program, because each may poll: a command-line
	// program that is run five times within thirty seconds polls five times. To have the audit count
	// such Clients as one, give them one HTTP client:
	//
	//	srv.Client(minutes.WithHTTPClient(srv.HTTPClient()))
	ViolationPoll ViolationKind = "poll"
	// ViolationCredential: an Authorization header was sent to storage, which must not see the key.
	// It is never a false positive.
	ViolationCredential ViolationKind = "credential"
	// ViolationRepeat: a client sent the same create of a meeting, member or project again,
	// although the first one may have taken effect, because it got a 5xx or no complete response. A
	// meeting with an external_id and a member with an email are safe to create again. The audit
	// does not judge other requests. If the client has listed the meetings, members or projects in
	// between, it may create again, because it could see whether the first create took effect. It
	// may be a false positive if you want two of the same, such as two members of one name.
	ViolationRepeat ViolationKind = "repeat"
	// ViolationUploadURL: a client requested an upload URL for a meeting that has its audio,
	// although the service had already rejected two such requests for that reason. A GET that shows
	// the status created starts the count again. It may be a false positive if three goroutines of
	// a client continue one meeting with Resume at the same time.
	ViolationUploadURL ViolationKind = "upload_url"
	// ViolationContentType: a request to the API had a body that was not sent as application/json,
	// or that claimed a Content-Encoding. It is never a false positive, although the fake reads the
	// body anyway.
	ViolationContentType ViolationKind = "content_type"
	// ViolationOpenBody: when the Server closed, a client had a response that it had neither read
	// to its end nor closed, and did neither in the next 0.1 s. Only in-memory clients are watched.
	// It may be a false positive if the program still runs when its test ends.
	ViolationOpenBody ViolationKind = "open_body"
)

// ParseViolationKind returns the kind with this name, or an error that lists the kinds there are.
func ParseViolationKind(name string) (ViolationKind, error) {
	kind := ViolationKind(name)
	if !slices.Contains(violationKinds, kind) {
		return "", fmt.Errorf("violation kind %q is not one of %s", name, violationKinds)
	}
	return kind, nil
}

var violationKinds = []ViolationKind{
	ViolationPoll,
	ViolationCredential,
	ViolationRepeat,
	ViolationUploadURL,
	ViolationContentType,
	ViolationOpenBody,
}

// remedies say what to do about each kind.
var remedies = map[ViolationKind]string{
	ViolationPoll:       "wait that long between two polls of a meeting",
	ViolationCredential: "send the PUT to the upload URL without an Authorization header",
	ViolationRepeat: "list what exists before you create it again; " +
		"a meeting with an external_id and a member with an email need no check",
	ViolationUploadURL:   "read the meeting's status first; it has its audio if it is not created",
	ViolationContentType: "send JSON with Content-Type: application/json and without Content-Encoding",
	ViolationOpenBody:    "read each response to its end, or close its Body",
}

// Violation is a [world.Violation]: one case of a client that broke a rule of the service. It
// contains no secrets.
//
// Its fields are Kind ViolationKind; At time.Time; Seq int; Operation minutes.Operation;
// MeetingID, Title, ExternalID, Caller, Text, Remedy string.
type Violation = world.Violation

// Violations returns the violations so far, in the order in which the audit noticed them. It keeps
// the last thousand, because that many mostly repeat the same mistake.
func (s *Server) Violations() []Violation {
	list, _ := s.audit.violations.Since(0)
	return list
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
		if count[group] == 0 {
			first = append(first, v)
		}
		count[group]++
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
