package test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// tally counts what all runs did.
type tally struct {
	runs, requests, meetings, waits, crashes atomic.Int64

	mu       sync.Mutex
	troubles map[string]int // how often each kind was applied
}

// applied records that a trouble was applied to a request.
func (n *tally) applied(kind string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.troubles == nil {
		n.troubles = map[string]int{}
	}
	n.troubles[kind]++
}

// report logs the tally once all runs have ended. If there were enough runs, each of the
// kinds must have been applied.
func (n *tally) report(t *testing.T, kinds ...string) {
	t.Helper()
	t.Cleanup(func() {
		const enough = 300
		var lines []string
		sum := 0
		for kind, times := range n.troubles {
			lines = append(lines, fmt.Sprintf("%7d %s", times, kind))
			sum += times
		}
		slices.Sort(lines)
		t.Logf("%d runs, %d meetings, %d waits, %d crashes, %d requests, %d with troubles:\n%s",
			n.runs.Load(), n.meetings.Load(), n.waits.Load(), n.crashes.Load(), n.requests.Load(), sum, strings.Join(lines, "\n"))
		for _, kind := range kinds {
			if n.runs.Load() >= enough && n.troubles[kind] == 0 {
				t.Errorf("no request had the trouble %q", kind)
			}
		}
	})
}
