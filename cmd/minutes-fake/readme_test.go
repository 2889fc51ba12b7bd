package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the responses of the session into README.md")

// step is one command of a session, and its response.
type step struct {
	command, response string
}

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// session returns the commands of a text with their responses.
func session(text string) []step {
	var steps []step
	for _, block := range consoleBlock.FindAllStringSubmatch(text, -1) {
		open := false // the command goes on in the next line
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok && !open {
				steps = append(steps, step{})
				line = command
			} else if !open {
				steps[len(steps)-1].response += line
				continue
			}
			last := &steps[len(steps)-1]
			last.command += line
			_, open = words(last.command, nil)
		}
	}
	return steps
}

// sample is the text in README.md for a value that differs each time.
const (
	sampleMeeting = "mtg_4k1r7s9x2v0b3n6m8q5t"
	sampleQuery   = "?X-Amz-Expires=900&X-Amz-Signature=6f1c0b9d"
)

var (
	meetingID  = regexp.MustCompile(`mtg_[0-9a-z]{20}`)
	urlQuery   = regexp.MustCompile(`\?X-Amz-[^"]+`)
	variations = []struct {
		what *regexp.Regexp
		by   string
	}{
		{regexp.MustCompile(`req_[0-9a-z]+`), "req_8d2m5w1c7f3j9p6h0z4k"},
		{regexp.MustCompile(`_at":\d{10}`), `_at":1795251600`},
		{regexp.MustCompile(`Date: .* GMT`), "Date: Sat, 21 Nov 2026 09:00:00 GMT"},
	}
)

// play runs the session of README.md, and returns the actual responses, in
// the form of README.md.
func play(t *testing.T, steps []step, curl func(argv []string) string) []string {
	t.Helper()
	var p *program
	var meeting, query string
	responses := make([]string, len(steps))
	for i, s := range steps {
		argv, _ := words(s.command, func(name string) string { return p.env[name] })
		if argv[0] == "minutes-fake" {
			p = launch(t, append(argv[1:], "-control", "127.0.0.1:0")...)
			responses[i] = p.said
		} else {
			require.Equal(t, "curl", argv[0])
			for n := range argv {
				argv[n] = strings.ReplaceAll(argv[n], "http://127.0.0.1:8080", p.baseURL())
				if meeting != "" {
					argv[n] = strings.ReplaceAll(argv[n], sampleMeeting, meeting)
				}
				if query != "" {
					argv[n] = strings.ReplaceAll(argv[n], sampleQuery, query)
				}
			}
			responses[i] = curl(argv[1:])
		}
		if found := meetingID.FindString(responses[i]); found != "" && meeting == "" {
			meeting = found
		}
		if found := urlQuery.FindString(responses[i]); found != "" {
			query = found
		}
		response := strings.NewReplacer(p.baseURL(), "http://127.0.0.1:8080", p.control(), "http://127.0.0.1:8081").Replace(responses[i])
		if meeting != "" {
			response = strings.ReplaceAll(response, meeting, sampleMeeting)
		}
		if query != "" {
			response = strings.ReplaceAll(response, query, sampleQuery)
		}
		for _, v := range variations {
			response = v.what.ReplaceAllString(response, v.by)
		}
		if response != "" && !strings.HasSuffix(response, "\n") {
			response += "\n"
		}
		responses[i] = response
	}
	return responses
}

// The session of README.md is what happens, and so is that of the whole project's:
// with curl, and with as much of it as the session needs without it.
func TestReadme_SessionWorks(t *testing.T) {
	t.Parallel()
	for path, least := range map[string]int{"README.md": 9, "../../README.md": 2} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		steps := session(string(text))
		first := slices.IndexFunc(steps, func(s step) bool { return strings.HasPrefix(s.command, "minutes-fake") })
		steps = steps[first:] // before it are other programs
		require.GreaterOrEqual(t, len(steps), least)
		for name, curl := range map[string]func(*testing.T, []string) string{"curl": realCurl, "Go": goCurl} {
			t.Run(path+" "+name, func(t *testing.T) {
				t.Parallel()
				if name == "curl" && !hasCurl() {
					t.Skip("there is no curl here that knows --json")
				}
				responses := play(t, steps, func(argv []string) string { return curl(t, argv) })
				if *update && name == "Go" {
					rewrite(t, path, string(text), steps, responses)
					return
				}
				for i, s := range steps {
					assert.Equal(t, s.response, responses[i], "%s", s.command)
				}
			})
		}
	}
}

// rewrite replaces the responses in a text.
func rewrite(t *testing.T, path, text string, steps []step, responses []string) {
	for i, s := range steps {
		was, is := "$ "+s.command+s.response, "$ "+s.command+responses[i]
		require.Contains(t, text, was)
		text = strings.Replace(text, was, is, 1)
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// README.md lists every endpoint of the control API, in its words.
func TestReadmeEndpoints(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := 0
	for _, e := range (&control{}).endpoints() {
		assert.Contains(t, string(text), "| `"+e.method+" "+strings.TrimSuffix(e.path, "{$}")+"` | "+e.does+" |\n")
		rows++
	}
	assert.Len(t, regexp.MustCompile("(?m)^\\| `(GET|PUT|POST|PATCH|DELETE) ").FindAllString(string(text), -1), rows, "and no other")
	for _, name := range []string{"addr", "world", "speed", "edge-limit", "log", "control", "keep-audio", "print-env", "env-file", "min-poll-interval", "strict", "trust-forwarded"} {
		assert.Contains(t, string(text), "| `-"+name)
	}
}

// The script of README.md finds the program ready, and ends it.
func TestReadme_ScriptRuns(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	script := regexp.MustCompile("(?s)```sh\n(rm -f fake.env\n.*?)```").FindSubmatch(text)
	require.NotNil(t, script)
	program := strings.Replace(string(script[1]), "minutes-fake ", `"$PROGRAM" `, 1)
	dir := t.TempDir()
	for range 3 { // it works again, and with what a killed program has left
		cmd := exec.CommandContext(t.Context(), shell, "-euc", program+`printf '%s %s %s' "$MINUTES_BASE_URL" "$MINUTES_API_KEY" "$MINUTES_CONTROL_URL"`)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PROGRAM="+os.Args[0], asTheProgram+"=1")
		out, err := cmd.CombinedOutput() // once all that has it open has ended
		require.NoError(t, err, string(out))
		assert.Regexp(t, `^http://127\.0\.0\.1:\d+ key_ci http://127\.0\.0\.1:\d+$`, string(out))
		assert.NoFileExists(t, filepath.Join(dir, "fake.env"))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "fake.env"), []byte("MINUTES_BASE_URL=http://127.0.0.1:1\n"), 0o600))
	}
}

// Each situation of README.md comes about with its request.
func TestReadme_SituationsWork(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| (.*) \\| `(POST|PUT|PATCH) (/\\S+) (\\{.*\\})` \\|$").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(rows), 35)
	for _, row := range rows {
		t.Run(row[1], func(t *testing.T) {
			t.Parallel()
			p := launch(t)
			status, response := p.ask(t, row[2]+" "+row[3], row[4])
			require.Less(t, status, 300, "%v", response)
			id := useEverything(t, p)
			switch row[3] {
			case "/faults":
				_, fault := p.ask(t, "GET /faults/flt_1", "")
				assert.Positive(t, fault["applied"])
				assert.NotContains(t, fault["faults"].([]any)[0], "problem")
			case "/scripts":
				outcome, _ := response["outcome"].(string)
				hold, _ := response["hold"].(string)
				_, m := p.ask(t, "POST /meetings/"+id+"/advance", `{"until":"`+cmp.Or(hold, outcome)+`"}`)
				assert.Equal(t, cmp.Or(hold, outcome), m["status"])
				assert.Equal(t, hold != "", m["held"])
			case "/organisations/org_acme", "/organisations/org_acme/keys/key_ci":
				for _, key := range []string{p.env["MINUTES_API_KEY"], "key_ada"} {
					status, _ = p.send(t, "POST", p.baseURL()+"/v1/projects", `{"name":"Vostok"}`, key)
					if status == http.StatusForbidden {
						return
					}
				}
				t.Error("no request was rejected")
			}
		})
	}
}

// useEverything sends a request of each kind that a situation is about, whatever
// becomes of it. It returns the meeting's id.
func useEverything(t *testing.T, p *program) (id string) {
	client := &http.Client{Timeout: time.Second}
	send := func(method, url, body string) (response map[string]any) {
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "audio/mpeg")
		if strings.Contains(url, "/v1/") {
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+p.env["MINUTES_API_KEY"])
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil
		}
		defer resp.Body.Close()
		_ = json.NewDecoder(resp.Body).Decode(&response)
		return response
	}
	var upload string
	for range 2 { // a fault may be in the way once
		m := send("POST", p.baseURL()+"/v1/meetings", `{"title":"Weekly","date":"2026-11-21","external_id":"weekly"}`)
		id, _ = cmp.Or(m["id"], any("mtg_none")).(string)
		send("PUT", p.baseURL()+"/v1/meetings/"+id+"/participants", `{"participant_ids":["emp_ada"]}`)
		target := send("POST", p.baseURL()+"/v1/meetings/"+id+"/upload-url", `{"content_type":"audio/mpeg"}`)
		if upload, _ = target["upload_url"].(string); upload != "" {
			send("PUT", upload, "audio")
		}
		send("GET", p.baseURL()+"/v1/meetings/"+id, "")
	}
	return id
}
