package testkit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// LongStages returns a world whose stages take as long as a real service's.
func LongStages() minutestest.World {
	w := minutestest.DefaultWorld()
	w.Stages = minutestest.Stages{Prepare: 2 * time.Minute, Transcribe: 10 * time.Minute, Write: 3 * time.Minute}
	return w
}

// Audio returns a recording of n bytes in no particular format.
func Audio(n int) minutes.Source {
	return minutes.FromReaderAt(strings.NewReader(strings.Repeat("a", n)), int64(n), "audio/mpeg")
}

// Opened returns a Source that returns rec.
func Opened(rec minutes.Recording) minutes.Source {
	return func(context.Context) (minutes.Recording, error) { return rec, nil }
}

// Uploaded creates a meeting and uploads its audio.
func Uploaded(t testing.TB, c *minutes.Client, title string) *minutes.Meeting {
	t.Helper()
	m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: title, Date: "2026-11-20"})
	require.NoError(t, err)
	require.NoError(t, c.Meetings.Upload(t.Context(), m.ID, Audio(1000), nil))
	return m
}

// UpTo draws a duration above 0 and up to d.
func UpTo(rnd *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rnd.Int64N(int64(d))) + 1
}

// Noise returns a recording without repetition, and its SHA-256.
func Noise(n int) (minutes.Source, string) {
	data := make([]byte, n)
	src := rand.NewChaCha8([32]byte{1, 2, 3})
	_, _ = src.Read(data)
	sum := sha256.Sum256(data)
	return minutes.FromReaderAt(bytes.NewReader(data), int64(n), "audio/mpeg"), hex.EncodeToString(sum[:])
}

// Waiting creates a meeting that waits for its audio.
func Waiting(t testing.TB, srv *minutestest.Server) string {
	t.Helper()
	params := &minutes.MeetingCreateParams{Title: "To be heard", Date: "2026-11-20"}
	m, _, err := Client(srv, minutes.WithHTTPClient(Direct(srv))).Meetings.Create(t.Context(), params)
	require.NoError(t, err)
	return m.ID
}

// WaitFor waits d for a meeting that does not end in that time. It returns the meeting
// as last seen.
func WaitFor(t testing.TB, c *minutes.Client, id string, d time.Duration, o *minutes.WaitOptions) *minutes.Meeting {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	_, err := c.Meetings.Wait(ctx, id, o)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	var wait *minutes.WaitError
	if !assert.ErrorAs(t, err, &wait) {
		return nil
	}
	return wait.Meeting
}

// RequireArrived requires that a meeting has the audio with this SHA-256.
func RequireArrived(t testing.TB, srv *minutestest.Server, id, sum string) {
	t.Helper()
	m, ok := srv.Meeting(id)
	require.True(t, ok)
	require.NotNil(t, m.Audio, "no audio has arrived")
	require.Equal(t, sum, m.Audio.SHA256)
}

// WAV returns a valid WAV recording.
func WAV(seconds int) minutes.Source {
	const rate = 8000
	data := make([]byte, 44+seconds*rate)
	copy(data, "RIFF\x00\x00\x00\x00WAVE"+
		"fmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data")
	binary.LittleEndian.PutUint32(data[4:], uint32(36+seconds*rate))
	binary.LittleEndian.PutUint32(data[40:], uint32(seconds*rate))
	return minutes.FromReaderAt(bytes.NewReader(data), int64(len(data)), "audio/wav")
}

// Direct returns an HTTP client that calls a Server without a connection, in a tenth of
// the time. Use it to prepare a test, or if the network does not matter. A truncated
// response becomes an error.
func Direct(srv *minutestest.Server) *http.Client {
	return &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (resp *http.Response, err error) {
		if req.Context().Err() != nil {
			return nil, req.Context().Err()
		}
		r := req.Clone(req.Context())
		r.Host = req.URL.Host
		r.RequestURI = req.URL.RequestURI()
		r.RemoteAddr = "127.0.0.1:1"
		if r.Body == nil {
			r.Body = http.NoBody
		}
		defer func() {
			if broken := recover(); broken != nil {
				if broken != http.ErrAbortHandler {
					panic(broken)
				}
				resp = nil
				err = io.ErrUnexpectedEOF
			}
		}()
		rec := httptest.NewRecorder()
		rec.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat)) // as an http.Server does
		srv.Handler().ServeHTTP(rec, r)
		if req.Context().Err() != nil { // the caller is gone
			return nil, req.Context().Err()
		}
		return rec.Result(), nil
	})}
}
