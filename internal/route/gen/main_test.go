package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

const module = "../../.."

func TestTables_AreUpToDate(t *testing.T) {
	t.Parallel()
	files, err := tables(module)
	require.NoError(t, err)
	require.Len(t, files, 3)
	for path, want := range files {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), "%s is out of date; run go generate ./internal/route", path)
	}
}

// The tables name the methods that users call.
func TestEveryOperation_HasItsMethod(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(module, "*.go"))
	require.NoError(t, err)
	var methods []string
	declared := regexp.MustCompile(`(?m)^func \(\w+ \*(\w+)Service\) (\w+)\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			methods = append(methods, m[1]+"."+m[2])
		}
	}
	for _, row := range route.Table {
		service, name := method(row.Operation)
		assert.Contains(t, methods, service+"."+name)
	}
}

func TestTables_NeedTheirMarkers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "docs"), 0o700))
	for _, file := range []string{"doc.go", "docs/interface.md"} {
		_, err := tables(root)
		require.ErrorIs(t, err, os.ErrNotExist)
		text, err := os.ReadFile(filepath.Join(module, file))
		require.NoError(t, err)
		unmarked := strings.NewReplacer("<!-- operations -->", "", "\n//\t", "\n// ").Replace(string(text))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(unmarked), 0o600))
		_, err = tables(root)
		require.ErrorContains(t, err, file+": no place for the table")
		require.NoError(t, os.WriteFile(filepath.Join(root, file), text, 0o600))
	}
	_, err := tables(root)
	require.NoError(t, err)
}
