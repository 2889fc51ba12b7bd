package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func TestNew_RejectsInvalidOptions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		param string
		opt   minutes.Option
	}{
		"zero option":                 {"opts", minutes.Option{}},
		"nil http client":             {"WithHTTPClient", minutes.WithHTTPClient(nil)},
		"negative time-out":           {"WithHTTPClient", minutes.WithHTTPClient(&http.Client{Timeout: -1})},
		"nil logger":                  {"WithLogger", minutes.WithLogger(nil)},
		"nil key function":            {"WithAPIKeyFunc", minutes.WithAPIKeyFunc(nil)},
		"key beside key function":     {"apiKey", minutes.WithAPIKeyFunc(keyOf(testkit.Key))},
		"empty user agent":            {"WithUserAgent", minutes.WithUserAgent("")},
		"user agent with header":      {"WithUserAgent", minutes.WithUserAgent("app\r\nX-Evil: 1")},
		"user agent with space after": {"WithUserAgent", minutes.WithUserAgent("app ")},
		"negative retries":            {"WithMaxRetries", minutes.WithMaxRetries(-1)},
		"negative rate":               {"WithRateLimit", minutes.WithRateLimit(-1, 1)},
		"rate without burst":          {"WithRateLimit", minutes.WithRateLimit(1, 0)},
		"burst without rate":          {"WithRateLimit", minutes.WithRateLimit(0, 1)},
		"rate that is not a number":   {"WithRateLimit", minutes.WithRateLimit(math.NaN(), 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := minutes.New("https://minutes.example", testkit.Key, minutes.WithMaxRetries(1), test.opt)
			require.Nil(t, c)
			testkit.RequireParamError(t, err, test.param, "")
		})
	}
}

// keyOf returns a function for WithAPIKeyFunc that always returns key.
func keyOf(key string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return key, nil }
}

// The key may be the content of a file. A key that cannot be sent ends the call before any request.
func TestWithAPIKeyFunc_ChecksTheKey(t *testing.T) {
	t.Setenv("MINUTES_BASE_URL", "https://minutes.example")
	t.Setenv("MINUTES_API_KEY", "key_of_another_program")
	for key, ok := range map[string]bool{
		testkit.Key: true, " " + testkit.Key + "\r\n": true, "": false, "a b": false, "https://minutes.example": false,
	} {
		sent := ""
		hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			sent = req.Header.Get("Authorization")
			return testkit.Canned(200, testkit.Fixture(t, "usage"))(req)
		})}
		c, err := minutes.NewFromEnv(minutes.WithAPIKeyFunc(keyOf(key)), minutes.WithHTTPClient(hc))
		require.NoError(t, err)
		_, err = c.Usage.Get(t.Context())
		if ok {
			require.NoError(t, err)
			require.Equal(t, "Bearer "+testkit.Key, sent)
			continue
		}
		require.ErrorContains(t, err, "GET /v1/usage: getting the API key: WithAPIKeyFunc: ")
		require.Empty(t, sent)
		require.True(t, minutes.Retryable(err))
		require.False(t, minutes.KeyRejected(err))
	}
}

// vault has a key for each day. A key is revoked an hour after it has a successor.
type vault struct {
	srv    *minutestest.Server
	began  time.Time
	day    time.Duration
	closed time.Duration // from then on, for five minutes, nobody gets a key

	mu   sync.Mutex
	days int
}

// errVault would end the waits if it came from the service.
var errVault = fmt.Errorf("the vault is closed: %w", testbase.ErrUntrusted)

func (v *vault) key(context.Context) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	since := time.Since(v.began)
	if since >= v.closed && since < v.closed+5*time.Minute {
		return "", errVault
	}
	for ; time.Duration(v.days)*v.day <= since; v.days++ {
		secret := fmt.Sprint("key_of_day_", v.days)
		old := fmt.Sprint("key_of_day_", v.days-1)
		v.srv.Update("org_acme", func(o *minutestest.Organisation) {
			o.Keys = append(o.Keys, minutestest.Key{Secret: secret, IntegrationID: "int_ci"})
		})
		if v.days == 0 {
			continue
		}
		time.AfterFunc(time.Hour, func() {
			v.srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key(old).Revoked = true })
		})
	}
	return fmt.Sprint("key_of_day_", v.days-1), nil
}

// Waits and Follow outlast keys that change daily, and an hour without a key. Nothing shows a key.
func TestWithAPIKeyFunc_WaitsOutlastChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		days := testbase.Many(7, 2)
		day := time.Duration(testbase.Many(24, 2)) * time.Hour
		waits := testbase.Many(200, 1)
		srv := minutestest.NewServer(t)
		v := &vault{srv: srv, began: time.Now(), day: day, closed: day * 5 / 4}
		out := new(testbase.Buffer)
		show := func(v any) { fmt.Fprintf(out, "%v %+v %#v\n", v, v, v) }
		c := srv.ClientWithKey("", minutes.WithHTTPClient(testkit.Direct(srv)), minutes.WithAPIKeyFunc(v.key),
			minutes.WithLogger(slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))),
			minutes.WithObserver(func(_ context.Context, a minutes.Attempt) {
				if a.Err != nil || a.StatusCode/100 != 2 {
					show(a)
				}
			}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(days)*day)
		defer cancel()
		var all sync.WaitGroup
		for range waits {
			id := testkit.Waiting(t, srv)
			all.Go(func() {
				_, err := c.Meetings.Wait(ctx, id, nil)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.NotErrorIs(t, err, minutes.ErrUnauthenticated)
				show(err)
			})
		}
		all.Go(func() {
			for _, err := range c.Meetings.Follow(ctx, nil) {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				show(err)
			}
		})
		all.Wait()
		show(c)
		last := srv.Requests(minutes.OpMeetingsList, minutes.OpMeetingsGet)
		assert.WithinDuration(t, time.Now(), last[len(last)-1].At, time.Minute, "they go on to the end")
		assert.Equal(t, days, v.days)
		assert.NotContains(t, out.String(), "key_of_day")
		assert.Contains(t, out.String(), "the vault is closed")
	})
}

// A key function that goes on failing ends each wait, and Follow, after ten minutes, as a rejected key
// would at once. A cancellation of another context is not reported as the caller's.
func TestWithAPIKeyFunc_EndsWaitsIfItGoesOnFailing(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"error": errors.New("no tenant"), "canceled": context.Canceled, "deadline": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				testbase.Timeout(t, 24*time.Hour)
				srv := minutestest.NewServer(t)
				noKey := func(context.Context) (string, error) { return "", failure }
				c := srv.ClientWithKey("", minutes.WithAPIKeyFunc(noKey))
				check := func(err error) {
					assert.ErrorContains(t, err, "getting the API key: "+failure.Error())
					assert.NotErrorIs(t, err, context.Canceled)
					assert.NotErrorIs(t, err, context.DeadlineExceeded)
					assert.True(t, minutes.Retryable(err))
				}
				_, err := c.Usage.Get(t.Context())
				check(err)
				began := time.Now()
				var waits sync.WaitGroup
				for i := range 20 {
					waits.Go(func() {
						_, err := c.Meetings.Wait(t.Context(), fmt.Sprint("mtg_", i), nil)
						check(err)
					})
				}
				waits.Go(func() {
					for _, err := range c.Meetings.Follow(t.Context(), nil) {
						check(err)
					}
				})
				waits.Wait()
				took := time.Since(began)
				require.GreaterOrEqual(t, took, 10*time.Minute)
				require.Less(t, took, 11*time.Minute)
			})
		})
	}
}

// WithInsecureHTTP permits http to other hosts than loopback, and for uploads if the service has
// http, too.
func TestWithInsecureHTTP_PermitsHTTP(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		base, storage string
		insecure, ok  bool
	}{
		{"http://fake:8080", "http://fake:8080", true, true},
		{"http://fake:8080", "https://storage.example", true, true},
		{"https://fake", "http://fake", true, false},
		{"https://fake", "http://fake", false, false},
		{"http://localhost", "http://127.0.0.1:9", false, true},
		{"http://localhost", "http://storage.example", false, false},
		{"http://localhost", "http://storage.example", true, true},
		{"http://fake:8080", "ftp://fake", true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			service := testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				switch req.Method {
				case http.MethodPost:
					return testkit.Canned(200, `{"upload_url":"`+test.storage+`/k","expires_in":900}`)(req)
				case http.MethodPut:
					_, err := io.Copy(io.Discard, req.Body)
					assert.NoError(t, err)
				}
				return testkit.Canned(200, "")(req)
			})
			opts := []minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: service})}
			if test.insecure {
				opts = append(opts, minutes.WithInsecureHTTP())
			}
			c, err := testkit.New(test.base, testkit.Key, opts...)
			require.NoError(t, err)
			err = c.Meetings.Upload(t.Context(), "mtg_1", testkit.Audio(10), nil)
			require.Equal(t, test.ok, err == nil, "%+v: %v", test, err)
		})
	}
}

// The Client does not change the caller's http.Client. It uses only the transport and the timeout:
// it sends no cookie of the service back.
func TestWithHTTPClient_UsesOnlyTransportAndTimeout(t *testing.T) {
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
		return httpmock.NewStringResponse(200, testkit.Fixture(t, "usage")), nil
	})
	hc := &http.Client{Transport: mock, Jar: jar, Timeout: time.Hour}
	before := *hc
	c, err := minutes.New(base.String(), testkit.Key, minutes.WithHTTPClient(hc), minutes.WithMaxRetries(0))
	require.NoError(t, err)
	_, err = c.Usage.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, &before, hc)
}

// The User-Agent has the version of the newest release in the changelog, or that of the first one
// until then.
func TestUserAgent_HasTheVersionOfTheChangelog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("CHANGELOG.md")
	require.NoError(t, err)
	want := "0.1.0"
	if newest := regexp.MustCompile(`(?m)^## v(\d+\.\d+\.\d+)`).FindSubmatch(text); newest != nil {
		want = string(newest[1])
	}
	c, _ := testkit.Responding(t, func(req *http.Request) (*http.Response, error) {
		assert.Equal(t, "minutes-go/"+want, req.UserAgent())
		return testkit.Canned(200, testkit.Fixture(t, "usage"))(req)
	})
	_, err = c.Usage.Get(t.Context())
	require.NoError(t, err)
}

func TestWithUserAgent_PrecedesThePackages(t *testing.T) {
	t.Parallel()
	mock := httpmock.NewMockTransport()
	var got string
	mock.RegisterNoResponder(func(req *http.Request) (*http.Response, error) {
		got = req.UserAgent()
		return httpmock.NewStringResponse(200, testkit.Fixture(t, "usage")), nil
	})
	c, err := minutes.New(
		"https://minutes.example",
		testkit.Key,
		minutes.WithUserAgent("myapp/1.2"),
		minutes.WithHTTPClient(&http.Client{Transport: mock}),
	)
	require.NoError(t, err)
	_, err = c.Usage.Get(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^myapp/1\.2 minutes-go/\d`, got)
}

// WithRoute moves every operation whose route is assumed.
func TestWithRoute_MovesAssumedOperations(t *testing.T) {
	t.Parallel()
	for op, path := range map[minutes.Operation]string{
		minutes.OpMeetingsTranscript: "/v2/transcripts/{meeting_id}/text",
		minutes.OpProjectsList:       "/v2/p",
		minutes.OpProjectsCreate:     "/v2/p/new",
		minutes.OpTemplatesList:      "/",
		minutes.OpUsageGet:           "/v2/usage/",
		minutes.OpVocabularyGet:      "/v2/words:all",
		minutes.OpVocabularyReplace:  "/v2/words-1_2~3",
		minutes.OpVocabularyAdd:      "/v2/words@one",
	} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			row := testkit.OperationNamed(t, op)
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				mock := httpmock.NewMockTransport()
				var got *http.Request
				mock.RegisterNoResponder(func(req *http.Request) (*http.Response, error) {
					got = req
					return httpmock.NewStringResponse(200, testkit.Fixture(t, row.Response)), nil
				})
				c, err := minutes.New("https://minutes.example/base", testkit.Key,
					minutes.WithHTTPClient(&http.Client{Transport: mock}), minutes.WithRoute(op, method, path))
				require.NoError(t, err)
				value, err := row.Call(t.Context(), c)
				require.NoError(t, err)
				require.Equal(t, row.Want, value)
				require.Equal(t, method, got.Method)
				require.Equal(t, "/base"+strings.ReplaceAll(path, "{meeting_id}", "mtg_7Kd02"), got.URL.Path)
			}
		})
	}
}

func TestWithRoute_RejectsInvalidRoutes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		op           minutes.Operation
		method, path string
		names        string
	}{
		"no operation":          {"", "GET", "/x", "op"},
		"unknown operation":     {"usage.put", "GET", "/x", "op"},
		"documented operation":  {"meetings.get", "GET", "/x/{meeting_id}", "op"},
		"swapped arguments":     {minutes.OpUsageGet, "/x", "GET", "method"},
		"no method":             {minutes.OpUsageGet, "", "/x", "method"},
		"lower-case method":     {minutes.OpUsageGet, "get", "/x", "method"},
		"method without a body": {minutes.OpUsageGet, "HEAD", "/x", "method"},
		"no path":               {minutes.OpUsageGet, "GET", "", "path"},
		"relative path":         {minutes.OpUsageGet, "GET", "v1/usage", "path"},
		"URL":                   {minutes.OpUsageGet, "GET", "https://evil.example/x", "path"},
		"other host":            {minutes.OpUsageGet, "GET", "//evil.example/x", "path"},
		"empty segment":         {minutes.OpUsageGet, "GET", "/v1//usage", "path"},
		"dot segment":           {minutes.OpUsageGet, "GET", "/v1/./usage", "path"},
		"query":                 {minutes.OpUsageGet, "GET", "/v1/usage?x=1", "path"},
		"fragment":              {minutes.OpUsageGet, "GET", "/v1/usage#x", "path"},
		"space":                 {minutes.OpUsageGet, "GET", "/v1/us age", "path"},
		"control character":     {minutes.OpUsageGet, "GET", "/v1/usage\n", "path"},
		"extra parameter":       {minutes.OpUsageGet, "GET", "/v1/{meeting_id}/usage", "path"},
		"unknown parameter":     {minutes.OpUsageGet, "GET", "/v1/{org}/usage", "path"},
		"parameter missing":     {minutes.OpMeetingsTranscript, "GET", "/v1/transcript", "path"},
		"parameter twice":       {minutes.OpMeetingsTranscript, "GET", "/v1/{meeting_id}/{meeting_id}", "path"},
		"parameter misspelt":    {minutes.OpMeetingsTranscript, "GET", "/v1/{id}", "path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			route := minutes.WithRoute(test.op, test.method, test.path)
			_, err := minutes.New("https://minutes.example", testkit.Key, route)
			testkit.RequireParamError(t, err, "WithRoute", test.path)
			require.ErrorContains(t, err, "WithRoute: "+test.names+":")
		})
	}
}

// An attempt may take 30 s, unless the caller's http.Client sets another timeout.
func TestWithHTTPClient_SetsTimeoutOfAttempt(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{
		0:               30 * time.Second,
		7 * time.Second: 7 * time.Second,
		time.Hour:       time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			hc := &http.Client{
				Timeout: timeout,
				Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					ends, ok := req.Context().Deadline()
					assert.True(t, ok)
					assert.Equal(t, want, time.Until(ends))
					return testkit.Canned(404, "")(req)
				}),
			}
			c, err := testkit.New("https://minutes.example", testkit.Key, minutes.WithHTTPClient(hc))
			require.NoError(t, err)
			_, err = c.Usage.Get(t.Context())
			testkit.RequireStatus(t, err, 404)
		})
	}
}

// Whether a request is safe to repeat depends on its operation, not on the method.
func TestWithRoute_KeepsRetryRule(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		var repeatable bool
		c, err := testkit.New(
			"https://minutes.example",
			testkit.Key,
			minutes.WithHTTPClient(
				&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					assert.Equal(t, method, req.Method)
					repeatable = rest.AttemptOf(req.Context()).Request.Repeatable
					return testkit.Canned(404, "")(req)
				})},
			),
			minutes.WithRoute(minutes.OpProjectsCreate, method, "/p"),
			minutes.WithRoute(minutes.OpUsageGet, method, "/u"),
		)
		require.NoError(t, err)
		_, err = c.Projects.Create(t.Context(), &minutes.ProjectCreateParams{Name: "Apollo"})
		require.Error(t, err)
		require.False(t, repeatable, method)
		_, err = c.Usage.Get(t.Context())
		require.Error(t, err)
		require.True(t, repeatable, method)
	}
}

// Two callers that use up the rate limit do not stop the polling.
func TestWithRateLimit_LeavesRoomForWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := direct(srv, minutes.WithRateLimit(0.5, 1))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				for ctx.Err() == nil {
					_, _ = c.Usage.Get(ctx)
				}
			})
		}
		id := testkit.Waiting(t, srv)
		_, err := c.Meetings.Wait(ctx, id, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		callers.Wait()
		polls := srv.Requests(minutes.OpMeetingsGet)
		require.GreaterOrEqual(t, len(polls), 10)
		for i := range polls[1:] {
			require.LessOrEqual(t, polls[i+1].At.Sub(polls[i].At), time.Minute)
		}
	})
}
