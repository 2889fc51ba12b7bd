package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// forms are the objects of sections 2 and 7, field by field, written from
// their tables and nothing else. "?" after a kind: the field may be absent.
// "|null": it may be null. "[]": an array of the kind. A kind that is the name
// of a form is that form. Fields beyond these are not minded: a later version
// may have them.
var forms = map[string]map[string]string{
	"Meeting": {
		"id": "mtg_", "title": "string", "date": "date", "time": "time|null?", "status": "status", "visibility": "visibility", "template_id": "string",
		"participant_ids": "[]string?", "project_id": "string|null?", "external_id": "string|null?", "duration_seconds": "integer|null?",
		"created_at": "integer", "updated_at": "integer",
	},
	"MeetingPage":       {"meetings": "[]Meeting", "next_cursor": "string|null?"},
	"Member":            {"id": "emp_", "name": "string", "role": "string|null?", "status": "memberStatus"},
	"MemberList":        {"members": "[]Member"},
	"Project":           {"id": "string", "name": "string"},
	"ProjectList":       {"projects": "[]Project"},
	"Template":          {"id": "string", "name": "string", "source": "string", "description": "string|null?", "is_default": "boolean?", "version": "integer|null?"},
	"TemplateList":      {"templates": "[]Template"},
	"Minutes":           {"format": "format", "template_id": "string", "content": "string"},
	"Transcript":        {"transcript": "string"},
	"UploadTarget":      {"upload_url": "string", "expires_in": "integer", "method": "PUT?"},
	"Usage":             {"credits_remaining": "integer", "transcribe_seconds_remaining": "integer", "next_reset_at": "string|null?"},
	"Vocabulary":        {"terms": "[]string", "entries": "[]VocabularyEntry", "max_terms": "integer"},
	"VocabularyEntry":   {"term": "string", "variants": "[]VocabularyVariant"},
	"VocabularyVariant": {"text": "string", "source": "variantSource"},
	"Envelope":          {"error": "Error"},
	"Error":             {"code": "string", "message": "string", "request_id": "string", "details": "object?"},
}

// words are the texts that a field may hold.
var words = map[string][]string{
	"status": {"created", "audio_uploaded", "transcribing", "transcribed", "generating_minutes", "minutes_ready",
		"transcription_failed", "minutes_failed", "transcribe_blocked", "audio_rejected"},
	"visibility":    {"private", "organisation", "shared"},
	"memberStatus":  {"active", "invited", "no_account", "deactivated"},
	"format":        {"html", "markdown"},
	"variantSource": {"auto", "manual"},
	"PUT":           {"PUT"},
}

var timeOfDay = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d$`)

// misfits says what of v is not as the form has it.
func misfits(form, place string, v map[string]any) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(forms[form])) {
		at := strings.TrimPrefix(place+"."+name, ".")
		kind, optional := strings.CutSuffix(forms[form][name], "?")
		value, there := v[name]
		if !there {
			if !optional {
				faults = append(faults, at+" is missing")
			}
			continue
		}
		kind, nullable := strings.CutSuffix(kind, "|null")
		if value == nil {
			if !nullable {
				faults = append(faults, at+" is null")
			}
			continue
		}
		faults = append(faults, misfit(kind, at, value)...)
	}
	return faults
}

func misfit(kind, at string, value any) []string {
	if element, ok := strings.CutPrefix(kind, "[]"); ok {
		list, ok := value.([]any)
		if !ok {
			return []string{at + " is no array"}
		}
		var faults []string
		for i, v := range list {
			faults = append(faults, misfit(element, fmt.Sprintf("%s[%d]", at, i), v)...)
		}
		return faults
	}
	if forms[kind] != nil || kind == "object" {
		object, ok := value.(map[string]any)
		if !ok {
			return []string{at + " is no object"}
		}
		return misfits(kind, at, object)
	}
	if fits(kind, value) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %v, where %s was expected", at, value, kind)}
}

func fits(kind string, value any) bool {
	switch kind {
	case "integer":
		n, ok := value.(json.Number)
		if !ok {
			return false
		}
		_, err := n.Int64()
		return err == nil
	case "boolean":
		_, ok := value.(bool)
		return ok
	}
	s, ok := value.(string)
	if !ok {
		return false
	}
	switch kind {
	case "string":
		return true
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	case "time":
		return timeOfDay.MatchString(s)
	case "mtg_", "emp_":
		return strings.HasPrefix(s, kind) && s != kind
	}
	return slices.Contains(words[kind], s)
}
