package test

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
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
		require.Error(t, err)
		require.Empty(t, problemOf(op, status, got, err))
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
		require.Empty(t, problemOf(op, http.StatusOK, got, err))
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

// problemOf describes the problem with the result of a call, or returns "".
func problemOf(op testkit.Operation, status int, got any, err error) string {
	zero := got == nil || reflect.ValueOf(got).IsZero()
	if err == nil {
		if status/100 != 2 {
			return "a success from an error response"
		}
		if zero && op.Response != "" && op.Name != "meetings.transcript" {
			return "neither value nor error"
		}
		return ""
	}
	failed, ok := err.(*minutes.Error)
	text := err.Error()
	switch {
	case !zero:
		return "a value and an error"
	case !ok:
		return fmt.Sprintf("an error of type %T", err)
	case failed.StatusCode != status:
		return "another status"
	case failed.Method != op.Method || failed.Path != op.Path:
		return "another request"
	case failed.Code == "" && failed.Message == "":
		return "an error that says nothing"
	case strings.ContainsAny(text, "\n\r\x00\x1b"):
		return "a text of more than one line"
	case strings.Contains(text, "invalid character"), strings.Contains(text, "unexpected end"):
		return "a message of the decoder"
	case len(text) > 5000:
		return "a text too long"
	}
	return ""
}
