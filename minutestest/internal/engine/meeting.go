package engine

import (
	"slices"

	minutes "github.com/meeting-minutes/minutes-go"
)

// meeting is one meeting. It is guarded by its organisation's lock.
type meeting struct {
	seq          uint64 // by which all lists are ordered: clocks may disagree, numbers do not
	changed      uint64 // when it last did, in changes of the world
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
	date         date
	time         clock
	created      instant
	updated      instant
	job          *job // nil until the audio arrives
}

// visibleTo is the one rule of who sees what (D17).
func (m *meeting) visibleTo(caller string) bool {
	return m.creator == caller ||
		m.visibility == minutes.VisibilityOrganisation ||
		m.visibility == minutes.VisibilityShared && slices.Contains(m.sharedWith, caller)
}

// changeableBy says who of those that see m may change or delete it (D17).
func (m *meeting) changeableBy(k *key) bool {
	return !k.personal || k.admin || m.creator == k.caller
}

// durationSeconds is the length of the recording, once the service lets it be
// known (D13, D25).
func (m *meeting) durationSeconds() (seconds int, ok bool) {
	switch m.status {
	case minutes.StatusCreated, minutes.StatusAudioUploaded, minutes.StatusAudioRejected, minutes.StatusTranscribeBlocked:
		return 0, false
	}
	return m.job.seconds, true
}

// viewers calls f with the calendar of each kind of viewer m belongs to.
func (o *organisation) viewers(m *meeting, f func(*calendar)) {
	if m.visibility == minutes.VisibilityOrganisation {
		f(&o.everyone)
		return
	}
	f(o.personalCalendar(m.creator))
	for _, id := range m.sharedWith {
		if id != m.creator {
			f(o.personalCalendar(id))
		}
	}
}

func (o *organisation) personalCalendar(viewer string) *calendar {
	c := o.personal[viewer]
	if c == nil {
		c = &calendar{}
		o.personal[viewer] = c
	}
	return c
}

// insert adds m, giving it its number and its id.
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
	o.viewers(m, func(c *calendar) { c.add(m) })
	o.touch(m)
}

// touch takes note that m has changed in what [Service.Changes] tells.
func (o *organisation) touch(m *meeting) { m.changed = o.world.changes.Add(1) }

// remove deletes m and everything belonging to it.
func (o *organisation) remove(m *meeting) {
	o.viewers(m, func(c *calendar) { c.remove(m) })
	delete(o.meetings, m.id)
	if m.externalID != "" {
		delete(o.externals, m.externalID)
	}
	if m.job != nil {
		o.unplan(m)
		o.release(m.job) // D25: deleted before transcription completed
		o.world.forget(m.job)
	}
}

// redate moves m to another date.
func (o *organisation) redate(m *meeting, d date) {
	o.viewers(m, func(c *calendar) { c.extract(m) })
	m.date = d
	o.viewers(m, func(c *calendar) { c.insert(m) })
}
