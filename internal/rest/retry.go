package rest

import (
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/roundtrip"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// ended decides whether another attempt follows the one that ended. A reply that
// might be asked for again, but for a context that is done, ends as that context.
func (c *call) ended(err error) (again bool, _ error) {
	c.lost = err
	may := c.may(err)
	worth, coolDown := c.plan(err)
	again = may && worth && c.Err() == nil
	if c.client.Observe != nil {
		c.client.Observe(c, Attempt{time.Since(c.began), err, again, c.wait, coolDown, &c.out})
	}
	if may && err == nil {
		return again, c.Err()
	}
	return again, nil
}

// may reports whether another attempt is safe, and notes where this one may have
// taken effect. A 4xx took none, even if its body broke off, and what certainly
// never left may always be sent again.
func (c *call) may(err error) bool {
	never := err != nil && c.conn != nil && c.conn.NeverMade(err)
	c.out.Acted = c.out.Acted || !never && c.heard/100 != 4
	switch {
	case c.once || int(c.attempts.Load()) > c.client.Retries.Max || roundtrip.Untrusted(err):
		return false
	case err != nil:
		return never || c.again
	}
	switch c.heard {
	case http.StatusTooManyRequests: // refused at the edge: nothing was done
		return true
	case http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return c.again
	}
	return false
}

// plan sets the wait before the next attempt and reports whether that is worth
// it: a caller is better off with the reply at hand than with a wait that
// outlasts its deadline, or one that the service wants to be very long. coolDown
// is how long this attempt made the Client cool down.
func (c *call) plan(err error) (worth bool, coolDown time.Duration) {
	var asked time.Duration
	if err == nil {
		asked = c.out.RetryAfter
	}
	c.wait = c.client.Retries.Wait(int(c.attempts.Load()), asked)
	// A page that is not to be repeated is the poller's, which slows its pages down
	// itself. A 429 on it holds nobody else back.
	page := c.once && c.out.Route.Operation == route.MeetingsList
	if err == nil && c.heard == http.StatusTooManyRequests && !page {
		coolDown = c.client.coolDown(c.wait)
	}
	// Another call's 429 may hold this one back for longer.
	wait := max(c.wait, c.client.cooling())
	return asked <= backoff.Longest && backoff.Outlives(c, wait), coolDown
}

// Attempt is one attempt of a request that has ended.
type Attempt struct {
	Took     time.Duration
	Err      error         // nil where there was a reply; may show a secret
	Again    bool          // another attempt follows,
	Wait     time.Duration // after this time
	CoolDown time.Duration // for which it holds all requests back; 0: it does not, or others do for longer
	*Failure               // what is known so far; to be read only
}
