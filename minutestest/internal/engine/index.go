package engine

import (
	"slices"
	"sort"
)

// chunkSize bounds what one insertion or deletion in an index moves.
const chunkSize = 256

// index holds meetings in the order of their creation. It is a list of short
// sorted lists, so that adding, deleting and seeking cost next to nothing at
// any length, and nothing is left behind by what was deleted.
type index struct {
	chunks [][]*meeting // none is empty
}

// add appends m, which is newer than all before it.
func (x *index) add(m *meeting) {
	last := len(x.chunks) - 1
	if last < 0 || len(x.chunks[last]) >= chunkSize {
		x.chunks = append(x.chunks, nil)
		last++
	}
	x.chunks[last] = append(x.chunks[last], m)
}

// seek returns the place of the first meeting whose number is at least seq.
func (x *index) seek(seq uint64) (chunk, at int) {
	chunk = sort.Search(len(x.chunks), func(i int) bool {
		c := x.chunks[i]
		return c[len(c)-1].seq >= seq
	})
	if chunk == len(x.chunks) {
		return chunk, 0
	}
	c := x.chunks[chunk]
	return chunk, sort.Search(len(c), func(i int) bool { return c[i].seq >= seq })
}

// remove takes m out, which must be there.
func (x *index) remove(m *meeting) {
	i, at := x.seek(m.seq)
	c := slices.Delete(x.chunks[i], at, at+1)
	x.chunks[i] = c
	// Chunks that have shrunk are joined with a neighbour, so that an index is
	// never much longer than what it holds.
	switch {
	case len(c) == 0:
		x.chunks = slices.Delete(x.chunks, i, i+1)
	case i > 0 && len(x.chunks[i-1])+len(c) <= chunkSize/2:
		x.chunks[i-1] = append(x.chunks[i-1], c...)
		x.chunks = slices.Delete(x.chunks, i, i+1)
	case i+1 < len(x.chunks) && len(c)+len(x.chunks[i+1]) <= chunkSize/2:
		x.chunks[i] = append(c, x.chunks[i+1]...)
		x.chunks = slices.Delete(x.chunks, i+1, i+2)
	}
}

func (x *index) empty() bool { return len(x.chunks) == 0 }

// walk goes through an index from newer to older.
type walk struct {
	index     *index
	chunk, at int // of head
	head      *meeting
}

// before returns a walk from the newest meeting of x older than number seq.
func (x *index) before(seq uint64) walk {
	c := walk{index: x}
	c.chunk, c.at = x.seek(seq)
	c.next()
	return c
}

// next moves on to the next older meeting; at the end head is nil.
func (c *walk) next() {
	c.at--
	if c.at < 0 {
		c.chunk--
		if c.chunk < 0 {
			c.head = nil
			return
		}
		c.at = len(c.index.chunks[c.chunk]) - 1
	}
	c.head = c.index.chunks[c.chunk][c.at]
}

// calendar holds the meetings one kind of viewer sees: all of them, and again
// by year, month and day of their date. A range of dates is then a handful of
// years, months and days, each in order already, whatever lies in between.
type calendar struct {
	index
	years map[int]*year
}

type year struct {
	index
	months [12]*month
}

type month struct {
	index
	days [31]*index
}

// add takes in m, which is newer than all before it. A change of the date
// goes through insert.
func (c *calendar) add(m *meeting) {
	c.index.add(m)
	c.insert(m)
}

func (c *calendar) remove(m *meeting) {
	c.index.remove(m)
	c.extract(m)
}

// insert puts m where its date belongs.
func (c *calendar) insert(m *meeting) {
	if c.years == nil {
		c.years = map[int]*year{}
	}
	y := c.years[m.date.year()]
	if y == nil {
		y = &year{}
		c.years[m.date.year()] = y
	}
	mon := y.months[m.date.month()-1]
	if mon == nil {
		mon = &month{}
		y.months[m.date.month()-1] = mon
	}
	day := mon.days[m.date.day()-1]
	if day == nil {
		day = &index{}
		mon.days[m.date.day()-1] = day
	}
	y.put(m)
	mon.put(m)
	day.put(m)
}

// extract takes m from where its date put it.
func (c *calendar) extract(m *meeting) {
	y := c.years[m.date.year()]
	mon := y.months[m.date.month()-1]
	day := mon.days[m.date.day()-1]
	y.remove(m)
	mon.remove(m)
	day.remove(m)
	if day.empty() {
		mon.days[m.date.day()-1] = nil
	}
	if mon.empty() {
		y.months[m.date.month()-1] = nil
	}
	if y.empty() {
		delete(c.years, m.date.year())
	}
}

// put inserts m where its number belongs: at the end for a new meeting,
// anywhere for one whose date was changed.
func (x *index) put(m *meeting) {
	i, at := x.seek(m.seq)
	if i == len(x.chunks) {
		x.add(m)
		return
	}
	c := slices.Insert(x.chunks[i], at, m)
	if len(c) <= chunkSize {
		x.chunks[i] = c
		return
	}
	half := len(c) / 2
	x.chunks[i] = slices.Clone(c[:half])
	x.chunks = slices.Insert(x.chunks, i+1, slices.Clone(c[half:]))
}

// within appends to list a walk for each piece of the range from..to (0:
// open) that holds meetings older than number seq.
func (c *calendar) within(list []walk, from, to date, seq uint64) []walk {
	take := func(x *index) {
		if cur := x.before(seq); cur.head != nil {
			list = append(list, cur)
		}
	}
	if from == 0 && to == 0 {
		take(&c.index)
		return list
	}
	if to == 0 {
		to = dateOf(9999, 12, 31)
	}
	for n, y := range c.years {
		switch {
		case dateOf(n, 12, 31) < from || to < dateOf(n, 1, 1):
			continue
		case from <= dateOf(n, 1, 1) && dateOf(n, 12, 31) <= to:
			take(&y.index)
			continue
		}
		for i, mon := range y.months {
			first, last := dateOf(n, i+1, 1), dateOf(n, i+1, 31)
			switch {
			case mon == nil || last < from || to < first:
				continue
			case from <= first && last <= to:
				take(&mon.index)
				continue
			}
			for j, day := range mon.days {
				if d := dateOf(n, i+1, j+1); day != nil && from <= d && d <= to {
					take(day)
				}
			}
		}
	}
	return list
}

// merged makes one of several walks, from newer to older.
type merged struct{ heap []walk } // the newest head first

func merge(walks []walk) *merged {
	m := &merged{walks}
	for i := len(walks)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m
}

// next returns the next older meeting, or nil at the end.
func (m *merged) next() *meeting {
	if len(m.heap) == 0 {
		return nil
	}
	found := m.heap[0].head
	m.heap[0].next()
	if m.heap[0].head == nil {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.down(0)
	return found
}

func (m *merged) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(m.heap) {
			return
		}
		if right := child + 1; right < len(m.heap) && m.heap[right].head.seq > m.heap[child].head.seq {
			child = right
		}
		if m.heap[i].head.seq >= m.heap[child].head.seq {
			return
		}
		m.heap[i], m.heap[child] = m.heap[child], m.heap[i]
		i = child
	}
}
