package poll

// queue orders watches by the time at which they are due. It implements heap.Interface.
type queue []*watch

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].dueAt < q[j].dueAt }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place = int32(i + 1)
	q[j].place = int32(j + 1)
}

func (q *queue) Push(x any) {
	*q = append(*q, x.(*watch))
	(*q)[len(*q)-1].place = int32(len(*q))
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	w.place = 0
	return w
}
