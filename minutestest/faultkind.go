package minutestest

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
)

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
	kindStale      faultKind = "stale"
	kindCall       faultKind = "call"

	kindBadCertificate    faultKind = "bad_certificate"
	kindConnectionRefused faultKind = "connection_refused"
	kindNoSuchHost        faultKind = "no_such_host"
)

// kind is everything that one kind of fault is and does. Server.apply says when its functions are
// called; those that are nil do nothing.
type kind struct {
	// inGo is the function that makes it.
	inGo string
	// only is where it happens; "": anywhere.
	only target
	// effect says whether the request has taken effect when the fault takes place.
	effect effect
	// onlyInGo is whether JSON cannot express it.
	onlyInGo bool
	// responds is whether it has a response of its own, and so headers.
	responds bool
	// fields are those of its JSON that not every kind has.
	fields []string

	// check checks the fields that only this kind has.
	check func(f Fault) error
	// dialError is the error of the connection, which then is not made.
	dialError func(host string) error
	// among are the operations that it happens to; nil: any.
	among []minutes.Operation
	// keep changes a request that takes effect before the fault.
	keep func(x *exchange, f Fault)
	// act does something at the moment of the fault, besides what the service does.
	act func(x *exchange, f Fault)
	// replace sets a response of its own in place of the service's, or cuts the connection.
	replace func(x *exchange, f Fault)
	// change changes the service's own response.
	change func(x *exchange, f Fault)
}

// target is where requests go.
type target string

const (
	toAPI     target = "the API"
	toStorage target = "storage"
)

// effect says whether a fault comes after the effect of its request.
type effect int

const (
	asAsked effect = iota // if the test has called AfterEffect
	never
	always
)

// kinds has every kind of fault.
var kinds = map[faultKind]kind{
	kindDelay: {inGo: "Delay", check: checkDelay},
	kindCall:  {inGo: "Call", check: checkCall, onlyInGo: true, act: callFunction},
	kindSlowUpload: {
		inGo: "SlowUpload", only: toStorage, effect: never, fields: []string{"bytes_per_second"},
		check: checkRate, act: slowDown,
	},
	kindShowStatus: {
		inGo: "ShowStatus", effect: always, fields: []string{"meeting_status"},
		check: checkShownStatus, change: showStatus,
	},
	kindStale:    {inGo: "Stale", effect: never, among: reads, fields: []string{"lag"}, check: checkLag, act: lookBack},
	kindTruncate: {inGo: "Truncate", effect: always, fields: []string{"bytes"}, check: checkBytes, change: truncate},
	kindDrip:     {inGo: "Drip", effect: always, fields: []string{"over"}, check: checkDrip, change: drip},

	kindReset: {inGo: "Reset", replace: cut},
	kindResetUpload: {
		inGo: "ResetUpload", only: toStorage, fields: []string{"bytes"},
		check: checkBytes, keep: keepPart, replace: cutUpload,
	},

	kindRateLimit: {inGo: "RateLimit", responds: true, replace: rateLimit},
	kindRefuse: {
		inGo: "Refuse", only: toAPI, responds: true, fields: []string{"code", "message"},
		check: checkAPICode, replace: refuse,
	},
	kindRefuseUpload: {
		inGo: "RefuseUpload", only: toStorage, responds: true, fields: []string{"status", "code", "message"},
		check: checkStorageError, replace: refuseUpload,
	},
	kindRespond: {
		inGo: "Respond", responds: true, fields: []string{"status", "content_type", "body"},
		check: checkResponse, replace: respond,
	},

	kindBadCertificate:    {inGo: "BadCertificate", effect: never, onlyInGo: true, dialError: badCertificate},
	kindConnectionRefused: {inGo: "ConnectionRefused", effect: never, onlyInGo: true, dialError: connectionRefused},
	kindNoSuchHost:        {inGo: "NoSuchHost", effect: never, onlyInGo: true, dialError: noSuchHost},
}

func (f Fault) kind() kind { return kinds[f.form.Kind] }

// beforeSending reports whether f happens before a request is sent, so that only clients in this
// process can see it.
func (f Fault) beforeSending() bool { return f.kind().dialError != nil }

// check returns why f cannot be: the kind, the field at fault, and the reason.
func (f Fault) check() error {
	form := f.form
	kind, known := kinds[form.Kind]
	if !known {
		return mistake.At("kind", "there is no kind %q; there are %s", string(form.Kind), kindNames(""))
	}
	wrong := func(field, format string, args ...any) error {
		return mistake.Errorf("%s: %s", form.Kind.name(), mistake.At(field, format, args...))
	}
	switch {
	case form.Header != nil && !kind.responds:
		return wrong("header", "it has no response of its own")
	case form.RetryAfter != "" && !kind.responds:
		return wrong("retry_after", "it has no response of its own")
	case form.RetryAfter != "" && !isRetryAfter(form.RetryAfter):
		return wrong("retry_after", "%q is neither a number of seconds nor an HTTP date; to send it anyway, use %s",
			form.RetryAfter, mistake.Name{JSON: "header", Go: "WithHeader"})
	case form.Delay < 0:
		return wrong("delay", "%s is negative", time.Duration(form.Delay))
	case form.Over < 0:
		return wrong("over", "%s is negative", time.Duration(form.Over))
	case form.AfterEffect && kind.effect == never:
		return wrong("after_effect", "it never comes after the effect")
	}
	for _, field := range form.given() {
		if !slices.Contains(kind.fields, field) {
			return wrong(field, "it belongs to %s", kindNames(field))
		}
	}
	err := form.checkHeader()
	if err == nil && kind.check != nil {
		err = kind.check(f)
	}
	if err != nil {
		return mistake.Errorf("%s: %s", form.Kind.name(), err)
	}
	return nil
}

// checkHeader rejects what net/http would not send as it is. A value that makes no sense to a client is
// right, because a gateway may send it.
func (form faultForm) checkHeader() error {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(form.Header)) {
		value := form.Header[name]
		canonical := http.CanonicalHeaderKey(name)
		first, again := seen[canonical]
		seen[canonical] = name
		switch {
		case !isHeaderName(name) || strings.ContainsFunc(value, isControl):
			return mistake.At("header", "%q: %q is not a header", name, value)
		case again:
			return mistake.At("header", "%q is the same header as %q", name, first)
		case canonical == "Content-Length" || canonical == "Transfer-Encoding":
			return mistake.At("header", "%s follows from the body; for a body that ends early, use %s",
				canonical, mistake.Name{JSON: string(kindTruncate), Go: "Truncate"})
		}
	}
	return nil
}

// isHeaderName reports whether HTTP permits a name (RFC 9110, section 5.6.2).
func isHeaderName(name string) bool {
	isOther := func(r rune) bool {
		isAlphanumeric := r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		return !isAlphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}
	return name != "" && !strings.ContainsFunc(name, isOther)
}

// isControl reports whether HTTP permits r in no value of a header (RFC 9110, section 5.5).
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// given lists the fields that are set and that not every kind has.
func (form faultForm) given() (fields []string) {
	for _, field := range []struct {
		name  string
		isSet bool
	}{
		{"status", form.Status != 0},
		{"code", form.Code != ""},
		{"message", form.Message != ""},
		{"content_type", form.ContentType != ""},
		{"body", form.Body != ""},
		{"meeting_status", form.MeetingStatus != ""},
		{"bytes", form.Bytes != nil},
		{"bytes_per_second", form.BytesPerSecond != 0},
		{"over", form.Over != 0},
		{"lag", form.Lag != 0},
	} {
		if field.isSet {
			fields = append(fields, field.name)
		}
	}
	return fields
}

// name is what JSON and Go call a kind.
func (k faultKind) name() mistake.Name { return mistake.Name{JSON: string(k), Go: kinds[k].inGo} }

// kindNames lists the kinds: all, or those with a field. JSON cannot express all of them.
func kindNames(field string) mistake.Name {
	var inJSON, inGo []string
	for name, kind := range kinds {
		if field != "" && !slices.Contains(kind.fields, field) {
			continue
		}
		inGo = append(inGo, kind.inGo)
		if !kind.onlyInGo {
			inJSON = append(inJSON, string(name))
		}
	}
	slices.Sort(inJSON)
	slices.Sort(inGo)
	return mistake.Name{JSON: strings.Join(inJSON, ", "), Go: strings.Join(inGo, ", ")}
}

// isRetryAfter reports whether a client understands a Retry-After.
func isRetryAfter(text string) bool {
	if _, err := strconv.ParseUint(text, 10, 31); err == nil {
		return true
	}
	_, err := http.ParseTime(text)
	return err == nil
}

func checkDelay(f Fault) error {
	if f.form.Delay == 0 {
		return mistake.At("delay", "a duration over 0 expected")
	}
	return nil
}

func checkCall(f Fault) error {
	if f.callback == nil {
		return errors.New("the function is nil")
	}
	return nil
}

// callFunction calls the test's function. A client that the function has canceled is gone
// afterwards.
func callFunction(x *exchange, f Fault) {
	inTheOpen(func() { f.callback(x.entry()) })
	sleep(x.r.Context(), 1) // in a bubble, this ends only after a canceled client has stopped
}

func checkRate(f Fault) error {
	if f.form.BytesPerSecond < 1 {
		return mistake.At("bytes_per_second", "%d is not at least 1", f.form.BytesPerSecond)
	}
	return nil
}

func slowDown(x *exchange, f Fault) {
	x.r.Body = &slowBody{x.r.Body, x.r.Context(), f.form.BytesPerSecond}
}

func checkShownStatus(f Fault) error {
	if f.form.MeetingStatus == "" {
		return mistake.At("meeting_status", "missing")
	}
	return nil
}

var statusField = regexp.MustCompile(`"status":"[a-z_]*"`)

func showStatus(x *exchange, f Fault) {
	shown := f.form.MeetingStatus
	x.response.MeetingStatus = shown
	// The status in a list of members, say, is not that of a meeting.
	if x.response.Status < http.StatusBadRequest && slices.Contains(showStatuses, x.Operation) {
		field := strconv.AppendQuote([]byte(`"status":`), string(shown))
		x.response.Body = statusField.ReplaceAllLiteral(x.response.Body, field)
	}
}

func checkBytes(f Fault) error {
	switch {
	case f.form.Bytes == nil:
		return mistake.At("bytes", "missing")
	case *f.form.Bytes < 0:
		return mistake.At("bytes", "%d is negative", *f.form.Bytes)
	}
	return nil
}

func truncate(x *exchange, f Fault) {
	if len(x.response.Body) == 0 {
		x.cut() // there is no body to shorten
		return
	}
	x.truncateAt = f.form.Bytes
}

func checkDrip(f Fault) error {
	if f.form.Over == 0 {
		return mistake.At("over", "a duration over 0 expected")
	}
	return nil
}

func drip(x *exchange, f Fault) { x.over = time.Duration(f.form.Over) }

func cut(x *exchange, _ Fault) { x.cut() }

func cutUpload(x *exchange, f Fault) {
	if !f.form.AfterEffect {
		x.response.Bytes, _ = io.CopyN(io.Discard, x.r.Body, *f.form.Bytes)
	}
	x.cut()
}

// keepPart makes storage take the first bytes of a recording for the whole.
func keepPart(x *exchange, f Fault) {
	part := *x.r
	part.Body = io.NopCloser(io.LimitReader(x.r.Body, *f.form.Bytes))
	part.ContentLength = min(x.r.ContentLength, *f.form.Bytes)
	x.r = &part
}

func checkLag(f Fault) error {
	if f.form.Lag < 0 {
		return mistake.At("lag", "%s is negative", time.Duration(f.form.Lag))
	}
	return nil
}

// lookBack makes a read show the past.
func lookBack(x *exchange, f Fault) {
	x.asOf = f.since
	if f.form.Lag > 0 {
		x.asOf = x.At.Add(-time.Duration(f.form.Lag))
	}
}

func rateLimit(x *exchange, f Fault) {
	x.respond(f, http.StatusTooManyRequests, "text/plain; charset=utf-8", []byte("Too many requests\n"))
}

// checkAPICode rejects codes that the API does not have, and helps with the one that only package
// minutes has.
func checkAPICode(f Fault) error {
	switch code := minutes.ErrorCode(f.form.Code); {
	case code == minutes.ErrRateLimited:
		limit := mistake.Name{JSON: string(kindRateLimit), Go: "RateLimit"} // kinds refers to this function
		return mistake.At("code", "the API's 429 has no code, so there is no %q; use %s", string(code), limit)
	case engine.StatusOf(code) == 0:
		other := mistake.Name{JSON: string(kindRespond), Go: "Respond"}
		return mistake.At("code", "the API has no code %q; there are %s; for any other response there is %s",
			string(code), engine.Codes(), other)
	}
	return nil
}

func refuse(x *exchange, f Fault) {
	code := minutes.ErrorCode(f.form.Code)
	body := engine.ErrorJSON(code, f.message(), x.faultID(), nil)
	x.respond(f, engine.StatusOf(code), engine.JSON, body)
	x.response.Code = f.form.Code
	x.response.RequestID = x.faultID()
}

func checkStorageError(f Fault) error {
	err := f.checkStatusFrom(http.StatusMultipleChoices)
	if err != nil {
		return err
	}
	if f.form.Code == "" {
		return mistake.At("code", "missing")
	}
	return nil
}

func refuseUpload(x *exchange, f Fault) {
	x.respond(f, f.form.Status, engine.XML, engine.ErrorXML(f.form.Code, f.message(), x.faultID()))
	x.response.Code = f.form.Code
	x.response.RequestID = x.faultID()
}

func (f Fault) message() string { return cmp.Or(f.form.Message, "This error was injected.") }

// checkResponse rejects what cannot be sent.
func checkResponse(f Fault) error {
	err := f.checkStatusFrom(http.StatusOK)
	hasNone := f.form.Status == http.StatusNoContent || f.form.Status == http.StatusNotModified
	if err == nil && hasNone && f.form.Body != "" {
		return mistake.At("body", "a response with status %d has none", f.form.Status)
	}
	return err
}

func (f Fault) checkStatusFrom(lowest int) error {
	const highest = 999 // some gateways have statuses of their own
	switch {
	case f.form.Status == 0:
		return mistake.At("status", "missing; give one from %d to %d", lowest, highest)
	case f.form.Status < lowest || f.form.Status > highest:
		return mistake.At("status", "%d is not from %d to %d", f.form.Status, lowest, highest)
	}
	return nil
}

// respond sends a response that the test made up. The journal and the audit read its JSON to learn
// what they know of other responses from the engine.
func respond(x *exchange, f Fault) {
	x.respond(f, f.form.Status, f.form.ContentType, []byte(f.form.Body))
	var made struct {
		Status minutes.Status `json:"status"`
		Error  struct {
			Code      string `json:"code"`
			RequestID string `json:"request_id"`
		} `json:"error"`
	}
	if x.Operation == minutes.OpUpload || json.Unmarshal([]byte(f.form.Body), &made) != nil {
		return
	}
	x.response.MeetingStatus = made.Status
	if f.form.Status >= http.StatusBadRequest {
		x.response.Code = made.Error.Code
		x.response.RequestID = made.Error.RequestID
	}
}

func badCertificate(string) error {
	return &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
}

func connectionRefused(host string) error {
	refused := os.NewSyscallError("connect", errRefused)
	return &net.OpError{Op: "dial", Net: "tcp", Addr: pipeAddr(host), Err: refused}
}

func noSuchHost(host string) error {
	unknown := &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	return &net.OpError{Op: "dial", Net: "tcp", Err: unknown}
}
