package rest

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

func TestCredentials_SetHeaderOfEachAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   Request
		want http.Header
	}{
		"without a body": {get, http.Header{"Accept": {"application/json"}}},
		"with a body": {
			Request{Path: "/", Body: 1, Repeatable: true},
			http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}},
		},
		"with the caller's": {
			Request{Path: "/", Repeatable: true, Header: http.Header{"traceparent": {"00-1"}, "authorization": {"Bearer other"}}},
			http.Header{"Accept": {"application/json"}, "Traceparent": {"00-1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				test.want.Set("Authorization", "Bearer "+apiKey)
				test.want.Set("User-Agent", "test/1")
				_, err := newClient(testbase.RoundTripper(func(req *http.Request) (*http.Response, error) {
					attempts++
					assert.Equal(t, test.want, req.Header)
					req.Header["Authorization"] = []string{"replaced by a careless transport"}
					return nil, io.EOF
				})).Call(t.Context(), test.in)
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, 5, attempts)
			})
		})
	}
}
