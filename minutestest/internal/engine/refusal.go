package engine

import (
	"net/http"

	minutes "github.com/meeting-minutes/minutes-go"
)

// refusal is an answer that is none of the operation's successes. Refusals
// without details are made once.
type refusal struct {
	status  int
	code    minutes.Code
	message string
	fields  []string // details.fields: the body is at fault, even if in no field of its own
	invalid []string // details.invalid of INVALID_SHARED_WITH
	holder  *member  // details of EMAIL_TAKEN
	allow   string   // of 405
}

func refuse(status int, code minutes.Code, message string) *refusal {
	return &refusal{status: status, code: code, message: message}
}

var (
	errUnauthenticated  = refuse(http.StatusUnauthorized, minutes.ErrUnauthenticated, "The API key is missing, malformed, unknown, expired or revoked.")
	errIPNotAllowed     = refuse(http.StatusForbidden, minutes.ErrIPNotAllowed, "The API key may not be used from this address.")
	errSuspended        = refuse(http.StatusForbidden, minutes.ErrOrganisationSuspended, "The organisation is suspended.")
	errExpired          = refuse(http.StatusForbidden, minutes.ErrOrganisationExpired, "The organisation's access has expired.")
	errAPIDisabled      = refuse(http.StatusForbidden, minutes.ErrAPIAccessDisabled, "The organisation has no API access, or the integration is no longer active.")
	errPersonalDisabled = refuse(http.StatusForbidden, minutes.ErrPersonalAPIKeysDisabled, "The organisation has personal API keys disabled.")
	errScope            = refuse(http.StatusForbidden, minutes.ErrInsufficientScope, "The API key lacks the scope of this operation.")
	errForbidden        = refuse(http.StatusForbidden, minutes.ErrForbidden, "This caller may not change the meeting.")

	errNoRoute         = refuse(http.StatusNotFound, minutes.ErrNotFound, "There is nothing at this path.")
	errMeetingNotFound = refuse(http.StatusNotFound, minutes.ErrNotFound, "There is no such meeting.")
	errNoMember        = refuse(http.StatusNotFound, minutes.ErrNotFound, "There is no such member.")
	errNoProject       = refuse(http.StatusNotFound, minutes.ErrNotFound, "There is no such project.")
	errNoTemplate      = refuse(http.StatusNotFound, minutes.ErrNotFound, "There is no such template.")

	errMethod      = refuse(http.StatusMethodNotAllowed, minutes.ErrBadRequest, "This path does not answer to that method.")
	errTooLarge    = refuse(http.StatusRequestEntityTooLarge, minutes.ErrBadRequest, "The body is longer than 1 MiB.")
	errSlow        = refuse(http.StatusRequestTimeout, minutes.ErrBadRequest, "The body did not arrive in time.")
	errQuery       = refuse(http.StatusBadRequest, minutes.ErrInvalidRequest, "The query is malformed or repeats a parameter.")
	errCombination = refuse(http.StatusBadRequest, minutes.ErrInvalidRequest, "external_id cannot be combined with date_from, date_to or cursor.")
	errFormat      = refuse(http.StatusBadRequest, minutes.ErrInvalidRequest, "format is html or markdown.")
	errLimit       = refuse(http.StatusBadRequest, minutes.ErrInvalidLimit, "limit is a whole number from 1 to 50.")
	errCursor      = refuse(http.StatusBadRequest, minutes.ErrInvalidCursor, "cursor does not come from a previous page of this list.")
	errQueryDate   = refuse(http.StatusBadRequest, minutes.ErrInvalidDate, "date_from and date_to are calendar dates as YYYY-MM-DD.")
	errDateRange   = refuse(http.StatusBadRequest, minutes.ErrInvalidDateRange, "date_from lies after date_to.")
	errQueryExtID  = refuse(http.StatusBadRequest, minutes.ErrInvalidExternalID, "external_id is empty or longer than 128 characters.")
	errHasAudio    = refuse(http.StatusBadRequest, minutes.ErrBadRequest, "The meeting has audio already.")

	errEmailTaken         = refuse(http.StatusConflict, minutes.ErrEmailTaken, "Another member has this address.")
	errMemberLimit        = refuse(http.StatusConflict, minutes.ErrMemberLimitExceeded, "The organisation holds as many members as it may.")
	errExternalIDTaken    = refuse(http.StatusConflict, minutes.ErrExternalIDTaken, "Another meeting carries this external_id.")
	errMinutesNotReady    = refuse(http.StatusConflict, minutes.ErrMinutesNotReady, "There are no minutes yet.")
	errTranscriptNotReady = refuse(http.StatusConflict, minutes.ErrTranscriptNotReady, "There is no transcript yet.")
	errParticipantsLocked = refuse(http.StatusConflict, minutes.ErrParticipantsLocked, "The meeting has audio, so its participants are locked.")

	errInternal = refuse(http.StatusInternalServerError, minutes.ErrInternal, "The service has failed.")
)

// append writes the error envelope (section 7 of the interface).
func (r *refusal) append(b []byte, requestID string) []byte {
	b = append(b, `{"error":{"code":`...)
	b = appendString(b, string(r.code))
	b = append(b, `,"message":`...)
	b = appendString(b, r.message)
	b = append(b, `,"request_id":`...)
	b = appendString(b, requestID)
	switch {
	case r.invalid != nil:
		b = append(b, `,"details":{"fields":`...)
		b = appendStrings(b, r.fields)
		b = append(b, `,"invalid":`...)
		b = appendStrings(b, r.invalid)
		b = append(b, '}')
	case r.fields != nil:
		b = append(b, `,"details":{"fields":`...)
		b = appendStrings(b, r.fields)
		b = append(b, '}')
	case r.holder != nil:
		b = append(b, `,"details":{"member_id":`...)
		b = appendString(b, r.holder.ID)
		b = append(b, `,"name":`...)
		b = appendString(b, r.holder.Name)
		b = append(b, '}')
	}
	return append(b, "}}"...)
}
