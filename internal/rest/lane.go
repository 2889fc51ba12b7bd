package rest

import (
	"math"
	"time"
)

const (
	// leastPace is in requests a second. Because of it, no lane waits for its pace longer than ten
	// seconds (a gap and a half, see holdBack).
	leastPace = 0.15
	// growth is that of the pace, by the square of the seconds since a 429 lowered it.
	growth = 0.001
)

// lane is where requests of one kind wait, each until those before it are sent.
type lane struct {
	// token is full while a request is the first of the lane.
	token chan struct{}
	// pace is how many of its requests may be sent a second, because of 429s.
	pace pace
	// notBefore is the earliest time of its next request because of the pace.
	notBefore time.Time
	// lastSent is when its last request was sent.
	lastSent time.Time
	// recent is the number of its requests in about the second before lastSent, weighted by age.
	recent float64
}

// sent notes that a request of the lane was sent.
func (l *lane) sent(now time.Time) {
	l.recent = 1 + l.recent*math.Exp(-now.Sub(l.lastSent).Seconds())
	l.lastSent = now
	l.notBefore = now.Add(gapOf(l.pace.perSecond(now)))
}

// lowerPace lowers the pace by a share, or the requests of the last second if fewer are made than
// the pace allows.
func (l *lane) lowerPace(now time.Time, share float64) {
	perSecond := min(l.pace.perSecond(now), l.recent) * (1 - share)
	l.pace = pace{atLimit: max(leastPace, perSecond), lowered: now}
}

// holdBack delays the next request of the lane after a 429 to one of it. It waits for more than a
// gap: while a quota is used up, more requests would only be rejected. A 429 to the other lane does
// not delay it: otherwise a user who always calls at the limit would put the polls off for ever.
func (l *lane) holdBack(now time.Time) {
	l.notBefore = now.Add(gapOf(l.pace.perSecond(now)) * 3 / 2)
}

// pace is a number of requests a second that grows with time. The zero pace was lowered so long
// ago that it has grown beyond any bound.
type pace struct {
	// atLimit is the pace just after lowered.
	atLimit float64
	// lowered is when a 429 last lowered the pace.
	lowered time.Time
}

// perSecond returns the pace.
func (p pace) perSecond(now time.Time) float64 {
	since := now.Sub(p.lowered).Seconds()
	return p.atLimit + growth*since*since
}

// gapOf returns the time between two requests.
func gapOf(perSecond float64) time.Duration {
	return time.Duration(float64(time.Second) / perSecond)
}
