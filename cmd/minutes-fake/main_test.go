package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test binary is the program itself when asTheProgram is set.
const asTheProgram = "MINUTES_FAKE_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asTheProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is one that runs.
type program struct {
	said   string            // on stdout, until it was ready
	env    map[string]string // what it says to export
	stderr *buffer
}

func (p *program) baseURL() string { return p.env["MINUTES_BASE_URL"] }
func (p *program) control() string { return p.env["MINUTES_CONTROL_URL"] }

// launch runs the program on free ports until the test ends.
func launch(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	p := &program{env: map[string]string{}, stderr: &buffer{}}
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), in, p.stderr)
		_ = in.Close()
	}()
	p.read(out)
	t.Cleanup(func() {
		stop()
		assert.Equal(t, exitDone, <-code)
	})
	require.NotEmpty(t, p.env, "%s", p.stderr)
	return p
}

// read takes what the program says until it is ready.
func (p *program) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		p.said += lines.Text() + "\n"
		if exported, ok := strings.CutPrefix(lines.Text(), "export "); ok {
			for word := range strings.FieldsSeq(exported) {
				name, value, _ := strings.Cut(word, "=")
				p.env[name] = strings.Trim(value, "'")
			}
			return
		}
	}
}

// buffer is a bytes.Buffer for many.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// send sends one request, and returns the status and body of the response.
func (p *program) send(t *testing.T, method, target, body, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	response, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(response)
}
