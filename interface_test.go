package minutes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A form is what the interface says of one JSON object: the kind of each
// field, written by hand from its tables and from nothing else, so that a
// wrong name shared by client and service is caught. "?" after a kind means
// that the field may be absent, "|null" that it may be null, and "[]" before
// one that it is an array; a name in capitals is another form.
type form map[string]string

var forms = map[string]form{
	// Section 2.
	"Meeting": {
		"id":               "string",
		"title":            "string",
		"date":             "date",
		"time":             "time|null?",
		"status":           "string",
		"visibility":       "string",
		"template_id":      "string",
		"participant_ids":  "[]string?",
		"project_id":       "string|null?",
		"external_id":      "string|null?",
		"duration_seconds": "integer|null?",
		"created_at":       "integer",
		"updated_at":       "integer",
	},
	"MeetingPage":       {"meetings": "[]Meeting", "next_cursor": "string|null?"},
	"Member":            {"id": "string", "name": "string", "role": "string|null?", "status": "string"},
	"MemberList":        {"members": "[]Member"},
	"Project":           {"id": "string", "name": "string"},
	"ProjectList":       {"projects": "[]Project"},
	"Template":          {"id": "string", "name": "string", "source": "string", "description": "string|null?", "is_default": "boolean?", "version": "integer|null?"},
	"TemplateList":      {"templates": "[]Template"},
	"Minutes":           {"format": "string", "template_id": "string", "content": "string"},
	"Transcript":        {"transcript": "string"},
	"UploadTarget":      {"upload_url": "string", "expires_in": "integer", "method": "string?"},
	"Usage":             {"credits_remaining": "integer", "transcribe_seconds_remaining": "integer", "next_reset_at": "date|null?"},
	"Vocabulary":        {"terms": "[]string", "entries": "[]VocabularyEntry", "max_terms": "integer"},
	"VocabularyEntry":   {"term": "string", "variants": "[]VocabularyVariant"},
	"VocabularyVariant": {"text": "string", "source": "string"},

	// Section 7.
	"Envelope": {"error": "Error"},
	"Error":    {"code": "string", "message": "string", "request_id": "string", "details": "object?"},

	// Section 4, the bodies of requests. Where the interface takes null, the
	// client has no use for it.
	"MemberCreate":      {"name": "string", "email": "string?", "role": "string?", "description": "string?"},
	"MeetingCreate":     {"title": "string", "date": "date", "time": "time?", "external_id": "string?", "participant_ids": "[]string?", "project_id": "string?", "shared_with": "[]string?", "template_id": "string?", "visibility": "string?"},
	"MeetingUpdate":     {"title": "string?", "date": "date?", "time": "string?", "project_id": "string?"},
	"SetParticipants":   {"participant_ids": "[]string"},
	"UploadURL":         {"content_type": "string"},
	"ProjectCreate":     {"name": "string"},
	"VocabularyReplace": {"terms": "[]string"},
	"VocabularyAdd":     {"term": "string"},
}

var (
	datePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	timePattern = regexp.MustCompile(`^\d\d:\d\d$`)
)

// requireForm fails the test unless body is one JSON value of the form.
func requireForm(t testing.TB, name string, body []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", body)
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF, "more than one value: %s", body)
	require.Empty(t, deviations(name, name, v), "%s", body)
}

// deviations lists where v differs from the form.
func deviations(at, kind string, v any) []string {
	if kind, ok := strings.CutPrefix(kind, "[]"); ok {
		list, ok := v.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %T, not an array", at, v)}
		}
		var all []string
		for i, e := range list {
			all = append(all, deviations(fmt.Sprintf("%s[%d]", at, i), kind, e)...)
		}
		return all
	}
	ok := false
	switch kind {
	case "string":
		_, ok = v.(string)
	case "date":
		s, _ := v.(string)
		ok = datePattern.MatchString(s)
	case "time":
		s, _ := v.(string)
		ok = timePattern.MatchString(s)
	case "integer":
		n, isNumber := v.(json.Number)
		ok = isNumber && !strings.ContainsAny(n.String(), ".eE")
	case "boolean":
		_, ok = v.(bool)
	case "object":
		_, ok = v.(map[string]any)
	default:
		return objectDeviations(at, forms[kind], v)
	}
	if !ok {
		return []string{fmt.Sprintf("%s is %v (%T), not a %s", at, v, v, kind)}
	}
	return nil
}

func objectDeviations(at string, f form, v any) []string {
	object, ok := v.(map[string]any)
	if !ok || f == nil {
		return []string{fmt.Sprintf("%s is %T, not an object", at, v)}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		kind, optional := strings.CutSuffix(f[name], "?")
		kind, nullable := strings.CutSuffix(kind, "|null")
		value, there := object[name]
		switch {
		case !there && optional, there && value == nil && nullable:
		case !there:
			all = append(all, at+"."+name+" is missing")
		default:
			all = append(all, deviations(at+"."+name, kind, value)...)
		}
	}
	for name := range object {
		if _, known := f[name]; !known {
			all = append(all, at+"."+name+" is none of the interface's")
		}
	}
	return all
}

// fixture returns a reply written by hand from the interface.
func fixture(t testing.TB, name string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "replies", name+".json"))
	require.NoError(t, err)
	return string(body)
}

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
	paths, err := filepath.Glob("testdata/replies/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	shown := map[string]bool{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		kind := formOf[name]
		for _, variant := range []string{"_absent", "_nulls", "_empty", "_html", "_markdown"} {
			if base, ok := strings.CutSuffix(name, variant); ok {
				kind = formOf[base]
			}
		}
		require.NotEmpty(t, kind, "no form for %s", path)
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		requireForm(t, kind, body)
		var v any
		require.NoError(t, json.Unmarshal(body, &v))
		note(shown, kind, v)
	}
	for kind := range formOf {
		for name, of := range forms[formOf[kind]] {
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
	for name, of := range forms[kind] {
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
		require.Equal(t, []string{want}, deviations("ProjectList", "ProjectList", v), body)
	}
}
