package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/audio"
)

// denial is a refusal of storage, which answers XML in the form of S3.
type denial struct {
	status  int
	code    string
	message string
}

var (
	denySignature  = &denial{http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check the URL and the Content-Type."}
	denyExpired    = &denial{http.StatusForbidden, "AccessDenied", "Request has expired"}
	denyUsed       = &denial{http.StatusForbidden, "AccessDenied", "The upload URL has been used already"}
	denyMethod     = &denial{http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource."}
	denyGone       = &denial{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}
	denyLength     = &denial{http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header."}
	denyIncomplete = &denial{http.StatusBadRequest, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header."}
	denyTimeout    = &denial{http.StatusBadRequest, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period."}
	denyInternal   = &denial{http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again."}
)

// storage answers a request to storage.
func (w *world) storage(rw http.ResponseWriter, r *http.Request) Exchange {
	x := Exchange{Operation: StoragePut, StorageAuthorization: len(r.Header["Authorization"]) > 0}
	x.Organisation, x.MeetingID = storedIn(r.URL)
	var etag string
	no := func() (no *denial) {
		defer func() {
			if fault := recover(); fault != nil {
				if fault == http.ErrAbortHandler {
					panic(fault)
				}
				no = denyInternal
			}
		}()
		etag, no = w.put(r, &x)
		return no
	}()
	h := rw.Header()
	x.RequestID = w.ids.next(requestPrefix)
	h["X-Amz-Request-Id"] = []string{x.RequestID}
	if no == nil {
		x.Status = http.StatusOK
		h["Etag"] = []string{etag}
		h["Content-Length"] = []string{"0"}
		rw.WriteHeader(x.Status)
		return x
	}
	x.Status, x.StorageCode = no.status, no.code
	if no == denyMethod {
		h["Allow"] = []string{http.MethodPut}
	}
	body := no.xml(x.RequestID)
	h["Content-Type"] = []string{"application/xml"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	rw.WriteHeader(no.status)
	if r.Method != http.MethodHead {
		io.WriteString(rw, body)
	}
	return x
}

func (d *denial) xml(requestID string) string {
	var b strings.Builder
	b.WriteString(xml.Header)
	for _, s := range []string{"<Error><Code>", d.code, "</Code><Message>", d.message, "</Message><RequestId>", requestID, "</RequestId><HostId>", storageHost, "</HostId></Error>"} {
		b.WriteString(s)
	}
	return b.String()
}

const storageHost = "minutes-storage"

// put takes a recording. All that can be refused ahead is refused before the
// first byte is asked for, so that a client that expects 100-continue sends
// none in vain.
func (w *world) put(r *http.Request, x *Exchange) (etag string, no *denial) {
	if r.Method != http.MethodPut {
		return "", denyMethod
	}
	var contentType string
	if types := r.Header["Content-Type"]; len(types) == 1 {
		contentType = types[0]
	}
	expires, ok := w.signed(r.URL, contentType)
	if !ok {
		return "", denySignature
	}
	now := instantOf(time.Now())
	if now >= expires {
		return "", denyExpired
	}
	o := w.orgs[x.Organisation]
	if no := o.awaits(x, now, nil); no != nil {
		return "", no
	}
	if r.ContentLength < 0 || r.ContentLength == 0 && r.Header["Content-Length"] == nil {
		return "", denyLength
	}
	j, err := w.receive(r, contentType)
	x.StorageBytes = j.size
	switch { // D22: the meeting is left without audio
	case errors.Is(err, os.ErrDeadlineExceeded):
		no = denyTimeout
	case err != nil || j.size != r.ContentLength:
		no = denyIncomplete
	default:
		j.received = instantOf(time.Now())
		no = o.awaits(x, j.received, j) // another upload may have been first
	}
	if no != nil {
		w.forget(j)
		return "", no
	}
	return `"` + hex.EncodeToString(j.sha256[:16]) + `"`, nil
}

// awaits refuses an upload to a meeting that is gone or has audio. Where j is
// given and nothing is refused, j is the meeting's audio from then on.
func (o *organisation) awaits(x *Exchange, now instant, j *job) *denial {
	o.lock(now)
	defer o.mu.Unlock()
	m := o.meetings[x.MeetingID]
	switch {
	case m == nil:
		return denyGone
	case m.job != nil:
		x.MeetingStatus = m.status
		return denyUsed
	}
	x.MeetingID, x.MeetingStatus, x.ExternalID = m.id, m.status, m.externalID
	if j != nil {
		o.arrive(m, j)
	}
	return nil
}

var copyBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// keep adds to the bytes kept of a recording. Where those of all recordings
// together are too many, it forgets this one's and reports false.
func (w *world) keep(j *job, p []byte) bool {
	j.bytes = append(j.bytes, p...)
	if w.kept.Add(int64(len(p))) <= w.keepAudio {
		return true
	}
	w.forget(j)
	return false
}

// forget gives up the bytes kept of a recording.
func (w *world) forget(j *job) {
	w.kept.Add(-int64(len(j.bytes)))
	j.bytes = nil
}

// receive reads a recording in constant memory: hashed, measured, counted,
// and kept only if the service was asked to.
func (w *world) receive(r *http.Request, contentType string) (*job, error) {
	j, keep := &job{contentType: contentType}, w.keepAudio > 0
	hash, meter := sha256.New(), new(audio.Meter)
	buf := copyBuffers.Get().(*[64 << 10]byte)
	defer copyBuffers.Put(buf)
	for {
		n, err := r.Body.Read(buf[:])
		if n > 0 {
			j.size += int64(n)
			hash.Write(buf[:n])
			_, _ = meter.Write(buf[:n])
			keep = keep && w.keep(j, buf[:n])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return j, err
		}
	}
	hash.Sum(j.sha256[:0])
	j.refused = !processed(contentType) || !processedSize(j.size)
	if j.refused {
		return j, nil
	}
	if d, ok := meter.Duration(); ok {
		j.seconds = int((d + time.Second - 1) / time.Second)
	} else {
		j.seconds = int((j.size + bytesPerSecond - 1) / bytesPerSecond)
	}
	return j, nil
}
