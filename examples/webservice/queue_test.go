package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

const org = "org_acme" // of the default world

// slow is a service whose minutes take seven minutes.
func slow(t *testing.T, opts ...minutestest.Option) *minutestest.Server {
	t.Helper()
	world := minutestest.DefaultWorld()
	world.Stages = minutestest.Stages{Prepare: time.Minute, Transcribe: 5 * time.Minute, Write: time.Minute}
	return minutestest.NewServer(t, append(opts, minutestest.WithWorld(world))...)
}

func update(t *testing.T, srv *minutestest.Server, change func(*minutestest.Organisation)) {
	t.Helper()
	srv.Update(org, change)
}

func TestQueue_ContinuesAfterRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, dir := slow(t), t.TempDir()
		s := start(t, srv, dir)
		s.put("weekly.mp3")
		code, jobs := s.call("PUT", "/recordings/weekly.mp3", "other sound")
		assert.Equal(t, 200, code, "the name is known")
		require.Len(t, jobs, 1)
		for s.job("weekly.mp3").State != "done" {
			assert.True(t, s.hasRecording("weekly.mp3"))
			time.Sleep(20 * time.Second)
			s.stop()
			s = start(t, srv, dir) // which must not poll at once
		}
		assert.False(t, s.hasRecording("weekly.mp3"))
		j := s.job("weekly.mp3")
		assert.Contains(t, j.Minutes, "# weekly.mp3")
		assert.Equal(t, jobs[0].ID, srv.Meetings()[0].ExternalID)
		assert.Len(t, srv.Requests(minutes.OpMeetingsCreate), 1)
		assert.Len(t, srv.Requests(minutes.OpUpload), 1)
		assert.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsGet)), 1+8*2)
	})
}

// A recording whose minutes are stored is removed even if the process died before that.
func TestQueue_RemovesRecordingAfterCrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, dir := minutestest.NewServer(t), t.TempDir()
		table, err := openTable(t.Context(), dir)
		require.NoError(t, err)
		j := &job{Name: "weekly.mp3", ID: "1", State: "running", Meeting: "mtg_1", Minutes: "# Weekly"}
		require.NoError(t, os.WriteFile(table.path(j), []byte("sound"), 0o600))
		_, err = table.do(t.Context(), `INSERT INTO jobs (name, job) VALUES (?, '{}')`, j.Name)
		require.NoError(t, err)
		require.NoError(t, table.save(t.Context(), j))
		require.NoError(t, table.db.Close())

		s := start(t, srv, dir)
		time.Sleep(time.Second)
		assert.Equal(t, "done", s.job("weekly.mp3").State)
		assert.False(t, s.hasRecording("weekly.mp3"))
		assert.Empty(t, srv.Requests())
	})
}

// A job that cannot go on keeps its recording, and continues when a person says so.
func TestQueue_KeepsRecordingOfFailedJob(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fail    func(srv *minutestest.Server) error
		state   string
		problem string
		mend    func(srv *minutestest.Server) error
	}{
		"the meeting failed": {
			fail: func(srv *minutestest.Server) error {
				srv.Script(minutestest.Script{Outcome: minutes.StatusMinutesFailed})
				return nil
			},
			state: "failed", problem: "minutes_failed",
			mend: func(srv *minutestest.Server) error {
				srv.Script(minutestest.Script{Outcome: minutes.StatusMinutesReady})
				return nil
			},
		},
		"unexpected error": {
			fail: func(srv *minutestest.Server) error {
				srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsMinutes}, minutestest.Refuse(minutes.ErrForbidden))
				return nil
			},
			state: "failed", problem: "FORBIDDEN",
		},
		"the storage rejects the upload": {
			fail: func(srv *minutestest.Server) error {
				srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(400, "EntityTooLarge"))
				return nil
			},
			state: "failed", problem: "EntityTooLarge",
		},
		"somebody deleted the meeting": {
			fail: func(srv *minutestest.Server) error {
				client := srv.Client()
				srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet, Nth: 2}, minutestest.Call(func(r minutestest.Request) {
					_ = client.Meetings.Delete(context.Background(), r.MeetingID)
				}))
				return nil
			},
			state: "deleted", problem: "NOT_FOUND",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := slow(t)
				require.NoError(t, test.fail(srv))
				s := start(t, srv, t.TempDir())
				s.put("weekly.mp3")
				time.Sleep(15 * time.Minute)
				j := s.job("weekly.mp3")
				assert.Equal(t, test.state, j.State)
				assert.Contains(t, j.Problem, test.problem)
				assert.True(t, s.hasRecording("weekly.mp3"))
				assert.LessOrEqual(t, len(srv.Requests(minutes.OpMeetingsCreate)), 1, "nothing is created again")

				if test.mend != nil {
					require.NoError(t, test.mend(srv))
				}
				code, _ := s.call("POST", "/recordings/weekly.mp3/retry", "")
				assert.Equal(t, 202, code)
				time.Sleep(15 * time.Minute)
				assert.Equal(t, "done", s.job("weekly.mp3").State)
				assert.False(t, s.hasRecording("weekly.mp3"))
				code, _ = s.call("POST", "/recordings/weekly.mp3/retry", "")
				assert.Equal(t, 200, code, "there is nothing to retry")
				assert.Len(t, srv.Meetings(), 1)
			})
		})
	}
}

// Failures that pass cost time only, as much as the service asks for.
func TestQueue_RetriesLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := slow(t)
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.RateLimit("600"))
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload, Times: 5}, minutestest.RefuseUpload(503, "SlowDown"))
		began := time.Now()
		s := start(t, srv, t.TempDir())
		s.put("weekly.mp3")
		time.Sleep(time.Minute)
		assert.Equal(t, "queued", s.job("weekly.mp3").State)
		assert.Contains(t, s.job("weekly.mp3").Problem, "429")
		time.Sleep(30 * time.Minute)
		assert.Equal(t, "done", s.job("weekly.mp3").State)
		creates := srv.Requests(minutes.OpMeetingsCreate)
		require.Len(t, creates, 2)
		assert.GreaterOrEqual(t, creates[1].At.Sub(began), 10*time.Minute)
	})
}

// A rejected key stops the queue with one alert. Recordings are still taken, and the next
// process does them with a key that works.
func TestQueue_StopsIfKeyRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, dir := slow(t), t.TempDir()
		before := testutil.ToFloat64(pauses.WithLabelValues("key"))
		s := start(t, srv, dir)
		for i := range 9 {
			s.put(fmt.Sprintf("%d.mp3", i))
		}
		time.Sleep(2 * time.Minute)
		update(t, srv, func(o *minutestest.Organisation) { o.Key(srv.Key()).Revoked = true })
		time.Sleep(10 * time.Minute)
		assert.InDelta(t, 1, testutil.ToFloat64(pauses.WithLabelValues("key"))-before, 0)
		requests := len(srv.Requests())
		s.put("9.mp3")
		time.Sleep(24 * time.Hour)
		assert.Len(t, srv.Requests(), requests, "nothing is sent any more")
		s.stop()

		update(t, srv, func(o *minutestest.Organisation) { o.Key(srv.Key()).Revoked = false })
		s = start(t, srv, dir)
		time.Sleep(15 * time.Minute)
		_, jobs := s.call("GET", "/recordings/", "")
		require.Len(t, jobs, 10)
		for _, j := range jobs {
			assert.Equal(t, "done", j.State)
		}
		assert.Len(t, srv.Meetings(), 10)
	})
}

// Without quota the queue pauses: until the next top-up, or for an hour if there is none.
func TestQueue_PausesWithoutQuota(t *testing.T) {
	t.Parallel()
	for name, exhaust := range map[string]func(o *minutestest.Organisation, left int){
		"transcription": func(o *minutestest.Organisation, left int) { o.TranscribeSeconds = &left },
		"credits":       func(o *minutestest.Organisation, left int) { o.Credits = &left },
	} {
		for _, reset := range []string{"", "2000-01-03"} {
			t.Run(strings.TrimSpace(name+" "+reset), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := slow(t)
					update(t, srv, func(o *minutestest.Organisation) {
						exhaust(o, 0)
						o.NextResetAt = reset
					})
					s := start(t, srv, t.TempDir())
					for i := range 20 {
						s.put(fmt.Sprintf("%d.mp3", i))
					}
					wait := time.Hour
					if reset != "" {
						wait = 48 * time.Hour
					}
					time.Sleep(15 * time.Minute)
					requests := len(srv.Requests())
					s.put("20.mp3")
					time.Sleep(wait - 20*time.Minute)
					assert.Len(t, srv.Requests(), requests, "the queue is paused")
					update(t, srv, func(o *minutestest.Organisation) { exhaust(o, 1000) })
					time.Sleep(30 * time.Minute)
					_, jobs := s.call("GET", "/recordings/", "")
					require.Len(t, jobs, 21)
					for _, j := range jobs {
						assert.Equal(t, "done", j.State, j.Problem)
					}
					assert.Len(t, srv.Meetings(), 21, "those that failed are deleted")
				})
			})
		}
	}
}

// A pause also stops uploads of jobs that started before it.
func TestQueue_PauseHoldsForUploads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := slow(t)
		update(t, srv, func(o *minutestest.Organisation) { o.TranscribeSeconds = new(0) })
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload, Times: minutestest.Always}, minutestest.Delay(time.Minute))
		s := start(t, srv, t.TempDir())
		for i := range 40 {
			s.put(fmt.Sprintf("%d.mp3", i))
		}
		time.Sleep(15 * time.Minute)
		assert.LessOrEqual(t, len(srv.Requests(minutes.OpUpload)), 12, "those that had begun when the first meeting failed")
		assert.Len(t, srv.Requests(minutes.OpMeetingsCreate), 40)
	})
}

func TestPut_RejectsNonRecordings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, dir := minutestest.NewServer(t), t.TempDir()
		s := start(t, srv, dir)
		for path, body := range map[string]string{"/recordings/empty.mp3": "", "/recordings/notes.txt": "text"} {
			code, _ := s.call("PUT", path, body)
			assert.Equal(t, 400, code)
		}
		code, jobs := s.call("GET", "/recordings/", "")
		assert.Equal(t, 200, code)
		assert.Empty(t, jobs)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			assert.Contains(t, f.Name(), "jobs.db", "nothing is left over")
		}
	})
}

func TestStates_CompareAndSwap(t *testing.T) {
	t.Parallel()
	table, err := openTable(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer table.db.Close()
	s, ctx := states{table}, t.Context()
	now := time.Now().UTC().Truncate(time.Millisecond)
	none, first, second := minutes.MeetingState{}, minutes.MeetingState{PolledAt: now}, minutes.MeetingState{PolledAt: now, UploadStartedAt: now.Add(time.Second)}
	for i, step := range []struct {
		old, next minutes.MeetingState
		saved     bool
	}{{first, second, false}, {none, first, true}, {none, second, false}, {second, first, false}, {first, second, true}} {
		saved, err := s.Save(ctx, "mtg_1", step.old, step.next)
		require.NoError(t, err)
		assert.Equal(t, step.saved, saved, i)
	}
	stored, err := s.Load(ctx, "mtg_1")
	require.NoError(t, err)
	assert.Equal(t, second, stored)
}

func TestStates_DeletedOnceMeetingEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := slow(t)
		s := start(t, srv, t.TempDir())
		s.put("weekly.mp3")
		for _, kept := range []bool{true, false} {
			time.Sleep(5 * time.Minute)
			state, err := states{s.table}.Load(t.Context(), srv.Meetings()[0].ID)
			require.NoError(t, err)
			assert.Equal(t, kept, state != minutes.MeetingState{})
		}
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, minutestest.NewServer(t), t.TempDir())
		s.put("weekly.mp3")
		time.Sleep(time.Minute)
		count, err := testutil.GatherAndCount(prometheus.DefaultGatherer, "meetings_attempts_total", "webservice_outcomes_total")
		require.NoError(t, err)
		assert.GreaterOrEqual(t, count, 2)
		problems, err := testutil.GatherAndLint(prometheus.DefaultGatherer)
		require.NoError(t, err)
		assert.Empty(t, problems)
	})
}
