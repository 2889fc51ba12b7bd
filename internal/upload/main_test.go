package upload

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
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// put returns an Upload of rec that is ready for an attempt: to target, through next.
func put(t testing.TB, target string, next http.RoundTripper, rec Recording) *Upload {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	return &Upload{
		Transport: next, Recording: rec, UserAgent: []string{"test/1"}, Timeouts: Timeouts{Stall: time.Minute, Response: 5 * time.Minute},
		target: u, expires: time.Now().Add(time.Hour), urlMask: secret.Mask{}.WithQuery(u),
	}
}

// requireStored checks the outcome of an attempt that sent n bytes.
func requireStored(t testing.TB, n int64, o Outcome) {
	t.Helper()
	require.Equal(t, stored, judge(o), "%v", o.Err)
	require.Equal(t, n, o.Sent)
	require.Equal(t, n, o.Size)
}

// noise returns a recording of random bytes, and its SHA-256.
func noise(n int) (Recording, string) {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1, 2, 3}).Read(data)
	sum := sha256.Sum256(data)
	return Recording{Audio: bytes.NewReader(data), Size: int64(n), ContentType: "audio/mpeg"}, hex.EncodeToString(sum[:])
}

// audio is a recording of n bytes.
func audio(n int) Recording {
	return Recording{Audio: strings.NewReader(strings.Repeat("a", n)), Size: int64(n), ContentType: "audio/mpeg"}
}

// file writes noise to a file and opens the file.
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
