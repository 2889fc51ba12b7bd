package testkit

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Ages is longer than any test.
const Ages = 100_000 * time.Hour

// Polls records the polls of a Client, as seen on the wire.
type Polls struct {
	Next http.RoundTripper

	mu     sync.Mutex
	at     []time.Time
	pages  int
	single map[string][]time.Time // the polls of each meeting
	paged  map[string]time.Time   // the latest page with each meeting
}

// WatchPolls returns a Client of srv and its polls. They use connections in a long run
// and under the race detector.
func WatchPolls(srv *minutestest.Server, opts ...minutes.Option) (*minutes.Client, *Polls) {
	next := Direct(srv).Transport
	if testbase.Long() || testbase.UnderRace {
		next = srv.HTTPClient().Transport
	}
	l := &Polls{Next: next, single: map[string][]time.Time{}, paged: map[string]time.Time{}}
	return WatchedBy(srv, l, opts...), l
}

// WatchedBy returns a Client of srv without a rate limit, on its own network.
func WatchedBy(srv *minutestest.Server, network http.RoundTripper, opts ...minutes.Option) *minutes.Client {
	return Client(srv, append([]minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: network}), minutes.WithRateLimit(0, 0)}, opts...)...)
}

func (l *Polls) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.Next.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || strings.HasSuffix(r.URL.Path, "/minutes") || strings.HasSuffix(r.URL.Path, "/transcript") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = append(l.at, now)
	page := strings.HasSuffix(r.URL.Path, "/meetings")
	if page {
		l.pages++
	}
	meetings := bytes.Split(body, []byte(`"id":"mtg_`))
	for _, m := range meetings[1:] {
		end, _, _ := bytes.Cut(m, []byte(`"`))
		if id := "mtg_" + string(end); page {
			l.paged[id] = now
		} else {
			l.single[id] = append(l.single[id], now)
		}
	}
	return resp, nil
}

// At returns when each request ended.
func (l *Polls) At() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// Len returns the number of requests so far.
func (l *Polls) Len() int { return len(l.At()) }

// Pages returns the number of pages so far.
func (l *Polls) Pages() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pages
}

// Of returns when a meeting was polled alone.
func (l *Polls) Of(id string) []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.single[id]
}

// Last returns when a meeting was last seen, alone or on a page.
func (l *Polls) Last(id string) time.Time {
	last := time.Time{}
	if at := l.Of(id); len(at) > 0 {
		last = at[len(at)-1]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paged[id].After(last) {
		return l.paged[id]
	}
	return last
}

// TooSoon counts the polls of ids within thirty seconds of the previous poll.
func (l *Polls) TooSoon(ids []string) int {
	n := 0
	for _, id := range ids {
		at := l.Of(id)
		for i := 1; i < len(at); i++ {
			if at[i].Sub(at[i-1]) < 30*time.Second {
				n++
			}
		}
	}
	return n
}

// Most returns the largest number of requests within d.
func (l *Polls) Most(d time.Duration) int {
	at, most := l.At(), 0
	for i, j := 0, 0; j < len(at); j++ {
		for at[j].Sub(at[i]) >= d {
			i++
		}
		most = max(most, j-i+1)
	}
	return most
}

// Slow is a network that delays each GET and its response.
type Slow struct {
	Next      http.RoundTripper
	Out, Back time.Duration
	Loses     error     // replaces the response
	Careless  bool      // ignores the request's context
	Until     time.Time // delays end then, if not zero
}

func (d *Slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || !d.Until.IsZero() && time.Now().After(d.Until) {
		return d.Next.RoundTrip(r)
	}
	if d.pass(r, d.Out) {
		return nil, r.Context().Err()
	}
	resp, err := d.Next.RoundTrip(r)
	if left := d.pass(r, d.Back); err == nil && (left || d.Loses != nil) {
		_ = resp.Body.Close()
		return nil, cmp.Or(r.Context().Err(), d.Loses)
	}
	return resp, err
}

func (d *Slow) pass(r *http.Request, t time.Duration) (left bool) {
	if d.Careless {
		time.Sleep(t)
		return r.Context().Err() != nil
	}
	select {
	case <-time.After(t):
		return false
	case <-r.Context().Done():
		return true
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
