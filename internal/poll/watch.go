package poll

import (
	"container/heap"
	"time"
)

// watch is what the plan knows of one meeting.
type watch struct {
	id string
	// awaited means that somebody waits for the meeting. Otherwise no GET of it is ever made.
	awaited bool
	state   state
	// dueAt is when the next GET is due. While the state is expected, it is the constant never.
	dueAt time.Duration
	// notBefore is the earliest time of the next GET. Only an Ask with atOnce makes it earlier.
	notBefore time.Duration
	// seen is when a response last showed the meeting.
	seen time.Duration
	// gotAt is when a response about the meeting alone last did. It is 0 if none has.
	gotAt time.Duration
	// mayWait is how long the next GET may be put off because the meeting changes rarely. Otherwise
	// it is 0.
	mayWait time.Duration
	// asked is the least Sent.Number of a GET that satisfies an Ask, which no page can replace. It
	// is 0 if nobody has asked.
	asked int64
	// foreignSince is when the present row of foreign failures began. It is 0 if something else came
	// last.
	foreignSince time.Duration
	// getFailures is how many GETs of the meeting have failed in a row.
	getFailures int
	// sought is the last sweep that should show the meeting and has not done so.
	sought *sweep
	// place is the place in the queue, plus 1. It is 0 if the meeting is not there.
	place int32
}

// state says what an awaited meeting waits for.
type state int8

const (
	// newcomer: a wait began, and no GET has been decided on since. It comes before
	// nearly all others (see nextGET). If that GET gets a 429, the meeting is no newcomer any more,
	// but its dueAt stays, and so its place in the queue.
	newcomer state = iota
	// due: the GET has a time, which may have come.
	due
	// underWay: the GET is under way.
	underWay
	// expected: no GET is planned, because the next sweep should show the meeting on a page.
	expected
)

// enter puts a meeting into a state, and keeps the number of expected ones right. It does not
// change the queue: callers schedule the GET that follows from the state, or unschedule it before.
func (p *plan) enter(w *watch, s state) {
	if w.awaited && w.state == expected {
		p.expected--
	}
	w.state = s
	if w.awaited && s == expected {
		p.expected++
	}
}

// nextGET returns when the next GET of a meeting should be due, from its state. Newcomers, and
// meetings that somebody has asked for, get a time in the past, so they come before all others
// except those that are overdue by more than headStart. Among themselves they keep the order in
// which they came, because headStart is constant.
func (p *plan) nextGET(w *watch, now time.Duration) time.Duration {
	switch {
	case w.state == expected:
		return never
	case w.state == newcomer || w.asked > 0:
		return max(w.notBefore, now-headStart)
	}
	return max(w.notBefore, w.seen+max(p.cycle(now), w.mayWait))
}

// everyCycle reports whether a meeting should be seen in every cycle, and not more rarely.
func (p *plan) everyCycle(w *watch, now time.Duration) bool { return w.mayWait <= p.cycle(now) }

// schedule sets when the next GET of a meeting is due, and queues the meeting unless nobody awaits
// it or its GET is under way.
func (p *plan) schedule(w *watch, dueAt time.Duration) {
	w.dueAt = dueAt
	switch {
	case w.place > 0:
		heap.Fix(&p.queue, int(w.place-1))
	case w.awaited && w.state != underWay:
		heap.Push(&p.queue, w)
	}
}

// unschedule removes a meeting from the queue.
func (p *plan) unschedule(w *watch) {
	if w.place > 0 {
		heap.Remove(&p.queue, int(w.place-1))
	}
}

// shownLately reports whether a response about a meeting alone has shown it so lately that a 404
// does not mean that the meeting is gone.
func (w *watch) shownLately(now time.Duration) bool { return w.gotAt > 0 && now-w.gotAt < Interval }

// wasSeen notes that a good response has shown a meeting.
func (w *watch) wasSeen(now time.Duration) {
	w.seen = now
	w.getFailures = 0
	w.foreignSince = 0
}

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
