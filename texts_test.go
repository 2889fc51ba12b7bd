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

// prelude declares what the snippets of the texts use without declaring it, as a reader's program would.
const prelude = `package snippets

import (
	"context"; "crypto/tls"; "crypto/x509"; "errors"; "fmt"; "log"; "log/slog"; "net/http"; "net/http/httputil"
	"slices"; "strings"; "sync/atomic"
	"testing"; "testing/synctest"; "time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

var (
	ctx             context.Context
	t               *testing.T
	client          *minutes.Client
	params          *minutes.MeetingCreateParams
	recording       minutes.Source
	ids             []string
	handled         map[string]bool
	ourCAs          *x509.CertPool
	baseURL, apiKey, id string
	srv             *minutestest.Server
	record          func(minutes.Operation, int, time.Duration)
	alert           func(...any)
	sendToBrowser   func(string)
	store           func(*minutes.Result, error)
)
`

// Every Go snippet of README.md, llms.txt and docs compiles: programs and tests as they are, and the
// others as the body of a function. Names that a snippet leaves unused are no mistake.
func TestSnippets_Compile(t *testing.T) {
	t.Parallel()
	texts, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	var found []string
	for _, text := range append(texts, "README.md", "llms.txt") {
		found = append(found, blocks(t, text, "go")...)
	}
	assert.Greater(t, len(found), 15)

	// An overlay makes them packages of this module, so one command compiles them all.
	dir, together := t.TempDir(), prelude
	overlay := map[string]string{}
	add := func(pkg, code string) {
		file := filepath.Join(dir, pkg+".go")
		require.NoError(t, os.WriteFile(file, []byte(code), 0o600))
		overlay[filepath.Join("docs", "snippets", pkg, "snippet.go")] = file
	}
	for n, code := range found {
		switch {
		case strings.HasPrefix(code, "package "): // that of a program gets another name, and is not linked
			add(fmt.Sprint("program", n), strings.Replace(code, "package main\n", "package program\n", 1))
		case strings.HasPrefix(code, "func "):
			together += code
		default:
			together += fmt.Sprintf("func _() error {\n%s\nreturn nil\n}\n", code)
		}
	}
	add("together", together)
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, replace, 0o600))
	out, _ := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-overlay", file, "./docs/snippets/...").CombinedOutput()
	for line := range strings.Lines(string(out)) {
		assert.Regexp(t, `declared and not used|imported and not used|^#`, line)
	}
	assert.Contains(t, string(out), "declared and not used", "the command compiled the snippets")
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

// docs/observability.md lists each message that a Client logs, and each metric of otelminutes with its unit.
func TestObservability_ListsMessagesAndMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/observability.md")
	require.NoError(t, err)
	list := string(text)
	for _, m := range matches(t, "*.go", `(?:LogAttrs\([^"]*|\.(?:Debug|Info|Warn|Error)\()"(minutes: [^"]*)"`) {
		assert.Contains(t, list, "| `"+m[1]+"` |")
	}
	for _, m := range matches(t, "otelminutes/*.go", `"(meetings\.client[^"]*)", metric\.WithUnit\("([^"]*)"\)`) {
		assert.Contains(t, list, "| `"+m[1]+"` | "+m[2]+" |")
	}
}

// matches returns what a pattern finds in source files, which is at least something.
func matches(t *testing.T, files, pattern string) [][]string {
	t.Helper()
	names, err := filepath.Glob(files)
	require.NoError(t, err)
	var found [][]string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		found = append(found, regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)...)
	}
	require.NotEmpty(t, found, files)
	return found
}

// headings returns the anchors of the headings of a text.
func headings(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		name := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}
