package minutes

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

// retries says how often to repeat and how long to wait before.
type retries struct {
	max              int // repeats after the first try
	waitMin, waitMax time.Duration
}

// backoff draws the wait before repeat n, from 1: anything between waitMin and
// waitMin·2ⁿ or waitMax, so that clients that failed together do not come back
// together.
func (r retries) backoff(n int) time.Duration {
	top := r.waitMin
	for range n {
		if top >= r.waitMax/2 {
			top = r.waitMax
			break
		}
		top *= 2
	}
	return r.waitMin + rand.N(top-r.waitMin+1)
}

// wait is the wait before repeat n where the service asked for one: somewhat
// longer than asked, so that not all come back at once.
func (r retries) wait(n int, asked time.Duration) time.Duration {
	wait := r.backoff(n)
	if asked > 0 {
		wait = max(wait, asked+rand.N(min(asked, r.waitMin)+1))
	}
	return wait
}

// call is one API call on its way through the layers. It travels as the
// context of its request, which is how each layer finds it.
type call struct {
	context.Context // the caller's

	core  *core
	row   boundRoute
	path  string // escaped, without the base URL's own
	once  bool   // not repeated, however it fails
	again bool   // may be sent again after a try that may have taken effect

	// What is sent. Nothing of it changes once the first try has begun: one that
	// was abandoned may still be reading it.
	url url.URL
	req retryablehttp.Request

	tries        int
	last         lastReply
	traced       *tryTrace     // of the current try; nil where it does not matter
	lost         error         // of the last try, if it got no reply
	wait         time.Duration // before the next try
	mayHaveActed bool          // an earlier try may have taken effect
}

// tryTrace is what net/http tells of a try's connection, from goroutines that
// may outlive the try.
type tryTrace struct{ asked, got atomic.Bool }

// retryingClient sets go-retryablehttp up: the policy is settle, the wait is
// made where the call is at hand, and the last reply comes back as it is.
func (c *core) retryingClient(hc *http.Client) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: hc,
		RetryMax:   c.retries.max,
		CheckRetry: func(ctx context.Context, _ *http.Response, err error) (bool, error) {
			return ctx.(*call).settle(err)
		},
		Backoff: func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 },
		PrepareRetry: func(req *http.Request) error {
			call := req.Context().(*call)
			if err := sleep(call, call.wait); err != nil {
				return err
			}
			return c.pace.wait(call)
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// run makes the call. Without an error the last reply is a success.
func (c *call) run() error {
	if err := c.core.pace.wait(c); err != nil {
		return c.fail(err)
	}
	resp, err := c.core.api.Do(&c.req)
	if resp != nil {
		_ = resp.Body.Close() // read long since; a reply that never went through wire has none
	}
	if err != nil {
		e := c.fail(err)
		if c.lost != nil && !errors.Is(err, c.lost) {
			// ctx ended a wait for another try: tell why that was needed.
			e.causes = append([]error{c.core.mask.Err(c.lost)}, e.causes...)
		}
		return e
	}
	if c.last.status/100 == 2 {
		return nil
	}
	e := c.refusal()
	if c.row.Method == http.MethodDelete && c.mayHaveActed && e.StatusCode == http.StatusNotFound && e.Code == ErrNotFound {
		return nil // the meeting is gone because an earlier try did it
	}
	return e
}

// settle looks at a try that ended and decides whether another follows. Where
// that fails on a context that is done, its error joins the reply.
func (c *call) settle(err error) (again bool, _ error) {
	c.lost = err
	switch {
	case err != nil:
		// No reply, or not all of it. What certainly never left may always be
		// sent again.
		never := c.neverSent(err)
		again = (never || c.again) && !permanent(err)
		c.mayHaveActed = c.mayHaveActed || !never && !refused(err)
	case c.last.status == http.StatusTooManyRequests:
		again = true // refused at the edge: nothing was done
	case c.last.status == http.StatusInternalServerError,
		c.last.status == http.StatusBadGateway,
		c.last.status == http.StatusServiceUnavailable,
		c.last.status == http.StatusGatewayTimeout:
		again = c.again
		c.mayHaveActed = true
	}
	worth := c.plan(err)
	again = again && !c.once && c.tries <= c.core.retries.max
	var over error
	if again && err == nil {
		over = c.Err()
	}
	again = again && worth && c.Err() == nil
	c.logTry(err, again)
	return again, over
}

// plan sets the wait before the next try and reports whether that is worth
// it: a caller is better off with the reply at hand than with a wait that
// outlasts its deadline, or one that the service wants to be very long.
func (c *call) plan(err error) bool {
	var after time.Duration
	if err == nil {
		after, _ = c.retryAfter()
	}
	c.wait = c.core.retries.wait(c.tries, after)
	// A page that the poller reads holds no other request back: it has a pace of
	// its own, and no wait may miss its look for it.
	page := c.once && c.row.Path == c.core.routes[route.MeetingsList].Path
	if err == nil && c.last.status == http.StatusTooManyRequests && !page {
		c.core.pace.coolDown(c.wait)
	}
	if after > maxCoolDown {
		return false
	}
	// Another call's 429 may hold this one back for longer.
	return outlives(c, max(c.wait, c.core.pace.coolingFor()))
}

// outlives reports whether ctx's deadline is further away than d.
func outlives(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > d
}

// refused reports that of a refusal at least the status came.
func refused(err error) bool {
	broken, ok := errors.AsType[*brokenReply](err)
	return ok && broken.status/100 == 4
}

// neverSent reports that the try certainly did not reach the service: it asked
// for a connection and got none. Transports that do not say so get no benefit
// of the doubt.
func (c *call) neverSent(err error) bool {
	return notDialled(err) || c.traced != nil && c.traced.asked.Load() && !c.traced.got.Load()
}

// notDialled reports that no connection was made, by the error alone.
func notDialled(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// permanent reports errors of the connection that another try will not cure: a
// certificate that is not the service's.
func permanent(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// logTry tells a debug log about a try that ended.
func (c *call) logTry(err error, again bool) {
	log := c.core.log
	if log == nil || !log.Enabled(c, slog.LevelDebug) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs,
		slog.String("operation", string(c.row.Operation)),
		slog.String("method", c.row.Method),
		slog.String("path", c.path),
		slog.Int("attempt", c.tries),
	)
	if err != nil {
		attrs = append(attrs, slog.String("error", c.core.mask.Err(err).Error()))
	} else {
		attrs = append(attrs, slog.Int("status", c.last.status))
		if c.last.status/100 != 2 {
			e := c.refusal()
			attrs = append(attrs, slog.String("code", string(e.Code)), slog.String("request_id", e.RequestID))
		}
	}
	if again {
		attrs = append(attrs, slog.Duration("wait", c.wait))
	}
	log.LogAttrs(c, slog.LevelDebug, "minutes: try of a request", attrs...)
}
