package minutestest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// faultFields are the fields of each kind, beside kind, delay and after_effect.
var faultFields = map[faultKind][]string{
	kindDelay:          {},
	kindReset:          {},
	kindResetUpload:    {"bytes"},
	kindSlowUpload:     {"bytes_per_second"},
	kindRateLimit:      {"retry_after", "header"},
	kindRefuse:         {"code", "message", "retry_after", "header"},
	kindRefuseUpload:   {"status", "code", "message", "retry_after", "header"},
	kindRespond:        {"status", "content_type", "body", "retry_after", "header"},
	kindShowStatus:     {"meeting_status"},
	kindTruncate:       {"bytes"},
	kindDrip:           {"over"},
	kindBadCertificate: {}, kindConnectionRefused: {}, kindNoSuchHost: {},
	kindCall: {},
}

// check returns why f cannot be, beginning with the field at fault.
func (f Fault) check() error {
	form := f.form
	fields, known := faultFields[form.Kind]
	if !known {
		return fmt.Errorf("fault: kind: there is no kind %q", form.Kind)
	}
	for _, set := range []struct {
		name string
		is   bool
	}{
		{"status", form.Status != 0}, {"code", form.Code != ""}, {"message", form.Message != ""},
		{"retry_after", form.RetryAfter != ""}, {"header", form.Header != nil},
		{"content_type", form.ContentType != ""}, {"body", form.Body != ""}, {"meeting_status", form.MeetingStatus != ""},
		{"bytes", form.Bytes != 0}, {"bytes_per_second", form.BytesPerSecond != 0}, {"over", form.Over != 0},
	} {
		if set.is && !slices.Contains(fields, set.name) {
			return fmt.Errorf("fault: %s: %s takes no %[1]s", set.name, form.Kind)
		}
	}
	return f.checkValues(fields)
}

func (f Fault) checkValues(fields []string) error {
	form := f.form
	switch {
	case form.Delay < 0:
		return fmt.Errorf("fault: delay: %s is negative", time.Duration(form.Delay))
	case form.Over < 0:
		return fmt.Errorf("fault: over: %s is negative", time.Duration(form.Over))
	case form.Bytes < 0:
		return fmt.Errorf("fault: bytes: %d is negative", form.Bytes)
	case form.Kind == kindSlowUpload && form.BytesPerSecond < 1:
		return fmt.Errorf("fault: bytes_per_second: %d is not at least 1", form.BytesPerSecond)
	case slices.Contains(fields, "status") && (form.Status < 200 || form.Status > 599):
		return fmt.Errorf("fault: status: %s with status %d, which is not from 200 to 599", form.Kind, form.Status)
	case form.Kind == kindRefuse && statusOf(minutes.ErrorCode(form.Code)) == 0:
		return fmt.Errorf("fault: code: the interface has no code %q; use respond for any other", form.Code)
	case form.Kind == kindRefuseUpload && form.Code == "":
		return errors.New("fault: code: refuse_upload without a code")
	case form.Kind == kindShowStatus && form.MeetingStatus == "":
		return errors.New("fault: meeting_status: show_status without a status")
	case form.Kind == kindCall && f.call == nil:
		return errors.New("fault: call: the function is nil")
	case form.AfterEffect && (f.clientSide() || form.Kind == kindResetUpload || form.Kind == kindSlowUpload):
		return fmt.Errorf("fault: after_effect: %s never comes after the effect", form.Kind)
	}
	return nil
}

// statusOf returns the status of an error code, or 0 for an unknown one
// (section 7 of the interface).
func statusOf(code minutes.ErrorCode) int {
	switch code {
	case minutes.ErrInvalidRequest, minutes.ErrBadRequest, minutes.ErrInvalidEmail, minutes.ErrInvalidLimit,
		minutes.ErrInvalidCursor, minutes.ErrInvalidDate, minutes.ErrInvalidDateRange, minutes.ErrInvalidTime,
		minutes.ErrInvalidExternalID, minutes.ErrInvalidSharedWith:
		return http.StatusBadRequest
	case minutes.ErrUnauthenticated:
		return http.StatusUnauthorized
	case minutes.ErrIPNotAllowed, minutes.ErrAPIAccessDisabled, minutes.ErrPersonalAPIKeysDisabled,
		minutes.ErrInsufficientScope, minutes.ErrOrganisationSuspended, minutes.ErrOrganisationExpired, minutes.ErrForbidden:
		return http.StatusForbidden
	case minutes.ErrNotFound:
		return http.StatusNotFound
	case minutes.ErrEmailTaken, minutes.ErrMemberLimitExceeded, minutes.ErrExternalIDTaken,
		minutes.ErrMinutesNotReady, minutes.ErrTranscriptNotReady, minutes.ErrParticipantsLocked:
		return http.StatusConflict
	case minutes.ErrInternal:
		return http.StatusInternalServerError
	}
	return 0
}
