package minutes_test

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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

// A report is one call of a progress callback.
type report struct{ sent, total int64 }

// requireProgress checks the calls of a progress callback in the attempts of an
// upload that succeeded.
func requireProgress(t testing.TB, reports []report, size int64) {
	t.Helper()
	require.NotEmpty(t, reports)
	for i, r := range reports {
		require.Equal(t, size, r.total)
		require.Positive(t, r.sent)
		require.LessOrEqual(t, r.sent, size)
		if i > 0 && r.sent <= reports[i-1].sent {
			require.LessOrEqual(t, r.sent, int64(32<<10), "only a new attempt begins again")
		}
	}
	require.Equal(t, size, reports[len(reports)-1].sent)
}

func TestUpload_SendsWholeRecording(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 1024, 1025, 100_001, 3<<20 + 7} {
		for _, contentType := range []string{"audio/mpeg", `audio/ogg; codecs="opus"`, "audio/L16;rate=16000;  channels=2", "Audio/X-Odd+type.1"} {
			t.Run(fmt.Sprint(size, " ", contentType), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					id := testkit.Waiting(t, srv)
					noise, sum := testkit.Noise(size)
					rec := func(ctx context.Context) (minutes.Recording, error) {
						rec, err := noise(ctx)
						rec.ContentType = contentType
						return rec, err
					}
					var reports []report
					returned := false
					require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), id, rec, &minutes.UploadOptions{Progress: func(sent, total int64) {
						assert.False(t, returned)
						reports = append(reports, report{sent, total})
					}}))
					returned = true
					testkit.RequireArrived(t, srv, id, sum)
					requireProgress(t, reports, int64(size))
					puts := srv.Requests(minutes.OpUpload)
					require.Len(t, puts, 1)
					h := puts[0].Header
					require.Equal(t, []string{contentType}, h["Content-Type"])
					require.Equal(t, fmt.Sprint(size), h.Get("Content-Length"))
					require.Equal(t, "100-continue", h.Get("Expect"))
					for _, absent := range []string{"Authorization", "Cookie", "Transfer-Encoding", "Referer"} {
						require.Empty(t, h[absent], absent)
					}
				})
			})
		}
	}
}

// An upload recovers from failures between client, storage and service: the audio arrives once, or
// the caller gets an error. internal/upload tests the rules.
func TestUpload_RecoversFromFailures(t *testing.T) {
	t.Parallel()
	reject := minutestest.RefuseUpload
	reset := minutestest.ResetUpload
	for _, test := range []struct {
		name              string
		faults            []minutestest.Fault
		puts, urls, polls int
		err               string // "" for success
		status            int
	}{
		{name: "none", puts: 1, urls: 1},
		{name: "reset before the body", faults: []minutestest.Fault{minutestest.Reset()}, puts: 2, urls: 1},
		{name: "reset late", faults: []minutestest.Fault{reset(60_000)}, puts: 2, urls: 1, polls: 1},
		{name: "reset often", faults: []minutestest.Fault{reset(1), reset(1 << 20), reset(1), reset(5000)}, puts: 5, urls: 3, polls: 7},
		{name: "reset too often", faults: []minutestest.Fault{reset(1), reset(1), reset(1), reset(1), reset(1)}, puts: 5, urls: 3, polls: 5, err: "connection reset"},
		{name: "response lost", faults: []minutestest.Fault{minutestest.LoseResponse()}, puts: 1, urls: 1, polls: 1},
		{name: "response lost after 30 s", faults: []minutestest.Fault{minutestest.LoseResponse().Delayed(30 * time.Second)}, puts: 1, urls: 1, polls: 1},
		{name: "503 after it arrived", faults: []minutestest.Fault{reject(503, "SlowDown").AfterEffect()}, puts: 2, urls: 1, polls: 1},
		{name: "527 after it arrived", faults: []minutestest.Fault{reject(527, "RailgunError").AfterEffect()}, puts: 2, urls: 1, polls: 1},
		{name: "403 after it arrived", faults: []minutestest.Fault{reset(1), reject(403, "AccessDenied").AfterEffect()}, puts: 2, urls: 1, polls: 2},
		{name: "429", faults: []minutestest.Fault{minutestest.RateLimit("2"), minutestest.RateLimit("")}, puts: 3, urls: 1},
		{name: "429 for an hour", faults: []minutestest.Fault{minutestest.RateLimit("3600")}, puts: 1, urls: 1, err: "429", status: 429},
		{name: "404", faults: []minutestest.Fault{reject(404, "NoSuchKey")}, puts: 1, urls: 1, err: "404 NoSuchKey", status: 404},
		{name: "403 that says expired", faults: []minutestest.Fault{testkit.Expired()}, puts: 2, urls: 2},
		{name: "403 that says expired again", faults: []minutestest.Fault{testkit.Expired(), testkit.Expired()}, puts: 2, urls: 2, err: "403 AccessDenied: Request has expired", status: 403},
		{name: "an error, then lost", faults: []minutestest.Fault{reject(503, "SlowDown"), reset(1), reset(1), reset(1), reset(1)}, puts: 5, urls: 2, polls: 4, err: "503 SlowDown", status: 503},
		{name: "no response", faults: []minutestest.Fault{minutestest.Delay(time.Hour)}, puts: 2, urls: 1, polls: 1},
		{name: "page of a gateway", faults: []minutestest.Fault{minutestest.BadGateway()}, puts: 2, urls: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				if test.faults != nil {
					srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, test.faults...)
				}
				rec, sum := testkit.Noise(200_000)
				var mu sync.Mutex
				var reports []report
				err := testkit.Client(srv).Meetings.Upload(t.Context(), id, rec, &minutes.UploadOptions{Progress: func(sent, total int64) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, report{sent, total})
				}})
				synctest.Wait()
				assert.Len(t, srv.Requests(minutes.OpUpload), test.puts)
				assert.Len(t, srv.Requests("meetings.upload_url"), test.urls)
				assert.Len(t, srv.Requests("meetings.get"), test.polls)
				if test.err == "" {
					require.NoError(t, err)
					testkit.RequireArrived(t, srv, id, sum)
					requireProgress(t, reports, 200_000)
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

// If a meeting fails after the upload's response was lost, it had its audio. A wait reports the
// failure.
func TestUpload_ResponseLostAndMeetingFailed(t *testing.T) {
	t.Parallel()
	for _, status := range []minutes.Status{minutes.StatusAudioRejected, minutes.StatusTranscribeBlocked, minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				srv.Script(minutestest.Script{Outcome: status})
				id := testkit.Waiting(t, srv)
				srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.LoseResponse())
				hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodGet {
						srv.Advance(id, status)
					}
					return srv.HTTPClient().Transport.RoundTrip(req)
				})}
				require.NoError(t, testkit.Client(srv, minutes.WithHTTPClient(hc)).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
				m, _ := srv.Meeting(id)
				require.Equal(t, status, m.Status)
				require.Len(t, srv.Requests(minutes.OpUpload), 1)
			})
		})
	}
}

// A wait's poll during a request for an upload URL, even at the same instant, keeps the
// upload from polling again within the minimum poll interval: the service has seen it
// after the request.
func TestUpload_SharesPollsWithWaits(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{time.Millisecond, time.Second} {
		t.Run(later.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				rec, sum := testkit.Noise(5000)
				var c *minutes.Client
				polled, lost := false, false
				c = testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if !lost && req.Method == http.MethodPut {
						lost = true // before it arrives: the service sees no upload between the polls
						_, _ = io.CopyN(io.Discard, req.Body, 1000)
						return nil, syscall.ECONNRESET
					}
					resp, err := srv.HTTPClient().Transport.RoundTrip(req)
					if !polled && strings.HasSuffix(req.URL.Path, "/upload-url") {
						polled = true
						time.Sleep(later)
						ctx, cancel := context.WithCancel(t.Context())
						_, waitErr := c.Meetings.Wait(ctx, id, &minutes.WaitOptions{OnStatus: func(*minutes.Meeting) { cancel() }})
						assert.ErrorIs(t, waitErr, context.Canceled)
					}
					return resp, err
				})}))
				require.NoError(t, c.Meetings.Upload(t.Context(), id, rec, nil))
				testkit.RequireArrived(t, srv, id, sum)
				require.Len(t, srv.Requests("meetings.get"), 2)
			})
		})
	}
}

// ctx ends an upload at once at each stage, and nothing is left of it.
func TestUpload_ObeysContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for _, test := range []struct {
		name  string
		fault func(srv *minutestest.Server)
		after time.Duration
	}{
		{"while it requests a URL", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: "meetings.upload_url"}, minutestest.Delay(time.Minute))
		}, 5 * time.Second},
		{"before the response", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(50*time.Second))
		}, 5 * time.Second},
		{"while the store is silent for a third minute", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload, Times: minutestest.Always}, minutestest.Delay(time.Hour))
		}, 170 * time.Second},
		{"before a retry", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RateLimit("30"))
		}, 5 * time.Second},
		{"while it checks whether the audio arrived", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.ResetUpload(1))
			srv.Inject(minutestest.Match{Operation: "meetings.get"}, minutestest.Delay(time.Minute))
		}, 10 * time.Second},
		{"while it requests another URL", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, testkit.Expired())
			srv.Inject(minutestest.Match{Operation: "meetings.upload_url", Nth: 2}, minutestest.Delay(time.Minute))
		}, 10 * time.Second},
		{"before it begins", nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				if test.fault != nil {
					test.fault(srv)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				if test.after == 0 {
					cancel(cause)
				}
				start := time.Now()
				time.AfterFunc(test.after, func() { cancel(cause) })
				var over atomic.Bool
				rec, _ := testkit.Noise(100_000)
				err := testkit.Client(srv).Meetings.Upload(ctx, id, rec, &minutes.UploadOptions{Progress: func(int64, int64) { assert.False(t, over.Load()) }})
				over.Store(true)
				require.Equal(t, test.after, time.Since(start), "at once")
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, cause)
				synctest.Wait()
			})
		})
	}
}

// Every attempt reads the recording from its beginning, and leaves the caller's offset alone.
func TestUpload_ReadsFromTheBeginning(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "talk.mp3")
	noise, sum := testkit.Noise(300_000)
	rec, err := noise(t.Context())
	require.NoError(t, err)
	data := make([]byte, rec.Size)
	_, err = rec.Audio.ReadAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Seek(1234, io.SeekStart)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		var uploads sync.WaitGroup
		for range 4 { // at once, from one file
			id := testkit.Waiting(t, srv)
			uploads.Go(func() {
				err := testkit.Client(srv).Meetings.Upload(t.Context(), id, minutes.FromReaderAt(f, rec.Size, "audio/mpeg"), nil)
				assert.NoError(t, err)
				m, _ := srv.Meeting(id)
				assert.Equal(t, sum, m.Audio.SHA256)
			})
		}
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.ResetUpload(90_000), minutestest.ResetUpload(200_000), minutestest.Reset())
		uploads.Wait()
	})
	at, err := f.Seek(0, io.SeekCurrent)
	require.NoError(t, err)
	require.EqualValues(t, 1234, at, "the caller's offset is the caller's")
}

// The error has the last response of storage, and the reason why the upload ended after it.
func TestUpload_ReturnsStorageError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		lost := minutestest.ResetUpload(1)
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(503, "SlowDown"), lost, lost)
		srv.Inject(minutestest.Match{Operation: "meetings.upload_url", Nth: 2}, minutestest.Refuse(minutes.ErrForbidden))
		err := testkit.Client(srv).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)
		e, ok := errors.AsType[*minutes.StorageError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 503, e.StatusCode)
		require.Equal(t, "SlowDown", e.Code)
		require.NotEmpty(t, e.Message)
		require.NotEmpty(t, e.RequestID)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.ErrorIs(t, err, minutes.ErrForbidden)

		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RateLimit("90"))
		err = testkit.Client(srv).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)
		e, ok = errors.AsType[*minutes.StorageError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 429, e.StatusCode)
		require.Equal(t, 90*time.Second, e.RetryAfter)
		require.True(t, minutes.Retryable(err))
	})
}

// If there is no first upload URL, the error has that of UploadURL.
func TestUpload_ReturnsAPIError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: "meetings.upload_url"}, minutestest.Refuse(minutes.ErrForbidden))
		err := testkit.Client(srv).Meetings.Upload(t.Context(), testkit.Waiting(t, srv), testkit.Audio(10), nil)
		_, ok := errors.AsType[*minutes.Error](err)
		require.True(t, ok, "%v", err)
		require.ErrorIs(t, err, minutes.ErrForbidden)
		require.Regexp(t, `^minutes: upload for meeting mtg_\w+: POST /v1/meetings/mtg_\w+/upload-url: 403 FORBIDDEN: `, err.Error())
	})
}

// The header Content-MD5 and the timeouts reach the request.
func TestUpload_SendsContentMD5AndTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(time.Minute))
		id := testkit.Waiting(t, srv)
		c := testkit.Client(srv, minutes.WithUploadTimeouts(minutes.UploadTimeouts{Stall: time.Hour, Response: time.Second}), minutes.WithRetries(minutes.RetryPolicy{Max: 1}))
		start := time.Now()
		require.NoError(t, c.Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
		require.Less(t, time.Since(start), 40*time.Second, "the first attempt, given up after a second, and two status checks")
		sum := md5.Sum([]byte(strings.Repeat("a", 10)))
		for _, put := range srv.Requests(minutes.OpUpload) {
			require.Equal(t, base64.StdEncoding.EncodeToString(sum[:]), put.Header.Get("Content-MD5"))
		}
	})
	for _, bad := range [][2]time.Duration{{0, time.Minute}, {time.Minute, 0}, {-1, 1}, {1, -1}} {
		_, err := minutes.New("https://minutes.example", testkit.Key, minutes.WithUploadTimeouts(minutes.UploadTimeouts{Stall: bad[0], Response: bad[1]}))
		testkit.RequireParamError(t, err, "WithUploadTimeouts", "")
	}
}

// If storage keeps a part of a broken upload, Upload reports that. So does Process, unless another
// worker may have uploaded.
func TestUpload_ReportsPartialAudio(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		call func(c *minutes.Client, rec minutes.Source) error
		ok   bool
	}{
		{"Upload", func(c *minutes.Client, rec minutes.Source) error {
			return c.Meetings.Upload(context.Background(), "mtg_1", rec, nil)
		}, false},
		{"Process", func(c *minutes.Client, rec minutes.Source) error {
			_, err := c.Meetings.Process(context.Background(), &minutes.MeetingCreateParams{Title: "x", Date: "2026-11-20"}, rec, nil)
			return err
		}, false},
		{"Resume", func(c *minutes.Client, rec minutes.Source) error {
			_, err := c.Meetings.Resume(context.Background(), "mtg_1", rec, nil)
			return err
		}, true},
		{"Process beside others", func(c *minutes.Client, rec minutes.Source) error {
			_, err := c.Meetings.Process(context.Background(), &minutes.MeetingCreateParams{Title: "x", Date: "2026-11-20", ExternalID: "e"}, rec, nil)
			return err
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				puts := 0
				c, err := testkit.New("https://minutes.example", testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					body := `{"id":"mtg_1","status":"created"}`
					switch {
					case req.Method == http.MethodPut:
						puts++
						_, _ = io.CopyN(io.Discard, req.Body, 1000)
						return nil, syscall.ECONNRESET
					case strings.HasSuffix(req.URL.Path, "/upload-url"):
						body = `{"upload_url":"https://storage.example/k?s=1","expires_in":900,"method":"PUT"}`
					case strings.HasSuffix(req.URL.Path, "/minutes"):
						body = `{"format":"html","template_id":"t","content":"c"}`
					case puts > 0:
						body = `{"id":"mtg_1","status":"minutes_ready"}`
					}
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
				})}))
				require.NoError(t, err)
				err = test.call(c, testkit.Audio(100_000))
				require.Equal(t, 1, puts)
				if test.ok {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, minutes.ErrPartialAudio)
				require.ErrorIs(t, err, syscall.ECONNRESET)
				testkit.RequireStatus(t, err, 0)
			})
		})
	}
}

// Only a service on this machine may use local storage without TLS. A URL that is valid for very
// long does not overflow.
func TestUpload_ChecksTargets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		base, target string
		rejected     string // "" for none
	}{
		{"https://minutes.example", "https://storage.example/k?s=1", ""},
		{"https://minutes.example", "https://127.0.0.1:1/k?s=1", ""},
		{"https://minutes.example", "http://127.0.0.1:1/k?s=1", "https"},
		{"https://minutes.example", "http://localhost:1/k?s=1", "https"},
		{"https://minutes.example", "http://[::1]:1/k?s=1", "https"},
		{"https://minutes.example", "http://storage.example/k?s=1", "https"},
		{"http://localhost:1", "http://127.0.0.1:2/k?s=1", ""},
		{"https://127.0.0.1:1", "http://localhost:2/k?s=1", ""},
		{"http://[::1]:1", "https://storage.example/k?s=1", ""},
		{"http://localhost:1", "http://storage.example/k?s=1", "https"},
		{"http://localhost:1", "ftp://127.0.0.1/k?s=1", "https"},
		{"http://localhost:1", "/k?s=1", "https"},
		{"http://localhost:1", "https:///k?s=1", "no host"},
		{"http://localhost:1", "://k?s=1", "not a URL"},
	} {
		t.Run(test.base+" "+test.target, func(t *testing.T) {
			t.Parallel()
			base, err := url.Parse(test.base)
			require.NoError(t, err)
			puts := 0
			c, err := testkit.New(test.base, testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				body := `{"upload_url":"` + test.target + `","expires_in":10000000000,"method":"PUT"}`
				if req.URL.Host != base.Host {
					puts++
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
				require.Equal(t, 1, puts)
				return
			}
			require.ErrorContains(t, err, test.rejected)
			require.NotContains(t, err.Error(), "s=1")
			testkit.RequireStatus(t, err, 200)
			require.Zero(t, puts)
		})
	}
}
