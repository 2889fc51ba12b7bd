package test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// rules checks what a Client owes the service, request by request: it pauses after a
// 429, keeps its rate, ends an attempt that takes too long, and asks storage for
// permission before it sends a body.
type rules struct {
	mu        sync.Mutex
	pauses    []pause
	requests  []time.Time // within the last second
	perSecond int         // the most requests in any second; 0 for no limit
}

// pause is a time in which no request may start. A request that starts together with
// it may have been on its way.
type pause struct{ from, to time.Time }

// How long an attempt may take, and how long the Client pauses after a 429.
const (
	maxAttempt       = 30 * time.Second
	maxUploadAttempt = 5*time.Minute + 20*time.Second // the response to the body may take five minutes
	minPause         = 500 * time.Millisecond
	maxPause         = 60 * time.Second
)

// forget is for a new Client on the same network, which knows no pauses.
func (c *rules) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses = nil
}

// checkStart checks the moment at which a request starts.
func (c *rules) checkStart(op minutes.Operation, req *http.Request) (wrong string) {
	if op == minutes.OpUpload {
		if req.Header.Get("Expect") != "100-continue" {
			return "an upload without Expect: 100-continue"
		}
		return ""
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pause := range c.pauses {
		if pause.from.Before(now) && now.Before(pause.to) {
			wrong = fmt.Sprintf("%s %v before the end of the pause after a 429", op, pause.to.Sub(now))
		}
	}
	for len(c.requests) > 0 && now.Sub(c.requests[0]) >= time.Second {
		c.requests = c.requests[1:]
	}
	if c.requests = append(c.requests, now); c.perSecond > 0 && len(c.requests) > c.perSecond {
		wrong = fmt.Sprintf("%d requests in a second", len(c.requests))
	}
	return wrong
}

// checkEnd checks how long an attempt took, with its response, and records a 429 that
// was read to its end.
func (c *rules) checkEnd(t *attempt, resp *http.Response) (wrong string) {
	op, begun, longest := t.op, t.begun, maxAttempt
	if op == minutes.OpUpload { // to wait for a connection does not count
		begun, longest = t.connected, maxUploadAttempt
	}
	if took := time.Since(begun); !begun.IsZero() && took > longest {
		return fmt.Sprintf("an attempt of %s took %v", op, took)
	}
	if op == minutes.OpUpload || resp == nil || resp.StatusCode != http.StatusTooManyRequests {
		return ""
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses = append(c.pauses, pause{now, now.Add(max(minPause, min(retryAfterOf(resp, now), maxPause)))})
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
