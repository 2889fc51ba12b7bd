package engine

import (
	"net/http"
	"slices"
	"strconv"

	minutes "github.com/meeting-minutes/minutes-go"
)

// meeting returns the meeting in the path, or a refusal where the caller does
// not see it. The organisation is locked.
func (c *call) meeting() (*meeting, *refusal) {
	m := c.org.meetings[c.x.MeetingID]
	if m == nil || !m.visibleTo(c.key.caller) {
		return nil, errMeetingNotFound
	}
	// The id is the meeting's own: that of the path would keep all of the
	// request's URL in memory wherever it is remembered.
	c.x.MeetingID, c.x.MeetingStatus = m.id, m.status
	return m, nil
}

// visible says ahead of reading a body whether the meeting in the path is
// there: 404 comes before 400.
func (c *call) visible() *refusal {
	c.org.rlock(c.now)
	defer c.org.mu.RUnlock()
	_, no := c.meeting()
	return no
}

// changing begins an operation that changes the meeting in the path: it reads
// the body, locks the organisation, and refuses in the order of D6 what the
// body's faults and the caller's rights refuse. check looks at the body.
// Unless refused, the organisation stays locked.
func (c *call) changing(check func(*form)) (*meeting, *refusal) {
	if no := c.visible(); no != nil {
		return nil, no
	}
	f, no := c.body()
	if no == nil {
		check(f)
		no = f.refusal()
	}
	c.org.lock(c.now)
	m, gone := c.meeting() // it may have been deleted while the body came
	switch {
	case gone != nil:
		no = gone
	case no == nil && !m.changeableBy(c.key):
		no = errForbidden
	}
	if no != nil {
		c.org.mu.Unlock()
		return nil, no
	}
	return m, nil
}

func (c *call) getMeeting() *refusal {
	c.org.rlock(c.now)
	defer c.org.mu.RUnlock()
	m, no := c.meeting()
	if no != nil {
		return no
	}
	c.pollable = true
	c.out = appendMeeting(c.out, m)
	return nil
}

func (c *call) createMeeting() *refusal {
	f, no := c.body()
	if no != nil {
		return no
	}
	m := &meeting{status: minutes.StatusCreated, creator: c.key.caller, time: noTime, created: c.now, updated: c.now}
	m.title, _ = f.trimmed("title", maxTitle, true)
	if s, ok := f.text("date"); ok {
		m.date = f.date(s)
	} else {
		f.fault("date", nil)
	}
	if s, _ := f.text("time"); s != "" {
		m.time = f.clock(s)
	}
	if s, ok := f.text("external_id"); ok {
		if s == "" || longer(s, maxExternalID) {
			f.fault("external_id", errExtID)
		}
		m.externalID = s
		c.x.ExternalID = s
	}
	m.participants, _ = f.list("participant_ids")
	m.project, _ = f.text("project_id")
	shared, _ := f.list("shared_with")
	m.template, _ = f.text("template_id")
	m.visibility = c.key.visibility
	if s, _ := f.text("visibility"); s != "" {
		m.visibility = minutes.Visibility(s)
		if !validVisibility(m.visibility) {
			f.fault("visibility", nil)
		}
	}
	if m.visibility == minutes.VisibilityShared { // kept only there (D20)
		m.sharedWith = shared
	}

	o := c.org
	o.lock(c.now)
	defer o.mu.Unlock()
	var invalid []string
	for _, id := range shared {
		if !o.shareable(id) && len(invalid) < defaultMaxMembers {
			invalid = append(invalid, shortened(id, maxFaultName))
		}
	}
	if invalid != nil {
		f.fault("shared_with", errSharedWith)
	}
	if no := f.refusal(); no != nil {
		if no.code == minutes.ErrInvalidSharedWith {
			no.invalid = invalid
		}
		return no
	}
	if no := o.known(m.participants, m.project); no != nil {
		return no
	}
	if m.template == "" {
		m.template = o.defaultTemplate.ID
	} else if o.templates[m.template] == nil {
		return errNoTemplate
	}
	if there := o.externals[m.externalID]; there != nil && m.externalID != "" { // D3
		if !there.visibleTo(c.key.caller) {
			return errExternalIDTaken
		}
		m, c.status = there, http.StatusOK
	} else {
		o.insert(m)
	}
	c.x.MeetingID, c.x.MeetingStatus = m.id, m.status
	c.out = appendMeeting(c.out, m)
	return nil
}

// shareable says whether a meeting can be shared with the member of this id:
// not with one who cannot sign in, nor with an integration (section 2.3, D4).
func (o *organisation) shareable(id string) bool {
	m := o.members[id]
	return m != nil && (m.Status == minutes.MemberActive || m.Status == minutes.MemberInvited)
}

// known refuses ids that nobody knows: of participants, and of a project that
// can take meetings (D4, D20).
func (o *organisation) known(participants []string, project string) *refusal {
	for _, id := range participants {
		if o.members[id] == nil {
			return errNoMember
		}
	}
	if p := o.projects[project]; project != "" && (p == nil || p.Archived) {
		return errNoProject
	}
	return nil
}

func (c *call) updateMeeting() *refusal {
	var title, project *string
	var on *date
	var at *clock
	m, no := c.changing(func(f *form) {
		if s, ok := f.trimmed("title", maxTitle, false); ok {
			if s == "" {
				f.fault("title", nil)
			}
			title = &s
		}
		if s, ok := f.text("date"); ok {
			on = new(f.date(s))
		}
		if s, ok := f.text("time"); ok {
			at = new(noTime)
			if s != "" {
				*at = f.clock(s)
			}
		}
		if s, ok := f.text("project_id"); ok {
			project = &s
		}
	})
	if no != nil {
		return no
	}
	o := c.org
	defer o.mu.Unlock()
	if project != nil {
		if no := o.known(nil, *project); no != nil {
			return no
		}
	}
	reindex := false
	if title != nil && *title != m.title {
		m.title, reindex = *title, true
	}
	if project != nil && *project != m.project {
		m.project, reindex = *project, true
	}
	if on != nil && *on != m.date {
		o.redate(m, *on)
		reindex = true
	}
	changed := reindex
	if at != nil && *at != m.time { // the start time is for display only, and free
		m.time, changed = *at, true
	}
	if reindex && m.status == minutes.StatusMinutesReady {
		o.spend(reindexCredits) // D9: with no credit left it still succeeds
	}
	if changed {
		m.updated = c.now
		o.touch(m)
	}
	c.out = appendMeeting(c.out, m)
	return nil
}

func (c *call) deleteMeeting() *refusal {
	c.org.lock(c.now)
	defer c.org.mu.Unlock()
	m, no := c.meeting()
	if no != nil {
		return no
	}
	if !m.changeableBy(c.key) {
		return errForbidden
	}
	c.org.remove(m)
	return nil
}

func (c *call) setParticipants() *refusal {
	var participants []string
	m, no := c.changing(func(f *form) {
		var there bool
		if participants, there = f.list("participant_ids"); !there {
			f.fault("participant_ids", nil)
		}
	})
	if no != nil {
		return no
	}
	o := c.org
	defer o.mu.Unlock()
	if no := o.known(participants, ""); no != nil {
		return no
	}
	if m.job != nil {
		return errParticipantsLocked
	}
	if !slices.Equal(participants, m.participants) {
		m.participants, m.updated = participants, c.now
	}
	c.out = appendMeeting(c.out, m)
	return nil
}

func (c *call) uploadURL() *refusal {
	var contentType string
	m, no := c.changing(func(f *form) {
		contentType, _ = f.text("content_type")
		if _, ok := mediaType(contentType); !ok {
			f.fault("content_type", nil)
		}
	})
	if no != nil {
		return no
	}
	defer c.org.mu.Unlock()
	if m.job != nil {
		return errHasAudio // D11
	}
	c.out = append(c.out, `{"upload_url":`...)
	c.out = appendString(c.out, c.world.storageBase(c.r)+c.world.presign(c.org.id, m.id, contentType, c.now))
	c.out = append(c.out, `,"expires_in":`...)
	c.out = strconv.AppendInt(c.out, int64(uploadURLValidity.Seconds()), 10)
	c.out = append(c.out, `,"method":"PUT"}`...)
	return nil
}

func (c *call) getMinutes() *refusal {
	c.org.rlock(c.now)
	defer c.org.mu.RUnlock()
	m, no := c.meeting()
	if no != nil {
		return no
	}
	values, ok := parameters(c.r.URL.RawQuery, "format")
	if !ok {
		return errQuery
	}
	format := minutes.FormatHTML
	if values[0] != nil && *values[0] != "" {
		format = minutes.Format(*values[0])
	}
	if format != minutes.FormatHTML && format != minutes.FormatMarkdown {
		return errFormat
	}
	if m.status != minutes.StatusMinutesReady {
		return errMinutesNotReady
	}
	written := m.job.written.minutes()
	content := written.HTML
	if format == minutes.FormatMarkdown {
		content = written.Markdown
	}
	c.out = append(c.out, `{"format":`...)
	c.out = appendString(c.out, string(format))
	c.out = append(c.out, `,"template_id":`...)
	c.out = appendString(c.out, m.template)
	c.out = append(c.out, `,"content":`...)
	c.out = appendString(c.out, content)
	c.out = append(c.out, '}')
	return nil
}

func (c *call) getTranscript() *refusal {
	c.org.rlock(c.now)
	defer c.org.mu.RUnlock()
	m, no := c.meeting()
	if no != nil {
		return no
	}
	if m.job == nil || m.job.spoken == nil {
		return errTranscriptNotReady
	}
	c.out = append(c.out, `{"transcript":`...)
	c.out = appendString(c.out, m.job.spoken.transcript())
	c.out = append(c.out, '}')
	return nil
}

// date and clock read a field's value, or note the fault.
func (f *form) date(s string) date {
	d, ok := parseDate(s)
	if !ok {
		f.fault("date", errDate)
	}
	return d
}

func (f *form) clock(s string) clock {
	t, ok := parseClock(s)
	if !ok {
		f.fault("time", errTime)
	}
	return t
}
