package minutes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
)

// Section 3: which states are failures, and which are final.
func TestStatus_FailedAndFinal(t *testing.T) {
	t.Parallel()
	for status, want := range map[minutes.Status]struct{ failed, final bool }{
		"created":              {false, false},
		"audio_uploaded":       {false, false},
		"transcribing":         {false, false},
		"transcribed":          {false, false},
		"generating_minutes":   {false, false},
		"minutes_ready":        {false, true},
		"transcription_failed": {true, true},
		"minutes_failed":       {true, true},
		"transcribe_blocked":   {true, true},
		"audio_rejected":       {true, true},
		"being_translated":     {false, false},
		"Minutes_Ready":        {false, false},
		"":                     {false, false},
	} {
		require.Equal(t, want.failed, status.Failed(), status)
		require.Equal(t, want.final, status.Final(), status)
	}
}
