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

// MeetingsService works on meetings, from the recording to the minutes (section 4.2 of the
// service's interface document).
type MeetingsService struct{ service }

// Meeting is one meeting (section 2.1). If the service leaves a field out, or sends null or "",
// the field is zero. Date and Time have no time zone.
type Meeting struct {
	ID              string     `json:"id"` // begins with mtg_
	Title           string     `json:"title"`
	Date            string     `json:"date"`                       // YYYY-MM-DD
	Time            string     `json:"time,omitempty"`             // HH:MM, for display only
	Status          Status     `json:"status"`                     // one of the ten known states, or one that the service added later
	Visibility      Visibility `json:"visibility"`                 // who inside the organisation can see the meeting
	TemplateID      string     `json:"template_id"`                // the template that shapes the minutes
	ParticipantIDs  []string   `json:"participant_ids,omitempty"`  // member ids
	ProjectID       string     `json:"project_id,omitempty"`       // empty: in no project
	ExternalID      string     `json:"external_id,omitempty"`      // the caller's own reference
	DurationSeconds *int       `json:"duration_seconds,omitempty"` // length of the recording; nil until the service has processed the recording
	CreatedAt       UnixTime   `json:"created_at"`
	UpdatedAt       UnixTime   `json:"updated_at"` // time of the last change
}

// Duration returns DurationSeconds. ok is false if DurationSeconds is nil.
func (m *Meeting) Duration() (d time.Duration, ok bool) {
	if m.DurationSeconds == nil {
		return 0, false
	}
	return time.Duration(*m.DurationSeconds) * time.Second, true
}

// String formats the fields like %+v, and DurationSeconds by value.
func (m Meeting) String() string { return formatFields(m) }

// formatFields formats a struct like %+v, but each pointer by value.
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

// UnixTime is an instant in whole seconds since 1970 (section 2).
type UnixTime int64

// Time returns the instant in the local time zone. For 0 it returns the zero Time.
func (t UnixTime) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(int64(t), 0)
}

// String returns the instant in UTC in the format of RFC 3339. For 0 it returns "".
func (t UnixTime) String() string {
	if t == 0 {
		return ""
	}
	return time.Unix(int64(t), 0).UTC().Format(time.RFC3339)
}

// DateOf returns t's date in t's own time zone as YYYY-MM-DD, for fields such as
// MeetingCreateParams.Date.
func DateOf(t time.Time) string { return t.Format(time.DateOnly) }

// TimeOfDay returns t's time of day in t's own time zone as HH:MM, for fields such as
// MeetingCreateParams.Time.
func TimeOfDay(t time.Time) string { return t.Format("15:04") }

// MeetingPage is one page of a listing, newest first (section 2.2). A page may have fewer meetings
// than MeetingListParams.Limit, even none.
type MeetingPage struct {
	Meetings   []*Meeting `json:"meetings"`
	NextCursor string     `json:"next_cursor,omitempty"` // for MeetingListParams.Cursor; empty on the last page
}

// Minutes are the written minutes of a meeting (section 2.6).
type Minutes struct {
	Format     Format `json:"format"`      // format of Content
	TemplateID string `json:"template_id"` // the template that shaped the minutes
	Content    string `json:"content"`     // the text
}

// UploadTarget is the address for the upload of a recording (section 2.8).
type UploadTarget struct {
	UploadURL PresignedURL `json:"upload_url"` // a secret; printed without the query, also in JSON
	ExpiresIn int          `json:"expires_in"` // validity in seconds
	Method    string       `json:"method"`     // always PUT
}

// Format prints the target without the query of UploadURL, for every verb.
func (t UploadTarget) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "minutes.UploadTarget(%s %s, expires in %d s)", t.Method, t.UploadURL, t.ExpiresIn)
}

// LogValue keeps the presigned query out of structured logs.
func (t UploadTarget) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(t)) }

// MeetingCreateParams describes a meeting to create. Title and Date are required. The other fields
// are not sent if they are empty.
type MeetingCreateParams struct {
	Title string `json:"title"`          // 1 to 300 characters
	Date  string `json:"date,omitempty"` // YYYY-MM-DD; see DateOf
	Time  string `json:"time,omitempty"` // HH:MM, for display only; see TimeOfDay
	// ExternalID is the caller's own reference, at most 128 characters, unique within the
	// organisation. With an ExternalID, you can repeat Create and Process.
	ExternalID string `json:"external_id,omitempty"`
	// ParticipantIDs are member ids. With them, the transcript spells names better, and the minutes
	// can name the speakers. They cannot change after the upload.
	ParticipantIDs []string   `json:"participant_ids,omitempty"`
	ProjectID      string     `json:"project_id,omitempty"`  // empty: in no project
	SharedWith     []string   `json:"shared_with,omitempty"` // member ids; only used with VisibilityShared
	TemplateID     string     `json:"template_id,omitempty"` // empty: the organisation's default
	Visibility     Visibility `json:"visibility,omitempty"`  // empty: the key's default
}

// MeetingUpdateParams lists the fields to change. Nil leaves a field unchanged; a pointer to ""
// clears Time and ProjectID.
type MeetingUpdateParams struct {
	Title     *string `json:"title,omitempty"`      // 1 to 300 characters; cannot be cleared
	Date      *string `json:"date,omitempty"`       // YYYY-MM-DD; cannot be cleared
	Time      *string `json:"time,omitempty"`       // HH:MM; "" clears it
	ProjectID *string `json:"project_id,omitempty"` // "" takes the meeting out of its project
}

// String formats the fields like %+v, each by value.
func (p MeetingUpdateParams) String() string { return formatFields(p) }

// MeetingListParams selects the meetings of a listing. Every field is optional. Assumed: the listing
// is ordered by CreatedAt, and not by Date.
type MeetingListParams struct {
	Limit      int    `url:"limit,omitempty"`       // meetings per page, 1 to 50; 0 means 25 for List and 50 for All
	Cursor     string `url:"cursor,omitempty"`      // MeetingPage.NextCursor of the previous page
	ExternalID string `url:"external_id,omitempty"` // selects one meeting; not together with Cursor, DateFrom or DateTo
	DateFrom   string `url:"date_from,omitempty"`   // YYYY-MM-DD, inclusive
	DateTo     string `url:"date_to,omitempty"`     // YYYY-MM-DD, inclusive
}

// Create creates a meeting. If a meeting with the same ExternalID exists, Create returns that
// meeting unchanged, and created is false. created is also false if a retry finds the meeting that
// the first attempt created. Assumed: the service may trim an ExternalID and convert it to Unicode
// NFC. The key needs the scope meetings:write. The interface document describes this route.
//
// Errors:
//   - [ErrInvalidRequest]: Details["fields"] lists the invalid fields.
//   - [ErrInvalidDate], [ErrInvalidTime], [ErrInvalidExternalID], [ErrInvalidSharedWith]
//   - [ErrNotFound]: a participant, the project or the template is unknown (assumed).
//   - [ErrExternalIDTaken]: the key cannot see the meeting that has the ExternalID (assumed).
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

// Get returns one meeting. Do not poll with Get. The service asks for thirty seconds between two
// polls, and [MeetingsService.Wait] keeps that interval. The key needs the scope meetings:read. The
// interface document describes this route.
//
// Errors: [ErrNotFound].
func (s *MeetingsService) Get(ctx context.Context, id string) (*Meeting, error) {
	return do[Meeting](ctx, s.core(), rest.Request{Operation: route.MeetingsGet, ID: id})
}

// List returns one page of meetings, newest first. [MeetingsService.All] reads all pages. params may
// be nil. The key needs the scope meetings:read. The interface document describes this route.
//
// Errors: [ErrInvalidRequest] (filters that exclude each other), [ErrInvalidLimit],
// [ErrInvalidCursor], [ErrInvalidDate], [ErrInvalidDateRange].
func (s *MeetingsService) List(ctx context.Context, params *MeetingListParams) (*MeetingPage, error) {
	return do[MeetingPage](ctx, s.core(), rest.Request{Operation: route.MeetingsList, Query: params})
}

// FindByExternalID returns the meeting whose ExternalID is externalID. It also finds the meeting if
// the service has trimmed the ExternalID or converted it to Unicode NFC (assumed). The key needs the
// scope meetings:read. The interface document describes this filter of the listing. Assumed: without
// such a meeting, the page is empty.
//
// Errors: [ErrInvalidExternalID], [ErrNotFound] (no such meeting that the key can see).
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
		// A service without this filter lists other meetings. If it lists only one, the ExternalID
		// may be another Unicode form of the same text.
		otherForm := len(page.Meetings) == 1 && strings.ContainsFunc(externalID, func(r rune) bool { return r >= utf8.RuneSelf })
		if otherForm || m.ExternalID == externalID || m.ExternalID == strings.TrimSpace(externalID) {
			c.poller.Record(snapshotOf(m.clone()), asked)
			return m, nil
		}
	}
	miss := c.requestError(resp, "no visible meeting has this external id")
	miss.StatusCode, miss.Code = 0, ErrNotFound
	return nil, miss
}

// Update changes title, date, start time or project, in any state of the meeting. If params is
// nil, Update changes nothing. The key needs the scope meetings:write. The interface document
// describes this route.
//
// A change of title, date or project can cost a credit (section 8). A retry could cost another
// credit, so the Client does not retry an Update that may have taken effect.
//
// Errors: [ErrInvalidRequest], [ErrBadRequest], [ErrInvalidDate], [ErrInvalidTime],
// [ErrForbidden], [ErrNotFound] (no such meeting; assumed: also no such project).
func (s *MeetingsService) Update(ctx context.Context, id string, params *MeetingUpdateParams) (*Meeting, error) {
	params = cmp.Or(params, new(MeetingUpdateParams))
	return do[Meeting](ctx, s.core(), rest.Request{Operation: route.MeetingsUpdate, ID: id, Body: params})
}

// Delete deletes a meeting and everything that belongs to it. A deletion cannot be undone. The key
// needs the scope meetings:delete. The interface document describes this route. If an attempt may
// have deleted the meeting and its retry gets a NOT_FOUND, Delete succeeds.
//
// Errors: [ErrForbidden], [ErrNotFound].
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
	}
	return err
}

// SetParticipants replaces the participants with memberIDs. An empty or nil list removes all
// participants. SetParticipants works only while the meeting has no audio. The key needs the scope
// meetings:write (assumed). The interface document describes this route.
//
// Errors: [ErrInvalidRequest], [ErrNotFound] (no such meeting; assumed: also no such member),
// [ErrForbidden] (assumed), [ErrParticipantsLocked].
func (s *MeetingsService) SetParticipants(ctx context.Context, id string, memberIDs []string) (*Meeting, error) {
	return do[Meeting](ctx, s.core(), rest.Request{Operation: route.MeetingsSetParticipants, ID: id, Body: &struct {
		MemberIDs []string `json:"participant_ids"` // never null
	}{append([]string{}, memberIDs...)}})
}

// UploadURL requests a target for one upload. [MeetingsService.Upload] includes this request.
// contentType is the MIME type of the recording; the upload must have exactly this Content-Type. The
// key needs the scope meetings:write (assumed). The interface document describes this route.
//
// Errors (assumed): [ErrInvalidRequest] (not a MIME type), [ErrBadRequest] (the meeting has audio),
// [ErrForbidden], [ErrNotFound].
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

// Minutes returns the written minutes. An empty format means HTML. The key needs the scope
// minutes:read. The interface document describes this route.
//
// Errors: [ErrMinutesNotReady], [ErrInvalidRequest] (unknown format), [ErrNotFound].
func (s *MeetingsService) Minutes(ctx context.Context, id string, format Format) (*Minutes, error) {
	return do[Minutes](ctx, s.core(), rest.Request{Operation: route.MeetingsMinutes, ID: id, MaxResponse: maxText, Query: &struct {
		Format Format `url:"format,omitempty"`
	}{format}})
}

// clone returns a deep copy, so that callers never share a Meeting.
func (m *Meeting) clone() *Meeting {
	c := *m
	c.ParticipantIDs = slices.Clone(m.ParticipantIDs)
	if m.DurationSeconds != nil {
		c.DurationSeconds = new(*m.DurationSeconds)
	}
	return &c
}
