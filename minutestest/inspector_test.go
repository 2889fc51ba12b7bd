package minutestest_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// news is what the page reads of an event or a report.
type news struct {
	Now      time.Time
	Meetings []struct {
		ID, Title, Reason string
		Status            minutes.Status
	}
	Ended    int
	Requests []struct {
		Seq       int
		At        time.Time
		Operation minutes.Operation
	}
	Violations []minutestest.Violation
	Actions    []struct {
		After   int
		Name    string
		Meeting string `json:"meeting_id"`
		Changes []string
	}
	World json.RawMessage
}

// watcher reads the inspector's events.
type watcher struct {
	t    *testing.T
	text *bufio.Scanner
	stop context.CancelFunc
}

// piped is a response that is read while it is written.
type piped struct {
	http.ResponseWriter
	to io.Writer
}

func (p piped) Write(b []byte) (int, error) { return p.to.Write(b) }
func (p piped) Flush()                      {}

func watch(t *testing.T, s *minutestest.Server) *watcher {
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	go func() {
		s.Inspector().ServeHTTP(piped{httptest.NewRecorder(), in},
			httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/events", http.NoBody))
		_ = in.Close()
	}()
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	return &watcher{t, scanner, stop}
}

// next is the next event that says something.
func (w *watcher) next() (kind string, what news) {
	w.t.Helper()
	for n := 0; w.text.Scan(); n++ {
		require.Less(w.t, n, 100, "the stream sends only keep-alives")
		if name, ok := strings.CutPrefix(w.text.Text(), "event: "); ok {
			kind = name
		}
		if data, ok := strings.CutPrefix(w.text.Text(), "data: "); ok {
			what = news{}
			require.NoError(w.t, json.Unmarshal([]byte(data), &what))
			if kind == "state" || len(what.Meetings)+len(what.Requests)+len(what.Violations)+len(what.Actions) > 0 {
				return kind, what
			}
		}
	}
	return "", news{}
}

// endStream ends the stream.
func (w *watcher) endStream() {
	w.stop()
	for w.text.Scan() {
	}
}

// reported is what a report holds: its news, and what a click opens.
func reported(t *testing.T, s *minutestest.Server) (text string, state news, details map[string]json.RawMessage) {
	t.Helper()
	var page bytes.Buffer
	require.NoError(t, s.Report(&page))
	block := func(id string) string {
		_, rest, ok := strings.Cut(page.String(), `<script type="application/json" id="`+id+`">`)
		require.True(t, ok)
		text, _, ok := strings.Cut(rest, "</script>")
		require.True(t, ok)
		return text
	}
	require.NoError(t, json.Unmarshal([]byte(block("state")), &state))
	details = map[string]json.RawMessage{}
	for line := range strings.Lines(strings.TrimSpace(block("details"))) {
		var pair []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &pair), line)
		details[strings.Trim(string(pair[0]), `"`)] = pair[1]
	}
	return page.String(), state, details
}

// A watcher gets the whole state first, and then each change soon and once.
func TestEvents_StreamNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := unjudged(t)
		s.Script(minutestest.Script{Stages: &minutestest.Stages{Prepare: time.Second, Transcribe: time.Second,
			Write: time.Second}})
		c := callerOf(s)
		id := c.create(t, "Before")
		w := watch(t, s)
		kind, all := w.next()
		assert.Equal(t, "state", kind)
		assert.Len(t, all.Meetings, 1)
		assert.Len(t, all.Requests, 1)
		assert.NotContains(t, string(all.World), s.Key())
		assert.Contains(t, string(all.World), `"name":"Ada Lovelace"`)

		time.Sleep(time.Minute)
		begun := time.Now()
		for seq := 2; seq <= 3; seq++ {
			c.status(t, id)
			kind, what := w.next()
			assert.Equal(t, "news", kind)
			assert.Empty(t, what.Meetings, "it has not changed")
			require.Len(t, what.Requests, 1)
			assert.Equal(t, seq, what.Requests[0].Seq)
			assert.Len(t, what.Violations, seq-2)
		}
		assert.LessOrEqual(t, time.Since(begun), 100*time.Millisecond)

		// The clock moves a meeting on without a request.
		c.upload(t, "Going", "audio")
		var what news
		for _, want := range []minutes.Status{"audio_uploaded", "transcribing", "generating_minutes", "minutes_ready"} {
			for what.Meetings == nil || what.Meetings[0].Status != want {
				_, what = w.next()
			}
		}

		w.endStream()
	})
}

// The page and its details, and no word of a key.
func TestInspector_ServesPage(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	id := callerOf(s).create(t, "Weekly")
	s.Inject(minutestest.Match{Key: s.Key()}, minutestest.RateLimit("")).Optional()
	for path, want := range map[string]struct {
		status int
		holds  string
	}{
		"/":               {200, "<!DOCTYPE html>"},
		"/meetings/" + id: {200, `"title":"Weekly"`},
		"/meetings/mtg_0": {404, "not kept"},
	} {
		w := httptest.NewRecorder()
		s.Inspector().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		assert.Equal(t, want.status, w.Code, path)
		assert.Contains(t, w.Body.String(), want.holds, path)
		assert.NotContains(t, w.Body.String(), s.Key(), path)
	}
}

// A page of another site reads nothing, even if its name resolves to this machine.
func TestInspector_RejectsOtherHosts(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	id := callerOf(s).create(t, "Weekly")
	machine, err := os.Hostname()
	require.NoError(t, err)
	for host, want := range map[string]int{
		"evil.example":           403,
		"evil.example:8081":      403,
		"localhost.evil.com":     403,
		"127.0.0.1.evil.com":     403,
		"localhost:8081":         200,
		"fake.localhost":         200,
		"127.0.0.1:8081":         200,
		"[::1]:8081":             200,
		strings.ToUpper(machine): 200,
		"":                       200,
	} {
		for _, path := range []string{"/", "/meetings/" + id} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			s.Inspector().ServeHTTP(w, r)
			assert.Equal(t, want, w.Code, "%q %s", host, path)
			assert.Equal(t, want == 200, strings.Contains(w.Body.String(), "Weekly") || path == "/" && w.Code == 200)
		}
	}
}

// A report has everything that the page shows, whatever a client has sent.
func TestReport_ShowsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := unjudged(t)
		c := callerOf(s)
		s.Inject(minutestest.Match{Operation: minutes.OpMeetingsUpdate, Key: s.Key()}, minutestest.Reset())
		const hostile = "</script><script>alert(1)</script><!--"
		id := c.create(t, hostile)
		for range 2 {
			c.status(t, id)
			time.Sleep(12 * time.Second)
		}
		text, state, details := reported(t, s)
		require.Len(t, state.Meetings, 1)
		assert.Equal(t, hostile, state.Meetings[0].Title)
		require.Len(t, state.Requests, 3)
		require.Len(t, state.Violations, 1)
		assert.Equal(t, 3, state.Violations[0].Seq)
		assert.Equal(t, 12*time.Second, state.Requests[2].At.Sub(state.Requests[1].At))
		assert.WithinDuration(t, time.Now(), state.Now, 0, "the time of the bubble")
		assert.Contains(t, string(state.World), `"unused":"the fault`)
		assert.Equal(t, 3, strings.Count(text, "<script"), "two of data, and the page's own")
		assert.Equal(t, 3, strings.Count(text, "</script"))
		assert.NotContains(t, text, s.Key())
		var full minutestest.Meeting
		require.NoError(t, json.Unmarshal(details["meetings/"+id], &full))
		assert.Equal(t, hostile, full.Title)
		assert.Contains(t, text, `(masked)`)
		assert.NotRegexp(t, `(src|href)="?(https?:)?//`, text, "nothing from elsewhere")
	})
}

// The report lists the changes of the test between the requests, without secrets.
func TestActions_AreInOrderOfRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := unjudged(t, minutestest.WithWorld(slow()))
		s.Script(
			minutestest.Script{Title: "Weekly", Hold: minutes.StatusAudioUploaded, Transcript: "spk_0: Hello."},
			minutestest.Script{ExternalID: "x", Outcome: minutes.StatusMinutesFailed,
				Stages: &minutestest.Stages{Prepare: time.Second}, Markdown: "# M"},
			minutestest.Script{Title: strings.Repeat("long", 1000)},
		)
		id := callerOf(s).upload(t, "Weekly", "audio")
		require.True(t, s.Release(id))
		s.Advance(id, minutes.StatusMinutesReady)
		s.Update("org_acme", func(o *minutestest.Organisation) {
			o.Credits = new(3)
			o.Suspended = true
			o.NextResetAt = "2026-12-01"
			o.Key("key_ci").Secret = "key_new"
		})
		assert.False(t, s.Release(id), "it is not held, so nothing is recorded")
		_, state, _ := reported(t, s)
		var got []string
		for _, a := range state.Actions {
			got = append(got,
				fmt.Sprintf("after %d: %s %s %s", a.After, a.Name, strings.ReplaceAll(a.Meeting, id, "it"),
					strings.Join(a.Changes, "; ")))
		}
		require.Len(t, got, 6)
		assert.Less(t, len(got[2]), 200)
		assert.Equal(t, []string{
			`after 0: Script  {"title":"Weekly","transcript":"spk_0: Hello.","hold":"audio_uploaded"}`,
			`after 0: Script  ` +
				`{"external_id":"x","outcome":"minutes_failed","markdown":"# M","stages":{"prepare":"1s"}}`,
			got[2],
			`after 3: Release it no longer held in audio_uploaded`,
			`after 3: Advance it audio_uploaded → minutes_ready`,
			`after 3: Update org_acme  `,
		}, got)
	})
}

// A failed meeting says why it failed.
func TestNews_SayWhyMeetingFailed(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		prepare func(*minutestest.Server)
		status  minutes.Status
	}{
		"A script set this outcome.": {func(s *minutestest.Server) {
			s.Script(minutestest.Script{Outcome: minutes.StatusTranscriptionFailed})
		}, minutes.StatusTranscriptionFailed},
		"Transcription takes 1 s of quota. The organisation had less left when the audio " +
			"arrived.": {func(s *minutestest.Server) {
			s.Update("org_acme", func(o *minutestest.Organisation) { o.TranscribeSeconds = new(0) })
		}, minutes.StatusTranscribeBlocked},
		"The organisation had no credit left.": {func(s *minutestest.Server) {
			s.Update("org_acme", func(o *minutestest.Organisation) { o.Credits = new(0) })
		}, minutes.StatusMinutesFailed},
		"": {func(*minutestest.Server) {}, minutes.StatusMinutesReady},
	} {
		t.Run(string(tc.status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := minutestest.NewServer(t)
				tc.prepare(s)
				s.Advance(callerOf(s).upload(t, "Weekly", "audio"), tc.status)
				_, state, _ := reported(t, s)
				require.Len(t, state.Meetings, 1)
				assert.Equal(t, tc.status, state.Meetings[0].Status)
				assert.Equal(t, reason, state.Meetings[0].Reason)
			})
		})
	}
}

// The page runs nothing but what it is made of, and that turns no text into markup.
func TestInspector_HasAContentSecurityPolicy(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	minutestest.NewServer(t).Inspector().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
	policy := w.Header().Get("Content-Security-Policy")
	page := w.Body.String()
	assert.NotContains(t, page, "{{")
	for what, expression := range map[string]string{"script": `(?s)<script>(.*?)</script>`,
		"style": `(?s)<style>(.*?)</style>`} {
		found := regexp.MustCompile(expression).FindAllStringSubmatch(page, -1)
		require.Len(t, found, 1)
		sum := sha256.Sum256([]byte(found[0][1]))
		assert.Contains(t, policy, what+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	for _, part := range []string{"default-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'",
		"frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
		assert.Contains(t, policy, part)
	}
	assert.NotContains(t, policy, "unsafe")
	assert.Contains(t, page, `content="`+strings.TrimSuffix(policy, "; frame-ancestors 'none'")+`"`,
		"a report has it, too")
	assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	assert.NotRegexp(t,
		`innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|\beval\b|new Function|javascript:|https?://[^w]`,
		page)
	assert.NotRegexp(t, `<[^>]* (on[a-z]+|style|src)=`, page)
}
