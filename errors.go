package minutes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/upload"
)

// Error is the error of every failed API call; find it with [errors.As]. It has the last
// response that any attempt of the call received.
//
// Compare the code with [errors.Is], as in errors.Is(err, minutes.ErrNotFound). The text
// has method, path, status, code, message, RetryAfter and request id, and the scope that a key lacks.
// It omits Details, which may name people.
type Error struct {
	// StatusCode is the HTTP status of the last response, 0 if there was none.
	StatusCode int
	// Code is the service's code (section 7). It is empty if the response was not the
	// service's error envelope, and ErrRateLimited after a 429 without a code.
	Code ErrorCode
	// Message is for people and may change. If the response did not match the interface,
	// it says how.
	Message string
	// RequestID is for support requests.
	RequestID string
	// Details holds extra context for each code: for debugging, not for decisions.
	// Details["fields"] names the fields that ErrInvalidRequest is about. Nil if there
	// is none.
	Details map[string]any
	// RetryAfter is how long the service asked to wait (429 and 503), or what is left of
	// the Client's rate-limit pause if that prevented the call; else 0. If it is over a
	// minute, or longer than the context's deadline, the call returns at once.
	RetryAfter time.Duration
	// Operation is the operation that was called. Method and Path are those of the
	// request; Path has no query.
	Operation    Operation
	Method, Path string
	// Scope is the scope that the operation needs if Code is ErrInsufficientScope; else
	// empty. The table of the package documentation says which scopes are assumed.
	Scope string

	causes             []error // what ended the call besides the response
	mayHaveTakenEffect bool    // in one of its attempts
}

// Error returns one line that holds no secret.
func (e *Error) Error() string {
	message := e.Message
	if e.Scope != "" {
		message = strings.TrimSpace(message + " (needs the scope " + e.Scope + ")")
	}
	return describe(e.Method+" "+e.Path, e.StatusCode, string(e.Code), message, e.RetryAfter, e.causes, "request id", e.RequestID)
}

// describe returns the text of a failed request's error.
func describe(request string, status int, code, message string, after time.Duration, causes []error, idName, id string) string {
	if status != 0 {
		code = strings.TrimSpace(strconv.Itoa(status) + " " + code)
	}
	parts := []string{code, message}
	if after > 0 {
		parts = append(parts, "retry after "+after.Round(time.Second).String())
	}
	for _, cause := range causes {
		parts = append(parts, cause.Error())
	}
	var text strings.Builder
	text.WriteString("minutes: " + request)
	for _, part := range parts {
		if part != "" {
			text.WriteString(": " + singleLine(part))
		}
	}
	if id != "" {
		text.WriteString(" (" + idName + " " + singleLine(id) + ")")
	}
	return text.String()
}

// singleLine makes a text from the network safe for one line of a log: it cuts a long
// text and removes line breaks and terminal controls.
func singleLine(s string) string {
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

// ErrMeetingGone matches the error of a call that found its meeting gone: a NOT_FOUND
// from Get, Delete, UploadURL, Minutes or a poll, also inside a *WaitError. A NOT_FOUND from
// Create, Update or SetParticipants may be about a participant, project or template, and
// does not match. This package defines it, not the service.
var ErrMeetingGone = errors.New("minutes: the meeting is gone")

// Is reports whether target is the Code; ErrRateLimited matches every 429, and
// ErrMeetingGone a NOT_FOUND that can only be about the meeting.
func (e *Error) Is(target error) bool {
	if target == ErrMeetingGone {
		return e.Code == ErrNotFound && slices.Contains([]Operation{
			OpMeetingsGet, OpMeetingsDelete, OpMeetingsUploadURL, OpMeetingsMinutes,
		}, e.Operation)
	}
	code, ok := target.(ErrorCode)
	return ok && code != "" && (code == e.Code || code == ErrRateLimited && e.StatusCode == 429)
}

// Unwrap returns what ended the call besides a response: the error of the network or of
// the context, so that errors.Is(err, context.Canceled) works.
func (e *Error) Unwrap() []error { return e.causes }

// ParamError reports a parameter that cannot be sent unchanged. It is returned before any
// request. The service validates every value that can be sent: an overlong title or a
// nonexistent date results in an *Error with ErrInvalidRequest or ErrInvalidDate.
type ParamError struct {
	Param  string // the name of the parameter in the Go signature, or of the field
	Reason string // what is wrong with it; never the value itself
}

// These errors of a recording are in a *ParamError; compare with [errors.Is]. They are
// this package's own, not the service's.
var (
	// ErrRecordingEmpty: the recording has no bytes.
	ErrRecordingEmpty = errors.New("the recording is empty")
	// ErrRecordingTooLarge: the recording is larger than MaxRecordingSize.
	ErrRecordingTooLarge = errors.New("the recording is over 1 GiB, which the service rejects")
	// ErrRecordingFormat: neither the content nor the name of the recording shows a
	// content type of audio or video.
	ErrRecordingFormat = errors.New("is not a known audio format; give its content type, as FromReader does")
)

// Error returns the parameter and the reason.
func (e *ParamError) Error() string {
	return "minutes: " + e.Param + ": " + e.Reason
}

// Unwrap returns ErrRecordingEmpty, ErrRecordingTooLarge, ErrRecordingFormat or nil.
func (e *ParamError) Unwrap() error {
	for _, kind := range []error{ErrRecordingEmpty, ErrRecordingTooLarge, ErrRecordingFormat} {
		if e.Reason == kind.Error() {
			return kind
		}
	}
	return nil
}

// MeetingFailedError reports that a meeting ended in one of the four failure states
// (section 3), which are final. ProcessOptions.Restart deletes it and starts again.
type MeetingFailedError struct {
	Status  Status   // one of the four
	Meeting *Meeting // as last seen
}

var failureReasons = map[Status]string{
	StatusTranscribeBlocked:   " (not enough transcription quota; top it up and create the meeting again)",
	StatusAudioRejected:       " (the service rejected the recording, usually because of its size)",
	StatusTranscriptionFailed: " (create a new meeting to try again)",
	StatusMinutesFailed:       " (the transcript exists, but the minutes could not be written; check the credits)",
}

// Error names the meeting and its state.
func (e *MeetingFailedError) Error() string {
	m := cmp.Or(e.Meeting, new(Meeting))
	text := strings.TrimSpace("minutes: meeting "+singleLine(m.ID)) + " ended as " + singleLine(string(e.Status)) + failureReasons[e.Status]
	if m.ExternalID != "" {
		text += "; delete it before you use its external id again, or set ProcessOptions.Restart"
	}
	return text
}

// WaitError reports a wait that ended before the meeting did: the context was done, the
// meeting is gone, the service rejected the key, or too many polls failed in a row.
// Unwrap returns the cause. If the context was done while polls failed, it returns both,
// so that errors.As finds the *Error of the last poll.
type WaitError struct {
	MeetingID string   // empty if the context ended a WaitAll, or if WaitAll got an empty id
	Meeting   *Meeting // as last seen; nil if no poll succeeded
	Err       error    // the cause
}

// Error names the meeting, its last known status and the cause.
func (e *WaitError) Error() string {
	text := "minutes: waiting for meeting " + singleLine(e.MeetingID)
	if e.MeetingID == "" {
		text = "minutes: waiting for meetings"
	}
	if e.Meeting != nil {
		text += " (last seen " + singleLine(string(e.Meeting.Status)) + ")"
	}
	if e.Err != nil {
		text += singleLine(strings.ReplaceAll(": "+e.Err.Error(), ": minutes: ", ": "))
	}
	return text
}

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.Err }

// StorageError reports that the upload of a recording to storage failed (section 4.2). It
// has the last response that any attempt received, and why the last attempt failed.
type StorageError struct {
	// StatusCode is the HTTP status of the store's response, 0 if there was none.
	StatusCode int
	// Code is the store's own, such as "SignatureDoesNotMatch". It is empty if the
	// response was not the store's XML.
	Code      string
	Message   string // the store's, for people
	RequestID string // the store's, not the service's
	// RetryAfter is how long the store asked to wait (429 and 503), else 0. If it is over
	// a minute, or longer than the context's deadline, the upload returns at once.
	RetryAfter time.Duration

	meeting, host string
	causes        []error
	retryable     bool // another upload may succeed
}

// ErrPartialAudio is in the *StorageError of an upload (compare with [errors.Is]) if the
// meeting has audio, but no attempt sent the whole recording. Either the store keeps the
// received part of a broken upload, or another worker uploaded audio. Delete such a
// meeting and create it again, unless other workers upload to it.
// See [UploadOptions.WithoutContentMD5] for what keeps stores from accepting a part.
var ErrPartialAudio = upload.ErrPartialAudio

// Error returns one line that never holds the presigned URL's query.
func (e *StorageError) Error() string {
	upload := "upload to storage"
	if e.host != "" {
		upload = "upload for meeting " + singleLine(e.meeting) + " to " + e.host
	}
	return describe(upload, e.StatusCode, e.Code, e.Message, e.RetryAfter, e.causes, "storage request id", e.RequestID)
}

// Unwrap returns what ended the upload besides a response.
func (e *StorageError) Unwrap() []error { return e.causes }

// Retryable reports whether err is temporary: the same call may succeed later without
// intervention. This is so for
//
//   - a 429, a 408 or a 5xx;
//   - no response, a response that did not match the interface, or part of one;
//   - such failures of storage, and an expired upload URL;
//   - minutes or a transcript that are not ready (section 3);
//   - the context's deadline, since another context may have a later one;
//   - a WaitError, or the error of a Result, that wraps one of these.
//
// It returns false for everything else, such as a canceled context, a meeting that failed, an
// unusable parameter or recording, a proxy that rejects the connection, and TLS that fails.
// ErrNoAudio is not temporary: somebody has to upload, or to find out why the service does not
// see what storage accepted.
//
// It does not say whether a write without a response took effect. Calls that only read,
// Create with an ExternalID, Process with one, and Resume are always safe to repeat.
//
// Documented: 429, 500 and the minutes that are not ready. The rest is assumed.
func Retryable(err error) bool {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, ErrNoAudio), errors.Is(err, ErrPartialAudio),
		backoff.Permanent(err), KeyRejected(err):
		return false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrRateLimited),
		errors.Is(err, ErrMinutesNotReady), errors.Is(err, ErrTranscriptNotReady):
		return true
	}
	// If there are both, the API request came after the upload.
	if e, ok := errors.AsType[*Error](err); ok {
		none := e.StatusCode == 0 && e.Code == ""
		return none || e.StatusCode/100 == 2 || e.StatusCode == http.StatusRequestTimeout || e.StatusCode >= 500
	}
	e, ok := errors.AsType[*StorageError](err)
	return ok && e.retryable
}

// RetryAfter returns how long the service or the store asked to wait before the call is
// made again: the RetryAfter of the *Error or *StorageError in err. ok is false if it did
// not ask. Try again no earlier, if [Retryable] reports true.
func RetryAfter(err error) (d time.Duration, ok bool) {
	if e, is := errors.AsType[*Error](err); is {
		d = e.RetryAfter
	}
	if e, is := errors.AsType[*StorageError](err); is {
		d = max(d, e.RetryAfter)
	}
	return d, d > 0
}

// QuotaExhausted reports whether a meeting ended as transcribe_blocked: the organisation has
// no transcription time left (section 3). Other recordings will fail likewise until a top-up
// or Usage.NextResetAt. A meeting that ended as minutes_failed may lack credits, too: then
// [UsageService.Get] shows none. See the example.
func QuotaExhausted(err error) bool {
	e, ok := errors.AsType[*MeetingFailedError](err)
	return ok && e.Status == StatusTranscribeBlocked
}

// KeyRejected reports whether the service rejected the API key or its organisation.
// Similar calls will fail until someone fixes that. This is so for a 401 and for the codes
// of 403, except ErrForbidden, which is about one meeting. After ErrInsufficientScope,
// operations with other scopes may still work. The service documents all of these
// (section 7).
func KeyRejected(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.StatusCode == http.StatusUnauthorized || slices.ContainsFunc([]ErrorCode{
		ErrUnauthenticated, ErrIPNotAllowed, ErrAPIAccessDisabled, ErrPersonalAPIKeysDisabled,
		ErrInsufficientScope, ErrOrganisationSuspended, ErrOrganisationExpired,
	}, func(code ErrorCode) bool { return errors.Is(err, code) })
}

// newError returns the error of a failed request. Only here does a failure become one of
// the codes of section 7.
func (c *core) newError(r *rest.Response) *Error {
	e := c.badResponseError(r, "")
	e.RetryAfter, e.causes, e.mayHaveTakenEffect = r.RetryAfter, r.Causes, r.MayHaveTakenEffect
	if r.Header != nil && r.Status/100 != 2 { // a success that broke off has no envelope
		c.readEnvelope(e, r)
	}
	if e.Code == ErrInsufficientScope {
		e.Scope = r.Route.Scope
	}
	if r.Paused && e.Code == "" {
		e.Code = ErrRateLimited
	}
	return e
}

// readEnvelope sets the fields of an error from a response that is not 2xx.
func (c *core) readEnvelope(e *Error, r *rest.Response) {
	var env struct { // the body of every error response (section 7)
		Error struct {
			Code      ErrorCode      `json:"code"`
			Message   string         `json:"message"`
			RequestID string         `json:"request_id"`
			Details   map[string]any `json:"details"`
		} `json:"error"`
	}
	err := json.Unmarshal([]byte(c.Mask.Text(string(r.Body()))), &env)
	switch {
	case env.Error.Code != "": // even if other fields have a wrong type, and are empty
		e.Code = ErrorCode(c.Mask.Text(string(env.Error.Code)))
		e.Message = c.Mask.Text(env.Error.Message)
		e.Details = env.Error.Details
	case r.Status/100 == 3:
		e.Message = c.Mask.Redirect(c.host, r.Header)
	case r.Status == http.StatusTooManyRequests:
		e.Code, e.Message = ErrRateLimited, "too many requests"
	case len(r.Body()) == 0:
		e.Message = cmp.Or(http.StatusText(r.Status), "the response is empty")
	default:
		e.Message = "the response is not the service's error envelope"
		if err != nil {
			e.Message += ": " + c.Mask.Text(c.describeBody(r, err))
		}
		if r.Status == http.StatusNotFound {
			e.Message += "; check the base URL"
		}
	}
	e.RequestID = cmp.Or(env.Error.RequestID, e.RequestID)
}

// badResponseError returns the error for a response that cannot be used. Its request id
// is a gateway's; the service's is in the envelope.
func (c *core) badResponseError(r *rest.Response, problem string) *Error {
	return &Error{
		StatusCode: r.Status, Message: c.Mask.Text(problem), RequestID: c.Mask.Text(r.Header.Get("X-Request-Id")),
		Operation: Operation(r.Route.Operation), Method: r.Route.Method, Path: c.Mask.Text(r.Path),
	}
}
