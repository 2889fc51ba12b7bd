package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/audio"
)

// storageError is an error response of storage: XML in the form of S3.
type storageError struct {
	status  int
	code    string
	message string
}

var (
	errSignature       = &storageError{http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check the URL and the Content-Type."}
	errURLExpired      = &storageError{http.StatusForbidden, "AccessDenied", "Request has expired"}
	errURLUsed         = &storageError{http.StatusForbidden, "AccessDenied", "The upload URL has been used already"}
	errStorageMethod   = &storageError{http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource."}
	errNoKey           = &storageError{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}
	errNoLength        = &storageError{http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header."}
	errIncomplete      = &storageError{http.StatusBadRequest, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header."}
	errBodyTimeout     = &storageError{http.StatusBadRequest, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period."}
	errStorageInternal = &storageError{http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again."}
)

// storage handles a request to storage.
func (w *world) storage(rw http.ResponseWriter, r *http.Request) Exchange {
	x := Exchange{Operation: StoragePut, StorageAuthorization: len(r.Header["Authorization"]) > 0}
	x.Organisation, x.MeetingID = storedIn(r.URL)
	var etag string
	var err *storageError
	guard(func() { etag, err = w.put(r, &x) }, func() { err = errStorageInternal })
	h := rw.Header()
	x.RequestID = w.ids.next(requestPrefix)
	h.Set("X-Amz-Request-Id", x.RequestID)
	if err == nil {
		x.Status = http.StatusOK
		h.Set("ETag", etag)
		h.Set("Content-Length", "0")
		rw.WriteHeader(x.Status)
		return x
	}
	x.Status, x.StorageCode = err.status, err.code
	if err == errStorageMethod {
		h.Set("Allow", http.MethodPut)
	}
	send(rw, r, err.status, "application/xml", []byte(err.xml(x.RequestID)))
	return x
}

func (e *storageError) xml(requestID string) string {
	return xml.Header + "<Error><Code>" + e.code + "</Code><Message>" + e.message + "</Message>" +
		"<RequestId>" + requestID + "</RequestId><HostId>minutes-storage</HostId></Error>"
}

// put takes a recording. It checks everything that it can before it reads the
// first byte, so that a client that expects 100-continue sends none in vain.
func (w *world) put(r *http.Request, x *Exchange) (etag string, err *storageError) {
	if r.Method != http.MethodPut {
		return "", errStorageMethod
	}
	var contentType string
	if types := r.Header["Content-Type"]; len(types) == 1 {
		contentType = types[0]
	}
	expires, ok := w.signed(r.URL, contentType)
	if !ok {
		return "", errSignature
	}
	now := wallClock()
	if !now.Before(expires) {
		return "", errURLExpired
	}
	o := w.orgs[x.Organisation]
	if err := o.awaits(x, now, nil); err != nil {
		return "", err
	}
	if r.ContentLength < 0 || r.ContentLength == 0 && r.Header["Content-Length"] == nil {
		return "", errNoLength
	}
	j := &job{contentType: contentType}
	defer func() {
		if etag == "" { // the upload failed
			w.forget(j)
		}
	}()
	cut := w.receive(r, j)
	x.StorageBytes = j.size
	switch { // D22: the meeting is left without audio
	case errors.Is(cut, os.ErrDeadlineExceeded):
		err = errBodyTimeout
	case cut != nil || j.size != r.ContentLength:
		err = errIncomplete
	default:
		j.received = wallClock()
		err = o.awaits(x, j.received, j) // another upload may have been first
	}
	if err != nil {
		return "", err
	}
	return `"` + hex.EncodeToString(j.sha256[:16]) + `"`, nil
}

// awaits returns an error if the meeting is gone or has audio. Without one, j
// becomes the meeting's audio, unless it is nil.
func (o *organisation) awaits(x *Exchange, now time.Time, j *job) *storageError {
	o.lock(now)
	defer o.unlock()
	m := o.meetings[x.MeetingID]
	switch {
	case m == nil:
		return errNoKey
	case m.job != nil:
		x.MeetingStatus = m.status
		return errURLUsed
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
func (w *world) receive(r *http.Request, j *job) (err error) {
	hash, meter := sha256.New(), new(audio.Meter)
	j.size, err = io.Copy(io.MultiWriter(hash, meter, &keeper{world: w, job: j, full: w.keepAudio <= 0}), r.Body)
	if err != nil {
		return err
	}
	hash.Sum(j.sha256[:0])
	j.unreadable = !processed(j.contentType) || !processedSize(j.size)
	if j.unreadable {
		return nil
	}
	if d, ok := meter.Duration(); ok {
		j.seconds = int((d + time.Second - 1) / time.Second)
	} else {
		j.seconds = int((j.size + bytesPerSecond - 1) / bytesPerSecond)
	}
	return nil
}
