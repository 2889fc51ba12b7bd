package minutes_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// file writes a recording to a file and opens it.
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

func TestUploadURLByteForByte(t *testing.T) {
	t.Parallel()
	const sig = "X-Amz-Signature=0123456789abcdef"
	for _, target := range []string{
		"/b/k?" + sig,
		"/b/k?" + sig + "&",
		"/b/k?&&a=&=b&" + sig,
		"/b%2Fk/%2f%2F?x=%2f%2F%3d%3D&" + sig,
		"/a+b%2Bc%20d?x=a+b%2Bc%20d&" + sig,
		"/~user%7Euser?x=~%7E&" + sig,
		"/!$&'()*,;:@=-._?x=!$'()*,;:@/?-._&" + sig,
		"//double//slash/?" + sig,
		"/./dot/../dot?" + sig,
		"/%E2%9C%93/%e2%9c%93?x=%E2%9C%93&" + sig,
		"/%41%42?x=%41&" + sig,
		"/[brackets]?x=[]&" + sig,
		"/b/k;v=1?a;b&" + sig,
		"/b/k?",
		"/?" + sig,
		"?" + sig,
		"/k?x=\"quoted\"&x={}|^`<>\\&" + sig,
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			got := make(chan string, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				got <- r.RequestURI
			}))
			defer srv.Close()
			c := directed(t, srv.URL+target, minutes.StatusCreated, ownTransport(t))
			require.NoError(t, c.Meetings.Upload(t.Context(), "mtg_1", audio(10), nil))
			want := target
			if !strings.HasPrefix(want, "/") {
				want = "/" + want // an empty path is none on the wire
			}
			require.Equal(t, want, <-got)
		})
	}
}

// What storage is sent, to the byte, over a real socket.
func TestUploadOnTheWire(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"memory", "file", "file with progress"} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			type request struct{ head, sum string }
			got := make(chan request, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				r := bufio.NewReader(conn)
				var head strings.Builder
				for {
					line, err := r.ReadString('\n')
					head.WriteString(line)
					if err != nil || line == "\r\n" {
						break
					}
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
				hash := sha256.New()
				_, _ = io.CopyN(hash, r, 100_000)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				got <- request{head.String(), hex.EncodeToString(hash.Sum(nil))}
			}()
			rec, sum := noise(100_000)
			rec.ContentType = `audio/ogg; codecs="opus"`
			if source != "memory" {
				f, _ := file(t, 100_000)
				rec.Audio = f
			}
			opts := &minutes.UploadOptions{}
			if source == "file with progress" {
				opts.Progress = func(int64, int64) {}
			}
			c := directed(t, "http://"+l.Addr().String()+"/k?X-Amz-Signature=0123456789abcdef", minutes.StatusCreated, ownTransport(t), minutes.WithUserAgent("test/1"))
			require.NoError(t, c.Meetings.Upload(t.Context(), "mtg_1", rec, opts))
			r := <-got
			require.Equal(t, sum, r.sum)
			lines := strings.Split(strings.TrimSuffix(r.head, "\r\n\r\n"), "\r\n")
			require.Equal(t, "PUT /k?X-Amz-Signature=0123456789abcdef HTTP/1.1", lines[0])
			names := map[string]string{}
			for _, line := range lines[1:] {
				name, value, _ := strings.Cut(line, ": ")
				names[name] = value
			}
			require.Contains(t, names["User-Agent"], "test/1 minutes-go/")
			delete(names, "User-Agent")
			require.Equal(t, map[string]string{
				"Host": l.Addr().String(), "Content-Length": "100000", "Content-Type": `audio/ogg; codecs="opus"`,
				"Expect": "100-continue", "Accept-Encoding": "gzip",
			}, names)
		})
	}
}

// A store that refuses before it has read the body and hangs up is heard, each
// time: without Expect the refusal is lost in a reset more often than not.
func TestUploadHearsAnEarlyRefusal(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				for {
					if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
						break
					}
				}
				const body = "<Error><Code>SignatureDoesNotMatch</Code><Message>no</Message><RequestId>r1</RequestId></Error>"
				fmt.Fprintf(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
			}()
		}
	}()
	for _, transport := range []http.RoundTripper{ownTransport(t), nil} {
		for i := range 40 {
			var c *minutes.Client
			if transport != nil {
				c = directed(t, "http://"+l.Addr().String()+"/k?s=1", minutes.StatusCreated, transport)
			} else {
				c = directed(t, "http://"+l.Addr().String()+"/k?s=1", minutes.StatusCreated, http.DefaultTransport)
			}
			rec, _ := noise(4 << 20)
			err := c.Meetings.Upload(t.Context(), "mtg_1", rec, nil)
			e, ok := errors.AsType[*minutes.StorageError](err)
			require.True(t, ok)
			require.Equal(t, 403, e.StatusCode, "upload %d: %v", i, err)
			require.Equal(t, "SignatureDoesNotMatch", e.Code)
			require.Equal(t, "r1", e.RequestID)
		}
	}
}

// spyConn tells how the bytes came to a connection.
type spyConn struct {
	*net.TCPConn
	spy *spy
}

type spy struct {
	writes, kernel atomic.Int64 // bytes
}

func (c *spyConn) Write(p []byte) (int, error) {
	c.spy.writes.Add(int64(len(p)))
	return c.TCPConn.Write(p)
}

// ReadFrom is where net leaves a file to the kernel, if it gets one as it is.
func (c *spyConn) ReadFrom(r io.Reader) (int64, error) {
	if lr, ok := r.(*io.LimitedReader); ok {
		if _, ok := lr.R.(*os.File); ok {
			n, err := c.TCPConn.ReadFrom(r)
			c.spy.kernel.Add(n)
			return n, err
		}
	}
	return io.Copy(struct{ io.Writer }{c}, r)
}

// A file goes from disk to socket without coming by where nobody watches.
func TestUploadLeavesAFileToTheKernel(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a file is read like any recording")
	}
	const size = 5 << 20
	for _, test := range []struct {
		name     string
		progress bool
		size     int64
		kernel   bool
	}{{"file", false, size, true}, {"with progress", true, size, false}, {"the beginning of a file", false, size - 1, false}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			hashes := make(chan string, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				hash := sha256.New()
				_, _ = io.Copy(hash, r.Body)
				hashes <- hex.EncodeToString(hash.Sum(nil))
			}))
			defer srv.Close()
			f, sum := file(t, size)
			if test.size < size {
				hash := sha256.New()
				_, err := io.Copy(hash, io.NewSectionReader(f, 0, test.size))
				require.NoError(t, err)
				sum = hex.EncodeToString(hash.Sum(nil))
			}
			tr, s := ownTransport(t), new(spy)
			tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return &spyConn{conn.(*net.TCPConn), s}, nil
			}
			opts := &minutes.UploadOptions{}
			if test.progress {
				opts.Progress = func(int64, int64) {}
			}
			c := directed(t, srv.URL+"/k?s=1", minutes.StatusCreated, tr)
			require.NoError(t, c.Meetings.Upload(t.Context(), "mtg_1", minutes.Recording{Audio: f, Size: test.size, ContentType: "audio/mpeg"}, opts))
			require.Equal(t, sum, <-hashes)
			if test.kernel {
				require.EqualValues(t, size, s.kernel.Load())
				require.Less(t, s.writes.Load(), int64(4096), "the header alone")
			} else {
				require.Zero(t, s.kernel.Load())
			}
			require.Equal(t, 1, openTimes(t, f.Name()), "only the caller has the file open")
		})
	}
}

// openTimes counts how often this process has a file open.
func openTimes(t testing.TB, path string) int {
	t.Helper()
	dir, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, e := range dir {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == path {
			n++
		}
	}
	return n
}

// A file that changes while it is sent: one that grew arrives as it was, one
// that shrank is told. None stays open.
func TestUploadOfAChangingFile(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	for _, test := range []struct {
		name   string
		change func(t *testing.T, path string)
		is     error
	}{
		{"grows", func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if assert.NoError(t, err) {
				_, err = f.Write(make([]byte, 1000))
				assert.NoError(t, errors.Join(err, f.Close()))
			}
		}, nil},
		{"shrinks", func(t *testing.T, path string) { assert.NoError(t, os.Truncate(path, size/2)) }, io.ErrUnexpectedEOF},
		{"is replaced", func(t *testing.T, path string) {
			assert.NoError(t, os.WriteFile(path+".new", []byte("other"), 0o600))
			assert.NoError(t, os.Rename(path+".new", path))
		}, nil},
		{"is deleted", func(t *testing.T, path string) { assert.NoError(t, os.Remove(path)) }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			var arrived []string
			f, sum := file(t, size)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				hash := sha256.New()
				_, _ = io.CopyN(hash, r.Body, 1000)
				once.Do(func() { test.change(t, f.Name()) })
				n, err := io.Copy(hash, r.Body)
				if err == nil && n == size-1000 {
					arrived = append(arrived, hex.EncodeToString(hash.Sum(nil)))
				}
			}))
			defer srv.Close()
			c := directed(t, srv.URL+"/k?s=1", minutes.StatusCreated, ownTransport(t))
			err := c.Meetings.Upload(t.Context(), "mtg_1", minutes.Recording{Audio: f, Size: size, ContentType: "audio/mpeg"}, nil)
			srv.Close()
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
				require.ErrorContains(t, err, "recording")
				require.Empty(t, arrived)
			} else {
				require.NoError(t, err)
				require.Contains(t, arrived, sum)
			}
			if runtime.GOOS == "linux" {
				require.LessOrEqual(t, openTimes(t, f.Name()), 1)
			}
		})
	}
}

// Redirects of the store are not followed, and its connections serve again.
func TestUploadRefusals(t *testing.T) {
	t.Parallel()
	var opened, served, elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Location", other.URL)
		w.WriteHeader([]int{307, 503, 400, 302, 429}[int(served.Add(1)-1)%5])
		_, _ = io.WriteString(w, strings.Repeat("<p>no</p>", 5000))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	c := directed(t, srv.URL+"/k?s=1", minutes.StatusCreated, ownTransport(t), minutes.WithRetries(0, 0, 0))
	for range 10 {
		require.Error(t, c.Meetings.Upload(t.Context(), "mtg_1", audio(100_000), nil))
	}
	require.EqualValues(t, 10, served.Load())
	require.EqualValues(t, 1, opened.Load())
	require.Zero(t, elsewhere.Load())
}

// Transports that are less careful than net/http's get exactly the recording,
// and leave nothing open.
func TestUploadOverACarelessTransport(t *testing.T) {
	t.Parallel()
	rec, sum := noise(50_000)
	early := rec
	early.Audio = readerAt(func(p []byte, at int64) (int, error) { // io.EOF with the last byte, as io.ReaderAt may
		n, err := rec.Audio.ReadAt(p, at)
		if at+int64(n) == rec.Size {
			err = io.EOF
		}
		return n, err
	})
	longer, _ := noise(60_000)
	longer.Size = 50_000
	for name, rec := range map[string]minutes.Recording{"as it is": rec, "end told early": early, "more behind it": longer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := directed(t, "https://storage.example/k?s=1", minutes.StatusCreated, roundTripper(func(req *http.Request) (*http.Response, error) {
				data, err := io.ReadAll(req.Body)
				assert.NoError(t, err)
				got := sha256.Sum256(data)
				assert.Equal(t, sum, hex.EncodeToString(got[:]))
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			}))
			require.NoError(t, c.Meetings.Upload(t.Context(), "mtg_1", rec, nil))
		})
	}
	t.Run("file left open", func(t *testing.T) {
		t.Parallel()
		if runtime.GOOS != "linux" {
			t.Skip("open files are counted in /proc")
		}
		f, _ := file(t, 1000)
		c := directed(t, "http://127.0.0.1:1/k?s=1", minutes.StatusCreated, roundTripper(func(req *http.Request) (*http.Response, error) {
			_, ok := req.Body.(*os.File)
			assert.True(t, ok)
			return nil, errRefused
		}))
		require.Error(t, c.Meetings.Upload(t.Context(), "mtg_1", minutes.Recording{Audio: f, Size: 1000, ContentType: "audio/mpeg"}, nil))
		require.Equal(t, 1, openTimes(t, f.Name()))
	})
}
