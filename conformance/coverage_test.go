package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pinned is a sentence of the interface document, or of a decision about what
// it leaves open, with the tests that fail when it is not so.
type pinned struct {
	at   string // a section ("4.2"), or a decision ("D7")
	says string
	by   []string // package.TestName, or package.TestName/subtest
}

// directories of the packages whose tests the table names.
var directories = map[string]string{
	"minutes":      "..",
	"audio":        "../minutestest/internal/audio",
	"engine":       "../minutestest/internal/engine",
	"minutestest":  "../minutestest",
	"minutes-fake": "../cmd/minutes-fake",
	"conformance":  ".",
}

// Every section from 2 to 8 and every decision is in the table, and the tests
// that it names exist.
func TestEverySentence_HasACheck(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	tests := map[string]map[string]bool{}
	for name, dir := range directories {
		tests[name] = testsOf(t, dir)
	}
	said := map[string]bool{}
	for _, p := range sentences {
		there[p.at] = true
		assert.NotEmpty(t, p.by, "%s: %s: pinned by nothing", p.at, p.says)
		assert.False(t, said[p.at+p.says], "%s: %s: twice in the table", p.at, p.says)
		said[p.at+p.says] = true
		for _, by := range p.by {
			name, test, _ := strings.Cut(by, ".")
			assert.True(t, tests[name][test], "%s: %s: there is no test %s", p.at, p.says, by)
		}
	}
	for _, section := range []string{"2", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "3", "4", "4.1", "4.2", "4.3", "5", "6", "7", "8"} {
		assert.True(t, there[section], "section %s is not in the table", section)
		delete(there, section)
	}
	for n := 1; n <= 25; n++ {
		decision := fmt.Sprintf("D%d", n)
		assert.True(t, there[decision], "decision %s is not in the table", decision)
		delete(there, decision)
	}
	assert.Empty(t, there, "neither a section nor a decision")
}

// testsOf returns the tests of a package by name: its functions, and, as
// function/text, every text that a function or a variable of the package
// holds, which is what subtests are named by.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, dir)
	var functions []string
	found, shared := map[string]bool{}, []string(nil)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok {
				shared = append(shared, texts(decl)...)
				continue
			}
			if name := function.Name.Name; strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
				functions = append(functions, name)
				found[name] = true
				for _, text := range texts(function) {
					found[name+"/"+text] = true
				}
			}
		}
	}
	for _, name := range functions {
		for _, text := range shared {
			found[name+"/"+text] = true
		}
	}
	return found
}

// texts returns the string literals below a node.
func texts(n ast.Node) (list []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				list = append(list, text)
			}
		}
		return true
	})
	return list
}
