package rest

import (
	"context"
	"fmt"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// coolDown holds every request of the Client back for d from now on, a minute at
// most: a 429 says that all of them are too many. It returns for how long, 0 where
// they are held back for longer already.
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

// cooling returns what is left of the cool-down, 0 or less if it is over.
func (c *Client) cooling() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := time.Until(c.until); d <= backoff.Longest {
		return d
	}
	return 0 // a time of another clock: the Client is in another synctest bubble
}

// wait lets a request wait until it may go out. Where its context will not live to see
// that, it returns at once, as the deadline would end it. The time is none of the
// attempt's, which has not begun.
func (c *call) wait() error {
	for {
		for d := c.client.cooling(); d > 0; d = c.client.cooling() {
			if c.Err() == nil && !backoff.Outlives(c, d) {
				c.out.RetryAfter, c.out.Cooling = d, true
				return fmt.Errorf("the cool-down after a 429 outlasts the context's deadline: %w", context.DeadlineExceeded)
			}
			if err := backoff.Sleep(c, d); err != nil {
				return err
			}
		}
		switch err := c.client.Rate.Wait(c); {
		case err != nil && c.Err() == nil: // the limiter's own refusal has a text alone (golang/go#54541)
			return fmt.Errorf("the rate limit outlasts the context's deadline: %w", context.DeadlineExceeded)
		case err != nil || c.client.cooling() <= 0: // else a 429 has arrived meanwhile
			return err
		}
	}
}
