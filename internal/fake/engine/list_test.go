package engine_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

type listed struct {
	Meetings   []struct{ ID string }
	NextCursor *string `json:"next_cursor"`
}

func (s *rig) list(key, query string) (ids []string, next string) {
	r := s.request(key, "GET /v1/meetings?"+query, "")
	var p listed
	err := json.Unmarshal(r.Body.Bytes(), &p)
	if err != nil || r.Code != 200 {
		panic(fmt.Sprint(r.Code, r.Body, err))
	}
	for _, m := range p.Meetings {
		ids = append(ids, m.ID)
	}
	if p.NextCursor != nil {
		next = *p.NextCursor
	}
	return ids, next
}

// TestListQuery is section 4.2 on the list's parameters, with D7, D19 and D25.
func TestListQuery(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	for range 60 {
		s.create("ci", "")
	}
	for query, want := range map[string]string{
		"": "25", "limit=1": "1", "limit=50": "50", "limit=07": "7", "unknown=1&unknown=2": "25", "cursor=": "25",
		"limit=": "INVALID_LIMIT", "limit=0": "INVALID_LIMIT", "limit=51": "INVALID_LIMIT", "limit=-1": "INVALID_LIMIT",
		"limit=1e1": "INVALID_LIMIT", "limit=%2B5": "INVALID_LIMIT", "limit=+5": "INVALID_LIMIT",
		"limit=5.0": "INVALID_LIMIT", "limit=99999999999999999999": "INVALID_LIMIT",
		"limit=%D9%A3": "INVALID_LIMIT", "limit": "INVALID_LIMIT",
		"%zz=1": "25", "li%6Dit=7": "7", "&limit=7&": "7",
		"cursor=x": "INVALID_CURSOR", "cursor=AAAAAAAAAAAAAAAAAAAAAAAAAAA": "INVALID_CURSOR",
		"date_from=": "INVALID_DATE", "date_to=": "INVALID_DATE", "date_from=2026-02-30": "INVALID_DATE",
		"date_to=1.1.2026":                        "INVALID_DATE",
		"date_from=2026-03-03&date_to=2026-03-02": "INVALID_DATE_RANGE",
		"date_from=2026-03-02&date_to=2026-03-02": "25", "date_from=2026-03-03": "0", "date_to=2026-03-01": "0",
		"date_from=2025-01-01&date_to=2027-01-01&limit=9": "9",
		"external_id=": "INVALID_EXTERNAL_ID", "external_id=" + strings.Repeat("x", 129): "INVALID_EXTERNAL_ID",
		"external_id=none": "0", "external_id=none&limit=5": "0", "external_id=none&cursor=": "0",
		"external_id=x&limit=0": "INVALID_LIMIT", "external_id=x&cursor=y": "INVALID_REQUEST",
		"external_id=x&date_from=2026-01-01": "INVALID_REQUEST", "external_id=&date_to=": "INVALID_REQUEST",
		"external_id=x&date_to=2026-01-01&limit=0": "INVALID_REQUEST",
	} {
		r := s.request("ci", "GET /v1/meetings?"+query, "")
		if r.Code != 200 {
			r.is(400, want)
			continue
		}
		ids, _ := s.list("ci", query)
		require.Equal(t, want, fmt.Sprint(len(ids)), query)
	}
	require.Equal(t, `{"meetings":[]}`, s.request("globex", "GET /v1/meetings", "").Body.String())
}

// TestCursor checks D7 and D24.
func TestCursor(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *world.Organisation) {
		o.Keys = append(o.Keys, world.Key{Secret: "ci2", IntegrationID: "int_ci"})
	}))
	for range 12 {
		s.create("ci", "")
	}
	s.request("globex", "POST /v1/meetings", `{"title":"x","date":"2026-01-01"}`).is(201, "")
	first, cursor := s.list("ci", "limit=5")
	require.Len(t, first, 5)
	second, _ := s.list("ada", "limit=7&cursor="+cursor)
	require.Len(t, second, 7, "another limit, and another key of the organisation")
	s.request("globex", "GET /v1/meetings?cursor="+cursor, "").is(400, "INVALID_CURSOR")
	s.request("ci", "GET /v1/meetings?date_from=2020-01-01&cursor="+cursor, "").is(400, "INVALID_CURSOR")
	for i := range cursor {
		forged := []byte(cursor)
		forged[i] ^= 1
		s.request("ci", "GET /v1/meetings?cursor="+url.QueryEscape(string(forged)), "").is(400, "INVALID_CURSOR")
	}
	for _, forged := range []string{cursor + "A", cursor + "\n", cursor[:len(cursor)-1]} {
		s.request("ci", "GET /v1/meetings?cursor="+url.QueryEscape(forged), "").is(400, "INVALID_CURSOR")
	}
	_, filtered := s.list("ci", "limit=5&date_from=2026-03-02")
	s.request("ci",
		"GET /v1/meetings?date_from=2026-03-02&date_to=2026-03-02&cursor="+filtered, "").is(400, "INVALID_CURSOR")
	s.request("ci", "GET /v1/meetings?cursor="+filtered, "").is(400, "INVALID_CURSOR")
}

// TestShortPages: a page may hold fewer items than limit, and none, and no cursor comes twice.
func TestShortPages(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(cfg *engine.Config) { cfg.World.PageSizes = []int{0, 2, 9} })
	var want []string
	for range 10 {
		want = append([]string{s.create("ci", "")}, want...)
	}
	var sizes []int
	var ids []string
	seen := map[string]bool{}
	cursor := ""
	for more := true; more; more = cursor != "" {
		require.False(t, seen[cursor])
		seen[cursor] = true
		page, next := s.list("ci", "limit=4&cursor="+cursor)
		ids = append(ids, page...)
		sizes = append(sizes, len(page))
		cursor = next
	}
	assert.Equal(t, []int{0, 2, 4, 0, 2, 2}, sizes)
	assert.Equal(t, want, ids)
}

// TestList_IsStableAmidChanges walks a list in pages of 7 while others create and delete between
// two pages: none that stayed is repeated or skipped, with and without filters (D7).
func TestList_IsStableAmidChanges(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"limit=7", "limit=7&date_from=2026-03-01&date_to=2026-03-02"} {
		s := newRig(t)
		var stay, gone []string // the newest first
		for i := range 100 {
			id := s.create([]string{"ci", "ada", "bob"}[i%3], `"visibility":"shared","shared_with":["emp_ada"]`)
			if i%4 == 0 {
				gone = append([]string{id}, gone...)
			} else {
				stay = append([]string{id}, stay...)
			}
		}
		var found []string
		cursor := ""
		for more := true; more; more = cursor != "" {
			page, next := s.list("ada", query+"&cursor="+cursor)
			found = append(found, page...)
			cursor = next
			s.create("ada", "")
			if len(gone) > 1 { // one before the cursor, and one after
				require.NoError(t, s.Delete(gone[0]))
				require.NoError(t, s.Delete(gone[len(gone)-1]))
				gone = gone[1 : len(gone)-1]
			}
		}
		found = slices.DeleteFunc(found, func(id string) bool { return !slices.Contains(stay, id) })
		assert.Equal(t, stay, found, query)
	}
}
