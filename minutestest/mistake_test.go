package minutestest_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The tests of internal/fake/mistake are here, because each package with tests is one more program to link.

// What Go calls a field follows from its name in JSON.
func TestField_IsNamedAsInGo(t *testing.T) {
	t.Parallel()
	for _, of := range []reflect.Type{
		reflect.TypeFor[minutestest.World](),
		reflect.TypeFor[minutestest.Script](),
		reflect.TypeFor[minutestest.Match](),
		reflect.TypeFor[minutestest.Fault]().Field(0).Type, // its JSON
	} {
		fieldsNamedAlike(t, of)
	}
}

// fieldsNamedAlike checks the fields of a struct, and of those in it.
func fieldsNamedAlike(t *testing.T, of reflect.Type) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return
	}
	for f := range of.Fields() {
		inJSON, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if inJSON != "" && inJSON != "-" {
			assert.Equal(t, mistake.Name{JSON: inJSON, Go: f.Name}, mistake.Field(inJSON))
			fieldsNamedAlike(t, f.Type)
		}
	}
}

// What Go calls an operation follows from its name in JSON.
func TestOperation_IsNamedAsInGo(t *testing.T) {
	t.Parallel()
	declared, err := os.ReadFile("../operation.go")
	require.NoError(t, err)
	all := []string{string(minutes.OpUpload)}
	for _, row := range route.Table {
		all = append(all, row.Operation)
	}
	for _, op := range all {
		_, constant, _ := strings.Cut(mistake.Operation(op).Go, ".")
		assert.Regexp(t, `\s`+constant+` +Operation = "`+regexp.QuoteMeta(op)+`"`, string(declared))
	}
}

// A name differs in JSON and in Go, in an error, in those that have it, and among others. What is not a name
// stays, whatever it looks like.
func TestMistake_HasTheNamesOfItsReader(t *testing.T) {
	t.Parallel()
	broken := mistake.Name{JSON: "break_json", Go: "BreakJSON"}
	err := mistake.Errorf("%s: %s", broken, mistake.At("member_id", "no member_id %q; use %s", "emp_x", broken))
	both := mistake.Join(err, mistake.At("id", "%d", 7), errors.New("plain_text"))
	require.EqualError(t, both, "break_json: member_id: no member_id \"emp_x\"; use break_json\nid: 7\nplain_text")
	require.EqualError(t, mistake.Mistake{Method: "M", Err: both},
		"minutestest: M: BreakJSON: MemberID: no member_id \"emp_x\"; use BreakJSON\nID: 7\nplain_text")
	require.NoError(t, mistake.Join())
}

func TestCatch_ReturnsMistakesOnly(t *testing.T) {
	t.Parallel()
	reason := mistake.At("retry_after", "missing")
	require.NoError(t, mistake.Catch(func() {}))
	m := mistake.Mistake{Method: "Inject", Err: reason}
	require.EqualError(t, m, "minutestest: Inject: RetryAfter: missing")
	require.Equal(t, reason, mistake.Catch(func() { panic(m) }), "JSON's names stay")
	assert.PanicsWithValue(t, "other", func() { _ = mistake.Catch(func() { panic("other") }) })
}

// Each kind of fault has its function, and the texts name it.
func TestFaultKinds_AreDocumented(t *testing.T) {
	t.Parallel()
	text := func(path string) string {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(content)
	}
	var f minutestest.Fault
	_, inJSON, _ := strings.Cut(f.UnmarshalJSON([]byte(`{"kind":"none"}`)).Error(), "there are ")
	for _, kind := range strings.Split(inJSON, ", ") {
		assert.Contains(t, text("fault.go"), kind, "the documentation of Fault")
		assert.Contains(t, text("../cmd/minutes-fake/openapi.json"), `"`+kind+`"`)
		assert.Contains(t, text("../cmd/minutes-fake/examples/situations.http"), kind)
	}
	defer func() {
		_, inGo, _ := strings.Cut(fmt.Sprint(recover()), "there are ")
		for _, kind := range strings.Split(inGo, ", ") {
			assert.Contains(t, text("fault.go"), "\nfunc "+kind+"(")
			assert.Contains(t, text("../docs/testing.md"), kind)
		}
		assert.Greater(t, len(inGo), len(inJSON))
	}()
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{}, f)
}
