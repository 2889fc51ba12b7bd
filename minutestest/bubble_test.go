package minutestest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A Client that was made outside would wait in a bubble until the year of the real clock. It fails
// at once instead, and says where to make it.
func TestClient_FromOutsideFailsInABubble(t *testing.T) {
	t.Parallel()
	srv := minutestest.NewServer(t)
	client := srv.Client()
	other, err := minutes.New(minutestest.BaseURL, srv.Key(), minutes.WithHTTPClient(srv.HTTPClient()))
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		const want = "made outside the synctest bubble that uses it: call Server.Client inside the bubble"
		began := time.Now()
		_, err := other.Usage.Get(t.Context())
		require.ErrorContains(t, err, want)
		_, err = client.Usage.Get(t.Context())
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, minutes.ErrBadRequest, "so it is not sent again")
		_, err = client.Meetings.Wait(t.Context(), "mtg_1", nil)
		require.ErrorContains(t, err, want)
		_, err = client.Meetings.Process(t.Context(), weekly(), minutestest.SlowRecording(10, 10), nil)
		require.ErrorContains(t, err, want)
		assert.Zero(t, time.Since(began))
		_, err = srv.Client().Usage.Get(t.Context())
		require.NoError(t, err)
	})
	require.Len(t, srv.Requests(), 1, "the service saw only the Client on the right side")
}

// Go itself stops a [minutes.Client] from a bubble that is used outside. A plain client says the
// same.
func TestNewHTTPClient_FromABubbleFailsOutside(t *testing.T) {
	t.Parallel()
	srv := minutestest.NewServer(t)
	var c *caller
	synctest.Test(t, func(*testing.T) { c = &caller{srv.NewHTTPClient(), minutestest.BaseURL, srv.Key()} })
	response := c.send("GET", "/v1/usage", "")
	require.Equal(t, 400, response.status)
	require.Contains(t, response.text,
		"made inside a synctest bubble and is used outside: call Server.Client outside any bubble")
}

// The client that all share is another one on each side.
func TestHTTPClient_WorksOnBothSidesOfABubble(t *testing.T) {
	t.Parallel()
	srv := minutestest.NewServer(t)
	synctest.Test(t, func(t *testing.T) { require.NoError(t, callerOf(srv).send("GET", "/v1/usage", "").err) })
	require.NoError(t, callerOf(srv).send("GET", "/v1/usage", "").err)
}

// A connection or a response in a bubble can be used only there, so a Server that was made outside
// leaves them alone when it closes, and the request goes on.
func TestClose_LeavesConnectionsOfABubbleAlone(t *testing.T) {
	t.Parallel()
	srv := unjudged(t)
	srv.Inject(minutestest.Match{Nth: 2}, minutestest.Delay(time.Hour))
	closed := make(chan struct{})
	underWay := make(chan struct{})
	go func() {
		<-underWay
		assert.NoError(t, srv.Close())
		close(closed)
	}()
	synctest.Test(t, func(t *testing.T) {
		unread, err := srv.HTTPClient().Get(minutestest.BaseURL + "/v1/usage")
		require.NoError(t, err)
		answered := make(chan response)
		go func() { answered <- callerOf(srv).send("GET", "/v1/usage", "") }()
		synctest.Wait() // the request waits for its fault
		close(underWay)
		<-closed // real time, because the channel is from outside
		require.Equal(t, 200, (<-answered).status)
		require.NoError(t, unread.Body.Close())
	})
}
