package minutestest

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Fault is a failure of a request; see [Server.Inject]. Functions such as [Reset] return one, and
// [Fault.Delayed], [Fault.AfterEffect] and [Fault.WithHeader] refine it. As JSON it is an object:
//
//	{"kind":"delay","delay":"2s"}
//	{"kind":"reset"}
//	{"kind":"reset","after_effect":true}
//	{"kind":"reset_upload","bytes":65536}
//	{"kind":"slow_upload","bytes_per_second":10000}
//	{"kind":"rate_limit","retry_after":"30"}
//	{"kind":"refuse","code":"INTERNAL_ERROR"}
//	{"kind":"refuse_upload","status":503,"code":"SlowDown","message":"Please reduce your request rate."}
//	{"kind":"respond","status":502,"content_type":"text/html","body":"<h1>Bad Gateway</h1>","header":{"Retry-After":"5"}}
//	{"kind":"show_status","meeting_status":"archiving"}
//	{"kind":"truncate","bytes":10}
//	{"kind":"drip","over":"5s"}
//
// Each kind takes "delay", and each kind but reset_upload and slow_upload takes "after_effect". The
// kinds that replace the response take "header", and "retry_after" for short. The faults that only
// a program in the same process can see or make have no JSON.
type Fault struct {
	form faultForm
	call func(Request) // of kindCall
}

type faultForm struct {
	Kind           faultKind         `json:"kind"`
	Status         int               `json:"status,omitempty"`
	Code           string            `json:"code,omitempty"`
	Message        string            `json:"message,omitempty"`
	RetryAfter     string            `json:"retry_after,omitempty"`
	Header         map[string]string `json:"header,omitempty"`
	ContentType    string            `json:"content_type,omitempty"`
	Body           string            `json:"body,omitempty"`
	MeetingStatus  minutes.Status    `json:"meeting_status,omitempty"`
	Bytes          int64             `json:"bytes,omitempty"`
	BytesPerSecond int64             `json:"bytes_per_second,omitempty"`
	Over           world.Duration    `json:"over,omitempty"`
	Delay          world.Duration    `json:"delay,omitempty"`
	AfterEffect    bool              `json:"after_effect,omitempty"`
}

type faultKind string

const (
	kindDelay        faultKind = "delay"
	kindReset        faultKind = "reset"
	kindResetUpload  faultKind = "reset_upload"
	kindRateLimit    faultKind = "rate_limit"
	kindRefuse       faultKind = "refuse"
	kindRefuseUpload faultKind = "refuse_upload"
	kindRespond      faultKind = "respond"
	kindTruncate     faultKind = "truncate"
	kindDrip         faultKind = "drip"

	kindSlowUpload faultKind = "slow_upload"
	kindShowStatus faultKind = "show_status"
	kindCall       faultKind = "call" // in Go only, as are those below

	kindBadCertificate    faultKind = "bad_certificate"
	kindConnectionRefused faultKind = "connection_refused"
	kindNoSuchHost        faultKind = "no_such_host"
)

// A trait is what kinds have in common.
type trait int

const (
	replaces   trait = 1 << iota // it has a response of its own, and so headers
	keeps                        // the response is the service's own, changed or late
	late                         // it always comes after the effect
	early                        // it never does
	cuts                         // the connection is reset
	clientSide                   // it happens before a request is sent, so only clients in this process can see it
)

var traits = map[faultKind]trait{
	kindDelay: keeps, kindCall: keeps, kindSlowUpload: keeps | early, kindShowStatus: keeps | late, kindTruncate: keeps | late, kindDrip: keeps | late,
	kindReset: cuts, kindResetUpload: cuts | early,
	kindRateLimit: replaces, kindRefuse: replaces, kindRefuseUpload: replaces, kindRespond: replaces,
	kindBadCertificate: clientSide | early, kindConnectionRefused: clientSide | early, kindNoSuchHost: clientSide | early,
}

func (f Fault) is(t trait) bool { return traits[f.form.Kind]&t != 0 }

// Delay keeps the request waiting for d before it is handled, and then handles it as ever. In a
// synctest bubble d is time of the bubble.
func Delay(d time.Duration) Fault {
	return Fault{form: faultForm{Kind: kindDelay, Delay: world.Duration(d)}}
}

// Reset resets the connection when the request's header has arrived. The request is not handled,
// and there is no response. On a reused connection, net/http itself sends a GET again at once;
// connections of [Server.HTTPClient] are never reused.
func Reset() Fault { return Fault{form: faultForm{Kind: kindReset}} }

// LoseResponse handles the request and then resets the connection instead of sending the response.
func LoseResponse() Fault { return Reset().AfterEffect() }

// ResetUpload resets the connection once n bytes of the request's body have arrived, or all of it
// if it is shorter. It is not handled.
func ResetUpload(n int64) Fault { return Fault{form: faultForm{Kind: kindResetUpload, Bytes: n}} }

// RateLimit responds with 429 as the service's edge does: a line of plain text and no envelope.
// retryAfter is the value of Retry-After, in seconds or as a date; "" leaves it out.
func RateLimit(retryAfter string) Fault {
	return Fault{form: faultForm{Kind: kindRateLimit, RetryAfter: retryAfter}}
}

// Refuse responds with the envelope of a code of the interface and its status. It omits the details
// that the service adds to some codes; use [Respond] for those. It applies only to the API:
// requests to storage neither match nor count.
func Refuse(code minutes.ErrorCode) Fault {
	return Fault{form: faultForm{Kind: kindRefuse, Code: string(code)}}
}

// RefuseUpload responds in the XML of storage, without reading the body.
func RefuseUpload(status int, code string) Fault {
	return Fault{form: faultForm{Kind: kindRefuseUpload, Status: status, Code: code}}
}

// ExpireURL responds to an upload as storage does if its URL has expired.
func ExpireURL() Fault {
	f := RefuseUpload(http.StatusForbidden, "AccessDenied")
	f.form.Message = "Request has expired"
	return f
}

// SlowUpload handles the request, but reads its body at this rate.
func SlowUpload(bytesPerSecond int64) Fault {
	return Fault{form: faultForm{Kind: kindSlowUpload, BytesPerSecond: bytesPerSecond}}
}

// Respond sends exactly this, and the headers of [Fault.WithHeader]. An empty content type is left
// out.
func Respond(status int, contentType, body string) Fault {
	return Fault{form: faultForm{Kind: kindRespond, Status: status, ContentType: contentType, Body: body}}
}

// ShowStatus handles the request and shows another status for each meeting in the response: one
// that the interface does not have, or one that the meeting has left behind, as if the service
// noticed a change late.
func ShowStatus(status minutes.Status) Fault {
	return Fault{form: faultForm{Kind: kindShowStatus, MeetingStatus: status, AfterEffect: true}}
}

// BadCertificate ends the connection before the request is sent, because its certificate is not
// trusted. The client's error wraps an x509.UnknownAuthorityError. As with [ConnectionRefused] and
// [NoSuchHost], only in-memory clients see it, and the Server never sees their request. The faults
// of an injection are all of these three kinds, or none is.
func BadCertificate() Fault { return Fault{form: faultForm{Kind: kindBadCertificate}} }

// ConnectionRefused lets nobody answer, as while a service restarts: the client's error wraps
// syscall.ECONNREFUSED.
func ConnectionRefused() Fault { return Fault{form: faultForm{Kind: kindConnectionRefused}} }

// NoSuchHost makes the look-up of the host's name fail: the client's error wraps a *net.DNSError.
func NoSuchHost() Fault { return Fault{form: faultForm{Kind: kindNoSuchHost}} }

// dialError is the error of the kinds that keep a connection from being made.
func (f Fault) dialError(host string) error {
	switch f.form.Kind {
	case kindConnectionRefused:
		return &net.OpError{Op: "dial", Net: "tcp", Addr: pipeAddr(host), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case kindNoSuchHost:
		return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
	return &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
}

// Call calls f when the request arrives, and then handles the request. After effect, it calls f
// before the response is sent. f may do what the function given to [WithLog] may do: revoke the
// key, inject another fault, cancel a context. If f cancels the client's own context, the request
// is not handled, and after effect its response is lost: the program died there. In the Request are
// the fields that are known by then.
//
// f runs on the goroutine that serves the request, and may call t.Fatal. If f panics, the program
// crashes, as if f ran on a goroutine of its own.
//
//	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL}, minutestest.Call(func(minutestest.Request) {
//		srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key("key_ci").Revoked = true })
//	}))
func Call(f func(Request)) Fault { return Fault{form: faultForm{Kind: kindCall}, call: f} }

// BadGateway responds with 502 and the HTML page of a proxy.
func BadGateway() Fault {
	return Respond(http.StatusBadGateway, "text/html; charset=utf-8", "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n")
}

// Truncate handles the request and ends the connection after n bytes of the response's body, or one
// byte before its end if that comes first. Content-Length is the length of the whole body.
func Truncate(n int64) Fault {
	return Fault{form: faultForm{Kind: kindTruncate, Bytes: n, AfterEffect: true}}
}

// Drip handles the request and sends the response's header at once, but its body in ten pieces
// spread over d.
func Drip(d time.Duration) Fault {
	return Fault{form: faultForm{Kind: kindDrip, Over: world.Duration(d), AfterEffect: true}}
}

// Delayed returns f with a wait of d before it. If f is applied after the request has been handled,
// the wait is after that too.
func (f Fault) Delayed(d time.Duration) Fault { f.form.Delay = world.Duration(d); return f }

// AfterEffect returns f as applied after the request has been handled: what it asks for is done,
// but its response is f's. A Delay holds the response back.
func (f Fault) AfterEffect() Fault { f.form.AfterEffect = true; return f }

// WithHeader returns f with a header in its response, such as Retry-After. It is for [RateLimit],
// [Refuse], [RefuseUpload] and [Respond].
func (f Fault) WithHeader(name, value string) Fault {
	f.form.Header = maps.Clone(f.form.Header)
	if f.form.Header == nil {
		f.form.Header = map[string]string{}
	}
	f.form.Header[name] = value
	return f
}

// String describes f in a few words.
func (f Fault) String() string {
	words := []string{string(f.form.Kind)}
	if f.form.Status != 0 {
		words = append(words, fmt.Sprint(f.form.Status))
	}
	if text := cmp.Or(f.form.Code, string(f.form.MeetingStatus)); text != "" {
		words = append(words, text)
	}
	if f.form.AfterEffect {
		words = append(words, "after effect")
	}
	return strings.Join(words, " ")
}

// MarshalJSON writes the form that the type's documentation shows.
func (f Fault) MarshalJSON() ([]byte, error) { return json.Marshal(f.form) }

// UnmarshalJSON reads the form that the type's documentation shows. Unknown fields and invalid
// faults are errors.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var form faultForm
	if err := world.Decode(data, &form); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	f.form = form
	if form.Kind == kindCall || f.is(clientSide) {
		return fmt.Errorf("fault: kind: %s works only within one process", form.Kind)
	}
	f.form.AfterEffect = form.AfterEffect || f.is(late)
	return f.check()
}

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
	case form.Kind == kindRefuse && engine.StatusOf(minutes.ErrorCode(form.Code)) == 0:
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
