package testbase

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Long reports whether tests are to be thorough, whatever it takes: it is set
// by MINUTES_LONG=1 in the environment, as .ci/run does in a step of its own.
// Without it they check the same with less: fewer seeds, smaller crowds.
func Long() bool { return os.Getenv("MINUTES_LONG") != "" }

// Many is how many of something a test takes: all of them where it is to be
// thorough, else a few.
func Many(all, few int) int {
	if Long() {
		return all
	}
	return few
}

// Main runs tests that make much and keep little: that is collected a quarter as
// often. Benchmarks run as programs do.
func Main(m *testing.M) {
	flag.Parse()
	if os.Getenv("GOGC") == "" && flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
