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
	"strings"
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
		o := p.Do(t.Context())
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
		o := put(t, srv.URL+"/k?s=1", testbase.OwnTransport(t), 1<<20).Do(t.Context())
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

// A recording that cannot be read ends the attempt with the reason, whatever the transport does. But
// io.EOF with the last byte, as io.ReaderAt may return it, is no error.
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
		"error":         {returning(0, broken), broken, "reading the recording: the disk fell off"},
		"short":         {strings.NewReader("short"), io.ErrUnexpectedEOF, "reading the recording: it ended after 5 of 100000 bytes: unexpected EOF"},
		"no progress":   {returning(0, nil), io.ErrUnexpectedEOF, "reading the recording: it ended after 0 of 100000 bytes: unexpected EOF"},
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
				o := p.Do(t.Context())
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
			p.Audio = testbase.ReaderAtFunc(func([]byte, int64) (int, error) { block(); return 0, io.EOF })
		}, time.Minute, true, "reading the recording blocked for 1m0s, after 0 of 100000 bytes"},
		"Progress": {100_000, func(p *Put, block func()) {
			p.Progress = func(int64, int64) { block() }
		}, time.Minute, true, "reading the recording blocked for 1m0s"},
	} {
		for _, canceled := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", canceled ", canceled), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					blocked, after := make(chan struct{}), hang.after
					var over atomic.Bool
					p := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
						_, _ = io.CopyN(io.Discard, req.Body, hang.read)
						<-blocked
						return &http.Response{StatusCode: 500, Header: http.Header{}, Body: http.NoBody}, nil
					}), 100_000)
					if hang.block != nil {
						hang.block(p, func() { <-blocked })
					}
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
					defer cancel(nil)
					if canceled {
						after = 10 * time.Second
						time.AfterFunc(after, func() { cancel(cause) })
					}
					start := time.Now()
					o := p.Do(ctx)
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
			return &http.Response{StatusCode: 200, Header: http.Header{}}, nil
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
		body, answer := io.Pipe()
		o := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			go func() { _, _ = io.WriteString(answer, "<Error><Code>SlowDown</Code>") }()
			context.AfterFunc(req.Context(), func() { _ = answer.CloseWithError(req.Context().Err()) })
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: body}, nil
		}), 10).Do(t.Context())
		require.Equal(t, 503, o.StatusCode)
		require.Equal(t, "SlowDown", o.Code)
		require.NoError(t, o.Err)
		_, err := body.Read(nil)
		require.ErrorIs(t, err, io.ErrClosedPipe, "the body is closed")
	})
}

// A transport may read the recording after it has returned a response. Once Do has returned, nothing
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
		o := p.Do(t.Context())
		over.Store(true)
		require.Equal(t, 403, o.StatusCode)
		time.Sleep(time.Hour)
	})
}

// No error shows the URL, even if the transport quotes it.
func TestPut_ReportsErrorOfTransport(t *testing.T) {
	t.Parallel()
	o := put(t, target, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Put", URL: req.URL.String(), Err: &net.OpError{Op: "read", Err: errors.New("lost feedfacecafebeef")}}
	}), 10).Do(t.Context())
	require.EqualError(t, o.Err, "read: lost ***")
	_, ok := errors.AsType[*url.Error](o.Err)
	require.False(t, ok)
	o = put(t, target, testbase.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, nil }), 10).Do(t.Context())
	require.ErrorContains(t, o.Err, "neither a response nor an error")
}

func TestRead_UnderstandsErrors(t *testing.T) {
	t.Parallel()
	const good = "<Error><Code>SlowDown</Code><Message>Please wait</Message><RequestId>r1</RequestId></Error>"
	whole := Outcome{Code: "SlowDown", Message: "Please wait", RequestID: "r1"}
	notXML := Outcome{Message: "the response is not an XML error of storage: storage.example"}
	for name, test := range map[string]struct {
		body string
		want Outcome
	}{
		"S3's form":            {`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + good, whole},
		"byte order mark":      {"\ufeff" + good, whole},
		"namespace":            {`<s:Error xmlns:s="http://s3.example/"><s:Code>A</s:Code></s:Error>`, Outcome{Code: "A"}},
		"space and CDATA":      {"<Error>\n <Code>\n A<![CDATA[<B>]]> </Code>\n</Error>", Outcome{Code: "A<B>"}},
		"elements of a secret": {"<Error><Code>A</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId><StringToSign>s</StringToSign></Error>", Outcome{Code: "A"}},
		"cut after the code":   {"<Error><Code>A</Code><Message>half a sent", Outcome{Code: "A"}},
		"no code":              {"<Error><Message>m</Message></Error>", Outcome{Message: "m"}},
		"cut in the code":      {"<Error><Code>Access", notXML},
		"HTML":                 {"<!DOCTYPE html><html><head><title>503</title></head><body><Code>A</Code><br></body></html>", notXML},
		"empty":                {"", notXML},
		"JSON":                 {`{"Code":"A"}`, notXML},
		"another root":         {"<Response><Code>A</Code></Response>", notXML},
		"entity expansion":     {`<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><Error><Code>A</Code><Message>&b;</Message></Error>`, Outcome{Code: "A"}},
		"deeply nested":        {"<Error><Code>A</Code>" + strings.Repeat("<a>", 1<<20), Outcome{Code: "A"}},
		"message of 1 MiB":     {"<Error><Code>A</Code><Message>" + strings.Repeat("m", 1<<20), Outcome{Code: "A"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.NewReader(test.body)
			got := put(t, target, nil, 0).read(&http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(body)}, true)
			test.want.StatusCode = 503
			got.Message, _, _ = strings.Cut(got.Message, " sent ")
			require.Equal(t, test.want, got)
			require.LessOrEqual(t, body.Size()-int64(body.Len()), int64(64<<10))
		})
	}
}

// A response that is not from storage says who sent it, without the secrets that it echoes.
func TestRead_DescribesForeignResponses(t *testing.T) {
	t.Parallel()
	const page = "<html><head><title>Log in to feedfacecafebeef</title>"
	for name, test := range map[string]struct {
		status      int
		contentType string
		whole       bool
		want        Outcome
	}{
		"login page": {200, "text/html; charset=utf-8", true,
			Outcome{Message: `the response is not from storage: storage.example (nginx) sent "Log in to ***"`}},
		"page of a gateway": {502, "text/html", true,
			Outcome{Message: `the response is not an XML error of storage: storage.example (nginx) sent "Log in to ***"`}},
		"redirect":     {307, "text/html", false, Outcome{Message: "the Client does not follow redirects, here to login.example"}},
		"2xx":          {200, "text/plain", true, Outcome{}},
		"2xx too soon": {200, "", false, Outcome{Message: "storage.example responded before it had the whole recording"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{"Server": {"nginx"}, "Content-Type": {test.contentType}, "Location": {"https://login.example/?t=1"}}
			test.want.StatusCode = test.status
			resp := &http.Response{StatusCode: test.status, Header: h, Body: io.NopCloser(strings.NewReader(page))}
			require.Equal(t, test.want, put(t, target, nil, 0).read(resp, test.whole))
		})
	}
	resp := &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"7"}, "X-Amz-Request-Id": {"r2"}}, Body: http.NoBody}
	o := put(t, target, nil, 0).read(resp, true)
	require.Equal(t, 7*time.Second, o.RetryAfter)
	require.Equal(t, "r2", o.RequestID)
}

func TestRun_HandsOverLateValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var late atomic.Int64
		open := func(took time.Duration, err error) (int, error) {
			return Run(ctx, func() (int, error) { time.Sleep(took); return 7 + int(took/time.Hour), err }, func(n int) { late.Add(int64(n)) })
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
		require.EqualValues(t, 8, late.Load(), "once, and not after an error")
	})
}
