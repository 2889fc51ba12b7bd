package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The edge counts each key's requests in each second of its clock.
func TestEdge_CountsRequestsPerSecond(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 0)
	rejected := 0
	e := &edge{
		limit:    2,
		next:     http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
		rejected: func(*http.Request) { rejected++ },
		now:      func() time.Time { return now },
	}
	ask := func(path, key string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	for _, want := range []int{204, 204, 429, 429} {
		assert.Equal(t, want, ask("/v1/usage", "a").Code)
	}
	assert.Equal(t, 204, ask("/v1/usage", "b").Code, "another key")
	assert.Equal(t, 204, ask("/v1/usage", "").Code, "none")
	assert.Equal(t, 204, ask("/storage/x", "a").Code, "storage has no edge")
	assert.Equal(t, 204, ask("/v1/usage", "b").Code, "a key has all of its allowance")
	assert.Equal(t, 429, ask("/v1/usage", "b").Code, "and no more")
	w := ask("/v1/usage", "a")
	assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	assert.Equal(t, "Too many requests\n", w.Body.String())
	assert.Equal(t, 4, rejected)
	assert.Equal(t, 4, e.rejections())
	now = now.Add(time.Second)
	assert.Equal(t, 204, ask("/v1/usage", "a").Code, "the next second")

	e.limit = 0
	for range 5 {
		assert.Equal(t, 204, ask("/v1/usage", "a").Code, "no limit")
	}
}
