//go:build unix

package test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// followers are ways to wait for meetings that are dense in the listing. Each
// calls ended whenever one of the waits is over.
var followers = []struct {
	name   string
	most   int // of meetings that this way is tried with
	follow func(ctx context.Context, c *minutes.Client, ids []string, ended func(*minutes.Meeting, error))
}{
	{"Wait", 100_000, func(ctx context.Context, c *minutes.Client, ids []string, ended func(*minutes.Meeting, error)) {
		each(ids, func(id string) { ended(c.Meetings.Wait(ctx, id, nil)) })
	}},
	{"WaitForMinutes", 10_000, func(ctx context.Context, c *minutes.Client, ids []string, ended func(*minutes.Meeting, error)) {
		each(ids, func(id string) {
			_, err := c.Meetings.WaitForMinutes(ctx, id, nil)
			ended(nil, err)
		})
	}},
	{"WaitAll", 100_000, func(ctx context.Context, c *minutes.Client, ids []string, ended func(*minutes.Meeting, error)) {
		for r, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			ended(r.Meeting, err)
		}
	}},
	{"one by one", 10_000, func(ctx context.Context, c *minutes.Client, ids []string, ended func(*minutes.Meeting, error)) {
		each(ids, func(id string) {
			for {
				m, err := c.Meetings.Get(ctx, id)
				if err != nil || m.Status.Final() {
					ended(m, err)
					return
				}
				select {
				case <-time.After(30 * time.Second):
				case <-ctx.Done():
					ended(nil, ctx.Err())
					return
				}
			}
		})
	}},
}

// each does something for every id, on a goroutine each.
func each(ids []string, do func(id string)) {
	var all sync.WaitGroup
	all.Add(len(ids))
	for _, id := range ids {
		go func() {
			defer all.Done()
			do(id)
		}()
	}
	all.Wait()
}

// BenchmarkWaits follows meetings that end within an hour, on a fake clock.
func BenchmarkWaits(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		for _, way := range followers {
			if n > way.most {
				continue
			}
			b.Run(fmt.Sprintf("%d/%s", n, way.name), func(b *testing.B) {
				if testing.Short() && n > 1000 {
					b.Skip("takes a while")
				}
				for range b.N {
					inBubble(b, func(t *testing.T) {
						s := newHourOfMeetings(n)
						c, err := minutes.New(benchHost, benchKey, minutes.WithHTTPClient(&http.Client{Transport: s}), minutes.WithRateLimit(0, 0))
						if err != nil {
							t.Fatal(err)
						}
						goroutines, memory := runtime.NumGoroutine(), inUse()
						used, start := cpuOf(b), time.Now()
						over := make(chan struct{})
						got := 0
						var mu sync.Mutex
						go func() {
							defer close(over)
							way.follow(t.Context(), c, s.ids, func(m *minutes.Meeting, err error) {
								mu.Lock()
								defer mu.Unlock()
								if err != nil {
									t.Error(err)
								}
								got++
							})
						}()
						time.Sleep(95 * time.Second) // each was looked at, none has ended
						synctest.Wait()
						b.ReportMetric(float64(inUse()-memory)/float64(n), "B/wait")
						b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(n), "goroutines/wait")
						<-over
						synctest.Wait()
						if got != n {
							t.Errorf("%d of %d ended", got, n)
						}
						b.ReportMetric(float64(cpuOf(b)-used)/1e6, "cpu-ms")
						b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines-left")
						b.ReportMetric(float64(len(s.requests))/time.Since(start).Minutes(), "requests/min")
						b.ReportMetric(float64(s.most(time.Minute)), "most-in-a-minute")
						b.ReportMetric(float64(s.most(time.Second)), "most-in-a-second")
						b.ReportMetric(0, "ns/op") // the clock is a fake
					})
				}
			})
		}
	}
}

// inBubble runs f as a test, which a bubble takes to have one.
func inBubble(b *testing.B, f func(t *testing.T)) {
	all := func(string, string) (bool, error) { return true, nil }
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) { synctest.Test(t, f) }}}) {
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
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// hourOfMeetings is a service that costs next to nothing itself: meetings, each
// of which ends at some time within an hour, alone and in the listing.
type hourOfMeetings struct {
	ids  []string // newest first
	ends []time.Time

	mu       sync.Mutex
	requests []time.Time
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
	now := time.Now()
	if !strings.HasSuffix(req.URL.Path, "/minutes") { // which is no poll
		s.mu.Lock()
		s.requests = append(s.requests, now)
		s.mu.Unlock()
	}
	var body strings.Builder
	if id, one := strings.CutPrefix(req.URL.Path, "/v1/meetings/"); strings.HasSuffix(id, "/minutes") {
		body.WriteString(`{"format":"html","template_id":"tpl_standard","content":"<h1>Minutes</h1>"}`)
	} else if one {
		n, _ := strconv.Atoi(strings.TrimLeft(strings.TrimPrefix(id, "mtg_"), "0"))
		s.write(&body, len(s.ids)-n, now)
	} else {
		query := req.URL.Query()
		from, _ := strconv.Atoi(query.Get("cursor"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		to := min(from+limit, len(s.ids))
		body.Grow(32 << 10)
		body.WriteString(`{"meetings":[`)
		for i := from; i < to; i++ {
			if i > from {
				body.WriteByte(',')
			}
			s.write(&body, i, now)
		}
		body.WriteString(`],"next_cursor":"`)
		if to < len(s.ids) {
			body.WriteString(strconv.Itoa(to))
		}
		body.WriteString(`"}`)
	}
	return &http.Response{StatusCode: 200, Header: jsonHeader.Clone(), Request: req, Body: io.NopCloser(strings.NewReader(body.String()))}, nil
}

func (s *hourOfMeetings) write(b *strings.Builder, i int, now time.Time) {
	status := "transcribing"
	if !now.Before(s.ends[i]) {
		status = "minutes_ready"
	}
	var created [20]byte
	for part, value := range [...]string{s.ids[i], status, string(strconv.AppendInt(created[:0], int64(1795000000-i), 10)), ""} {
		b.WriteString(meetingParts[part])
		b.WriteString(value)
	}
}

// meetingParts are the parts of a meeting around its id, status and time of
// creation.
var meetingParts = regexp.MustCompile(benchID+`|transcribing|1795000000`).Split(benchMeeting, -1)

// most is the largest number of requests within d.
func (s *hourOfMeetings) most(d time.Duration) int {
	most := 0
	for i, from := range s.requests {
		to := sort.Search(len(s.requests), func(j int) bool { return s.requests[j].Sub(from) >= d })
		most = max(most, to-i)
	}
	return most
}
