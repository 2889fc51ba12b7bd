package poll

import "time"

// dueHeap orders watches by their due time.
type dueHeap []*watch

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i+1), int32(j+1)
}

// firstDue returns the earliest due time, or never if the heap is empty.
func (h dueHeap) firstDue() time.Duration {
	if len(h) == 0 {
		return never
	}
	return h[0].due
}

// Push is for container/heap.
func (h *dueHeap) Push(x any) {
	w := x.(*watch)
	*h = append(*h, w)
	w.place = int32(len(*h))
}

// Pop is for container/heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.place = 0
	return w
}
