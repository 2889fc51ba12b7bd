package engine

import (
	"cmp"
	"slices"
)

// list holds meetings in the order of their creation. A removed meeting leaves
// a gap, so that removing one costs little at any length.
type list struct {
	entries []entry // by seq
	gaps    int
}

type entry struct {
	seq     uint64
	meeting *meeting // nil for a gap
}

// maxGaps bounds the gaps that a search for the next meeting passes.
const maxGaps = 4096

// seek returns the index of number seq, and whether it is in the list.
func (l *list) seek(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(l.entries, seq, func(e entry, seq uint64) int { return cmp.Compare(e.seq, seq) })
}

// add inserts m: at the end if it is new, anywhere if its date was changed.
func (l *list) add(m *meeting) {
	i, gap := l.seek(m.seq)
	if gap {
		l.entries[i].meeting = m
		l.gaps--
		return
	}
	l.entries = slices.Insert(l.entries, i, entry{m.seq, m})
}

// remove removes m, which must be in the list.
func (l *list) remove(m *meeting) {
	i, _ := l.seek(m.seq)
	l.entries[i].meeting = nil
	l.gaps++
	if l.gaps > maxGaps || 2*l.gaps > len(l.entries) {
		l.entries = slices.Clone(slices.DeleteFunc(l.entries, func(e entry) bool { return e.meeting == nil }))
		l.gaps = 0
	}
}

// last returns the index of the last meeting before index i, or -1.
func (l *list) last(i int) int {
	for i--; i >= 0 && l.entries[i].meeting == nil; i-- {
	}
	return i
}

// calendar holds meetings in the order of their creation: all of them, and
// again those of each year, of each month of a year and of each day of a
// month. Every range of dates is a few of these lists.
type calendar struct {
	list
	name  string               // the beginning of the dates in it: "", "2026", "2026-03" or "2026-03-02"
	parts map[string]*calendar // by name
}

// path returns c and its parts for m's year, month and day.
func (c *calendar) path(m *meeting) []*calendar {
	path := []*calendar{c}
	for _, length := range []int{len("2026"), len("2026-03"), len("2026-03-02")} {
		name := m.date[:length]
		if c.parts == nil {
			c.parts = map[string]*calendar{}
		}
		if c.parts[name] == nil {
			c.parts[name] = &calendar{name: name}
		}
		c = c.parts[name]
		path = append(path, c)
	}
	return path
}

func (c *calendar) add(m *meeting) {
	for _, part := range c.path(m) {
		part.list.add(m)
	}
}

func (c *calendar) remove(m *meeting) {
	path := c.path(m)
	for i, part := range path {
		part.list.remove(m)
		if i > 0 && len(part.entries) == 0 {
			delete(path[i-1].parts, part.name)
		}
	}
}

// within returns the lists that hold the meetings from one date to another.
func (c *calendar) within(from, to string) (lists []*list) {
	first, last := c.name+"0001-01-01"[len(c.name):], c.name+"9999-12-31"[len(c.name):]
	switch {
	case last < from || to < first:
		return nil
	case from <= first && last <= to:
		return []*list{&c.list}
	}
	for _, part := range c.parts {
		lists = append(lists, part.within(from, to)...)
	}
	return lists
}

// newest returns the newest n meetings of all lists with numbers below seq,
// the newest first.
func newest(lists []*list, seq uint64, n int) []*meeting {
	next := make([]int, len(lists)) // of each list, the index of its newest meeting not yet taken, or -1
	for i, l := range lists {
		at, _ := l.seek(seq)
		next[i] = l.last(at)
	}
	found := make([]*meeting, 0, n)
	for len(found) < n {
		var newest *meeting
		from := 0
		for i, l := range lists {
			if next[i] < 0 {
				continue
			}
			if m := l.entries[next[i]].meeting; newest == nil || m.seq > newest.seq {
				newest, from = m, i
			}
		}
		if newest == nil {
			break
		}
		found = append(found, newest)
		next[from] = lists[from].last(next[from])
	}
	return found
}
