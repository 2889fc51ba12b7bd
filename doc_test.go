package minutes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program and the test that README.md shows compile, and the test passes.
func TestReadme(t *testing.T) {
	t.Parallel()
	if !long() {
		t.Skip("builds programs")
	}
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(package .*?)```").FindAllSubmatch(text, -1)
	require.Len(t, blocks, 2)
	for i, c := range []struct{ file, command string }{{"main.go", "vet"}, {"weekly_test.go", "test"}} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), c.file)
			require.NoError(t, os.WriteFile(path, blocks[i][1], 0o600))
			out, err := exec.Command("go", c.command, path).CombinedOutput() // as part of this module
			require.NoError(t, err, string(out))
		})
	}
}
