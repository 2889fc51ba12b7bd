package rest

import (
	"math"
	"time"
)

const (
	// leastPace is in requests a second, so that because of its pace a line waits for ten seconds
	// at most.
	leastPace = 0.15
	// growth is that of the pace, by the square of the seconds since a 429 lowered it.
	growth = 0.001
)

// line is where requests of one kind wait, each until those before it are sent.
type line struct {
	// token belongs to the first request of the line.
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

// sent records that a request of the line was sent.
func (l *line) sent(now time.Time) {
	l.recent = 1 + l.recent*math.Exp(-now.Sub(l.lastSent).Seconds())
	l.lastSent = now
	l.notBefore = now.Add(gapOf(l.pace.perSecond(now)))
}

// lowerPace lowers the pace of a line by a share.
func (l *line) lowerPace(now time.Time, share float64) {
	perSecond := min(l.pace.perSecond(now), l.recent) * (1 - share)
	l.pace = pace{atLimit: max(leastPace, perSecond), lowered: now}
	// While a quota is used up, few requests are enough to find out when it is free again: hence
	// more than one gap.
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
