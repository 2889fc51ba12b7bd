// Package openapi_test checks that minutes-fake, and what the tests of the Client send and receive, are
// as the OpenAPI documents say. It is a module of its own, because only it needs the validator.
package openapi_test

import (
	"bytes"
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
	"github.com/pb33f/libopenapi-validator/errors"
	"go.yaml.in/yaml/v3"
)

const root = "../../.."

// checker compares responses with a document.
type checker struct {
	mu       sync.Mutex
	document validator.Validator
	faults   map[string]bool
	checked  map[string]bool // operations that had a success
}

// newChecker reads a document and permits no further fields and values. Clients must permit them,
// because the service may add some, but in a response of the fake they are a mistake.
func newChecker(t *testing.T, path string) *checker {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	err = yaml.Unmarshal(text, &tree)
	if err != nil {
		t.Fatal(err)
	}
	closeSchemas(tree["components"].(map[string]any)["schemas"])
	text, err = yaml.Marshal(tree)
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
	return &checker{document: v, faults: map[string]bool{}, checked: map[string]bool{}}
}

func closeSchemas(node any) {
	switch node := node.(type) {
	case []any:
		for _, e := range node {
			closeSchemas(e)
		}
	case map[string]any:
		if values, ok := node["x-extensible-enum"]; ok {
			node["enum"] = values
		}
		if values, ok := node["anyOf"].([]any); ok { // the known values, and any other
			node["anyOf"] = values[:1]
		}
		if _, open := node["additionalProperties"]; !open && node["properties"] != nil && node["type"] == "object" {
			node["additionalProperties"] = false
		}
		for _, e := range node {
			closeSchemas(e)
		}
	}
}

// check compares one response. A path that the document does not have must be an error.
func (c *checker) check(r *http.Request, status int, header http.Header, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	copied := r.Clone(r.Context())
	copied.Header = r.Header.Clone()
	ok, wrong := c.document.ValidateHttpResponse(copied, &http.Response{
		StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: copied,
	})
	if ok && status < 300 {
		c.checked[r.Method+" "+r.Pattern] = true
	}
	for _, e := range wrong {
		if e.ValidationType == "path" && status >= 400 {
			continue
		}
		c.addFault(r, e, body)
	}
}

// checkRequest compares one request with its body, which it reads.
func (c *checker) checkRequest(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, wrong := c.document.ValidateHttpRequest(r)
	for _, e := range wrong {
		c.addFault(r, e, nil)
	}
}

func (c *checker) addFault(r *http.Request, e *errors.ValidationError, body []byte) {
	var details []string
	for _, d := range e.SchemaValidationErrors {
		details = append(details, d.FieldPath+": "+d.Reason)
	}
	text := r.Method + " " + r.URL.Path + ": " + e.Message + ": " + e.Reason + " " + strings.Join(details, "; ")
	c.faults[text+"\n"+string(body[:min(len(body), 500)])] = true
}

// report fails the test for each fault, and for each operation that had no success.
func (c *checker) report(t *testing.T, operations []string) {
	t.Helper()
	for text := range c.faults {
		t.Error(text)
	}
	for _, op := range operations {
		if !c.checked[op] {
			t.Errorf("no successful response of %s was checked", op)
		}
	}
}

// operations returns the operations of a document, as "GET /v1/usage".
func operations(t *testing.T, path string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]any
	}
	err = yaml.Unmarshal(text, &document)
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range document.Paths {
		for method := range item {
			if method != "parameters" {
				list = append(list, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return list
}

// proxy forwards requests to base and has c check the responses.
func proxy(t *testing.T, base string, c *checker, known []string) string {
	t.Helper()
	forward := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI = ""
		out.URL.Scheme = "http"
		out.URL.Host = strings.TrimPrefix(base, "http://") // out.Host stays: upload URLs lead here
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if _, pattern, ok := strings.Cut(r.Pattern, " "); ok {
			r.Pattern = strings.TrimSuffix(pattern, "{$}")
			c.check(r, resp.StatusCode, resp.Header, body)
		}
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(body)
	})
	mux := http.NewServeMux()
	mux.Handle("/", forward)
	for _, op := range known {
		if op == "GET /" {
			op = "GET /{$}"
		}
		mux.Handle(op, forward)
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// launch runs minutes-fake, and returns its variables.
func launch(t *testing.T, args ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "minutes-fake")
	env := filepath.Join(dir, "env")
	build := exec.Command("go", "build", "-o", program, "./cmd/minutes-fake")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	args = append([]string{"-addr", "127.0.0.1:0", "-log", "none", "-env-file", env}, args...)
	cmd := exec.CommandContext(t.Context(), program, args...)
	err := cmd.Start()
	if err != nil {
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

// ask sends a request such as "GET /world", with a body after a second space.
func ask(t *testing.T, base, what string) []byte {
	t.Helper()
	method, rest, _ := strings.Cut(what, " ")
	path, body, _ := strings.Cut(rest, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer key_ci")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The conformance checks see only responses that the document describes.
func TestServiceAPI_MatchesItsDocument(t *testing.T) {
	t.Parallel()
	const document = "docs/openapi.yaml"
	c := newChecker(t, document)
	known := operations(t, document)
	env := launch(t, "-speed", "1000000000") // so that no check waits for minutes
	base := proxy(t, env["MINUTES_BASE_URL"], c, known)
	audio := filepath.Join(t.TempDir(), "audio.wav")
	err := os.WriteFile(audio, []byte("any bytes will do"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	suite := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "TestConformance", "./conformance")
	suite.Dir = root
	suite.Env = append(os.Environ(),
		"MINUTES_CONFORMANCE_BASE_URL="+base,
		"MINUTES_CONFORMANCE_API_KEY="+env["MINUTES_API_KEY"],
		"MINUTES_CONFORMANCE_WRITE=1",
		"MINUTES_CONFORMANCE_AUDIO="+audio,
	)
	if out, err := suite.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, what := range []string{ // which cannot be undone, so the checks leave it out
		`POST /v1/employees {"name":"Grace"}`,
		`POST /v1/projects {"name":"Apollo"}`,
		`POST /v1/vocabulary/terms {"term":"Hopper"}`,
		`PUT /v1/vocabulary {"terms":["Kubernetes"]}`,
		`POST /v1/employees {}`,
		`POST /v1/projects {}`,
		`PUT /v1/vocabulary {}`,
		"POST /v1/projects " + strings.Repeat(" ", 1<<20) + "{}",
	} {
		ask(t, base, what)
	}
	c.report(t, known)
}
