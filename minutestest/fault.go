package minutestest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
)

// Fault is one way for a request to fail; see [Server.Inject]. Functions such as [Reset] return a
// Fault, and [Fault.Delayed], [Fault.AfterEffect] and [Fault.WithHeader] refine it. As JSON it is
// an object:
//
//	{"kind":"delay","delay":"2s"}
//	{"kind":"reset"}
//	{"kind":"reset","after_effect":true}
//	{"kind":"reset_upload","bytes":65536}
//	{"kind":"slow_upload","bytes_per_second":10000}
//	{"kind":"rate_limit","retry_after":"30"}
//	{"kind":"refuse","code":"INTERNAL_ERROR"}
//	{"kind":"refuse_upload","status":503,"code":"SlowDown","message":"Please reduce your request rate."}
//	{"kind":"respond","status":502,"content_type":"text/html","body":"<h1>Bad</h1>","header":{"Retry-After":"5"}}
//	{"kind":"show_status","meeting_status":"archiving"}
//	{"kind":"stale","lag":"10s"}
//	{"kind":"truncate","bytes":10}
//	{"kind":"drip","over":"5s"}
//
// [LoseResponse] is the reset with after_effect. [BadGateway] is a respond with 502 and the HTML of
// a page, and [ExpireURL] a refuse_upload with 403, AccessDenied and "Request has expired".
//
// Every kind takes "delay", and every kind but slow_upload and stale takes "after_effect".
// The kinds that replace the response (rate_limit, refuse, refuse_upload and respond) also take
// "header", and "retry_after", which sets Retry-After. JSON cannot express [Call],
// [BadCertificate], [ConnectionRefused] and [NoSuchHost], because they work only in the test's own
// process.
type Fault struct {
	form     faultForm
	callback func(Request) // of kindCall
	since    time.Time     // of kindStale: from when on nothing changes
}

// faultForm is a Fault as JSON.
type faultForm struct {
	Kind faultKind `json:"kind"`
	// Status is of the response.
	Status int `json:"status,omitzero"`
	// Code is of the response, an error.
	Code string `json:"code,omitempty"`
	// Message is of the response, an error.
	Message string `json:"message,omitempty"`
	// RetryAfter is a header of the response.
	RetryAfter string `json:"retry_after,omitempty"`
	// Header has further headers of the response.
	Header      map[string]string `json:"header,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Body        string            `json:"body,omitempty"`
	// MeetingStatus is what show_status shows.
	MeetingStatus minutes.Status `json:"meeting_status,omitempty"`
	// Bytes is how much is transferred before the connection ends.
	Bytes          *int64 `json:"bytes,omitzero"`
	BytesPerSecond int64  `json:"bytes_per_second,omitzero"`
	// Lag is how old what a read shows is.
	Lag strictjson.Duration `json:"lag,omitzero"`
	// Over is how long a body takes.
	Over strictjson.Duration `json:"over,omitzero"`
	// Delay is the wait before the fault takes place.
	Delay strictjson.Duration `json:"delay,omitzero"`
	// AfterEffect is whether the service handles the request first.
	AfterEffect bool `json:"after_effect,omitzero"`
}

// Delay keeps the request waiting for d before it is handled. In a synctest bubble d is virtual
// time.
func Delay(d time.Duration) Fault {
	return Fault{form: faultForm{Kind: kindDelay, Delay: strictjson.Duration(d)}}
}

// Reset resets the connection as soon as the request's header has arrived, so the request has no
// effect and gets no response. On a reused connection, net/http by itself sends a GET again.
// [Server.HTTPClient] never reuses connections, so this happens only with your own client, over
// Listen or Handler.
func Reset() Fault { return Fault{form: faultForm{Kind: kindReset}} }

// LoseResponse handles the request, but then resets the connection instead of sending the response.
func LoseResponse() Fault { return Reset().AfterEffect() }

// ResetUpload resets the connection once n bytes of a recording have arrived, or at the end of a
// shorter one. The upload has no effect. With [Fault.AfterEffect], storage keeps what has arrived, as if
// that were the whole recording.
func ResetUpload(n int64) Fault { return Fault{form: faultForm{Kind: kindResetUpload, Bytes: &n}} }

// RateLimit responds with 429 as the proxy in front of the service does: in plain text, without an
// error envelope. retryAfter is the Retry-After header, in seconds or as a date, and "" omits it. A
// broken one, such as "soon", needs [Fault.WithHeader], because here it is more likely a mistake.
func RateLimit(retryAfter string) Fault {
	return Fault{form: faultForm{Kind: kindRateLimit, RetryAfter: retryAfter}}
}

// Refuse responds with an error code of the API, its status and its envelope. It omits the details
// that the service adds to some codes, so use [Respond] if your program reads them. It applies only
// to the API, so uploads neither match nor count.
func Refuse(code minutes.ErrorCode) Fault {
	return Fault{form: faultForm{Kind: kindRefuse, Code: string(code)}}
}

// RefuseUpload responds with an XML error as storage does, without reading the body.
func RefuseUpload(status int, code string) Fault {
	return Fault{form: faultForm{Kind: kindRefuseUpload, Status: status, Code: code}}
}

// ExpireURL responds to an upload as if its URL had expired.
func ExpireURL() Fault {
	f := RefuseUpload(http.StatusForbidden, "AccessDenied")
	f.form.Message = "Request has expired"
	return f
}

// SlowUpload handles an upload, but reads the recording only at this rate.
func SlowUpload(bytesPerSecond int64) Fault {
	return Fault{form: faultForm{Kind: kindSlowUpload, BytesPerSecond: bytesPerSecond}}
}

// Respond sends exactly this response, and the headers of [Fault.WithHeader], whether or not they make
// sense to a client. An empty contentType omits that header. The status is from 200 to 999, and 204 and
// 304 have no body.
func Respond(status int, contentType, body string) Fault {
	return Fault{form: faultForm{Kind: kindRespond, Status: status, ContentType: contentType, Body: body}}
}

// ShowStatus handles the request, but shows another status for each meeting in the response. Use it
// for a status that the API does not have yet, or for an earlier one that the service still shows.
func ShowStatus(status minutes.Status) Fault {
	return Fault{form: faultForm{Kind: kindShowStatus, MeetingStatus: status, AfterEffect: true}}
}

// Stale shows meetings as they were lag ago, as a database replica that lags does. A meeting that
// was created since is not found, a status or a title that has changed since is the old one, and a
// deleted meeting is gone in spite of the lag. If lag is 0, the replica never changes: it shows
// meetings as they were when the fault was injected or, with [Injection.During], when its window
// began. What happens in the same instant of virtual time counts as before.
//
// It applies to meetings.list, meetings.get, meetings.minutes and meetings.transcript, so other
// requests neither match nor count.
func Stale(lag time.Duration) Fault {
	return Fault{form: faultForm{Kind: kindStale, Lag: strictjson.Duration(lag)}}
}

// BadCertificate fails the connection before the request is sent, because the client does not trust
// the certificate: its error wraps an x509.UnknownAuthorityError. Like [ConnectionRefused] and
// [NoSuchHost], it works only for in-memory clients, and the Server never sees the request. One
// call of [Server.Inject] cannot combine these three with other faults.
func BadCertificate() Fault { return Fault{form: faultForm{Kind: kindBadCertificate}} }

// ConnectionRefused fails the connection: the client's error wraps syscall.ECONNREFUSED.
func ConnectionRefused() Fault { return Fault{form: faultForm{Kind: kindConnectionRefused}} }

// NoSuchHost makes the look-up of the host's name fail: the client's error wraps a *net.DNSError.
func NoSuchHost() Fault { return Fault{form: faultForm{Kind: kindNoSuchHost}} }

// Call calls f when the request arrives, and then handles the request; with [Fault.AfterEffect] it
// calls f after that, before the response is sent. The Request has only the fields that are known
// by then. f may call any method of the Server except Close, for example to revoke the key or to
// inject another fault, and may send requests itself.
//
// If f cancels the client's own context, the client seems to have crashed: the request is not
// handled or, with AfterEffect, its response is lost.
//
// f runs on the goroutine that serves the request. If it calls t.Fatal, the test fails and this
// connection breaks, but the test's own goroutine continues. A panic in f crashes the program on
// purpose: net/http would hide it.
//
//	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL}, minutestest.Call(func(minutestest.Request) {
//		srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key("key_ci").Revoked = true })
//	}))
func Call(f func(Request)) Fault { return Fault{form: faultForm{Kind: kindCall}, callback: f} }

// BadGateway responds with 502 and the HTML page of a proxy.
func BadGateway() Fault {
	const page = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>" +
		"<body><h1>502 Bad Gateway</h1></body></html>\n"
	return Respond(http.StatusBadGateway, "text/html; charset=utf-8", page)
}

// Truncate handles the request, but ends the connection after n bytes of the response's body. It
// always cuts at least one byte of what Content-Length announces, so reading it ends with
// io.ErrUnexpectedEOF. A response without a body is lost.
func Truncate(n int64) Fault {
	return Fault{form: faultForm{Kind: kindTruncate, Bytes: &n, AfterEffect: true}}
}

// Drip handles the request and sends the header at once, but the body in ten pieces spread over d.
func Drip(d time.Duration) Fault {
	return Fault{form: faultForm{Kind: kindDrip, Over: strictjson.Duration(d), AfterEffect: true}}
}

// Delayed returns f with a wait of d before it takes place. With [Fault.AfterEffect], the request
// is handled before the wait.
func (f Fault) Delayed(d time.Duration) Fault {
	f.form.Delay = strictjson.Duration(d)
	return f
}

// AfterEffect returns f, applied only after the request has been handled. The request takes effect,
// but the client gets f's response or none. With [Delay], the client gets the service's own
// response late.
func (f Fault) AfterEffect() Fault {
	f.form.AfterEffect = true
	return f
}

// WithHeader returns f with a header in its response, such as Retry-After. It is for faults that
// replace the response: [RateLimit], [Refuse], [RefuseUpload], [ExpireURL], [Respond] and
// [BadGateway]. The value is sent as it is, even if no client understands it. Content-Length and
// Transfer-Encoding follow from the body, so they cannot be set.
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

// MarshalJSON writes the JSON that the type's documentation shows. For a fault that JSON cannot
// express, it writes only a kind, for people to read. UnmarshalJSON rejects it.
func (f Fault) MarshalJSON() ([]byte, error) { return json.Marshal(f.form) }

// UnmarshalJSON reads the same JSON as MarshalJSON writes. It rejects unknown fields and invalid
// faults.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var form faultForm
	err := strictjson.Decode(data, &form)
	if err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	kind := kinds[form.Kind]
	if kind.onlyInGo {
		return fmt.Errorf("fault: %s: it works only within one process", form.Kind)
	}
	form.AfterEffect = form.AfterEffect || kind.effect == always
	f.form = form
	err = f.check()
	if err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	return nil
}
