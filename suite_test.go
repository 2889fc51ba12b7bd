package minutes_test

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// envDebug has the Clients of the suite log to stderr at debug level.
const envDebug = "MINUTES_TEST_DEBUG"

var suiteOptions = func() []minutes.Option {
	if os.Getenv(envDebug) == "" {
		return nil
	}
	return []minutes.Option{minutes.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))}
}()

// clientOf is srv.Client, and newClient is minutes.New, for most of the suite.
func clientOf(srv *minutestest.Server, opts ...minutes.Option) *minutes.Client {
	return srv.Client(append(suiteOptions[:len(suiteOptions):len(suiteOptions)], opts...)...)
}

func newClient(baseURL, key string, opts ...minutes.Option) (*minutes.Client, error) {
	return minutes.New(baseURL, key, append(suiteOptions[:len(suiteOptions):len(suiteOptions)], opts...)...)
}

// All that the suite prints at debug level, results and names aside, holds no
// key and no signature.
func TestOutputHoldsNoSecret(t *testing.T) {
	t.Parallel()
	if testing.Short() || underRace {
		t.Skip("runs the suite once more")
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.short")
	cmd.Env = append(os.Environ(), envDebug+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out[max(0, len(out)-10_000):]))
	secret := regexp.MustCompile(`key_|mk_live_|Bearer|(?i:Signature|Credential)(=|%3D)[^(]|` + secretSig + `|` + secretID)
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
	assert.Greater(t, lines, 10_000, "logged tries")
}
