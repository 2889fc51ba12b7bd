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
func (c *call) meeting() (*meeting, *apiError) {
	m := c.org.byID[c.MeetingID]
	if m == nil || !m.visibleTo(c.Caller) {
		return nil, errMeetingNotFound
	}
	c.MeetingStatus = m.Status
	return m, nil
}

// changing returns the meeting in the path for a change of it, or an error in the order of D6 and
// D25. check checks the body.
func (c *call) changing(check func(*form)) (*meeting, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	if check(c.form); c.form.err() != nil {
		return nil, c.form.err()
	}
	if !m.changeableBy(c) {
		return nil, errForbidden
	}
	return m, nil
}

func (c *call) getMeeting() (any, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	c.Header.Set("Cache-Control", c.service.pace)
	return m.json(), nil
}

func (c *call) deleteMeeting() (any, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	if !m.changeableBy(c) {
		return nil, errForbidden
	}
	c.org.remove(m)
	return nil, nil
}

func (c *call) setParticipants() (any, *apiError) {
	var participants []string
	m, err := c.changing(func(f *form) {
		var found bool
		if participants, found = f.list("participant_ids"); !found {
			f.fault("participant_ids", nil)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := c.org.known(participants, ""); err != nil {
		return nil, err
	}
	if m.Audio != nil {
		return nil, errParticipantsLocked
	}
	if !slices.Equal(participants, m.ParticipantIDs) {
		m.ParticipantIDs = participants
		c.org.write(m, c.now)
	}
	return m.json(), nil
}

func (c *call) uploadURL() (any, *apiError) {
	var contentType string
	m, err := c.changing(func(f *form) {
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
	base := "http://" + c.r.Host
	if c.r.TLS != nil {
		base = "https://" + c.r.Host
	}
	url := cmp.Or(c.service.cfg.Storage[c.r.Host], base) + c.service.presign(c.org.ID, m.ID, contentType, c.now)
	return map[string]any{"upload_url": url, "expires_in": int(uploadURLValidity.Seconds()), "method": http.MethodPut}, nil
}

func (c *call) getMinutes() (any, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	format := minutes.Format(cmp.Or(c.r.URL.Query().Get("format"), string(minutes.FormatHTML)))
	if format != minutes.FormatHTML && format != minutes.FormatMarkdown {
		return nil, errFormat
	}
	if m.Status != minutes.StatusMinutesReady {
		return nil, errMinutesNotReady
	}
	content := m.HTML
	if format == minutes.FormatMarkdown {
		content = m.Markdown
	}
	return minutes.Minutes{Format: format, TemplateID: m.TemplateID, Content: content}, nil
}

func (c *call) getTranscript() (any, *apiError) {
	m, err := c.meeting()
	if err != nil {
		return nil, err
	}
	switch m.Status {
	case minutes.StatusTranscribed, minutes.StatusGeneratingMinutes, minutes.StatusMinutesReady, minutes.StatusMinutesFailed:
		return map[string]string{"transcript": m.Transcript}, nil
	}
	return nil, errTranscriptNotReady
}

func (c *call) updateMeeting() (any, *apiError) {
	m, err := c.changing(func(f *form) {
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
	project, _ := c.form.text("project_id")
	if err := c.org.known(nil, project); err != nil {
		return nil, err
	}
	reindex := false
	for name, field := range map[string]*string{"title": &m.Title, "date": &m.Date, "project_id": &m.ProjectID} {
		reindex = c.form.replace(name, field) || reindex
	}
	if reindex && m.Status == minutes.StatusMinutesReady {
		c.org.spend(reindexCredits) // D9: with no credit left it still succeeds
	}
	if c.form.replace("time", &m.Time) || reindex { // the time is for display only, and free
		c.org.write(m, c.now)
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
func (c *call) createMeeting() (any, *apiError) {
	f, o := c.form, c.org
	m, shared := c.newMeeting(f)
	if err := o.checkShared(f, shared); err != nil {
		return nil, err
	}
	if err := o.known(m.ParticipantIDs, m.ProjectID); err != nil {
		return nil, err
	}
	if m.TemplateID == "" {
		m.TemplateID = o.defaultTemplate().ID
	} else if templateOf(&o.Organisation, m.TemplateID) == nil {
		return nil, errNoTemplate
	}
	if existing := o.byExternal[m.ExternalID]; existing != nil { // D3
		if !existing.visibleTo(c.Caller) {
			return nil, errExternalIDTaken
		}
		m, c.Status = existing, http.StatusOK
	} else {
		o.insert(m, c.now)
	}
	c.MeetingID, c.MeetingStatus = m.ID, m.Status
	return m.json(), nil
}

// newMeeting returns the meeting that a body describes, and the members in its shared_with, for any
// visibility.
func (c *call) newMeeting(f *form) (m *meeting, shared []string) {
	m = &meeting{Meeting: world.Meeting{Creator: c.Caller, Visibility: c.org.defaultVisibility(c.Caller)}}
	m.Title, _ = f.trimmed("title", maxTitle, true)
	var found bool
	if m.Date, found = f.date("date"); !found {
		f.fault("date", nil)
	}
	m.Time, _ = f.timeOfDay("time")
	if m.ExternalID, found = f.text("external_id"); found {
		if m.ExternalID == "" || longer(m.ExternalID, maxExternalID) {
			f.fault("external_id", errExtID)
		}
	}
	m.ParticipantIDs, _ = f.list("participant_ids")
	m.ProjectID, _ = f.text("project_id")
	shared, _ = f.list("shared_with")
	m.TemplateID, _ = f.text("template_id")
	if s, _ := f.text("visibility"); s != "" {
		if m.Visibility = minutes.Visibility(s); !slices.Contains(visibilities, m.Visibility) {
			f.fault("visibility", nil)
		}
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
			return errNoMember
		}
	}
	if p := projectOf(&o.Organisation, project); project != "" && (p == nil || p.Archived) {
		return errNoProject
	}
	return nil
}
