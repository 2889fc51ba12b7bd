package minutestest

import (
	"bytes"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// heldResponse is a response that is held back.
type heldResponse struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func newResponse(status int, contentType string, body []byte) *heldResponse {
	r := &heldResponse{status: status}
	if contentType != "" {
		r.Header().Set("Content-Type", contentType)
	} else {
		r.Header()["Content-Type"] = nil // or net/http would guess one
	}
	_, _ = r.Write(body)
	return r
}

func (r *heldResponse) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

func (r *heldResponse) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
}

func (r *heldResponse) Write(p []byte) (int, error) { return r.body.Write(p) }

func (r *heldResponse) statusCode() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// begin sends the header, with the length of the whole body.
func (r *heldResponse) begin(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	if status := r.statusCode(); status != http.StatusNoContent && status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(r.body.Len()))
	}
	w.WriteHeader(r.statusCode())
}

// whole sends the response, with the headers of f.
func (r *heldResponse) whole(w http.ResponseWriter, f Fault) {
	if f.form.RetryAfter != "" {
		r.Header().Set("Retry-After", f.form.RetryAfter)
	}
	for name, value := range f.form.Header {
		r.Header().Set(name, value)
	}
	r.begin(w)
	_, _ = r.body.WriteTo(w)
}

// truncated sends n bytes of the body at most, and never all of them, and
// reports whether there was a body to cut.
func (r *heldResponse) truncated(w http.ResponseWriter, req *http.Request, n int64) bool {
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
func (r *heldResponse) dripped(w http.ResponseWriter, req *http.Request, d time.Duration) bool {
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

var statusField = regexp.MustCompile(`"status":"[a-z_]*"`)

// showStatus has each meeting in the response appear in another status.
func (r *heldResponse) showStatus(status minutes.Status) {
	if r.statusCode() >= http.StatusBadRequest {
		return
	}
	shown := statusField.ReplaceAllLiteral(r.body.Bytes(), strconv.AppendQuote([]byte(`"status":`), string(status)))
	r.body = *bytes.NewBuffer(shown)
}
