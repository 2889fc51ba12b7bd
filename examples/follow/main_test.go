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

func TestRun(t *testing.T) {
	t.Setenv("MINUTES_BASE_URL", "")
	t.Setenv("MINUTES_API_KEY", "")
	dir := t.TempDir()
	var stdout strings.Builder
	require.NoError(t, run(t.Context(), []string{"-out", dir}, &stdout))
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	require.NoError(t, err)
	require.Len(t, files, len(titles))
	all := ""
	for _, file := range files {
		assert.Contains(t, stdout.String(), file)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all += string(text)
	}
	for _, title := range titles {
		assert.Contains(t, all, "# "+title)
	}
	assert.Error(t, run(t.Context(), []string{"-unknown"}, t.Output()))
	t.Setenv("MINUTES_BASE_URL", "https://minutes.example")
	assert.ErrorContains(t, run(t.Context(), nil, t.Output()), "MINUTES_API_KEY")
}

// A program that is stopped at random times writes each file once.
func TestFollow_KilledAndRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := minutestest.DefaultWorld()
		world.Stages = minutestest.Stages{Prepare: time.Minute, Transcribe: 5 * time.Minute, Write: time.Minute}
		server := minutestest.NewServer(t, minutestest.WithWorld(world))
		server.Script(minutestest.Script{Title: "Meeting 3", Outcome: minutes.StatusTranscriptionFailed})
		const meetings = 20
		go func() {
			for i := range meetings {
				time.Sleep(time.Minute)
				m, _, err := server.Client().Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: fmt.Sprint("Meeting ", i), Date: "2026-11-20"})
				if !assert.NoError(t, err) {
					return
				}
				recording := minutes.FromReader(strings.NewReader("a recording"), "audio/mpeg")
				assert.NoError(t, server.Client().Meetings.Upload(t.Context(), m.ID, recording, nil))
			}
		}()
		dir := filepath.Join(t.TempDir(), "minutes")
		times := map[string]int{}
		rnd := rand.New(rand.NewPCG(1, 2))
		for began := time.Now(); time.Since(began) < time.Hour; {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.Int64N(int64(5*time.Minute))))
			require.NoError(t, follow(ctx, server.Client(), dir, func(file string) { times[file]++ }))
			cancel()
		}
		require.Len(t, times, meetings)
		failed := 0
		for file, n := range times {
			require.Equal(t, 1, n, file)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if strings.Contains(string(text), "There are no minutes: transcription_failed") {
				failed++
			}
		}
		require.Equal(t, 1, failed)
	})
}

func TestFollow_EndsWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := minutestest.NewServer(t)
		client := server.ClientWithKey("unknown")
		require.ErrorIs(t, follow(t.Context(), client, t.TempDir(), nil), minutes.ErrUnauthenticated)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".since"), []byte("yesterday"), 0o600))
		require.ErrorContains(t, follow(t.Context(), client, dir, nil), "yesterday")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		require.Error(t, follow(t.Context(), client, filepath.Join(dir, "file"), nil))
	})
}
