package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// recordings returns a batch of n recordings and its output.
func recordings(t *testing.T, srv *minutestest.Server, n int) (*batch, *strings.Builder) {
	t.Helper()
	var stdout strings.Builder
	in := t.TempDir()
	for i := range n {
		path := filepath.Join(in, fmt.Sprintf("%02d.mp3", i))
		require.NoError(t, os.WriteFile(path, fmt.Append(nil, "ID3\x04 sound ", i), 0o600))
	}
	return &batch{client: srv.Client(), in: in, out: filepath.Join(t.TempDir(), "out"), stdout: &stdout}, &stdout
}

// next is the same batch in a new process.
func next(b *batch, srv *minutestest.Server) *batch {
	return &batch{client: srv.Client(), in: b.in, out: b.out, stdout: b.stdout}
}

func files(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.md"))
	require.NoError(t, err)
	return len(found)
}

// However often it is interrupted, each recording is uploaded once and gets its minutes.
func TestBatch_Interrupted(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			world := minutestest.DefaultWorld()
			world.Stages = minutestest.Stages{Prepare: time.Minute, Transcribe: time.Minute, Write: time.Minute}
			srv := minutestest.NewServer(t, minutestest.WithWorld(world))
			everyUpload := minutestest.Match{Operation: minutes.OpUpload, Times: minutestest.Always}
			srv.Inject(everyUpload, minutestest.Delay(2*time.Second))
			const n = 12
			b, stdout := recordings(t, srv, n)
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(time.Minute))))
				require.ErrorContains(t, next(b, srv).run(ctx), "run it again")
				cancel()
			}
			require.NoError(t, next(b, srv).run(t.Context()))
			assert.Equal(t, n, files(t, b.out))
			assert.Len(t, srv.Meetings(), n)
			requests := len(srv.Requests())
			stdout.Reset()
			require.NoError(t, next(b, srv).run(t.Context()))
			assert.Len(t, srv.Requests(), requests, "all minutes are there")
			assert.Contains(t, stdout.String(), "12 of 12 recordings have minutes")
		})
	}
}

// One failure does not stop the others. A failed meeting is tried again with -restart, once.
func TestBatch_Restart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Script(minutestest.Script{Title: "01.mp3", Outcome: minutes.StatusTranscriptionFailed})
		b, stdout := recordings(t, srv, 3)
		for _, restart := range []bool{false, true} {
			run := next(b, srv)
			run.restart = restart
			require.ErrorContains(t, run.run(t.Context()), "some recordings have no minutes")
			assert.Contains(t, stdout.String(), "01.mp3 FAILED")
			assert.Equal(t, 2, files(t, b.out))
		}
		assert.Len(t, srv.Requests(minutes.OpMeetingsDelete), 1)

		srv.Script(minutestest.Script{Title: "01.mp3", Outcome: minutes.StatusMinutesReady})
		require.Error(t, next(b, srv).run(t.Context()), "without -restart")
		run := next(b, srv)
		run.restart = true
		require.NoError(t, run.run(t.Context()))
		assert.Equal(t, 3, files(t, b.out))
	})
}

func TestBatch_SharesMeetingOfSameContent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		b, _ := recordings(t, srv, 1)
		file := filepath.Join(b.in, "copy.mp3")
		require.NoError(t, os.WriteFile(file, []byte("ID3\x04 sound 0"), 0o600))
		lastYear := time.Now().AddDate(-1, 0, 0)
		require.NoError(t, os.Chtimes(file, lastYear, lastYear), "so its meeting has another date")
		require.NoError(t, b.run(t.Context()))
		assert.Equal(t, 2, files(t, b.out))
		assert.Len(t, srv.Meetings(), 1)
	})
}

func TestBatch_StopsWhenKeyRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		b, _ := recordings(t, srv, 20)
		b.client = srv.ClientWithKey("unknown")
		require.ErrorIs(t, b.run(t.Context()), minutes.ErrUnauthenticated)
	})
}

func TestRun(t *testing.T) {
	t.Setenv("MINUTES_BASE_URL", "")
	t.Setenv("MINUTES_API_KEY", "")
	t.Setenv("TMPDIR", t.TempDir())
	var stdout strings.Builder
	require.NoError(t, run(t.Context(), nil, &stdout))
	assert.Contains(t, stdout.String(), "[5/5]")
	assert.Contains(t, stdout.String(), "5 of 5 recordings")
	t.Setenv("MINUTES_BASE_URL", "https://minutes.example")
	require.ErrorContains(t, run(t.Context(), nil, t.Output()), "MINUTES_API_KEY")
	t.Setenv("MINUTES_API_KEY", "key")
	require.ErrorContains(t, run(t.Context(), nil, t.Output()), "-in names no directory")
}

// A file that grows between its hash and its upload gets no meeting before it is complete.
func TestBatch_FileGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		b, _ := recordings(t, srv, 1)
		for job := range b.jobs([]string{"00.mp3"}) {
			f, err := os.OpenFile(filepath.Join(b.in, "00.mp3"), os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteString("more sound")
			require.NoError(t, err)
			require.NoError(t, f.Close())
			_, err = b.client.Meetings.Process(t.Context(), job.Params, job.Source, nil)
			require.ErrorContains(t, err, "is being written to")
		}
		require.Empty(t, srv.Meetings())
		require.NoError(t, next(b, srv).run(t.Context()))
		require.Len(t, srv.Meetings(), 1)
	})
}
