package storage

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// put returns a Put of size random bytes to a target.
func put(t testing.TB, target string, transport http.RoundTripper, size int) *Put {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	return &Put{
		URL: u, Audio: bytes.NewReader(noise(size)), Size: int64(size), ContentType: `audio/ogg; codecs="opus"`, UserAgent: "test/1",
		Transport: transport, Mask: rest.NewMask(rest.QuerySecrets(u)...), Stall: time.Minute, Response: 5 * time.Minute,
	}
}

const target = "http://storage.example/k?X-Amz-Signature=feedfacecafebeef"

func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1, 2, 3}).Read(data)
	return data
}

func ok(req *http.Request) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}
}

// readAll is a transport that reads the whole recording.
var readAll = testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	return ok(req), nil
})

func TestPut_SendsWholeRecording(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		data, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Equal(t, sha256.Sum256(noise(1<<20+7)), sha256.Sum256(data))
		assert.EqualValues(t, 1<<20+7, r.ContentLength)
		assert.Equal(t, http.MethodPut, r.Method)
		assert.Equal(t, "/k%2Fl?s=1", r.RequestURI)
		assert.Equal(t, http.Header{
			"Content-Type": {`audio/ogg; codecs="opus"`}, "User-Agent": {"test/1"}, "Content-Length": {"1048583"},
			"Expect": {"100-continue"}, "Accept-Encoding": {"gzip"}, "Connection": {"close"},
		}, r.Header)
	}))
	defer srv.Close()
	var reports []int64
	p := put(t, srv.URL+"/k%2Fl?s=1", testbase.OwnTransport(t), 1<<20+7)
	p.Progress = func(sent, total int64) {
		assert.Equal(t, p.Size, total)
		reports = append(reports, sent)
	}
	o := p.Do(t.Context())
	require.Positive(t, o.Took)
	o.Took = 0
	require.Equal(t, Outcome{StatusCode: 200, Sent: p.Size}, o)
	require.IsIncreasing(t, reports)
	require.Equal(t, p.Size, reports[len(reports)-1])
	require.EqualValues(t, 1, calls.Load())
}

func TestPut_OmitsExpect(t *testing.T) {
	t.Parallel()
	p := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		assert.Empty(t, req.Header["Expect"])
		return readAll(req)
	}), 10)
	p.WithoutExpect = true
	require.Equal(t, 200, p.Do(t.Context()).StatusCode)
}

// With Expect, storage rejects a large recording before it gets any of it, and the reason arrives.
func TestPut_ReadsEarlyRejection(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>SignatureDoesNotMatch</Code></Error>")
	}))
	defer srv.Close()
	for range 10 {
		o := put(t, srv.URL+"/k?s=1", testbase.OwnTransport(t), 8<<20).Do(t.Context())
		require.Equal(t, 403, o.StatusCode, "%v", o.Err)
		require.Equal(t, "SignatureDoesNotMatch", o.Code)
		require.Zero(t, o.Sent)
	}
}

// A 2xx that comes too soon proves nothing, even if the server keeps the connection: then net/http
// could still send a small recording.
func TestPut_DoubtsEarlySuccess(t *testing.T) {
	t.Parallel()
	for range 20 {
		tr := &http.Transport{ExpectContinueTimeout: time.Minute, DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				in := bufio.NewReader(far)
				for {
					if line, err := in.ReadString('\n'); err != nil || line == "\r\n" {
						break
					}
				}
				_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				_, _ = io.Copy(io.Discard, in)
			}()
			return near, nil
		}}
		o := put(t, target, tr, 100).Do(t.Context())
		require.Equal(t, 200, o.StatusCode)
		require.Equal(t, "storage.example responded before it had the whole recording", o.Message)
		tr.CloseIdleConnections()
	}
}

// A recording that cannot be read ends the attempt with the reason, whatever the transport does.
func TestPut_ReportsUnreadableRecording(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk fell off")
	for name, test := range map[string]struct {
		audio io.ReaderAt
		is    error
		text  string
	}{
		"error": {testbase.ReaderAtFunc(func([]byte, int64) (int, error) { return 0, broken }), broken, "reading the recording: the disk fell off"},
		"short": {strings.NewReader("short"), io.ErrUnexpectedEOF, "reading the recording: it ended after 5 of 100000 bytes: unexpected EOF"},
		"no progress": {testbase.ReaderAtFunc(func([]byte, int64) (int, error) { return 0, nil }), io.ErrUnexpectedEOF,
			"reading the recording: it ended after 0 of 100000 bytes: unexpected EOF"},
	} {
		for kind, transport := range map[string]http.RoundTripper{"error": readAll, "response": testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			return &http.Response{StatusCode: 400, Body: http.NoBody}, nil
		})} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				p := put(t, target, transport, 100_000)
				p.Audio = test.audio
				o := p.Do(t.Context())
				require.ErrorIs(t, o.Err, ErrUnreadable)
				require.Zero(t, o.StatusCode)
				require.ErrorIs(t, o.Err, test.is)
				require.EqualError(t, o.Err, test.text)
			})
		}
	}
}

// io.EOF with the last byte, as io.ReaderAt may return it, is no error.
func TestPut_AcceptsEOFWithLastByte(t *testing.T) {
	t.Parallel()
	p := put(t, target, readAll, 50_000)
	audio := p.Audio
	p.Audio = testbase.ReaderAtFunc(func(b []byte, at int64) (int, error) {
		n, err := audio.ReadAt(b, at)
		if at+int64(n) == p.Size {
			err = io.EOF
		}
		return n, err
	})
	o := p.Do(t.Context())
	require.Equal(t, 200, o.StatusCode, "%v", o.Err)
	require.Equal(t, p.Size, o.Sent)
}

// hangs lists what can block for ever, with how the attempt then ends.
var hangs = map[string]struct {
	set        func(p *Put, blocked <-chan struct{})
	after      time.Duration // when the timeouts end it
	unreadable bool
	text       string
}{
	"dial": {func(p *Put, blocked <-chan struct{}) {
		p.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			<-blocked
			return nil, syscall.ECONNREFUSED
		}}
	}, time.Minute, false, "no byte moved for 1m0s, after 0 of 100000"},
	"transport": {func(p *Put, blocked <-chan struct{}) {
		p.Transport = testbase.RoundTripper(func(*http.Request) (*http.Response, error) {
			<-blocked
			return nil, syscall.ECONNRESET
		})
	}, time.Minute, false, "no byte moved for 1m0s, after 0 of 100000"},
	"connection": {func(p *Put, blocked <-chan struct{}) {
		p.Transport = testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.CopyN(io.Discard, req.Body, 1000)
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
	}, time.Minute, false, "no byte moved for 1m0s, after"},
	"response": {func(p *Put, blocked <-chan struct{}) {
		p.Transport = testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			<-blocked
			return nil, syscall.ECONNRESET
		})
	}, 5 * time.Minute, false, "no response for 5m0s, after 100000 of 100000 bytes"},
	"ReadAt": {func(p *Put, blocked <-chan struct{}) {
		p.Transport = piped(nil)
		p.Audio = testbase.ReaderAtFunc(func([]byte, int64) (int, error) {
			<-blocked
			return 0, io.EOF
		})
	}, time.Minute, true, "reading the recording blocked for 1m0s, after 0 of 100000 bytes"},
	"Progress": {func(p *Put, blocked <-chan struct{}) {
		p.Transport = piped(nil)
		p.Progress = func(int64, int64) { <-blocked }
	}, time.Minute, true, "reading the recording blocked for 1m0s"},
}

// piped returns an http.Transport whose server reads the request and then responds with handle.
func piped(handle http.HandlerFunc) http.RoundTripper {
	if handle == nil {
		handle = func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	}
	return &http.Transport{DialContext: testbase.PipeTo(handle), DisableKeepAlives: true}
}

// Whatever blocks, the timeouts end the attempt.
func TestPut_EndsWhatHangs(t *testing.T) {
	t.Parallel()
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				blocked := make(chan struct{})
				p := put(t, target, nil, 100_000)
				hang.set(p, blocked)
				start := time.Now()
				o := p.Do(t.Context())
				require.GreaterOrEqual(t, time.Since(start), hang.after)
				require.LessOrEqual(t, time.Since(start), hang.after+2*grace)
				require.ErrorIs(t, o.Err, ErrStalled)
				require.Equal(t, hang.unreadable, errors.Is(o.Err, ErrUnreadable))
				require.ErrorContains(t, o.Err, hang.text)
				require.NotErrorIs(t, o.Err, context.DeadlineExceeded, "that is about the caller's context")
				close(blocked)
			})
		})
	}
}

// Whatever blocks, ctx ends the attempt promptly. Nothing is read and nothing reported afterwards.
func TestPut_ObeysContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				blocked := make(chan struct{})
				p := put(t, target, nil, 100_000)
				hang.set(p, blocked)
				var over atomic.Bool
				audio, progress := p.Audio, p.Progress
				p.Audio = testbase.ReaderAtFunc(func(b []byte, at int64) (int, error) {
					assert.False(t, over.Load())
					return audio.ReadAt(b, at)
				})
				p.Progress = func(sent, total int64) {
					assert.False(t, over.Load())
					if progress != nil {
						progress(sent, total)
					}
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				start := time.Now()
				time.AfterFunc(10*time.Second, func() { cancel(cause) })
				o := p.Do(ctx)
				over.Store(true)
				require.LessOrEqual(t, time.Since(start), 10*time.Second+2*grace)
				require.ErrorIs(t, o.Err, cause)
				require.NotErrorIs(t, o.Err, ErrStalled)
				require.NotErrorIs(t, o.Err, ErrUnreadable)
				close(blocked)
				synctest.Wait()
			})
		})
	}
}

// A slow attempt is no stalled one: each read restarts the timeout.
func TestPut_AllowsSlowProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			for buf := make([]byte, 1<<20); ; time.Sleep(50 * time.Second) {
				if _, err := req.Body.Read(buf); err == io.EOF {
					break
				} else if err != nil {
					return nil, err
				}
			}
			time.Sleep(4 * time.Minute)
			return ok(req), nil
		}), 500_000)
		audio := p.Audio
		p.Audio = testbase.ReaderAtFunc(func(b []byte, at int64) (int, error) {
			time.Sleep(50 * time.Second)
			return audio.ReadAt(b, at)
		})
		o := p.Do(t.Context())
		require.Equal(t, 200, o.StatusCode, "%v", o.Err)
		require.Greater(t, o.Took, 20*time.Minute)
	})
}

// An error that is slow to arrive ends with the timeout, too, and its status counts.
func TestPut_KeepsStatusOfBrokenResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			slow := testbase.ReaderFunc(func([]byte) (int, error) {
				<-req.Context().Done()
				return 0, req.Context().Err()
			})
			body := io.MultiReader(strings.NewReader("<Error><Code>SlowDown</Code>"), slow)
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(body)}, nil
		}), 10).Do(t.Context())
		require.Equal(t, 503, o.StatusCode)
		require.Equal(t, "SlowDown", o.Code)
		require.NoError(t, o.Err)
	})
}

// No error shows the URL, even if the transport quotes it.
func TestPut_HidesPresignedQuery(t *testing.T) {
	t.Parallel()
	o := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Put", URL: req.URL.String(), Err: &net.OpError{Op: "read", Err: errors.New("lost feedfacecafebeef")}}
	}), 10).Do(t.Context())
	require.EqualError(t, o.Err, "read: lost ***")
	_, ok := errors.AsType[*url.Error](o.Err)
	require.False(t, ok)
}

func TestPut_ReportsBrokenTransport(t *testing.T) {
	t.Parallel()
	o := put(t, target, testbase.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, nil }), 10).Do(t.Context())
	require.ErrorContains(t, o.Err, "neither a response nor an error")
}

func TestRun_HandsOverLateValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var late atomic.Int64
		open := func(took time.Duration, err error) (int, error) {
			return Run(ctx, func() (int, error) { time.Sleep(took); return 7, err }, func(n int) { late.Add(int64(n)) })
		}
		n, err := open(time.Millisecond, nil)
		require.NoError(t, err)
		require.Equal(t, 7, n)
		n, err = open(time.Hour, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, n)
		_, err = open(2*time.Hour, io.EOF)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, late.Load())
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		require.EqualValues(t, 7, late.Load(), "once, and not after an error")
	})
}
