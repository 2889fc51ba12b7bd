package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// The error responses of storage: XML in the form of S3, with codes that the API does not have.
var (
	errSignature     = &apiError{http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check the URL and the Content-Type.", nil}
	errURLExpired    = &apiError{http.StatusForbidden, "AccessDenied", "Request has expired", nil}
	errURLUsed       = &apiError{http.StatusForbidden, "AccessDenied", "The upload URL has been used already", nil}
	errStorageMethod = &apiError{http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.", nil}
	errNoKey         = &apiError{http.StatusNotFound, "NoSuchKey", "The specified key does not exist.", nil}
	errNoLength      = &apiError{http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.", nil}
	errIncomplete    = &apiError{http.StatusBadRequest, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header.", nil}
)

// storage handles a request to storage.
func (c *call) storage() {
	c.MeetingID, c.RequestID = storedIn(c.r.URL), c.service.ids.next(requestPrefix)
	c.Header.Set("X-Amz-Request-Id", c.RequestID)
	etag, err := c.put()
	if err == nil {
		c.Status = http.StatusOK
		c.Header.Set("ETag", etag)
		c.Header.Set("Content-Length", "0")
		return
	}
	if err == errStorageMethod {
		c.Header.Set("Allow", http.MethodPut)
	}
	c.Status, c.Code = err.status, string(err.code)
	c.send(XML, ErrorXML(c.Code, err.message, c.RequestID))
}

// put takes a recording. It checks everything that it can before it reads the first byte, so that a
// client that expects 100-continue sends none in vain.
func (c *call) put() (etag string, err *apiError) {
	r := c.r
	if r.Method != http.MethodPut {
		return "", errStorageMethod
	}
	var contentType string
	if types := r.Header["Content-Type"]; len(types) == 1 {
		contentType = types[0]
	}
	expires, ok := c.service.signed(r.URL, contentType)
	if !ok {
		return "", errSignature
	}
	if !c.now.Before(expires) {
		return "", errURLExpired
	}
	if err := c.awaits(nil, 0); err != nil {
		return "", err
	}
	if r.ContentLength < 0 || r.ContentLength == 0 && r.Header["Content-Length"] == nil {
		return "", errNoLength
	}
	audio, seconds, cut := c.service.receive(r)
	c.Bytes = audio.Size
	if cut != nil || audio.Size != r.ContentLength { // D22: the meeting is left without audio
		return "", errIncomplete
	}
	audio.ReceivedAt = c.service.Now()
	if err := c.awaits(audio, seconds); err != nil { // another upload may have been first
		return "", err
	}
	return `"` + audio.SHA256[:32] + `"`, nil
}

// awaits returns an error if the meeting is gone or has audio. Without one, the meeting gets this
// audio, unless it is nil.
func (c *call) awaits(audio *world.Audio, seconds int) *apiError {
	o, m, err := c.service.find(c.MeetingID)
	if err != nil {
		return errNoKey
	}
	defer c.service.mu.Unlock()
	c.MeetingStatus = m.Status
	if m.Audio != nil {
		return errURLUsed
	}
	if audio != nil {
		o.arrive(m, audio, seconds)
	}
	return nil
}

// receive reads a recording in constant memory, unless the service was asked to keep it.
func (s *Service) receive(r *http.Request) (audio *world.Audio, seconds int, err error) {
	kept := int64(wavHead)
	if s.cfg.KeepAudio {
		kept = math.MaxInt64
	}
	head, err := io.ReadAll(io.LimitReader(r.Body, kept))
	hash := sha256.New()
	_, _ = hash.Write(head)
	audio = &world.Audio{ContentType: r.Header.Get("Content-Type"), Size: int64(len(head))}
	if err == nil {
		var rest int64
		rest, err = io.Copy(hash, r.Body)
		audio.Size += rest
	}
	audio.SHA256 = hex.EncodeToString(hash.Sum(nil))
	if s.cfg.KeepAudio {
		audio.Bytes = head
	}
	return audio, recordingSeconds(head, audio.Size), err
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

// mediaType returns the bare type of a content type, in lower case. ok is false if s is none, or if
// a header cannot repeat it byte for byte.
func mediaType(s string) (bare string, ok bool) {
	bare, _, err := mime.ParseMediaType(s)
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

// wavHead is how much of a recording recordingSeconds is given. A WAV file has its format, and
// usually a few texts, before its data.
const wavHead = 64 << 10

// recordingSeconds is the length of a recording, rounded up, from its first bytes and its size: for
// a WAV file from its header, for any other estimated (D13).
func recordingSeconds(head []byte, size int64) int {
	bytes, rate, ok := wavData(head, size)
	if !ok {
		bytes, rate = size, bytesPerSecond
	}
	return int((bytes + rate - 1) / rate)
}

// wavData finds the size of the data in a WAV file, and how many bytes a second takes.
func wavData(head []byte, size int64) (bytes, rate int64, ok bool) {
	if len(head) < 12 || string(head[:4]) != "RIFF" || string(head[8:12]) != "WAVE" {
		return 0, 0, false
	}
	for at := 12; at+8 <= len(head); {
		name, length := string(head[at:at+4]), int64(binary.LittleEndian.Uint32(head[at+4:]))
		at += 8
		switch {
		case name == "fmt " && at+12 <= len(head):
			rate = int64(binary.LittleEndian.Uint32(head[at+8:]))
		case name == "data": // a writer that streams does not know the length, and one that broke off wrote less
			return min(length, size-int64(at)), rate, rate > 0 && length > 0
		}
		if length > int64(len(head)) {
			break
		}
		at += int(length + length%2)
	}
	return 0, 0, false
}
