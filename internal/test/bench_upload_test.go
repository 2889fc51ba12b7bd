//go:build linux

package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// The benchmark starts a process to measure an upload's cost, so that the
// server's cost is not included.

// uploadTask is what such a process is to do.
type uploadTask struct {
	To   string // base URL
	File string
	Raw  bool
}

// uploadCost is the output of that process.
type uploadCost struct {
	CPU  time.Duration // of user and system
	Peak int           // KiB above what the process had before
}

const uploadTaskEnv = "MINUTES_BENCH_UPLOAD"

// TestUploadTask is not a test but the process that uploads.
func TestUploadTask(t *testing.T) {
	encoded := os.Getenv(uploadTaskEnv)
	if encoded == "" {
		t.Skip("for BenchmarkUpload")
	}
	var task uploadTask
	require.NoError(t, json.Unmarshal([]byte(encoded), &task))
	f, err := os.Open(task.File)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	transport := &http.Transport{ExpectContinueTimeout: time.Second}
	defer transport.CloseIdleConnections()
	upload := task.ours(t, transport)
	if task.Raw {
		upload = task.byHand(t, transport)
	}
	small, err := testkit.Audio(100_000)(t.Context())
	require.NoError(t, err)
	upload(small) // memory that any first upload touches does not count
	debug.FreeOSMemory()
	idle := resetPeak(t)
	before := cpuOf(t)
	upload(minutes.Recording{Audio: f, Size: info.Size(), ContentType: "audio/mpeg"})
	cost, err := json.Marshal(uploadCost{cpuOf(t) - before, peak(t) - idle})
	require.NoError(t, err)
	fmt.Printf("cost %s\n", cost)
}

func (task *uploadTask) ours(t *testing.T, transport http.RoundTripper) func(minutes.Recording) {
	hc := &http.Client{Transport: transport}
	c, err := minutes.New(task.To, benchKey, minutes.WithHTTPClient(hc), minutes.WithMaxRetries(4))
	require.NoError(t, err)
	opts := &minutes.UploadOptions{Progress: func(int64, int64) {}}
	return func(rec minutes.Recording) {
		source := minutes.FromReaderAt(rec.Audio, rec.Size, rec.ContentType)
		require.NoError(t, c.Meetings.Upload(t.Context(), benchID, source, opts))
	}
}

// byHand tries again from the beginning when the connection breaks.
func (task *uploadTask) byHand(t *testing.T, transport http.RoundTripper) func(minutes.Recording) {
	raw := rawClient(task.To, transport)
	return func(rec minutes.Recording) {
		for {
			var target minutes.UploadTarget
			err := raw.do(t.Context(), http.MethodPost, "/v1/meetings/"+benchID+"/upload-url", &target)
			require.NoError(t, err)
			// No file, which the kernel would send by itself: it does so for plain
			// http alone, which no storage speaks.
			body := io.NewSectionReader(rec.Audio, 0, rec.Size)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, target.UploadURL.Reveal(), body)
			require.NoError(t, err)
			req.ContentLength = rec.Size
			req.Header.Set("Content-Type", rec.ContentType)
			req.Header.Set("Expect", "100-continue")
			resp, err := raw.http.Do(req)
			if err != nil {
				continue
			}
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode)
			return
		}
	}
}

// resetPeak resets peak to the current value, which it returns.
func resetPeak(t testing.TB) int {
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
	return peak(t)
}

// peak returns the peak memory of this process so far, in KiB.
func peak(t testing.TB) int {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib
}

// BenchmarkUpload uploads a sparse file to a server on this machine. ns/op is not what counts here:
// CPU and memory of the uploading process are. The memory is read from /proc, so this file is for
// Linux.
func BenchmarkUpload(b *testing.B) {
	for _, mib := range []int64{64, 1024} {
		for name, breaks := range map[string]int64{"straight": 0, "broken twice": 2} {
			b.Run(fmt.Sprintf("%d MiB/%s", mib, name), func(b *testing.B) {
				if testing.Short() && mib > 64 {
					b.Skip("takes a while")
				}
				size := mib << 20
				path := filepath.Join(b.TempDir(), "sparse.mp3")
				require.NoError(b, os.WriteFile(path, nil, 0o600))
				require.NoError(b, os.Truncate(path, size))
				f, err := os.Open(path)
				require.NoError(b, err)
				_, _ = io.Copy(io.Discard, f) // otherwise the first upload pays for filling the kernel's cache
				require.NoError(b, f.Close())
				to := store(b, size, breaks)
				var ours, raw uploadCost // the means
				for range b.N {
					ours.add(to.costOf(b, uploadTask{File: path}), b.N)
					raw.add(to.costOf(b, uploadTask{File: path, Raw: true}), b.N)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(ours.CPU.Seconds()*1e3, "cpu-ms")
				b.ReportMetric(ours.CPU.Seconds()/raw.CPU.Seconds(), "x-raw-cpu")
				b.ReportMetric(float64(ours.Peak), "peak-KiB")
				b.ReportMetric(float64(raw.Peak), "raw-peak-KiB")
			})
		}
	}
}

// add adds one of n costs to their mean.
func (c *uploadCost) add(one uploadCost, n int) {
	c.CPU += one.CPU / time.Duration(n)
	c.Peak += one.Peak / n
}

// benchStore is a service and a store that takes what it is sent.
type benchStore struct {
	*httptest.Server
	breaks          int64 // of each large upload, tries that break on the way
	tries, received atomic.Int64
}

func store(b *testing.B, size, breaks int64) *benchStore {
	s := &benchStore{breaks: breaks}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/upload-url"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"upload_url":"%s/storage?X-Amz-Signature=0","expires_in":900,"method":"PUT"}`, s.URL)
		case r.Method == http.MethodGet: // did it arrive?
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.Replace(benchMeeting, `"transcribing"`, `"created"`, 1))
		case r.ContentLength == size && s.tries.Add(1) <= s.breaks:
			_, _ = io.CopyN(io.Discard, r.Body, size*s.tries.Load()/4)
			panic(http.ErrAbortHandler)
		default:
			n, _ := io.Copy(io.Discard, r.Body)
			s.received.Store(n)
		}
	}))
	s.Config.ErrorLog = nil
	b.Cleanup(s.Close)
	return s
}

func (s *benchStore) costOf(b *testing.B, task uploadTask) (cost uploadCost) {
	task.To = s.URL
	s.tries.Store(0)
	encoded, err := json.Marshal(task)
	require.NoError(b, err)
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestUploadTask$", "-test.v")
	cmd.Env = append(os.Environ(), "GOGC=100", uploadTaskEnv+"="+string(encoded))
	out, err := cmd.CombinedOutput()
	require.NoError(b, err, "%s", out)
	require.Equal(b, s.breaks+1, s.tries.Load())
	_, told, ok := bytes.Cut(out, []byte("cost "))
	require.True(b, ok, "%s", out)
	line, _, _ := bytes.Cut(told, []byte("\n"))
	require.NoError(b, json.Unmarshal(line, &cost))
	info, err := os.Stat(task.File)
	require.NoError(b, err)
	require.Equal(b, info.Size(), s.received.Load())
	return cost
}
