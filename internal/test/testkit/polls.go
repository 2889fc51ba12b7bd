package testkit

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Polls records the polls of a Client, as seen on the wire.
type Polls struct {
	Next http.RoundTripper

	mu     sync.Mutex
	pages  int
	single map[string][]time.Time // the polls of each meeting
}

// WatchPolls returns a Client of srv and its polls. They use connections in a long run
// and under the race detector.
func WatchPolls(srv *minutestest.Server, opts ...minutes.Option) (*minutes.Client, *Polls) {
	next := Direct(srv).Transport
	if testbase.Long() || testbase.UnderRace {
		next = srv.HTTPClient().Transport
	}
	l := &Polls{Next: next, single: map[string][]time.Time{}}
	return WatchedBy(srv, l, opts...), l
}

// WatchedBy returns a Client of srv without a rate limit, on its own network.
func WatchedBy(srv *minutestest.Server, network http.RoundTripper, opts ...minutes.Option) *minutes.Client {
	return Client(srv, append([]minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: network}), minutes.WithRateLimit(0, 0)}, opts...)...)
}

func (l *Polls) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.Next.RoundTrip(r)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch op, id := Identify(r); op {
		case minutes.OpMeetingsList:
			l.pages++
		case minutes.OpMeetingsGet:
			l.single[id] = append(l.single[id], time.Now())
		}
	}
	return resp, err
}

// Pages returns the number of pages so far.
func (l *Polls) Pages() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pages
}

// TooSoon counts the polls of ids within thirty seconds of the previous poll.
func (l *Polls) TooSoon(ids []string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, id := range ids {
		at := l.single[id]
		for i := 1; i < len(at); i++ {
			if at[i].Sub(at[i-1]) < 30*time.Second {
				n++
			}
		}
	}
	return n
}

// Slow is a network that delays each response to a GET.
type Slow struct {
	Next http.RoundTripper
	Back time.Duration
}

func (d *Slow) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.Next.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet {
		return resp, err
	}
	select {
	case <-time.After(d.Back):
		return resp, nil
	case <-r.Context().Done():
		_ = resp.Body.Close()
		return nil, r.Context().Err()
	}
}

// WaitFor waits d for a meeting that does not end in that time. It returns the meeting
// as last seen.
func WaitFor(t testing.TB, c *minutes.Client, id string, d time.Duration, o *minutes.WaitOptions) *minutes.Meeting {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	_, err := c.Meetings.Wait(ctx, id, o)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	var wait *minutes.WaitError
	if !assert.ErrorAs(t, err, &wait) {
		return nil
	}
	return wait.Meeting
}
