package failure

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMeans_HasARowForEachKind(t *testing.T) {
	t.Parallel()
	assert.Len(t, Means, int(Other)+1)
	assert.Zero(t, Means[None])
	for kind, row := range Means[None+1:] {
		assert.NotZero(t, row.EndsWait, "kind %d", kind)
		assert.False(t, row.Retryable && row.KeyRejected, "kind %d: a rejected key is not temporary", kind)
	}
}
