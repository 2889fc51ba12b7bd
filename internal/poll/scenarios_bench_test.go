package poll_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// BenchmarkScenarios measures an hour in each of the scenarios. `go run ./docs waiting`
// makes the table in docs/waiting.md from it.
func BenchmarkScenarios(b *testing.B) {
	for _, w := range scenarios {
		b.Run(w.name, func(b *testing.B) {
			if testing.Short() && !w.quick {
				b.Skip("takes a while")
			}
			for range b.N {
				inBubble(b, func(t *testing.T) { report(b, w.scenario, spend(t, w.scenario)) })
			}
		})
	}
}

func report(b *testing.B, w scenario, c *counts) {
	b.ReportMetric(0, "ns/op") // the clock is a fake
	b.ReportMetric(c.perMinute(), "requests/min")
	b.ReportMetric(float64(c.most), "most/s")
	if c.notified > 0 { // one has ended
		b.ReportMetric(c.notified.Seconds(), "s-notified")
	}
	b.ReportMetric(c.unseen.Seconds(), "s-unseen")
	b.ReportMetric(float64(c.within), "within-floor")
	if len(c.firsts) > 0 {
		b.ReportMetric(c.first().Seconds(), "s-first-p95")
	}
	if w.edge > 0 {
		b.ReportMetric(100*c.share(w.edge), "%-of-edge")
		b.ReportMetric(float64(c.back(w.needs)), "cycles-to-recover")
	}
}

// BenchmarkFleets measures each of the fleets. The same program makes a table of it.
func BenchmarkFleets(b *testing.B) {
	for _, f := range fleets {
		b.Run(f.name, func(b *testing.B) {
			if testing.Short() && !f.quick {
				b.Skip("takes a while")
			}
			for range b.N {
				inBubble(b, func(t *testing.T) { reportFleet(b, f.run()) })
			}
		})
	}
}

func reportFleet(b *testing.B, s *fleetService) {
	b.ReportMetric(0, "ns/op")
	last := s.log[len(s.log)-1].now
	b.ReportMetric(float64(len(s.log))/last.Minutes(), "requests/min")
	b.ReportMetric(100*float64(s.count(0, day, isPoll))/float64(len(s.log)), "%-polls")
	b.ReportMetric(float64(s.count(0, day, isLimited)), "429s")
	b.ReportMetric(s.late(0, last, 0.99).Seconds(), "s-notified-p99")
	b.ReportMetric(s.late(0, last, 1).Seconds(), "s-notified")
	b.ReportMetric(float64(s.failures()), "failed")
}

// BenchmarkWaits measures how the cost grows with the number of waits, of which one
// in 24 ends within the hour. The same program draws it.
func BenchmarkWaits(b *testing.B) {
	for _, n := range []int{1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000} {
		for _, way := range []struct {
			name  string
			spend func(t *testing.T) *counts
		}{
			{"one by one", func(*testing.T) *counts { return oneByOne(n) }},
			{"spread", func(t *testing.T) *counts { return spend(t, scenario{waits: n, oneIn: 60, endless: true}) }},
			{"dense", func(t *testing.T) *counts { return spend(t, scenario{waits: n, endless: true}) }},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, way.name), func(b *testing.B) {
				if testing.Short() && n > 1000 {
					b.Skip("takes a while")
				}
				for range b.N {
					inBubble(b, func(t *testing.T) { report(b, scenario{}, way.spend(t)) })
				}
			})
		}
	}
}

// oneByOne polls every meeting each thirty seconds, until it ends, as a loop
// around Get would.
func oneByOne(n int) *counts {
	s := newService(scenario{waits: n, endless: true})
	s.fill()
	for s.now() < time.Hour {
		for _, m := range s.ours {
			if m.over {
				continue
			}
			m.joined = max(m.joined, 1)
			if seen, _, _ := s.Poll(context.Background(), m.id, nil); seen.Final {
				s.counts.over(s.now(), m)
			}
		}
		time.Sleep(floor)
	}
	return &s.counts
}

// inBubble runs f as a test, which a bubble takes to have one.
func inBubble(b *testing.B, f func(t *testing.T)) {
	all := func(string, string) (bool, error) { return true, nil }
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: func(t *testing.T) { synctest.Test(t, f) }}}) {
		b.FailNow()
	}
}
