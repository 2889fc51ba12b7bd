package minutes_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The package documentation fits on three screens.
func TestPackageDoc_FitsThreeScreens(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "doc", ".").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Less(t, strings.Count(string(out), "\n"), 170)
}
