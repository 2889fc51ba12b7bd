package minutestest

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// JSON bodies of more than smallBody bytes, or of unknown length, are held in
// memory until they have arrived, which a client can delay for minutes. So only
// a few arrive at a time; clients of further ones get a 503.
const (
	smallBody     = 16 << 10
	maxLongBodies = 32
)

// bodySlots counts the long bodies that are arriving.
type bodySlots struct{ taken atomic.Int32 }

// acquire reports whether r may send its body. It may if release is not nil.
func (b *bodySlots) acquire(r *http.Request) (release func()) {
	long := r.ContentLength > smallBody || r.ContentLength < 0
	if !long || strings.HasPrefix(r.URL.Path, "/storage/") {
		return func() {}
	}
	if b.taken.Add(1) > maxLongBodies {
		b.taken.Add(-1)
		return nil
	}
	return func() { b.taken.Add(-1) }
}

// busy rejects a request whose body cannot be accepted now.
func busy(w http.ResponseWriter, r *http.Request, e *entry) {
	e.Operation, e.MeetingID = engine.Identify(r)
	e.KeySecret, e.fault = bearer(r), "too many long bodies at a time"
	e.Status, e.rejected = http.StatusServiceUnavailable, true
	w.Header().Set("Connection", "close")
	response := newResponse(e.Status, "text/plain; charset=utf-8", []byte("Too many long bodies at a time\n"))
	response.whole(w, RateLimit("1"))
}
