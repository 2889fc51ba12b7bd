package upload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// An upload's memory does not grow with the recording, nor with failed attempts. A separate process
// measures it.
func TestUpload_MemoryIsConstant(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the peak is read from /proc")
	}
	if target := os.Getenv("STORAGE_TEST_PUT_TO"); target != "" {
		uploadAndPrint(t, target)
		return
	}
	if !testbase.Long() {
		t.Skip("uploads 256 MiB")
	}
	t.Parallel()
	const size = 256 << 20
	path := filepath.Join(t.TempDir(), "sparse")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, size))
	for _, test := range []struct {
		name     string
		breaks   int64 // attempts that fail half-way
		progress bool
	}{{"straight", 0, false}, {"with progress", 0, true}, {"broken twice", 2, true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var attempts, arrived atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ContentLength > 1<<20 && attempts.Add(1) <= test.breaks {
					_, _ = io.CopyN(io.Discard, r.Body, size/2)
					panic(http.ErrAbortHandler)
				}
				n, _ := io.Copy(io.Discard, r.Body)
				arrived.Store(n)
			}))
			defer srv.Close()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUpload_MemoryIsConstant$", "-test.v")
			cmd.Env = append(os.Environ(), "STORAGE_TEST_PUT_TO="+srv.URL, "STORAGE_TEST_PUT_OF="+path, fmt.Sprint("STORAGE_TEST_PROGRESS=", test.progress))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.EqualValues(t, size, arrived.Load())
			require.Equal(t, test.breaks+1, attempts.Load())
			_, grown, ok := strings.Cut(string(out), "grew by ")
			require.True(t, ok, "%s", out)
			kib, err := strconv.Atoi(strings.Fields(grown)[0])
			require.NoError(t, err)
			t.Logf("peak memory grew by %d KiB", kib)
			require.Less(t, kib, 8<<10, "KiB")
		})
	}
}

// uploadAndPrint uploads a small recording and then the large one, and prints how much the second
// raised the peak of the process.
func uploadAndPrint(t *testing.T, target string) {
	f, err := os.Open(os.Getenv("STORAGE_TEST_PUT_OF"))
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	tr := ownTransport(t)
	send := func(rec Recording) {
		p := put(t, target+"/k?s=1", tr, rec)
		if os.Getenv("STORAGE_TEST_PROGRESS") == "true" {
			p.Progress = func(int64, int64) {}
		}
		for judge(p.attempt(context.Background())) != stored {
			continue
		}
	}
	send(audio(100_000))
	before := testbase.Peak(t)
	send(Recording{Audio: f, Size: info.Size(), ContentType: "audio/mpeg"})
	fmt.Printf("grew by %d KiB\n", testbase.Peak(t)-before)
}
