package poll

import "time"

// After a refusal without a Retry-After a lane pauses shortly, twice as long after each further one
// in a row. Each refusal halves the pace; good replies double it again within a floor.
const (
	firstPause = time.Second
	maxPause   = time.Minute     // the longest pause that the lane chooses itself
	maxAsked   = 5 * time.Minute // the longest Retry-After that is obeyed
	leastShare = 1.0 / 16        // the least share of the wanted pace
	outage     = 5               // failures in a row that make the lane pause
)

// lane paces one kind of request, looks or pages. It adapts to what the service
// accepts.
type lane struct {
	slot    time.Duration // earliest time of the next request at the present pace
	until   time.Duration // end of the latest pause
	share   float64       // fraction of the wanted pace in use, from leastShare to 1
	changed time.Duration // share grows from this time on; in the future during a pause
	bad     int           // requests in a row that failed or were refused
}

// free returns the earliest time of the next request.
func (l *lane) free() time.Duration { return max(l.slot, l.until) }

// use takes the slot at now. perSecond is the wanted pace.
func (l *lane) use(now time.Duration, perSecond float64) {
	l.slot = now + time.Duration(float64(time.Second)/(perSecond*l.share))
}

// good records a good reply. After it the pace grows back.
func (l *lane) good(now time.Duration) {
	l.bad = 0
	if since := now - l.changed; since > 0 { // in a pause, the request was sent before the pause began
		l.share = min(1, l.share*(1+float64(since)/float64(minPollInterval)))
		l.changed = now
	}
}

// refused records a 429 to a request sent at sentAt. The lane pauses for as long as
// the service asks, then goes on at half the pace.
func (l *lane) refused(now, sentAt, retryAfter time.Duration) {
	if sentAt < l.until {
		return // sent before the pause began: already counted
	}
	l.pause(now, retryAfter)
	l.share = max(leastShare, l.share/2)
	l.changed = l.until
}

// pause makes the lane pause for retryAfter. If that is 0, the lane chooses the
// pause, longer each time in a row.
func (l *lane) pause(now, retryAfter time.Duration) {
	pause := min(retryAfter, maxAsked)
	if pause <= 0 {
		pause = min(firstPause<<min(l.bad, 10), maxPause)
	}
	l.bad++
	l.until = max(l.until, now+pause)
}

// failed records a failure other than a 429. After outage failures in a row the lane
// pauses, longer each time, at most for a turn. It reports whether the service seems
// to be out.
func (l *lane) failed(now, sentAt, turn time.Duration) (out bool) {
	if sentAt < l.until {
		return false
	}
	if l.bad++; l.bad >= outage {
		l.until = now + min(firstPause<<min(l.bad-outage, 10), turn)
	}
	return l.isOut(turn)
}

// isOut reports whether the service seems to be out: pauses have grown to a turn.
func (l *lane) isOut(turn time.Duration) bool {
	return l.bad >= outage && firstPause<<min(l.bad-outage, 10) >= turn
}
