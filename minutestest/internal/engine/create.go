package engine

import (
	"net/http"
	"slices"

	minutes "github.com/meeting-minutes/minutes-go"
)

// createMeeting creates the meeting that the body describes, or finds it by its external id.
func (c *call) createMeeting() (any, *apiError) {
	f, o := c.form, c.org
	m, shared := c.newMeeting(f)
	if err := o.checkShared(f, shared); err != nil {
		return nil, err
	}
	if err := o.known(m.participants, m.project); err != nil {
		return nil, err
	}
	if m.template == "" {
		m.template = o.defaultTemplate().ID
	} else if o.Template(m.template) == nil {
		return nil, errNoTemplate
	}
	if existing := o.byExternal[m.externalID]; existing != nil { // D3
		if !existing.visibleTo(c.caller.id) {
			return nil, errExternalIDTaken
		}
		m, c.status = existing, http.StatusOK
	} else {
		o.insert(m)
	}
	c.x.MeetingID, c.x.MeetingStatus = m.id, m.status
	return m.json(), nil
}

// newMeeting returns the meeting that a body describes, and the members in its shared_with, for any
// visibility.
func (c *call) newMeeting(f *form) (m *meeting, shared []string) {
	m = &meeting{status: minutes.StatusCreated, creator: c.caller.id, visibility: c.org.defaultVisibility(c.caller.id), created: c.now, updated: c.now}
	m.title, _ = f.trimmed("title", maxTitle, true)
	var found bool
	if m.date, found = f.date("date"); !found {
		f.fault("date", nil)
	}
	m.time, _ = f.timeOfDay("time")
	if m.externalID, found = f.text("external_id"); found {
		if m.externalID == "" || longer(m.externalID, maxExternalID) {
			f.fault("external_id", errExtID)
		}
	}
	m.participants, _ = f.list("participant_ids")
	m.project, _ = f.text("project_id")
	shared, _ = f.list("shared_with")
	m.template, _ = f.text("template_id")
	if s, _ := f.text("visibility"); s != "" {
		if m.visibility = minutes.Visibility(s); !slices.Contains(visibilities, m.visibility) {
			f.fault("visibility", nil)
		}
	}
	if m.visibility == minutes.VisibilityShared { // kept only then (D20)
		m.sharedWith = shared
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
		err.details = fieldDetails{f.bad, invalid}
	}
	return err
}

// known returns an error for unknown ids: of participants, and of a project, which must not be
// archived (D4, D20).
func (o *organisation) known(participants []string, project string) *apiError {
	for _, id := range participants {
		if o.Member(id) == nil {
			return errNoMember
		}
	}
	if p := o.Project(project); project != "" && (p == nil || p.Archived) {
		return errNoProject
	}
	return nil
}
