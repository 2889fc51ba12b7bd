package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The program reports bad folders before any request.
func TestFolders_RejectsInvalid(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, s *settings)
		want   string
	}{
		"no recordings": {func(t *testing.T, s *settings) { s.in = t.TempDir() }, "there are no recordings in"},
		"in is missing": {func(_ *testing.T, s *settings) { s.in += "x" }, "no such file"},
		"the same":      {func(_ *testing.T, s *settings) { s.out = s.in }, "need a folder of their own"},
		"out is a file": {func(t *testing.T, s *settings) { require.NoError(t, os.WriteFile(s.out, nil, 0o644)) }, "not a directory"},
		"out below a file": {func(t *testing.T, s *settings) {
			require.NoError(t, os.WriteFile(s.out, nil, 0o644))
			s.out = filepath.Join(s.out, "minutes")
		}, "not a directory"},
		"out is read-only": {func(t *testing.T, s *settings) {
			if os.Geteuid() == 0 {
				t.Skip("root may write anywhere")
			}
			require.NoError(t, os.Mkdir(s.out, 0o555))
		}, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			s := recordings(t, 2)
			test.change(t, &s)
			_, err := start(t.Context(), srv, s)
			assert.ErrorContains(t, err, test.want)
			assert.Empty(t, srv.Requests())
		})
	}
}

// If a file cannot be put in place, one recording fails, and the next run
// fetches the minutes without another upload.
func TestBatch_FetchesAgainAfterFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, realistic(3))
		s := recordings(t, 3)
		inTheWay := filepath.Join(s.out, "recording 01.wav.md")
		require.NoError(t, os.MkdirAll(filepath.Join(inTheWay, "full"), 0o755))
		summary, err := start(t.Context(), srv, s)
		require.ErrorIs(t, err, errFailures)
		assert.Contains(t, summary, "2 written")
		assert.Contains(t, summary, "recording 01.wav: rename")
		assert.Contains(t, summary, "see to the file or its folder")
		assert.Len(t, names(t, s.out), 3, "nothing is left lying about")

		require.NoError(t, os.RemoveAll(inTheWay))
		summary, err = start(t.Context(), srv, s)
		require.NoError(t, err, summary)
		assert.Equal(t, 3, uploaded(srv))
		info, err := os.Stat(inTheWay)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o644), info.Mode())
	})
}

func TestTitle(t *testing.T) {
	for name, want := range map[string]string{
		"Weekly.mp3":                      "Weekly",
		"weekly_2026-11-20.final.wav":     "weekly 2026-11-20.final",
		"a\nb\t c.wav":                    "a b c",
		"bad \xff name.wav":               "bad ? name",
		strings.Repeat("é", 301) + ".mp3": strings.Repeat("é", 300),
	} {
		assert.Equal(t, want, recording{name: name}.title(true))
	}
	assert.Equal(t, "Meeting of 0001-01-01", recording{name: "x.wav"}.title(false))
}
