package engine

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// discard is a ResponseWriter that costs nothing.
type discard struct {
	header http.Header
	n      int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.n += len(p); return len(p), nil }

func request(key, target string) *http.Request {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	return &http.Request{Method: "GET", URL: u, Host: "minutes.test", Header: http.Header{"Authorization": {"Bearer " + key}}, Body: http.NoBody, RemoteAddr: "127.0.0.1:5"}
}

// fill adds meetings the short way. They are spread over the days of a year;
// every third is private, every third shared with Bob.
func fill(s *rig, n int) *organisation {
	o := s.world.Load().orgs["org_acme"]
	o.lock(wallClock())
	defer o.unlock()
	for i := range n {
		m := &meeting{title: fmt.Sprintf("Weekly meeting %d", i), externalID: fmt.Sprintf("crm-%08d", i), creator: "emp_ada", template: "tpl_brief",
			status: minutes.StatusCreated, date: fmt.Sprintf("2026-%02d-%02d", 1+i*7%12, 1+i*11%28), created: wallClock(), updated: wallClock(), visibility: minutes.VisibilityOrganisation}
		switch i % 3 {
		case 1:
			m.visibility = minutes.VisibilityPrivate
		case 2:
			m.visibility, m.sharedWith = minutes.VisibilityShared, []string{"emp_bob"}
		}
		o.insert(m)
	}
	return o
}

var sizes = []int{1_000, 100_000, 1_000_000}

// BenchmarkPage is a newest-first page of 50. Its cost does not depend on the
// number of meetings.
func BenchmarkPage(b *testing.B) {
	for _, n := range sizes {
		s := newRig(b)
		o := fill(s, n)
		for _, who := range []string{"ada", "bob", "ci"} {
			b.Run(fmt.Sprintf("%d/%s", n, who), func(b *testing.B) { pages(b, s, who, "/v1/meetings?limit=50") })
		}
		b.Run(fmt.Sprintf("%d/ada/dates", n), func(b *testing.B) {
			pages(b, s, "ada", "/v1/meetings?limit=50&date_from=2026-02-10&date_to=2026-11-20")
		})
		b.Run(fmt.Sprintf("%d/ada/day", n), func(b *testing.B) {
			pages(b, s, "ada", "/v1/meetings?limit=50&date_from=2026-08-12&date_to=2026-08-12")
		})
		o.lock(wallClock())
		for i := n / 10; i < n; i++ { // nine in ten are deleted, including the newest
			if m := o.externals[fmt.Sprintf("crm-%08d", i)]; m != nil {
				o.remove(m)
			}
		}
		o.unlock()
		b.Run(fmt.Sprintf("%d/ada/deleted", n), func(b *testing.B) { pages(b, s, "ada", "/v1/meetings?limit=50") })
	}
}

func pages(b *testing.B, s *rig, key, target string) {
	r, w := request(key, target), &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		s.Serve(w, r)
	}
	b.SetBytes(int64(w.n / b.N))
}

// BenchmarkGet is one meeting straight through the handler, from all cores.
func BenchmarkGet(b *testing.B) {
	s := newRig(b)
	fill(s, 100_000)
	id := s.create("ci", "")
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		r, w := request("ci", "/v1/meetings/"+id), &discard{header: http.Header{}}
		for pb.Next() {
			s.Serve(w, r)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// BenchmarkIdleMeeting is the memory of a meeting that waits for its audio.
func BenchmarkIdleMeeting(b *testing.B) {
	const n = 200_000
	for b.Loop() {
		s := newRig(b)
		before := live()
		fill(s, n)
		b.ReportMetric(float64(live()-before)/n, "B/meeting")
		runtime.KeepAlive(s)
	}
}

func live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkCreate(b *testing.B) {
	s := newRig(b)
	b.ReportAllocs()
	for b.Loop() {
		require.NotEmpty(b, s.create("ci", ""))
	}
}
