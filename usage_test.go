package minutes_test

import (
	"testing"

	"github.com/meeting-minutes/minutes-go"
)

func TestUsageOnTheWire(t *testing.T) {
	t.Parallel()
	onTheWire(t, "usage", 1)
}

// Replies with fields absent, null or empty, each to its Go value.
func TestUsageReplyVariants(t *testing.T) {
	t.Parallel()
	makeOf(t, []variant{
		{"usage.get", 200, "usage_nulls", &minutes.Usage{}},
		{"usage.get", 200, "usage_absent", &minutes.Usage{CreditsRemaining: 1}},
	})
}
