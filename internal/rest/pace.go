package rest

import "time"

const (
	longestPause = time.Minute
	leastPace    = 0.02             // requests a second
	growth       = 0.001            // of the pace, by the square of the seconds since the last 429
	forgotten    = 5 * time.Minute  // so long after the last 429, the pace has no bound
	measured     = 10 * time.Second // the time over which the present pace is measured
)

// pace decides how fast requests may go after a 429. It has no clock and no lock.
//
// Nothing is known about the limit: it may belong to a process, a key or an address, and other processes may use it up. So
// each 429 halves the pace, which then grows by an amount that only depends on the time since that 429. All processes gain
// the same and lose in proportion to what they have; so they approach equal shares. The growth is quadratic, because that
// finds a share of 0.1 requests a second as well as one of 100: it is 0.1 after ten seconds, 3.6 after a minute, and 90 after
// five.
type pace struct {
	until   time.Time   // end of the pause
	limited time.Time   // the last 429 that counted
	row     int         // 429s in a row
	perSec  float64     // the pace; 0 if it has no bound
	tokens  float64     // of a bucket with room for one request, which perSec fills
	filled  time.Time   // when it was last filled
	sent    []time.Time // the requests of the last ten seconds
}

// left returns how long the next request must wait.
func (p *pace) left(now time.Time) time.Duration {
	left := p.until.Sub(now)
	if now.Sub(p.limited) > forgotten {
		p.perSec = 0
	}
	if p.perSec == 0 {
		return left
	}
	before, after := max(0, p.filled.Sub(p.limited).Seconds()), now.Sub(p.limited).Seconds()
	p.perSec += growth * (after*after - before*before)
	p.tokens = min(1, p.tokens+p.perSec*now.Sub(p.filled).Seconds())
	p.filled = now
	if p.tokens >= 1 {
		return left
	}
	return max(left, time.Duration((1-p.tokens)/p.perSec*float64(time.Second))+time.Microsecond)
}

// send records a request.
func (p *pace) send(now time.Time) {
	p.tokens--
	for len(p.sent) > 0 && now.Sub(p.sent[0]) > measured {
		p.sent = p.sent[1:]
	}
	p.sent = append(p.sent, now)
}

// present returns how many requests a second have been sent lately.
func (p *pace) present(now time.Time) float64 {
	if len(p.sent) == 0 {
		return 0
	}
	return float64(len(p.sent)) / max(time.Second, now.Sub(p.sent[0])).Seconds()
}

// rejected records a 429 to a request that was sent at sentAt. random is from 0 to 1. Requests that were sent before the last
// 429 came say nothing new, unless the service asks for a longer pause.
func (p *pace) rejected(now, sentAt time.Time, retryAfter time.Duration, random float64) time.Duration {
	pause := min(retryAfter, longestPause)
	if sentAt.After(p.limited) {
		p.row++
		pause = max(pause, time.Duration(random*float64(time.Second<<min(p.row, 4))))
		if p.left(now); p.perSec == 0 { // it has grown until now, or been forgotten
			p.perSec, p.tokens = p.present(now), 0
		}
		p.perSec = max(leastPace, p.perSec/2)
		p.limited, p.filled = now, now
	}
	if !now.Add(pause).After(p.until) {
		return 0
	}
	p.until = now.Add(pause)
	return pause
}
