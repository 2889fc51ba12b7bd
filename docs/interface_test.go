package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/route"
)

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("interface.md")
	require.NoError(t, err)
	return string(text)
}

// The page lists every operation as the client knows it, and no other.
func TestInterfaceOperations(t *testing.T) {
	t.Parallel()
	text := page(t)
	for _, r := range route.Table {
		basis := "documented"
		if r.Basis == route.Assumed {
			basis = "assumed"
		}
		row := fmt.Sprintf("\n| `%s` | %s %s | `%s` | %d | %s |\n", r.Operation, r.Method, r.Path, r.Scope, r.Success, basis)
		if !strings.Contains(text, row) { // without the page, which would be a long message
			t.Error(row)
		}
	}
	assert.Len(t, regexp.MustCompile("(?m)^\\| `[a-z]+\\.[a-z_]+` \\| (GET|PUT|POST|PATCH|DELETE) ").FindAllString(text, -1), len(route.Table))
}

// README.md has them, too, under the methods of the client.
func TestReadmeOperations(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| \\[`(\\w+)\\.(\\w+)`\\]\\(https://pkg.go.dev/github.com/meeting-minutes/minutes-go#([\\w.]+)\\) \\| (\\w+ /.*)$")
	rows := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		assert.Equal(t, m[1]+"Service."+m[2], m[3])
		rows[strings.ToLower(m[1]+"."+m[2])] = m[4]
	}
	assert.Len(t, rows, len(route.Table))
	basis := map[route.Basis]string{route.Documented: " | documented |", route.ScopeAssumed: "* | documented |", route.Assumed: " | assumed |"}
	for _, r := range route.Table {
		assert.Equal(t, fmt.Sprintf("%s %s | `%s`%s", r.Method, r.Path, r.Scope, basis[r.Basis]), rows[strings.ReplaceAll(string(r.Operation), "_", "")])
	}
}

// The page has every code and every status that the client has a name for.
func TestInterfaceNames(t *testing.T) {
	t.Parallel()
	text := page(t)
	for file, of := range map[string]struct {
		kind, row string
		count     int
	}{
		"../codes.go": {"Code", `(?m)^\| \d{3} \| .%s. \|`, 26},
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
