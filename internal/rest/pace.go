package rest

import (
	"math"
	"time"
)

const (
	longestPause = time.Minute
	leastPace    = 0.02            // requests a second
	growth       = 0.001           // of the pace, by the square of the seconds since the last 429
	forgotten    = 5 * time.Minute // so long after the last 429, the pace has no bound
)

// pace decides how fast requests may go after a 429. It has no clock and no lock.
//
// Nothing is known about the limit: it may belong to a process, a key or an address, and other processes may use it up. So
// each 429 halves the pace, which then grows by an amount that only depends on the time since that 429. All processes gain
// the same and lose in proportion to what they have; so they approach equal shares. The growth is quadratic, because that
// finds a share of 0.1 requests a second as well as one of 100: it is 0.1 after ten seconds, 3.6 after a minute, and 90 after
// five.
type pace struct {
	until   time.Time // end of the pause
	limited time.Time // the last 429 that counted; zero if there was none
	row     int       // 429s in a row
	halved  float64   // requests a second just after the last 429
	sent    time.Time // the last request
	recent  float64   // requests in about the second before sent, each counting less the older it was
}

// perSecond returns how many requests may be sent in a second.
func (p *pace) perSecond(now time.Time) float64 {
	since := now.Sub(p.limited)
	if since > forgotten {
		return math.Inf(1)
	}
	return p.halved + growth*since.Seconds()*since.Seconds()
}

// left returns how long the next request must wait. At 0 or less, it need not.
func (p *pace) left(now time.Time) time.Duration {
	gap := time.Duration(float64(time.Second) / p.perSecond(now))
	return max(p.until.Sub(now), p.sent.Add(gap).Sub(now))
}

// send records a request.
func (p *pace) send(now time.Time) {
	p.recent = 1 + p.recent*math.Exp(-now.Sub(p.sent).Seconds())
	p.sent = now
}

// rejected records a 429 to a request that was sent at sentAt. random is from 0 to 1. Requests that were sent before the last
// 429 came say nothing new, unless the service asks for a longer pause. It returns the pause that this started or extended.
func (p *pace) rejected(now, sentAt time.Time, retryAfter time.Duration, random float64) time.Duration {
	pause := min(retryAfter, longestPause)
	if sentAt.After(p.limited) {
		p.row++
		pause = max(pause, time.Duration(random*float64(time.Second<<min(p.row, 4))))
		before := p.perSecond(now)
		if math.IsInf(before, 1) { // there was no bound, so begin with what was sent
			before = p.recent
		}
		p.halved, p.limited = max(leastPace, before/2), now
	}
	if !now.Add(pause).After(p.until) {
		return 0
	}
	p.until = now.Add(pause)
	return pause
}
