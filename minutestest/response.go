package minutestest

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// recorded is a response that has not been sent yet, so a fault can change it.
type recorded struct {
	*httptest.ResponseRecorder
	truncated bool // after so many bytes of the body
	bytes     int64
	over      time.Duration // of a body that comes in pieces
}

func newResponse(status int, contentType, body string) *recorded {
	p := &recorded{ResponseRecorder: httptest.NewRecorder()}
	p.Header()["Content-Type"] = nil // or net/http would guess one
	if contentType != "" {
		p.Header().Set("Content-Type", contentType)
	}
	p.WriteHeader(status)
	_, _ = p.WriteString(body)
	return p
}

// send sends p except its last byte, which it returns: a client that has the whole response must
// find its request in the journal and in the audit. lost says that the client does not get it all.
func (p *recorded) send(w http.ResponseWriter, r *http.Request) (last []byte, lost bool) {
	maps.Copy(w.Header(), p.Header())
	body := p.Body.Bytes()
	if len(body) > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body, last = body[:len(body)-1], body[len(body)-1:]
	}
	w.WriteHeader(p.Code)
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

var statusField = regexp.MustCompile(`"status":"[a-z_]*"`)

// showStatus has each meeting in the response appear in another status.
func (p *recorded) showStatus(status minutes.Status) {
	if p.Code < http.StatusBadRequest {
		shown := statusField.ReplaceAllLiteral(p.Body.Bytes(), strconv.AppendQuote([]byte(`"status":`), string(status)))
		p.Body = bytes.NewBuffer(shown)
	}
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
