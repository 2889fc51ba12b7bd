package testkit

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Form is what the interface says of one JSON object: the kind of each
// field, written by hand from its tables and from nothing else, so that a
// wrong name shared by client and service is caught. "?" after a kind means
// that the field may be absent, "|null" that it may be null, and "[]" before
// one that it is an array; a name in capitals is another form.
type Form map[string]string

// Forms are those of all objects, by name.
var Forms = map[string]Form{
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

// RequireForm fails the test unless body is one JSON value of the form.
func RequireForm(t testing.TB, name string, body []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", body)
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF, "more than one value: %s", body)
	require.Empty(t, Deviations(name, name, v), "%s", body)
}

// Deviations lists where v differs from the form.
func Deviations(at, kind string, v any) []string {
	if kind, ok := strings.CutPrefix(kind, "[]"); ok {
		list, ok := v.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %T, not an array", at, v)}
		}
		var all []string
		for i, e := range list {
			all = append(all, Deviations(fmt.Sprintf("%s[%d]", at, i), kind, e)...)
		}
		return all
	}
	var ok bool
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
		return objectDeviations(at, Forms[kind], v)
	}
	if !ok {
		return []string{fmt.Sprintf("%s is %v (%T), not a %s", at, v, v, kind)}
	}
	return nil
}

func objectDeviations(at string, f Form, v any) []string {
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
			all = append(all, Deviations(at+"."+name, kind, value)...)
		}
	}
	for name := range object {
		if _, known := f[name]; !known {
			all = append(all, at+"."+name+" is none of the interface's")
		}
	}
	return all
}

//go:embed replies/*.json
var replies embed.FS

// Fixture returns a reply written by hand from the interface.
func Fixture(t testing.TB, name string) string {
	t.Helper()
	body, err := replies.ReadFile("replies/" + name + ".json")
	require.NoError(t, err)
	return string(body)
}

// Fixtures are the replies whose names begin so, by name.
func Fixtures(prefix string) map[string]string {
	all := map[string]string{}
	files, err := replies.ReadDir("replies")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".json"); strings.HasPrefix(name, prefix) {
			body, err := replies.ReadFile("replies/" + f.Name())
			if err != nil {
				panic(err)
			}
			all[name] = string(body)
		}
	}
	return all
}
