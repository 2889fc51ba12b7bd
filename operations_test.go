package minutes_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

const testKey = "key_0123456789abcdef"

// An operation is one of the eighteen of the interface, as it is called and as
// it looks on the wire.
type operation struct {
	name         minutes.Operation
	method, path string // below the base URL
	query        string
	body         string // JSON; "" for none
	form         string // of the body
	status       int
	reply        string // fixture; "" for none
	replyForm    string
	call         func(context.Context, *minutes.Client) (any, error)
	want         any
}

// creation is both values of Meetings.Create.
type creation struct {
	Meeting *minutes.Meeting
	Created bool
}

// whole is the meeting of the fixture that shows every field.
func whole() *minutes.Meeting {
	return &minutes.Meeting{
		ID: "mtg_7Kd02", Title: "Budget & staffing, “Q3”", Date: "2026-03-09", Time: "14:30",
		Status: minutes.StatusMinutesReady, Visibility: minutes.VisibilityShared, TemplateID: "tpl_board",
		ParticipantIDs: []string{"emp_ada", "emp_ben"}, ProjectID: "prj_apollo", ExternalID: "crm/4711",
		DurationSeconds: new(1805), CreatedAt: 1773062400, UpdatedAt: 1773066061,
	}
}

var fullVocabulary = &minutes.Vocabulary{
	Terms: []string{"Kubernetes", "Grafana"},
	Entries: []minutes.VocabularyEntry{
		{Term: "Kubernetes", Variants: []minutes.VocabularyVariant{{Text: "cooper netties", Source: "auto"}, {Text: "cube ernetes", Source: "manual"}}},
		{Term: "Grafana", Variants: []minutes.VocabularyVariant{}},
	},
	MaxTerms: 500,
}

// result is what a call returned, as a value that can be compared.
func result[T any](v T, err error) (any, error) { return v, err }

// operations lists all eighteen.
func operations() []operation {
	return []operation{{
		name: "members.list", method: "GET", path: "/v1/employees",
		status: 200, reply: "member_list", replyForm: "MemberList",
		call: func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Members.List(ctx)) },
		want: []minutes.Member{
			{ID: "emp_ada", Name: "Ada Lovelace", Role: "Head of Engineering", Status: minutes.MemberActive},
			{ID: "emp_chloe", Name: "Chloé Martin", Status: minutes.MemberInvited},
			{ID: "emp_dai", Name: "Dai Nguyen", Status: minutes.MemberNoAccount},
		},
	}, {
		name: "members.create", method: "POST", path: "/v1/employees",
		body: `{"name":"Ada Lovelace","email":"ada@acme.example","role":"Head of Engineering","description":"Decides \u003cwhat\u003e is built."}`, form: "MemberCreate",
		status: 201, reply: "member", replyForm: "Member",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Members.Create(ctx, &minutes.MemberCreateParams{
				Name: "Ada Lovelace", Email: "ada@acme.example", Role: "Head of Engineering", Description: "Decides <what> is built.",
			}))
		},
		want: &minutes.Member{ID: "emp_ada", Name: "Ada Lovelace", Role: "Head of Engineering", Status: minutes.MemberNoAccount},
	}, {
		name: "meetings.list", method: "GET", path: "/v1/meetings",
		query:  "cursor=c2Vjb25kIHBhZ2U%3D%26&date_from=2026-03-01&date_to=2026-03-31&external_id=crm%2F4711+%2B&limit=50",
		status: 200, reply: "meeting_page", replyForm: "MeetingPage",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.List(ctx, &minutes.MeetingListParams{
				Limit: 50, Cursor: "c2Vjb25kIHBhZ2U=&", ExternalID: "crm/4711 +", DateFrom: "2026-03-01", DateTo: "2026-03-31",
			}))
		},
		want: &minutes.MeetingPage{
			Meetings: []*minutes.Meeting{
				{ID: "mtg_7Kd04", Title: "Retrospective", Date: "2026-03-11", Status: minutes.StatusTranscribeBlocked, Visibility: minutes.VisibilityPrivate, TemplateID: "tpl_standard", CreatedAt: 1773221400, UpdatedAt: 1773221455},
				{ID: "mtg_7Kd02", Title: "Budget", Date: "2026-03-09", Time: "14:30", Status: minutes.StatusMinutesReady, Visibility: minutes.VisibilityShared, TemplateID: "tpl_board", ParticipantIDs: []string{"emp_ada"}, ProjectID: "prj_apollo", ExternalID: "crm/4711", DurationSeconds: new(0), CreatedAt: 1773062400, UpdatedAt: 1773066061},
			},
			NextCursor: "c2Vjb25kIHBhZ2U=",
		},
	}, {
		name: "meetings.create", method: "POST", path: "/v1/meetings",
		body: `{"title":"Budget","date":"2026-03-09","time":"14:30","external_id":"crm/4711","participant_ids":["emp_ada","emp_ben"],` +
			`"project_id":"prj_apollo","shared_with":["emp_chloe"],"template_id":"tpl_board","visibility":"shared"}`, form: "MeetingCreate",
		status: 201, reply: "meeting", replyForm: "Meeting",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			m, created, err := c.Meetings.Create(ctx, &minutes.MeetingCreateParams{
				Title: "Budget", Date: "2026-03-09", Time: "14:30", ExternalID: "crm/4711", ParticipantIDs: []string{"emp_ada", "emp_ben"},
				ProjectID: "prj_apollo", SharedWith: []string{"emp_chloe"}, TemplateID: "tpl_board", Visibility: minutes.VisibilityShared,
			})
			return creation{m, created}, err
		},
		want: creation{whole(), true},
	}, {
		name: "meetings.get", method: "GET", path: "/v1/meetings/mtg_7Kd02",
		status: 200, reply: "meeting", replyForm: "Meeting",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.Get(ctx, "mtg_7Kd02"))
		},
		want: whole(),
	}, {
		name: "meetings.update", method: "PATCH", path: "/v1/meetings/mtg_7Kd02",
		body: `{"title":"Budget","date":"2026-03-09","time":"","project_id":""}`, form: "MeetingUpdate",
		status: 200, reply: "meeting", replyForm: "Meeting",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.Update(ctx, "mtg_7Kd02", &minutes.MeetingUpdateParams{
				Title: new("Budget"), Date: new("2026-03-09"), Time: new(""), ProjectID: new(""),
			}))
		},
		want: whole(),
	}, {
		name: "meetings.delete", method: "DELETE", path: "/v1/meetings/mtg_7Kd02",
		status: 204,
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return nil, c.Meetings.Delete(ctx, "mtg_7Kd02")
		},
	}, {
		name: "meetings.set_participants", method: "PUT", path: "/v1/meetings/mtg_7Kd02/participants",
		body: `{"participant_ids":["emp_ada","emp_ben"]}`, form: "SetParticipants",
		status: 200, reply: "meeting", replyForm: "Meeting",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.SetParticipants(ctx, "mtg_7Kd02", []string{"emp_ada", "emp_ben"}))
		},
		want: whole(),
	}, {
		name: "meetings.upload_url", method: "POST", path: "/v1/meetings/mtg_7Kd02/upload-url",
		body: `{"content_type":"audio/ogg; codecs=opus"}`, form: "UploadURL",
		status: 200, reply: "upload_target", replyForm: "UploadTarget",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			t, err := c.Meetings.UploadURL(ctx, "mtg_7Kd02", "audio/ogg; codecs=opus")
			if t == nil {
				return nil, err
			}
			return revealed{t.UploadURL.Reveal(), t.ExpiresIn, t.Method}, err
		},
		want: revealed{"https://storage.example/a/b?X-Amz-Expires=900&X-Amz-Signature=0123456789abcdef", 900, "PUT"},
	}, {
		name: "meetings.minutes", method: "GET", path: "/v1/meetings/mtg_7Kd02/minutes", query: "format=markdown",
		status: 200, reply: "minutes_markdown", replyForm: "Minutes",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.Minutes(ctx, "mtg_7Kd02", minutes.FormatMarkdown))
		},
		want: &minutes.Minutes{Format: minutes.FormatMarkdown, TemplateID: "tpl_board", Content: "# Budget\n\n- Ada: agreed\n"},
	}, {
		name: "meetings.transcript", method: "GET", path: "/v1/meetings/mtg_7Kd02/transcript",
		status: 200, reply: "transcript", replyForm: "Transcript",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Meetings.Transcript(ctx, "mtg_7Kd02"))
		},
		want: "spk_0: Good morning.\nspk_1: Morning.\n",
	}, {
		name: "projects.list", method: "GET", path: "/v1/projects",
		status: 200, reply: "project_list", replyForm: "ProjectList",
		call: func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Projects.List(ctx)) },
		want: []minutes.Project{{ID: "prj_apollo", Name: "Apollo"}, {ID: "prj_gemini", Name: "Gemini"}},
	}, {
		name: "projects.create", method: "POST", path: "/v1/projects",
		body: `{"name":"Apollo"}`, form: "ProjectCreate",
		status: 201, reply: "project", replyForm: "Project",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Projects.Create(ctx, "Apollo"))
		},
		want: &minutes.Project{ID: "prj_apollo", Name: "Apollo"},
	}, {
		name: "templates.list", method: "GET", path: "/v1/templates",
		status: 200, reply: "template_list", replyForm: "TemplateList",
		call: func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Templates.List(ctx)) },
		want: []minutes.Template{
			{ID: "tpl_standard", Name: "Standard minutes", Source: "service", Description: "Summary and actions.", IsDefault: true, Version: new(3)},
			{ID: "tpl_board", Name: "Board", Source: "organisation"},
			{ID: "tpl_new", Name: "New", Source: "partner"},
		},
	}, {
		name: "usage.get", method: "GET", path: "/v1/usage",
		status: 200, reply: "usage", replyForm: "Usage",
		call: func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Usage.Get(ctx)) },
		want: &minutes.Usage{CreditsRemaining: 42, TranscribeSecondsRemaining: 35999, NextResetAt: "2026-12-01"},
	}, {
		name: "vocabulary.get", method: "GET", path: "/v1/vocabulary",
		status: 200, reply: "vocabulary", replyForm: "Vocabulary",
		call: func(ctx context.Context, c *minutes.Client) (any, error) { return result(c.Vocabulary.Get(ctx)) },
		want: fullVocabulary,
	}, {
		name: "vocabulary.replace", method: "PUT", path: "/v1/vocabulary",
		body: `{"terms":["Kubernetes","Grafana"]}`, form: "VocabularyReplace",
		status: 200, reply: "vocabulary", replyForm: "Vocabulary",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Vocabulary.Replace(ctx, []string{"Kubernetes", "Grafana"}))
		},
		want: fullVocabulary,
	}, {
		name: "vocabulary.add", method: "POST", path: "/v1/vocabulary/terms",
		body: `{"term":"Kubernetes"}`, form: "VocabularyAdd",
		status: 201, reply: "vocabulary", replyForm: "Vocabulary",
		call: func(ctx context.Context, c *minutes.Client) (any, error) {
			return result(c.Vocabulary.Add(ctx, "Kubernetes"))
		},
		want: fullVocabulary,
	}}
}

// operationNamed returns one of them.
func operationNamed(t testing.TB, name minutes.Operation) operation {
	t.Helper()
	for _, op := range operations() {
		if op.name == name {
			return op
		}
	}
	require.Fail(t, "no such operation", "%s", name)
	return operation{}
}

// A sent request is one that arrived over a real connection.
type sent struct {
	method, uri, host, body string
	header                  http.Header
	length                  int64
	encoding                []string
}

// oneReply serves the same reply to every request, below a path prefix, and
// keeps what arrives.
func oneReply(t testing.TB, status int, body string) (*minutes.Client, func() []sent) {
	t.Helper()
	arrived := make(chan sent, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		arrived <- sent{r.Method, r.RequestURI, r.Host, string(got), r.Header.Clone(), r.ContentLength, r.TransferEncoding}
		if body != "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	client, err := newClient(srv.URL+"/gateway/minutes%2Fapi/", testKey, minutes.WithHTTPClient(srv.Client()), minutes.WithRetries(0, 0, 0))
	require.NoError(t, err)
	return client, func() []sent {
		var all []sent
		for len(arrived) > 0 {
			all = append(all, <-arrived)
		}
		return all
	}
}

// Each operation puts exactly what the interface says on the wire, and makes
// exactly the Go value of what the interface answers.
func TestOperationsOnTheWire(t *testing.T) {
	t.Parallel()
	require.Len(t, operations(), 18)
	for _, op := range operations() {
		t.Run(string(op.name), func(t *testing.T) {
			t.Parallel()
			reply := ""
			if op.reply != "" {
				reply = fixture(t, op.reply)
				requireForm(t, op.replyForm, []byte(reply))
			}
			client, requests := oneReply(t, op.status, reply)

			got, err := op.call(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, op.want, got)

			all := requests()
			require.Len(t, all, 1)
			req := all[0]
			require.Equal(t, op.method, req.method)
			uri := "/gateway/minutes%2Fapi" + op.path
			if op.query != "" {
				uri += "?" + op.query
			}
			require.Equal(t, uri, req.uri)
			require.Empty(t, req.encoding, "a length is sent, not chunks")
			header := http.Header{
				"Authorization":   {"Bearer " + testKey},
				"Accept":          {"application/json"},
				"Accept-Encoding": {"gzip"}, // net/http's own
				"User-Agent":      req.header["User-Agent"],
			}
			require.Regexp(t, `^minutes-go/\d+\.\d+\.\d+\S*$`, req.header.Get("User-Agent"))
			if op.body == "" {
				require.Empty(t, req.body)
				require.Zero(t, req.length)
			} else {
				header["Content-Type"] = []string{"application/json"}
				header["Content-Length"] = req.header["Content-Length"]
				require.EqualValues(t, len(req.body), req.length)
				require.Equal(t, op.body, req.body)
				requireForm(t, op.form, []byte(req.body))
			}
			require.Equal(t, header, req.header, "no header is missing and none is extra")
		})
	}
}

// What the parameters leave out is left out of the body and the query; lists
// that the interface requires are never null.
func TestOptionalParameters(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply       string
		query, body string
		call        func(*minutes.Client) error
	}{
		"member with a name alone": {"member", "", `{"name":"Dai"}`, func(c *minutes.Client) error {
			_, err := c.Members.Create(t.Context(), &minutes.MemberCreateParams{Name: "Dai"})
			return err
		}},
		"meeting with what is required alone": {"meeting", "", `{"title":"Stand-up","date":"2026-03-10"}`, func(c *minutes.Client) error {
			_, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"})
			return err
		}},
		"meeting with empty lists": {"meeting", "", `{"title":"Stand-up","date":"2026-03-10"}`, func(c *minutes.Client) error {
			_, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10", ParticipantIDs: []string{}, SharedWith: []string{}})
			return err
		}},
		"update of nothing": {"meeting", "", `{}`, func(c *minutes.Client) error {
			_, err := c.Meetings.Update(t.Context(), "mtg_7Kd02", &minutes.MeetingUpdateParams{})
			return err
		}},
		"update with nil": {"meeting", "", `{}`, func(c *minutes.Client) error {
			_, err := c.Meetings.Update(t.Context(), "mtg_7Kd02", nil)
			return err
		}},
		"update of one field": {"meeting", "", `{"date":"2026-03-11"}`, func(c *minutes.Client) error {
			_, err := c.Meetings.Update(t.Context(), "mtg_7Kd02", &minutes.MeetingUpdateParams{Date: new("2026-03-11")})
			return err
		}},
		"update that clears time and project": {"meeting", "", `{"time":"","project_id":""}`, func(c *minutes.Client) error {
			_, err := c.Meetings.Update(t.Context(), "mtg_7Kd02", &minutes.MeetingUpdateParams{Time: new(""), ProjectID: new("")})
			return err
		}},
		"no participants, nil": {"meeting", "", `{"participant_ids":[]}`, func(c *minutes.Client) error {
			_, err := c.Meetings.SetParticipants(t.Context(), "mtg_7Kd02", nil)
			return err
		}},
		"no participants, empty": {"meeting", "", `{"participant_ids":[]}`, func(c *minutes.Client) error {
			_, err := c.Meetings.SetParticipants(t.Context(), "mtg_7Kd02", []string{})
			return err
		}},
		"no terms": {"vocabulary_empty", "", `{"terms":[]}`, func(c *minutes.Client) error {
			_, err := c.Vocabulary.Replace(t.Context(), nil)
			return err
		}},
		"list with nil": {"meeting_page", "", "", func(c *minutes.Client) error {
			_, err := c.Meetings.List(t.Context(), nil)
			return err
		}},
		"list with zero": {"meeting_page", "", "", func(c *minutes.Client) error {
			_, err := c.Meetings.List(t.Context(), &minutes.MeetingListParams{})
			return err
		}},
		"list with a limit that the service refuses": {"meeting_page", "limit=-1", "", func(c *minutes.Client) error {
			_, err := c.Meetings.List(t.Context(), &minutes.MeetingListParams{Limit: -1})
			return err
		}},
		"minutes in the default format": {"minutes_html", "", "", func(c *minutes.Client) error {
			_, err := c.Meetings.Minutes(t.Context(), "mtg_1", "")
			return err
		}},
		"find by external id": {"meeting_page", "external_id=crm%2F4711", "", func(c *minutes.Client) error {
			_, err := c.Meetings.FindByExternalID(t.Context(), "crm/4711")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, requests := oneReply(t, 200, fixture(t, test.reply))
			require.NoError(t, test.call(client))
			all := requests()
			require.Len(t, all, 1)
			require.Equal(t, test.body, all[0].body)
			_, query, _ := strings.Cut(all[0].uri, "?")
			require.Equal(t, test.query, query)
		})
	}
}

// Replies with fields absent, null or empty, each to its Go value.
func TestReplyVariants(t *testing.T) {
	t.Parallel()
	standUp := &minutes.Meeting{
		ID: "mtg_7Kd02", Title: "Stand-up", Date: "2026-03-10", Status: minutes.StatusCreated, Visibility: minutes.VisibilityOrganisation,
		TemplateID: "tpl_standard", ParticipantIDs: []string{}, CreatedAt: 1773135000, UpdatedAt: 1773135000,
	}
	retrospective := &minutes.Meeting{
		ID: "mtg_7Kd02", Title: "Retrospective", Date: "2026-03-11", Status: minutes.StatusAudioUploaded, Visibility: minutes.VisibilityPrivate,
		TemplateID: "tpl_standard", CreatedAt: 1773221400, UpdatedAt: 1773221455,
	}
	for _, test := range []struct {
		op      minutes.Operation
		status  int
		fixture string
		want    any
	}{
		{"meetings.get", 200, "meeting_nulls", standUp},
		{"meetings.get", 200, "meeting_absent", retrospective},
		{"meetings.create", 200, "meeting_nulls", creation{standUp, false}},
		{"meetings.create", 201, "meeting_nulls", creation{standUp, true}},
		{"meetings.list", 200, "meeting_page_nulls", &minutes.MeetingPage{Meetings: []*minutes.Meeting{}}},
		{"meetings.list", 200, "meeting_page_absent", &minutes.MeetingPage{Meetings: []*minutes.Meeting{}}},
		{"meetings.delete", 200, "meeting", nil},
		{"meetings.transcript", 200, "transcript_empty", ""},
		{"meetings.minutes", 200, "minutes_html", &minutes.Minutes{Format: minutes.FormatHTML, TemplateID: "tpl_board", Content: "<h1>Budget &amp; staffing</h1>"}},
		{"meetings.upload_url", 201, "upload_target", operationNamed(t, "meetings.upload_url").want},
		{"meetings.upload_url", 200, "upload_target_absent", operationNamed(t, "meetings.upload_url").want},
		{"members.create", 201, "member_nulls", &minutes.Member{ID: "emp_dai", Name: "Dai Nguyen", Status: minutes.MemberInvited}},
		{"members.create", 201, "member_absent", &minutes.Member{ID: "emp_dai", Name: "Dai Nguyen", Status: minutes.MemberDeactivated}},
		{"usage.get", 200, "usage_nulls", &minutes.Usage{}},
		{"usage.get", 200, "usage_absent", &minutes.Usage{CreditsRemaining: 1}},
		{"vocabulary.add", 200, "vocabulary", fullVocabulary},
		{"vocabulary.get", 200, "vocabulary_empty", &minutes.Vocabulary{Terms: []string{}, Entries: []minutes.VocabularyEntry{}, MaxTerms: 200}},
	} {
		t.Run(string(test.op)+" "+test.fixture, func(t *testing.T) {
			t.Parallel()
			client, _ := oneReply(t, test.status, fixture(t, test.fixture))
			got, err := operationNamed(t, test.op).call(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// The interface is open: fields, states and codes to come do no harm.
func TestRepliesOfALaterInterface(t *testing.T) {
	t.Parallel()
	client, _ := oneReply(t, 200, `{"id":"mtg_1","title":"T","date":"2027-01-01","status":"being_translated","visibility":"galaxy",
		"template_id":"tpl","summary":{"mood":["good"]},"created_at":1,"updated_at":2}`)
	m, err := client.Meetings.Get(t.Context(), "mtg_1")
	require.NoError(t, err)
	require.Equal(t, minutes.Status("being_translated"), m.Status)
	require.False(t, m.Status.Final())
	require.Equal(t, minutes.Visibility("galaxy"), m.Visibility)
}

// revealed is an upload target that shows its URL, as the service sends it and as
// a test compares it.
type revealed struct {
	UploadURL string `json:"upload_url"`
	ExpiresIn int    `json:"expires_in"`
	Method    string `json:"method"`
}

// presigned is a URL as a client decodes it.
func presigned(url string) (u minutes.PresignedURL) {
	if err := u.UnmarshalText([]byte(url)); err != nil {
		panic(err)
	}
	return u
}

// No value is returned beside an error: not a pointer, not a list, not created.
func requireNothing(t testing.TB, got any) {
	t.Helper()
	require.True(t, got == nil || reflect.ValueOf(got).IsZero(), "a value beside an error: %#v", got)
}

// A Client starts nothing that would have to be stopped: the bubble would not
// end before it.
func TestClientHoldsNoGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := newClient("https://minutes.example", testKey)
		require.NoError(t, err)
	})
}
