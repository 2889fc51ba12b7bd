package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// checks are all there are.
var checks = slices.Concat(readingChecks, writingChecks, recordingChecks, disposableChecks)

// TestConformance runs the checks that the target allows. See the package's
// documentation for what to set.
func TestConformance(t *testing.T) {
	tg := targetOf(t)
	if tg.memory != nil {
		tg.furnish(t)
	}
	found := &report{}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if !tg.allows(c.needs) {
				t.Skip("this needs more than the target allows")
			}
			skipped := tg.perform(t.Context(), &c, found)
			for _, d := range found.of(c.name) {
				if d.decision == 0 || tg.memory != nil {
					t.Error(d)
				} else {
					t.Log(d)
				}
			}
			if skipped != "" {
				require.Nil(t, tg.memory, "nothing is missing in memory, but: %s", skipped)
				t.Skip(skipped)
			}
		})
	}
	t.Log(found.summary())
}

// furnish makes meetings that the checks which only read can look at.
func (tg *target) furnish(t *testing.T) {
	t.Helper()
	setup := &report{}
	skipped := tg.perform(t.Context(), &check{name: "furnish", do: func(r *run) {
		for range 3 {
			r.create("")
		}
		m, _ := r.create("")
		target := r.send("POST /v1/meetings/"+m.text("id")+"/upload-url", `{"content_type":"audio/wav"}`)
		r.put(target.text("upload_url"), "audio/wav", tg.audio)
		r.await(m.text("id"))
	}}, setup)
	require.Empty(t, skipped)
	require.Empty(t, setup.list)
}
