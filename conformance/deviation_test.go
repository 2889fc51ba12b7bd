package conformance

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// altered is an in-memory service whose responses pass through alter.
func altered(alter func(r *http.Request, rec *httptest.ResponseRecorder)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			alter(r, rec)
			body := rec.Body.Bytes()
			maps.Copy(w.Header(), rec.Header())
			if rec.Code != http.StatusNoContent {
				w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			}
			w.WriteHeader(rec.Code)
			if r.Method != http.MethodHead {
				_, _ = w.Write(body)
			}
		})
	}
}

// swap replaces text in the responses to one path.
func swap(path, old, with string) func(*http.Request, *httptest.ResponseRecorder) {
	return func(r *http.Request, rec *httptest.ResponseRecorder) {
		if strings.HasPrefix(r.URL.Path, path) {
			rec.Body = bytes.NewBuffer(bytes.ReplaceAll(rec.Body.Bytes(), []byte(old), []byte(with)))
		}
	}
}

// The checks find each deviation, and name the document or the assumption that the
// service deviates from.
func TestDeviations_AreFound(t *testing.T) {
	t.Parallel()
	const documented = 0
	for name, tc := range map[string]struct {
		alter    func(*http.Request, *httptest.ResponseRecorder)
		check    string
		decision int
		text     string
	}{
		"missing field":                        {swap("/v1/meetings", `"visibility":`, `"seen_by":`), "a page of meetings", documented, "visibility is missing"},
		"field of another type":                {swap("/v1/usage", `"credits_remaining":1000`, `"credits_remaining":"1000"`), "usage", documented, "credits_remaining is 1000, where integer was expected"},
		"a new status":                         {swap("/v1/meetings", `"status":"created"`, `"status":"paused"`), "a meeting's life", documented, "status is paused"},
		"another code":                         {swap("/v1/meetings", `INVALID_LIMIT`, `INVALID_PAGE`), "parameters of the list", documented, "400 INVALID_PAGE where 400 INVALID_LIMIT was expected"},
		"no request id":                        {swap("/v1/", `"request_id"`, `"trace"`), "errors carry an id", documented, "no request_id"},
		"another id":                           {swap("/v1/", `"request_id":"req_`, `"request_id":"r-`), "errors carry an id", 15, "request_id is"},
		"missing label":                        {swap("/v1/meetings", `spk_`, `speaker `), "minutes that are ready", documented, "without speaker labels"},
		"another validity":                     {swap("/v1/meetings", `"expires_in":900`, `"expires_in":60`), "upload URLs", 10, "expires_in is 60"},
		"storage error in another XML element": {swap("/storage/", `Error>`, `Fault>`), "upload URLs", documented, "the error of storage is not XML"},
		"another XML":                          {swap("/storage/", `SignatureDoesNotMatch`, `AccessDenied`), "upload URLs", 10, "403 AccessDenied"},
		"term that is not in its entry":        {swap("/v1/vocabulary", `"entries":[{"term":"Kubernetes"`, `"entries":[{"term":"K8s"`), "vocabulary", documented, "term 0 is not entry 0"},
		"another poll interval": {func(_ *http.Request, rec *httptest.ResponseRecorder) {
			if rec.Header().Get("Cache-Control") != "" {
				rec.Header().Set("Cache-Control", "max-age=60")
			}
		}, "a meeting", 8, `Cache-Control is "max-age=60"`},
		"no poll interval": {func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Header().Del("Cache-Control") }, "a meeting", documented, "says nothing of polling"},
		"another route": {func(r *http.Request, rec *httptest.ResponseRecorder) {
			if r.URL.Path == "/v1/templates" {
				rec.Code = http.StatusNotFound
			}
		}, "templates", 1, "there is no such route"},
		"no Allow": {func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Header().Del("Allow") }, "unknown paths and methods", 21, "405 without Allow"},
		"a gateway rejects malformed JSON": {func(r *http.Request, rec *httptest.ResponseRecorder) {
			if r.ContentLength == int64(len(`{"title":`)) {
				rec.Body = bytes.NewBufferString(`{"error":{"code":"invalid_json","message":"Invalid JSON"}}`)
			}
		}, "bodies of a create", 5, `code "invalid_json"`},
		"malformed JSON is accepted": {func(r *http.Request, rec *httptest.ResponseRecorder) {
			if r.ContentLength == int64(len(`{"title":`)) {
				rec.Code = http.StatusOK
			}
		}, "bodies of a create", documented, "status 200 where 400 was expected"},
		"200 for 201": {func(_ *http.Request, rec *httptest.ResponseRecorder) {
			if rec.Code == http.StatusCreated {
				rec.Code = http.StatusOK
			}
		}, "a meeting's life", documented, "status 200 where 201 was expected"},
		"repeated create makes a second meeting": {func(r *http.Request, rec *httptest.ResponseRecorder) {
			if r.Method == http.MethodPost && r.URL.Path == "/v1/meetings" && rec.Code == http.StatusOK {
				rec.Code = http.StatusConflict
			}
		}, "an external id is unique", 3, "status 409 where 200 was expected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tg, found := inMemory(t, altered(tc.alter)), &report{}
			i := slices.IndexFunc(checks, func(c check) bool { return c.name == tc.check })
			require.GreaterOrEqual(t, i, 0)
			before := inMemory(t, nil)
			for _, tg := range []*target{tg, before} { // meetings to check
				tg.perform(t.Context(), &check{name: "furnish", do: func(r *run) {
					for range 3 {
						r.send("POST /v1/meetings", `{"title":"x","date":"2026-03-02"}`)
					}
					if tc.check == "minutes that are ready" {
						m, _ := r.create("")
						target := r.send("POST /v1/meetings/"+m.text("id")+"/upload-url", `{"content_type":"audio/wav"}`)
						r.put(target.text("upload_url"), "audio/wav", r.audio)
						r.await(m.text("id"))
					}
				}}, &report{})
			}
			tg.perform(t.Context(), &checks[i], found)
			texts := make([]string, len(found.list))
			for i, d := range found.list {
				texts[i] = d.String()
			}
			assert.True(t, slices.ContainsFunc(found.list, func(d difference) bool {
				return d.decision == tc.decision && strings.Contains(d.text, tc.text)
			}), "found only: %q", texts)
			if tc.decision != documented {
				assert.Contains(t, found.summary(), "assumption D"+strconv.Itoa(tc.decision)+" differs in: "+tc.check)
				assert.Contains(t, strings.Join(texts, "\n"), "differs from assumption D"+strconv.Itoa(tc.decision))
				assert.Contains(t, found.summary(), "0 differences from the interface document")
			}

			unaltered := &report{}
			before.perform(t.Context(), &checks[i], unaltered)
			assert.Empty(t, unaltered.list, "the check itself finds nothing where there is nothing")
		})
	}
}

// A request is sent again after a 429. A 429 is a difference only if it has an
// envelope.
func TestSend_RetriesA429(t *testing.T) {
	t.Parallel()
	for body, differences := range map[string]int{"slow down": 0, `{"error":{"code":"SLOW","message":"m","request_id":"r"}}`: 1} {
		asked := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			_, _ = w.Write([]byte(body))
		}))
		defer srv.Close()
		found := &report{}
		tg := &target{base: srv.URL, key: "k", http: srv.Client(), made: &ledger{}}
		tg.perform(t.Context(), &check{name: "edge", do: func(r *run) { r.send("GET /", "") }}, found)
		assert.Equal(t, 2, asked)
		assert.Len(t, found.list, differences)
	}
}
