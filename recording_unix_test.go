//go:build unix

package minutes_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// A named pipe is refused without being opened, which would wait for a writer.
func TestOpenRecordingRefusesNamedPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe.wav")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	rec, err := minutes.OpenRecording(pipe)
	require.Zero(t, rec)
	requireParamError(t, err, "path", pipe)
	require.ErrorContains(t, err, "is not a regular file")
}
