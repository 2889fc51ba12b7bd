package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// MeetingsService has the operations on meetings ([section 4.2]), and methods that combine several
// of them, such as Process, which leads from a recording to its minutes.
//
// [section 4.2]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#42-meetings
type MeetingsService struct{ service }

// Meeting is a meeting as the service returns it ([section 2.1]). A field that the response omits,
// or sends as null or "", is zero. Date and Time have no time zone.
//
// [section 2.1]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#21-meeting
type Meeting struct {
	ID              string     `json:"id"` // begins with mtg_
	Title           string     `json:"title"`
	Date            string     `json:"date"`                      // YYYY-MM-DD
	Time            string     `json:"time,omitempty"`            // HH:MM, for display only
	Status          Status     `json:"status"`                    // may be unknown to this package
	Visibility      Visibility `json:"visibility"`                // who can see the meeting
	TemplateID      string     `json:"template_id"`               // shapes the minutes
	ParticipantIDs  []string   `json:"participant_ids,omitempty"` // member ids
	ProjectID       string     `json:"project_id,omitempty"`      // empty: in no project
	ExternalID      string     `json:"external_id,omitempty"`     // the caller's own reference
	DurationSeconds int        `json:"duration_seconds,omitzero"` // 0 until it is known
	CreatedAt       UnixTime   `json:"created_at"`
	UpdatedAt       UnixTime   `json:"updated_at"` // time of the last change
}

// missing also masks the status, because errors quote it.
func (m *Meeting) missing(r received) string {
	if m == nil {
		return "id"
	}
	m.Status = Status(r.mask.Text(string(m.Status)))
	return cmp.Or(lacks("id", m.ID == ""), lacks("status", m.Status == ""))
}

// Duration returns DurationSeconds, which is 0 until the service has processed the recording.
func (m *Meeting) Duration() time.Duration { return time.Duration(m.DurationSeconds) * time.Second }

// Status says how far the service has come with a meeting ([section 3]). The service may add
// statuses, so an unknown one neither ends a wait nor is final.
//
// [section 3]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#3-statuses
type Status string

// The statuses of a meeting for which all goes well, in order.
const (
	StatusCreated           Status = "created"            // no audio yet; participants can change
	StatusAudioUploaded     Status = "audio_uploaded"     // the recording is being prepared
	StatusTranscribing      Status = "transcribing"       // speech to text runs
	StatusTranscribed       Status = "transcribed"        // the transcript can be fetched
	StatusGeneratingMinutes Status = "generating_minutes" // the minutes are being written
	StatusMinutesReady      Status = "minutes_ready"      // transcript and minutes can be fetched
)

// The failure statuses, which are final.
const (
	StatusTranscriptionFailed Status = "transcription_failed" // create a new meeting to try again
	StatusMinutesFailed       Status = "minutes_failed"       // no minutes, only the transcript
	StatusTranscribeBlocked   Status = "transcribe_blocked"   // too little quota when the audio arrived
	StatusAudioRejected       Status = "audio_rejected"       // usually the recording is too large
)

// Failed reports whether s is one of the four failure statuses, which are final.
func (s Status) Failed() bool { return failureReasons[s] != "" }

// Final reports whether s is minutes_ready or one of the failure statuses, which never change.
func (s Status) Final() bool { return s == StatusMinutesReady || s.Failed() }

var happyPath = []Status{StatusCreated, StatusAudioUploaded, StatusTranscribing, StatusTranscribed,
	StatusGeneratingMinutes, StatusMinutesReady}

// rank returns the position of s in happyPath, from 1, or 0 if s is not in it.
func (s Status) rank() int { return slices.Index(happyPath, s) + 1 }

// passedBefore has, for each failure status, the latest status that the meeting has certainly had
// before (section 3). The last two follow "on audio arrival", so maybe from created.
var passedBefore = map[Status]Status{
	StatusMinutesFailed:       StatusGeneratingMinutes,
	StatusTranscriptionFailed: StatusTranscribing,
	StatusTranscribeBlocked:   StatusCreated,
	StatusAudioRejected:       StatusCreated,
}

// reached reports whether a meeting with the status s is at until, or has certainly been there. So a
// wait ends in the same way whether a poll sees until itself or only what follows it.
func (s Status) reached(until Status) bool {
	return max(s.rank(), passedBefore[s].rank()) >= until.rank()
}

// Visibility says who inside the organisation can see a meeting ([section 2.1]).
//
// [section 2.1]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#21-meeting
type Visibility string

// The visibilities that the API reference names.
const (
	VisibilityPrivate      Visibility = "private"      // only its creator
	VisibilityOrganisation Visibility = "organisation" // everyone in the organisation
	VisibilityShared       Visibility = "shared"       // its creator and the members in SharedWith
)

// UnixTime is an instant in whole seconds since 1970 ([section 2]), as the service sends it in
// JSON.
//
// [section 2]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#2-resources
type UnixTime int64

// Time returns the instant in UTC, or the zero Time for 0, so that IsZero reports a missing time.
func (t UnixTime) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(int64(t), 0).UTC()
}

// String returns the instant in UTC in the format of RFC 3339, or "" for 0.
func (t UnixTime) String() string {
	if t == 0 {
		return ""
	}
	return t.Time().Format(time.RFC3339)
}

// DateOf returns t's date in t's own time zone as YYYY-MM-DD, for MeetingCreateParams.Date.
func DateOf(t time.Time) string { return t.Format(time.DateOnly) }

// TimeOfDay returns t's time of day in t's own time zone as HH:MM, for MeetingCreateParams.Time.
func TimeOfDay(t time.Time) string { return t.Format("15:04") }

// Minutes are the text that the service writes about a meeting ([section 2.6]).
//
// [section 2.6]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type Minutes struct {
	Format     Format `json:"format"`      // format of Content
	TemplateID string `json:"template_id"` // the template that shaped the minutes
	// Content is the text. HTML may contain titles and what people said, so sanitise it before you
	// embed it, for example with github.com/microcosm-cc/bluemonday and its UGCPolicy.
	Content string `json:"content"`
}

func (m *Minutes) missing(r received) string {
	return cmp.Or(lacks("format", m.Format == ""), lacks("content", m.Content == "" && !r.has("content", false)))
}

// Format selects how minutes are written ([section 2.6]).
//
// [section 2.6]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type Format string

// The formats that the API reference names.
const (
	FormatHTML     Format = "html" // the service's default
	FormatMarkdown Format = "markdown"
)

// Transcript is what the participants said ([section 2.7]).
//
// [section 2.7]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type Transcript struct {
	Text string `json:"transcript"` // plain text with a label, such as spk_0, before each turn
}

func (t *Transcript) missing(r received) string {
	return lacks("transcript", t.Text == "" && !r.has("transcript", false))
}

// Turn is what one speaker says, up to the next label.
type Turn struct {
	Speaker string // the label, such as spk_0; "" for text before the first label
	// Text has its line breaks, but neither the label nor the surrounding white space.
	Text string
}

// label finds the beginning of a turn, with the brackets and stars around the label.
var label = regexp.MustCompile(`(?m)^[ \t]*[[(<{*]*(spk_[0-9]+)\b[])>}*:]*|\s[[(<{*]*(spk_[0-9]+)[])>}*]*:[])>}*:]*`)

// Turns splits the transcript into turns, in order. A turn begins with spk_<n> at the start of a line
// or before a colon, with or without brackets or asterisks. This is assumed, because [section 2.7]
// only shows the labels.
//
// [section 2.7]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
func (t *Transcript) Turns() iter.Seq[Turn] {
	transcript := t.Text
	return func(yield func(Turn) bool) {
		speaker := "" // of the turn that begins at from
		from := 0
		yieldTo := func(to int) bool {
			text := strings.TrimSpace(transcript[from:to])
			return speaker == "" && text == "" || yield(Turn{speaker, text})
		}
		for _, at := range label.FindAllStringSubmatchIndex(transcript, -1) {
			if !yieldTo(at[0]) {
				return
			}
			speaker = transcript[max(at[2], at[4]):max(at[3], at[5])]
			from = at[1]
		}
		yieldTo(len(transcript))
	}
}

// UploadTarget is where and how to upload a recording if you do not call Upload ([section 2.8]).
//
// [section 2.8]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type UploadTarget struct {
	UploadURL PresignedURL `json:"upload_url"` // a secret: see PresignedURL
	ExpiresIn int          `json:"expires_in"` // validity in seconds
	Method    string       `json:"method"`     // always PUT
}

func (t *UploadTarget) missing(received) string {
	return lacks("upload_url", t.UploadURL.Reveal() == "")
}

// PresignedURL is a URL whose query is a credential, so everyone who has the whole URL can upload.
// To keep it out of logs, the packages fmt and slog show it without its query, and encoding/json
// returns an error. Only Reveal returns the whole URL.
type PresignedURL struct {
	whole *string // a pointer, because fmt prints no pointer's target in a field
}

// Reveal returns the whole URL, which is a secret, or "" if there is none.
func (u PresignedURL) Reveal() string {
	if u.whole == nil {
		return ""
	}
	return *u.whole
}

// Format prints the URL without its query, for every verb.
func (u PresignedURL) Format(f fmt.State, _ rune) {
	shown := ""
	if whole, err := url.Parse(u.Reveal()); err == nil {
		shown = withoutQuery(whole)
	}
	if u.Reveal() != "" {
		shown += "?***"
	}
	_, _ = io.WriteString(f, shown)
}

// withoutQuery returns u without its query and its user, which may be secrets.
func withoutQuery(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// LogValue keeps the query out of structured logs.
func (u PresignedURL) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(u)) }

// MarshalText returns an error, which names Reveal, because the text would be a secret.
func (u PresignedURL) MarshalText() ([]byte, error) {
	return nil, errors.New("minutes: an upload URL is a secret; marshal the string that PresignedURL.Reveal returns")
}

// UnmarshalText accepts the whole URL, as the service sends it.
func (u *PresignedURL) UnmarshalText(text []byte) error {
	*u = PresignedURL{new(string(text))}
	return nil
}

// MeetingCreateParams describes a meeting for Create and Process. Title and Date are required;
// without them the service returns an error. Other empty fields are not sent, and the service
// chooses a default.
type MeetingCreateParams struct {
	Title string `json:"title"`          // 1 to 300 characters
	Date  string `json:"date,omitempty"` // YYYY-MM-DD; see DateOf
	Time  string `json:"time,omitempty"` // HH:MM, for display only; see TimeOfDay
	// ExternalID is the caller's own reference, at most 128 characters, unique within the
	// organisation for ever: not "weekly", but "weekly-2026-11-20". It makes Create and Process
	// idempotent, so you can repeat them with the same parameters.
	ExternalID string `json:"external_id,omitempty"`
	// ParticipantIDs are member ids, with which the transcript spells names better, and the minutes
	// can name the speakers. Set them before the upload, because they cannot change after it.
	ParticipantIDs []string   `json:"participant_ids,omitempty"`
	ProjectID      string     `json:"project_id,omitempty"`  // empty: in no project
	SharedWith     []string   `json:"shared_with,omitempty"` // member ids, for VisibilityShared
	TemplateID     string     `json:"template_id,omitempty"` // empty: the organisation's default
	Visibility     Visibility `json:"visibility,omitempty"`  // empty: the key's default
}

// MeetingUpdateParams lists the fields to change. A nil pointer leaves a field unchanged, whereas a
// pointer to "" clears Time or ProjectID.
type MeetingUpdateParams struct {
	Title     *string `json:"title,omitzero"`      // 1 to 300 characters; cannot be cleared
	Date      *string `json:"date,omitzero"`       // YYYY-MM-DD; cannot be cleared
	Time      *string `json:"time,omitzero"`       // HH:MM; "" clears it
	ProjectID *string `json:"project_id,omitzero"` // "" takes the meeting out of its project
}

// check checks what can be known to be unusable before a request.
func (p *MeetingCreateParams) check() error {
	if p == nil {
		return checkGiven("params", false)
	}
	return cmp.Or(
		checkUTF8("params.ExternalID", p.ExternalID),
		checkUTF8("params.ParticipantIDs", p.ParticipantIDs...),
		checkUTF8("params.ProjectID", p.ProjectID),
		checkUTF8("params.SharedWith", p.SharedWith...),
		checkUTF8("params.TemplateID", p.TemplateID),
	)
}

// Create creates a meeting, and needs the scope meetings:write. If a meeting with the same
// ExternalID exists, Create returns that meeting unchanged, with its own title, date and recording,
// and created is false. So compare them with params, or call Process, which compares the date.
// created is also false if the first attempt created the meeting, but its response was lost and a retry found
// the meeting. Without an ExternalID, Create is retried only after a 429 or if there was no
// connection. If it then fails without a response, the meeting may exist nevertheless.
//
// Errors:
//   - [ErrInvalidRequest]: Details["fields"] lists the invalid fields.
//   - [ErrInvalidDate], [ErrInvalidTime], [ErrInvalidExternalID], [ErrInvalidSharedWith]
//   - [ErrNotFound]: a participant, the project or the template is unknown (assumed).
//   - [ErrExternalIDTaken]: the key cannot see the meeting that has the ExternalID (assumed).
//   - *[ParamError]: params is nil, or its ExternalID or another id is not valid UTF-8.
func (s *MeetingsService) Create(
	ctx context.Context, params *MeetingCreateParams,
) (m *Meeting, created bool, err error) {
	m, resp, err := s.core.createMeeting(ctx, params, 0)
	return m, err == nil && resp.Status == http.StatusCreated, err
}

// createMeeting is Create with Patience.
func (c *core) createMeeting(
	ctx context.Context, params *MeetingCreateParams, patience time.Duration,
) (*Meeting, *rest.Response, error) {
	err := params.check()
	if err != nil {
		return nil, nil, err
	}
	in := rest.Request{Body: params, Repeatable: params.ExternalID != "", Patience: patience}
	m, resp, err := c.callMeeting(ctx, OpMeetingsCreate, in)
	if err != nil {
		return nil, resp, err
	}
	if m.ExternalID != "" && m.ExternalID != params.ExternalID {
		return nil, resp, c.requestError(resp, "the response is about a meeting with another external_id")
	}
	return m, resp, nil
}

// Get returns one meeting, and needs the scope meetings:read. To wait for a status, use
// [MeetingsService.Wait], because the service asks for thirty seconds between two polls, and only
// waits keep that interval. For a page that shows the status, call Wait and cancel ctx in OnStatus: that
// costs at most one poll in thirty seconds, however often the page is loaded.
//
// Errors: [ErrNotFound].
func (s *MeetingsService) Get(ctx context.Context, id string) (*Meeting, error) {
	m, _, err := s.core.callMeeting(ctx, OpMeetingsGet, rest.Request{ID: id})
	return m, err
}

// FindByExternalID returns the meeting whose ExternalID is externalID, and needs the scope
// meetings:read.
//
// Errors: [ErrInvalidExternalID], [ErrNotFound] (no such meeting that the key can see; its
// StatusCode is 0, because the service sent a 200 with a list), *[ParamError] (externalID is empty or
// not valid UTF-8).
func (s *MeetingsService) FindByExternalID(ctx context.Context, externalID string) (*Meeting, error) {
	err := cmp.Or(
		checkThat("externalID", externalID != "", "must not be empty"),
		checkUTF8("externalID", externalID),
	)
	if err != nil {
		return nil, err
	}
	c := s.core
	sent := c.poller.Sending()
	in := rest.Request{Query: &MeetingListParams{ExternalID: externalID}}
	page, resp, err := call[MeetingPage](ctx, c, OpMeetingsList, in)
	if err != nil && !isPartial(err) {
		return nil, err
	}
	for _, m := range page.Meetings {
		if m.ExternalID == externalID { // a service without this filter lists other meetings
			c.record(m, sent)
			return m, nil
		}
	}
	if err != nil { // the meeting may be the one that does not fit
		return nil, err
	}
	miss := c.requestError(resp, "no visible meeting has this external id")
	miss.StatusCode = 0
	miss.Code = ErrNotFound
	return nil, miss
}

// Update changes title, date, start time or project in any status of the meeting, and needs the
// scope meetings:write. If params is nil, Update changes nothing.
//
// Once the service has indexed the minutes for search, a change of title, date or project costs a
// credit ([section 8]), because it indexes them again. A retry could cost another one, so the
// Client does not retry an Update that may have taken effect.
//
// Errors: [ErrInvalidRequest], [ErrBadRequest], [ErrInvalidDate], [ErrInvalidTime], [ErrForbidden],
// [ErrNotFound] (no such meeting; assumed: also no such project).
//
// [section 8]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#8-limits-and-costs
func (s *MeetingsService) Update(ctx context.Context, id string, params *MeetingUpdateParams) (*Meeting, error) {
	params = cmp.Or(params, new(MeetingUpdateParams))
	err := checkUTF8("params.ProjectID", *cmp.Or(params.ProjectID, new(string)))
	if err != nil {
		return nil, err
	}
	m, _, err := s.core.callMeeting(ctx, OpMeetingsUpdate, rest.Request{ID: id, Body: params})
	return m, err
}

// Delete deletes a meeting and everything that belongs to it, which cannot be undone, and needs the
// scope meetings:delete. If an attempt may have deleted the meeting and its retry gets a NOT_FOUND,
// Delete succeeds.
//
// Errors: [ErrForbidden], [ErrNotFound].
func (s *MeetingsService) Delete(ctx context.Context, id string) error {
	resp, err := s.core.callInto(ctx, OpMeetingsDelete, rest.Request{ID: id}, nil)
	if e, ok := errors.AsType[*Error](err); ok && e.Code == ErrNotFound && resp.MayHaveTakenEffect {
		err = nil // an earlier attempt deleted it, and its response was lost
	}
	if err == nil {
		s.core.poller.Ask(id, false) // so that no wait relies on what an earlier response showed
	}
	return err
}

// SetParticipants replaces the participants with memberIDs, so an empty list removes all of them. A
// nil list is a *[ParamError], because a list that someone forgot to read would remove all, too.
// SetParticipants needs the scope meetings:write (assumed). It works only while the meeting has no
// audio, because the transcript depends on the participants.
//
// Errors: [ErrInvalidRequest], [ErrNotFound] (no such meeting; assumed: also no such member),
// [ErrForbidden] (assumed), [ErrParticipantsLocked].
func (s *MeetingsService) SetParticipants(ctx context.Context, id string, memberIDs []string) (*Meeting, error) {
	err := cmp.Or(checkGiven("memberIDs", memberIDs != nil), checkUTF8("memberIDs", memberIDs...))
	if err != nil {
		return nil, err
	}
	var body struct {
		MemberIDs []string `json:"participant_ids"`
	}
	body.MemberIDs = memberIDs
	m, _, err := s.core.callMeeting(ctx, OpMeetingsSetParticipants, rest.Request{ID: id, Body: &body})
	return m, err
}

// UploadURL requests a target for one upload, which [MeetingsService.Upload] does for you, and
// needs the scope meetings:write (assumed). contentType is the MIME type of the recording, which
// the upload must send unchanged as its Content-Type.
//
// Errors (assumed): [ErrInvalidRequest] (not a MIME type), [ErrBadRequest] (the meeting has audio),
// [ErrForbidden], [ErrNotFound].
func (s *MeetingsService) UploadURL(ctx context.Context, id, contentType string) (*UploadTarget, error) {
	target, _, err := s.core.uploadURL(ctx, id, contentType, 0)
	return target, err
}

// uploadURL is UploadURL with Patience.
func (c *core) uploadURL(
	ctx context.Context, id, contentType string, patience time.Duration,
) (*UploadTarget, *rest.Response, error) {
	err := cmp.Or(
		checkThat("contentType", contentType != "", "must not be empty"),
		checkUTF8("contentType", contentType),
	)
	if err != nil {
		return nil, nil, err
	}
	var body struct {
		ContentType string `json:"content_type"`
	}
	body.ContentType = contentType
	in := rest.Request{ID: id, Body: &body, Patience: patience}
	target, resp, err := call[UploadTarget](ctx, c, OpMeetingsUploadURL, in)
	if err != nil {
		return nil, nil, err
	}
	// Audio may arrive from now on, so the next poll need not wait for the interval.
	c.poller.Ask(id, true)
	target.Method = cmp.Or(target.Method, http.MethodPut) // the default of the API reference
	return target, resp, nil
}

// Minutes returns the written minutes, as HTML if format is empty, and needs the scope
// minutes:read.
//
// Errors: [ErrMinutesNotReady], [ErrInvalidRequest] (unknown format), [ErrNotFound].
func (s *MeetingsService) Minutes(ctx context.Context, id string, format Format) (*Minutes, error) {
	m, _, err := call[Minutes](ctx, s.core, OpMeetingsMinutes, minutesRequest(id, format))
	return m, err
}

func minutesRequest(id string, format Format) rest.Request {
	var query struct {
		Format Format `url:"format,omitempty"`
	}
	query.Format = format
	return rest.Request{ID: id, Query: &query, MaxBody: maxText}
}

// Transcript returns what the participants said. The labels in it only distinguish the speakers,
// whose names are in the minutes. Method, path and the scope minutes:read are assumed, so you may
// need [WithRoute].
//
// Errors: [ErrTranscriptNotReady], [ErrNotFound] (no such meeting, or the assumed path is wrong).
func (s *MeetingsService) Transcript(ctx context.Context, id string) (*Transcript, error) {
	t, _, err := call[Transcript](ctx, s.core, OpMeetingsTranscript, transcriptRequest(id))
	return t, err
}

func transcriptRequest(id string) rest.Request { return rest.Request{ID: id, MaxBody: maxText} }

// callMeeting is call for an operation whose response is one meeting. Any such response to the
// user's own call counts as a poll, so callMeeting records it with the poller, which records its
// own polls itself.
func (c *core) callMeeting(ctx context.Context, op Operation, in rest.Request) (*Meeting, *rest.Response, error) {
	sent := c.poller.Sending()
	m, resp, err := call[Meeting](ctx, c, op, in)
	switch {
	case err != nil:
		return nil, resp, err
	case in.ID != "" && m.ID != in.ID:
		return nil, resp, c.requestError(resp, "the response is about another meeting")
	case !in.Background:
		c.record(m, sent)
	}
	return m, resp, nil
}

// clone returns a deep copy, so that callers never share a Meeting.
func (m *Meeting) clone() *Meeting {
	c := *m
	c.ParticipantIDs = slices.Clone(m.ParticipantIDs)
	return &c
}
