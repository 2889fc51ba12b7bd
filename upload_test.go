package minutes_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// onUploads returns an HTTP client for srv that passes PUTs of recordings through storage.
func onUploads(srv *minutestest.Server, storage func(req *http.Request, next http.RoundTripper) (*http.Response, error)) minutes.Option {
	next := srv.HTTPClient().Transport
	return minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if op, _ := testkit.Identify(req); op == minutes.OpUpload {
			return storage(req, next)
		}
		return next.RoundTrip(req)
	})})
}

func TestUpload_SendsWholeRecording(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size, contentType = 100_001, "audio/L16;rate=16000;  channels=2"
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		noise, sum := testkit.Noise(size)
		source := func(ctx context.Context) (minutes.Recording, error) {
			rec, err := noise(ctx)
			rec.ContentType = contentType
			return rec, err
		}
		var last int64
		require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), id, source, &minutes.UploadOptions{Progress: func(sent, total int64) {
			assert.EqualValues(t, size, total)
			last = sent
		}}))
		testkit.RequireArrived(t, srv, id, sum)
		require.EqualValues(t, size, last)
		puts := srv.Requests(minutes.OpUpload)
		require.Len(t, puts, 1)
		require.Equal(t, []string{contentType}, puts[0].Header["Content-Type"])
		require.Empty(t, puts[0].Header["Authorization"])
	})
}

// An upload recovers from failures between client, storage and service: the audio arrives once, or
// the caller gets an error. internal/storage tests the rules.
func TestUpload_RecoversFromFailures(t *testing.T) {
	t.Parallel()
	reject, reset := minutestest.RefuseUpload, minutestest.ResetUpload
	for _, test := range []struct {
		name              string
		script            minutestest.Script
		faults            []minutestest.Fault
		puts, urls, polls int
		err               string // "" for success
		status            int
	}{
		{name: "none", puts: 1, urls: 1},
		{name: "reset late", faults: []minutestest.Fault{reset(60_000)}, puts: 2, urls: 2, polls: 1},
		{name: "response lost", faults: []minutestest.Fault{minutestest.LoseResponse()}, puts: 1, urls: 1, polls: 1},
		{name: "response lost, meeting failed", script: minutestest.Script{Outcome: minutes.StatusAudioRejected}, faults: []minutestest.Fault{minutestest.LoseResponse()}, puts: 1, urls: 1, polls: 1},
		{name: "503 after it arrived", faults: []minutestest.Fault{reject(503, "SlowDown").AfterEffect()}, puts: 2, urls: 1, polls: 1},
		{name: "429 for an hour", faults: []minutestest.Fault{minutestest.RateLimit("3600")}, puts: 1, urls: 1, err: "429", status: 429},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				srv.Script(test.script)
				id := testkit.Waiting(t, srv)
				if test.faults != nil {
					srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, test.faults...)
				}
				source, sum := testkit.Noise(200_000)
				err := testkit.Client(srv).Meetings.Upload(t.Context(), id, source, nil)
				synctest.Wait()
				assert.Len(t, srv.Requests(minutes.OpUpload), test.puts)
				assert.Len(t, srv.Requests("meetings.upload_url"), test.urls)
				assert.Len(t, srv.Requests("meetings.get"), test.polls)
				if test.err == "" {
					require.NoError(t, err)
					testkit.RequireArrived(t, srv, id, sum)
					return
				}
				require.ErrorContains(t, err, test.err)
				testkit.RequireStatus(t, err, test.status)
				m, _ := srv.Meeting(id)
				require.Nil(t, m.Audio, "reported as failed, but it has arrived")
			})
		})
	}
}

// After a 429 or 503 from storage, the Client's other uploads wait, too.
func TestUpload_HoldsBackOtherUploads(t *testing.T) {
	t.Parallel()
	for _, fault := range []minutestest.Fault{minutestest.RateLimit("20"), minutestest.RefuseUpload(503, "SlowDown").WithHeader("Retry-After", "20")} {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, fault)
			c := testkit.Client(srv)
			var uploads sync.WaitGroup
			for range 2 {
				id := testkit.Waiting(t, srv)
				uploads.Go(func() { assert.NoError(t, c.Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)) })
				time.Sleep(time.Second)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			held, ok := errors.AsType[*minutes.StorageError](c.Meetings.Upload(ctx, testkit.Waiting(t, srv), testkit.Audio(10), nil))
			require.True(t, ok)
			require.ErrorIs(t, held, context.DeadlineExceeded)
			uploads.Wait()
			puts := srv.Requests(minutes.OpUpload)
			require.Len(t, puts, 3)
			require.GreaterOrEqual(t, puts[1].At.Sub(puts[0].At), 20*time.Second)
		})
	}
}

// If the response is lost while the service is out, the upload asks until the service answers. So it
// neither fails although the audio arrived, nor sends the recording again.
func TestUpload_AsksUntilTheServiceAnswers(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{40 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			id := testkit.Waiting(t, srv)
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.LoseResponse())
			srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, minutestest.BadGateway()).During(0, outage)
			began := time.Now()
			require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), id, testkit.Audio(100_000), nil))
			require.Greater(t, time.Since(began), outage)
			require.Len(t, srv.Requests(minutes.OpUpload), 1)
		})
	}
}

// After an attempt that may have stored the recording, an upload that gets no new URL asks for the audio once more.
func TestUpload_AsksAgainIfItGetsNoNewURL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.LoseResponse())
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, minutestest.ShowStatus(minutes.StatusCreated))
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL, Nth: 2}, minutestest.Refuse(minutes.ErrForbidden).Delayed(time.Second))
		require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), id, testkit.Audio(100_000), nil))
		require.Len(t, srv.Requests(minutes.OpUpload), 1)
	})
}

// ctx ends an upload at once at each stage, and nothing is left of it.
func TestUpload_ObeysContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for name, test := range map[string]struct {
		faults map[minutes.Operation]minutestest.Fault
		after  time.Duration
	}{
		"before it begins":                          {nil, 0},
		"while it requests a URL":                   {map[minutes.Operation]minutestest.Fault{minutes.OpMeetingsUploadURL: minutestest.Delay(time.Minute)}, 5 * time.Second},
		"while it waits for storage":                {map[minutes.Operation]minutestest.Fault{minutes.OpUpload: minutestest.RateLimit("60")}, 5 * time.Second},
		"while it checks whether the audio arrived": {map[minutes.Operation]minutestest.Fault{minutes.OpUpload: minutestest.ResetUpload(1), minutes.OpMeetingsGet: minutestest.Delay(time.Minute)}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				for op, fault := range test.faults {
					srv.Inject(minutestest.Match{Operation: op}, fault)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				start := time.Now()
				if test.after == 0 {
					cancel(cause)
				}
				time.AfterFunc(test.after, func() { cancel(cause) })
				err := testkit.Client(srv).Meetings.Upload(ctx, id, testkit.Audio(100_000), nil)
				require.Equal(t, test.after, time.Since(start), "at once")
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, cause)
			})
		})
	}
}

// Four uploads that hang stop no other upload: they end with UploadTimeouts.Stall, or with ctx.
func TestUpload_FreesSlotsOfWhatHangs(t *testing.T) {
	t.Parallel()
	reading := func(contentType string) func(func()) minutes.Source {
		return func(block func()) minutes.Source {
			return minutes.FromReaderAt(testbase.ReaderAtFunc(func([]byte, int64) (int, error) { block(); return 0, io.EOF }), 10, contentType)
		}
	}
	for name, hung := range map[string]func(block func()) minutes.Source{
		"DialContext":                 func(func()) minutes.Source { return testkit.Audio(10) },
		"ReadAt":                      reading("audio/wav"),
		"ReadAt for the content type": reading(""),
		"FromReader": func(block func()) minutes.Source {
			return minutes.FromReader(testbase.ReaderFunc(func([]byte) (int, error) { block(); return 0, io.EOF }), "audio/wav")
		},
		"Source": func(block func()) minutes.Source {
			return func(context.Context) (minutes.Recording, error) { block(); return minutes.Recording{}, io.EOF }
		},
		"Close": func(block func()) minutes.Source {
			return testkit.Opened(minutes.Recording{Audio: blockedCloser{strings.NewReader("audio"), block}, Size: 5, ContentType: "audio/wav"})
		},
	} {
		for bound, within := range map[string]time.Duration{"ctx": time.Second, "timeout": time.Minute} {
			if bound == "timeout" && (name == "Source" || name == "Close") {
				continue // nobody knows whether it makes progress
			}
			t.Run(name+", "+bound, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					blocked := make(chan struct{})
					block := func() { <-blocked }
					free := false
					c := testkit.Client(srv, minutes.WithMaxRetries(0), onUploads(srv, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
						if name == "DialContext" && !free {
							next = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { block(); return nil, io.EOF }}
						}
						return next.RoundTrip(req)
					}))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if bound == "ctx" {
						time.AfterFunc(within, cancel)
					}
					for range 4 {
						id := testkit.Waiting(t, srv)
						go func() {
							err := c.Meetings.Upload(ctx, id, hung(block), nil)
							assert.Equal(t, name == "Close", err == nil, "%v", err) // the audio has arrived
						}()
					}
					synctest.Wait()
					free = true
					start := time.Now()
					require.NoError(t, c.Meetings.Upload(t.Context(), testkit.Waiting(t, srv), testkit.Audio(10), nil))
					require.Less(t, time.Since(start), within+time.Second)
					close(blocked)
					synctest.Wait()
				})
			})
		}
	}
}

type blockedCloser struct {
	io.ReaderAt
	block func()
}

func (b blockedCloser) Close() error { b.block(); return nil }

// The error has the last response of storage, and the reason why the upload ended after it. An upload
// that fails before it reaches storage is no *StorageError.
func TestUpload_ReturnsErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c, id := testkit.Client(srv), testkit.Waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(503, "SlowDown"), minutestest.ResetUpload(1))
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL, Nth: 2}, minutestest.Refuse(minutes.ErrForbidden), minutestest.Refuse(minutes.ErrForbidden))
		err := c.Meetings.Upload(t.Context(), id, testkit.Audio(100_000), nil)
		e, ok := errors.AsType[*minutes.StorageError](err)
		require.True(t, ok, "%v", err)
		require.NotEmpty(t, e.RequestID)
		require.NotEmpty(t, e.Host)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.ErrorIs(t, err, minutes.ErrForbidden)
		require.Equal(t, &minutes.StorageError{
			StatusCode: 503, Code: "SlowDown", MeetingID: id, Message: e.Message, RequestID: e.RequestID, Host: e.Host, Err: e.Err,
		}, e)
		require.True(t, minutes.Retryable(&minutes.StorageError{StatusCode: 503}), "one that a test has made")
		require.False(t, minutes.Retryable(&minutes.StorageError{StatusCode: 403, Code: "AccessDenied"}))

		err = c.Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)
		_, ok = errors.AsType[*minutes.Error](err)
		require.True(t, ok, "%v", err)
		require.Regexp(t, `^minutes: upload for meeting mtg_\w+: POST /v1/meetings/mtg_\w+/upload-url: 403 FORBIDDEN: `, err.Error())
		err = c.Meetings.Upload(t.Context(), id, minutes.FromReaderAt(strings.NewReader("short"), 10, "audio/wav"), nil)
		require.EqualError(t, err, "minutes: upload for meeting "+id+": reading the recording: it ended after 5 of 10 bytes: unexpected EOF")
		require.False(t, minutes.Retryable(err))
	})
}

func TestWithUploadTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(time.Minute))
		c := testkit.Client(srv, minutes.WithUploadTimeouts(minutes.UploadTimeouts{Response: time.Second}))
		start := time.Now()
		require.NoError(t, c.Meetings.Upload(t.Context(), testkit.Waiting(t, srv), testkit.Audio(10), nil))
		require.Less(t, time.Since(start), 10*time.Second)
	})
	for _, bad := range []minutes.UploadTimeouts{{Stall: -1}, {Response: -1}} {
		_, err := minutes.New("https://minutes.example", testkit.Key, minutes.WithUploadTimeouts(bad))
		testkit.RequireParamError(t, err, "WithUploadTimeouts", "")
	}
}

// Only a service on this machine may use local storage without TLS. A URL that is valid for very
// long does not overflow.
func TestUpload_ChecksTargets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ base, target, rejected string }{
		{"https://minutes.example", "https://storage.example/k?s=1", ""},
		{"https://minutes.example", "http://127.0.0.1:1/k?s=1", "https"},
		{"http://localhost:1", "http://127.0.0.1:2/k?s=1", ""},
		{"http://localhost:1", "http://storage.example/k?s=1", "https"},
		{"http://localhost:1", "://k?s=1", "not a URL"},
	} {
		base, err := url.Parse(test.base)
		require.NoError(t, err)
		c, err := testkit.New(test.base, testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			body := `{"upload_url":"` + test.target + `","expires_in":10000000000,"method":"PUT"}`
			if req.URL.Host != base.Host {
				assert.Equal(t, test.target, req.URL.String())
				_, _ = io.Copy(io.Discard, req.Body)
				body = ""
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
		})}))
		require.NoError(t, err)
		err = c.Meetings.Upload(t.Context(), "mtg_1", testkit.Audio(10), nil)
		if test.rejected == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, test.rejected)
		require.NotContains(t, err.Error(), "s=1")
		testkit.RequireStatus(t, err, 200)
	}
}

// There are as many concurrent uploads as slots. An upload that waits for a slot does not open its
// recording, sends nothing and obeys its context.
func TestUploadSlots_LimitConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const took = 4 * time.Minute
		srv := minutestest.NewServer(t)
		var now, most atomic.Int32
		c := testkit.Client(srv, minutes.WithUploadConcurrency(2), onUploads(srv, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			resp, err := next.RoundTrip(req)
			time.Sleep(took)
			now.Add(-1)
			return resp, err
		}))
		began := time.Now()
		var uploads sync.WaitGroup
		for range 4 {
			id := testkit.Waiting(t, srv)
			uploads.Go(func() { assert.NoError(t, c.Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)) })
		}
		synctest.Wait()
		requests := len(srv.Requests())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Meetings.Upload(ctx, "mtg_1", func(context.Context) (minutes.Recording, error) {
			t.Error("opened without a slot")
			return minutes.Recording{}, io.EOF
		}, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "minutes: upload to storage: waiting for an upload slot; context deadline exceeded")
		require.Equal(t, time.Minute, time.Since(began))
		require.Len(t, srv.Requests(), requests)
		uploads.Wait()
		require.EqualValues(t, 2, most.Load())
		require.Equal(t, 2*took, time.Since(began))
	})
}
