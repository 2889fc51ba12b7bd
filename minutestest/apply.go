package minutestest

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// apply responds to r as f says, and records the result in e. With cut,
// the connection is still to be reset.
func (s *Server) apply(w http.ResponseWriter, r *http.Request, e *entry, f Fault) (cut bool) {
	e.fault = f.String()
	var handled heldResponse
	if f.form.AfterEffect {
		s.handle(&handled, r, e)
	}
	stayed := f.form.Delay <= 0 || pause(r.Context(), time.Duration(f.form.Delay)) && !s.isPast(e)
	if stayed && f.form.Kind == kindCall {
		stayed = s.callback(f, r, *e)
	}
	if stayed && f.handles() {
		s.applyAround(w, r, e, f, &handled)
		return false
	}
	if !f.form.AfterEffect {
		s.withoutEffect(r, e)
	}
	// The client does not see the response that the engine may have made.
	e.Status, e.Code, e.RequestID = 0, "", ""
	if !stayed {
		e.lost = f.form.AfterEffect
		return true
	}
	return f.applyInstead(w, r, e, &handled)
}

// handles reports whether the client gets the service's own response.
func (f Fault) handles() bool {
	switch f.form.Kind {
	case kindDelay, kindCall, kindSlowUpload, kindShowStatus:
		return true
	}
	return false
}

// applyAround lets the service respond, with what f does before or after that.
func (s *Server) applyAround(w http.ResponseWriter, r *http.Request, e *entry, f Fault, handled *heldResponse) {
	switch f.form.Kind {
	case kindSlowUpload:
		r.Body = &slowBody{r.Body, r.Context(), f.form.BytesPerSecond}
	case kindShowStatus:
		handled.showStatus(f.form.MeetingStatus)
		e.MeetingStatus = f.form.MeetingStatus
	}
	if f.form.AfterEffect {
		handled.whole(w, Fault{})
		return
	}
	s.handle(w, r, e)
}

// callback calls f's function, and reports whether the client is still there.
// In a bubble, the shortest sleep ends only after a canceled client has
// stopped.
func (s *Server) callback(f Fault, r *http.Request, seen entry) (stayed bool) {
	if !f.form.AfterEffect {
		seen.Operation, seen.MeetingID = engine.Identify(r)
		seen.KeySecret = bearer(r)
	}
	s.hook("Call", func() { f.call(seen.request()) })
	return pause(r.Context(), 1)
}

// applyInstead responds instead of the service.
func (f Fault) applyInstead(w http.ResponseWriter, r *http.Request, e *entry, handled *heldResponse) (cut bool) {
	switch f.form.Kind {
	case kindReset:
		e.lost = true
		return true
	case kindResetUpload:
		e.StorageBytes, _ = io.CopyN(io.Discard, r.Body, f.form.Bytes)
		e.lost = true
		return true
	case kindTruncate:
		e.lost = true
		if !handled.truncated(w, r, f.form.Bytes) {
			return true
		}
		e.Status = handled.statusCode()
	case kindDrip:
		e.Status = handled.statusCode()
		e.lost = !handled.dripped(w, r, time.Duration(f.form.Over))
	default:
		response := f.response(e)
		e.Status = response.status
		response.whole(w, f)
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
	// A repeat is known by its body. Bodies of the API are so
	// short that a client does not notice when they are taken.
	var err error
	e.Body, err = io.ReadAll(io.LimitReader(r.Body, engine.MaxBodyBytes))
	e.rejected = err != nil
	if e.Operation == route.MeetingsCreate {
		var body struct {
			ExternalID string `json:"external_id"`
		}
		_ = json.Unmarshal(e.Body, &body)
		e.ExternalID = body.ExternalID
	}
}

const injectedMessage = "This error was injected."

// response makes the response of the kinds that replace the service's.
func (f Fault) response(e *entry) *heldResponse {
	form := f.form
	switch form.Kind {
	case kindRateLimit:
		return newResponse(http.StatusTooManyRequests, "text/plain; charset=utf-8", []byte("Too many requests\n"))
	case kindRefuse:
		e.Code = minutes.ErrorCode(form.Code)
		e.RequestID = fmt.Sprintf("req_fault%d", e.seq)
		var envelope errorEnvelope
		envelope.Error.Code = form.Code
		envelope.Error.Message = cmp.Or(form.Message, injectedMessage)
		envelope.Error.RequestID = e.RequestID
		body, _ := json.Marshal(envelope)
		return newResponse(statusOf[e.Code], "application/json; charset=utf-8", body)
	case kindRefuseUpload:
		e.StorageCode = form.Code
		e.RequestID = fmt.Sprintf("req_fault%d", e.seq)
		body, _ := xml.Marshal(struct {
			XMLName   xml.Name `xml:"Error"`
			Code      string
			Message   string
			RequestID string `xml:"RequestId"`
		}{Code: form.Code, Message: cmp.Or(form.Message, injectedMessage), RequestID: e.RequestID})
		return newResponse(form.Status, "application/xml", append([]byte(xml.Header), body...))
	}
	var envelope errorEnvelope
	if e.Operation != engine.StoragePut && form.Status >= 400 && json.Unmarshal([]byte(form.Body), &envelope) == nil {
		e.Code, e.RequestID = minutes.ErrorCode(envelope.Error.Code), envelope.Error.RequestID
	}
	return newResponse(form.Status, form.ContentType, []byte(form.Body))
}

// errorEnvelope is the body of an error response of the API.
type errorEnvelope struct {
	Error struct {
		Code      string `json:"code"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
	} `json:"error"`
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

// reset cuts the connection of w.
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
