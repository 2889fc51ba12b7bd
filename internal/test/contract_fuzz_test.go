package test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// For a long run: go test -run '^$' -fuzz FuzzErrorEnvelope -fuzztime 10m .
func FuzzErrorEnvelope(f *testing.F) {
	seed(f, "Envelope", func(body string) { f.Add(404, body, "application/json") })
	f.Add(429, "slow down", "text/plain")
	f.Add(502, "<html>", "text/html")
	f.Add(302, "", "")
	f.Add(0, `{"error":{"code":"A\u0000B","message":"\ud800","details":{"a":[{}]}}}`, "\x00")
	op := testkit.OperationNamed(f, "usage.get")
	f.Fuzz(func(t *testing.T, status int, body, contentType string) {
		if status/100 == 2 {
			return
		}
		client, _ := testkit.Responding(t, testkit.Canned(status, body, "Content-Type", contentType))
		got, err := op.Call(t.Context(), client)
		reply := &mutant{status: status, header: http.Header{"Content-Type": {contentType}}, body: []byte(body)}
		require.Error(t, err)
		require.Empty(t, problemOf(op, reply, got, err))
	})
}

// For a long run: go test -run '^$' -fuzz FuzzMeetingPage -fuzztime 10m .
func FuzzMeetingPage(f *testing.F) {
	seed(f, "MeetingPage", func(body string) { f.Add(body) })
	f.Add(`{"meetings":[null]}`)
	f.Add(`{"meetings":[{"id":"a","status":"b","created_at":1e3}]}`)
	op := testkit.OperationNamed(f, "meetings.list")
	f.Fuzz(func(t *testing.T, body string) {
		client, _ := testkit.Responding(t, testkit.Canned(200, body))
		got, err := op.Call(t.Context(), client)
		require.Empty(t, problemOf(op, &mutant{status: 200, body: []byte(body)}, got, err))
		if page, ok := got.(*minutes.MeetingPage); ok && err == nil {
			for _, m := range page.Meetings {
				require.NotEmpty(t, m.ID)
				require.NotEmpty(t, m.Status)
			}
		}
	})
}

// seed adds the responses of one kind.
func seed(f *testing.F, kind string, add func(body string)) {
	all := testkit.Objects[kind].Responses
	require.NotEmpty(f, all)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(all[name])
	}
}
