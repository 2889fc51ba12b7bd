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
func TestFollow_Restarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := minutestest.NewServer(t)
		server.Script(minutestest.Script{Title: "Meeting 3", Outcome: minutes.StatusTranscriptionFailed})
		const meetings = 20
		go func() {
			for i := range meetings {
				time.Sleep(time.Minute)
				server.AddMeetings("org_acme", minutestest.WorldMeeting{
					Title:      fmt.Sprint("Meeting ", i),
					CreatorID:  "emp_ada",
					Visibility: minutes.VisibilityOrganisation,
					Status:     minutes.StatusAudioUploaded,
				})
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
			failed += strings.Count(string(text), "There are no minutes: transcription_failed")
		}
		require.Equal(t, 1, failed)
	})
}

// A 403 for the minutes leaves the meeting unhandled, so it is tried again.
func TestFollow_Forbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := minutestest.NewServer(t)
		server.AddMeetings("org_acme", minutestest.WorldMeeting{
			Title:      "Weekly",
			CreatorID:  "emp_ada",
			Visibility: minutes.VisibilityOrganisation,
			Status:     minutes.StatusMinutesReady,
		})
		server.Inject(minutestest.Match{Operation: minutes.OpMeetingsMinutes}, minutestest.Refuse(minutes.ErrForbidden))
		dir := t.TempDir()
		for _, files := range []int{0, 1} { // a run with the 403, and the next one
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			require.NoError(t, follow(ctx, server.Client(), dir, func(string) {}))
			cancel()
			found, err := filepath.Glob(filepath.Join(dir, "*.md"))
			require.NoError(t, err)
			require.Len(t, found, files)
		}
	})
}

// A file that cannot be written is tried again, and its meeting becomes a dead letter after a day. The
// others are written.
func TestFollow_StoreFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := minutestest.NewServer(t)
		add := func(title string) string {
			return server.AddMeetings("org_acme", minutestest.WorldMeeting{
				Title:      title,
				CreatorID:  "emp_ada",
				Visibility: minutes.VisibilityOrganisation,
				Status:     minutes.StatusMinutesReady,
			})[0]
		}
		dir := t.TempDir()
		block := func(id string) string { // where the file would be written first
			obstacle := filepath.Join(dir, id+".md.tmp")
			require.NoError(t, os.Mkdir(obstacle, 0o755))
			return obstacle
		}
		hopeless := add("Hopeless")
		block(hopeless)
		later := add("Later")
		obstacle := block(later)
		time.AfterFunc(time.Hour, func() { assert.NoError(t, os.Remove(obstacle)) })
		add("Weekly")

		var times []time.Duration
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
		defer cancel()
		require.NoError(t, follow(ctx, server.Client(), dir, func(string) { times = append(times, time.Since(began)) }))
		require.Len(t, times, 2)
		require.Less(t, times[0], time.Minute)
		require.Greater(t, times[1], time.Hour)
		dead, err := os.ReadFile(filepath.Join(dir, "dead-letters.txt"))
		require.NoError(t, err)
		require.Equal(t, hopeless+"\n", string(dead))
		before := len(server.Requests())
		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, follow(ctx, server.Client(), dir, func(string) {}))
		for _, r := range server.Requests()[before:] {
			require.Equal(t, minutes.OpMeetingsList, r.Operation, "the next run knows the dead letter")
		}
	})
}
