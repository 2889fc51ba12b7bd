package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// TestUploadURL is D10 and D11 up to the PUT.
func TestUploadURL(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("ci", "")
	at := "POST /v1/meetings/" + id + "/upload-url"
	for _, ct := range []string{`""`, `null`, `7`, `"audio"`, `"/wav"`, `"audio/"`, `"audio/*"`, `"*/*"`,
		`"audio/wav;"x`, `"au dio/wav"`, `" audio/wav"`, `"audio/wav "`, `"audio/wav\r\n"`, `"audio/wäv"`,
		`"audio/wav; x=\"é\""`, `"audio/wav; x=\"\u007f\""`, `"audio/wav/x"`, `";codecs=opus"`} {
		require.Equal(t, 400, s.request("ci", at, `{"content_type":`+ct+`}`).is(400, "INVALID_REQUEST").Code, ct)
	}
	for _, ct := range []string{"audio/wav", "AUDIO/WAV", "audio/ogg; codecs=opus", "application/vnd.x+json",
		"text/plain", "audio/az09", "audio/wav; x=~y", "audio/wav; x=y; x=z", `audio/wav; x=\"y`,
		"video/webm;codecs=vp8,opus", "video/x-matroska;codecs=avc1,opus"} {
		r := s.request("ci", at, `{"content_type":"`+ct+`"}`).is(200, "")
		require.Equal(t, "900", r.field("expires_in"))
		require.Equal(t, "PUT", r.field("method"))
		u, err := url.Parse(r.field("upload_url"))
		require.NoError(t, err)
		require.Equal(t, "http://example.com", u.Scheme+"://"+u.Host)
		require.True(t, strings.HasPrefix(u.Path, "/storage/"))
		require.Equal(t, "created", string(r.x.MeetingStatus))
	}
	s = newRig(t,
		func(cfg *engine.Config) { cfg.Storage = map[string]string{"example.com": "https://store.test:8443"} })
	require.True(t,
		strings.HasPrefix(s.presigned("ci", s.create("ci", ""), "audio/wav"), "https://store.test:8443/storage/"))
}

// TestStorage is D10, D11 and D22 from the PUT on.
func TestStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, func(cfg *engine.Config) {
			cfg.KeepAudio = true
			cfg.World.Stages.Prepare = time.Hour
		})
		id := s.create("ci", `"external_id":"e"`)
		const ct = `audio/wav; x="y"`
		target := s.presigned("ci", id, `audio/wav; x=\"y\"`)
		spare := s.presigned("ci", id, "audio/ogg")

		// Another content type, or any byte of the URL.
		for _, other := range []string{"audio/wav", "audio/wav;x=y", strings.ToUpper(ct), ""} {
			s.put(target, other, "x").storage(403, "SignatureDoesNotMatch")
		}
		s.put(target, ct, "x", func(r *http.Request) { r.Header["Content-Type"] = []string{ct, ct} }).storage(403,
			"SignatureDoesNotMatch")
		at := strings.Index(target, "/storage/") + len("/storage/")
		for i := at; i < len(target); i++ {
			b := []byte(target)
			b[i] ^= 1
			if _, err := url.ParseRequestURI(string(b)); err != nil || strings.ContainsAny(string(b), " ") {
				continue
			}
			s.put(string(b), ct, "x").storage(403, "SignatureDoesNotMatch")
		}
		for _, forged := range []string{target + "&x=1", target + "&", target + "0",
			strings.Replace(target, "?", "?x=1&", 1), target[:strings.Index(target, "&X-Amz-Signature")],
			strings.Replace(target, "mtg_", "mtg%5F", 1), strings.Replace(target, "/mtg_", "//mtg_", 1),
			strings.Replace(target, "X-Amz-Expires=900", "X-Amz-Expires=901", 1)} {
			s.put(forged, ct, "x").storage(403, "SignatureDoesNotMatch")
		}
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
			r := s.request("", method+" "+target, "").storage(405, "MethodNotAllowed")
			require.Equal(t, "PUT", r.Header().Get("Allow"))
		}
		require.Empty(t, s.request("", "HEAD "+target, "").Body.String())
		s.put(target, ct, "x", func(r *http.Request) { r.ContentLength = -1 }).storage(411, "MissingContentLength")
		s.put(target, ct, "", func(r *http.Request) { r.Header.Del("Content-Length") }).storage(411,
			"MissingContentLength")

		// An error response does not touch the body.
		s.put(target, "audio/x", "", func(r *http.Request) {
			r.Body = untouched{t}
			r.ContentLength = 5
		}).storage(403,
			"SignatureDoesNotMatch")

		// Truncated: no audio.
		s.put(target, ct, "",
			func(r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader("ab"))
				r.ContentLength = 3
			}).storage(400, "IncompleteBody")
		s.put(target, ct, "", func(r *http.Request) {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("ab"), broken{}))
			r.ContentLength = 3
		}).storage(400, "IncompleteBody")
		require.Equal(t, "created", s.status("ci", id))

		time.Sleep(899 * time.Second)
		fresh := s.presigned("ci", id, "audio/wav")
		time.Sleep(time.Second)
		require.Contains(t, s.put(target, ct, "x").storage(403, "AccessDenied").Body.String(), "Request has expired")
		r := s.put(fresh, "audio/wav", "hello",
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer ci") }).storage(200, "")
		require.Equal(t, int64(5), r.x.Bytes)
		require.Equal(t, "created", string(r.x.MeetingStatus))
		require.Equal(t, "audio_uploaded", s.status("ci", id))
		s.put(fresh, "audio/wav", "hello").storage(403, "AccessDenied")
		s.put(spare, "audio/ogg", "hello").storage(403, "AccessDenied")

		state, _ := s.Meeting(id)
		sum := sha256.Sum256([]byte("hello"))
		require.Equal(t,
			&world.Audio{ContentType: "audio/wav", Size: 5, SHA256: hex.EncodeToString(sum[:]),
				ReceivedAt: state.Audio.ReceivedAt, Bytes: []byte("hello")}, state.Audio)

		gone := s.create("ci", "")
		target = s.presigned("ci", gone, "audio/wav")
		s.request("ci", "DELETE /v1/meetings/"+gone, "").is(204, "")
		s.put(target, "audio/wav", "x").storage(404, "NoSuchKey")
	})
}

// While one body arrives, another upload ends, or the meeting is deleted.
func TestPut_FailsIfOvertaken(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("ci", "")
	first := s.presigned("ci", id, "audio/a")
	second := s.presigned("ci", id, "audio/b")
	meanwhile := func(f func()) func(*http.Request) {
		return func(r *http.Request) {
			r.Body = io.NopCloser(&during{f, "abc"})
			r.ContentLength = 3
		}
	}
	s.put(first, "audio/a", "", meanwhile(func() { s.put(second, "audio/b", "bb").storage(200, "") })).storage(403,
		"AccessDenied")
	state, _ := s.Meeting(id)
	require.Equal(t, "audio/b", state.Audio.ContentType)
	require.Equal(t, int64(2), state.Audio.Size)
	id = s.create("ci", "")
	s.put(s.presigned("ci", id, "audio/a"), "audio/a", "",
		meanwhile(func() { s.request("ci", "DELETE /v1/meetings/"+id, "").is(204, "") })).storage(404, "NoSuchKey")
}

// during does something before its text arrives.
type during struct {
	act  func()
	text string
}

func (d *during) Read(p []byte) (int, error) {
	if d.act == nil {
		return 0, io.EOF
	}
	d.act()
	d.act = nil
	return copy(p, d.text), nil
}

type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}
func (u untouched) Close() error { return nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// The content types that are processed (D11).
func TestContentTypes(t *testing.T) {
	t.Parallel()
	for ct, want := range map[string]string{
		"audio/wav": "minutes_ready", "AUDIO/x-anything": "minutes_ready", "video/mp4": "minutes_ready",
		"application/ogg": "minutes_ready", "Application/OGG; a=b": "minutes_ready",
		"video/webm;codecs=vp8,opus": "minutes_ready", "application/pdf;codecs=vp8,opus": "audio_rejected",
		"application/pdf": "audio_rejected", "text/plain": "audio_rejected",
		"application/octet-stream": "audio_rejected", "audiox/wav": "audio_rejected",
	} {
		s := newRig(t)
		id := s.create("ci", "")
		s.put(s.presigned("ci", id, ct), ct, "x").storage(200, "")
		require.Equal(t, want, s.status("ci", id), ct)
	}
	s := newRig(t)
	id := s.create("ci", "")
	s.put(s.presigned("ci", id, "audio/wav"), "audio/wav", "").storage(200, "")
	require.Equal(t, "audio_rejected", s.status("ci", id), "an empty file")
	require.Equal(t, "null", s.request("ci", "GET /v1/meetings/"+id, "").field("duration_seconds"))
	require.NotContains(t, s.request("ci", "GET /v1/meetings/"+id, "").Body.String(), "duration")
}
