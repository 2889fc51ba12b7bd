package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An Object is one JSON object of the interface: its fields, and responses that contain it.
type Object struct {
	Form      Form
	Responses map[string]string // by name, for [Fixture]
}

// Objects holds all of them by name, written by hand from the interface.
var Objects = map[string]Object{
	// Section 2.
	"Meeting": {
		Form: Form{
			"id": "string", "title": "string", "date": "date", "time": "time|null?", "status": "string",
			"visibility": "string", "template_id": "string", "participant_ids": "[]string?",
			"project_id": "string|null?", "external_id": "string|null?", "duration_seconds": "integer|null?",
			"created_at": "integer", "updated_at": "integer",
		},
		Responses: map[string]string{
			"meeting": `{
  "id": "mtg_7Kd02", "title": "Budget & staffing, “Q3”", "date": "2026-03-09", "time": "14:30", "status": "minutes_ready",
  "visibility": "shared", "template_id": "tpl_board", "participant_ids": ["emp_ada", "emp_ben"], "project_id": "prj_apollo",
  "external_id": "crm/4711", "duration_seconds": 1805, "created_at": 1773062400, "updated_at": 1773066061
}`,
			"meeting_absent": `{
  "id": "mtg_7Kd02", "title": "Retrospective", "date": "2026-03-11", "status": "audio_uploaded", "visibility": "private",
  "template_id": "tpl_standard", "created_at": 1773221400, "updated_at": 1773221455
}`,
			"meeting_nulls": `{
  "id": "mtg_7Kd02", "title": "Stand-up", "date": "2026-03-10", "time": null, "status": "created",
  "visibility": "organisation", "template_id": "tpl_standard", "participant_ids": [], "project_id": null,
  "external_id": null, "duration_seconds": null, "created_at": 1773135000, "updated_at": 1773135000
}`,
		},
	},
	"MeetingPage": {
		Form: Form{"meetings": "[]Meeting", "next_cursor": "string|null?"},
		Responses: map[string]string{
			"meeting_page": `{
  "meetings": [{
    "id": "mtg_7Kd04", "title": "Retrospective", "date": "2026-03-11", "status": "transcribe_blocked",
    "visibility": "private", "template_id": "tpl_standard", "created_at": 1773221400, "updated_at": 1773221455
  }, {
    "id": "mtg_7Kd02", "title": "Budget", "date": "2026-03-09", "time": "14:30", "status": "minutes_ready",
    "visibility": "shared", "template_id": "tpl_board", "participant_ids": ["emp_ada"], "project_id": "prj_apollo",
    "external_id": "crm/4711", "duration_seconds": 0, "created_at": 1773062400, "updated_at": 1773066061
  }],
  "next_cursor": "c2Vjb25kIHBhZ2U="
}`,
			"meeting_page_absent": `{"meetings": []}`,
			"meeting_page_nulls":  `{"meetings": [], "next_cursor": null}`,
		},
	},
	"Member": {
		Form: Form{"id": "string", "name": "string", "role": "string|null?", "status": "string"},
		Responses: map[string]string{
			"member":        `{"id": "emp_ada", "name": "Ada Lovelace", "role": "Head of Engineering", "status": "no_account"}`,
			"member_absent": `{"id": "emp_dai", "name": "Dai Nguyen", "status": "deactivated"}`,
			"member_nulls":  `{"id": "emp_dai", "name": "Dai Nguyen", "role": null, "status": "invited"}`,
		},
	},
	"MemberList": {
		Form: Form{"members": "[]Member"},
		Responses: map[string]string{
			"member_list": `{
  "members": [
    {"id": "emp_ada", "name": "Ada Lovelace", "role": "Head of Engineering", "status": "active"},
    {"id": "emp_chloe", "name": "Chloé Martin", "role": null, "status": "invited"},
    {"id": "emp_dai", "name": "Dai Nguyen", "status": "no_account"}
  ]
}`,
		},
	},
	"Project": {
		Form: Form{"id": "string", "name": "string"},
		Responses: map[string]string{
			"project": `{"id": "prj_apollo", "name": "Apollo"}`,
		},
	},
	"ProjectList": {
		Form: Form{"projects": "[]Project"},
		Responses: map[string]string{
			"project_list": `{"projects": [{"id": "prj_apollo", "name": "Apollo"}, {"id": "prj_gemini", "name": "Gemini"}]}`,
		},
	},
	"Template": {Form: Form{"id": "string", "name": "string", "source": "string", "description": "string|null?", "is_default": "boolean?", "version": "integer|null?"}},
	"TemplateList": {
		Form: Form{"templates": "[]Template"},
		Responses: map[string]string{
			"template_list": `{
  "templates": [
    {"id": "tpl_standard", "name": "Standard minutes", "source": "service", "description": "Summary and actions.", "is_default": true, "version": 3},
    {"id": "tpl_board", "name": "Board", "source": "organisation", "description": null, "is_default": false, "version": null},
    {"id": "tpl_new", "name": "New", "source": "partner"}
  ]
}`,
		},
	},
	"Minutes": {
		Form: Form{"format": "string", "template_id": "string", "content": "string"},
		Responses: map[string]string{
			"minutes_html":     `{"format": "html", "template_id": "tpl_board", "content": "<h1>Budget &amp; staffing</h1>"}`,
			"minutes_markdown": `{"format": "markdown", "template_id": "tpl_board", "content": "# Budget\n\n- Ada: agreed\n"}`,
		},
	},
	"Transcript": {
		Form: Form{"transcript": "string"},
		Responses: map[string]string{
			"transcript":       `{"transcript": "spk_0: Good morning.\nspk_1: Morning.\n"}`,
			"transcript_empty": `{"transcript": ""}`,
		},
	},
	"UploadTarget": {
		Form: Form{"upload_url": "string", "expires_in": "integer", "method": "string?"},
		Responses: map[string]string{
			"upload_target":        `{"upload_url": "https://storage.example/a/b?X-Amz-Expires=900&X-Amz-Signature=0123456789abcdef", "expires_in": 900, "method": "PUT"}`,
			"upload_target_absent": `{"upload_url": "https://storage.example/a/b?X-Amz-Expires=900&X-Amz-Signature=0123456789abcdef", "expires_in": 900}`,
		},
	},
	"Usage": {
		Form: Form{"credits_remaining": "integer", "transcribe_seconds_remaining": "integer", "next_reset_at": "date|null?"},
		Responses: map[string]string{
			"usage":        `{"credits_remaining": 42, "transcribe_seconds_remaining": 35999, "next_reset_at": "2026-12-01"}`,
			"usage_absent": `{"credits_remaining": 1, "transcribe_seconds_remaining": 0}`,
			"usage_nulls":  `{"credits_remaining": 0, "transcribe_seconds_remaining": 0, "next_reset_at": null}`,
		},
	},
	"Vocabulary": {
		Form: Form{"terms": "[]string", "entries": "[]VocabularyEntry", "max_terms": "integer"},
		Responses: map[string]string{
			"vocabulary": `{
  "terms": ["Kubernetes", "Grafana"],
  "entries": [
    {"term": "Kubernetes", "variants": [{"text": "cooper netties", "source": "auto"}, {"text": "cube ernetes", "source": "manual"}]},
    {"term": "Grafana", "variants": []}
  ],
  "max_terms": 500
}`,
			"vocabulary_empty": `{"terms": [], "entries": [], "max_terms": 200}`,
		},
	},
	"VocabularyEntry":   {Form: Form{"term": "string", "variants": "[]VocabularyVariant"}},
	"VocabularyVariant": {Form: Form{"text": "string", "source": "string"}},

	// Section 7.
	"Envelope": {
		Form: Form{"error": "Error"},
		Responses: map[string]string{
			"error": `{"error": {
  "code": "INVALID_REQUEST", "message": "The body is invalid.", "request_id": "req_93af",
  "details": {"fields": ["title", "date"]}
}}`,
			"error_absent": `{"error": {"code": "NOT_FOUND", "message": "There is no such meeting.", "request_id": "req_93b0"}}`,
		},
	},
	"Error": {Form: Form{"code": "string", "message": "string", "request_id": "string", "details": "object?"}},

	// Section 4, the bodies of requests. The client never sends null, although the interface allows it.
	"MemberCreate":      {Form: Form{"name": "string", "email": "string?", "role": "string?", "description": "string?"}},
	"MeetingCreate":     {Form: Form{"title": "string", "date": "date", "time": "time?", "external_id": "string?", "participant_ids": "[]string?", "project_id": "string?", "shared_with": "[]string?", "template_id": "string?", "visibility": "string?"}},
	"MeetingUpdate":     {Form: Form{"title": "string?", "date": "date?", "time": "string?", "project_id": "string?"}},
	"SetParticipants":   {Form: Form{"participant_ids": "[]string"}},
	"UploadURL":         {Form: Form{"content_type": "string"}},
	"ProjectCreate":     {Form: Form{"name": "string"}},
	"VocabularyReplace": {Form: Form{"terms": "[]string"}},
	"VocabularyAdd":     {Form: Form{"term": "string"}},
}

// Fixture returns a response of [Objects].
func Fixture(t testing.TB, name string) string {
	t.Helper()
	for _, object := range Objects {
		if body, ok := object.Responses[name]; ok {
			return body
		}
	}
	require.Fail(t, "no such response", name)
	return ""
}
