package upload_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/secret"
	"github.com/meeting-minutes/minutes-go/internal/storage"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// put is a Put of rec to target through next.
func put(t testing.TB, target string, next http.RoundTripper, rec storage.Recording) *storage.Put {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	return &storage.Put{
		Transport: next, Target: u, Expires: time.Now().Add(time.Hour), UserAgent: []string{"test/1"}, Mask: secret.Mask{}.WithQuery(u), Recording: rec,
		Limits: storage.Limits{Stall: time.Minute, Reply: 5 * time.Minute},
	}
}

// noise is a recording in which no two places look alike, and its SHA-256.
func noise(n int) (storage.Recording, string) {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1, 2, 3}).Read(data)
	sum := sha256.Sum256(data)
	return storage.Recording{Audio: bytes.NewReader(data), Size: int64(n), ContentType: "audio/mpeg"}, hex.EncodeToString(sum[:])
}

// stored is the result of a recording of n bytes that the store has taken.
func stored(n int64) storage.Result {
	return storage.Result{Outcome: storage.Stored, Sent: n, Whole: true, StatusCode: 200}
}

// audio is a recording of n bytes.
func audio(n int) storage.Recording {
	return storage.Recording{Audio: strings.NewReader(strings.Repeat("a", n)), Size: int64(n), ContentType: "audio/mpeg"}
}

// file writes noise to a file and opens it.
func file(t testing.TB, size int) (*os.File, string) {
	t.Helper()
	rec, sum := noise(size)
	data := make([]byte, size)
	_, err := rec.Audio.ReadAt(data, 0)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "talk.mp3")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f, sum
}

type (
	roundTripper = testbase.RoundTripper
	readerAt     = testbase.ReaderAtFunc
)

var (
	ownTransport = testbase.OwnTransport
	errRefused   = testbase.ErrRefused
)
