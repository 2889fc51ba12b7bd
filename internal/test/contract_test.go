package test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Tests of all operations find them in testkit, which must have all of them.
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

// Every operation works against the fake. The root tests the requests, and the module
// internal/test/openapi the fields of the fake's responses.
func TestEveryOperation_GetsItsResponseFromTheFake(t *testing.T) {
	t.Parallel()
	for _, job := range testkit.Jobs() {
		t.Run(job.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				id := job.MeetingFor(t, srv)
				var resp minutes.Response
				require.NoError(t, job.Call(minutes.ContextWithResponse(t.Context(), &resp), testkit.Client(srv), id))
				if job.Upload() {
					return
				}
				op := testkit.OperationNamed(t, job.Op)
				require.Equal(t, op.Status, resp.StatusCode)
				if op.Object == "" {
					require.Empty(t, resp.Body)
				} else {
					require.Contains(t, resp.Header.Get("Content-Type"), "application/json")
				}
			})
		})
	}
}

// The service rejects a key without the operation's scope and accepts a key with that scope only. The
// error names the scope.
func TestEveryOperation_NeedsItsScope(t *testing.T) {
	t.Parallel()
	world := minutestest.DefaultWorld()
	acme := &world.Organisations[0]
	var scopes []minutes.Scope
	for _, row := range route.Table {
		scopes = append(scopes, minutes.Scope(row.Scope))
	}
	slices.Sort(scopes)
	scopes = slices.Compact(scopes)
	for _, scope := range scopes {
		others := slices.DeleteFunc(slices.Clone(scopes), func(s minutes.Scope) bool { return s == scope })
		only := minutestest.Key{
			Secret: "key_only_" + string(scope), IntegrationID: "int_ci", Scopes: []minutes.Scope{scope},
		}
		without := minutestest.Key{
			Secret: "key_without_" + string(scope), IntegrationID: "int_ci", Scopes: others,
		}
		acme.Keys = append(acme.Keys, only, without)
	}
	srv := minutestest.NewServer(t, minutestest.WithWorld(world))
	for _, op := range testkit.Operations() {
		_, err := op.Call(t.Context(), srv.ClientWithKey("key_without_"+op.Scope))
		require.ErrorIs(t, err, minutes.ErrInsufficientScope, op.Name)
		require.Equal(t, minutes.Scope(op.Scope), testkit.RequireError(t, err, op).Scope)
		_, err = op.Call(t.Context(), srv.ClientWithKey("key_only_"+op.Scope))
		require.NotErrorIs(t, err, minutes.ErrInsufficientScope, op.Name)
	}
}

// Each operation says whether it is safe to repeat. The tests of internal/rest show how the Client uses that.
func TestEveryOperation_SaysWhetherItIsSafeToRepeat(t *testing.T) {
	t.Parallel()
	for _, job := range testkit.Jobs() {
		var sent *rest.Request
		c, _ := testkit.Responding(t, func(req *http.Request) (*http.Response, error) {
			sent = rest.AttemptOf(req.Context()).Request
			return testkit.Canned(404, "")(req)
		})
		require.Error(t, job.Call(t.Context(), c, "mtg_1"))
		require.Equal(t, job.Repeats, sent.Repeatable, job.Name)
	}
}

// Any response results in a value or in an error that says what happened.
//
//	go test -run '^$' -fuzz FuzzResponse -fuzztime 10m ./internal/test
func FuzzResponse(f *testing.F) {
	for _, kind := range []string{"MeetingPage", "Envelope"} {
		for _, body := range testkit.Responses[kind] {
			f.Add(200, body, "application/json")
			f.Add(404, body, "application/json")
		}
	}
	f.Add(200, `{"meetings":[null]}`, "")
	f.Add(502, "<html>", "text/html")
	f.Add(302, "", "")
	f.Add(400, `{"error":{"code":"A\u0000B","message":"\ud800","details":{"a":[{}]}}}`, "\x00")
	f.Fuzz(func(t *testing.T, status int, body, contentType string) {
		op := testkit.OperationNamed(t, "meetings.list")
		client, _ := testkit.Responding(t, testkit.Canned(status, body, "Content-Type", contentType))
		got, err := op.Call(t.Context(), client)
		if err != nil {
			testkit.RequireNothing(t, got)
			require.Equal(t, status, testkit.RequireError(t, err, op).StatusCode)
			return
		}
		require.Equal(t, http.StatusOK/100, status/100)
	})
}
