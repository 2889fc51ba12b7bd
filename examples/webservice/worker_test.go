package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// workerTest runs a test with an instance in a bubble, in which minutes take seven minutes.
func workerTest(t *testing.T, test func(t *testing.T, srv *minutestest.Server, w *worker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slog.SetDefault(slog.New(slog.DiscardHandler))
		world := minutestest.DefaultWorld()
		world.Stages = minutestest.Stages{Prepare: time.Minute, Transcribe: 5 * time.Minute, Write: time.Minute}
		srv := minutestest.NewServer(t, minutestest.WithWorld(world))
		w := start(t, srv, t.TempDir())
		test(t, srv, w)
	})
}

// start starts an instance without its socket and its signals.
func start(t *testing.T, srv *minutestest.Server, dir string) *worker {
	t.Helper()
	table, err := openTable(t.Context(), dir, time.Minute)
	require.NoError(t, err)
	w := &worker{table: table, client: srv.Client()}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
		assert.NoError(t, table.db.Close())
	})
	return w
}

// call makes a request of a user.
func call(t *testing.T, w *worker, method, path, body string) (status int, jobs []shown) {
	t.Helper()
	response := httptest.NewRecorder()
	routes(w).ServeHTTP(response, httptest.NewRequest(method, path, strings.NewReader(body)))
	if response.Code == 200 {
		require.NoError(t, json.Unmarshal(response.Body.Bytes(), &jobs))
	}
	return response.Code, jobs
}

// Without quota, or with a key that is rejected, nothing is uploaded until the service says that this is over.
func TestWorker_StopsUploads(t *testing.T) {
	t.Parallel()
	const org = "org_acme"
	for name, set := range map[string]func(o *minutestest.Organisation, good bool){
		"no transcription": func(o *minutestest.Organisation, good bool) {
			o.TranscribeSeconds = map[bool]*int{true: new(1000), false: new(0)}[good]
		},
		"no credits": func(o *minutestest.Organisation, good bool) {
			o.Credits = map[bool]*int{true: new(1000), false: new(0)}[good]
		},
		"key revoked": func(o *minutestest.Organisation, good bool) { o.Key("key_ci").Revoked = !good },
	} {
		t.Run(name, func(t *testing.T) {
			workerTest(t, func(t *testing.T, srv *minutestest.Server, w *worker) {
				srv.Update(org, func(o *minutestest.Organisation) { set(o, false) })
				for i := range 10 {
					call(t, w, "PUT", fmt.Sprintf("/recordings/%d.mp3", i), "sound")
				}
				time.Sleep(15 * time.Minute)
				requests, usage := len(srv.Requests()), len(srv.Requests(minutes.OpUsageGet))
				call(t, w, "PUT", "/recordings/10.mp3", "sound")
				time.Sleep(time.Hour)
				asked := len(srv.Requests(minutes.OpUsageGet)) - usage
				assert.InDelta(t, 12, asked, 1)
				assert.Len(t, srv.Requests(), requests+asked, "nothing else is requested")

				srv.Update(org, func(o *minutestest.Organisation) { set(o, true) })
				time.Sleep(45 * time.Minute)
				_, jobs := call(t, w, "GET", "/recordings/", "")
				assert.Equal(t, 11, done(jobs))
				assert.Len(t, srv.Meetings(), 11, "the failed ones are deleted")
			})
		})
	}
}

// A meeting that failed is tried again when somebody says so: the failed meeting is deleted, and there is another.
func TestWorker_RetriesFailedMeeting(t *testing.T) {
	workerTest(t, func(t *testing.T, srv *minutestest.Server, w *worker) {
		srv.Script(minutestest.Script{Outcome: minutes.StatusTranscriptionFailed})
		call(t, w, "PUT", "/recordings/weekly.mp3", "sound")
		time.Sleep(time.Hour)
		_, jobs := call(t, w, "GET", "/recordings/weekly.mp3", "")
		require.Len(t, jobs, 1)
		require.Equal(t, "failed", jobs[0].State)
		assert.Contains(t, jobs[0].Problem, "transcription_failed")
		failed := srv.Meetings()[0].ID

		srv.Script(minutestest.Script{Outcome: minutes.StatusMinutesReady})
		call(t, w, "POST", "/recordings/weekly.mp3/retry", "")
		time.Sleep(15 * time.Minute)
		_, jobs = call(t, w, "GET", "/recordings/weekly.mp3", "")
		assert.Equal(t, 1, done(jobs))
		require.Len(t, srv.Meetings(), 1)
		assert.NotEqual(t, failed, srv.Meetings()[0].ID)
	})
}

// Failures that pass are tried again, others wait for a person. Both keep the recording.
func TestWorker_DecidesByError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code minutes.ErrorCode
		want string
	}{"temporary": {minutes.ErrInternal, "queued"}, "final": {minutes.ErrForbidden, "failed"}} {
		t.Run(name, func(t *testing.T) {
			workerTest(t, func(t *testing.T, srv *minutestest.Server, w *worker) {
				srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Times: minutestest.Always}, minutestest.Refuse(tc.code))
				call(t, w, "PUT", "/recordings/weekly.mp3", "sound")
				time.Sleep(10 * time.Minute)
				_, jobs := call(t, w, "GET", "/recordings/weekly.mp3", "")
				require.Len(t, jobs, 1)
				assert.Equal(t, tc.want, jobs[0].State)
				assert.Contains(t, jobs[0].Problem, string(tc.code))
				files, err := os.ReadDir(w.dir)
				require.NoError(t, err)
				assert.Len(t, files, 2, "the database and the recording")
			})
		})
	}
}

func TestTable_LeaseRunsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a, err := openTable(t.Context(), dir, time.Minute)
		require.NoError(t, err)
		defer a.db.Close()
		b, err := openTable(t.Context(), dir, time.Minute)
		require.NoError(t, err)
		defer b.db.Close()
		_, err = a.db.ExecContext(t.Context(), `INSERT INTO jobs (name, id, date) VALUES ('weekly.mp3', 'id', '2026-11-20')`)
		require.NoError(t, err)

		j, err := a.take(t.Context())
		require.NoError(t, err)
		time.Sleep(50 * time.Second)
		require.NoError(t, a.renew(t.Context()))
		time.Sleep(50 * time.Second)
		_, err = b.take(t.Context())
		require.ErrorIs(t, err, sql.ErrNoRows, "the lease was renewed")
		time.Sleep(10 * time.Second)
		_, err = b.take(t.Context())
		require.NoError(t, err, "the lease has run out")
		require.ErrorIs(t, a.finish(t.Context(), &j), sql.ErrNoRows, "the job is no longer a's")
		j.state, j.due = "done", time.Now()
		require.NoError(t, b.finish(t.Context(), &j))
	})
}

func TestPut_RejectsNonRecordings(t *testing.T) {
	workerTest(t, func(t *testing.T, _ *minutestest.Server, w *worker) {
		for path, body := range map[string]string{"/recordings/empty.mp3": "", "/recordings/notes.txt": "text"} {
			status, _ := call(t, w, "PUT", path, body)
			assert.Equal(t, 400, status)
		}
		_, jobs := call(t, w, "GET", "/recordings/", "")
		assert.Empty(t, jobs)
		files, err := os.ReadDir(w.dir)
		require.NoError(t, err)
		assert.Len(t, files, 1, "only the database")
	})
}
