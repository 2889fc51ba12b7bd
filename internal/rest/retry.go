package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/roundtrip"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// tryAgain is called after each attempt. It decides whether to try again, and if so
// waits first. If only the end of ctx forbids the retry, the error is ctx's.
func tryAgain(ctx context.Context, _ *http.Response, err error) (again bool, _ error) {
	c := ctx.(*apiCall)
	neverSent := err != nil && c.conn != nil && c.conn.NeverMade(err)
	// A 4xx took no effect, even if its body broke off.
	c.outcome.Acted = c.outcome.Acted || !neverSent && c.status/100 != 4
	var retryAfter, coolDown time.Duration
	if err == nil {
		retryAfter = c.outcome.RetryAfter
	}
	wait := c.client.Retries.Wait(int(c.attempts.Load()), retryAfter)
	// A 429 starts a cool-down for all requests (limiter.go). Only the poller sends a list
	// request with Once; it slows its pages down itself, and holds nobody else back.
	polled := c.once && c.outcome.Route.Operation == route.MeetingsList
	if err == nil && c.status == http.StatusTooManyRequests && !polled {
		coolDown = c.client.coolDown(wait)
	}
	safe := c.safe(err, neverSent)
	// Do not retry if the wait (or a cool-down from another call) would outlast the deadline,
	// or if Retry-After is over a minute: the caller gets this reply instead.
	again = safe && retryAfter <= backoff.Longest && backoff.Outlives(c, max(wait, c.client.cooling())) && c.Err() == nil
	if c.client.Observe != nil {
		c.client.Observe(c, Attempt{time.Since(c.began), err, again, wait, coolDown, &c.outcome})
	}
	var stopErr error
	if again {
		if stopErr = backoff.Sleep(c, wait); stopErr == nil {
			stopErr = c.wait()
		}
	} else if safe && err == nil {
		stopErr = c.Err()
	}
	if stopErr != nil && err != nil { // report also why the attempt failed
		c.outcome.Causes = []error{c.client.Mask.Err(err)}
	}
	return again && stopErr == nil, stopErr
}

// safe reports whether another attempt does no harm. neverSent: this one certainly was not sent.
func (c *apiCall) safe(err error, neverSent bool) bool {
	switch {
	case c.once || int(c.attempts.Load()) > c.client.Retries.Max || roundtrip.Untrusted(err):
		return false
	case neverSent, err == nil && c.status == http.StatusTooManyRequests: // refused before anything was done
		return true
	case err != nil, c.status == http.StatusInternalServerError, c.status == http.StatusBadGateway,
		c.status == http.StatusServiceUnavailable, c.status == http.StatusGatewayTimeout:
		return c.repeatable
	}
	return false
}
