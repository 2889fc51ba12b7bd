package testkit

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Ages is longer than any test.
const Ages = 100_000 * time.Hour

// Looks are what a Client asked for to follow meetings, as the wire shows it.
type Looks struct {
	Next http.RoundTripper

	mu    sync.Mutex
	at    []time.Time
	pages int
	shown map[string][]time.Time // each meeting, by itself
	paged map[string]time.Time   // each meeting, by the latest page
}

// Follow waits for meetings none of which ends before ctx.
func Follow(ctx context.Context, t testing.TB, c *minutes.Client, ids []string, opts *minutes.WaitOptions) {
	t.Helper()
	for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), opts) {
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

// WatchLooks returns a Client of srv and its looks, which go over connections
// where tests are to be thorough.
func WatchLooks(srv *minutestest.Server, opts ...minutes.Option) (*minutes.Client, *Looks) {
	next := Direct(srv).Transport
	if testbase.Long() || testbase.UnderRace {
		next = srv.HTTPClient().Transport
	}
	l := &Looks{Next: next, shown: map[string][]time.Time{}, paged: map[string]time.Time{}}
	return WatchedBy(srv, l, opts...), l
}

// WatchedBy returns a Client of srv that has no limit of its own and a network
// of its own.
func WatchedBy(srv *minutestest.Server, network http.RoundTripper, opts ...minutes.Option) *minutes.Client {
	return Client(srv, append([]minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: network}), minutes.WithRateLimit(0, 0)}, opts...)...)
}

func (l *Looks) RoundTrip(r *http.Request) (*http.Response, error) {
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
			l.shown[id] = append(l.shown[id], now)
		}
	}
	return resp, nil
}

// At is when each request was answered, so far.
func (l *Looks) At() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// Len is how many requests there were so far.
func (l *Looks) Len() int { return len(l.At()) }

// Pages is how many pages there were so far.
func (l *Looks) Pages() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pages
}

// Of is when a meeting was shown by itself.
func (l *Looks) Of(id string) []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown[id]
}

// Last is when a meeting was last shown, by itself or by a page.
func (l *Looks) Last(id string) time.Time {
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

// TooSoon counts the times that one of ids was shown by itself within thirty
// seconds of the time before.
func (l *Looks) TooSoon(ids []string) int {
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

// Most is the largest number of requests within d.
func (l *Looks) Most(d time.Duration) int {
	at, most := l.At(), 0
	for i, j := 0, 0; j < len(at); j++ {
		for at[j].Sub(at[i]) >= d {
			i++
		}
		most = max(most, j-i+1)
	}
	return most
}

// Slow is a network on which the service sees a GET, and what it shows then
// arrives, some time later.
type Slow struct {
	Next      http.RoundTripper
	Out, Back time.Duration
	Loses     error     // the reply
	Careless  bool      // of the request's context
	Until     time.Time // where it is not zero
}

// WatchLateLooks is WatchLooks where replies take their time.
func WatchLateLooks(srv *minutestest.Server, back time.Duration) (*minutes.Client, *Looks) {
	_, l := WatchLooks(srv)
	return WatchedBy(srv, &Slow{Next: l, Back: back}), l
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

// WaitFor is a wait for a while that a meeting does not end in, and how it saw
// the meeting last.
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

// RequireQuiet checks that a Client with no waits makes no requests. It takes an
// hour.
func RequireQuiet(t testing.TB, l *Looks) {
	t.Helper()
	n := l.Len()
	time.Sleep(time.Hour)
	require.Equal(t, n, l.Len(), "requests when nobody waits")
}
