package poll

import "time"

const (
	firstPause    = time.Second      // after the first 429 without a Retry-After
	maxPause      = 30 * time.Second // the longest pause that the pacer chooses itself
	maxRetryAfter = 5 * time.Minute  // the longest Retry-After of a 429 that is obeyed
	maxOutage     = 15 * time.Minute // the longest Retry-After of another failure that is obeyed
	minShare      = 1.0 / 16         // the smallest share of the wanted pace
	outageAfter   = 5                // failures in a row, of different requests, that are an outage
)

// pacer paces all requests, pages and polls alike. A 429 makes it pause and then halves the
// pace. Good responses restore the full pace within a minimum poll interval.
type pacer struct {
	slot    time.Duration // earliest time of the next request at the present pace
	until   time.Duration // end of the latest pause
	share   float64       // fraction of the wanted pace in use, from minShare to 1
	changed time.Duration // share grows from this time on; in the future during a pause
	limited int           // 429s in a row

	failed int    // other failures in a row
	first  *watch // whose poll failed first; nil: a page
	mixed  bool   // the failures are of different requests
}

// use takes the next slot. perSecond is the wanted pace.
func (c *pacer) use(now time.Duration, perSecond float64) {
	c.slot = max(now, c.slot) + time.Duration(float64(time.Second)/(perSecond*c.share))
}

// good records a response that shows that the service works. It reports whether that ends an outage.
func (c *pacer) good(now time.Duration) (recovered bool) {
	recovered = c.out()
	c.limited, c.failed, c.mixed = 0, 0, false
	if since := now - c.changed; since > 0 { // in a pause, the request was sent before the pause began
		c.share = min(1, c.share+float64(since)/float64(minPollInterval))
		c.changed = now
	}
	return recovered
}

// rateLimited records a 429. Without a Retry-After the pause is longer after each 429 in a row.
func (c *pacer) rateLimited(now, sentAt, retryAfter time.Duration) {
	if sentAt < c.until {
		return // sent before the pause began: already counted
	}
	pause := min(retryAfter, maxRetryAfter)
	if pause <= 0 {
		pause = min(firstPause<<min(c.limited, 10), maxPause)
	}
	c.limited++
	c.until = now + pause
	c.share = max(minShare, c.share/2)
	c.changed = c.until
}

// fail records another failure, of a poll of w or of a page. In an outage the pacer pauses, longer
// after each failure. fail reports whether the failure counts for every wait.
func (c *pacer) fail(w *watch, now, sentAt, retryAfter time.Duration) (outage bool) {
	if sentAt < c.until {
		return false
	}
	if c.failed == 0 {
		c.first = w
	}
	c.mixed = c.mixed || w != c.first
	if c.failed++; !c.out() {
		return false
	}
	pause := min(firstPause<<min(c.failed-outageAfter, 10), maxPause)
	c.until = now + max(pause, min(retryAfter, maxOutage))
	return true
}

// out reports whether the service seems to be out.
func (c *pacer) out() bool { return c.mixed && c.failed >= outageAfter }
