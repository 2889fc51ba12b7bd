package minutestest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// reported is what a report holds, as its page reads it.
type reported struct {
	text    string
	state   news
	details map[string]json.RawMessage
}

func (s *Server) reported(t *testing.T) reported {
	t.Helper()
	var page bytes.Buffer
	require.NoError(t, s.Report(&page))
	return readReport(t, page.String())
}

func readReport(t *testing.T, page string) reported {
	t.Helper()
	r := reported{text: page, details: map[string]json.RawMessage{}}
	block := func(id string) string {
		_, rest, ok := strings.Cut(page, `<script type="application/json" id="`+id+`">`)
		require.True(t, ok)
		text, _, ok := strings.Cut(rest, "</script>")
		require.True(t, ok)
		return text
	}
	var state struct {
		news
		World json.RawMessage `json:"world"`
	}
	require.NoError(t, json.Unmarshal([]byte(block("state")), &state))
	r.state = state.news
	for line := range strings.Lines(block("details")) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var pair []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &pair), line)
		r.details[strings.Trim(string(pair[0]), `"`)] = pair[1]
	}
	return r
}

func TestReport_ShowsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		defer s.Close()
		client := s.Client()
		s.Inject(Match{Operation: "meetings.update", Key: s.Key()}, Refuse(minutes.ErrInternal))
		const hostile = "</script><script>alert(1)</script><!--"
		m, _, err := client.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: hostile, Date: "2026-11-21"})
		require.NoError(t, err)
		for range 2 {
			_, err = client.Meetings.Get(t.Context(), m.ID)
			require.NoError(t, err)
			time.Sleep(12 * time.Second)
		}
		r := s.reported(t)
		assert.Len(t, r.state.Meetings, 1)
		assert.Equal(t, hostile, r.state.Meetings[0].Title)
		require.Len(t, r.state.Requests, 3)
		require.Len(t, r.state.Violations, 1)
		assert.Equal(t, 3, r.state.Violations[0].Seq)
		assert.InDelta(t, float64(millis(12_000)), float64(r.state.Requests[2].At-r.state.Requests[1].At), 0.001)
		assert.InDelta(t, float64(millisOf(time.Now())), float64(r.state.Now), 0.001, "the time of the bubble")
		assert.Equal(t, 3, strings.Count(r.text, "<script"), "two of data, and the page's own")
		assert.Equal(t, 3, strings.Count(r.text, "</script"))
		assert.NotContains(t, r.text, s.Key())
		var full Meeting
		require.NoError(t, json.Unmarshal(r.details["meetings/"+m.ID], &full))
		assert.Equal(t, hostile, full.Title)
		assert.Contains(t, string(r.details["requests/1"]), `(masked)`)
		assert.NotRegexp(t, `(src|href)="?(https?:)?//`, r.text, "nothing from elsewhere")
		assert.Contains(t, r.text, "default-src 'none'")
	})
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestReport_ReturnsWriteErrors(t *testing.T) {
	t.Parallel()
	require.EqualError(t, New().Report(brokenWriter{}), "minutestest: Report: disk full")
}

// A report holds so much of meetings and no more.
func TestReport_IsBounded(t *testing.T) {
	if !testbase.Long() {
		t.Skip("writes 36 MB")
	}
	t.Parallel()
	s := New()
	c := callerOf(s)
	require.NoError(t, s.Script(Script{Markdown: strings.Repeat("word ", 400_000), HTML: "<p>"}))
	for i := range 18 {
		_, err := s.Advance(c.upload(t, fmt.Sprint("Long ", i), "audio"), minutes.StatusMinutesReady)
		require.NoError(t, err)
	}
	r := s.reported(t)
	assert.Len(t, r.state.Meetings, 18)
	size := 0
	for path, d := range r.details {
		if strings.HasPrefix(path, "meetings/") {
			size += len(d)
		}
	}
	assert.LessOrEqual(t, size, maxDetails)
	assert.Greater(t, size, maxDetails/2)
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

// A test that failed leaves a report of each of its Servers, if go test is
// asked to keep such things.
func TestReport_IsLeftByAFailedTest(t *testing.T) {
	artifacts := flag.Lookup("test.artifacts")
	before := artifacts.Value.String()
	t.Cleanup(func() { _ = artifacts.Value.Set(before) })
	for name, tc := range map[string]struct {
		asked  string
		failed bool
		want   []string
	}{
		"passed":             {"true", false, nil},
		"failed":             {"true", true, []string{"minutestest-1.html", "minutestest-2.html"}},
		"failed, not wanted": {"false", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, artifacts.Value.Set(tc.asked))
			tb := &failingTB{dir: t.TempDir()}
			for range 2 {
				s := NewServer(tb)
				c := callerOf(s)
				id := c.create(t, "Weekly")
				for range 2 {
					c.call("GET", "/v1/meetings/"+id, "")
					if !tc.failed {
						break
					}
				}
			}
			for _, cleanup := range slices.Backward(tb.cleanups) {
				cleanup()
			}
			var names []string
			files, err := filepath.Glob(filepath.Join(tb.dir, "*"))
			require.NoError(t, err)
			for _, f := range files {
				names = append(names, filepath.Base(f))
				page, err := os.ReadFile(f)
				require.NoError(t, err)
				r := readReport(t, string(page))
				assert.Len(t, r.state.Violations, 1)
				assert.Equal(t, "TestWeekly", r.state.Name)
				assert.Contains(t, strings.Join(tb.logs, "\n"), f)
			}
			assert.Equal(t, tc.want, names)
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
	NewServer(tb)
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
			`minutestest: no meeting that exists now matches the Script {"title":"Wekly","outcome":"minutes_failed"}`,
			`minutestest: no meeting that exists now matches the Script {"external_id":"weakly","hold":"transcribing"}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := &failingTB{failed: c.failed}
			s := NewServer(tb)
			callerOf(s).call("POST", "/v1/meetings", `{"title":"Weekly","date":"2026-11-21","external_id":"weekly"}`)
			require.NoError(t, s.Script(
				Script{Title: "Wekly", Outcome: minutes.StatusMinutesFailed},
				Script{ExternalID: "weakly", Hold: minutes.StatusTranscribing},
				Script{Title: "Weekly", Transcript: "Good morning."},
				Script{ExternalID: "weekly", Transcript: "Good morning."},
				Script{Transcript: "Good morning."},
			))
			tb.cleanups[0]()
			assert.Equal(t, c.want, tb.logs)
		})
	}
}
