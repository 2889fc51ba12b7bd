package minutes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

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
	for i, row := range rejections {
		t.Run(row.code, func(t *testing.T) {
			t.Parallel()
			body := `{"error":{"code":"` + row.code + `","message":"Plain words.","request_id":"req_93af",` +
				`"details":{"fields":["title"],"holder":{"name":"Ada"}}}}`
			client, _ := testkit.Responding(t, testkit.Canned(row.status, body, "Content-Type", "application/json"))
			var last error
			operations := testkit.Operations()
			if row.code != "INSUFFICIENT_SCOPE" && !testbase.Long() { // what the others say depends on no operation
				operations = operations[i%len(operations):][:1]
			}
			for _, op := range operations {
				got, err := op.Call(t.Context(), client)
				testkit.RequireNothing(t, got)
				failed := testkit.RequireError(t, err, op)
				require.Equal(t, row.status, failed.StatusCode)
				require.Equal(t, row.code, row.is.Error())
				require.Equal(t, minutes.ErrorCode(row.code), failed.Code)
				require.Equal(t, "Plain words.", failed.Message)
				require.Equal(t, "req_93af", failed.RequestID)
				require.Equal(t,
					map[string]any{"fields": []any{"title"}, "holder": map[string]any{"name": "Ada"}},
					failed.Details,
				)
				require.Zero(t, failed.RetryAfter)
				words := "Plain words."
				if row.code == "INSUFFICIENT_SCOPE" {
					require.Equal(t, minutes.Scope(op.Scope), failed.Scope)
					words += " (needs the scope " + op.Scope + ")"
				} else {
					require.Empty(t, failed.Scope)
				}
				require.Equal(t, op.Name, failed.Operation)
				text := fmt.Sprintf("minutes: %s %s: %d %s: %s (request id req_93af)",
					op.Method, op.Path, row.status, row.code, words)
				require.Equal(t, text, err.Error())
				require.NotErrorIs(t, err, minutes.ErrRateLimited)
				require.NotErrorIs(t, err, minutes.ErrorCode(""))
				found, ok := errors.AsType[minutes.ErrorCode](fmt.Errorf("job 7: %w", err))
				require.True(t, ok)
				require.Equal(t, row.is, found)
				last = err
			}
			for _, other := range rejections {
				require.Equal(t, other.code == row.code, errors.Is(last, other.is), other.code)
			}
		})
	}
}

// If an error response has no envelope, the error describes the response.
func TestError_DescribesResponseWithoutEnvelope(t *testing.T) {
	t.Parallel()
	const page = "<!DOCTYPE html><h1>Not Found</h1><p>NOT_FOUND</p>"
	const foreign = "the response is not the service's error envelope"
	for name, test := range map[string]struct {
		status int
		body   string
		header []string
		code   minutes.ErrorCode
		text   string // after method and path
	}{
		"bare 429": {
			429, "slow down", []string{"Content-Type", "text/plain"}, minutes.ErrRateLimited,
			"429 RATE_LIMITED: too many requests",
		},
		"HTML 404": {
			404, page, []string{"Content-Type", "text/html; charset=utf-8"}, "",
			"404: " + foreign + `: minutes.example sent "Not Found"; check the base URL`,
		},
		"empty 500": {500, "", nil, "", "500: " + foreign + ": minutes.example sent no text"},
		"empty 404": {404, "", nil, "", "404: " + foreign + ": minutes.example sent no text; check the base URL"},
		"empty, with Server and request id of a gateway": {
			502, "", []string{"X-Request-Id", "gw-7", "Server", "envoy"}, "",
			"502: " + foreign + ": minutes.example (envoy) sent no text (request id gw-7)",
		},
		"HTML 403": {
			403, page, []string{"Content-Type", "text/html; charset=utf-8"}, "",
			"403: " + foreign + `: minutes.example sent "Not Found"`,
		},
		"truncated envelope": {
			404, `{"error":{"code":"NOT_FOUND","mess`, []string{"Content-Type", "application/json"}, "",
			"404: " + foreign + ": minutes.example sent invalid JSON (34 bytes); check the base URL",
		},
		"trailing text": {
			404, `{"error":{"code":"NOT_FOUND"}} and more`, []string{"Server", "kong/3.4"}, "",
			"404: " + foreign + ": minutes.example (kong/3.4) sent invalid JSON (39 bytes); check the base URL",
		},
		"null": {
			404, `null`, nil, "",
			"404: " + foreign + ": minutes.example sent JSON without a message; check the base URL",
		},
		"JSON without a text": {
			403, `{"allowed":false,"name":"Ada"}`, []string{"Server", "kong/3.4"}, "",
			"403: " + foreign + ": minutes.example (kong/3.4) sent JSON without a message",
		},
		"array": {
			404, `[{"error":{"code":"NOT_FOUND"}}]`, nil, "",
			"404: " + foreign + ": minutes.example sent JSON without a message; check the base URL",
		},
		"string": {
			404, `"NOT_FOUND"`, nil, "",
			"404: " + foreign + `: minutes.example sent "NOT_FOUND"; check the base URL`,
		},
		"error string": {
			404, `{"error":"NOT_FOUND"}`, nil, "",
			"404: " + foreign + `: minutes.example sent "NOT_FOUND"; check the base URL`,
		},
		"empty code": {
			404, `{"error":{"code":"","message":"m"}}`, nil, "",
			"404: " + foreign + `: minutes.example sent "m"; check the base URL`,
		},
		"code only": {404, `{"error":{"code":"NOT_FOUND"}}`, nil, "NOT_FOUND", "404 NOT_FOUND"},
		"code and request id in header": {
			404, `{"error":{"code":"NOT_FOUND"}}`, []string{"X-Request-Id", "gw-7"}, "NOT_FOUND",
			"404 NOT_FOUND (request id gw-7)",
		},
		"wrong types beside the code": {
			404, `{"error":{"message":7,"code":"NOT_FOUND","request_id":{},"details":[1]}}`, nil, "NOT_FOUND",
			"404 NOT_FOUND",
		},
		"message of several lines": {
			404, `{"error":{"code":"NOT_FOUND","message":"a\r\nb\u001b[31mc\u202ed\u0000","request_id":"r\n"}}`, nil,
			"NOT_FOUND", "404 NOT_FOUND: a  b [31mc d  (request id r )",
		},
		"redirect without a target": {302, page, nil, "", "302: the Client does not follow redirects"},
		"redirect": {
			302, page, []string{"Location", "https://evil.example/?q"}, "",
			"302: the Client does not follow redirects, here to evil.example",
		},
		"echo of the key": {
			401,
			strings.ReplaceAll(`{"error":{"code":"UNAUTHENTICATED","message":"no key KEY","request_id":"KEY"}}`,
				"KEY", testkit.Key),
			nil, "UNAUTHENTICATED", "401 UNAUTHENTICATED: no key *** (request id ***)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, mock := testkit.Responding(t, testkit.Canned(test.status, test.body, test.header...))
			op := testkit.OperationNamed(t, minutes.OpMeetingsGet)
			got, err := op.Call(t.Context(), client)
			testkit.RequireNothing(t, got)
			failed := testkit.RequireError(t, err, op)
			require.Equal(t, test.status, failed.StatusCode)
			require.Equal(t, test.code, failed.Code)
			require.Equal(t, test.code == "NOT_FOUND", errors.Is(err, minutes.ErrNotFound))
			require.Equal(t, test.code == minutes.ErrRateLimited, errors.Is(err, minutes.ErrRateLimited))
			require.NotErrorIs(t, err, minutes.ErrorCode(""), "an empty code matches nothing")
			_, hasCode := errors.AsType[minutes.ErrorCode](err)
			require.Equal(t, test.code != "", hasCode)
			require.Equal(t, "minutes: "+op.Method+" "+op.Path+": "+test.text, err.Error())
			require.NotContains(t, fmt.Sprintf("%+v %#v", failed, failed), testkit.Key)
			require.Equal(t, 1, mock.GetTotalCallCount(), "one request")
		})
	}
}

// Gateways have error responses of their own in JSON, whose text the error shows with the Server.
func TestError_ShowsWhatAGatewaySays(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"AWS, Kong, Envoy":    `{"message":"No quota"}`,
		"AWS, upper case":     `{"Message":"No quota"}`,
		"AWS Lambda":          `{"errorType":"Quota","errorMessage":"No quota"}`,
		"Azure":               `{"statusCode":403,"message":"No quota"}`,
		"Tyk":                 `{"error":"No quota"}`,
		"Spring":              `{"status":403,"error":"Forbidden","message":"No quota","path":"/x"}`,
		"FastAPI":             `{"detail":"No quota"}`,
		"OAuth 2.0":           `{"error":"insufficient_quota","error_description":"No quota"}`,
		"Google":              `{"error":{"code":403,"message":"No quota","status":"DENIED"}}`,
		"Apigee":              `{"fault":{"faultstring":"No quota","detail":{"errorcode":"policies.Quota"}}}`,
		"Cloudflare":          `{"success":false,"errors":[{"code":1015,"message":"No quota"}],"messages":[]}`,
		"list of texts":       `{"errors":["No quota"]}`,
		"problem":             `{"type":"about:blank","title":"Forbidden","status":403,"detail":"No quota"}`,
		"problem, only title": `{"type":"about:blank","title":"No quota","status":403}`,
		"empty message":       `{"message":"","error":"No quota"}`,
		"beside other types":  `{"message":7,"detail":{"a":1},"errors":[],"error":"No quota"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for status, code := range map[int]minutes.ErrorCode{403: "", 429: minutes.ErrRateLimited} {
				client, _ := testkit.Responding(t,
					testkit.Canned(status, body, "Server", "kong/3.4", "Content-Type", "application/json"),
				)
				_, err := client.Usage.Get(t.Context())
				failed := testkit.RequireError(t, err, testkit.OperationNamed(t, "usage.get"))
				require.Equal(t, code, failed.Code)
				require.Equal(t, "the response is not the service's error envelope: "+
					`minutes.example (kong/3.4) sent "No quota"`, failed.Message)
			}
		})
	}
}

// A 429 with an envelope keeps its code and is still a rate limit.
func TestError_429WithEnvelopeIsRateLimit(t *testing.T) {
	t.Parallel()
	client, _ := testkit.Responding(t,
		testkit.Canned(429, `{"error":{"code":"TOO_MANY","message":"m","request_id":"r"}}`, "Retry-After", "7"),
	)
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
	client, _ := testkit.Responding(t,
		testkit.Canned(400, `{"error":{"code":"BAD_REQUEST","message":"`+long+`","request_id":"req_1"}}`),
	)
	_, err := client.Usage.Get(t.Context())
	failed := testkit.RequireError(t, err, testkit.OperationNamed(t, "usage.get"))
	require.Equal(t, long, failed.Message)
	require.Less(t, len(err.Error()), 1200)
	require.True(t, strings.HasSuffix(err.Error(), "é… (request id req_1)"), err.Error())
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
	id, err := json.Marshal(nasty + strings.Repeat("long ", 2000))
	require.NoError(t, err)
	quoted := `"` + testkit.Key + " " + string(id[1:])
	c, _ := testkit.Responding(t,
		testkit.Canned(404, `{"error":{"code":`+quoted+`,"message":`+quoted+`,"request_id":`+quoted+`}}`),
	)
	_, err = c.Meetings.Get(t.Context(), "mtg_\u202e"+testkit.Key)
	requireClean(t, err.Error())
	c, _ = testkit.Responding(t, testkit.Canned(201, `{"id":`+string(id)+`,"status":"audio_rejected"}`))
	_, err = c.Meetings.Process(t.Context(), weekly(""), testkit.Audio(1), nil)
	_, failed := errors.AsType[*minutes.MeetingFailedError](err)
	require.True(t, failed, "%v", err)
	requireClean(t, err.Error())
	c, _ = testkit.Responding(t, testkit.Canned(200, `{"id":"mtg_1","status":"no `+testkit.Key+`"}`))
	m, err := c.Meetings.Get(t.Context(), "mtg_1")
	require.NoError(t, err)
	requireClean(t, (&minutes.WaitError{MeetingID: "mtg_1", Meeting: m}).Error())
	for _, err := range []error{
		&minutes.MeetingFailedError{Status: "x\ny", Meeting: &minutes.Meeting{ID: "x\ny"}},
		&minutes.MeetingFailedError{Status: "x\ny"},
		&minutes.WaitError{
			MeetingID: "x\ny", Meeting: &minutes.Meeting{Status: "x\ny"}, Err: errors.Join(io.EOF, errors.New("x\x1b")),
		},
	} {
		requireClean(t, err.Error())
	}
}

// The texts of errors without a response.
func TestErrors_HaveTextWithoutResponse(t *testing.T) {
	t.Parallel()
	m := &minutes.Meeting{ID: "mtg_1", Status: minutes.StatusTranscribing}
	gone := &minutes.Error{
		StatusCode: 404,
		Code:       minutes.ErrNotFound,
		Method:     "GET",
		Path:       "/v1/meetings/mtg_1",
		RequestID:  "req_1",
	}
	for want, err := range map[string]error{
		"minutes: title: must not be empty": &minutes.ParamError{
			Param: "title", Reason: "must not be empty",
		},
		"minutes: upload to storage: 403 SignatureDoesNotMatch: no \\": &minutes.StorageError{
			StatusCode: 403, Code: "SignatureDoesNotMatch", Message: "no \\",
		},
		"minutes: upload to storage: 503: a b (storage request id 7 )": &minutes.StorageError{
			StatusCode: 503, Message: "a\nb", RequestID: "7\n",
		},
		"minutes: GET /x: 429 RATE_LIMITED: retry after 7s": &minutes.Error{
			Method: "GET", Path: "/x", StatusCode: 429, Code: minutes.ErrRateLimited, RetryAfter: 7 * time.Second,
		},
		"minutes: upload to storage: closed":                                &minutes.StorageError{Message: "closed"},
		"minutes: GET /v1/meetings/mtg_1: 404 NOT_FOUND (request id req_1)": gone,
		"minutes: waiting for meetings: context canceled":                   &minutes.WaitError{Err: context.Canceled},
		"minutes: GET /x":            &minutes.Error{Method: "GET", Path: "/x"},
		"minutes: upload to storage": &minutes.StorageError{}, // as a user's test may make it
	} {
		require.Equal(t, want, err.Error())
	}
	for _, status := range []minutes.Status{
		minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected,
		minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed,
	} {
		err := &minutes.MeetingFailedError{Status: status, Meeting: m}
		begin := "^minutes: meeting mtg_1 ended as " + string(status) + ": .+; .+, "
		require.Regexp(t, begin+"create a new meeting$", err.Error())
		err.Meeting = &minutes.Meeting{ID: "mtg_1", ExternalID: "rec-1"}
		require.Regexp(t, begin+"delete the meeting and create it again$", err.Error())
	}
	wait := &minutes.WaitError{MeetingID: "mtg_1", Meeting: m, Err: gone}
	require.Equal(t,
		"minutes: waiting for meeting mtg_1 (last seen transcribing): "+
			"GET /v1/meetings/mtg_1: 404 NOT_FOUND (request id req_1)",
		wait.Error(),
	)
	require.ErrorIs(t, wait, minutes.ErrNotFound)
	require.Equal(t,
		"minutes: waiting for meeting mtg_1: context canceled",
		(&minutes.WaitError{MeetingID: "mtg_1", Err: context.Canceled}).Error(),
	)
}

// Retryable and KeyRejected of every rejection of section 7, of other responses, and of failures
// without a response.
func TestRetryable_AndKeyRejectedClassifyErrors(t *testing.T) {
	t.Parallel()
	again := map[minutes.ErrorCode]bool{
		minutes.ErrMinutesNotReady:    true,
		minutes.ErrTranscriptNotReady: true,
		minutes.ErrInternal:           true,
	}
	type verdicts struct{ retryable, key bool }
	check := func(t *testing.T, err error, want verdicts) {
		t.Helper()
		for _, err := range []error{
			err, fmt.Errorf("job 7: %w", err), errors.Join(err, io.ErrClosedPipe), errors.Join(io.ErrClosedPipe, err),
			&minutes.WaitError{MeetingID: "mtg_1", Err: err},
		} {
			assert.Equal(t, want, verdicts{minutes.Retryable(err), minutes.KeyRejected(err)}, "%v", err)
		}
	}
	for _, row := range rejections {
		of403 := row.status == 403 && row.is != minutes.ErrForbidden && row.is != minutes.ErrInsufficientScope
		want := verdicts{again[row.is], row.status == 401 || of403}
		check(t, &minutes.Error{StatusCode: row.status, Code: row.is}, want)
		check(t, &minutes.Error{Code: row.is}, want)
		check(t, row.is, want)
	}
	check(t, minutes.ErrRateLimited, verdicts{true, false})
	for status, want := range map[int]verdicts{
		0: {true, false}, 200: {}, 302: {}, 401: {false, true}, 403: {}, 404: {}, 407: {},
		408: {true, false}, 413: {}, 429: {true, false}, 500: {true, false}, 502: {true, false},
		503: {true, false}, 504: {true, false}, 520: {true, false},
	} {
		check(t, &minutes.Error{StatusCode: status}, want)
	}
	rejected := &minutes.Error{StatusCode: 401, Code: minutes.ErrUnauthenticated}
	away := &minutes.Error{StatusCode: 503}
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
		"deadline, with a rejected key": {
			fmt.Errorf("%w; before that: %w", context.DeadlineExceeded, rejected), verdicts{false, true},
		},
		"failed meeting": {failed, verdicts{}},
		"no audio":       {minutes.ErrNoAudio, verdicts{true, false}},
		"no audio, after an outage": {
			fmt.Errorf("%w; before that: %w", minutes.ErrNoAudio, away), verdicts{true, false},
		},
		"page about TLS": {
			&minutes.Error{StatusCode: 502, Message: "tls: protocol version not supported"}, verdicts{true, false},
		},
		"empty recording": {minutes.ErrRecordingEmpty, verdicts{}},
		"file":            {io.ErrUnexpectedEOF, verdicts{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, test.err, test.want)
		})
	}
	assert.False(t, minutes.Retryable(nil))
	assert.False(t, minutes.KeyRejected(nil))
}

// A 2xx says that the request was carried out, so the same call must not be made again, unless
// another server sent the 2xx, or it broke off.
func TestRetryable_JudgesA2xx(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header, body string
		broken       bool
		want         bool
	}{
		"page of a proxy":     {"text/html", "<title>Maintenance</title>", false, true},
		"text of a proxy":     {"", "Please log in", false, true},
		"no JSON":             {"application/json", "{", false, false},
		"empty":               {"", "", false, false},
		"other JSON":          {"", "[]", false, false},
		"required field away": {"", "{}", false, false},
		"broke off":           {"", "{", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := testkit.Responding(t, func(*http.Request) (*http.Response, error) {
				body := io.Reader(strings.NewReader(test.body))
				if test.broken {
					body = io.MultiReader(body, testbase.Failing(io.ErrUnexpectedEOF))
				}
				header := http.Header{"Content-Type": {test.header}}
				return &http.Response{StatusCode: 201, Header: header, Body: io.NopCloser(body)}, nil
			})
			_, err := c.Projects.Create(t.Context(), &minutes.ProjectCreateParams{Name: "Apollo"})
			require.Error(t, err)
			require.Equal(t, test.want, minutes.Retryable(err), "%v", err)
		})
	}
}

// Retryable of errors that calls return. internal/storage tests those of uploads.
func TestRetryable_ClassifiesErrorsOfCalls(t *testing.T) {
	t.Parallel()
	lost := func(err error) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	synctest.Test(t, func(t *testing.T) {
		for want, err := range map[bool]error{false: testbase.ErrUntrusted, true: testbase.ErrRefused} {
			c, _ := testkit.Responding(t, lost(err))
			_, err := c.Usage.Get(t.Context())
			require.Equal(t, want, minutes.Retryable(err), "%v", err)
			store := testkit.Directed(t,
				"https://storage.example/k?s=1",
				minutes.StatusCreated,
				testbase.RoundTripper(lost(err)),
			)
			err = store.Meetings.Upload(t.Context(), "mtg_1", testkit.Audio(10), nil)
			require.Equal(t, want, minutes.Retryable(err), "%v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c, _ := testkit.Responding(t, testkit.Canned(503, ""))
		_, err := c.Usage.Get(ctx)
		require.False(t, minutes.Retryable(err), "%v", err)
		c, _ = testkit.Responding(t, testkit.Canned(429, "", "Retry-After", "50"))
		_, err = c.Usage.Get(t.Context())
		require.True(t, minutes.Retryable(err), "%v", err)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second) // before the end of the pause
		defer cancel()
		_, err = c.Usage.Get(ctx)
		require.True(t, minutes.Retryable(err), "%v", err)
	})
}

func TestRetryAfter_ReadsServiceAndStorage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want time.Duration
	}{
		"nil":       {nil, 0},
		"other":     {io.EOF, 0},
		"not asked": {&minutes.Error{StatusCode: 503}, 0},
		"service":   {fmt.Errorf("x: %w", &minutes.Error{RetryAfter: time.Hour}), time.Hour},
		"storage":   {&minutes.StorageError{RetryAfter: time.Minute}, time.Minute},
		"both": {
			errors.Join(&minutes.Error{RetryAfter: time.Hour}, &minutes.StorageError{RetryAfter: time.Minute}),
			time.Hour,
		},
		"in a wait":     {&minutes.WaitError{Err: &minutes.Error{RetryAfter: time.Hour}}, time.Hour},
		"joined errors": {errors.Join(&minutes.Error{}, &minutes.StorageError{RetryAfter: time.Minute}), time.Minute},
		"the other way": {errors.Join(&minutes.StorageError{RetryAfter: time.Minute}, &minutes.Error{}), time.Minute},
	} {
		d, ok := minutes.RetryAfter(test.err)
		require.Equal(t, test.want, d, name)
		require.Equal(t, test.want > 0, ok, name)
	}
}

// If a request after an attempt finds the meeting deleted, another upload cannot succeed.
func TestRetryable_LetsTheServiceDecideAfterAnUpload(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 503} { // of storage's last response
		failed := &minutes.StorageError{StatusCode: status, MeetingID: "mtg_1", Err: io.EOF}
		require.True(t, minutes.Retryable(failed))
		failed.Err = fmt.Errorf("%w; %w", io.EOF, &minutes.Error{StatusCode: 404, Code: minutes.ErrNotFound})
		require.False(t, minutes.Retryable(failed))
		failed.Err = fmt.Errorf("%w; %w", io.EOF, &minutes.Error{StatusCode: 503})
		require.True(t, minutes.Retryable(failed))
	}
}
