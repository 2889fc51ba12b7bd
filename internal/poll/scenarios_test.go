package poll_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// bounds are the limits of a scenario. The default of notified is two cycles, and of unseen it is
// three. Both are one cycle longer if meetings move or pages are lost.
type bounds struct {
	perMinute        float64 // requests, averaged over the hour; 0: no bound
	most             int     // requests in a second; 0: no bound
	notified, unseen time.Duration
	first            time.Duration // to the first poll, for 19 of 20; 0: no bound
}

const always = 365 * 24 * time.Hour // no bound

// scenarios are those that the poller must pass. If one needs more than 330 requests in a
// cycle, its needs field says so: its cycles are longer.
var scenarios = []struct {
	name string
	scenario
	bounds
	quick bool
}{
	// Meetings that are together at the top of the listing.
	{"dense 60", scenario{waits: 60}, bounds{perMinute: 6, most: 5}, true},
	{"dense 1,000", scenario{waits: 1000}, bounds{perMinute: 44, most: 10}, true},
	{"dense 10,000", scenario{waits: 10_000}, bounds{perMinute: 440, most: 20}, false},
	{"dense 10,000, endless", scenario{waits: 10_000, endless: true}, bounds{perMinute: 440, most: 20}, false},
	{"10,000 and one foreign a second", scenario{waits: 10_000, foreign: time.Second}, bounds{perMinute: 520, most: 20}, false},
	{"10,000 and one foreign a second, endless", scenario{waits: 10_000, foreign: time.Second, endless: true}, bounds{perMinute: 520, most: 20}, false},
	{"10,000 joining over half an hour", scenario{waits: 10_000, joining: 30 * time.Minute}, bounds{perMinute: 520, most: 20, notified: 90 * time.Second, unseen: 100 * time.Second}, false},
	{"1,000 that begin again after a poll", scenario{waits: 1000, twice: true}, bounds{perMinute: 44, most: 10}, false},
	{"10,000 that begin again after a poll", scenario{waits: 10_000, twice: true}, bounds{perMinute: 440, most: 20, unseen: 105 * time.Second}, false},
	{"10,000 and an import of 600", scenario{waits: 10_000, imported: 600}, bounds{perMinute: 450, most: 20}, false},

	// Other meetings are above them or between them.
	{"1,000 under 2,000", scenario{waits: 1000, newer: 2000}, bounds{perMinute: 60, most: 10}, false},
	{"10,000 under 5,000", scenario{waits: 10_000, newer: 5000}, bounds{perMinute: 520, most: 20}, false},
	{"10,000 under 5,000, endless", scenario{waits: 10_000, newer: 5000, endless: true}, bounds{perMinute: 520, most: 20}, false},
	{"10 over 100,000", scenario{waits: 10, oneIn: 10_000}, bounds{perMinute: 24, most: 10}, true},
	{"10 over 100,000, endless", scenario{waits: 10, oneIn: 10_000, endless: true}, bounds{perMinute: 24, most: 10}, true},
	{"100 over 100,000", scenario{waits: 100, oneIn: 1000}, bounds{perMinute: 240, most: 10}, false},
	{"100 over 100,000, endless", scenario{waits: 100, oneIn: 1000, endless: true}, bounds{perMinute: 240, most: 10}, false},
	{"one in 30 of 20,000", scenario{waits: 667, oneIn: 30, needs: 667}, bounds{perMinute: 850, most: 20, notified: 2 * time.Minute}, false},
	{"one in 30 of 20,000, endless", scenario{waits: 667, oneIn: 30, needs: 667, endless: true}, bounds{perMinute: 850, most: 20, notified: 2 * time.Minute}, false},
	{"one in 60 of 40,000", scenario{waits: 667, oneIn: 60, needs: 667}, bounds{perMinute: 1050, most: 30, notified: 120 * time.Second}, false},
	{"one in 60 of 40,000, endless", scenario{waits: 667, oneIn: 60, needs: 667, endless: true}, bounds{perMinute: 1050, most: 30, notified: 120 * time.Second}, false},
	{"5,000 over 1,000 sparse", scenario{waits: 5000, sparse: 1000, sparseIn: 100, needs: 1100}, bounds{perMinute: 1400, most: 50, notified: 150 * time.Second}, false},
	{"5,000 over 1,000 sparse, endless", scenario{waits: 5000, sparse: 1000, sparseIn: 100, needs: 1100, endless: true}, bounds{perMinute: 1400, most: 50, notified: 150 * time.Second}, false},
	{"5,000 over 1,000 less sparse, endless", scenario{waits: 5000, sparse: 1000, sparseIn: 40, needs: 900, endless: true}, bounds{perMinute: 1400, most: 50, notified: 150 * time.Second}, false},

	// Meetings change their places.
	{"600, one deleted a minute", scenario{waits: 600, deleted: time.Minute}, bounds{perMinute: 30, most: 10}, true},
	{"10,000, one deleted a second", scenario{waits: 10_000, deleted: time.Second}, bounds{perMinute: 450, most: 20}, false},
	{"1,000 by change, one changed a second", scenario{waits: 1000, order: byChange, edited: time.Second}, bounds{perMinute: 60, most: 10}, true},
	{"10,000 by change, four changed a second", scenario{waits: 10_000, order: byChange, edited: time.Second / 4, foreign: time.Second, needs: 440}, bounds{perMinute: 480, most: 20}, false},
	{"1,000 in no order", scenario{waits: 1000, order: noOrder, needs: 1000}, bounds{perMinute: 1150, most: 25}, false},

	// Further waits begin.
	{"newcomers beside 30", scenario{waits: 30, newcomers: 17 * time.Second}, bounds{most: 10, first: time.Second}, true},
	{"newcomers beside 10,000", scenario{waits: 10_000, newcomers: 17 * time.Second}, bounds{perMinute: 450, most: 20, first: 5 * time.Second}, false},
	{"newcomers beside 10,000, a page takes 1 s", scenario{waits: 10_000, newcomers: 17 * time.Second, slow: time.Second}, bounds{perMinute: 260, most: 20, notified: 240 * time.Second, unseen: 250 * time.Second, first: 5 * time.Second}, false},
	{"1,000, a page takes 2 s", scenario{waits: 1000, slow: 2 * time.Second}, bounds{perMinute: 44, most: 10}, true},

	// Pages are slow and show few meetings each: polls of single meetings would be faster.
	{"300, one in 30, a page takes 1 s", scenario{waits: 300, oneIn: 30, slow: time.Second, needs: 300, endless: true}, bounds{perMinute: 510, most: 25, notified: 54 * time.Second, unseen: 100 * time.Second}, false},
	{"300, one in 30, a page takes 5 s", scenario{waits: 300, oneIn: 30, slow: 5 * time.Second, needs: 300, endless: true}, bounds{perMinute: 620, most: 25, notified: 33 * time.Second, unseen: 100 * time.Second}, false},
	{"667, one in 60, a page takes 1 s", scenario{waits: 667, oneIn: 60, slow: time.Second, needs: 667, endless: true}, bounds{perMinute: 1000, most: 30, notified: 47 * time.Second, unseen: 2 * time.Minute}, false},

	// The listing is of little or no use.
	{"1,000, short pages", scenario{waits: 1000, short: true}, bounds{perMinute: 100, most: 10}, true},
	{"10,000, short pages", scenario{waits: 10_000, short: true, needs: 400}, bounds{perMinute: 840, most: 24, notified: 100 * time.Second}, false},
	{"10,000 under 5,000, dying cursors", scenario{waits: 10_000, newer: 5000, deadly: true}, bounds{perMinute: 460, most: 24, notified: 90 * time.Second}, false},
	{"1,000, one page in ten lost", scenario{waits: 1000, lose: 0.1}, bounds{perMinute: 60, most: 20}, true},
	{"10,000, one page in twenty lost", scenario{waits: 10_000, lose: 0.05}, bounds{perMinute: 460, most: 20}, false},
	{"1,000 in no order, one poll in twenty lost", scenario{waits: 1000, order: noOrder, losePoll: 0.05, needs: 1000}, bounds{perMinute: 1200, most: 25, notified: always, unseen: always}, false},
	{"1,000 in no order, every other poll lost", scenario{waits: 1000, order: noOrder, losePoll: 0.5, needs: 1000, endless: true}, bounds{notified: always, unseen: always}, false},
	{"25, listing cut short", scenario{waits: 25, lose: 1}, bounds{perMinute: 54, most: 10}, true},
	{"1,000, listing cut short", scenario{waits: 1000, lose: 1, needs: 1000}, bounds{perMinute: 1200, most: 25}, false},
	{"20, listing 429", scenario{waits: 20, limited: true}, bounds{perMinute: 44, most: 10, unseen: 45 * time.Second}, true},
	{"1,000, listing 429", scenario{waits: 1000, limited: true, needs: 1000}, bounds{perMinute: 1200, most: 25, unseen: 80 * time.Second}, false},
	{"20, hanging listing", scenario{waits: 20, hanging: true}, bounds{perMinute: 44, most: 10, unseen: 45 * time.Second}, true},
	{"1,000, hanging listing", scenario{waits: 1000, hanging: true, needs: 1000}, bounds{perMinute: 1200, most: 25, unseen: 80 * time.Second}, false},

	// For forty minutes, an edge accepts fewer requests than the waits need: 33 a second for single
	// polls in the shortest cycle, 19 in longer ones; 6.7 for pages.
	{"1,000 single, edge of 30 a second", scenario{waits: 1000, oneIn: 1000, edge: 30, needs: 1000, endless: true}, bounds{notified: 66 * time.Second, unseen: 117 * time.Second}, false},
	{"1,000 single, edge of 17 a second (90 %)", scenario{waits: 1000, oneIn: 1000, edge: 17, needs: 1000, endless: true}, bounds{notified: 85 * time.Second, unseen: 151 * time.Second}, false},
	{"1,000 single, edge of 10 a second", scenario{waits: 1000, oneIn: 1000, edge: 10, needs: 1000, endless: true}, bounds{notified: 135 * time.Second, unseen: 216 * time.Second}, false},
	{"1,000 single, edge of 5.7 a second (30 %)", scenario{waits: 1000, oneIn: 1000, edge: 5.7, needs: 1000, endless: true}, bounds{notified: 266 * time.Second, unseen: 385 * time.Second}, false},
	{"10,000 dense, edge of 6 a second (90 %)", scenario{waits: 10_000, edge: 6, needs: 200, endless: true}, bounds{notified: 50 * time.Second, unseen: 52 * time.Second}, false},
	{"10,000 dense, edge of 2 a second (30 %)", scenario{waits: 10_000, edge: 2, needs: 200, endless: true}, bounds{notified: 143 * time.Second, unseen: 146 * time.Second}, false},
	{"10,000 dense, quota of 360 a minute (90 %)", scenario{waits: 10_000, quota: 360, needs: 200, endless: true}, bounds{notified: 82 * time.Second, unseen: 84 * time.Second}, false},
	{"10,000 dense, quota of 200 a minute (50 %)", scenario{waits: 10_000, quota: 200, needs: 200, endless: true}, bounds{notified: 127 * time.Second, unseen: 136 * time.Second}, false},
	{"10,000 dense, quota of 120 a minute (30 %)", scenario{waits: 10_000, quota: 120, needs: 200, endless: true}, bounds{notified: 213 * time.Second, unseen: 223 * time.Second}, false},
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, w := range scenarios {
		if !w.quick && !testbase.Long() {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { w.check(t, w.scenario, spend(t, w.scenario)) })
		})
	}
}

// check compares an hour with its bounds.
func (b bounds) check(t *testing.T, w scenario, c *counts) {
	t.Logf("%.0f a minute, %d in a second, notified %v, unseen %v, first %v, share %.2f", c.perMinute(), c.most, c.notified.Round(time.Second), c.unseen.Round(time.Second), c.first().Round(time.Millisecond), c.share(max(w.edge, 1)))
	assert.Zero(t, c.within, "polls within the minimum interval")
	assert.Zero(t, c.failed, "waits that were given up")
	if b.perMinute > 0 {
		assert.LessOrEqual(t, c.perMinute(), b.perMinute, "requests a minute")
	}
	if b.most > 0 {
		assert.LessOrEqual(t, c.most, b.most, "requests in a second")
	}
	if b.first > 0 {
		assert.LessOrEqual(t, c.first(), b.first, "to the first poll")
	}
	cycles := 2
	if w.deleted > 0 || w.edited > 0 || w.lose > 0 { // it may take one more to find a meeting again
		cycles = 3
	}
	assert.LessOrEqual(t, c.notified, or(b.notified, time.Duration(cycles)*w.cycle()), "longest delay of a notification")
	assert.LessOrEqual(t, c.unseen, or(b.unseen, time.Duration(cycles+1)*w.cycle()), "longest time without a poll")
	if w.edge > 0 {
		assert.GreaterOrEqual(t, c.share(min(w.edge, float64(w.needs)/w.cycle().Seconds())), 0.6, "share of the edge's limit")
		assert.LessOrEqual(t, c.back(w.needs), 10, "cycles until the pace is back")
	}
}

func or(d, other time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return other
}
