package minutestest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// entry is a request while the Server handles it. Its Request is what the journal keeps.
type entry struct {
	Request
	key    string    // as sent, known or not
	sender uint64    // the in-memory client of its own that sent it; 0: another
	at     time.Time // of arrival, by the clock of the client
	body   []byte    // of a change, but not of an upload

	// Of the meeting in its path, of the one to create, or asked for in a list.
	externalID, title string

	found    minutes.Status // the meeting's status, as the request found it
	rejected bool           // by the service itself, or cut short: it had no effect
}

// arrived returns what r says. It reads the body of a change, and leaves it to be read again. The
// bodies of the API are so short that a client does not notice when they are taken.
func (s *Server) arrived(r *http.Request) *entry {
	op, meetingID := engine.Identify(r)
	e := &entry{key: engine.KeyOf(r), sender: senderOf(r), at: time.Now()}
	e.Request = Request{
		At: e.at.Add(s.engine.Ahead()), Operation: minutes.Operation(op), MeetingID: meetingID,
		Method: r.Method, Host: r.Host, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(),
	}
	if row, ok := route.Of(op); ok && row.Method != http.MethodGet && row.Method != http.MethodDelete && r.Body != nil {
		e.readBody(r)
	}
	switch op {
	case route.MeetingsList:
		e.externalID = e.Query.Get("external_id")
	case route.MeetingsCreate:
		var names struct {
			ExternalID string `json:"external_id"`
			Title      string `json:"title"`
		}
		_ = json.Unmarshal(e.body, &names)
		e.externalID, e.title = names.ExternalID, names.Title
	}
	e.mask(e.key)
	return e
}

// readBody reads the body of r, or the beginning of one that is too long for the service.
func (e *entry) readBody(r *http.Request) {
	var err error
	body := r.Body
	e.body, err = io.ReadAll(io.LimitReader(body, engine.MaxBodyBytes))
	e.Body, e.rejected = string(e.body), err != nil
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(e.body), body), body}
}

// serve handles one request, and records it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	seq := s.journal.arrived.Add(1)
	e := s.arrived(r)
	e.Seq = int(seq)
	var p *recorded
	if s.edge.rejects(e) {
		p = s.apply(r, e, RateLimit("1"))
		e.Fault = edgeFault
	} else if fault, ok := s.take(e, false); ok {
		p = s.apply(r, e, fault)
	} else {
		p = s.handle(r, e)
	}
	if p == nil {
		s.note(r, e)
		reset(w)
		return
	}
	last, lost := p.send(w, r)
	e.Lost = e.Lost || lost
	s.note(r, e)
	_, _ = w.Write(last)
}

// note takes what became of a request to audit, journal and log.
func (s *Server) note(r *http.Request, e *entry) {
	e.Took = time.Since(e.at)
	e.Lost = e.Lost || r.Context().Err() != nil
	s.audit.watch(e)
	s.journal.put(e.Request)
	if s.log != nil {
		inTheOpen(func() { s.log(e.Request) })
	}
}

// inTheOpen calls f, a function that the test gave to a method or an option, in the goroutine of a
// request. There net/http would hide a panic, so inTheOpen crashes the program. A t.Fatal in f ends
// the goroutine, and fails the test itself.
func inTheOpen(f func()) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			go panic(fmt.Sprintf("minutestest: a function of the test panicked: %v\n\n%s", v, stack))
		}
	}()
	f()
}

// handle returns the service's own response.
func (s *Server) handle(r *http.Request, e *entry) *recorded {
	p := &recorded{ResponseRecorder: httptest.NewRecorder()}
	x := s.engine.Serve(p, r)
	e.Status, e.Code, e.RequestID, e.Caller, e.MeetingID, e.Bytes = x.Status, x.Code, x.RequestID, x.Caller, x.MeetingID, x.Bytes
	e.found, e.rejected = x.MeetingStatus, x.Status >= 400 && x.Status < 500
	return p
}

// apply returns the response to r under the fault f, and records it in e. Without a response, the
// connection is to be reset.
func (s *Server) apply(r *http.Request, e *entry, f Fault) (p *recorded) {
	form := f.form
	e.Fault = f.String()
	if form.AfterEffect {
		p = s.handle(r, e)
	}
	stayed := form.Delay <= 0 || pause(r.Context(), time.Duration(form.Delay))
	if stayed && form.Kind == kindCall {
		inTheOpen(func() { f.call(e.Request) })
		stayed = pause(r.Context(), 1) // in a bubble, this ends only after a canceled client has stopped
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
	// The client does not see the response that the engine may have made.
	e.Status, e.Code, e.RequestID = 0, "", ""
	if stayed && form.Kind == kindResetUpload {
		e.Bytes, _ = io.CopyN(io.Discard, r.Body, form.Bytes)
	}
	if !stayed || f.is(cuts) {
		e.Lost = stayed || form.AfterEffect
		return nil
	}
	p = f.response(e)
	e.Status = p.Code
	return p
}

// change changes the service's own response.
func (f Fault) change(p *recorded, r *http.Request, e *entry) *recorded {
	switch f.form.Kind {
	case kindShowStatus:
		p.showStatus(f.form.MeetingStatus)
		e.found = f.form.MeetingStatus
	case kindDrip:
		p.over = time.Duration(f.form.Over)
	case kindTruncate:
		if p.truncated, p.bytes = true, f.form.Bytes; p.Body.Len() == 0 || r.Method == http.MethodHead {
			e.Status, e.Lost = 0, true
			return nil // there is no body to cut
		}
	}
	return p
}

// response makes the response of the kinds that replace the service's.
func (f Fault) response(e *entry) *recorded {
	form := f.form
	message, requestID := cmp.Or(form.Message, "This error was injected."), fmt.Sprintf("req_fault%d", e.Seq)
	var p *recorded
	switch form.Kind {
	case kindRateLimit:
		p = newResponse(http.StatusTooManyRequests, "text/plain; charset=utf-8", "Too many requests\n")
	case kindRefuse:
		e.Code, e.RequestID = form.Code, requestID
		body, _ := json.Marshal(envelope{Error: envelopeError{form.Code, message, requestID}})
		p = newResponse(statusOf(minutes.ErrorCode(form.Code)), "application/json; charset=utf-8", string(body))
	case kindRefuseUpload:
		e.Code, e.RequestID = form.Code, requestID
		body, _ := xml.Marshal(struct {
			XMLName   xml.Name `xml:"Error"`
			Code      string
			Message   string
			RequestID string `xml:"RequestId"`
		}{Code: form.Code, Message: message, RequestID: requestID})
		p = newResponse(form.Status, "application/xml", xml.Header+string(body))
	default:
		var sent envelope
		if e.Operation != minutes.OpUpload && form.Status >= 400 && json.Unmarshal([]byte(form.Body), &sent) == nil {
			e.Code, e.RequestID = sent.Error.Code, sent.Error.RequestID
		}
		p = newResponse(form.Status, form.ContentType, form.Body)
	}
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
