package test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
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
		require.Equal(t, minutes.Scope(op.Scope), testkit.RequireError(t, err, op).Scope)
		_, err = op.Call(t.Context(), srv.ClientWithKey("key_only_"+op.Scope))
		require.NotErrorIs(t, err, minutes.ErrInsufficientScope, op.Name)
	}
}

// An exchange is a request and its response as a transport saw them.
type exchange struct {
	method, path  string
	body          string
	status        int
	contentType   string
	reply         string
	storageUpload bool
}

// A tap is a transport that records its exchanges.
type tap struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []exchange
}

func (p *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	e := exchange{method: req.Method, path: req.URL.Path, storageUpload: req.Header.Get("Authorization") == ""}
	if req.Body != nil && !e.storageUpload {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		e.body = string(body)
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := p.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(reply))
	e.status, e.contentType, e.reply = resp.StatusCode, resp.Header.Get("Content-Type"), string(reply)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, e)
	return resp, nil
}

// tapped returns a Client of the service and a tap that records its exchanges.
func tapped(t testing.TB, srv *minutestest.Server) (*minutes.Client, *tap) {
	t.Helper()
	p := &tap{next: srv.HTTPClient().Transport}
	return testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: p})), p
}

// requireInterface compares every exchange with the forms of the interface.
func requireInterface(t *testing.T, seen []exchange) {
	t.Helper()
	for _, e := range seen {
		if e.storageUpload {
			require.Equal(t, "PUT", e.method)
			continue
		}
		op, ok := operationOf(e)
		require.True(t, ok, "%s %s is not in the interface", e.method, e.path)
		if op.Form == "" {
			require.Empty(t, e.body, op.Name)
		} else {
			testkit.RequireForm(t, op.Form, []byte(e.body))
		}
		if e.status/100 != 2 {
			require.Contains(t, e.contentType, "application/json")
			testkit.RequireForm(t, "Envelope", []byte(e.reply))
			continue
		}
		if op.Name != "meetings.create" || e.status != 200 {
			require.Equal(t, op.Status, e.status, op.Name)
		}
		if op.ResponseForm == "" {
			require.Empty(t, e.reply, op.Name)
		} else {
			require.Contains(t, e.contentType, "application/json")
			testkit.RequireForm(t, op.ResponseForm, []byte(e.reply))
		}
	}
}

// operationOf returns an exchange's operation, from the table of the tests only.
func operationOf(e exchange) (testkit.Operation, bool) {
	for _, op := range testkit.Operations() {
		before, after, _ := strings.Cut(op.Path, testkit.MeetingID)
		if e.method != op.Method || !strings.HasPrefix(e.path, before) {
			continue
		}
		id, ok := strings.CutSuffix(e.path[len(before):], after)
		if ok && (before == op.Path && id == "" || before != op.Path && id != "" && !strings.Contains(id, "/")) {
			return op, true
		}
	}
	return testkit.Operation{}, false
}
