// Package testkit holds what tests of several packages share: Clients of scripted
// services, the operations of the interface in their wire form, recordings, faults,
// and checks. No user's binary contains it.
package testkit

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"testing"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Key is the API key of most tests.
const Key = "key_0123456789abcdef"

// A Sent request is one that arrived over a real connection.
type Sent struct {
	Method, URI, Host, Body string
	Header                  http.Header
	Length                  int64
	Encoding                []string
}

// OneResponse returns a Client of a server that gives every request the same response,
// below a path prefix. The function returns the requests that arrived.
func OneResponse(t testing.TB, status int, body string) (*minutes.Client, func() []Sent) {
	t.Helper()
	arrived := make(chan Sent, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		arrived <- Sent{
			Method:   r.Method,
			URI:      r.RequestURI,
			Host:     r.Host,
			Body:     string(got),
			Header:   r.Header.Clone(),
			Length:   r.ContentLength,
			Encoding: r.TransferEncoding,
		}
		if body != "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	client, err := New(srv.URL+"/gateway/minutes%2Fapi/", Key,
		minutes.WithHTTPClient(srv.Client()), minutes.WithMaxRetries(0))
	require.NoError(t, err)
	return client, func() []Sent {
		var all []Sent
		for len(arrived) > 0 {
			all = append(all, <-arrived)
		}
		return all
	}
}

// EnvDebug names the variable that makes the Clients of all tests log to stderr at debug level.
const EnvDebug = "MINUTES_TEST_DEBUG"

var debugOptions = func() []minutes.Option {
	if os.Getenv(EnvDebug) == "" {
		return nil
	}
	handler := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})
	return []minutes.Option{minutes.WithLogger(slog.New(handler))}
}()

// Client is srv.Client for tests: with [EnvDebug] set, it logs.
func Client(srv *minutestest.Server, opts ...minutes.Option) *minutes.Client {
	return srv.Client(append(slices.Clip(debugOptions), opts...)...)
}

// New is minutes.New for tests: with [EnvDebug] set, the Client logs.
func New(baseURL, key string, opts ...minutes.Option) (*minutes.Client, error) {
	return minutes.New(baseURL, key, append(slices.Clip(debugOptions), opts...)...)
}

// Responding returns a Client without retries that gets this response to every request,
// and its transport, which counts the requests.
func Responding(t testing.TB, respond httpmock.Responder) (*minutes.Client, *httpmock.MockTransport) {
	t.Helper()
	mock := httpmock.NewMockTransport()
	mock.RegisterNoResponder(respond)
	c, err := New("https://minutes.example", Key,
		minutes.WithHTTPClient(&http.Client{Transport: mock}), minutes.WithMaxRetries(0), minutes.WithRateLimit(0, 0))
	require.NoError(t, err)
	return c, mock
}

// Canned returns a responder for [Responding]. The header is given as pairs.
func Canned(status int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		resp := httpmock.NewStringResponse(status, body)
		resp.Request = req
		for i := 0; i+1 < len(header); i += 2 {
			resp.Header.Add(header[i], header[i+1])
		}
		return resp, nil
	}
}

// Silent returns a Client that fails the test if it sends a request.
func Silent(t *testing.T) *minutes.Client {
	t.Helper()
	mock := httpmock.NewMockTransport()
	mock.RegisterNoResponder(func(req *http.Request) (*http.Response, error) {
		t.Errorf("a request was made: %s %s", req.Method, req.URL)
		return nil, errors.New("no request should have been made")
	})
	c, err := minutes.New("https://minutes.example", Key,
		minutes.WithHTTPClient(&http.Client{Transport: mock}), minutes.WithMaxRetries(0))
	require.NoError(t, err)
	return c
}

// Directed returns a Client whose service directs recordings to target and reports the
// given status. Requests to storage go through next.
func Directed(
	t testing.TB, target string, status minutes.Status, next http.RoundTripper, opts ...minutes.Option,
) *minutes.Client {
	t.Helper()
	hc := &http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host != "localhost:1" {
			return next.RoundTrip(req)
		}
		var body any = map[string]any{"id": "mtg_1", "status": status}
		if req.Method == http.MethodPost {
			body = Revealed{target, 900, http.MethodPut}
		}
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		return Canned(http.StatusOK, string(data))(req)
	})}
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	u, err := url.Parse(target)
	if err == nil && u.Host != "" {
		jar.SetCookies(u, []*http.Cookie{{Name: "session", Value: "secret", Path: "/"}})
	}
	hc.Jar = jar
	defaults := []minutes.Option{minutes.WithHTTPClient(hc), minutes.WithMaxRetries(2), minutes.WithRateLimit(0, 0)}
	c, err := New("http://localhost:1", Key, append(defaults, opts...)...)
	require.NoError(t, err)
	return c
}

// Revealed is an upload target with its URL in clear text, as the service sends it.
type Revealed struct {
	UploadURL string `json:"upload_url"`
	ExpiresIn int    `json:"expires_in"`
	Method    string `json:"method"`
}

// Presigned returns a URL as a Client decodes it.
func Presigned(url string) (u minutes.PresignedURL) {
	err := u.UnmarshalText([]byte(url))
	if err != nil {
		panic(err)
	}
	return u
}
