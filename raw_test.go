package minutes_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// ContextWithResponse gets the last response of a call, whether the call succeeds or fails.
func TestContextWithResponse_ReceivesFieldsThatTheTypesLack(t *testing.T) {
	t.Parallel()
	const page = `{"meetings":[{"id":"mtg_1","status":"created","new":7}]}`
	const meeting = `{"id":"mtg_1","status":"created","new":7}`
	for name, test := range map[string]struct {
		status int
		body   string
		call   func(context.Context, *minutes.Client) error
	}{
		"Get": {200, meeting, func(ctx context.Context, c *minutes.Client) error { _, err := c.Meetings.Get(ctx, "mtg_1"); return err }},
		"All": {200, page, func(ctx context.Context, c *minutes.Client) (err error) {
			for _, err = range c.Meetings.All(ctx, nil) {
			}
			return err
		}},
		"failed Create": {409, `{"error":{"code":"NEW","new":7}}`, func(ctx context.Context, c *minutes.Client) error {
			_, _, err := c.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "T"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := testkit.Responding(t, testkit.Canned(test.status, test.body, "X-New", testkit.Key, "Set-Cookie", "a=b"))
			var resp minutes.Response
			err := test.call(minutes.ContextWithResponse(t.Context(), &resp), c)
			require.Equal(t, test.status == 200, err == nil, "%v", err)
			require.Equal(t, minutes.Response{StatusCode: test.status, Header: http.Header{"X-New": {"***"}}, Body: []byte(test.body)}, resp)
		})
	}
}

func TestContextWithHeader_ReachesAPIRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []http.Header
		c, err := testkit.New("https://minutes.example", testkit.Key, minutes.WithHTTPClient(&http.Client{
			Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				sent = append(sent, req.Header)
				return testkit.Canned(200, `{"credits_remaining":1,"transcribe_seconds_remaining":1}`)(req)
			})}))
		require.NoError(t, err)
		ctx := minutes.ContextWithHeader(t.Context(), http.Header{"X-Outer": {"1"}, "X-Trace": {"outer"}})
		ctx = minutes.ContextWithHeader(ctx, http.Header{"X-Trace": {"7"}, "Authorization": {"Bearer other"}})
		_, err = c.Usage.Get(ctx)
		require.NoError(t, err)
		_, err = c.Do(ctx, minutes.Request{Method: "GET", Path: "/v1/usage", Header: http.Header{"X-Trace": {"8"}}}, nil)
		require.NoError(t, err)
		require.Len(t, sent, 2)
		for i, trace := range []string{"7", "8"} {
			require.Equal(t, "1", sent[i].Get("X-Outer"))
			require.Equal(t, trace, sent[i].Get("X-Trace"))
			require.Equal(t, "Bearer "+testkit.Key, sent[i].Get("Authorization"))
		}
	})
}
