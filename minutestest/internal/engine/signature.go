package engine

import (
	"crypto/hmac"
	"encoding/hex"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

// processed reports whether transcription accepts a content type (D11).
func processed(contentType string) bool {
	bare, ok := mediaType(contentType)
	return ok && (strings.HasPrefix(bare, "audio/") || strings.HasPrefix(bare, "video/") || slices.Contains(otherAudioTypes, bare))
}
