package minutestest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

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

func watch(t *testing.T, s *Server) *watcher {
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	go func() {
		w := piped{httptest.NewRecorder(), in}
		s.Inspector().ServeHTTP(w, httptest.NewRequest("GET", "/events", nil).WithContext(ctx))
		_ = in.Close()
	}()
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 64<<20)
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
			var without struct {
				news
				World json.RawMessage `json:"world"`
			}
			require.NoError(w.t, json.Unmarshal([]byte(data), &without))
			what = without.news
			if kind == "state" || len(what.Meetings)+len(what.Requests)+len(what.Violations) > 0 || without.World != nil {
				return kind, what
			}
		}
	}
	return "", news{}
}

// A watcher gets the whole state first, and then each change soon and once.
func TestEvents_StreamNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(WithWorld(slowly()))
		c := callerOf(s)
		id := c.create(t, "Before")
		w := watch(t, s)
		kind, all := w.next()
		assert.Equal(t, "state", kind)
		assert.Len(t, all.Meetings, 1)
		assert.Len(t, all.Requests, 1)

		time.Sleep(time.Minute)
		begun := time.Now()
		c.call("GET", "/v1/meetings/"+id, "")
		kind, what := w.next()
		assert.Equal(t, "news", kind)
		assert.LessOrEqual(t, time.Since(begun), newsInterval)
		assert.Empty(t, what.Meetings, "it has not changed")
		require.Len(t, what.Requests, 1)
		assert.Equal(t, 2, what.Requests[0].Seq)
		c.call("GET", "/v1/meetings/"+id, "")
		_, what = w.next()
		assert.Len(t, what.Requests, 1)
		assert.Len(t, what.Violations, 1)

		// The clock moves a meeting on without a request.
		c.upload(t, "Going", "audio")
		for _, want := range []minutes.Status{"audio_uploaded", "transcribing", "generating_minutes", "minutes_ready"} {
			for what.Meetings == nil || what.Meetings[0].Status != want {
				_, what = w.next()
			}
		}

		// A long request is reported when it is over, after later ones.
		s.Inject(Match{Operation: "usage.get"}, Delay(10*time.Second))
		go c.call("GET", "/v1/usage", "")
		synctest.Wait()
		c.call("GET", "/v1/templates", "")
		late := 0
		for what.Requests == nil || what.Requests[0].Operation != "usage.get" {
			_, what = w.next()
			if what.Requests != nil && what.Requests[0].Operation == "templates.list" {
				late = what.Requests[0].Seq
			}
		}
		assert.Less(t, what.Requests[0].Seq, late)

		require.NoError(t, s.Reset())
		for kind != "state" {
			kind, what = w.next()
		}
		assert.Empty(t, what.Meetings)
		assert.Empty(t, what.Requests)
		assert.Empty(t, what.Violations)
		w.stop()
		for w.text.Scan() {
		}
	})
}

func slowly() World {
	w := DefaultWorld()
	w.Stages = Stages{Prepare: time.Second, Transcribe: time.Second, Write: time.Second}
	return w
}

// The number of watchers is limited, and a watcher that leaves frees its slot.
func TestInspector_LimitsWatchers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		var all []*watcher
		for range maxStreams {
			w := watch(t, s)
			kind, _ := w.next()
			require.Equal(t, "state", kind)
			all = append(all, w)
		}
		ask := func() int {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			w := httptest.NewRecorder()
			s.Inspector().ServeHTTP(w, httptest.NewRequest("GET", "/events", nil).WithContext(ctx))
			return w.Code
		}
		assert.Equal(t, http.StatusServiceUnavailable, ask())
		for _, w := range all {
			w.stop()
			for w.text.Scan() {
			}
		}
		assert.Equal(t, http.StatusOK, ask())
		assert.Zero(t, s.streams.Load())
	})
}

// The page and its details, and no word of a key.
func TestInspector_ServesPage(t *testing.T) {
	t.Parallel()
	s := New()
	c := callerOf(s)
	id := c.create(t, "Weekly")
	s.Inject(Match{Key: s.Key()}, RateLimit("")).Optional()
	for path, want := range map[string]struct {
		status int
		holds  string
	}{
		"/":               {200, "<!DOCTYPE html>"},
		"/meetings/" + id: {200, `"title":"Weekly"`},
		"/meetings/mtg_0": {404, "not kept"},
		"/requests/1":     {200, `"meetings.create"`},
		"/requests/2":     {404, "not kept"},
		"/requests/0":     {404, "not kept"},
		"/requests/x":     {404, "not kept"},
		"/else":           {404, ""},
	} {
		w := httptest.NewRecorder()
		s.Inspector().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		assert.Equal(t, want.status, w.Code, path)
		assert.Contains(t, w.Body.String(), want.holds, path)
		assert.NotContains(t, w.Body.String(), s.Key(), path)
	}
	var reader newsreader
	all, kind := reader.read(s)
	assert.Equal(t, "state", kind)
	text, err := json.Marshal(all)
	require.NoError(t, err)
	assert.NotContains(t, string(text), s.Key())
	assert.Contains(t, string(text), masked)
	assert.Contains(t, string(text), `"name":"Ada Lovelace"`)
	_, kind = reader.read(s)
	assert.Empty(t, kind, "nothing is new")
}

// BenchmarkNews is what a page that is open costs twenty times a second, with ten
// thousand meetings of which nothing is new.
func BenchmarkNews(b *testing.B) {
	s := New(WithoutAudit())
	c := callerOf(s)
	for range 10_000 {
		r := httptest.NewRequest("POST", "/v1/meetings", strings.NewReader(`{"title":"x","date":"2026-11-21"}`))
		r.Header.Set("Authorization", "Bearer "+c.key)
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	var reader newsreader
	_, _ = reader.read(s)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = reader.read(s)
	}
}
