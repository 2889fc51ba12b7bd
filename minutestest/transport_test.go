package minutestest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testURL = "https://" + apiHost + "/"

// wire returns a client of a network that serves h.
func wire(h http.HandlerFunc) (*http.Client, *network) {
	n := newNetwork(h, func(*http.Request) error { return nil })
	return n.client(0), n
}

// zeroes is a body of n bytes that costs no memory.
func zeroes(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func do(client *http.Client, method, url string, body io.Reader, set ...func(*http.Request)) (int, string, error) {
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return 0, "", err
	}
	for _, f := range set {
		f(req)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// inAndOut runs a test with real time and in a bubble.
func inAndOut(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Run("real time", func(t *testing.T) { t.Parallel(); f(t) })
	t.Run("bubble", func(t *testing.T) { t.Parallel(); synctest.Test(t, f) })
}

func TestWire_SendsResponses(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		client, n := wire(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			w.Header().Set("X-Length", r.Header.Get("Content-Length"))
			_, _ = w.Write(body)
		})
		for range 3 {
			status, text, err := do(client, "POST", testURL, strings.NewReader("hello"))
			require.NoError(t, err)
			assert.Equal(t, 200, status)
			assert.Equal(t, "hello", text)
		}
		assert.Empty(t, n.live, "nothing is left of connections that are closed")
	})
}

// An error that comes before the body has been sent is read completely, with and without Expect:
// 100-continue, and costs no time. Nothing sleeps afterwards.
func TestWire_DeliversEarlyError(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		var rejection string
		client, _ := wire(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, rejection)
		})
		start := time.Now()
		for _, kind := range []string{"of known length", "expects 100", "chunked"} {
			for i := range 200 {
				rejection = strings.Repeat("no", i%2*5000)
				status, text, err := do(client, "PUT", testURL, zeroes(8<<20), func(r *http.Request) {
					if kind != "chunked" {
						r.ContentLength = 8 << 20
					}
					if kind == "expects 100" {
						r.Header.Set("Expect", "100-continue")
					}
				})
				require.NoError(t, err, kind)
				assert.Equal(t, 403, status)
				assert.Len(t, text, len(rejection))
			}
		}
		if inBubble() { // no time-out was used up
			assert.Less(t, time.Since(start), 2*time.Second)
		}
	})
}

func TestWire_SupportsExpectContinue(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		client, _ := wire(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			assert.NoError(t, err)
			assert.EqualValues(t, 8<<20, n)
		})
		status, _, err := do(client, "PUT", testURL, zeroes(8<<20), func(r *http.Request) {
			r.ContentLength = 8 << 20
			r.Header.Set("Expect", "100-continue")
		})
		require.NoError(t, err)
		assert.Equal(t, 200, status)
	})
}

// The request's context ends when the client goes, also while the handler reads no body.
func TestWire_ClientDisconnects(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		ended := make(chan error, 1)
		client, _ := wire(func(w http.ResponseWriter, r *http.Request) {
			leave()
			<-r.Context().Done()
			ended <- r.Context().Err()
		})
		_, _, err := do(client, "PUT", testURL, zeroes(1<<20), func(r *http.Request) { *r = *r.WithContext(ctx) })
		require.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestWire_AbandonedBody(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		read := make(chan error, 1)
		client, _ := wire(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.CopyN(io.Discard, r.Body, 100)
			leave()
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
			}
			read <- err
		})
		body, w := io.Pipe()
		go func() { _, _ = w.Write(make([]byte, 100)); <-ctx.Done(); w.CloseWithError(ctx.Err()) }()
		_, _, err := do(client, "PUT", testURL, body, func(r *http.Request) { *r = *r.WithContext(ctx); r.ContentLength = 1000 })
		require.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, <-read, io.ErrUnexpectedEOF)
	})
}

// A client's own time-out works on virtual time as on real time.
func TestWire_Timeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, _ := wire(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		client.Timeout = time.Hour
		start := time.Now()
		_, _, err := do(client, "GET", testURL, nil)
		require.Error(t, err)
		assert.Equal(t, time.Hour, time.Since(start))
	})
}

func TestWire_Reset(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		client, _ := wire(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if assert.NoError(t, err) {
				conn.(*serverEnd).reset()
			}
		})
		for _, body := range []io.Reader{nil, zeroes(1 << 20)} {
			_, _, err := do(client, "PUT", testURL, body)
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
	})
}

func TestWire_Closed(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		entered := make(chan struct{})
		client, n := wire(func(w http.ResponseWriter, r *http.Request) { close(entered); <-r.Context().Done() })
		other, _ := wire(func(w http.ResponseWriter, r *http.Request) {})
		go func() { <-entered; n.close() }()
		_, _, err := do(client, "GET", testURL, nil)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, _, err = do(client, "GET", testURL, nil)
		require.ErrorIs(t, err, errClosed)
		_, _, err = do(other, "GET", testURL, nil)
		require.NoError(t, err)
	})
}

func TestWire_RejectsOtherHosts(t *testing.T) {
	t.Parallel()
	client, _ := wire(func(w http.ResponseWriter, r *http.Request) {})
	_, _, err := do(client, "GET", "https://example.com/", nil)
	require.ErrorContains(t, err, "example.com")
	_, _, err = do(client, "GET", "https://"+storageHost+"/x", nil)
	require.NoError(t, err)
}
