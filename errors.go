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

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// Error is the error of every failed API call; find it with [errors.As]. It describes the last
// response that any attempt of the call received. Compare the code with [errors.Is], as in
// errors.Is(err, minutes.ErrNotFound).
type Error struct {
	StatusCode int // HTTP status of the last response; 0 if there was none
	// Code is the service's code (section 7 of the interface document). Code is empty if the
	// response was not the service's error envelope. For a 429 without a code, Code is
	// ErrRateLimited. If the Client did not send the request because of an earlier 429, Code is
	// ErrRateLimited, too.
	Code      ErrorCode
	Message   string // for people; describes the mismatch if the response did not match the interface document
	RequestID string // for support requests
	// Details has more about the error, or is nil. Use it for debugging, not for decisions.
	// Details may contain the names of people.
	Details map[string]any
	// RetryAfter is how long the service asked to wait (429 and 503). If the Client did not send the
	// request because of an earlier 429, RetryAfter is the rest of the pause. Otherwise it is 0.
	RetryAfter   time.Duration
	Operation    Operation // the operation that was called
	Method, Path string    // of the request; Path has no query
	Scope        Scope     // after ErrInsufficientScope, the scope that the operation needs
	// Err is why the last attempt got no whole response, or why another one did not follow: an error of
	// the network or of the context. It is nil if the last response ended the call.
	Err error
}

// Error returns one line with the fields except Operation and Details. It contains no secrets.
func (e *Error) Error() string {
	message := e.Message
	if e.Scope != "" {
		message = strings.TrimSpace(message + " (needs the scope " + string(e.Scope) + ")")
	}
	return describe(e.Method+" "+e.Path, e.StatusCode, string(e.Code), message, e.RetryAfter, e.Err, "request id", e.RequestID)
}

// describe returns the text of the error of a failed request.
func describe(request string, status int, code, message string, after time.Duration, cause error, idName, id string) string {
	if status != 0 {
		code = strings.TrimSpace(strconv.Itoa(status) + " " + code)
	}
	parts := []string{code, message}
	if after > 0 {
		parts = append(parts, "retry after "+after.Round(time.Second).String())
	}
	if cause != nil {
		parts = append(parts, unprefixedError{cause}.Error())
	}
	text := []string{"minutes: " + request}
	for _, part := range parts {
		if part != "" {
			text = append(text, singleLine(part))
		}
	}
	if id != "" {
		id = " (" + idName + " " + singleLine(id) + ")"
	}
	return strings.Join(text, ": ") + id
}

// unprefixedError removes the prefix "minutes: " from the text of an error and of the errors it wraps.
type unprefixedError struct{ error }

func (n unprefixedError) Error() string {
	return strings.ReplaceAll(": "+n.error.Error(), ": minutes: ", ": ")[2:] // the added colon makes the first prefix match, too
}
func (n unprefixedError) Unwrap() error { return n.error }

// singleLine cuts a long text from the network, and removes line breaks and terminal controls.
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

// Is reports whether e matches an ErrorCode. ErrRateLimited matches every 429.
func (e *Error) Is(target error) bool {
	code, ok := target.(ErrorCode)
	return ok && code != "" && (code == e.Code || code == ErrRateLimited && e.StatusCode == 429)
}

// Unwrap returns Err. So errors.Is(err, context.Canceled) is true if you canceled the context.
func (e *Error) Unwrap() error { return e.Err }

// ParamError reports a parameter that the Client cannot send, such as a nil pointer, an empty id,
// invalid UTF-8 or a recording that is too large. The service validates all other values. For
// example, an overlong title results in an *Error with ErrInvalidRequest.
type ParamError struct {
	Param  string // the name of the parameter in the Go signature, or of the field
	Reason string // describes the problem without the value
	Err    error  // the cause, such as ErrRecordingEmpty; may be nil
}

// These errors describe a recording that cannot be uploaded. They are inside a *ParamError, so
// compare with [errors.Is]. They are not codes of the service.
var (
	// ErrRecordingEmpty: the recording has no bytes.
	ErrRecordingEmpty = errors.New("the recording is empty")
	// ErrRecordingTooLarge: the recording is larger than MaxRecordingSize.
	ErrRecordingTooLarge = errors.New("the recording is over 1 GiB, which the service rejects")
	// ErrRecordingFormat: you gave no content type, and the recording does not show its format.
	ErrRecordingFormat = errors.New("the recording is in no known audio or video format; if it is one, pass its content type")
)

// Error returns the parameter and the reason.
func (e *ParamError) Error() string { return "minutes: " + e.Param + ": " + e.Reason }

// Unwrap returns Err.
func (e *ParamError) Unwrap() error { return e.Err }

// MeetingFailedError reports that a meeting ended in one of the four failure states (section 3).
// They are final.
type MeetingFailedError struct {
	MeetingID string
	Status    Status   // the failure state
	Meeting   *Meeting // from the last poll or call
}

// failureReasons has, for each failure state, the first part of the text of a MeetingFailedError.
var failureReasons = map[Status]string{
	StatusTranscribeBlocked:   "there is not enough transcription quota; after a top-up, ",
	StatusAudioRejected:       "the service rejected the recording, usually because of its size; to upload another recording, ",
	StatusTranscriptionFailed: "the recording could not be transcribed; to try again, ",
	StatusMinutesFailed:       "the transcript exists, but the minutes could not be written; if there are credits left, ",
}

// Error names the meeting and its state, and says how to try again.
func (e *MeetingFailedError) Error() string {
	m := cmp.Or(e.Meeting, new(Meeting))
	action := "create a new meeting"
	if m.ExternalID != "" { // a second meeting cannot have the same ExternalID
		action = "delete the meeting and create it again"
	}
	meeting := strings.TrimSpace("minutes: meeting " + singleLine(m.ID))
	return meeting + " ended as " + singleLine(string(e.Status)) + ": " + failureReasons[e.Status] + action
}

// WaitError reports a wait that ended without a result. For example, the context ended, the meeting
// is gone or has no audio, the service rejected the key or a request, or too many requests failed in
// a row. If polls were failing when the context ended, errors.As also finds the *Error of the last
// poll.
type WaitError struct {
	MeetingID string   // empty if Err ended a whole WaitAll or Follow, or if WaitAll got an empty id
	Meeting   *Meeting // from the last poll or call; nil if there was none
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
		text += ": " + singleLine(unprefixedError{e.Err}.Error())
	}
	return text
}

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.Err }

// StorageError reports that the upload of a recording to storage failed (section 4.2 of the
// interface document). The fields describe the last response of storage.
type StorageError struct {
	StatusCode int    // HTTP status; 0 if there was no response
	Code       string // of storage, such as "SignatureDoesNotMatch"; empty if the response was not an XML error
	Message    string // storage's, or a description of an unexpected response; for people
	RequestID  string // storage's, not the service's
	// RetryAfter is how long storage asked to wait (429 and 503), or 0. If RetryAfter is over a
	// minute or beyond the context's deadline, the upload makes no other attempt.
	RetryAfter time.Duration
	MeetingID  string // of the upload
	Host       string // of storage
	// Err is what ended the upload if it was not the last response: an error of the network, of the
	// context, or of the API. It may be nil.
	Err error
}

// Error returns one line without the query of the presigned URL.
func (e *StorageError) Error() string {
	request := "upload to storage"
	if e.Host != "" {
		request = "upload for meeting " + singleLine(e.MeetingID) + " to " + e.Host
	}
	return describe(request, e.StatusCode, e.Code, e.Message, e.RetryAfter, e.Err, "storage request id", e.RequestID)
}

// Unwrap returns Err.
func (e *StorageError) Unwrap() error { return e.Err }

// Retryable reports whether err is temporary: the same call may succeed later without
// intervention. It returns true for
//
//   - a 429, a 408 or a 5xx of the service;
//   - an API request that got no response;
//   - a 2xx of the service that is incomplete or does not match the interface document;
//   - an upload that failed for one of the reasons in [WithRetries];
//   - an unexpected 2xx of storage, after which the service shows no audio;
//   - minutes or a transcript that are not ready (section 3 of the interface document);
//   - the context's deadline, because the next call may have a later one;
//   - an error that wraps one of these, such as a *WaitError.
//
// It returns false for everything else, such as a meeting that failed, ErrNoAudio or an unusable
// recording. It also returns false for a canceled context and a TLS failure, although there was no
// response.
//
// The failed call may have had an effect. You can always repeat reads and Resume. With an
// ExternalID, you can also repeat Create and Process.
//
// The interface document mentions only the 429, the 500, and minutes or a transcript that are not
// ready. The rest is assumed.
func Retryable(err error) bool {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, ErrNoAudio), rest.Permanent(err), KeyRejected(err):
		return false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrRateLimited),
		errors.Is(err, ErrMinutesNotReady), errors.Is(err, ErrTranscriptNotReady):
		return true
	}
	// If err contains an *Error and a *StorageError, the request of the *Error was the later one.
	if e, ok := errors.AsType[*Error](err); ok {
		noResponse := e.StatusCode == 0 && e.Code == ""
		return noResponse || e.StatusCode/100 == 2 || e.StatusCode == http.StatusRequestTimeout || e.StatusCode >= 500
	}
	e, ok := errors.AsType[*StorageError](err)
	return ok && storage.Retryable(e.StatusCode, e.Code, e.Message)
}

// RetryAfter returns the field RetryAfter of the *Error or *StorageError in err. Wait that long
// before you repeat a call. ok is false if neither the service nor storage asked to wait.
func RetryAfter(err error) (d time.Duration, ok bool) {
	if e, is := errors.AsType[*Error](err); is {
		d = e.RetryAfter
	}
	if e, is := errors.AsType[*StorageError](err); is {
		d = max(d, e.RetryAfter)
	}
	return d, d > 0
}

// KeyRejected reports whether the service rejected the API key or its organisation. Similar calls
// will fail until someone fixes that. KeyRejected returns true for a 401, and for all codes of 403
// except ErrForbidden (section 7 of the interface document). After ErrInsufficientScope, operations
// with other scopes may still work.
func KeyRejected(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.StatusCode == http.StatusUnauthorized || slices.ContainsFunc([]ErrorCode{
		ErrUnauthenticated, ErrIPNotAllowed, ErrAPIAccessDisabled, ErrPersonalAPIKeysDisabled,
		ErrInsufficientScope, ErrOrganisationSuspended, ErrOrganisationExpired,
	}, func(code ErrorCode) bool { return errors.Is(err, code) })
}

// newError returns the error of a request whose response is missing, incomplete or not a 2xx. err is
// that of internal/rest, or nil.
func (c *core) newError(r *rest.Response, err error) *Error {
	e := c.requestError(r, "")
	e.RetryAfter, e.Err = r.RetryAfter, err
	if (r.Status != 0 || err == nil) && r.Status/100 != 2 { // an incomplete 2xx has no envelope
		c.readEnvelope(e, r)
	}
	if row, ok := route.Of(r.Request.Operation); ok && e.Code == ErrInsufficientScope {
		e.Scope = Scope(row.Scope)
	}
	if paused, ok := errors.AsType[*rest.PausedError](err); ok {
		e.RetryAfter, e.Code = paused.Left, cmp.Or(e.Code, ErrRateLimited)
	}
	return e
}

// readEnvelope sets the fields of e from a response that is not 2xx.
func (c *core) readEnvelope(e *Error, r *rest.Response) {
	var env struct { // the body of every error response (section 7)
		Error struct {
			Code      ErrorCode      `json:"code"`
			Message   string         `json:"message"`
			RequestID string         `json:"request_id"`
			Details   map[string]any `json:"details"`
		} `json:"error"`
	}
	err := json.Unmarshal([]byte(c.Mask.Text(string(r.Body))), &env)
	switch {
	case env.Error.Code != "": // json.Unmarshal may have failed at another field
		e.Code, e.Message, e.Details = env.Error.Code, env.Error.Message, env.Error.Details
	case r.Status/100 == 3:
		e.Message = c.Mask.Redirect(c.Base.Host, r.Header)
	case r.Status == http.StatusTooManyRequests:
		e.Code, e.Message = ErrRateLimited, "too many requests"
	case len(r.Body) == 0:
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

// requestError returns an error that names the request. Its RequestID is from the header.
func (c *core) requestError(r *rest.Response, problem string) *Error {
	return &Error{
		StatusCode: r.Status, Message: c.Mask.Text(problem), RequestID: c.Mask.Text(r.Header.Get("X-Request-Id")),
		Operation: Operation(r.Request.Operation), Method: r.Request.Method, Path: c.Mask.Text(r.Request.Path),
	}
}
