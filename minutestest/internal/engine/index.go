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

// seek returns the place of number seq, and whether it is in the list.
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

// last returns the place of the last meeting before place i, or -1.
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
	parts map[string]*calendar // by the beginning of the date: "2026", "2026-03" or "2026-03-02"
}

// partOf returns the name of the part of m's date at a level: 1 for its year,
// 2 for its month, 3 for its day.
func partOf(m *meeting, level int) string { return m.date[:[]int{0, 4, 7, 10}[level]] }

const days = 3 // the lowest level

func (c *calendar) add(m *meeting) {
	c.list.add(m)
	for level := 1; level <= days; level++ {
		if c.parts == nil {
			c.parts = map[string]*calendar{}
		}
		part := c.parts[partOf(m, level)]
		if part == nil {
			part = &calendar{}
			c.parts[partOf(m, level)] = part
		}
		part.list.add(m)
		c = part
	}
}

func (c *calendar) remove(m *meeting) {
	c.list.remove(m)
	for level := 1; level <= days; level++ {
		part := c.parts[partOf(m, level)]
		part.list.remove(m)
		if len(part.entries) == 0 {
			delete(c.parts, partOf(m, level))
		}
		c = part
	}
}

// within returns the lists that hold the meetings from one date to another.
// name is the part's own: "" for the whole calendar.
func (c *calendar) within(name, from, to string) (lists []*list) {
	first, last := name+"0001-01-01"[len(name):], name+"9999-12-31"[len(name):]
	switch {
	case last < from || to < first:
		return nil
	case from <= first && last <= to:
		return []*list{&c.list}
	}
	for name, part := range c.parts {
		lists = append(lists, part.within(name, from, to)...)
	}
	return lists
}

// newest returns the newest n meetings of all lists with numbers below seq,
// the newest first.
func newest(lists []*list, seq uint64, n int) []*meeting {
	next := make([]int, len(lists)) // of each list, the place of its newest meeting not yet taken, or -1
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
