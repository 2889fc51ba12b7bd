package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const benchmarks = `goos: linux
BenchmarkScenarios/dense_1,000-8         	       1	         8.000 most/s	        39.40 requests/min	        30.79 s-notified
BenchmarkScenarios/dense_60        	       1	         2.000 most/s	         3.150 requests/min	        86.00 %-of-edge
BenchmarkFleets/one_503        	       1	         7.000 requests/min	        0 failed
BenchmarkWaits/100/dense-8      	       1	         4.000 requests/min
BenchmarkWaits/1000/one_by_one-8      	       1	         2000 requests/min
BenchmarkWaits/10/one_by_one-8      	       1	         20.0 requests/min
BenchmarkFollows/idle-8      	       1	         2.000 requests/min	        24.20 s-found
PASS
`

func TestWriteWaiting_UpdatesPageAndPicture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "waiting.md")
	require.Error(t, writeWaiting(strings.NewReader(benchmarks), dir), "there is no page")
	require.NoError(t, os.WriteFile(page, []byte("before\n<!-- scenarios -->\nold\n<!-- end of scenarios -->\n<!-- fleets -->\n<!-- end of fleets -->\n<!-- waits -->\n<!-- end of waits -->\n<!-- follows -->\n<!-- end of follows -->\nafter\n"), 0o600))
	require.Error(t, writeWaiting(strings.NewReader("PASS\n"), dir), "there are no figures")
	require.NoError(t, writeWaiting(strings.NewReader(benchmarks), dir))

	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "| dense 1,000 | 39 | 8 | 31 s | |\n| dense 60 | 3 | 2 | | 86 % |\n<!-- end of scenarios -->\n")
	require.Contains(t, string(text), "| one 503 | 7 | 0 |\n<!-- end of fleets -->\n")
	require.Contains(t, string(text), "| 1,000, one by one | 2,000 |\n| 10, one by one | 20 |\n<!-- end of waits -->\n")
	require.Contains(t, string(text), "| idle | 2 | 24 s |\n<!-- end of follows -->\nafter\n")
	require.NotContains(t, string(text), "\nold\n")

	picture, err := os.ReadFile(filepath.Join(dir, "waiting.svg"))
	require.NoError(t, err)
	require.Contains(t, string(picture), "one by one: 2,000<")
	decoder := xml.NewDecoder(strings.NewReader(string(picture)))
	for err == nil {
		_, err = decoder.Token()
	}
	require.ErrorIs(t, err, io.EOF)
}
