package minutestest

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// handle returns the service's own response.
func (s *Server) handle(r *http.Request, e *entry) *recorded {
	p := &recorded{ResponseRecorder: httptest.NewRecorder()}
	e.Exchange = s.engine.Serve(p, r)
	e.rejected = e.Status >= 400 && e.Status < 500
	return p
}

// apply returns the response to r under the fault f, and records it in e. Without a response, the
// connection is to be reset.
func (s *Server) apply(r *http.Request, e *entry, f Fault) (p *recorded) {
	form := f.form
	e.fault = f.String()
	if form.AfterEffect {
		p = s.handle(r, e)
	}
	stayed := form.Delay <= 0 || pause(r.Context(), time.Duration(form.Delay)) && !s.isPast(e)
	if stayed && form.Kind == kindCall {
		stayed = s.callback(f, r, *e)
	}
	if stayed && f.is(keeps) {
		if form.Kind == kindSlowUpload {
			r.Body = &slowBody{r.Body, r.Context(), form.BytesPerSecond}
		}
		if p == nil {
			p = s.handle(r, e)
		}
		return f.change(p, r, e)
	}
	if p == nil {
		s.withoutEffect(r, e)
	}
	// The client does not see the response that the engine may have made.
	e.Status, e.Code, e.RequestID = 0, "", ""
	if stayed && form.Kind == kindResetUpload {
		e.StorageBytes, _ = io.CopyN(io.Discard, r.Body, form.Bytes)
	}
	if cut := form.Kind == kindReset || form.Kind == kindResetUpload; cut || !stayed {
		e.lost = stayed || form.AfterEffect
		return nil
	}
	return f.response(e)
}

// change changes the service's own response.
func (f Fault) change(p *recorded, r *http.Request, e *entry) *recorded {
	switch f.form.Kind {
	case kindShowStatus:
		p.showStatus(f.form.MeetingStatus)
		e.MeetingStatus = f.form.MeetingStatus
	case kindDrip:
		p.over = time.Duration(f.form.Over)
	case kindTruncate:
		if p.truncated, p.bytes = true, f.form.Bytes; p.Body.Len() == 0 || r.Method == http.MethodHead {
			e.Status, e.lost = 0, true
			return nil // there is no body to cut
		}
	}
	return p
}

// callback calls f's function, and reports whether the client is still there. In a bubble, the
// shortest sleep ends only after a canceled client has stopped.
func (s *Server) callback(f Fault, r *http.Request, seen entry) (stayed bool) {
	if !f.form.AfterEffect {
		seen.Operation, seen.MeetingID = engine.Identify(r)
		seen.KeySecret = bearer(r)
	}
	s.hook("Call", func() { f.call(seen.request()) })
	return pause(r.Context(), 1)
}

// withoutEffect fills e for a request that is not handled.
func (s *Server) withoutEffect(r *http.Request, e *entry) {
	e.Operation, e.MeetingID = engine.Identify(r)
	if e.Operation == engine.StoragePut {
		e.StorageAuthorization = r.Header.Get("Authorization") != ""
		return
	}
	e.KeySecret = bearer(r)
	if row, ok := route.Of(e.Operation); !ok || row.Method == http.MethodGet {
		return
	}
	// A repeat is known by its body. Bodies of the API are so short that a client does not notice
	// when they are taken.
	var err error
	e.Body, err = io.ReadAll(io.LimitReader(r.Body, engine.MaxBodyBytes))
	e.rejected = err != nil
	if e.Operation == route.MeetingsCreate {
		e.ExternalID = namesIn(e.Body).ExternalID
	}
}

// response makes the response of the kinds that replace the service's.
func (f Fault) response(e *entry) *recorded {
	form := f.form
	message, requestID := cmp.Or(form.Message, "This error was injected."), fmt.Sprintf("req_fault%d", e.seq)
	var p *recorded
	switch form.Kind {
	case kindRateLimit:
		p = newResponse(http.StatusTooManyRequests, "text/plain; charset=utf-8", "Too many requests\n")
	case kindRefuse:
		e.Code, e.RequestID = minutes.ErrorCode(form.Code), requestID
		body, _ := json.Marshal(envelope{Error: envelopeError{form.Code, message, requestID}})
		p = newResponse(statusOf(e.Code), "application/json; charset=utf-8", string(body))
	case kindRefuseUpload:
		e.StorageCode, e.RequestID = form.Code, requestID
		body, _ := xml.Marshal(struct {
			XMLName   xml.Name `xml:"Error"`
			Code      string
			Message   string
			RequestID string `xml:"RequestId"`
		}{Code: form.Code, Message: message, RequestID: requestID})
		p = newResponse(form.Status, "application/xml", xml.Header+string(body))
	default:
		var sent envelope
		if e.Operation != engine.StoragePut && form.Status >= 400 && json.Unmarshal([]byte(form.Body), &sent) == nil {
			e.Code, e.RequestID = minutes.ErrorCode(sent.Error.Code), sent.Error.RequestID
		}
		p = newResponse(form.Status, form.ContentType, form.Body)
	}
	e.Status = p.Code
	if form.RetryAfter != "" {
		p.Header().Set("Retry-After", form.RetryAfter)
	}
	for name, value := range form.Header {
		p.Header().Set(name, value)
	}
	return p
}

// envelope is the body of an error response of the API.
type envelope struct {
	Error envelopeError `json:"error"`
}

type envelopeError struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

// slowBody is a body that is read slowly.
type slowBody struct {
	io.ReadCloser
	ctx            context.Context
	bytesPerSecond int64
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.bytesPerSecond)]) // a second's worth
	if !pause(b.ctx, timeFor(int64(n), b.bytesPerSecond)) {
		return n, b.ctx.Err()
	}
	return n, err
}
