package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("interface.md")
	require.NoError(t, err)
	return string(text)
}

func TestInterfacePage_NamesEveryCodeAndStatus(t *testing.T) {
	t.Parallel()
	text := page(t)
	for file, of := range map[string]struct {
		kind, row string
		count     int
	}{
		"../codes.go":  {"ErrorCode", `(?m)^\| \d{3} \| .%s. \|`, 26},
		"../status.go": {"Status", `(?m)^\| .%s. \|`, 10},
	} {
		names := constants(t, file, of.kind)
		assert.Len(t, names, of.count)
		for _, name := range names {
			if !regexp.MustCompile(fmt.Sprintf(of.row, name)).MatchString(text) {
				t.Error(name)
			}
		}
	}
}

// constants returns the values of the documented constants of a type.
func constants(t *testing.T, path, kind string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != kind || spec.Names[0].Name == "ErrRateLimited" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		values = append(values, value)
		return true
	})
	return values
}
