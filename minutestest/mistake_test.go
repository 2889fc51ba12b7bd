package minutestest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
)

// The tests of internal/fake/mistake are here, because each package with tests is one more program to link.

func TestInGo_TranslatesNamesButNoValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`organisations[0].keys[1].member_id: no member "emp_x"`: `Organisations[0].Keys[1].MemberID: no member "emp_x"`,
		`world: stages.write: -1s is negative`:                  `World: Stages.Write: -1s is negative`,
		"credits: -1 is negative\nkeys[3].ip_allowlist: empty":  "Credits: -1 is negative\nKeys[3].IPAllowlist: empty",
		`rate_limit: retry_after: "x_y" is not a date`:          `RateLimit: RetryAfter: "x_y" is not a date`,
		`refuse: it is not an error of storage; match storage.put with ` +
			`refuse_upload`: `Refuse: it is not an error of storage; ` +
			`match minutes.OpUpload with RefuseUpload`,
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

func TestCatch_ReturnsMistakesOnly(t *testing.T) {
	t.Parallel()
	reason := errors.New("retry_after: missing")
	require.NoError(t, mistake.Catch(func() {}))
	m := mistake.Mistake{Method: "Inject", Err: reason}
	require.EqualError(t, m, "minutestest: Inject: RetryAfter: missing")
	require.Equal(t, reason, mistake.Catch(func() { panic(m) }), "JSON's names stay")
	assert.PanicsWithValue(t, "other", func() { _ = mistake.Catch(func() { panic("other") }) })
}
