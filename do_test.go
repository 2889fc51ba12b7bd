package minutes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// errorOf drops the response of Client.Do.
func errorOf(_ *minutes.Response, err error) error { return err }

// named is a type of byte slices, such as sql.RawBytes.
type named []byte

func TestClient_DoSendsAnyRequest(t *testing.T) {
	t.Parallel()
	type note struct {
		Text string `json:"text"`
	}
	t.Run("sends the request as given", func(t *testing.T) {
		t.Parallel()
		client, sent := testkit.OneResponse(t, 201, `{"text":"stored"}`)
		var out note
		query := url.Values{"dry run": {"a&b"}, "x": {"1", "2"}}
		require.NoError(t,
			errorOf(
				client.Do(
					t.Context(),
					minutes.Request{
						Method: "POST",
						Path:   "/v1/meetings/" + url.PathEscape("mtg/1 ü") + "/notes",
						Query:  query,
						Body:   note{"<new>"},
					},
					&out,
				),
			),
		)
		require.Equal(t, note{"stored"}, out)
		require.NoError(t, errorOf(client.Do(t.Context(), minutes.Request{Method: "DELETE", Path: "/v2/x:y"}, nil)))
		got := sent()
		require.Len(t, got, 2)
		require.Equal(t, "/gateway/minutes%2Fapi/v1/meetings/mtg%2F1%20%C3%BC/notes?dry+run=a%26b&x=1&x=2", got[0].URI)
		require.Equal(t, `{"text":"\u003cnew\u003e"}`, got[0].Body)
		require.Equal(t, "application/json", got[0].Header.Get("Content-Type"))
		require.Equal(t, "DELETE /gateway/minutes%2Fapi/v2/x:y", got[1].Method+" "+got[1].URI)
		require.Empty(t, got[1].Body)
		require.Empty(t, got[1].Header.Get("Content-Type"))
		for _, r := range got {
			require.Equal(t, "Bearer "+testkit.Key, r.Header.Get("Authorization"))
		}
	})
	t.Run("sends JSON as it is", func(t *testing.T) {
		t.Parallel()
		client, sent := testkit.OneResponse(t, 200, "")
		for _, body := range []any{json.RawMessage(`{"a":1}`), jsonReader{}} {
			r := minutes.Request{Method: "POST", Path: "/v1/x", Body: body}
			require.NoError(t, errorOf(client.Do(t.Context(), r, nil)))
			require.JSONEq(t, `{"a":1}`, sent()[0].Body)
		}
	})
	t.Run("returns status, header and body", func(t *testing.T) {
		t.Parallel()
		client, _ := testkit.Responding(t, func(*http.Request) (*http.Response, error) {
			header := http.Header{"X-Total": {"7"}, "X-Echo": {"Bearer " + testkit.Key}}
			return &http.Response{StatusCode: 202, Header: header, Body: io.NopCloser(strings.NewReader("<p>"))}, nil
		})
		for _, out := range []any{nil, new(note)} {
			resp, err := client.Do(t.Context(), minutes.Request{Method: "GET", Path: "/v1/x"}, out)
			if out != nil {
				require.Error(t, err)
				require.Nil(t, resp)
				continue
			}
			require.NoError(t, err)
			require.Equal(t,
				&minutes.Response{
					StatusCode: 202,
					Header:     http.Header{"X-Total": {"7"}, "X-Echo": {"Bearer ***"}},
					Body:       []byte("<p>"),
				},
				resp,
			)
		}
	})
	t.Run("decodes fields of a later interface", func(t *testing.T) {
		t.Parallel()
		client, _ := testkit.Responding(t, testkit.Canned(200, `{"id":"mtg_1","status":"created","language":"cy"}`))
		var m struct {
			minutes.Meeting
			Language string `json:"language"`
		}
		request := minutes.Request{Method: "GET", Path: "/v1/meetings/mtg_1"}
		require.NoError(t, errorOf(client.Do(t.Context(), request, &m)))
		require.Equal(t, minutes.StatusCreated, m.Status)
		require.Equal(t, "cy", m.Language)
	})
	t.Run("accepts a 2xx without a body", func(t *testing.T) {
		t.Parallel()
		for _, status := range []int{200, 202, 204, 205} {
			for _, body := range []string{"", "\r\n"} {
				client, _ := testkit.Responding(t, testkit.Canned(status, body))
				out := note{"as before"}
				resp, err := client.Do(t.Context(), minutes.Request{Method: "DELETE", Path: "/v1/x"}, &out)
				require.NoError(t, err)
				require.Equal(t, status, resp.StatusCode)
				require.Equal(t, note{"as before"}, out)
			}
		}
	})
	t.Run("returns the error of the service", func(t *testing.T) {
		t.Parallel()
		client, _ := testkit.Responding(t,
			testkit.Canned(404, `{"error":{"code":"NOT_FOUND","message":"No.","request_id":"r"}}`),
		)
		err := errorOf(client.Do(t.Context(), minutes.Request{Method: "GET", Path: "/v1/x"}, nil))
		require.ErrorIs(t, err, minutes.ErrNotFound)
		require.EqualError(t, err, "minutes: GET /v1/x: 404 NOT_FOUND: No. (request id r)")
		failed, _ := errors.AsType[*minutes.Error](err)
		require.Equal(t, minutes.OpDo, failed.Operation)
	})
	t.Run("rejects responses it cannot use", func(t *testing.T) {
		t.Parallel()
		client, _ := testkit.Responding(t, testkit.Canned(200, "[]"))
		err := errorOf(client.Do(t.Context(), minutes.Request{Method: "GET", Path: "/v1/x"}, new(note)))
		require.ErrorContains(t, err, "GET /v1/x: 200: the response does not match the API reference")
		require.NoError(t, errorOf(client.Do(t.Context(), minutes.Request{Method: "GET", Path: "/v1/x"}, nil)))
		client, _ = testkit.Responding(t, func(*http.Request) (*http.Response, error) {
			endless := testbase.ReaderFunc(func(p []byte) (int, error) { return len(p), nil })
			return &http.Response{StatusCode: 200, Body: io.NopCloser(io.LimitReader(endless, 1<<30))}, nil
		})
		err = errorOf(client.Do(t.Context(), minutes.Request{Method: "GET", Path: "/v1/x"}, nil))
		require.ErrorContains(t, err, "the response is longer than", "even if nobody decodes it")
	})
	t.Run("rejects requests that cannot be sent", func(t *testing.T) {
		t.Parallel()
		client := testkit.Silent(t)
		for _, method := range []string{"", "get", "HEAD", "CONNECT", "X Y"} {
			testkit.RequireParamError(t,
				errorOf(client.Do(t.Context(), minutes.Request{Method: method, Path: "/v1/x"}, nil)),
				"Method",
				"",
			)
		}
		for _, path := range []string{
			"", "v1/x", "https://elsewhere.example/", "//elsewhere.example", "/v1//x", "/v1/../x",
			"/v1/%2e%2E/x", "/.", "/", "/v1/x?y=z", "/v1/x#y", "/v1/x?", "/v1/x y", "/v1/ü", "/v1/%zz",
			"/v1/%0a", "/v1/{id}", "/v1/\\x", "/v1/x\n",
		} {
			testkit.RequireParamError(t,
				errorOf(client.Do(t.Context(), minutes.Request{Method: "GET", Path: path}, nil)),
				"Path",
				"",
			)
		}
		testkit.RequireParamError(t,
			errorOf(client.Do(t.Context(), minutes.Request{Method: "POST", Path: "/v1/x", Body: make(chan int)}, nil)),
			"Body",
			"",
		)
		for _, body := range []any{
			[]byte("{}"), named("{}"), strings.NewReader("{}"), io.NopCloser(strings.NewReader("{}")),
		} {
			err := errorOf(client.Do(t.Context(), minutes.Request{Method: "POST", Path: "/v1/x", Body: body}, nil))
			testkit.RequireParamError(t, err, "Body", "")
			require.ErrorContains(t, err, "json.RawMessage")
		}
		var none context.Context
		err := errorOf(client.Do(none, minutes.Request{Method: "POST", Path: "/v1/x"}, nil))
		testkit.RequireParamError(t, err, "ctx", "")
	})
	t.Run("may repeat a GET and an idempotent request", func(t *testing.T) {
		t.Parallel()
		for _, test := range []struct {
			method           string
			idempotent, want bool
		}{
			{"GET", false, true},
			{"PUT", false, false},
			{"POST", false, false},
			{"DELETE", false, false},
			{"PUT", true, true},
			{"POST", true, true},
		} {
			var sent *rest.Request
			client, _ := testkit.Responding(t, func(req *http.Request) (*http.Response, error) {
				sent = rest.AttemptOf(req.Context()).Request
				return testkit.Canned(204, "")(req)
			})
			request := minutes.Request{Method: test.method, Path: "/v1/x", Idempotent: test.idempotent}
			require.NoError(t, errorOf(client.Do(t.Context(), request, nil)))
			require.Equal(t, test.want, sent.Repeatable, "%+v", test)
			require.Equal(t, minutes.OpDo, minutes.Operation(sent.Operation))
		}
	})
}

// jsonReader can be read, but also says how it is written as JSON.
type jsonReader struct{ io.Reader }

func (jsonReader) MarshalJSON() ([]byte, error) { return []byte(`{"a":1}`), nil }

// Do does not check required fields, so a null in a list of meetings is not a mistake.
func TestClient_DoAcceptsNullInList(t *testing.T) {
	t.Parallel()
	client, _ := testkit.Responding(t, testkit.Canned(200, `{"meetings":[null]}`))
	var page minutes.MeetingPage
	require.NoError(t,
		errorOf(client.Do(t.Context(), minutes.Request{Method: http.MethodGet, Path: "/v1/meetings"}, &page)),
	)
	require.Equal(t, []*minutes.Meeting{nil}, page.Meetings)
}

func TestClient_DoRequiresPointer(t *testing.T) {
	t.Parallel()
	for _, out := range []any{struct{}{}, map[string]any{}, (*struct{})(nil), 7} {
		err := errorOf(testkit.Silent(t).Do(t.Context(), minutes.Request{Method: http.MethodPost, Path: "/v1/x"}, out))
		testkit.RequireParamError(t, err, "out", "")
	}
}

// ContextWithResponse gets the last response of a call, whether the call succeeds or fails.
func TestContextWithResponse_ReceivesFieldsThatTheTypesLack(t *testing.T) {
	t.Parallel()
	const page = `{"meetings":[{"id":"mtg_1","status":"created","new":7}]}`
	const meeting = `{"id":"mtg_1","status":"created","new":7}`
	for name, test := range map[string]struct {
		status int
		body   string
		call   func(context.Context, *minutes.Client) error
	}{
		"Get": {
			200, meeting,
			func(ctx context.Context, c *minutes.Client) error {
				_, err := c.Meetings.Get(ctx, "mtg_1")
				return err
			},
		},
		"All": {200, page, func(ctx context.Context, c *minutes.Client) (err error) {
			for _, err = range c.Meetings.All(ctx, nil) {
			}
			return err
		}},
		"failed Create": {
			409, `{"error":{"code":"NEW","new":7}}`,
			func(ctx context.Context, c *minutes.Client) error {
				_, _, err := c.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "T"})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response := testkit.Canned(test.status, test.body, "X-New", testkit.Key, "Set-Cookie", "a=b")
			c, _ := testkit.Responding(t, response)
			var resp minutes.Response
			err := test.call(minutes.ContextWithResponse(t.Context(), &resp), c)
			require.Equal(t, test.status == 200, err == nil, "%v", err)
			header := http.Header{"X-New": {"***"}}
			want := minutes.Response{StatusCode: test.status, Header: header, Body: []byte(test.body)}
			require.Equal(t, want, resp)
		})
	}
}

func TestContextWithHeader_ReachesAPIRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		sent := map[minutes.Operation]http.Header{}
		c := testkit.Client(
			srv,
			minutes.WithHTTPClient(
				&http.Client{Transport: testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if a, _ := minutes.AttemptFromContext(req.Context()); !a.Shared {
						sent[a.Operation] = req.Header
					}
					return srv.HTTPClient().Transport.RoundTrip(req)
				})},
			),
		)
		ctx := minutes.ContextWithHeader(t.Context(), http.Header{"X-Outer": {"1"}, "X-Trace": {"outer"}})
		ctx = minutes.ContextWithHeader(ctx, http.Header{"x-trace": {"7"}})
		for _, err := range c.Meetings.All(ctx, nil) {
			require.NoError(t, err)
		}
		_, err := c.Meetings.Process(ctx, weekly(""), testkit.Audio(10), nil)
		require.NoError(t, err)
		request := minutes.Request{Method: "GET", Path: "/v1/usage", Header: http.Header{"x-trace": {"8"}}}
		_, err = c.Do(ctx, request, nil)
		require.NoError(t, err)
		for op, trace := range map[minutes.Operation]string{
			minutes.OpMeetingsList:      "7",
			minutes.OpMeetingsCreate:    "7",
			minutes.OpMeetingsUploadURL: "7",
			minutes.OpMeetingsMinutes:   "7",
			minutes.OpDo:                "8",
		} {
			require.Equal(t, "1", sent[op].Get("X-Outer"), op)
			require.Equal(t, trace, sent[op].Get("X-Trace"), op)
		}
		require.Empty(t, sent[minutes.OpUpload].Get("X-Outer"))
	})
}

// The response with an upload URL contains a credential, so nothing that prints a Response shows
// its body.
func TestResponse_PrintsNoBody(t *testing.T) {
	t.Parallel()
	resp := minutes.Response{StatusCode: 200, Body: []byte(`{"upload_url":"https://storage.example/k?signature=abc"}`)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, printed := range []any{resp, &resp} {
			require.Equal(t, "minutes.Response(200, body of 56 bytes)", fmt.Sprintf(verb, printed), verb)
		}
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "response", resp)
	require.Contains(t, log.String(), "body of 56 bytes")
	require.NotContains(t, log.String(), "signature")
	written, err := json.Marshal(resp)
	require.NoError(t, err)
	require.NotContains(t, string(written), "Body")
}
