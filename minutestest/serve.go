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
	"runtime/debug"
	"strconv"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
)

// exchange is a request and its response while the Server handles them. Its Request is what the
// journal keeps; entry adds what became of it.
type exchange struct {
	Request
	r *http.Request
	// key is the API key as sent, known or not.
	key string
	// sender is the in-memory client of its own that sent the request; 0: another.
	sender uint64
	// arrivedAt is the time of arrival by the clock of the client.
	arrivedAt time.Time
	// asOf is the time of which a read shows meetings; zero: the present.
	asOf time.Time
	// body is what the request brought, unless that is a recording.
	body []byte
	// names are in the body of a create, or those of the meeting in the path.
	names names

	// response is the service's own, unless a fault has changed or replaced it. It has no
	// MeetingStatus if the client was not shown one.
	response engine.Response
	// rejected is whether the service rejected the request, or got half of it: it had no effect.
	rejected bool
	// isCut is whether the connection is reset instead of a response.
	isCut bool
	// truncateAt is after how many bytes of the body the connection ends; nil: it does not.
	truncateAt *int64
	// over is how long the body takes, in pieces; 0: it is sent at once.
	over time.Duration
}

// names are what people call the object that a request is about.
type names struct {
	ExternalID string `json:"external_id"`
	Title      string `json:"title"`
	Email      string `json:"email"`
}

// arrived returns what r says. It reads the body, unless that is a recording, and leaves it to be
// read again. The bodies of the API are so short that a client does not notice when they are read.
func (s *Server) arrived(r *http.Request) *exchange {
	op, meetingID := engine.Identify(r)
	now := time.Now()
	x := &exchange{r: r, key: engine.KeyOf(r), sender: senderOf(r), arrivedAt: now}
	x.Request = Request{
		At:        now.Add(s.engine.Ahead()),
		Operation: op,
		MeetingID: meetingID,
		Method:    r.Method,
		Host:      r.Host,
		Path:      r.URL.Path,
		Query:     r.URL.Query(),
		Header:    r.Header.Clone(),
	}
	if op != minutes.OpUpload && r.Body != nil {
		x.readBody()
	}
	switch op {
	case minutes.OpMeetingsList:
		x.names.ExternalID = x.Query.Get("external_id")
	case minutes.OpMeetingsCreate, minutes.OpMembersCreate:
		_ = json.Unmarshal(x.body, &x.names)
	}
	mask(&x.Request, x.key)
	return x
}

// readBody reads the body of the request, or the beginning of one that is too long for the service.
func (x *exchange) readBody() {
	body := x.r.Body
	read, err := io.ReadAll(io.LimitReader(body, engine.MaxBodyBytes))
	x.body = read
	x.Body = string(read)
	x.rejected = err != nil
	x.r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), body), body}
}

// serve handles one request: a fault takes place, or the service responds.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	seq := int(s.arrivals.Add(1))
	x := s.arrived(r)
	x.Seq = seq
	if s.edge.rejects(x) {
		s.apply(x, RateLimit("1"))
		x.Fault = "edge limit"
	} else if fault, ok := s.claim(x, false); ok {
		s.apply(x, fault)
	} else {
		s.handle(x)
	}
	if x.isCut {
		s.conclude(x)
		reset(w)
		return
	}
	last := x.send(w)
	s.conclude(x)
	// The last byte comes after the journal and the audit: a client that has the whole response
	// finds its request there.
	_, _ = w.Write(last)
}

// handle makes the service's own response.
func (s *Server) handle(x *exchange) {
	x.response = s.engine.ServeAsOf(x.r, x.asOf)
	x.rejected = x.response.Status >= 400 && x.response.Status < 500
}

// apply lets a fault take place: after the effect of the request, before it, or instead of it.
func (s *Server) apply(x *exchange, f Fault) {
	kind := f.kind()
	x.Fault = f.String()
	if f.form.AfterEffect {
		if kind.keep != nil {
			kind.keep(x, f)
		}
		s.handle(x)
	}
	sleep(x.r.Context(), time.Duration(f.form.Delay))
	if x.clientIsThere() && kind.act != nil {
		kind.act(x, f)
	}
	switch {
	case !x.clientIsThere():
		x.cut()
	case kind.replace != nil:
		kind.replace(x, f)
	default:
		if !f.form.AfterEffect {
			s.handle(x)
		}
		if kind.change != nil {
			kind.change(x, f)
		}
	}
}

// clientIsThere reports whether the client still waits for the response.
func (x *exchange) clientIsThere() bool { return x.r.Context().Err() == nil }

// cut resets the connection instead of sending the response.
func (x *exchange) cut() {
	x.isCut = true
	x.Lost = true
}

// respond replaces the engine's response and its details, which the client does not see.
func (x *exchange) respond(f Fault, status int, contentType string, body []byte) {
	x.response.Status = status
	x.response.Body = body
	x.response.Code = ""
	x.response.RequestID = ""
	x.response.MeetingStatus = ""
	header := http.Header{"Content-Type": nil} // or net/http would guess one
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	if f.form.RetryAfter != "" {
		header.Set("Retry-After", f.form.RetryAfter)
	}
	for name, value := range f.form.Header {
		header.Set(name, value)
	}
	x.response.Header = header
}

// faultID is the request id of a response that a fault made.
func (x *exchange) faultID() string { return fmt.Sprintf("req_fault%d", x.Seq) }

// entry returns the request with its outcome so far.
func (x *exchange) entry() Request {
	entry := x.Request
	entry.MeetingID = hide(cmp.Or(x.response.MeetingID, x.MeetingID), x.key)
	entry.Caller = x.response.Caller
	entry.Bytes = x.response.Bytes
	if !x.isCut {
		entry.Status = x.response.Status
		entry.Code = x.response.Code
		entry.RequestID = x.response.RequestID
	}
	return entry
}

// conclude reports the outcome of a request to the audit, the journal and the log.
func (s *Server) conclude(x *exchange) {
	x.Request = x.entry()
	x.Took = time.Since(x.arrivedAt)
	x.Lost = x.Lost || !x.clientIsThere()
	s.audit.check(x)
	s.journal.Add(x.Request)
	if s.log != nil {
		inTheOpen(func() { s.log(x.Request) })
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

// send sends the response except its last byte, which it returns. It sets Lost if the client does
// not get all of it.
func (x *exchange) send(w http.ResponseWriter) (last []byte) {
	maps.Copy(w.Header(), x.response.Header)
	body := x.response.Body
	if n := len(body); n > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(n))
		last = body[n-1:]
		body = body[:n-1]
	}
	w.WriteHeader(x.response.Status)
	if x.truncateAt != nil { // net/http closes the connection, because less is written than was declared
		_, _ = w.Write(body[:min(*x.truncateAt, int64(len(body)))])
		x.Lost = true
		return nil
	}
	if x.over > 0 {
		x.Lost = !x.sendSlowly(w, body)
	} else if _, err := w.Write(body); err != nil && len(body) > 0 {
		x.Lost = true
	}
	if x.Lost {
		return nil
	}
	return last
}

// sendSlowly sends the body in ten pieces, and reports whether the client stayed to the end.
func (x *exchange) sendSlowly(w http.ResponseWriter, body []byte) bool {
	const pieces = 10
	for i := range pieces {
		_ = http.NewResponseController(w).Flush()
		if !sleep(x.r.Context(), x.over/pieces) {
			return false
		}
		piece := body[len(body)*i/pieces : len(body)*(i+1)/pieces]
		if _, err := w.Write(piece); err != nil && len(piece) > 0 {
			return false
		}
	}
	return true
}

// slowBody is a body that is read slowly.
type slowBody struct {
	io.ReadCloser
	ctx            context.Context
	bytesPerSecond int64
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.bytesPerSecond)]) // a second's worth
	if !sleep(b.ctx, timeFor(int64(n), b.bytesPerSecond)) {
		return n, b.ctx.Err()
	}
	return n, err
}

// sleep waits for d, and reports whether the client is still there.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
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
