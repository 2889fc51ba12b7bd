package testkit

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// RequireRow requires that a page, such as gateways.md in docs, has this row in one of its tables. Tests
// of a module in internal/test call it with what they saw. The last cell of the page may be a choice,
// because what other software does may depend on chance: "this, or that".
func RequireRow(t *testing.T, page string, cells ...string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + page)
	require.NoError(t, err)
	last := len(cells) - 1
	start := "\n| " + strings.Join(cells[:last], " | ") + " | "
	_, after, _ := strings.Cut(string(text), start)
	documented, _, _ := strings.Cut(after, " |\n")
	if !slices.Contains(strings.Split(documented, ", or "), cells[last]) {
		require.Fail(t, "docs/"+page+" lacks this row", start[1:]+cells[last]+" |")
	}
}
