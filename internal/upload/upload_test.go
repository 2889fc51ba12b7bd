package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// A service is the API and the storage of one upload. It logs its requests.
type service struct {
	puts  []roundTripper // one per attempt; after these, every attempt succeeds
	urls  []error        // one per request for a URL; nil for success
	valid time.Duration  // of the URLs; an hour if 0

	audio    bool      // the meeting has audio
	audioAt  time.Time // since when; earlier checks do not see it
	lag      int       // number of checks that do not see it
	checkErr error     // of every check

	log      []string // "url", "put" and "check", in order
	lastPoll time.Time
}

var errAPI = errors.New("the API failed")

func (s *service) UploadURL(ctx context.Context) (*url.URL, time.Duration, error) {
	s.log = append(s.log, "url")
	s.lastPoll = time.Time{}
	if len(s.urls) > 0 {
		err := s.urls[0]
		s.urls = s.urls[1:]
		if err != nil {
			return nil, 0, err
		}
	}
	if s.valid == 0 {
		s.valid = time.Hour
	}
	target, err := url.Parse(fmt.Sprint("https://storage.example/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&s=", len(s.log)))
	return target, s.valid, errors.Join(err, ctx.Err())
}

func (s *service) HasAudio(ctx context.Context) (bool, error) {
	if err := backoff.Sleep(ctx, time.Until(s.lastPoll.Add(pollInterval))); err != nil {
		return false, err
	}
	s.log = append(s.log, "check")
	s.lastPoll = time.Now()
	if s.audio {
		s.lag--
	}
	return s.audio && s.lag < 0 && !time.Now().Before(s.audioAt), s.checkErr
}

func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	s.log = append(s.log, "put")
	if len(s.puts) == 0 {
		s.audio = true
		return swallow(req)
	}
	put := s.puts[0]
	s.puts = s.puts[1:]
	return put(req)
}

// upload returns an Upload of a recording of ten bytes to the service.
func (s *service) upload(retries int) *Upload {
	return &Upload{
		API: s, Transport: s, Recording: audio(10), UserAgent: []string{"test/1"},
		Timeouts: Timeouts{Stall: time.Minute, Response: 5 * time.Minute},
		Retries:  backoff.Policy{Max: retries, WaitMin: time.Second, WaitMax: time.Second},
		Begin:    func(ctx context.Context, _ int) (context.Context, error) { return ctx, nil },
		Observe:  func(context.Context, Outcome, bool, time.Duration) {},
	}
}

// lose reads n bytes and breaks the connection.
func lose(n int64) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		_, _ = io.CopyN(io.Discard, req.Body, n)
		return nil, syscall.ECONNRESET
	}
}

// answer reads n bytes and sends an error of storage.
func answer(n int64, status int, code string, header ...string) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		_, _ = io.CopyN(io.Discard, req.Body, n)
		resp := &http.Response{StatusCode: status, Header: http.Header{}, Request: req}
		for i := 0; i < len(header); i += 2 {
			resp.Header.Set(header[i], header[i+1])
		}
		resp.Body = io.NopCloser(strings.NewReader("<Error><Code>" + code + "</Code></Error>"))
		return resp, nil
	}
}

// noDial is a failure to connect.
func noDial(*http.Request) (*http.Response, error) { return nil, errRefused }

// lands stores the audio, whatever put returns.
func (s *service) lands(put roundTripper) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		s.audio = true
		return put(req)
	}
}

// An upload recovers from all kinds of failures, with four retries a second apart: audio arrives
// once, or the caller gets the reason.
func TestUpload_RecoversFromFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		s     service
		lands int // the attempt, from 1, that stores the audio although it fails; 0: none
		log   string
		want  string // status and code of the failure, or its last cause; "" for success
		took  time.Duration
	}{
		{name: "success", log: "url put"},
		{name: "no connection", s: service{puts: []roundTripper{noDial, lose(0), noDial}}, log: "url put put put put", took: 3 * time.Second},
		{name: "no connection in all attempts", s: service{puts: []roundTripper{noDial, noDial, noDial, noDial, noDial}}, log: "url put put put put put", want: "connection refused", took: 4 * time.Second},
		{name: "lost half-way", s: service{puts: []roundTripper{lose(5)}}, log: "url put check put", took: time.Second},
		{
			name: "lost half-way four times", s: service{puts: []roundTripper{lose(5), lose(5), lose(5), lose(5)}},
			log: "url put check put check url put check put check url put", took: 62 * time.Second,
		},
		{
			name: "lost half-way in all attempts", s: service{puts: []roundTripper{lose(5), lose(5), lose(5), lose(5), lose(5)}},
			log: "url put check put check url put check put check url put check", want: "connection reset", took: 63 * time.Second,
		},
		{name: "lost half-way, then no connection: one check", s: service{puts: []roundTripper{lose(5), noDial, noDial}}, log: "url put check put put put", took: 3 * time.Second},
		{name: "response lost", s: service{puts: []roundTripper{lose(10)}}, lands: 1, log: "url put check", took: time.Second},
		{name: "response lost, audio shows late", s: service{puts: []roundTripper{lose(10)}, lag: 1}, lands: 1, log: "url put check check", took: 31 * time.Second},
		{name: "response lost, but the audio did not arrive", s: service{puts: []roundTripper{lose(10)}}, log: "url put check check put", took: 31 * time.Second},
		{
			name: "response of the last attempt lost", s: service{puts: []roundTripper{noDial, noDial, noDial, noDial, lose(10)}, lag: 1}, lands: 5,
			log: "url put put put put put check check", took: 35 * time.Second,
		},
		{name: "503, but the audio arrived", s: service{puts: []roundTripper{answer(10, 503, "SlowDown"), answer(0, 403, "AccessDenied")}}, lands: 1, log: "url put put check", took: 2 * time.Second},
		{name: "503 half-way", s: service{puts: []roundTripper{answer(5, 503, "SlowDown")}}, log: "url put put", took: time.Second},
		{
			name: "503 in all attempts", s: service{puts: []roundTripper{answer(5, 503, ""), answer(5, 503, ""), answer(5, 503, ""), answer(5, 503, ""), answer(10, 503, "SlowDown")}},
			log: "url put put put put put check check", want: "503 SlowDown", took: 35 * time.Second,
		},
		{name: "503 before a byte was sent", s: service{puts: []roundTripper{answer(0, 503, "SlowDown")}}, log: "url put put", took: time.Second},
		{name: "499", s: service{puts: []roundTripper{answer(1, 499, "")}}, log: "url put put", took: time.Second},
		{name: "429 keeps the URL", s: service{puts: []roundTripper{answer(0, 429, ""), answer(0, 429, "")}}, log: "url put put put", took: 2 * time.Second},
		{name: "429 until the URL expires", s: service{puts: []roundTripper{answer(0, 429, "")}, valid: time.Second}, log: "url put url put", took: time.Second},
		{name: "400 RequestTimeout", s: service{puts: []roundTripper{answer(5, 400, "RequestTimeout")}}, log: "url put put", took: time.Second},
		{name: "400 IncompleteBody", s: service{puts: []roundTripper{answer(5, 400, "IncompleteBody")}}, log: "url put put", took: time.Second},
		{name: "400 BadDigest", s: service{puts: []roundTripper{answer(10, 400, "BadDigest")}}, log: "url put put", took: time.Second},
		{name: "409 ConditionalRequestConflict", s: service{puts: []roundTripper{answer(10, 409, "ConditionalRequestConflict")}}, log: "url put put", took: time.Second},
		{name: "200 before the recording was sent, no audio", s: service{puts: []roundTripper{answer(0, 200, "")}}, log: "url put check", want: "200 ", took: time.Second},
		{name: "200 with a page, no audio", s: service{puts: []roundTripper{answer(10, 200, "", "Content-Type", "text/html")}}, log: "url put check check", want: "200 ", took: 31 * time.Second},
		{name: "200 with a page, audio shows late", s: service{puts: []roundTripper{answer(10, 200, "", "Content-Type", "text/html")}, lag: 1}, lands: 1, log: "url put check check", took: 31 * time.Second},
		{name: "409 OperationAborted", s: service{puts: []roundTripper{answer(5, 409, "OperationAborted")}}, log: "url put put", took: time.Second},
		{name: "404", s: service{puts: []roundTripper{answer(0, 404, "NoSuchKey")}}, log: "url put", want: "404 NoSuchKey"},
		{name: "an expired URL", s: service{puts: []roundTripper{answer(0, 400, "ExpiredToken")}}, log: "url put url put", took: time.Second},
		{name: "two expired URLs", s: service{puts: []roundTripper{answer(0, 400, "ExpiredToken"), answer(0, 400, "ExpiredToken")}}, log: "url put url put", want: "400 ExpiredToken", took: time.Second},
		{name: "lost half-way, then 403: the URL may be used up", s: service{puts: []roundTripper{lose(5), answer(0, 403, "AccessDenied")}}, log: "url put check put check url put", took: 31 * time.Second},
		{name: "response lost, then 403, audio shows late", s: service{puts: []roundTripper{lose(10), answer(0, 403, "AccessDenied")}, lag: 3}, lands: 1, log: "url put check check put check check", took: 91 * time.Second},
		{
			name: "the last response is kept", s: service{puts: []roundTripper{answer(5, 503, "SlowDown"), noDial, noDial, noDial, noDial}},
			log: "url put put put put put check", want: "503 SlowDown", took: 5 * time.Second,
		},
		{name: "Retry-After", s: service{puts: []roundTripper{answer(0, 503, "", "Retry-After", "50")}}, log: "url put put", took: 50 * time.Second},
		{name: "Retry-After of a minute", s: service{puts: []roundTripper{answer(0, 429, "", "Retry-After", "60")}}, log: "url put put", took: 60 * time.Second},
		{name: "longer Retry-After", s: service{puts: []roundTripper{answer(0, 429, "SlowDown", "Retry-After", "61")}}, log: "url put", want: "429 SlowDown"},
		{name: "Retry-After of a 500 is ignored", s: service{puts: []roundTripper{answer(0, 500, "", "Retry-After", "120")}}, log: "url put put", took: time.Second},
		{name: "request for a URL fails", s: service{urls: []error{errAPI}}, log: "url", want: errAPI.Error()},
		{name: "request for a new URL fails", s: service{puts: []roundTripper{lose(5), lose(5)}, urls: []error{nil, errAPI}}, log: "url put check put check url check", want: errAPI.Error(), took: 31 * time.Second},
		{name: "check fails", s: service{puts: []roundTripper{lose(5)}, checkErr: errAPI}, log: "url put check", want: errAPI.Error(), took: time.Second},
		{name: "audio, but no attempt sent all of it", s: service{puts: []roundTripper{lose(5)}}, lands: 1, log: "url put check", want: ErrPartialAudio.Error(), took: time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &test.s
				if test.lands > 0 {
					s.puts[test.lands-1] = s.lands(s.puts[test.lands-1])
				}
				start := time.Now()
				f := s.upload(4).Do(t.Context())
				require.Equal(t, test.log, strings.Join(s.log, " "))
				require.GreaterOrEqual(t, time.Since(start), test.took)
				require.LessOrEqual(t, time.Since(start), test.took+time.Second) // which is added to a Retry-After by chance
				if test.want == "" {
					require.Nil(t, f)
					require.True(t, s.audio)
					return
				}
				require.NotNil(t, f)
				require.Equal(t, test.log == "url", f.Host == "")
				if f.StatusCode != 0 {
					require.Equal(t, test.want, fmt.Sprint(f.StatusCode, " ", f.Code))
					return
				}
				require.ErrorContains(t, f.Causes[len(f.Causes)-1], test.want)
			})
		})
	}
}

// If other workers may upload to the same meeting, an upload succeeds with their audio. It checks
// for audio before it fails.
func TestUpload_AcceptsAudioOfOtherWorkers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		s   service
		log string
		ok  bool
	}{
		"no URL because there is audio":     {service{urls: []error{errAPI}, audio: true}, "url check", true},
		"no URL, and no audio":              {service{urls: []error{errAPI}}, "url check", false},
		"no URL, and the check fails":       {service{urls: []error{errAPI}, checkErr: errAPI}, "url check", false},
		"rejected because there is audio":   {service{puts: []roundTripper{answer(0, 403, "AccessDenied")}, audio: true}, "url put check", true},
		"rejected, and no audio":            {service{puts: []roundTripper{answer(0, 403, "AccessDenied")}}, "url put check", false},
		"lost half-way, and there is audio": {service{puts: []roundTripper{lose(5)}, audio: true}, "url put check", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := test.s.upload(4)
				u.Shared = true
				f := u.Do(t.Context())
				require.Equal(t, test.log, strings.Join(test.s.log, " "))
				require.Equal(t, test.ok, f == nil)
				if test.s.checkErr != nil {
					require.ErrorContains(t, f.Causes[0], "checking whether the audio arrived: the API failed; before that: the API failed")
				}
			})
		})
	}
}

// After a lost response, the upload finds audio that the service shows only at a later check, even
// if all other requests fail.
func TestUpload_NoticesLateAudio(t *testing.T) {
	t.Parallel()
	for lag := range 6 {
		t.Run(fmt.Sprint(lag), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{urls: []error{nil, errAPI, errAPI, errAPI}, lag: lag}
				s.puts = []roundTripper{s.lands(lose(10)), answer(0, 403, "AccessDenied")}
				require.Nil(t, s.upload(4).Do(t.Context()))
				require.Equal(t, lag+1, strings.Count(strings.Join(s.log, " "), "check"))
			})
		})
	}
}

// If audio arrives shortly after its response was lost, the upload succeeds even without retries,
// because it waits before the check.
func TestUpload_NoticesLateAudioWithoutRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		s.puts = []roundTripper{func(req *http.Request) (*http.Response, error) {
			s.audio, s.audioAt = true, time.Now().Add(100*time.Millisecond)
			return lose(10)(req)
		}}
		require.Nil(t, s.upload(0).Do(t.Context()))
	})
}

// If storage rejects an attempt and the URL has expired by then, the upload gets a new URL,
// whatever the error says.
func TestUpload_RenewsURLThatExpiredDuringAttempt(t *testing.T) {
	t.Parallel()
	for took, log := range map[time.Duration]string{59 * time.Second: "url put", 60 * time.Second: "url put url put"} {
		t.Run(took.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{valid: time.Minute, puts: []roundTripper{func(req *http.Request) (*http.Response, error) {
					time.Sleep(took)
					return answer(0, 403, "AccessDenied")(req)
				}}}
				u := s.upload(4)
				u.Timeouts.Stall = time.Hour
				u.Do(t.Context())
				require.Equal(t, log, strings.Join(s.log, " "))
			})
		})
	}
}

// If a proxy does not support Expect, the upload retries without it, on the same URL. The proxy's
// response is kept.
func TestUpload_RetriesWithoutExpect(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then roundTripper // nil for success
		want int
		is   error
	}{"retry stored": {}, "retry rejected": {answer(0, 417, ""), 417, nil}, "retry lost": {lose(0), 417, syscall.ECONNRESET}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var expects []string
				s := &service{puts: []roundTripper{func(req *http.Request) (*http.Response, error) {
					expects = append(expects, req.Header.Get("Expect"))
					return answer(0, 417, "")(req)
				}, func(req *http.Request) (*http.Response, error) {
					expects = append(expects, req.Header.Get("Expect"))
					if test.then != nil {
						return test.then(req)
					}
					return swallow(req)
				}}}
				u := s.upload(1)
				var numbers []int
				u.Begin = func(ctx context.Context, n int) (context.Context, error) {
					numbers = append(numbers, n)
					return ctx, nil
				}
				observed := 0
				u.Observe = func(_ context.Context, _ Outcome, retry bool, _ time.Duration) {
					observed++
					assert.Equal(t, observed == 1, retry)
				}
				f := u.Do(t.Context())
				require.Equal(t, []string{"100-continue", ""}, expects)
				require.Equal(t, []int{1, 2}, numbers)
				require.Equal(t, 2, observed)
				if test.want == 0 {
					require.Nil(t, f)
					return
				}
				require.Equal(t, test.want, f.StatusCode)
				require.Equal(t, test.is != nil, len(f.Causes) > 0 && errors.Is(f.Causes[0], test.is))
			})
		})
	}
}

// If ctx would end before a second check, the upload omits that check: it retries or fails at once.
func TestUpload_SkipsSecondCheckNearDeadline(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		puts    []roundTripper
		retries int
		log     string
	}{
		"retries": {[]roundTripper{lose(10)}, 4, "url put check put"},
		"fails":   {[]roundTripper{lose(10), lose(10)}, 1, "url put check put"},
		"no time": {[]roundTripper{answer(0, 429, "", "Retry-After", "20")}, 4, "url put"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{puts: test.puts}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				start := time.Now()
				f := s.upload(test.retries).Do(ctx)
				require.Equal(t, test.log, strings.Join(s.log, " "))
				require.Equal(t, name == "retries", f == nil)
				require.Less(t, time.Since(start), 5*time.Second)
			})
		})
	}
}

// When ctx ends, the upload fails at once in every stage, with ctx's error and cause.
func TestUpload_ObeysContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	hang := func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	for name, test := range map[string]struct {
		s     service
		after time.Duration
	}{
		"before it begins":        {service{}, 0},
		"in an attempt":           {service{puts: []roundTripper{hang}}, 5 * time.Second},
		"in a third attempt":      {service{puts: []roundTripper{hang, hang, hang}}, 150 * time.Second},
		"before a retry":          {service{puts: []roundTripper{answer(0, 429, "", "Retry-After", "30")}}, 5 * time.Second},
		"before the second check": {service{puts: []roundTripper{lose(10)}}, 10 * time.Second},
		"before the first check":  {service{puts: []roundTripper{lose(5)}}, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if test.after == 0 {
					cancel(cause)
				}
				start := time.Now()
				time.AfterFunc(test.after, func() { cancel(cause) })
				f := test.s.upload(4).Do(ctx)
				require.Equal(t, test.after, time.Since(start))
				require.ErrorIs(t, errors.Join(f.Causes...), context.Canceled)
				require.ErrorIs(t, errors.Join(f.Causes...), cause)
			})
		})
	}
}

// A slow upload continues as long as it makes progress.
func TestUpload_SlowProgressIsNoStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{puts: []roundTripper{func(req *http.Request) (*http.Response, error) {
			for {
				time.Sleep(10 * time.Second)
				if _, err := io.CopyN(io.Discard, req.Body, 1<<10); err != nil {
					return swallow(req)
				}
			}
		}}}
		u := s.upload(0)
		u.Recording = audio(360 << 10)
		sent := int64(0)
		u.Progress = func(n, total int64) {
			assert.Greater(t, n, sent)
			assert.Equal(t, u.Recording.Size, total)
			sent = n
		}
		start := time.Now()
		require.Nil(t, u.Do(t.Context()))
		require.GreaterOrEqual(t, time.Since(start), time.Hour)
		require.Equal(t, u.Recording.Size, sent)
	})
}

// An attempt that makes no progress is given up and retried; so is one without a response.
func TestUpload_RetriesAfterStall(t *testing.T) {
	t.Parallel()
	for n, log := range map[int64]string{0: "url put put", 5: "url put check put", 10: "url put check check put"} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{puts: []roundTripper{func(req *http.Request) (*http.Response, error) {
					_, _ = io.CopyN(io.Discard, req.Body, n)
					<-req.Context().Done()
					return nil, req.Context().Err()
				}}}
				require.Nil(t, s.upload(4).Do(t.Context()))
				require.Equal(t, log, strings.Join(s.log, " "))
			})
		})
	}
}

// If the recording itself fails, the upload fails with the reason, without a retry or a check.
func TestUpload_FailsIfRecordingIsUnreadable(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	for name, test := range map[string]struct {
		audio io.ReaderAt
		is    error // nil for success
	}{
		"shorter than its size":   {strings.NewReader("12345"), io.ErrUnexpectedEOF},
		"empty":                   {strings.NewReader(""), io.ErrUnexpectedEOF},
		"longer than its size":    {strings.NewReader("12345678901"), nil},
		"fails at once":           {testbase.ReaderAtFunc(func([]byte, int64) (int, error) { return 0, broken }), broken},
		"fails half-way":          {testbase.ReaderAtFunc(func(p []byte, _ int64) (int, error) { return len(p) / 2, broken }), broken},
		"returns nothing forever": {testbase.ReaderAtFunc(func([]byte, int64) (int, error) { return 0, nil }), io.ErrNoProgress},
		"ends its goroutine":      {testbase.ReaderAtFunc(func([]byte, int64) (int, error) { runtime.Goexit(); return 0, nil }), errGoexit},
	} {
		for _, md5 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " md5 ", md5), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := new(service)
					u := s.upload(4)
					u.Recording.Audio, u.WithoutMD5 = test.audio, !md5
					f := u.Do(t.Context())
					if test.is == nil {
						require.Nil(t, f)
						return
					}
					require.Zero(t, f.StatusCode)
					require.False(t, f.Retryable)
					require.Len(t, f.Causes, 1)
					require.ErrorIs(t, f.Causes[0], test.is)
					if !errors.Is(test.is, errGoexit) {
						require.ErrorContains(t, f.Causes[0], "the recording could not be read")
					}
					require.Equal(t, map[bool]string{false: "url put", true: "url"}[md5], strings.Join(s.log, " "))
				})
			})
		}
	}
}
