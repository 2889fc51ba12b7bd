package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// over returns a context that is done. If the program starts to serve although
// it should not, it stops at once.
func over(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestRun_RejectsBadFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-nope":                                  "flag provided but not defined: -nope",
		"serve":                                  `unexpected argument "serve"`,
		"-speed 0":                               "-speed 0: a number over 0 expected",
		"-speed NaN":                             "-speed NaN: a number over 0 expected",
		"-speed -1":                              "-speed -1: a number over 0 expected",
		"-edge-limit -1":                         "-edge-limit -1: no negative number expected",
		"-edge-limit many":                       `invalid value "many" for flag -edge-limit: parse error`,
		"-log xml":                               `-log "xml": one of text, json, none expected`,
		"-addr 8080":                             `-addr "8080": host:port expected`,
		"-control 8081":                          `-control "8081": host:port, next or off expected`,
		"-addr 127.0.0.1:9 -control 127.0.0.1:9": "-control and -addr are the same address",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var out, wrong strings.Builder
			require.Equal(t, exitUsage, run(over(t), strings.Fields(args), &out, &wrong))
			assert.Empty(t, out.String())
			assert.Equal(t, "minutes-fake: "+want+" (see minutes-fake -help)\n", wrong.String())
		})
	}
}

func TestRun_PrintsHelpAndVersion(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{"-help": "-edge-limit n ", "-h": "usage: minutes-fake [flags]", "-version": "minutes-fake "} {
		var out, wrong strings.Builder
		require.Equal(t, exitDone, run(over(t), []string{arg}, &out, &wrong), arg)
		assert.Contains(t, out.String(), want)
		assert.Empty(t, wrong.String())
	}
}

// Each fault is one line, and the program ends with it.
func TestRun_RejectsBadWorlds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ world, want string }{
		"empty":        {"", ": line 1, column 1: unexpected end of JSON input"},
		"truncated":    {`{"organisations":[`, ": line 1, column 18: unexpected end of JSON input"},
		"invalid JSON": {"{\n  \"organisations\": [}", ": line 2, column 21: invalid character '}' looking for beginning of value"},
		"wrong place":  {`{"organisations":[{"id":"o","keys":[{"secret":"k","member_id":"emp_x"}]}]}`, `: organisations[0].keys[0].member_id: no member "emp_x"`},
		"several":      {`{"organisations":[{"id":"o","credits":-1,"max_members":-2}]}`, ": organisations[0].credits: -1 is negative; organisations[0].max_members: -2 is negative"},
		"no address":   {`{"organisations":[{"id":"o","members":[{"id":"emp_a","email":"a"}]}]}`, `: organisations[0].members[0].email: "a" is not an address`},
		"unknown name": {`{"organizations":[]}`, ": organizations: no such field"},
		"null":         {`null`, ": organisations: at least one expected"},
		"nothing":      {`{}`, ": organisations: at least one expected"},
		"a list":       {`[]`, ": an object expected"},
		"an exponent":  {`{"organisations":[{"id":"o","credits":1e3}]}`, ": organisations[0].credits: a whole number expected, not 1e3"},
		"garbage":      {"{\"organisations\":[{\"id\":\"o\"}]}\n}", ": line 2, column 1: invalid character '}' after top-level value"},
		"a mark":       {"\ufeff{\n  \"organisations\": [}", ": line 2, column 21: invalid character '}' looking for beginning of value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "world.json")
			require.NoError(t, os.WriteFile(path, []byte(tc.world), 0o600))
			var out, wrong strings.Builder
			require.Equal(t, exitFailed, run(over(t), []string{"-addr", "127.0.0.1:0", "-world", path}, &out, &wrong))
			assert.Equal(t, "minutes-fake: -world "+path+tc.want+"\n", wrong.String())
			assert.Empty(t, out.String())
		})
	}
	var wrong strings.Builder
	require.Equal(t, exitFailed, run(over(t), []string{"-world", "none.json"}, io.Discard, &wrong))
	assert.Equal(t, "minutes-fake: -world none.json: no such file or directory\n", wrong.String())
}

func TestRun_ReportsAddressInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().String()
	for flag, args := range map[string][]string{
		"-addr":    {"-addr", taken},
		"-control": {"-addr", "127.0.0.1:0", "-control", taken},
	} {
		var out, wrong strings.Builder
		require.Equal(t, exitFailed, run(over(t), args, &out, &wrong))
		assert.Equal(t, "minutes-fake: "+flag+" "+taken+": bind: address already in use\n", wrong.String())
		assert.Empty(t, out.String())
	}
}

const smallWorld = `{"stages":{"prepare":"1h"},"organisations":[
	{"id":"org_a","name":"Alpha","integrations":[{"id":"int_a"}],"members":[{"id":"emp_a"}],"keys":[
		{"secret":"old","integration_id":"int_a","revoked":true},
		{"secret":"it's","integration_id":"int_a","scopes":["meetings:read","meetings:write"]},
		{"secret":"none","member_id":"emp_a","scopes":[]}]},
	{"id":"org_b"}]}`

func TestBanner_ShowsWorld(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "world.json")
	require.NoError(t, os.WriteFile(path, []byte(smallWorld), 0o600))
	p := launch(t, "-world", path, "-control", "off")
	assert.Contains(t, p.said, "\nKeys of Alpha\n\n"+
		"  old   int_a, an integration  revoked\n"+
		"  it's  int_a, an integration  meetings:read meetings:write\n"+
		"  none  emp_a                  no scope\n")
	assert.Contains(t, p.said, "\nKeys of org_b\n\n  none: no client can use this organisation\n")
	assert.NotContains(t, p.said, "control")
	assert.Contains(t, p.said, ` MINUTES_API_KEY='it'\''s'`+"\n", "a word for the shell, of the first key that is good for something")
	status, _ := p.send(t, "GET", p.baseURL()+"/v1/meetings", "", "it's")
	assert.Equal(t, http.StatusOK, status)
}

// What -print-env says is all that a script needs, and nothing else.
func TestPrintEnv_PrintsAllVariables(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "world.json")
	require.NoError(t, os.WriteFile(path, []byte(smallWorld), 0o600))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"with the control API": {[]string{"-control", "127.0.0.1:0"}, `^MINUTES_BASE_URL=http://127\.0\.0\.1:\d+\nMINUTES_API_KEY=key_ci\nMINUTES_CONTROL_URL=http://127\.0\.0\.1:\d+\n$`},
		"without":              {[]string{"-control", "off"}, `^MINUTES_BASE_URL=http://127\.0\.0\.1:\d+\nMINUTES_API_KEY=key_ci\n$`},
		"a word for the shell": {[]string{"-control", "off", "-world", path}, `\nMINUTES_API_KEY='it'\\''s'\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, wrong strings.Builder
			require.Equal(t, exitDone, run(over(t), append([]string{"-addr", "127.0.0.1:0", "-print-env"}, tc.args...), &out, &wrong))
			assert.Regexp(t, tc.want, out.String())
			assert.Empty(t, wrong.String())
		})
	}
}

// Behind a trusted proxy, upload URLs lead to the address that the proxy names.
func TestForwarded_SetsUploadURLs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		trust       bool
		proto, host string
		want        string
	}{
		"not trusted":         {false, "https", "minutes.example", ""},
		"trusted":             {true, "https", "minutes.example", "https://minutes.example/storage/"},
		"the first one":       {true, "HTTPS, http", "minutes.example:8443 , inner", "https://minutes.example:8443/storage/"},
		"scheme only":         {true, "https", "", "https://127.0.0.1:"},
		"host only":           {true, "", "minutes.example", "http://minutes.example/storage/"},
		"no such scheme":      {true, "gopher", "minutes.example", "http://minutes.example/storage/"},
		"no host":             {true, "https", "minutes.example/path", "https://127.0.0.1:"},
		"markup":              {true, "https", "<script>alert(1)</script>", "https://127.0.0.1:"},
		"a quote":             {true, "https", `a"b`, "https://127.0.0.1:"},
		"host with user info": {true, "https", "user@minutes.example", "https://127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args []string
			if tc.trust {
				args = append(args, "-trust-forwarded")
			}
			p := launch(t, args...)
			id := p.meeting(t, "Weekly", "")
			req, err := http.NewRequestWithContext(t.Context(), "POST", p.baseURL()+"/v1/meetings/"+id+"/upload-url", strings.NewReader(`{"content_type":"audio/wav"}`))
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+p.env["MINUTES_API_KEY"])
			req.Header.Set("X-Forwarded-Proto", tc.proto)
			req.Header.Set("X-Forwarded-Host", tc.host)
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			want := tc.want
			if want == "" {
				want = p.baseURL() + "/storage/"
			}
			assert.Contains(t, string(text), `"upload_url":"`+want)
		})
	}
}

// A client can neither fill the program's memory nor hold its connections.
func TestServers_LimitTimeAndHeaders(t *testing.T) {
	t.Parallel()
	p := launch(t)
	for _, base := range []string{p.baseURL(), p.control()} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", base+"/health", nil)
		require.NoError(t, err)
		req.Header.Set("X-Long", strings.Repeat("x", 100<<10))
		resp, err := http.DefaultClient.Do(req)
		if err == nil { // or the connection went while the header was still being sent
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
		}
	}
	server := newServer(nil)
	assert.Positive(t, server.IdleTimeout)
	assert.Positive(t, server.ReadHeaderTimeout)
}

func TestFaster_DividesStages(t *testing.T) {
	t.Parallel()
	s := minutestest.Stages{Prepare: time.Minute, Write: 1}
	assert.Equal(t, minutestest.Stages{Prepare: 6 * time.Second, Write: 1}, faster(s, 10), "one left out stays so, and none becomes it")
	assert.Equal(t, minutestest.Stages{Prepare: 2 * time.Minute, Write: 2}, faster(s, 0.5))
	assert.Positive(t, faster(minutestest.Stages{Prepare: 1 << 62}, 0.001).Prepare, "for ever at most")
}

// The program ends with status 0 on a signal.
func TestSignals_EndProgram(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-addr", "127.0.0.1:0", "-log", "json")
			cmd.Env = append(os.Environ(), asTheProgram+"=1")
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			p := &program{env: map[string]string{}, stderr: &buffer{}}
			cmd.Stderr = p.stderr
			require.NoError(t, cmd.Start())
			p.read(out)
			status, _ := p.send(t, "GET", p.baseURL()+"/v1/usage", "", "key_ci")
			assert.Equal(t, http.StatusOK, status)
			require.NoError(t, cmd.Process.Signal(signal))
			require.NoError(t, cmd.Wait(), "exit code 0; stderr: %s", p.stderr)
			assert.Contains(t, p.stderr.String(), `"path":"/v1/usage"`)
		})
	}
}

// An open inspector does not keep the program from ending.
func TestSignals_EndProgramDespiteWatchers(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	p, ended := &program{env: map[string]string{}, stderr: &buffer{}}, make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"-addr", "127.0.0.1:0", "-control", "127.0.0.1:0"}, in, p.stderr)
	}()
	p.read(out)
	resp, err := http.Get(p.control() + "/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	first := make([]byte, 6)
	_, err = io.ReadFull(resp.Body, first)
	require.NoError(t, err)
	stop()
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err, "it ends well, before it is cut")
	assert.Equal(t, exitDone, <-ended)
}
