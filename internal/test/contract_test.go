package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
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
			if !strings.Contains(err.Error(), "in some elements") { // then got has the others
				testkit.RequireNothing(t, got)
			}
			require.Equal(t, status, testkit.RequireError(t, err, op).StatusCode)
			return
		}
		require.Equal(t, http.StatusOK/100, status/100)
	})
}

// The fixtures show every field of every type of response, and both documents name each field.
func TestEveryField_IsShownAndDocumented(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{} // whether any fixture sets a field, by its type and its name
	for _, op := range testkit.Operations() {
		noteFields(reflect.ValueOf(op.Want), shown)
	}
	reference, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	document, err := os.ReadFile("../../docs/openapi.yaml")
	require.NoError(t, err)
	for field, isSet := range shown {
		_, name, _ := strings.Cut(field, " ")
		assert.True(t, isSet, "no fixture in internal/test/testkit sets %s", field)
		assert.Contains(t, string(reference), "`"+name+"`", "docs/api.md")
		assert.Regexp(t, "[ {]"+name+":", string(document), "docs/openapi.yaml")
	}
	assert.Greater(t, len(shown), 30)
}

// noteFields notes for each field of JSON of v, and of what v holds, whether it is set.
func noteFields(v reflect.Value, set map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			noteFields(v.Elem(), set)
		}
	case reflect.Slice:
		for i := range v.Len() {
			noteFields(v.Index(i), set)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" {
				key := v.Type().Name() + " " + name
				set[key] = set[key] || !value.IsZero()
			}
			noteFields(value, set)
		}
	}
}

// The texts about operations have each of them.
func TestEveryOperation_IsDocumented(t *testing.T) {
	t.Parallel()
	text := func(path string) string {
		content, err := os.ReadFile("../../" + path)
		require.NoError(t, err)
		return string(content)
	}
	reference := text("docs/api.md")
	document := text("docs/openapi.yaml")
	control := text("cmd/minutes-fake/openapi.json")
	for _, row := range route.Table {
		line := fmt.Sprintf(" | `%s` | %s %s | ", row.Operation, row.Method, row.Path)
		assert.Contains(t, reference, line, "docs/api.md")
		_, ofPath, _ := strings.Cut(document, "\n  "+row.Path+":\n")
		ofPath, _, _ = strings.Cut(ofPath, "\n  /")
		assert.Contains(t, "\n"+ofPath, "\n    "+strings.ToLower(row.Method)+":\n", "docs/openapi.yaml: %s", row.Path)
		assert.Contains(t, control, `"`+row.Operation+`",`, "the operations in cmd/minutes-fake/openapi.json")
	}
}

// The fake and the texts have each code of the client.
func TestEveryErrorCode_IsKnown(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../errors.go", nil, 0)
	require.NoError(t, err)
	var codes []minutes.ErrorCode
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isValue := n.(*ast.ValueSpec)
		if !isValue || spec.Type == nil || fmt.Sprint(spec.Type) != "ErrorCode" {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		if code != string(minutes.ErrRateLimited) { // which is the client's own
			codes = append(codes, minutes.ErrorCode(code))
		}
		return true
	})
	for _, code := range codes {
		status := engine.StatusOf(code)
		assert.NotZero(t, status, "internal/fake/engine/wire.go: %s", code)
		for path, want := range map[string]string{
			"docs/api.md":                   fmt.Sprintf("| %d | `%s` |", status, code),
			"docs/openapi.yaml":             " " + string(code) + ",",
			"cmd/minutes-fake/openapi.json": `"` + string(code) + `"`,
			"errors_test.go":                `"` + string(code) + `"`,
		} {
			content, err := os.ReadFile("../../" + path)
			require.NoError(t, err)
			assert.Contains(t, string(content), want, path)
		}
	}
	assert.Greater(t, len(codes), 20)
}
