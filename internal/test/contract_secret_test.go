package test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// An echo is an error that contains a URL and may show it.
type echo struct {
	URL     string
	visible bool
}

func (e echo) Error() string {
	if e.visible {
		return "cannot reach " + e.URL
	}
	return "cannot reach it"
}

// No error, log record or event contains the key or the signature, even if the service, the store or the transport
// echoes them.
func TestErrorsAndLogs_HaveNoSecret(t *testing.T) {
	t.Parallel()
	const target = "https://storage.example/b/k?" + testkit.PresignedQuery
	reply := func(status int, header http.Header, body string) testbase.RoundTripper {
		return func(req *http.Request) (*http.Response, error) {
			if header == nil {
				header = http.Header{}
			}
			return &http.Response{StatusCode: status, Header: header.Clone(), Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
		}
	}
	fail := func(make func(*http.Request) error) testbase.RoundTripper {
		return func(req *http.Request) (*http.Response, error) { return nil, make(req) }
	}
	all := strings.Join(testkit.Spelled(testkit.SecretKey), " ") + " " + target + " " + testkit.SecretSig + " " + testkit.SecretID
	dial := func(err error) *http.Transport {
		d := func(context.Context, string, string) (net.Conn, error) { return nil, err }
		return &http.Transport{DialContext: d, DialTLSContext: d}
	}
	quoted := strings.NewReplacer("&", `\u0026`).Replace(all)
	scenes := map[string]struct {
		api, storage http.RoundTripper
		target       string // if not the usual one
	}{
		"401": {api: reply(401, nil, `{"error":{"code":"UNAUTHENTICATED","message":"no such key","request_id":"req_1"}}`)},
		"401 that echoes the key": {api: reply(401, http.Header{"X-Request-Id": {testkit.SecretKey}},
			`{"error":{"code":"UNAUTHENTICATED `+testkit.SecretKey+`","message":"no such key: `+testkit.SecretKey+`","request_id":"`+testkit.SecretKey+`","details":{"`+testkit.SecretKey+`":["`+testkit.SecretKey+`",{"x":"Bearer `+testkit.SecretKey+`"}]}}}`)},
		"page that echoes":        {api: reply(502, http.Header{"Content-Type": {"text/" + testkit.SecretKey}, "X-Request-Id": {testkit.SecretKey}}, all)},
		"response that echoes":    {api: reply(200, http.Header{"X-Request-Id": {testkit.SecretKey}}, `{"`+testkit.SecretKey+`":1,"id":"`+testkit.SecretKey)},
		"reply with a wrong type": {api: reply(200, nil, `{"id":{"`+testkit.SecretKey+`":1},"status":3}`)},
		"connection refused":      {api: dial(testbase.ErrRefused)},
		"no such host":            {api: dial(testbase.ErrNoHost)},
		"redirect":                {api: reply(302, http.Header{"Location": {target + "&key=" + testkit.SecretKey}}, all)},
		"redirect with method":    {api: reply(308, http.Header{"Location": {"https://elsewhere.example/?" + testkit.SecretKey}}, all)},
		"malformed Location":      {api: reply(307, http.Header{"Location": {"https://[::1%zz/?" + testkit.SecretKey}}, all)},
		"proxy that echoes": {api: fail(func(req *http.Request) error {
			return errors.New("proxyconnect: refused " + req.Header.Get("Authorization"))
		})},
		"transport that echoes":              {api: fail(func(req *http.Request) error { return echo{req.Header.Get("Authorization"), true} })},
		"transport error that holds the key": {api: fail(func(req *http.Request) error { return echo{req.Header.Get("Authorization"), false} })},
		"transport that wraps an echo":       {api: fail(func(req *http.Request) error { return fmt.Errorf("lost: %w", errors.Join(io.EOF, echo{all, false})) })},

		"store: 403 that echoes": {storage: reply(403, http.Header{"X-Amz-Request-Id": {testkit.SecretSig}}, `<Error><Code>SignatureDoesNotMatch</Code><Message>no: `+strings.ReplaceAll(all, "&", "&amp;")+`</Message><AWSAccessKeyId>`+testkit.SecretID+
			`</AWSAccessKeyId><SignatureProvided>`+testkit.SecretSig+`</SignatureProvided><RequestId>`+testkit.SecretSig+`</RequestId></Error>`)},
		"store: code that echoes":   {storage: reply(400, nil, `<Error><Code>`+testkit.SecretSig+`</Code></Error>`)},
		"store: page that echoes":   {storage: reply(400, nil, all)},
		"store: connection refused": {storage: dial(testbase.ErrRefused)},
		"store: no such host":       {storage: dial(testbase.ErrNoHost)},
		"store: redirect":           {storage: reply(307, http.Header{"Location": {target}}, all)},
		"store: net/http's error":   {storage: fail(func(req *http.Request) error { return &url.Error{Op: "Put", URL: req.URL.String(), Err: io.EOF} })},
		"store: wrapped, net/http's": {storage: fail(func(req *http.Request) error {
			return fmt.Errorf("tracing: %w", &url.Error{Op: "Put", URL: req.URL.String(), Err: &url.Error{Op: "Put", URL: req.URL.String(), Err: io.EOF}})
		})},
		"store: echoes the query":                  {storage: fail(func(req *http.Request) error { return errors.New("cannot reach " + req.URL.RawQuery) })},
		"store: echoes it decoded":                 {storage: fail(func(req *http.Request) error { return fmt.Errorf("cannot reach %v", req.URL.Query()) })},
		"store: echoes it quoted":                  {storage: fail(func(req *http.Request) error { return fmt.Errorf("cannot reach %q", quoted) })},
		"store: holds it":                          {storage: fail(func(req *http.Request) error { return echo{URL: req.URL.String()} })},
		"store: wraps an error that holds the URL": {storage: fail(func(req *http.Request) error { return fmt.Errorf("lost: %w", echo{URL: req.URL.String()}) })},
		"store: joins errors that echo":            {storage: fail(func(req *http.Request) error { return errors.Join(io.EOF, echo{req.URL.String(), true}) })},
		"URL with a control byte":                  {target: "https://storage.example/b/k\x7f?" + testkit.PresignedQuery},
		"URL with a bad escape":                    {target: "https://storage.example/b/%zz?" + testkit.PresignedQuery},
		"URL with a bad port":                      {target: "https://storage.example:port/b?" + testkit.PresignedQuery},
		"URL with a bad host":                      {target: "https://[::1/b?" + testkit.PresignedQuery},
		"URL without a host":                       {target: "https:///b?" + testkit.PresignedQuery},
		"URL that is a query":                      {target: "?" + testkit.PresignedQuery},
		"URL over plain HTTP":                      {target: "http://storage.example/b?" + testkit.PresignedQuery},
		"URL of another scheme":                    {target: "ftp://storage.example/b?" + testkit.PresignedQuery},
		"URL with a password":                      {target: "https://user:" + testkit.SecretSig + "@storage.example/b?" + testkit.PresignedQuery, storage: dial(testbase.ErrRefused)},
		"store: cancelled by its URL": {storage: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Put", URL: req.URL.String(), Err: context.DeadlineExceeded}
		})},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				out := new(testbase.Buffer)
				to := scene.target
				if to == "" {
					to = target
				}
				var strayed sync.Map
				hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.URL.Host != "minutes.example" || req.URL.Scheme != "https" {
						if auth := req.Header.Get("Authorization"); auth != "" {
							strayed.Store(req.URL.Host, true)
						}
						return scene.storage.RoundTrip(req)
					}
					if scene.api != nil {
						return scene.api.RoundTrip(req)
					}
					if req.Method == http.MethodPost {
						return reply(200, nil, fmt.Sprintf(`{"upload_url":%s,"expires_in":900,"method":"PUT"}`, jsonString(to)))(req)
					}
					return reply(200, nil, `{"id":"mtg_1","status":"created"}`)(req)
				})}
				c, err := minutes.New("https://minutes.example", testkit.SecretKey, minutes.WithHTTPClient(hc), minutes.WithMaxRetries(1),
					minutes.WithLogger(slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))),
					minutes.WithObserver(func(ctx context.Context, e minutes.Attempt) {
						try, _ := minutes.AttemptFromContext(ctx)
						_, _ = fmt.Fprintln(out, testkit.Shown(e), testkit.Shown(try))
					}))
				require.NoError(t, err)
				var errs []error
				if scene.api != nil {
					_, err := c.Meetings.Get(t.Context(), "mtg_1")
					errs = append(errs, err)
					_, _, err = c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "x"})
					errs = append(errs, err)
					if strings.HasPrefix(name, "401") { // it ends a wait at once
						_, err = c.Meetings.Wait(t.Context(), "mtg_2", nil)
						errs = append(errs, err)
					}
				}
				errs = append(errs, c.Meetings.Upload(t.Context(), "mtg_1", testkit.Audio(100), &minutes.UploadOptions{Progress: func(int64, int64) {}}))
				for _, err := range errs {
					require.Error(t, err)
					testkit.RequireCleanError(t, err)
					testkit.RequireCleanError(t, &minutes.WaitError{MeetingID: "m", Err: err})
				}
				require.NotEmpty(t, out.String())
				testkit.RequireClean(t, "debug log", out.String())
				strayed.Range(func(host, _ any) bool { assert.Fail(t, "the key went to", host); return true })
			})
		})
	}
}

func jsonString(s string) string {
	return strings.NewReplacer("\x7f", `\u007f`).Replace(`"` + s + `"`)
}

// The errors for a server with an untrusted certificate and for a server without TLS
// contain no secret, and the Client sends neither of them the key.
func TestTLSErrors_HaveNoSecret(t *testing.T) {
	t.Parallel()
	var sent sync.Map
	listen := func(w http.ResponseWriter, r *http.Request) { sent.Store(r.Header.Get("Authorization"), true) }
	secure := httptest.NewUnstartedServer(http.HandlerFunc(listen))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.HandlerFunc(listen))
	defer plain.Close()
	for _, base := range []string{secure.URL, strings.Replace(plain.URL, "http:", "https:", 1)} {
		out := new(testbase.Buffer)
		tr := testbase.OwnTransport(t)
		c, err := minutes.New(base, testkit.SecretKey, minutes.WithHTTPClient(&http.Client{Transport: tr}), minutes.WithMaxRetries(1),
			minutes.WithLogger(slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		require.NoError(t, err)
		_, err = c.Usage.Get(t.Context())
		require.Error(t, err)
		testkit.RequireCleanError(t, err)
		testkit.RequireClean(t, "debug log", out.String())
		if base == secure.URL {
			_, ok := errors.AsType[*tls.CertificateVerificationError](err)
			require.True(t, ok, "%v", err)
		}
		uploader := testkit.Directed(t, base+"/k?"+testkit.PresignedQuery, minutes.StatusCreated, tr)
		err = uploader.Meetings.Upload(t.Context(), "mtg_1", testkit.Audio(100), nil)
		require.Error(t, err)
		testkit.RequireCleanError(t, err)
	}
	sent.Range(func(k, _ any) bool { assert.Fail(t, "the key was sent", k); return true })
}

// Values that contain a secret do not print it.
func TestSecrets_PrintMasked(t *testing.T) {
	t.Parallel()
	c, err := minutes.New("https://minutes.example", testkit.SecretKey)
	require.NoError(t, err)
	target := &minutes.UploadTarget{UploadURL: testkit.Presigned("https://storage.example/b/k?" + testkit.PresignedQuery), ExpiresIn: 900, Method: "PUT"}
	broken := &minutes.UploadTarget{UploadURL: testkit.Presigned("://%zz?" + testkit.PresignedQuery)}
	// fmt calls no methods of unexported fields. The key is safe even there; an upload
	// URL is not, because its field is a string.
	type exported struct {
		Client  *minutes.Client
		Target  *minutes.UploadTarget
		Value   minutes.UploadTarget
		Targets []*minutes.UploadTarget
	}
	type unexported struct {
		client  *minutes.Client
		value   minutes.Client
		service *minutes.MeetingsService
	}
	for _, v := range []any{
		c, *c, &c, c.Meetings, *c.Meetings, c.Members, c.Projects, c.Templates, c.Vocabulary, c.Usage,
		target, *target, &target, broken, *broken, []*minutes.UploadTarget{target}, map[string]any{"t": target, "c": c},
		exported{c, target, *target, []*minutes.UploadTarget{target}}, &exported{Client: c, Value: *target},
		unexported{c, *c, c.Meetings}, &unexported{client: c},
		minutes.Client{}, (*minutes.Client)(nil), (*minutes.UploadTarget)(nil),
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text := fmt.Sprintf(verb, v)
			testkit.RequireClean(t, fmt.Sprintf("%s of %T", verb, v), text)
			require.NotContains(t, text, fmt.Sprintf("%x", testkit.SecretKey))
			require.NotContains(t, text, fmt.Sprintf("%x", testkit.SecretSig))
		}
	}
	for _, v := range []any{c, *c, c.Meetings, target, *target, broken, struct{ C *minutes.Client }{c}} {
		testkit.RequireClean(t, fmt.Sprintf("slog of %T", v), testkit.Logged(v))
	}
	require.Contains(t, fmt.Sprint(c), "minutes.example")
	require.Contains(t, fmt.Sprint(target), "storage.example")
}

// The Client sends the key only to the host, port and scheme of the base URL.
func TestKey_StaysWithItsHost(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r.Header.Get("Authorization") }))
	defer elsewhere.Close()
	var location string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stolen" {
			heard <- "followed"
		}
		w.Header()["Location"] = []string{location}
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	c, err := minutes.New(srv.URL, testkit.SecretKey, minutes.WithHTTPClient(&http.Client{Transport: testbase.OwnTransport(t), CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}))
	require.NoError(t, err)
	for _, location = range []string{elsewhere.URL, elsewhere.URL + "/stolen", "/stolen", srv.URL + "/stolen", "//" + strings.TrimPrefix(elsewhere.URL, "http://"), ""} {
		_, err := c.Usage.Get(t.Context())
		testkit.RequireStatus(t, err, 307)
		_, err = c.Projects.Create(t.Context(), &minutes.ProjectCreateParams{Name: "x"})
		testkit.RequireStatus(t, err, 307)
	}
	require.Empty(t, heard)
}

// Reflection, which reads unexported fields and calls neither Format nor LogValue, finds
// no secret either.
func TestReflection_FindsNoSecret(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"credits_remaining":1,"transcribe_seconds_remaining":1}`)
	}))
	defer srv.Close()
	tr := testbase.OwnTransport(t) // its idle connection keeps the request
	used, err := minutes.New(srv.URL, testkit.SecretKey, minutes.WithHTTPClient(&http.Client{Transport: tr}))
	require.NoError(t, err)
	_, err = used.Usage.Get(t.Context())
	require.NoError(t, err)
	if !testbase.UnderRace { // the transport is in use
		var transport strings.Builder
		testkit.Dump(&transport, reflect.ValueOf(tr), make(map[uintptr]bool))
		require.Contains(t, transport.String(), testkit.SecretKey, "the test finds a key that is there")
	}

	// Errors whose causes hold the request, and so the key or the signature.
	held := func(req *http.Request) error {
		return fmt.Errorf("lost: %w", &holding{req, req.Header.Get("Authorization"), req.URL.String()})
	}
	failing, err := minutes.New("https://minutes.example", testkit.SecretKey, minutes.WithMaxRetries(0), minutes.WithHTTPClient(&http.Client{
		Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) { return nil, held(req) })}))
	require.NoError(t, err)
	_, lost := failing.Usage.Get(t.Context())
	require.Error(t, lost)
	stored := testkit.Directed(t, "https://storage.example/k?"+testkit.PresignedQuery, minutes.StatusCreated, testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		return nil, held(req)
	}), minutes.WithMaxRetries(0)).Meetings.Upload(t.Context(), "mtg_1", testkit.Audio(10), nil)
	require.Error(t, stored)

	target := minutes.UploadTarget{UploadURL: testkit.Presigned("https://storage.example/k?" + testkit.PresignedQuery), ExpiresIn: 900, Method: "PUT"}
	type holder struct {
		Client  *minutes.Client
		client  minutes.Client
		service *minutes.MeetingsService
		Target  minutes.UploadTarget
		target  *minutes.UploadTarget
		targets []minutes.UploadTarget
		url     minutes.PresignedURL
		err     error
	}
	for name, v := range map[string]any{
		"client":         used,
		"client, copied": *used,
		"service":        used.Meetings,
		"target":         target,
		"targets":        []minutes.UploadTarget{target},
		"pointers":       []*minutes.UploadTarget{&target},
		"map":            map[string]minutes.UploadTarget{"t": target},
		"URL":            target.UploadURL,
		"error":          lost,
		"storage error":  stored,
		"wait error":     &minutes.WaitError{MeetingID: "m", Err: lost},
		"holder":         holder{used, *used, used.Meetings, target, &target, []minutes.UploadTarget{target}, target.UploadURL, lost},
		"its pointer":    &holder{used, *used, used.Meetings, target, &target, []minutes.UploadTarget{target}, target.UploadURL, stored},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.RequireClean(t, name, testkit.Shown(v))
		})
	}
}

// holding is an error that shows nothing but holds everything.
type holding struct {
	req  *http.Request
	auth string
	url  string
}

func (*holding) Error() string    { return "the line is dead" }
func (*holding) GoString() string { return "holding" }
