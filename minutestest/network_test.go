package minutestest_test

import (
	"context"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// inAndOut runs a test with real time and in a bubble.
func inAndOut(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Run("real time", func(t *testing.T) {
		t.Parallel()
		f(t)
	})
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

// An error that comes before the body has been sent is read completely, with and without Expect:
// 100-continue, and costs no time. Nothing sleeps afterwards.
func TestNetwork_DeliversEarlyError(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		s := minutestest.NewServer(t)
		c := callerOf(s)
		url := c.uploadURL(t, c.create(t, "Rejected"))
		recording := strings.Repeat("x", 1<<19)
		start := time.Now()
		for _, kind := range []string{"of known length", "expects 100", "chunked"} {
			for i := range testbase.Many(20, 8) {
				rejection := strings.Repeat("no", i%2*5000)
				s.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Respond(403, "", rejection))
				a := c.send("PUT", url, recording, func(r *http.Request) {
					if kind == "chunked" {
						r.ContentLength = -1
					}
					if kind == "expects 100" {
						r.Header.Set("Expect", "100-continue")
					}
				})
				require.NoError(t, a.err, kind)
				assert.Equal(t, 403, a.status)
				assert.Len(t, a.text, len(rejection))
			}
		}
		if start.Year() == 2000 { // in the bubble, no time-out was used up
			assert.Less(t, time.Since(start), 2*time.Second)
		}
	})
}

// A request ends when its client goes, also while nobody reads its body.
func TestNetwork_EndsRequestOfClientThatLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := minutestest.NewServer(t)
		c := callerOf(s)
		url := c.uploadURL(t, c.create(t, "Left"))
		s.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := c.send("PUT", url, strings.Repeat("x", 1<<20), func(r *http.Request) { *r = *r.WithContext(ctx) })
		require.ErrorIs(t, a.err, context.DeadlineExceeded)
		synctest.Wait()
		require.Len(t, s.Requests(minutes.OpUpload), 1)
		assert.Equal(t, time.Minute, s.Requests(minutes.OpUpload)[0].Took)
	})
}

// Close cuts the connections of its Server, and makes no other.
func TestNetwork_IsCutByClose(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		s := minutestest.New()
		other := minutestest.NewServer(t)
		s.Inject(minutestest.Match{}, minutestest.Call(func(minutestest.Request) { assert.NoError(t, s.Close()) }))
		require.ErrorIs(t, callerOf(s).send("GET", "/v1/usage", "").err, syscall.ECONNRESET)
		require.ErrorContains(t, callerOf(s).send("GET", "/v1/usage", "").err, "the Server is closed")
		require.NoError(t, callerOf(other).send("GET", "/v1/usage", "").err)
		_, err := other.HTTPClient().Get("https://example.com/")
		require.ErrorContains(t, err, "no such host in this in-memory network")
	})
}
