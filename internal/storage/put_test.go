package storage

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
		URL: u, Audio: bytes.NewReader(noise(size)), Size: int64(size),
		ContentType: `audio/ogg; codecs="opus"`, UserAgent: "test/1",
		Transport: transport, Mask: rest.NewMask(rest.QuerySecrets(u)...),
		Stall: time.Minute, Response: 5 * time.Minute,
	}
}

const target = "http://storage.example/k?X-Amz-Signature=feedfacecafebeef"

func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1, 2, 3}).Read(data)
	return data
}

func TestPut_SendsWholeRecording(t *testing.T) {
	t.Parallel()
	for _, expect := range [][]string{{"100-continue"}, nil} {
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			data, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			assert.Equal(t, sha256.Sum256(noise(1<<20+7)), sha256.Sum256(data))
			assert.EqualValues(t, 1<<20+7, r.ContentLength)
			assert.Equal(t, http.MethodPut, r.Method)
			assert.Equal(t, "/k%2Fl?s=1", r.RequestURI)
			assert.Equal(t, expect, r.Header["Expect"])
			r.Header.Del("Expect")
			assert.Equal(t, http.Header{
				"Content-Type": {`audio/ogg; codecs="opus"`}, "User-Agent": {"test/1"}, "Content-Length": {"1048583"},
				"Accept-Encoding": {"gzip"}, "Connection": {"close"},
			}, r.Header)
		}))
		defer srv.Close()
		var reports []int64
		p := put(t, srv.URL+"/k%2Fl?s=1", testbase.OwnTransport(t), 1<<20+7)
		p.WithoutExpect = expect == nil
		p.Progress = func(sent, total int64) {
			assert.Equal(t, p.Size, total)
			reports = append(reports, sent)
		}
		o := p.Send(t.Context())
		require.Positive(t, o.Took)
		o.Took = 0
		require.Equal(t, Outcome{StatusCode: 200, Sent: p.Size}, o)
		require.IsIncreasing(t, reports)
		require.Equal(t, p.Size, reports[len(reports)-1])
	}
}

// With Expect, storage rejects a large recording before it gets any of it, and the reason arrives.
func TestPut_ReadsEarlyRejection(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>SignatureDoesNotMatch</Code></Error>")
	}))
	defer srv.Close()
	for range 5 {
		o := put(t, srv.URL+"/k?s=1", testbase.OwnTransport(t), 1<<20).Send(t.Context())
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
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				in := bufio.NewReader(far)
				for {
					line, err := in.ReadString('\n')
					if err != nil || line == "\r\n" {
						break
					}
				}
				_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				_, _ = io.Copy(io.Discard, in)
			}()
			return near, nil
		}
		tr := &http.Transport{ExpectContinueTimeout: time.Minute, DialContext: dial}
		o := put(t, target, tr, 100).Send(t.Context())
		require.Equal(t, 200, o.StatusCode)
		require.Equal(t, "storage.example responded before it had the whole recording", o.Message)
		tr.CloseIdleConnections()
	}
}

// A recording that cannot be read ends the attempt with the reason, whatever the transport does. But
// io.EOF with the last byte, as io.ReaderAt may return it, is not an error.
func TestPut_ReportsUnreadableRecording(t *testing.T) {
	t.Parallel()
	const size = 100_000
	broken := errors.New("the disk fell off")
	returning := func(n int, err error) io.ReaderAt {
		return testbase.ReaderAtFunc(func(p []byte, at int64) (int, error) { return min(n, len(p)), err })
	}
	for name, test := range map[string]struct {
		audio io.ReaderAt
		is    error
		text  string
	}{
		"error": {returning(0, broken), broken, "reading the recording: the disk fell off"},
		"short": {strings.NewReader("short"), io.ErrUnexpectedEOF,
			"reading the recording: it ended after 5 of 100000 bytes: unexpected EOF"},
		"no progress": {returning(0, nil), io.ErrUnexpectedEOF,
			"reading the recording: it ended after 0 of 100000 bytes: unexpected EOF"},
		"EOF, complete": {returning(size, io.EOF), nil, ""},
	} {
		for status := range 2 {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					_, err := io.Copy(io.Discard, req.Body)
					if err != nil && status == 0 {
						return nil, err
					}
					return &http.Response{StatusCode: 400, Body: http.NoBody}, nil
				}), size)
				p.Audio = test.audio
				o := p.Send(t.Context())
				require.ErrorIs(t, o.Err, test.is)
				if test.is == nil {
					require.Equal(t, p.Size, o.Sent)
					return
				}
				require.ErrorIs(t, o.Err, ErrUnreadable)
				require.EqualError(t, o.Err, test.text)
				require.Zero(t, o.StatusCode)
			})
		}
	}
}

// Whatever blocks, the timeouts end the attempt, and ctx ends it promptly. Nothing is read and nothing
// reported afterwards.
func TestPut_EndsWhatHangs(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for name, hang := range map[string]struct {
		read       int64                      // what the transport reads
		block      func(p *Put, block func()) // what blocks; nil: the transport
		after      time.Duration              // when the timeouts end it
		unreadable bool
		text       string
	}{
		"connection": {0, nil, time.Minute, false, "no byte moved for 1m0s, after 0 of 100000"},
		"midway":     {1000, nil, time.Minute, false, "no byte moved for 1m0s, after"},
		"response":   {100_000, nil, 5 * time.Minute, false, "no response for 5m0s, after 100000 of 100000 bytes"},
		"ReadAt": {100_000, func(p *Put, block func()) {
			p.Audio = testbase.ReaderAtFunc(func([]byte, int64) (int, error) {
				block()
				return 0, io.EOF
			})
		}, time.Minute, true, "reading the recording blocked for 1m0s, after 0 of 100000 bytes"},
		"Progress": {100_000, func(p *Put, block func()) {
			p.Progress = func(int64, int64) { block() }
		}, time.Minute, true, "reading the recording blocked for 1m0s"},
	} {
		for _, canceled := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", canceled ", canceled), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					blocked := make(chan struct{})
					after := hang.after
					var over atomic.Bool
					p := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
						_, _ = io.CopyN(io.Discard, req.Body, hang.read)
						<-blocked
						return &http.Response{StatusCode: 500, Header: http.Header{}, Body: http.NoBody}, nil
					}), 100_000)
					if hang.block != nil {
						hang.block(p, func() { <-blocked })
					}
					audio := p.Audio
					progress := p.Progress
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
					defer cancel(nil)
					if canceled {
						after = 10 * time.Second
						time.AfterFunc(after, func() { cancel(cause) })
					}
					start := time.Now()
					o := p.Send(ctx)
					over.Store(true)
					require.GreaterOrEqual(t, time.Since(start), after)
					require.LessOrEqual(t, time.Since(start), after+2*grace)
					require.Equal(t, !canceled, errors.Is(o.Err, ErrStalled))
					require.Equal(t, hang.unreadable && !canceled, errors.Is(o.Err, ErrUnreadable))
					if canceled {
						require.ErrorIs(t, o.Err, cause)
					} else {
						require.ErrorContains(t, o.Err, hang.text)
					}
					require.NotErrorIs(t, o.Err, context.DeadlineExceeded, "that is about the caller's context")
					p.URL = nil // the next attempt has another one, and the blocked call does not mind
					close(blocked)
					synctest.Wait()
				})
			})
		}
	}
}

// A slow attempt has not stalled: each read restarts the timeout.
func TestPut_AllowsSlowProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			for buf := make([]byte, 1<<20); ; time.Sleep(50 * time.Second) {
				_, err := req.Body.Read(buf)
				if err == io.EOF {
					break
				}
				if err != nil {
					return nil, err
				}
			}
			time.Sleep(4 * time.Minute)
			return &http.Response{StatusCode: 200, Header: http.Header{}}, nil
		}), 500_000)
		audio := p.Audio
		p.Audio = testbase.ReaderAtFunc(func(b []byte, at int64) (int, error) {
			time.Sleep(50 * time.Second)
			return audio.ReadAt(b, at)
		})
		o := p.Send(t.Context())
		require.Equal(t, 200, o.StatusCode, "%v", o.Err)
		require.Greater(t, o.Took, 20*time.Minute)
	})
}

// An error that is slow to arrive ends with the timeout, too, and its status counts.
func TestPut_KeepsStatusOfBrokenResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body, answer := io.Pipe()
		o := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			go func() { _, _ = io.WriteString(answer, "<Error><Code>SlowDown</Code>") }()
			context.AfterFunc(req.Context(), func() { _ = answer.CloseWithError(req.Context().Err()) })
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: body}, nil
		}), 10).Send(t.Context())
		require.Equal(t, 503, o.StatusCode)
		require.Equal(t, "SlowDown", o.Code)
		require.NoError(t, o.Err)
		_, err := body.Read(nil)
		require.ErrorIs(t, err, io.ErrClosedPipe, "the body is closed")
	})
}

// A transport may read the recording after it has returned a response. Once Send has returned, nothing
// is read, and Progress is not called.
func TestPut_ReadsNothingAfterItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var over atomic.Bool
		p := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			go func() { _, _ = io.Copy(io.Discard, req.Body) }()
			time.Sleep(grace + grace/4) // in the middle of a read
			return &http.Response{StatusCode: 403, Body: http.NoBody}, nil
		}), 1<<20)
		p.Progress = func(int64, int64) {
			time.Sleep(grace / 2)
			assert.False(t, over.Load())
		}
		o := p.Send(t.Context())
		over.Store(true)
		require.Equal(t, 403, o.StatusCode)
		time.Sleep(time.Hour)
	})
}

// No error shows the URL, even if the transport quotes it.
func TestPut_ReportsErrorOfTransport(t *testing.T) {
	t.Parallel()
	o := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		lost := &net.OpError{Op: "read", Err: errors.New("lost feedfacecafebeef")}
		return nil, &url.Error{Op: "Put", URL: req.URL.String(), Err: lost}
	}), 10).Send(t.Context())
	require.EqualError(t, o.Err, "read: lost ***")
	_, ok := errors.AsType[*url.Error](o.Err)
	require.False(t, ok)
	nothing := testbase.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, nil })
	o = put(t, target, nothing, 10).Send(t.Context())
	require.ErrorContains(t, o.Err, "neither a response nor an error")
}

func TestPut_UnderstandsErrors(t *testing.T) {
	t.Parallel()
	const good = "<Error><Code>SlowDown</Code><Message>Please wait</Message><RequestId>r1</RequestId></Error>"
	whole := Outcome{Code: "SlowDown", Message: "Please wait", RequestID: "r1"}
	notXML := Outcome{Message: "the response is not an XML error of storage: storage.example"}
	for name, test := range map[string]struct {
		body string
		want Outcome
	}{
		"S3's form":       {`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + good, whole},
		"byte order mark": {"\ufeff" + good, whole},
		"namespace":       {`<s:Error xmlns:s="http://s3.example/"><s:Code>A</s:Code></s:Error>`, Outcome{Code: "A"}},
		"space and CDATA": {"<Error>\n <Code>\n A<![CDATA[<B>]]> </Code>\n</Error>", Outcome{Code: "A<B>"}},
		"elements of a secret": {
			"<Error><Code>A</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId><StringToSign>s</StringToSign></Error>",
			Outcome{Code: "A"}},
		"cut after the code": {"<Error><Code>A</Code><Message>half a sent", Outcome{Code: "A"}},
		"no code":            {"<Error><Message>m</Message></Error>", Outcome{Message: "m"}},
		"cut in the code":    {"<Error><Code>Access", notXML},
		"HTML": {
			"<!DOCTYPE html><html><head><title>503</title></head><body><Code>A</Code><br></body></html>", notXML},
		"empty":        {"", notXML},
		"JSON":         {`{"Code":"A"}`, notXML},
		"another root": {"<Response><Code>A</Code></Response>", notXML},
		"entity expansion": {
			`<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><Error><Code>A</Code><Message>&b;</Message></Error>`,
			Outcome{Code: "A"}},
		"deeply nested":    {"<Error><Code>A</Code>" + strings.Repeat("<a>", 1<<20), Outcome{Code: "A"}},
		"message of 1 MiB": {"<Error><Code>A</Code><Message>" + strings.Repeat("m", 1<<20), Outcome{Code: "A"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.NewReader(test.body)
			got := sendTo(t, &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(body)}, true)
			test.want.StatusCode = 503
			got.Message, _, _ = strings.Cut(got.Message, " sent ")
			require.Equal(t, test.want, got)
			require.LessOrEqual(t, body.Size()-int64(body.Len()), int64(64<<10))
		})
	}
}

// sendTo returns the Outcome of a response that comes after the whole recording or after none of it,
// without what depends on the recording.
func sendTo(t *testing.T, resp *http.Response, whole bool) Outcome {
	t.Helper()
	o := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if whole {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		return resp, nil
	}), 10).Send(t.Context())
	require.NoError(t, o.Err)
	o.Sent = 0
	o.Took = 0
	return o
}

// A response that is not from storage says who sent it, without the secrets that it echoes.
func TestPut_DescribesForeignResponses(t *testing.T) {
	t.Parallel()
	const page = "<html><head><title>Log in to feedfacecafebeef</title>"
	const loggedOut = `storage.example (nginx) sent "Log in to ***"`
	for name, test := range map[string]struct {
		status      int
		contentType string
		whole       bool
		want        string // the message
	}{
		"login page": {200, "text/html; charset=utf-8", true, "the response is not from storage: " + loggedOut},
		"XHTML":      {200, "Application/XHTML+XML", true, "the response is not from storage: " + loggedOut},
		"page of a gateway": {502, "text/html", true,
			"the response is not an XML error of storage: " + loggedOut},
		"redirect":     {307, "text/html", false, "the Client does not follow redirects, here to login.example"},
		"2xx":          {200, "text/plain", true, ""},
		"2xx too soon": {200, "", false, "storage.example responded before it had the whole recording"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{
				"Server": {"nginx"}, "Content-Type": {test.contentType}, "Location": {"https://login.example/?t=1"},
			}
			resp := &http.Response{StatusCode: test.status, Header: h, Body: io.NopCloser(strings.NewReader(page))}
			require.Equal(t, Outcome{StatusCode: test.status, Message: test.want}, sendTo(t, resp, test.whole))
		})
	}
	h := http.Header{"Retry-After": {"7"}, "X-Amz-Request-Id": {"r2"}}
	o := sendTo(t, &http.Response{StatusCode: 503, Header: h, Body: http.NoBody}, true)
	require.Equal(t, 7*time.Second, o.RetryAfter)
	require.Equal(t, "r2", o.RequestID)
}

// Storage may declare a 2xx as HTML although it has no body, as Google Cloud Storage does. That is success,
// however the body is framed. But a page that broke off before its first byte is a page.
func TestPut_AcceptsEmptySuccess(t *testing.T) {
	t.Parallel()
	const late = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=UTF-8\r\nEtag: \"1\"\r\n"
	for name, test := range map[string]struct {
		response string
		foreign  bool
	}{
		"length 0":        {late + "Content-Length: 0\r\n\r\n", false},
		"chunked":         {late + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		"until the close": {late + "\r\n", false},
		"white space":     {late + "Content-Length: 2\r\n\r\n\r\n", false},
		"204":             {strings.Replace(late, "200 OK", "204 No Content", 1) + "\r\n", false},
		"201, no type":    {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		"broken off":      {late + "Content-Length: 100\r\n\r\n", true},
		"a page":          {late + "Content-Length: 6\r\n\r\n<html>", true},
		"a chunked page":  {late + "Transfer-Encoding: chunked\r\n\r\n6\r\n<html>\r\n0\r\n\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer listener.Close()
			go func() {
				conn, err := listener.Accept()
				if !assert.NoError(t, err) {
					return
				}
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if !assert.NoError(t, err) {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(conn, test.response)
			}()
			o := put(t, "http://"+listener.Addr().String()+"/k", testbase.OwnTransport(t), 1000).Send(t.Context())
			require.NoError(t, o.Err)
			require.Equal(t, 2, o.StatusCode/100)
			require.Equal(t, test.foreign, o.Message != "", o.Message)
		})
	}
}

// A file that changes during an attempt is never stored, because storage does not get its last byte. Each
// row changes the file when that many bytes have been read; -1 is before the attempt.
func TestPut_StoresNoFileThatChanges(t *testing.T) {
	t.Parallel()
	const size = 100_000
	const grown = "reading the recording: it changed during the upload from 100000 to 100007 bytes"
	grow := func(f *os.File) error {
		_, err := f.WriteAt([]byte("further"), size)
		return err
	}
	for name, test := range map[string]struct {
		at     int64
		change func(f *os.File) error
		want   string
	}{
		"unchanged":                  {0, func(*os.File) error { return nil }, ""},
		"grew before":                {-1, grow, grown},
		"grows at the beginning":     {0, grow, grown},
		"grows before the last byte": {size - size%(32<<10), grow, grown},
		"shrinks": {size / 2, func(f *os.File) error { return f.Truncate(10) },
			"reading the recording: it changed during the upload from 100000 to 10 bytes"},
		"is written to": {size / 2, func(f *os.File) error {
			return os.Chtimes(f.Name(), time.Time{}, time.Now().Add(time.Hour)) // as a write of any size does
		}, "reading the recording: it changed during the upload;"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.wav")
			require.NoError(t, os.WriteFile(path, noise(size), 0o600))
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
			received := int64(0)
			p := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				n, err := io.Copy(io.Discard, req.Body)
				received = n
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, err
			}), size)
			p.Audio = f
			if test.at < 0 {
				require.NoError(t, test.change(f))
			} else {
				change := sync.OnceFunc(func() { assert.NoError(t, test.change(f)) })
				p.Audio = &changing{File: f, at: test.at, change: change}
			}
			o := p.Send(t.Context())
			if test.want == "" {
				require.Equal(t, 200, o.StatusCode, "%v", o.Err)
				return
			}
			require.ErrorIs(t, o.Err, ErrUnreadable)
			require.ErrorIs(t, o.Err, ErrChanged)
			require.ErrorContains(t, o.Err, test.want)
			require.ErrorContains(t, o.Err, "upload it once nothing writes to it any more")
			require.Zero(t, o.StatusCode)
			require.Less(t, received, int64(size))
			require.False(t, test.at < 0 && received > 0, "sent in vain")
		})
	}
}

// changing changes its file at the first read from at or later.
type changing struct {
	*os.File
	at     int64
	change func()
}

func (c *changing) ReadAt(p []byte, at int64) (int, error) {
	if at >= c.at {
		c.change()
	}
	return c.File.ReadAt(p, at)
}
