package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Responses holds the bodies that canned responses have: for each object of the API, by name. They
// show every field, and fields that are absent or null. The module internal/test/openapi compares
// them with docs/openapi.yaml.
var Responses = map[string]map[string]string{
	// Section 2.
	"Meeting": {
		"meeting": `{
  "id": "mtg_7Kd02", "title": "Budget & staffing, “Q3”", "date": "2026-03-09", "time": "14:30",
  "status": "minutes_ready", "visibility": "shared", "template_id": "tpl_board",
  "participant_ids": ["emp_ada", "emp_ben"], "project_id": "prj_apollo",
  "external_id": "crm/4711", "duration_seconds": 1805, "created_at": 1773062400, "updated_at": 1773066061
}`,
		"meeting_absent": `{
  "id": "mtg_7Kd02", "title": "Retrospective", "date": "2026-03-11",
  "status": "audio_uploaded", "visibility": "private",
  "template_id": "tpl_standard", "created_at": 1773221400, "updated_at": 1773221455
}`,
		"meeting_nulls": `{
  "id": "mtg_7Kd02", "title": "Stand-up", "date": "2026-03-10", "time": null, "status": "created",
  "visibility": "organisation", "template_id": "tpl_standard", "participant_ids": [], "project_id": null,
  "external_id": null, "duration_seconds": null, "created_at": 1773135000, "updated_at": 1773135000
}`,
	},
	"MeetingPage": {
		"meeting_page": `{
  "meetings": [{
    "id": "mtg_7Kd04", "title": "Retrospective", "date": "2026-03-11", "status": "transcribe_blocked",
    "visibility": "private", "template_id": "tpl_standard", "created_at": 1773221400, "updated_at": 1773221455
  }, {
    "id": "mtg_7Kd02", "title": "Budget", "date": "2026-03-09", "time": "14:30", "status": "minutes_ready",
    "visibility": "shared", "template_id": "tpl_board", "participant_ids": ["emp_ada"], "project_id": "prj_apollo",
    "external_id": "crm/4711", "duration_seconds": 65, "created_at": 1773062400, "updated_at": 1773066061
  }],
  "next_cursor": "c2Vjb25kIHBhZ2U="
}`,
		"meeting_page_absent": `{"meetings": []}`,
		"meeting_page_nulls":  `{"meetings": [], "next_cursor": null}`,
	},
	"Member": {
		"member": `{
  "id": "emp_ada", "name": "Ada Lovelace", "role": "Head of Engineering", "status": "no_account"
}`,
		"member_absent": `{"id": "emp_dai", "name": "Dai Nguyen", "status": "deactivated"}`,
		"member_nulls":  `{"id": "emp_dai", "name": "Dai Nguyen", "role": null, "status": "invited"}`,
	},
	"MemberList": {
		"member_list": `{
  "members": [
    {"id": "emp_ada", "name": "Ada Lovelace", "role": "Head of Engineering", "status": "active"},
    {"id": "emp_chloe", "name": "Chloé Martin", "role": null, "status": "invited"},
    {"id": "emp_dai", "name": "Dai Nguyen", "status": "no_account"}
  ]
}`,
	},
	"Project": {
		"project": `{"id": "prj_apollo", "name": "Apollo"}`,
	},
	"ProjectList": {
		"project_list": `{
  "projects": [{"id": "prj_apollo", "name": "Apollo"}, {"id": "prj_gemini", "name": "Gemini"}]
}`,
	},
	"TemplateList": {
		"template_list": `{
  "templates": [
    {
      "id": "tpl_standard", "name": "Standard minutes", "source": "service", "description": "Summary and actions.",
      "is_default": true, "version": 3
    },
    {
      "id": "tpl_board", "name": "Board", "source": "organisation", "description": null,
      "is_default": false, "version": null
    },
    {"id": "tpl_new", "name": "New", "source": "partner"}
  ]
}`,
	},
	"Minutes": {
		"minutes_html": `{
  "format": "html", "template_id": "tpl_board", "content": "<h1>Budget &amp; staffing</h1>"
}`,
		"minutes_markdown": `{
  "format": "markdown", "template_id": "tpl_board", "content": "# Budget\n\n- Ada: agreed\n"
}`,
	},
	"Transcript": {
		"transcript":       `{"transcript": "spk_0: Good morning.\nspk_1: Morning.\n"}`,
		"transcript_empty": `{"transcript": ""}`,
	},
	"UploadTarget": {
		"upload_target": `{
  "upload_url": "https://storage.example/a/b?X-Amz-Expires=900&X-Amz-Signature=0123456789abcdef",
  "expires_in": 900, "method": "PUT"
}`,
		"upload_target_absent": `{
  "upload_url": "https://storage.example/a/b?X-Amz-Expires=900&X-Amz-Signature=0123456789abcdef", "expires_in": 900
}`,
	},
	"Usage": {
		"usage": `{
  "credits_remaining": 42, "transcribe_seconds_remaining": 35999, "next_reset_at": "2026-12-01"
}`,
		"usage_absent": `{"credits_remaining": 1, "transcribe_seconds_remaining": 0}`,
		"usage_nulls":  `{"credits_remaining": 0, "transcribe_seconds_remaining": 0, "next_reset_at": null}`,
	},
	"Vocabulary": {
		"vocabulary": `{
  "terms": ["Kubernetes", "Grafana"],
  "entries": [
    {"term": "Kubernetes", "variants": [
      {"text": "cooper netties", "source": "auto"}, {"text": "cube ernetes", "source": "manual"}
    ]},
    {"term": "Grafana", "variants": []}
  ],
  "max_terms": 500
}`,
		"vocabulary_empty": `{"terms": [], "entries": [], "max_terms": 200}`,
	},

	// Section 7.
	"Envelope": {
		"error": `{"error": {
  "code": "INVALID_REQUEST", "message": "The body is invalid.", "request_id": "req_93af",
  "details": {"fields": ["title", "date"]}
}}`,
		"error_absent": `{"error": {
  "code": "NOT_FOUND", "message": "There is no such meeting.", "request_id": "req_93b0"
}}`,
	},
}

// Fixture returns the body of this name in [Responses].
func Fixture(t testing.TB, name string) string {
	t.Helper()
	for _, bodies := range Responses {
		body, ok := bodies[name]
		if ok {
			return body
		}
	}
	require.Fail(t, "no such response", name)
	return ""
}
