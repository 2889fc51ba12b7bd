package main

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// edge is in front of the service and rejects requests that come too fast, as the edge of the real service does: with a
// 429 that has no envelope. In each second of the clock, each key has limit requests. Requests without a key share one
// allowance. Storage has no edge.
type edge struct {
	limit    int // 0: none
	next     http.Handler
	rejected func(*http.Request)
	now      func() time.Time

	mu     sync.Mutex
	second int64
	used   map[string]int // in second, by key
	total  int            // rejected so far
}

func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.limit == 0 || strings.HasPrefix(r.URL.Path, "/storage/") || e.admit(r.Header.Get("Authorization")) {
		e.next.ServeHTTP(w, r)
		return
	}
	e.rejected(r)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, "Too many requests\n")
}

func (e *edge) admit(key string) bool {
	second := e.now().Unix()
	e.mu.Lock()
	defer e.mu.Unlock()
	if second != e.second || e.used == nil {
		e.second, e.used = second, make(map[string]int)
	}
	if e.used[key] >= e.limit {
		e.total++
		return false
	}
	e.used[key]++
	return true
}

// rejections returns how many requests were rejected.
func (e *edge) rejections() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.total
}
