package engine

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestSeed_RepeatsIDs: with a seed, and then only, two services hand out the
// same ids, upload URLs and cursors.
func TestSeed_RepeatsIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := func(seed uint64) (seen []string) {
			s := newRig(t, func(cfg *Config) { cfg.Seed = seed })
			for range 3 {
				seen = append(seen, s.create("ci", ""))
			}
			seen = append(seen, s.presigned("ci", seen[0], "audio/wav"), s.do("ci", "GET /v1/meetings?limit=1", "").field("next_cursor"))
			return append(seen, s.do("ci", "GET /nowhere", "").x.RequestID)
		}
		first, again := run(7), run(7)
		assert.Equal(t, first, again)
		for _, seed := range []uint64{0, 8} {
			one, two := run(seed), run(0)
			for i := range first {
				assert.NotEqual(t, first[i], one[i], seed)
				assert.NotEqual(t, two[i], one[i], seed)
			}
		}
	})
}
