package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	t.Setenv("MINUTES_BASE_URL", "")
	t.Setenv("MINUTES_API_KEY", "")
	t.Setenv("TMPDIR", t.TempDir())

	for name, args := range map[string][]string{
		"unchanged":    nil,
		"many at once": {"-uploads", "100", "-format", "html"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			began := time.Now()
			require.NoError(t, run(t.Context(), args, &stdout, &stderr))
			assert.Less(t, time.Since(began), 25*time.Second, "nobody waits for a second look")
			assert.Contains(t, stderr.String(), "Offline")
			assert.Contains(t, stderr.String(), "is the same recording as")
			assert.Contains(t, stdout.String(), "12 recordings in ")
			assert.Contains(t, stdout.String(), "11 written")
		})
	}

	t.Run("arguments", func(t *testing.T) {
		for want, args := range map[string][]string{
			"neither markdown nor html": {"-format", "pdf"},
			"at least 1":                {"-uploads", "0"},
			"is not a flag":             {"recordings"},
		} {
			assert.ErrorContains(t, run(t.Context(), args, t.Output(), t.Output()), want)
		}
		t.Setenv("MINUTES_BASE_URL", "https://minutes.example")
		assert.ErrorContains(t, run(t.Context(), nil, t.Output(), t.Output()), "MINUTES_API_KEY")
		t.Setenv("MINUTES_API_KEY", "key")
		assert.ErrorContains(t, run(t.Context(), nil, t.Output(), t.Output()), "-in names no folder")
	})
}
