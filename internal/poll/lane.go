package poll

import "time"

// What a lane does after refusals. The pause after the first one without a
// Retry-After is short and doubles with each in a row; the pace halves, and
// doubles again in a floor's time of good replies.
const (
	firstPause = time.Second
	maxPause   = time.Minute     // of our own
	maxAsked   = 5 * time.Minute // how far a Retry-After is obeyed
	leastShare = 1.0 / 16
	outage     = 5 // failures in a row
)

// lane paces one kind of request, looks or pages. It adapts to what the service
// lets through.
type lane struct {
	slot   time.Duration // when the next request may go out at an even pace
	until  time.Duration // the end of a pause
	share  float64       // of the pace wanted that is used, from leastShare to 1
	raised time.Duration // when share was last changed
	bad    int           // failures in a row
}

// free is when the next request may go out.
func (l *lane) free() time.Duration { return max(l.slot, l.until) }

// use takes the slot at now; perSecond is the pace wanted.
func (l *lane) use(now time.Duration, perSecond float64) {
	l.slot = now + time.Duration(float64(time.Second)/(perSecond*l.share))
}

// good takes in a reply.
func (l *lane) good(now time.Duration) {
	l.bad = 0
	if since := now - l.raised; since > 0 { // not during a pause, which was begun after this one went out
		l.share = min(1, l.share*(1+float64(since)/float64(floor)))
		l.raised = now
	}
}

// refused takes in a 429, to a request that went out at asked: the lane pauses,
// as long as the service asks, and goes on at half the pace.
func (l *lane) refused(now, asked, retryAfter time.Duration) {
	if asked < l.until {
		return // of the same crowd as the one that made the pause
	}
	l.pause(now, retryAfter)
	l.share = max(leastShare, l.share/2)
	l.raised = l.until
}

// pause holds the lane back, longer each time in a row.
func (l *lane) pause(now, asked time.Duration) {
	pause := min(asked, maxAsked)
	if pause <= 0 {
		pause = min(firstPause<<min(l.bad, 10), maxPause)
	}
	l.bad++
	l.until = max(l.until, now+pause)
}

// failed takes in a request that failed otherwise. After several in a row the lane
// pauses, longer each time, for a turn at the longest. It reports whether the
// service seems to be out.
func (l *lane) failed(now, asked, turn time.Duration) (out bool) {
	if asked < l.until {
		return false
	}
	if l.bad++; l.bad >= outage {
		l.until = now + min(firstPause<<min(l.bad-outage, 10), turn)
	}
	return l.out(turn)
}

// out reports whether so many requests have failed in a row that one is tried in a
// turn.
func (l *lane) out(turn time.Duration) bool {
	return l.bad >= outage && firstPause<<min(l.bad-outage, 10) >= turn
}
