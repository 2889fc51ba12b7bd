package minutes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"0": 0, "1": time.Second, "120": 2 * time.Minute, "007": 7 * time.Second,
		"2147483647": (1<<31 - 1) * time.Second, "2147483648": 1 << 31 * time.Second,
		"9223372036854775807": 1 << 31 * time.Second, "99999999999999999999999": 1 << 31 * time.Second,
		"Fri, 20 Nov 2026 12:00:30 GMT":    30 * time.Second,
		"Friday, 20-Nov-26 12:00:30 GMT":   30 * time.Second,
		"Fri Nov 20 12:00:30 2026":         30 * time.Second,
		"Fri, 20 Nov 2026 11:00:00 GMT":    0,
		"Fri, 20 Nov 9999 12:00:00 GMT":    1<<63 - 1,
		"Thu, 01 Jan 1970 00:00:00 GMT":    0,
		"":                                 -1,
		"-1":                               -1,
		"+1":                               -1,
		"1.5":                              -1,
		"1e3":                              -1,
		"soon":                             -1,
		"1 2":                              -1,
		"0x10":                             -1,
		"1_000":                            -1,
		"2026-11-20T12:00:30Z":             -1,
		"Fri, 20 Nov 2026 12:00:30 +01:00": -1,
	} {
		got, ok := parseRetryAfter(value, now)
		require.Equal(t, want >= 0, ok, "%q", value)
		require.Equal(t, max(0, want), got, "%q", value)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "0", "7", "-1", "9223372036854775807", "Fri, 20 Nov 2026 12:00:30 GMT", "Friday, 20-Nov-26 12:00:30 GMT"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		d, ok := parseRetryAfter(value, now)
		if d < 0 || !ok && d != 0 {
			t.Fatalf("%q: %v, %v", value, d, ok)
		}
	})
}

// The wait before a repeat keeps to its bounds for every setting.
func FuzzBackoff(f *testing.F) {
	f.Add(int64(0), int64(0), 1)
	f.Add(int64(1), int64(1<<63-1), 70)
	f.Add(int64(5e8), int64(15e9), 3)
	f.Fuzz(func(t *testing.T, lo, hi int64, n int) {
		if lo < 0 || hi < lo || n < 1 || n > 100 {
			return
		}
		r := retries{n, time.Duration(lo), time.Duration(hi)}
		if d := r.backoff(n); d < r.waitMin || d > r.waitMax {
			t.Fatalf("%v", d)
		}
	})
}
