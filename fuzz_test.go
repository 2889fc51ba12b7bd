package minutes_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/testkit"
)

// For a long run: go test -run '^$' -fuzz FuzzErrorEnvelope -fuzztime 10m .
func FuzzErrorEnvelope(f *testing.F) {
	seed(f, "error", func(body string) { f.Add(404, body, "application/json") })
	f.Add(429, "slow down", "text/plain")
	f.Add(502, "<html>", "text/html")
	f.Add(302, "", "")
	f.Add(0, `{"error":{"code":"A\u0000B","message":"\ud800","details":{"a":[{}]}}}`, "\x00")
	op := operationNamed(f, "usage.get")
	f.Fuzz(func(t *testing.T, status int, body, contentType string) {
		if status/100 == 2 {
			return
		}
		client, _ := answering(t, canned(status, body, "Content-Type", contentType))
		got, err := op.Call(t.Context(), client)
		reply := &mutant{status: status, header: http.Header{"Content-Type": {contentType}}, body: []byte(body)}
		require.Error(t, err)
		require.Empty(t, wrongWith(op, reply, got, err))
	})
}

// For a long run: go test -run '^$' -fuzz FuzzMeetingPage -fuzztime 10m .
func FuzzMeetingPage(f *testing.F) {
	seed(f, "meeting_page", func(body string) { f.Add(body) })
	f.Add(`{"meetings":[null]}`)
	f.Add(`{"meetings":[{"id":"a","status":"b","created_at":1e3}]}`)
	op := operationNamed(f, "meetings.list")
	f.Fuzz(func(t *testing.T, body string) {
		client, _ := answering(t, canned(200, body))
		got, err := op.Call(t.Context(), client)
		require.Empty(t, wrongWith(op, &mutant{status: 200, body: []byte(body)}, got, err))
		if page, ok := got.(*minutes.MeetingPage); ok && err == nil {
			for _, m := range page.Meetings {
				require.NotEmpty(t, m.ID)
				require.NotEmpty(t, m.Status)
			}
		}
	})
}

// A listing ends, with each meeting once for each page it is on, whatever
// cursors the service gives: the words of script are pages, and their bytes
// the cursors that lead on.
//
// For a long run: go test -run '^$' -fuzz FuzzCursors -fuzztime 10m .
func FuzzCursors(f *testing.F) {
	f.Add("bc ca ab")
	f.Add("b c d")
	f.Add("aaa")
	f.Add("")
	f.Fuzz(func(t *testing.T, script string) {
		pages := strings.Split(script, " ")
		synctest.Test(t, func(t *testing.T) {
			requests := 0
			client, _ := answering(t, func(*http.Request) (*http.Response, error) {
				next := pages[requests%len(pages)]
				requests++
				page := `{"meetings":[{"id":"mtg","status":"created"}],"next_cursor":` + quoted(next) + `}`
				return httpmock.NewStringResponse(200, page), nil
			})
			seen, failures := 0, 0
			for m, err := range client.Meetings.All(t.Context(), nil) {
				if require.NotEqual(t, m == nil, err == nil); err != nil {
					failures++
					continue
				}
				seen++
			}
			require.LessOrEqual(t, failures, 1)
			require.Equal(t, requests, seen)
			require.LessOrEqual(t, requests, len(pages)+1)
		})
	})
}

// quoted writes a JSON string, invalid bytes as they are.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ':
			b.WriteString(`\u0020`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// seed hands over the fixtures of one kind.
func seed(f *testing.F, kind string, add func(body string)) {
	all := testkit.Fixtures(kind)
	require.NotEmpty(f, all)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(all[name])
	}
}
