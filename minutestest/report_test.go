package minutestest_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestReport_ReturnsWriteErrors(t *testing.T) {
	t.Parallel()
	require.EqualError(t, minutestest.New().Report(brokenWriter{}), "minutestest: Report: disk full")
}

// failingTB is a test that has failed, with a directory for what it leaves.
type failingTB struct {
	fakeTB
	dir    string
	failed bool
	logs   []string
}

func (f *failingTB) Failed() bool        { return f.failed || len(f.errors) > 0 }
func (f *failingTB) ArtifactDir() string { return f.dir }
func (f *failingTB) Name() string        { return "TestWeekly" }
func (f *failingTB) Logf(format string, args ...any) {
	f.logs = append(f.logs, fmt.Sprintf(format, args...))
}

// A test that failed leaves a report of each of its Servers, if go test is asked to keep such
// things.
func TestReport_IsLeftByAFailedTest(t *testing.T) {
	artifacts := flag.Lookup("test.artifacts")
	before := artifacts.Value.String()
	t.Cleanup(func() { _ = artifacts.Value.Set(before) })
	for name, tc := range map[string]struct {
		asked  string
		failed bool
		want   int
	}{
		"passed":             {"true", false, 0},
		"failed":             {"true", true, 2},
		"failed, not wanted": {"false", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, artifacts.Value.Set(tc.asked))
			tb := &failingTB{dir: t.TempDir()}
			for range 2 {
				s := minutestest.NewServer(tb)
				c := callerOf(s)
				id := c.create(t, "Weekly")
				for range 2 {
					c.send("GET", "/v1/meetings/"+id, "")
					if !tc.failed {
						break
					}
				}
			}
			for _, cleanup := range slices.Backward(tb.cleanups) {
				cleanup()
			}
			files, err := filepath.Glob(filepath.Join(tb.dir, "*"))
			require.NoError(t, err)
			for _, f := range files {
				page, err := os.ReadFile(f)
				require.NoError(t, err)
				assert.Contains(t, string(page), `"name":"TestWeekly","failed":true`)
				assert.Contains(t, string(page), `"violations":[{"kind":"poll"`)
				assert.Contains(t, strings.Join(tb.logs, "\n"), f)
			}
			assert.Len(t, files, tc.want)
		})
	}
}

// Not even a directory that cannot be written to is more than a line in a log.
func TestReport_FailureIsLogged(t *testing.T) {
	artifacts := flag.Lookup("test.artifacts")
	before := artifacts.Value.String()
	t.Cleanup(func() { _ = artifacts.Value.Set(before) })
	require.NoError(t, artifacts.Value.Set("true"))
	tb := &failingTB{dir: filepath.Join(t.TempDir(), "none"), failed: true}
	minutestest.NewServer(tb)
	tb.cleanups[0]()
	assert.Empty(t, tb.errors)
	require.Len(t, tb.logs, 1)
	assert.Contains(t, tb.logs[0], "cannot write the report: ")
}

// A typo in a title may be why a test failed.
func TestScript_WithoutMeetingIsLoggedByAFailedTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failed bool
		want   []string
	}{
		"passed": {false, nil},
		"failed": {true, []string{
			`minutestest: no meeting has matched the Script {"title":"Wekly","outcome":"minutes_failed"}`,
			`minutestest: no meeting has matched the Script {"external_id":"weakly","hold":"transcribing"}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := &failingTB{failed: c.failed}
			s := minutestest.NewServer(tb)
			callerOf(s).send("POST", "/v1/meetings", `{"title":"Weekly","date":"2026-11-21","external_id":"weekly"}`)
			s.Script(
				minutestest.Script{Title: "Wekly", Outcome: minutes.StatusMinutesFailed},
				minutestest.Script{ExternalID: "weakly", Hold: minutes.StatusTranscribing},
				minutestest.Script{Title: "Weekly", Transcript: "Good morning."},
				minutestest.Script{ExternalID: "weekly", Transcript: "Good morning."},
				minutestest.Script{Transcript: "Good morning."},
			)
			tb.cleanups[0]()
			assert.Equal(t, c.want, tb.logs)
		})
	}
}
