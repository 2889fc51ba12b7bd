package minutestest

import (
	"sync"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// edge is in front of the service and rejects requests that come too fast. In each second of the
// clock, each key may send as many requests as the limit says; requests without a key share one
// allowance. Storage has no edge.
type edge struct {
	// limit is per second and key; 0: none.
	limit int

	mu sync.Mutex
	// second is the one that used counts.
	second int64
	// used has the number of requests by key.
	used map[string]int
}

// rejects counts a request, and reports whether it is one too many.
func (e *edge) rejects(x *exchange) bool {
	if e.limit == 0 || x.Operation == minutes.OpUpload {
		return false
	}
	now := time.Now().Unix()
	e.mu.Lock()
	defer e.mu.Unlock()
	if now != e.second || e.used == nil {
		e.second = now
		e.used = make(map[string]int)
	}
	e.used[x.key]++
	return e.used[x.key] > e.limit
}
