package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
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

// bubble runs a test with an instance, without its socket and its signals, for which minutes take
// seven minutes.
func bubble(t *testing.T, test func(t *testing.T, srv *minutestest.Server, in *instance)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := minutestest.DefaultWorld()
		world.Stages = minutestest.Stages{Prepare: time.Minute, Transcribe: 5 * time.Minute, Write: time.Minute}
		srv := minutestest.NewServer(t, minutestest.WithWorld(world))
		in, err := open(t.Context(), t.TempDir(), time.Minute, srv.Client())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			in.run(ctx)
		}()
		t.Cleanup(func() {
			cancel()
			<-stopped
			assert.NoError(t, in.db.Close())
		})
		test(t, srv, in)
	})
}

// request makes a request of a user.
func request(t *testing.T, in *instance, method, name, body string) (job shown) {
	t.Helper()
	response := httptest.NewRecorder()
	routes(in).ServeHTTP(response, httptest.NewRequest(method, "/recordings/"+name, strings.NewReader(body)))
	if response.Code == 200 {
		require.NoError(t, json.Unmarshal(response.Body.Bytes(), &job))
	}
	return job
}

// Without quota, or with a key that is rejected, nothing is uploaded until the service says that
// this is over.
func TestInstance_StopsUploads(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(o *minutestest.Organisation, good bool){
		"no transcription": func(o *minutestest.Organisation, good bool) {
			o.TranscribeSeconds = map[bool]*int{true: new(1000), false: new(3)}[good]
		},
		"no credits": func(o *minutestest.Organisation, good bool) {
			o.Credits = map[bool]*int{true: new(1000), false: new(3)}[good]
		},
		"key revoked": func(o *minutestest.Organisation, good bool) { o.Key("key_ci").Revoked = !good },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *minutestest.Server, in *instance) {
				for i := range 10 {
					request(t, in, "PUT", fmt.Sprint(i, ".mp3"), "ID3\x04 sound")
				}
				srv.Update("org_acme", func(o *minutestest.Organisation) { set(o, false) })
				time.Sleep(90 * time.Minute)
				requests := len(srv.Requests())
				usage := len(srv.Requests(minutes.OpUsageGet))
				time.Sleep(time.Hour)
				asked := len(srv.Requests(minutes.OpUsageGet)) - usage
				assert.InDelta(t, 12, asked, 1)
				assert.Len(t, srv.Requests(), requests+asked, "nothing else is requested")

				srv.Update("org_acme", func(o *minutestest.Organisation) { set(o, true) })
				time.Sleep(30 * time.Minute)
				for i := range 10 {
					assert.Equal(t, "done", request(t, in, "GET", fmt.Sprint(i, ".mp3"), "").State)
				}
				assert.Len(t, srv.Meetings(), 10, "the failed ones are deleted")
			})
		})
	}
}

// If the request for the quota fails, that says nothing about the quota, so it stops nothing.
func TestInstance_GoesOnWithoutUsage(t *testing.T) {
	bubble(t, func(t *testing.T, srv *minutestest.Server, in *instance) {
		everyUsage := minutestest.Match{Operation: minutes.OpUsageGet, Times: minutestest.Always}
		srv.Inject(everyUsage, minutestest.Refuse(minutes.ErrForbidden))
		for i := range 5 {
			request(t, in, "PUT", fmt.Sprint(i, ".mp3"), "ID3\x04 sound")
		}
		time.Sleep(10 * time.Minute)
		for i := range 5 {
			assert.Equal(t, "done", request(t, in, "GET", fmt.Sprint(i, ".mp3"), "").State)
		}
	})
}

// If someone deletes a meeting, its job gets another.
func TestInstance_CreatesDeletedMeetingAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *minutestest.Server, in *instance) {
		request(t, in, "PUT", "weekly.mp3", "ID3\x04 sound")
		time.Sleep(2 * time.Minute)
		srv.Delete(srv.Meetings()[0].ID)
		time.Sleep(15 * time.Minute)
		assert.Equal(t, "done", request(t, in, "GET", "weekly.mp3", "").State)
		assert.Len(t, srv.Meetings(), 1)
	})
}

// A meeting that failed is tried again when somebody uploads the recording again: the failed
// meeting is deleted, and there is another.
func TestInstance_RetriesFailedMeeting(t *testing.T) {
	bubble(t, func(t *testing.T, srv *minutestest.Server, in *instance) {
		srv.Script(minutestest.Script{Outcome: minutes.StatusTranscriptionFailed})
		request(t, in, "PUT", "weekly.mp3", "ID3\x04 sound")
		time.Sleep(time.Hour)
		job := request(t, in, "GET", "weekly.mp3", "")
		assert.Equal(t, "failed", job.State)
		assert.Contains(t, job.Text, "transcription_failed")
		failed := srv.Meetings()[0].ID

		srv.Script(minutestest.Script{Outcome: minutes.StatusMinutesReady})
		assert.Equal(t, "queued", request(t, in, "PUT", "weekly.mp3", "ID3\x04 sound").State)
		time.Sleep(15 * time.Minute)
		job = request(t, in, "PUT", "weekly.mp3", "ID3\x04 sound")
		assert.Equal(t, "done", job.State)
		assert.Contains(t, job.Text, "# weekly.mp3")
		require.Len(t, srv.Meetings(), 1)
		assert.NotEqual(t, failed, srv.Meetings()[0].ID)
		files, err := os.ReadDir(in.dir)
		require.NoError(t, err)
		assert.Len(t, files, 1, "only the database")
	})
}

// Failures that pass are tried again, others wait for a person. Both keep the recording.
func TestInstance_DecidesByError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, body, problem, want string }{
		"temporary":    {"weekly.mp3", "ID3\x04 sound", string(minutes.ErrInternal), "queued"},
		"final":        {"weekly.mp3", "ID3\x04 sound", string(minutes.ErrForbidden), "failed"},
		"no recording": {"notes.txt", "text", "the content is text/plain", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *minutestest.Server, in *instance) {
				if tc.body == "ID3\x04 sound" {
					everyURL := minutestest.Match{Operation: minutes.OpMeetingsUploadURL, Times: minutestest.Always}
					srv.Inject(everyURL, minutestest.Refuse(minutes.ErrorCode(tc.problem)))
				}
				request(t, in, "PUT", tc.file, tc.body)
				time.Sleep(10 * time.Minute)
				job := request(t, in, "GET", tc.file, "")
				assert.Equal(t, tc.want, job.State)
				assert.Contains(t, job.Text, tc.problem)
				assert.FileExists(t, in.path(tc.file))
			})
		})
	}
}

func TestLease_RunsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		srv := minutestest.NewServer(t)
		a, err := open(t.Context(), dir, time.Minute, srv.Client())
		require.NoError(t, err)
		defer a.db.Close()
		b, err := open(t.Context(), dir, time.Minute, nil)
		require.NoError(t, err)
		defer b.db.Close()
		require.NoError(t, a.add(t.Context(), "weekly.mp3", strings.NewReader("ID3\x04 sound")))

		name, meeting, err := a.nextJob(t.Context())
		require.NoError(t, err)
		require.Equal(t, srv.Meetings()[0].ID, meeting)
		alive, kill := context.WithTimeout(t.Context(), 50*time.Second)
		defer kill()
		a.renew(alive) // after 20 and 40 seconds
		time.Sleep(45 * time.Second)
		_, _, err = b.nextJob(t.Context())
		require.ErrorIs(t, err, sql.ErrNoRows, "the lease was renewed")
		time.Sleep(10 * time.Second)
		_, _, err = b.nextJob(t.Context())
		require.NoError(t, err, "the lease has run out")
		a.finish(t.Context(), name, "done", 0, "late")
		assert.FileExists(t, a.path(name), "the job is no longer a's")
		b.finish(t.Context(), name, "done", 0, "minutes")
		assert.NoFileExists(t, a.path(name))
		assert.Equal(t, shown{"done", "minutes"}, request(t, a, "GET", name, ""))
	})
}
