package engine

import "container/heap"

// schedule is a heap of the meetings under way, with the one whose state ends
// first at the root, and of two at the same time the older one.
type schedule []*meeting

// first returns the meeting whose state ends first, or nil.
func (s schedule) first() *meeting {
	if len(s) == 0 {
		return nil
	}
	return s[0]
}

func (s *schedule) add(m *meeting) { heap.Push(s, m) }

// remove removes m, if it is there.
func (s *schedule) remove(m *meeting) {
	if m.job.slot > 0 {
		heap.Remove(s, m.job.slot-1)
	}
}

// Len, Less, Swap, Push and Pop are for container/heap.

func (s schedule) Len() int { return len(s) }

func (s schedule) Less(i, j int) bool {
	if order := s[i].job.due.Compare(s[j].job.due); order != 0 {
		return order < 0
	}
	return s[i].seq < s[j].seq
}

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].job.slot, s[j].job.slot = i+1, j+1
}

func (s *schedule) Push(x any) {
	m := x.(*meeting)
	*s = append(*s, m)
	m.job.slot = len(*s)
}

func (s *schedule) Pop() any {
	last := len(*s) - 1
	m := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	m.job.slot = 0
	return m
}
