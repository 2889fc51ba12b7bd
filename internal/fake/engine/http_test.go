package engine_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHTTP_MethodsPathsAndHeaders is D16 and D21.
func TestHTTP_MethodsPathsAndHeaders(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("ci", "")
	for what, want := range map[string]int{
		"GET /": 404, "GET /v1": 404, "GET /v1/": 404, "GET /v2/meetings": 404, "GET /v1/meetings/": 404,
		"GET /v1/meetings/" + id + "/": 404, "GET /v1/employees/": 404,
		"GET /v1/meetings/" + id + "/nothing": 404, "GET /v1/meetings//minutes": 404, "GET /v1/Meetings": 404,
		"GET /v1//meetings": 404,
		"PUT /v1/meetings":  405, "POST /v1/meetings/" + id: 405, "OPTIONS /v1/meetings": 405, "DELETE /v1/usage": 405,
		"GET /v1/vocabulary/terms": 405, "HEAD /v1/vocabulary/terms": 405,
		"GET /v1/meetings/" + id: 200, "HEAD /v1/meetings/" + id: 200,
		"GET /v1/meetings/" + strings.Replace(id, "_", "%5f", 1): 200,
		"GET /v1/meetings/..%2F" + id:                            404,
		"GET /v1%2Fmeetings":                                     404, "GET /v1/meetings/" + id + "%2Fminutes": 404,
	} {
		r := s.request("ci", what, "")
		require.Equal(t, want, r.Code, what)
		require.Equal(t, "application/json; charset=utf-8", r.Header().Get("Content-Type"), what)
		if strings.HasPrefix(what, "HEAD") {
			require.Empty(t, r.Body.String(), what)
			require.NotEqual(t, "0", r.Header().Get("Content-Length"), what)
			continue
		}
		switch want {
		case 404:
			r.is(404, "NOT_FOUND")
		case 405:
			r.is(405, "BAD_REQUEST")
		}
	}
	require.Equal(t, "GET, HEAD, POST", s.request("ci", "PUT /v1/meetings", "").Header().Get("Allow"))
	require.Equal(t, "GET, HEAD, PATCH, DELETE", s.request("ci", "PUT /v1/meetings/x", "").Header().Get("Allow"))
	require.Equal(t, "private, max-age=30", s.request("ci", "GET /v1/meetings/"+id, "").Header().Get("Cache-Control"))
	require.Empty(t, s.request("ci", "GET /v1/meetings/x", "").Header().Get("Cache-Control"))

	small := `{"title":"x","date":"2026-01-01"}`
	s.request("ci", "POST /v1/meetings", small+strings.Repeat(" ", 1<<20-len(small))).is(201, "")
	big := `{"title":"` + strings.Repeat("x", 1<<20) + `"}`
	s.request("ci", "POST /v1/meetings", big).is(413, "BAD_REQUEST")
	s.request("ci", "POST /v1/meetings", big, func(r *http.Request) { r.ContentLength = -1 }).is(413, "BAD_REQUEST")
	s.request("ci", "PATCH /v1/meetings/none", big).is(404, "NOT_FOUND")
	r := s.request("ci", "DELETE /v1/meetings/"+id, "").is(204, "")
	require.Empty(t, r.Body.String())
}
