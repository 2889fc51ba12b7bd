// Package testbase holds what tests of any package share: transports and readers made
// from functions, connection errors, and how thorough tests are. It imports nothing
// of this module, so a package's own tests build little more than the package.
package testbase

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Long reports whether tests should be thorough. MINUTES_LONG=1 in the environment
// requests it; .ci/run has a step for it. A quick run checks the same with fewer
// seeds and smaller crowds.
func Long() bool { return os.Getenv("MINUTES_LONG") != "" }

// Many returns all in a long run, and few otherwise.
func Many(all, few int) int {
	if Long() {
		return all
	}
	return few
}

// Main runs tests that allocate much and keep little, with a quarter of the usual
// garbage collections. Benchmarks run with the usual settings.
func Main(m *testing.M) {
	flag.Parse()
	if os.Getenv("GOGC") == "" && flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
