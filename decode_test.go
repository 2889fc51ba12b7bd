package minutes_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// Every operation that reads a body rejects a success that does not match the API reference. One that
// reads none rejects at least another server's page.
func TestDecode_RejectsUnusableSuccesses(t *testing.T) {
	t.Parallel()
	const notPromised = "the response does not match the API reference: "
	for name, test := range map[string]struct {
		body   string
		header []string
		text   string // "" if it differs by operation
	}{
		"empty": {"", nil, notPromised + "invalid JSON (0 bytes)"},
		"HTML": {
			"<html>Please sign in</html>", []string{"Content-Type", "text/html"},
			notPromised + `minutes.example sent "<html>Please sign in</html>"`,
		},
		"truncated": {`{"id":"mtg_1","meetings":[{"id":"m`, nil, notPromised + "invalid JSON (34 bytes)"},
		"array":     {`[]`, nil, notPromised + "a JSON array does not fit the response"},
		"string":    {`"minutes"`, nil, notPromised + "a JSON string does not fit the response"},
		"number":    {`12345678901234567890`, nil, notPromised + "a JSON number does not fit the response"},
		"null":      {`null`, nil, ""},
		"wrong types": {
			`{"id":7,"members":{},"meetings":{},"projects":{},"templates":{},"format":7,"transcript":7,` +
				`"upload_url":7,"credits_remaining":"7","terms":{}}`,
			nil, "",
		},
		"not whole": {
			`{"id":"a","status":"b","created_at":1.5,"members":1.5,` +
				`"meetings":1.5,"projects":1.5,` +
				`"templates":1.5,"format":1.5,"transcript":1.5,"upload_url":"u",` +
				`"expires_in":1.5,"credits_remaining":1.5,"terms":1.5}`,
			nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, op := range testkit.Operations() {
				if op.Response == "" && name != "HTML" {
					continue
				}
				status := op.Status
				client, mock := testkit.Responding(t, testkit.Canned(status, test.body, test.header...))
				got, err := op.Call(t.Context(), client)
				if err == nil && (op.Response == "member" || op.Response == "project") &&
					strings.Contains(test.body, `"id":"a"`) {
					continue // these have no number in them
				}
				testkit.RequireNothing(t, got)
				failed := testkit.RequireError(t, err, op)
				require.Equal(t, status, failed.StatusCode)
				require.Empty(t, failed.Code)
				require.NotErrorIs(t, err, minutes.ErrNotFound)
				text := fmt.Sprintf("minutes: %s %s: %d: ", op.Method, op.Path, status)
				if test.text != "" {
					require.Equal(t, text+test.text, err.Error())
				} else {
					const lacks = `the response lacks \w+(\[0\])?(\.\w+)?`
					const unfit = `the response does not match the API reference: a JSON [\w. ]+ does not fit [\w.]+`
					require.Regexp(t, ": ("+lacks+"|"+unfit+")$", err.Error())
				}
				require.Equal(t, 1, mock.GetTotalCallCount())
			}
		})
	}
}

// The error names fields that the caller's type declares, and neither values nor keys of maps, which
// are content. The same holds with each version of Go, although encoding/json names more since 1.27.
func TestDecode_QuotesNoContent(t *testing.T) {
	t.Parallel()
	type item struct {
		Word string `json:"word"`
		Size int
	}
	type base struct {
		ID int `json:"id"`
	}
	for name, test := range map[string]struct {
		body string
		out  any
		want string
	}{
		"map": {`{"Ada Lovelace":"x"}`, new(map[string]int), "a JSON string does not fit the response"},
		"map in a struct": {
			`{"by":{"Ada Lovelace":"x"}}`, new(struct{ By map[string]int }),
			"a JSON string does not fit By",
		},
		"struct in a map": {
			`{"by":{"Ada":{"word":7}}}`, new(struct{ By map[string]item }),
			"a JSON number does not fit By",
		},
		"key with a period": {
			`{"By":{"Ada.word":{"word":7}}}`, new(struct{ By map[string]item }),
			"a JSON number does not fit By",
		},
		"key that is a name": {`{"word":"x"}`, new(map[string]int), "a JSON string does not fit the response"},
		"list of structs": {
			`{"All":[{},{"word":7}]}`, new(struct{ All []*item }),
			"a JSON number does not fit All.word",
		},
		"value":    {`{"Size":4711.5}`, new(item), "a JSON number does not fit Size"},
		"embedded": {`{"id":"x"}`, new(struct{ base }), "a JSON string does not fit id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, _ := testkit.Responding(t, testkit.Canned(200, test.body))
			_, err := client.Do(t.Context(), minutes.Request{Method: "GET", Path: "/v1/speakers"}, test.out)
			failed, _ := errors.AsType[*minutes.Error](err)
			require.NotNil(t, failed, "%v", err)
			require.Equal(t, "the response does not match the API reference: "+test.want, failed.Message)
		})
	}
}

// A list may be null, which many servers write for an empty one.
func TestDecode_AcceptsNullLists(t *testing.T) {
	t.Parallel()
	for op, test := range map[minutes.Operation]struct {
		body string
		want any
	}{
		"meetings.list":  {`{"meetings":null}`, &minutes.MeetingPage{}},
		"members.list":   {`{"members": null}`, []*minutes.Member(nil)},
		"projects.list":  {`{"projects":null}`, []*minutes.Project(nil)},
		"templates.list": {`{"templates":null}`, []*minutes.Template(nil)},
		"vocabulary.get": {`{"terms":null,"entries":null,"max_terms":7}`, &minutes.Vocabulary{MaxTerms: 7}},
		"vocabulary.replace": {
			`{"terms":["a"],"entries":[{"term":"a","variants":null}],"max_terms":7}`,
			&minutes.Vocabulary{Terms: []string{"a"}, Entries: []minutes.VocabularyEntry{{Term: "a"}}, MaxTerms: 7},
		},
	} {
		op := testkit.OperationNamed(t, op)
		client, _ := testkit.Responding(t, testkit.Canned(op.Status, test.body))
		got, err := op.Call(t.Context(), client)
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
}

// The Client rejects a response about another meeting than the requested one.
func TestDecode_RejectsOtherMeetings(t *testing.T) {
	t.Parallel()
	const other = `{"id":"mtg_other","status":"minutes_ready","title":"T","external_id":"crm/4712"}`
	for _, name := range []minutes.Operation{"meetings.get", "meetings.update", "meetings.set_participants"} {
		op := testkit.OperationNamed(t, name)
		client, _ := testkit.Responding(t, testkit.Canned(200, other, "X-Request-Id", "gw-7"))
		got, err := op.Call(t.Context(), client)
		testkit.RequireNothing(t, got)
		failed := testkit.RequireError(t, err, op)
		require.Equal(t, "the response is about another meeting", failed.Message)
		require.Equal(t, 200, failed.StatusCode)
		require.Equal(t, "gw-7", failed.RequestID)
	}
}

// A response without a required field is an error.
func TestDecode_RejectsMissingFields(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		op            minutes.Operation
		body, missing string
	}{
		{"meetings.get", `{"status":"created"}`, "id"},
		{"meetings.get", `{"id":"mtg_1"}`, "status"},
		{"meetings.create", `{"title":"T"}`, "id"},
		{"meetings.list", `{"next_cursor":"c"}`, "meetings"},
		{"meetings.minutes", `{"content":"x","template_id":"t"}`, "format"},
		{"meetings.minutes", `{"format":"html","template_id":"t"}`, "content"},
		{"meetings.minutes", `{"format":"html","content":null}`, "content"},
		{"meetings.transcript", `{"text":"x"}`, "transcript"},
		{"meetings.transcript", `{"transcript":null}`, "transcript"},
		{"meetings.upload_url", `{"expires_in":900,"method":"PUT"}`, "upload_url"},
		{"members.create", `{"name":"x"}`, "id"},
		{"projects.create", `{"name":"x"}`, "id"},
		{"usage.get", `{"transcribe_seconds_remaining":0}`, "credits_remaining"},
		{"usage.get", `{"credits_remaining":0,"transcribe_seconds_remaining":null}`, "transcribe_seconds_remaining"},
		{"vocabulary.get", `{"entries":[],"max_terms":1}`, "terms"},
		{"vocabulary.get", `{"terms":[],"max_terms":1}`, "entries"},
	} {
		op := testkit.OperationNamed(t, test.op)
		client, _ := testkit.Responding(t, testkit.Canned(op.Status, test.body))
		got, err := op.Call(t.Context(), client)
		testkit.RequireNothing(t, got)
		require.Equal(t, "the response lacks "+test.missing, testkit.RequireError(t, err, op).Message)
	}
}

// Minutes and transcripts may be longer than other responses. internal/rest tests the limits, and
// Do their error.
func TestDecode_AllowsLongTexts(t *testing.T) {
	t.Parallel()
	for _, op := range testkit.Operations() {
		var most int64 // 0: the default
		if op.Name == minutes.OpMeetingsMinutes || op.Name == minutes.OpMeetingsTranscript {
			most = 8 << 20
		}
		var sent *rest.Request
		client, _ := testkit.Responding(t, func(req *http.Request) (*http.Response, error) {
			sent = rest.AttemptOf(req.Context()).Request
			return testkit.Canned(404, "")(req)
		})
		_, err := op.Call(t.Context(), client)
		require.Error(t, err)
		require.Equal(t, most, sent.MaxBody, op.Name)
	}
}
