package minutestest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// check returns why f cannot be, beginning with the field at fault.
func (f Fault) check() error {
	form := f.form
	_, known := traits[form.Kind]
	hasStatus := form.Kind == kindRespond || form.Kind == kindRefuseUpload
	switch {
	case !known:
		return fmt.Errorf("fault: kind: there is no kind %q", form.Kind)
	case form.Header != nil && !f.is(replaces):
		return fmt.Errorf("fault: header: %s has no response of its own", form.Kind)
	case form.Delay < 0:
		return fmt.Errorf("fault: delay: %s is negative", time.Duration(form.Delay))
	case form.Over < 0:
		return fmt.Errorf("fault: over: %s is negative", time.Duration(form.Over))
	case form.Bytes < 0:
		return fmt.Errorf("fault: bytes: %d is negative", form.Bytes)
	case form.Kind == kindSlowUpload && form.BytesPerSecond < 1:
		return fmt.Errorf("fault: bytes_per_second: %d is not at least 1", form.BytesPerSecond)
	case hasStatus && (form.Status < 200 || form.Status > 599):
		return fmt.Errorf("fault: status: %s with status %d, which is not from 200 to 599", form.Kind, form.Status)
	case form.Kind == kindRefuse && statusOf(minutes.ErrorCode(form.Code)) == 0:
		return fmt.Errorf("fault: code: the API has no code %q; use respond for any other", form.Code)
	case form.Kind == kindRefuseUpload && form.Code == "":
		return errors.New("fault: code: refuse_upload without a code")
	case form.Kind == kindShowStatus && form.MeetingStatus == "":
		return errors.New("fault: meeting_status: show_status without a status")
	case form.Kind == kindCall && f.call == nil:
		return errors.New("fault: call: the function is nil")
	case form.AfterEffect && f.is(early):
		return fmt.Errorf("fault: after_effect: %s never comes after the effect", form.Kind)
	}
	return nil
}

// codesOf has the error codes by their status (section 7 of the API reference).
var codesOf = map[int][]minutes.ErrorCode{
	http.StatusBadRequest: {
		minutes.ErrInvalidRequest, minutes.ErrBadRequest, minutes.ErrInvalidEmail, minutes.ErrInvalidLimit, minutes.ErrInvalidCursor,
		minutes.ErrInvalidDate, minutes.ErrInvalidDateRange, minutes.ErrInvalidTime, minutes.ErrInvalidExternalID, minutes.ErrInvalidSharedWith,
	},
	http.StatusUnauthorized: {minutes.ErrUnauthenticated},
	http.StatusForbidden: {
		minutes.ErrIPNotAllowed, minutes.ErrAPIAccessDisabled, minutes.ErrPersonalAPIKeysDisabled, minutes.ErrInsufficientScope,
		minutes.ErrOrganisationSuspended, minutes.ErrOrganisationExpired, minutes.ErrForbidden,
	},
	http.StatusNotFound: {minutes.ErrNotFound},
	http.StatusConflict: {
		minutes.ErrEmailTaken, minutes.ErrMemberLimitExceeded, minutes.ErrExternalIDTaken, minutes.ErrMinutesNotReady,
		minutes.ErrTranscriptNotReady, minutes.ErrParticipantsLocked,
	},
	http.StatusInternalServerError: {minutes.ErrInternal},
}

// statusOf returns the status of a code, or 0 if the API has no such code.
func statusOf(code minutes.ErrorCode) int {
	for status, codes := range codesOf {
		if slices.Contains(codes, code) {
			return status
		}
	}
	return 0
}
