//go:build unix

package test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// BenchmarkWaits measures waits for meetings that end within an hour, on a fake clock.
func BenchmarkWaits(b *testing.B) {
	for _, n := range []int{1000, 10_000, 50_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if testing.Short() && n > 1000 {
				b.Skip("takes a while")
			}
			for range b.N {
				inBubble(b, func(t *testing.T) { measureWaits(b, t, n) })
			}
		})
	}
}

func measureWaits(b *testing.B, t *testing.T, n int) {
	s := newHourOfMeetings(n)
	c, err := minutes.New(benchHost, benchKey,
		minutes.WithHTTPClient(&http.Client{Transport: s}), minutes.WithRateLimit(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	goroutines := runtime.NumGoroutine()
	memory := inUse()
	used := cpuOf(b)
	start := time.Now()
	var waits sync.WaitGroup
	for _, id := range s.ids {
		waits.Go(func() {
			if _, err := c.Meetings.Wait(t.Context(), id, nil); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(95 * time.Second) // each was polled, none has ended
	synctest.Wait()
	b.ReportMetric(float64(inUse()-memory)/float64(n), "B/wait")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(n), "goroutines/wait")
	waits.Wait()
	synctest.Wait()
	b.ReportMetric(float64(cpuOf(b)-used)/1e6, "cpu-ms")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines-left")
	b.ReportMetric(float64(s.requests.Load())/time.Since(start).Minutes(), "requests/min")
	b.ReportMetric(0, "ns/op") // the clock is a fake
}

// inBubble runs f as a test, which a bubble takes to have one.
func inBubble(b *testing.B, f func(t *testing.T)) {
	all := func(string, string) (bool, error) { return true, nil }
	test := testing.InternalTest{Name: b.Name(), F: func(t *testing.T) { synctest.Test(t, f) }}
	if !testing.RunTests(all, []testing.InternalTest{test}) {
		b.FailNow()
	}
}

// inUse is the memory in use on the heap and for stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// cpuOf is the processor time that this process has used.
func cpuOf(t testing.TB) time.Duration {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// hourOfMeetings is a service that costs next to nothing itself: meetings, each
// of which ends at some time within an hour, alone and on list pages.
type hourOfMeetings struct {
	ids      []string // newest first
	ends     []time.Time
	requests atomic.Int64
}

func newHourOfMeetings(n int) *hourOfMeetings {
	s := &hourOfMeetings{ids: make([]string, n), ends: make([]time.Time, n)}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		s.ids[i] = fmt.Sprintf("mtg_%020d", n-i)
		s.ends[i] = time.Now().Add(2*time.Minute + time.Duration(rnd.Int64N(int64(58*time.Minute))))
	}
	return s
}

func (s *hourOfMeetings) RoundTrip(req *http.Request) (*http.Response, error) {
	s.requests.Add(1)
	var body strings.Builder
	if id, one := strings.CutPrefix(req.URL.Path, "/v1/meetings/mtg_"); one {
		n, _ := strconv.Atoi(strings.TrimLeft(id, "0"))
		body.WriteString(s.meeting(len(s.ids) - n))
	} else {
		query := req.URL.Query()
		from, _ := strconv.Atoi(query.Get("cursor"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		to := min(from+limit, len(s.ids))
		next := ""
		if to < len(s.ids) {
			next = strconv.Itoa(to)
		}
		body.WriteString(`{"meetings":[`)
		for i := from; i < to; i++ {
			if i > from {
				body.WriteByte(',')
			}
			body.WriteString(s.meeting(i))
		}
		body.WriteString(`],"next_cursor":"` + next + `"}`)
	}
	return fixed{200, jsonHeader, body.String()}.RoundTrip(req)
}

// meeting is benchMeeting with another id, status and time of creation.
func (s *hourOfMeetings) meeting(i int) string {
	status := "transcribing"
	if !time.Now().Before(s.ends[i]) {
		status = "minutes_ready"
	}
	parts := []string{s.ids[i], status, strconv.Itoa(1795000000 - i), ""}
	var b strings.Builder
	for at, between := range meetingParts {
		b.WriteString(between)
		b.WriteString(parts[at])
	}
	return b.String()
}

// meetingParts are the texts around the id, the status and the time of creation.
var meetingParts = regexp.MustCompile(benchID+`|transcribing|1795000000`).Split(benchMeeting, -1)

// BenchmarkSlowBody measures the memory that 2,000 results of 100 kB take beside the waits for them, all of
// them ready at once, in a loop whose body takes a second.
func BenchmarkSlowBody(b *testing.B) {
	for range b.N {
		inBubble(b, func(t *testing.T) { measureSlowBody(b, t) })
	}
}

func measureSlowBody(b *testing.B, t *testing.T) {
	s := newHourOfMeetings(2000)
	for i := range s.ends {
		s.ends[i] = time.Now().Add(2 * time.Minute) // when each wait is under way
	}
	content := `{"format":"html","template_id":"tpl_1","content":"` + strings.Repeat("x", 100_000) + `"}`
	transport := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/minutes") {
			return fixed{200, jsonHeader, content}.RoundTrip(req)
		}
		return s.RoundTrip(req)
	})
	c, err := minutes.New(benchHost, benchKey, minutes.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	memory := inUse()
	most := int64(0)
	results := 0
	time.AfterFunc(time.Minute, func() { memory = inUse() }) // with the waits, none of which has ended
	for r, err := range c.Meetings.WaitAll(t.Context(), slices.Values(s.ids), nil) {
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		results++
		time.Sleep(time.Second)
		if results%200 == 100 {
			most = max(most, inUse()-memory)
		}
	}
	if results != len(s.ids) {
		t.Errorf("%d results", results)
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op") // the clock is a fake
}
