package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
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
		assert.Equal(t, r.Meeting.ID, again.Meeting.ID)
		assert.Equal(t, minutes.FormatHTML, again.Minutes.Format)
		assert.Len(t, srv.Requests(), before+2, "a finished job costs its create and its minutes")
	})
}

// crash is a transport whose process dies: it loses every request after the nth, and the response
// to the nth may be lost.
type crash struct {
	next    http.RoundTripper
	after   int64
	mid     bool // the last request takes effect, its response is lost
	n       atomic.Int64
	onCrash func()
}

func (c *crash) RoundTrip(r *http.Request) (*http.Response, error) {
	n := c.n.Add(1)
	if n < c.after {
		return c.next.RoundTrip(r)
	}
	if n == c.after && c.mid {
		if resp, err := c.next.RoundTrip(r); err == nil {
			_ = resp.Body.Close()
		}
	} else if r.Body != nil {
		_ = r.Body.Close()
	}
	c.onCrash()
	return nil, errors.New("the process is dead")
}

// If a job dies at any request, whether or not that took effect, the next run finishes it.
func TestProcess_FinishesAfterACrash(t *testing.T) {
	t.Parallel()
	for _, mid := range []bool{false, true} {
		for after := int64(1); after <= 8; after++ {
			t.Run(fmt.Sprintf("request %d, done %t", after, mid), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
					ctx, die := context.WithCancel(t.Context())
					dying := testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: &crash{
						next: srv.HTTPClient().Transport, after: after, mid: mid, onCrash: die,
					}}))
					_, err := dying.Meetings.Process(ctx, weekly("rec-1"), testkit.Audio(100_000), nil)
					require.ErrorIs(t, err, context.Canceled)

					time.Sleep(time.Minute)
					_, err = testkit.Client(srv).Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(100_000), nil)
					require.NoError(t, err)
					oneMeeting(t, srv, 1)
				})
			})
		}
	}
}

// oneMeeting checks that there are n meetings, each with one audio.
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

// Two workers with one external id, on separate Clients, end with one meeting and no error,
// whatever the network does.
func TestProcess_TwoWorkersMakeOneMeeting(t *testing.T) {
	t.Parallel()
	for seed := range testbase.Many(200, 6) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			faults := []minutestest.Fault{
				minutestest.RateLimit(""), minutestest.Reset(), minutestest.LoseResponse(),
				minutestest.Refuse(minutes.ErrInternal), minutestest.BadGateway(), minutestest.Refuse(minutes.ErrInternal).AfterEffect(),
			}
			ops := []minutes.Operation{"meetings.create", "meetings.upload_url", minutes.OpUpload, "meetings.get", "meetings.minutes"}
			for range 3 {
				op, fault := ops[rnd.IntN(len(ops))], faults[rnd.IntN(len(faults))]
				if op == minutes.OpUpload {
					fault = []minutestest.Fault{
						minutestest.Reset(), minutestest.LoseResponse(), minutestest.ResetUpload(5000),
						minutestest.RefuseUpload(503, "SlowDown"), minutestest.RefuseUpload(500, "InternalError").AfterEffect(),
					}[rnd.IntN(5)]
				}
				srv.Inject(minutestest.Match{Operation: op, Nth: 1 + rnd.IntN(2)}, fault).Optional()
			}
			lag := time.Duration(rnd.IntN(3)) * time.Second
			var wg sync.WaitGroup
			ids := make([]string, 2)
			for i := range ids {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * lag)
					r, err := testkit.Client(srv).Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10_000), nil)
					if assert.NoError(t, err, "seed %d", seed) {
						ids[i] = r.Meeting.ID
					}
				})
			}
			wg.Wait()
			assert.Equal(t, ids[0], ids[1])
			oneMeeting(t, srv, 1)
		})
	}
}

func TestProcessAll_BoundsUploadsAndOutlastsFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jobs := func(n int) []minutes.Job {
		var list []minutes.Job
		for i := range n {
			list = append(list, minutes.Job{
				Params: weekly(fmt.Sprint("rec-", i)),
				Source: testkit.Audio(100 + i),
			})
			if i%10 == 3 {
				list[i].Source = minutes.FromFile(filepath.Join(dir, fmt.Sprint("missing-", i, ".mp3")))
			}
		}
		return list
	}
	t.Run("one failure does not stop the rest", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			ended := map[string]error{}
			for r, err := range testkit.Client(srv).Meetings.ProcessAll(t.Context(), slices.Values(jobs(50)), nil) {
				require.NotNil(t, r)
				require.NotContains(t, ended, r.Params.ExternalID)
				ended[r.Params.ExternalID] = err
				if err == nil {
					assert.NotEmpty(t, r.Minutes.Content)
				}
			}
			assert.Len(t, ended, 50)
			for id, err := range ended {
				if id[len(id)-1] == '3' {
					assert.ErrorIs(t, err, os.ErrNotExist)
				} else {
					assert.NoError(t, err)
				}
			}
		})
	})
	t.Run("uploads are bounded, waits are not", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload, Times: minutestest.Always}, minutestest.Delay(time.Second))
			var now, most atomic.Int64
			open := func(ctx context.Context) (minutes.Recording, error) {
				most.Store(max(most.Load(), now.Add(1)))
				return closingAudio(10, func() { now.Add(-1) })(ctx)
			}
			var list []minutes.Job
			for i := range 30 {
				list = append(list, minutes.Job{Params: weekly(fmt.Sprint("rec-", i)), Source: open})
			}
			start := time.Now()
			for _, err := range testkit.Client(srv, minutes.WithUploadConcurrency(3)).Meetings.ProcessAll(t.Context(), slices.Values(list), nil) {
				require.NoError(t, err)
			}
			assert.LessOrEqual(t, most.Load(), int64(3))
			assert.Zero(t, now.Load(), "every recording is closed")
			assert.Less(t, time.Since(start), 20*time.Minute, "all wait at the same time")
		})
	})
	t.Run("a loop that is left cancels what runs", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			for range testkit.Client(srv).Meetings.ProcessAll(t.Context(), slices.Values(jobs(20)), nil) {
				break
			}
			synctest.Wait() // a request that was just cancelled may still arrive
			n := len(srv.Requests())
			time.Sleep(time.Hour)
			assert.Len(t, srv.Requests(), n)
		})
	})
	t.Run("a context that ends", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n := 0
			for _, err := range testkit.Client(srv).Meetings.ProcessAll(ctx, slices.Values(jobs(20)[4:10]), nil) {
				n++
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
			assert.Equal(t, 6, n)
		})
	})
}

// closing is a recording that reports its Close.
type closing struct {
	minutes.Recording
	closed func()
}

func (c *closing) ReadAt(p []byte, off int64) (int, error) { return c.Audio.ReadAt(p, off) }
func (c *closing) Close() error                            { c.closed(); return nil }

// closingAudio is testkit.Audio that calls closed on Close.
func closingAudio(n int, closed func()) minutes.Source {
	return func(ctx context.Context) (minutes.Recording, error) {
		rec, err := testkit.Audio(n)(ctx)
		rec.Audio = &closing{rec, closed}
		return rec, err
	}
}

// A missing transcript does not mean that the meeting is gone.
func TestProcess_TranscriptNotFoundDoesNotRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv, minutes.WithRoute(minutes.OpMeetingsTranscript, http.MethodGet, "/v1/elsewhere/{meeting_id}"))
		r, err := c.Meetings.Process(t.Context(), weekly("x"), testkit.Audio(100), &minutes.ProcessOptions{Transcript: true})
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

type unclosable struct{ io.ReaderAt }

var errUnclosable = errors.New("cannot be closed")

func (unclosable) Close() error { return errUnclosable }

// If a recording cannot be closed, its upload still counts.
func TestProcessAll_ReportsACloseError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs := slices.Values([]minutes.Job{{Params: weekly("x"), Source: unclosableAudio}})
		n := 0
		for r, err := range testkit.Client(minutestest.NewServer(t)).Meetings.ProcessAll(t.Context(), jobs, nil) {
			n++
			require.ErrorIs(t, err, errUnclosable)
			assert.NotNil(t, r.Minutes)
		}
		assert.Equal(t, 1, n)
	})
}

// If someone deletes a job's meeting, the job ends, even with Restart. Its error also says why the
// recording could not be closed.
func TestProcessAll_EndsIfTheMeetingIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		remove := sync.OnceFunc(func() {
			assert.NoError(t, testkit.Client(srv).Meetings.Delete(t.Context(), srv.Requests("meetings.create")[0].MeetingID))
		})
		opts := &minutes.ProcessOptions{OnStatus: func(*minutes.Meeting) { remove() }}
		jobs := slices.Values([]minutes.Job{{Params: weekly("x"), Source: unclosableAudio}})
		for _, err := range testkit.Client(srv).Meetings.ProcessAll(t.Context(), jobs, opts) {
			require.ErrorIs(t, err, minutes.ErrNotFound)
			require.ErrorIs(t, err, errUnclosable)
		}
		require.Len(t, srv.Requests("meetings.create"), 1)
	})
}

// A worker that returns to many jobs does not poll their meetings within the minimum poll interval
// either.
func TestProcessAll_KeepsThePollIntervalAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := testkit.Generous()
		w.Stages.Transcribe = time.Hour
		srv := minutestest.NewServer(t, minutestest.WithWorld(w))
		jobs := func(yield func(minutes.Job) bool) {
			for i := range 100 {
				if !yield(minutes.Job{Params: weekly(fmt.Sprint("job ", i)), Source: testkit.Audio(100)}) {
					return
				}
			}
		}
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			for range testkit.Client(srv, minutes.WithUploadConcurrency(50)).Meetings.ProcessAll(ctx, jobs, nil) {
			}
			cancel()
		}
		assert.LessOrEqual(t, len(srv.Requests("meetings.list")), 4, "the first run's")
	})
}

// opening is an ordinary job.
func opening(externalID string) minutes.Job {
	return minutes.Job{Params: weekly(externalID), Source: testkit.Audio(100)}
}

// ProcessAll reads the next job when an upload slot is nearly free.
func TestProcessAll_ReadsNextJobWhenASlotIsNear(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload, Times: minutestest.Always}, minutestest.Delay(time.Second))
		var uploading atomic.Int64
		jobs := func(yield func(minutes.Job) bool) {
			for i := range 20 {
				assert.Less(t, uploading.Load(), int64(3))
				uploading.Add(1)
				job := minutes.Job{Params: weekly(fmt.Sprint("rec-", i)), Source: closingAudio(10, func() { uploading.Add(-1) })}
				if !yield(job) {
					return
				}
			}
		}
		for _, err := range testkit.Client(srv, minutes.WithUploadConcurrency(3)).Meetings.ProcessAll(t.Context(), jobs, nil) {
			require.NoError(t, err)
		}
		assert.Zero(t, uploading.Load())
	})
}

// If a callback ends its goroutine, as a test's FailNow does, only its own job ends.
func TestProcessAll_JobEndsIfCallbackEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"Source", "OnStatus", "Close"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()), minutestest.WithoutAudit(minutestest.ViolationUploadURL))
				in := func(callback, id string) {
					if callback == where && id == "bad" {
						runtime.Goexit()
					}
				}
				var open atomic.Int64
				var jobs []minutes.Job
				for _, id := range []string{"good", "bad", "last"} {
					jobs = append(jobs, minutes.Job{Params: weekly(id), Source: func(ctx context.Context) (minutes.Recording, error) {
						in("Source", id)
						open.Add(1)
						return closingAudio(10, func() { open.Add(-1); in("Close", id) })(ctx)
					}})
				}
				opts := &minutes.ProcessOptions{OnStatus: func(m *minutes.Meeting) { in("OnStatus", m.ExternalID) }}
				// With one or two upload slots, a slot that is not released blocks the last job.
				client := testkit.Client(srv, minutes.WithUploadConcurrency(1+len(where)%2))
				ended := map[string]error{}
				for r, err := range client.Meetings.ProcessAll(t.Context(), slices.Values(jobs), opts) {
					ended[r.Params.ExternalID] = err
				}
				assert.Zero(t, open.Load(), "recordings that are open")
				assert.ErrorContains(t, ended["bad"], "ended its goroutine")
				assert.NoError(t, ended["good"])
				assert.NoError(t, ended["last"])
				assert.Len(t, ended, 3)
				requireIdle(t, srv)
			})
		})
	}
}

// ProcessAll rejects invalid parameters before any request.
func TestProcessAll_RejectsInvalidParams(t *testing.T) {
	t.Parallel()
	jobs := slices.Values([]minutes.Job{opening("rec-0")})
	for name, test := range map[string]struct {
		ctx   context.Context
		jobs  iter.Seq[minutes.Job]
		opts  *minutes.ProcessOptions
		param string
	}{
		"no context":       {nil, jobs, nil, "ctx"},
		"no jobs":          {t.Context(), nil, nil, "jobs"},
		"end in a failure": {t.Context(), jobs, &minutes.ProcessOptions{Until: minutes.StatusMinutesFailed}, "opts.Until"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			for r, err := range testkit.Silent(t).Meetings.ProcessAll(test.ctx, test.jobs, test.opts) {
				n++
				assert.Nil(t, r)
				bad, ok := errors.AsType[*minutes.ParamError](err)
				if assert.True(t, ok, "%v", err) {
					assert.Equal(t, test.param, bad.Param)
				}
			}
			assert.Equal(t, 1, n)
		})
	}
}

// ProcessAll yields the error of an invalid job.
func TestProcessAll_YieldsInvalidJobs(t *testing.T) {
	t.Parallel()
	open := testkit.Audio(10)
	for param, job := range map[string]minutes.Job{"params": {Source: open}, "source": {Params: weekly("rec-0")}} {
		for r, err := range testkit.Silent(t).Meetings.ProcessAll(t.Context(), slices.Values([]minutes.Job{job}), nil) {
			assert.Equal(t, job.Params, r.Params)
			testkit.RequireParamError(t, err, param, "")
		}
	}
}

// A job that returns to a meeting does not disturb another wait for it. That wait ends with its
// context, and then no request follows.
func TestProcess_DoesNotDisturbAnotherWait(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fresh"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
				c, l := testkit.WatchPolls(srv)
				p := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "job-1"}
				m, _, err := c.Meetings.Create(t.Context(), p)
				require.NoError(t, err)
				require.NoError(t, c.Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
				var wg sync.WaitGroup
				wg.Go(func() {
					seen := testkit.WaitFor(t, c, m.ID, 20*time.Minute, nil)
					assert.Equal(t, minutes.StatusTranscribing, seen.Status)
				})
				time.Sleep(5*time.Minute + 10*time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				_, err = c.Meetings.Process(ctx, p, testkit.Audio(10), nil)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				wg.Wait()
				synctest.Wait()
				assert.Zero(t, l.TooSoon([]string{m.ID}), "polls within the minimum interval")
				synctest.Wait()
				testkit.RequireQuiet(t, l)
			})
		})
	}
}

// The caller may change a job's result. Later waits that use the job's snapshot do not see the
// change.
func TestProcess_ReturnsACopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		p := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "job-1", ParticipantIDs: []string{"emp_ada"}}
		_, err := c.Meetings.Process(t.Context(), p, testkit.Audio(10), nil)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		r, err := c.Meetings.Process(t.Context(), p, testkit.Audio(10), nil)
		require.NoError(t, err)
		n := len(srv.Requests("meetings.get"))
		r.Meeting.Title, r.Meeting.ParticipantIDs[0], r.Meeting.DurationSeconds = "mine", "me", -1
		m, err := c.Meetings.Wait(t.Context(), r.Meeting.ID, nil)
		require.NoError(t, err)
		require.Len(t, srv.Requests("meetings.get"), n)
		assert.Equal(t, "Weekly", m.Title)
		assert.Equal(t, []string{"emp_ada"}, m.ParticipantIDs)
		assert.NotEqual(t, -1, m.DurationSeconds)
	})
}

// soundless opens a recording that no test case may open.
func soundless(t *testing.T) minutes.Source {
	return func(context.Context) (minutes.Recording, error) {
		t.Error("the recording was opened")
		return minutes.Recording{}, errors.New("nothing to open")
	}
}

// Resume continues from any state of the meeting.
func TestResume_ContinuesFromAnyStatus(t *testing.T) {
	t.Parallel()
	states := []minutes.Status{
		minutes.StatusAudioUploaded, minutes.StatusTranscribing, minutes.StatusTranscribed, minutes.StatusGeneratingMinutes,
		minutes.StatusMinutesReady, minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed,
		minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected,
	}
	for _, state := range states {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				if state.Failed() {
					srv.Script(minutestest.Script{Outcome: state})
				}
				m := testkit.Uploaded(t, testkit.Client(srv), "Weekly")
				srv.Advance(m.ID, state)
				for _, open := range []minutes.Source{soundless(t), nil} {
					var states []minutes.Status
					opts := &minutes.ProcessOptions{Format: minutes.FormatMarkdown, Transcript: true, OnStatus: func(m *minutes.Meeting) { states = append(states, m.Status) }}
					r, err := testkit.Client(srv).Meetings.Resume(t.Context(), m.ID, open, opts)
					require.NotNil(t, r)
					assert.Nil(t, r.Params)
					assert.False(t, r.Created)
					if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); state.Failed() {
						require.True(t, ok, "%v", err)
						assert.Equal(t, state, failed.Status)
						assert.Equal(t, failed.Meeting, r.Meeting)
						continue
					}
					require.NoError(t, err)
					assert.Equal(t, minutes.StatusMinutesReady, r.Meeting.Status)
					assert.Contains(t, r.Minutes.Content, "# Weekly")
					assert.Contains(t, r.Transcript.Text, "spk_0")
					assert.Equal(t, slices.Compact(slices.Clone(states)), states, "OnStatus gets each status once")
					assert.Equal(t, minutes.StatusMinutesReady, states[len(states)-1])
				}
			})
		})
	}
	t.Run("created", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			id := testkit.Waiting(t, srv)
			r, err := testkit.Client(srv).Meetings.Resume(t.Context(), id, nil, nil)
			require.ErrorIs(t, err, minutes.ErrNoAudio)
			require.Equal(t, id, r.Meeting.ID)
			var sent int64
			opened, closed := 0, 0
			open := func(ctx context.Context) (minutes.Recording, error) {
				opened++
				return closingAudio(5000, func() { closed++ })(ctx)
			}
			opts := &minutes.ProcessOptions{Progress: func(n, _ int64) { sent = n }}
			time.Sleep(30 * time.Second) // since the poll of the other process
			r, err = testkit.Client(srv).Meetings.Resume(t.Context(), id, open, opts)
			require.NoError(t, err)
			assert.NotEmpty(t, r.Minutes.Content)
			assert.EqualValues(t, 5000, sent)
			assert.Equal(t, 1, opened)
			assert.Equal(t, 1, closed)
		})
	})
}

// Resume rejects invalid parameters before any request. Later errors come with a Result.
func TestResume_RejectsInvalidParamsAndReturnsErrors(t *testing.T) {
	t.Parallel()
	open := testkit.Audio(10)
	for name, test := range map[string]struct {
		ctx   context.Context
		id    string
		opts  *minutes.ProcessOptions
		param string
	}{
		"no context":       {nil, "mtg_1", nil, "ctx"},
		"no id":            {t.Context(), "", nil, "id"},
		"path":             {t.Context(), "..", nil, "id"},
		"end in a failure": {t.Context(), "mtg_1", &minutes.ProcessOptions{Until: minutes.StatusAudioRejected}, "opts.Until"},
	} {
		r, err := testkit.Silent(t).Meetings.Resume(test.ctx, test.id, open, test.opts)
		assert.Nil(t, r, name)
		testkit.RequireParamError(t, err, test.param, "")
	}
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		r, err := c.Meetings.Resume(t.Context(), "mtg_gone", open, nil)
		require.ErrorIs(t, err, minutes.ErrNotFound)
		assert.Nil(t, r.Meeting)

		id := testkit.Waiting(t, srv)
		r, err = c.Meetings.Resume(t.Context(), id, minutes.FromFile("missing"), nil)
		require.ErrorIs(t, err, os.ErrNotExist)
		assert.Equal(t, id, r.Meeting.ID)
		closed := 0
		_, err = c.Meetings.Resume(t.Context(), id, func(context.Context) (minutes.Recording, error) {
			return minutes.Recording{Audio: &closing{closed: func() { closed++ }}, ContentType: "audio/mpeg"}, nil
		}, nil)
		require.ErrorIs(t, err, minutes.ErrRecordingEmpty)
		assert.Equal(t, 1, closed)
		r, err = c.Meetings.Resume(t.Context(), id, unclosableAudio, nil)
		require.ErrorIs(t, err, errUnclosable)
		assert.NotNil(t, r.Minutes)
	})
}

// Every response about a meeting counts as a poll, whichever call or process got it. No GET follows
// within thirty seconds. An upload does not wait.
func TestResume_KeepsThePollInterval(t *testing.T) {
	t.Parallel()
	open := testkit.Audio(10)
	t.Run("after a create", func(t *testing.T) {
		t.Parallel()
		for name, others := range map[string]int{"alone": 0, "beside very many waits": testbase.Many(1100, 150)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := testkit.Generous()
					w.Stages.Transcribe = time.Hour
					srv := minutestest.NewServer(t, minutestest.WithWorld(w))
					ids := testkit.Crowd(t, srv, others, 1, 10*time.Hour)
					c, polls := testkit.WatchPolls(srv)
					var wg sync.WaitGroup
					defer wg.Wait()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					wg.Go(func() {
						for range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
						}
					})
					time.Sleep(time.Duration(testbase.Many(10, 2)) * time.Minute)
					for range 5 { // at any time of a cycle
						time.Sleep(7 * time.Second)
						m, _, err := c.Meetings.Create(t.Context(), weekly(""))
						require.NoError(t, err)
						began := time.Now()
						r, err := c.Meetings.Resume(ctx, m.ID, open, &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded})
						require.NoError(t, err)
						assert.Equal(t, minutes.StatusAudioUploaded, r.Meeting.Status)
						assert.Less(t, time.Since(began), 5*time.Second)
						assert.LessOrEqual(t, len(polls.Of(m.ID)), 1, "the poll after the upload")
					}
				})
			})
		}
	})
}

// One worker uploads, another waits: the first ends once the audio has arrived, and the second
// uploads nothing.
func TestResume_ContinuesAfterUntil(t *testing.T) {
	t.Parallel()
	for _, until := range []minutes.Status{minutes.StatusAudioUploaded, minutes.StatusTranscribed} {
		t.Run(string(until), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := testkit.LongStages()
				w.Stages.Write = time.Hour
				srv := minutestest.NewServer(t, minutestest.WithWorld(w))
				opts := &minutes.ProcessOptions{Until: until, Transcript: true}
				for range 2 { // the second time, there is nothing to do
					r, err := testkit.Client(srv).Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), opts)
					require.NoError(t, err)
					assert.NotEqual(t, minutes.StatusMinutesReady, r.Meeting.Status)
					assert.NotEqual(t, minutes.StatusCreated, r.Meeting.Status)
					assert.Nil(t, r.Minutes)
					assert.Nil(t, r.Transcript)
				}
				id := srv.Requests("meetings.get")[0].MeetingID
				time.Sleep(30 * time.Second)
				r, err := testkit.Client(srv).Meetings.Resume(t.Context(), id, nil, nil)
				require.NoError(t, err)
				assert.NotNil(t, r.Minutes)
				oneMeeting(t, srv, 1)
			})
		})
	}
}

// If the context ends while other jobs hold all upload slots, the job ends, too, and its recording
// is never opened.
func TestResume_CtxEndsWithoutAnUploadSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(time.Hour))
		c := testkit.Client(srv, minutes.WithUploadConcurrency(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		first := make(chan error, 1)
		go func() {
			_, err := c.Meetings.Process(ctx, weekly("rec-1"), testkit.Audio(10), nil)
			first <- err
		}()
		synctest.Wait()
		m, _, err := c.Meetings.Create(t.Context(), weekly("rec-2"))
		require.NoError(t, err)
		open := func(context.Context) (minutes.Recording, error) {
			t.Error("opened without a slot")
			return minutes.Recording{}, nil
		}
		began := time.Now()
		r, err := c.Meetings.Resume(ctx, m.ID, open, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "waiting for an upload slot")
		require.Equal(t, minutes.StatusCreated, r.Meeting.Status)
		require.LessOrEqual(t, time.Since(began), time.Minute)
		require.ErrorIs(t, <-first, context.DeadlineExceeded)
	})
}

// A job closes its recording before it releases its slot.
func TestResume_ClosesBeforeItReleasesItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := testkit.Client(minutestest.NewServer(t), minutes.WithUploadConcurrency(1))
		var now, most atomic.Int64
		open := func(ctx context.Context) (minutes.Recording, error) {
			most.Store(max(most.Load(), now.Add(1)))
			return closingAudio(10, func() {
				time.Sleep(time.Second)
				now.Add(-1)
			})(ctx)
		}
		var wg sync.WaitGroup
		for range 3 {
			m, _, err := c.Meetings.Create(t.Context(), weekly(""))
			require.NoError(t, err)
			wg.Go(func() {
				_, err := c.Meetings.Resume(t.Context(), m.ID, open, &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded})
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		assert.EqualValues(t, 1, most.Load(), "open at once")
	})
}

// Jobs that return one after the other, each to a meeting with audio, do not delay the notification
// of other waits.
func TestProcess_ResumedJobsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Second, 20 * time.Second, 40 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := testkit.Generous()
				w.Stages.Prepare = 10 * time.Minute
				srv := minutestest.NewServer(t, minutestest.WithWorld(w))
				crashed := testkit.Client(srv, minutes.WithRateLimit(0, 0)) // the worker that made them
				c, l := testkit.WatchPolls(srv)
				var ids []string
				var wg sync.WaitGroup
				for i := range testbase.Many(100, 25) {
					p := &minutes.MeetingCreateParams{Title: "meeting", Date: "2026-11-20", ExternalID: fmt.Sprint("job-", i)}
					m, _, err := crashed.Meetings.Create(t.Context(), p)
					require.NoError(t, err)
					require.NoError(t, crashed.Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
					ids = append(ids, m.ID)
					wg.Go(func() {
						r, err := c.Meetings.Process(t.Context(), p, testkit.Audio(10), nil)
						if assert.NoError(t, err) {
							assert.LessOrEqual(t, time.Since(r.Meeting.UpdatedAt.Time()), 92*time.Second)
						}
					})
					time.Sleep(every)
				}
				wg.Wait()
				synctest.Wait()
				assert.Zero(t, l.TooSoon(ids), "polls within the minimum interval")
			})
		})
	}
}

// Jobs that return to finished meetings do not keep the Client from polling others in pages.
func TestProcess_FinishedMeetingsDoNotStopPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		job := func(c *minutes.Client, i int) {
			p := &minutes.MeetingCreateParams{Title: "done", Date: "2026-11-20", ExternalID: fmt.Sprint("job-", i%4)}
			_, err := c.Meetings.Process(t.Context(), p, testkit.Audio(10), nil)
			assert.NoError(t, err)
		}
		for i := range 4 {
			job(testkit.Client(srv), i)
		}
		ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
		c, l := testkit.WatchPolls(srv)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				job(c, i)
				time.Sleep(10 * time.Second)
			}
		})
		time.Sleep(time.Second)
		for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		wg.Wait()
		synctest.Wait()
		assert.LessOrEqual(t, l.Len()-l.Pages(), 2, "few polls of single meetings")
	})
}

// If storage accepts the recording but the meeting never shows audio, the job ends five minutes
// after the upload, even if the clocks of the service and this machine differ.
func TestProcess_EndsIfNoAudioAppears(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := testkit.New("https://minutes.example", testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			body, status := `{"id":"mtg_1","status":"created","created_at":946684000}`, 200
			switch {
			case req.Method == http.MethodPut:
				_, _ = io.Copy(io.Discard, req.Body)
			case strings.HasSuffix(req.URL.Path, "/upload-url"):
				body = `{"upload_url":"https://storage.example/k?s=1","expires_in":900,"method":"PUT"}`
			case req.Method == http.MethodPost:
				status = 201
			}
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
		})}))
		require.NoError(t, err)
		began := time.Now()
		_, err = c.Meetings.Process(t.Context(), &minutes.MeetingCreateParams{Title: "x", Date: "2026-11-20"}, testkit.Audio(10), nil)
		require.ErrorIs(t, err, minutes.ErrNoAudio)
		require.InDelta(t, 5*time.Minute, time.Since(began), float64(time.Minute))
	})
}
