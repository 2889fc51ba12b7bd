package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

const storageURL = "https://storage.example/b/k?" + testkit.PresignedQuery

// A peer is the service or storage, or the network before it. Each peer here repeats secrets.
type peer = testbase.RoundTripper

func replies(status int, body string, header ...string) peer {
	return testkit.Canned(status, body, header...)
}

func fails(cause func(*http.Request) error) peer {
	return func(req *http.Request) (*http.Response, error) { return nil, cause(req) }
}

func dials(err error) peer {
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, err }
	return (&http.Transport{DialContext: dial, DialTLSContext: dial}).RoundTrip
}

// hostileServices answer every request to the API.
func hostileServices() map[string]peer {
	const key = testkit.SecretKey
	all := strings.Join(testkit.Spelled(key), " ")
	return map[string]peer{
		"code, message, details and request id": replies(401,
			`{"error":{"code":"UNAUTHENTICATED `+key+`","message":"no such key: `+key+`","request_id":"`+key+`","details":{"`+key+`":["`+key+`"]}}}`, "X-Request-Id", key),
		"page of a gateway":  replies(502, "<title>"+all+"</title>", "Content-Type", "text/html", "Server", key),
		"unusable 200":       replies(200, `{"`+key+`":1,"id":"`+key),
		"redirect":           replies(302, all, "Location", storageURL+"&key="+key),
		"malformed Location": replies(307, all, "Location", "https://[::1%zz/?"+key),
		"connection refused": dials(testbase.ErrRefused),
		"a transport's error": fails(func(req *http.Request) error {
			return fmt.Errorf("proxyconnect: refused %s", req.Header.Get("Authorization"))
		}),
		"joined errors": fails(func(req *http.Request) error {
			return fmt.Errorf("lost: %w", errors.Join(io.EOF, errors.New(req.Header.Get("Authorization"))))
		}),
	}
}

// hostileStores answer every PUT of a recording.
func hostileStores() map[string]peer {
	xml := func(code, message, id string) string {
		return `<Error><Code>` + code + `</Code><Message>` + message + `</Message><RequestId>` + id + `</RequestId></Error>`
	}
	return map[string]peer{
		"XML":                replies(403, xml("SignatureDoesNotMatch", strings.ReplaceAll(storageURL, "&", "&amp;"), testkit.SecretSig)),
		"code":               replies(400, xml(testkit.SecretSig, "", "")),
		"page":               replies(400, storageURL),
		"redirect":           replies(307, "", "Location", storageURL),
		"connection refused": dials(testbase.ErrRefused),
		"the URL": fails(func(req *http.Request) error {
			return fmt.Errorf("tracing: %w", &url.Error{Op: "Put", URL: req.URL.String(), Err: io.EOF})
		}),
		"its query":     fails(func(req *http.Request) error { return errors.New("cannot reach " + req.URL.RawQuery) }),
		"joined errors": fails(func(req *http.Request) error { return errors.Join(io.EOF, errors.New(req.URL.String())) }),
	}
}

// No error, log line or attempt shows the key or the query of an upload URL, even if the service, storage or the
// transport repeats them.
func TestErrorsAndLogs_HaveNoSecret(t *testing.T) {
	t.Parallel()
	for name, service := range hostileServices() {
		testSecrets(t, "service: "+name, service, func(ctx context.Context, c *minutes.Client) []error {
			_, got := c.Meetings.Get(ctx, "mtg_1")
			_, _, created := c.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "x"})
			errs := []error{got, created}
			for r, err := range c.Meetings.WaitAll(ctx, slices.Values([]string{testkit.SecretKey}), nil) {
				errs = append(errs, fmt.Errorf("%v: %w", r, err))
			}
			return errs
		})
	}
	upload := func(ctx context.Context, c *minutes.Client) []error {
		return []error{c.Meetings.Upload(ctx, "mtg_1", testkit.Audio(100), nil)}
	}
	for name, store := range hostileStores() {
		testSecrets(t, "storage: "+name, directed(storageURL, store), upload)
	}
	for _, unusable := range []string{
		"https://storage.example/b/k\x7f?", "https://storage.example/b/%zz?", "https://storage.example:port/b?", "https://[::1/b?", "https:///b?",
		"?", "http://storage.example/b?", "ftp://storage.example/b?", "https://user:" + testkit.SecretSig + "@storage.example/b?",
		"https://" + testkit.SecretKey + ".example/" + testkit.SecretKey + "?",
	} {
		testSecrets(t, fmt.Sprintf("upload URL %q", unusable), directed(unusable+testkit.PresignedQuery, dials(testbase.ErrRefused)), upload)
	}
}

// directed is a service whose upload URLs lead to a store.
func directed(uploadURL string, store peer) peer {
	return func(req *http.Request) (*http.Response, error) {
		switch {
		case req.URL.Host != "minutes.example":
			return store(req)
		case req.Method == http.MethodPost:
			target := strings.ReplaceAll(uploadURL, "\x7f", `\u007f`)
			return replies(200, `{"upload_url":"`+target+`","expires_in":900,"method":"PUT"}`)(req)
		}
		return replies(200, `{"id":"mtg_1","status":"created"}`)(req)
	}
}

func testSecrets(t *testing.T, name string, network peer, call func(context.Context, *minutes.Client) []error) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			out := new(testbase.Buffer)
			hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				elsewhere := req.URL.Host != "minutes.example" && req.Header.Get("Authorization") != ""
				assert.False(t, elsewhere, "the key went to %s", req.URL.Host)
				return network(req)
			})}
			c, err := minutes.New("https://minutes.example", testkit.SecretKey, minutes.WithHTTPClient(hc), minutes.WithMaxRetries(1),
				minutes.WithLogger(slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))),
				minutes.WithObserver(func(_ context.Context, a minutes.Attempt) { _, _ = io.WriteString(out, testkit.Shown(a)) }))
			require.NoError(t, err)
			for _, err := range call(t.Context(), c) {
				require.Error(t, err)
				testkit.RequireClean(t, "error", testkit.Shown(err)+testkit.Shown(&minutes.WaitError{MeetingID: "m", Err: err}))
			}
			require.NotEmpty(t, out.String())
			testkit.RequireClean(t, "log", out.String())
		})
	})
}

// Values that hold a secret do not print it.
func TestSecrets_PrintMasked(t *testing.T) {
	t.Parallel()
	c, err := minutes.New("https://minutes.example", testkit.SecretKey)
	require.NoError(t, err)
	target := &minutes.UploadTarget{UploadURL: testkit.Presigned(storageURL), ExpiresIn: 900, Method: "PUT"}
	type unexported struct { // fmt calls no methods of unexported fields
		client *minutes.Client
		value  minutes.Client
		target minutes.UploadTarget
	}
	for _, v := range []any{
		c, *c, c.Meetings, *c.Meetings, c.Usage, target, *target, []*minutes.UploadTarget{target}, map[string]any{"t": target, "c": c},
		struct{ C *minutes.Client }{c}, unexported{c, *c, *target}, &unexported{client: c}, minutes.Client{}, (*minutes.Client)(nil),
	} {
		testkit.RequireClean(t, fmt.Sprintf("%T", v), testkit.Shown(v))
	}
	require.Contains(t, fmt.Sprint(c), "minutes.example")
	require.Contains(t, fmt.Sprint(target), "storage.example")
}
