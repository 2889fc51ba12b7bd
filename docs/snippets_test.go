package docs_test

import (
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
	"context"; "crypto/tls"; "crypto/x509"; "errors"; "fmt"; "log"; "log/slog"; "net/http"; "slices"; "strings"; "sync/atomic"
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
	unused := regexp.MustCompile(`declared and not used|imported and not used|^#`)
	texts, err := filepath.Glob("*.md")
	require.NoError(t, err)
	snippets := 0
	for _, text := range append(texts, "../README.md", "../llms.txt") {
		t.Run(text, func(t *testing.T) {
			together := []string{prelude}
			for n, code := range blocks(t, text, "go") {
				snippets++
				switch {
				case strings.HasPrefix(code, "package "):
					path := filepath.Join(t.TempDir(), fmt.Sprintf("program%d_test.go", n))
					require.NoError(t, os.WriteFile(path, []byte(code), 0o600))
					out, err := exec.CommandContext(t.Context(), "go", "vet", path).CombinedOutput() // as part of this module
					assert.NoError(t, err, string(out))
				case strings.HasPrefix(code, "func "):
					together = append(together, code)
				default:
					together = append(together, fmt.Sprintf("func _() error {\n%s\nreturn nil\n}\n", code))
				}
			}
			path := filepath.Join(t.TempDir(), "snippets.go")
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(together, "\n")), 0o600))
			out, _ := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-o", os.DevNull, path).CombinedOutput()
			for line := range strings.Lines(string(out)) {
				assert.Regexp(t, unused, line)
			}
		})
	}
	assert.Greater(t, snippets, 15)
}

// Links in the texts lead to a file or a directory, and to a heading in it.
func TestLinks_HaveTargets(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, pattern := range []string{"../*.md", "../llms.txt", "*.md", "../cmd/*/*.md", "../examples/*/*.md", "../.github/*.md"} {
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
