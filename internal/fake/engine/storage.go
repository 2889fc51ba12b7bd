package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// The error responses of storage: XML in the form of S3, with codes that the API does not have.
var (
	errSignature = storageError(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated "+
		"does not match the signature you provided. Check the URL and the Content-Type.")
	errURLExpired    = storageError(http.StatusForbidden, "AccessDenied", "Request has expired")
	errURLUsed       = storageError(http.StatusForbidden, "AccessDenied", "The upload URL has been used already")
	errStorageMethod = storageError(http.StatusMethodNotAllowed, "MethodNotAllowed",
		"The specified method is not allowed against this resource.")
	errNoKey    = storageError(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	errNoLength = storageError(http.StatusLengthRequired, "MissingContentLength",
		"You must provide the Content-Length HTTP header.")
	errIncomplete = storageError(http.StatusBadRequest, "IncompleteBody",
		"You did not provide the number of bytes specified by the Content-Length HTTP header.")
)

func storageError(status int, code, message string) *apiError {
	return &apiError{status: status, code: minutes.ErrorCode(code), message: message}
}

// storage handles a request to storage.
func (r *request) storage() {
	r.MeetingID = storedIn(r.http.URL)
	r.RequestID = r.service.ids.next(requestPrefix)
	r.Header.Set("X-Amz-Request-Id", r.RequestID)
	etag, err := r.put()
	if err == nil {
		r.Status = http.StatusOK
		r.Header.Set("ETag", etag)
		r.Header.Set("Content-Length", "0")
		return
	}
	if err == errStorageMethod {
		r.Header.Set("Allow", http.MethodPut)
	}
	r.Status = err.status
	r.Code = string(err.code)
	r.send(XML, ErrorXML(r.Code, err.message, r.RequestID))
}

// put stores a recording. It checks everything that it can before it reads the first byte, so that a
// client that expects 100-continue sends none in vain.
func (r *request) put() (etag string, err *apiError) {
	upload := r.http
	if upload.Method != http.MethodPut {
		return "", errStorageMethod
	}
	var contentType string
	types := upload.Header["Content-Type"]
	if len(types) == 1 {
		contentType = types[0]
	}
	expires, ok := r.service.signed(upload.URL, contentType)
	if !ok {
		return "", errSignature
	}
	if !r.now.Before(expires) {
		return "", errURLExpired
	}
	err = r.accept(nil, 0)
	if err != nil {
		return "", err
	}
	announced := upload.ContentLength
	if announced < 0 || announced == 0 && upload.Header["Content-Length"] == nil {
		return "", errNoLength
	}
	audio, seconds, cut := r.service.receive(upload)
	r.Bytes = audio.Size
	if cut != nil || audio.Size != announced { // D22: the meeting is left without audio
		return "", errIncomplete
	}
	audio.ReceivedAt = r.service.Now()
	err = r.accept(audio, seconds)
	if err != nil { // another upload may have been first
		return "", err
	}
	return `"` + audio.SHA256[:32] + `"`, nil
}

// accept returns an error if the meeting is gone or has audio. Without one, the meeting gets this
// audio, unless it is nil.
func (r *request) accept(audio *world.Audio, seconds int) *apiError {
	o, m, err := r.service.find(r.MeetingID)
	if err != nil {
		return errNoKey
	}
	defer r.service.mu.Unlock()
	r.MeetingStatus = m.Status
	if m.Audio != nil || m.stored != nil {
		return errURLUsed
	}
	if audio != nil {
		o.store(m, audio, seconds)
	}
	return nil
}

// receive reads a recording in constant memory, unless the service was asked to keep it.
func (s *Service) receive(r *http.Request) (audio *world.Audio, seconds int, err error) {
	d := &digest{hash: sha256.New(), keep: s.cfg.KeepAudio}
	body := io.TeeReader(r.Body, d)
	header := readWAVHeader(body)
	_, err = io.Copy(io.Discard, body)
	audio = &world.Audio{
		ContentType: r.Header.Get("Content-Type"),
		Size:        d.size,
		SHA256:      hex.EncodeToString(d.hash.Sum(nil)),
		Bytes:       d.kept,
	}
	return audio, wholeSeconds(header.length(d.size)), err
}

// digest is what a Service remembers of a recording that is written to it.
type digest struct {
	hash hash.Hash
	size int64

	// keep makes it keep all bytes.
	keep bool
	kept []byte
}

func (d *digest) Write(p []byte) (int, error) {
	d.size += int64(len(p))
	if d.keep {
		d.kept = append(d.kept, p...)
	}
	return d.hash.Write(p)
}

const (
	storagePath    = "/storage/"
	signatureParam = "&X-Amz-Signature="
	storageTime    = "20060102T150405Z"
)

// presign returns path and query of an upload URL, in the style of S3. The signature covers the
// method, every byte of path and query, and the content type.
func (s *Service) presign(org, meeting, contentType string, now time.Time) string {
	path := storagePath + url.PathEscape(org) + "/" + url.PathEscape(meeting)
	query := "X-Amz-Algorithm=AWS4-HMAC-SHA256" +
		"&X-Amz-Credential=minutes%2F" + now.Format("20060102") + "%2Flocal%2Fs3%2Faws4_request" +
		"&X-Amz-Date=" + now.Format(storageTime) +
		"&X-Amz-Expires=" + strconv.Itoa(int(uploadURLValidity.Seconds())) +
		"&X-Amz-SignedHeaders=content-type"
	return path + "?" + query + signatureParam + s.sign(path, query, contentType)
}

func (s *Service) sign(path, query, contentType string) string {
	return hex.EncodeToString(s.ids.mac("upload", path, query, contentType))
}

// signed reports whether presign made u, byte for byte, for this content type, and when it expires.
func (s *Service) signed(u *url.URL, contentType string) (expires time.Time, ok bool) {
	query, signature, found := strings.Cut(u.RawQuery, signatureParam)
	if !found || !hmac.Equal([]byte(signature), []byte(s.sign(u.EscapedPath(), query, contentType))) {
		return time.Time{}, false
	}
	_, rest, _ := strings.Cut(query, "&X-Amz-Date=")
	issued, _, _ := strings.Cut(rest, "&")
	at, err := time.Parse(storageTime, issued)
	return at.Add(uploadURLValidity), err == nil
}

// storedIn returns the meeting that a storage URL names.
func storedIn(u *url.URL) (meetingID string) {
	_, id, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), storagePath), "/")
	meetingID, _ = url.PathUnescape(id)
	return meetingID
}

func isStorage(u *url.URL) bool { return strings.HasPrefix(u.Path, storagePath) }

// mediaType returns the bare type of a content type, in lower case. ok is false if it is not a type, or
// if a header cannot repeat it byte for byte. Parameters may be anything, because storage signs them
// without reading them: browsers send video/webm;codecs=vp8,opus, which cannot be parsed.
func mediaType(s string) (bare string, ok bool) {
	bare, _, _ = strings.Cut(s, ";")
	bare, _, err := mime.ParseMediaType(bare)
	kind, subtype, _ := strings.Cut(bare, "/")
	printable := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) && s == strings.TrimSpace(s)
	return bare, err == nil && printable && kind != "" && subtype != "" && !strings.Contains(bare, "*")
}

// unprocessable says why a recording cannot be processed, for people, or "" (D11).
func unprocessable(a *world.Audio) string {
	bare, ok := mediaType(a.ContentType)
	switch {
	case a.Size == 0 || a.Size > maxAudioBytes:
		return fmt.Sprintf("The recording has %d bytes. It must have between 1 and %d.", a.Size, maxAudioBytes)
	case !ok || !strings.HasPrefix(bare, "audio/") && !strings.HasPrefix(bare, "video/") && bare != "application/ogg":
		return fmt.Sprintf("The content type %q is neither audio nor video.", a.ContentType)
	}
	return ""
}
