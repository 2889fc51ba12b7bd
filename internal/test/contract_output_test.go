package test

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// The output of the Client's tests at debug level contains no key and no signature,
// apart from results and test names.
func TestOutput_HasNoSecret(t *testing.T) {
	t.Parallel()
	if !testbase.Long() || testbase.UnderRace {
		t.Skip("runs most tests once more")
	}
	const module = "github.com/meeting-minutes/minutes-go"
	cmd := exec.Command("go", "test", "-v", "-count=1", module, module+"/internal/test")
	cmd.Env = append(os.Environ(), "MINUTES_LONG=", testkit.EnvDebug+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out[max(0, len(out)-10_000):]))
	secret := regexp.MustCompile(`key_|mk_live_|Bearer|(?i:Signature|Credential)(=|%3D)[^(]|` + testkit.SecretSig + `|` + testkit.SecretID)
	names := regexp.MustCompile(`^(=== |\s*--- )`)
	lines := 0
	for line := range bytes.Lines(out) {
		if !names.Match(line) {
			assert.NotRegexp(t, secret, string(line))
		}
		if bytes.HasPrefix(line, []byte("time=")) {
			lines++
		}
	}
	assert.Greater(t, lines, 10_000, "logged attempts")
}
