package minutes_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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

// requireProgress checks what a progress callback was told in the tries of an
// upload that succeeded.
func requireProgress(t testing.TB, reports []report, size int64) {
	t.Helper()
	require.NotEmpty(t, reports)
	for i, r := range reports {
		require.Equal(t, size, r.total)
		require.Positive(t, r.sent)
		require.LessOrEqual(t, r.sent, size)
		if i > 0 && r.sent <= reports[i-1].sent {
			require.LessOrEqual(t, r.sent, int64(1024), "only a new try begins again")
		}
	}
	require.Equal(t, size, reports[len(reports)-1].sent)
}

func TestUploadArrivesWhole(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 1023, 1024, 1025, 4096, 32 << 10, 100_001, 3<<20 + 7} {
		for _, contentType := range []string{"audio/mpeg", `audio/ogg; codecs="opus"`, "audio/L16;rate=16000;  channels=2", "Audio/X-Odd+type.1"} {
			t.Run(fmt.Sprint(size, " ", contentType), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					id := testkit.Waiting(t, srv)
					rec, sum := testkit.Noise(size)
					rec.ContentType = contentType
					var reports []report
					returned := false
					require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), id, rec, &minutes.UploadOptions{Progress: func(sent, total int64) {
						assert.False(t, returned)
						reports = append(reports, report{sent, total})
					}}))
					returned = true
					testkit.RequireArrived(t, srv, id, sum)
					requireProgress(t, reports, int64(size))
					puts := srv.Requests(minutestest.OpUpload)
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

// What becomes of the audio through all kinds of trouble: it arrives once, or
// the caller is told that it has not.
func TestUploadThroughTrouble(t *testing.T) {
	t.Parallel()
	lost := minutestest.LoseReply()
	refuse := minutestest.RefuseUpload
	for _, test := range []struct {
		name   string
		faults []minutestest.Fault
		puts   int
		urls   int
		looks  int
		err    string // "" for success
		status int
	}{
		{name: "none", puts: 1, urls: 1},
		{name: "reset early", faults: []minutestest.Fault{minutestest.Reset()}, puts: 2, urls: 1, looks: 1},
		{name: "reset late", faults: []minutestest.Fault{minutestest.ResetUpload(60_000)}, puts: 2, urls: 1, looks: 1},
		{name: "reset often", faults: []minutestest.Fault{minutestest.ResetUpload(1), minutestest.ResetUpload(1 << 20), minutestest.Reset(), minutestest.ResetUpload(5000)}, puts: 5, urls: 3, looks: 4},
		{name: "reset too often", faults: []minutestest.Fault{minutestest.Reset(), minutestest.Reset(), minutestest.Reset(), minutestest.Reset(), minutestest.Reset()}, puts: 5, urls: 3, looks: 2, err: "connection reset"},
		{name: "reply lost", faults: []minutestest.Fault{lost}, puts: 1, urls: 1, looks: 1},
		{name: "reply of the last try lost", faults: []minutestest.Fault{minutestest.Reset(), minutestest.Reset(), minutestest.Reset(), minutestest.Reset(), lost}, puts: 5, urls: 3, looks: 2},
		{name: "503 after it arrived", faults: []minutestest.Fault{refuse(503, "SlowDown").AfterEffect()}, puts: 1, urls: 1, looks: 1},
		{name: "403 after it arrived", faults: []minutestest.Fault{minutestest.Reset(), refuse(403, "AccessDenied").AfterEffect()}, puts: 2, urls: 1, looks: 2},
		{name: "429 keeps the URL", faults: []minutestest.Fault{minutestest.RateLimit("2"), minutestest.RateLimit("")}, puts: 3, urls: 1},
		{name: "408 keeps the URL", faults: []minutestest.Fault{refuse(408, "RequestTimeout")}, puts: 2, urls: 1},
		{name: "400 that is S3's 408", faults: []minutestest.Fault{refuse(400, "RequestTimeout")}, puts: 2, urls: 1},
		{name: "429 after a loss: asked once", faults: []minutestest.Fault{minutestest.Reset(), minutestest.RateLimit("1"), minutestest.RateLimit("1")}, puts: 4, urls: 1, looks: 1},
		{name: "429 after a loss, the last: asked again", faults: []minutestest.Fault{minutestest.Reset(), minutestest.RateLimit("1"), minutestest.RateLimit("1"), minutestest.RateLimit("1"), minutestest.RateLimit("1")}, puts: 5, urls: 1, looks: 2, err: "429", status: 429},
		{name: "429 for an hour", faults: []minutestest.Fault{minutestest.RateLimit("3600")}, puts: 1, urls: 1, err: "429", status: 429},
		{name: "499", faults: []minutestest.Fault{refuse(499, "ClientClosedRequest")}, puts: 2, urls: 1, looks: 1},
		{name: "400", faults: []minutestest.Fault{refuse(400, "IncompleteBody")}, puts: 1, urls: 1, err: "400 IncompleteBody", status: 400},
		{name: "400 that says expired", faults: []minutestest.Fault{refuse(400, "ExpiredToken")}, puts: 2, urls: 2},
		{name: "400 that says expired again", faults: []minutestest.Fault{refuse(400, "ExpiredToken"), refuse(400, "ExpiredToken")}, puts: 2, urls: 2, err: "400 ExpiredToken", status: 400},
		{name: "another upload is under way", faults: []minutestest.Fault{refuse(409, "OperationAborted"), refuse(409, "OperationAborted")}, puts: 3, urls: 1},
		{name: "409", faults: []minutestest.Fault{refuse(409, "InvalidBucketState")}, puts: 1, urls: 1, err: "409 InvalidBucketState", status: 409},
		{name: "520 of an edge", faults: []minutestest.Fault{refuse(520, "WebServerError")}, puts: 2, urls: 1, looks: 1},
		{name: "527 of an edge", faults: []minutestest.Fault{refuse(527, "RailgunError").AfterEffect()}, puts: 1, urls: 1, looks: 1},
		{name: "528", faults: []minutestest.Fault{refuse(528, "Unknown")}, puts: 1, urls: 1, err: "528", status: 528},
		{name: "a refusal, then nothing", faults: []minutestest.Fault{refuse(503, "SlowDown"), minutestest.Reset(), minutestest.Reset(), minutestest.Reset(), minutestest.Reset()}, puts: 5, urls: 3, looks: 2, err: "503 SlowDown", status: 503},
		{name: "405", faults: []minutestest.Fault{refuse(405, "MethodNotAllowed")}, puts: 1, urls: 1, err: "405 MethodNotAllowed", status: 405},
		{name: "403", faults: []minutestest.Fault{refuse(403, "SignatureDoesNotMatch")}, puts: 1, urls: 1, err: "403 SignatureDoesNotMatch", status: 403},
		{name: "403 that says expired", faults: []minutestest.Fault{testkit.Expired()}, puts: 2, urls: 2},
		{name: "403 that says expired again", faults: []minutestest.Fault{testkit.Expired(), testkit.Expired()}, puts: 2, urls: 2, err: "403 AccessDenied: Request has expired", status: 403},
		{name: "no reply", faults: []minutestest.Fault{minutestest.Delay(time.Hour)}, puts: 2, urls: 1, looks: 1},
		{name: "no reply once it has arrived", faults: []minutestest.Fault{lost.Delayed(30 * time.Second)}, puts: 1, urls: 1, looks: 1},
		{name: "page of a gateway", faults: []minutestest.Fault{minutestest.BadGateway()}, puts: 2, urls: 1, looks: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				if test.faults != nil {
					srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, test.faults...)
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
				assert.Len(t, srv.Requests(minutestest.OpUpload), test.puts)
				assert.Len(t, srv.Requests("meetings.upload_url"), test.urls)
				assert.Len(t, srv.Requests("meetings.get"), test.looks)
				if test.err == "" {
					require.NoError(t, err)
					testkit.RequireArrived(t, srv, id, sum)
					requireProgress(t, reports, rec.Size)
					return
				}
				require.ErrorContains(t, err, test.err)
				testkit.RequireStatus(t, err, test.status)
				m, _ := srv.Meeting(id)
				require.Nil(t, m.Audio, "told that it failed, but it has arrived")
			})
		})
	}
}

// A store that is away after a try was lost: the meeting is looked at once for
// the try, and not once more, thirty seconds later, for each that never left.
func TestUploadToAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.ResetUpload(100))
		puts := 0
		hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPut {
				if puts++; puts == 2 || puts == 3 {
					_ = req.Body.Close()
					return nil, testbase.ErrRefused
				}
			}
			return srv.HTTPClient().Transport.RoundTrip(req)
		})}
		rec, sum := testkit.Noise(200_000)
		start := time.Now()
		require.NoError(t, testkit.Client(srv, minutes.WithHTTPClient(hc), minutes.WithRetries(4, time.Second, time.Second)).Meetings.Upload(t.Context(), id, rec, nil))
		testkit.RequireArrived(t, srv, id, sum)
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Len(t, srv.Requests("meetings.get"), 1)
	})
}

// A connection that breaks on the way again and again costs the retries' waits
// and no more: looks do not wait for their thirty seconds.
func TestUploadOverABadLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		broken := minutestest.ResetUpload(100_000)
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, broken, broken, broken, broken)
		rec, sum := testkit.Noise(300_000)
		start := time.Now()
		c := testkit.Client(srv, minutes.WithRetries(4, time.Second, time.Second))
		require.NoError(t, c.Meetings.Upload(t.Context(), id, rec, nil))
		testkit.RequireArrived(t, srv, id, sum)
		require.LessOrEqual(t, time.Since(start), 35*time.Second)
		require.Len(t, srv.Requests("meetings.get"), 4)
	})
}

// A URL past its time is asked for anew, once; one in its time is not.
func TestUploadURLExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.RateLimit("50"))
		rec, sum := testkit.Noise(1000)
		c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := srv.HTTPClient().Transport.RoundTrip(req)
			if err == nil && strings.HasSuffix(req.URL.Path, "/upload-url") {
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				resp.Body = io.NopCloser(strings.NewReader(strings.Replace(string(body), `"expires_in":900`, `"expires_in":49`, 1)))
				resp.ContentLength = -1
			}
			return resp, err
		})}))
		require.NoError(t, c.Meetings.Upload(t.Context(), id, rec, nil))
		testkit.RequireArrived(t, srv, id, sum)
		require.Len(t, srv.Requests("meetings.upload_url"), 2, "the wait outlasted the first URL")
	})
}

// An attempt that outlasts its URL and is refused gets a new one, whatever the
// refusal says; one within its time does not.
func TestUploadOutlastsItsURL(t *testing.T) {
	t.Parallel()
	for took, again := range map[time.Duration]bool{15*time.Minute - time.Second: false, 15 * time.Minute: true} {
		t.Run(took.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				rec, sum := testkit.Noise(1000)
				puts := 0
				c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodPut {
						if puts++; puts == 1 {
							time.Sleep(took)
							body := io.NopCloser(strings.NewReader("<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"))
							return &http.Response{StatusCode: 403, Header: http.Header{}, Body: body, Request: req}, nil
						}
					}
					return srv.HTTPClient().Transport.RoundTrip(req)
				})}), minutes.WithUploadTimeouts(time.Hour, time.Hour))
				err := c.Meetings.Upload(t.Context(), id, rec, nil)
				if !again {
					testkit.RequireStatus(t, err, 403)
					require.Equal(t, 1, puts)
					return
				}
				require.NoError(t, err)
				testkit.RequireArrived(t, srv, id, sum)
				require.Len(t, srv.Requests("meetings.upload_url"), 2)
			})
		})
	}
}

// A meeting that has failed since the reply was lost has had its audio: what
// became of it is for a wait to tell.
func TestUploadLostAndFailed(t *testing.T) {
	t.Parallel()
	for _, status := range []minutes.Status{minutes.StatusAudioRejected, minutes.StatusTranscribeBlocked, minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				require.NoError(t, srv.Script(minutestest.Script{Outcome: status}))
				id := testkit.Waiting(t, srv)
				srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.LoseReply())
				hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodGet {
						_, err := srv.Advance(id, status)
						assert.NoError(t, err)
					}
					return srv.HTTPClient().Transport.RoundTrip(req)
				})}
				require.NoError(t, testkit.Client(srv, minutes.WithHTTPClient(hc)).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
				m, _ := srv.Meeting(id)
				require.Equal(t, status, m.Status)
				require.Len(t, srv.Requests(minutestest.OpUpload), 1)
			})
		})
	}
}

// A look that somebody makes while an upload URL is under way, be it at the same
// instant, keeps the upload from making another within the floor; the service
// has seen it after the request for the URL.
func TestUploadLooksAreShared(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{time.Millisecond, time.Second} {
		t.Run(later.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				rec, sum := testkit.Noise(5000)
				var c *minutes.Client
				looked, lost := false, false
				c = testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if !lost && req.Method == http.MethodPut {
						lost = true // on its way: the service sees no upload between the looks
						_, _ = io.CopyN(io.Discard, req.Body, 1000)
						return nil, syscall.ECONNRESET
					}
					resp, err := srv.HTTPClient().Transport.RoundTrip(req)
					if !looked && strings.HasSuffix(req.URL.Path, "/upload-url") {
						looked = true
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

// A lost reply whose audio shows in the meeting only later, while everything
// that another attempt needs is refused: the meeting is looked at for as long as
// the retries allow, whatever refuses.
func TestUploadSettledLate(t *testing.T) {
	t.Parallel()
	refused := minutestest.Refuse
	for name, refusal := range map[string]minutestest.Fault{
		"because it has audio": {},
		"forbidden":            refused(minutes.ErrForbidden),
		"unauthenticated":      refused(minutes.ErrUnauthenticated),
		"invalid":              refused(minutes.ErrInvalidRequest),
		"not found":            refused(minutes.ErrNotFound),
		"out of order":         refused(minutes.ErrInternal),
		"a conflict":           minutestest.Respond(409, "application/json", `{"error":{"code":"HAS_AUDIO","message":"m","request_id":"r"}}`),
		"of no form":           minutestest.Respond(418, "text/html", "<p>no"),
		"by the edge":          minutestest.RateLimit("3600"),
		"by nobody":            minutestest.Reset(),
		"in another form":      minutestest.Respond(200, "application/json", "{}"),
	} {
		for lag := range 6 { // looks that do not see it
			t.Run(fmt.Sprint(name, ", after ", lag), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t, minutestest.WithoutAudit(minutestest.ViolationUploadURL))
					id := testkit.Waiting(t, srv)
					rec, sum := testkit.Noise(5000)
					srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.LoseReply())
					if name != "because it has audio" {
						srv.Inject(minutestest.Match{Operation: "meetings.upload_url", Nth: 2, Times: minutestest.Always}, refusal).Optional()
					}
					looks := 0
					hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
						if req.Method == http.MethodGet {
							if looks++; looks <= lag {
								return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"id":"` + id + `","status":"created"}`)), Request: req}, nil
							}
						}
						return srv.HTTPClient().Transport.RoundTrip(req)
					})}
					require.NoError(t, testkit.Client(srv, minutes.WithHTTPClient(hc)).Meetings.Upload(t.Context(), id, rec, nil))
					testkit.RequireArrived(t, srv, id, sum)
					require.Equal(t, lag+1, looks)
					puts := 1
					if lag > 1 {
						puts = 2
					}
					require.Len(t, srv.Requests(minutestest.OpUpload), puts)
				})
			})
		}
	}
}

// Where nobody can tell whether the audio arrived, the caller learns both
// reasons.
func TestUploadCannotBeSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.RefuseUpload(500, "InternalError"))
		srv.Inject(minutestest.Match{Operation: "meetings.get"}, minutestest.Refuse(minutes.ErrUnauthenticated))
		err := testkit.Client(srv).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)
		testkit.RequireStatus(t, err, 500)
		require.ErrorIs(t, err, minutes.ErrUnauthenticated)
	})
}

// The recording itself goes wrong: the caller is told so, and nothing is tried
// again.
func TestUploadOfABadRecording(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	data := strings.Repeat("a", 100_000)
	for _, test := range []struct {
		name  string
		audio io.ReaderAt
		is    error
		ok    bool
	}{
		{"shorter than it says", strings.NewReader(data[:50_000]), io.ErrUnexpectedEOF, false},
		{"empty", strings.NewReader(""), io.ErrUnexpectedEOF, false},
		{"one byte short", strings.NewReader(data[:99_999]), io.ErrUnexpectedEOF, false},
		{"longer than it says", strings.NewReader(data + data), nil, true},
		{"fails at once", testbase.ReaderAtFunc(func([]byte, int64) (int, error) { return 0, broken }), broken, false},
		{"fails on the way", testbase.ReaderAtFunc(func(p []byte, at int64) (int, error) {
			if at > 70_000 {
				return 0, broken
			}
			return copy(p, data[at:]), nil
		}), broken, false},
		{"reads less than asked for", testbase.ReaderAtFunc(func(p []byte, at int64) (int, error) { return copy(p[:1+len(p)/2], data[at:]), broken }), broken, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				err := testkit.Client(srv).Meetings.Upload(t.Context(), id, minutes.Recording{Audio: test.audio, Size: 100_000, ContentType: "audio/mpeg"}, nil)
				synctest.Wait()
				m, _ := srv.Meeting(id)
				if test.ok {
					require.NoError(t, err)
					require.EqualValues(t, 100_000, m.Audio.Size)
					return
				}
				require.ErrorIs(t, err, test.is)
				require.ErrorContains(t, err, "recording")
				testkit.RequireStatus(t, err, 0)
				require.Len(t, srv.Requests("meetings.upload_url"), 1)
				require.Len(t, srv.Requests(minutestest.OpUpload), 1)
				require.Empty(t, srv.Requests("meetings.get"))
				require.Nil(t, m.Audio)
			})
		})
	}
}

// An upload of which no byte moves is given up after a minute, and one without a
// reply five minutes after its last byte.
func TestUploadStalls(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		read  int // bytes of the body that the store takes
		limit time.Duration
	}{{"nothing read", 0, time.Minute}, {"some read", 20_000, time.Minute}, {"all read, never answered", 1 << 30, 5 * time.Minute}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				rec, sum := testkit.Noise(500_000)
				deaf := stubborn(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.CopyN(io.Discard, r.Body, int64(test.read))
					<-r.Context().Done()
				})
				tries := 0
				var gaveUp time.Duration
				hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodPut {
						if tries++; tries == 1 {
							start := time.Now()
							defer func() { gaveUp = time.Since(start) }()
							return deaf.RoundTrip(req)
						}
					}
					return srv.HTTPClient().Transport.RoundTrip(req)
				})}
				require.NoError(t, testkit.Client(srv, minutes.WithHTTPClient(hc)).Meetings.Upload(t.Context(), id, rec, nil))
				testkit.RequireArrived(t, srv, id, sum)
				require.Equal(t, 2, tries)
				require.GreaterOrEqual(t, gaveUp, test.limit)
				require.LessOrEqual(t, gaveUp, test.limit+20*time.Second)
			})
		})
	}
}

// An upload that is slow but moves is never cut, however long it takes.
func TestSlowUploadIsNotCut(t *testing.T) {
	t.Parallel()
	for _, progress := range []bool{false, true} {
		t.Run(fmt.Sprint("progress ", progress), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				rec, sum := testkit.Noise(360 << 10) // 1 KiB each 10 s: an hour
				hash := sha256.New()
				slow := stubborn(func(w http.ResponseWriter, r *http.Request) {
					for {
						if _, err := io.CopyN(hash, r.Body, 1<<10); err != nil {
							return
						}
						time.Sleep(10 * time.Second)
					}
				})
				tries := 0
				hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodPut {
						tries++
						return slow.RoundTrip(req)
					}
					return srv.HTTPClient().Transport.RoundTrip(req)
				}), Timeout: time.Second}
				opts := &minutes.UploadOptions{}
				var reports []report
				if progress {
					opts.Progress = func(sent, total int64) { reports = append(reports, report{sent, total}) }
				}
				start := time.Now()
				require.NoError(t, testkit.Client(srv, minutes.WithHTTPClient(hc)).Meetings.Upload(t.Context(), id, rec, opts))
				require.GreaterOrEqual(t, time.Since(start), time.Hour-time.Minute)
				require.Equal(t, 1, tries)
				require.Equal(t, sum, hex.EncodeToString(hash.Sum(nil)))
				if progress {
					requireProgress(t, reports, rec.Size)
				}
			})
		})
	}
}

// stubborn is a store of its own behind pipes: what the handler does not read
// stays with the client.
func stubborn(h http.HandlerFunc) http.RoundTripper {
	return &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Second, DialTLSContext: testbase.PipeTo(h)}
}

// ctx ends an upload at once at each stage, and nothing is left of it.
func TestUploadIsCancelled(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for _, test := range []struct {
		name  string
		fault func(srv *minutestest.Server)
		after time.Duration
	}{
		{"while it asks for a URL", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: "meetings.upload_url"}, minutestest.Delay(time.Minute))
		}, 5 * time.Second},
		{"while the store thinks", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.Delay(50*time.Second))
		}, 5 * time.Second},
		{"while the store is silent for a third minute", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, Times: minutestest.Always}, minutestest.Delay(time.Hour))
		}, 170 * time.Second},
		{"in a back-off", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.RateLimit("30"))
		}, 5 * time.Second},
		{"while it looks whether the audio arrived", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.Reset())
			srv.Inject(minutestest.Match{Operation: "meetings.get"}, minutestest.Delay(time.Minute))
		}, 10 * time.Second},
		{"while it asks for another URL", func(srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, testkit.Expired())
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
	t.Run("while the body is on its way", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			id := testkit.Waiting(t, srv)
			deaf := stubborn(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.CopyN(io.Discard, r.Body, 70_000)
				<-r.Context().Done()
			})
			hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				if req.Method == http.MethodPut {
					return deaf.RoundTrip(req)
				}
				return srv.HTTPClient().Transport.RoundTrip(req)
			})}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			start := time.Now()
			var over atomic.Bool
			rec, _ := testkit.Noise(500_000)
			err := testkit.Client(srv, minutes.WithHTTPClient(hc)).Meetings.Upload(ctx, id, rec, &minutes.UploadOptions{Progress: func(int64, int64) { assert.False(t, over.Load()) }})
			over.Store(true)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 20*time.Second, time.Since(start))
			testkit.RequireStatus(t, err, 0)
		})
	})
}

// Upload obeys ctx although the recording is being read, and no read or call of
// Progress begins after its return.
func TestUploadIsDoneWithTheRecording(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		var over atomic.Bool
		slow := testbase.ReaderAtFunc(func(p []byte, at int64) (int, error) {
			assert.False(t, over.Load())
			time.Sleep(8 * time.Second)
			return len(p), nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		start := time.Now()
		err := testkit.Client(srv).Meetings.Upload(ctx, id, minutes.Recording{Audio: slow, Size: 1 << 20, ContentType: "audio/mpeg"}, &minutes.UploadOptions{
			Progress: func(int64, int64) { assert.False(t, over.Load()) },
		})
		over.Store(true)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.InDelta(t, 100*time.Second, time.Since(start), float64(time.Second))
		time.Sleep(time.Hour)
	})
}

// The same over a transport that does not wait for its own reads.
func TestUploadIsDoneWithTheRecordingWhateverTheTransport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		var over atomic.Bool
		slow := testbase.ReaderAtFunc(func(p []byte, _ int64) (int, error) {
			time.Sleep(8 * time.Second)
			assert.False(t, over.Load())
			return len(p), nil
		})
		hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodPut {
				return srv.HTTPClient().Transport.RoundTrip(req)
			}
			go func() { _, _ = io.Copy(io.Discard, req.Body) }()
			time.Sleep(20 * time.Second)
			return nil, testbase.ErrRefused
		})}
		err := testkit.Client(srv, minutes.WithHTTPClient(hc), minutes.WithRetries(0, 0, 0)).Meetings.Upload(t.Context(), id, minutes.Recording{Audio: slow, Size: 1 << 20, ContentType: "audio/mpeg"}, &minutes.UploadOptions{
			Progress: func(int64, int64) { assert.False(t, over.Load()) },
		})
		over.Store(true)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		time.Sleep(time.Hour)
	})
}

// Every try reads with a reader of its own, from the beginning.
func TestUploadReadsFromTheBeginning(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "talk.mp3")
	rec, sum := testkit.Noise(300_000)
	data := make([]byte, rec.Size)
	_, err := rec.Audio.ReadAt(data, 0)
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
				err := testkit.Client(srv).Meetings.Upload(t.Context(), id, minutes.Recording{Audio: f, Size: rec.Size, ContentType: "audio/mpeg"}, nil)
				assert.NoError(t, err)
				m, _ := srv.Meeting(id)
				assert.Equal(t, sum, m.Audio.SHA256)
			})
		}
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.ResetUpload(90_000), minutestest.ResetUpload(200_000), minutestest.Reset())
		uploads.Wait()
	})
	at, err := f.Seek(0, io.SeekCurrent)
	require.NoError(t, err)
	require.EqualValues(t, 1234, at, "the caller's offset is the caller's")
}

// Where no new URL is to be had, the store's refusal is told with that.
func TestUploadCannotBeRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.RefuseUpload(503, "SlowDown"), minutestest.RefuseUpload(503, "SlowDown"))
		srv.Inject(minutestest.Match{Operation: "meetings.upload_url", Nth: 2}, minutestest.Refuse(minutes.ErrForbidden))
		err := testkit.Client(srv).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)
		testkit.RequireStatus(t, err, 503)
		require.ErrorIs(t, err, minutes.ErrForbidden)
	})
}

// A URL that is said to be good for ages is no old one.
func TestUploadURLForAges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := srv.HTTPClient().Transport.RoundTrip(req)
			if err == nil && strings.HasSuffix(req.URL.Path, "/upload-url") {
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				resp.Body = io.NopCloser(strings.NewReader(strings.Replace(string(body), `"expires_in":900`, `"expires_in":10000000000`, 1)))
				resp.ContentLength = -1
			}
			return resp, err
		})}
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.RefuseUpload(429, "SlowDown"))
		require.NoError(t, testkit.Client(srv, minutes.WithHTTPClient(hc)).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil))
		require.Len(t, srv.Requests("meetings.upload_url"), 1)
	})
}

// A proxy that knows no Expect gets the body without, on the same URL, and that
// costs no repeat.
func TestUploadWithoutExpect(t *testing.T) {
	t.Parallel()
	for _, never := range []bool{false, true} {
		t.Run(fmt.Sprint("refused for good ", never), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				rec, sum := testkit.Noise(100_000)
				var expects []string
				hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodPut {
						expects = append(expects, req.Header.Get("Expect"))
						if never || req.Header.Get("Expect") != "" {
							return &http.Response{StatusCode: 417, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
						}
					}
					return srv.HTTPClient().Transport.RoundTrip(req)
				})}
				var told []int
				observe := minutes.WithObserver(func(_ context.Context, e minutes.Event) {
					if a, ok := e.(minutes.Attempt); ok && a.Operation == minutes.OpUpload {
						told = append(told, a.StatusCode)
					}
				})
				start := time.Now()
				err := testkit.Client(srv, minutes.WithHTTPClient(hc), minutes.WithRetries(0, 0, 0), observe).Meetings.Upload(t.Context(), id, rec, nil)
				require.Equal(t, []string{"100-continue", ""}, expects)
				require.Len(t, told, 2, "each attempt is told of")
				require.Equal(t, 417, told[0])
				require.Zero(t, time.Since(start))
				require.Len(t, srv.Requests("meetings.upload_url"), 1)
				if never {
					testkit.RequireStatus(t, err, 417)
					return
				}
				require.NoError(t, err)
				testkit.RequireArrived(t, srv, id, sum)
			})
		})
	}
}

// A store that wants a longer wait than a minute is told on at once.
func TestUploadAskedToWaitForLong(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status  int
		asked   string
		limit   time.Duration // of ctx
		told    time.Duration
		repeats bool
	}{
		{429, "120", time.Hour, 2 * time.Minute, false},
		{503, "120", time.Hour, 2 * time.Minute, false},
		{503, "3600", time.Hour, time.Hour, false},
		{503, "50", 10 * time.Second, 50 * time.Second, false},
		{503, "50", time.Hour, 0, true},
		{503, "60", time.Hour, 0, true},
		{503, "61", time.Hour, 61 * time.Second, false},
		{429, "61", time.Hour, 61 * time.Second, false},
		{500, "120", time.Hour, 0, true}, // it has no Retry-After there
	} {
		t.Run(fmt.Sprint(test.status, " ", test.asked, " of ", test.limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				puts := 0
				hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodPut {
						if puts++; puts == 1 {
							return &http.Response{StatusCode: test.status, Header: http.Header{"Retry-After": {test.asked}}, Body: http.NoBody, Request: req}, nil
						}
					}
					return srv.HTTPClient().Transport.RoundTrip(req)
				})}
				ctx, cancel := context.WithTimeout(t.Context(), test.limit)
				defer cancel()
				start := time.Now()
				err := testkit.Client(srv, minutes.WithHTTPClient(hc)).Meetings.Upload(ctx, id, testkit.Audio(10), nil)
				if test.repeats {
					require.NoError(t, err)
					return
				}
				require.Zero(t, time.Since(start), "at once")
				e, ok := errors.AsType[*minutes.StorageError](err)
				require.True(t, ok)
				require.Equal(t, test.told, e.RetryAfter)
				require.Equal(t, test.status, e.StatusCode)
			})
		})
	}
}

// The error has the last reply that any attempt received, and what ended the
// last attempt.
func TestStorageErrorKeepsTheLastRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.Reset(), minutestest.RefuseUpload(503, "SlowDown"), testkit.Expired())
		puts := 0
		hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPut {
				if puts++; puts > 3 {
					return nil, testbase.ErrRefused
				}
			}
			return srv.HTTPClient().Transport.RoundTrip(req)
		})}
		err := testkit.Client(srv, minutes.WithHTTPClient(hc)).Meetings.Upload(t.Context(), id, testkit.Audio(10), nil)
		require.Equal(t, 5, puts)
		testkit.RequireStatus(t, err, 403)
		require.ErrorContains(t, err, "Request has expired")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// A proxy that takes in the whole recording, to scan it, may take longer than a
// body may stand still; both limits can be set.
func TestUploadTimeouts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		opts  []minutes.Option
		scan  time.Duration
		tries int
	}{
		{"as they are", nil, 4 * time.Minute, 1},
		{"as they are, too long", nil, 10 * time.Minute, 2},
		{"longer", []minutes.Option{minutes.WithUploadTimeouts(time.Second, time.Hour)}, 10 * time.Minute, 1},
		{"shorter", []minutes.Option{minutes.WithUploadTimeouts(time.Hour, time.Second)}, 90 * time.Second, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				rec, sum := testkit.Noise(100_000)
				tries := 0
				hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method != http.MethodPut {
						return srv.HTTPClient().Transport.RoundTrip(req)
					}
					data, err := io.ReadAll(req.Body)
					if err != nil {
						return nil, err
					}
					if tries++; tries == 1 {
						select {
						case <-req.Context().Done():
							return nil, req.Context().Err()
						case <-time.After(test.scan):
						}
					}
					again := req.Clone(req.Context())
					again.Body = io.NopCloser(bytes.NewReader(data))
					return srv.HTTPClient().Transport.RoundTrip(again)
				})}
				require.NoError(t, testkit.Client(srv, append(test.opts, minutes.WithHTTPClient(hc))...).Meetings.Upload(t.Context(), id, rec, nil))
				testkit.RequireArrived(t, srv, id, sum)
				require.Equal(t, test.tries, tries)
			})
		})
	}
	for _, bad := range [][2]time.Duration{{0, time.Minute}, {time.Minute, 0}, {-1, 1}, {1, -1}} {
		_, err := minutes.New("https://minutes.example", testkit.Key, minutes.WithUploadTimeouts(bad[0], bad[1]))
		e, ok := errors.AsType[*minutes.ParamError](err)
		require.True(t, ok, "%v", bad)
		require.Equal(t, "WithUploadTimeouts", e.Param)
	}
}

// A proxy of https that lets nothing through: the store knows nothing, so the
// service is asked nothing, and the proxy is named.
func TestUploadBehindADeadProxy(t *testing.T) {
	t.Parallel()
	for _, alive := range []bool{false, true} {
		t.Run(fmt.Sprint("answers ", alive), func(t *testing.T) {
			t.Parallel()
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }))
			defer proxy.Close()
			addr := proxy.Listener.Addr().String()
			if !alive {
				proxy.Close()
			}
			tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr, User: url.UserPassword("user", "pass-word")})}
			asked := 0
			c, err := testkit.New("https://minutes.example", testkit.Key, minutes.WithRetries(3, 0, 0), minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				if req.URL.Host == "storage.example" {
					return tr.RoundTrip(req)
				}
				asked++
				body := `{"upload_url":"https://storage.example/k?s=1","expires_in":900,"method":"PUT"}`
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
			})}))
			require.NoError(t, err)
			err = c.Meetings.Upload(t.Context(), "mtg_1", testkit.Audio(10), nil)
			testkit.RequireStatus(t, err, 0)
			require.ErrorContains(t, err, addr)
			require.NotContains(t, err.Error(), "pass-word")
			require.Equal(t, 1, asked, "calls of the API")
		})
	}
}

// A store that keeps what it got of a broken upload: that is not the recording,
// and Upload says so. Process does, unless another worker may have uploaded.
func TestUploadOfAPart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		call func(c *minutes.Client, rec minutes.Recording) error
		ok   bool
	}{
		{"Upload", func(c *minutes.Client, rec minutes.Recording) error {
			return c.Meetings.Upload(context.Background(), "mtg_1", rec, nil)
		}, false},
		{"Process", func(c *minutes.Client, rec minutes.Recording) error {
			_, err := c.Meetings.Process(context.Background(), &minutes.MeetingCreateParams{Title: "x", Date: "2026-11-20"}, rec, nil)
			return err
		}, false},
		{"Finish", func(c *minutes.Client, rec minutes.Recording) error {
			_, err := c.Meetings.Finish(context.Background(), "mtg_1", func() (minutes.Recording, error) { return rec, nil }, nil)
			return err
		}, true},
		{"Process beside others", func(c *minutes.Client, rec minutes.Recording) error {
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

func TestUploadContentMD5(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		rec, sum := testkit.Noise(100_000)
		data := make([]byte, rec.Size)
		_, err := rec.Audio.ReadAt(data, 0)
		require.NoError(t, err)
		want := md5.Sum(data)
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.ResetUpload(50_000))
		c := testkit.Client(srv)
		opts := &minutes.UploadOptions{ContentMD5: true}
		require.NoError(t, c.Meetings.Upload(t.Context(), id, rec, opts))
		testkit.RequireArrived(t, srv, id, sum)
		for _, put := range srv.Requests(minutestest.OpUpload) {
			require.Equal(t, base64.StdEncoding.EncodeToString(want[:]), put.Header.Get("Content-MD5"))
		}

		// What cannot be read is found out before anything is sent.
		before := len(srv.Requests())
		rec.Size++
		err = c.Meetings.Upload(t.Context(), id, rec, opts)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorContains(t, err, "recording")
		testkit.RequireStatus(t, err, 0)

		// ctx ends the reading.
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Second, func() { cancel(cause) })
		let := make(chan struct{})
		rec.Audio = testbase.ReaderAtFunc(func([]byte, int64) (int, error) { <-let; return 0, nil })
		start := time.Now()
		err = c.Meetings.Upload(ctx, id, rec, opts)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
		require.InDelta(t, 10*time.Second, time.Since(start), float64(time.Second))
		require.Len(t, srv.Requests(), before)
		close(let)
	})
}

// A recording that gives nothing is given up, and one that blocks, or a Progress
// that does, is left alone when ctx ends.
func TestUploadOfWhatBlocks(t *testing.T) {
	t.Parallel()
	t.Run("nothing, for good", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			id := testkit.Waiting(t, srv)
			nothing := testbase.ReaderAtFunc(func([]byte, int64) (int, error) { return 0, nil })
			err := testkit.Client(srv).Meetings.Upload(t.Context(), id, minutes.Recording{Audio: nothing, Size: 10, ContentType: "audio/mpeg"}, nil)
			require.ErrorIs(t, err, io.ErrNoProgress)
			synctest.Wait()
			require.Len(t, srv.Requests(minutestest.OpUpload), 1)
		})
	})
	for _, what := range []string{"ReadAt", "Progress"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				let := make(chan struct{})
				var calls atomic.Int64
				block := func(which string) {
					if n := calls.Add(1); which == what && n > 10 {
						<-let
					}
				}
				rec, _ := testkit.Noise(1 << 20)
				src := rec.Audio
				rec.Audio = testbase.ReaderAtFunc(func(p []byte, at int64) (int, error) { block("ReadAt"); return src.ReadAt(p, at) })
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				start := time.Now()
				err := testkit.Client(srv).Meetings.Upload(ctx, id, rec, &minutes.UploadOptions{Progress: func(int64, int64) { block("Progress") }})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.InDelta(t, 20*time.Second, time.Since(start), float64(time.Second))
				before := calls.Load()
				close(let)
				synctest.Wait()
				require.Equal(t, before, calls.Load())
			})
		})
	}
}

// Only a service on this machine may have its storage on this machine without
// TLS.
func TestUploadTargets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		base, target string
		refused      string // "" for none
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
				body := `{"upload_url":"` + test.target + `","expires_in":900,"method":"PUT"}`
				if req.URL.Host != base.Host {
					puts++
					assert.Equal(t, test.target, req.URL.String())
					body = ""
				}
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
			})}))
			require.NoError(t, err)
			err = c.Meetings.Upload(t.Context(), "mtg_1", testkit.Audio(10), nil)
			if test.refused == "" {
				require.NoError(t, err)
				require.Equal(t, 1, puts)
				return
			}
			require.ErrorContains(t, err, test.refused)
			require.NotContains(t, err.Error(), "s=1")
			testkit.RequireStatus(t, err, 200)
			require.Zero(t, puts)
		})
	}
}

func ExampleMeetingsService_Upload() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"})
	if err != nil {
		log.Fatal(err)
	}
	// A file is opened with OpenRecording; this comes from elsewhere.
	rec, err := minutes.RecordingFromReader(strings.NewReader(strings.Repeat("sound", 1000)), "audio/mpeg")
	if err != nil {
		log.Fatal(err)
	}
	defer rec.Close()

	var last int64
	err = client.Meetings.Upload(ctx, m.ID, rec, &minutes.UploadOptions{
		Progress: func(sent, total int64) { last = 100 * sent / total },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d %% of %d bytes\n", last, rec.Size)
	// Output: 100 % of 5000 bytes
}

// As many uploads are under way as there are places for, whoever began them. What
// waits for a place is not opened, sends nothing, does not stall and obeys its
// context; nobody overtakes.
func TestUploadsHavePlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const took = 10 * time.Minute // longer than anything may stall
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		var now, most int
		var mu sync.Mutex
		change := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			now += by
			most = max(most, now)
		}
		network := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if op, _ := testkit.Identify(req); op == minutestest.OpUpload {
				change(1)
				defer change(-1)
				defer time.Sleep(took)
			}
			return srv.HTTPClient().Transport.RoundTrip(req)
		})
		c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: network}), minutes.WithUploads(2), minutes.WithUploadTimeouts(time.Minute, time.Hour))
		open := func() (minutes.Recording, error) {
			mu.Lock()
			defer mu.Unlock()
			assert.Less(t, now, 2, "a recording is opened when there is room for it")
			return testkit.Audio(10), nil
		}
		opts := &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded}
		began := time.Now()
		var wg sync.WaitGroup
		var ended []time.Duration
		start := func(f func() error) {
			wg.Go(func() {
				assert.NoError(t, f())
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, time.Since(began).Truncate(time.Minute))
			})
			synctest.Wait()
		}
		first, second := testkit.Waiting(t, srv), testkit.Waiting(t, srv)
		start(func() error { return c.Meetings.Upload(t.Context(), first, testkit.Audio(10), nil) })
		start(func() error { _, err := c.Meetings.Finish(t.Context(), second, open, opts); return err })
		start(func() error {
			_, err := c.Meetings.Process(t.Context(), weekly("3"), testkit.Audio(10), opts)
			return err
		})
		start(func() error {
			for _, err := range c.Meetings.ProcessAll(t.Context(), slices.Values([]minutes.Job{{Params: weekly("4"), Open: open}}), opts) {
				return err
			}
			return nil
		})

		n := len(srv.Requests())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		third := testkit.Waiting(t, srv)
		err := c.Meetings.Upload(ctx, third, testkit.Audio(10), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, ok := errors.AsType[*minutes.StorageError](err)
		assert.True(t, ok, "%v", err)
		assert.Equal(t, time.Minute, time.Since(began), "it obeys its context")
		assert.Len(t, srv.Requests(), n+1, "it has asked for nothing")

		wg.Wait()
		assert.Equal(t, 2, most)
		assert.Equal(t, []time.Duration{took, took, 2 * took, 2 * took}, ended)
		require.NoError(t, c.Meetings.Upload(t.Context(), third, testkit.Audio(10), nil), "every place was given back")
	})
}

// A place that comes free as its context ends is not lost.
func TestPlaceThatComesTooLate(t *testing.T) {
	t.Parallel()
	for range 50 { // which of the two is seen first is chance
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			c := testkit.Client(srv, minutes.WithUploads(1))
			first, second := testkit.Waiting(t, srv), testkit.Waiting(t, srv)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() {
				_, err := c.Meetings.Finish(t.Context(), first, func() (minutes.Recording, error) {
					time.Sleep(time.Second)
					cancel()
					return minutes.Recording{}, os.ErrNotExist // which gives the place back
				}, nil)
				assert.ErrorIs(t, err, os.ErrNotExist)
			})
			synctest.Wait()
			_ = c.Meetings.Upload(ctx, second, testkit.Audio(10), nil)
			wg.Wait()
			testkit.Uploaded(t, c, "third")
		})
	}
}

// A Client serves one bubble after the other, and has no goroutine of one wait for
// the clock of another.
func TestPlacesInAnyBubble(t *testing.T) {
	t.Parallel()
	srv := minutestest.New()
	defer srv.Close()
	c := testkit.Client(srv, minutes.WithUploads(1))
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, Times: 3}, minutestest.Delay(time.Minute))
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() { testkit.Uploaded(t, c, fmt.Sprint("meeting ", i)) })
			}
			wg.Wait()
		})
	}
}

// A refusal that a later attempt did not get is kept, that of Expect, too.
func TestUploadWithoutExpectIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			switch {
			case req.Header.Get("Expect") != "":
				return &http.Response{StatusCode: 417, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			case req.Method == http.MethodPut:
				return nil, syscall.ECONNRESET
			}
			return srv.HTTPClient().Transport.RoundTrip(req)
		})}
		err := testkit.Client(srv, minutes.WithHTTPClient(hc), minutes.WithRetries(1, 0, 0)).Meetings.Upload(t.Context(), testkit.Waiting(t, srv), testkit.Audio(10), nil)
		testkit.RequireStatus(t, err, 417)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

// Where the context's deadline comes before a second look may be made, an upload
// whose reply was lost does not wait for that: it goes on, or tells its failure.
func TestUploadNearItsDeadline(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ lost, retries int }{"goes on": {1, 4}, "tells": {9, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := testkit.Waiting(t, srv)
				puts := 0
				hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodPut {
						if puts++; puts <= test.lost {
							_, _ = io.Copy(io.Discard, req.Body)
							return nil, syscall.ECONNRESET
						}
					}
					return srv.HTTPClient().Transport.RoundTrip(req)
				})}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				start := time.Now()
				err := testkit.Client(srv, minutes.WithHTTPClient(hc), minutes.WithRetries(test.retries, time.Second, time.Second)).Meetings.Upload(ctx, id, testkit.Audio(1000), nil)
				require.Equal(t, test.lost > test.retries, err != nil, "%v", err)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 2, puts)
				require.Less(t, time.Since(start), 5*time.Second)
			})
		})
	}
}

// Audio that arrives a moment after its reply was lost is no failure, also where
// nothing is to be repeated: the look comes after the wait that a repeat would have.
func TestUploadThatLandsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		id := testkit.Waiting(t, srv)
		rec, sum := testkit.Noise(1000)
		hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodPut {
				return srv.HTTPClient().Transport.RoundTrip(req)
			}
			audio, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			late := req.Clone(context.WithoutCancel(req.Context()))
			late.Body = io.NopCloser(bytes.NewReader(audio))
			time.AfterFunc(100*time.Millisecond, func() {
				resp, err := srv.HTTPClient().Transport.RoundTrip(late)
				if assert.NoError(t, err) {
					assert.NoError(t, resp.Body.Close())
				}
			})
			return nil, syscall.ECONNRESET
		})}
		require.NoError(t, testkit.Client(srv, minutes.WithHTTPClient(hc), minutes.WithRetries(0, time.Second, time.Second)).Meetings.Upload(t.Context(), id, rec, nil))
		testkit.RequireArrived(t, srv, id, sum)
	})
}
