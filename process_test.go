package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
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

func TestProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv)
		var states []minutes.Status
		var sent int64
		rec := testkit.Audio(5000)
		rec.Audio = &closing{rec, func() { t.Error("a recording of the caller's was closed") }}
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
		assert.Contains(t, r.Transcript, "spk_0")
		assert.EqualValues(t, 5000, sent)
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

// A worker that crashes and comes back does not look at its meeting again within
// the floor, though it remembers nothing, and tells what it is shown.
func TestProcessComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 31*time.Second)
			var states []minutes.Status
			var seen *minutes.Meeting
			r, err := testkit.Client(srv).Meetings.Process(ctx, weekly("rec-1"), testkit.Audio(5000), &minutes.ProcessOptions{
				OnStatus: func(m *minutes.Meeting) { states, seen = append(states, m.Status), m },
			})
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotEmpty(t, states)
			require.Equal(t, states[len(states)-1], r.Meeting.Status, "as last seen")
			require.GreaterOrEqual(t, r.Meeting.UpdatedAt, seen.UpdatedAt)
			time.Sleep(2 * time.Second)
		}
		r, err := testkit.Client(srv).Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(5000), nil)
		require.NoError(t, err)
		require.Equal(t, minutes.StatusMinutesReady, r.Meeting.Status)
	})
}

func TestProcessOfAFailedMeeting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		require.NoError(t, srv.Script(minutestest.Script{ExternalID: "rec-1", Outcome: minutes.StatusTranscriptionFailed}))
		c := testkit.Client(srv)
		r, err := c.Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), nil)
		failed, ok := errors.AsType[*minutes.MeetingFailedError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, r.Meeting, failed.Meeting)

		uploads := len(srv.Requests(minutestest.OpUpload))
		_, err = c.Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), nil)
		_, ok = errors.AsType[*minutes.MeetingFailedError](err)
		require.True(t, ok, "%v", err)
		assert.Contains(t, err.Error(), "external id")
		assert.Len(t, srv.Requests(minutestest.OpUpload), uploads, "nothing is uploaded to a failed meeting")

		require.NoError(t, srv.Script(minutestest.Script{ExternalID: "rec-1"}))
		fresh, err := c.Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), &minutes.ProcessOptions{Restart: true})
		require.NoError(t, err)
		assert.NotEqual(t, r.Meeting.ID, fresh.Meeting.ID)
		_, still := srv.Meeting(r.Meeting.ID)
		assert.False(t, still, "the failed meeting is gone")
	})
}

// A worker whose failed meeting another one has replaced goes on with the new.
func TestProcessWhenAnotherStartsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()), minutestest.WithoutAudit(minutestest.ViolationPoll))
		require.NoError(t, srv.Script(minutestest.Script{ExternalID: "rec-1", Outcome: minutes.StatusTranscriptionFailed}))
		failed, _, err := testkit.Client(srv).Meetings.Create(t.Context(), weekly("rec-1"))
		require.NoError(t, err)
		require.NoError(t, testkit.Client(srv).Meetings.Upload(t.Context(), failed.ID, testkit.Audio(10), nil))
		slow := make(chan *minutes.Result)
		go func() {
			r, err := testkit.Client(srv).Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), &minutes.ProcessOptions{Restart: true})
			assert.NoError(t, err)
			slow <- r
		}()
		synctest.Wait()
		_, err = srv.Advance(failed.ID, minutes.StatusTranscriptionFailed)
		require.NoError(t, err)
		require.NoError(t, srv.Script(minutestest.Script{ExternalID: "rec-1"}))
		quick, err := testkit.Client(srv).Meetings.Process(t.Context(), weekly("rec-1"), testkit.Audio(10), &minutes.ProcessOptions{Restart: true})
		require.NoError(t, err)
		assert.Equal(t, quick.Meeting.ID, (<-slow).Meeting.ID)
		oneMeeting(t, srv, 1)
	})
}

// crash is a transport whose process dies: from its nth request on nothing gets
// through, and of the last one it may never hear.
type crash struct {
	next    http.RoundTripper
	after   int64
	mid     bool // the last request takes effect, its reply is lost
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

// A job that dies at any request, with the request done or not, is finished by
// the next run.
func TestProcessAfterACrash(t *testing.T) {
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

// Two workers on one external id, on Clients of their own, end with one meeting
// and no error, whatever the network does.
func TestProcessByTwoWorkers(t *testing.T) {
	t.Parallel()
	for seed := range testbase.Many(200, 12) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			faults := []minutestest.Fault{
				minutestest.RateLimit(""), minutestest.Reset(), minutestest.LoseReply(),
				minutestest.Refuse(minutes.ErrInternal), minutestest.BadGateway(), minutestest.Refuse(minutes.ErrInternal).AfterEffect(),
			}
			ops := []minutes.Operation{"meetings.create", "meetings.upload_url", minutestest.OpUpload, "meetings.get", "meetings.minutes"}
			for range 3 {
				op, fault := ops[rnd.IntN(len(ops))], faults[rnd.IntN(len(faults))]
				if op == minutestest.OpUpload {
					fault = []minutestest.Fault{
						minutestest.Reset(), minutestest.LoseReply(), minutestest.ResetUpload(5000),
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

func TestProcessAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jobs := func(n int) []minutes.Job {
		var list []minutes.Job
		for i := range n {
			list = append(list, minutes.Job{
				Params: weekly(fmt.Sprint("rec-", i)),
				Open: func() (minutes.Recording, error) {
					path := filepath.Join(dir, fmt.Sprint("missing-", i, ".mp3"))
					if i%10 != 3 {
						return testkit.Audio(100 + i), nil
					}
					return minutes.OpenRecording(path)
				},
			})
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
			srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, Times: minutestest.Always}, minutestest.Delay(time.Second))
			var now, most atomic.Int64
			open := func() (minutes.Recording, error) {
				most.Store(max(most.Load(), now.Add(1)))
				return minutes.Recording{Audio: &closing{testkit.Audio(10), func() { now.Add(-1) }}, Size: 10, ContentType: "audio/mpeg"}, nil
			}
			var list []minutes.Job
			for i := range 30 {
				list = append(list, minutes.Job{Params: weekly(fmt.Sprint("rec-", i)), Open: open})
			}
			start := time.Now()
			for _, err := range testkit.Client(srv, minutes.WithUploads(3)).Meetings.ProcessAll(t.Context(), slices.Values(list), nil) {
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

// closing is a recording that tells when it is closed.
type closing struct {
	minutes.Recording
	closed func()
}

func (c *closing) ReadAt(p []byte, off int64) (int, error) { return c.Audio.ReadAt(p, off) }
func (c *closing) Close() error                            { c.closed(); return nil }

// A transcript that is not found is no meeting that is gone.
func TestProcessWithoutTheTranscriptsRoute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv, minutes.WithRoute(minutes.OpTranscript, http.MethodGet, "/v1/elsewhere/{meeting_id}"))
		r, err := c.Meetings.Process(t.Context(), weekly("x"), testkit.Audio(100), &minutes.ProcessOptions{Restart: true, Transcript: true})
		require.ErrorIs(t, err, minutes.ErrNotFound)
		assert.True(t, r.Created)
		assert.NotNil(t, r.Minutes)
		assert.Len(t, srv.Requests("meetings.create"), 1)
	})
}

type unclosable struct{ io.ReaderAt }

var errUnclosable = errors.New("cannot be closed")

func (unclosable) Close() error { return errUnclosable }

// A recording that cannot be closed has been uploaded all the same.
func TestProcessAllWithARecordingThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs := slices.Values([]minutes.Job{{Params: weekly("x"), Open: func() (minutes.Recording, error) {
			rec := testkit.Audio(100)
			rec.Audio = unclosable{rec.Audio}
			return rec, nil
		}}})
		n := 0
		for r, err := range testkit.Client(minutestest.NewServer(t)).Meetings.ProcessAll(t.Context(), jobs, nil) {
			n++
			require.ErrorIs(t, err, errUnclosable)
			assert.NotNil(t, r.Minutes)
		}
		assert.Equal(t, 1, n)
	})
}

// Why a recording could not be closed is told at the end, also of a job that starts
// over meanwhile.
func TestProcessStartsOverWithARecordingThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]struct {
		create bool // the second start is refused its meeting,
		open   error
	}{
		"and ends well": {}, "and gets no meeting": {create: true}, "and cannot open it": {open: errors.New("gone")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				if second.create {
					srv.Inject(minutestest.Match{Operation: "meetings.create", Nth: 2}, minutestest.Refuse(minutes.ErrUnauthenticated))
				}
				opened := 0
				open := func() (minutes.Recording, error) {
					rec := testkit.Audio(100)
					if opened++; opened > 1 {
						return rec, second.open
					}
					rec.Audio = unclosable{rec.Audio}
					return rec, nil
				}
				remove := sync.OnceFunc(func() {
					assert.NoError(t, testkit.Client(srv).Meetings.Delete(t.Context(), srv.Requests("meetings.create")[0].MeetingID))
				})
				opts := &minutes.ProcessOptions{Restart: true, OnStatus: func(*minutes.Meeting) { remove() }}
				jobs := slices.Values([]minutes.Job{{Params: weekly("x"), Open: open}})
				for _, err := range testkit.Client(srv).Meetings.ProcessAll(t.Context(), jobs, opts) {
					require.ErrorIs(t, err, errUnclosable)
					require.Equal(t, second.create, errors.Is(err, minutes.ErrUnauthenticated))
					require.True(t, second.open == nil || errors.Is(err, second.open))
				}
				require.Len(t, srv.Requests("meetings.create"), 2)
			})
		})
	}
}

// Many jobs that a worker comes back to are not looked at again at once, either.
func TestProcessAllComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := testkit.Generous()
		w.Stages.Transcribe = time.Hour
		srv := minutestest.NewServer(t, minutestest.WithWorld(w))
		jobs := func(yield func(minutes.Job) bool) {
			for i := range 100 {
				if !yield(minutes.Job{Params: weekly(fmt.Sprint("job ", i)), Open: func() (minutes.Recording, error) { return testkit.Audio(100), nil }}) {
					return
				}
			}
		}
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			for range testkit.Client(srv, minutes.WithUploads(50)).Meetings.ProcessAll(ctx, jobs, nil) {
			}
			cancel()
		}
		assert.LessOrEqual(t, len(srv.Requests("meetings.list")), 4, "the first run's")
	})
}

// eachWayToBreak runs a test for a panic and for an end of the goroutine, in a
// bubble, where a goroutine that is left fails the test.
func eachWayToBreak(t *testing.T, test func(t *testing.T, srv *minutestest.Server, panics bool, breaks func())) {
	for name, breaks := range map[string]func(){"panic": func() { panic("broken") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				test(t, minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()), minutestest.WithoutAudit(minutestest.ViolationUploadURL)), name == "panic", breaks)
			})
		})
	}
}

// opening is a job without anything odd.
func opening(externalID string) minutes.Job {
	return minutes.Job{Params: weekly(externalID), Open: func() (minutes.Recording, error) { return testkit.Audio(100), nil }}
}

// requireIdle checks that nobody asks the service for anything any more.
func requireIdle(t *testing.T, srv *minutestest.Server) {
	t.Helper()
	synctest.Wait() // a request that was just cancelled may still arrive
	before := len(srv.Requests())
	time.Sleep(time.Hour)
	require.Len(t, srv.Requests(), before)
}

// loopEnd is what a loop came to that may have been broken.
type loopEnd struct {
	panicked any
	exited   bool
	errs     map[string]error // by external id
}

// loop runs a ProcessAll to its end on a goroutine of its own.
func loop(seq iter.Seq2[*minutes.Result, error]) loopEnd {
	end := loopEnd{exited: true, errs: map[string]error{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { end.panicked = recover() }()
		for r, err := range seq {
			if end.errs[r.Params.ExternalID] == nil {
				end.errs[r.Params.ExternalID] = err
			}
		}
		end.exited = false
	})
	wg.Wait()
	return end
}

// While jobs blocks, what has ended is yielded.
func TestProcessAllWhileJobsBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		jobs := make(chan minutes.Job)
		began, n := time.Now(), 0
		go func() {
			for i := range 5 {
				jobs <- opening(fmt.Sprint("rec-", i))
				time.Sleep(3 * time.Hour)
			}
			close(jobs)
		}()
		for r, err := range testkit.Client(srv, minutes.WithUploads(1)).Meetings.ProcessAll(t.Context(), channel(jobs), nil) {
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint("rec-", n), r.Params.ExternalID)
			assert.InDelta(t, time.Duration(n)*3*time.Hour+15*time.Minute, time.Since(began), float64(2*time.Minute))
			n++
		}
		assert.Equal(t, 5, n)
		assert.Equal(t, 15*time.Hour, time.Since(began), "until no job can come any more")
	})
}

// While jobs blocks, ctx is obeyed; jobs is told so at its next element, which is
// not begun.
func TestProcessAllObeysContextWhileJobsBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		jobs := make(chan minutes.Job, 1)
		jobs <- opening("rec-0")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		began, n := time.Now(), 0
		for r, err := range testkit.Client(srv).Meetings.ProcessAll(ctx, channel(jobs), nil) {
			n++
			assert.Equal(t, minutes.StatusTranscribing, r.Meeting.Status)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.Equal(t, 1, n)
		assert.Equal(t, 5*time.Minute, time.Since(began))
		jobs <- opening("rec-1")
		synctest.Wait()
		jobs <- opening("nobody takes this one")
		requireIdle(t, srv)
		assert.Len(t, jobs, 1)
		assert.Len(t, srv.Requests("meetings.create"), 1)
	})
}

// A loop that is left while jobs blocks leaves nothing behind once jobs goes on.
func TestProcessAllLeftWhileJobsBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		blocked := make(chan struct{})
		told := false
		jobs := func(yield func(minutes.Job) bool) {
			assert.True(t, yield(opening("rec-0")))
			<-blocked
			told = !yield(opening("rec-1"))
		}
		for _, err := range testkit.Client(srv).Meetings.ProcessAll(t.Context(), jobs, nil) {
			require.NoError(t, err)
			break
		}
		requireIdle(t, srv)
		close(blocked)
		requireIdle(t, srv)
		assert.True(t, told)
		assert.Len(t, srv.Requests("meetings.create"), 1)
	})
}

// A loop that is left while no job is asked for tells jobs at once.
func TestProcessAllLeftWithoutRoom(t *testing.T) {
	t.Parallel()
	for _, leave := range []bool{false, true} {
		t.Run(fmt.Sprint(leave), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, Nth: 2, Times: minutestest.Always}, minutestest.Delay(time.Hour))
				patient := testkit.Client(srv, minutes.WithUploadTimeouts(time.Hour, time.Hour), minutes.WithUploads(1))
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
				defer cancel()
				given, told := 0, false
				jobs := func(yield func(minutes.Job) bool) {
					for !told && given < 5 {
						given++
						told = !yield(opening(fmt.Sprint("rec-", given)))
					}
				}
				for range patient.Meetings.ProcessAll(ctx, jobs, nil) {
					if leave {
						break
					}
				}
				synctest.Wait()
				assert.True(t, told)
				assert.Equal(t, 2, given)
			})
		})
	}
}

// A job that is at hand when ctx ends, or when the loop is left, is not begun.
func TestProcessAllWithAJobAtHand(t *testing.T) {
	t.Parallel()
	for i := range testbase.Many(20, 8) { // whether the end or the job is seen first is chance
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			jobs := make(chan minutes.Job, 1)
			jobs <- opening("rec-0")
			told := false
			seq := func(yield func(minutes.Job) bool) { channel(jobs)(yield); told = true }
			for _, err := range testkit.Client(srv).Meetings.ProcessAll(ctx, seq, nil) {
				require.NoError(t, err)
				jobs <- opening("rec-1")
				synctest.Wait()
				if i%2 == 0 {
					break
				}
				cancel()
			}
			synctest.Wait()
			assert.True(t, told)
			assert.Len(t, srv.Requests("meetings.create"), 1)
		})
	}
}

// The next job is asked for when there is room for its upload.
func TestProcessAllAsksForJobsWithRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, Times: minutestest.Always}, minutestest.Delay(time.Second))
		var uploading atomic.Int64
		jobs := func(yield func(minutes.Job) bool) {
			for i := range 20 {
				assert.Less(t, uploading.Load(), int64(3))
				uploading.Add(1)
				job := minutes.Job{Params: weekly(fmt.Sprint("rec-", i)), Open: func() (minutes.Recording, error) {
					rec := testkit.Audio(10)
					rec.Audio = &closing{rec, func() { uploading.Add(-1) }}
					return rec, nil
				}}
				if !yield(job) {
					return
				}
			}
		}
		for _, err := range testkit.Client(srv, minutes.WithUploads(3)).Meetings.ProcessAll(t.Context(), jobs, nil) {
			require.NoError(t, err)
		}
		assert.Zero(t, uploading.Load())
	})
}

// A job that starts over has room while jobs blocks, and gives it back.
func TestProcessAllStartsOverWhileJobsBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()), minutestest.WithoutAudit(minutestest.ViolationPoll))
		jobs := make(chan minutes.Job, 1)
		jobs <- opening("rec-0")
		other := testkit.Client(srv)
		time.AfterFunc(5*time.Minute, func() {
			m, err := other.Meetings.FindByExternalID(t.Context(), "rec-0")
			if assert.NoError(t, err) {
				assert.NoError(t, other.Meetings.Delete(t.Context(), m.ID))
			}
		})
		began := time.Now()
		var ended []string
		for r, err := range testkit.Client(srv, minutes.WithUploads(1)).Meetings.ProcessAll(t.Context(), channel(jobs), &minutes.ProcessOptions{Restart: true}) {
			require.NoError(t, err)
			if ended = append(ended, r.Params.ExternalID); len(ended) == 1 {
				assert.Less(t, time.Since(began), time.Hour)
				jobs <- opening("rec-1")
				close(jobs)
			}
		}
		assert.Equal(t, []string{"rec-0", "rec-1"}, ended)
		assert.Len(t, srv.Requests("meetings.create"), 3)
	})
}

// A panic in jobs, or an end of its goroutine, goes on where the loop is, and
// nothing runs any more.
func TestProcessAllOfJobsThatBreak(t *testing.T) {
	t.Parallel()
	eachWayToBreak(t, func(t *testing.T, srv *minutestest.Server, panics bool, breaks func()) {
		jobs := func(yield func(minutes.Job) bool) { yield(opening("rec-0")); time.Sleep(time.Minute); breaks() }
		end := loop(testkit.Client(srv).Meetings.ProcessAll(t.Context(), jobs, nil))
		assert.True(t, end.exited)
		assert.Empty(t, end.errs)
		if panics {
			assert.Equal(t, "broken", end.panicked)
		}
		requireIdle(t, srv)
	})
}

// A callback that panics, or ends its goroutine, never leaves the loop hanging.
func TestProcessAllOfACallbackThatBreaks(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"Open", "OnStatus", "Close"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			eachWayToBreak(t, func(t *testing.T, srv *minutestest.Server, panics bool, breaks func()) {
				in := func(callback string) {
					if callback == where {
						breaks()
					}
				}
				var open atomic.Int64
				bad := opening("bad")
				bad.Open = func() (minutes.Recording, error) {
					in("Open")
					rec := testkit.Audio(10)
					rec.Audio = &closing{rec, func() { in("Close") }}
					return rec, nil
				}
				good := opening("good")
				good.Progress = func(int64, int64) {}
				good.Open = func() (minutes.Recording, error) {
					open.Add(1)
					rec := testkit.Audio(10_000)
					rec.Audio = &closing{rec, func() { open.Add(-1) }}
					return rec, nil
				}
				last := opening("last")
				last.Progress = good.Progress
				opts := &minutes.ProcessOptions{
					OnStatus: func(m *minutes.Meeting) {
						if m.ExternalID == "bad" {
							in("OnStatus")
						}
					},
				}
				client := testkit.Client(srv, minutes.WithUploads(1+len(where)%2)) // a place that is not given back would be missed
				end := loop(client.Meetings.ProcessAll(t.Context(), slices.Values([]minutes.Job{good, bad, bad, last}), opts))
				assert.Zero(t, open.Load(), "what is open when the loop ends")
				assert.Equal(t, panics, end.exited)
				if panics {
					assert.Equal(t, "broken", end.panicked)
				} else {
					assert.ErrorContains(t, end.errs["bad"], "ended its goroutine")
					assert.NoError(t, end.errs["good"])
					assert.NoError(t, end.errs["last"])
					assert.Len(t, end.errs, 3)
				}
				requireIdle(t, srv)
			})
		})
	}
}

// Where more than one thing breaks, the first one is told, after all has ended:
// a loop that panics itself, a job that panics when it is cancelled.
func TestProcessAllOfALoopThatBreaks(t *testing.T) {
	t.Parallel()
	for want, left := range map[string]func() bool{
		"the loop":  func() bool { panic("the loop") },
		"the close": func() bool { return false },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, Nth: 2, Times: minutestest.Always}, minutestest.Delay(time.Hour))
				late := minutes.Job{Params: weekly("late"), Open: func() (minutes.Recording, error) {
					rec := testkit.Audio(10)
					rec.Audio = &closing{rec, func() { panic("the close") }}
					return rec, nil
				}}
				jobs := func(yield func(minutes.Job) bool) {
					if yield(opening("rec-0")) {
						time.Sleep(10 * time.Second)
						yield(late)
					}
				}
				assert.PanicsWithValue(t, want, func() {
					testkit.Client(srv).Meetings.ProcessAll(t.Context(), jobs, nil)(func(*minutes.Result, error) bool { return left() })
				})
				requireIdle(t, srv)
			})
		})
	}
}

// What cannot be used is refused before any request.
func TestProcessAllParams(t *testing.T) {
	t.Parallel()
	jobs := slices.Values([]minutes.Job{opening("rec-0")})
	for name, test := range map[string]struct {
		ctx   context.Context
		jobs  iter.Seq[minutes.Job]
		opts  *minutes.ProcessOptions
		param string
	}{
		"no context":         {nil, jobs, nil, "ctx"},
		"no jobs":            {t.Context(), nil, nil, "jobs"},
		"end in a failure":   {t.Context(), jobs, &minutes.ProcessOptions{Until: minutes.StatusMinutesFailed}, "opts.Until"},
		"unprintable format": {t.Context(), jobs, &minutes.ProcessOptions{Format: "\xff"}, "opts.Format"},
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

// A job that cannot be used is yielded with its error, also where it might start
// over.
func TestProcessAllOfJobsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	open := func() (minutes.Recording, error) { return testkit.Audio(10), nil }
	for param, job := range map[string]minutes.Job{"params": {Open: open}, "job.Open": {Params: weekly("rec-0")}} {
		for r, err := range testkit.Silent(t).Meetings.ProcessAll(t.Context(), slices.Values([]minutes.Job{job}), &minutes.ProcessOptions{Restart: true}) {
			assert.Equal(t, job.Params, r.Params)
			testkit.RequireParamError(t, err, param, "")
		}
	}
}

// quick is a service whose meetings have their minutes at once.
func quick() *minutestest.Server {
	world := minutestest.DefaultWorld()
	world.Stages = minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}
	return minutestest.New(minutestest.WithWorld(world))
}

// The whole job. After a crash the same call goes on where the last one was: the
// recording is not uploaded again.
func ExampleMeetingsService_Process() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()

	for range 2 {
		// A file of a web form needs no copy: a multipart.File is a Recording's Audio.
		upload := strings.NewReader(strings.Repeat("sound", 1000))
		recording := minutes.Recording{Audio: upload, Size: upload.Size(), ContentType: "audio/mpeg"}
		result, err := client.Meetings.Process(context.Background(), &minutes.MeetingCreateParams{
			Title:      "Weekly",
			Date:       "2026-11-20",
			ExternalID: "weekly-2026-11-20",
		}, recording, &minutes.ProcessOptions{Format: minutes.FormatMarkdown})
		if err != nil {
			log.Fatal(err)
		}
		heading, _, _ := strings.Cut(result.Minutes.Content, "\n")
		fmt.Println(heading, result.Created)
	}
	fmt.Println(len(srv.Requests(minutestest.OpUpload)), "upload")
	// Output:
	// # Weekly true
	// # Weekly false
	// 1 upload
}

// Many jobs: four uploads at a time, any number of waits.
func ExampleMeetingsService_ProcessAll() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()

	jobs := func(yield func(minutes.Job) bool) {
		for _, day := range []string{"2026-11-19", "2026-11-20"} {
			job := minutes.Job{
				Params: &minutes.MeetingCreateParams{Title: "Stand-up", Date: day, ExternalID: "stand-up-" + day},
				Open: func() (minutes.Recording, error) { // os.Open, or minutes.OpenRecording
					return minutes.RecordingFromReader(strings.NewReader("sound of "+day), "audio/mpeg")
				},
			}
			if !yield(job) {
				return
			}
		}
	}
	var done []string
	for result, err := range client.Meetings.ProcessAll(context.Background(), jobs, nil) {
		if err != nil {
			log.Print(err) // and the others go on
			continue
		}
		done = append(done, result.Params.ExternalID)
	}
	slices.Sort(done)
	fmt.Println(done)
	// Output: [stand-up-2026-11-19 stand-up-2026-11-20]
}

// How far a job is: percent of the upload, and the meeting's states.
func ExampleMeetingsService_Process_progress() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	sound := strings.NewReader(strings.Repeat("sound", 1000))
	recording := minutes.Recording{Audio: sound, Size: sound.Size(), ContentType: "audio/mpeg"}
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"}

	var percent atomic.Int64 // for a progress bar; Progress runs beside the upload
	result, err := client.Meetings.Process(ctx, params, recording, &minutes.ProcessOptions{
		Progress: func(sent, total int64) { percent.Store(100 * sent / total) },
		OnStatus: func(m *minutes.Meeting) { fmt.Println("now", m.Status) },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(percent.Load(), "% sent,", len(result.Minutes.Content) > 0)
	// Output:
	// now minutes_ready
	// 100 % sent, true
}

// A service answers with the id of a meeting, and does the rest in the background.
// Where it dies meanwhile, the same call goes on.
func ExampleMeetingsService_Finish() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	path := "examples/quickstart/recording/standup.mp3"

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"})
	if err != nil {
		log.Fatal(err)
	}
	id := m.ID // goes into the answer and into a table of jobs

	var lookedAt time.Time
	for range 2 { // the second time after a crash
		open := func() (minutes.Recording, error) { return minutes.OpenRecording(path) }
		result, err := client.Meetings.Finish(ctx, id, open, &minutes.ProcessOptions{
			Format:   minutes.FormatMarkdown,
			LookedAt: lookedAt, // by the process that died; when this one began, if that is not known
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Meeting.Status, len(srv.Requests(minutes.OpUpload)), "upload")
	}
	// Output:
	// minutes_ready 1 upload
	// minutes_ready 1 upload
}

// created makes a meeting and uploads its recording.
func created(client *minutes.Client, title string) (id string) {
	ctx := context.Background()
	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: title, Date: "2026-11-20"})
	if err != nil {
		log.Fatal(err)
	}
	sound := strings.NewReader(strings.Repeat("sound", 1000))
	if err := client.Meetings.Upload(ctx, m.ID, minutes.Recording{Audio: sound, Size: sound.Size(), ContentType: "audio/mpeg"}, nil); err != nil {
		log.Fatal(err)
	}
	return m.ID
}

// A job that comes back to a meeting that is waited for leaves that wait as it
// is: it ends with its context, and then nobody asks any more.
func TestProcessComesBackToAWait(t *testing.T) {
	t.Parallel()
	for name, interval := range map[string]time.Duration{"fresh": 0, "looked at long ago": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
				require.NoError(t, srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing}))
				c, l := testkit.WatchLooks(srv)
				p := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "job-1"}
				m, _, err := c.Meetings.Create(t.Context(), p)
				require.NoError(t, err)
				require.NoError(t, c.Meetings.Upload(t.Context(), m.ID, testkit.Audio(10), nil))
				var wg sync.WaitGroup
				wg.Go(func() {
					seen := testkit.WaitFor(t, c, m.ID, 20*time.Minute, &minutes.WaitOptions{Interval: interval})
					assert.Equal(t, minutes.StatusTranscribing, seen.Status)
				})
				time.Sleep(5*time.Minute + 10*time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				_, err = c.Meetings.Process(ctx, p, testkit.Audio(10), nil)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				wg.Wait()
				synctest.Wait()
				assert.Zero(t, l.TooSoon([]string{m.ID}), "looks within the floor")
				synctest.Wait()
				testkit.RequireQuiet(t, l)
			})
		})
	}
}

// What a job returned is its caller's; a wait that is served from what the job
// saw does not see what the caller makes of it.
func TestProcessResultIsTheCallersOwn(t *testing.T) {
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
		r.Meeting.Title, r.Meeting.ParticipantIDs[0], *r.Meeting.DurationSeconds = "mine", "me", -1
		m, err := c.Meetings.Wait(t.Context(), r.Meeting.ID, nil)
		require.NoError(t, err)
		require.Len(t, srv.Requests("meetings.get"), n)
		assert.Equal(t, "Weekly", m.Title)
		assert.Equal(t, []string{"emp_ada"}, m.ParticipantIDs)
		assert.NotEqual(t, -1, *m.DurationSeconds)
	})
}

// soundless opens a recording that must not be opened.
func soundless(t *testing.T) func() (minutes.Recording, error) {
	return func() (minutes.Recording, error) {
		t.Error("the recording was opened")
		return minutes.Recording{}, errors.New("nothing to open")
	}
}

// Finish goes on from whatever state the meeting is in.
func TestFinish(t *testing.T) {
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
					require.NoError(t, srv.Script(minutestest.Script{Outcome: state}))
				}
				m := testkit.Uploaded(t, testkit.Client(srv), "Weekly")
				_, err := srv.Advance(m.ID, state)
				require.NoError(t, err)
				for _, open := range []func() (minutes.Recording, error){soundless(t), nil} {
					var states []minutes.Status
					opts := &minutes.ProcessOptions{Format: minutes.FormatMarkdown, Transcript: true, Restart: true, OnStatus: func(m *minutes.Meeting) { states = append(states, m.Status) }}
					r, err := testkit.Client(srv).Meetings.Finish(t.Context(), m.ID, open, opts)
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
					assert.Contains(t, r.Transcript, "spk_0")
					assert.Equal(t, slices.Compact(slices.Clone(states)), states, "each status is told once")
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
			r, err := testkit.Client(srv).Meetings.Finish(t.Context(), id, nil, nil)
			require.ErrorIs(t, err, minutes.ErrNoAudio)
			require.Equal(t, id, r.Meeting.ID)
			var sent int64
			opened, closed := 0, 0
			open := func() (minutes.Recording, error) {
				opened++
				rec := testkit.Audio(5000)
				rec.Audio = &closing{rec, func() { closed++ }}
				return rec, nil
			}
			opts := &minutes.ProcessOptions{Progress: func(n, _ int64) { sent = n }, LookedAt: time.Now()}
			r, err = testkit.Client(srv).Meetings.Finish(t.Context(), id, open, opts)
			require.NoError(t, err)
			assert.NotEmpty(t, r.Minutes.Content)
			assert.EqualValues(t, 5000, sent)
			assert.Equal(t, 1, opened)
			assert.Equal(t, 1, closed)
		})
	})
}

// What cannot be used is refused before any request; what comes later leaves a
// Result.
func TestFinishErrors(t *testing.T) {
	t.Parallel()
	open := func() (minutes.Recording, error) { return testkit.Audio(10), nil }
	for name, test := range map[string]struct {
		ctx   context.Context
		id    string
		opts  *minutes.ProcessOptions
		param string
	}{
		"no context":         {nil, "mtg_1", nil, "ctx"},
		"no id":              {t.Context(), "", nil, "id"},
		"path":               {t.Context(), "..", nil, "id"},
		"end in a failure":   {t.Context(), "mtg_1", &minutes.ProcessOptions{Until: minutes.StatusAudioRejected}, "opts.Until"},
		"unprintable format": {t.Context(), "mtg_1", &minutes.ProcessOptions{Format: "\xff"}, "opts.Format"},
	} {
		r, err := testkit.Silent(t).Meetings.Finish(test.ctx, test.id, open, test.opts)
		assert.Nil(t, r, name)
		testkit.RequireParamError(t, err, test.param, "")
	}
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		r, err := c.Meetings.Finish(t.Context(), "mtg_gone", open, nil)
		require.ErrorIs(t, err, minutes.ErrNotFound)
		assert.Nil(t, r.Meeting)

		id := testkit.Waiting(t, srv)
		r, err = c.Meetings.Finish(t.Context(), id, func() (minutes.Recording, error) { return minutes.OpenRecording("missing") }, nil)
		require.ErrorIs(t, err, os.ErrNotExist)
		assert.Equal(t, id, r.Meeting.ID)
		closed := 0
		_, err = c.Meetings.Finish(t.Context(), id, func() (minutes.Recording, error) {
			return minutes.Recording{Audio: &closing{testkit.Audio(10), func() { closed++ }}, ContentType: "audio/mpeg"}, nil
		}, nil)
		require.ErrorIs(t, err, minutes.ErrRecordingEmpty)
		assert.Equal(t, 1, closed)
		r, err = c.Meetings.Finish(t.Context(), id, func() (minutes.Recording, error) {
			rec := testkit.Audio(10)
			rec.Audio = unclosable{rec.Audio}
			return rec, nil
		}, nil)
		require.ErrorIs(t, err, errUnclosable)
		assert.NotNil(t, r.Minutes)
	})
}

// What was seen of a meeting counts as a look, by whichever call or process: no
// GET comes within thirty seconds, and an upload waits for none.
func TestFinishKeepsTheFloor(t *testing.T) {
	t.Parallel()
	open := func() (minutes.Recording, error) { return testkit.Audio(10), nil }
	t.Run("after a create", func(t *testing.T) {
		t.Parallel()
		for name, others := range map[string]int{"alone": 0, "beside very many waits": 1100} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := testkit.Generous()
					w.Stages.Transcribe = time.Hour
					srv := minutestest.NewServer(t, minutestest.WithWorld(w))
					ids := testkit.Crowd(t, srv, others, 1, 10*time.Hour)
					c, looks := testkit.WatchLooks(srv)
					var wg sync.WaitGroup
					defer wg.Wait()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					wg.Go(func() {
						for range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
						}
					})
					time.Sleep(time.Duration(testbase.Many(10, 2)) * time.Minute)
					for range 5 { // at any time of a turn
						time.Sleep(7 * time.Second)
						m, _, err := c.Meetings.Create(t.Context(), weekly(""))
						require.NoError(t, err)
						began := time.Now()
						r, err := c.Meetings.Finish(ctx, m.ID, open, &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded})
						require.NoError(t, err)
						assert.Equal(t, minutes.StatusAudioUploaded, r.Meeting.Status)
						assert.Less(t, time.Since(began), 5*time.Second)
						assert.LessOrEqual(t, len(looks.Of(m.ID)), 1, "the look after the upload")
					}
				})
			})
		}
	})
	t.Run("after another process", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
			m := testkit.Uploaded(t, testkit.Client(srv), "Weekly")
			for i := range 10 { // processes, each of which dies soon after its first look
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 33*time.Second)
				_, err := testkit.Client(srv).Meetings.Finish(ctx, m.ID, nil, &minutes.ProcessOptions{LookedAt: began})
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Len(t, srv.Requests("meetings.get"), i+1)
			}
		})
	})
}

// A worker uploads, another one waits: the first ends once the audio is there, and
// the second has nothing to upload.
func TestFinishByTwoKindsOfWorkers(t *testing.T) {
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
					assert.Empty(t, r.Transcript)
				}
				id := srv.Requests("meetings.get")[0].MeetingID
				r, err := testkit.Client(srv).Meetings.Finish(t.Context(), id, nil, &minutes.ProcessOptions{LookedAt: time.Now()})
				require.NoError(t, err)
				assert.NotNil(t, r.Minutes)
				oneMeeting(t, srv, 1)
			})
		})
	}
}

// Beside very many waits the poller keeps no meeting whole. A job's own is whole all
// the same where its wait fails, and one that has come to Until is not looked at
// again.
func TestJobBesideVeryManyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		c := testkit.Client(srv, minutes.WithRateLimit(0, 0))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wait := func(id string) {
			wg.Go(func() {
				_, err := c.Meetings.Wait(ctx, id, nil)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		for _, id := range testkit.Crowd(t, srv, 1100, 1, time.Hour) {
			wait(id)
		}
		params := &minutes.MeetingCreateParams{Title: "Mine", Date: "2026-11-20", ExternalID: "mine"}
		m, _, err := c.Meetings.Create(ctx, params)
		require.NoError(t, err)
		require.NoError(t, c.Meetings.Upload(ctx, m.ID, testkit.Audio(1000), nil))
		wait(m.ID)
		time.Sleep(65 * time.Second)
		start, looks := time.Now(), len(srv.Requests(minutes.OpMeetingsGet))
		_, err = c.Meetings.Process(ctx, params, testkit.Audio(1000), &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded})
		require.NoError(t, err)
		require.Zero(t, time.Since(start))
		require.Len(t, srv.Requests(minutes.OpMeetingsGet), looks)
		r, err := c.Meetings.Process(ctx, params, testkit.Audio(1000), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "Mine", r.Meeting.Title)
		wg.Wait()
	})
}

// A job whose context ends while others have all places ends, too, and its recording
// is never opened.
func TestProcessWithoutAPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.LongStages()))
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.Delay(time.Hour))
		c := testkit.Client(srv, minutes.WithUploads(1))
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
		open := func() (minutes.Recording, error) {
			t.Error("opened without a place")
			return testkit.Audio(10), nil
		}
		began := time.Now()
		r, err := c.Meetings.Finish(ctx, m.ID, open, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "while it waited for other uploads")
		require.Equal(t, minutes.StatusCreated, r.Meeting.Status)
		require.LessOrEqual(t, time.Since(began), time.Minute)
		require.ErrorIs(t, <-first, context.DeadlineExceeded)
	})
}

// A recording is closed before its place is given to another.
func TestFinishClosesBeforeItGivesItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := testkit.Client(minutestest.NewServer(t), minutes.WithUploads(1))
		var now, most atomic.Int64
		open := func() (minutes.Recording, error) {
			most.Store(max(most.Load(), now.Add(1)))
			rec := testkit.Audio(10)
			rec.Audio = &closing{rec, func() {
				time.Sleep(time.Second)
				now.Add(-1)
			}}
			return rec, nil
		}
		var wg sync.WaitGroup
		for range 3 {
			m, _, err := c.Meetings.Create(t.Context(), weekly(""))
			require.NoError(t, err)
			wg.Go(func() {
				_, err := c.Meetings.Finish(t.Context(), m.ID, open, &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded})
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		assert.EqualValues(t, 1, most.Load(), "open at once")
	})
}
