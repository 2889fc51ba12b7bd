package minutestest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// A header of more than 64 KiB is rejected before the service reads it.
func TestHeaders_AreLimited(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, s *Server, c *caller) {
		a := c.call("GET", "/v1/usage", "", withHeader("X-Long", strings.Repeat("x", 900<<10)))
		if a.err == nil { // or the connection went while the header was still being sent
			assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, a.status)
		}
		assert.Empty(t, s.Requests())
		assert.Equal(t, http.StatusOK, c.call("GET", "/v1/usage", "", withHeader("X-Long", strings.Repeat("x", 60<<10))).status)
	})
}

// huge is a request as a server without a limit passes it on.
func huge(s *Server, target string) *http.Request {
	r := httptest.NewRequest("GET", target, nil)
	r.Header.Set("Authorization", "Bearer "+s.Key())
	return r
}

// The journal limits the size of one request, for all of its parts.
func TestJournal_ClipsLongEntries(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	for name, set := range map[string]func(r *http.Request){
		"a value":  func(r *http.Request) { r.Header.Set("X-Long", long) },
		"a name":   func(r *http.Request) { r.Header.Set(long, "x") },
		"a key":    func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+long) },
		"a host":   func(r *http.Request) { r.Host = long },
		"a method": func(r *http.Request) { r.Method = long },
		"a query":  func(r *http.Request) { r.URL.RawQuery = "a=1&b=" + long },
		"a path":   func(r *http.Request) { r.URL.Path = "/v1/meetings/" + long },
		"an escaped path": func(r *http.Request) {
			r.URL.Path, r.URL.RawPath = "/v1/meetings/"+long+"/a", "/v1/meetings/"+long+"%2Fa"
		},
		"an external id": func(r *http.Request) {
			r.Method, r.URL.Path = "POST", "/v1/meetings"
			r.Body = io.NopCloser(strings.NewReader(`{"title":"x","date":"2026-11-21","external_id":"` + long + `"}`))
		},
		"many fields": func(r *http.Request) {
			for i := range 10_000 {
				r.Header.Set(fmt.Sprint("X-", i), "")
			}
		},
		"many values":        func(r *http.Request) { r.Header["X-Many"] = make([]string, 100_000) },
		"an organisation":    func(r *http.Request) { r.URL.Path = "/storage/" + long + "/m" },
		"a host in the line": func(r *http.Request) { r.RequestURI = "http://" + long + "/v1/usage" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewServer(t, WithoutAudit())
			r := huge(s, "/v1/meetings?limit=7")
			r.Header.Set("A-Short", "kept")
			set(r)
			s.Handler().ServeHTTP(httptest.NewRecorder(), r)
			list := s.Requests()
			require.Len(t, list, 1)
			size := len(list[0].Method) + len(list[0].Host) + len(list[0].Path) + len(list[0].MeetingID) + len(fmt.Sprint(list[0].Query))
			for name, values := range list[0].Header {
				size += 64 + len(name) + 16*len(values) + len(strings.Join(values, ""))
			}
			assert.Less(t, size, 32<<10)
			assert.Equal(t, "kept", list[0].Header.Get("A-Short"))
			assert.Equal(t, r.URL.Path[:3], list[0].Path[:3])
			kept := s.journal.entries()[0]
			assert.Less(t, len(kept.KeySecret)+len(kept.ExternalID)+len(kept.Organisation)+len(kept.uri), 4<<10)
			assert.LessOrEqual(t, cap(kept.Body), maxBody)
		})
	}
}

// A secret is masked even if an entry is cut in the middle of it.
func TestJournal_MasksClippedEntries(t *testing.T) {
	t.Parallel()
	w := DefaultWorld()
	w.Organisations[0].Keys[0].Secret = strings.Repeat("SECRET", 20)
	s := NewServer(t, WithWorld(w))
	for pad := 0; pad < 120; pad += 7 {
		r := huge(s, "/v1/usage?q="+strings.Repeat("x", pad)+strings.Repeat(s.Key(), 50))
		r.Header.Set("X-Key", strings.Repeat("x", pad)+strings.Repeat(s.Key(), 50))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("A-Key", s.Key()) // short enough to be kept whole
		r.Host = strings.Repeat("x", pad) + strings.Repeat(s.Key(), 50)
		r.Method, r.Body = "POST", io.NopCloser(strings.NewReader(strings.Repeat(" ", maxBody-pad)+strings.Repeat(s.Key(), 2)))
		r.URL.Path = "/v1/projects"
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	for i, r := range s.Requests() {
		text := fmt.Sprintf("%+v", r)
		at := strings.Index(text, "SEC")
		require.Negative(t, at, "%d: …%s", i, text[max(at-20, 0):][:min(40, len(text)-max(at-20, 0))])
	}
}

// A body that says it is long, and is not, does not cost what it says.
func TestTruncatedBody_KeepsNoMemory(t *testing.T) {
	t.Parallel()
	s := NewServer(t)
	for _, fault := range []bool{false, true} {
		if fault {
			s.Inject(Match{}, RateLimit(""))
		}
		r := httptest.NewRequest("POST", "/v1/projects", strings.NewReader(`{"name":`))
		r.ContentLength = 1 << 20
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+s.Key())
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	for _, e := range s.journal.entries() {
		assert.LessOrEqual(t, cap(e.Body), 64, "%d of %d bytes", len(e.Body), cap(e.Body))
	}
}

// The journal as a whole has a bound, too; the oldest requests go first.
func TestJournal_BoundsItsBytes(t *testing.T) {
	t.Parallel()
	s := NewServer(t)
	for range 2 + journalBytes/maxBody {
		e := &entry{seq: s.journal.next(), method: "POST", url: &url.URL{Path: "/v1/projects"}}
		e.Body = make([]byte, maxBody)
		s.journal.put(e)
	}
	list := s.Requests()
	total := 0
	for _, r := range list {
		total += len(r.Body)
	}
	assert.LessOrEqual(t, total, journalBytes)
	assert.Greater(t, total, journalBytes*3/4)
	last := list[len(list)-1].Seq
	assert.Equal(t, 2+journalBytes/maxBody, last)
	assert.Equal(t, last-len(list)+1, list[0].Seq, "without a gap")
}

// The journal's count of bytes stays right when entries are replaced, omitted
// or late.
func TestJournal_CountsItsBytes(t *testing.T) {
	t.Parallel()
	var j journal
	check := func() {
		t.Helper()
		total := 0
		for _, e := range j.entries() {
			total += e.size
		}
		require.Equal(t, total, j.bytes)
	}
	for i := range 3*journalSize + 7 {
		e := &entry{seq: j.next(), method: "GET", url: &url.URL{Path: strings.Repeat("/", i%100)}}
		if i%10 > 0 { // some are under way for good
			j.put(e)
		}
	}
	check()
	for i := range 600 {
		e := &entry{seq: j.next(), url: &url.URL{Path: "/"}, Exchange: engine.Exchange{Body: make([]byte, maxBody)}}
		if i%10 > 0 {
			j.put(e)
		}
	}
	check()
	j.reset()
	j.put(&entry{seq: j.seq.Load() - 1, url: &url.URL{Path: "/late"}})
	check()
	require.Empty(t, j.entries())
}

// Unused connections are closed.
func TestConnections_CloseWhenIdle(t *testing.T) {
	t.Parallel()
	srv := newHTTPServer(nil)
	assert.Positive(t, srv.IdleTimeout)
	assert.Positive(t, srv.ReadHeaderTimeout)
	assert.Equal(t, 64<<10, srv.MaxHeaderBytes)
}

// Recordings are kept up to a limit of all of them together.
func TestWithAudio_LimitsMemory(t *testing.T) {
	t.Parallel()
	s := NewServer(t, WithAudio(), func(s *Server) { s.keepAudio = 1000 })
	c := callerOf(s)
	kept := func(id string) int {
		m, ok := s.Meeting(id)
		require.True(t, ok)
		require.EqualValues(t, 600, m.Audio.Size)
		return len(m.Audio.Bytes)
	}
	audio := strings.Repeat("x", 600)
	first := c.upload(t, "First", audio)
	assert.Equal(t, 600, kept(first))
	assert.Zero(t, kept(c.upload(t, "Over", audio)))

	// A truncated body gives its memory back, and so does a deletion.
	id := c.create(t, "Cut")
	for range 3 {
		r := httptest.NewRequest("PUT", c.uploadURL(t, id), io.LimitReader(strings.NewReader(audio), 300))
		r.ContentLength = 600
		r.Header.Set("Content-Type", audioType)
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	assert.Equal(t, http.StatusNoContent, c.call("DELETE", "/v1/meetings/"+first, "").status)
	assert.Equal(t, 600, kept(c.upload(t, "Again", audio)))
	require.NoError(t, s.Reset())
}

// BenchmarkHostileClient is what stays in memory after a client that sends
// headers of 60 KB, bodies that end early, and recordings.
func BenchmarkHostileClient(b *testing.B) {
	for b.Loop() {
		before := heap()
		s := New(WithAudio(), WithoutAudit())
		c := callerOf(s)
		for range 600 {
			c.call("GET", "/v1/usage", "", withHeader("X-Long", strings.Repeat("x", 900<<10)))
		}
		for range journalSize {
			r := huge(s, "/v1/usage?q="+strings.Repeat("x", 60<<10))
			r.Header.Set("X-Long", strings.Repeat("x", 60<<10))
			r.Method, r.URL.Path, r.ContentLength = "POST", "/v1/projects", 1<<20
			r.Body = io.NopCloser(bytes.NewReader(bytes.Repeat([]byte("x"), 100<<10)))
			s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-held")
		runtime.KeepAlive(s)
		_ = s.Close()
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
