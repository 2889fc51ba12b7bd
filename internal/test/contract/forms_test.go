package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// The fixtures themselves keep to the interface: no field of it is misspelt in
// them, and together they show each field present, null and absent wherever
// the interface lets it be.
func TestFixturesKeepToTheInterface(t *testing.T) {
	t.Parallel()
	formOf := map[string]string{
		"meeting": "Meeting", "meeting_page": "MeetingPage", "member": "Member", "member_list": "MemberList",
		"project": "Project", "project_list": "ProjectList", "template_list": "TemplateList", "minutes": "Minutes",
		"transcript": "Transcript", "upload_target": "UploadTarget", "usage": "Usage", "vocabulary": "Vocabulary", "error": "Envelope",
	}
	all := testkit.Fixtures("")
	require.NotEmpty(t, all)
	shown := map[string]bool{}
	for name, body := range all {
		kind := formOf[name]
		for _, variant := range []string{"_absent", "_nulls", "_empty", "_html", "_markdown"} {
			if base, ok := strings.CutSuffix(name, variant); ok {
				kind = formOf[base]
			}
		}
		require.NotEmpty(t, kind, "no form for %s", name)
		testkit.RequireForm(t, kind, []byte(body))
		var v any
		require.NoError(t, json.Unmarshal([]byte(body), &v))
		note(shown, kind, v)
	}
	for kind := range formOf {
		for name, of := range testkit.Forms[formOf[kind]] {
			at := formOf[kind] + "." + name
			require.True(t, shown[at+" present"], "%s is in no fixture", at)
			require.True(t, !strings.HasSuffix(of, "?") || shown[at+" absent"], "%s is absent in no fixture", at)
			require.True(t, !strings.Contains(of, "|null") || shown[at+" null"], "%s is null in no fixture", at)
		}
	}
}

// note writes down which fields of the forms v shows.
func note(shown map[string]bool, kind string, v any) {
	if kind, ok := strings.CutPrefix(kind, "[]"); ok {
		for _, e := range v.([]any) {
			note(shown, kind, e)
		}
		return
	}
	for name, of := range testkit.Forms[kind] {
		value, there := v.(map[string]any)[name]
		of, _, _ = strings.Cut(strings.TrimSuffix(of, "?"), "|")
		switch {
		case !there:
			shown[kind+"."+name+" absent"] = true
		case value == nil:
			shown[kind+"."+name+" null"] = true
		default:
			shown[kind+"."+name+" present"] = true
			note(shown, of, value)
		}
	}
}

// The check of forms itself sees each kind of deviation.
func TestFormsSeeDeviations(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`[]`:                                "ProjectList is []interface {}, not an object",
		`{}`:                                "ProjectList.projects is missing",
		`{"projects":null}`:                 "ProjectList.projects is <nil>, not an array",
		`{"projects":[null]}`:               "ProjectList.projects[0] is <nil>, not an object",
		`{"projects":[{"id":"a"}]}`:         "ProjectList.projects[0].name is missing",
		`{"projects":[{"id":1,"name":""}]}`: "ProjectList.projects[0].id is 1 (float64), not a string",
		`{"projects":[],"Projects":[]}`:     "ProjectList.Projects is none of the interface's",
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(body), &v))
		require.Equal(t, []string{want}, testkit.Deviations("ProjectList", "ProjectList", v), body)
	}
}
