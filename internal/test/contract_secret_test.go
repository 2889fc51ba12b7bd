package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// Secrets that must never show, and a query that contains them.
const (
	secretKey = "key_Sw0rd/f1sh+Sw0rdf1sh=="
	secretSig = "feedfacecafebeef0123456789abcdef"
	secretID  = "AKIAFIREDRILL0042"

	presignedQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256" +
		"&X-Amz-Credential=" + secretID + "%2F20261120%2Flocal%2Fs3%2Faws4_request" +
		"&X-Amz-Expires=900" +
		"&X-Amz-Signature=" + secretSig
)

// requireClean requires a text without the secrets above.
func requireClean(t testing.TB, what, text string) {
	t.Helper()
	for _, secret := range append(spelled(secretKey), secretSig, secretID) {
		require.NotContains(t, text, secret, what)
		require.NotContains(t, text, fmt.Sprintf("%x", secret), what)
	}
}

// spelled returns a key, unchanged and in its forms for a URL.
func spelled(key string) []string {
	return []string{key, url.QueryEscape(key), url.PathEscape(key)}
}

const storageURL = "https://storage.example/b/k?" + presignedQuery

// escaped returns the ways in which JSON may write a key.
func escaped(key string) []string {
	all := ""
	for _, r := range key {
		all += fmt.Sprintf(`\u%04x`, r)
	}
	some := strings.NewReplacer("/", `\/`, "=", `\u003d`, "+", `\u002B`).Replace(key)
	return []string{key, some, all}
}

// A peer is the service or storage, or the network before it. Each peer here repeats secrets.
type peer = testbase.RoundTripper

func fails(cause func(*http.Request) error) peer {
	return func(req *http.Request) (*http.Response, error) { return nil, cause(req) }
}

// hostileServices answer every request to the API.
func hostileServices() map[string]peer {
	const key = secretKey
	all := strings.Join(spelled(key), " ")
	services := map[string]peer{
		"page of a gateway":  testkit.Canned(502, "<title>"+all+"</title>", "Content-Type", "text/html", "Server", key),
		"unusable 200":       testkit.Canned(200, `{"`+key+`":1,"id":"`+key),
		"redirect":           testkit.Canned(302, all, "Location", storageURL+"&key="+key),
		"malformed Location": testkit.Canned(307, all, "Location", "https://[::1%zz/?"+key),
		"joined errors": fails(func(req *http.Request) error {
			return fmt.Errorf("lost: %w", errors.Join(io.EOF, errors.New(req.Header.Get("Authorization"))))
		}),
	}
	for i, form := range escaped(key) {
		services[fmt.Sprint("code, message, details and request id ", i)] = testkit.Canned(401,
			`{"error":{"code":"UNAUTHENTICATED `+form+`","message":"no such key: `+form+`",`+
				`"request_id":"`+form+`","details":{"`+form+`":["`+form+`",{"`+form+`":"`+form+`"}]}}}`,
			"X-Request-Id", key)
		services[fmt.Sprint("gateway's JSON ", i)] = testkit.Canned(502, `{"errors":[{"detail":"`+form+`"}]}`)
	}
	return services
}

// hostileStores answer every PUT of a recording.
func hostileStores() map[string]peer {
	xml := func(code, message, id string) string {
		return `<Error><Code>` + code + `</Code>` +
			`<Message>` + message + `</Message><RequestId>` + id + `</RequestId></Error>`
	}
	return map[string]peer{
		"message and id": testkit.Canned(403,
			xml("SignatureDoesNotMatch", strings.ReplaceAll(storageURL, "&", "&amp;"), secretSig)),
		"code":     testkit.Canned(400, xml(secretSig, "", "")),
		"page":     testkit.Canned(400, storageURL),
		"redirect": testkit.Canned(307, "", "Location", storageURL),
		"the URL": fails(func(req *http.Request) error {
			return fmt.Errorf("tracing: %w", &url.Error{Op: "Put", URL: req.URL.String(), Err: io.EOF})
		}),
		"joined errors": fails(func(req *http.Request) error {
			return errors.Join(io.EOF, errors.New(req.URL.RawQuery))
		}),
	}
}

// No error, log line or attempt shows the key or the query of an upload URL, even if the service,
// storage or the transport repeats them.
func TestErrorsAndLogs_HaveNoSecret(t *testing.T) {
	t.Parallel()
	for name, service := range hostileServices() {
		testSecrets(t, "service: "+name, service, func(ctx context.Context, c *minutes.Client) []error {
			_, got := c.Meetings.Get(ctx, "mtg_1")
			_, _, created := c.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "x"})
			return []error{got, created}
		})
	}
	upload := func(ctx context.Context, c *minutes.Client) []error {
		return []error{c.Meetings.Upload(ctx, "mtg_1", testkit.Audio(100), nil)}
	}
	for name, store := range hostileStores() {
		testSecrets(t, "storage: "+name, directed(storageURL, store), upload)
	}
	refuses := fails(func(*http.Request) error { return testbase.ErrRefused })
	for _, unusable := range []string{
		"https://storage.example/%zz?",
		"https://[::1/b?",
		"?",
		"http://storage.example/b?",
		"https://user:" + secretSig + "@storage.example/b?",
		"https://" + secretKey + ".example/" + secretKey + "?",
	} {
		testSecrets(t, fmt.Sprintf("upload URL %q", unusable), directed(unusable+presignedQuery, refuses), upload)
	}
}

// directed is a service whose upload URLs lead to a store.
func directed(uploadURL string, store peer) peer {
	return func(req *http.Request) (*http.Response, error) {
		switch {
		case req.URL.Host != "minutes.example":
			return store(req)
		case req.Method == http.MethodPost:
			return testkit.Canned(200, `{"upload_url":"`+uploadURL+`","expires_in":900}`)(req)
		}
		return testkit.Canned(200, `{"id":"mtg_1","status":"created"}`)(req)
	}
}

func testSecrets(
	t *testing.T, name string, network peer, call func(context.Context, *minutes.Client) []error,
) {
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
			logs := slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})
			observe := func(_ context.Context, a minutes.Attempt) {
				_, err := io.WriteString(out, testkit.Shown(a))
				assert.NoError(t, err)
			}
			c, err := minutes.New("https://minutes.example", secretKey,
				minutes.WithHTTPClient(hc), minutes.WithMaxRetries(1),
				minutes.WithLogger(slog.New(logs)), minutes.WithObserver(observe))
			require.NoError(t, err)
			for _, err := range call(t.Context(), c) {
				require.Error(t, err)
				requireClean(t, "error", testkit.Shown(err)+testkit.Shown(&minutes.WaitError{MeetingID: "m", Err: err}))
			}
			require.NotEmpty(t, out.String())
			requireClean(t, "log", out.String())
		})
	})
}

// A Client does not print its secrets, wherever it is. That of an upload URL is a test of the root.
func TestSecrets_PrintMasked(t *testing.T) {
	t.Parallel()
	c, err := minutes.New("https://minutes.example", secretKey)
	require.NoError(t, err)
	type unexported struct { // fmt calls no methods of unexported fields
		client *minutes.Client
		value  minutes.Client
	}
	for _, v := range []any{c, c.Meetings, map[string]any{"c": c}, unexported{c, *c}} {
		requireClean(t, fmt.Sprintf("%T", v), testkit.Shown(v))
	}
}
