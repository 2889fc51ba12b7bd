package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
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

// The program of each text compiles, and its suite passes.
func TestProgramsInTextsCompile(t *testing.T) {
	t.Parallel()
	if !testbase.Long() {
		t.Skip("builds programs")
	}
	for text, want := range map[string]int{"../README.md": 2, "../llms.txt": 2, "testing.md": 1} {
		programs := 0
		for _, code := range blocks(t, text, "go") {
			name, command := "main.go", "vet"
			switch {
			case !strings.HasPrefix(code, "package "):
				continue
			case !strings.HasPrefix(code, "package main\n"):
				name, command = "weekly_test.go", "test"
			}
			programs++
			path := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.WriteFile(path, []byte(code), 0o600))
			out, err := exec.CommandContext(t.Context(), "go", command, path).CombinedOutput() // as part of this module
			assert.NoError(t, err, "%s: %s", text, out)
		}
		assert.Equal(t, want, programs, text)
	}
}

// All other Go in README.md and docs is part of an example that runs and compares its
// output. Indentation does not count.
func TestSnippetsArePartOfExamples(t *testing.T) {
	t.Parallel()
	indent := regexp.MustCompile(`(?m)^\t+`)
	files, err := filepath.Glob("../*_test.go")
	require.NoError(t, err)
	files = append(files, "../minutestest/example_test.go")
	var examples strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, example := range regexp.MustCompile(`(?s)\nfunc Example.*?\n}\n`).FindAllString(string(text), -1) {
			if regexp.MustCompile(`\n\t// (Output|Unordered output):`).MatchString(example) {
				examples.WriteString(indent.ReplaceAllString(example, ""))
			}
		}
	}
	texts, err := filepath.Glob("*.md")
	require.NoError(t, err)
	snippets := 0
	for _, text := range append(texts, "../README.md") {
		for _, code := range blocks(t, text, "go") {
			if strings.HasPrefix(code, "package ") || strings.Contains(code, "(t)") { // a program, or part of a test
				continue
			}
			snippets++
			if !strings.Contains(examples.String(), strings.TrimSpace(indent.ReplaceAllString(code, ""))) { // without the examples, which would be a long message
				t.Errorf("%s: in no example:\n%s", text, code)
			}
		}
	}
	assert.Greater(t, snippets, 8)
}

// The quickstart prints the lines that README.md shows. An ellipsis means
// omitted lines.
func TestQuickstartPrintsWhatReadmeShows(t *testing.T) {
	t.Parallel()
	if !testbase.Long() {
		t.Skip("builds a program")
	}
	command, said, ok := strings.Cut(blocks(t, "../README.md", "console")[0], "\n")
	require.True(t, ok)
	run := exec.CommandContext(t.Context(), "sh", "-c", strings.TrimPrefix(command, "$ "))
	run.Dir = ".."
	run.Env = append(os.Environ(), "MINUTES_BASE_URL=", "MINUTES_API_KEY=")
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
	rest := regexp.MustCompile(`mtg_\w+`).ReplaceAllString(string(out), "mtg_4k1r7s9x2v0b3n6m8q5t")
	for part := range strings.SplitSeq(said, "…\n") {
		_, after, ok := strings.Cut(rest, part)
		require.True(t, ok, "%q is not in %q", part, rest)
		rest = after
	}
}

// Links in the texts lead to a file or a folder, and to a heading in it.
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
