package minutes

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/meeting-minutes/minutes-go/internal/failure"
	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// ErrorCode is a machine-readable error code of the service ([section 7]) or of storage, and an
// error so that it can be the target of [errors.Is]. The service may add codes, which Error.Code
// then holds as sent.
//
// [section 7]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#7-errors
type ErrorCode string

// Error returns the code as the service spells it, such as "NOT_FOUND".
func (c ErrorCode) Error() string { return string(c) }

// The codes of [section 7], with the HTTP status of the response.
//
// [section 7]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#7-errors
const (
	ErrInvalidRequest    ErrorCode = "INVALID_REQUEST"     // 400: Details["fields"] names the fields
	ErrBadRequest        ErrorCode = "BAD_REQUEST"         // 400: no more specific code applies
	ErrInvalidEmail      ErrorCode = "INVALID_EMAIL"       // 400: not a valid address
	ErrInvalidLimit      ErrorCode = "INVALID_LIMIT"       // 400: not a whole number from 1 to 50
	ErrInvalidCursor     ErrorCode = "INVALID_CURSOR"      // 400: not from a page of the same list
	ErrInvalidDate       ErrorCode = "INVALID_DATE"        // 400: not a calendar date as YYYY-MM-DD
	ErrInvalidDateRange  ErrorCode = "INVALID_DATE_RANGE"  // 400: DateFrom is after DateTo
	ErrInvalidTime       ErrorCode = "INVALID_TIME"        // 400: not a time of day as HH:MM
	ErrInvalidExternalID ErrorCode = "INVALID_EXTERNAL_ID" // 400: empty or too long
	// 400: Details["invalid"] lists the ids that are not active or invited members.
	ErrInvalidSharedWith ErrorCode = "INVALID_SHARED_WITH"

	// 401: the key is missing, malformed, unknown, expired or revoked.
	ErrUnauthenticated ErrorCode = "UNAUTHENTICATED"

	// 403: the address is not on the key's allowlist.
	ErrIPNotAllowed ErrorCode = "IP_NOT_ALLOWED"
	// 403: the organisation has no API access, or the integration is inactive.
	ErrAPIAccessDisabled ErrorCode = "API_ACCESS_DISABLED"
	// 403: the organisation has disabled personal keys.
	ErrPersonalAPIKeysDisabled ErrorCode = "PERSONAL_API_KEYS_DISABLED"
	// 403: the organisation is blocked.
	ErrOrganisationSuspended ErrorCode = "ORGANISATION_SUSPENDED"
	// 403: the organisation's access has expired.
	ErrOrganisationExpired ErrorCode = "ORGANISATION_EXPIRED"
	// 403: the key lacks the scope of the operation.
	ErrInsufficientScope ErrorCode = "INSUFFICIENT_SCOPE"
	// 403: the caller may not change the meeting.
	ErrForbidden ErrorCode = "FORBIDDEN"

	// 404: the object does not exist, or the caller may not see it, such as another member's
	// private meeting.
	ErrNotFound ErrorCode = "NOT_FOUND"

	ErrEmailTaken          ErrorCode = "EMAIL_TAKEN"           // 409: another member has it; see Details
	ErrMemberLimitExceeded ErrorCode = "MEMBER_LIMIT_EXCEEDED" // 409: the organisation is full
	ErrMinutesNotReady     ErrorCode = "MINUTES_NOT_READY"     // 409: they do not exist yet
	ErrTranscriptNotReady  ErrorCode = "TRANSCRIPT_NOT_READY"  // 409: it does not exist yet
	ErrParticipantsLocked  ErrorCode = "PARTICIPANTS_LOCKED"   // 409: the meeting has audio
	// 409: the ExternalID belongs to a meeting that the key cannot see (assumed). Process also returns it
	// for a meeting with another date.
	ErrExternalIDTaken ErrorCode = "EXTERNAL_ID_TAKEN"

	// 500: a fault on the service's side.
	ErrInternal ErrorCode = "INTERNAL_ERROR"
)

// Scope is a permission of an API key ([section 5]). The service may add scopes. An operation
// without its scope fails with [ErrInsufficientScope].
//
// [section 5]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#5-keys-and-scopes
type Scope string

// The scopes that operations need.
const (
	ScopeEmployeesRead  Scope = "employees:read"
	ScopeEmployeesWrite Scope = "employees:write"
	ScopeMeetingsRead   Scope = "meetings:read"
	ScopeMeetingsWrite  Scope = "meetings:write"
	ScopeMeetingsDelete Scope = "meetings:delete"
	ScopeMinutesRead    Scope = "minutes:read"
)

// ErrRateLimited matches every 429 from the API, whatever its code, and a call that the Client did not
// send because of an earlier 429. This package defines it, because a 429 comes from a proxy in front
// of the service, which sends no code. It does not match a 429 from storage.
const ErrRateLimited ErrorCode = "RATE_LIMITED"

// Error says why an API call failed. [errors.As] finds it in what the method returns. Compare its
// code with [errors.Is], as in errors.Is(err, minutes.ErrNotFound), and not its Message, which is
// for people.
//
// The fields describe the last response, whichever attempt received it. If the response to a later
// attempt was lost, so that the request may have taken effect after all, a 4xx no longer counts. Nor
// does a 401 if the key has changed since. The fields of the response are then empty, so StatusCode 0
// never means that nothing was done.
type Error struct {
	// StatusCode is that of the last response, or 0 if there was none. It is also 0 if
	// FindByExternalID found no meeting, or Process one with another date.
	StatusCode int
	// Code is the service's code (section 7), as sent, or ErrRateLimited. It is empty if the
	// response did not come from the service. Code and RequestID are cut after 128 bytes.
	Code ErrorCode
	// Message is for people. It may say why a response does not match the API reference.
	Message   string
	RequestID string // for support requests
	// Details says more about the error, for debugging and not for decisions. It may be nil. It may
	// contain the names of people, so the text of the error does not include it.
	Details map[string]any
	// RetryAfter is how long the service asked to wait (429 and 503), or the rest of the pause if
	// the Client did not send the request because of an earlier 429. Otherwise it is 0.
	RetryAfter   time.Duration
	Operation    Operation // the operation that was called
	Method, Path string    // of the request; Path has no query
	// Scope is the scope that the key lacks if Code is ErrInsufficientScope. Otherwise it is empty.
	Scope Scope
	// Err is why the last attempt got no whole response, or why the Client did not retry: a network
	// or context error, or that of WithAPIKeyFunc. It is nil if the last response ended the call.
	Err error

	unusable failure.Kind   // why a 2xx cannot be used; otherwise failure.None
	unfit    []unfitElement // the elements of a list that do not match the API reference; the others do
}

// Error returns one line for logs: all fields except Operation and Details. It contains no secret.
func (e *Error) Error() string { return e.text(e.Method+" "+e.Path, "request id") }

// text describes the failure of a request. idName says whose RequestID it is.
func (e *Error) text(request, idName string) string {
	text := "minutes: " + request
	add := func(part string) {
		part = strings.TrimSpace(part)
		if part != "" {
			text += ": " + singleLine(part)
		}
	}
	if e.StatusCode != 0 {
		add(strconv.Itoa(e.StatusCode) + " " + string(e.Code))
	} else {
		add(string(e.Code))
	}
	if e.Scope != "" {
		add(e.Message + " (needs the scope " + string(e.Scope) + ")")
	} else {
		add(e.Message)
	}
	if e.RetryAfter > 0 {
		add("retry after " + e.RetryAfter.Round(time.Second).String())
	}
	if e.Err != nil {
		add(unprefixedError{e.Err}.Error())
	}
	if e.RequestID != "" {
		text += " (" + idName + " " + singleLine(e.RequestID) + ")"
	}
	return text
}

// unprefixedError removes the prefix "minutes: " from the text of an error and of the errors it
// wraps.
type unprefixedError struct{ error }

func (n unprefixedError) Error() string {
	text := ": " + n.error.Error() // so that a prefix at the beginning matches, too
	return strings.ReplaceAll(text, ": minutes: ", ": ")[2:]
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

// Is reports whether e has the ErrorCode target, so that [errors.Is] finds it.
func (e *Error) Is(target error) bool {
	code, ok := target.(ErrorCode)
	return ok && code != "" && (code == e.Code || code == ErrRateLimited && e.StatusCode == 429)
}

// As sets target to Code if target is an *ErrorCode, so that errors.AsType[minutes.ErrorCode](err)
// finds the code.
func (e *Error) As(target any) bool {
	code, ok := target.(*ErrorCode)
	if !ok || e.Code == "" {
		return false
	}
	*code = e.Code
	return true
}

// Unwrap returns Err, so errors.Is(err, context.Canceled) is true if you canceled the context.
func (e *Error) Unwrap() error { return e.Err }

// GoString keeps secrets in Err, such as a transport's request, out of %#v.
func (e *Error) GoString() string { return "&minutes.Error{" + e.Error() + "}" }

// ParamError reports a parameter or a recording that cannot be used, so the Client did not send it:
// for example a nil pointer, an empty id or a recording that is too large. The service validates
// all other values, so an overlong title results in an *Error with ErrInvalidRequest.
type ParamError struct {
	Param  string // the parameter's name in Go, or the field's
	Reason string // describes the problem without the value
	Err    error  // the cause, such as ErrRecordingEmpty; may be nil
}

// These errors describe a recording that cannot be uploaded. They are not codes of the service, and
// are inside a *ParamError, so compare with [errors.Is].
var (
	ErrRecordingEmpty = errors.New("the recording is empty") // it has no bytes
	// ErrRecordingTooLarge: the recording is larger than MaxRecordingSize.
	ErrRecordingTooLarge = errors.New("the recording is over 1 GiB, " +
		"and the service rejects most over one gigabyte")
	// ErrRecordingFormat: neither you nor the recording says which format it has, or the content is
	// something else, such as text.
	ErrRecordingFormat = errors.New("the format of the recording is not known; " +
		"if it is audio or video, declare its type, as in Recording.ContentType")
)

// Error returns the parameter and the reason, but not the value, which may be a secret.
func (e *ParamError) Error() string { return "minutes: " + e.Param + ": " + e.Reason }

// Unwrap returns Err, so [errors.Is] finds ErrRecordingEmpty, ErrRecordingTooLarge and
// ErrRecordingFormat.
func (e *ParamError) Unwrap() error { return e.Err }

// MeetingFailedError reports that a meeting reached one of the four failure statuses ([section 3]),
// which are final. Its text says how to try again. After StatusMinutesFailed the meeting still has
// a transcript. Fetch it before you delete the meeting, because Delete removes both.
//
// [section 3]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#3-statuses
type MeetingFailedError struct {
	MeetingID string
	Status    Status   // the failure status
	Meeting   *Meeting // from the last poll or call

	sentAs string // the content type of the recording, if this call has uploaded it
}

// failureReasons has, for each failure status, the first part of the text of a MeetingFailedError.
var failureReasons = map[Status]string{
	StatusTranscribeBlocked: "there is not enough transcription quota; after a top-up, ",
	StatusAudioRejected: "the service rejected the recording, usually because of its size or content type; " +
		"to upload another recording, ",
	StatusTranscriptionFailed: "the recording could not be transcribed; to try again, ",
	StatusMinutesFailed: "the transcript exists, but the minutes could not be written; " +
		"if there are credits left, ",
}

// Error names the meeting and its status, and says how to try again.
func (e *MeetingFailedError) Error() string {
	m := cmp.Or(e.Meeting, new(Meeting))
	action := "create a new meeting"
	if m.ExternalID != "" { // a second meeting cannot have the same ExternalID
		action = "delete the meeting and create it again"
	}
	id := singleLine(cmp.Or(e.MeetingID, m.ID))
	status := singleLine(string(e.Status))
	reason := failureReasons[e.Status]
	if e.Status == StatusAudioRejected && e.sentAs != "" {
		reason = strings.Replace(reason, "the recording,", "the recording, sent as "+singleLine(e.sentAs)+",", 1)
	}
	return "minutes: meeting " + id + " ended as " + status + ": " + reason + action
}

// WaitError reports that a wait, or the fetch after it, ended without a result, for one of the
// reasons that [MeetingsService.Wait] and [MeetingsService.WaitForMinutes] list. If polls were
// failing when ctx was done, [errors.As] also finds the last *Error. But if Err ended a whole WaitAll
// or ProcessAll, only the Results have that.
type WaitError struct {
	MeetingID string   // empty if Err ended a whole WaitAll, ProcessAll or Follow
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

// Unwrap returns the cause, so [errors.Is] finds ErrNoAudio, ErrNotFound or
// context.DeadlineExceeded.
func (e *WaitError) Unwrap() error { return e.Err }

// StorageError reports that the upload of a recording failed ([section 4.2]), with the fields of
// the last response from storage.
//
// [section 4.2]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#42-meetings
type StorageError struct {
	StatusCode int // HTTP status; 0 if there was no response
	// Code is storage's, such as "SignatureDoesNotMatch". It is empty if the response was not an
	// XML error.
	Code ErrorCode
	// Message is storage's, or a description of an unexpected response. It is for people.
	Message   string
	RequestID string // storage's, not the service's
	// RetryAfter is how long storage asked to wait (429 and 503), or 0. If that is over a minute,
	// or beyond the context's deadline, the upload makes no further attempt.
	RetryAfter time.Duration
	MeetingID  string // of the upload
	Host       string // of storage
	// Err is the network, context or API error that ended the upload. It is nil if a response from
	// storage ended it.
	Err error
}

// Error returns one line without the query of the presigned URL.
func (e *StorageError) Error() string {
	request := "upload"
	if e.MeetingID != "" {
		request += " for meeting " + singleLine(e.MeetingID)
	}
	request += " to " + cmp.Or(e.Host, "storage")
	same := &Error{
		StatusCode: e.StatusCode,
		Code:       e.Code,
		Message:    e.Message,
		RequestID:  e.RequestID,
		RetryAfter: e.RetryAfter,
		Err:        e.Err,
	}
	return same.text(request, "storage request id")
}

// Unwrap returns Err, so [errors.Is] finds, for example, context.Canceled.
func (e *StorageError) Unwrap() error { return e.Err }

// GoString keeps secrets in Err, such as the presigned URL, out of %#v.
func (e *StorageError) GoString() string { return "&minutes.StorageError{" + e.Error() + "}" }

// Retryable reports whether the same call may succeed later, without any change on your side. It
// returns true for each of these errors, even if err wraps it:
//
//   - a 429, a 408 or a 5xx from the service;
//   - an error of the function of [WithAPIKeyFunc];
//   - an API request that got no response, unless TLS failed or a proxy rejected the connection with
//     a 4xx;
//   - an API request that got a 2xx page from another server, such as a proxy;
//   - a temporary *StorageError, such as a 503 or an expired upload URL;
//   - minutes or a transcript that are not ready ([section 3]);
//   - a file that changed during its upload, because the next upload starts again with the file as
//     it is then;
//   - [ErrNoAudio], because the recording may still arrive, or be uploaded by Resume;
//   - the context's deadline, because the next call may have a later one.
//
// Retryable returns false for everything else, such as:
//
//   - a meeting that failed;
//   - an unusable recording;
//   - a rejected key;
//   - a 2xx from the service that is too long or does not match the API reference (the request was
//     carried out);
//   - a redirect or a 4xx that is not one of the above;
//   - a canceled context;
//   - a TLS failure, such as an untrusted certificate.
//
// If ctx has ended a wait whose polls were failing, the error contains both. Retryable is then false if
// the last failure was a rejected key, a proxy's 401 or a TLS failure; otherwise the deadline decides.
//
// The API reference documents only the 429, the 500 and the codes for what is not ready; everything
// else is assumed.
//
// A call without a response may have taken effect, so repeating it may do the same thing twice.
// Reads, Resume and, with an ExternalID, Create and Process are safe to repeat.
//
// [section 3]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#3-statuses
func Retryable(err error) bool { return failure.Means[kindOf(err)].Retryable }

// RetryAfter returns how long the service or storage asked to wait before you repeat a call. If
// neither did, ok is false.
func RetryAfter(err error) (d time.Duration, ok bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		d = e.RetryAfter
	}
	if e, ok := errors.AsType[*StorageError](err); ok {
		d = max(d, e.RetryAfter)
	}
	return d, d > 0
}

// KeyRejected reports whether the service rejected the API key, or the organisation as a whole, so
// that other calls with this key will fail as well until someone fixes that. It is true for a 401,
// and for the 403 codes in [section 7] with two exceptions: after ErrInsufficientScope other
// operations still work, and after ErrForbidden other meetings do. A 403 with any other code, or
// without a code, does not count as a rejection of the key. A 401 without a code counts, although a
// proxy may have sent it. It ends no loop, and it ends a wait only after ten minutes of nothing else.
//
// [section 7]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#7-errors
func KeyRejected(err error) bool { return failure.Means[kindOf(err)].KeyRejected }

// kindOf returns the kind of an error, for internal/failure, which says what follows it. An *Error
// decides even inside a *StorageError, because it is newer.
func kindOf(err error) failure.Kind {
	if err == nil {
		return failure.None
	}
	kind := failure.Other
	api, isAPI := errors.AsType[*Error](err)
	upload, isUpload := errors.AsType[*StorageError](err)
	code, isCode := errors.AsType[ErrorCode](err)
	switch {
	case isAPI:
		kind = api.kind()
	case isUpload:
		kind = upload.kind()
	case isCode:
		kind = (&Error{Code: code}).kind()
	}
	for _, other := range []struct {
		is   error
		kind failure.Kind
	}{
		{context.Canceled, failure.Canceled},
		{ErrNoAudio, failure.NoAudio},
		{context.DeadlineExceeded, failure.Deadline},
		{storage.ErrChanged, failure.Changed},
	} {
		if errors.Is(err, other.is) {
			kind = min(kind, other.kind)
		}
	}
	return kind
}

// codeKinds has the kinds of codes. Any other code is a rejection.
var codeKinds = map[ErrorCode]failure.Kind{
	ErrRateLimited:             failure.RateLimited,
	ErrUnauthenticated:         failure.KeyRejected,
	ErrIPNotAllowed:            failure.KeyRejected,
	ErrAPIAccessDisabled:       failure.KeyRejected,
	ErrPersonalAPIKeysDisabled: failure.KeyRejected,
	ErrOrganisationSuspended:   failure.KeyRejected,
	ErrOrganisationExpired:     failure.KeyRejected,
	ErrMinutesNotReady:         failure.NotReady,
	ErrTranscriptNotReady:      failure.NotReady,
	ErrInternal:                failure.ServerFailed,
	ErrNotFound:                failure.Gone,
}

// kind returns the kind of a failed API call.
func (e *Error) kind() failure.Kind {
	_, noKey := errors.AsType[*rest.KeyError](e.Err)
	ofStatus := rest.KindOf(e.StatusCode, e.Err)
	switch {
	case noKey:
		return failure.NoKey
	case e.unusable != failure.None:
		return e.unusable
	case e.Code == "" && ofStatus == failure.None: // the status is good, and nothing else
		return failure.Unreadable
	case e.Code == "":
		return ofStatus
	case ofStatus == failure.KeyDoubted: // no longer: the code is the service's
		return failure.KeyRejected
	}
	kind, known := codeKinds[e.Code]
	if !known {
		kind = failure.Rejected
	}
	if ofStatus <= failure.ServerUnsure { // beyond it, a kind says that the service has not answered
		kind = min(kind, ofStatus)
	}
	return kind
}

// kind returns the kind of a failed upload.
func (e *StorageError) kind() failure.Kind {
	switch {
	case rest.Misconfigured(e.Err):
		return failure.Misconfigured
	case errors.Is(e.Err, errPart): // another upload cannot replace it
		return failure.Rejected
	case storage.Retryable(e.StatusCode, string(e.Code), e.Message):
		return failure.StorageFailed
	}
	return failure.Rejected
}

// unknownYet reports whether err is a 404 although another response has just shown the meeting. Then
// the machine of the service that answered does not know the meeting yet, and the request is worth
// repeating.
func (c *core) unknownYet(id string, err error) bool {
	return kindOf(err) == failure.Gone && c.poller.ShownLately(id)
}

// failureOf returns a failed request of the poller.
func failureOf(err error) *poll.Failure {
	f := &poll.Failure{Err: err, Kind: kindOf(err)}
	f.RetryAfter, _ = RetryAfter(err)
	return f
}

// endsAll returns the *Error in err if it ends all waits of the Client, and each loop. Otherwise it
// returns nil.
func endsAll(err error) *Error {
	e, ok := errors.AsType[*Error](err)
	if ok && failure.Means[kindOf(e)].EndsWait == failure.AllAtOnce {
		return e
	}
	return nil
}
