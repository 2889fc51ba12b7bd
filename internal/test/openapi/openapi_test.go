// Package openapi_test checks that the in-memory service and the control API of
// minutes-fake respond as their OpenAPI documents say. It is a separate module,
// because only it needs the validator.
package openapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"go.yaml.in/yaml/v3"
)

const root = "../../.."

// checker validates responses against a document.
type checker struct {
	mu       sync.Mutex
	document validator.Validator
	faults   map[string]bool
	checked  map[string]int // by operation
}

func newChecker(t *testing.T, path string) *checker {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, wrong := v.ValidateDocument(); !ok {
		for _, e := range wrong {
			t.Error(e)
		}
	}
	return &checker{document: v, faults: map[string]bool{}, checked: map[string]int{}}
}

// check validates one response. Unknown paths must respond with an error.
func (c *checker) check(r *http.Request, status int, header http.Header, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	copied := r.Clone(r.Context())
	copied.Header = r.Header.Clone()
	ok, wrong := c.document.ValidateHttpResponse(copied, &http.Response{
		StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: copied,
	})
	if ok {
		c.checked[r.Method+" "+fmt.Sprint(status)]++
		return
	}
	for _, e := range wrong {
		if e.ValidationType == "path" && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusUnauthorized) {
			continue
		}
		var details []string
		for _, d := range e.SchemaValidationErrors {
			details = append(details, d.FieldPath+": "+d.Reason)
		}
		c.faults[fmt.Sprintf("%s %s %d: %s: %s %v\n%.500s", r.Method, r.URL.Path, status, e.Message, e.Reason, details, body)] = true
	}
}

func (c *checker) report(t *testing.T, least int) {
	t.Helper()
	n := 0
	for text := range c.faults {
		if n++; n <= 20 {
			t.Error(text)
		}
	}
	t.Log(len(c.faults), "faults;", c.checked)
	sum := 0
	for _, n := range c.checked {
		sum += n
	}
	if sum < least {
		t.Errorf("only %d responses were checked", sum)
	}
}

// proxy forwards to base and has c check the responses.
func proxy(t *testing.T, base string, c *checker) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI = ""
		out.URL.Scheme, out.URL.Host = "http", strings.TrimPrefix(base, "http://") // Host stays: upload URLs lead here
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if !strings.HasPrefix(r.URL.Path, "/storage/") && r.Method != http.MethodHead {
			c.check(r, resp.StatusCode, resp.Header, body)
		}
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// launch runs minutes-fake, and returns its variables.
func launch(t *testing.T, args ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	program, env := filepath.Join(dir, "minutes-fake"), filepath.Join(dir, "env")
	build := exec.Command("go", "build", "-o", program, "./cmd/minutes-fake")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-addr", "127.0.0.1:0", "-log", "none", "-env-file", env}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	for range 600 {
		if text, err := os.ReadFile(env); err == nil {
			variables := map[string]string{}
			for line := range strings.Lines(string(text)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				variables[name] = value
			}
			return variables
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("minutes-fake does not start")
	return nil
}

// The conformance suite sees only responses that the document describes.
func TestServiceAPI_MatchesItsDocument(t *testing.T) {
	t.Parallel()
	c := newChecker(t, "docs/openapi.yaml")
	env := launch(t)
	audio := filepath.Join(t.TempDir(), "audio.wav")
	if err := os.WriteFile(audio, []byte("any bytes will do"), 0o600); err != nil {
		t.Fatal(err)
	}
	suite := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "TestConformance", "./conformance")
	suite.Dir = root
	suite.Env = append(os.Environ(),
		"MINUTES_CONFORMANCE_BASE_URL="+proxy(t, env["MINUTES_BASE_URL"], c), "MINUTES_CONFORMANCE_API_KEY="+env["MINUTES_API_KEY"],
		"MINUTES_CONFORMANCE_WRITE=1", "MINUTES_CONFORMANCE_AUDIO="+audio)
	if out, err := suite.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	c.report(t, 150)
}

var write = flag.Bool("write", false, "write the JSON documents that minutes-fake serves")

// minutes-fake serves the documents of docs/ as JSON.
func TestDocuments_AreServed(t *testing.T) {
	t.Parallel()
	env := launch(t)
	for name, document := range map[string]struct{ base, yaml string }{
		"service": {env["MINUTES_BASE_URL"], "docs/openapi.yaml"},
		"control": {env["MINUTES_CONTROL_URL"], "docs/openapi-control.yaml"},
	} {
		text, err := os.ReadFile(filepath.Join(root, document.yaml))
		if err != nil {
			t.Fatal(err)
		}
		var written any
		if err := yaml.Unmarshal(text, &written); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		if err := enc.Encode(written); err != nil {
			t.Fatal(err)
		}
		if *write {
			if err := os.WriteFile(filepath.Join(root, "cmd/minutes-fake/openapi", name+".json"), want.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		resp, err := http.Get(document.base + "/openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		served, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !bytes.Equal(served, want.Bytes()) {
			t.Errorf("%s has changed (%v): run go test -run TestDocuments_AreServed . -write in internal/test/openapi", document.yaml, err)
		}
	}
}
