package test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Tests of all operations take them from testkit, which must have all of them.
func TestEveryOperation_IsInTheTestKit(t *testing.T) {
	t.Parallel()
	var ours, theirs []minutes.Operation
	for _, row := range route.Table {
		theirs = append(theirs, minutes.Operation(row.Operation))
	}
	for _, op := range testkit.Operations() {
		ours = append(ours, op.Name)
	}
	assert.ElementsMatch(t, theirs, ours, "internal/test/testkit/operations.go")
}

// Every operation works against the in-memory service, and its bodies have exactly the
// fields of the interface, in both directions.
func TestEveryOperation_MatchesTheInterface(t *testing.T) {
	t.Parallel()
	for _, job := range testkit.Jobs() {
		t.Run(job.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := job.MeetingFor(t, srv)
				client, wire := tapped(t, srv)
				require.NoError(t, job.Call(t.Context(), client, id))
				require.NotEmpty(t, wire.seen)
				requireInterface(t, wire.seen)
			})
		})
	}
}

// The service rejects a key without the operation's scope and accepts a key with that
// scope only. The error names the scope.
func TestEveryOperation_NeedsItsScope(t *testing.T) {
	t.Parallel()
	world := minutestest.DefaultWorld()
	acme := &world.Organisations[0]
	for _, scope := range route.Scopes {
		others := slices.DeleteFunc(slices.Clone(route.Scopes), func(s string) bool { return s == scope })
		acme.Keys = append(acme.Keys,
			minutestest.Key{Secret: "key_only_" + scope, IntegrationID: "int_ci", Scopes: []string{scope}},
			minutestest.Key{Secret: "key_without_" + scope, IntegrationID: "int_ci", Scopes: others})
	}
	srv := minutestest.NewServer(t, minutestest.WithWorld(world))
	for _, op := range testkit.Operations() {
		_, err := op.Call(t.Context(), srv.ClientWithKey("key_without_"+op.Scope))
		require.ErrorIs(t, err, minutes.ErrInsufficientScope, op.Name)
		require.Equal(t, op.Scope, testkit.RequireError(t, err, op).Scope)
		_, err = op.Call(t.Context(), srv.ClientWithKey("key_only_"+op.Scope))
		require.NotErrorIs(t, err, minutes.ErrInsufficientScope, op.Name)
	}
}
