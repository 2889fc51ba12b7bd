package minutes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
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

// through is what happens to a request before next gets it.
type through func(req *http.Request, next http.RoundTripper) (*http.Response, error)

// onUploads returns an HTTP client for srv that passes PUTs of recordings through storage.
func onUploads(srv *minutestest.Server, storage through) minutes.Option {
	next := srv.HTTPClient().Transport
	transport := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		op, _ := testkit.Identify(req)
		if op == minutes.OpUpload {
			return storage(req, next)
		}
		return next.RoundTrip(req)
	})
	return minutes.WithHTTPClient(&http.Client{Transport: transport})
}

func TestUpload_SendsWholeRecording(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 100_001
		const contentType = "audio/L16;rate=16000;  channels=2"
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		noise, sum := testkit.Noise(size)
		source := func(ctx context.Context) (minutes.Recording, error) {
			rec, err := noise(ctx)
			rec.ContentType = contentType
			return rec, err
		}
		var last int64
		opts := &minutes.UploadOptions{Progress: func(sent, total int64) {
			assert.EqualValues(t, size, total)
			last = sent
		}}
		require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), id, source, opts))
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
	reset := minutestest.ResetUpload(60_000)
	lose := minutestest.LoseResponse()
	skewed := minutestest.RefuseUpload(403, "RequestTimeTooSkewed")
	late503 := minutestest.RefuseUpload(503, "SlowDown").AfterEffect()
	for _, test := range []struct {
		name              string
		outcome           minutes.Status // of the meeting; "" for the normal one
		faults            []minutestest.Fault
		puts, urls, polls int
		err               string // "" for success
		status            int
	}{
		{name: "none", puts: 1, urls: 1},
		{name: "reset late", faults: []minutestest.Fault{reset}, puts: 2, urls: 2, polls: 1},
		{name: "response lost", faults: []minutestest.Fault{lose}, puts: 1, urls: 1, polls: 1},
		{name: "response lost, meeting failed", outcome: minutes.StatusAudioRejected,
			faults: []minutestest.Fault{lose}, puts: 1, urls: 1, polls: 1},
		{name: "503 after it arrived", faults: []minutestest.Fault{late503}, puts: 1, urls: 2, polls: 1},
		{name: "clocks differ for a while", faults: []minutestest.Fault{skewed, skewed, skewed}, puts: 4, urls: 4},
		{name: "429 for an hour", faults: []minutestest.Fault{minutestest.RateLimit("3600")},
			puts: 1, urls: 1, err: "429", status: 429},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				srv.Script(minutestest.Script{Outcome: test.outcome})
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

// Once storage has got bytes of the recording, the next attempt takes a new URL, because storage may
// accept each URL for one PUT only. If it has stored the recording nevertheless, that is success.
func TestUpload_TakesANewURLOnceBytesWereSent(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} {
		for _, status := range []int{408, 500, 502, 503, 504} {
			t.Run(fmt.Sprintf("%d, stored %t", status, stored), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					id := testkit.Waiting(t, srv)
					used := map[string]bool{}
					puts := 0
					oneTime := onUploads(srv, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
						puts++
						switch {
						case used[req.URL.RawQuery]:
							return testkit.Canned(403, "<Error><Code>AccessDenied</Code></Error>")(req)
						case puts > 1:
							return next.RoundTrip(req)
						case stored:
							_, err := next.RoundTrip(req)
							require.NoError(t, err)
						default:
							_, err := io.Copy(io.Discard, req.Body)
							require.NoError(t, err)
						}
						used[req.URL.RawQuery] = true
						return testkit.Canned(status, "")(req)
					})
					late := minutestest.ShowStatus(minutes.StatusCreated)
					polls := minutestest.Match{Operation: minutes.OpMeetingsGet}
					srv.Inject(polls, late).During(0, 20*time.Second).Optional()
					source, sum := testkit.Noise(100_000)
					require.NoError(t, testkit.Client(srv, oneTime).Meetings.Upload(t.Context(), id, source, nil))
					testkit.RequireArrived(t, srv, id, sum)
				})
			})
		}
	}
}

// Whatever storage answers after the recording, it gets the whole of it three times at most, and the last
// time not before a minute has passed. Rejections before the recording do not count.
func TestUpload_SendsTheWholeRecordingThreeTimesAtMost(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"skewed":                  testkit.Canned(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>"),
		"503":                     testkit.Canned(503, ""),
		"429":                     testkit.Canned(429, ""),
		"lost":                    func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		"2xx that proves nothing": testkit.Canned(200, "<title>Log in</title>", "Content-Type", "text/html"),
	} {
		for _, whole := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", whole ", whole), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					var puts []time.Time
					rejects := onUploads(srv, func(req *http.Request, _ http.RoundTripper) (*http.Response, error) {
						puts = append(puts, time.Now())
						if whole {
							_, err := io.Copy(io.Discard, req.Body)
							require.NoError(t, err)
						}
						return answer(req)
					})
					id := testkit.Waiting(t, srv)
					err := testkit.Client(srv, rejects).Meetings.Upload(t.Context(), id, testkit.Audio(100), nil)
					_, ok := errors.AsType[*minutes.StorageError](err)
					require.True(t, ok, "%v", err)
					require.GreaterOrEqual(t, puts[len(puts)-1].Sub(puts[0]), time.Minute)
					if whole {
						require.Len(t, puts, 3)
						return
					}
					require.Greater(t, len(puts), 5)
				})
			})
		}
	}
}

// If no attempt has sent the whole recording, the meeting's audio is a part of it, which some storage
// keeps when the connection breaks. That is never success.
func TestUpload_ReportsAPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		keepsParts := onUploads(srv, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			part := make([]byte, 500)
			_, err := io.ReadFull(req.Body, part)
			require.NoError(t, err)
			half := req.Clone(req.Context())
			half.Body = io.NopCloser(bytes.NewReader(part))
			half.ContentLength = 500
			_, err = next.RoundTrip(half)
			require.NoError(t, err)
			return nil, syscall.ECONNRESET
		})
		c := testkit.Client(srv, keepsParts)
		id := testkit.Waiting(t, srv)
		err := c.Meetings.Upload(t.Context(), id, testkit.Audio(1000), nil)
		require.EqualError(t, err, "minutes: upload for meeting "+id+" to storage.minutes.test: "+
			"connection reset by peer; the meeting has audio, although the whole recording was never sent; "+
			"delete the meeting")
		var failed *minutes.StorageError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, id, failed.MeetingID)
		require.False(t, minutes.Retryable(err), "another upload cannot replace it")

		_, err = c.Meetings.Process(t.Context(), weekly(""), testkit.Audio(1000), nil)
		require.ErrorContains(t, err, "never sent")
		r, err := c.Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(1000), nil)
		require.NoError(t, err, "it may be another worker's")
		require.False(t, r.Uploaded)
	})
}

// An upload that breaks off says that a part may be stored.
func TestUpload_SaysThatAPartMayBeStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		id := testkit.Waiting(t, srv)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		halfway := &minutes.UploadOptions{Progress: func(sent, total int64) {
			if sent >= total/2 {
				cancel()
			}
		}}
		err := c.Meetings.Upload(ctx, id, testkit.Audio(100_000), halfway)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "; a part of the recording may be stored")
		err = c.Meetings.Upload(ctx, id, testkit.Audio(100_000), nil)
		require.ErrorIs(t, err, context.Canceled)
		require.NotContains(t, err.Error(), "a part")
	})
}

// After a 429 or 503 from storage, the Client's other uploads wait, too.
func TestUpload_HoldsBackOtherUploads(t *testing.T) {
	t.Parallel()
	for _, fault := range []minutestest.Fault{
		minutestest.RateLimit("20"),
		minutestest.RefuseUpload(503, "SlowDown").WithHeader("Retry-After", "20"),
	} {
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
			waiting := testkit.Waiting(t, srv)
			err := c.Meetings.Upload(ctx, waiting, testkit.Audio(10), nil)
			_, ok := errors.AsType[*minutes.StorageError](err)
			require.True(t, ok)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "upload for meeting "+waiting+" to storage: the rate-limit pause outlasts")
			uploads.Wait()
			require.Len(t, srv.Requests(minutes.OpMeetingsUploadURL), 2, "no URL is requested before its time")
			puts := srv.Requests(minutes.OpUpload)
			require.Len(t, puts, 3)
			require.GreaterOrEqual(t, puts[1].At.Sub(puts[0].At), 20*time.Second)
		})
	}
}

// If the response is lost while the service is out, the upload asks until the service answers. So
// it neither fails although the audio arrived, nor sends the recording again.
func TestUpload_AsksUntilTheServiceAnswers(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{40 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			id := testkit.Waiting(t, srv)
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.LoseResponse())
			srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, minutestest.BadGateway()).During(0, outage)
			began := time.Now()
			require.NoError(t, direct(srv).Meetings.Upload(t.Context(), id, testkit.Audio(100_000), nil))
			require.Greater(t, time.Since(began), outage)
			require.Len(t, srv.Requests(minutes.OpUpload), 1)
		})
	}
}

// After an attempt that may have stored the recording, an upload that gets no new URL asks for the
// audio once more.
func TestUpload_AsksAgainIfItGetsNoNewURL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.LoseResponse())
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, minutestest.ShowStatus(minutes.StatusCreated))
		second := minutestest.Match{Operation: minutes.OpMeetingsUploadURL, Nth: 2}
		srv.Inject(second, minutestest.Refuse(minutes.ErrForbidden).Delayed(time.Second))
		require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), id, testkit.Audio(100_000), nil))
		require.Len(t, srv.Requests(minutes.OpUpload), 1)
	})
}

// A response that nothing comes after may be declared as HTML, as Google Cloud Storage does.
func TestUpload_AcceptsEmptySuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		likeGCS := onUploads(srv, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil {
				resp.Header.Set("Content-Type", "text/html; charset=UTF-8")
				resp.Header.Set("Etag", `"1"`)
			}
			return resp, err
		})
		source, sum := testkit.Noise(100_000)
		require.NoError(t, testkit.Client(srv, likeGCS).Meetings.Upload(t.Context(), id, source, nil))
		testkit.RequireArrived(t, srv, id, sum)
		require.Len(t, srv.Requests(minutes.OpUpload), 1)
		require.Empty(t, srv.Requests(minutes.OpMeetingsGet), "nothing to ask for")
	})
}

// The clocks of the service's machines may differ: after a lost response, audio counts although it
// seems to be older than the status before.
func TestUpload_EndsAlthoughClocksDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Script(minutestest.Script{ClockSkew: 10 * time.Minute})
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.LoseResponse())
		c := testkit.Client(srv)
		id := testkit.Waiting(t, srv)
		before, err := c.Meetings.Get(t.Context(), id)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.NoError(t, c.Meetings.Upload(ctx, id, testkit.Audio(100_000), nil))
		require.Len(t, srv.Requests(minutes.OpUpload), 1)
		after, err := c.Meetings.Get(t.Context(), id)
		require.NoError(t, err)
		require.Less(t, after.UpdatedAt, before.UpdatedAt)
	})
}

// A file that grows while it is uploaded is not stored in part. The error says so, and the next
// upload takes the whole file.
func TestUpload_StoresNoPartOfAGrowingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.mp3")
	require.NoError(t, os.WriteFile(path, append([]byte("ID3\x04"), make([]byte, 200_000)...), 0o600))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_RDWR, 0)
	require.NoError(t, err)
	defer file.Close()
	for name, source := range map[string]minutes.Source{
		"FromFile":     minutes.FromFile(path),
		"FromReaderAt": minutes.FromReaderAt(file, 200_004, "audio/mpeg"),
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			c := testkit.Client(srv)
			id := testkit.Waiting(t, srv)
			grow := sync.OnceFunc(func() {
				_, err := file.Write(make([]byte, 100_000))
				assert.NoError(t, err)
			})
			opts := &minutes.UploadOptions{Progress: func(int64, int64) { grow() }}
			err := c.Meetings.Upload(t.Context(), id, source, opts)
			require.EqualError(t, err, "minutes: upload for meeting "+id+": reading the recording: it changed during "+
				"the upload from 200004 to 300004 bytes; upload it once nothing writes to it any more; "+
				"a part of the recording may be stored", name)
			require.True(t, minutes.Retryable(err))
			m, _ := srv.Meeting(id)
			require.Nil(t, m.Audio)

			require.NoError(t, c.Meetings.Upload(t.Context(), id, minutes.FromFile(path), nil))
			m, _ = srv.Meeting(id)
			require.EqualValues(t, 300_004, m.Audio.Size)
			require.NoError(t, file.Truncate(200_004))
		})
	}
}

// The end of an upload makes a wait poll at once: the poll that its beginning caused came too soon.
func TestUpload_MakesTheNextPollImmediate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		testbase.Timeout(t, 24*time.Hour)
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(10*time.Second))
		c := testkit.Client(srv)
		id := testkit.Waiting(t, srv)
		var waiting sync.WaitGroup
		var ended time.Time
		waiting.Go(func() {
			_, err := c.Meetings.Wait(t.Context(), id, &minutes.WaitOptions{Until: minutes.StatusAudioUploaded})
			assert.NoError(t, err)
			ended = time.Now()
		})
		time.Sleep(time.Minute)
		require.NoError(t, c.Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
		uploaded := time.Now()
		waiting.Wait()
		require.Less(t, ended.Sub(uploaded), time.Second)
	})
}

// If storage rejects the header Expect, the next attempts omit it.
func TestUpload_OmitsExpectIfStorageRejectsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(417, "ExpectationFailed"))
		var expected []string
		noted := onUploads(srv, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			expected = append(expected, req.Header.Get("Expect"))
			return next.RoundTrip(req)
		})
		c := testkit.Client(srv, noted)
		require.NoError(t, c.Meetings.Upload(t.Context(), testkit.Waiting(t, srv), testkit.Audio(10), nil))
		require.Equal(t, []string{"100-continue", ""}, expected)
	})
}

// busyStorage is a service whose upload URLs are valid for a short time, and storage that takes one
// PUT in a while and rejects all others.
type busyStorage struct {
	validity time.Duration // of a URL
	every    time.Duration // a PUT is taken

	mu      sync.Mutex
	next    time.Time      // a PUT is taken
	stored  map[string]int // by meeting
	expired int            // PUTs to expired URLs
}

func (s *busyStorage) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}
	respond := func(status int, text string) (*http.Response, error) {
		resp.StatusCode = status
		resp.Body = io.NopCloser(strings.NewReader(text))
		return resp, nil
	}
	if req.Method == http.MethodPost {
		id := strings.Split(req.URL.Path, "/")[3]
		const form = `{"upload_url":"https://storage.example/%s?issued=%d","expires_in":%d,"method":"PUT"}`
		return respond(200, fmt.Sprintf(form, id, time.Now().UnixNano(), int(s.validity.Seconds())))
	}
	issued, err := strconv.ParseInt(req.URL.Query().Get("issued"), 10, 64)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(time.Unix(0, issued)) > s.validity {
		s.expired++
		return respond(403, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
	}
	if now.Before(s.next) {
		return respond(503, "<Error><Code>SlowDown</Code></Error>")
	}
	s.next = now.Add(s.every)
	s.stored[strings.TrimPrefix(req.URL.Path, "/")]++
	_, err = io.Copy(io.Discard, req.Body)
	return resp, err
}

// The URL is requested after every other wait, so that it does not expire in a queue.
func TestUpload_RequestsTheURLLast(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		uploads  int
		validity time.Duration
		every    time.Duration
	}{
		"URLs of 15 s":         {64, 15 * time.Second, 500 * time.Millisecond},
		"a PUT in ten seconds": {100, 15 * time.Minute, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				storage := &busyStorage{validity: test.validity, every: test.every, stored: map[string]int{}}
				hc := &http.Client{Transport: storage}
				c, err := testkit.New("https://minutes.example", testkit.Key,
					minutes.WithUploadConcurrency(test.uploads), minutes.WithHTTPClient(hc))
				require.NoError(t, err)
				var uploads sync.WaitGroup
				for n := range test.uploads {
					uploads.Go(func() {
						assert.NoError(t, c.Meetings.Upload(t.Context(), fmt.Sprint("mtg_", n), testkit.Audio(10), nil))
					})
				}
				uploads.Wait()
				require.Zero(t, storage.expired)
				require.Len(t, storage.stored, test.uploads)
				for id, n := range storage.stored {
					require.Equal(t, 1, n, id)
				}
			})
		})
	}
}

// ctx ends an upload at once at each stage, and nothing is left of it.
func TestUpload_ObeysContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	type faults map[minutes.Operation]minutestest.Fault
	slow := minutestest.Delay(time.Minute)
	for name, test := range map[string]struct {
		faults faults
		after  time.Duration
	}{
		"before it begins":           {nil, 0},
		"while it requests a URL":    {faults{minutes.OpMeetingsUploadURL: slow}, 5 * time.Second},
		"while it waits for storage": {faults{minutes.OpUpload: minutestest.RateLimit("60")}, 5 * time.Second},
		"while it checks whether the audio arrived": {
			faults{minutes.OpUpload: minutestest.ResetUpload(1), minutes.OpMeetingsGet: slow}, 10 * time.Second},
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

// Four uploads that hang stop no other upload: ctx ends whatever hangs, and timeouts end what the
// Client itself waits for, which is everything except the functions of the program's own Source.
func TestUpload_FreesSlotsOfWhatHangs(t *testing.T) {
	t.Parallel()
	readingAt := func(contentType string) func(func()) minutes.Source {
		return func(block func()) minutes.Source {
			audio := testbase.ReaderAtFunc(func([]byte, int64) (int, error) {
				block()
				return 0, io.EOF
			})
			return minutes.FromReaderAt(audio, 10, contentType)
		}
	}
	const byTimeout = true
	for name, test := range map[string]struct {
		timeout bool // ends it, too
		source  func(block func()) minutes.Source
	}{
		"DialContext":                 {byTimeout, func(func()) minutes.Source { return testkit.Audio(10) }},
		"ReadAt":                      {byTimeout, readingAt("audio/wav")},
		"ReadAt for the content type": {!byTimeout, readingAt("")},
		"FromReader": {byTimeout, func(block func()) minutes.Source {
			return minutes.FromReader(testbase.ReaderFunc(func([]byte) (int, error) {
				block()
				return 0, io.EOF
			}), "audio/wav")
		}},
		"Source": {!byTimeout, func(block func()) minutes.Source {
			return func(context.Context) (minutes.Recording, error) {
				block()
				return minutes.Recording{}, io.EOF
			}
		}},
		"Close": {byTimeout, func(block func()) minutes.Source {
			audio := withClose{strings.NewReader("audio"), block}
			return testkit.Opened(minutes.Recording{Audio: audio, Size: 5, ContentType: "audio/wav"})
		}},
	} {
		for bound, within := range map[string]time.Duration{"ctx": time.Second, "timeout": time.Minute} {
			if bound == "timeout" && !test.timeout {
				continue
			}
			t.Run(name+", "+bound, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					blocked := make(chan struct{})
					block := func() { <-blocked }
					dial := func(context.Context, string, string) (net.Conn, error) {
						block()
						return nil, io.EOF
					}
					free := false
					storage := onUploads(srv, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
						if name == "DialContext" && !free {
							next = &http.Transport{DialContext: dial}
						}
						return next.RoundTrip(req)
					})
					c := testkit.Client(srv, minutes.WithMaxRetries(0), storage)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if bound == "ctx" {
						time.AfterFunc(within, cancel)
					}
					for range 4 {
						id := testkit.Waiting(t, srv)
						go func() {
							err := c.Meetings.Upload(ctx, id, test.source(block), nil)
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

// withClose is audio that calls onClose.
type withClose struct {
	io.ReaderAt
	onClose func()
}

func (c withClose) Close() error {
	c.onClose()
	return nil
}

// The error has the last response of storage, and the reason why the upload ended after it. An
// upload that fails before it reaches storage returns another error.
func TestUpload_ReturnsErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		id := testkit.Waiting(t, srv)
		forbidden := minutestest.Refuse(minutes.ErrForbidden)
		puts := minutestest.Match{Operation: minutes.OpUpload}
		srv.Inject(puts, minutestest.RefuseUpload(503, "SlowDown"), minutestest.ResetUpload(1))
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL, Nth: 2}, forbidden, forbidden)
		err := c.Meetings.Upload(t.Context(), id, testkit.Audio(100_000), nil)
		e, ok := errors.AsType[*minutes.StorageError](err)
		require.True(t, ok, "%v", err)
		require.NotEmpty(t, e.RequestID)
		require.NotEmpty(t, e.Host)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.ErrorIs(t, err, minutes.ErrForbidden)
		require.Equal(t, &minutes.StorageError{
			StatusCode: 503, Code: "SlowDown", MeetingID: id,
			Message: e.Message, RequestID: e.RequestID, Host: e.Host, Err: e.Err,
		}, e)
		require.True(t, minutes.Retryable(&minutes.StorageError{StatusCode: 503}), "one that a test has made")
		require.False(t, minutes.Retryable(&minutes.StorageError{StatusCode: 403, Code: "AccessDenied"}))

		err = c.Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)
		_, ok = errors.AsType[*minutes.Error](err)
		require.True(t, ok, "%v", err)
		require.ErrorContains(t, err, "minutes: upload for meeting "+id+": POST /v1/meetings/"+id+
			"/upload-url: 403 FORBIDDEN: ")
		err = c.Meetings.Upload(t.Context(), id, minutes.FromReaderAt(strings.NewReader("short"), 10, "audio/wav"), nil)
		require.EqualError(t, err, "minutes: upload for meeting "+id+
			": reading the recording: it ended after 5 of 10 bytes: unexpected EOF")
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
		transport := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			body := `{"upload_url":"` + test.target + `","expires_in":` + strconv.Itoa(math.MaxInt) + `,"method":"PUT"}`
			if req.URL.Host != base.Host {
				assert.Equal(t, test.target, req.URL.String())
				_, _ = io.Copy(io.Discard, req.Body)
				body = ""
			}
			text := io.NopCloser(strings.NewReader(body))
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: text, Request: req}, nil
		})
		c, err := testkit.New(test.base, testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: transport}))
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
		slow := onUploads(srv, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			resp, err := next.RoundTrip(req)
			time.Sleep(took)
			now.Add(-1)
			return resp, err
		})
		c := testkit.Client(srv, minutes.WithUploadConcurrency(2), slow)
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
		require.EqualError(t, err, "minutes: upload to storage: waiting for an upload slot: context deadline exceeded")
		require.Equal(t, time.Minute, time.Since(began))
		require.Len(t, srv.Requests(), requests)
		uploads.Wait()
		require.EqualValues(t, 2, most.Load())
		require.Equal(t, 2*took, time.Since(began))
	})
}
