package testkit

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
)

// An Operation is an operation of the API: how a program calls it, its wire form, and how tests call
// it against the fake. [Operations] is written by hand from the API reference, not from the route
// table. The module internal/test/openapi compares the wire form with docs/openapi.yaml.
type Operation struct {
	Name     minutes.Operation
	Method   string
	Path     string // below the base URL, about MeetingID
	Scope    string // of section 4, or as assumed
	Retried  bool   // also after an attempt that may have taken effect
	Query    string
	Body     string // JSON, or "" for none
	Status   int
	Object   string // the kind of response in Responses, or "" if it has no body
	Response string // the Fixture that Want is decoded from, or "" for none

	// Invoke makes the call, about this meeting if the operation is about one.
	Invoke func(ctx context.Context, c *minutes.Client, meetingID string) (any, error)
	Want   any

	NeedsMinutes bool // whether the fake needs the meeting to have minutes

	// InMemory makes the call if the fake does not know what Invoke sends, otherwise it is nil.
	InMemory func(ctx context.Context, c *minutes.Client, meetingID string) error
}

// MeetingID is the id in the wire form of operations.
const MeetingID = "mtg_7Kd02"

// Call runs the operation with [MeetingID].
func (op Operation) Call(ctx context.Context, c *minutes.Client) (any, error) {
	return op.Invoke(ctx, c, MeetingID)
}

// Creation is both values of Meetings.Create.
type Creation struct {
	Meeting *minutes.Meeting
	Created bool
}

// Whole is the meeting of the fixture that shows every field.
func Whole() *minutes.Meeting {
	return &minutes.Meeting{
		ID: "mtg_7Kd02", Title: "Budget & staffing, “Q3”", Date: "2026-03-09", Time: "14:30",
		Status: minutes.StatusMinutesReady, Visibility: minutes.VisibilityShared, TemplateID: "tpl_board",
		ParticipantIDs: []string{"emp_ada", "emp_ben"}, ProjectID: "prj_apollo", ExternalID: "crm/4711",
		DurationSeconds: 1805, CreatedAt: 1773062400, UpdatedAt: 1773066061,
	}
}

// FullVocabulary is that of the fixture.
var FullVocabulary = &minutes.Vocabulary{
	Terms: []string{"Kubernetes", "Grafana"},
	Entries: []minutes.VocabularyEntry{
		{Term: "Kubernetes", Variants: []minutes.VocabularyVariant{
			{Text: "cooper netties", Source: "auto"},
			{Text: "cube ernetes", Source: "manual"},
		}},
		{Term: "Grafana", Variants: []minutes.VocabularyVariant{}},
	},
	MaxTerms: 500,
}

// Result is what a call returned, as a value that can be compared.
func Result[T any](v T, err error) (any, error) { return v, err }

// Operations lists all of them.
func Operations() []Operation {
	return []Operation{{
		Name: "members.list", Method: "GET", Path: "/v1/employees",
		Scope: "employees:read", Retried: true,
		Status: 200, Response: "member_list", Object: "MemberList",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			return Result(c.Members.List(ctx))
		},
		Want: []*minutes.Member{
			{ID: "emp_ada", Name: "Ada Lovelace", Role: "Head of Engineering", Status: minutes.MemberStatusActive},
			{ID: "emp_chloe", Name: "Chloé Martin", Status: minutes.MemberStatusInvited},
			{ID: "emp_dai", Name: "Dai Nguyen", Status: minutes.MemberStatusNoAccount},
		},
	}, {
		Name: "members.create", Method: "POST", Path: "/v1/employees",
		Scope: "employees:write",
		Body: `{"name":"Ada Lovelace","email":"ada@acme.example","role":"Head of Engineering",` +
			`"description":"Decides \u003cwhat\u003e is built."}`,
		Status: 201, Response: "member", Object: "Member",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			return Result(c.Members.Create(ctx, &minutes.MemberCreateParams{
				Name: "Ada Lovelace", Email: "ada@acme.example", Role: "Head of Engineering",
				Description: "Decides <what> is built.",
			}))
		},
		Want: &minutes.Member{
			ID: "emp_ada", Name: "Ada Lovelace", Role: "Head of Engineering", Status: minutes.MemberStatusNoAccount,
		},
		InMemory: func(ctx context.Context, c *minutes.Client, _ string) error {
			_, err := c.Members.Create(ctx, &minutes.MemberCreateParams{Name: "Fay"})
			return err
		},
	}, {
		Name: "meetings.list", Method: "GET", Path: "/v1/meetings",
		Scope: "meetings:read", Retried: true,
		Query: "cursor=c2Vjb25kIHBhZ2U%3D%26&date_from=2026-03-01&date_to=2026-03-31" +
			"&external_id=crm%2F4711+%2B&limit=50",
		Status: 200, Response: "meeting_page", Object: "MeetingPage",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			return Result(c.Meetings.List(ctx, &minutes.MeetingListParams{
				Limit: 50, Cursor: "c2Vjb25kIHBhZ2U=&", ExternalID: "crm/4711 +",
				DateFrom: "2026-03-01", DateTo: "2026-03-31",
			}))
		},
		Want: &minutes.MeetingPage{
			Meetings: []*minutes.Meeting{
				{
					ID: "mtg_7Kd04", Title: "Retrospective", Date: "2026-03-11",
					Status: minutes.StatusTranscribeBlocked, Visibility: minutes.VisibilityPrivate,
					TemplateID: "tpl_standard", CreatedAt: 1773221400, UpdatedAt: 1773221455,
				},
				{
					ID: "mtg_7Kd02", Title: "Budget", Date: "2026-03-09", Time: "14:30",
					Status: minutes.StatusMinutesReady, Visibility: minutes.VisibilityShared, TemplateID: "tpl_board",
					ParticipantIDs: []string{"emp_ada"}, ProjectID: "prj_apollo", ExternalID: "crm/4711",
					DurationSeconds: 65, CreatedAt: 1773062400, UpdatedAt: 1773066061,
				},
			},
			NextCursor: "c2Vjb25kIHBhZ2U=",
		},
		InMemory: func(ctx context.Context, c *minutes.Client, _ string) error {
			_, err := c.Meetings.List(ctx, nil)
			return err
		},
	}, {
		Name: "meetings.create", Method: "POST", Path: "/v1/meetings",
		Scope: "meetings:write",
		Body: `{"title":"Budget","date":"2026-03-09","time":"14:30","external_id":"crm/4711",` +
			`"participant_ids":["emp_ada","emp_ben"],"project_id":"prj_apollo","shared_with":["emp_chloe"],` +
			`"template_id":"tpl_board","visibility":"shared"}`,
		Status: 201, Response: "meeting", Object: "Meeting",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			m, created, err := c.Meetings.Create(ctx, &minutes.MeetingCreateParams{
				Title: "Budget", Date: "2026-03-09", Time: "14:30", ExternalID: "crm/4711",
				ParticipantIDs: []string{"emp_ada", "emp_ben"}, ProjectID: "prj_apollo",
				SharedWith: []string{"emp_chloe"}, TemplateID: "tpl_board", Visibility: minutes.VisibilityShared,
			})
			return Creation{Meeting: m, Created: created}, err
		},
		Want: Creation{Meeting: Whole(), Created: true},
		InMemory: func(ctx context.Context, c *minutes.Client, _ string) error {
			_, _, err := c.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Fire drill", Date: "2026-11-20"})
			return err
		},
	}, {
		Name: "meetings.get", Method: "GET", Path: "/v1/meetings/mtg_7Kd02",
		Scope: "meetings:read", Retried: true,
		Status: 200, Response: "meeting", Object: "Meeting",
		Invoke: func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return Result(c.Meetings.Get(ctx, id))
		},
		Want: Whole(),
	}, {
		Name: "meetings.update", Method: "PATCH", Path: "/v1/meetings/mtg_7Kd02",
		Scope:  "meetings:write",
		Body:   `{"title":"Budget","date":"2026-03-09","time":"","project_id":""}`,
		Status: 200, Response: "meeting", Object: "Meeting",
		Invoke: func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return Result(c.Meetings.Update(ctx, id, &minutes.MeetingUpdateParams{
				Title: new("Budget"), Date: new("2026-03-09"), Time: new(""), ProjectID: new(""),
			}))
		},
		Want: Whole(),
	}, {
		Name: "meetings.delete", Method: "DELETE", Path: "/v1/meetings/mtg_7Kd02",
		Scope: "meetings:delete", Retried: true,
		Status: 204,
		Invoke: func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return nil, c.Meetings.Delete(ctx, id)
		},
	}, {
		Name: "meetings.set_participants", Method: "PUT", Path: "/v1/meetings/mtg_7Kd02/participants",
		Scope: "meetings:write", Retried: true,
		Body:   `{"participant_ids":["emp_ada","emp_ben"]}`,
		Status: 200, Response: "meeting", Object: "Meeting",
		Invoke: func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return Result(c.Meetings.SetParticipants(ctx, id, []string{"emp_ada", "emp_ben"}))
		},
		Want: Whole(),
	}, {
		Name: "meetings.upload_url", Method: "POST", Path: "/v1/meetings/mtg_7Kd02/upload-url",
		Scope: "meetings:write", Retried: true,
		Body:   `{"content_type":"audio/ogg; codecs=opus"}`,
		Status: 200, Response: "upload_target", Object: "UploadTarget",
		Invoke: func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			t, err := c.Meetings.UploadURL(ctx, id, "audio/ogg; codecs=opus")
			if t == nil {
				return nil, err
			}
			return Revealed{t.UploadURL.Reveal(), t.ExpiresIn, t.Method}, err
		},
		Want: Revealed{"https://storage.example/a/b?X-Amz-Expires=900&X-Amz-Signature=0123456789abcdef", 900, "PUT"},
	}, {
		Name: "meetings.minutes", Method: "GET", Path: "/v1/meetings/mtg_7Kd02/minutes",
		Scope: "minutes:read", Retried: true, NeedsMinutes: true,
		Query:  "format=markdown",
		Status: 200, Response: "minutes_markdown", Object: "Minutes",
		Invoke: func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return Result(c.Meetings.Minutes(ctx, id, minutes.FormatMarkdown))
		},
		Want: &minutes.Minutes{
			Format: minutes.FormatMarkdown, TemplateID: "tpl_board", Content: "# Budget\n\n- Ada: agreed\n",
		},
	}, {
		Name: "meetings.transcript", Method: "GET", Path: "/v1/meetings/mtg_7Kd02/transcript",
		Scope: "minutes:read", Retried: true, NeedsMinutes: true,
		Status: 200, Response: "transcript", Object: "Transcript",
		Invoke: func(ctx context.Context, c *minutes.Client, id string) (any, error) {
			return Result(c.Meetings.Transcript(ctx, id))
		},
		Want: &minutes.Transcript{Text: "spk_0: Good morning.\nspk_1: Morning.\n"},
	}, {
		Name: "projects.list", Method: "GET", Path: "/v1/projects",
		Scope: "meetings:read", Retried: true,
		Status: 200, Response: "project_list", Object: "ProjectList",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			return Result(c.Projects.List(ctx))
		},
		Want: []*minutes.Project{{ID: "prj_apollo", Name: "Apollo"}, {ID: "prj_gemini", Name: "Gemini"}},
	}, {
		Name: "projects.create", Method: "POST", Path: "/v1/projects",
		Scope:  "meetings:write",
		Body:   `{"name":"Apollo"}`,
		Status: 201, Response: "project", Object: "Project",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			return Result(c.Projects.Create(ctx, &minutes.ProjectCreateParams{Name: "Apollo"}))
		},
		Want: &minutes.Project{ID: "prj_apollo", Name: "Apollo"},
	}, {
		Name: "templates.list", Method: "GET", Path: "/v1/templates",
		Scope: "meetings:read", Retried: true,
		Status: 200, Response: "template_list", Object: "TemplateList",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			return Result(c.Templates.List(ctx))
		},
		Want: []*minutes.Template{
			{
				ID: "tpl_standard", Name: "Standard minutes", Source: "service", Description: "Summary and actions.",
				IsDefault: true, Version: new(3),
			},
			{ID: "tpl_board", Name: "Board", Source: "organisation"},
			{ID: "tpl_new", Name: "New", Source: "partner"},
		},
	}, {
		Name: "usage.get", Method: "GET", Path: "/v1/usage",
		Scope: "meetings:read", Retried: true,
		Status: 200, Response: "usage", Object: "Usage",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) { return Result(c.Usage.Get(ctx)) },
		Want:   &minutes.Usage{CreditsRemaining: 42, TranscribeSecondsRemaining: 35999, NextResetAt: "2026-12-01"},
	}, {
		Name: "vocabulary.get", Method: "GET", Path: "/v1/vocabulary",
		Scope: "meetings:read", Retried: true,
		Status: 200, Response: "vocabulary", Object: "Vocabulary",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			return Result(c.Vocabulary.Get(ctx))
		},
		Want: FullVocabulary,
	}, {
		Name: "vocabulary.replace", Method: "PUT", Path: "/v1/vocabulary",
		Scope: "meetings:write", Retried: true,
		Body:   `{"terms":["Kubernetes","Grafana"]}`,
		Status: 200, Response: "vocabulary", Object: "Vocabulary",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			return Result(c.Vocabulary.Replace(ctx, []string{"Kubernetes", "Grafana"}))
		},
		Want: FullVocabulary,
	}, {
		Name: "vocabulary.add", Method: "POST", Path: "/v1/vocabulary/terms",
		Scope:  "meetings:write",
		Body:   `{"term":"Kubernetes"}`,
		Status: 201, Response: "vocabulary", Object: "Vocabulary",
		Invoke: func(ctx context.Context, c *minutes.Client, _ string) (any, error) {
			return Result(c.Vocabulary.Add(ctx, "Kubernetes"))
		},
		Want: FullVocabulary,
		InMemory: func(ctx context.Context, c *minutes.Client, _ string) error {
			_, err := c.Vocabulary.Add(ctx, "fire")
			return err
		},
	}}
}

// OperationNamed returns one of them.
func OperationNamed(t testing.TB, name minutes.Operation) Operation {
	t.Helper()
	for _, op := range Operations() {
		if op.Name == name {
			return op
		}
	}
	require.Fail(t, "no such operation", "%s", name)
	return Operation{}
}
