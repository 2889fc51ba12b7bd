package rest

import (
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// pause holds back every request of the Client for d, at most a minute: a 429 says that
// all of them together are too many. It returns d, or 0 if a longer pause is running.
func (c *Client) pause(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	d = min(d, backoff.Longest)
	if until := time.Now().Add(d); until.After(c.pausedUntil) {
		c.pausedUntil = until
		return d
	}
	return 0
}

// pauseLeft returns how much is left of the rate-limit pause. It is over at 0 or less.
func (c *Client) pauseLeft() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := time.Until(c.pausedUntil); d <= backoff.Longest {
		return d
	}
	return 0 // the pause began by the clock of another synctest bubble
}
