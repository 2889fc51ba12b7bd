package engine

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// meeting returns the meeting in the path, or an error if the caller does not see it.
func (r *request) meeting() (*meeting, *apiError) {
	m := r.org.byID[r.MeetingID]
	if m == nil || !m.visibleTo(r.Caller) {
		return nil, errMeetingNotFound
	}
	r.MeetingStatus = m.Status
	return m, nil
}

// read returns the meeting in the path for a read of it, and what that shows.
func (r *request) read() (m *meeting, shown meetingJSON, err *apiError) {
	m, err = r.meeting()
	if err != nil {
		return nil, shown, err
	}
	shown, found := r.shows(m)
	r.MeetingStatus = shown.Status
	if !found {
		return nil, shown, errMeetingNotFound
	}
	return m, shown, nil
}

// changing returns the meeting in the path for a change of it, or an error in the order of D6 and
// D25. check checks the body.
func (r *request) changing(check func(*form)) (*meeting, *apiError) {
	m, err := r.meeting()
	if err != nil {
		return nil, err
	}
	check(r.form)
	err = r.form.err()
	if err != nil {
		return nil, err
	}
	if !m.changeableBy(r) {
		return nil, errForbidden
	}
	return m, nil
}

func (r *request) getMeeting() (any, *apiError) {
	_, shown, err := r.read()
	if err != nil {
		return nil, err
	}
	r.Header.Set("Cache-Control", r.service.pace)
	return shown, nil
}

func (r *request) deleteMeeting() (any, *apiError) {
	m, err := r.meeting()
	if err != nil {
		return nil, err
	}
	if !m.changeableBy(r) {
		return nil, errForbidden
	}
	r.org.remove(m)
	return nil, nil
}

func (r *request) setParticipants() (any, *apiError) {
	var participants []string
	m, err := r.changing(func(f *form) {
		var found bool
		participants, found = f.list("participant_ids")
		if !found {
			f.fault("participant_ids", nil)
		}
	})
	if err != nil {
		return nil, err
	}
	err = r.org.known(participants, "")
	if err != nil {
		return nil, err
	}
	if m.Audio != nil {
		return nil, errParticipantsLocked
	}
	if !slices.Equal(participants, m.ParticipantIDs) {
		before := m.json()
		m.ParticipantIDs = participants
		r.org.edited(m, before, r.now)
	}
	return m.json(), nil
}

func (r *request) uploadURL() (any, *apiError) {
	var contentType string
	m, err := r.changing(func(f *form) {
		contentType, _ = f.text("content_type")
		if _, ok := mediaType(contentType); !ok {
			f.fault("content_type", nil)
		}
	})
	if err != nil {
		return nil, err
	}
	if m.Audio != nil {
		return nil, errHasAudio // D11
	}
	base := "http://" + r.http.Host
	if r.http.TLS != nil {
		base = "https://" + r.http.Host
	}
	host := cmp.Or(r.service.cfg.Storage[r.http.Host], base)
	return map[string]any{
		"upload_url": host + r.service.presign(r.org.ID, m.ID, contentType, r.now),
		"expires_in": int(uploadURLValidity.Seconds()),
		"method":     http.MethodPut,
	}, nil
}

func (r *request) getMinutes() (any, *apiError) {
	m, shown, err := r.read()
	if err != nil {
		return nil, err
	}
	format := minutes.Format(cmp.Or(r.http.URL.Query().Get("format"), string(minutes.FormatHTML)))
	if format != minutes.FormatHTML && format != minutes.FormatMarkdown {
		return nil, errFormat
	}
	if shown.Status != minutes.StatusMinutesReady {
		return nil, errMinutesNotReady
	}
	content := m.HTML
	if format == minutes.FormatMarkdown {
		content = m.Markdown
	}
	return minutes.Minutes{Format: format, TemplateID: m.TemplateID, Content: content}, nil
}

func (r *request) getTranscript() (any, *apiError) {
	m, shown, err := r.read()
	if err != nil {
		return nil, err
	}
	switch shown.Status {
	case minutes.StatusTranscribed, minutes.StatusGeneratingMinutes,
		minutes.StatusMinutesReady, minutes.StatusMinutesFailed:
		return map[string]string{"transcript": m.Transcript}, nil
	}
	return nil, errTranscriptNotReady
}

func (r *request) updateMeeting() (any, *apiError) {
	m, err := r.changing(func(f *form) {
		if title, found := f.trimmed("title", maxTitle, false); found && title == "" {
			f.fault("title", nil)
		}
		f.date("date")
		f.timeOfDay("time")
		f.text("project_id")
	})
	if err != nil {
		return nil, err
	}
	project, _ := r.form.text("project_id")
	err = r.org.known(nil, project)
	if err != nil {
		return nil, err
	}
	before := m.json()
	reindex := false
	for name, field := range map[string]*string{"title": &m.Title, "date": &m.Date, "project_id": &m.ProjectID} {
		reindex = r.form.replace(name, field) || reindex
	}
	r.service.remember(m)
	if reindex && m.Status == minutes.StatusMinutesReady {
		r.org.spend(reindexCredits) // D9: with no credit left it still succeeds
	}
	if r.form.replace("time", &m.Time) || reindex { // the time is for display only, and free
		r.org.edited(m, before, r.now)
	}
	return m.json(), nil
}

// replace sets a field of a meeting to one of the body, if it is there, and reports whether that
// changes it.
func (f *form) replace(name string, field *string) bool {
	s, found := f.text(name)
	before := *field
	if found {
		*field = strings.TrimSpace(s)
	}
	return *field != before
}

// createMeeting creates the meeting that the body describes, or finds it by its external id.
func (r *request) createMeeting() (any, *apiError) {
	f := r.form
	o := r.org
	m, shared := r.newMeeting(f)
	err := o.checkShared(f, shared)
	if err != nil {
		return nil, err
	}
	err = o.known(m.ParticipantIDs, m.ProjectID)
	if err != nil {
		return nil, err
	}
	if m.TemplateID == "" {
		m.TemplateID = o.defaultTemplate().ID
	} else if templateOf(&o.Organisation, m.TemplateID) == nil {
		return nil, errUnknown("template", m.TemplateID)
	}
	existing := o.byExternal[m.ExternalID]
	switch {
	case existing == nil:
		o.insert(m, r.now)
	case existing.visibleTo(r.Caller): // D3
		m = existing
		r.Status = http.StatusOK
	default:
		return nil, errExternalIDTaken
	}
	r.MeetingID = m.ID
	r.MeetingStatus = m.Status
	return m.json(), nil
}

// newMeeting returns the meeting that a body describes, and the members in its shared_with, for any
// visibility.
func (r *request) newMeeting(f *form) (m *meeting, shared []string) {
	m = &meeting{Meeting: world.Meeting{Creator: r.Caller, Visibility: r.org.defaultVisibility(r.Caller)}}
	m.Title, _ = f.trimmed("title", maxTitle, true)
	var found bool
	m.Date, found = f.date("date")
	if !found {
		f.fault("date", nil)
	}
	m.Time, _ = f.timeOfDay("time")
	m.ExternalID, found = f.text("external_id")
	if found && (m.ExternalID == "" || longer(m.ExternalID, maxExternalID)) {
		f.fault("external_id", errExtID)
	}
	m.ParticipantIDs, _ = f.list("participant_ids")
	m.ProjectID, _ = f.text("project_id")
	shared, _ = f.list("shared_with")
	m.TemplateID, _ = f.text("template_id")
	visibility, _ := f.text("visibility")
	m.Visibility = cmp.Or(minutes.Visibility(visibility), m.Visibility)
	if !slices.Contains(visibilities, m.Visibility) {
		f.fault("visibility", nil)
	}
	if m.Visibility == minutes.VisibilityShared { // kept only then (D20)
		m.SharedWith = shared
	}
	return m, shared
}

// checkShared returns the error for all faults of a create's body, those of the ids it shares with
// included.
func (o *organisation) checkShared(f *form, shared []string) *apiError {
	var invalid []string
	for _, id := range shared {
		if !shareable(&o.Organisation, id) {
			invalid = append(invalid, id)
		}
	}
	if invalid != nil {
		f.fault("shared_with", errSharedWith)
	}
	err := f.err()
	if err != nil && err.code == minutes.ErrInvalidSharedWith {
		err.details["invalid"] = invalid
	}
	return err
}

// known returns an error for unknown ids: of participants, and of a project, which must not be
// archived (D4, D20).
func (o *organisation) known(participants []string, project string) *apiError {
	for _, id := range participants {
		if memberOf(&o.Organisation, id) == nil {
			return errUnknown("member", id)
		}
	}
	p := projectOf(&o.Organisation, project)
	if project != "" && (p == nil || p.Archived) {
		return errUnknown("project", project)
	}
	return nil
}
