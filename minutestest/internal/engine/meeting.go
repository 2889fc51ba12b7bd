package engine

import (
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// meeting is one meeting.
type meeting struct {
	seq          uint64 // the order of all lists: clocks may disagree, numbers do not
	changed      uint64 // its last change, in changes of the world
	id           string
	title        string
	externalID   string
	creator      string // id of the member or integration
	project      string
	template     string
	participants []string
	sharedWith   []string
	status       minutes.Status
	visibility   minutes.Visibility
	date         string
	time         string // "": none
	created      time.Time
	updated      time.Time
	job          *job // nil until the audio arrives
}

// visibleTo is the one rule of who sees a meeting (D17).
func (m *meeting) visibleTo(caller string) bool {
	return m.creator == caller ||
		m.visibility == minutes.VisibilityOrganisation ||
		m.visibility == minutes.VisibilityShared && slices.Contains(m.sharedWith, caller)
}

// changeableBy reports which of those who see m may change or delete it (D17).
func (m *meeting) changeableBy(k *key) bool {
	return !k.personal || k.admin || m.creator == k.caller
}

// durationSeconds returns the length of the recording, or nil while the
// service does not show it (D13, D25).
func (m *meeting) durationSeconds() *int {
	switch m.status {
	case minutes.StatusCreated, minutes.StatusAudioUploaded, minutes.StatusAudioRejected, minutes.StatusTranscribeBlocked:
		return nil
	}
	return new(m.job.seconds)
}

// calendars returns the calendars that list m: the one for all callers, or
// those of its creator and of each member it is shared with.
func (o *organisation) calendars(m *meeting) []*calendar {
	if m.visibility == minutes.VisibilityOrganisation {
		return []*calendar{&o.everyone}
	}
	list := []*calendar{o.calendarOf(m.creator)}
	for _, id := range m.sharedWith {
		if id != m.creator {
			list = append(list, o.calendarOf(id))
		}
	}
	return list
}

func (o *organisation) calendarOf(caller string) *calendar {
	c := o.personal[caller]
	if c == nil {
		c = &calendar{}
		o.personal[caller] = c
	}
	return c
}

// insert adds m and gives it its number and its id.
func (o *organisation) insert(m *meeting) {
	o.lastSeq++
	m.seq = o.lastSeq
	for m.id == "" || o.meetings[m.id] != nil {
		m.id = o.world.ids.next(meetingPrefix)
	}
	o.meetings[m.id] = m
	if m.externalID != "" {
		o.externals[m.externalID] = m
	}
	for _, c := range o.calendars(m) {
		c.add(m)
	}
	o.touch(m)
}

// touch records a change that [Service.Changes] reports.
func (o *organisation) touch(m *meeting) {
	o.world.changes++
	m.changed = o.world.changes
}

// remove deletes m and everything that belongs to it.
func (o *organisation) remove(m *meeting) {
	for _, c := range o.calendars(m) {
		c.remove(m)
	}
	delete(o.meetings, m.id)
	if m.externalID != "" {
		delete(o.externals, m.externalID)
	}
	if m.job != nil {
		o.schedule.remove(m)
		o.release(m.job) // D25: deleted before transcription completed
		o.world.forget(m.job)
	}
}

// move gives m another date.
func (o *organisation) move(m *meeting, date string) {
	for _, c := range o.calendars(m) {
		c.remove(m)
	}
	m.date = date
	for _, c := range o.calendars(m) {
		c.add(m)
	}
}
