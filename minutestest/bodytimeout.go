package minutestest

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyTimeout is how long no byte of a request's body may arrive. A client that
// gives up sooner sees its own time-out.
const bodyTimeout = 5 * time.Minute

// patientBody is a request's body that is waited for, but not for ever.
type patientBody struct {
	io.ReadCloser
	conn *http.ResponseController
}

// newPatientBody sets the first time-out at once: net/http itself reads what a
// handler leaves unread.
func newPatientBody(w http.ResponseWriter, body io.ReadCloser) *patientBody {
	b := &patientBody{body, http.NewResponseController(w)}
	b.expectBy(time.Now().Add(bodyTimeout))
	return b
}

func (b *patientBody) Read(p []byte) (int, error) {
	b.expectBy(time.Now().Add(bodyTimeout))
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		// From now on net/http waits for the client to go, which has no limit.
		b.expectBy(time.Time{})
	}
	return n, err
}

// expectBy sets the time-out of reads, if the connection has one.
func (b *patientBody) expectBy(t time.Time) { _ = b.conn.SetReadDeadline(t) }
