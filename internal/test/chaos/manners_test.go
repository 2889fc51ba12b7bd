package chaos_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// manners are what a Client owes the service whatever happens, seen request by
// request: it cools down after a 429, keeps its rate, ends a try that takes too
// long, and asks storage for leave before it sends a body.
type manners struct {
	mu       sync.Mutex
	cools    []coolDown
	requests []time.Time // within the last second
	perPeak  int         // requests in any second, 0: as many as it likes
}

// coolDown is a time in which no request may begin. One that begins with it may
// have been on its way.
type coolDown struct{ from, to time.Time }

// How long a try may take, and how long a 429 without Retry-After is at least
// waited for.
const (
	longestTry    = 30 * time.Second
	longestStall  = 5*time.Minute + 20*time.Second // the reply after the body may take that long
	leastCoolDown = 500 * time.Millisecond
	mostCoolDown  = 60 * time.Second
)

// forget is for a new Client on the same network: it knows of no cool-down.
func (c *manners) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cools = nil
}

// begins checks the moment at which a request goes out.
func (c *manners) begins(op minutes.Operation, req *http.Request) (wrong string) {
	if op == minutestest.OpUpload {
		if req.Header.Get("Expect") != "100-continue" {
			return "an upload that does not ask for leave"
		}
		return ""
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cool := range c.cools {
		if cool.from.Before(now) && now.Before(cool.to) {
			wrong = fmt.Sprintf("%s %v before the cool-down after a 429 was over", op, cool.to.Sub(now))
		}
	}
	for len(c.requests) > 0 && now.Sub(c.requests[0]) >= time.Second {
		c.requests = c.requests[1:]
	}
	if c.requests = append(c.requests, now); c.perPeak > 0 && len(c.requests) > c.perPeak {
		wrong = fmt.Sprintf("%d requests in a second", len(c.requests))
	}
	return wrong
}

// ended checks how long a try took, its reply included, and takes note of a 429
// that was read to its end.
func (c *manners) ended(op minutes.Operation, begun time.Time, resp *http.Response) (wrong string) {
	longest := longestTry
	if op == minutestest.OpUpload {
		longest = longestStall
	}
	if took := time.Since(begun); took > longest {
		return fmt.Sprintf("a try of %s took %v", op, took)
	}
	if op == minutestest.OpUpload || resp == nil || resp.StatusCode != http.StatusTooManyRequests {
		return ""
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cools = append(c.cools, coolDown{now, now.Add(max(leastCoolDown, min(retryAfterOf(resp, now), mostCoolDown)))})
	return ""
}

func retryAfterOf(resp *http.Response, now time.Time) time.Duration {
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return date.Sub(now)
	}
	return 0
}
