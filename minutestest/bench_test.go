package minutestest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	minutes "github.com/meeting-minutes/minutes-go"
)

// nowhere is a ResponseWriter that costs next to nothing.
type nowhere struct {
	header http.Header
	status int
}

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(status int)      { n.status = status }

// trivial responds to any request with a meeting that never changes.
var trivial = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "private, max-age=30")
	_, _ = io.WriteString(w, trivialMeeting)
})

const trivialMeeting = `{"id":"mtg_0123456789abcdefghij","title":"Weekly","date":"2026-11-21","time":null,"status":"minutes_ready","visibility":"organisation","template_id":"tpl_standard","participant_ids":[],"project_id":null,"external_id":null,"duration_seconds":1800,"created_at":1795000000,"updated_at":1795000000}`

func benchmarkHandler(b *testing.B, h http.Handler, newRequest func() *http.Request) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		r, w := newRequest(), &nowhere{header: make(http.Header)}
		for pb.Next() {
			clear(w.header)
			h.ServeHTTP(w, r)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// BenchmarkHandler is the service straight through its handler, journal and audit on, beside a
// handler that does nothing.
func BenchmarkHandler(b *testing.B) {
	s := NewServer(b, WithoutAudit(ViolationOpenBody))
	c := callerOf(s)
	request := func(path string) func() *http.Request {
		return func() *http.Request {
			r := httptest.NewRequest("GET", path, nil)
			r.Header.Set("Authorization", "Bearer "+c.key)
			r.Header.Set("User-Agent", "bench")
			r.Header.Set("Accept", "application/json")
			return r
		}
	}
	ready, created := c.upload(b, "Ready", "audio"), c.create(b, "Created")
	s.Advance(ready, "minutes_ready")
	for i := range 1000 {
		c.create(b, fmt.Sprint(i))
	}
	b.Run("trivial", func(b *testing.B) { benchmarkHandler(b, trivial, request("/v1/meetings/"+ready)) })
	b.Run("get ready", func(b *testing.B) { benchmarkHandler(b, s.Handler(), request("/v1/meetings/"+ready)) })
	b.Run("get created", func(b *testing.B) { benchmarkHandler(b, s.Handler(), request("/v1/meetings/"+created)) })
	b.Run("engine alone", func(b *testing.B) {
		benchmarkHandler(b, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { s.engine.Serve(r) }), request("/v1/meetings/"+ready))
	})
	b.Run("page of 50", func(b *testing.B) { benchmarkHandler(b, s.Handler(), request("/v1/meetings?limit=50")) })
	injection := s.Inject(Match{Operation: minutes.OpUpload, Times: Always}, Reset()).Optional()
	b.Run("get ready, a fault armed", func(b *testing.B) { benchmarkHandler(b, s.Handler(), request("/v1/meetings/"+ready)) })
	injection.Stop()
	s.forgive()
}
