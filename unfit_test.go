package minutes_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

const inSomeElements = "the response does not match the API reference in some elements: "

// An element that does not match the API reference costs itself, and an error that names it.
func TestUnfit_ElementsCostOnlyThemselves(t *testing.T) {
	t.Parallel()
	good := &minutes.Meeting{ID: "mtg_1", Status: minutes.StatusCreated}
	const meeting = `{"id":"mtg_1","status":"created"}`
	for _, test := range []struct {
		op            minutes.Operation
		body, problem string
		want          any
	}{
		{
			"meetings.list", `{"meetings":[{"id":"mtg_7","status":"created","duration_seconds":61.5},` + meeting + `]}`,
			"meetings[0] (mtg_7): a JSON number does not fit duration_seconds",
			&minutes.MeetingPage{Meetings: []*minutes.Meeting{good}},
		},
		{
			"meetings.list", `{"meetings":[` + meeting + `,{"id":"mtg_7","status":null}],"next_cursor":"c"}`,
			"meetings[1] (mtg_7): it lacks status",
			&minutes.MeetingPage{Meetings: []*minutes.Meeting{good}, NextCursor: "c"},
		},
		{
			"meetings.list", `{"meetings":[` + meeting + `,{"id":"mtg_7","status":"created","participant_ids":[{}]}]}`,
			"meetings[1] (mtg_7): a JSON object does not fit participant_ids",
			&minutes.MeetingPage{Meetings: []*minutes.Meeting{good}},
		},
		{
			"meetings.list", `{"meetings":[1,"a",null,[],{"id":7},` + meeting + `]}`,
			"meetings[0]: a JSON number does not fit the element; " +
				"meetings[1]: a JSON string does not fit the element; meetings[2]: it lacks id; and in 2 more",
			&minutes.MeetingPage{Meetings: []*minutes.Meeting{good}},
		},
		{
			"members.list", `{"members":[{"id":"emp_1"},{"name":"x"}]}`, "members[1]: it lacks id",
			[]*minutes.Member{{ID: "emp_1"}},
		},
		{
			"projects.list", `{"projects":[null,{"id":"prj_1","name":7},{"id":"prj_2"}]}`,
			"projects[0]: it lacks id; projects[1] (prj_1): a JSON number does not fit name",
			[]*minutes.Project{{ID: "prj_2"}},
		},
		{
			"templates.list", `{"templates":[{"id":"a","version":1.5},{"id":"b","version":2.0}]}`,
			"templates[0] (a): a JSON number does not fit version",
			[]*minutes.Template{{ID: "b", Version: new(2)}},
		},
		{
			"vocabulary.get", `{"terms":["a",7],"entries":[{"term":"a"},{"variants":[]}],"max_terms":9.0}`,
			"entries[1]: it lacks term; terms[1]: a JSON number does not fit the element",
			&minutes.Vocabulary{Terms: []string{"a"}, Entries: []minutes.VocabularyEntry{{Term: "a"}}, MaxTerms: 9},
		},
	} {
		op := testkit.OperationNamed(t, test.op)
		client, _ := testkit.Responding(t, testkit.Canned(op.Status, test.body))
		got, err := op.Call(t.Context(), client)
		require.Equal(t, test.want, got, test.body)
		failed := testkit.RequireError(t, err, op)
		require.Equal(t, inSomeElements+test.problem, failed.Message)
		require.False(t, minutes.Retryable(err))
	}
}

// All ends with one error, after the meetings of all pages.
func TestUnfit_AllYieldsTheOthersFirst(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":  `{"meetings":[{"id":"bad_1"},{"id":"mtg_1","status":"created"}],"next_cursor":"2"}`,
		"2": `{"meetings":[{"id":"mtg_2","status":"created"},{"id":"bad_2"}],"next_cursor":"3"}`,
		"3": `{"meetings":[{"id":"mtg_3","status":"created"}]}`,
	}
	for _, lastFails := range []bool{false, true} {
		client, _ := testkit.Responding(t, func(req *http.Request) (*http.Response, error) {
			cursor := req.URL.Query().Get("cursor")
			if lastFails && cursor == "3" {
				return testkit.Canned(400, `{"error":{"code":"INVALID_CURSOR","message":"m"}}`)(req)
			}
			return testkit.Canned(200, pages[cursor])(req)
		})
		var ids []string
		var errs []error
		for m, err := range client.Meetings.All(t.Context(), nil) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			ids = append(ids, m.ID)
		}
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0], "meetings[0] (bad_1): it lacks status; meetings[1] (bad_2): it lacks status")
		if lastFails {
			require.ErrorIs(t, errs[0], minutes.ErrInvalidCursor)
			require.Equal(t, []string{"mtg_1", "mtg_2"}, ids)
		} else {
			require.Equal(t, []string{"mtg_1", "mtg_2", "mtg_3"}, ids)
		}
	}
}

// The meeting that does not fit may be the one in question, so it does not count as missing.
func TestUnfit_FindByExternalIDDoesNotDenyTheMeeting(t *testing.T) {
	t.Parallel()
	client, _ := testkit.Responding(t, testkit.Canned(200, `{"meetings":[{"id":"mtg_1","external_id":"x"}]}`))
	_, err := client.Meetings.FindByExternalID(t.Context(), "x")
	require.ErrorContains(t, err, "meetings[0] (mtg_1): it lacks status")
	require.NotErrorIs(t, err, minutes.ErrNotFound)
	client, _ = testkit.Responding(t, testkit.Canned(200,
		`{"meetings":[{"id":"mtg_2"},{"id":"mtg_1","status":"created","external_id":"x"}]}`))
	m, err := client.Meetings.FindByExternalID(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, "mtg_1", m.ID)
}

// Follow yields the meetings beside and behind one that does not fit, and the log names that once.
func TestUnfit_FollowGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		testbase.Timeout(t, time.Hour)
		page := func(bad string) string {
			return fmt.Sprintf(`{"meetings":[{"id":"mtg_bad","status":"created","created_at":%s},`+
				`{"id":"mtg_1","status":"transcribed","created_at":4102444800.0,"updated_at":4.1024448e9}]}`, bad)
		}
		transport := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			return testkit.Canned(200, page(`"yesterday"`))(req)
		})
		var log bytes.Buffer
		client, err := minutes.New("https://minutes.example", testkit.Key,
			minutes.WithHTTPClient(&http.Client{Transport: transport}),
			minutes.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		opts := &minutes.FollowOptions{Until: minutes.StatusTranscribed}
		for r, err := range client.Meetings.Follow(ctx, opts) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
			assert.Equal(t, "mtg_1", r.MeetingID)
			assert.Equal(t, minutes.UnixTime(4102444800), r.Meeting.UpdatedAt)
			break
		}
		cancel()
		synctest.Wait()
		const warning = "an element of a list does not match the API reference"
		assert.Equal(t, 1, strings.Count(log.String(), warning), log.String())
		assert.Contains(t, log.String(), "id=mtg_bad problem=\"a JSON string does not fit created_at\"")
	})
}

// A lone object may write whole numbers like this, too.
func TestUnfit_WholeNumbersFitIntegers(t *testing.T) {
	t.Parallel()
	client, _ := testkit.Responding(t, testkit.Canned(200,
		`{"id":"mtg_1","status":"created","duration_seconds":61.0,"created_at":1.7e9}`))
	m, err := client.Meetings.Get(t.Context(), "mtg_1")
	require.NoError(t, err)
	require.Equal(t, 61, m.DurationSeconds)
	require.Equal(t, minutes.UnixTime(1_700_000_000), m.CreatedAt)
}
