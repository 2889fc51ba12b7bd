package minutes

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that the kernel sends shows that it moves while it is sent, which the
// stall time-out relies upon.
func TestFileShowsThatItMoves(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a file is read like any recording")
	}
	const size, step = 256 << 20, 64 << 20 // a step is more than sockets hold
	path := filepath.Join(t.TempDir(), "sparse")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, size))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()

	steps, taken := make(chan int64), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for n := range steps {
			_, err := io.CopyN(io.Discard, r.Body, n)
			assert.NoError(t, err)
			taken <- struct{}{}
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer srv.Close()
	target, err := url.Parse(srv.URL)
	require.NoError(t, err)
	u := &upload{rec: Recording{Audio: f, Size: size, ContentType: "audio/mpeg"}, target: target}
	body, ok := u.body().(*fileBody)
	require.True(t, ok)
	// However the test ends, so do client and server, in this order.
	finish := sync.OnceFunc(func() { close(steps) })
	defer finish()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, srv.URL, asFile(body))
	require.NoError(t, err)
	req.ContentLength = size
	done := make(chan error, 1)
	go func() {
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			err = resp.Body.Close()
		}
		done <- err
	}()
	last := body.sentSoFar()
	for range 3 {
		steps <- step
		<-taken
		// The kernel refills what was taken, in its own time.
		for body.sentSoFar() <= last {
			select {
			case err := <-done:
				require.Fail(t, "the request ended", err)
			default:
				runtime.Gosched()
			}
		}
		last = body.sentSoFar()
		require.Less(t, last, int64(size), "all of it at once shows nothing")
	}
	finish()
	require.NoError(t, <-done)
	require.NoError(t, body.detach())
	require.Greater(t, body.sentSoFar(), int64(0), "known after it was closed, too")
}
