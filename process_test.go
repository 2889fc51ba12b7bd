package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
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
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func weekly(externalID string) *minutes.MeetingCreateParams {
	return &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: externalID}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c := clientOf(srv)
		var states []minutes.Status
		var sent int64
		r, err := c.Meetings.Process(t.Context(), weekly("rec-1"), audio(5000), &minutes.ProcessOptions{
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
		again, err := c.Meetings.Process(t.Context(), weekly("rec-1"), audio(5000), nil)
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
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 31*time.Second)
			var states []minutes.Status
			var seen *minutes.Meeting
			r, err := clientOf(srv).Meetings.Process(ctx, weekly("rec-1"), audio(5000), &minutes.ProcessOptions{
				OnStatus: func(m *minutes.Meeting) { states, seen = append(states, m.Status), m },
			})
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotEmpty(t, states)
			require.Equal(t, states[len(states)-1], r.Meeting.Status, "as last seen")
			require.GreaterOrEqual(t, r.Meeting.UpdatedAt, seen.UpdatedAt)
			time.Sleep(2 * time.Second)
		}
		r, err := clientOf(srv).Meetings.Process(t.Context(), weekly("rec-1"), audio(5000), nil)
		require.NoError(t, err)
		require.Equal(t, minutes.StatusMinutesReady, r.Meeting.Status)
	})
}

func TestProcessOfAFailedMeeting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		require.NoError(t, srv.Script(minutestest.Script{ExternalID: "rec-1", Outcome: minutes.StatusTranscriptionFailed}))
		c := clientOf(srv)
		r, err := c.Meetings.Process(t.Context(), weekly("rec-1"), audio(10), nil)
		failed, ok := errors.AsType[*minutes.MeetingFailedError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, r.Meeting, failed.Meeting)

		uploads := len(srv.Requests(minutestest.OpUpload))
		_, err = c.Meetings.Process(t.Context(), weekly("rec-1"), audio(10), nil)
		_, ok = errors.AsType[*minutes.MeetingFailedError](err)
		require.True(t, ok, "%v", err)
		assert.Contains(t, err.Error(), "external id")
		assert.Len(t, srv.Requests(minutestest.OpUpload), uploads, "nothing is uploaded to a failed meeting")

		require.NoError(t, srv.Script(minutestest.Script{ExternalID: "rec-1"}))
		fresh, err := c.Meetings.Process(t.Context(), weekly("rec-1"), audio(10), &minutes.ProcessOptions{Restart: true})
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
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()), minutestest.WithoutAudit(minutestest.ViolationPoll))
		require.NoError(t, srv.Script(minutestest.Script{ExternalID: "rec-1", Outcome: minutes.StatusTranscriptionFailed}))
		failed, _, err := clientOf(srv).Meetings.Create(t.Context(), weekly("rec-1"))
		require.NoError(t, err)
		require.NoError(t, clientOf(srv).Meetings.Upload(t.Context(), failed.ID, audio(10), nil))
		slow := make(chan *minutes.Result)
		go func() {
			r, err := clientOf(srv).Meetings.Process(t.Context(), weekly("rec-1"), audio(10), &minutes.ProcessOptions{Restart: true})
			assert.NoError(t, err)
			slow <- r
		}()
		synctest.Wait()
		_, err = srv.Advance(failed.ID, minutes.StatusTranscriptionFailed)
		require.NoError(t, err)
		require.NoError(t, srv.Script(minutestest.Script{ExternalID: "rec-1"}))
		quick, err := clientOf(srv).Meetings.Process(t.Context(), weekly("rec-1"), audio(10), &minutes.ProcessOptions{Restart: true})
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
					srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
					ctx, die := context.WithCancel(t.Context())
					dying := clientOf(srv, minutes.WithHTTPClient(&http.Client{Transport: &crash{
						next: srv.HTTPClient().Transport, after: after, mid: mid, onCrash: die,
					}}))
					_, err := dying.Meetings.Process(ctx, weekly("rec-1"), audio(100_000), nil)
					require.ErrorIs(t, err, context.Canceled)

					time.Sleep(time.Minute)
					_, err = clientOf(srv).Meetings.Process(t.Context(), weekly("rec-1"), audio(100_000), nil)
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
	for m, err := range clientOf(srv).Meetings.All(t.Context(), nil) {
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
	runs := 200
	if !long() {
		runs = 20
	}
	for seed := range runs {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()),
				minutestest.WithoutAudit(minutestest.ViolationUploadURL, minutestest.ViolationPoll)) // two Clients know nothing of each other
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
					r, err := clientOf(srv).Meetings.Process(t.Context(), weekly("rec-1"), audio(10_000), nil)
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
						return audio(100 + i), nil
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
			srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
			ended := map[string]error{}
			for r, err := range clientOf(srv).Meetings.ProcessAll(t.Context(), slices.Values(jobs(50)), nil) {
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
			srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
			srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, Times: minutestest.Always}, minutestest.Delay(time.Second))
			var now, most atomic.Int64
			open := func() (minutes.Recording, error) {
				most.Store(max(most.Load(), now.Add(1)))
				return minutes.Recording{Audio: &closing{audio(10), func() { now.Add(-1) }}, Size: 10, ContentType: "audio/mpeg"}, nil
			}
			var list []minutes.Job
			for i := range 30 {
				list = append(list, minutes.Job{Params: weekly(fmt.Sprint("rec-", i)), Open: open})
			}
			start := time.Now()
			for _, err := range clientOf(srv).Meetings.ProcessAll(t.Context(), slices.Values(list), &minutes.ProcessOptions{Uploads: 3}) {
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
			srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
			for range clientOf(srv).Meetings.ProcessAll(t.Context(), slices.Values(jobs(20)), nil) {
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
			srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n := 0
			for _, err := range clientOf(srv).Meetings.ProcessAll(ctx, slices.Values(jobs(20)[4:10]), nil) {
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
		c := clientOf(srv, minutes.WithRoute(minutes.OpTranscript, http.MethodGet, "/v1/elsewhere/{meeting_id}"))
		r, err := c.Meetings.Process(t.Context(), weekly("x"), audio(100), &minutes.ProcessOptions{Restart: true, Transcript: true})
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
			rec := audio(100)
			rec.Audio = unclosable{rec.Audio}
			return rec, nil
		}}})
		n := 0
		for r, err := range clientOf(minutestest.NewServer(t)).Meetings.ProcessAll(t.Context(), jobs, nil) {
			n++
			require.ErrorIs(t, err, errUnclosable)
			assert.NotNil(t, r.Minutes)
		}
		assert.Equal(t, 1, n)
	})
}

// Many jobs that a worker comes back to are not looked at again at once, either.
func TestProcessAllComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := generous()
		w.Stages.Transcribe = time.Hour
		srv := minutestest.NewServer(t, minutestest.WithWorld(w))
		jobs := func(yield func(minutes.Job) bool) {
			for i := range 100 {
				if !yield(minutes.Job{Params: weekly(fmt.Sprint("job ", i)), Open: func() (minutes.Recording, error) { return audio(100), nil }}) {
					return
				}
			}
		}
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			for range clientOf(srv).Meetings.ProcessAll(ctx, jobs, &minutes.ProcessOptions{Uploads: 50}) {
			}
			cancel()
		}
		assert.LessOrEqual(t, len(srv.Requests("meetings.list")), 4, "the first run's")
	})
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
