package minutes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The body and the query omit empty parameters. Lists that the interface requires are never null.
func TestMeetings_OmitEmptyParameters(t *testing.T) {
	t.Parallel()
	requireSent(t, map[string]optional{
		"meeting with required fields only": {"meeting", "", `{"title":"Stand-up","date":"2026-03-10"}`, func(c *minutes.Client) error {
			_, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"})
			return err
		}},
		"meeting with empty lists": {"meeting", "", `{"title":"Stand-up","date":"2026-03-10"}`, func(c *minutes.Client) error {
			_, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10", ParticipantIDs: []string{}, SharedWith: []string{}})
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
	})
}

// Absent, null and empty fields of a response decode to their Go values.
func TestMeetings_DecodeAbsentAndNullFields(t *testing.T) {
	t.Parallel()
	standUp := &minutes.Meeting{
		ID: "mtg_7Kd02", Title: "Stand-up", Date: "2026-03-10", Status: minutes.StatusCreated, Visibility: minutes.VisibilityOrganisation,
		TemplateID: "tpl_standard", ParticipantIDs: []string{}, CreatedAt: 1773135000, UpdatedAt: 1773135000,
	}
	retrospective := &minutes.Meeting{
		ID: "mtg_7Kd02", Title: "Retrospective", Date: "2026-03-11", Status: minutes.StatusAudioUploaded, Visibility: minutes.VisibilityPrivate,
		TemplateID: "tpl_standard", CreatedAt: 1773221400, UpdatedAt: 1773221455,
	}
	requireDecoded(t, []variant{
		{"meetings.get", 200, "meeting_nulls", standUp},
		{"meetings.get", 200, "meeting_absent", retrospective},
		{"meetings.create", 200, "meeting_nulls", testkit.Creation{Meeting: standUp, Created: false}},
		{"meetings.create", 201, "meeting_nulls", testkit.Creation{Meeting: standUp, Created: true}},
		{"meetings.list", 200, "meeting_page_nulls", &minutes.MeetingPage{Meetings: []*minutes.Meeting{}}},
		{"meetings.list", 200, "meeting_page_absent", &minutes.MeetingPage{Meetings: []*minutes.Meeting{}}},
		{"meetings.delete", 200, "meeting", nil},
		{"meetings.transcript", 200, "transcript_empty", &minutes.Transcript{}},
		{"meetings.minutes", 200, "minutes_html", &minutes.Minutes{Format: minutes.FormatHTML, TemplateID: "tpl_board", Content: "<h1>Budget &amp; staffing</h1>"}},
		{"meetings.upload_url", 201, "upload_target", testkit.OperationNamed(t, "meetings.upload_url").Want},
		{"meetings.upload_url", 200, "upload_target_absent", testkit.OperationNamed(t, "meetings.upload_url").Want},
	})
}

// Every method rejects parameters that are missing, by name, before any request.
func TestMeetings_RejectUnusableParameters(t *testing.T) {
	t.Parallel()
	requireRejected(t, map[string]unusable{
		"create without params": {"params", func(ctx context.Context, c *minutes.Client) (any, error) {
			m, created, err := c.Meetings.Create(ctx, nil)
			return testkit.Creation{Meeting: m, Created: created}, err
		}},
		"no external id to find": {"externalID", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Meetings.FindByExternalID(ctx, ""))
		}},
		"no content type": {"contentType", func(ctx context.Context, c *minutes.Client) (any, error) {
			return testkit.Result(c.Meetings.UploadURL(ctx, "mtg_1", ""))
		}},
	})
}

// takesID lists the operations on one meeting.
func takesID() map[string]func(context.Context, *minutes.Client, string) (any, error) {
	calls := map[string]func(context.Context, *minutes.Client, string) (any, error){}
	for _, op := range testkit.Operations() {
		if strings.Contains(op.Path, testkit.MeetingID) {
			calls[string(op.Name)] = op.Do
		}
	}
	return calls
}

// Every method rejects ids that would change the path, before any request.
func TestMeetings_RejectUnusableIDs(t *testing.T) {
	t.Parallel()
	ids := map[string]string{
		"empty": "", "dot": ".", "dots": "..", "newline": "mtg_1\n", "header": "mtg_1\r\nX-Evil: 1", "NUL": "mtg_\x00",
		"DEL": "mtg_\x7f", "C1": "mtg_\u0085",
	}
	calls := takesID()
	calls["upload"] = func(ctx context.Context, c *minutes.Client, id string) (any, error) {
		return nil, c.Meetings.Upload(ctx, id, testkit.WAV(1), nil)
	}
	for call, do := range calls {
		for name, id := range ids {
			t.Run(call+" "+name, func(t *testing.T) {
				t.Parallel()
				got, err := do(t.Context(), testkit.Silent(t), id)
				testkit.RequireNothing(t, got)
				testkit.RequireParamError(t, err, "id", id)
			})
		}
	}
}

// Every other id is one path segment, whatever it contains, and arrives unchanged.
func TestMeetings_IDIsOnePathSegment(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"mtg_1", "a/b", "../../v1/usage", "/", "//", "a?b=c", "a#b", "%2e", "%2e%2e", "%2F", "%", "%zz", "é", "a b", " ", "+", "a;b=c", "a:b", "...",
		"{meeting_id}", `a\b`, "日本", "a&b", "\u202e", strings.Repeat("x", 3000),
	} {
		t.Run(id[:min(len(id), 20)], func(t *testing.T) {
			t.Parallel()
			client, requests := testkit.OneResponse(t, 404, testkit.Fixture(t, "error_absent"))
			for name, do := range takesID() {
				_, err := do(t.Context(), client, id)
				require.ErrorIs(t, err, minutes.ErrNotFound, name)
				require.NotContains(t, err.Error(), "\u202e", "what steers a terminal is not printed")
				all := requests()
				require.Len(t, all, 1)
				path, _, _ := strings.Cut(all[0].URI, "?")
				rest, ok := strings.CutPrefix(path, "/gateway/minutes%2Fapi/v1/meetings/")
				require.True(t, ok, path)
				segment, rest, _ := strings.Cut(rest, "/")
				require.NotContains(t, rest, "/")
				arrived, err := url.PathUnescape(segment)
				require.NoError(t, err)
				require.Equal(t, id, arrived)
				require.NotContains(t, []string{".", ".."}, segment)
			}
		})
	}
}

// The constants spell the interface's words.
func TestConstants_MatchTheInterface(t *testing.T) {
	t.Parallel()
	for got, want := range map[any]string{
		minutes.StatusCreated: "created", minutes.StatusAudioUploaded: "audio_uploaded", minutes.StatusTranscribing: "transcribing",
		minutes.StatusTranscribed: "transcribed", minutes.StatusGeneratingMinutes: "generating_minutes", minutes.StatusMinutesReady: "minutes_ready",
		minutes.StatusTranscriptionFailed: "transcription_failed", minutes.StatusMinutesFailed: "minutes_failed",
		minutes.StatusTranscribeBlocked: "transcribe_blocked", minutes.StatusAudioRejected: "audio_rejected",
		minutes.VisibilityPrivate: "private", minutes.VisibilityOrganisation: "organisation", minutes.VisibilityShared: "shared",
		minutes.FormatHTML: "html", minutes.FormatMarkdown: "markdown",
		minutes.MemberActive: "active", minutes.MemberInvited: "invited", minutes.MemberNoAccount: "no_account", minutes.MemberDeactivated: "deactivated",
	} {
		require.Equal(t, want, fmt.Sprint(got))
	}
}

// Decoded values encode to the interface's own form.
func TestValues_EncodeAsTheInterface(t *testing.T) {
	t.Parallel()
	for _, op := range testkit.Operations() {
		form := op.ResponseForm
		value := op.Want
		switch v := value.(type) {
		case nil, string:
			continue
		case testkit.Creation:
			value = v.Meeting
		}
		if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
			form, value = strings.TrimSuffix(form, "List"), list.Index(0).Interface()
		}
		text, err := json.Marshal(value)
		require.NoError(t, err)
		testkit.RequireForm(t, form, text)
	}
}

func TestMeeting_DurationIsKnownOnceProcessed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 30*time.Minute+5*time.Second, testkit.Whole().Duration())
	require.Zero(t, new(minutes.Meeting).Duration())
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

// DateOf and TimeOfDay use the time's own zone.
func TestDateOf_AndTimeOfDayUseTheTimesZone(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]time.Time{
		"2026-03-09 00:05": time.Date(2026, 3, 9, 0, 5, 59, 0, time.FixedZone("", 14*3600)),
		"2026-12-31 23:59": time.Date(2026, 12, 31, 23, 59, 59, 999, time.FixedZone("", -11*3600)),
		"0987-01-02 03:04": time.Date(987, 1, 2, 3, 4, 0, 0, time.UTC),
	} {
		require.Equal(t, want, minutes.DateOf(at)+" "+minutes.TimeOfDay(at))
	}
}

// A Delete that gets NOT_FOUND has succeeded if an earlier attempt may have taken effect.
func TestDelete_SucceedsIfEarlierAttemptDidIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		faults []minutestest.Fault
		dial   error
		ok     bool
	}{
		{"response lost", []minutestest.Fault{minutestest.LoseResponse()}, nil, true},
		{"502 after the effect", []minutestest.Fault{minutestest.BadGateway().AfterEffect()}, nil, true},
		{"500 after the effect", []minutestest.Fault{minutestest.Refuse(minutes.ErrInternal).AfterEffect()}, nil, true},
		{"503 after the effect", []minutestest.Fault{minutestest.Respond(503, "text/html", "<p>later").AfterEffect()}, nil, true},
		{"504 after the effect", []minutestest.Fault{minutestest.Respond(504, "text/html", "<p>later").AfterEffect()}, nil, true},
		{"time-out after the effect", []minutestest.Fault{minutestest.Delay(time.Hour).AfterEffect()}, nil, true},
		{"response lost, then 429", []minutestest.Fault{minutestest.LoseResponse(), minutestest.RateLimit("1")}, nil, true},
		{"response lost, then half a NOT_FOUND", []minutestest.Fault{minutestest.LoseResponse(), minutestest.Truncate(9)}, nil, true},
		{"429", []minutestest.Fault{minutestest.RateLimit("1")}, nil, false},
		{"never connected", nil, testbase.ErrRefused, false},
		{"half a NOT_FOUND", []minutestest.Fault{minutestest.Truncate(9)}, nil, false},
		{"nothing", nil, nil, false},
		{"page of a gateway", []minutestest.Fault{minutestest.LoseResponse(), minutestest.Respond(404, "text/html", "<h1>no</h1>")}, nil, false},
		{"forbidden", []minutestest.Fault{minutestest.LoseResponse(), minutestest.Refuse(minutes.ErrForbidden)}, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				m, _, err := testkit.Client(srv).Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Gone", Date: "2026-11-20"})
				require.NoError(t, err)
				if !test.ok && test.name != "page of a gateway" && test.name != "forbidden" {
					require.NoError(t, testkit.Client(srv).Meetings.Delete(t.Context(), m.ID)) // by another caller
				}
				if test.faults != nil {
					srv.Inject(minutestest.Match{Operation: "meetings.delete"}, test.faults...)
				}
				l := &testkit.Line{Op: "meetings.delete", Dial: test.dial, Dials: 1}
				err = l.On(srv).Meetings.Delete(t.Context(), m.ID)
				if test.ok {
					require.NoError(t, err)
					return
				}
				require.Error(t, err)
			})
		})
	}
}

func TestCreate_FindsItsOwnMeetingAfterLostResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: "meetings.create"}, minutestest.LoseResponse(), minutestest.Truncate(3), minutestest.BadGateway().AfterEffect())
		c := testkit.Client(srv)
		m, created, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Once", Date: "2026-11-20", ExternalID: "crm/1"})
		require.NoError(t, err)
		require.False(t, created, "the last response says so")
		page, err := c.Meetings.List(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, page.Meetings, 1)
		require.Equal(t, m.ID, page.Meetings[0].ID)
	})
}

// A service may store a reference in another form. FindByExternalID still finds that meeting, and
// no other.
func TestFindByExternalID_AcceptsOtherFormsOfTheReference(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "caf\u00e9.m4a", "cafe\u0301.m4a" // in Unicode NFC, and as a Mac names files
	for _, test := range []struct {
		asked, stored string
		others        int // on the same page
		found         bool
	}{
		{composed, composed, 0, true}, {" crm/1 ", "crm/1", 0, true}, {decomposed, composed, 0, false},
		{"crm/1", "crm/1", 3, true}, {composed, composed, 3, true},
		{"crm/1", "crm/2", 0, false}, {"CRM/1", "crm/1", 0, false}, {"cafe.m4a", composed, 0, false}, {decomposed, composed, 3, false},
	} {
		stored, err := json.Marshal(test.stored)
		require.NoError(t, err)
		meeting := `{"id":"mtg_1","status":"created","external_id":` + string(stored) + `}`
		page := `{"meetings":[` + strings.Repeat(`{"id":"mtg_x","status":"created","external_id":"x"},`, test.others) + meeting + `]}`
		c, _ := testkit.Responding(t, testkit.Canned(200, page))
		m, err := c.Meetings.FindByExternalID(t.Context(), test.asked)
		if test.found {
			require.NoError(t, err, test)
			require.Equal(t, "mtg_1", m.ID)
		} else {
			require.ErrorIs(t, err, minutes.ErrNotFound, test)
		}
		for _, status := range []int{200, 201} {
			c, _ := testkit.Responding(t, testkit.Canned(status, meeting))
			m, created, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "T", ExternalID: test.asked})
			require.NoError(t, err)
			require.Equal(t, "mtg_1", m.ID)
			require.Equal(t, status == 201, created)
		}
	}
}
