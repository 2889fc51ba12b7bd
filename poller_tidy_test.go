package minutes

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What a Client knows of meetings that nobody waits for any more, it forgets
// when the floor has passed, also where it is not used again.
func TestPollerForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ready := roundTripFunc(func(r *http.Request) (*http.Response, error) {
			id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
			body := fmt.Sprintf(`{"id":%q,"title":"t","date":"2026-11-20","status":"minutes_ready","visibility":"private"}`, id)
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})
		c, err := New("https://minutes.example", "key", WithHTTPClient(&http.Client{Transport: ready}))
		require.NoError(t, err)
		for i := range 5 {
			_, err := c.Meetings.Wait(t.Context(), fmt.Sprint("mtg_", i), nil)
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
		}
		p := c.Meetings.core.poller
		known := func() int {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.watches)
		}
		assert.Equal(t, 3, known(), "within the floor")
		time.Sleep(2 * pollFloor)
		assert.Zero(t, known())
		assert.Empty(t, p.resting)
		assert.False(t, p.tidying)
	})
}
