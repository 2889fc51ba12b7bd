package minutestest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Fault is something that goes wrong with a request; see [Server.Inject]. The
// functions that return one make it, and [Fault.Delayed] and
// [Fault.AfterEffect] refine it. As JSON it is an object:
//
//	{"kind":"delay","delay":"2s"}
//	{"kind":"reset"}
//	{"kind":"reset","after_effect":true}
//	{"kind":"reset_upload","bytes":65536}
//	{"kind":"rate_limit","retry_after":"30"}
//	{"kind":"refuse","code":"INTERNAL_ERROR"}
//	{"kind":"refuse_upload","status":503,"code":"SlowDown"}
//	{"kind":"reply","status":502,"content_type":"text/html","body":"<h1>Bad Gateway</h1>"}
//	{"kind":"truncate","bytes":10}
//	{"kind":"drip","over":"5s"}
//
// Each kind takes "delay", and each kind but reset_upload "after_effect".
type Fault struct{ form faultForm }

type faultForm struct {
	Kind        faultKind `json:"kind"`
	Status      int       `json:"status,omitempty"`
	Code        string    `json:"code,omitempty"`
	RetryAfter  string    `json:"retry_after,omitempty"`
	ContentType string    `json:"content_type,omitempty"`
	Body        string    `json:"body,omitempty"`
	Bytes       int64     `json:"bytes,omitempty"`
	Over        duration  `json:"over,omitempty"`
	Delay       duration  `json:"delay,omitempty"`
	AfterEffect bool      `json:"after_effect,omitempty"`
}

type faultKind string

const (
	kindDelay        faultKind = "delay"
	kindReset        faultKind = "reset"
	kindResetUpload  faultKind = "reset_upload"
	kindRateLimit    faultKind = "rate_limit"
	kindRefuse       faultKind = "refuse"
	kindRefuseUpload faultKind = "refuse_upload"
	kindReply        faultKind = "reply"
	kindTruncate     faultKind = "truncate"
	kindDrip         faultKind = "drip"
)

// Delay keeps the request waiting for d before it is handled, and then handles
// it as ever. In a synctest bubble d is time of the bubble.
func Delay(d time.Duration) Fault { return Fault{faultForm{Kind: kindDelay, Delay: duration(d)}} }

// Reset resets the connection when the request's header has arrived: it is not
// handled, and there is no reply. On a connection that has served before,
// which those of [Server.HTTPClient] never have, net/http itself sends a GET
// again at once.
func Reset() Fault { return Fault{faultForm{Kind: kindReset}} }

// LoseReply handles the request and resets the connection in place of the
// reply.
func LoseReply() Fault { return Reset().AfterEffect() }

// ResetUpload resets the connection once n bytes of the request's body have
// arrived, or all of it where it is shorter. It is not handled.
func ResetUpload(n int64) Fault { return Fault{faultForm{Kind: kindResetUpload, Bytes: n}} }

// RateLimit answers 429 as the service's edge does: a line of plain text and
// no envelope. retryAfter is the value of Retry-After, in seconds or as a
// date; "" leaves it out.
func RateLimit(retryAfter string) Fault {
	return Fault{faultForm{Kind: kindRateLimit, RetryAfter: retryAfter}}
}

// Refuse answers with the envelope of a code of the interface and its status.
// Details that the service gives with some codes are left out; Respond answers with
// any.
func Refuse(code minutes.Code) Fault {
	return Fault{faultForm{Kind: kindRefuse, Code: string(code)}}
}

// RefuseUpload answers in the XML of storage, without taking the body.
func RefuseUpload(status int, code string) Fault {
	return Fault{faultForm{Kind: kindRefuseUpload, Status: status, Code: code}}
}

// Respond answers with just this. An empty content type is left out.
func Respond(status int, contentType, body string) Fault {
	return Fault{faultForm{Kind: kindReply, Status: status, ContentType: contentType, Body: body}}
}

// BadGateway answers 502 with the HTML page of a proxy.
func BadGateway() Fault {
	return Respond(http.StatusBadGateway, "text/html; charset=utf-8", "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n")
}

// Truncate handles the request and ends the connection after n bytes of the
// reply's body, or one byte before its end where that comes first. The reply's
// Content-Length is that of the whole body.
func Truncate(n int64) Fault {
	return Fault{faultForm{Kind: kindTruncate, Bytes: n, AfterEffect: true}}
}

// Drip handles the request and sends the reply's header at once, but its body
// in ten pieces spread over d.
func Drip(d time.Duration) Fault {
	return Fault{faultForm{Kind: kindDrip, Over: duration(d), AfterEffect: true}}
}

// Delayed returns f with a wait of d before it: after the request has been handled,
// where it strikes then.
func (f Fault) Delayed(d time.Duration) Fault { f.form.Delay = duration(d); return f }

// AfterEffect returns f striking after the request has been handled: what it
// asked for is done, but its reply is f's. A Delay holds the reply back.
func (f Fault) AfterEffect() Fault { f.form.AfterEffect = true; return f }

// String describes f in a few words.
func (f Fault) String() string {
	words := []string{string(f.form.Kind)}
	if f.form.Status != 0 {
		words = append(words, fmt.Sprint(f.form.Status))
	}
	if f.form.Code != "" {
		words = append(words, f.form.Code)
	}
	if f.form.AfterEffect {
		words = append(words, "after effect")
	}
	return strings.Join(words, " ")
}

// MarshalJSON writes the form that the type's documentation shows.
func (f Fault) MarshalJSON() ([]byte, error) { return json.Marshal(f.form) }

// UnmarshalJSON reads the form that the type's documentation shows. Unknown
// fields and faults that cannot be are errors.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var form faultForm
	if err := strictUnmarshal(data, &form); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	if form.Kind == kindTruncate || form.Kind == kindDrip {
		form.AfterEffect = true
	}
	f.form = form
	return f.check()
}

// fields of each kind, beside kind, delay and after_effect.
var faultFields = map[faultKind][]string{
	kindDelay:        {},
	kindReset:        {},
	kindResetUpload:  {"bytes"},
	kindRateLimit:    {"retry_after"},
	kindRefuse:       {"code", "retry_after"},
	kindRefuseUpload: {"status", "code", "retry_after"},
	kindReply:        {"status", "content_type", "body", "retry_after"},
	kindTruncate:     {"bytes"},
	kindDrip:         {"over"},
}

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
		{"status", form.Status != 0}, {"code", form.Code != ""}, {"retry_after", form.RetryAfter != ""},
		{"content_type", form.ContentType != ""}, {"body", form.Body != ""}, {"bytes", form.Bytes != 0}, {"over", form.Over != 0},
	} {
		if set.is && !slices.Contains(fields, set.name) {
			return fmt.Errorf("fault: %s: %s takes no %[1]s", set.name, form.Kind)
		}
	}
	switch {
	case form.Delay < 0:
		return fmt.Errorf("fault: delay: %s is negative", time.Duration(form.Delay))
	case form.Over < 0:
		return fmt.Errorf("fault: over: %s is negative", time.Duration(form.Over))
	case form.Bytes < 0:
		return fmt.Errorf("fault: bytes: %d is negative", form.Bytes)
	case slices.Contains(fields, "status") && (form.Status < 200 || form.Status > 599):
		return fmt.Errorf("fault: status: %s with status %d, which is not from 200 to 599", form.Kind, form.Status)
	case form.Kind == kindRefuse && statusOf(minutes.Code(form.Code)) == 0:
		return fmt.Errorf("fault: code: the interface has no code %q; reply answers anything", form.Code)
	case form.Kind == kindRefuseUpload && form.Code == "":
		return errors.New("fault: code: refuse_upload without a code")
	case form.Kind == kindResetUpload && form.AfterEffect:
		return errors.New("fault: after_effect: reset_upload never takes effect")
	}
	return nil
}

// statusOf is the status of a refusal with this code, 0 for an unknown one
// (section 7 of the interface).
func statusOf(code minutes.Code) int {
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
