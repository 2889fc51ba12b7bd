package rest

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// Each attempt has the whole body, on the path of the base URL.
func TestCall_SendsTheSameRequestAgain(t *testing.T) {
	t.Parallel()
	for _, query := range []any{url.Values{"a": {"b c"}}, struct {
		A string `url:"a"`
	}{"b c"}} {
		synctest.Test(t, func(t *testing.T) {
			var bodies []string
			c := newClient(testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(req.Body)
				assert.NoError(t, err)
				bodies = append(bodies, string(body))
				assert.Equal(t,
					"PUT https://minutes.example/base/v1/meetings/mtg%2F1/participants?a=b+c",
					req.Method+" "+req.URL.String(),
				)
				assert.EqualValues(t, 3, req.ContentLength)
				return nil, io.EOF
			}))
			in := Request{
				Method:     http.MethodPut,
				Path:       "/v1/meetings/mtg%2F1/participants",
				Repeatable: true,
				Body:       []int{7},
				Query:      query,
			}
			_, err := c.Call(t.Context(), in)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, []string{"[7]", "[7]", "[7]", "[7]", "[7]"}, bodies)
		})
	}
}

func TestCall_RejectsUnsendableRequests(t *testing.T) {
	t.Parallel()
	for _, in := range []Request{
		{Method: http.MethodPost, Path: "/", Body: make(chan int)},
		{Method: http.MethodGet, Path: "/", Query: 7},
		{Method: http.MethodGet, Path: "/%zz"},
	} {
		s := &service{answers: []answer{{status: 200}}}
		_, err := newClient(s).Call(t.Context(), in)
		require.Error(t, err)
		require.Empty(t, s.sent)
	}
}

func TestCall_ErrorShowsNoSecret(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		echo := errors.New("proxy: no route for Bearer " + apiKey)
		_, err := newClient(
			&service{answers: []answer{{err: echo}}},
		).Call(t.Context(), Request{Path: "/", Query: url.Values{"cursor": {"secret"}}})
		require.EqualError(t, err, "proxy: no route for Bearer ***")
	})
}
