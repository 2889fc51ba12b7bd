package minutes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
)

// Absent, null and empty fields of a response decode to their Go values.
func TestUsage_DecodesAbsentAndNullFields(t *testing.T) {
	t.Parallel()
	requireDecoded(t, []variant{
		{"usage.get", 200, "usage_nulls", &minutes.Usage{}},
		{"usage.get", 200, "usage_absent", &minutes.Usage{CreditsRemaining: 1}},
	})
}

func TestUsage_ConvertsToTimes(t *testing.T) {
	t.Parallel()
	u := minutes.Usage{TranscribeSecondsRemaining: 90, NextResetAt: "2026-12-01"}
	require.Equal(t, 90*time.Second, u.Transcription())
	at, ok := u.ResetAt()
	require.True(t, ok)
	require.Equal(t, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), at)
	for _, none := range []string{"", "2026-02-30", "tomorrow"} {
		at, ok := (&minutes.Usage{NextResetAt: none}).ResetAt()
		require.False(t, ok, none)
		require.True(t, at.IsZero(), none)
	}
}
