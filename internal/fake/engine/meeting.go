package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// meeting is one meeting: what [Service.Meeting] shows, and what the service remembers beside that.
type meeting struct {
	world.Meeting
	// seq is the order of all lists: clocks may disagree, numbers do not.
	seq uint64

	// changed is its last change, in changes of the Service.
	changed uint64

	// seconds is how long the recording is, and so what transcription costs.
	seconds int

	// reserved is how many of them are set aside at present.
	reserved int

	// blocked is whether the quota was too low when the audio arrived.
	blocked bool

	// writes is how often updated_at was set.
	writes int

	// released is whether the hold of the present status was released.
	released bool

	// due is when the present status ends, if the meeting is running.
	due time.Time

	// stored is a recording that storage has and the service has not noticed.
	stored *recording

	// edits are the changes of what people have written about it, the oldest first.
	edits []edit
}

// visibleTo is the one rule of who sees a meeting (D17).
func (m *meeting) visibleTo(caller string) bool {
	return m.Creator == caller ||
		m.Visibility == minutes.VisibilityOrganisation ||
		m.Visibility == minutes.VisibilityShared && slices.Contains(m.SharedWith, caller)
}

// changeableBy reports which of those who see m may change or delete it (D17).
func (m *meeting) changeableBy(r *request) bool {
	return r.member == nil || r.member.Admin || m.Creator == r.Caller
}

// insert adds m, which its creator has just described, and gives it its number and its id.
func (o *organisation) insert(m *meeting, now time.Time) {
	o.lastSeq++
	m.seq = o.lastSeq
	m.ID = o.service.ids.next(meetingPrefix)
	m.Organisation = o.ID
	m.Status = minutes.StatusCreated
	m.CreatedAt = now
	m.History = []world.Transition{{Status: m.Status, At: now}}
	o.meetings = append(o.meetings, m)
	o.byID[m.ID] = m
	if m.ExternalID != "" {
		o.byExternal[m.ExternalID] = m
	}
	o.service.remember(m)
	o.write(m, now)
}

// remember records which scripts would match m, for [Service.UnmatchedScripts].
func (s *Service) remember(m *meeting) {
	for _, target := range m.targets() {
		s.named[target] = true
	}
}

// write sets when m was last changed, by the clock of the machine that writes it.
func (o *organisation) write(m *meeting, at time.Time) {
	m.UpdatedAt = at
	m.writes++
	if m.writes%2 == 0 { // the other machine's turn
		m.UpdatedAt = at.Add(-o.service.scripts.of(m).ClockSkew)
	}
	o.touch(m)
}

// edited records a change by a request, which began with what m showed before.
func (o *organisation) edited(m *meeting, before meetingJSON, at time.Time) {
	m.edits = append(m.edits, edit{at: at, before: before})
	o.write(m, at)
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
	delete(o.byID, m.ID)
	if m.ExternalID != "" {
		delete(o.byExternal, m.ExternalID)
	}
	o.unschedule(m)
	o.refund(m) // D25: deleted before transcription completed
}

// before returns how many meetings are older than number seq.
func (o *organisation) before(seq uint64) (n int, found bool) {
	return slices.BinarySearchFunc(o.meetings, seq, func(m *meeting, seq uint64) int { return cmp.Compare(m.seq, seq) })
}

// Delete deletes a meeting, whoever created it. It is an error if there is none.
func (s *Service) Delete(id string) error {
	o, m, err := s.find(id)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	o.remove(m)
	return nil
}

// Add adds the meetings that specs describe to an organisation, and returns their ids. On error,
// which names the path of each mistake, it adds none.
func (s *Service) Add(organisation string, specs []world.MeetingSpec) (ids []string, err error) {
	now := s.lock()
	defer s.mu.Unlock()
	o := s.organisation(organisation)
	if o == nil {
		var known []string
		for _, o := range s.orgs {
			known = append(known, o.ID)
		}
		return nil, fmt.Errorf("there is no organisation %q, only %q", organisation, known)
	}
	c := &checker{owners: map[property]owner{}}
	for id, m := range o.byExternal {
		c.owners[property{o.ID, "external id", id}] = owner{meetingID: m.ID}
	}
	c.meetings(placeOf("meetings"), &o.Organisation, specs)
	if c.mistakes != nil {
		return nil, mistake.Join(c.mistakes...)
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
		m := &meeting{Meeting: world.Meeting{
			Title:          spec.Title,
			Date:           cmp.Or(spec.Date, defaultSpecDate),
			ExternalID:     externalID(spec, n),
			Creator:        by,
			Visibility:     cmp.Or(spec.Visibility, o.defaultVisibility(by)),
			ProjectID:      spec.ProjectID,
			TemplateID:     o.defaultTemplate().ID,
			ParticipantIDs: slices.Clone(spec.ParticipantIDs),
		}}
		if m.Visibility == minutes.VisibilityShared {
			m.SharedWith = slices.Clone(spec.SharedWith)
		}
		o.insert(m, now)
		o.skip(m, cmp.Or(spec.Status, minutes.StatusMinutesReady), now)
		ids = append(ids, m.ID)
	}
	return ids
}

// defaultVisibility is that of a meeting that its creator created without one (D2).
func (o *organisation) defaultVisibility(creator string) minutes.Visibility {
	in := integrationOf(&o.Organisation, creator)
	if in != nil {
		return in.DefaultVisibility
	}
	return defaultPersonalVisibility
}

// Meeting returns everything about a meeting, as of now.
func (s *Service) Meeting(id string) (world.Meeting, bool) {
	_, m, err := s.find(id)
	if err != nil {
		return world.Meeting{}, false
	}
	defer s.mu.Unlock()
	return m.describe(), true
}

// describe returns a copy of what m shows, which later changes of m do not touch.
func (m *meeting) describe() world.Meeting {
	shown := m.Meeting
	shown.ParticipantIDs = slices.Clone(m.ParticipantIDs)
	shown.SharedWith = slices.Clone(m.SharedWith)
	shown.History = slices.Clone(m.History)
	return shown
}

// Changes returns the meetings of all organisations that changed after since, newest first, up to
// the number upTo. All have changed after 0. total is the number of all meetings; next is the since
// of the next call.
func (s *Service) Changes(since uint64, upTo int) (list []world.Meeting, total int, next uint64) {
	s.lock()
	defer s.mu.Unlock()
	for _, o := range s.orgs {
		total += len(o.meetings)
		left := upTo
		for _, m := range slices.Backward(o.meetings) {
			if left == 0 {
				break
			}
			if m.changed > since {
				list = append(list, m.describe())
				left--
			}
		}
	}
	slices.SortStableFunc(list, func(a, b world.Meeting) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list[:min(len(list), upTo)], total, s.changes
}

// Meetings returns all meetings as of now, the oldest first.
func (s *Service) Meetings() []world.Meeting {
	list, _, _ := s.Changes(0, math.MaxInt)
	slices.Reverse(list)
	return list
}

// reason says why m failed, for people. scripted says that a script wanted it so.
func (m *meeting) reason(scripted bool) string {
	why := unprocessable(m.Audio)
	switch {
	case why != "":
		return why
	case m.blocked:
		return fmt.Sprintf("Transcription takes %d s of quota. "+
			"The organisation had less left when the audio arrived.", m.seconds)
	case scripted:
		return "A script set this outcome."
	}
	return "The organisation had no credit left."
}
