package minutes_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Each operation puts exactly what the interface says on the wire, and makes
// exactly the Go value of what the interface answers.
func TestOperationsOnTheWire(t *testing.T) {
	t.Parallel()
	require.Len(t, operations(), 18)
	for _, op := range operations() {
		t.Run(string(op.Name), func(t *testing.T) {
			t.Parallel()
			reply := ""
			if op.Reply != "" {
				reply = fixture(t, op.Reply)
				requireForm(t, op.ReplyForm, []byte(reply))
			}
			client, requests := oneReply(t, op.Status, reply)

			got, err := op.Call(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, op.Want, got)

			all := requests()
			require.Len(t, all, 1)
			req := all[0]
			require.Equal(t, op.Method, req.Method)
			uri := "/gateway/minutes%2Fapi" + op.Path
			if op.Query != "" {
				uri += "?" + op.Query
			}
			require.Equal(t, uri, req.URI)
			require.Empty(t, req.Encoding, "a length is sent, not chunks")
			header := http.Header{
				"Authorization":   {"Bearer " + testKey},
				"Accept":          {"application/json"},
				"Accept-Encoding": {"gzip"}, // net/http's own
				"User-Agent":      req.Header["User-Agent"],
			}
			require.Regexp(t, `^minutes-go/\d+\.\d+\.\d+\S*$`, req.Header.Get("User-Agent"))
			if op.Body == "" {
				require.Empty(t, req.Body)
				require.Zero(t, req.Length)
			} else {
				header["Content-Type"] = []string{"application/json"}
				header["Content-Length"] = req.Header["Content-Length"]
				require.EqualValues(t, len(req.Body), req.Length)
				require.Equal(t, op.Body, req.Body)
				requireForm(t, op.Form, []byte(req.Body))
			}
			require.Equal(t, header, req.Header, "no header is missing and none is extra")
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
			_, err := c.Meetings.Update(t.Context(), "mtg_1", &minutes.MeetingUpdateParams{})
			return err
		}},
		"update with nil": {"meeting", "", `{}`, func(c *minutes.Client) error {
			_, err := c.Meetings.Update(t.Context(), "mtg_1", nil)
			return err
		}},
		"update of one field": {"meeting", "", `{"date":"2026-03-11"}`, func(c *minutes.Client) error {
			_, err := c.Meetings.Update(t.Context(), "mtg_1", &minutes.MeetingUpdateParams{Date: new("2026-03-11")})
			return err
		}},
		"update that clears time and project": {"meeting", "", `{"time":"","project_id":""}`, func(c *minutes.Client) error {
			_, err := c.Meetings.Update(t.Context(), "mtg_1", &minutes.MeetingUpdateParams{Time: new(""), ProjectID: new("")})
			return err
		}},
		"no participants, nil": {"meeting", "", `{"participant_ids":[]}`, func(c *minutes.Client) error {
			_, err := c.Meetings.SetParticipants(t.Context(), "mtg_1", nil)
			return err
		}},
		"no participants, empty": {"meeting", "", `{"participant_ids":[]}`, func(c *minutes.Client) error {
			_, err := c.Meetings.SetParticipants(t.Context(), "mtg_1", []string{})
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
			require.Equal(t, test.body, all[0].Body)
			_, query, _ := strings.Cut(all[0].URI, "?")
			require.Equal(t, test.query, query)
		})
	}
}

// Replies with fields absent, null or empty, each to its Go value.
func TestReplyVariants(t *testing.T) {
	t.Parallel()
	standUp := &minutes.Meeting{
		ID: "mtg_7Kd03", Title: "Stand-up", Date: "2026-03-10", Status: minutes.StatusCreated, Visibility: minutes.VisibilityOrganisation,
		TemplateID: "tpl_standard", ParticipantIDs: []string{}, CreatedAt: 1773135000, UpdatedAt: 1773135000,
	}
	retrospective := &minutes.Meeting{
		ID: "mtg_7Kd04", Title: "Retrospective", Date: "2026-03-11", Status: minutes.StatusAudioUploaded, Visibility: minutes.VisibilityPrivate,
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
		{"meetings.create", 200, "meeting_nulls", creation{Meeting: standUp, Created: false}},
		{"meetings.create", 201, "meeting_nulls", creation{Meeting: standUp, Created: true}},
		{"meetings.list", 200, "meeting_page_nulls", &minutes.MeetingPage{Meetings: []*minutes.Meeting{}}},
		{"meetings.list", 200, "meeting_page_absent", &minutes.MeetingPage{Meetings: []*minutes.Meeting{}}},
		{"meetings.delete", 200, "meeting", nil},
		{"meetings.transcript", 200, "transcript_empty", ""},
		{"meetings.minutes", 200, "minutes_html", &minutes.Minutes{Format: minutes.FormatHTML, TemplateID: "tpl_board", Content: "<h1>Budget &amp; staffing</h1>"}},
		{"meetings.upload_url", 201, "upload_target", operationNamed(t, "meetings.upload_url").Want},
		{"meetings.upload_url", 200, "upload_target_absent", operationNamed(t, "meetings.upload_url").Want},
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
			got, err := operationNamed(t, test.op).Call(t.Context(), client)
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

// A Client starts nothing that would have to be stopped: the bubble would not
// end before it.
func TestClientHoldsNoGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := newClient("https://minutes.example", testKey)
		require.NoError(t, err)
	})
}
