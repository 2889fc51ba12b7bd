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
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/audio"
)

// storageError is a refusal of storage, which answers XML in the form of S3.
type storageError struct {
	status  int
	code    string
	message string
}

var (
	denySignature  = &storageError{http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check the URL and the Content-Type."}
	denyExpired    = &storageError{http.StatusForbidden, "AccessDenied", "Request has expired"}
	denyUsed       = &storageError{http.StatusForbidden, "AccessDenied", "The upload URL has been used already"}
	denyMethod     = &storageError{http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource."}
	denyGone       = &storageError{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}
	denyLength     = &storageError{http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header."}
	denyIncomplete = &storageError{http.StatusBadRequest, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header."}
	denyTimeout    = &storageError{http.StatusBadRequest, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period."}
	denyInternal   = &storageError{http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again."}
)

// storage answers a request to storage.
func (w *world) storage(rw http.ResponseWriter, r *http.Request) Exchange {
	x := Exchange{Operation: StoragePut, StorageAuthorization: len(r.Header["Authorization"]) > 0}
	x.Organisation, x.MeetingID = storedIn(r.URL)
	var etag string
	no := func() (no *storageError) {
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
	x.RequestID = newID(requestPrefix)
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

func (d *storageError) xml(requestID string) string {
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
func (w *world) put(r *http.Request, x *Exchange) (etag string, no *storageError) {
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
	now := wallClock()
	if !now.Before(expires) {
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
		j.received = wallClock()
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
func (o *organisation) awaits(x *Exchange, now time.Time, j *job) *storageError {
	o.lock(now)
	defer o.unlock()
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

// keeper keeps the bytes of a recording, if the service was asked to. If those
// of all recordings are too many, it forgets this one's.
type keeper struct {
	world *world
	job   *job
	full  bool
}

func (k *keeper) Write(p []byte) (int, error) {
	if !k.full {
		k.job.bytes = append(k.job.bytes, p...)
		k.full = k.world.kept.Add(int64(len(p))) > k.world.keepAudio
	}
	if k.full {
		k.world.forget(k.job)
	}
	return len(p), nil
}

// forget gives up the bytes kept of a recording.
func (w *world) forget(j *job) {
	w.kept.Add(-int64(len(j.bytes)))
	j.bytes = nil
}

// receive reads a recording in constant memory: it is hashed, measured and
// counted, and kept only if the service was asked to.
func (w *world) receive(r *http.Request, contentType string) (j *job, err error) {
	j = &job{contentType: contentType}
	hash, meter := sha256.New(), new(audio.Meter)
	j.size, err = io.Copy(io.MultiWriter(hash, meter, &keeper{world: w, job: j, full: w.keepAudio == 0}), r.Body)
	if err != nil {
		return j, err
	}
	hash.Sum(j.sha256[:0])
	j.unreadable = !processed(contentType) || !processedSize(j.size)
	if j.unreadable {
		return j, nil
	}
	if d, ok := meter.Duration(); ok {
		j.seconds = int((d + time.Second - 1) / time.Second)
	} else {
		j.seconds = int((j.size + bytesPerSecond - 1) / bytesPerSecond)
	}
	return j, nil
}
