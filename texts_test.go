package minutes_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// blocks returns the code blocks of one kind in a text.
func blocks(t *testing.T, path, kind string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+kind+"\n(.*?)```").FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

// prelude declares what the snippets of the texts use without declaring it, as a reader's program
// would.
const prelude = `package snippets

import (
	"context"; "crypto/tls"; "crypto/x509"; "errors"; "fmt"; "log"; "log/slog"; "net/http"; "net/http/httputil"
	"os"; "slices"; "strings"; "sync"; "sync/atomic"
	"testing"; "testing/synctest"; "time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

var (
	ctx                 context.Context
	t                   *testing.T
	client              *minutes.Client
	err                 error
	params              *minutes.MeetingCreateParams
	recording           minutes.Source
	handled             = map[string]bool{}
	polledAt            time.Time
	ourCAs              *x509.CertPool
	baseURL, apiKey, id string
	srv                 *minutestest.Server
	measure             func(minutes.Operation, int, time.Duration)
	alert               func(...any)
	sendToBrowser       func(string)
	store               func(*minutes.Result)
	retryLater          func(*minutes.MeetingCreateParams)
	save                func(*minutes.Result, error) error
)
`

// overlay is packages of this module that exist only for the go command.
type overlay struct {
	t     *testing.T
	dir   string
	files map[string]string
}

func newOverlay(t *testing.T) *overlay {
	t.Helper()
	return &overlay{t, t.TempDir(), map[string]string{}}
}

// add adds a package with one file.
func (o *overlay) add(pkg, file, code string) {
	o.t.Helper()
	real := filepath.Join(o.dir, pkg+file)
	require.NoError(o.t, os.WriteFile(real, []byte(code), 0o600))
	o.files[filepath.Join("docs", "snippets", pkg, file)] = real
}

// run runs the go command with these packages.
func (o *overlay) run(command string, args ...string) (out string, err error) {
	o.t.Helper()
	replace, err := json.Marshal(map[string]any{"Replace": o.files})
	require.NoError(o.t, err)
	file := filepath.Join(o.dir, "overlay.json")
	require.NoError(o.t, os.WriteFile(file, replace, 0o600))
	args = append([]string{command, "-overlay", file}, args...)
	cmd := exec.CommandContext(o.t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOGC=400") // collects less garbage, as these tests do
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// Every Go snippet of README.md, llms.txt and docs compiles: programs and tests as they are, and
// the others as the body of a function. Names that a snippet leaves unused are not a mistake.
func TestSnippets_Compile(t *testing.T) {
	t.Parallel()
	texts, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	var found []string
	for _, text := range append(texts, "README.md", "llms.txt") {
		found = append(found, blocks(t, text, "go")...)
	}
	assert.Greater(t, len(found), 12)

	packages := newOverlay(t)
	together := prelude // one command compiles them all
	for n, code := range found {
		switch {
		case strings.HasPrefix(code, "package "): // that of a program gets another name, and is not linked
			code = strings.Replace(code, "package main\n", "package program\n", 1)
			packages.add(fmt.Sprint("program", n), "snippet.go", code)
		case strings.HasPrefix(code, "func "):
			together += code
		default:
			together += fmt.Sprintf("func _() error {\n%s\nreturn nil\n}\n", code)
		}
	}
	packages.add("together", "snippet.go", together)
	out, _ := packages.run("build", "-gcflags=-e", "./docs/snippets/...")
	for line := range strings.Lines(out) {
		assert.Regexp(t, `declared and not used|imported and not used|^#`, line)
	}
	assert.Contains(t, out, "declared and not used", "the command compiled the snippets")
}

// The first program of README.md prints minutes, as soon as its two variables name a service.
func TestREADME_ProgramRuns(t *testing.T) {
	if !testbase.Long() {
		t.Skip("builds a program: set MINUTES_LONG=1")
	}
	t.Parallel()
	srv := minutestest.New()
	defer srv.Close()
	address, err := srv.Listen("")
	require.NoError(t, err)
	packages := newOverlay(t)
	packages.add("program", "main.go", blocks(t, "README.md", "go")[0])
	binary := filepath.Join(packages.dir, "program")
	out, err := packages.run("build", "-o", binary, "./docs/snippets/program")
	require.NoError(t, err, out)

	require.NoError(t, os.WriteFile(filepath.Join(packages.dir, "weekly.mp3"), []byte("ID3\x04 and sound"), 0o600))
	program := exec.CommandContext(t.Context(), binary)
	program.Dir = packages.dir
	program.Env = append(os.Environ(), "MINUTES_BASE_URL="+address, "MINUTES_API_KEY="+srv.Key())
	printed, err := program.CombinedOutput()
	require.NoError(t, err, string(printed))
	assert.Regexp(t, "^# Weekly\n", string(printed))
}

// snippetsTest runs the snippets of README.md and the first of docs/follow.md in a bubble, which ends Follow
// after a minute.
const snippetsTest = `
var ( // the imports that README.md does not need
	_ atomic.Int64
	_ sync.Mutex
	_ http.Client
	_ tls.Config
	_ = fmt.Sprint
	_ = httputil.DumpRequest
	_ = log.Print
	_ = slog.Default
	_ = os.Getenv
)

func TestSnippets(t *testing.T) {
	t.Setenv("MINUTES_BASE_URL", "https://api.minutes.test")
	t.Setenv("MINUTES_API_KEY", "key_ci")
	synctest.Test(t, func(t *testing.T) {
		client = minutestest.NewServer(t).Client()
		params = &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"}
		var calls []string
		alert = func(...any) { calls = append(calls, "alert") }
		store = func(r *minutes.Result) { calls = append(calls, "store " + r.Minutes.Content[:2]) }
		save = func(r *minutes.Result, err error) error {
			calls = append(calls, "save " + r.Minutes.Content[:2])
			return err
		}
		for _, snippet := range snippets {
			var cancel func()
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			if err := snippet(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
		// ProcessAll, the switch over errors, and Follow.
		if want := []string{"store <a", "alert", "save <a"}; !slices.Equal(calls, want) {
			t.Error("got", calls, "want", want)
		}
	})
}
`

// The other snippets of README.md run, too, as does the loop of docs/follow.md, and its test passes.
func TestREADME_SnippetsRun(t *testing.T) {
	if !testbase.Long() {
		t.Skip("builds a program: set MINUTES_LONG=1")
	}
	t.Parallel()
	declared := regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) :=`)
	const noError = "err                 error"
	const failed = "err error = &minutes.MeetingFailedError{}"
	code := strings.Replace(prelude, noError, failed, 1) + snippetsTest
	snippets := ""
	follow := blocks(t, "docs/follow.md", "go")[0]
	for _, snippet := range append(blocks(t, "README.md", "go")[1:], follow) {
		if strings.HasPrefix(snippet, "func ") {
			code += snippet
			continue
		}
		for _, names := range declared.FindAllStringSubmatch(snippet, -1) {
			snippet += strings.Repeat("_, ", strings.Count(names[1], ",")) + "_ = " + names[1] + "\n"
		}
		snippets += "func() error {\n" + snippet + "return nil\n},\n"
	}
	code += "var snippets = []func() error{\n" + snippets + "}\n"
	packages := newOverlay(t)
	packages.add("readme", "readme_test.go", code)
	require.NoError(t, os.WriteFile(filepath.Join(packages.dir, "weekly.mp3"), []byte("ID3\x04 and sound"), 0o600))
	binary := filepath.Join(packages.dir, "readme.test")
	out, err := packages.run("test", "-vet=off", "-c", "-o", binary, "./docs/snippets/readme")
	require.NoError(t, err, out)
	tests := exec.CommandContext(t.Context(), binary, "-test.v")
	tests.Dir = packages.dir
	text, err := tests.CombinedOutput()
	require.NoError(t, err, string(text))
	assert.Contains(t, string(text), "--- PASS: TestFailedTranscription")
}

// Links in the texts lead to a file or a directory, and to a heading in it.
func TestLinks_HaveTargets(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, pattern := range []string{"*.md", "llms.txt", "docs/*.md", "cmd/*/*.md", "examples/*/*.md", ".github/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range link.FindAllSubmatch(code.ReplaceAll(text, nil), -1) {
				target := file
				if path := string(m[1]); path != "" {
					target = filepath.Join(filepath.Dir(file), path)
				}
				_, err := os.Stat(target)
				assert.NoError(t, err, file)
				if heading := string(m[2]); heading != "" {
					assert.Contains(t, headings(t, target), heading, file)
				}
			}
		}
	}
}

// Each text that docs/troubleshooting.md quotes as a symptom is in the source, or comes from Go.
func TestTroubleshooting_QuotesTheSource(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/troubleshooting.md")
	require.NoError(t, err)
	source := sourceText(t, "*.go", "internal/*/*.go", "minutestest/*.go") +
		"x509: certificate signed by unknown authority " +
		"deadlock: all goroutines in bubble are blocked; " +
		"main bubble goroutine has exited but blocked goroutines remain "
	quotes := regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(string(page), -1)
	for _, quote := range quotes {
		assert.Contains(t, source, quote[1])
	}
	assert.Greater(t, len(quotes), 5)
}

// Links in doc comments lead to a file or a directory of this repository, and to a heading in it.
func TestDocComments_LinksHaveTargets(t *testing.T) {
	t.Parallel()
	const link = `https://github\.com/meeting-minutes/minutes-go/(?:blob|tree)/main/([\w./-]+\w)(?:#([\w-]+))?`
	for _, files := range []string{"*.go", "minutestest/*.go"} {
		for _, m := range matches(t, files, link) {
			_, err := os.Stat(m[1])
			assert.NoError(t, err)
			if m[2] != "" {
				assert.Contains(t, headings(t, m[1]), m[2])
			}
		}
	}
}

// docs/observability.md lists each message that a Client logs, and each metric of otelminutes with
// its unit.
func TestObservability_ListsMessagesAndMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/observability.md")
	require.NoError(t, err)
	list := string(text)
	const logs = `(?:LogAttrs\([^"]*|\.(?:Debug|Info|Warn|Error)\()"(minutes: [^"]*)"`
	for _, m := range matches(t, "*.go", logs) {
		assert.Contains(t, list, "| `"+m[1]+"` |")
	}
	for _, m := range matches(t, "otelminutes/*.go", `"(meetings\.client[^"]*)", metric\.WithUnit\("([^"]*)"\)`) {
		assert.Contains(t, list, "| `"+m[1]+"` | "+m[2]+" |")
	}
}

// matches returns what a pattern finds in source files, which is at least something.
func matches(t *testing.T, files, pattern string) [][]string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(sourceText(t, files), -1)
	require.NotEmpty(t, found, files)
	return found
}

// sourceText returns the content of all source files but tests.
func sourceText(t *testing.T, patterns ...string) string {
	t.Helper()
	var source strings.Builder
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			source.Write(text)
		}
	}
	return source.String()
}

// headings returns the anchors of the headings of a text.
func headings(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var names []string
	other := regexp.MustCompile(`[^\w -]`)
	for line := range strings.Lines(string(text)) {
		title, found := strings.CutPrefix(strings.TrimLeft(strings.TrimSuffix(line, "\n"), "#"), " ")
		if !found || !strings.HasPrefix(line, "#") {
			continue
		}
		name := other.ReplaceAllString(strings.ToLower(title), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}
