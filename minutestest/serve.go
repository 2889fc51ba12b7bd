package minutestest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync"
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
		At: e.at.Add(s.engine.Ahead()), Operation: op, MeetingID: meetingID,
		Method: r.Method, Host: r.Host, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(),
	}
	if row := route.Table.Of(string(op)); row != nil && row.Method != http.MethodGet && row.Method != http.MethodDelete && r.Body != nil {
		e.readBody(r)
	}
	switch op {
	case minutes.OpMeetingsList:
		e.externalID = e.Query.Get("external_id")
	case minutes.OpMeetingsCreate:
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
	seq := s.count.Add(1)
	e := s.arrived(r)
	e.Seq = int(seq)
	var p *recorded
	if s.edge.rejects(e) {
		p = s.apply(r, e, RateLimit("1"))
		e.Fault = "edge limit"
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
	s.journal.Add(e.Request)
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
	p := &recorded{Response: s.engine.Serve(r)}
	e.Status, e.Code, e.RequestID, e.Caller, e.MeetingID, e.Bytes = p.Status, p.Code, p.RequestID, p.Caller, p.MeetingID, p.Bytes
	e.found, e.rejected = p.MeetingStatus, p.Status >= 400 && p.Status < 500
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
		return f.change(p, e)
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
	e.Status = p.Status
	return p
}

var statusField = regexp.MustCompile(`"status":"[a-z_]*"`)

// change changes the service's own response.
func (f Fault) change(p *recorded, e *entry) *recorded {
	switch f.form.Kind {
	case kindShowStatus:
		e.found = f.form.MeetingStatus
		if p.Status < http.StatusBadRequest {
			p.Body = statusField.ReplaceAllLiteral(p.Body, strconv.AppendQuote([]byte(`"status":`), string(e.found)))
		}
	case kindDrip:
		p.over = time.Duration(f.form.Over)
	case kindTruncate:
		if p.truncated, p.bytes = true, f.form.Bytes; len(p.Body) == 0 {
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
		p = newResponse(http.StatusTooManyRequests, "text/plain; charset=utf-8", []byte("Too many requests\n"))
	case kindRefuse:
		e.Code, e.RequestID = form.Code, requestID
		p = newResponse(engine.StatusOf(minutes.ErrorCode(form.Code)), engine.JSON, engine.ErrorJSON(minutes.ErrorCode(form.Code), message, requestID, nil))
	case kindRefuseUpload:
		e.Code, e.RequestID = form.Code, requestID
		p = newResponse(form.Status, engine.XML, engine.ErrorXML(form.Code, message, requestID))
	default:
		var sent struct {
			Error struct {
				Code      string `json:"code"`
				RequestID string `json:"request_id"`
			} `json:"error"`
		}
		if e.Operation != minutes.OpUpload && form.Status >= 400 && json.Unmarshal([]byte(form.Body), &sent) == nil {
			e.Code, e.RequestID = sent.Error.Code, sent.Error.RequestID
		}
		p = newResponse(form.Status, form.ContentType, []byte(form.Body))
	}
	if form.RetryAfter != "" {
		p.Header.Set("Retry-After", form.RetryAfter)
	}
	for name, value := range form.Header {
		p.Header.Set(name, value)
	}
	return p
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

// recorded is a response that has not been sent yet, so a fault can change it.
type recorded struct {
	engine.Response
	truncated bool // after so many bytes of the body
	bytes     int64
	over      time.Duration // of a body that comes in pieces
}

func newResponse(status int, contentType string, body []byte) *recorded {
	p := &recorded{Response: engine.Response{Status: status, Header: http.Header{"Content-Type": nil}, Body: body}}
	if contentType != "" { // or net/http would guess one
		p.Header.Set("Content-Type", contentType)
	}
	return p
}

// send sends p except its last byte, which it returns: a client that has the whole response must
// find its request in the journal and in the audit. lost says that the client does not get it all.
func (p *recorded) send(w http.ResponseWriter, r *http.Request) (last []byte, lost bool) {
	maps.Copy(w.Header(), p.Header)
	body := p.Body
	if len(body) > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body, last = body[:len(body)-1], body[len(body)-1:]
	}
	w.WriteHeader(p.Status)
	if p.truncated { // net/http closes the connection, because less is written than was declared
		_, _ = w.Write(body[:min(p.bytes, int64(len(body)))])
		return nil, true
	}
	pieces := 1
	if p.over > 0 {
		pieces = 10
	}
	for i := range pieces {
		if p.over > 0 {
			_ = http.NewResponseController(w).Flush()
			if !pause(r.Context(), p.over/time.Duration(pieces)) {
				return nil, true
			}
		}
		piece := body[len(body)*i/pieces : len(body)*(i+1)/pieces]
		if _, err := w.Write(piece); err != nil && len(piece) > 0 {
			return nil, true
		}
	}
	return last, false
}

// pause waits for d, and reports whether the client is still there.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// reset cuts the connection of w.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch c := conn.(type) {
	case *serverEnd:
		c.reset()
	case *net.TCPConn:
		_ = c.SetLinger(0)
		_ = c.Close()
	default:
		_ = c.Close()
	}
}

// edge is in front of the service and rejects requests that come too fast. In each second of the
// clock, each key may send as many requests as the limit says; requests without a key share one
// allowance. Storage has no edge.
type edge struct {
	limit int // 0: none

	mu     sync.Mutex
	second int64
	used   map[string]int // in second, by key
}

// rejects reports whether a request is one too many.
func (e *edge) rejects(r *entry) bool {
	if e.limit == 0 || r.Operation == minutes.OpUpload {
		return false
	}
	second := time.Now().Unix()
	e.mu.Lock()
	defer e.mu.Unlock()
	if second != e.second || e.used == nil {
		e.second, e.used = second, make(map[string]int)
	}
	e.used[r.key]++
	return e.used[r.key] > e.limit
}
