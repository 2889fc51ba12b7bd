package minutes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// MeetingsService works on meetings, from recording to minutes (section 4.2).
type MeetingsService struct{ service }

// Meeting is one meeting (section 2.1). Fields that the service leaves empty,
// null or out are zero.
type Meeting struct {
	ID              string     `json:"id"` // begins with mtg_
	Title           string     `json:"title"`
	Date            string     `json:"date"`                       // YYYY-MM-DD
	Time            string     `json:"time,omitempty"`             // HH:MM, for display only
	Status          Status     `json:"status"`                     // one of the ten states, or one that is new
	Visibility      Visibility `json:"visibility"`                 // who inside the organisation can see it
	TemplateID      string     `json:"template_id"`                // the template the minutes are shaped by
	ParticipantIDs  []string   `json:"participant_ids,omitempty"`  // of members
	ProjectID       string     `json:"project_id,omitempty"`       // empty: in no project
	ExternalID      string     `json:"external_id,omitempty"`      // the caller's own reference
	DurationSeconds *int       `json:"duration_seconds,omitempty"` // of the recording; nil until it has been processed
	CreatedAt       UnixTime   `json:"created_at"`
	UpdatedAt       UnixTime   `json:"updated_at"` // of the last change
}

// Duration returns the length of the recording; ok is false until it is processed.
func (m *Meeting) Duration() (d time.Duration, ok bool) {
	if m.DurationSeconds == nil {
		return 0, false
	}
	return time.Duration(*m.DurationSeconds) * time.Second, true
}

// String shows the fields as %+v does, the duration by its value.
func (m Meeting) String() string { return formatFields(m) }

// formatFields shows a struct as %+v does, but each pointer by its value.
func formatFields(v any) string {
	var b strings.Builder
	for field, value := range reflect.ValueOf(v).Fields() {
		if value.Kind() == reflect.Pointer && !value.IsNil() {
			value = value.Elem()
		}
		fmt.Fprintf(&b, " %s:%+v", field.Name, value)
	}
	return "{" + b.String()[1:] + "}"
}

// UnixTime is an instant in whole seconds since 1970, the form of the
// interface's timestamps (section 2).
type UnixTime int64

// Time returns the instant in the local time zone, the zero Time for 0.
func (t UnixTime) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(int64(t), 0)
}

// String returns the instant in UTC in the form of RFC 3339, "" for 0.
func (t UnixTime) String() string {
	if t == 0 {
		return ""
	}
	return time.Unix(int64(t), 0).UTC().Format(time.RFC3339)
}

// DateOf returns t's calendar date in t's own time zone as YYYY-MM-DD, the
// form of the interface's dates.
func DateOf(t time.Time) string { return t.Format(time.DateOnly) }

// TimeOfDay returns t's time of day in t's own time zone as HH:MM, the form of
// the interface's times.
func TimeOfDay(t time.Time) string { return t.Format("15:04") }

// MeetingPage is one page of a listing, newest first (section 2.2). It may
// hold fewer meetings than were asked for, even none.
type MeetingPage struct {
	Meetings   []*Meeting `json:"meetings"`
	NextCursor string     `json:"next_cursor,omitempty"` // for MeetingListParams.Cursor; empty at the end
}

// Minutes are the written minutes of a meeting (section 2.6).
type Minutes struct {
	Format     Format `json:"format"`      // of Content
	TemplateID string `json:"template_id"` // the template they were shaped by
	Content    string `json:"content"`     // the minutes themselves
}

// UploadTarget says where to upload a recording (section 2.8). It prints its URL
// without the query, also in JSON; see [PresignedURL].
type UploadTarget struct {
	UploadURL PresignedURL `json:"upload_url"` // signed for exactly the content type asked for
	ExpiresIn int          `json:"expires_in"` // validity in seconds
	Method    string       `json:"method"`     // always PUT
}

// Format prints the target without its presigned query, under every verb.
func (t UploadTarget) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "minutes.UploadTarget(%s %s, expires in %d s)", t.Method, t.UploadURL, t.ExpiresIn)
}

// LogValue keeps the presigned query out of structured logs.
func (t UploadTarget) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(t)) }

// MeetingCreateParams describes a meeting to create. Title and Date are
// required; empty fields are not sent.
type MeetingCreateParams struct {
	Title string `json:"title"`          // 1 to 300 characters
	Date  string `json:"date,omitempty"` // YYYY-MM-DD; see DateOf
	Time  string `json:"time,omitempty"` // HH:MM, for display only; see TimeOfDay
	// ExternalID is the caller's own reference, at most 128 characters, unique
	// within the organisation. It makes it safe to retry a Create.
	ExternalID string `json:"external_id,omitempty"`
	// ParticipantIDs are member ids. Set before the audio arrives, they improve
	// the spelling of names and let the minutes name who spoke.
	ParticipantIDs []string   `json:"participant_ids,omitempty"`
	ProjectID      string     `json:"project_id,omitempty"`  // empty: in no project
	SharedWith     []string   `json:"shared_with,omitempty"` // member ids; counts only for VisibilityShared
	TemplateID     string     `json:"template_id,omitempty"` // empty: the organisation's default
	Visibility     Visibility `json:"visibility,omitempty"`  // empty: the key's default
}

// MeetingUpdateParams lists the fields to change. Nil leaves a field unchanged; a
// pointer to "" clears Time and ProjectID.
type MeetingUpdateParams struct {
	Title     *string `json:"title,omitempty"`      // 1 to 300 characters; cannot be cleared
	Date      *string `json:"date,omitempty"`       // YYYY-MM-DD; cannot be cleared
	Time      *string `json:"time,omitempty"`       // HH:MM; "" clears it
	ProjectID *string `json:"project_id,omitempty"` // "" takes the meeting out of its project
}

// String shows the fields as %+v does, each by its value.
func (p MeetingUpdateParams) String() string { return formatFields(p) }

// MeetingListParams narrows a listing; every field is optional. The interface
// has no filter by project or status; compare Meeting.ProjectID. The newest meeting
// comes first, by CreatedAt, not by Date (assumed).
type MeetingListParams struct {
	Limit      int    `url:"limit,omitempty"`       // meetings a page, 1 to 50; 0 leaves it to the service (25)
	Cursor     string `url:"cursor,omitempty"`      // MeetingPage.NextCursor of the page before
	ExternalID string `url:"external_id,omitempty"` // the single meeting with this reference; excludes the other filters
	DateFrom   string `url:"date_from,omitempty"`   // YYYY-MM-DD, inclusive
	DateTo     string `url:"date_to,omitempty"`     // YYYY-MM-DD, inclusive
}

// Create creates a meeting. created is true if this call created it (201), and
// false if a meeting with the same ExternalID existed (200); Create returns that
// one unchanged. It needs the scope meetings:write. Documented; assumed: a caller
// who may not see the existing meeting gets ErrExternalIDTaken instead of 200.
//
// The service may store the ExternalID in another form (trimmed, in Unicode NFC), so
// Meeting.ExternalID may differ from the one in params.
//
// With an ExternalID the Client retries a Create whose response was lost. If the
// first attempt took effect, the second finds its meeting: created is then false
// although this call created the meeting.
//
// Errors: ErrInvalidRequest (Details name the fields), ErrInvalidDate,
// ErrInvalidTime, ErrInvalidExternalID, ErrInvalidSharedWith, ErrNotFound (an
// unknown participant, project or template), ErrExternalIDTaken.
func (s *MeetingsService) Create(ctx context.Context, params *MeetingCreateParams) (m *Meeting, created bool, err error) {
	if err := checkGiven("params", params != nil); err != nil {
		return nil, false, err
	}
	in := rest.Request{Operation: route.MeetingsCreate, Body: params, HasExternalID: params.ExternalID != ""}
	m, resp, err := doResponse[Meeting](ctx, s.core(), in)
	if err != nil {
		return nil, false, err
	}
	return m, resp.Status == http.StatusCreated, nil
}

// Get returns one meeting. The service asks for at least thirty seconds between two
// polls: to follow a meeting use [MeetingsService.Wait], which keeps that interval.
// It needs the scope meetings:read. Documented.
//
// Errors: ErrNotFound.
func (s *MeetingsService) Get(ctx context.Context, id string) (*Meeting, error) {
	return do[Meeting](ctx, s.core(), rest.Request{Operation: route.MeetingsGet, ID: id})
}

// List returns one page of meetings, newest first; params may be nil. It needs
// the scope meetings:read. Documented. For all pages see [MeetingsService.All].
//
// Errors: ErrInvalidRequest (filters that exclude each other), ErrInvalidLimit,
// ErrInvalidCursor, ErrInvalidDate, ErrInvalidDateRange.
func (s *MeetingsService) List(ctx context.Context, params *MeetingListParams) (*MeetingPage, error) {
	return do[MeetingPage](ctx, s.core(), rest.Request{Operation: route.MeetingsList, Query: params})
}

// FindByExternalID returns the meeting with the caller's reference. It needs the
// scope meetings:read. The listing it uses is documented; assumed: without such a
// meeting the page is empty, and the service may trim the reference or
// store it in another Unicode form.
//
// Errors: ErrNotFound if no meeting that the caller may see has it,
// ErrInvalidExternalID.
func (s *MeetingsService) FindByExternalID(ctx context.Context, externalID string) (*Meeting, error) {
	given := checkThat("externalID", externalID != "", "must not be empty")
	if err := cmp.Or(given, checkThat("externalID", utf8.ValidString(externalID), notUTF8)); err != nil {
		return nil, err
	}
	c := s.core()
	asked := c.poller.Now()
	in := rest.Request{Operation: route.MeetingsList, Query: &MeetingListParams{ExternalID: externalID}}
	page, resp, err := doResponse[MeetingPage](ctx, c, in)
	if err != nil {
		return nil, err
	}
	for _, m := range page.Meetings {
		// A service that does not know the filter lists others, but only another Unicode form
		// of the same text can make the single meeting look like one.
		otherForm := len(page.Meetings) == 1 && strings.ContainsFunc(externalID, func(r rune) bool { return r >= utf8.RuneSelf })
		if otherForm || m.ExternalID == externalID || m.ExternalID == strings.TrimSpace(externalID) {
			c.poller.Record(snapshotOf(m.clone()), asked)
			return m, nil
		}
	}
	miss := c.badResponseError(resp, "no visible meeting has this external id")
	miss.StatusCode, miss.Code = 0, ErrNotFound
	return nil, miss
}

// Update changes title, date, start time or project, in any state of the meeting.
// params may be nil, which changes nothing. A change of title, date or project costs
// one credit once the minutes have been indexed, so the Client does not retry an
// Update that may have taken effect. It needs the scope meetings:write. Documented.
//
// Errors: ErrInvalidRequest, ErrBadRequest, ErrInvalidDate, ErrInvalidTime,
// ErrForbidden, ErrNotFound (the meeting, or the project: assumed).
func (s *MeetingsService) Update(ctx context.Context, id string, params *MeetingUpdateParams) (*Meeting, error) {
	params = cmp.Or(params, new(MeetingUpdateParams))
	return do[Meeting](ctx, s.core(), rest.Request{Operation: route.MeetingsUpdate, ID: id, Body: params})
}

// Delete deletes a meeting and everything that belongs to it; this cannot be
// undone. It needs the scope meetings:delete. Documented. A Delete succeeds if its
// first response was lost and the retry finds no meeting.
//
// Errors: ErrForbidden, ErrNotFound.
func (s *MeetingsService) Delete(ctx context.Context, id string) error {
	defer s.core().poller.Forget(id) // also if the response was lost
	resp, err := s.core().request(ctx, rest.Request{Operation: route.MeetingsDelete, ID: id})
	if err == nil {
		resp.Release()
	}
	if e, ok := err.(*Error); ok && e.mayHaveTakenEffect && e.StatusCode == http.StatusNotFound && e.Code == ErrNotFound {
		err = nil // an earlier attempt deleted it, and its response was lost
	}
	if err == nil {
		s.core().deleteState(ctx, id)
	}
	return err
}

// SetParticipants replaces the participants with exactly the given members;
// none, or nil, clears the list. It works only while the meeting has no audio.
// Documented; its scope (meetings:write) is assumed.
//
// Errors: ErrInvalidRequest, ErrNotFound (the meeting, or a member: assumed),
// ErrForbidden, ErrParticipantsLocked.
func (s *MeetingsService) SetParticipants(ctx context.Context, id string, memberIDs []string) (*Meeting, error) {
	return do[Meeting](ctx, s.core(), rest.Request{Operation: route.MeetingsSetParticipants, ID: id, Body: &struct {
		MemberIDs []string `json:"participant_ids"` // never null
	}{append([]string{}, memberIDs...)}})
}

// UploadURL asks for a one-time upload target, signed for exactly contentType,
// the MIME type of the recording. [MeetingsService.Upload] does this and the
// upload. Documented; its scope (meetings:write) and errors are assumed.
//
// Errors: ErrInvalidRequest (not a MIME type), ErrBadRequest (the meeting has
// audio already), ErrForbidden, ErrNotFound.
func (s *MeetingsService) UploadURL(ctx context.Context, id, contentType string) (*UploadTarget, error) {
	target, _, err := s.uploadURL(ctx, id, contentType)
	return target, err
}

func (s *MeetingsService) uploadURL(ctx context.Context, id, contentType string) (*UploadTarget, *rest.Response, error) {
	if contentType == "" {
		return nil, nil, &ParamError{"contentType", "must not be empty"}
	}
	c := s.core()
	asked := c.poller.Now()
	target, resp, err := doResponse[UploadTarget](ctx, c, rest.Request{Operation: route.MeetingsUploadURL, ID: id, Body: &struct {
		ContentType string `json:"content_type"`
	}{contentType}})
	if err != nil {
		return nil, nil, err
	}
	c.poller.Invalidate(id, asked)
	target.Method = cmp.Or(target.Method, http.MethodPut) // the interface's default
	return target, resp, nil
}

// Minutes returns the written minutes; an empty format is the service's
// default, HTML. It needs the scope minutes:read. Documented.
//
// Errors: ErrMinutesNotReady, ErrInvalidRequest (unknown format), ErrNotFound.
func (s *MeetingsService) Minutes(ctx context.Context, id string, format Format) (*Minutes, error) {
	return do[Minutes](ctx, s.core(), rest.Request{Operation: route.MeetingsMinutes, ID: id, MaxResponse: maxText, Query: &struct {
		Format Format `url:"format,omitempty"`
	}{format}})
}

// clone returns a deep copy, so that no caller changes what another one reads.
func (m *Meeting) clone() *Meeting {
	c := *m
	c.ParticipantIDs = slices.Clone(m.ParticipantIDs)
	if m.DurationSeconds != nil {
		c.DurationSeconds = new(*m.DurationSeconds)
	}
	return &c
}
