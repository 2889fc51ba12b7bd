package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	t.Setenv("MINUTES_BASE_URL", "")
	t.Setenv("MINUTES_API_KEY", "")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"unchanged":               {nil, []string{"# Stand-up", "Ada Lovelace, Grace Hopper", "**Duration:** 0:00:08", "Agreed, we drop it"}},
		"own recording and flags": {[]string{"-audio", "recording/standup.mp3", "-title", "Weekly", "-format", "html"}, []string{"<h1>Weekly</h1>", "0:00:08"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			synctest.Test(t, func(t *testing.T) { // in which the seconds of the service take no time
				require.NoError(t, run(t.Context(), test.args, &stdout, &stderr))
			})
			for _, want := range test.want {
				assert.Contains(t, stdout.String(), want)
			}
			for _, want := range []string{"Uploading: 122200 of 122200", "Status: transcribing", "Status: minutes_ready", "8s"} {
				assert.Contains(t, stderr.String(), want)
			}
		})
	}
}
