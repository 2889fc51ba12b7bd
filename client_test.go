package minutes_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

func TestMain(m *testing.M) { testbase.Main(m) }

func TestNew_RejectsBaseURL(t *testing.T) {
	t.Parallel()
	for name, base := range map[string]string{
		"empty":                       "",
		"blank":                       "   ",
		"no scheme":                   "minutes.example",
		"relative":                    "/v1",
		"with the version":            "https://minutes.example/v1",
		"other scheme":                "ftp://minutes.example",
		"no host":                     "https://",
		"opaque":                      "https:minutes.example",
		"invalid port":                "https://minutes.example:http",
		"space in the host":           "https://minutes example",
		"bad escape":                  "https://minutes.example/%zz",
		"invalid UTF-8":               "https://minutes\xff.example",
		"query":                       "https://minutes.example/?tenant=7",
		"fragment":                    "https://minutes.example/#top",
		"credentials":                 "https://someone:hunter22@minutes.example",
		"plain http":                  "http://minutes.example",
		"plain http, private address": "http://10.0.0.1",
		"plain http, like localhost":  "http://localhost.minutes.example",
		"plain http, below localhost": "http://api.localhost/",
		"port over 65535":             "https://minutes.example:65536",
		"port 0":                      "https://minutes.example:0",
		"empty fragment":              "https://minutes.example/#",
		"unclosed IPv6":               "https://[::1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := minutes.New(base, testkit.Key)
			require.Nil(t, c)
			testkit.RequireParamError(t, err, "baseURL", base)
		})
	}
}

func TestNew_AcceptsBaseURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://minutes.example":                  "https://minutes.example/v1/usage",
		"https://minutes.example/":                 "https://minutes.example/v1/usage",
		"HTTPS://minutes.example:8443/gateway/":    "https://minutes.example:8443/gateway/v1/usage",
		"https://minutes.example/a%2Fb/":           "https://minutes.example/a%2Fb/v1/usage",
		"https://minutes.example/caf%C3%A9":        "https://minutes.example/caf%C3%A9/v1/usage",
		"http://localhost:8080":                    "http://localhost:8080/v1/usage",
		"http://LOCALHOST":                         "http://localhost/v1/usage",
		"http://[::ffff:127.0.0.1]":                "http://[::ffff:127.0.0.1]/v1/usage",
		"http://127.8.9.10":                        "http://127.8.9.10/v1/usage",
		"http://[::1]:8080/x":                      "http://[::1]:8080/x/v1/usage",
		"https://xn--bcher-kva.example/minutes/v0": "https://xn--bcher-kva.example/minutes/v0/v1/usage",
	} {
		t.Run(base, func(t *testing.T) {
			t.Parallel()
			mock := httpmock.NewMockTransport()
			var got, observed string
			mock.RegisterNoResponder(func(req *http.Request) (*http.Response, error) {
				got = req.URL.String()
				return httpmock.NewStringResponse(200, testkit.Fixture(t, "usage")), nil
			})
			c, err := minutes.New(base, testkit.Key, minutes.WithHTTPClient(&http.Client{Transport: mock}),
				minutes.WithObserver(func(_ context.Context, a minutes.Attempt) { observed = a.URL }))
			require.NoError(t, err)
			_, err = c.Usage.Get(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, want, observed)
		})
	}
}

func TestNew_RejectsAPIKey(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"empty":             "",
		"blank":             "   ",
		"newline after":     "key_secret\n",
		"newline within":    "key_secret\r\nX-Evil: 1",
		"space before":      " key_secret",
		"with its scheme":   "Bearer key_secret",
		"tab":               "key\tsecret",
		"NUL":               "key_secret\x00",
		"DEL":               "key_secret\x7f",
		"not ASCII":         "key_sécret",
		"invalid UTF-8":     "key_secret\xff",
		"swapped arguments": "https://minutes.example",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := minutes.New("https://minutes.example", key)
			require.Nil(t, c)
			testkit.RequireParamError(t, err, "apiKey", key)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	_, err := minutes.New("key_secret_of_someone", "https://minutes.example")
	testkit.RequireParamError(t, err, "baseURL", "key_secret_of_someone")
	for _, base := range []string{"127.0.0.1:18080", "localhost:18080", "minutes.example"} {
		_, err = minutes.New(base, testkit.Key)
		require.ErrorContains(t, err, "must begin with https://, or with http:// if the host is loopback")
	}
	require.ErrorContains(t, err, "API key")
}

func TestNewFromEnv_ReadsURLAndKey(t *testing.T) {
	for name, test := range map[string]struct{ base, key, param string }{
		"both":              {"https://minutes.example", testkit.Key, ""},
		"white space":       {" https://minutes.example\n", testkit.Key + "\r\n", ""},
		"no base URL":       {"", testkit.Key, "MINUTES_BASE_URL"},
		"blank base URL":    {" \n", testkit.Key, "MINUTES_BASE_URL"},
		"no key":            {"https://minutes.example", "", "MINUTES_API_KEY"},
		"blank key":         {"https://minutes.example", "\t", "MINUTES_API_KEY"},
		"plain http":        {"http://minutes.example", testkit.Key, "MINUTES_BASE_URL"},
		"swapped":           {testkit.Key, "https://minutes.example", "MINUTES_BASE_URL"},
		"space in the key":  {"https://minutes.example", "key secret", "MINUTES_API_KEY"},
		"key that is a URL": {"https://minutes.example", "https://minutes.example", "MINUTES_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MINUTES_BASE_URL", test.base)
			t.Setenv("MINUTES_API_KEY", test.key)
			c, err := minutes.NewFromEnv()
			if test.param == "" {
				require.NoError(t, err)
				return
			}
			require.Nil(t, c)
			testkit.RequireParamError(t, err, test.param, testkit.Key)
			if empty := strings.TrimSpace(test.base) == "" || strings.TrimSpace(test.key) == ""; empty {
				require.ErrorContains(t, err, "must not be empty")
			}
		})
	}
	t.Setenv("MINUTES_BASE_URL", "https://minutes.example")
	t.Setenv("MINUTES_API_KEY", testkit.Key)
	_, err := minutes.NewFromEnv(minutes.WithLogger(nil))
	testkit.RequireParamError(t, err, "WithLogger", "")
}

// Every operation rejects a nil context instead of panicking.
func TestClient_RejectsNilContext(t *testing.T) {
	t.Parallel()
	var none context.Context
	client := testkit.Silent(t)
	for _, op := range testkit.Operations() {
		got, err := op.Call(none, client)
		testkit.RequireNothing(t, got)
		testkit.RequireParamError(t, err, "ctx", "")
	}
	for m, err := range client.Meetings.All(none, nil) {
		require.Nil(t, m)
		testkit.RequireParamError(t, err, "ctx", "")
	}
	testkit.RequireParamError(t, client.Meetings.Upload(none, "mtg_1", testkit.WAV(1), nil), "ctx", "")
}

// takesID lists the operations on one meeting.
func takesID() map[string]func(context.Context, *minutes.Client, string) (any, error) {
	methods := map[string]func(context.Context, *minutes.Client, string) (any, error){}
	for _, op := range testkit.Operations() {
		if strings.Contains(op.Path, testkit.MeetingID) {
			methods[string(op.Name)] = op.Invoke
		}
	}
	return methods
}

// Every method rejects ids that would change the path, or that errors and logs must not show,
// before any request.
func TestMeetings_RejectUnusableIDs(t *testing.T) {
	t.Parallel()
	ids := map[string]string{
		"empty": "", "dot": ".", "dots": "..", "newline": "mtg_1\n", "header": "mtg_1\r\nX-Evil: 1", "NUL": "mtg_\x00",
		"DEL": "mtg_\x7f", "C1": "mtg_\u0085", "the API key": "mtg_" + testkit.Key,
	}
	methods := takesID()
	methods["upload"] = func(ctx context.Context, c *minutes.Client, id string) (any, error) {
		return nil, c.Meetings.Upload(ctx, id, testkit.WAV(1), nil)
	}
	for method, invoke := range methods {
		for name, id := range ids {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				got, err := invoke(t.Context(), testkit.Silent(t), id)
				testkit.RequireNothing(t, got)
				testkit.RequireParamError(t, err, "id", id)
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ids := slices.Values([]string{"mtg_" + testkit.Key})
		for r, err := range testkit.Silent(t).Meetings.WaitAll(ctx, ids, nil) {
			require.NoError(t, err)
			require.Equal(t, "mtg_***", r.MeetingID)
			require.EqualError(t, r.Err, "minutes: waiting for meeting mtg_***: ids: contains the API key")
		}
	})
}

// JSON replaces bytes that are not UTF-8, so two strings that identify something could become one.
func TestClient_RejectsIdentifiersThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	const bad = "a\xff"
	c := testkit.Silent(t)
	ctx := t.Context()
	create := func(p minutes.MeetingCreateParams) error {
		_, _, err := c.Meetings.Create(ctx, &p)
		return err
	}
	process := func(p minutes.MeetingCreateParams) error {
		source := func(context.Context) (minutes.Recording, error) {
			t.Error("opened a recording")
			return minutes.Recording{}, nil
		}
		jobs := slices.Values([]minutes.Job{{Params: &p, Source: source}})
		for r, err := range c.Meetings.ProcessAll(ctx, jobs, nil) {
			require.NoError(t, err)
			var param *minutes.ParamError
			require.ErrorAs(t, r.Err, &param)
		}
		_, err := c.Meetings.Process(ctx, &p, source, nil)
		return err
	}
	all := func() (err error) {
		for _, err = range c.Meetings.All(ctx, &minutes.MeetingListParams{ExternalID: bad}) {
		}
		return err
	}
	one := func(_ any, err error) error { return err }
	for _, test := range []struct {
		param string
		err   error
	}{
		{"params.ExternalID", create(minutes.MeetingCreateParams{ExternalID: bad})},
		{"params.ParticipantIDs", create(minutes.MeetingCreateParams{ParticipantIDs: []string{"emp_ada", bad}})},
		{"params.ProjectID", create(minutes.MeetingCreateParams{ProjectID: bad})},
		{"params.SharedWith", create(minutes.MeetingCreateParams{SharedWith: []string{bad}})},
		{"params.TemplateID", create(minutes.MeetingCreateParams{TemplateID: bad})},
		{"params.ExternalID", process(minutes.MeetingCreateParams{ExternalID: bad})},
		{"params.ExternalID", all()},
		{"params.ExternalID", one(c.Meetings.List(ctx, &minutes.MeetingListParams{ExternalID: bad}))},
		{"externalID", one(c.Meetings.FindByExternalID(ctx, bad))},
		{"id", one(c.Meetings.Get(ctx, bad))},
		{"params.ProjectID", one(c.Meetings.Update(ctx, "mtg_1", &minutes.MeetingUpdateParams{ProjectID: new(bad)}))},
		{"memberIDs", one(c.Meetings.SetParticipants(ctx, "mtg_1", []string{bad}))},
		{"contentType", one(c.Meetings.UploadURL(ctx, "mtg_1", "audio/"+bad))},
		{"params.Email", one(c.Members.Create(ctx, &minutes.MemberCreateParams{Name: "Ada", Email: bad}))},
		{"terms", one(c.Vocabulary.Replace(ctx, []string{bad}))},
		{"term", one(c.Vocabulary.Add(ctx, bad))},
	} {
		testkit.RequireParamError(t, test.err, test.param, bad)
	}
}

// Every other id is one path segment, whatever it contains, and arrives unchanged.
func TestMeetings_IDIsOnePathSegment(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"mtg_1", "a/b", "../../v1/usage", "/", "//", "a?b=c", "a#b", "%2e", "%2e%2e", "%2F", "%", "%zz",
		"é", "a b", " ", "+", "a;b=c", "a:b", "...", "{meeting_id}", `a\b`, "日本", "a&b", "\u202e",
		strings.Repeat("x", 3000),
	} {
		t.Run(id[:min(len(id), 20)], func(t *testing.T) {
			t.Parallel()
			client, requests := testkit.OneResponse(t, 404, testkit.Fixture(t, "error_absent"))
			for name, invoke := range takesID() {
				_, err := invoke(t.Context(), client, id)
				require.ErrorIs(t, err, minutes.ErrNotFound, name)
				require.NotContains(t, err.Error(), "\u202e", "what steers a terminal is not printed")
				all := requests()
				require.Len(t, all, 1)
				path, _, _ := strings.Cut(all[0].URI, "?")
				rest, ok := strings.CutPrefix(path, "/gateway/minutes%2Fapi/v1/meetings/")
				require.True(t, ok, path)
				segment, rest, _ := strings.Cut(rest, "/")
				require.NotContains(t, rest, "/")
				arrived, err := url.PathUnescape(segment)
				require.NoError(t, err)
				require.Equal(t, id, arrived)
				require.NotContains(t, []string{".", ".."}, segment)
			}
		})
	}
}

// If the context is done, no operation sends a request.
func TestClient_SendsNothingIfContextIsDone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the shop is closed")
	cancel(why)
	client := testkit.Silent(t)
	for _, op := range testkit.Operations() {
		got, err := op.Call(ctx, client)
		testkit.RequireNothing(t, got)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
		failed, ok := errors.AsType[*minutes.Error](err)
		require.True(t, ok)
		require.Equal(t, op.Method, failed.Method)
		require.Equal(t, op.Path, failed.Path)
		require.Zero(t, failed.StatusCode)
	}
}

// The interface may grow: unknown fields, states and codes do no harm.
func TestClient_AcceptsResponsesOfLaterInterface(t *testing.T) {
	t.Parallel()
	client, _ := testkit.OneResponse(t,
		200,
		`{"id":"mtg_1","title":"T","date":"2027-01-01","status":"being_translated","visibility":"galaxy",
		"template_id":"tpl","summary":{"mood":["good"]},"created_at":1,"updated_at":2}`,
	)
	m, err := client.Meetings.Get(t.Context(), "mtg_1")
	require.NoError(t, err)
	require.Equal(t, minutes.Status("being_translated"), m.Status)
	require.False(t, m.Status.Final())
	require.Equal(t, minutes.Visibility("galaxy"), m.Visibility)
}

// Each operation sends exactly the request of the interface, and decodes the response into exactly
// the expected Go value.
func TestOperations_SendAndDecodeAsDocumented(t *testing.T) {
	t.Parallel()
	for _, op := range testkit.Operations() {
		t.Run(string(op.Name), func(t *testing.T) {
			t.Parallel()
			response := ""
			if op.Response != "" {
				response = testkit.Fixture(t, op.Response)
			}
			client, requests := testkit.OneResponse(t, op.Status, response)

			got, err := op.Call(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, op.Want, got)

			all := requests()
			require.Len(t, all, 1)
			req := all[0]
			require.Equal(t, op.Method, req.Method)
			uri := "/gateway/minutes%2Fapi" + op.Path
			if op.Query != "" {
				uri += "?" + op.Query
			}
			require.Equal(t, uri, req.URI)
			require.Empty(t, req.Encoding, "a length is sent, not chunks")
			header := http.Header{
				"Authorization":   {"Bearer " + testkit.Key},
				"Accept":          {"application/json"},
				"Accept-Encoding": {"gzip"}, // net/http's own
				"User-Agent":      req.Header["User-Agent"],
			}
			require.Regexp(t, `^minutes-go/\d+\.\d+\.\d+\S*$`, req.Header.Get("User-Agent"))
			if op.Body == "" {
				require.Empty(t, req.Body)
				require.Zero(t, req.Length)
			} else {
				header["Content-Type"] = []string{"application/json"}
				header["Content-Length"] = req.Header["Content-Length"]
				require.EqualValues(t, len(req.Body), req.Length)
				require.Equal(t, op.Body, req.Body)
			}
			require.Equal(t, header, req.Header, "no header is missing and none is extra")
		})
	}
}
