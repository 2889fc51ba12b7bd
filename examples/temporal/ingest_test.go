package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// realistic has minutes take as long as they do.
func realistic() minutestest.Option {
	world := minutestest.DefaultWorld()
	world.Stages = minutestest.Stages{Prepare: time.Minute, Transcribe: 5 * time.Minute, Write: 4 * time.Minute}
	return minutestest.WithWorld(world)
}

// aRecording is where every worker finds it.
func aRecording(t *testing.T) job {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weekly.mp3")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("ID3\x04 sound"), 1000), 0o600))
	return job{Path: path, Title: "Weekly", Date: "2026-11-20"}
}

// run has a workflow run to its end in Temporal's test environment.
func run(activities any, id string, j job, heard func(beat)) (path string, err error) {
	env := environment(activities, id)
	env.SetTestTimeout(100 * time.Hour)
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var b beat
		if details.Get(&b) == nil && heard != nil {
			heard(b)
		}
	})
	env.ExecuteWorkflow(ingest, j)
	err = env.GetWorkflowError()
	if err == nil {
		err = env.GetWorkflowResult(&path)
	}
	return path, err
}

func TestIngest_WritesMinutes(t *testing.T) {
	t.Parallel()
	j := aRecording(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, realistic())
		heard := make(map[minutes.Status]int)
		for range 2 { // started again, it comes to the same
			path, err := run(&activities{srv.Client(), dir}, "weekly/1", j, func(b beat) { heard[b.Status]++ })
			require.NoError(t, err)
			assert.Equal(t, filepath.Join(dir, "weekly%2F1.md"), path)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Contains(t, string(text), "# Weekly")
		}
		assert.Len(t, srv.Requests(minutes.OpUpload), 1)
		assert.Positive(t, heard[minutes.StatusTranscribing], "heartbeats hold the status")
		assert.Greater(t, heard[minutes.StatusGeneratingMinutes], 1, "and go on while it stays")
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Len(t, left, 1)
	})
}

// A heartbeat of an upload says how far it is.
func TestIngest_ReportsProgress(t *testing.T) {
	t.Parallel()
	j := aRecording(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, realistic())
		srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(time.Minute).AfterEffect())
		var most beat
		_, err := run(&activities{srv.Client(), dir}, "weekly", j, func(b beat) {
			if b.Sent > most.Sent {
				most = b
			}
		})
		require.NoError(t, err)
		assert.Positive(t, most.Sent)
		assert.Equal(t, int64(10_000), most.Total)
	})
}

// Temporary failures are retried. Every other failure ends the workflow, and says why.
func TestIngest_RetriesFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare  func(*minutestest.Server, *job)
		attempts int    // of making the meeting
		problem  string // type of the error that ends the workflow
	}{
		"away for a while": {func(srv *minutestest.Server, _ *job) {
			srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Times: 3}, minutestest.BadGateway())
		}, 4, ""},
		"storage away for a while": {func(srv *minutestest.Server, _ *job) {
			slowDown := minutestest.RefuseUpload(503, "SlowDown")
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload, Times: 2}, slowDown)
		}, 3, ""},
		"key rejected for a while": {func(srv *minutestest.Server, _ *job) {
			expired := minutestest.Refuse(minutes.ErrOrganisationExpired)
			srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Times: 2}, expired)
		}, 3, ""},
		"rejected": {func(_ *minutestest.Server, j *job) { j.Date = "today" }, 1, "NotRetryable"},
		"no recording": {func(_ *minutestest.Server, j *job) {
			j.Path += ".gone"
		}, 1, "NotRetryable"},
		"failed": {func(srv *minutestest.Server, _ *job) {
			srv.Script(minutestest.Script{Outcome: minutes.StatusTranscriptionFailed})
		}, 1, "transcription_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := aRecording(t)
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, realistic())
				test.prepare(srv, &j)
				_, err := run(&activities{srv.Client(minutes.WithMaxRetries(0)), dir}, "weekly", j, nil)
				assert.Len(t, srv.Requests(minutes.OpMeetingsCreate), test.attempts)
				if test.problem == "" {
					assert.NoError(t, err)
					return
				}
				problem, ok := errors.AsType[*temporal.ApplicationError](err)
				require.True(t, ok, "%v", err)
				assert.Equal(t, test.problem, problem.Type())
				assert.True(t, problem.NonRetryable())
			})
		})
	}
}

func TestVerdict_SaysWhetherToRetry(t *testing.T) {
	t.Parallel()
	err := verdict(&minutes.Error{StatusCode: 401, Code: minutes.ErrUnauthenticated})
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok)
	assert.False(t, refused.NonRetryable())
	assert.Equal(t, 10*time.Minute, refused.NextRetryDelay())
}

// Recordings have ids of their own, in as many characters as ids may have.
func TestIDOf_DiffersByPath(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "weekly.mp3-a8628a4275ae", idOf("/recordings/weekly.mp3"))
	assert.NotEqual(t, idOf("/monday/weekly.mp3"), idOf("/tuesday/weekly.mp3"))
	assert.NotEqual(t, idOf("/recordings/会議.mp3"), idOf("/recordings/会話.mp3"))
	for _, name := range []string{"会議.mp3", "team meeting.mp3", strings.Repeat("x", 250) + ".mp3"} {
		assert.Regexp(t, `^[A-Za-z0-9._-]{1,128}$`, idOf("/recordings/"+name))
	}
}

// A worker that is stopped leaves its work to others, at once.
func TestIngest_ContinuesAfterStop(t *testing.T) {
	t.Parallel()
	j := aRecording(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, realistic())
		a := &activities{srv.Client(), dir}
		env := quiet().NewTestActivityEnvironment()
		env.SetTestTimeout(time.Hour)
		env.RegisterActivity(a)
		stopping := make(chan struct{})
		env.SetWorkerStopChannel(stopping)
		value, err := env.ExecuteActivity(a.Upload, j)
		require.NoError(t, err)
		var up uploaded
		require.NoError(t, value.Get(&up))
		time.AfterFunc(3*time.Minute, func() { close(stopping) })
		began := time.Now()
		_, err = env.ExecuteActivity(a.Wait, up)
		assert.Equal(t, 3*time.Minute, time.Since(began))
		given, ok := errors.AsType[*temporal.ApplicationError](err)
		require.True(t, ok, "%v", err)
		assert.False(t, given.NonRetryable())
	})
}
