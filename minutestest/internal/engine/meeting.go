package engine

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// meeting is one meeting.
type meeting struct {
	seq          uint64 // the order of all lists: clocks may disagree, numbers do not
	changed      uint64 // its last change, in changes of the Service
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
func (m *meeting) changeableBy(c *call) bool {
	return c.member == nil || c.member.Admin || m.creator == c.Caller
}

// durationSeconds returns the length of the recording, or nil while the service does not show it
// (D13, D25).
func (m *meeting) durationSeconds() *int {
	switch m.status {
	case minutes.StatusCreated, minutes.StatusAudioUploaded, minutes.StatusAudioRejected, minutes.StatusTranscribeBlocked:
		return nil
	}
	return new(m.job.seconds)
}

// insert adds m and gives it its number and its id.
func (o *organisation) insert(m *meeting) {
	o.lastSeq++
	m.seq, m.id = o.lastSeq, o.service.ids.next(meetingPrefix)
	o.meetings = append(o.meetings, m)
	o.byID[m.id] = m
	if m.externalID != "" {
		o.byExternal[m.externalID] = m
	}
	o.touch(m)
}

// touch records a change that [Service.Changes] reports.
func (o *organisation) touch(m *meeting) {
	o.service.changes++
	m.changed = o.service.changes
}

// remove deletes m and everything that belongs to it.
func (o *organisation) remove(m *meeting) {
	i, _ := o.before(m.seq)
	o.meetings = slices.Delete(o.meetings, i, i+1)
	delete(o.byID, m.id)
	if m.externalID != "" {
		delete(o.byExternal, m.externalID)
	}
	if m.job != nil {
		o.unschedule(m)
		o.release(m.job) // D25: deleted before transcription completed
	}
}

// before returns how many meetings are older than number seq.
func (o *organisation) before(seq uint64) (n int, found bool) {
	return slices.BinarySearchFunc(o.meetings, seq, func(m *meeting, seq uint64) int { return cmp.Compare(m.seq, seq) })
}

// Delete deletes a meeting, whoever created it. It reports whether there was one.
func (s *Service) Delete(id string) bool {
	o, m := s.find(id)
	if o == nil {
		return false
	}
	defer s.mu.Unlock()
	o.remove(m)
	return true
}

// Add adds the meetings that specs describe to an organisation, and returns their ids. On error,
// which names the path of each mistake, it adds none.
func (s *Service) Add(organisation string, specs []world.MeetingSpec) (ids []string, err error) {
	now := s.lock()
	defer s.mu.Unlock()
	o := s.organisation(organisation)
	if o == nil {
		return nil, fmt.Errorf("there is no organisation %q", organisation)
	}
	c := &checker{taken: map[string]string{}}
	for id, m := range o.byExternal {
		c.taken["external id of "+o.ID+"\x00"+id] = "that of meeting " + m.id
	}
	c.meetings("meetings", &o.Organisation, specs)
	if c.mistakes != nil {
		return nil, errors.Join(c.mistakes...)
	}
	for i := range specs {
		ids = append(ids, o.add(&specs[i], now)...)
	}
	return ids, nil
}

// add adds the meetings of a spec that has been checked.
func (o *organisation) add(spec *world.MeetingSpec, now time.Time) (ids []string) {
	for n := range max(spec.Count, 1) {
		by := creator(&o.Organisation, spec)
		m := &meeting{
			title: spec.Title, date: cmp.Or(spec.Date, defaultSpecDate), externalID: externalID(spec, n), creator: by,
			visibility: cmp.Or(spec.Visibility, o.defaultVisibility(by)), project: spec.ProjectID, template: o.defaultTemplate().ID,
			participants: slices.Clone(spec.ParticipantIDs), status: minutes.StatusCreated, created: now, updated: now,
		}
		if m.visibility == minutes.VisibilityShared {
			m.sharedWith = slices.Clone(spec.SharedWith)
		}
		o.insert(m)
		o.skip(m, cmp.Or(spec.Status, minutes.StatusMinutesReady), now)
		ids = append(ids, m.id)
	}
	return ids
}

// defaultVisibility is that of a meeting that its creator created without one (D2).
func (o *organisation) defaultVisibility(creator string) minutes.Visibility {
	if in := o.Integration(creator); in != nil {
		return in.DefaultVisibility
	}
	return defaultPersonalVisibility
}

// Meeting returns everything about a meeting, as of now.
func (s *Service) Meeting(id string) (world.Meeting, bool) {
	o, m := s.find(id)
	if o == nil {
		return world.Meeting{}, false
	}
	defer s.mu.Unlock()
	return o.describe(m), true
}

func (o *organisation) describe(m *meeting) world.Meeting {
	all := world.Meeting{
		ID: m.id, Organisation: o.ID, Creator: m.creator, Title: m.title, Date: m.date, Time: m.time, ExternalID: m.externalID,
		ProjectID: m.project, TemplateID: m.template, Visibility: m.visibility,
		ParticipantIDs: slices.Clone(m.participants), SharedWith: slices.Clone(m.sharedWith), Status: m.status, Reason: o.reason(m),
		DurationSeconds: m.durationSeconds(), CreatedAt: m.created, UpdatedAt: m.updated,
		History: []world.Transition{{Status: minutes.StatusCreated, At: m.created}},
	}
	if j := m.job; j != nil {
		all.Held, all.Transcript, all.Markdown, all.HTML = j.held, j.transcript, j.markdown, j.html
		all.History = append(all.History, j.history...)
		all.Audio = &world.Audio{ContentType: j.contentType, Size: j.size, SHA256: hex.EncodeToString(j.sha256[:]), ReceivedAt: j.received, Bytes: j.bytes}
	}
	return all
}

// Changes returns the meetings of all organisations that changed after since, newest first, at most
// limit. All have changed after 0. total is the number of all meetings; next is the since of the
// next call.
func (s *Service) Changes(since uint64, limit int) (list []world.Meeting, total int, next uint64) {
	s.lock()
	defer s.mu.Unlock()
	for _, o := range s.orgs {
		total += len(o.meetings)
		for left, i := limit, len(o.meetings)-1; i >= 0 && left > 0; i-- {
			if m := o.meetings[i]; m.changed > since {
				list, left = append(list, o.describe(m)), left-1
			}
		}
	}
	slices.SortStableFunc(list, func(a, b world.Meeting) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list[:min(len(list), limit)], total, s.changes
}

// Meetings returns all meetings as of now, the oldest first.
func (s *Service) Meetings() []world.Meeting {
	list, _, _ := s.Changes(0, math.MaxInt)
	slices.Reverse(list)
	return list
}

// reason says why m failed, for people. It is "" for a meeting that has not failed.
func (o *organisation) reason(m *meeting) string {
	if !m.status.Failed() {
		return ""
	}
	switch j := m.job; {
	case j.unreadable && (j.size == 0 || j.size > maxAudioBytes):
		return fmt.Sprintf("The recording has %d bytes. It must have between 1 and %d.", j.size, maxAudioBytes)
	case j.unreadable:
		return fmt.Sprintf("The content type %q is neither audio nor video.", j.contentType)
	case j.blocked:
		return fmt.Sprintf("Transcription takes %d s of quota. The organisation had less left when the audio arrived.", j.seconds)
	case m.status == minutes.StatusMinutesFailed && !j.scripted:
		return "The organisation had no credit left."
	}
	return "A script set this outcome."
}
