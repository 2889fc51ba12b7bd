package rest

import (
	"context"
	"fmt"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// coolDown holds back every request of the Client for d, at most a minute: a 429 says
// that all of them together are too many. It returns d, or 0 if a longer cool-down is
// already running.
func (c *Client) coolDown(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	d = min(d, backoff.Longest)
	if until := time.Now().Add(d); until.After(c.until) {
		c.until = until
		return d
	}
	return 0
}

// cooling returns how much is left of the cool-down. It is over at 0 or less.
func (c *Client) cooling() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := time.Until(c.until); d <= backoff.Longest {
		return d
	}
	return 0 // until is of another clock: the Client is in another synctest bubble
}

// wait waits until the request may be sent. If the deadline comes first it returns
// DeadlineExceeded at once. This wait does not count against the attempt's time limit.
func (c *apiCall) wait() error {
	for {
		for d := c.client.cooling(); d > 0; d = c.client.cooling() {
			if c.Err() == nil && !backoff.Outlives(c, d) {
				c.outcome.RetryAfter, c.outcome.Cooling = d, true
				return fmt.Errorf("the cool-down after a 429 outlasts the context's deadline: %w", context.DeadlineExceeded)
			}
			if err := backoff.Sleep(c, d); err != nil {
				return err
			}
		}
		err := c.client.Rate.Wait(c)
		if err != nil && c.Err() == nil { // the limiter's error is only a text (golang/go#54541)
			err = fmt.Errorf("the rate limit outlasts the context's deadline: %w", context.DeadlineExceeded)
		}
		if err != nil || c.client.cooling() <= 0 { // wait again if a 429 has arrived meanwhile
			return err
		}
	}
}
