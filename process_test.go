package minutes_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func weekly(externalID string) *minutes.MeetingCreateParams {
	return &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: externalID}
}

func TestProcess_TurnsARecordingIntoMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		var states []minutes.Status
		var sent int64
		closed := 0
		rec := closingAudio(5000, func() { closed++ })
		r, err := c.Meetings.Process(t.Context(), weekly("rec-1"), rec, &minutes.ProcessOptions{
			Format:     minutes.FormatMarkdown,
			Transcript: true,
			OnStatus:   func(m *minutes.Meeting) { states = append(states, m.Status) },
			Progress:   func(n, _ int64) { sent = n },
		})
		require.NoError(t, err)
		assert.True(t, r.Created)
		assert.True(t, r.Uploaded)
		assert.Equal(t, minutes.StatusMinutesReady, r.Meeting.Status)
		assert.Contains(t, r.Minutes.Content, "Weekly")
		assert.Contains(t, r.Transcript.Text, "spk_0")
		assert.EqualValues(t, 5000, sent)
		assert.Equal(t, 1, closed)
		assert.Equal(t, minutes.StatusMinutesReady, states[len(states)-1])

		before := len(srv.Requests())
		again, err := c.Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(5000), nil)
		require.NoError(t, err)
		assert.False(t, again.Created)
		assert.False(t, again.Uploaded)
		assert.Equal(t, r.Meeting.ID, again.Meeting.ID)
		assert.Equal(t, minutes.FormatHTML, again.Minutes.Format)
		assert.Len(t, srv.Requests(), before+2, "a finished job costs its create and its minutes")
	})
}

// An ExternalID that belongs to a meeting of another date never leads to its minutes, and no recording
// goes into that meeting.
func TestProcess_RejectsTheExternalIDOfAnotherMeeting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		taken, _, err := c.Meetings.Create(t.Context(), weekly("x"))
		require.NoError(t, err)
		board := &minutes.MeetingCreateParams{Title: "Board", Date: "2026-11-27", ExternalID: "x"}
		check := func(r *minutes.Result, err error) {
			require.ErrorIs(t, err, minutes.ErrExternalIDTaken)
			e, _ := errors.AsType[*minutes.Error](err)
			require.Zero(t, e.StatusCode)
			require.False(t, minutes.Retryable(err))
			for _, part := range []string{taken.ID, "2026-11-20", "2026-11-27", "Resume"} {
				require.ErrorContains(t, err, part)
			}
			require.Equal(t, taken.ID, r.MeetingID)
			require.Equal(t, "Weekly", r.Meeting.Title)
			require.False(t, r.Created)
		}
		for range 2 { // the second time, the meeting has minutes
			check(c.Meetings.Process(t.Context(), board, testkit.Audio(10), nil))
			job := minutes.Job{Params: board, Source: testkit.Audio(10)}
			for r, err := range c.Meetings.ProcessAll(t.Context(), slices.Values([]minutes.Job{job}), nil) {
				require.NoError(t, err)
				check(r, r.Err)
			}
			renamed := weekly("x")
			renamed.Title = "Weekly, renamed"
			_, err := c.Meetings.Process(t.Context(), renamed, testkit.Audio(10), nil)
			require.NoError(t, err, "the title does not matter")
		}
		require.Len(t, srv.Requests(minutes.OpUpload), 1)
	})
}

// A response about a meeting with another external_id is no response to this Create.
func TestCreate_RejectsAResponseWithAnotherExternalID(t *testing.T) {
	t.Parallel()
	for sent, test := range map[string]struct {
		received string
		fails    bool
	}{
		"x": {`"x"`, false}, "y": {`"x"`, true}, "": {`"x"`, true}, "not shown": {"null", false},
	} {
		body := `{"id":"mtg_1","status":"created","date":"2026-11-20","external_id":` + test.received + `}`
		c, _ := testkit.OneResponse(t, http.StatusOK, body)
		_, _, err := c.Meetings.Create(t.Context(), weekly(sent))
		require.Equal(t, test.fails, err != nil, "%q: %v", sent, err)
		require.False(t, minutes.Retryable(err))
	}
}

// With Until: transcribed, the transcript comes without minutes, even if those have failed before a
// poll could see transcribed.
func TestProcess_FetchesTheTranscriptWithoutMinutes(t *testing.T) {
	t.Parallel()
	for _, write := range []time.Duration{time.Second, 10 * time.Minute} {
		for _, outcome := range []minutes.Status{minutes.StatusMinutesReady, minutes.StatusMinutesFailed} {
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				stages := &minutestest.Stages{Write: write}
				srv.Script(minutestest.Script{Title: "Weekly", Outcome: outcome, Stages: stages})
				opts := &minutes.ProcessOptions{Until: minutes.StatusTranscribed, Transcript: true}
				r, err := testkit.Client(srv).Meetings.Process(t.Context(), weekly("x"), testkit.Audio(10), opts)
				require.NoError(t, err)
				require.Contains(t, r.Transcript.Text, "spk_0")
				require.Nil(t, r.Minutes)
				require.Empty(t, srv.Requests(minutes.OpMeetingsMinutes))
			})
		}
	}
}

// If nothing can be reached for half a minute, whatever request comes first, no recording fails.
// The requests around the upload last as long as the upload.
func TestProcess_SurvivesOutages(t *testing.T) {
	t.Parallel()
	for _, first := range []minutes.Operation{
		minutes.OpMeetingsCreate,
		minutes.OpMeetingsUploadURL,
		minutes.OpUpload,
		minutes.OpMeetingsGet,
		minutes.OpMeetingsMinutes,
	} {
		t.Run(string(first), func(t *testing.T) {
			t.Parallel()
			n := testbase.Many(40, 2)
			synctest.Test(t, func(t *testing.T) {
				testbase.Timeout(t, 24*time.Hour)
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				var jobs sync.WaitGroup
				for i := range n {
					jobs.Go(func() {
						gone := &outage{first: first, lasts: 30 * time.Second, next: testkit.Direct(srv).Transport}
						c := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: gone}))
						params := weekly(fmt.Sprint("rec-", i))
						_, err := c.Meetings.Process(t.Context(), params, testkit.Audio(100), nil)
						assert.NoError(t, err)
					})
				}
				jobs.Wait()
				oneMeeting(t, srv, n)
			})
		})
	}
}

// outage is a transport that loses the network for a while, when the first request of an operation
// comes.
type outage struct {
	first minutes.Operation
	lasts time.Duration
	next  http.RoundTripper

	mu    sync.Mutex
	began time.Time
}

func (o *outage) RoundTrip(req *http.Request) (*http.Response, error) {
	a, _ := minutes.AttemptFromContext(req.Context())
	o.mu.Lock()
	if o.began.IsZero() && a.Operation == o.first {
		o.began = time.Now()
	}
	gone := !o.began.IsZero() && time.Since(o.began) < o.lasts
	o.mu.Unlock()
	if gone {
		return nil, testbase.ErrRefused
	}
	return o.next.RoundTrip(req)
}

// oneMeeting checks that there are n meetings, each with one recording.
func oneMeeting(t *testing.T, srv *minutestest.Server, n int) {
	t.Helper()
	seen := 0
	for m, err := range testkit.Client(srv).Meetings.All(t.Context(), nil) {
		require.NoError(t, err)
		seen++
		state, ok := srv.Meeting(m.ID)
		require.True(t, ok)
		require.NotNil(t, state.Audio)
		uploads := 0
		for _, h := range state.History {
			if h.Status == minutes.StatusAudioUploaded {
				uploads++
			}
		}
		assert.Equal(t, 1, uploads)
	}
	assert.Equal(t, n, seen)
}

// closing is a recording that reports its Close.
type closing struct {
	minutes.Recording
	closed func()
}

func (c *closing) ReadAt(p []byte, off int64) (int, error) { return c.Audio.ReadAt(p, off) }
func (c *closing) Close() error {
	c.closed()
	return nil
}

// closingAudio is testkit.Audio that calls closed on Close.
func closingAudio(n int, closed func()) minutes.Source {
	return func(ctx context.Context) (minutes.Recording, error) {
		rec, err := testkit.Audio(n)(ctx)
		rec.Audio = &closing{rec, closed}
		return rec, err
	}
}

// Right after a meeting's creation, and after each later response about it, some machines of the
// service may not know it yet.
func TestProcess_GoesOnIfTheMeetingIsUnknownYet(t *testing.T) {
	t.Parallel()
	for _, op := range []minutes.Operation{
		minutes.OpMeetingsUploadURL, minutes.OpMeetingsGet, minutes.OpMeetingsMinutes, minutes.OpMeetingsTranscript,
	} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				lags := minutestest.Match{Operation: op, Times: 2}
				if op == minutes.OpMeetingsGet { // the next one comes half a minute later, and decides
					lags.Times = 1
				}
				srv.Inject(lags, minutestest.Refuse(minutes.ErrNotFound))
				opts := &minutes.ProcessOptions{Transcript: true}
				began := time.Now()
				r, err := testkit.Client(srv).Meetings.Process(t.Context(), weekly("x"), testkit.Audio(100), opts)
				require.NoError(t, err)
				require.NotNil(t, r.Transcript)
				require.LessOrEqual(t, time.Since(began), 40*time.Second)
			})
		})
	}
}

// But a meeting that stays unknown is gone, within half a minute of the response that has shown it.
func TestProcess_EndsIfTheMeetingStaysUnknown(t *testing.T) {
	t.Parallel()
	for _, op := range []minutes.Operation{
		minutes.OpMeetingsUploadURL, minutes.OpMeetingsGet, minutes.OpMeetingsMinutes,
	} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				match := minutestest.Match{Operation: op, Times: minutestest.Always}
				srv.Inject(match, minutestest.Refuse(minutes.ErrNotFound))
				began := time.Now()
				_, err := testkit.Client(srv).Meetings.Process(t.Context(), weekly("x"), testkit.Audio(100), nil)
				require.ErrorIs(t, err, minutes.ErrNotFound)
				require.Less(t, time.Since(began), 2*time.Minute)
			})
		})
	}
}

// A service without transcripts is an error, and what there is comes with it.
func TestProcess_ReportsMissingTranscript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		elsewhere := minutes.WithRoute(minutes.OpMeetingsTranscript, http.MethodGet, "/v1/elsewhere/{meeting_id}")
		c := testkit.Client(srv, elsewhere)
		opts := &minutes.ProcessOptions{Transcript: true}
		r, err := c.Meetings.Process(t.Context(), weekly("x"), testkit.Audio(100), opts)
		require.ErrorIs(t, err, minutes.ErrNotFound)
		assert.True(t, r.Created)
		assert.NotNil(t, r.Minutes)
		assert.Len(t, srv.Requests("meetings.create"), 1)
	})
}

// unclosableAudio returns a recording whose Close fails.
func unclosableAudio(ctx context.Context) (minutes.Recording, error) {
	rec, err := testkit.Audio(10)(ctx)
	rec.Audio = unclosable{rec.Audio}
	return rec, err
}

// Uploaded is true only if storage has confirmed the recording of the call, because the audio of another
// worker, or of an attempt whose response was lost, may be a part. The log warns of such audio, but only
// once.
func TestResult_SaysWhoseUploadItWas(t *testing.T) {
	t.Parallel()
	fail := errors.New("unplugged")
	for name, test := range map[string]struct {
		storage  through // what happens to the first PUT
		uploaded bool
		fails    bool
	}{
		"confirmed": {func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			return next.RoundTrip(req)
		}, true, false},
		"confirmed by the second attempt": {func(*http.Request, http.RoundTripper) (*http.Response, error) {
			return nil, fail
		}, true, false},
		"response lost": {func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			_, err := next.RoundTrip(req)
			return nil, cmp.Or(err, fail)
		}, false, false},
		"failed": {func(*http.Request, http.RoundTripper) (*http.Response, error) {
			return testkit.Canned(400, "")(nil)
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				puts := 0
				first := onUploads(srv, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
					puts++
					if puts > 1 {
						return next.RoundTrip(req)
					}
					return test.storage(req, next)
				})
				var log bytes.Buffer
				logger := minutes.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
				c := testkit.Client(srv, first, logger)
				r, err := c.Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), nil)
				require.Equal(t, test.fails, err != nil, "%v", err)
				require.Equal(t, test.uploaded, r.Uploaded)
				if test.fails {
					return
				}
				const warning = "audio that its call did not upload"
				_, err = c.Meetings.Resume(t.Context(), r.MeetingID, nil, nil) // which never uploads anything
				require.NoError(t, err)
				require.Equal(t, !test.uploaded, strings.Contains(log.String(), warning))
				for range 2 {
					r, err = c.Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), nil)
					require.NoError(t, err)
					require.False(t, r.Uploaded)
					require.Equal(t, 1, strings.Count(log.String(), warning))
				}
			})
		})
	}
}

type unclosable struct{ io.ReaderAt }

var errUnclosable = errors.New("cannot be closed")

func (unclosable) Close() error { return errUnclosable }

// If the service rejects the upload URL, another worker may have uploaded the audio. If the service
// cannot say so until ctx is done, a later run can ask again.
func TestProcess_AsksForTheAudioOfAnotherWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := testkit.Responding(t, func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Millisecond)
			switch {
			case strings.HasSuffix(req.URL.Path, "/upload-url"):
				return testkit.Canned(400, `{"error":{"code":"BAD_REQUEST","message":"","request_id":""}}`)(req)
			case req.Method == http.MethodPost:
				return testkit.Canned(200, `{"id":"mtg_1","status":"created"}`)(req)
			}
			return testkit.Canned(503, "")(req)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		_, err := c.Meetings.Process(ctx, weekly("rec-1"), testkit.Audio(10), nil)
		require.ErrorContains(t, err, "checking whether the audio arrived")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, minutes.Retryable(err), "%v", err)
	})
}

// If storage accepts the recording but no poll shows audio within ten minutes of the upload, the
// job ends, even if the clocks of the service and this machine differ.
func TestProcess_EndsIfNoAudioAppears(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			return testkit.Canned(200, "")(req)
		})
		c := testkit.Directed(t, "https://storage.example/k?s=1", minutes.StatusCreated, storage)
		began := time.Now()
		r, err := c.Meetings.Resume(t.Context(), "mtg_1", testkit.Audio(10), nil)
		require.ErrorIs(t, err, minutes.ErrNoAudio)
		require.NoError(t, r.Err)
		require.Equal(t, minutes.StatusCreated, r.Meeting.Status)
		require.InDelta(t, 10*time.Minute, time.Since(began), float64(time.Minute))
	})
}

// The caller may change a job's result. Later waits that use its snapshot do not see the change.
func TestProcess_ReturnsACopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		p := weekly("job-1")
		p.ParticipantIDs = []string{"emp_ada"}
		r, err := c.Meetings.Process(t.Context(), p, testkit.Audio(10), nil)
		require.NoError(t, err)
		n := len(srv.Requests("meetings.get"))
		r.Meeting.Title = "mine"
		r.Meeting.ParticipantIDs[0] = "me"
		r.Meeting.DurationSeconds = -1
		m, err := c.Meetings.Wait(t.Context(), r.Meeting.ID, nil)
		require.NoError(t, err)
		require.Len(t, srv.Requests("meetings.get"), n)
		assert.Equal(t, "Weekly", m.Title)
		assert.Equal(t, []string{"emp_ada"}, m.ParticipantIDs)
		assert.NotEqual(t, -1, m.DurationSeconds)
	})
}

// Resume continues from any status of the meeting, without a recording if there is audio.
func TestResume_ContinuesFromAnyStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []minutes.Status{
		minutes.StatusAudioUploaded,
		minutes.StatusGeneratingMinutes,
		minutes.StatusMinutesReady,
		minutes.StatusMinutesFailed,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				if status.Failed() {
					srv.Script(minutestest.Script{Outcome: status})
				}
				m := testkit.Uploaded(t, testkit.Client(srv), "Weekly")
				srv.Advance(m.ID, status)
				never := func(context.Context) (minutes.Recording, error) { panic("the recording was opened") }
				for _, open := range []minutes.Source{nil, never} {
					var seen []minutes.Status
					opts := &minutes.ProcessOptions{
						Format: minutes.FormatMarkdown, Transcript: true,
						OnStatus: func(m *minutes.Meeting) { seen = append(seen, m.Status) },
					}
					r, err := testkit.Client(srv).Meetings.Resume(t.Context(), m.ID, open, opts)
					require.Equal(t, m.ID, r.MeetingID)
					assert.Nil(t, r.Params)
					assert.False(t, r.Created)
					if status.Failed() {
						failed, ok := errors.AsType[*minutes.MeetingFailedError](err)
						require.True(t, ok, "%v", err)
						assert.Equal(t, failed.Meeting, r.Meeting)
						continue
					}
					require.NoError(t, err)
					assert.Contains(t, r.Minutes.Content, "# Weekly")
					assert.Contains(t, r.Transcript.Text, "spk_0")
					assert.Equal(t, minutes.StatusMinutesReady, seen[len(seen)-1])
				}
			})
		})
	}
	t.Run("created", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			c := testkit.Client(srv)
			m, _, err := c.Meetings.Create(t.Context(), weekly(""))
			require.NoError(t, err)
			r, err := c.Meetings.Resume(t.Context(), m.ID, nil, nil)
			require.ErrorIs(t, err, minutes.ErrNoAudio)
			require.Equal(t, m.ID, r.Meeting.ID)
			require.Len(t, srv.Requests("meetings.get"), 1, "Create's response is too old to prove that")
			closed := 0
			audio := closingAudio(5000, func() { closed++ })
			opts := &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded}
			r, err = c.Meetings.Resume(t.Context(), m.ID, audio, opts)
			require.NoError(t, err)
			assert.Nil(t, r.Minutes)
			assert.Equal(t, 1, closed)
			require.Len(t, srv.Requests("meetings.get"), 2, "at once after the upload")
			r, err = c.Meetings.Resume(t.Context(), m.ID, nil, nil)
			require.NoError(t, err)
			assert.NotNil(t, r.Minutes)
			oneMeeting(t, srv, 1)
		})
	})
}

// The error of a rejected recording names the content type that was sent, which may be the reason.
func TestProcess_NamesTheContentTypeOfARejectedRecording(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Script(minutestest.Script{Outcome: minutes.StatusAudioRejected})
		c := testkit.Client(srv)
		r, err := c.Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), nil)
		require.EqualError(t, err, "minutes: meeting "+r.MeetingID+" ended as audio_rejected: "+
			"the service rejected the recording, sent as audio/mpeg, usually because of its size or content type; "+
			"to upload another recording, "+
			"delete the meeting and create it again")
		_, err = c.Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), nil)
		require.ErrorContains(t, err, "the service rejected the recording, usually", "an earlier run sent it")
	})
}

// If another worker uploads the audio after the last response, Resume finds it, with or without a
// recording, which that worker may have deleted.
func TestResume_FindsTheAudioOfAnotherWorker(t *testing.T) {
	t.Parallel()
	deleted := func(context.Context) (minutes.Recording, error) { return minutes.Recording{}, os.ErrNotExist }
	for name, source := range map[string]minutes.Source{
		"without a recording":        nil,
		"with one that was deleted":  deleted,
		"with one that still exists": testkit.Audio(10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				c := testkit.Client(srv)
				m, _, err := c.Meetings.Create(t.Context(), weekly(""))
				require.NoError(t, err)
				require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
				r, err := c.Meetings.Resume(t.Context(), m.ID, source, nil)
				require.NoError(t, err)
				require.NotNil(t, r.Minutes)
				require.False(t, r.Uploaded)
			})
		})
	}
}

// Errors come with what the call knows of the meeting. If the recording cannot be closed, its
// upload still counts.
func TestResume_ReturnsErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		r, err := c.Meetings.Resume(t.Context(), "mtg_gone", testkit.Audio(10), nil)
		require.ErrorIs(t, err, minutes.ErrNotFound)
		require.Equal(t, &minutes.Result{MeetingID: "mtg_gone"}, r)
		id := testkit.Waiting(t, srv)
		r, err = c.Meetings.Resume(t.Context(), id, minutes.FromFile("missing"), nil)
		require.ErrorIs(t, err, os.ErrNotExist)
		require.Equal(t, id, r.Meeting.ID)
		began := time.Now()
		_, err = c.Meetings.Resume(t.Context(), id, testkit.Audio(0), nil)
		require.ErrorIs(t, err, minutes.ErrRecordingEmpty)
		require.Zero(t, time.Since(began), "no poll can make it a recording")
		r, err = c.Meetings.Resume(t.Context(), id, unclosableAudio, nil)
		require.NoError(t, err)
		require.NotNil(t, r.Minutes)
	})
}

// A job that fails does not stop the others.
func TestProcessAll_YieldsEachJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		refused := minutestest.Match{Operation: minutes.OpMeetingsCreate, ExternalID: "refused"}
		srv.Inject(refused, minutestest.Refuse(minutes.ErrForbidden))
		deleted := sync.OnceFunc(func() {
			m, err := testkit.Client(srv).Meetings.FindByExternalID(t.Context(), "deleted")
			if assert.NoError(t, err) {
				assert.NoError(t, testkit.Client(srv).Meetings.Delete(t.Context(), m.ID))
			}
		})
		opts := &minutes.ProcessOptions{OnStatus: func(m *minutes.Meeting) {
			if m.ExternalID == "deleted" {
				deleted()
			}
		}}
		var sent int64
		want := map[string]error{
			"good": nil, "missing": os.ErrNotExist, "refused": minutes.ErrForbidden, "deleted": minutes.ErrNotFound,
			"unclosable": nil,
		}
		jobs := []minutes.Job{
			{Params: weekly("missing"), Source: minutes.FromFile("missing.mp3")},
			{Params: weekly("refused"), Source: testkit.Audio(10)},
			{Params: weekly("deleted"), Source: testkit.Audio(10)},
			{Params: weekly("unclosable"), Source: unclosableAudio},
			{Params: weekly("good"), Source: testkit.Audio(5000), Progress: func(n, _ int64) { sent = n }},
		}
		ended := map[string]error{}
		c := testkit.Client(srv, minutes.WithUploadConcurrency(1)) // a job that fails makes room for the next one
		for r, err := range c.Meetings.ProcessAll(t.Context(), slices.Values(jobs), opts) {
			require.NoError(t, err)
			id := r.Params.ExternalID
			require.NotContains(t, ended, id)
			ended[id] = r.Err
			require.ErrorIs(t, r.Err, want[id])
			require.Equal(t, id == "missing" || id == "refused", r.MeetingID == "")
			require.Equal(t, id == "good" || id == "unclosable", r.Minutes != nil)
		}
		require.Len(t, ended, len(jobs))
		require.EqualValues(t, 5000, sent)
	})
}

// After a rejected key, no further job is read, although the rejected one makes room: neither
// while the body is busy with another result, nor while another job goes on.
func TestProcessAll_ReadsNoJobAfterTheKeyIsRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Script(
			minutestest.Script{ExternalID: "first", Stages: &minutestest.Stages{Write: time.Second}}, // polled at 30 s
			minutestest.Script{ExternalID: "long", Stages: &minutestest.Stages{Write: 20 * time.Minute}})
		created := minutestest.Match{Operation: minutes.OpMeetingsCreate, ExternalID: "rejected"}
		srv.Inject(created, minutestest.Delay(20*time.Second))
		urls := minutestest.Match{Operation: minutes.OpMeetingsUploadURL, ExternalID: "rejected"}
		srv.Inject(urls, minutestest.Refuse(minutes.ErrUnauthenticated).Delayed(20*time.Second))
		var read, ended []string
		jobs := func(yield func(minutes.Job) bool) {
			for _, id := range []string{"first", "long", "rejected", "never read"} {
				read = append(read, id)
				if !yield(minutes.Job{Params: weekly(id), Source: testkit.Audio(10)}) {
					return
				}
			}
		}
		c := direct(srv, minutes.WithUploadConcurrency(1))
		for r, err := range c.Meetings.ProcessAll(t.Context(), jobs, nil) {
			if err != nil {
				require.True(t, minutes.KeyRejected(err), "%v", err)
				continue
			}
			ended = append(ended, r.Params.ExternalID)
			require.Equal(t, r.Params.ExternalID == "rejected", minutes.KeyRejected(r.Err), "%v", r.Err)
			if r.Params.ExternalID == "first" {
				time.Sleep(time.Minute)
			}
		}
		require.Equal(t, []string{"first", "long", "rejected"}, read)
		require.Equal(t, []string{"first", "rejected", "long"}, ended)
	})
}

// A sequence should stop when yield returns false. ProcessAll ends even if it goes on, and begins
// none of the jobs that come after that.
func TestProcessAll_EndsIfJobsIgnoreFalse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wanted atomic.Int64 // jobs after which yield returned true
		careless := func(yield func(minutes.Job) bool) {
			for i := range 20 {
				if i == 5 {
					<-ctx.Done()
				}
				if yield(minutes.Job{Params: weekly(fmt.Sprint("rec-", i)), Source: testkit.Audio(100)}) {
					wanted.Add(1)
				}
			}
		}
		results := int64(0)
		var last error
		for r, err := range testkit.Client(srv).Meetings.ProcessAll(ctx, careless, nil) {
			last = err
			if r != nil {
				results++
			}
		}
		require.ErrorIs(t, last, context.DeadlineExceeded)
		require.LessOrEqual(t, results, wanted.Load()+1, "one more had been asked for")
	})
}

// While the first upload blocks, no other job may start. If jobs yields one nevertheless when ctx is
// done, it is not begun.
func TestProcessAll_BeginsNoJobBeforeItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		blocked := func(ctx context.Context) (minutes.Recording, error) {
			<-ctx.Done()
			return minutes.Recording{}, ctx.Err()
		}
		careless := func(yield func(minutes.Job) bool) {
			for i := range 3 {
				yield(minutes.Job{Params: weekly(fmt.Sprint("rec-", i)), Source: blocked})
			}
		}
		results := 0
		client := testkit.Client(srv, minutes.WithUploadConcurrency(1))
		for r := range client.Meetings.ProcessAll(ctx, careless, nil) {
			if r != nil {
				results++
			}
		}
		require.Equal(t, 1, results)
	})
}

// Uploads are bounded, and the next job is read when a slot is nearly free. Waits are not bounded.
// A job closes its recording before it frees its slot.
func TestProcessAll_BoundsUploads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		everyUpload := minutestest.Match{Operation: minutes.OpUpload, Times: minutestest.Always}
		srv.Inject(everyUpload, minutestest.Delay(time.Second))
		var uploading, open, most atomic.Int64
		jobs := func(yield func(minutes.Job) bool) {
			for i := range 12 {
				assert.Less(t, uploading.Load(), int64(3))
				uploading.Add(1)
				source := closingAudio(10, func() {
					time.Sleep(time.Second)
					open.Add(-1)
					uploading.Add(-1)
				})
				counting := func(ctx context.Context) (minutes.Recording, error) {
					most.Store(max(most.Load(), open.Add(1)))
					return source(ctx)
				}
				if !yield(minutes.Job{Params: weekly(fmt.Sprint("rec-", i)), Source: counting}) {
					return
				}
			}
		}
		start := time.Now()
		c := direct(srv, minutes.WithUploadConcurrency(3))
		for r, err := range c.Meetings.ProcessAll(t.Context(), jobs, nil) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
		}
		assert.EqualValues(t, 3, most.Load())
		assert.Zero(t, open.Load(), "every recording is closed")
		assert.Less(t, time.Since(start), 20*time.Minute, "all wait at the same time")
	})
}
