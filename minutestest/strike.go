package minutestest

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// strike answers r as f says, and writes into e what became of it. With cut,
// the connection is yet to be reset.
func (s *Server) strike(w http.ResponseWriter, r *http.Request, e *entry, f Fault) (cut bool) {
	form := f.form
	e.fault = f.String()
	var handled reply
	if form.AfterEffect {
		s.handle(&handled, r, e)
	}
	stayed := form.Delay <= 0 || pause(r.Context(), time.Duration(form.Delay))
	switch {
	case stayed && form.Kind == kindDelay && form.AfterEffect:
		handled.whole(w, "")
		return false
	case stayed && form.Kind == kindDelay:
		s.handle(w, r, e)
		return false
	case !form.AfterEffect:
		s.withoutEffect(r, e)
	}
	// What the engine may have answered, the client does not see.
	e.Status, e.Code, e.RequestID = 0, "", ""
	if !stayed {
		e.lost = form.AfterEffect
		return true
	}

	switch form.Kind {
	case kindReset:
		e.lost = true
		return true
	case kindResetUpload:
		e.StorageBytes, _ = io.CopyN(io.Discard, r.Body, form.Bytes)
		e.lost = true
		return true
	case kindTruncate:
		e.lost = true
		if !handled.truncated(w, r, form.Bytes) {
			return true
		}
		e.Status = handled.statusCode()
	case kindDrip:
		e.Status = handled.statusCode()
		e.lost = !handled.dripped(w, r, time.Duration(form.Over))
	default:
		answer := f.reply(e)
		e.Status = answer.status
		answer.whole(w, form.RetryAfter)
	}
	return false
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
	// What a client repeats is told by its body. Bodies of the API are so
	// short that a client does not notice when they are taken.
	var err error
	e.Body, err = io.ReadAll(io.LimitReader(r.Body, engine.MaxBodyBytes))
	e.refused = err != nil
	if e.Operation == route.MeetingsCreate {
		var body struct {
			ExternalID string `json:"external_id"`
		}
		_ = json.Unmarshal(e.Body, &body)
		e.ExternalID = body.ExternalID
	}
}

// reply makes the answer of the kinds that have one of their own.
func (f Fault) reply(e *entry) *reply {
	form := f.form
	switch form.Kind {
	case kindRateLimit:
		return newReply(http.StatusTooManyRequests, "text/plain; charset=utf-8", []byte("Too many requests\n"))
	case kindRefuse:
		e.Code = minutes.Code(form.Code)
		e.RequestID = fmt.Sprintf("req_fault%d", e.seq)
		var envelope struct {
			Error struct {
				Code      string `json:"code"`
				Message   string `json:"message"`
				RequestID string `json:"request_id"`
			} `json:"error"`
		}
		envelope.Error.Code = form.Code
		envelope.Error.Message = "This refusal was injected."
		envelope.Error.RequestID = e.RequestID
		body, _ := json.Marshal(envelope)
		return newReply(statusOf(e.Code), "application/json; charset=utf-8", body)
	case kindRefuseUpload:
		e.StorageCode = form.Code
		e.RequestID = fmt.Sprintf("req_fault%d", e.seq)
		body, _ := xml.Marshal(struct {
			XMLName   xml.Name `xml:"Error"`
			Code      string
			Message   string
			RequestID string `xml:"RequestId"`
		}{Code: form.Code, Message: "This refusal was injected.", RequestID: e.RequestID})
		return newReply(form.Status, "application/xml", append([]byte(xml.Header), body...))
	}
	return newReply(form.Status, form.ContentType, []byte(form.Body))
}

// pause waits for d, and reports whether the client is still there.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reset cuts the connection that w answers on.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = wrapped.NetConn()
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

// reply is a response that is held back.
type reply struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func newReply(status int, contentType string, body []byte) *reply {
	r := &reply{status: status}
	if contentType != "" {
		r.Header().Set("Content-Type", contentType)
	} else {
		r.Header()["Content-Type"] = nil // or net/http would guess one
	}
	_, _ = r.Write(body)
	return r
}

func (r *reply) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

func (r *reply) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
}

func (r *reply) Write(p []byte) (int, error) { return r.body.Write(p) }

func (r *reply) statusCode() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// begin sends the header, with the length of the whole body.
func (r *reply) begin(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	if status := r.statusCode(); status != http.StatusNoContent && status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(r.body.Len()))
	}
	w.WriteHeader(r.statusCode())
}

func (r *reply) whole(w http.ResponseWriter, retryAfter string) {
	if retryAfter != "" {
		r.Header().Set("Retry-After", retryAfter)
	}
	r.begin(w)
	_, _ = w.Write(r.body.Bytes())
}

// truncated sends n bytes of the body at most, and never all of them, and
// reports whether there was a body to cut.
func (r *reply) truncated(w http.ResponseWriter, req *http.Request, n int64) bool {
	body := r.body.Bytes()
	if len(body) == 0 || req.Method == http.MethodHead {
		return false
	}
	r.begin(w)
	_, _ = w.Write(body[:min(n, int64(len(body)-1))])
	// Having declared more than it has written, the handler has only to return
	// for net/http to close the connection.
	return true
}

// dripped sends the body in ten pieces spread over d, and reports whether the
// client has waited for all of them.
func (r *reply) dripped(w http.ResponseWriter, req *http.Request, d time.Duration) bool {
	const pieces = 10
	r.begin(w)
	body := r.body.Bytes()
	for i := range pieces {
		_ = http.NewResponseController(w).Flush()
		if !pause(req.Context(), d/pieces) {
			return false
		}
		if _, err := w.Write(body[len(body)*i/pieces : len(body)*(i+1)/pieces]); err != nil {
			return false
		}
	}
	return true
}
