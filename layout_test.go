package minutes_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/meeting-minutes/minutes-go"

// imports maps each package of this module to the packages of this module that its files import, test
// files or others.
func imports(t *testing.T, ofTests bool) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for from, all := range allImports(t, ofTests) {
		for _, to := range all {
			if to == module || strings.HasPrefix(to, module+"/") {
				found[from] = append(found[from], to)
			}
		}
	}
	return found
}

// allImports maps each package of this module to the packages that its files import and use.
func allImports(t *testing.T, ofTests bool) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		_, err = os.Stat(filepath.Join(file, "go.mod"))
		if d.IsDir() && err == nil && file != "." {
			return filepath.SkipDir // a module of its own
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") != ofTests {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		from := path.Join(module, filepath.ToSlash(filepath.Dir(file)))
		for _, spec := range parsed.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			unused := spec.Name != nil && spec.Name.Name == "_"
			if !unused && !slices.Contains(found[from], to) {
				found[from] = append(found[from], to)
			}
		}
		return nil
	}))
	return found
}

// The owner of the project named these files of the root, and these libraries.
func TestTheOwnersCardHolds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"client.go", "meetings.go", "members.go", "projects.go", "templates.go", "vocabulary.go", "usage.go",
		"errors.go", "upload.go", "pager.go", "waiter.go", "examples", "internal", "go.mod",
	} {
		_, err := os.Stat(name)
		assert.NoError(t, err)
	}
	for ofTests, libraries := range map[bool][]string{
		false: {
			"github.com/hashicorp/go-retryablehttp", "golang.org/x/time/rate", "github.com/google/go-querystring/query",
		},
		true: {"github.com/jarcoal/httpmock", "github.com/stretchr/testify/require"},
	} {
		var used []string
		for from, all := range allImports(t, ofTests) {
			if ofTests || !isTestKit(from) {
				used = append(used, all...)
			}
		}
		for _, library := range libraries {
			assert.True(t, slices.Contains(used, library), "nothing imports %s", library)
		}
	}
}

// Each package imports these packages of the module, and no others. Examples may import any that is
// not internal.
func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	const root = "."
	allowed := map[string][]string{
		root: {
			"internal/failure", "internal/poll", "internal/rest", "internal/route", "internal/storage",
		},
		"internal/failure": nil,
		"internal/poll":    {"internal/failure"},
		"internal/rest":    {"internal/failure"},
		"internal/route":   nil,
		"internal/storage": {"internal/rest"},

		"cmd/minutes-fake": {
			root, "internal/fake/inspector", "internal/fake/mistake", "internal/fake/strictjson", "minutestest",
		},
		"internal/fake/engine":     {root, "internal/fake/mistake", "internal/route", "minutestest/world"},
		"internal/fake/inspector":  {"internal/fake/engine", "internal/fake/recent", "minutestest/world"},
		"internal/fake/mistake":    nil,
		"internal/fake/recent":     nil,
		"internal/fake/strictjson": {root},
		"minutestest": {
			root, "internal/fake/engine", "internal/fake/inspector", "internal/fake/mistake", "internal/fake/recent",
			"internal/fake/strictjson", "internal/route", "minutestest/world",
		},
		"minutestest/world": {root, "internal/fake/mistake", "internal/fake/strictjson"},
		"conformance":       nil,
	}
	for from, all := range imports(t, false) {
		from = strings.TrimPrefix(strings.TrimPrefix(from, module), "/")
		var to []string
		for _, pkg := range all {
			to = append(to, cmp.Or(strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/"), root))
		}
		if strings.HasPrefix(from, "examples/") {
			assert.NotContains(t, strings.Join(to, " "), "internal/", "imported by %s", from)
			continue
		}
		if !isTestKit(module + "/" + from) {
			assert.ElementsMatch(t, allowed[cmp.Or(from, root)], to, "imported by %s", cmp.Or(from, root))
			delete(allowed, cmp.Or(from, root))
		}
	}
	for from, to := range allowed { // which imports nothing
		assert.Empty(t, to, "imported by %s", from)
		assert.DirExists(t, from)
	}
}

// Whole-system tests and their kit are below internal/test.
func TestOnlyTestsImportTheTestKit(t *testing.T) {
	t.Parallel()
	for from, to := range imports(t, false) {
		for _, pkg := range to {
			assert.False(t, isTestKit(pkg) && !isTestKit(from), "%s imports %s", from, pkg)
		}
	}
	require.Contains(t, imports(t, true)[module], module+"/internal/test/testkit", "this test finds imports of the kit")
}

func isTestKit(pkg string) bool { return strings.HasPrefix(pkg, module+"/internal/test/") }

// Code reads from top to bottom: a line holds one statement and at most 120 columns, and a header or an
// assignment does one thing.
func TestCodeIsNotDense(t *testing.T) {
	t.Parallel()
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") {
			return err
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Empty(t, dense(t, file, string(text)))
		return nil
	}))
	for _, text := range []string{
		"if err = f(); err != nil {\n\t}",
		"if err := f(); err != nil {\n\t}",
		"a, b := 1, 2",
		"const a, b = 1, 2",
		"f := func() { a(); b() }",
		"// " + strings.Repeat("x", 120),
	} {
		assert.Len(t, dense(t, "x.go", "package x\n\nfunc x() {\n\t"+text+"\n}\n"), 1, text)
	}
}

// dense returns the places of a file that hold too much.
func dense(t *testing.T, file, text string) (places []string) {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		if len([]rune(strings.ReplaceAll(line, "\t", "    "))) > 120 {
			places = append(places, fmt.Sprintf("%s:%d: over 120 columns", file, i+1))
		}
	}
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, text, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		problem := denseNode(positions, n)
		if problem != "" {
			places = append(places, fmt.Sprintf("%s: %s", positions.Position(n.Pos()), problem))
		}
		return true
	})
	return places
}

// denseNode returns why a node holds too much, or "".
func denseNode(positions *token.FileSet, n ast.Node) string {
	switch n := n.(type) {
	case *ast.IfStmt:
		first, ok := n.Init.(*ast.AssignStmt)
		if n.Init != nil && (!ok || first.Tok != token.DEFINE || isErr(first)) {
			return "a header that does more than to declare a value"
		}
	case *ast.AssignStmt:
		if len(n.Rhs) > 1 && !isSwap(n) {
			return "several assignments in one"
		}
	case *ast.ValueSpec:
		if len(n.Values) > 1 {
			return "several declarations in one"
		}
	case *ast.BlockStmt:
		oneLine := positions.Position(n.Pos()).Line == positions.Position(n.End()).Line
		if oneLine && len(n.List) > 1 {
			return "several statements in one line"
		}
	}
	return ""
}

// isErr reports whether an assignment only declares err.
func isErr(a *ast.AssignStmt) bool {
	name, ok := a.Lhs[0].(*ast.Ident)
	return ok && name.Name == "err" && len(a.Lhs) == 1
}

// isSwap reports whether an assignment swaps two elements of a list.
func isSwap(a *ast.AssignStmt) bool {
	_, ok := a.Lhs[0].(*ast.IndexExpr)
	return ok && len(a.Lhs) == 2
}
