package upload

import (
	"bufio"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAttempt_KeepsURLByteForByte(t *testing.T) {
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
			require.Equal(t, stored, judge(put(t, srv.URL+target, ownTransport(t), audio(10)).attempt(t.Context())))
			want := target
			if !strings.HasPrefix(want, "/") {
				want = "/" + want // the wire has no empty path
			}
			require.Equal(t, want, <-got)
		})
	}
}

// The exact bytes that storage receives, over a real socket.
func TestAttempt_SendsExactRequest(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"memory", "file", "with progress", "without Expect", "with MD5"} {
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
			if source == "file" {
				f, _ := file(t, 100_000)
				rec.Audio = f
			}
			want := map[string]string{
				"Host": l.Addr().String(), "Content-Length": "100000", "Content-Type": `audio/ogg; codecs="opus"`,
				"User-Agent": "test/1", "Expect": "100-continue", "Accept-Encoding": "gzip", "Connection": "close",
			}
			uri := "/k?X-Amz-Signature=0123456789abcdef"
			if source == "with MD5" {
				uri += "&X-Amz-Algorithm=AWS4-HMAC-SHA256"
			}
			u := put(t, "http://"+l.Addr().String()+uri, ownTransport(t), rec)
			switch source {
			case "with progress":
				u.Progress = func(int64, int64) {}
			case "without Expect":
				u.withoutExpect = true
				delete(want, "Expect")
			case "with MD5":
				data := make([]byte, rec.Size)
				_, err = rec.Audio.ReadAt(data, 0)
				require.NoError(t, err)
				hash := md5.Sum(data)
				want["Content-Md5"] = base64.StdEncoding.EncodeToString(hash[:])
			}
			require.Equal(t, stored, judge(u.attempt(t.Context())))
			r := <-got
			require.Equal(t, sum, r.sum)
			lines := strings.Split(strings.TrimSuffix(r.head, "\r\n\r\n"), "\r\n")
			require.Equal(t, "PUT "+uri+" HTTP/1.1", lines[0])
			names := map[string]string{}
			for _, line := range lines[1:] {
				name, value, _ := strings.Cut(line, ": ")
				names[name] = value
			}
			require.Equal(t, want, names)
		})
	}
}

// If storage rejects an upload before it reads the body, and hangs up, the Client still gets the
// response. Without Expect, a reset would often lose it.
func TestAttempt_ReadsEarlyRejection(t *testing.T) {
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
	tr := ownTransport(t)
	rec, _ := noise(4 << 20)
	for i := range 40 {
		r := put(t, "http://"+l.Addr().String()+"/k?s=1", tr, rec).attempt(t.Context())
		require.Equal(t, Response{StatusCode: 403, Code: "SignatureDoesNotMatch", Message: "no", RequestID: "r1"}, r.Response, "upload %d", i)
	}
}

// A file may change during an attempt. The attempt fails only if the file gets shorter: it sends
// as many bytes as the file had at the beginning.
func TestAttempt_FailsIfFileShrinks(t *testing.T) {
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
			rec := Recording{Audio: f, Size: size, ContentType: "audio/mpeg"}
			r := put(t, srv.URL+"/k?s=1", ownTransport(t), rec).attempt(t.Context())
			srv.Close()
			if test.is != nil {
				require.Equal(t, permanent, judge(r))
				require.ErrorIs(t, r.Err, test.is)
				require.ErrorContains(t, r.Err, "recording")
				require.Empty(t, arrived)
				return
			}
			require.Equal(t, stored, judge(r))
			require.Equal(t, []string{sum}, arrived, "the original bytes arrived once")
		})
	}
}

// The Client does not follow redirects of storage.
func TestAttempt_RejectsRedirects(t *testing.T) {
	t.Parallel()
	var served, elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Location", other.URL)
		w.WriteHeader([]int{307, 503, 400, 302, 429}[int(served.Add(1)-1)%5])
		_, _ = io.WriteString(w, strings.Repeat("<p>no</p>", 5000))
	}))
	defer srv.Close()
	tr := ownTransport(t)
	for range 10 {
		require.NotZero(t, put(t, srv.URL+"/k?s=1", tr, audio(100_000)).attempt(t.Context()).StatusCode)
	}
	require.EqualValues(t, 10, served.Load())
	require.Zero(t, elsewhere.Load())
}

// A transport that reads the body to its end gets exactly the recording, although it does not
// limit its reads to Content-Length as net/http does.
func TestAttempt_LimitsBodyToSize(t *testing.T) {
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
	for name, rec := range map[string]Recording{"unchanged": rec, "EOF with the last byte": early, "longer than Size": longer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := put(t, "https://storage.example/k?s=1", roundTripper(func(req *http.Request) (*http.Response, error) {
				data, err := io.ReadAll(req.Body)
				assert.NoError(t, err)
				got := sha256.Sum256(data)
				assert.Equal(t, sum, hex.EncodeToString(got[:]))
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			}), rec).attempt(t.Context())
			requireStored(t, 50_000, r)
		})
	}
}
