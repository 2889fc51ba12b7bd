package rest

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/roundtrip"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// retryingClient sets up go-retryablehttp. ended is its policy, and PrepareRetry
// waits, because the call is at hand there. The last reply comes back as it is.
func (c *Client) retryingClient() *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{Transport: transport{}},
		RetryMax:   c.Retries.Max,
		CheckRetry: func(ctx context.Context, _ *http.Response, err error) (bool, error) {
			return ctx.(*call).ended(err)
		},
		Backoff: func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 },
		PrepareRetry: func(req *http.Request) error {
			call := req.Context().(*call)
			if err := backoff.Sleep(call, call.wait); err != nil {
				return err
			}
			return c.turn(call)
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// ended decides whether another attempt follows the one that ended. Where only the
// end of the context prevents it, it returns the context's error.
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
	case err == nil && c.heard == http.StatusTooManyRequests: // refused at the edge: nothing was done
		return true
	case err == nil && !slices.Contains(passing, c.heard):
		return false
	}
	return never || c.again
}

// passing are the statuses of what may be over at the next attempt.
var passing = []int{
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
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
