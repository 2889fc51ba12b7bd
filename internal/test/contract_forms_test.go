package test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// The responses that tests use match the interface: each has the fields of its form, and
// together they have each field present, null and absent if the interface allows it.
func TestResponses_MatchTheInterface(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for kind, object := range testkit.Objects {
		for _, body := range object.Responses {
			testkit.RequireForm(t, kind, []byte(body))
			var v any
			require.NoError(t, json.Unmarshal([]byte(body), &v))
			note(shown, kind, v)
		}
	}
	for kind, object := range testkit.Objects {
		if len(object.Responses) == 0 {
			continue
		}
		for name, of := range object.Form {
			at := kind + "." + name
			require.True(t, shown[at+" present"], "%s is in no response", at)
			require.True(t, !strings.HasSuffix(of, "?") || shown[at+" absent"], "%s is absent in no response", at)
			require.True(t, !strings.Contains(of, "|null") || shown[at+" null"], "%s is null in no response", at)
		}
	}
}

// note records which fields of the forms are present, null or absent in v.
func note(shown map[string]bool, kind string, v any) {
	if kind, ok := strings.CutPrefix(kind, "[]"); ok {
		for _, e := range v.([]any) {
			note(shown, kind, e)
		}
		return
	}
	for name, of := range testkit.Objects[kind].Form {
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

func TestDeviations_FindsEachKind(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`[]`:                                "ProjectList is []interface {}, not an object",
		`{}`:                                "ProjectList.projects is missing",
		`{"projects":null}`:                 "ProjectList.projects is <nil>, not an array",
		`{"projects":[null]}`:               "ProjectList.projects[0] is <nil>, not an object",
		`{"projects":[{"id":"a"}]}`:         "ProjectList.projects[0].name is missing",
		`{"projects":[{"id":1,"name":""}]}`: "ProjectList.projects[0].id is 1 (float64), not a string",
		`{"projects":[],"Projects":[]}`:     "ProjectList.Projects is not in the interface",
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(body), &v))
		require.Equal(t, []string{want}, testkit.Deviations("ProjectList", "ProjectList", v), body)
	}
}
