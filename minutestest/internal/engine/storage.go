package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"io"
	"math"
	"net/http"
)

// storageError is an error response of storage: XML in the form of S3.
type storageError struct {
	status  int
	code    string
	message string
}

var (
	errSignature     = &storageError{http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check the URL and the Content-Type."}
	errURLExpired    = &storageError{http.StatusForbidden, "AccessDenied", "Request has expired"}
	errURLUsed       = &storageError{http.StatusForbidden, "AccessDenied", "The upload URL has been used already"}
	errStorageMethod = &storageError{http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource."}
	errNoKey         = &storageError{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}
	errNoLength      = &storageError{http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header."}
	errIncomplete    = &storageError{http.StatusBadRequest, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header."}
)

// storage handles a request to storage.
func (s *Service) storage(rw http.ResponseWriter, r *http.Request) Exchange {
	x := Exchange{MeetingID: storedIn(r.URL)}
	etag, err := s.put(r, &x)
	h := rw.Header()
	x.RequestID = s.ids.next(requestPrefix)
	h.Set("X-Amz-Request-Id", x.RequestID)
	if err == nil {
		x.Status = http.StatusOK
		h.Set("ETag", etag)
		h.Set("Content-Length", "0")
		rw.WriteHeader(x.Status)
		return x
	}
	x.Status, x.Code = err.status, err.code
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

// put takes a recording. It checks everything that it can before it reads the first byte, so that a
// client that expects 100-continue sends none in vain.
func (s *Service) put(r *http.Request, x *Exchange) (etag string, err *storageError) {
	if r.Method != http.MethodPut {
		return "", errStorageMethod
	}
	var contentType string
	if types := r.Header["Content-Type"]; len(types) == 1 {
		contentType = types[0]
	}
	expires, ok := s.signed(r.URL, contentType)
	if !ok {
		return "", errSignature
	}
	if !s.Now().Before(expires) {
		return "", errURLExpired
	}
	if err := s.awaits(x, nil); err != nil {
		return "", err
	}
	if r.ContentLength < 0 || r.ContentLength == 0 && r.Header["Content-Length"] == nil {
		return "", errNoLength
	}
	j := &job{contentType: contentType}
	cut := s.receive(r, j)
	x.Bytes = j.size
	if cut != nil || j.size != r.ContentLength { // D22: the meeting is left without audio
		return "", errIncomplete
	}
	j.received = s.Now()
	if err := s.awaits(x, j); err != nil { // another upload may have been first
		return "", err
	}
	return `"` + hex.EncodeToString(j.sha256[:16]) + `"`, nil
}

// awaits returns an error if the meeting is gone or has audio. Without one, j becomes the meeting's
// audio, unless it is nil.
func (s *Service) awaits(x *Exchange, j *job) *storageError {
	o, m := s.find(x.MeetingID)
	if o == nil {
		return errNoKey
	}
	defer o.unlock()
	x.MeetingStatus = m.status
	if m.job != nil {
		return errURLUsed
	}
	if j != nil {
		o.arrive(m, j)
	}
	return nil
}

// receive reads a recording in constant memory, unless the service was asked to keep it.
func (s *Service) receive(r *http.Request, j *job) (err error) {
	hash, head := sha256.New(), &prefix{limit: wavHead}
	if s.cfg.KeepAudio {
		head.limit = math.MaxInt
	}
	if j.size, err = io.Copy(io.MultiWriter(hash, head), r.Body); err != nil {
		return err
	}
	hash.Sum(j.sha256[:0])
	if s.cfg.KeepAudio {
		j.bytes = head.bytes
	}
	if j.unreadable = !processed(j.contentType) || j.size == 0 || j.size > maxAudioBytes; !j.unreadable {
		j.seconds = recordingSeconds(head.bytes, j.size)
	}
	return nil
}

// prefix keeps the first bytes that are written to it.
type prefix struct {
	limit int
	bytes []byte
}

func (p *prefix) Write(b []byte) (int, error) {
	p.bytes = append(p.bytes, b[:min(len(b), p.limit-len(p.bytes))]...)
	return len(b), nil
}
