package engine

import minutes "github.com/meeting-minutes/minutes-go"

// patch is the body of a PATCH. A nil field is left unchanged.
type patch struct {
	title, date, time, project *string
}

func (p *patch) read(f *form) {
	p.title = present(f.trimmed("title", maxTitle, false))
	if p.title != nil && *p.title == "" {
		f.fault("title", nil)
	}
	p.date = present(f.date("date"))
	p.time = present(f.timeOfDay("time"))
	p.project = present(f.text("project_id"))
}

// present returns a field that was found, or nil.
func present(s string, found bool) *string {
	if !found {
		return nil
	}
	return &s
}

func (c *call) updateMeeting() (any, *apiError) {
	var p patch
	m, err := c.changing(p.read)
	if err != nil {
		return nil, err
	}
	o := c.org
	defer o.unlock()
	if p.project != nil {
		if err := o.known(nil, *p.project); err != nil {
			return nil, err
		}
	}
	reindex := replace(&m.title, p.title)
	reindex = replace(&m.project, p.project) || reindex
	if p.date != nil && *p.date != m.date {
		o.move(m, *p.date)
		reindex = true
	}
	changed := replace(&m.time, p.time) || reindex // the time is for display only, and free
	if reindex && m.status == minutes.StatusMinutesReady {
		o.spend(reindexCredits) // D9: with no credit left it still succeeds
	}
	if changed {
		m.updated = c.now
		o.touch(m)
	}
	return m.json(), nil
}

// replace sets a field, unless to is nil, and reports whether that changes it.
func replace(field, to *string) bool {
	if to == nil || *to == *field {
		return false
	}
	*field = *to
	return true
}
