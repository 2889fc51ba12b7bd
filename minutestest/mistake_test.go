package minutestest_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The tests of internal/fake/mistake are here, because each package with tests is one more program to link.

func TestInGo_TranslatesNamesButNoValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`organisations[0].keys[1].member_id: no member "emp_x"`: `Organisations[0].Keys[1].MemberID: no member "emp_x"`,
		`world: stages.write: -1s is negative`:                  `World: Stages.Write: -1s is negative`,
		"credits: -1 is negative\nkeys[3].ip_allowlist: empty":  "Credits: -1 is negative\nKeys[3].IPAllowlist: empty",
		`RateLimit: retry_after: "x_y" is not a date`:           `RateLimit: RetryAfter: "x_y" is not a date`,
		`BreakJSON: it breaks no storage.put`:                   `BreakJSON: it breaks no minutes.OpUpload`,
		`operation: "usage.got" is not one of usage.get, meetings.upload_url`: `Operation: "usage.got" is not one of ` +
			`minutes.OpUsageGet, minutes.OpMeetingsUploadURL`,
		`there is no meeting "mtg_1": none yet`:      `there is no meeting "mtg_1": none yet`,
		`give either a member_id or an id`:           `give either a MemberID or an id`,
		`meeting mtg_abc is minutes_ready already`:   `meeting mtg_abc is minutes_ready already`,
		`operation: meetings.list asks for no title`: `Operation: minutes.OpMeetingsList asks for no title`,
	} {
		assert.Equal(t, want, mistake.InGo(text))
	}
}

// A name differs in JSON and in Go, in an error and in those that have it.
func TestMistake_HasTheNamesOfItsReader(t *testing.T) {
	t.Parallel()
	broken := mistake.Name{JSON: "break_json", Go: "BreakJSON"}
	err := mistake.Errorf("%s: body: use %s", broken, broken)
	require.EqualError(t, err, "break_json: body: use break_json")
	inGo := mistake.Mistake{Method: "Inject", Err: err}
	require.EqualError(t, inGo, "minutestest: Inject: BreakJSON: Body: use BreakJSON")
	outer := mistake.Errorf("%s: %s", broken, mistake.Errorf("%d of %s", 7, broken))
	require.EqualError(t, outer, "break_json: 7 of break_json")
	require.EqualError(t, mistake.Mistake{Method: "M", Err: outer}, "minutestest: M: BreakJSON: 7 of BreakJSON")
}

func TestCatch_ReturnsMistakesOnly(t *testing.T) {
	t.Parallel()
	reason := errors.New("retry_after: missing")
	require.NoError(t, mistake.Catch(func() {}))
	m := mistake.Mistake{Method: "Inject", Err: reason}
	require.EqualError(t, m, "minutestest: Inject: RetryAfter: missing")
	require.Equal(t, reason, mistake.Catch(func() { panic(m) }), "JSON's names stay")
	assert.PanicsWithValue(t, "other", func() { _ = mistake.Catch(func() { panic("other") }) })
}

// Each kind of fault has its function, and stands in the texts.
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
		assert.Contains(t, text("../cmd/minutes-fake/README.md"), kind)
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
