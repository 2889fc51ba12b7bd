package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// realistic has minutes take as long as they do.
func realistic(seed uint64) minutestest.Option {
	world := minutestest.DefaultWorld()
	r := rand.New(rand.NewPCG(seed, 0))
	world.Stages = minutestest.Stages{
		Prepare:    time.Duration(5+r.IntN(60)) * time.Second,
		Transcribe: time.Duration(30+r.IntN(300)) * time.Second,
		Write:      time.Duration(10+r.IntN(60)) * time.Second,
	}
	return minutestest.WithWorld(world)
}

// recordings makes n of them, each unlike the others.
func recordings(t *testing.T, n int) settings {
	t.Helper()
	var list []sample
	for i := range n {
		list = append(list, sample{fmt.Sprintf("recording %02d.wav", i), 1 + i%3, float64(200 + 10*i)})
	}
	dir := t.TempDir()
	require.NoError(t, makeRecordings(filepath.Join(dir, "in"), list))
	return settings{in: filepath.Join(dir, "in"), out: filepath.Join(dir, "out"), format: minutes.FormatMarkdown, titles: true}
}

// start simulates a process: it runs the program with a new Client.
func start(ctx context.Context, srv *minutestest.Server, s settings, opts ...minutes.Option) (summary string, err error) {
	var stdout, stderr strings.Builder
	err = process(ctx, srv.Client(opts...), s, &stdout, &stderr)
	return stdout.String() + stderr.String(), err
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func meetings(t *testing.T, srv *minutestest.Server) (list []minutestest.Meeting) {
	t.Helper()
	for m, err := range srv.Client().Meetings.All(t.Context(), nil) {
		require.NoError(t, err)
		whole, _ := srv.Meeting(m.ID)
		list = append(list, whole)
	}
	return list
}

// uploaded is how many recordings arrived.
func uploaded(srv *minutestest.Server) (n int) {
	for _, r := range srv.Requests(minutes.OpUpload) {
		if r.Status == 200 {
			n++
		}
	}
	return n
}

func TestBatch_ContinuesAfterTwoInterrupts(t *testing.T) {
	const n = 50
	for seed := range uint64(20) {
		if testing.Short() && seed == 5 {
			break
		}
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var interrupt atomic.Pointer[func()] // called when a request is answered
			srv := minutestest.NewServer(t, realistic(seed), minutestest.WithLog(func(minutestest.Request) {
				if f := interrupt.Load(); f != nil {
					(*f)()
				}
			}))
			// An upload takes a while, so that it can be interrupted.
			srv.Inject(minutestest.Match{Operation: minutes.OpUpload, Times: minutestest.Always}, minutestest.Delay(2*time.Second))
			s := recordings(t, n)
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				var answered atomic.Int64
				at := 1 + random.Int64N(100)
				interrupt.Store(new(func() {
					if answered.Add(1) == at {
						cancel()
					}
				}))
				summary, err := start(ctx, srv, s)
				require.ErrorIs(t, err, errInterrupted, summary)
				assert.Contains(t, summary, "Run it again to go on")
				assert.NotContains(t, summary, "failed")
				cancel()
				time.Sleep(minutestest.MinPollInterval) // a new process does not know the polls of the last
			}
			interrupt.Store(nil)
			summary, err := start(t.Context(), srv, s)
			require.NoError(t, err, summary)
			assert.Contains(t, summary, "50 recordings")

			files := names(t, s.out)
			assert.Len(t, files, n)
			for _, name := range names(t, s.in) {
				content, err := os.ReadFile(filepath.Join(s.out, name+".md"))
				require.NoError(t, err)
				assert.Contains(t, string(content), "# "+strings.TrimSuffix(name, ".wav"))
			}
			all := meetings(t, srv)
			assert.Len(t, all, n)
			for _, m := range all {
				require.NotNil(t, m.Audio, m.Title)
				audio, err := os.ReadFile(filepath.Join(s.in, m.Title+".wav"))
				require.NoError(t, err)
				hash := sha256.Sum256(audio)
				assert.Equal(t, hex.EncodeToString(hash[:]), m.Audio.SHA256)
				assert.Equal(t, "batch-"+m.Audio.SHA256, m.ExternalID)
			}
			assert.Equal(t, n, uploaded(srv))

			before := len(srv.Requests())
			summary, err = start(t.Context(), srv, s)
			require.NoError(t, err)
			assert.Contains(t, summary, "50 there already")
			assert.Len(t, srv.Requests(), before+1, "the quota is all that is asked for")
		})
	}
}

func TestBatch_ReportsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, realistic(1))
		s := recordings(t, 6)
		srv.Script(
			minutestest.Script{Title: "recording 01", Outcome: minutes.StatusTranscriptionFailed},
			minutestest.Script{Title: "recording 02", Outcome: minutes.StatusTranscribeBlocked},
		)
		require.NoError(t, os.WriteFile(filepath.Join(s.in, "empty.wav"), nil, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(s.in, "notes.txt"), []byte("no sound"), 0o644))
		require.NoError(t, os.Symlink("nowhere", filepath.Join(s.in, "gone.wav")))
		require.NoError(t, os.WriteFile(filepath.Join(s.in, ".hidden"), nil, 0o644))
		require.NoError(t, os.Mkdir(filepath.Join(s.in, "old"), 0o755))

		summary, err := start(t.Context(), srv, s)
		require.ErrorIs(t, err, errFailures)
		for _, want := range []string{
			"9 recordings", "4 written", "5 failed",
			"recording 01.wav: meeting", "transcription_failed", "run it again with -restart, which",
			"recording 02.wav: meeting", "transcribe_blocked", "wait for the quota's top-up",
			"empty.wav: the recording is empty", "notes.txt: the recording is in no known audio or video format", "or move it away",
			"gone.wav: stat", "see to the file",
			"Quota left: 996 credits, ",
		} {
			assert.Contains(t, summary, want)
		}
		assert.Len(t, names(t, s.out), 4)
		assert.Len(t, meetings(t, srv), 6, "what is no recording has no meeting")

		// The next run reports them again, and -restart retries them.
		srv.Script(minutestest.Script{Title: "recording 01"}, minutestest.Script{Title: "recording 02"})
		time.Sleep(minutestest.MinPollInterval)
		summary, err = start(t.Context(), srv, s)
		require.ErrorIs(t, err, errFailures)
		assert.Contains(t, summary, "4 there already")
		assert.Contains(t, summary, "transcription_failed")
		s.restart = true
		summary, err = start(t.Context(), srv, s)
		require.ErrorIs(t, err, errFailures)
		assert.Contains(t, summary, "2 written")
		assert.Contains(t, summary, "3 failed")
		assert.Len(t, meetings(t, srv), 6)
	})
}

func TestBatch_StopsIfKeyRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		s := recordings(t, 30)
		var stdout, stderr strings.Builder
		err := process(t.Context(), srv.ClientWithKey("key_wrong"), s, &stdout, &stderr)
		require.ErrorIs(t, err, errFailures)
		assert.Contains(t, stdout.String(), "look to the API key")
		assert.Contains(t, stdout.String(), "left")
		assert.Contains(t, stdout.String(), "Stopped early")
		assert.Less(t, len(srv.Requests()), 15, "the rest is not tried")
	})
}

func TestBatch_UploadsSameContentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, realistic(2))
		s := recordings(t, 3)
		duplicate := func(of, name string) {
			content, err := os.ReadFile(filepath.Join(s.in, of))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(s.in, name), content, 0o644))
		}
		duplicate("recording 00.wav", "a.wav")
		duplicate("recording 02.wav", "z.wav")
		summary, err := start(t.Context(), srv, s, minutes.WithUploadConcurrency(1))
		require.NoError(t, err)
		assert.Contains(t, summary, "3 written")
		assert.Contains(t, summary, "2 copied")
		assert.Len(t, names(t, s.out), 5)
		assert.Equal(t, 3, uploaded(srv))

		// Another name for one that an earlier run has done.
		duplicate("recording 01.wav", "new.wav")
		summary, err = start(t.Context(), srv, s)
		require.NoError(t, err)
		assert.Contains(t, summary, "1 written")
		assert.Contains(t, summary, "5 there already")
		assert.Len(t, meetings(t, srv), 3)
		assert.Equal(t, 3, uploaded(srv))

		// What one of them meets, the others do.
		require.NoError(t, makeRecordings(s.in, []sample{{"bad.wav", 9, 99}}))
		duplicate("bad.wav", "bad too.wav")
		srv.Script(minutestest.Script{Title: "bad too", Outcome: minutes.StatusMinutesFailed})
		summary, err = start(t.Context(), srv, s)
		require.ErrorIs(t, err, errFailures)
		assert.Contains(t, summary, "2 failed")
	})
}

func TestBatch_DetectsChangedRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		s := recordings(t, 1)
		_, err := start(t.Context(), srv, s)
		require.NoError(t, err)

		// Newer than its minutes: processed again.
		path := filepath.Join(s.in, "recording 00.wav")
		require.NoError(t, os.WriteFile(path, tone(5, 500), 0o644))
		later := time.Now().AddDate(100, 0, 0) // the bubble's clock is behind the files'
		require.NoError(t, os.Chtimes(path, later, later))
		summary, err := start(t.Context(), srv, s)
		require.NoError(t, err)
		assert.Contains(t, summary, "1 written")
		assert.Len(t, meetings(t, srv), 2)

		// Changed between identification and upload: rejected.
		list, err := recordingsIn(s.in)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, tone(6, 500), 0o644))
		_, err = list[0].open(t.Context(), nil, nil)
		assert.ErrorIs(t, err, errChanged)
	})
}
