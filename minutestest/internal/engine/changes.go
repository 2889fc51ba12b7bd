package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// MeetingLine is what a line can show of a meeting.
type MeetingLine struct {
	ID           string
	Organisation string
	Creator      string // id of the member or integration
	Title        string
	ExternalID   string
	Status       minutes.Status
	Held         bool   // a script holds it in Status
	Reason       string // why it failed, for people
	CreatedAt    time.Time
	History      []Transition // created first
}

// Changes returns the meetings of all organisations that have changed after
// since, the newest first, so many at most, as of now. All have changed after
// 0. Total is how many meetings there are; next is what to give as since the
// next time, as long as there is no Reset.
func (s *Service) Changes(since uint64, most int) (list []MeetingLine, total int, next uint64) {
	w, now := s.world.Load(), instantOf(time.Now())
	// What changes from here on may be told of now and once more next time.
	next = w.changes.Load()
	for _, o := range w.orgOrder {
		o.rlock(now)
		total += len(o.meetings)
		var changed []*meeting
		if w.changes.Load() > since {
			for _, m := range o.meetings {
				if m.changed > since {
					changed = append(changed, m)
				}
			}
		}
		slices.SortFunc(changed, func(a, b *meeting) int { return cmp.Compare(b.seq, a.seq) })
		for _, m := range changed[:min(len(changed), most)] {
			l := m.line(o.id)
			l.Reason = o.reason(m)
			list = append(list, l)
		}
		o.mu.RUnlock()
	}
	slices.SortStableFunc(list, func(a, b MeetingLine) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list[:min(len(list), most)], total, next
}

func (m *meeting) line(organisation string) MeetingLine {
	l := MeetingLine{
		ID: m.id, Organisation: organisation, Creator: m.creator, Title: m.title, ExternalID: m.externalID,
		Status: m.status, CreatedAt: m.created.time(), History: m.history(),
	}
	l.Held = m.job != nil && m.job.held
	return l
}

// history is the states m has been in, created first.
func (m *meeting) history() []Transition {
	if m.job == nil {
		return []Transition{{minutes.StatusCreated, m.created.time()}}
	}
	list := make([]Transition, len(m.job.history))
	for i, c := range m.job.history {
		list[i] = Transition{c.status, c.at.time()}
	}
	return list
}

// Scripted is a script with what it is for.
type Scripted struct {
	Selector
	Script
}

// Scripts returns the scripts in force: that for all meetings, those for
// titles, for external ids and for ids, each in order, so many at most.
func (s *Service) Scripts(most int) []Scripted {
	sc := &s.world.Load().scripts
	sc.mu.RLock()
	defer sc.mu.RUnlock()
	var list []Scripted
	if sc.all != (Script{}) {
		list = append(list, Scripted{Script: sc.all})
	}
	for _, of := range []struct {
		scripts map[string]Script
		sel     func(string) Selector
	}{
		{sc.byTitle, func(s string) Selector { return Selector{Title: s} }},
		{sc.byExternal, func(s string) Selector { return Selector{ExternalID: s} }},
		{sc.byID, func(s string) Selector { return Selector{MeetingID: s} }},
	} {
		for _, name := range slices.Sorted(maps.Keys(of.scripts)) {
			list = append(list, Scripted{of.sel(name), of.scripts[name]})
		}
	}
	return list[:min(len(list), most)]
}
