package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/url"
	"regexp"
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

// presign returns path and query of an upload URL, in the style of S3. The
// signature covers the method, every byte of path and query, and the content
// type.
func (w *world) presign(org, meeting, contentType string, now time.Time) string {
	path := storagePath + url.PathEscape(org) + "/" + url.PathEscape(meeting)
	query := "X-Amz-Algorithm=AWS4-HMAC-SHA256" +
		"&X-Amz-Credential=minutes%2F" + now.Format("20060102") + "%2Flocal%2Fs3%2Faws4_request" +
		"&X-Amz-Date=" + now.Format(storageTime) +
		"&X-Amz-Expires=" + strconv.Itoa(int(uploadURLValidity.Seconds())) +
		"&X-Amz-SignedHeaders=content-type"
	return path + "?" + query + signatureParam + w.sign(path, query, contentType)
}

func (w *world) sign(path, query, contentType string) string {
	mac := hmac.New(sha256.New, w.secret[:])
	mac.Write([]byte("upload\x00PUT\x00" + path + "\x00" + query + "\x00" + contentType))
	return hex.EncodeToString(mac.Sum(nil))
}

// signed reports whether presign made u, byte for byte, for this content type,
// and when it expires.
func (w *world) signed(u *url.URL, contentType string) (expires time.Time, ok bool) {
	query, signature, found := strings.Cut(u.RawQuery, signatureParam)
	if !found || !hmac.Equal([]byte(signature), []byte(w.sign(u.EscapedPath(), query, contentType))) {
		return time.Time{}, false
	}
	_, rest, _ := strings.Cut(query, "&X-Amz-Date=")
	issued, _, _ := strings.Cut(rest, "&")
	at, err := time.Parse(storageTime, issued)
	return at.Add(uploadURLValidity), err == nil
}

// storedIn returns the organisation and the meeting that a storage URL names.
func storedIn(u *url.URL) (org, meeting string) {
	rest, _ := strings.CutPrefix(u.EscapedPath(), storagePath)
	before, after, _ := strings.Cut(rest, "/")
	org, _ = url.PathUnescape(before)
	meeting, _ = url.PathUnescape(after)
	return org, meeting
}

func isStorage(u *url.URL) bool { return strings.HasPrefix(u.Path, storagePath) }

// restrictedName matches the name of a type or subtype (RFC 6838), in lower
// case. Unlike a token, it cannot be "*".
var restrictedName = regexp.MustCompile(`^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$`)

// mediaType returns the bare type of a content type, in lower case. ok is
// false if s is none, or if a header cannot repeat it byte for byte.
func mediaType(s string) (bare string, ok bool) {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) || s != strings.TrimSpace(s) {
		return "", false
	}
	bare, _, err := mime.ParseMediaType(s)
	kind, subtype, found := strings.Cut(bare, "/")
	if err != nil || !found || !restrictedName.MatchString(kind) || !restrictedName.MatchString(subtype) {
		return "", false
	}
	return bare, true
}

// processed reports whether transcription accepts a content type (D11).
func processed(contentType string) bool {
	bare, ok := mediaType(contentType)
	return ok && (strings.HasPrefix(bare, "audio/") || strings.HasPrefix(bare, "video/") || slices.Contains(otherAudioTypes, bare))
}

// processedSize reports whether it accepts a size (D11).
func processedSize(size int64) bool { return 0 < size && size <= maxAudioBytes }
