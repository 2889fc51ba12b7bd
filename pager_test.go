package minutes_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
)

func TestAll_FollowsCursors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pages   map[string]string
		params  *minutes.MeetingListParams
		ids     string
		queries []string
		failure string
	}{
		"one page":                {pages: map[string]string{"": "a b c"}, ids: "a b c", queries: []string{"limit=50"}},
		"empty cursor at the end": {pages: map[string]string{"": "a>"}, ids: "a", queries: []string{"limit=50"}},
		"pages of many lengths": {
			pages: map[string]string{"": "a b>2", "2": "c>3", "3": "d e f>4", "4": "g"}, ids: "a b c d e f g",
			queries: []string{"limit=50", "cursor=2&limit=50", "cursor=3&limit=50", "cursor=4&limit=50"},
		},
		"empty pages in between": {
			pages: map[string]string{"": ">2", "2": ">3", "3": "a>4", "4": ">5", "5": ""}, ids: "a",
			queries: []string{
				"limit=50", "cursor=2&limit=50", "cursor=3&limit=50", "cursor=4&limit=50", "cursor=5&limit=50",
			},
		},
		"own limit": {
			pages: map[string]string{"": "a>2", "2": "b"}, params: &minutes.MeetingListParams{Limit: 7}, ids: "a b",
			queries: []string{"limit=7", "cursor=2&limit=7"},
		},
		"filters on every page": {
			pages:  map[string]string{"": "a>2", "2": "b"},
			params: &minutes.MeetingListParams{DateFrom: "2026-01-01", DateTo: "2026-02-01"}, ids: "a b",
			queries: []string{
				"date_from=2026-01-01&date_to=2026-02-01&limit=50",
				"cursor=2&date_from=2026-01-01&date_to=2026-02-01&limit=50",
			},
		},
		"from a cursor on": {
			pages: map[string]string{"2": "b>3", "3": "c"}, params: &minutes.MeetingListParams{Cursor: "2"}, ids: "b c",
			queries: []string{"cursor=2&limit=50", "cursor=3&limit=50"},
		},
		"external id only, since no other filter combines with it": {
			pages: map[string]string{"": "a"}, params: &minutes.MeetingListParams{ExternalID: "crm/1"}, ids: "a",
			queries: []string{"external_id=crm%2F1"},
		},
		"cursor repeated at once": {
			pages: map[string]string{"": "a>2", "2": "b>2"}, ids: "a b",
			queries: []string{"limit=50", "cursor=2&limit=50"},
			failure: "minutes: GET /v1/meetings: 200: the service repeated a cursor",
		},
		"cursors in a cycle": {
			pages: map[string]string{"": "a>2", "2": "b>3", "3": "c>4", "4": "d>2"}, ids: "a b c d",
			queries: []string{"limit=50", "cursor=2&limit=50", "cursor=3&limit=50", "cursor=4&limit=50"},
			failure: "minutes: GET /v1/meetings: 200: the service repeated a cursor",
		},
		"rejected cursor": {
			pages: map[string]string{"": "a>x"}, ids: "a", queries: []string{"limit=50", "cursor=x&limit=50"},
			failure: "minutes: GET /v1/meetings: 400 INVALID_CURSOR: m (request id r)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &book{pages: test.pages}
			ids, err := collect(t, t.Context(), b.client(t), test.params)
			require.Equal(t, test.ids, strings.Join(ids, " "))
			require.Equal(t, test.queries, b.queries)
			if test.failure == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.failure)
			_, ok := err.(*minutes.Error)
			require.True(t, ok, "%T", err)
		})
	}
}

// All requests a page only when the loop needs it, and none after the loop stops.
func TestAll_RequestsPagesWhenNeeded(t *testing.T) {
	t.Parallel()
	b := &book{pages: map[string]string{"": "a b>2", "2": "c d>3", "3": "e"}}
	client := b.client(t)
	all := client.Meetings.All(t.Context(), nil)
	require.Empty(t, b.queries, "nothing happens before the loop")

	requests := map[string]int{}
	for m, err := range all {
		require.NoError(t, err)
		requests[m.ID] = len(b.queries)
		if m.ID == "d" {
			break
		}
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 2, "d": 2}, requests)
	require.Len(t, b.queries, 2, "a stopped loop asks for no further page")

	for range all { // starts again
		break
	}
	require.Len(t, b.queries, 3)
	require.Equal(t, b.queries[0], b.queries[2])
}
