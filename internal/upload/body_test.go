package upload

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// swallow is a storage that accepts every body. It never closes one.
var swallow = roundTripper(func(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
})

// Readers that violate the contract of io.ReaderAt.
func TestAttempt_RejectsInvalidReaderAt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		audio readerAt
		err   string // "" for success
	}{
		"reads nothing":     {func([]byte, int64) (int, error) { return 0, nil }, io.ErrNoProgress.Error()},
		"reads three bytes": {func(p []byte, _ int64) (int, error) { return min(len(p), 3), nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := Recording{Audio: test.audio, Size: 10_000, ContentType: "audio/mpeg"}
			r := put(t, "https://storage.example/k?s=1", swallow, rec).attempt(t.Context())
			if test.err == "" {
				requireStored(t, rec.Size, r)
				return
			}
			require.Equal(t, permanent, judge(r))
			require.ErrorContains(t, r.Err, test.err)
		})
	}
}

// Each Read returns at most 32 KiB, even if the transport asks for more, as for HTTP/2. So a slow
// connection shows progress.
func TestBody_ReadReturnsSmallParts(t *testing.T) {
	t.Parallel()
	r := put(t, "https://storage.example/k?s=1", roundTripper(func(req *http.Request) (*http.Response, error) {
		n, err := req.Body.Read(make([]byte, 1<<20))
		assert.NoError(t, err)
		assert.Equal(t, 32<<10, n)
		return swallow(req)
	}), audio(100_000)).attempt(t.Context())
	requireStored(t, 100_000, r)
}

// attempt and digest return when ctx ends, even if a call blocks. They make no further calls.
func TestAttempt_AbandonsBlockedCalls(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Second
	for _, what := range []string{"ReadAt", "Progress", "transport", "digest"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				let := make(chan struct{})
				block := func(which string) {
					calls.Add(1)
					if which == what {
						<-let
					}
				}
				rec := audio(100_000)
				src := rec.Audio
				rec.Audio = readerAt(func(p []byte, at int64) (int, error) {
					block("ReadAt")
					if what == "digest" {
						<-let
					}
					return src.ReadAt(p, at)
				})
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				start := time.Now()
				p := put(t, "https://storage.example/k?s=1", roundTripper(func(req *http.Request) (*http.Response, error) {
					block("transport")
					return swallow(req)
				}), rec)
				p.Progress = func(int64, int64) { block("Progress") }
				if what == "digest" {
					_, err := digest(ctx, rec)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					r := p.attempt(ctx)
					require.ErrorIs(t, r.Err, context.DeadlineExceeded)
				}
				require.InDelta(t, limit, time.Since(start), float64(time.Second))
				before := calls.Load()
				close(let)
				synctest.Wait()
				require.Equal(t, before, calls.Load(), "nothing is read after the return")
			})
		})
	}
}

// If a callback ends its goroutine, as a test's FailNow does, the attempt ends at once, even if the
// transport does not notice.
func TestAttempt_EndsIfCallbackEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"ReadAt", "Progress", "transport"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			end := func(callback string) {
				if callback == where {
					runtime.Goexit()
				}
			}
			srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
			defer srv.Close()
			rec := audio(100_000)
			src := rec.Audio
			rec.Audio = readerAt(func(p []byte, at int64) (int, error) { end("ReadAt"); return src.ReadAt(p, at) })
			next := ownTransport(t)
			u := put(t, srv.URL+"/k?s=1", roundTripper(func(req *http.Request) (*http.Response, error) { end("transport"); return next.RoundTrip(req) }), rec)
			u.Progress = func(int64, int64) { end("Progress") }
			o := u.attempt(t.Context())
			require.ErrorIs(t, o.Err, errGoexit)
			require.False(t, o.Stalled)
			require.Equal(t, permanent, judge(o))
		})
	}
}

// After an attempt, nothing reads the recording or reports progress, even if the transport still
// reads the body.
func TestAttempt_ReadsNothingAfterItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var over atomic.Bool
		rec := audio(1 << 20)
		rec.Audio = readerAt(func(p []byte, _ int64) (int, error) {
			time.Sleep(8 * time.Second)
			assert.False(t, over.Load())
			return len(p), nil
		})
		u := put(t, "https://storage.example/k?s=1", roundTripper(func(req *http.Request) (*http.Response, error) {
			go func() { _, _ = io.Copy(io.Discard, req.Body) }()
			time.Sleep(20 * time.Second)
			return nil, errRefused
		}), rec)
		u.Progress = func(int64, int64) { assert.False(t, over.Load()) }
		require.ErrorIs(t, u.attempt(t.Context()).Err, errRefused)
		over.Store(true)
		time.Sleep(time.Hour)
	})
}

func TestDigest_HashesTheRecording(t *testing.T) {
	t.Parallel()
	rec := audio(100_000)
	rec.Size = 70_000
	sum := md5.Sum([]byte(strings.Repeat("a", 70_000)))
	got, err := digest(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, base64.StdEncoding.EncodeToString(sum[:]), got)

	rec.Size = 100_001
	_, err = digest(t.Context(), rec)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	broken := errors.New("disk on fire")
	rec.Audio = readerAt(func([]byte, int64) (int, error) { return 0, broken })
	_, err = digest(t.Context(), rec)
	require.ErrorIs(t, err, broken)

	rec.Audio = readerAt(func([]byte, int64) (int, error) { runtime.Goexit(); return 0, nil })
	_, err = digest(t.Context(), rec)
	require.ErrorContains(t, err, "ended its goroutine")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec.Audio = readerAt(func([]byte, int64) (int, error) { assert.Fail(t, "read"); return 0, broken })
	_, err = digest(ctx, rec)
	require.ErrorIs(t, err, context.Canceled)
}

// A Read of no bytes reads nothing, and later Reads continue.
func TestBody_ReadOfNoBytes(t *testing.T) {
	t.Parallel()
	r := put(t, "https://storage.example/k?s=1", roundTripper(func(req *http.Request) (*http.Response, error) {
		for _, n := range []int{100, 0} {
			got, err := req.Body.Read(make([]byte, n))
			assert.NoError(t, err)
			assert.Equal(t, n, got)
		}
		return swallow(req)
	}), audio(10_000)).attempt(t.Context())
	requireStored(t, 10_000, r)
}
