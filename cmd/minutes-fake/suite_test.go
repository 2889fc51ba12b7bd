package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asProgram starts the program as a process, with stderr connected to a pipe
// without a reader.
func asProgram(t *testing.T, args ...string) (*program, *exec.Cmd) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), asTheProgram+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	unread, err := cmd.StderrPipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = unread.Close() })
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // it is killed, and must not outlive the tests
	p := &program{env: map[string]string{}, stderr: &buffer{}}
	p.read(out)
	require.NotEmpty(t, p.env)
	return p, cmd
}

// A suite that does not read the log is served, and a signal still ends the
// program.
func TestLog_NeverStallsTheClient(t *testing.T) {
	t.Parallel()
	p, cmd := asProgram(t, "-log", "json")
	client := &http.Client{Timeout: 30 * time.Second}
	const requests = 2000
	for range requests {
		resp, err := client.Get(p.baseURL() + "/v1/usage")
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
	}
	_, health := p.ask(t, "GET /health", "")
	dropped := health["log_lines_dropped"].(float64)
	assert.Positive(t, dropped)
	assert.Less(t, dropped, float64(requests))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

func TestEnvFile_IsWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fake.env")
	require.NoError(t, os.WriteFile(path, []byte("MINUTES_BASE_URL=http://127.0.0.1:1\n"), 0o644))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	stderr := &buffer{}
	go func() { ended <- run(ctx, []string{"-addr", "127.0.0.1:0", "-env-file", path}, io.Discard, stderr) }()
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(path)
		return strings.Contains(string(text), "MINUTES_CONTROL_URL=")
	}, time.Minute, time.Millisecond)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds a key")
	stop()
	assert.Equal(t, exitDone, <-ended)
	assert.NoFileExists(t, path)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Empty(t, left)

	wrong := &buffer{}
	assert.Equal(t, exitFailed, run(over(t), []string{"-addr", "127.0.0.1:0", "-env-file", filepath.Join(path, "none")}, io.Discard, wrong))
	assert.Contains(t, wrong.String(), "minutes-fake: -env-file "+path)
}

func TestStrict(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		do   func(t *testing.T, p *program)
		code int
		says string
	}{
		"nothing wrong": {[]string{"-strict"}, func(t *testing.T, p *program) { p.call(t, "GET /v1/usage", "") }, exitDone, ""},
		"a violation": {[]string{"-strict"}, func(t *testing.T, p *program) {
			id := p.meeting(t, "Weekly", "")
			p.call(t, "GET /v1/meetings/"+id, "")
			p.call(t, "GET /v1/meetings/"+id, "")
		}, exitStrict, "minutes-fake: violation (poll): meeting mtg_"},
		"an unused fault": {[]string{"-strict"}, func(t *testing.T, p *program) { p.ask(t, "POST /faults", `{"faults":[{"kind":"reset"}]}`) },
			exitStrict, `minutes-fake: the fault "reset", injected into requests, was applied 0 times`},
		"a violation before a reset": {[]string{"-strict"}, func(t *testing.T, p *program) {
			id := p.meeting(t, "Weekly", "")
			p.call(t, "GET /v1/meetings/"+id, "")
			p.call(t, "GET /v1/meetings/"+id, "")
			p.ask(t, "POST /reset", "")
		}, exitStrict, "minutes-fake: violation (poll): meeting mtg_"},
		"not strict": {nil, func(t *testing.T, p *program) { p.ask(t, "POST /faults", `{"faults":[{"kind":"reset"}]}`) }, exitDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			out, in := io.Pipe()
			p, ended := &program{env: map[string]string{}, stderr: &buffer{}}, make(chan int, 1)
			go func() { ended <- run(ctx, append(tc.args, "-addr", "127.0.0.1:0", "-log", "none"), in, p.stderr) }()
			p.read(out)
			tc.do(t, p)
			stop()
			assert.Equal(t, tc.code, <-ended)
			if tc.says == "" {
				assert.Empty(t, p.stderr.String())
			} else {
				assert.Contains(t, p.stderr.String(), tc.says)
			}
		})
	}
}

func TestMinPollInterval(t *testing.T) {
	t.Parallel()
	p := launch(t, "-min-poll-interval", "20ms")
	id := p.meeting(t, "Weekly", "")
	for range 3 {
		p.call(t, "GET /v1/meetings/"+id, "")
		time.Sleep(21 * time.Millisecond)
	}
	_, seen := p.ask(t, "GET /violations", "")
	assert.Empty(t, seen["violations"])
}

func TestReport(t *testing.T) {
	t.Parallel()
	p := launch(t)
	id := p.meeting(t, "Weekly", "")
	status, page := p.send(t, "GET", p.control()+"/report", "", "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, page, "<html")
	assert.Contains(t, page, id)
	assert.NotContains(t, page, "key_ci")
}

// A stage that is left out takes the usual time, which -speed divides too.
func TestSpeed_DividesOmittedStages(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "world.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"stages":{"prepare":"1m"},"organisations":[{"id":"org_a"}]}`), 0o600))
	p := launch(t, "-world", path, "-speed", "10")
	_, world := p.ask(t, "GET /world", "")
	assert.Equal(t, map[string]any{"prepare": "6s", "transcribe": "5ms", "write": "5ms"}, world["stages"])
}

func TestQuote(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	for _, value := range []string{"key_ci", "a$HOME", "a`id`", "it's", `"`, `\`, "http://[::1]:80", "*", "#x", "~", "a;b", "a|b", "!x"} {
		out, err := exec.CommandContext(t.Context(), sh, "-c", "X="+quote(value)+`; printf %s "$X"`).Output()
		require.NoError(t, err)
		assert.Equal(t, value, string(out))
	}
	assert.Equal(t, "''", quote(""))
}

// Behind a proxy that is trusted, an allowlist sees the client's address.
func TestForwarded_GivesTheClientsAddress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		from string
		want int
	}{
		{[]string{"-trust-forwarded"}, "10.1.2.3", 200},
		{[]string{"-trust-forwarded"}, "10.1.2.3, 192.0.2.1", 200},
		{[]string{"-trust-forwarded"}, "2001:db8::1", 403},
		{[]string{"-trust-forwarded"}, "nonsense", 403},
		{[]string{"-trust-forwarded"}, "", 403},
		{nil, "10.1.2.3", 403},
	} {
		p := launch(t, tc.args...)
		p.ask(t, "PATCH /organisations/org_acme/keys/key_ci", `{"ip_allowlist":["10.0.0.0/8"]}`)
		req, err := http.NewRequestWithContext(t.Context(), "GET", p.baseURL()+"/v1/usage", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer key_ci")
		req.Header.Set("X-Forwarded-For", tc.from)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, tc.want, resp.StatusCode, "%q", tc.from)
	}
}

// A body without a length is a body: it needs its type.
func TestControl_RejectsChunkedBodiesWithoutType(t *testing.T) {
	t.Parallel()
	p := launch(t)
	body := io.MultiReader(strings.NewReader(`{"sizes":[1]}`))
	req, err := http.NewRequestWithContext(t.Context(), "PUT", p.control()+"/page-size", body)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Zero(t, req.ContentLength, "unknown: it is sent in chunks")
	assert.Equal(t, http.StatusUnsupportedMediaType, resp.StatusCode)
}

// If the port after the service's is taken, the control API takes another one.
func TestControl_UsesAnotherPortIfNextIsTaken(t *testing.T) {
	t.Parallel()
	service, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer service.Close()
	next := service.Addr().(*net.TCPAddr).Port + 1
	if taken, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(next))); err == nil {
		defer taken.Close()
	} // or another program has it
	control, err := listenControl(controlNext, service)
	require.NoError(t, err)
	defer control.Close()
	assert.NotEqual(t, next, control.Addr().(*net.TCPAddr).Port)
}

// A request that is being served when the program stops has its
// response.
func TestSignals_LetRequestsFinish(t *testing.T) {
	t.Parallel()
	p, cmd := asProgram(t, "-log", "none")
	p.ask(t, "POST /faults", `{"faults":[{"kind":"delay","delay":"1s"}]}`)
	status := make(chan int, 1)
	go func() {
		resp, err := http.Get(p.baseURL() + "/v1/usage")
		if err != nil {
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	require.Eventually(t, func() bool {
		_, fault := p.ask(t, "GET /faults/flt_1", "")
		return fault["applied"] == 1.0
	}, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, http.StatusUnauthorized, <-status)
	require.NoError(t, cmd.Wait())
}

// A reset makes pages full again.
func TestReset_MakesPagesFull(t *testing.T) {
	t.Parallel()
	p := launch(t)
	p.ask(t, "PUT /page-size", `{"sizes":[1]}`)
	p.ask(t, "POST /reset", "")
	p.meeting(t, "One", "")
	p.meeting(t, "Two", "")
	_, page := p.call(t, "GET /v1/meetings", "")
	assert.Len(t, page["meetings"], 2)
	_, sizes := p.ask(t, "GET /page-size", "")
	assert.Empty(t, sizes["sizes"])
}
