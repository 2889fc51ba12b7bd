package engine

import (
	"cmp"
	"slices"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// MeetingLine is a meeting as one line shows it.
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

// Changes returns the meetings of all organisations that changed after since,
// newest first, at most limit. All have changed after 0. total is the number
// of all meetings; next is the since of the next call, until a Reset.
func (s *Service) Changes(since uint64, limit int) (list []MeetingLine, total int, next uint64) {
	w, now := s.world.Load(), wallClock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.orgOrder {
		o.settle(now)
		total += len(o.meetings)
		if w.changes <= since {
			continue
		}
		var changed []*meeting
		for _, m := range o.meetings {
			if m.changed > since {
				changed = append(changed, m)
			}
		}
		slices.SortFunc(changed, func(a, b *meeting) int { return cmp.Compare(b.seq, a.seq) })
		for _, m := range changed[:min(len(changed), limit)] {
			l := m.line(o.id)
			l.Reason = o.reason(m)
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b MeetingLine) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list[:min(len(list), limit)], total, w.changes
}

func (m *meeting) line(organisation string) MeetingLine {
	return MeetingLine{
		ID: m.id, Organisation: organisation, Creator: m.creator, Title: m.title, ExternalID: m.externalID,
		Status: m.status, Held: m.job != nil && m.job.held, CreatedAt: m.created, History: m.history(),
	}
}

// history returns the states that m has been in, created first.
func (m *meeting) history() []Transition {
	list := []Transition{{minutes.StatusCreated, m.created}}
	if m.job != nil {
		list = append(list, m.job.history...)
	}
	return list
}

// Scripted is a script with its selector.
type Scripted struct {
	Selector
	Script
}

// Scripts returns the scripts in force, at most limit: the one for all
// meetings, then those for titles, for external ids and for ids, each sorted.
func (s *Service) Scripts(limit int) []Scripted {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []Scripted
	for sel, sc := range w.scripts {
		list = append(list, Scripted{sel, sc})
	}
	slices.SortFunc(list, func(a, b Scripted) int {
		return cmp.Or(cmp.Compare(a.MeetingID, b.MeetingID), cmp.Compare(a.ExternalID, b.ExternalID), cmp.Compare(a.Title, b.Title))
	})
	return list[:min(len(list), limit)]
}
