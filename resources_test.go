package minutes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// The body and the query omit empty parameters. Lists that the API reference requires are never
// null.
func TestResources_OmitEmptyParameters(t *testing.T) {
	t.Parallel()
	const standUp = `{"title":"Stand-up","date":"2026-03-10"}`
	for name, test := range map[string]struct {
		response    string
		query, body string
		call        func(*minutes.Client) error
	}{
		"meeting with required fields only": {"meeting_absent", "", standUp, func(c *minutes.Client) error {
			params := &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"}
			_, _, err := c.Meetings.Create(t.Context(), params)
			return err
		}},
		"meeting with empty lists": {"meeting_absent", "", standUp, func(c *minutes.Client) error {
			_, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{
				Title: "Stand-up", Date: "2026-03-10", ParticipantIDs: []string{}, SharedWith: []string{},
			})
			return err
		}},
		"empty update": {"meeting", "", `{}`, func(c *minutes.Client) error {
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
		"time and project cleared": {"meeting", "", `{"time":"","project_id":""}`, func(c *minutes.Client) error {
			params := &minutes.MeetingUpdateParams{Time: new(""), ProjectID: new("")}
			_, err := c.Meetings.Update(t.Context(), "mtg_7Kd02", params)
			return err
		}},
		"no participants": {"meeting", "", `{"participant_ids":[]}`, func(c *minutes.Client) error {
			_, err := c.Meetings.SetParticipants(t.Context(), "mtg_7Kd02", []string{})
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
		"list with a limit that the service rejects": {"meeting_page", "limit=-1", "", func(c *minutes.Client) error {
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
		"member with a name only": {"member", "", `{"name":"Dai"}`, func(c *minutes.Client) error {
			_, err := c.Members.Create(t.Context(), &minutes.MemberCreateParams{Name: "Dai"})
			return err
		}},
		"no terms": {"vocabulary_empty", "", `{"terms":[]}`, func(c *minutes.Client) error {
			_, err := c.Vocabulary.Replace(t.Context(), []string{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, requests := testkit.OneResponse(t, 200, testkit.Fixture(t, test.response))
			require.NoError(t, test.call(client))
			all := requests()
			require.Len(t, all, 1)
			require.Equal(t, test.body, all[0].Body)
			_, query, _ := strings.Cut(all[0].URI, "?")
			require.Equal(t, test.query, query)
		})
	}
}

// Absent, null and empty fields of a response decode to their Go values.
func TestResources_DecodeAbsentAndNullFields(t *testing.T) {
	t.Parallel()
	standUp := &minutes.Meeting{
		ID: "mtg_7Kd02", Title: "Stand-up", Date: "2026-03-10",
		Status: minutes.StatusCreated, Visibility: minutes.VisibilityOrganisation,
		TemplateID: "tpl_standard", ParticipantIDs: []string{}, CreatedAt: 1773135000, UpdatedAt: 1773135000,
	}
	retrospective := &minutes.Meeting{
		ID: "mtg_7Kd02", Title: "Retrospective", Date: "2026-03-11",
		Status: minutes.StatusAudioUploaded, Visibility: minutes.VisibilityPrivate,
		TemplateID: "tpl_standard", CreatedAt: 1773221400, UpdatedAt: 1773221455,
	}
	uploadTarget := testkit.OperationNamed(t, "meetings.upload_url").Want
	for _, test := range []struct {
		op      minutes.Operation
		status  int
		fixture string
		want    any
	}{
		{"meetings.get", 200, "meeting_nulls", standUp},
		{"meetings.get", 200, "meeting_absent", retrospective},
		{"meetings.create", 200, "meeting_nulls", testkit.Creation{Meeting: standUp, Created: false}},
		{"meetings.create", 201, "meeting_nulls", testkit.Creation{Meeting: standUp, Created: true}},
		{"meetings.list", 200, "meeting_page_nulls", &minutes.MeetingPage{Meetings: []*minutes.Meeting{}}},
		{"meetings.list", 200, "meeting_page_absent", &minutes.MeetingPage{Meetings: []*minutes.Meeting{}}},
		{"meetings.delete", 200, "meeting", nil},
		{"meetings.transcript", 200, "transcript_empty", &minutes.Transcript{}},
		{
			"meetings.minutes", 200, "minutes_html",
			&minutes.Minutes{
				Format: minutes.FormatHTML, TemplateID: "tpl_board", Content: "<h1>Budget &amp; staffing</h1>",
			},
		},
		{"meetings.upload_url", 201, "upload_target", uploadTarget},
		{"meetings.upload_url", 200, "upload_target_absent", uploadTarget},
		{
			"members.create", 201, "member_nulls",
			&minutes.Member{ID: "emp_dai", Name: "Dai Nguyen", Status: minutes.MemberStatusInvited},
		},
		{
			"members.create", 201, "member_absent",
			&minutes.Member{ID: "emp_dai", Name: "Dai Nguyen", Status: minutes.MemberStatusDeactivated},
		},
		{"usage.get", 200, "usage_nulls", &minutes.Usage{}},
		{"usage.get", 200, "usage_absent", &minutes.Usage{CreditsRemaining: 1}},
		{"vocabulary.add", 200, "vocabulary", testkit.FullVocabulary},
		{
			"vocabulary.get", 200, "vocabulary_empty",
			&minutes.Vocabulary{Terms: []string{}, Entries: []minutes.VocabularyEntry{}, MaxTerms: 200},
		},
	} {
		t.Run(string(test.op)+" "+test.fixture, func(t *testing.T) {
			t.Parallel()
			client, _ := testkit.OneResponse(t, test.status, testkit.Fixture(t, test.fixture))
			got, err := testkit.OperationNamed(t, test.op).Call(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// Every method rejects parameters that are missing, by name, before any request.
func TestResources_RejectUnusableParameters(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		param string
		call  func(context.Context, *minutes.Client) (any, error)
	}{
		"create without params": {"params", func(ctx context.Context, c *minutes.Client) (any, error) {
			m, created, err := c.Meetings.Create(ctx, nil)
			return testkit.Creation{Meeting: m, Created: created}, err
		}},
		"no list of participants": {"memberIDs", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Meetings.SetParticipants(ctx, "mtg_1", nil))
		}},
		"no list of terms": {"terms", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Vocabulary.Replace(ctx, nil))
		}},
		"no external id to find": {"externalID", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Meetings.FindByExternalID(ctx, ""))
		}},
		"no content type": {"contentType", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Meetings.UploadURL(ctx, "mtg_1", ""))
		}},
		"member without params": {"params", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Members.Create(ctx, nil))
		}},
		"project without params": {"params", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Projects.Create(ctx, nil))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.call(t.Context(), testkit.Silent(t))
			testkit.RequireNothing(t, got)
			testkit.RequireParamError(t, err, test.param, "")
		})
	}
}

// The constants spell the interface's words.
func TestConstants_MatchTheInterface(t *testing.T) {
	t.Parallel()
	for got, want := range map[any]string{
		minutes.StatusCreated:             "created",
		minutes.StatusAudioUploaded:       "audio_uploaded",
		minutes.StatusTranscribing:        "transcribing",
		minutes.StatusTranscribed:         "transcribed",
		minutes.StatusGeneratingMinutes:   "generating_minutes",
		minutes.StatusMinutesReady:        "minutes_ready",
		minutes.StatusTranscriptionFailed: "transcription_failed",
		minutes.StatusMinutesFailed:       "minutes_failed",
		minutes.StatusTranscribeBlocked:   "transcribe_blocked",
		minutes.StatusAudioRejected:       "audio_rejected",
		minutes.VisibilityPrivate:         "private",
		minutes.VisibilityOrganisation:    "organisation",
		minutes.VisibilityShared:          "shared",
		minutes.FormatHTML:                "html",
		minutes.FormatMarkdown:            "markdown",
		minutes.MemberStatusActive:        "active",
		minutes.MemberStatusInvited:       "invited",
		minutes.MemberStatusNoAccount:     "no_account",
		minutes.MemberStatusDeactivated:   "deactivated",
	} {
		require.Equal(t, want, fmt.Sprint(got))
	}
}

// Decoded values encode to the JSON that the API has for them. Of a list, the first element shows every
// field.
func TestValues_EncodeAsTheInterface(t *testing.T) {
	t.Parallel()
	for _, op := range testkit.Operations() {
		switch op.Want.(type) {
		case nil, testkit.Creation, testkit.Revealed: // no value, two values, and a value of the test kit
			continue
		}
		want := testkit.Fixture(t, op.Response)
		value := op.Want
		list := reflect.ValueOf(value)
		if list.Kind() == reflect.Slice {
			var response map[string][]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(want), &response))
			for _, elements := range response {
				want = string(elements[0])
			}
			value = list.Index(0).Interface()
		}
		text, err := json.Marshal(value)
		require.NoError(t, err)
		require.JSONEq(t, want, string(text), op.Name)
	}
}

func TestUnixTime_PrintsAndConverts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 9, 14, 30, 1, 0, time.FixedZone("", 3600))
	u := minutes.UnixTime(at.Unix())
	require.True(t, at.Equal(u.Time()))
	require.Equal(t, time.UTC, u.Time().Location())
	require.Equal(t, "2026-03-09T13:30:01Z", u.String())
	require.Equal(t, "2026-03-09T13:30:01Z", fmt.Sprint(u))
	require.True(t, minutes.UnixTime(0).Time().IsZero(), "no time is no time in 1970")
	require.Empty(t, minutes.UnixTime(0).String())
	require.Equal(t, "1969-12-31T23:59:59Z", minutes.UnixTime(-1).String())
	for _, far := range []minutes.UnixTime{math.MaxInt64, math.MinInt64} {
		require.NotPanics(t, func() { _ = far.String() + far.Time().String() })
	}
	text, err := json.Marshal(u)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(at.Unix()), string(text))
}

func TestUsage_ConvertsToTimes(t *testing.T) {
	t.Parallel()
	u := minutes.Usage{TranscribeSecondsRemaining: 90, NextResetAt: "2026-12-01"}
	require.Equal(t, 90*time.Second, u.TranscribeRemaining())
	at, ok := u.ResetAt()
	require.True(t, ok)
	require.Equal(t, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), at)
	for _, none := range []string{"", "2026-02-30", "tomorrow"} {
		at, ok := (&minutes.Usage{NextResetAt: none}).ResetAt()
		require.False(t, ok, none)
		require.True(t, at.IsZero(), none)
	}
}

// Section 3: which states are failures, and which are final.
func TestStatus_FailedAndFinal(t *testing.T) {
	t.Parallel()
	for status, want := range map[minutes.Status]struct{ failed, final bool }{
		"created":              {false, false},
		"audio_uploaded":       {false, false},
		"transcribing":         {false, false},
		"transcribed":          {false, false},
		"generating_minutes":   {false, false},
		"minutes_ready":        {false, true},
		"transcription_failed": {true, true},
		"minutes_failed":       {true, true},
		"transcribe_blocked":   {true, true},
		"audio_rejected":       {true, true},
		"being_translated":     {false, false},
		"Minutes_Ready":        {false, false},
		"":                     {false, false},
	} {
		require.Equal(t, want.failed, status.Failed(), status)
		require.Equal(t, want.final, status.Final(), status)
	}
}
