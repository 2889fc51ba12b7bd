package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/roundtrip"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// ended notes what an attempt came to and decides whether another follows, for which
// it waits. A reply that might be asked for again, but for a context that is done, ends
// as that context.
func ended(ctx context.Context, _ *http.Response, err error) (again bool, _ error) {
	c := ctx.(*call)
	never := err != nil && c.conn != nil && c.conn.NeverMade(err)
	// A 4xx took no effect, even if its body broke off.
	c.out.Acted = c.out.Acted || !never && c.heard/100 != 4
	var asked, coolDown time.Duration
	if err == nil {
		asked = c.out.RetryAfter
	}
	wait := c.client.Retries.Wait(int(c.attempts.Load()), asked)
	// A page that is not to be repeated is the poller's, which slows its pages down
	// itself. A 429 on it holds nobody else back.
	page := c.once && c.out.Route.Operation == route.MeetingsList
	if err == nil && c.heard == http.StatusTooManyRequests && !page {
		coolDown = c.client.coolDown(wait)
	}
	safe := c.safe(err, never)
	// A caller is better off with the reply at hand than with a wait that outlasts its
	// deadline, also where another call's 429 makes it longer, or with a very long one.
	again = safe && asked <= backoff.Longest && backoff.Outlives(c, max(wait, c.client.cooling())) && c.Err() == nil
	if c.client.Observe != nil {
		c.client.Observe(c, Attempt{time.Since(c.began), err, again, wait, coolDown, &c.out})
	}
	var over error
	if again {
		if over = backoff.Sleep(c, wait); over == nil {
			over = c.wait()
		}
	} else if safe && err == nil {
		over = c.Err()
	}
	if over != nil && err != nil { // tell also how the attempt was lost
		c.out.Causes = []error{c.client.Mask.Err(err)}
	}
	return again && over == nil, over
}

// safe reports whether another attempt does no harm. never: this one certainly never left.
func (c *call) safe(err error, never bool) bool {
	switch {
	case c.once || int(c.attempts.Load()) > c.client.Retries.Max || roundtrip.Untrusted(err):
		return false
	case never, err == nil && c.heard == http.StatusTooManyRequests: // refused at the edge: nothing was done
		return true
	case err != nil, c.heard == http.StatusInternalServerError, c.heard == http.StatusBadGateway,
		c.heard == http.StatusServiceUnavailable, c.heard == http.StatusGatewayTimeout:
		return c.again
	}
	return false
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
