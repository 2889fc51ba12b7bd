package engine

import (
	"net/http"

	minutes "github.com/meeting-minutes/minutes-go"
)

// apiError is the error response of an operation. Those without details are made once.
type apiError struct {
	status  int
	code    minutes.ErrorCode
	message string
	details any // fieldDetails, holderDetails or nil
}

// fieldDetails are the details of a faulty body: its fields at fault, which may be none.
type fieldDetails struct {
	Fields  []string `json:"fields"`
	Invalid []string `json:"invalid,omitempty"` // of INVALID_SHARED_WITH
}

// holderDetails are the details of EMAIL_TAKEN.
type holderDetails struct {
	MemberID string `json:"member_id"`
	Name     string `json:"name"`
}

// errorJSON is the content of the error envelope (section 7 of the interface).
type errorJSON struct {
	Code      minutes.ErrorCode `json:"code"`
	Message   string            `json:"message"`
	RequestID string            `json:"request_id"`
	Details   any               `json:"details,omitempty"`
}

func newError(status int, code minutes.ErrorCode, message string) *apiError {
	return &apiError{status: status, code: code, message: message}
}

// with returns a copy of e with details.
func (e apiError) with(details any) *apiError {
	e.details = details
	return &e
}

var (
	errUnauthenticated  = newError(http.StatusUnauthorized, minutes.ErrUnauthenticated, "The API key is missing, malformed, unknown, expired or revoked.")
	errIPNotAllowed     = newError(http.StatusForbidden, minutes.ErrIPNotAllowed, "The API key may not be used from this address.")
	errSuspended        = newError(http.StatusForbidden, minutes.ErrOrganisationSuspended, "The organisation is suspended.")
	errExpired          = newError(http.StatusForbidden, minutes.ErrOrganisationExpired, "The organisation's access has expired.")
	errAPIDisabled      = newError(http.StatusForbidden, minutes.ErrAPIAccessDisabled, "The organisation has no API access, or the integration is no longer active.")
	errPersonalDisabled = newError(http.StatusForbidden, minutes.ErrPersonalAPIKeysDisabled, "The organisation has personal API keys disabled.")
	errScope            = newError(http.StatusForbidden, minutes.ErrInsufficientScope, "The API key lacks the scope of this operation.")
	errForbidden        = newError(http.StatusForbidden, minutes.ErrForbidden, "This caller may not change the meeting.")

	errNoRoute         = newError(http.StatusNotFound, minutes.ErrNotFound, "There is nothing at this path.")
	errMeetingNotFound = newError(http.StatusNotFound, minutes.ErrNotFound, "There is no such meeting.")
	errNoMember        = newError(http.StatusNotFound, minutes.ErrNotFound, "There is no such member.")
	errNoProject       = newError(http.StatusNotFound, minutes.ErrNotFound, "There is no such project.")
	errNoTemplate      = newError(http.StatusNotFound, minutes.ErrNotFound, "There is no such template.")

	errMethod      = newError(http.StatusMethodNotAllowed, minutes.ErrBadRequest, "This path does not support that method.")
	errTooLarge    = newError(http.StatusRequestEntityTooLarge, minutes.ErrBadRequest, "The body is longer than 1 MiB.")
	errCombination = newError(http.StatusBadRequest, minutes.ErrInvalidRequest, "external_id cannot be combined with date_from, date_to or cursor.")
	errFormat      = newError(http.StatusBadRequest, minutes.ErrInvalidRequest, "format is html or markdown.")
	errLimit       = newError(http.StatusBadRequest, minutes.ErrInvalidLimit, "limit is a whole number from 1 to 50.")
	errCursor      = newError(http.StatusBadRequest, minutes.ErrInvalidCursor, "cursor does not come from a previous page of this list.")
	errQueryDate   = newError(http.StatusBadRequest, minutes.ErrInvalidDate, "date_from and date_to are calendar dates as YYYY-MM-DD.")
	errDateRange   = newError(http.StatusBadRequest, minutes.ErrInvalidDateRange, "date_from lies after date_to.")
	errQueryExtID  = newError(http.StatusBadRequest, minutes.ErrInvalidExternalID, "external_id is empty or longer than 128 characters.")
	errHasAudio    = newError(http.StatusBadRequest, minutes.ErrBadRequest, "The meeting has audio already.")

	errBody       = newError(http.StatusBadRequest, minutes.ErrInvalidRequest, "The body is not a JSON object in UTF-8.").with(fieldDetails{Fields: []string{}})
	errDate       = newError(http.StatusBadRequest, minutes.ErrInvalidDate, "date is not a calendar date as YYYY-MM-DD.")
	errTime       = newError(http.StatusBadRequest, minutes.ErrInvalidTime, "time is not a time of day as HH:MM.")
	errEmail      = newError(http.StatusBadRequest, minutes.ErrInvalidEmail, "email is not a valid address.")
	errSharedWith = newError(http.StatusBadRequest, minutes.ErrInvalidSharedWith, "shared_with names ids that are no members with an account.")
	errExtID      = newError(http.StatusBadRequest, minutes.ErrInvalidExternalID, "external_id is empty or longer than 128 characters.")

	errEmailTaken         = newError(http.StatusConflict, minutes.ErrEmailTaken, "Another member has this address.")
	errMemberLimit        = newError(http.StatusConflict, minutes.ErrMemberLimitExceeded, "The organisation holds as many members as it may.")
	errExternalIDTaken    = newError(http.StatusConflict, minutes.ErrExternalIDTaken, "Another meeting carries this external_id.")
	errMinutesNotReady    = newError(http.StatusConflict, minutes.ErrMinutesNotReady, "There are no minutes yet.")
	errTranscriptNotReady = newError(http.StatusConflict, minutes.ErrTranscriptNotReady, "There is no transcript yet.")
	errParticipantsLocked = newError(http.StatusConflict, minutes.ErrParticipantsLocked, "The meeting has audio, so its participants are locked.")
)
