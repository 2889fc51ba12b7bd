package contract_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// Tests of all operations take them from here, so none may be missing.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	for _, row := range route.Table {
		op := minutes.Operation(row.Operation)
		assert.True(t, slices.ContainsFunc(testkit.Operations(), func(o testkit.Operation) bool { return o.Name == op }), "operations.go: how %s looks on the wire", op)
		assert.True(t, slices.ContainsFunc(testkit.Jobs(), func(j testkit.Job) bool { return j.Op == op }), "fire.go: a job that calls %s", op)
	}
}
