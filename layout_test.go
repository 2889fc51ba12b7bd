package minutes_test

import (
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
			assert.Contains(t, used, library)
		}
	}
}

// Each package of the client imports only packages that come after it in this list.
func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	order := []string{
		module,
		module + "/internal/storage",
		module + "/internal/poll",
		module + "/internal/rest",
		module + "/internal/route",
		module + "/internal/failure",
	}
	all := imports(t, false)
	for at, from := range order {
		for _, pkg := range all[from] {
			assert.Contains(t, order[at+1:], pkg, "imported by %s", from)
		}
	}
	require.Contains(t, all[module], module+"/internal/storage", "this test finds imports")
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
