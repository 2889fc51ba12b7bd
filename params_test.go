package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// requireParamError wants a *ParamError that names the parameter in one short
// line and does not repeat the value.
func requireParamError(t testing.TB, err error, param, value string) {
	t.Helper()
	bad, ok := errors.AsType[*minutes.ParamError](err)
	require.True(t, ok, "%T: %v", err, err)
	require.Equal(t, param, bad.Param)
	require.NotEmpty(t, bad.Reason)
	require.True(t, strings.HasPrefix(err.Error(), "minutes: "+param+": "), err.Error())
	require.NotContains(t, err.Error(), "\n")
	if len(value) > 3 {
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, bad), value)
	}
}

func TestNewRefusesBaseURL(t *testing.T) {
	t.Parallel()
	for name, base := range map[string]string{
		"empty":                       "",
		"blank":                       "   ",
		"no scheme":                   "minutes.example",
		"no scheme, with port":        "minutes.example:8443",
		"relative":                    "/v1",
		"with the version":            "https://minutes.example/v1",
		"with the version, slash":     "https://minutes.example/v1/",
		"scheme-relative":             "//minutes.example",
		"other scheme":                "ftp://minutes.example",
		"file":                        "file:///etc/passwd",
		"no host":                     "https://",
		"no host, port":               "https://:443",
		"no host, path":               "https:///v1",
		"opaque":                      "https:minutes.example",
		"port that is none":           "https://minutes.example:http",
		"space in the host":           "https://minutes example",
		"space before":                " https://minutes.example",
		"newline after":               "https://minutes.example\n",
		"control character in path":   "https://minutes.example/a\x01",
		"escaped control character":   "https://minutes.example/a%0d%0ab",
		"bad escape":                  "https://minutes.example/%zz",
		"invalid UTF-8":               "https://minutes\xff.example",
		"query":                       "https://minutes.example/?tenant=7",
		"empty query":                 "https://minutes.example/?",
		"fragment":                    "https://minutes.example/#top",
		"credentials":                 "https://someone:hunter22@minutes.example",
		"user alone":                  "https://someone@minutes.example",
		"plain http":                  "http://minutes.example",
		"plain http, private address": "http://10.0.0.1",
		"plain http, any address":     "http://0.0.0.0",
		"plain http, like localhost":  "http://localhost.minutes.example",
		"plain http, like loopback":   "http://127.0.0.1.minutes.example",
		"plain http, prefix":          "http://notlocalhost",
		"plain http, below localhost": "http://api.localhost/",
		"plain http, localhost, dot":  "http://localhost.",
		"port beyond the last":        "https://minutes.example:65536",
		"port far beyond the last":    "https://minutes.example:99999999",
		"port 0":                      "https://minutes.example:0",
		"unclosed IPv6":               "https://[::1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := minutes.New(base, testKey)
			require.Nil(t, c)
			requireParamError(t, err, "baseURL", base)
		})
	}
}

func TestNewTakesBaseURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://minutes.example":                  "https://minutes.example/v1/usage",
		"https://minutes.example/":                 "https://minutes.example/v1/usage",
		"https://minutes.example///":               "https://minutes.example/v1/usage",
		"HTTPS://minutes.example:8443/gateway/":    "https://minutes.example:8443/gateway/v1/usage",
		"https://minutes.example/a%2Fb/":           "https://minutes.example/a%2Fb/v1/usage",
		"https://minutes.example/a%2F":             "https://minutes.example/a%2F/v1/usage",
		"https://minutes.example/caf%C3%A9":        "https://minutes.example/caf%C3%A9/v1/usage",
		"https://minutes.example/{meeting_id}":     "https://minutes.example/%7Bmeeting_id%7D/v1/usage",
		"http://localhost:8080":                    "http://localhost:8080/v1/usage",
		"http://LOCALHOST":                         "http://localhost/v1/usage",
		"https://api.localhost/":                   "https://api.localhost/v1/usage",
		"https://minutes.example:65535":            "https://minutes.example:65535/v1/usage",
		"https://minutes.example:":                 "https://minutes.example:/v1/usage",
		"http://[::ffff:127.0.0.1]":                "http://[::ffff:127.0.0.1]/v1/usage",
		"http://127.0.0.1:1":                       "http://127.0.0.1:1/v1/usage",
		"http://127.8.9.10":                        "http://127.8.9.10/v1/usage",
		"http://[::1]:8080/x":                      "http://[::1]:8080/x/v1/usage",
		"https://10.0.0.1":                         "https://10.0.0.1/v1/usage",
		"https://minutes.example/a/../b":           "https://minutes.example/a/../b/v1/usage",
		"https://xn--bcher-kva.example/minutes/v0": "https://xn--bcher-kva.example/minutes/v0/v1/usage",
	} {
		t.Run(base, func(t *testing.T) {
			t.Parallel()
			mock := httpmock.NewMockTransport()
			var got string
			mock.RegisterNoResponder(func(req *http.Request) (*http.Response, error) {
				got = req.URL.String()
				return httpmock.NewStringResponse(200, fixture(t, "usage")), nil
			})
			c, err := minutes.New(base, testKey, minutes.WithHTTPClient(&http.Client{Transport: mock}))
			require.NoError(t, err)
			_, err = c.Usage.Get(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// What goes out in the clear goes through no proxy, whatever the environment says:
// the key would be read there.
func TestPlainHTTPAsksNoProxy(t *testing.T) {
	if os.Getenv("HTTP_PROXY") != "http://proxy.example:3128" {
		t.Parallel()
		// net/http reads the environment once, so it takes a process of its own.
		cmd := exec.Command(os.Args[0], "-test.run=^TestPlainHTTPAsksNoProxy$", "-test.v")
		cmd.Env = append(os.Environ(), "HTTP_PROXY=http://proxy.example:3128", "NO_PROXY=", "no_proxy=")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "asked for 6")
		return
	}
	asked := 0
	for _, host := range []string{"localhost", "LocalHost:80", "127.0.0.1", "127.255.0.1:8080", "[::1]", "[::ffff:127.0.0.1]", "a.localhost", "localhost.", "127.1", "[::1%25lo]"} {
		c, err := minutes.New("http://"+host, testKey, minutes.WithHTTPClient(&http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			asked++
			proxy, err := http.ProxyFromEnvironment(req)
			assert.NoError(t, err)
			assert.Nil(t, proxy, host)
			return httpmock.NewStringResponse(200, fixture(t, "usage")), nil
		})}))
		if err == nil {
			_, err = c.Usage.Get(t.Context())
			require.NoError(t, err)
		}
	}
	t.Log("asked for", asked)
}

func TestNewRefusesAPIKey(t *testing.T) {
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
			requireParamError(t, err, "apiKey", key)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	_, err := minutes.New("key_secret_of_someone", "https://minutes.example")
	requireParamError(t, err, "baseURL", "key_secret_of_someone")
	require.ErrorContains(t, err, "API key")
}

func TestOptionsRefuse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		param string
		opt   minutes.Option
	}{
		"nil option":                  {"opts", nil},
		"nil http client":             {"WithHTTPClient", minutes.WithHTTPClient(nil)},
		"negative time-out":           {"WithHTTPClient", minutes.WithHTTPClient(&http.Client{Timeout: -1})},
		"nil logger":                  {"WithLogger", minutes.WithLogger(nil)},
		"empty user agent":            {"WithUserAgent", minutes.WithUserAgent("")},
		"blank user agent":            {"WithUserAgent", minutes.WithUserAgent("  ")},
		"user agent with header":      {"WithUserAgent", minutes.WithUserAgent("app\r\nX-Evil: 1")},
		"user agent beyond ASCII":     {"WithUserAgent", minutes.WithUserAgent("café/1")},
		"user agent with space after": {"WithUserAgent", minutes.WithUserAgent("app ")},
		"negative retries":            {"WithRetries", minutes.WithRetries(-1, 0, 0)},
		"negative wait":               {"WithRetries", minutes.WithRetries(1, -1, 0)},
		"waits the wrong way round":   {"WithRetries", minutes.WithRetries(1, 2, 1)},
		"negative rate":               {"WithRateLimit", minutes.WithRateLimit(-1, 1)},
		"rate without burst":          {"WithRateLimit", minutes.WithRateLimit(1, 0)},
		"burst without rate":          {"WithRateLimit", minutes.WithRateLimit(0, 1)},
		"negative burst":              {"WithRateLimit", minutes.WithRateLimit(1, -1)},
		"rate that is no number":      {"WithRateLimit", minutes.WithRateLimit(math.NaN(), 1)},
		"infinite rate":               {"WithRateLimit", minutes.WithRateLimit(math.Inf(1), 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := minutes.New("https://minutes.example", testKey, minutes.WithRetries(1, 0, 0), test.opt)
			require.Nil(t, c)
			requireParamError(t, err, test.param, "")
		})
	}
}

func TestOptionsTake(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]minutes.Option{
		"http client":      minutes.WithHTTPClient(http.DefaultClient),
		"zero http client": minutes.WithHTTPClient(&http.Client{}),
		"logger":           minutes.WithLogger(slog.New(slog.DiscardHandler)),
		"user agent":       minutes.WithUserAgent("app/1.2 (nightly)"),
		"no retries":       minutes.WithRetries(0, 0, 0),
		"one wait":         minutes.WithRetries(9, time.Second, time.Second),
		"slow":             minutes.WithRateLimit(0.001, 1),
		"no limit":         minutes.WithRateLimit(0, 0),
	} {
		_, err := minutes.New("https://minutes.example", testKey, opt)
		require.NoError(t, err, name)
	}
}

// The caller's http.Client is not changed, and of it only the transport and
// the time-out are used: a cookie of the service is not sent back.
func TestHTTPClientIsTheCallers(t *testing.T) {
	t.Parallel()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	base, err := url.Parse("https://minutes.example")
	require.NoError(t, err)
	jar.SetCookies(base, []*http.Cookie{{Name: "session", Value: "1"}})
	mock := httpmock.NewMockTransport()
	mock.RegisterNoResponder(func(req *http.Request) (*http.Response, error) {
		if req.Header["Cookie"] != nil {
			return nil, errors.New("a cookie was sent")
		}
		return httpmock.NewStringResponse(200, fixture(t, "usage")), nil
	})
	hc := &http.Client{Transport: mock, Jar: jar, Timeout: time.Hour}
	before := *hc
	c, err := minutes.New(base.String(), testKey, minutes.WithHTTPClient(hc), minutes.WithRetries(0, 0, 0))
	require.NoError(t, err)
	_, err = c.Usage.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, &before, hc)
}

func TestUserAgent(t *testing.T) {
	t.Parallel()
	mock := httpmock.NewMockTransport()
	var got string
	mock.RegisterNoResponder(func(req *http.Request) (*http.Response, error) {
		got = req.UserAgent()
		return httpmock.NewStringResponse(200, fixture(t, "usage")), nil
	})
	c, err := minutes.New("https://minutes.example", testKey, minutes.WithUserAgent("myapp/1.2"), minutes.WithHTTPClient(&http.Client{Transport: mock}))
	require.NoError(t, err)
	_, err = c.Usage.Get(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^myapp/1\.2 minutes-go/\d`, got)
}

func TestNewFromEnv(t *testing.T) {
	for name, test := range map[string]struct{ base, key, param string }{
		"both":              {"https://minutes.example", testKey, ""},
		"white space":       {" https://minutes.example\n", testKey + "\r\n", ""},
		"no base URL":       {"", testKey, "MINUTES_BASE_URL"},
		"blank base URL":    {" \n", testKey, "MINUTES_BASE_URL"},
		"no key":            {"https://minutes.example", "", "MINUTES_API_KEY"},
		"blank key":         {"https://minutes.example", "\t", "MINUTES_API_KEY"},
		"plain http":        {"http://minutes.example", testKey, "MINUTES_BASE_URL"},
		"swapped":           {testKey, "https://minutes.example", "MINUTES_BASE_URL"},
		"key with a space":  {"https://minutes.example", "key secret", "MINUTES_API_KEY"},
		"key that is a URL": {"https://minutes.example", "https://minutes.example", "MINUTES_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MINUTES_BASE_URL", test.base)
			t.Setenv("MINUTES_API_KEY", test.key)
			c, err := minutes.NewFromEnv()
			if test.param == "" {
				require.NoError(t, err)
				require.Contains(t, fmt.Sprint(c), "https://minutes.example")
				return
			}
			require.Nil(t, c)
			requireParamError(t, err, test.param, testKey)
		})
	}
	t.Setenv("MINUTES_BASE_URL", "https://minutes.example")
	t.Setenv("MINUTES_API_KEY", testKey)
	_, err := minutes.NewFromEnv(minutes.WithLogger(nil))
	requireParamError(t, err, "WithLogger", "")
}

// Every operation whose route is assumed can be had elsewhere.
func TestWithRoute(t *testing.T) {
	t.Parallel()
	for op, path := range map[minutes.Operation]string{
		minutes.OpTranscript:        "/v2/transcripts/{meeting_id}/text",
		minutes.OpProjectsList:      "/v2/p",
		minutes.OpProjectsCreate:    "/v2/p/new",
		minutes.OpTemplatesList:     "/",
		minutes.OpUsageGet:          "/v2/usage/",
		minutes.OpVocabularyGet:     "/v2/words:all",
		minutes.OpVocabularyReplace: "/v2/words-1_2~3",
		minutes.OpVocabularyAdd:     "/v2/words@one",
	} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			row := operationNamed(t, op)
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				mock := httpmock.NewMockTransport()
				var got *http.Request
				mock.RegisterNoResponder(func(req *http.Request) (*http.Response, error) {
					got = req
					return httpmock.NewStringResponse(200, fixture(t, row.reply)), nil
				})
				c, err := minutes.New("https://minutes.example/base", testKey,
					minutes.WithHTTPClient(&http.Client{Transport: mock}), minutes.WithRoute(op, method, path))
				require.NoError(t, err)
				value, err := row.call(t.Context(), c)
				require.NoError(t, err)
				require.Equal(t, row.want, value)
				require.Equal(t, method, got.Method)
				require.Equal(t, "/base"+strings.ReplaceAll(path, "{meeting_id}", "mtg_7Kd02"), got.URL.Path)
			}
		})
	}
}

func TestWithRouteRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		op           minutes.Operation
		method, path string
		names        string
	}{
		"no operation":               {"", "GET", "/x", "op"},
		"unknown operation":          {"usage.put", "GET", "/x", "op"},
		"documented operation":       {"meetings.get", "GET", "/x/{meeting_id}", "op"},
		"swapped arguments":          {minutes.OpUsageGet, "/x", "GET", "method"},
		"no method":                  {minutes.OpUsageGet, "", "/x", "method"},
		"lower-case method":          {minutes.OpUsageGet, "get", "/x", "method"},
		"method without a body":      {minutes.OpUsageGet, "HEAD", "/x", "method"},
		"method with a header in it": {minutes.OpUsageGet, "GET /x HTTP/1.1\r\n", "/x", "method"},
		"no path":                    {minutes.OpUsageGet, "GET", "", "path"},
		"relative path":              {minutes.OpUsageGet, "GET", "v1/usage", "path"},
		"URL":                        {minutes.OpUsageGet, "GET", "https://evil.example/x", "path"},
		"other host":                 {minutes.OpUsageGet, "GET", "//evil.example/x", "path"},
		"other host, backslash":      {minutes.OpUsageGet, "GET", `/\evil.example/x`, "path"},
		"empty segment":              {minutes.OpUsageGet, "GET", "/v1//usage", "path"},
		"dot segment":                {minutes.OpUsageGet, "GET", "/v1/./usage", "path"},
		"dots at the end":            {minutes.OpUsageGet, "GET", "/v1/..", "path"},
		"query":                      {minutes.OpUsageGet, "GET", "/v1/usage?x=1", "path"},
		"fragment":                   {minutes.OpUsageGet, "GET", "/v1/usage#x", "path"},
		"escape":                     {minutes.OpUsageGet, "GET", "/v1/%2e%2e", "path"},
		"space":                      {minutes.OpUsageGet, "GET", "/v1/us age", "path"},
		"control character":          {minutes.OpUsageGet, "GET", "/v1/usage\n", "path"},
		"beyond ASCII":               {minutes.OpUsageGet, "GET", "/v1/usagé", "path"},
		"parameter too many":         {minutes.OpUsageGet, "GET", "/v1/{meeting_id}/usage", "path"},
		"unknown parameter":          {minutes.OpUsageGet, "GET", "/v1/{org}/usage", "path"},
		"parameter missing":          {minutes.OpTranscript, "GET", "/v1/transcript", "path"},
		"parameter twice":            {minutes.OpTranscript, "GET", "/v1/{meeting_id}/{meeting_id}", "path"},
		"parameter misspelt":         {minutes.OpTranscript, "GET", "/v1/{id}", "path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := minutes.New("https://minutes.example", testKey, minutes.WithRoute(test.op, test.method, test.path))
			requireParamError(t, err, "WithRoute", test.path)
			require.ErrorContains(t, err, "WithRoute: "+test.names+":")
		})
	}
}

// silent is a client whose every request is counted and fails the test.
func silent(t *testing.T) *minutes.Client {
	t.Helper()
	mock := httpmock.NewMockTransport()
	mock.RegisterNoResponder(func(req *http.Request) (*http.Response, error) {
		t.Errorf("a request was made: %s %s", req.Method, req.URL)
		return nil, errors.New("no request should have been made")
	})
	c, err := minutes.New("https://minutes.example", testKey, minutes.WithHTTPClient(&http.Client{Transport: mock}), minutes.WithRetries(0, 0, 0))
	require.NoError(t, err)
	return c
}

// takesID lists the operations on one meeting.
func takesID() map[string]func(context.Context, *minutes.Client, string) (any, error) {
	return map[string]func(context.Context, *minutes.Client, string) (any, error){
		"Get": func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return result(c.Meetings.Get(ctx, id))
		},
		"Update": func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return result(c.Meetings.Update(ctx, id, nil))
		},
		"Delete": func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return nil, c.Meetings.Delete(ctx, id)
		},
		"SetParticipants": func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return result(c.Meetings.SetParticipants(ctx, id, nil))
		},
		"UploadURL": func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return result(c.Meetings.UploadURL(ctx, id, "audio/wav"))
		},
		"Minutes": func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return result(c.Meetings.Minutes(ctx, id, ""))
		},
		"Transcript": func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return result(c.Meetings.Transcript(ctx, id))
		},
	}
}

// Ids that would name another path are refused before any request.
func TestHostileIDs(t *testing.T) {
	t.Parallel()
	ids := map[string]string{
		"empty": "", "dot": ".", "dots": "..", "newline": "mtg_1\n", "header": "mtg_1\r\nX-Evil: 1", "NUL": "mtg_\x00",
		"DEL": "mtg_\x7f", "C1": "mtg_\u0085", "invalid UTF-8": "mtg_\xff",
	}
	calls := takesID()
	calls["Upload"] = func(ctx context.Context, c *minutes.Client, id string) (any, error) {
		return nil, c.Meetings.Upload(ctx, id, sound(1), nil)
	}
	for call, do := range calls {
		for name, id := range ids {
			t.Run(call+" "+name, func(t *testing.T) {
				t.Parallel()
				got, err := do(t.Context(), silent(t), id)
				requireNothing(t, got)
				requireParamError(t, err, "id", id)
			})
		}
	}
}

// All other ids are one path segment, whatever is in them, and arrive as they
// are.
func TestIDsAreOneSegment(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"mtg_1", "a/b", "../../v1/usage", "/", "//", "a?b=c", "a#b", "%2e", "%2e%2e", "%2F", "%", "%zz", "é", "a b", " ", "+", "a;b=c", "a:b", "...",
		"{meeting_id}", `a\b`, "日本", "a&b", "\u202e", strings.Repeat("x", 3000),
	} {
		t.Run(id[:min(len(id), 20)], func(t *testing.T) {
			t.Parallel()
			client, requests := oneReply(t, 404, fixture(t, "error_absent"))
			for name, do := range takesID() {
				_, err := do(t.Context(), client, id)
				require.ErrorIs(t, err, minutes.ErrNotFound, name)
				require.NotContains(t, err.Error(), "\u202e", "what steers a terminal is not printed")
				all := requests()
				require.Len(t, all, 1)
				path, _, _ := strings.Cut(all[0].uri, "?")
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

// Parameters that cannot be used are refused, by name, before any request.
func TestParametersRefused(t *testing.T) {
	t.Parallel()
	const bad = "text\xff\xfe"
	for name, test := range map[string]struct {
		param string
		call  func(context.Context, *minutes.Client) (any, error)
	}{
		"create without params": {"params", func(ctx context.Context, c *minutes.Client) (any, error) {
			m, created, err := c.Meetings.Create(ctx, nil)
			return creation{m, created}, err
		}},
		"member without params": {"params", func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Members.Create(ctx, nil)) }},
		"member name":           {"Name", memberWith(minutes.MemberCreateParams{Name: bad})},
		"member email":          {"Email", memberWith(minutes.MemberCreateParams{Email: bad})},
		"member role":           {"Role", memberWith(minutes.MemberCreateParams{Role: bad})},
		"member description":    {"Description", memberWith(minutes.MemberCreateParams{Description: bad})},
		"title":                 {"Title", meetingWith(minutes.MeetingCreateParams{Title: bad})},
		"date":                  {"Date", meetingWith(minutes.MeetingCreateParams{Date: bad})},
		"time":                  {"Time", meetingWith(minutes.MeetingCreateParams{Time: bad})},
		"external id":           {"ExternalID", meetingWith(minutes.MeetingCreateParams{ExternalID: bad})},
		"project":               {"ProjectID", meetingWith(minutes.MeetingCreateParams{ProjectID: bad})},
		"template":              {"TemplateID", meetingWith(minutes.MeetingCreateParams{TemplateID: bad})},
		"visibility":            {"Visibility", meetingWith(minutes.MeetingCreateParams{Visibility: bad})},
		"participants":          {"ParticipantIDs[1]", meetingWith(minutes.MeetingCreateParams{ParticipantIDs: []string{"emp_ada", bad}})},
		"shared with":           {"SharedWith[0]", meetingWith(minutes.MeetingCreateParams{SharedWith: []string{bad}})},
		"new title":             {"Title", updateWith(minutes.MeetingUpdateParams{Title: new(bad)})},
		"new date":              {"Date", updateWith(minutes.MeetingUpdateParams{Date: new(bad)})},
		"new time":              {"Time", updateWith(minutes.MeetingUpdateParams{Time: new(bad)})},
		"new project":           {"ProjectID", updateWith(minutes.MeetingUpdateParams{ProjectID: new(bad)})},
		"cursor":                {"Cursor", listWith(minutes.MeetingListParams{Cursor: bad})},
		"listed external id":    {"ExternalID", listWith(minutes.MeetingListParams{ExternalID: bad})},
		"date from":             {"DateFrom", listWith(minutes.MeetingListParams{DateFrom: bad})},
		"date to":               {"DateTo", listWith(minutes.MeetingListParams{DateTo: bad})},
		"all": {"Cursor", func(ctx context.Context, c *minutes.Client) (any, error) {
			for m, err := range c.Meetings.All(ctx, &minutes.MeetingListParams{Cursor: bad}) {
				return m, err
			}
			return nil, nil
		}},
		"no external id to find": {"externalID", func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.FindByExternalID(ctx, ""))
		}},
		"external id to find": {"externalID", func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.FindByExternalID(ctx, bad))
		}},
		"participants to set": {"memberIDs[0]", func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.SetParticipants(ctx, "mtg_1", []string{bad}))
		}},
		"no content type": {"contentType", func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.UploadURL(ctx, "mtg_1", ""))
		}},
		"content type": {"contentType", func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.UploadURL(ctx, "mtg_1", bad))
		}},
		"format": {"format", func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.Minutes(ctx, "mtg_1", bad))
		}},
		"project name": {"name", func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Projects.Create(ctx, bad)) }},
		"terms": {"terms[2]", func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Vocabulary.Replace(ctx, []string{"a", "b", bad}))
		}},
		"term": {"term", func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Vocabulary.Add(ctx, bad)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.call(t.Context(), silent(t))
			requireNothing(t, got)
			requireParamError(t, err, test.param, bad)
		})
	}
}

func memberWith(p minutes.MemberCreateParams) func(context.Context, *minutes.Client) (any, error) {
	return func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Members.Create(ctx, &p)) }
}

func meetingWith(p minutes.MeetingCreateParams) func(context.Context, *minutes.Client) (any, error) {
	return func(ctx context.Context, c *minutes.Client) (any, error) {
		m, created, err := c.Meetings.Create(ctx, &p)
		return creation{m, created}, err
	}
}

func updateWith(p minutes.MeetingUpdateParams) func(context.Context, *minutes.Client) (any, error) {
	return func(ctx context.Context, c *minutes.Client) (any, error) {
		return result(c.Meetings.Update(ctx, "mtg_1", &p))
	}
}

func listWith(p minutes.MeetingListParams) func(context.Context, *minutes.Client) (any, error) {
	return func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Meetings.List(ctx, &p)) }
}

// A nil context is refused by every operation, not left to panic.
func TestNilContext(t *testing.T) {
	t.Parallel()
	var none context.Context
	client := silent(t)
	for _, op := range operations() {
		got, err := op.call(none, client)
		requireNothing(t, got)
		requireParamError(t, err, "ctx", "")
	}
	for m, err := range client.Meetings.All(none, nil) {
		require.Nil(t, m)
		requireParamError(t, err, "ctx", "")
	}
	requireParamError(t, client.Meetings.Upload(none, "mtg_1", sound(1), nil), "ctx", "")
}

// A context that is done ends every operation before any request.
func TestDoneContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the shop is closed")
	cancel(why)
	client := silent(t)
	for _, op := range operations() {
		got, err := op.call(ctx, client)
		requireNothing(t, got)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
		failed, ok := errors.AsType[*minutes.Error](err)
		require.True(t, ok)
		require.Equal(t, op.method, failed.Method)
		require.Equal(t, op.path, failed.Path)
		require.Zero(t, failed.StatusCode)
	}
}
