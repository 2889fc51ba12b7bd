package openapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// The requests and responses that the tests of the Client assert, byte for byte, are those of the
// document. So the Client, the fake and their tests cannot share a wrong name.
func TestTestKit_MatchesTheDocument(t *testing.T) {
	t.Parallel()
	c := newChecker(t, "docs/openapi.yaml")
	json := http.Header{"Content-Type": {"application/json"}}
	for _, op := range testkit.Operations() {
		request := func() *http.Request {
			req := httptest.NewRequest(op.Method, op.Path+"?"+op.Query, strings.NewReader(op.Body))
			req.Header.Set("Authorization", "Bearer "+testkit.Key)
			if op.Body != "" {
				req.Header.Set("Content-Type", "application/json")
			}
			return req
		}
		c.checkRequest(request())
		for _, body := range testkit.Responses[op.Object] {
			c.check(request(), op.Status, json, []byte(body))
		}
	}
	for _, body := range testkit.Responses["Envelope"] {
		c.check(httptest.NewRequest("GET", "/v1/usage", http.NoBody), http.StatusUnauthorized, json, []byte(body))
	}
	c.report(t, nil)
}
