package minutes_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// The error codes of section 7, row by row, in the interface's spelling.
var rejections = []struct {
	status int
	code   string
	is     minutes.ErrorCode
}{
	{400, "INVALID_REQUEST", minutes.ErrInvalidRequest},
	{400, "BAD_REQUEST", minutes.ErrBadRequest},
	{400, "INVALID_EMAIL", minutes.ErrInvalidEmail},
	{400, "INVALID_LIMIT", minutes.ErrInvalidLimit},
	{400, "INVALID_CURSOR", minutes.ErrInvalidCursor},
	{400, "INVALID_DATE", minutes.ErrInvalidDate},
	{400, "INVALID_DATE_RANGE", minutes.ErrInvalidDateRange},
	{400, "INVALID_TIME", minutes.ErrInvalidTime},
	{400, "INVALID_EXTERNAL_ID", minutes.ErrInvalidExternalID},
	{400, "INVALID_SHARED_WITH", minutes.ErrInvalidSharedWith},
	{401, "UNAUTHENTICATED", minutes.ErrUnauthenticated},
	{403, "IP_NOT_ALLOWED", minutes.ErrIPNotAllowed},
	{403, "API_ACCESS_DISABLED", minutes.ErrAPIAccessDisabled},
	{403, "PERSONAL_API_KEYS_DISABLED", minutes.ErrPersonalAPIKeysDisabled},
	{403, "INSUFFICIENT_SCOPE", minutes.ErrInsufficientScope},
	{403, "ORGANISATION_SUSPENDED", minutes.ErrOrganisationSuspended},
	{403, "ORGANISATION_EXPIRED", minutes.ErrOrganisationExpired},
	{403, "FORBIDDEN", minutes.ErrForbidden},
	{404, "NOT_FOUND", minutes.ErrNotFound},
	{409, "EMAIL_TAKEN", minutes.ErrEmailTaken},
	{409, "MEMBER_LIMIT_EXCEEDED", minutes.ErrMemberLimitExceeded},
	{409, "EXTERNAL_ID_TAKEN", minutes.ErrExternalIDTaken},
	{409, "MINUTES_NOT_READY", minutes.ErrMinutesNotReady},
	{409, "TRANSCRIPT_NOT_READY", minutes.ErrTranscriptNotReady},
	{409, "PARTICIPANTS_LOCKED", minutes.ErrParticipantsLocked},
	{500, "INTERNAL_ERROR", minutes.ErrInternal},
	{418, "A_CODE_TO_COME", minutes.ErrorCode("A_CODE_TO_COME")},
}

// Every operation returns every documented rejection as an *Error.
func TestError_ReportsEveryCode(t *testing.T) {
	t.Parallel()
	for _, row := range rejections {
		t.Run(row.code, func(t *testing.T) {
			t.Parallel()
			body := `{"error":{"code":"` + row.code + `","message":"Plain words.","request_id":"req_93af","details":{"fields":["title"],"holder":{"name":"Ada"}}}}`
			testkit.RequireForm(t, "Envelope", []byte(body))
			client, _ := testkit.Responding(t, testkit.Canned(row.status, body, "Content-Type", "application/json"))
			for _, op := range testkit.Operations() {
				got, err := op.Call(t.Context(), client)
				testkit.RequireNothing(t, got)
				failed := testkit.RequireError(t, err, op)
				require.Equal(t, row.status, failed.StatusCode)
				require.Equal(t, minutes.ErrorCode(row.code), failed.Code)
				require.Equal(t, "Plain words.", failed.Message)
				require.Equal(t, "req_93af", failed.RequestID)
				require.Equal(t, map[string]any{"fields": []any{"title"}, "holder": map[string]any{"name": "Ada"}}, failed.Details)
				require.Zero(t, failed.RetryAfter)
				words := "Plain words."
				if row.code == "INSUFFICIENT_SCOPE" {
					require.Equal(t, minutes.Scope(op.Scope), failed.Scope)
					words += " (needs the scope " + op.Scope + ")"
				} else {
					require.Empty(t, failed.Scope)
				}
				require.Equal(t, op.Name, failed.Operation)
				require.Equal(t, fmt.Sprintf("minutes: %s %s: %d %s: %s (request id req_93af)", op.Method, op.Path, row.status, row.code, words), err.Error())
				for _, other := range rejections {
					require.Equal(t, other.code == row.code, errors.Is(err, other.is), other.code)
				}
				require.NotErrorIs(t, err, minutes.ErrRateLimited)
				require.NotErrorIs(t, err, minutes.ErrorCode(""))
			}
		})
	}
}

// The sentinels are exactly the codes of the interface, in its spelling.
func TestErrorCodes_MatchTheInterface(t *testing.T) {
	t.Parallel()
	for _, row := range rejections {
		require.Equal(t, row.code, row.is.Error())
	}
}

// If an error response has no envelope, the error describes the response.
func TestError_DescribesResponseWithoutEnvelope(t *testing.T) {
	t.Parallel()
	const page = "<!DOCTYPE html><h1>Not Found</h1><p>NOT_FOUND</p>"
	for name, test := range map[string]struct {
		status int
		body   string
		header []string
		code   minutes.ErrorCode
		text   string // after method and path
	}{
		"bare 429":                      {429, "slow down", []string{"Content-Type", "text/plain"}, minutes.ErrRateLimited, "429 RATE_LIMITED: too many requests"},
		"empty 429":                     {429, "", nil, minutes.ErrRateLimited, "429 RATE_LIMITED: too many requests"},
		"HTML 429":                      {429, page, []string{"Content-Type", "text/html"}, minutes.ErrRateLimited, "429 RATE_LIMITED: too many requests"},
		"HTML 404":                      {404, page, []string{"Content-Type", "text/html; charset=utf-8"}, "", "404: the response is not the service's error envelope: minutes.example sent \"Not Found\"; check the base URL"},
		"HTML 404 that says JSON":       {404, page, []string{"Content-Type", "application/json"}, "", "404: the response is not the service's error envelope: invalid JSON (application/json, 49 bytes); check the base URL"},
		"text 502":                      {502, "bad gateway\n", []string{"Content-Type", "text/plain"}, "", "502: the response is not the service's error envelope: minutes.example sent \"bad gateway\""},
		"no content type":               {503, "oops", nil, "", "503: the response is not the service's error envelope: minutes.example sent \"oops\""},
		"invalid content type":          {503, "oops", []string{"Content-Type", "///"}, "", "503: the response is not the service's error envelope: minutes.example sent \"oops\""},
		"empty 404":                     {404, "", nil, "", "404: Not Found"},
		"empty 500":                     {500, "", nil, "", "500: Internal Server Error"},
		"empty, unnamed status":         {599, "", nil, "", "599: the response is empty"},
		"status 0":                      {0, "", nil, "", "the response is empty"},
		"request id of a gateway":       {502, "", []string{"X-Request-Id", "gw-7"}, "", "502: Bad Gateway (request id gw-7)"},
		"truncated envelope":            {404, `{"error":{"code":"NOT_FOUND","mess`, []string{"Content-Type", "application/json"}, "", "404: the response is not the service's error envelope: invalid JSON (application/json, 34 bytes); check the base URL"},
		"trailing text":                 {404, `{"error":{"code":"NOT_FOUND"}} and more`, nil, "", "404: the response is not the service's error envelope: invalid JSON (without content type, 39 bytes); check the base URL"},
		"null":                          {404, `null`, nil, "", "404: the response is not the service's error envelope; check the base URL"},
		"array":                         {404, `[{"error":{"code":"NOT_FOUND"}}]`, nil, "", "404: the response is not the service's error envelope: a JSON array does not fit the response; check the base URL"},
		"string":                        {404, `"NOT_FOUND"`, nil, "", "404: the response is not the service's error envelope: a JSON string does not fit the response; check the base URL"},
		"other object":                  {404, `{"status":404,"title":"NOT_FOUND"}`, nil, "", "404: the response is not the service's error envelope; check the base URL"},
		"error null":                    {404, `{"error":null}`, nil, "", "404: the response is not the service's error envelope; check the base URL"},
		"error string":                  {404, `{"error":"NOT_FOUND"}`, nil, "", `404: the response is not the service's error envelope: a JSON string does not fit error; check the base URL`},
		"empty code":                    {404, `{"error":{"code":"","message":"m"}}`, nil, "", "404: the response is not the service's error envelope; check the base URL"},
		"code null":                     {404, `{"error":{"code":null}}`, nil, "", "404: the response is not the service's error envelope; check the base URL"},
		"code number":                   {404, `{"error":{"code":404123456789}}`, nil, "", `404: the response is not the service's error envelope: a JSON number does not fit error.code; check the base URL`},
		"code only":                     {404, `{"error":{"code":"NOT_FOUND"}}`, nil, "NOT_FOUND", "404 NOT_FOUND"},
		"code and request id in header": {404, `{"error":{"code":"NOT_FOUND"}}`, []string{"X-Request-Id", "gw-7"}, "NOT_FOUND", "404 NOT_FOUND (request id gw-7)"},
		"wrong types beside the code":   {404, `{"error":{"message":7,"code":"NOT_FOUND","request_id":{},"details":[1]}}`, nil, "NOT_FOUND", "404 NOT_FOUND"},
		"duplicate keys, last wins":     {404, `{"error":{"code":"FORBIDDEN","code":"NOT_FOUND"}}`, nil, "NOT_FOUND", "404 NOT_FOUND"},
		"deeply nested":                 {404, strings.Repeat(`{"error":`, 20000), nil, "", "404: the response is not the service's error envelope: invalid JSON (without content type, 180000 bytes); check the base URL"},
		"deeply nested details":         {404, `{"error":{"code":"NOT_FOUND","details":{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}}`, nil, "", "404: the response is not the service's error envelope: invalid JSON (without content type, 40047 bytes); check the base URL"},
		"oversized":                     {404, `{"error":{"code":"NOT_FOUND","message":"` + strings.Repeat("x", 2<<20) + `"}}`, nil, "", "404: the response is not the service's error envelope: invalid JSON (without content type, 262145 bytes); check the base URL"},
		"message of several lines":      {404, `{"error":{"code":"NOT_FOUND","message":"a\r\nb\u001b[31mc\u202ed\u0000","request_id":"r\n"}}`, nil, "NOT_FOUND", "404 NOT_FOUND: a  b [31mc d  (request id r )"},
		"invalid UTF-8":                 {404, "{\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"a\xffb\"}}", nil, "NOT_FOUND", "404 NOT_FOUND: a\ufffdb"},
		"envelope in another type":      {404, `{"error":{"code":"NOT_FOUND"}}`, []string{"Content-Type", "text/html"}, "NOT_FOUND", "404 NOT_FOUND"},
		"byte order mark":               {404, "\ufeff" + `{"error":{"code":"NOT_FOUND"}}`, nil, "", "404: the response is not the service's error envelope: invalid JSON (without content type, 33 bytes); check the base URL"},
		"redirect":                      {302, page, []string{"Location", "https://evil.example/?q"}, "", "302: the Client does not follow redirects, here to evil.example"},
		"redirect within the host":      {302, page, []string{"Location", "/login?q"}, "", "302: the Client does not follow redirects, here to minutes.example"},
		"page of an edge":               {400, "<html><head><title>400 No required SSL certificate was sent</title></head><body>" + page, []string{"Content-Type", "text/html", "Server", "nginx"}, "", `400: the response is not the service's error envelope: minutes.example (nginx) sent "400 No required SSL certificate was sent"`},
		"page that echoes the key":      {502, "<title>no " + testkit.Key + "</title>", []string{"Server", testkit.Key}, "", `502: the response is not the service's error envelope: minutes.example (***) sent "no ***"`},
		"redirect without location":     {307, "", nil, "", "307: the Client does not follow redirects"},
		"redirect to nowhere":           {308, "", []string{"Location", "http://[::1:%zz\x7f"}, "", "308: the Client does not follow redirects"},
		"not modified":                  {304, "", nil, "", "304: the Client does not follow redirects"},
		"echo of the key":               {401, `{"error":{"code":"UNAUTHENTICATED","message":"no key ` + testkit.Key + `","request_id":"` + testkit.Key + `"}}`, nil, "UNAUTHENTICATED", "401 UNAUTHENTICATED: no key *** (request id ***)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, mock := testkit.Responding(t, testkit.Canned(test.status, test.body, test.header...))
				for i, op := range testkit.Operations() {
					got, err := op.Call(t.Context(), client)
					testkit.RequireNothing(t, got)
					failed := testkit.RequireError(t, err, op)
					require.Equal(t, test.status, failed.StatusCode)
					require.Equal(t, test.code, failed.Code)
					require.Equal(t, test.code == "NOT_FOUND", errors.Is(err, minutes.ErrNotFound))
					require.Equal(t, test.code == minutes.ErrRateLimited, errors.Is(err, minutes.ErrRateLimited))
					require.NotErrorIs(t, err, minutes.ErrorCode(""), "no code is no code to compare with")
					require.Equal(t, "minutes: "+op.Method+" "+op.Path+": "+test.text, err.Error())
					require.NotContains(t, fmt.Sprintf("%+v %#v", failed, failed), testkit.Key)
					require.Equal(t, i+1, mock.GetTotalCallCount(), "one request each")
					if i > 2 && len(test.body) > 10_000 {
						return // long bodies take time
					}
				}
			})
		})
	}
}

// A 429 with an envelope keeps its code and is still a rate limit.
func TestError_429WithEnvelopeIsRateLimit(t *testing.T) {
	t.Parallel()
	client, _ := testkit.Responding(t, testkit.Canned(429, `{"error":{"code":"TOO_MANY","message":"m","request_id":"r"}}`, "Retry-After", "7"))
	_, err := client.Usage.Get(t.Context())
	failed := testkit.RequireError(t, err, testkit.OperationNamed(t, "usage.get"))
	require.ErrorIs(t, err, minutes.ErrRateLimited)
	require.ErrorIs(t, err, minutes.ErrorCode("TOO_MANY"))
	require.Equal(t, 7*time.Second, failed.RetryAfter)
}

// The text cuts a long message; the field contains all of it.
func TestError_TextCutsLongMessage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100_000)
	client, _ := testkit.Responding(t, testkit.Canned(400, `{"error":{"code":"BAD_REQUEST","message":"`+long+`","request_id":"req_1"}}`))
	_, err := client.Usage.Get(t.Context())
	failed := testkit.RequireError(t, err, testkit.OperationNamed(t, "usage.get"))
	require.Equal(t, long, failed.Message)
	require.Less(t, len(err.Error()), 1200)
	require.True(t, strings.HasSuffix(err.Error(), "é… (request id req_1)"), err.Error())
}

// Every operation that reads a body rejects a success that does not match the interface.
func TestDecode_RejectsUnusableSuccesses(t *testing.T) {
	t.Parallel()
	const notPromised = "the response does not match the API reference: "
	for name, test := range map[string]struct {
		body   string
		header []string
		text   string // "" if it differs by operation
	}{
		"empty":            {"", nil, "the response is empty"},
		"HTML":             {"<html>Please sign in</html>", []string{"Content-Type", "text/html"}, notPromised + `minutes.example sent "Please sign in"`},
		"HTML, with id":    {"<html>", []string{"Content-Type", "text/html", "X-Request-Id", "gw-7"}, notPromised + `minutes.example sent "" (request id gw-7)`},
		"text":             {"OK", []string{"Content-Type", "text/plain"}, notPromised + `minutes.example sent "OK"`},
		"white space":      {" \n", nil, notPromised + "invalid JSON (without content type, 2 bytes)"},
		"truncated":        {`{"id":"mtg_1","meetings":[{"id":"m`, nil, notPromised + "invalid JSON (without content type, 34 bytes)"},
		"two values":       {`{}{}`, nil, notPromised + "invalid JSON (without content type, 4 bytes)"},
		"array":            {`[]`, nil, notPromised + "a JSON array does not fit the response"},
		"string":           {`"minutes"`, nil, notPromised + "a JSON string does not fit the response"},
		"number":           {`12345678901234567890`, nil, notPromised + "a JSON number does not fit the response"},
		"boolean":          {`true`, nil, notPromised + "a JSON bool does not fit the response"},
		"null":             {`null`, nil, ""},
		"no fields":        {`{}`, nil, ""},
		"error envelope":   {`{"error":{"code":"NOT_FOUND","message":"m","request_id":"r"}}`, nil, ""},
		"other fields":     {`{"ok":true}`, nil, ""},
		"null fields":      {`{"id":null,"members":null,"meetings":null,"projects":null,"templates":null,"format":null,"content":null,"transcript":null,"upload_url":null,"credits_remaining":null,"terms":null,"entries":null}`, nil, ""},
		"empty fields":     {`{"id":"","status":"","format":"","upload_url":"","members":[{}],"meetings":[{}],"projects":[{}],"templates":[{}],"terms":[],"entries":[{}]}`, nil, ""},
		"null elements":    {`{"members":[null],"meetings":[null],"projects":[null],"templates":[null],"terms":["a"],"entries":[null]}`, nil, ""},
		"nested too deep":  {strings.Repeat("[", 20000), nil, notPromised + "invalid JSON (without content type, 20000 bytes)"},
		"wrong types":      {`{"id":7,"members":{},"meetings":{},"projects":{},"templates":{},"format":7,"transcript":7,"upload_url":7,"credits_remaining":"7","terms":{}}`, nil, ""},
		"huge numbers":     {`{"id":"a","status":"b","created_at":1e400,"members":[{"id":1e400}],"meetings":[{"created_at":1` + strings.Repeat("0", 100_000) + `}],"projects":1e400,"templates":[{"id":"t","version":1e400}],"format":1e400,"transcript":1e400,"upload_url":"u","expires_in":1e400,"credits_remaining":1e400,"terms":[1e400]}`, nil, ""},
		"not whole":        {`{"id":"a","status":"b","created_at":1.5,"members":[{"id":1.5}],"meetings":[{"id":"a","status":"b","duration_seconds":1.5}],"projects":1.5,"templates":[{"id":"t","version":1.5}],"format":1.5,"transcript":1.5,"upload_url":"u","expires_in":1.5,"credits_remaining":1.5,"terms":[1.5]}`, nil, ""},
		"content encoding": {"\x1f\x8b\x08nonsense", []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, notPromised + "invalid JSON (application/json, 11 bytes)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, op := range testkit.Operations() {
				if op.Response == "" {
					continue
				}
				status := op.Status
				client, mock := testkit.Responding(t, testkit.Canned(status, test.body, test.header...))
				got, err := op.Call(t.Context(), client)
				if err == nil && (op.Response == "member" || op.Response == "project") && strings.Contains(test.body, `"id":"a"`) {
					continue // these have no number in them
				}
				if name == "null fields" && (strings.HasSuffix(op.Response, "_list") || op.Response == "meeting_page" || op.Response == "vocabulary") {
					require.NoError(t, err) // see TestDecode_AcceptsNullLists
					continue
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
					require.Regexp(t, `: (the response lacks \w+(\[0\])?(\.\w+)?|the response does not match the API reference: a JSON \w+ does not fit [\w.]+)$`, err.Error())
				}
				require.Equal(t, 1, mock.GetTotalCallCount())
			}
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
		"meetings.list":      {`{"meetings":null}`, &minutes.MeetingPage{Meetings: []*minutes.Meeting{}}},
		"members.list":       {`{"members": null}`, []*minutes.Member{}},
		"projects.list":      {`{"projects":null}`, []*minutes.Project{}},
		"templates.list":     {`{"templates":null}`, []*minutes.Template{}},
		"vocabulary.get":     {`{"terms":null,"entries":null,"max_terms":7}`, &minutes.Vocabulary{Terms: []string{}, Entries: []minutes.VocabularyEntry{}, MaxTerms: 7}},
		"vocabulary.replace": {`{"terms":["a"],"entries":[{"term":"a","variants":null}],"max_terms":7}`, &minutes.Vocabulary{Terms: []string{"a"}, Entries: []minutes.VocabularyEntry{{Term: "a"}}, MaxTerms: 7}},
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
	for op, text := range map[minutes.Operation]string{
		"meetings.get": "", "meetings.update": "", "meetings.set_participants": "",
	} {
		t.Run(string(op)+text, func(t *testing.T) {
			t.Parallel()
			op := testkit.OperationNamed(t, op)
			client, _ := testkit.Responding(t, testkit.Canned(200, other, "X-Request-Id", "gw-7"))
			got, err := op.Call(t.Context(), client)
			testkit.RequireNothing(t, got)
			failed := testkit.RequireError(t, err, op)
			require.Equal(t, "the response is about another meeting", failed.Message)
			require.Equal(t, 200, failed.StatusCode)
			require.Equal(t, "gw-7", failed.RequestID)
		})
	}
	// Wait sends GET requests.
	synctest.Test(t, func(t *testing.T) {
		client, _ := testkit.Responding(t, testkit.Canned(200, other))
		_, err := client.Meetings.Wait(t.Context(), "mtg_1", nil)
		wait, ok := errors.AsType[*minutes.WaitError](err)
		require.True(t, ok, "%v", err)
		require.Nil(t, wait.Meeting)
		require.ErrorContains(t, err, "another meeting")
	})
	t.Run("none with the external id", func(t *testing.T) {
		t.Parallel()
		client, _ := testkit.Responding(t, testkit.Canned(200, `{"meetings":[`+other+`]}`))
		_, err := client.Meetings.FindByExternalID(t.Context(), "crm/4711")
		require.ErrorIs(t, err, minutes.ErrNotFound)
	})
	t.Run("without the external id", func(t *testing.T) {
		t.Parallel()
		client, _ := testkit.Responding(t, testkit.Canned(201, `{"id":"mtg_1","status":"created"}`))
		_, created, err := client.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "T", ExternalID: "crm/4711"})
		require.NoError(t, err)
		require.True(t, created)
	})
}

// No text of the service can forge a log line or control a terminal, in any error, and no error
// contains the key.
func TestErrors_AreSafeForLogs(t *testing.T) {
	t.Parallel()
	const nasty = "x\u001b[2J\r\nlevel=ERROR msg=forged\u202e\u2028 "
	requireClean := func(t *testing.T, text string) {
		t.Helper()
		for _, r := range text {
			require.True(t, unicode.IsPrint(r), "%q", text)
		}
		require.NotContains(t, text, testkit.Key)
		require.Less(t, len(text), 4000)
	}
	quoted, err := json.Marshal(nasty + strings.Repeat("long ", 2000))
	require.NoError(t, err)
	echo := `"` + testkit.Key + " " + string(quoted[1:])
	synctest.Test(t, func(t *testing.T) {
		out := new(testbase.Buffer)
		mock := httpmock.NewMockTransport()
		c, err := minutes.New("https://minutes.example", testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: mock}), minutes.WithMaxRetries(0),
			minutes.WithLogger(slog.New(plainHandler{out})))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		// A future status, for a wait.
		mock.RegisterNoResponder(testkit.Canned(200, `{"id":"mtg_1","status":`+string(quoted)+`}`))
		_, err = c.Meetings.Wait(ctx, "mtg_1", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		requireClean(t, err.Error())
		require.Contains(t, err.Error(), "last seen x")

		// An id, for a job and its requests.
		mock.RegisterNoResponder(testkit.Canned(201, `{"id":`+string(quoted)+`,"status":"audio_rejected"}`))
		_, err = c.Meetings.Process(t.Context(), &minutes.MeetingCreateParams{Title: "T"}, testkit.Audio(1), nil)
		_, failed := errors.AsType[*minutes.MeetingFailedError](err)
		require.True(t, failed, "%v", err)
		requireClean(t, err.Error())

		// Every field of a rejection that the log contains.
		mock.RegisterNoResponder(testkit.Canned(404, `{"error":{"code":`+echo+`,"message":`+echo+`,"request_id":`+echo+`}}`))
		_, err = c.Meetings.Get(t.Context(), "mtg_1")
		requireClean(t, err.Error())
		mock.RegisterNoResponder(func(*http.Request) (*http.Response, error) { return nil, errors.New(nasty + testkit.Key) })
		_, err = c.Meetings.Get(t.Context(), "mtg_\u202e"+testkit.Key)
		requireClean(t, err.Error())

		for line := range strings.Lines(out.String()) {
			requireClean(t, strings.TrimSuffix(line, "\n"))
			require.True(t, strings.HasPrefix(line, "minutes: "), "%q", line)
		}
	})
	for _, err := range []error{
		&minutes.MeetingFailedError{Status: "x\ny", Meeting: &minutes.Meeting{ID: "x\ny"}},
		&minutes.MeetingFailedError{Status: "x\ny"},
		&minutes.WaitError{MeetingID: "x\ny", Meeting: &minutes.Meeting{Status: "x\ny"}, Err: errors.Join(io.EOF, errors.New("x\x1b"))},
	} {
		requireClean(t, err.Error())
	}
}

// plainHandler writes each record without quotes.
type plainHandler struct{ io.Writer }

func (plainHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h plainHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h plainHandler) WithGroup(string) slog.Handler          { return h }
func (h plainHandler) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	_, err := io.WriteString(h, line+"\n")
	return err
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
		{"meetings.list", `{"meetings":[{"id":"mtg_1","status":"created"},null]}`, "meetings[1].id"},
		{"meetings.list", `{"meetings":[{"id":"mtg_1","status":"created"},{"id":"mtg_2"}]}`, "meetings[1].status"},
		{"meetings.minutes", `{"content":"x","template_id":"t"}`, "format"},
		{"meetings.minutes", `{"format":"html","template_id":"t"}`, "content"},
		{"meetings.transcript", `{"text":"x"}`, "transcript"},
		{"meetings.upload_url", `{"expires_in":900,"method":"PUT"}`, "upload_url"},
		{"members.list", `{"members":[{"id":"emp_1"},{"name":"x"}]}`, "members[1].id"},
		{"members.create", `{"name":"x"}`, "id"},
		{"projects.list", `{"projects":[{"name":"x"}]}`, "projects[0].id"},
		{"projects.create", `{"name":"x"}`, "id"},
		{"templates.list", `{"templates":[{"name":"x"}]}`, "templates[0].id"},
		{"usage.get", `{"transcribe_seconds_remaining":0}`, "credits_remaining"},
		{"usage.get", `{"credits_remaining":0}`, "transcribe_seconds_remaining"},
		{"vocabulary.get", `{"entries":[],"max_terms":1}`, "terms"},
		{"vocabulary.get", `{"terms":[],"max_terms":1}`, "entries"},
		{"vocabulary.get", `{"terms":["a"],"entries":[{"term":"a"},{"variants":[]}],"max_terms":1}`, "entries[1].term"},
	} {
		op := testkit.OperationNamed(t, test.op)
		client, _ := testkit.Responding(t, testkit.Canned(op.Status, test.body))
		got, err := op.Call(t.Context(), client)
		testkit.RequireNothing(t, got)
		require.Equal(t, "the response lacks "+test.missing, testkit.RequireError(t, err, op).Message)
	}
}

// endless is a body without an end.
type endless struct {
	of   byte
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.of
	}
	e.read += int64(len(p))
	return len(p), nil
}

// The Client reads a body without an end up to a limit, which is higher for a success than for a
// rejection.
func TestResponses_AreReadUpToALimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		op     minutes.Operation
		status int
		limit  int64
		of     byte
	}{
		{"usage.get", 200, 4 << 20, ' '}, {"meetings.list", 200, 4 << 20, ' '}, {"meetings.get", 200, 4 << 20, ' '},
		{"meetings.minutes", 200, 8 << 20, ' '}, {"meetings.transcript", 200, 8 << 20, ' '},
		{"usage.get", 404, 256 << 10, ' '}, {"meetings.minutes", 500, 256 << 10, ' '},
		{"meetings.list", 200, 4 << 20, ','}, // also over the limit of values
	} {
		if test.op == "meetings.transcript" && !testbase.Long() {
			continue // as long as the minutes
		}
		op := testkit.OperationNamed(t, test.op)
		body := &endless{of: test.of}
		client, _ := testkit.Responding(t, func(*http.Request) (*http.Response, error) {
			// The bytes up to the limit are valid JSON.
			return &http.Response{StatusCode: test.status, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader(testkit.Fixture(t, op.Response)), body))}, nil
		})
		got, err := op.Call(t.Context(), client)
		testkit.RequireNothing(t, got)
		failed := testkit.RequireError(t, err, op)
		require.Equal(t, test.status, failed.StatusCode)
		if test.status == 200 {
			require.ErrorContains(t, err, fmt.Sprintf("longer than %d bytes", test.limit))
		}
		require.Less(t, body.read, test.limit+1<<20)
	}
}

// The worst response takes less than 64 MiB to read and decode. (This test is not parallel because
// it counts allocations.)
func TestResponses_DecodeUnder64MiB(t *testing.T) {
	if testbase.UnderRace {
		t.Skip("the race detector allocates, too")
	}
	const values = 100_000 // the most that a response may have
	list := func(before, element, after string, n int) string {
		return before + strings.Repeat(element+",", n-1) + element + after
	}
	type worst struct {
		op     minutes.Operation
		status int
		body   string
	}
	cases := map[string]worst{
		"text":             {"meetings.minutes", 200, `{"format":"html","content":"` + strings.Repeat(`\n`, 4<<20-100) + `"}`},
		"values in a text": {"meetings.minutes", 200, list(`{"format":"html","content":[`, `0`, `]}`, 4<<20-100)},
		"participants":     {"meetings.get", 200, list(`{"id":"mtg_1","status":"s","participant_ids":[`, `0`, `]}`, values-2)},
		"error, numbers":   {"usage.get", 400, list(`{"error":{"code":"X","details":{"a":[`, `0`, `]}}}`, 130_000)},
		"error, objects":   {"usage.get", 400, list(`{"error":{"code":"X","details":{"a":[`, `{"":0}`, `]}}}`, 37_000)},
	}
	fields := []string{"meetings", "entries", "terms", "members", "projects", "templates"}
	for _, field := range fields[:testbase.Many(len(fields), 2)] { // the first cost most
		op := minutes.Operation(map[string]string{"terms": "vocabulary.get", "entries": "vocabulary.get"}[field])
		op = cmp.Or(op, minutes.Operation(field+".list"))
		elements := []string{`{}`, `0`, `""`, `null`, `[]`}
		for _, element := range elements[:testbase.Many(len(elements), 1)] {
			cases[field+" "+element] = worst{op, 200, list(`{"`+field+`":[`, element, `]}`, values)}
		}
	}
	cases["variants"] = worst{"vocabulary.get", 200, list(`{"entries":[`, `{"variants":[{}]}`, `]}`, values)}
	for name, test := range cases {
		op := testkit.OperationNamed(t, test.op)
		client, _ := testkit.Responding(t, testkit.Canned(test.status, test.body))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := op.Call(t.Context(), client)
		runtime.ReadMemStats(&after)
		require.Equal(t, name != "text", err != nil, name)
		if err != nil {
			require.NotContains(t, err.Error(), "longer than", name)
			require.NotContains(t, err.Error(), "values", name)
		}
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), name)
	}
}

// Real responses are within the limits, even for the largest organisations.
func TestResponses_OfRealSizesAreAccepted(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 300)
	page := `{"id":"mtg_7Kd02","status":"created","title":"` + long + `","participant_ids":[` + strings.Repeat(`"emp_7Kd02",`, 1000) + `"emp_2"]}`
	for op, body := range map[minutes.Operation]string{
		"projects.list":       `{"projects":[` + strings.Repeat(`{"id":"prj_7Kd02","name":"Apollo"},`, 40_000) + `{"id":"p"}]}`,
		"members.list":        `{"members":[` + strings.Repeat(`{"id":"emp_7Kd02","name":"Ada Lovelace","role":"Engineer","status":"active"},`, 20_000) + `{"id":"e"}]}`,
		"templates.list":      `{"templates":[` + strings.Repeat(`{"id":"tpl_7Kd02","name":"x","source":"s","description":"`+long+`","is_default":false,"version":1},`, 1000) + `{"id":"t"}]}`,
		"vocabulary.get":      `{"terms":[` + strings.Repeat(`"a",`, 5000) + `"b"],"entries":[` + strings.Repeat(`{"term":"a","variants":[{"text":"b","source":"auto"},{"text":"c","source":"auto"}]},`, 5000) + `{"term":"b"}]}`,
		"meetings.list":       `{"meetings":[` + strings.Repeat(page+",", 49) + page + `]}`,
		"meetings.minutes":    `{"format":"html","template_id":"t","content":"` + strings.Repeat("no, ", 500_000) + `"}`,
		"meetings.transcript": `{"transcript":"` + strings.Repeat(",", 500_000) + `"}`,
	} {
		client, _ := testkit.Responding(t, testkit.Canned(200, body))
		_, err := testkit.OperationNamed(t, op).Call(t.Context(), client)
		require.NoError(t, err)
	}
}

// The Client survives transports that break the rules of net/http.
func TestClient_SurvivesMisbehavingTransports(t *testing.T) {
	t.Parallel()
	broken := errors.New("the line is dead")
	for name, respond := range map[string]func(*http.Request) (*http.Response, error){
		"neither response nor error": func(*http.Request) (*http.Response, error) { return nil, nil },
		"error":                      func(*http.Request) (*http.Response, error) { return nil, broken },
		"no header, no body":         func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
		"body that fails": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"id"`), testbase.Failing(broken)))}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := testkit.New("https://minutes.example", testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(respond)}), minutes.WithMaxRetries(0))
			require.NoError(t, err)
			for _, op := range testkit.Operations() {
				if op.Response == "" && name == "no header, no body" {
					continue
				}
				got, err := op.Call(t.Context(), client)
				testkit.RequireNothing(t, got)
				testkit.RequireError(t, err, op)
				require.Equal(t, name == "error" || name == "body that fails", errors.Is(err, broken))
			}
		})
	}
}

// wired returns a client whose connections carry the bytes that answer writes. The server reads the
// request's head first and then closes the connection.
func wired(t *testing.T, answer func(net.Conn)) (*minutes.Client, func() int) {
	t.Helper()
	var dials int
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		dials++
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			r := bufio.NewReader(far)
			req, err := http.ReadRequest(r)
			if !assert.NoError(t, err) {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			answer(far)
		}()
		return near, nil
	}}
	c, err := testkit.New("http://localhost", testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: transport}), minutes.WithMaxRetries(0))
	require.NoError(t, err)
	return c, func() int { return dials }
}

// The Client survives hostile bytes on a real connection.
func TestClient_SurvivesHostileBytes(t *testing.T) {
	t.Parallel()
	good := testkit.Fixture(t, "usage")
	for name, test := range map[string]struct {
		bytes  string
		hang   bool // the server keeps the connection open and says no more
		status int
		text   string
	}{
		"nothing":                    {"", false, 0, "EOF"},
		"no HTTP":                    {"SSH-2.0-OpenSSH_9.6\r\n", false, 0, "malformed HTTP"},
		"half a status line":         {"HTTP/1.1 20", false, 0, "malformed HTTP"},
		"silence":                    {"", true, 0, "no response within 30s"},
		"half a header, then silent": {"HTTP/1.1 200 OK\r\nContent-", true, 0, "no response within 30s"},
		"half a body":                {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"credits", false, 200, "the response broke off"},
		"half a body, then silent":   {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"credits", true, 200, "no response within 30s"},
		"half a chunk":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{\"credits", false, 200, "the response broke off"},
		"invalid chunk":              {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false, 200, "the response broke off"},
		"half a rejection":           {"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\n{\"error", false, 404, "not the service's error envelope"},
		"status 000":                 {"HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n", false, 0, "the response is empty"},
		"status 999":                 {"HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n", false, 999, "the response is empty"},
		"invalid Location":           {"HTTP/1.1 302 Found\r\nLocation: http://[::1:%zz?token=1\r\nContent-Length: 0\r\n\r\n", false, 302, "the Client does not follow redirects"},
		"switch of protocols":        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", true, 101, "Switching Protocols"},
		"two lengths":                {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", false, 0, "Content-Length"},
		"invalid gzip":               {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", false, 200, "the response broke off"},
		"body up to the end":         {"HTTP/1.1 200 OK\r\n\r\n" + good, false, 0, ""},
		"lower-case header":          {"HTTP/1.1 200 OK\r\ncontent-length: " + fmt.Sprint(len(good)) + "\r\n\r\n" + good, false, 0, ""},
		"interim responses":          {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n" + good, false, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				done := make(chan struct{})
				defer close(done)
				client, dials := wired(t, func(conn net.Conn) {
					_, _ = io.WriteString(conn, test.bytes)
					if test.hang {
						<-done
					}
				})
				got, err := client.Usage.Get(t.Context())
				require.Equal(t, 1, dials())
				if test.text == "" {
					require.NoError(t, err)
					require.Equal(t, 42, got.CreditsRemaining)
					return
				}
				require.Nil(t, got)
				failed := testkit.RequireError(t, err, testkit.OperationNamed(t, "usage.get"))
				require.Equal(t, test.status, failed.StatusCode)
				require.ErrorContains(t, err, test.text)
				require.NotContains(t, err.Error(), "token")
			})
		})
	}
}

// The Client rejects all redirects, and sends the key nowhere else.
func TestClient_RejectsRedirects(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for _, to := range []string{"https://evil.example/", "/v1/usage", "", "//evil.example", "https://minutes.example:8443/", "https://api.minutes.example/", "http://minutes.example/", "javascript:alert(1)", "http://[::1", "%zz", "\x01"} {
			client, mock := testkit.Responding(t, testkit.Canned(status, "", "Location", to))
			for _, op := range testkit.Operations() {
				before := mock.GetTotalCallCount()
				got, err := op.Call(t.Context(), client)
				testkit.RequireNothing(t, got)
				failed := testkit.RequireError(t, err, op)
				require.Equal(t, status, failed.StatusCode)
				require.Regexp(t, `^the Client does not follow redirects(, here to [a-z.0-9:]+)?$`, failed.Message)
				require.Equal(t, before+1, mock.GetTotalCallCount())
			}
		}
	}
}

// The texts of errors without a response.
func TestErrors_HaveTextWithoutResponse(t *testing.T) {
	t.Parallel()
	m := &minutes.Meeting{ID: "mtg_1", Status: minutes.StatusTranscribing}
	gone := &minutes.Error{StatusCode: 404, Code: minutes.ErrNotFound, Method: "GET", Path: "/v1/meetings/mtg_1", RequestID: "req_1"}
	for want, err := range map[string]error{
		"minutes: title: must not be empty":                                 &minutes.ParamError{Param: "title", Reason: "must not be empty"},
		"minutes: upload to storage: 403 SignatureDoesNotMatch: no \\":      &minutes.StorageError{StatusCode: 403, Code: "SignatureDoesNotMatch", Message: "no \\"},
		"minutes: upload to storage: 503: a b (storage request id 7 )":      &minutes.StorageError{StatusCode: 503, Message: "a\nb", RequestID: "7\n"},
		"minutes: upload to storage: closed":                                &minutes.StorageError{Message: "closed"},
		"minutes: GET /v1/meetings/mtg_1: 404 NOT_FOUND (request id req_1)": gone,
		"minutes: GET /x": &minutes.Error{Method: "GET", Path: "/x"},
	} {
		require.Equal(t, want, err.Error())
	}
	for _, status := range []minutes.Status{minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected, minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed} {
		err := &minutes.MeetingFailedError{Status: status, Meeting: m}
		require.Regexp(t, `^minutes: meeting mtg_1 ended as `+string(status)+`: .+; .+, create a new meeting$`, err.Error())
		err.Meeting = &minutes.Meeting{ID: "mtg_1", ExternalID: "rec-1"}
		require.Regexp(t, `^minutes: meeting mtg_1 ended as `+string(status)+`: .+; .+, delete the meeting and create it again$`, err.Error())
	}
	wait := &minutes.WaitError{MeetingID: "mtg_1", Meeting: m, Err: gone}
	require.Equal(t, "minutes: waiting for meeting mtg_1 (last seen transcribing): GET /v1/meetings/mtg_1: 404 NOT_FOUND (request id req_1)", wait.Error())
	require.ErrorIs(t, wait, minutes.ErrNotFound)
	require.Equal(t, "minutes: waiting for meeting mtg_1: context canceled", (&minutes.WaitError{MeetingID: "mtg_1", Err: context.Canceled}).Error())
}

// Errors that users make for their own tests have a text, even if fields are unset.
func TestErrors_MadeByUsersHaveText(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&minutes.Error{}, &minutes.ParamError{}, &minutes.StorageError{}, &minutes.WaitError{},
		&minutes.MeetingFailedError{Status: minutes.StatusMinutesFailed},
	} {
		require.NotEmpty(t, err.Error())
	}
}

// Retryable and KeyRejected of every rejection of section 7, of other responses, and of failures
// without a response.
func TestRetryable_AndKeyRejectedClassifyErrors(t *testing.T) {
	t.Parallel()
	again := map[minutes.ErrorCode]bool{minutes.ErrMinutesNotReady: true, minutes.ErrTranscriptNotReady: true, minutes.ErrInternal: true}
	type verdicts struct{ retryable, key bool }
	check := func(t *testing.T, err error, want verdicts) {
		t.Helper()
		for _, err := range []error{
			err, fmt.Errorf("job 7: %w", err), errors.Join(err, io.ErrClosedPipe),
			&minutes.WaitError{MeetingID: "mtg_1", Err: err},
		} {
			assert.Equal(t, want, verdicts{minutes.Retryable(err), minutes.KeyRejected(err)}, "%v", err)
		}
	}
	for _, row := range rejections {
		of403 := row.status == 403 && row.is != minutes.ErrForbidden && row.is != minutes.ErrInsufficientScope
		check(t, &minutes.Error{StatusCode: row.status, Code: row.is}, verdicts{again[row.is], row.status == 401 || of403})
	}
	for status, want := range map[int]verdicts{
		0: {true, false}, 200: {true, false}, 302: {}, 401: {false, true}, 403: {}, 404: {}, 407: {}, 408: {true, false}, 413: {},
		429: {true, false}, 500: {true, false}, 502: {true, false}, 503: {true, false}, 504: {true, false}, 520: {true, false},
	} {
		check(t, &minutes.Error{StatusCode: status}, want)
	}
	rejected, away := &minutes.Error{StatusCode: 401, Code: minutes.ErrUnauthenticated}, &minutes.Error{StatusCode: 503}
	failed := &minutes.MeetingFailedError{Status: minutes.StatusTranscriptionFailed}
	for name, test := range map[string]struct {
		err  error
		want verdicts
	}{
		"rate limited":                     {&minutes.Error{Code: minutes.ErrRateLimited}, verdicts{true, false}},
		"FindByExternalID without a match": {&minutes.Error{Code: minutes.ErrNotFound}, verdicts{}},
		"deadline":                         {context.DeadlineExceeded, verdicts{true, false}},
		"canceled":                         {context.Canceled, verdicts{}},
		"canceled during an outage":        {fmt.Errorf("%w; before that: %w", context.Canceled, away), verdicts{}},
		"deadline, with a rejected key":    {fmt.Errorf("%w; before that: %w", context.DeadlineExceeded, rejected), verdicts{false, true}},
		"failed meeting":                   {failed, verdicts{}},
		"no audio":                         {minutes.ErrNoAudio, verdicts{true, false}},
		"no audio, after an outage":        {fmt.Errorf("%w; before that: %w", minutes.ErrNoAudio, away), verdicts{true, false}},
		"empty recording":                  {minutes.ErrRecordingEmpty, verdicts{}},
		"file":                             {io.ErrUnexpectedEOF, verdicts{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, test.err, test.want)
		})
	}
	assert.False(t, minutes.Retryable(nil))
	assert.False(t, minutes.KeyRejected(nil))
}

// Retryable and KeyRejected of errors that calls return.
func TestRetryable_ClassifiesErrorsOfCalls(t *testing.T) {
	t.Parallel()
	store := func(status int, code string) testbase.RoundTripper {
		return testkit.Canned(status, "<Error><Code>"+code+"</Code></Error>")
	}
	lost := func(err error) testbase.RoundTripper {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	untrusted := &tls.CertificateVerificationError{Err: errors.New("who is that?")}
	for name, test := range map[string]struct {
		store  testbase.RoundTripper
		status minutes.Status // of the meeting, at the status check after the failure
		rec    minutes.Source
		want   bool
	}{
		"away":           {store: store(503, "SlowDown"), want: true},
		"lost":           {store: lost(io.EOF), want: true},
		"never reached":  {store: lost(testbase.ErrRefused), want: true},
		"expired":        {store: store(403, "ExpiredToken"), want: true},
		"no Expect":      {store: store(417, "")},
		"signature":      {store: store(403, "SignatureDoesNotMatch")},
		"no certificate": {store: lost(untrusted)},
		"unreadable":     {store: lost(io.EOF), rec: minutes.FromReaderAt(strings.NewReader("short"), 100, "audio/mpeg")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reads := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					_, _ = io.CopyN(io.Discard, req.Body, 7)
					return test.store(req)
				})
				rec := test.rec
				if rec == nil {
					rec = testkit.Audio(10_000)
				}
				c := testkit.Directed(t, "https://storage.example/k?s=1", cmp.Or(test.status, minutes.StatusCreated), reads)
				err := c.Meetings.Upload(t.Context(), "mtg_1", rec, nil)
				require.Error(t, err)
				assert.Equal(t, test.want, minutes.Retryable(err), "%v", err)
				assert.False(t, minutes.KeyRejected(err))
			})
		})
	}
	t.Run("of the API", func(t *testing.T) {
		t.Parallel()
		for want, err := range map[bool]error{false: untrusted, true: testbase.ErrRefused} {
			c, _ := testkit.Responding(t, lost(err))
			_, err := c.Usage.Get(t.Context())
			assert.Equal(t, want, minutes.Retryable(err), "%v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("no longer wanted"))
		c, _ := testkit.Responding(t, testkit.Canned(503, ""))
		_, err := c.Usage.Get(ctx)
		assert.False(t, minutes.Retryable(err), "%v", err)
	})
	t.Run("a rate-limit pause that outlasts the deadline", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c, _ := testkit.Responding(t, testkit.Canned(429, "", "Retry-After", "50"))
			_, err := c.Usage.Get(t.Context())
			assert.True(t, minutes.Retryable(err), "%v", err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err = c.Usage.Get(ctx)
			assert.True(t, minutes.Retryable(err), "%v", err)
		})
	})
}

// Each kind of ParamError differs from the others and from anything else.
func TestParamError_KindsDiffer(t *testing.T) {
	t.Parallel()
	kinds := []error{minutes.ErrRecordingEmpty, minutes.ErrRecordingTooLarge, minutes.ErrRecordingFormat}
	audio := strings.NewReader("sound")
	upload := func(size int64, contentType string) error {
		return testkit.Silent(t).Meetings.Upload(t.Context(), "mtg_1", minutes.FromReaderAt(audio, size, contentType), nil)
	}
	for i, err := range []error{upload(0, "audio/mpeg"), upload(1<<40, "audio/mpeg"), upload(5, ""), upload(1, "mpeg"), io.EOF} {
		for j, kind := range kinds {
			assert.Equal(t, i == j, errors.Is(fmt.Errorf("job 7: %w", err), kind), "%v, %v", err, kind)
		}
	}
	require.EqualError(t, upload(0, "audio/mpeg"), "minutes: size: the recording is empty")
}

func TestRetryAfter_ReadsServiceAndStorage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want time.Duration
	}{
		"nil":           {nil, 0},
		"other":         {io.EOF, 0},
		"not asked":     {&minutes.Error{StatusCode: 503}, 0},
		"service":       {fmt.Errorf("x: %w", &minutes.Error{RetryAfter: time.Hour}), time.Hour},
		"storage":       {&minutes.StorageError{RetryAfter: time.Minute}, time.Minute},
		"both":          {errors.Join(&minutes.Error{RetryAfter: time.Hour}, &minutes.StorageError{RetryAfter: time.Minute}), time.Hour},
		"in a wait":     {&minutes.WaitError{Err: &minutes.Error{RetryAfter: time.Hour}}, time.Hour},
		"joined errors": {errors.Join(&minutes.Error{}, &minutes.StorageError{RetryAfter: time.Minute}), time.Minute},
	} {
		d, ok := minutes.RetryAfter(test.err)
		require.Equal(t, test.want, d, name)
		require.Equal(t, test.want > 0, ok, name)
	}
}
