package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// target is the service that is asked.
type target struct {
	base, key   string
	http        *http.Client
	write       bool
	audio       []byte              // nil: no job is driven
	contentType string              // of audio
	memory      *minutestest.Server // nil: a real one

	lacks []string // scopes
	made  *ledger
}

// targetOf is what the environment names, or a service in memory.
func targetOf(t *testing.T) *target {
	t.Helper()
	base := os.Getenv("MINUTES_CONFORMANCE_BASE_URL")
	if base == "" {
		return inMemory(t, nil)
	}
	tg := &target{
		base: strings.TrimRight(base, "/"), key: os.Getenv("MINUTES_CONFORMANCE_API_KEY"),
		http: &http.Client{
			Timeout:       time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		write: os.Getenv("MINUTES_CONFORMANCE_WRITE") == "1",
		made:  &ledger{},
	}
	require.NotEmpty(t, tg.key, "MINUTES_CONFORMANCE_API_KEY is not set")
	if path := os.Getenv("MINUTES_CONFORMANCE_AUDIO"); path != "" {
		require.True(t, tg.write, "MINUTES_CONFORMANCE_AUDIO needs MINUTES_CONFORMANCE_WRITE=1")
		var err error
		tg.audio, err = os.ReadFile(path)
		require.NoError(t, err)
		tg.contentType = http.DetectContentType(tg.audio)
		if !strings.HasPrefix(tg.contentType, "audio/") && !strings.HasPrefix(tg.contentType, "video/") && tg.contentType != "application/ogg" {
			tg.contentType = "audio/mpeg" // what the sniffer of net/http misses most often
		}
	}
	return tg
}

// inMemory is an in-memory service, behind a proxy if there is one. It accepts
// all of the checks, and has meetings for those that only read.
func inMemory(t *testing.T, proxy func(http.Handler) http.Handler, options ...minutestest.Option) *target {
	t.Helper()
	// Half of the checks are what clients must not do.
	srv := minutestest.NewServer(t, append(options, minutestest.WithoutAudit())...)
	handler := srv.Handler()
	if proxy != nil {
		handler = proxy(handler)
	}
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	return &target{base: listener.URL, key: srv.Key(), http: listener.Client(), write: true, audio: []byte("any bytes will do"), contentType: "audio/wav", memory: srv, made: &ledger{}}
}

// response is a complete response.
type response struct {
	what   string // the request
	status int
	header http.Header
	raw    []byte
	object map[string]any // nil: not a JSON object
}

func (r response) text(field string) string { s, _ := r.object[field].(string); return s }

// code is that of an envelope, or "".
func (r response) code() string {
	e, _ := r.object["error"].(map[string]any)
	s, _ := e["code"].(string)
	return s
}

func (r response) detail(name string) any {
	e, _ := r.object["error"].(map[string]any)
	details, _ := e["details"].(map[string]any)
	return details[name]
}

// maxRejections limits the retries of a request that the edge rejects.
const maxRejections = 5

// send sends one request to the API, as in "GET /v1/usage". It does not change
// the body. It retries requests that the edge rejects.
func (r *run) send(what, body string, change ...func(*http.Request)) response {
	method, path, _ := strings.Cut(what, " ")
	for try := 0; ; try++ {
		req, err := http.NewRequestWithContext(r.ctx, method, r.base+path, strings.NewReader(body))
		if err != nil {
			r.stop("%s: %v", what, err)
		}
		req.Header.Set("Authorization", "Bearer "+r.key)
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		for _, c := range change {
			c(req)
		}
		rep := r.exchange(what, req)
		if rep.status != http.StatusTooManyRequests {
			if method == http.MethodDelete && !r.asking {
				r.deleted(path, rep)
			}
			if rep.status == http.StatusForbidden && rep.code() == "INSUFFICIENT_SCOPE" && !r.asking {
				r.scopeless(method, path)
			}
			return rep
		}
		r.that(rep.object == nil || rep.object["error"] == nil, "%s: a 429 with an envelope", what)
		if try == maxRejections {
			r.stop("%s: rejected at the edge too often", what)
		}
		seconds, err := strconv.Atoi(rep.header.Get("Retry-After"))
		if err != nil {
			seconds = 1
		}
		select {
		case <-time.After(time.Duration(min(max(seconds, 0), 60)) * time.Second):
		case <-r.ctx.Done():
			r.skip("the run was cut short")
		}
	}
}

func (r *run) exchange(what string, req *http.Request) response {
	resp, err := r.http.Do(req)
	if r.ctx.Err() != nil {
		if err == nil {
			_ = resp.Body.Close()
		}
		r.skip("the run was cut short")
	}
	if err != nil {
		r.stop("%s: %v", what, strings.ReplaceAll(err.Error(), r.key, "(masked)"))
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		r.stop("%s: %v", what, err)
	}
	rep := response{what: what, status: resp.StatusCode, header: resp.Header, raw: raw}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&rep.object)
	return rep
}

// put sends audio to storage, which knows nothing of keys.
func (r *run) put(uploadURL, contentType string, audio []byte) response {
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, uploadURL, bytes.NewReader(audio))
	if err != nil {
		r.stop("the upload URL: %v", err)
	}
	req.Header.Set("Content-Type", contentType)
	return r.exchange("PUT of the recording", req)
}
