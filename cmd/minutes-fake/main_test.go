package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// asTheProgram makes the test's binary the program.
const asTheProgram = "MINUTES_FAKE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asTheProgram) != "" {
		main()
	}
	testbase.Main(m)
}

// program is minutes-fake while it runs.
type program struct {
	t      *testing.T
	env    map[string]string
	stderr *buffer
	stop   func() int // returns the exit status
	// key is that of the client; "": key_ci.
	key string
}

// buffer is what a program writes.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// launch runs the program until the test ends or stops it.
func launch(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stdout, out := io.Pipe()
	p := &program{t: t, stderr: &buffer{}}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"-addr", "127.0.0.1:0", "-print-env"}, args...), nil, out, p.stderr)
		_ = out.Close()
	}()
	p.stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { p.stop() })
	p.env = variables(stdout)
	require.NotEmpty(t, p.env, "%s", p.stderr)
	return p
}

// variables reads what -print-env writes.
func variables(r io.Reader) map[string]string {
	env := map[string]string{}
	lines := bufio.NewScanner(r)
	for env["MINUTES_CONTROL_URL"] == "" && lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		env[name] = value
	}
	return env
}

// ask sends a request such as "GET /world", with a body after a second space, and returns the
// status and the JSON.
func (p *program) ask(variable, what string, change ...func(*http.Request)) (int, map[string]any) {
	p.t.Helper()
	method, rest, _ := strings.Cut(what, " ")
	path, body, _ := strings.Cut(rest, " ")
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.env[variable]+path, strings.NewReader(body))
	require.NoError(p.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+cmp.Or(p.key, "key_ci"))
	for _, c := range change {
		c(req)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	var object map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&object)
	return resp.StatusCode, object
}

// api sends a request to the service.
func (p *program) api(what string) (int, map[string]any) {
	p.t.Helper()
	return p.ask("MINUTES_BASE_URL", what)
}

// control sends a request to the control API, which must succeed.
func (p *program) control(what string) map[string]any {
	p.t.Helper()
	status, object := p.ask("MINUTES_CONTROL_URL", what)
	require.Less(p.t, status, 300, "%s: %v", what, object)
	return object
}

// create creates a meeting, and returns its id.
func (p *program) create(title string) string {
	p.t.Helper()
	_, m := p.api(`POST /v1/meetings {"title":"` + title + `","date":"2026-11-21"}`)
	id, _ := m["id"].(string)
	return id
}

// meeting creates a meeting with a recording, and returns its id.
func (p *program) meeting(title string) string {
	p.t.Helper()
	id := p.create(title)
	_, target := p.api("POST /v1/meetings/" + id + `/upload-url {"content_type":"audio/mpeg"}`)
	status, _ := p.ask("", "PUT "+target["upload_url"].(string)+" audio", func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("Content-Type", "audio/mpeg")
	})
	require.Equal(p.t, http.StatusOK, status)
	return id
}

func TestRun_RejectsInvalidFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-nope": "not defined", "serve": "unexpected argument",
		"-speed 0":              "-speed: a number over 0 expected, such as 10",
		"-speed NaN":            "-speed: a number over 0 expected, such as 10",
		"-speed 10x":            "-speed: a number over 0 expected, such as 10",
		"-seed x":               "-seed: a whole number from 0 expected",
		"-edge-limit -1":        "-edge-limit: a whole number from 0 expected",
		"-min-poll-interval 0s": "-min-poll-interval: a duration over 0 expected, such as 100ms",
		"-min-poll-interval 30": "-min-poll-interval: a duration over 0 expected, such as 100ms",
		"-log xml":              "-log", "-addr 8080": "-addr",
		"-control 8081":            "-control",
		"-without-audit poll,nope": `-without-audit: violation kind "nope" is not one of [poll `,
	} {
		var out, wrong strings.Builder
		assert.Equal(t, exitUsage, run(t.Context(), strings.Fields(args), nil, &out, &wrong), args)
		assert.Empty(t, out.String())
		assert.Contains(t, wrong.String(), want)
	}
}

func TestRun_PrintsHelpAndVersion(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{"-help": "-edge-limit n", "-version": "minutes-fake "} {
		var out, wrong strings.Builder
		assert.Equal(t, exitDone, run(t.Context(), []string{arg}, nil, &out, &wrong))
		assert.Contains(t, out.String(), want)
		assert.Empty(t, wrong.String())
	}
}

// The message is one line, and in no language of programs.
func TestRun_FailsWithInvalidWorldsAndSettings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "world.json")
	require.NoError(t,
		os.WriteFile(file,
			[]byte(`{"organisations":[{"id":"o","credits":-1,"keys":[{"secret":"k","member_id":"emp_x"}]}]}`), 0o600))
	for args, want := range map[string]string{
		"-world " + file: "minutes-fake: -world " + file + `: organisations[0].credits: -1 is negative; ` +
			`organisations[0].keys[0].member_id: no member "emp_x"` + "\n",
		"-world /none": "minutes-fake: -world: open /none: no such file or directory\n",
		"-addr 127.0.0.1:0 -env-file " + t.TempDir(): "is not a file",
		"-addr 192.0.2.1:1 -control off -env-file " + file: "minutes-fake: -addr: listen tcp 192.0.2.1:1: bind: " +
			"cannot assign requested address\n",
	} {
		var wrong strings.Builder
		assert.Equal(t, exitFailed, run(t.Context(), strings.Fields(args), nil, io.Discard, &wrong), args)
		assert.Contains(t, wrong.String(), want)
	}
	assert.FileExists(t, file, "an -env-file of another program stays")
}

func TestStrict_FailsForViolationsUnusedFaultsAndUnmatchedScripts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args string
		act  func(*program)
		want int
		says string
	}{
		"nothing":   {"-strict", func(*program) {}, exitDone, ""},
		"violation": {"-strict", func(p *program) { p.polledTwice() }, exitStrict, "violation (poll)"},
		"violation before a reset": {"-strict", func(p *program) {
			p.polledTwice()
			p.control("POST /reset")
		}, exitStrict, "violation (poll)"},
		"not strict": {"-log=none", func(p *program) { p.polledTwice() }, exitDone, ""},
		"kind that is off": {"-strict -without-audit poll,repeat", func(p *program) { p.polledTwice() }, exitDone,
			""},
		"no audit":              {"-strict -without-audit all", func(p *program) { p.polledTwice() }, exitDone, ""},
		"shorter poll interval": {"-strict -min-poll-interval 1ns", func(p *program) { p.polledTwice() }, exitDone, ""},
		"unused fault": {"-strict", func(p *program) { p.control(`POST /faults {"faults":[{"kind":"reset"}]}`) },
			exitStrict,
			`flt_1: the fault "reset", injected into requests {}, was applied 0 times instead of 1, and 0 requests ` +
				`matched: correct its match, or set "optional": true`},
		"second of two faults": {"-strict", func(p *program) {
			p.control(`POST /faults {"match":{"operation":"usage.get"},"faults":[{"kind":"reset"}],"optional":true}`)
			p.control(`POST /faults {"match":{"operation":"usage.get"},"faults":[{"kind":"reset"}]}`)
		}, exitStrict, "minutes-fake: flt_2: "},
		"fault used once of three times": {"-strict", func(p *program) {
			p.control(`POST /faults {"match":{"times":3},"faults":[{"kind":"delay","delay":"1ms"}]}`)
			p.api("GET /v1/usage")
		}, exitStrict, "was applied 1 time instead of 3"},
		"optional fault": {"-strict",
			func(p *program) { p.control(`POST /faults {"faults":[{"kind":"reset"}],"optional":true}`) }, exitDone, ""},
		"fault used in a window without an end": {"-strict", func(p *program) {
			p.control(`POST /faults {"faults":[{"kind":"rate_limit"}],"from":"1ns"}`)
			p.api("GET /v1/usage")
		}, exitDone, ""},
		"fault removed again": {"-strict", func(p *program) {
			p.control(`POST /faults {"faults":[{"kind":"reset"}]}`)
			p.control("DELETE /faults?id=flt_1")
		}, exitDone, ""},
		"unmatched script": {"-strict",
			func(p *program) {
				p.control(`POST /scripts {"title":"Weekly","outcome":"minutes_failed"}`)
			}, exitStrict, `no meeting matched the script for {"title":"Weekly"}`},
		"script for a meeting that was deleted": {"-strict", func(p *program) {
			p.control(`POST /scripts {"title":"Weekly","outcome":"minutes_failed"}`)
			p.api("DELETE /v1/meetings/" + p.meeting("Weekly"))
		}, exitDone, ""},
		"script for a meeting that never was": {"-strict", func(p *program) {
			p.control(`POST /scripts {"meeting_id":"mtg_x","outcome":"minutes_failed"}`)
		}, exitStrict, `no meeting matched the script for {"meeting_id":"mtg_x"}`},
		"script for a meeting that got another title": {"-strict", func(p *program) {
			p.control(`POST /scripts {"title":"Weekly","outcome":"minutes_failed"}`)
			p.api("PATCH /v1/meetings/" + p.meeting("Weekly") + ` {"title":"Monthly"}`)
		}, exitDone, ""},
		"script for the new title of a meeting": {"-strict", func(p *program) {
			p.api("PATCH /v1/meetings/" + p.meeting("Weekly") + ` {"title":"Monthly"}`)
			p.control(`POST /scripts {"title":"Monthly","outcome":"minutes_failed"}`)
		}, exitDone, ""},
		"script for all": {"-strict", func(p *program) {
			p.control(`POST /scripts {"outcome":"minutes_failed"}`)
		}, exitDone, ""},
		"script removed again": {"-strict", func(p *program) {
			p.control(`POST /scripts {"title":"Weekly","outcome":"minutes_failed"}`)
			p.control("DELETE /scripts")
		}, exitDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, strings.Fields(tc.args+" -log none")...)
			tc.act(p)
			assert.Equal(t, tc.want, p.stop())
			assert.Contains(t, p.stderr.String(), tc.says)
			if tc.want == exitDone {
				assert.Empty(t, p.stderr.String())
			}
		})
	}
}

// polledTwice breaks the rule about polls.
func (p *program) polledTwice() {
	p.control(`POST /scripts {"title":"Held","hold":"audio_uploaded"}`)
	id := p.meeting("Held")
	for range 2 {
		p.api("GET /v1/meetings/" + id)
	}
}

// The control API is on the next port, unless that is taken.
func TestControl_IsOnTheNextPort(t *testing.T) {
	t.Parallel()
	port := func(p *program, variable string) int {
		u, err := url.Parse(p.env[variable])
		require.NoError(t, err)
		n, err := strconv.Atoi(u.Port())
		require.NoError(t, err)
		return n
	}
	for range 20 { // another program may have the next port
		p := launch(t, "-log", "none")
		if port(p, "MINUTES_CONTROL_URL") == port(p, "MINUTES_BASE_URL")+1 {
			return
		}
	}
	t.Error("it never is")
}

// A world may have no key that can do everything. Then the first one is printed.
func TestPrintEnv_HasAKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "world.json")
	const world = `{"organisations":[{"id":"o","members":[{"id":"emp_a"}],"keys":[
		{"secret":"first","member_id":"emp_a"},{"secret":"second","member_id":"emp_a"}]}]}`
	require.NoError(t, os.WriteFile(file, []byte(world), 0o600))
	assert.Equal(t, "first", launch(t, "-log", "none", "-world", file).env["MINUTES_API_KEY"])
}

// If another program has the next port, the control API is on any other.
func TestControl_IsElsewhereIfTheNextPortIsTaken(t *testing.T) {
	t.Parallel()
	for range 20 { // another program may have the service's port, too
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer taken.Close()
		addr := fmt.Sprintf("127.0.0.1:%d", taken.Addr().(*net.TCPAddr).Port-1)
		free, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		require.NoError(t, free.Close())
		p := launch(t, "-log", "none", "-addr", addr)
		p.control("GET /health")
		return
	}
	t.Error("each port before one that is taken is taken as well")
}

func TestControl_MayBeOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		args := []string{"-addr", "127.0.0.1:0", "-control", "off", "-print-env", "-log", "none"}
		ended <- run(ctx, args, nil, out, io.Discard)
		_ = out.Close()
	}()
	env := make([]byte, 1000)
	n, err := stdout.Read(env) // all of it, because the program writes it in one piece
	require.NoError(t, err)
	cancel()
	require.Equal(t, exitDone, <-ended)
	assert.Regexp(t, `^MINUTES_BASE_URL=http://127\.0\.0\.1:\d+\nMINUTES_API_KEY=key_ci\n$`, string(env[:n]))
}

// A program in a container listens everywhere. Its clients need an address that they can reach.
func TestAddr_OfAllInterfacesIsPrintedAsLoopback(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none", "-addr", "0.0.0.0:0")
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+$`, p.env["MINUTES_BASE_URL"])
	status, _ := p.api("GET /v1/usage")
	assert.Equal(t, http.StatusOK, status)
}

func TestSpeed_ShortensStages(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none", "-speed", "1e9")
	p.control(`POST /scripts {"stages":{"transcribe":"1h"}}`)
	assert.Equal(t, "minutes_ready", p.control("GET /meetings/" + p.meeting("Weekly"))["status"])
}

// Without -print-env, the program says what a person needs.
func TestRun_PrintsABanner(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // if there is no banner, nothing else ends it
	defer cancel()
	stdout, out := io.Pipe()
	go func() {
		assert.Equal(t, exitDone, run(ctx, []string{"-addr", "127.0.0.1:0", "-log", "none"}, nil, out, io.Discard))
		_ = out.Close()
	}()
	var banner strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		banner.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "export ") {
			break
		}
	}
	cancel()
	_, _ = io.Copy(io.Discard, stdout)
	assert.Regexp(t,
		`  service  http://127\.0\.0\.1:\d+\n  control  http://127\.0\.0\.1:\d+  \(a page`, banner.String())
	assert.Regexp(t, `  key_ada +emp_ada\n`, banner.String())
	const address = `http://127\.0\.0\.1:\d+`
	assert.Regexp(t, "export MINUTES_BASE_URL="+address+" MINUTES_API_KEY=key_ci MINUTES_CONTROL_URL="+address+"\n$",
		banner.String())
}

// Behind a proxy that terminates TLS, upload URLs lead to the proxy.
func TestUploadURL_IsThatOfTheProxy(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	service, err := url.Parse(p.env["MINUTES_BASE_URL"])
	require.NoError(t, err)
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(service)
		r.SetXForwarded()
	}})
	defer proxy.Close()
	client, err := minutes.New(proxy.URL, "key_ci", minutes.WithHTTPClient(proxy.Client()))
	require.NoError(t, err)
	m, _, err := client.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"})
	require.NoError(t, err)
	target, err := client.Meetings.UploadURL(t.Context(), m.ID, "audio/mpeg")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(target.UploadURL.Reveal(), proxy.URL+"/"), "%s", target.UploadURL)
	audio := minutes.FromReader(strings.NewReader("audio"), "audio/mpeg")
	require.NoError(t, client.Meetings.Upload(t.Context(), m.ID, audio, nil))
	_, behindTwo := p.ask("MINUTES_BASE_URL", "POST /v1/meetings/"+p.create("Monthly")+
		`/upload-url {"content_type":"audio/mpeg"}`, func(r *http.Request) {
		r.Header.Set("X-Forwarded-Proto", "https, http")
		r.Header.Set("X-Forwarded-Host", "minutes.test, inner.test")
	})
	require.Contains(t, behindTwo["upload_url"], "https://minutes.test/storage/")
}

// A container engine asks whether the program is ready.
func TestHealthcheck_TellsWhetherTheProgramIsReady(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "none")
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer other.Close()
	rejecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Minutes-Fake", "control")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer rejecting.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for address, want := range map[string]struct {
		status int
		says   string
	}{
		p.env["MINUTES_CONTROL_URL"]: {exitDone, ""},
		p.env["MINUTES_BASE_URL"]:    {exitFailed, "minutes-fake: -healthcheck: what answers at 127.0.0.1:"},
		other.URL:                    {exitFailed, "is not the control API of minutes-fake"},
		rejecting.URL:                {exitFailed, "responds with 403 Forbidden"},
		closed.Addr().String():       {exitFailed, "connection refused"},
		"nowhere":                    {exitUsage, `-healthcheck "nowhere": host:port expected`},
	} {
		var out, wrong strings.Builder
		args := []string{"-healthcheck", strings.TrimPrefix(address, "http://")}
		assert.Equal(t, want.status, run(t.Context(), args, nil, &out, &wrong), address)
		assert.Contains(t, wrong.String(), want.says)
		assert.Empty(t, out.String())
	}
}

// The same requests get the same ids and cursors from the same seed, also after a reset.
func TestSeed_RepeatsIDs(t *testing.T) {
	t.Parallel()
	p := launch(t, "-seed", "7", "-log", "none")
	other := launch(t, "-seed", "8", "-log", "none")
	ids := func(p *program) (list []any) {
		for range 3 {
			_, m := p.api(`POST /v1/meetings {"title":"x","date":"2026-11-21"}`)
			list = append(list, m["id"])
		}
		_, page := p.api("GET /v1/meetings?limit=1")
		return append(list, page["next_cursor"])
	}
	first := ids(p)
	p.control("POST /reset")
	assert.Equal(t, first, ids(p))
	assert.NotEqual(t, first, ids(other))
	unseeded := ids(launch(t, "-log", "none"))
	assert.NotEqual(t, unseeded, ids(launch(t, "-log", "none")), "without a seed")
}

func TestEdgeLimit_RejectsWithoutEnvelope(t *testing.T) {
	t.Parallel()
	p := launch(t, "-edge-limit", "1", "-log", "none")
	for range 50 { // at most one of them is allowed in each second
		if status, object := p.api("GET /v1/usage"); status == http.StatusTooManyRequests {
			assert.Nil(t, object)
			return
		}
	}
	t.Error("no request was rejected")
}

func TestLog_HasNoSecrets(t *testing.T) {
	t.Parallel()
	p := launch(t, "-log", "json")
	p.meeting("Weekly")
	p.stop()
	assert.Contains(t, p.stderr.String(), `"operation":"storage.put"`)
	assert.NotContains(t, p.stderr.String(), "key_ci")
	assert.NotContains(t, p.stderr.String(), "X-Amz-Signature")
}

// A program as a process: a log that nobody reads does not stall it, its variables are in a file
// for their owner, and a hang-up ends it in order.
func TestProcess_SurvivesAnUnreadPipeAndEndsAtHangUp(t *testing.T) {
	t.Parallel()
	testbase.Timeout(t, time.Minute)
	file := filepath.Join(t.TempDir(), "fake.env")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-addr", "127.0.0.1:0", "-print-env", "-log", "json",
		"-env-file", file)
	cmd.Env = append(os.Environ(), asTheProgram+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	_, err = cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &program{t: t, env: variables(out)}
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.env["MINUTES_BASE_URL"], "http://"))
	require.NoError(t, err)
	defer conn.Close()
	const requests = 1500
	go func() { // all at once, because one after the other takes longer
		const get = "GET / HTTP/1.1\r\nHost: fake\r\n"
		const end = "\r\n"
		_, err := io.WriteString(conn, strings.Repeat(get+end, requests-1)+get+"Connection: close\r\n"+end)
		assert.NoError(t, err)
	}()
	responses, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, requests, bytes.Count(responses, []byte("HTTP/1.1 401 Unauthorized")))
	assert.Positive(t, p.control("GET /health")["log_lines_dropped"])
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, cmd.Process.Signal(syscall.Signal(1)))
	require.NoError(t, cmd.Wait())
	assert.NoFileExists(t, file)
}

// With -cors, a web page can use the service and its storage, but not the control API.
func TestCORS_LetsWebPagesUseTheService(t *testing.T) {
	t.Parallel()
	page := func(r *http.Request) {
		r.Header.Set("Origin", "https://app.example")
		r.Header.Set("Access-Control-Request-Method", "PUT")
		r.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
		r.Header.Del("Authorization")
	}
	allowed := launch(t, "-cors", "-log", "none")
	send := func(p *program, method, path string) *http.Response {
		req := httptest.NewRequest(method, p.env["MINUTES_BASE_URL"]+path, nil)
		req.RequestURI = ""
		page(req)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp
	}
	preflight := send(allowed, http.MethodOptions, "/storage/any?X-Amz-Signature=s")
	assert.Equal(t, http.StatusNoContent, preflight.StatusCode)
	assert.Equal(t, "*", preflight.Header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, "PUT", preflight.Header.Get("Access-Control-Allow-Methods"))
	assert.Equal(t, "authorization,content-type", preflight.Header.Get("Access-Control-Allow-Headers"))
	get := send(allowed, http.MethodGet, "/v1/meetings")
	assert.Equal(t, http.StatusUnauthorized, get.StatusCode)
	assert.Equal(t, "*", get.Header.Get("Access-Control-Allow-Origin"), "a page can read an error, too")
	assert.Equal(t, "*", get.Header.Get("Access-Control-Expose-Headers"))
	status, _ := allowed.ask("MINUTES_CONTROL_URL", "GET /world", page)
	assert.Equal(t, http.StatusForbidden, status)

	other := send(launch(t, "-log", "none"), http.MethodOptions, "/v1/meetings")
	assert.Equal(t, http.StatusUnauthorized, other.StatusCode)
	assert.Empty(t, other.Header.Get("Access-Control-Allow-Origin"))
}
