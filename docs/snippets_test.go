package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/testkit"
)

// The program of llms.txt compiles, and its test passes.
func TestSnippets(t *testing.T) {
	t.Parallel()
	if !testkit.Long() {
		t.Skip("builds programs")
	}
	text, err := os.ReadFile("../llms.txt")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(package .*?)```").FindAllSubmatch(text, -1)
	require.Len(t, blocks, 2)
	for i, c := range []struct{ file, command string }{{"main.go", "vet"}, {"weekly_test.go", "test"}} {
		path := filepath.Join(t.TempDir(), c.file)
		require.NoError(t, os.WriteFile(path, blocks[i][1], 0o600))
		out, err := exec.CommandContext(t.Context(), "go", c.command, path).CombinedOutput() // as part of this module
		require.NoError(t, err, string(out))
	}
}

// Links of the texts lead somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile("(?s)```.*?```")
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, pattern := range []string{"../*.md", "../llms.txt", "*.md", "../cmd/*/*.md", "../examples/*/*.md", "../.github/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range link.FindAllSubmatch(code.ReplaceAll(text, nil), -1) {
				_, err := os.Stat(filepath.Join(filepath.Dir(file), string(m[1])))
				assert.NoError(t, err, file) // a folder will do
			}
		}
	}
}
