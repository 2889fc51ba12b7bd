package engine

import (
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// edit is a change of what a meeting shows, besides its status.
type edit struct {
	at time.Time
	// before is what the meeting showed until then.
	before meetingJSON
}

// shows returns what a read shows of m: what m was at r.asOf, if that is set. found is whether the
// read finds m at all, because it existed and no script hides it from the caller.
func (r *request) shows(m *meeting) (shown meetingJSON, found bool) {
	hidden := r.service.scripts.of(m).VisibleAfter
	if !m.visibleTo(r.Caller) || hidden > 0 && r.now.Before(m.CreatedAt.Add(hidden)) {
		return shown, false
	}
	if r.asOf.IsZero() {
		return m.json(), true
	}
	return m.at(r.asOf)
}

// at returns what m showed at a time, if it existed.
func (m *meeting) at(at time.Time) (shown meetingJSON, found bool) {
	if at.Before(m.CreatedAt) {
		return shown, false
	}
	shown = m.json()
	later := slices.IndexFunc(m.edits, func(e edit) bool { return e.at.After(at) })
	if later >= 0 {
		shown = m.edits[later].before
	}
	after := slices.IndexFunc(m.History, func(t world.Transition) bool { return t.At.After(at) })
	if after < 0 {
		after = len(m.History)
	}
	last := m.History[after-1] // the first one is its creation
	shown.Status = last.Status
	if after < len(m.History) || later >= 0 {
		shown.UpdatedAt = last.At.Unix()
	}
	if !m.wasPrepared(after) {
		shown.DurationSeconds = nil
	}
	return shown, true
}

// wasPrepared reports whether a recording's duration was shown after so many transitions.
func (m *meeting) wasPrepared(transitions int) bool {
	return slices.ContainsFunc(m.History[:transitions], func(t world.Transition) bool {
		return t.Status == "transcribing"
	})
}
