package test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// An exchange is a request and its response as a transport saw them.
type exchange struct {
	method, path  string
	body          string
	status        int
	contentType   string
	reply         string
	storageUpload bool
}

// A tap is a transport that records its exchanges.
type tap struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []exchange
}

func (p *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	e := exchange{method: req.Method, path: req.URL.Path, storageUpload: req.Header.Get("Authorization") == ""}
	if req.Body != nil && !e.storageUpload {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		e.body = string(body)
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := p.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(reply))
	e.status, e.contentType, e.reply = resp.StatusCode, resp.Header.Get("Content-Type"), string(reply)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, e)
	return resp, nil
}

// tapped returns a Client of the service and a tap that records its exchanges.
func tapped(t testing.TB, srv *minutestest.Server) (*minutes.Client, *tap) {
	t.Helper()
	p := &tap{next: srv.HTTPClient().Transport}
	return testkit.Client(srv, minutes.WithHTTPClient(&http.Client{Transport: p})), p
}

// A meeting's life, from the projects and terms before it to its deletion. All bodies
// have exactly the fields of the interface, in both directions.
func TestLifeOfAMeeting_MatchesTheInterface(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		client, wire := tapped(t, srv)
		ctx := t.Context()

		members, err := client.Members.List(ctx)
		require.NoError(t, err)
		require.Contains(t, members, minutes.Member{ID: "emp_ada", Name: "Ada Lovelace", Role: "Head of Engineering", Status: minutes.MemberActive})
		dana, err := client.Members.Create(ctx, &minutes.MemberCreateParams{Name: "Dana Scully", Email: "dana@acme.example", Description: "Guest."})
		require.NoError(t, err)
		require.Equal(t, &minutes.Member{ID: dana.ID, Name: "Dana Scully", Status: minutes.MemberNoAccount}, dana)

		voyager, err := client.Projects.Create(ctx, &minutes.ProjectCreateParams{Name: "Voyager"})
		require.NoError(t, err)
		projects, err := client.Projects.List(ctx)
		require.NoError(t, err)
		require.Contains(t, projects, voyager)
		templates, err := client.Templates.List(ctx)
		require.NoError(t, err)
		require.Equal(t, []*minutes.Template{
			{ID: "tpl_standard", Name: "Standard minutes", Source: "service", Description: "Summary, decisions and actions.", IsDefault: true, Version: new(1)},
			{ID: "tpl_decisions", Name: "Decisions only", Source: "organisation", Description: "What was decided, and nothing else."},
		}, templates)

		added, err := client.Vocabulary.Add(ctx, "Prometheus")
		require.NoError(t, err)
		require.Contains(t, added.Terms, "Prometheus")
		replaced, err := client.Vocabulary.Replace(ctx, []string{"Kubernetes", "Loki"})
		require.NoError(t, err)
		read, err := client.Vocabulary.Get(ctx)
		require.NoError(t, err)
		require.Equal(t, replaced, read)
		require.Equal(t, &minutes.Vocabulary{
			Terms: []string{"Kubernetes", "Loki"},
			Entries: []minutes.VocabularyEntry{
				{Term: "Kubernetes", Variants: []minutes.VocabularyVariant{{Text: "cooper netties", Source: "auto"}}},
				{Term: "Loki", Variants: []minutes.VocabularyVariant{}},
			},
			MaxTerms: 500,
		}, read)
		before, err := client.Usage.Get(ctx)
		require.NoError(t, err)
		require.Positive(t, before.CreditsRemaining)

		// One meeting with all fields, and one with the required fields only.
		params := &minutes.MeetingCreateParams{
			Title: "Budget", Date: "2026-03-09", Time: "14:30", ExternalID: "crm/4711", ParticipantIDs: []string{"emp_ada", dana.ID},
			ProjectID: voyager.ID, SharedWith: []string{"emp_chloe"}, TemplateID: "tpl_decisions", Visibility: minutes.VisibilityShared,
		}
		m, created, err := client.Meetings.Create(ctx, params)
		require.NoError(t, err)
		require.True(t, created)
		require.Equal(t, &minutes.Meeting{
			ID: m.ID, Title: "Budget", Date: "2026-03-09", Time: "14:30", Status: minutes.StatusCreated, Visibility: minutes.VisibilityShared,
			TemplateID: "tpl_decisions", ParticipantIDs: []string{"emp_ada", dana.ID}, ProjectID: voyager.ID, ExternalID: "crm/4711",
			CreatedAt: minutes.UnixTime(time.Now().Unix()), UpdatedAt: minutes.UnixTime(time.Now().Unix()),
		}, m)
		again, created, err := client.Meetings.Create(ctx, params)
		require.NoError(t, err)
		require.False(t, created, "a second create with the same reference finds the first meeting")
		require.Equal(t, m, again)
		bare, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"})
		require.NoError(t, err)

		page, err := client.Meetings.List(ctx, &minutes.MeetingListParams{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, []*minutes.Meeting{bare}, page.Meetings)
		page, err = client.Meetings.List(ctx, &minutes.MeetingListParams{Limit: 1, Cursor: page.NextCursor})
		require.NoError(t, err)
		require.Equal(t, &minutes.MeetingPage{Meetings: []*minutes.Meeting{m}}, page)
		found, err := client.Meetings.FindByExternalID(ctx, "crm/4711")
		require.NoError(t, err)
		require.Equal(t, m, found)

		fewer, err := client.Meetings.SetParticipants(ctx, m.ID, []string{"emp_ada"})
		require.NoError(t, err)
		require.Equal(t, []string{"emp_ada"}, fewer.ParticipantIDs)
		_, err = client.Meetings.UploadURL(ctx, m.ID, "audio/wav")
		require.NoError(t, err)
		_, err = client.Meetings.Minutes(ctx, m.ID, minutes.FormatHTML)
		require.ErrorIs(t, err, minutes.ErrMinutesNotReady)
		_, err = client.Meetings.Transcript(ctx, m.ID)
		require.ErrorIs(t, err, minutes.ErrTranscriptNotReady)

		require.NoError(t, client.Meetings.Upload(ctx, m.ID, testkit.WAV(3), nil))
		time.Sleep(time.Minute)
		m, err = client.Meetings.Get(ctx, m.ID)
		require.NoError(t, err)
		require.Equal(t, minutes.StatusMinutesReady, m.Status)
		require.Equal(t, new(3), m.DurationSeconds)
		_, err = client.Meetings.SetParticipants(ctx, m.ID, nil)
		require.ErrorIs(t, err, minutes.ErrParticipantsLocked)

		for _, format := range []minutes.Format{minutes.FormatHTML, minutes.FormatMarkdown} {
			written, err := client.Meetings.Minutes(ctx, m.ID, format)
			require.NoError(t, err)
			require.Equal(t, format, written.Format)
			require.Equal(t, "tpl_decisions", written.TemplateID)
			require.Contains(t, written.Content, "Ada Lovelace")
		}
		spoken, err := client.Meetings.Transcript(ctx, m.ID)
		require.NoError(t, err)
		require.Contains(t, spoken.Text, "spk_0")

		changed, err := client.Meetings.Update(ctx, m.ID, &minutes.MeetingUpdateParams{Title: new("Budget 2027"), Time: new(""), ProjectID: new("")})
		require.NoError(t, err)
		require.Equal(t, "Budget 2027", changed.Title)
		require.Empty(t, changed.Time)
		require.Empty(t, changed.ProjectID)
		require.Equal(t, m.Date, changed.Date, "a nil field does not change")
		after, err := client.Usage.Get(ctx)
		require.NoError(t, err)
		require.Equal(t, before.CreditsRemaining-2, after.CreditsRemaining, "the minutes and the change")
		require.Equal(t, before.TranscribeSecondsRemaining-3, after.TranscribeSecondsRemaining)

		require.NoError(t, client.Meetings.Delete(ctx, m.ID))
		_, err = client.Meetings.Get(ctx, m.ID)
		require.ErrorIs(t, err, minutes.ErrNotFound)
		_, err = client.Meetings.FindByExternalID(ctx, "crm/4711")
		require.ErrorIs(t, err, minutes.ErrNotFound)

		requireInterface(t, wire.seen)
	})
}

// requireInterface compares every exchange with the forms of the interface.
func requireInterface(t *testing.T, seen []exchange) {
	t.Helper()
	for _, e := range seen {
		if e.storageUpload {
			require.Equal(t, "PUT", e.method)
			continue
		}
		op, ok := operationOf(e)
		require.True(t, ok, "%s %s is not in the interface", e.method, e.path)
		if op.Form == "" {
			require.Empty(t, e.body, op.Name)
		} else {
			testkit.RequireForm(t, op.Form, []byte(e.body))
		}
		if e.status/100 != 2 {
			require.Contains(t, e.contentType, "application/json")
			testkit.RequireForm(t, "Envelope", []byte(e.reply))
			continue
		}
		if op.Name != "meetings.create" || e.status != 200 {
			require.Equal(t, op.Status, e.status, op.Name)
		}
		if op.ResponseForm == "" {
			require.Empty(t, e.reply, op.Name)
		} else {
			require.Contains(t, e.contentType, "application/json")
			testkit.RequireForm(t, op.ResponseForm, []byte(e.reply))
		}
	}
}

// operationOf returns an exchange's operation, from the table of the tests only.
func operationOf(e exchange) (testkit.Operation, bool) {
	for _, op := range testkit.Operations() {
		before, after, _ := strings.Cut(op.Path, testkit.MeetingID)
		if e.method != op.Method || !strings.HasPrefix(e.path, before) {
			continue
		}
		id, ok := strings.CutSuffix(e.path[len(before):], after)
		if ok && (before == op.Path && id == "" || before != op.Path && id != "" && !strings.Contains(id, "/")) {
			return op, true
		}
	}
	return testkit.Operation{}, false
}
