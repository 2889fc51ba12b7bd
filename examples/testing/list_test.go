package main

import (
	"context"
	"flag"
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

const (
	title = "Weekly"
	day   = "2026-11-20"
)

// serviceTest runs a test in a bubble, in which waiting takes no time, with a new service. When it
// ends, the service fails the test for the client's mistakes, and for faults that were applied fewer
// times than asked.
func serviceTest(t *testing.T, test func(t *testing.T, srv *minutestest.Server)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		stages := minutestest.Stages{Prepare: time.Minute, Transcribe: 10 * time.Minute, Write: time.Minute}
		srv.Script(minutestest.Script{Transcript: spoken, Stages: &stages})
		test(t, srv)
	})
}

var update = flag.Bool("update", false, "write golden files again")

// The golden file holds the list that we make of the service's minutes for this
// transcript.
func TestGolden(t *testing.T) {
	serviceTest(t, func(t *testing.T, srv *minutestest.Server) {
		began := time.Now()
		got, err := desk{srv.Client()}.process(t.Context(), title, day, madeUp())
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(began), 12*time.Minute, "of the bubble's time")

		path := filepath.Join("testdata", "weekly.golden.md")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(got.String()), 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), got.String())
	})
}

// Each failure status, with its message for people.
func TestFailureStatuses(t *testing.T) {
	for status, told := range map[minutes.Status]string{
		minutes.StatusAudioRejected:       "less than a gigabyte",
		minutes.StatusTranscribeBlocked:   "Ask for more",
		minutes.StatusTranscriptionFailed: "Is there speech",
		minutes.StatusMinutesFailed:       "The transcript is there",
	} {
		t.Run(string(status), func(t *testing.T) {
			serviceTest(t, func(t *testing.T, srv *minutestest.Server) {
				srv.Script(minutestest.Script{Title: title, Outcome: status})
				_, err := desk{srv.Client()}.process(t.Context(), title, day, madeUp())
				require.Error(t, err)
				assert.Contains(t, advice(err), told)
			})
		})
	}
}

// Faults that do not show: the list is made, of one meeting and one recording.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		match minutestest.Match
		fault minutestest.Fault
	}{
		"too many requests": {
			match: minutestest.Match{Operation: "meetings.create"},
			fault: minutestest.RateLimit("7"),
		},
		"lost response": {
			match: minutestest.Match{Operation: "meetings.create"},
			fault: minutestest.LoseResponse(),
		},
		"a proxy's page": {
			match: minutestest.Match{Operation: "usage.get", Times: 2},
			fault: minutestest.BadGateway(),
		},
		"a broken upload": {
			match: minutestest.Match{Operation: minutes.OpUpload},
			fault: minutestest.ResetUpload(1000),
		},
		"busy storage": {
			match: minutestest.Match{Operation: minutes.OpUpload},
			fault: minutestest.RefuseUpload(503, "SlowDown"),
		},
		"truncated minutes": {
			match: minutestest.Match{Operation: "meetings.minutes"},
			fault: minutestest.Truncate(20),
		},
	} {
		t.Run(name, func(t *testing.T) {
			serviceTest(t, func(t *testing.T, srv *minutestest.Server) {
				srv.Inject(tc.match, tc.fault)
				got, err := desk{srv.Client()}.process(t.Context(), title, day, madeUp())
				require.NoError(t, err)
				assert.Len(t, got.items, 2)
				acme := srv.Organisation("org_acme")
				before := minutestest.DefaultWorld().Organisations[0].Credits
				assert.Equal(t, *before-1, *acme.Credits, "one set of minutes")
			})
		})
	}
}

// Errors that people can do something about have advice.
func TestRejections(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*minutestest.Organisation)
		told   string
	}{
		"no credits": {
			change: func(o *minutestest.Organisation) { o.Credits = new(0) },
			told:   "Nothing was uploaded",
		},
		"a revoked key": {
			change: func(o *minutestest.Organisation) { o.Key("key_ci").Revoked = true },
			told:   "The API key does not work",
		},
		"a missing scope": {
			change: func(o *minutestest.Organisation) {
				o.Key("key_ci").Scopes = []minutes.Scope{minutes.ScopeMeetingsRead}
			},
			told: "The API key does not work",
		},
	} {
		t.Run(name, func(t *testing.T) {
			serviceTest(t, func(t *testing.T, srv *minutestest.Server) {
				srv.Update("org_acme", tc.change)
				_, err := desk{srv.Client()}.process(t.Context(), title, day, madeUp())
				require.Error(t, err)
				assert.Contains(t, advice(err), tc.told)
				assert.Empty(t, srv.Requests(minutes.OpUpload))
			})
		})
	}
}

// A program that ends in the middle continues after a restart.
func TestRestart(t *testing.T) {
	serviceTest(t, func(t *testing.T, srv *minutestest.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // in the transcription
		defer cancel()
		_, err := desk{srv.Client()}.process(ctx, title, day, madeUp())
		require.ErrorIs(t, err, context.DeadlineExceeded)

		time.Sleep(time.Hour) // until it is restarted
		got, err := desk{srv.Client()}.process(t.Context(), title, day, madeUp())
		require.NoError(t, err)
		assert.Len(t, got.items, 2)
		assert.Len(t, srv.Requests(minutes.OpUpload), 1, "nothing is uploaded twice")
	})
}

func TestActions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		markdown string
		want     []item
	}{
		"none": {"# Weekly\n\n## Decisions\n\n- Ship.\n", nil},
		"some": {
			markdown: "## Actions\n\n- **Ada:** Write.\n- Tell support.\n\n## Notes\n\n- no\n",
			want:     []item{{"Ada", "Write."}, {"", "Tell support."}},
		},
		"list in another style": {"## Actions\r\n\r\n-  **Ada:**  Write.\r\n- \r\n-\r\n", []item{{"Ada", "Write."}}},
		"a bold word":           {"## Actions\n- **now:**\n- **:** go\n", []item{{"", "**now:**"}, {"", "**:** go"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, actions(tc.markdown))
		})
	}
}

func TestRun(t *testing.T) {
	t.Setenv("MINUTES_BASE_URL", "")
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-date", day}, &out))
	want, err := os.ReadFile(filepath.Join("testdata", "weekly.golden.md"))
	require.NoError(t, err)
	assert.Equal(t, string(want), out.String())
}
