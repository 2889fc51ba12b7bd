// Package recent keeps the last elements of lists that only grow.
package recent

import (
	"slices"
	"sync"
)

// List keeps the last Max elements that were added. Many goroutines may use it at once.
type List[T any] struct {
	Max int

	mu    sync.Mutex
	added int
	list  []T
}

// Add adds an element.
func (l *List[T]) Add(element T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.added++
	l.list = append(l.list[max(0, len(l.list)+1-l.Max):], element)
}

// Since returns the elements that were added after the first n, as far as they are kept, and how
// many were ever added.
func (l *List[T]) Since(n int) (list []T, added int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list[max(0, len(l.list)-(l.added-n)):]), l.added
}
