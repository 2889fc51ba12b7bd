package minutestest

import (
	"net/http"
	"strings"
	"sync"
	"time"
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

// rejects reports whether r is one too many.
func (e *edge) rejects(r *http.Request) bool {
	if e.limit == 0 || strings.HasPrefix(r.URL.Path, "/storage/") {
		return false
	}
	second, key := time.Now().Unix(), bearer(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if second != e.second || e.used == nil {
		e.second, e.used = second, make(map[string]int)
	}
	e.used[key]++
	return e.used[key] > e.limit
}
