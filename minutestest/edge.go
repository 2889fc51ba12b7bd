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
	limit int // 0: none

	mu     sync.Mutex
	second int64
	used   map[string]int // in second, by key
}

// edgeFault is the [Request.Fault] of what the edge rejected.
const edgeFault = "edge limit"

// rejects reports whether a request is one too many.
func (e *edge) rejects(r *entry) bool {
	if e.limit == 0 || r.Operation == minutes.OpUpload {
		return false
	}
	second := time.Now().Unix()
	e.mu.Lock()
	defer e.mu.Unlock()
	if second != e.second || e.used == nil {
		e.second, e.used = second, make(map[string]int)
	}
	e.used[r.key]++
	return e.used[r.key] > e.limit
}
