package conformance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// prefix begins the external_id of every meeting that a run creates.
const prefix = "minutes-go-conformance-"

func TestConformance(t *testing.T) {
	s := newService(t)
	if s.write {
		s.prepare(&run{T: t, service: s})
	}
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			why := s.forbids(check.needs)
			t.Cleanup(func() { assert.False(t, t.Skipped() && s.fake != nil, "skipped: this hides a regression") })
			if why != "" {
				t.Skip(why)
			}
			check.against(&run{T: t, service: s})
		})
	}
}

// need is what a check does to the service.
type need int

const (
	reading   need = iota
	writing        // what can be undone
	recording      // a recording becomes minutes, which costs credits and time
)

// service is the service that a run checks.
type service struct {
	base, key   string
	client      *http.Client
	write       bool
	audio       []byte
	contentType string              // of audio
	fake        *minutestest.Server // nil for a real service
	root        *testing.T          // deletes the meetings when it ends
	stuck       string              // why nothing more may be created
}

// newService returns the service of the environment, or the fake.
func newService(t *testing.T) *service {
	t.Helper()
	base := os.Getenv("MINUTES_CONFORMANCE_BASE_URL")
	if base == "" {
		// so that pollUntilFinal sees each status
		stages := minutestest.Stages{Prepare: time.Hour, Transcribe: time.Hour, Write: time.Hour}
		// because the checks break rules on purpose
		fake := minutestest.NewServer(t, minutestest.WithoutAudit())
		fake.Script(minutestest.Script{Stages: &stages})
		listener := httptest.NewServer(fake.Handler())
		t.Cleanup(listener.Close)
		return &service{base: listener.URL, key: fake.Key(), client: listener.Client(), write: true,
			audio: []byte("any bytes"), contentType: "audio/mpeg", fake: fake, root: t}
	}
	s := &service{base: strings.TrimRight(base, "/"), key: os.Getenv("MINUTES_CONFORMANCE_API_KEY"),
		write: os.Getenv("MINUTES_CONFORMANCE_WRITE") == "1", root: t}
	require.NotEmpty(t, s.key, "MINUTES_CONFORMANCE_API_KEY is not set")
	s.client = &http.Client{Timeout: 10 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if path := os.Getenv("MINUTES_CONFORMANCE_AUDIO"); path != "" {
		var err error
		s.audio, err = os.ReadFile(path)
		require.NoError(t, err)
		s.contentType = cmp.Or(mime.TypeByExtension(filepath.Ext(path)), "audio/mpeg")
	}
	return s
}

// prepare deletes what killed runs have left among the newest 500 meetings.
func (s *service) prepare(r *run) {
	if r.request("DELETE "+nobody).code() == "INSUFFICIENT_SCOPE" {
		s.stuck = "the key cannot delete meetings, so none is created"
		return
	}
	for _, m := range r.pages(50, 10) {
		if strings.HasPrefix(text(m, "external_id"), prefix) {
			r.remove(text(m, "id"))
		}
	}
}

// forbids returns why a check must not run.
func (s *service) forbids(n need) string {
	switch {
	case n >= writing && !s.write:
		return "needs MINUTES_CONFORMANCE_WRITE=1"
	case n == recording && s.audio == nil:
		return "needs MINUTES_CONFORMANCE_AUDIO"
	case n >= writing:
		return s.stuck
	}
	return ""
}

// run is a check in progress.
type run struct {
	*testing.T
	*service
	guess bool // whether the next check is of an assumption
}

// assuming returns a run for what this module assumes, because the API reference is silent.
func (r *run) assuming() *run { return &run{r.T, r.service, true} }

// that reports a difference unless ok.
func (r *run) that(ok bool, format string, args ...any) bool {
	r.Helper()
	if note := fmt.Sprintf(format, args...); !ok && r.guess && r.fake == nil {
		r.Logf("differs from what the Client assumes: %s", note)
	} else if !ok {
		r.Errorf("differs from the API reference: %s", note)
	}
	return ok
}

// response is a whole response.
type response struct {
	run    *run
	what   string // the request
	status int
	header http.Header
	raw    []byte
	object map[string]any // nil unless it is a JSON object
}

// request sends a request such as "GET /v1/usage", with a body after a second space. It retries
// after a 429, because the limits of the edge are no part of any check.
func (r *run) request(what string, change ...func(*http.Request)) *response {
	r.Helper()
	method, rest, _ := strings.Cut(what, " ")
	path, body, _ := strings.Cut(rest, " ")
	for try := 1; ; try++ {
		req, err := http.NewRequestWithContext(context.Background(), method, r.base+path, strings.NewReader(body))
		require.NoError(r, err)
		req.Header.Set("Authorization", "Bearer "+r.key)
		req.Header.Set("Content-Type", "application/json")
		for _, c := range change {
			c(req)
		}
		resp := r.roundTrip(what, req)
		if resp.status != http.StatusTooManyRequests || try == 5 {
			return resp
		}
		r.that(resp.object["error"] == nil, "%s: a 429 with an envelope", what)
		seconds, _ := strconv.Atoi(resp.header.Get("Retry-After"))
		time.Sleep(time.Duration(min(max(seconds, try), 60)) * time.Second)
	}
}

// send is request, but skips the check if the key lacks a scope.
func (r *run) send(what string, change ...func(*http.Request)) *response {
	r.Helper()
	resp := r.request(what, change...)
	if resp.code() == "INSUFFICIENT_SCOPE" {
		r.Skipf("the key lacks the scope of %s", what)
	}
	return resp
}

// put uploads to storage, which must never see the key.
func (r *run) put(target, contentType string, audio []byte) *response {
	r.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, target, bytes.NewReader(audio))
	require.NoError(r, err)
	req.Header.Set("Content-Type", contentType)
	return r.roundTrip("PUT of the recording", req)
}

func (r *run) roundTrip(what string, req *http.Request) *response {
	r.Helper()
	resp, err := r.client.Do(req)
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		err = urlErr.Err // because the URL may be a presigned one
	}
	require.NoError(r, err, what)
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	require.NoError(r, err, what)
	got := &response{run: r, what: what, status: resp.StatusCode, header: resp.Header, raw: raw}
	_ = json.Unmarshal(raw, &got.object)
	return got
}

// text returns the value at a path such as "error.code" as a text: "" if it is absent or null.
func text(v any, path string) string {
	for _, field := range strings.Split(path, ".") {
		object, _ := v.(map[string]any)
		v = object[field]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func number(v any, path string) float64 {
	n, _ := strconv.ParseFloat(text(v, path), 64)
	return n
}

func (p *response) list(field string) []any {
	l, _ := p.object[field].([]any)
	return l
}
func (p *response) text(path string) string     { return text(p.object, path) }
func (p *response) number(field string) float64 { return number(p.object, field) }
func (p *response) code() string                { return p.text("error.code") }

// is requires a status and an object of section 2.
func (p *response) is(status int, form string) bool {
	p.run.Helper()
	wrong := misfit(form, p.object)
	return p.run.that(p.status == status && wrong == "",
		"%.100s: status %d, not %d: %s %.300s", p.what, p.status, status, wrong, p.raw)
}

// rejects requires an error with the envelope of section 7.
func (p *response) rejects(status int, code string) {
	p.run.Helper()
	complete := p.text("error.message") != "" && p.text("error.request_id") != ""
	p.run.that(p.status == status && p.code() == code && complete,
		"%.100s: %d %.300s, not %d %s", p.what, p.status, p.raw, status, code)
}

// forms are objects of section 2, each as its required fields. A kind is text, int or array, or the
// form of an array's elements.
var forms = map[string]string{
	"Meeting": "id:text title:text date:text status:text visibility:text template_id:text created_at:int " +
		"updated_at:int",
	"Member":     "id:text name:text status:text",
	"Project":    "id:text name:text",
	"Template":   "id:text name:text source:text",
	"Vocabulary": "terms:array entries:Entry max_terms:int",
	"Entry":      "term:text variants:Variant",
	"Variant":    "text:text source:text",
}

// misfit returns the first field of an object that is not as its form says, or "". The form is the
// name of one, or its fields.
func misfit(form string, v any) string {
	object, _ := v.(map[string]any)
	for _, field := range strings.Fields(cmp.Or(forms[form], form)) {
		name, kind, _ := strings.Cut(field, ":")
		_, isText := object[name].(string)
		number, isNumber := object[name].(float64)
		list, isList := object[name].([]any)
		isInt := isNumber && number == math.Trunc(number)
		fits := kind == "text" && isText || kind == "int" && isInt || kind == "array" && isList
		if !fits && (forms[kind] == "" || !isList) {
			return fmt.Sprintf("%s of %s is not as it must be", name, form)
		}
		for _, e := range list {
			if wrong := misfit(kind, e); kind != "array" && wrong != "" {
				return name + ": " + wrong
			}
		}
	}
	return ""
}

// create creates a meeting that is deleted when the run ends. fields are JSON members besides
// title and date.
func (r *run) create(fields string) *response {
	r.Helper()
	if r.stuck != "" {
		r.Skip(r.stuck)
	}
	if !strings.Contains(fields, `"external_id"`) {
		fields += `,"external_id":"` + fresh() + `"`
	}
	m := r.send(`POST /v1/meetings {"title":"Conformance","date":"2026-03-02"` + fields + `}`)
	if m.status == http.StatusCreated {
		r.root.Cleanup(func() { (&run{T: r.root, service: r.service}).remove(m.text("id")) })
	}
	require.True(r, m.is(http.StatusCreated, "Meeting"))
	return m
}

// remove deletes a meeting, unless it is gone. After a failure the run creates nothing more.
func (r *run) remove(id string) {
	resp := r.request("DELETE /v1/meetings/" + id)
	if resp.status != http.StatusNoContent && resp.status != http.StatusNotFound {
		r.stuck = "a meeting could not be deleted, so no other is created"
		r.Errorf("meeting %s is left: %d %s", id, resp.status, resp.code())
	}
}

func fresh() string { return prefix + rand.Text() }
