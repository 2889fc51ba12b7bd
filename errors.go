package minutes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/roundtrip"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/upload"
)

// Error is what every failed API call returns (find it with [errors.As]): a
// refusal by the service, a reply that is not what the interface says, or no
// reply at all. It carries the last reply that any try of the call received.
//
// Compare the code with [errors.Is], as in errors.Is(err, minutes.ErrNotFound). The
// text names method, path, status, code, message and request id, and the scope
// that a key lacks. Details stay out of it, for they may name people; RetryAfter is
// in its field alone.
type Error struct {
	// StatusCode is the HTTP status of the last reply, 0 where none came.
	StatusCode int
	// Code is the service's code (section 7), empty where the reply was not
	// the service's error envelope. ErrRateLimited stands for a bare 429.
	Code Code
	// Message is for people and may change. For a reply that is not what the
	// interface says, it tells what was wrong with it.
	Message string
	// RequestID is to be quoted in a support request.
	RequestID string
	// Details holds extra context keyed per code: for debugging, not to branch
	// on. Details["fields"] names the fields that ErrInvalidRequest is about. Nil
	// where there is none.
	Details map[string]any
	// RetryAfter is how long the service asked to wait (429 and 503), or what
	// is left of the Client's cool-down where that held the call back; else 0. Where
	// it is over a minute, or outlasts the context, the call returns at once.
	RetryAfter time.Duration
	// Operation is what was called; Method and Path are those of the request,
	// without query.
	Operation    Operation
	Method, Path string
	// Scope is the scope that the operation needs, where Code is
	// ErrInsufficientScope; else empty. The table of the package documentation says
	// which scopes are assumed.
	Scope string

	causes []error // what ended the call besides the reply
	acted  bool    // an attempt may have taken effect
}

// Error returns one line that holds no secret.
func (e *Error) Error() string {
	message := e.Message
	if e.Scope != "" {
		message = strings.TrimSpace(message + " (needs the scope " + e.Scope + ")")
	}
	return describe(e.Method+" "+e.Path, e.StatusCode, string(e.Code), message, e.causes, "request id", e.RequestID)
}

// describe is the text of a failed request.
func describe(request string, status int, code, message string, causes []error, idName, id string) string {
	if status != 0 {
		code = strings.TrimSpace(strconv.Itoa(status) + " " + code)
	}
	parts := []string{code, message}
	for _, cause := range causes {
		parts = append(parts, cause.Error())
	}
	var text strings.Builder
	text.WriteString("minutes: " + request)
	for _, part := range parts {
		if part != "" {
			text.WriteString(": " + plain(part))
		}
	}
	if id != "" {
		text.WriteString(" (" + idName + " " + plain(id) + ")")
	}
	return text.String()
}

// plain makes a text that came over the network fit for one line of a log: it is
// cut where it is very long, forges no line and steers no terminal.
func plain(s string) string {
	const longest = 1000
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// Is reports whether target is the Code; ErrRateLimited matches every 429.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code != "" && (code == e.Code || code == ErrRateLimited && e.StatusCode == 429)
}

// Unwrap returns what ended the call besides a reply: the network's error, or
// the context's, so that errors.Is(err, context.Canceled) holds.
func (e *Error) Unwrap() []error { return e.causes }

// Code is a machine-readable error code of the service (section 7 of the
// interface). It is an error itself, so that a code can be the target of
// [errors.Is]. The type is open: a code this package does not know arrives
// unchanged.
type Code string

// Error returns the code as the service spells it.
func (c Code) Error() string { return string(c) }

// The codes of section 7 of the interface, each documented by the service, with
// their HTTP status.
const (
	ErrInvalidRequest    Code = "INVALID_REQUEST"     // 400: body, or combination of query parameters; Details["fields"] names fields
	ErrBadRequest        Code = "BAD_REQUEST"         // 400: refused, and no more specific code applies
	ErrInvalidEmail      Code = "INVALID_EMAIL"       // 400: not a valid address
	ErrInvalidLimit      Code = "INVALID_LIMIT"       // 400: not a whole number from 1 to 50
	ErrInvalidCursor     Code = "INVALID_CURSOR"      // 400: not from an earlier page of the same list
	ErrInvalidDate       Code = "INVALID_DATE"        // 400: not a calendar date as YYYY-MM-DD
	ErrInvalidDateRange  Code = "INVALID_DATE_RANGE"  // 400: DateFrom lies after DateTo
	ErrInvalidTime       Code = "INVALID_TIME"        // 400: a time of day that is not HH:MM
	ErrInvalidExternalID Code = "INVALID_EXTERNAL_ID" // 400: empty or too long
	ErrInvalidSharedWith Code = "INVALID_SHARED_WITH" // 400: members without an account, or integrations; Details["invalid"] lists them

	ErrUnauthenticated Code = "UNAUTHENTICATED" // 401: the key is missing, malformed, unknown, expired or revoked

	ErrIPNotAllowed            Code = "IP_NOT_ALLOWED"             // 403: the key has an allowlist and the caller's address is not on it
	ErrAPIAccessDisabled       Code = "API_ACCESS_DISABLED"        // 403: the organisation has no API access, or the integration is no longer active
	ErrPersonalAPIKeysDisabled Code = "PERSONAL_API_KEYS_DISABLED" // 403: the organisation has switched personal keys off
	ErrInsufficientScope       Code = "INSUFFICIENT_SCOPE"         // 403: the key lacks the scope of the operation
	ErrOrganisationSuspended   Code = "ORGANISATION_SUSPENDED"     // 403: the organisation is blocked
	ErrOrganisationExpired     Code = "ORGANISATION_EXPIRED"       // 403: the organisation's access has expired
	ErrForbidden               Code = "FORBIDDEN"                  // 403: this caller may not change or delete the meeting

	ErrNotFound Code = "NOT_FOUND" // 404: not there, or not visible to the caller, as another member's private meeting

	ErrEmailTaken          Code = "EMAIL_TAKEN"           // 409: by another member, whom Details name
	ErrMemberLimitExceeded Code = "MEMBER_LIMIT_EXCEEDED" // 409: the organisation can hold no more members
	ErrExternalIDTaken     Code = "EXTERNAL_ID_TAKEN"     // 409: another meeting carries this external id
	ErrMinutesNotReady     Code = "MINUTES_NOT_READY"     // 409: the minutes do not exist yet
	ErrTranscriptNotReady  Code = "TRANSCRIPT_NOT_READY"  // 409: the transcript does not exist yet
	ErrParticipantsLocked  Code = "PARTICIPANTS_LOCKED"   // 409: the meeting has audio, so its participants can no longer change

	ErrInternal Code = "INTERNAL_ERROR" // 500: a fault on the service's side
)

// ErrRateLimited stands for an answer of 429, which the service's edge gives
// without a code. The name is this package's own, not the service's.
const ErrRateLimited Code = "RATE_LIMITED"

// ParamError reports a parameter that cannot be used. It is returned before
// any request is made, for what cannot be sent as it is. What can be sent the
// service judges: a title too long or a date that does not exist is an *Error,
// with ErrInvalidRequest or ErrInvalidDate.
type ParamError struct {
	Param  string // the parameter, as the Go signature or the field names it
	Reason string // what is wrong with it; never the value itself
}

// The kinds of ParamError about a recording that its owner can do something
// about. Compare them with [errors.Is]; each stands for any parameter. They are
// this package's own, not the service's.
var (
	// ErrRecordingEmpty: the recording has no bytes.
	ErrRecordingEmpty = &ParamError{Reason: "the recording is empty"}
	// ErrRecordingTooLarge: the recording is longer than MaxRecordingSize.
	ErrRecordingTooLarge = &ParamError{Reason: "the recording is over 1 GiB, which the service refuses"}
	// ErrRecordingFormat: neither content nor name of the recording show a content
	// type of audio or video.
	ErrRecordingFormat = &ParamError{Reason: "is not a known audio format; fill a Recording with its ContentType"}
)

// Error returns the parameter and the reason.
func (e *ParamError) Error() string {
	if e.Param == "" {
		return "minutes: " + e.Reason
	}
	return "minutes: " + e.Param + ": " + e.Reason
}

// Is reports whether target is this error's kind, such as ErrRecordingEmpty.
func (e *ParamError) Is(target error) bool {
	kind, ok := target.(*ParamError)
	return ok && kind.Param == "" && kind.Reason == e.Reason
}

// MeetingFailedError reports that a meeting ended in one of the four failure
// states (section 3). A meeting never leaves them; ProcessOptions.Restart deletes it
// and starts over.
type MeetingFailedError struct {
	Status  Status   // which of the four
	Meeting *Meeting // as last seen
}

var failureReasons = map[Status]string{
	StatusTranscribeBlocked:   " (not enough transcription quota; after a top-up, create the meeting again)",
	StatusAudioRejected:       " (the recording was refused, most often for its size)",
	StatusTranscriptionFailed: " (create a new meeting to try again)",
	StatusMinutesFailed:       " (the transcript exists, the minutes could not be written, for want of credits or otherwise)",
}

// Error names the meeting and its state.
func (e *MeetingFailedError) Error() string {
	m := cmp.Or(e.Meeting, new(Meeting))
	text := strings.TrimSpace("minutes: meeting "+plain(m.ID)) + " ended as " + plain(string(e.Status)) + failureReasons[e.Status]
	if m.ExternalID != "" {
		text += "; its external id is free for another try once it is deleted, as Process does with ProcessOptions.Restart"
	}
	return text
}

// WaitError reports a wait that ended otherwise than by the meeting's own end:
// the context was done, the meeting is gone, the key was refused, or too many
// looks in a row failed. Unwrap leads to the cause; where the context was done
// while looks failed, to both, so that errors.As finds the last one's *Error.
type WaitError struct {
	MeetingID string   // empty where a WaitAll ended with its context, or was given an empty id
	Meeting   *Meeting // as last seen, nil where no look succeeded
	Err       error    // the cause
}

// Error names the meeting, its last known status and the cause.
func (e *WaitError) Error() string {
	text := "minutes: waiting for meeting " + plain(e.MeetingID)
	if e.MeetingID == "" {
		text = "minutes: waiting for meetings"
	}
	if e.Meeting != nil {
		text += " (last seen " + plain(string(e.Meeting.Status)) + ")"
	}
	if e.Err != nil {
		text += ": " + plain(strings.TrimPrefix(e.Err.Error(), "minutes: "))
	}
	return text
}

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.Err }

// StorageError is what the upload of a recording to storage returns when the
// PUT did not succeed (section 4.2): a refusal by the store, whose errors are
// XML and not the service's envelope, or no reply at all. It carries the last
// reply that any attempt received, and what ended the last one.
type StorageError struct {
	// StatusCode is the HTTP status of the store's reply, 0 where none came.
	StatusCode int
	// Code is the store's own, such as "SignatureDoesNotMatch"; empty where
	// the reply was not the store's XML.
	Code      string
	Message   string // the store's, for people
	RequestID string // the store's, not the service's
	// RetryAfter is how long the store asked to wait (429 and 503), else 0. Where
	// it is over a minute, or outlasts the context, the upload returns at once.
	RetryAfter time.Duration

	causes []error
	passes bool // what refused or broke the last attempt may not meet another upload
}

// ErrPartialAudio is in the *StorageError of an upload (compare with
// [errors.Is]) where the meeting has audio, but no attempt handed over the whole
// recording: a store that keeps what it got of a broken upload, or another
// worker's upload. Such a meeting is better deleted and created again, unless
// other workers upload to it. [UploadOptions.ContentMD5] keeps such stores from
// doing so.
var ErrPartialAudio = upload.ErrPartialAudio

// Error returns one line that never holds the presigned URL's query.
func (e *StorageError) Error() string {
	return describe("upload to storage", e.StatusCode, e.Code, e.Message, e.causes, "storage request id", e.RequestID)
}

// Unwrap returns what ended the upload besides a reply: the network's error,
// the recording's, or the context's.
func (e *StorageError) Unwrap() []error { return e.causes }

// Retryable reports whether the call that returned err is worth making again
// later, as it is: nobody has to do anything about it meanwhile but the service.
// That is so after a 429, a 408 or a 5xx; where no reply came, or none that makes
// sense, or not all of it; where storage failed in such a way, or found that the
// upload URL had expired; where minutes or a transcript are not there yet
// (section 3); and where the context's deadline has passed, which another context
// may have further away. Where a WaitError or a Result's error wraps one of these,
// it is so, too.
//
// It is not so for a context that was cancelled, which was the caller's own will;
// for every other refusal; for a meeting that failed or has no audio; for a
// parameter or a recording that cannot be used; for a certificate that is not the
// service's. It says nothing of whether a write without a reply took effect: Create
// with an ExternalID, Process with one, Finish, and what only reads may be called
// again in any case.
//
// The interface documents 429, 500 and the minutes that are not there yet; the rest
// is assumed.
func Retryable(err error) bool {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, ErrPartialAudio), roundtrip.Untrusted(err), KeyRefused(err):
		return false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrRateLimited),
		errors.Is(err, ErrMinutesNotReady), errors.Is(err, ErrTranscriptNotReady):
		return true
	}
	// Where both are found, the request of the API came after the upload.
	if e, ok := errors.AsType[*Error](err); ok {
		none := e.StatusCode == 0 && e.Code == ""
		return none || e.StatusCode/100 == 2 || e.StatusCode == http.StatusRequestTimeout || e.StatusCode >= 500
	}
	e, ok := errors.AsType[*StorageError](err)
	return ok && e.passes
}

// KeyRefused reports whether the service has refused the API key, or the
// organisation behind it, so that no other call like this one will do better until
// people have seen to it: a 401, and the codes of 403 other than ErrForbidden, which
// is about one meeting. After ErrInsufficientScope, operations with other scopes
// may still work. All of these are documented (section 7).
func KeyRefused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.StatusCode == http.StatusUnauthorized || slices.ContainsFunc([]Code{
		ErrUnauthenticated, ErrIPNotAllowed, ErrAPIAccessDisabled, ErrPersonalAPIKeysDisabled,
		ErrInsufficientScope, ErrOrganisationSuspended, ErrOrganisationExpired,
	}, func(code Code) bool { return errors.Is(err, code) })
}

// failed is what a failed request means to the caller: all of section 7.
func (c *core) failed(f *rest.Failure) *Error {
	e := c.errorOf(f.Route, f.Path, &f.Reply)
	e.RetryAfter, e.causes, e.acted = f.RetryAfter, f.Causes, f.Acted
	if f.Came() && f.Status/100 != 2 { // a success that broke off says nothing; what ended the call does
		c.refused(e, &f.Reply)
	}
	if e.Code == ErrInsufficientScope {
		e.Scope = f.Route.Scope
	}
	if f.Cooling && e.Code == "" {
		e.Code = ErrRateLimited
	}
	return e
}

// refused fills in what a reply other than a success says.
func (c *core) refused(e *Error, reply *rest.Reply) {
	var env struct { // the form of every refusal (section 7)
		Error struct {
			Code      Code           `json:"code"`
			Message   string         `json:"message"`
			RequestID string         `json:"request_id"`
			Details   map[string]any `json:"details"`
		} `json:"error"`
	}
	err := json.Unmarshal(reply.Body(), &env)
	switch {
	case env.Error.Code != "":
		// Fields of a wrong type are left out; what is right is kept.
		e.Code = Code(c.Mask.Text(string(env.Error.Code)))
		e.Message = c.Mask.Text(env.Error.Message)
		e.Details = env.Error.Details
		c.Mask.Tree(e.Details)
	case reply.Status/100 == 3:
		e.Message = "redirects are refused"
	case reply.Status == http.StatusTooManyRequests:
		e.Code, e.Message = ErrRateLimited, "too many requests"
	case len(reply.Body()) == 0:
		e.Message = cmp.Or(http.StatusText(reply.Status), "the reply is empty")
	case err != nil:
		e.Message = "the reply is not the service's error envelope: " + c.Mask.Text(describeBody(reply, err))
	default:
		e.Message = "the reply is not the service's error envelope"
	}
	e.RequestID = cmp.Or(c.Mask.Text(env.Error.RequestID), e.RequestID)
}

// unusable is the error for a reply that is no refusal, and cannot be used.
func (c *core) unusable(in rest.Request, reply *rest.Reply, why string) *Error {
	row, address := c.api.Locate(in)
	e := c.errorOf(row, address[len(c.Base):], reply)
	e.Message = c.Mask.Text(why)
	return e
}

// errorOf is an error about a request and its reply, with the request id of a
// gateway. The service's own stands in the envelope.
func (c *core) errorOf(row *route.Route, path string, reply *rest.Reply) *Error {
	return &Error{
		StatusCode: reply.Status, RequestID: c.Mask.Text(reply.Header.Get("X-Request-Id")),
		Operation: Operation(row.Operation), Method: row.Method, Path: c.Mask.Text(path),
	}
}

// describeBody says what is wrong with a body without quoting it.
func describeBody(reply *rest.Reply, err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		found, _, _ := strings.Cut(wrong.Value, " ") // what follows "number" is its digits
		if wrong.Field == "" {
			return "a JSON " + found + " where an object should be"
		}
		return "a JSON " + found + " that does not fit the field " + strconv.Quote(wrong.Field)
	}
	kind, _, _ := mime.ParseMediaType(reply.Header.Get("Content-Type"))
	return "no valid JSON (" + cmp.Or(kind, "no content type") + ", " + strconv.Itoa(len(reply.Body())) + " bytes)"
}
