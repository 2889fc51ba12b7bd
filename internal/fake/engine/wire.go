package engine

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// The content types of responses, except those of the service's edge.
const (
	JSON = "application/json; charset=utf-8"
	XML  = "application/xml"
)

// encode returns v as the JSON of a response. HTML is for the reader to escape.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	if err != nil {
		panic(err) // there is nothing in the types below that cannot be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// optional returns nil, which is null in JSON, for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return new(s)
}

// meetingJSON is a meeting. Its ParticipantIDs are never null.
type meetingJSON struct {
	ID              string             `json:"id"`
	Title           string             `json:"title"`
	Date            string             `json:"date"`
	Time            *string            `json:"time"`
	Status          minutes.Status     `json:"status"`
	Visibility      minutes.Visibility `json:"visibility"`
	TemplateID      string             `json:"template_id"`
	ParticipantIDs  []string           `json:"participant_ids"`
	ProjectID       *string            `json:"project_id"`
	ExternalID      *string            `json:"external_id"`
	DurationSeconds *int               `json:"duration_seconds,omitempty"`
	CreatedAt       int64              `json:"created_at"`
	UpdatedAt       int64              `json:"updated_at"`
}

// json returns the current state of m; later changes of m do not show in it.
func (m *meeting) json() meetingJSON {
	return meetingJSON{
		ID:              m.ID,
		Title:           m.Title,
		Date:            m.Date,
		Time:            optional(m.Time),
		Status:          m.Status,
		Visibility:      m.Visibility,
		TemplateID:      m.TemplateID,
		ParticipantIDs:  append([]string{}, m.ParticipantIDs...),
		ProjectID:       optional(m.ProjectID),
		ExternalID:      optional(m.ExternalID),
		DurationSeconds: m.DurationSeconds,
		CreatedAt:       m.CreatedAt.Unix(),
		UpdatedAt:       m.UpdatedAt.Unix(),
	}
}

// pageJSON is a list page. Its Meetings are never null.
type pageJSON struct {
	Meetings   []meetingJSON `json:"meetings"`
	NextCursor string        `json:"next_cursor,omitempty"`
}

func memberJSON(m *world.Member) map[string]any {
	return map[string]any{"id": m.ID, "name": m.Name, "role": optional(m.Role), "status": m.Status}
}

type templateJSON struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Source      string  `json:"source"`
	Description *string `json:"description"`
	IsDefault   bool    `json:"is_default"`
	Version     *int    `json:"version"`
}

// apiError is the error response of an operation. Those without details are made once.
type apiError struct {
	status  int
	code    minutes.ErrorCode
	message string
	details map[string]any
}

// ErrorJSON is the error envelope (section 7 of the API reference).
func ErrorJSON(code minutes.ErrorCode, message, requestID string, details map[string]any) []byte {
	type content struct {
		Code      minutes.ErrorCode `json:"code"`
		Message   string            `json:"message"`
		RequestID string            `json:"request_id"`
		Details   map[string]any    `json:"details,omitempty"`
	}
	return encode(map[string]content{"error": {code, message, requestID, details}})
}

// ErrorXML is the body of an error response of storage, in the form of S3.
func ErrorXML(code, message, requestID string) []byte {
	const form = "<Error><Code>%s</Code><Message>%s</Message><RequestId>%s</RequestId>" +
		"<HostId>minutes-storage</HostId></Error>"
	return fmt.Appendf(nil, xml.Header+form, html.EscapeString(code), html.EscapeString(message), requestID)
}

// statusByCode has the status of each error code (section 7).
var statusByCode = map[minutes.ErrorCode]int{
	minutes.ErrBadRequest:        http.StatusBadRequest,
	minutes.ErrInvalidRequest:    http.StatusBadRequest,
	minutes.ErrInvalidLimit:      http.StatusBadRequest,
	minutes.ErrInvalidCursor:     http.StatusBadRequest,
	minutes.ErrInvalidDate:       http.StatusBadRequest,
	minutes.ErrInvalidDateRange:  http.StatusBadRequest,
	minutes.ErrInvalidTime:       http.StatusBadRequest,
	minutes.ErrInvalidEmail:      http.StatusBadRequest,
	minutes.ErrInvalidExternalID: http.StatusBadRequest,
	minutes.ErrInvalidSharedWith: http.StatusBadRequest,

	minutes.ErrUnauthenticated: http.StatusUnauthorized,

	minutes.ErrIPNotAllowed:            http.StatusForbidden,
	minutes.ErrOrganisationSuspended:   http.StatusForbidden,
	minutes.ErrOrganisationExpired:     http.StatusForbidden,
	minutes.ErrAPIAccessDisabled:       http.StatusForbidden,
	minutes.ErrPersonalAPIKeysDisabled: http.StatusForbidden,
	minutes.ErrInsufficientScope:       http.StatusForbidden,
	minutes.ErrForbidden:               http.StatusForbidden,

	minutes.ErrNotFound: http.StatusNotFound,

	minutes.ErrEmailTaken:          http.StatusConflict,
	minutes.ErrMemberLimitExceeded: http.StatusConflict,
	minutes.ErrExternalIDTaken:     http.StatusConflict,
	minutes.ErrMinutesNotReady:     http.StatusConflict,
	minutes.ErrTranscriptNotReady:  http.StatusConflict,
	minutes.ErrParticipantsLocked:  http.StatusConflict,

	minutes.ErrInternal: http.StatusInternalServerError,
}

// StatusOf returns the status of a code, or 0 if the API has no such code.
func StatusOf(code minutes.ErrorCode) int { return statusByCode[code] }

// Codes lists the codes of the API, for people.
func Codes() string {
	var list []string
	for code := range statusByCode {
		list = append(list, string(code))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// newError returns an error with the status of its code.
func newError(code minutes.ErrorCode, message string) *apiError {
	return &apiError{status: StatusOf(code), code: code, message: message}
}

// with returns a copy of e with details.
func (e apiError) with(details map[string]any) *apiError {
	e.details = details
	return &e
}

// badRequest returns an error whose status is its own.
func badRequest(status int, message string) *apiError {
	return &apiError{status: status, code: minutes.ErrBadRequest, message: message}
}

var (
	errUnauthenticated = newError(minutes.ErrUnauthenticated,
		"The API key is missing, malformed, unknown, expired or revoked.")
	errIPNotAllowed = newError(minutes.ErrIPNotAllowed, "The API key may not be used from this address.")
	errSuspended    = newError(minutes.ErrOrganisationSuspended, "The organisation is suspended.")
	errExpired      = newError(minutes.ErrOrganisationExpired, "The organisation's access has expired.")
	errAPIDisabled  = newError(minutes.ErrAPIAccessDisabled,
		"The organisation has no API access, or the integration is no longer active.")
	errPersonalDisabled = newError(minutes.ErrPersonalAPIKeysDisabled,
		"The organisation has personal API keys disabled.")
	errScope     = newError(minutes.ErrInsufficientScope, "The API key lacks the scope of this operation.")
	errForbidden = newError(minutes.ErrForbidden, "This caller may not change the meeting.")

	errNoRoute         = newError(minutes.ErrNotFound, "There is nothing at this path.")
	errMeetingNotFound = newError(minutes.ErrNotFound, "There is no such meeting.")

	errMethod      = badRequest(http.StatusMethodNotAllowed, "This path does not support that method.")
	errTooLarge    = badRequest(http.StatusRequestEntityTooLarge, "The body is longer than 1 MiB.")
	errCombination = newError(minutes.ErrInvalidRequest,
		"external_id cannot be combined with date_from, date_to or cursor.")
	errFormat     = newError(minutes.ErrInvalidRequest, "format is html or markdown.")
	errLimit      = newError(minutes.ErrInvalidLimit, "limit is a whole number from 1 to 50.")
	errCursor     = newError(minutes.ErrInvalidCursor, "cursor does not come from a previous page of this list.")
	errQueryDate  = newError(minutes.ErrInvalidDate, "date_from and date_to are calendar dates as YYYY-MM-DD.")
	errDateRange  = newError(minutes.ErrInvalidDateRange, "date_from lies after date_to.")
	errQueryExtID = newError(minutes.ErrInvalidExternalID, "external_id is empty or longer than 128 characters.")
	errHasAudio   = newError(minutes.ErrBadRequest, "The meeting has audio already.")

	errBody = newError(minutes.ErrInvalidRequest,
		"The body is not a JSON object in UTF-8.").with(map[string]any{"fields": []string{}})
	errDate       = newError(minutes.ErrInvalidDate, "date is not a calendar date as YYYY-MM-DD.")
	errTime       = newError(minutes.ErrInvalidTime, "time is not a time of day as HH:MM.")
	errEmail      = newError(minutes.ErrInvalidEmail, "email is not a valid address.")
	errSharedWith = newError(minutes.ErrInvalidSharedWith,
		"shared_with names ids that are not members with an account.")
	errExtID = newError(minutes.ErrInvalidExternalID, "external_id is empty or longer than 128 characters.")

	errEmailTaken  = newError(minutes.ErrEmailTaken, "Another member has this address.")
	errMemberLimit = newError(minutes.ErrMemberLimitExceeded,
		"The organisation holds as many members as it may.")
	errExternalIDTaken    = newError(minutes.ErrExternalIDTaken, "Another meeting carries this external_id.")
	errMinutesNotReady    = newError(minutes.ErrMinutesNotReady, "There are no minutes yet.")
	errTranscriptNotReady = newError(minutes.ErrTranscriptNotReady, "There is no transcript yet.")
	errParticipantsLocked = newError(minutes.ErrParticipantsLocked,
		"The meeting has audio, so its participants are locked.")
)

// errUnknown is the error for an id in a body that nobody knows. It names the id, because a body may
// have many.
func errUnknown(kind, id string) *apiError {
	return newError(minutes.ErrNotFound, fmt.Sprintf("There is no %s %q.", kind, id))
}
