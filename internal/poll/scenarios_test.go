package poll

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

const (
	second = time.Second
	minute = time.Minute
	day    = 24 * time.Hour
)

// bounds are what a scenario must keep. 0 means no bound.
type bounds struct {
	perMinute   float64
	p99, unseen time.Duration
	told        time.Duration // p99 to the notification of a final status
	back        float64       // how many statuses may go back
	vain        float64       // how many pages may show no awaited meeting
	first       time.Duration // p95 to the first status of a wait; of a Follow, to the discovery of a meeting
	firstQ      float64       // another quantile than 0.95
	user        time.Duration // p95 of the user's calls
	spread      float64       // p99 of the slowest process, compared with the median
	peak        float64       // the largest part of a cycle's requests in one second, after two cycles
}

// inHour reports whether a page is requested in the hour of the faults.
func inHour(r request) bool { return r.meeting == nil && r.at >= 10*minute && r.at < 70*minute }

func listDown(r request) *Failure {
	if inHour(r) {
		return &Failure{Err: errDown, Kind: failure.Lost}
	}
	return nil
}

func listLimited(r request) *Failure {
	if inHour(r) {
		return &Failure{Err: errLimited, Kind: failure.RateLimited}
	}
	return nil
}

func listAlwaysLimited(r request) *Failure {
	if r.meeting == nil {
		return &Failure{Err: errLimited, Kind: failure.RateLimited}
	}
	return nil
}

// allDown fails every request for ten minutes.
func allDown(r request) *Failure {
	if r.at >= 10*minute && r.at < 20*minute {
		return &Failure{Err: errDown, Kind: failure.Lost}
	}
	return nil
}

const revokedAt = 10 * minute

func revoked(r request) *Failure {
	if r.at < revokedAt {
		return nil
	}
	return &Failure{Err: errRevoked, Kind: failure.KeyRejected}
}

// poison fails each GET of the meeting that is in no list.
func poison(r request) *Failure {
	if r.meeting == nil || r.meeting.place >= 0 {
		return nil
	}
	return &Failure{Err: errDown, Kind: failure.Lost}
}

// share is a part of the requests a second that ten processes need: of 500 meetings each, on pages
// of their own or on the same pages, and two pages more.
func share(part float64, pages int) float64 { return part * 10 * float64(pages+2) / floor.Seconds() }

// scenarios are what the poller must pass. The quick ones run as a test, the others as a benchmark.
//
// What each rule is worth: each was removed alone, and these scenarios measured it again. A scenario
// has the figures with the rule, and without it. A delay is from the change of a status until the wait
// is notified (the 99th percentile).
//
//	The window of pages:
//	    waits for the 1,000 newest meetings             43 → 1,117 requests a minute
//	Pages pay together, not each alone:
//	    waits for ten meetings that sink in the list,
//	    below 2,400 newer ones and further              21 → 145 requests a minute
//	A sweep looks one page further for every eight meetings not found (without it: always two pages):
//	    1,000 waits below 2,000 newer meetings          125 → 1,117 requests a minute
//	    10,000 waits below 5,000 newer meetings         630 → 3,553 requests a minute
//	    100 waits below 500 newer meetings              26 → 199 requests a minute
//	It does so every fifteen minutes for those that sweeps have sought in vain (without it: always):
//	    100 waits below 20,000, of 30 requests a minute 450 → 1,804 pages without an awaited meeting
//	It looks one page further for these (without it: none):
//	    100 waits that sink slowly                      44 → 191 requests a minute
//	The first page costs nothing while a Discovery needs it anyway:
//	    Follow with two meetings that get no audio      33 → 58 GETs in two hours
//	An expected meeting has no GET until a sweep has ended without it (without: after 1.25 cycles):
//	    Follow over 20,000 meetings, 1,000 unfinished   delay of 33 → 66 s
//	    1,000 waits, each request takes 3 s             73 → 588 requests a minute
//	A sweep that takes longer than GETs would ends, or puts nothing off if a Discovery needs it:
//	    300 waits, each page takes 20 s                 delay of 30 to 46 → 133 s
//	    Follow, each page takes 16 s                    delay of 47 → 79 s
//	A list with 429s for a minute, while GETs have none, is left alone for five minutes:
//	    300 waits, the list has 429s for an hour        delay of 108 → 232 s if these 429s count
//	                                                    like other failures, 3,590 s if they never
//	                                                    end a sweep
//	Three 429s to pages while four GETs succeed prove the same:
//	    100 waits, the list always has 429s             first status after 66 → 126 s
//	A page counts only if it is not older than the last snapshot:
//	    60 waits, each page lags by up to 90 s          0 → 5 statuses that go back
//	After each sweep, a GET checks what pages show:
//	    100 waits, the list stands still                final statuses after 13 s → never
//	    100 waits, the list stands still for hours      delay of 453 → 10,470 s
//	    waits for the 100 newest meetings               6 → 4 requests a minute
//	After two pages in a row that are older than a GET, no page puts off a GET for five minutes:
//	    100 waits, the list stands still for hours      delay of 453 → 2,784 s
//	    100 waits, the list is ten minutes behind       delay of 30 → 629 s
//	A page and a GET that are both due alternate:
//	    waits for the 10,000 newest meetings            delay of 30 → 121 s, 418 → 864 requests a
//	                                                    minute if GETs come first; a newcomer waits
//	                                                    for a whole sweep if pages do
//	The cycle grows with the square root of the number of requests (without: linearly):
//	    1,000 waits below 13,000 newer meetings         delay of 51 → 102 s, 1,117 → 660 requests
//	                                                    a minute
//	No more than eight requests a second, unless a cycle needs more:
//	    waits for the 1,000 newest meetings             43 → 72 requests a minute
//	    1,000 waits for every fourth of 4,000 meetings,
//	    the service accepts 120 requests a minute       delay of 83 → 224 s
//	A meeting that changes rarely is polled rarely:
//	    Follow with 70 meetings that never end          2 → 42 requests a minute
//	An outage pauses requests, and one at a time finds its end:
//	    1,000 waits while all requests fail             3 → 1,122 requests a minute
//	    1,000 waits in the ten minutes after that       44 → 80 requests a minute
//	Fewer than five waits begin no sweep:
//	    four waits below the first page                 8 → 10 requests a minute
//	The first two cycles of a Poller have a phase:
//	    500 Clients that begin together                 10 % → 104 % of a cycle's requests fall into
//	                                                    one second
//	The pace after a 429 (in internal/rest):
//	    ten processes that need all the requests
//	    which the service accepts                       244 → 3,220 requests a minute
//
// Some rules show in no scenario, but in the tests of the plan and of a Discovery: newcomers keep the
// order in which they came, and a GET that got a 429 keeps its time, because otherwise a newcomer
// could go to the end of the line again and again; a 404 right after a response ends no wait; and a
// Discovery reads an import of 1,000 meetings at 144 instead of 2,400 pages an hour, and one of 10,000
// at 186 instead of 24,000, once its margin is over. 120 of these are the first page of each cycle, and
// the others read back to since.
var scenarios = []struct {
	name string
	scenario
	bounds
	quick bool
}{
	// Meetings that are together at the top of the list, or not.
	{
		name: "100 at the top", quick: true,
		scenario: scenario{waits: 100},
		bounds:   bounds{perMinute: 10, p99: 35 * second, unseen: 40 * second},
	},
	{
		name: "1,000 at the top", quick: false,
		scenario: scenario{waits: 1000},
		bounds:   bounds{perMinute: 64, p99: 35 * second, unseen: 40 * second},
	},
	{
		name: "10,000 dense", quick: false,
		scenario: scenario{waits: 10_000},
		bounds:   bounds{perMinute: 460, p99: 75 * second, unseen: 90 * second},
	},
	{"300, one in thirty", scenario{waits: 300, oneIn: 30}, bounds{perMinute: 600, p99: 40 * second}, false},
	{
		name: "1,000 under 13,000", quick: false,
		scenario: scenario{waits: 1000, newer: 13_000},
		bounds:   bounds{perMinute: 1200, p99: 60 * second},
	},
	{
		name: "newcomers beside 10,000", quick: false,
		scenario: scenario{waits: 10_000, newcomers: 17 * second},
		bounds:   bounds{perMinute: 500, p99: 75 * second, first: second},
	},
	{
		name: "a crowd of 500 beside 10,000", quick: false,
		scenario: scenario{waits: 10_000, crowd: 500},
		bounds:   bounds{first: 20 * second, p99: 75 * second},
	},

	// Windows that lie deep in the list, or do not pay.
	{
		name: "10,000 under 5,000", quick: false,
		scenario: scenario{waits: 10_000, newer: 5000},
		bounds:   bounds{perMinute: 700, p99: 45 * second},
	},
	{"1,000 under 2,000", scenario{waits: 1000, newer: 2000}, bounds{perMinute: 150, p99: 45 * second}, false},
	{"500 under 300", scenario{waits: 500, newer: 300}, bounds{perMinute: 60, p99: 35 * second}, false},
	{"100 under 500", scenario{waits: 100, newer: 500}, bounds{perMinute: 40, p99: 35 * second}, true},
	{
		name: "ten under 2,400, and growing", quick: true,
		scenario: scenario{waits: 10, newer: 2400, others: 3 * second / 2},
		bounds:   bounds{perMinute: 30, p99: 35 * second},
	},
	{
		name: "ten that sink under 2,400, and deeper", quick: true,
		scenario: scenario{waits: 10, others: 3 * second / 2, lasts: 2 * 60 * minute, after: 60 * minute},
		bounds:   bounds{perMinute: 30, p99: 35 * second},
	},
	{
		name: "100 that sink slowly", quick: false,
		scenario: scenario{waits: 100, others: 6 * second, lasts: 2 * 60 * minute, after: 60 * minute},
		bounds:   bounds{perMinute: 50, p99: 35 * second},
	},
	{
		name: "inserts beside 10,000 that end", quick: false,
		scenario: scenario{waits: 10_000, others: 3 * second / 2, ends: 1},
		bounds:   bounds{perMinute: 500, p99: 35 * second},
	},

	// Limits, and a user's own calls.
	{
		name: "ten processes apart, 125 %", quick: false,
		scenario: scenario{waits: 5000, processes: 10, apart: true, edge: share(1.25, 10), lasts: 40 * minute},
		bounds:   bounds{p99: 90 * second, unseen: 5 * minute, spread: 2},
	},
	{
		name: "ten processes apart, 100 %", quick: false,
		scenario: scenario{waits: 5000, processes: 10, apart: true, edge: share(1, 10), lasts: 40 * minute},
		bounds:   bounds{p99: 200 * second, unseen: 8 * minute, spread: 2},
	},
	{
		name: "ten processes apart, 50 %", quick: false,
		scenario: scenario{waits: 5000, processes: 10, apart: true, edge: share(0.5, 10), lasts: 40 * minute},
		bounds:   bounds{p99: 400 * second, unseen: 15 * minute, spread: 2},
	},
	{
		name: "ten processes mixed, 125 %", quick: false,
		scenario: scenario{waits: 5000, processes: 10, edge: share(1.25, 100), lasts: 40 * minute},
		bounds:   bounds{p99: 90 * second, unseen: 5 * minute, spread: 2},
	},
	{
		name: "ten processes mixed, 100 %", quick: false,
		scenario: scenario{waits: 5000, processes: 10, edge: share(1, 100), lasts: 40 * minute},
		bounds:   bounds{p99: 200 * second, unseen: 8 * minute, spread: 2},
	},
	{
		name: "ten processes mixed, 50 %", quick: false,
		scenario: scenario{waits: 5000, processes: 10, edge: share(0.5, 100), lasts: 40 * minute},
		bounds:   bounds{p99: 400 * second, unseen: 15 * minute, spread: 2},
	},
	{
		name: "5,000 spread over ten processes, 100 %", quick: false,
		scenario: scenario{waits: 5000, oneIn: 40, processes: 10, edge: 132, fetches: true, lasts: 60 * minute},
		bounds:   bounds{unseen: 20 * minute},
	},
	{
		name: "500 Clients at once", quick: true,
		scenario: scenario{waits: 500, processes: 500, phases: true, lasts: 10 * minute},
		bounds:   bounds{peak: 0.1, p99: 45 * second},
	},
	{
		name: "three processes, 125 %", quick: true,
		scenario: scenario{waits: 600, processes: 3, apart: true, edge: 0.5, lasts: 10 * minute},
		bounds:   bounds{p99: 8 * minute, unseen: 8 * minute},
	},
	{"1,000, quota of 120 a minute", scenario{waits: 1000, quota: 120}, bounds{p99: 150 * second}, false},
	{
		name: "1,000, one in four, quota of 120 a minute", quick: false,
		scenario: scenario{waits: 1000, oneIn: 4, quota: 120},
		bounds:   bounds{p99: 150 * second},
	},
	{"1,000, a user with 60 %", scenario{waits: 1000, edge: 10, calling: 6}, bounds{unseen: minute}, false},
	{
		name: "1,000, a user with 60 %, WithRateLimit", quick: false,
		scenario: scenario{waits: 1000, edge: 10, calling: 6, limit: 9.5},
		bounds:   bounds{user: second / 2, unseen: minute},
	},
	{
		name: "100, a user with 60 %, WithRateLimit", quick: true,
		scenario: scenario{waits: 100, edge: 5, calling: 3, limit: 4.75, lasts: 5 * minute},
		bounds:   bounds{unseen: minute},
	},
	{
		name: "100 under 20,000, quota of 30 a minute", quick: false,
		scenario: scenario{waits: 100, newer: 20_000, quota: 30, lasts: 3 * 60 * minute},
		bounds:   bounds{vain: 600},
	},

	// A slow service.
	{"10,000, pages of 1 s", scenario{waits: 10_000, pageTakes: second}, bounds{p99: 200 * second}, false},
	{
		name: "1,000, latency of 3 s, 1 % lost", quick: false,
		scenario: scenario{waits: 1000, latency: 3 * second, loss: 0.01},
		bounds:   bounds{perMinute: 250, p99: 190 * second},
	},

	// Lists that are of little use. The bound is what polling each needs, and how old a page is.
	{"polling each", scenario{waits: 300, alone: true}, bounds{p99: 31 * second}, false},
	{
		name: "list down for an hour", quick: false,
		scenario: scenario{waits: 300, fault: listDown, lasts: 80 * minute},
		bounds:   bounds{p99: 31 * second},
	},
	{
		name: "list limited for an hour", quick: false,
		scenario: scenario{waits: 300, fault: listLimited, lasts: 80 * minute},
		bounds:   bounds{p99: 200 * second},
	},
	{"pages of 5 s", scenario{waits: 300, pageTakes: 5 * second}, bounds{p99: 36 * second}, false},
	{"pages of 20 s", scenario{waits: 300, pageTakes: 20 * second}, bounds{p99: 51 * second}, false},
	{
		name: "list lags by 90 s", quick: false,
		scenario: scenario{waits: 300, lag: 90 * second, newcomers: 17 * second},
		bounds:   bounds{p99: 121 * second},
	},
	{
		name: "ten, clocks ten minutes apart", quick: true,
		scenario: scenario{waits: 10, ends: 1, skew: 10 * minute},
		bounds:   bounds{perMinute: 20, p99: 35 * second},
	},
	{
		name: "300, clocks ten minutes apart", quick: false,
		scenario: scenario{waits: 300, ends: 1, skew: 10 * minute},
		bounds:   bounds{perMinute: 60, p99: 35 * second},
	},
	{
		name: "list lags, clocks apart", quick: false,
		scenario: scenario{waits: 300, ends: 1, lag: 90 * second, skew: 10 * minute},
		bounds:   bounds{p99: 121 * second, back: 5},
	},
	{
		name: "60, each page lags by up to 90 s", quick: true,
		scenario: scenario{waits: 60, ends: 1, lagsUpTo: 90 * second},
		bounds:   bounds{perMinute: 60, p99: 121 * second},
	},
	{
		name: "list by change", quick: false,
		scenario: scenario{waits: 300, byChange: true, others: 10 * second},
		bounds:   bounds{p99: 31 * second},
	},
	{"pages of 20", scenario{waits: 300, size: 20}, bounds{perMinute: 64, p99: 31 * second}, false},
	{"cursors live for 20 s", scenario{waits: 300, cursorLives: 20 * second}, bounds{p99: 31 * second}, false},
	{"1,000, deep pages are slow", scenario{waits: 1000, deeper: second / 10}, bounds{p99: 60 * second}, false},
	{
		name: "100, a list that is always limited", quick: true,
		scenario: scenario{waits: 100, fault: listAlwaysLimited, lasts: 10 * minute},
		bounds:   bounds{first: 70 * second, firstQ: 0.99},
	},
	{
		name: "100, the list stands still", quick: true,
		scenario: scenario{crowd: 100, frozen: 330 * second, takes: 20 * minute, lasts: 40 * minute},
		bounds:   bounds{told: 30 * second, p99: 120 * second, perMinute: 60},
	},
	{
		name: "100, the list stands still for hours", quick: false,
		scenario: scenario{waits: 100, ends: 1, frozen: minute, lasts: 3 * 60 * minute},
		bounds:   bounds{p99: 10 * minute, perMinute: 120},
	},
	{
		name: "100, the list is ten minutes behind", quick: false,
		scenario: scenario{waits: 100, ends: 1, lag: 10 * minute, lasts: 60 * minute},
		bounds:   bounds{p99: 120 * second, perMinute: 120},
	},
	{
		name: "60, list down", quick: true,
		scenario: scenario{waits: 60, fault: listDown, lasts: 20 * minute},
		bounds:   bounds{p99: 31 * second, unseen: 50 * second},
	},

	{
		name: "1,000, all down for ten minutes", quick: true,
		scenario: scenario{waits: 1000, fault: allDown, lasts: 20 * minute, after: 10 * minute},
		bounds:   bounds{perMinute: 9},
	},
	{
		name: "1,000, until ten minutes after that", quick: false,
		scenario: scenario{waits: 1000, fault: allDown, lasts: 30 * minute, after: 20 * minute},
		bounds:   bounds{perMinute: 60, unseen: 11 * minute},
	},
	{"four under 100", scenario{waits: 4, newer: 100}, bounds{perMinute: 9, p99: 35 * second}, true},

	// Follow.
	{
		name: "Follow 20,000", quick: false,
		scenario: scenario{waits: 1000, oneIn: 20, since: 7 * day},
		bounds:   bounds{first: 90 * second, firstQ: 1, p99: 45 * second},
	},
	{
		name: "Follow 200", quick: true,
		scenario: scenario{waits: 10, oneIn: 20, since: day, others: minute, lasts: 10 * minute},
		bounds:   bounds{first: 31 * second, firstQ: 1, p99: 45 * second},
	},
	{
		name: "Follow, pages of 16 s", quick: false,
		scenario: scenario{waits: 10, oneIn: 20, since: day, others: minute, pageTakes: 16 * second},
		bounds:   bounds{first: 110 * second, p99: 48 * second},
	},
	{
		name: "Follow, 70 stuck", quick: false,
		scenario: scenario{waits: 70, since: day, lasts: 3 * day, after: day, stuck: true},
		bounds:   bounds{perMinute: 10},
	},
	{
		name: "Follow for a week, 50 restarts", quick: false,
		scenario: scenario{
			waits: 1, oneIn: 1000, since: 7 * day, others: 10 * minute, audio: minute, restarts: 50, lasts: 7 * day,
		},
		bounds: bounds{perMinute: 15, p99: 45 * second, unseen: 40 * second},
	},

	// One meeting, or the key.
	{
		name: "a poison meeting beside 1,000", quick: false,
		scenario: scenario{waits: 1000, fault: poison, poisoned: true},
		bounds:   bounds{perMinute: 68, p99: 35 * second, unseen: 40 * second},
	},
	{"5,000, a revoked key", scenario{waits: 5000, fault: revoked, lasts: revokedAt + minute}, bounds{}, false},
	{
		name: "Follow, a revoked key", quick: true,
		scenario: scenario{waits: 10, oneIn: 20, since: day, fault: revoked, lasts: revokedAt + minute},
		bounds:   bounds{},
	},
	{"200, a revoked key", scenario{waits: 200, fault: revoked, lasts: revokedAt + minute}, bounds{}, true},
}

// misses returns the bounds that the measures miss. Some hold in every scenario: no poll is early,
// no status goes back, and neither a wait nor a meeting is lost.
func (b bounds) misses(c *measures) []string {
	var missed []string
	check := func(name string, value, bound float64) {
		if value > bound {
			missed = append(missed, fmt.Sprintf("%s %.2f > %.2f", name, value, bound))
		}
	}
	some := func(name string, value, bound time.Duration) {
		if bound > 0 {
			check(name, value.Seconds(), bound.Seconds())
		}
	}
	check("early", float64(c.early), 0)
	check("gone back", float64(c.back), b.back)
	check("pages in vain", float64(c.vain), cmp.Or(b.vain, math.Inf(1)))
	check("found twice", float64(c.twice), 0)
	check("lost", float64(c.lost), 0)
	check("waits that ended wrongly, or did not end", float64(c.wrong), 0)
	check("requests with a rejected key", float64(c.rejected), 3)
	check("requests a minute", c.perMinute(), cmp.Or(b.perMinute, math.Inf(1)))
	check("slowest process to median", c.spread(), cmp.Or(b.spread, math.Inf(1)))
	check("peak", c.peak(), cmp.Or(b.peak, math.Inf(1)))
	some("notified p99", c.notified(0.99), b.p99)
	some("told p99", quantile(c.told, 0.99), b.told)
	some("unseen", slices.Max(c.unseen), b.unseen)
	some("first", quantile(c.firsts, cmp.Or(b.firstQ, 0.95)), b.first)
	some("user's calls p95", quantile(c.userTook, 0.95), b.user)
	return missed
}

func TestPoller_KeepsBoundsInScenarios(t *testing.T) {
	t.Parallel()
	for _, w := range scenarios {
		if !w.quick {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { assert.Empty(t, w.misses(run(w.scenario))) })
		})
	}
}

// BenchmarkScenarios measures all scenarios, and says which bounds they miss.
func BenchmarkScenarios(b *testing.B) {
	for _, w := range scenarios {
		b.Run(w.name, func(b *testing.B) {
			for range b.N {
				inBubble(b, func() { w.report(b, run(w.scenario)) })
			}
		})
	}
}

func (b bounds) report(r *testing.B, c *measures) {
	r.ReportMetric(0, "ns/op") // the clock is virtual
	r.ReportMetric(c.perMinute(), "requests/min")
	r.ReportMetric(c.notified(0.5).Seconds(), "s-p50")
	r.ReportMetric(c.notified(0.99).Seconds(), "s-p99")
	r.ReportMetric(slices.Max(c.unseen).Seconds(), "s-unseen")
	r.ReportMetric(float64(c.early), "early")
	r.ReportMetric(float64(c.vain), "vain")
	missed := b.misses(c)
	r.ReportMetric(float64(len(missed)), "missed")
	for _, text := range missed {
		r.Log(text)
	}
}
