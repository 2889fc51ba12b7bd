package minutestest_test

import (
	"encoding/json"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// everything is a World in which no field is left out.
const everything = `
{"stages":{"prepare":"20ms","transcribe":"1m30s","write":"50ms"},
 "organisations":[{"id":"org_acme","name":"Acme","credits":100,"transcribe_seconds":36000,"next_reset_at":"2026-12-01",
  "max_members":1000,"max_terms":500,"suspended":true,"expired":true,"api_disabled":true,"personal_keys_disabled":true,
  "members":[{"id":"emp_ada","name":"Ada Lovelace","email":"ada@acme.example","role":"Engineer",
    "description":"Thinks","status":"invited","admin":true}],
  "integrations":[{"id":"int_ci","name":"CI","default_visibility":"private","inactive":true}],
  "projects":[{"id":"prj_apollo","name":"Apollo","archived":true}],
  "templates":[{"id":"tpl_standard","name":"Standard minutes","source":"service","description":"All of it",
    "is_default":true,"version":1}],
  "vocabulary":[{"term":"Kubernetes","variants":[{"text":"cooper netties","source":"auto"}]}],
  "keys":[{"secret":"key_ada","member_id":"emp_ada","scopes":["meetings:read"],
           "ip_allowlist":["10.0.0.0/8","192.0.2.7","2001:db8::1"],"expires_at":1,"revoked":true},
          {"secret":"key_ci","integration_id":"int_ci"}]}]}`

func TestLoadWorld(t *testing.T) {
	t.Parallel()
	w, err := minutestest.LoadWorld(strings.NewReader(everything))
	require.NoError(t, err)
	assert.Equal(t, minutestest.Stages{Prepare: 20 * time.Millisecond, Transcribe: 90 * time.Second,
		Write: 50 * time.Millisecond}, w.Stages)
	o := w.Organisations[0]
	assert.Equal(t, 100, *o.Credits)
	assert.Equal(t, minutes.MemberStatusInvited, o.Member("emp_ada").Status)
	assert.Equal(t, []minutes.Scope{minutes.ScopeMeetingsRead}, o.Key("key_ada").Scopes)
	assert.Nil(t, o.Key("key_ci").Scopes, "absent scopes mean all")

	text, err := json.Marshal(w)
	require.NoError(t, err)
	again, err := minutestest.LoadWorld(strings.NewReader(string(text)))
	require.NoError(t, err)
	assert.Equal(t, w, again)
	assert.JSONEq(t, strings.ReplaceAll(everything, "null", ""), string(text))
}

func TestDefaultWorld(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(minutestest.DefaultWorld())
	require.NoError(t, err)
	w, err := minutestest.LoadWorld(strings.NewReader(string(text)))
	require.NoError(t, err)
	acme := w.Organisations[0]
	assert.Equal(t, "org_acme", acme.ID)
	assert.Greater(t, min(*acme.Credits, *acme.TranscribeSeconds), 1_000_000, "no suite uses it up")

	statuses := map[minutes.MemberStatus]bool{}
	for _, m := range w.Organisations[0].Members {
		statuses[m.Status] = true
	}
	assert.Len(t, statuses, 4, "a member in each status")
	assert.True(t, acme.Project("prj_mercury").Archived)
}

// A test that cannot run in a bubble does not wait for the second poll, which comes thirty real
// seconds later.
func TestDefaultWorld_HasMinutesAtTheFirstPoll(t *testing.T) {
	t.Parallel()
	srv := minutestest.NewServer(t)
	recording := minutes.FromReader(strings.NewReader("any bytes will do"), "audio/mpeg")
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"}
	r, err := srv.Client().Meetings.Process(t.Context(), params, recording, nil)
	require.NoError(t, err)
	require.NotEmpty(t, r.Minutes.Content)
	assert.Len(t, srv.Requests(minutes.OpMeetingsGet), 1)
}

// Outside a bubble, too, a test can hold a meeting. After Release, a Get wakes the wait.
func TestRelease_NeedsOneGet(t *testing.T) {
	t.Parallel()
	testbase.Timeout(t, time.Minute)
	srv := minutestest.NewServer(t)
	srv.Script(minutestest.Script{Title: "Weekly", Hold: minutes.StatusTranscribing})
	id := srv.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Weekly", Status: minutes.StatusAudioUploaded})[0]
	client := srv.Client()
	held := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		_, err := client.Meetings.Wait(t.Context(), id, &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) {
			if m.Status == minutes.StatusTranscribing {
				close(held)
			}
		}})
		ended <- err
	}()
	<-held
	require.True(t, srv.Release(id))
	_, err := client.Meetings.Get(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, <-ended)
	assert.Len(t, srv.Requests(minutes.OpMeetingsGet), 2)
}

const small = `{"organisations":[{"id":"o"}]}`

// Editors on Windows begin a file with a byte order mark.
func TestLoadWorld_SkipsByteOrderMark(t *testing.T) {
	t.Parallel()
	w, err := minutestest.LoadWorld(strings.NewReader("\ufeff" + small))
	require.NoError(t, err)
	assert.Equal(t, "o", w.Organisations[0].ID)
	_, err = minutestest.LoadWorld(strings.NewReader("\ufeff{"))
	require.EqualError(t, err, "world: the JSON value is not complete")
}

func TestLoadWorld_NamesPathOfMistake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ world, want string }{
		"nothing": {``, `world: the JSON value is not complete`},
		"not JSON": {"{\n\"organisations\":x}",
			`world: line 2: invalid character 'x' looking for beginning of value`},
		"two values":       {`{} {}`, `world: there is more after the JSON value`},
		"garbage after it": {small + "\n}", `world: there is more after the JSON value`},
		"a list":           {`[]`, `world: an object expected`},
		"null":             {`null`, `world: organisations: at least one expected`},
		"no organisation": {`{"stages":{"write":"1s"},"organisations":[]}`,
			`world: organisations: at least one expected`},
		"a decimal point": {`{"organisations":[{"id":"o","max_terms":10.5}]}`,
			`world: organisations[0].max_terms: a whole number expected`},
		"unknown field": {`{"organisation":[]}`, `world: unknown field "organisation"`},
		"unknown field inside": {`{"organisations":[{"id":"o","members":[{"id":"emp_1"},{"id":"emp_2","nmae":"x"}]}]}`,
			`world: organisations[0].members[1]: unknown field "nmae"`},
		"unknown stage": {`{"stages":{"prepair":"1s"}}`, `world: stages: unknown field "prepair"`},
		"no duration": {`{"stages":{"prepare":"soon"}}`,
			`world: stages.prepare: "soon" is not a duration such as "20ms", "1m30s" or "168h"`},
		"negative duration": {`{"stages":{"write":"-1s"},"organisations":[{"id":"o"}]}`,
			`stages.write: -1s is negative`},
		"negative preparation": {`{"stages":{"prepare":"-1s"},"organisations":[{"id":"o"}]}`,
			`stages.prepare: -1s is negative`},
		"no id": {`{"organisations":[{"name":"Acme"}]}`, `organisations[0].id: missing`},
		"negative credits": {`{"organisations":[{"id":"o","credits":-1}]}`,
			`organisations[0].credits: -1 is negative`},
		"no date": {`{"organisations":[{"id":"o","next_reset_at":"2026-02-30"}]}`,
			`organisations[0].next_reset_at: "2026-02-30" is not a date such as 2026-12-01`},
		"organisation twice": {`{"organisations":[{"id":"o"},{"id":"o"}]}`,
			`organisations[1].id: the same as organisations[0].id`},
		"member's prefix": {`{"organisations":[{"id":"o","members":[{"id":"ada"}]}]}`,
			`organisations[0].members[0].id: "ada" does not begin with emp_`},
		"member twice": {`{"organisations":[{"id":"o","members":[{"id":"emp_a"}]},{"id":"p","members":[` +
			`{"id":"emp_a"}]}]}`, `organisations[1].members[0].id: the same as organisations[0].members[0].id`},
		"email twice": {`{"organisations":[{"id":"o","members":[{"id":"emp_a","email":"a@x.example"},` +
			`{"id":"emp_b","email":"A@X.example"}]}]}`,
			`organisations[0].members[1].email: the same as organisations[0].members[0].email`},
		"no address": {`{"organisations":[{"id":"o","members":[{"id":"emp_a","email":"ada"}]}]}`,
			`organisations[0].members[0].email: "ada" is not an address`},
		"two with one id": {`{"organisations":[{"id":"o","members":[{"id":"emp_a"}],"integrations":[` +
			`{"id":"emp_a"}]}]}`, `organisations[0].integrations[0].id: the same as organisations[0].members[0].id`},
		"integration twice": {`{"organisations":[{"id":"o","integrations":[{"id":"i"}]},` +
			`{"id":"p","integrations":[{"id":"i"}]}]}`,
			`organisations[1].integrations[0].id: the same as organisations[0].integrations[0].id`},
		"no integration's id": {`{"organisations":[{"id":"o","integrations":[{"id":" "}]}]}`,
			`organisations[0].integrations[0].id: missing`},
		"no more than a prefix": {`{"organisations":[{"id":"o","projects":[{"id":"prj_"}]}]}`,
			`organisations[0].projects[0].id: "prj_" does not begin with prj_`},
		"project twice": {`{"organisations":[{"id":"o","projects":[{"id":"prj_a"}]},{"id":"p","projects":[` +
			`{"id":"prj_a"}]}]}`, `organisations[1].projects[0].id: the same as organisations[0].projects[0].id`},
		"template's prefix": {`{"organisations":[{"id":"o","templates":[{"id":"brief"}]}]}`,
			`organisations[0].templates[0].id: "brief" does not begin with tpl_`},
		"secrets of two": {`{"organisations":[{"id":"o","integrations":[{"id":"i"}],"keys":[` +
			`{"secret":"k","integration_id":"i"}]},{"id":"p","integrations":[{"id":"j"}],"keys":[` +
			`{"secret":"k","integration_id":"j"}]}]}`,
			`organisations[1].keys[0].secret: the same as organisations[0].keys[0].secret`},
		"negative seconds": {`{"organisations":[{"id":"o","transcribe_seconds":-1}]}`,
			`organisations[0].transcribe_seconds: -1 is negative`},
		"negative members": {`{"organisations":[{"id":"o","max_members":-1}]}`,
			`organisations[0].max_members: -1 is negative`},
		"member's status": {`{"organisations":[{"id":"o","members":[{"id":"emp_a","status":"away"}]}]}`,
			`organisations[0].members[0].status: "away" is none of ["active" "invited" "no_account" "deactivated"]`},
		"visibility": {`{"organisations":[{"id":"o","integrations":[` +
			`{"id":"i","default_visibility":"public"}]}]}`,
			`organisations[0].integrations[0].default_visibility: "public" is none of ["private" "organisation" ` +
				`"shared"]`},
		"project's prefix": {`{"organisations":[{"id":"o","projects":[{"id":"apollo"}]}]}`,
			`organisations[0].projects[0].id: "apollo" does not begin with prj_`},
		"template twice": {`{"organisations":[{"id":"o","templates":[{"id":"tpl_a"},{"id":"tpl_a"}]}]}`,
			`organisations[0].templates[1].id: the same as organisations[0].templates[0].id`},
		"empty term": {`{"organisations":[{"id":"o","vocabulary":[{"term":" "}]}]}`,
			`organisations[0].vocabulary[0].term: missing`},
		"term twice": {`{"organisations":[{"id":"o","vocabulary":[{"term":"a"},{"term":"a "}]}]}`,
			`organisations[0].vocabulary[1].term: the same as organisations[0].vocabulary[0].term`},
		"too many terms": {`{"organisations":[{"id":"o","max_terms":1,"vocabulary":[{"term":"a"},` +
			`{"term":"b"}]}]}`, `organisations[0].vocabulary: 2 terms, 1 at most`},
		"empty variant": {`{"organisations":[{"id":"o","vocabulary":[{"term":"a","variants":[{"text":""}]}]}]}`,
			`organisations[0].vocabulary[0].variants[0].text: missing`},
		"variant's source": {`{"organisations":[{"id":"o","vocabulary":[{"term":"a","variants":[` +
			`{"text":"b","source":"me"}]}]}]}`,
			`organisations[0].vocabulary[0].variants[0].source: "me" is none of ["auto" "manual"]`},
		"no secret": {`{"organisations":[{"id":"o","integrations":[{"id":"i"}],"keys":[` +
			`{"integration_id":"i"}]}]}`, `organisations[0].keys[0].secret: missing`},
		"secret with space": {`{"organisations":[{"id":"o","integrations":[{"id":"i"}],"keys":[{"secret":"a ` +
			`b","integration_id":"i"}]}]}`, `organisations[0].keys[0].secret: a header cannot carry it`},
		"secret with DEL": {`{"organisations":[{"id":"o","integrations":[{"id":"i"}],"keys":[` +
			`{"secret":"a\u007f","integration_id":"i"}]}]}`,
			`organisations[0].keys[0].secret: a header cannot carry it`},
		"secret twice": {`{"organisations":[{"id":"o","integrations":[{"id":"i"}],"keys":[` +
			`{"secret":"k","integration_id":"i"},{"secret":"k","integration_id":"i"}]}]}`,
			`organisations[0].keys[1].secret: the same as organisations[0].keys[0].secret`},
		"key without an owner": {`{"organisations":[{"id":"o","keys":[{"secret":"k"}]}]}`,
			`organisations[0].keys[0]: give either a member_id or an integration_id`},
		"key of two": {`{"organisations":[{"id":"o","keys":[` +
			`{"secret":"k","member_id":"emp_a","integration_id":"i"}]}]}`,
			`organisations[0].keys[0]: give either a member_id or an integration_id`},
		"unknown member": {`{"organisations":[{"id":"o","keys":[{"secret":"k","member_id":"emp_x"}]}]}`,
			`organisations[0].keys[0].member_id: no member "emp_x"`},
		"unknown integration": {`{"organisations":[{"id":"o","keys":[{"secret":"k","integration_id":"int_x"}]}]}`,
			`organisations[0].keys[0].integration_id: no integration "int_x"`},
		"unknown scope": {`{"organisations":[{"id":"o","integrations":[{"id":"i"}],"keys":[` +
			`{"secret":"k","integration_id":"i","scopes":["meetings:reed"]}]}]}`,
			`organisations[0].keys[0].scopes[0]: "meetings:reed" is none of`},
		"allowlist": {`{"organisations":[{"id":"o","integrations":[{"id":"i"}],"keys":[` +
			`{"secret":"k","integration_id":"i","ip_allowlist":["10.0.0.0/33"]}]}]}`,
			`organisations[0].keys[0].ip_allowlist[0]: "10.0.0.0/33" is neither an address nor a CIDR block`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := minutestest.LoadWorld(strings.NewReader(c.world))
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "\n", "one fault, one line")
		})
	}
}

func TestLoadWorld_ReturnsReadErrors(t *testing.T) {
	t.Parallel()
	w, err := minutestest.LoadWorld(io.MultiReader(strings.NewReader(`{"organisations":[{"id":"org_a"}]}`),
		iotest.ErrReader(io.ErrUnexpectedEOF)))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Zero(t, w)
}

func TestLoadWorld_NamesEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := minutestest.LoadWorld(strings.NewReader(`{"organisations":[` +
		`{"id":"o","credits":-1,"max_terms":-1,"meetings":[{"title":"x","status":"nope","count":-1}]}]}`))
	require.ErrorContains(t, err, "credits: -1 is negative")
	require.ErrorContains(t, err, "max_terms: -1 is negative")
	require.ErrorContains(t, err, `meetings[0].status: "nope" is none of `)
	require.ErrorContains(t, err, "meetings[0].count: -1 is not from 0")
}

// Optional fields may be omitted, and the Server works.
func TestWorld_NeedsOnlyIDs(t *testing.T) {
	t.Parallel()
	w, err := minutestest.LoadWorld(strings.NewReader(`{"organisations":[{"id":"o",
		"members":[{"id":"emp_a"}],"integrations":[{"id":"int_a"}],
		"projects":[{"id":"prj_a"}],"templates":[{"id":"tpl_a"}],
		"max_terms":1,"vocabulary":[{"term":"x"}],"credits":0,"transcribe_seconds":0,"max_members":0,
		"keys":[{"secret":"k","member_id":"emp_a","scopes":[]}]}]}`))
	require.NoError(t, err)
	srv := minutestest.NewServer(t, minutestest.WithWorld(w))
	o := srv.Organisation("o")
	assert.Equal(t, "emp_a", o.Members[0].Name, "a member without a name goes by the id")
	text, err := json.Marshal(o)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"scopes":[]`, "no scope at all is not every scope")
}

func TestScript_JSONRoundTrip(t *testing.T) {
	t.Parallel()
	script := minutestest.Script{
		Title: "Weekly", Outcome: "minutes_failed", Duration: 90 * time.Minute,
		Stages: &minutestest.Stages{Write: time.Second}, Hold: "transcribing", ListedAfter: time.Minute,
		VisibleAfter: time.Hour, NoticedAfter: time.Second, ClockSkew: time.Second,
	}
	const text = `{"title":"Weekly","outcome":"minutes_failed","stages":{"write":"1s"},` +
		`"hold":"transcribing","duration":"1h30m0s","listed_after":"1m0s","visible_after":"1h0m0s",` +
		`"noticed_after":"1s","clock_skew":"1s"}`
	written, err := json.Marshal(script)
	require.NoError(t, err)
	assert.Equal(t, text, string(written))
	var read minutestest.Script
	require.NoError(t, json.Unmarshal(written, &read))
	assert.Equal(t, script, read)
	const unknownTitel = `unknown field "titel"; known here: meeting_id, external_id, title, outcome, transcript, ` +
		`markdown, html, stages, hold, duration, listed_after, visible_after, noticed_after, clock_skew`
	for text, want := range map[string]string{
		`[]`:                          "an object expected",
		`{"title":1}`:                 "title: a string expected",
		`{"titel":"x"}`:               unknownTitel,
		`{"stages":{"prepair":"1s"}}`: `stages: unknown field "prepair"; known here: prepare, transcribe, write`,
		`{"duration":"soon"}`:         `duration: "soon" is not a duration such as "20ms", "1m30s" or "168h"`,
		`{"clock_skew":3600}`:         `clock_skew: 3600 is not a duration such as "20ms", "1m30s" or "168h"`,
	} {
		assert.EqualError(t, json.Unmarshal([]byte(text), &read), want, text)
	}
}

// go doc shows an alias without the fields of its type, so the comment of each alias lists them.
func TestAliases_CommentsListTheFields(t *testing.T) {
	t.Parallel()
	types := map[string]reflect.Type{
		"World": reflect.TypeFor[minutestest.World](), "Stages": reflect.TypeFor[minutestest.Stages](),
		"Organisation": reflect.TypeFor[minutestest.Organisation](), "Member": reflect.TypeFor[minutestest.Member](),
		"Integration": reflect.TypeFor[minutestest.Integration](), "Project": reflect.TypeFor[minutestest.Project](),
		"Template": reflect.TypeFor[minutestest.Template](), "Key": reflect.TypeFor[minutestest.Key](),
		"WorldMeeting": reflect.TypeFor[minutestest.WorldMeeting](), "Script": reflect.TypeFor[minutestest.Script](),
		"Meeting": reflect.TypeFor[minutestest.Meeting](), "Transition": reflect.TypeFor[minutestest.Transition](),
		"Audio": reflect.TypeFor[minutestest.Audio](), "Request": reflect.TypeFor[minutestest.Request](),
		"Violation": reflect.TypeFor[minutestest.Violation](),
	}
	for _, file := range []string{"world.go", "journal.go", "violation.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		alias := regexp.MustCompile(`((?:(?m:^)\t?//.*\n)+)\t?(?:type )?(\w+) += world\.\w+\n`)
		for _, m := range alias.FindAllStringSubmatch(string(text), -1) {
			of := types[m[2]]
			if of == nil {
				continue // a string
			}
			delete(types, m[2])
			comment := strings.Join(strings.Fields(strings.ReplaceAll(m[1], "//", " ")), " ")
			assert.Contains(t, comment, fieldsOf(of), m[2])
		}
	}
	assert.Empty(t, types)
}

// fieldsOf lists the fields of a struct, as the comment of its alias does.
func fieldsOf(described reflect.Type) string {
	var groups []string // of fields in a row with the same type
	names := ""
	for i := range described.NumField() {
		field := described.Field(i)
		names += field.Name
		if i+1 < described.NumField() && described.Field(i+1).Type == field.Type {
			names += ", "
			continue
		}
		groups = append(groups, names+" "+aliasName(field.Type.String()))
		names = ""
	}
	return "Its fields are " + strings.Join(groups, "; ") + "."
}

// aliasName replaces the name of a type of package world by that of its alias.
func aliasName(name string) string {
	return strings.NewReplacer("world.MeetingSpec", "WorldMeeting", "world.", "", "uint8", "byte").Replace(name)
}
