package engine

import (
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// quota is the allowance that an organisation has left, and its next top-up.
type quota struct {
	credits  int
	seconds  int // as Usage shows them
	reserved int // of seconds, set aside for recordings under way (D23)

	periodCredits int // what a top-up restores
	periodSeconds int

	resetDate string // "": never
	resetDay  int    // of the month, kept through shorter months
	resetAt   time.Time
	// armed: resetAt was still to come at some request. A date that had passed before the
	// organisation was first used is shown and never comes. A synctest bubble begins in the year
	// 2000, so a date may count as past before it counts as still to come.
	armed bool
}

// newQuota returns the quota of a complete organisation. now is when it begins.
func newQuota(o *world.Organisation, now time.Time) quota {
	q := quota{credits: *o.Credits, seconds: *o.TranscribeSeconds, periodCredits: *o.Credits, periodSeconds: *o.TranscribeSeconds, resetDate: o.NextResetAt}
	if q.resetDate != "" {
		q.resetAt, _ = time.Parse(time.DateOnly, q.resetDate)
		q.resetDay = q.resetAt.Day()
	}
	q.arm(now)
	return q
}

// updated returns the quota after an update of o. What a top-up restores stays.
func (q quota) updated(o *world.Organisation, now time.Time) quota {
	after := newQuota(o, now)
	after.reserved, after.periodCredits, after.periodSeconds = q.reserved, q.periodCredits, q.periodSeconds
	if after.resetDate == q.resetDate {
		after.resetDay, after.armed = q.resetDay, q.armed
	}
	return after
}

func (q *quota) arm(now time.Time) {
	q.armed = q.armed || q.resetDate != "" && now.Before(q.resetAt)
}

// free returns the seconds that a recording that arrives now can have.
func (q *quota) free() int { return q.seconds - q.reserved }

// topUp restores the period's quota. The next top-up is a month later, on the same day or the
// month's last.
func (q *quota) topUp() {
	q.credits, q.seconds = q.periodCredits, q.periodSeconds
	first := time.Date(q.resetAt.Year(), q.resetAt.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	q.resetAt = first.AddDate(0, 0, min(q.resetDay, last)-1)
	q.resetDate = q.resetAt.Format(time.DateOnly)
}

// reserve sets the seconds of a recording aside.
func (q *quota) reserve(j *job) {
	j.reserved = j.seconds
	q.reserved += j.seconds
}

// release gives back the seconds set aside for j.
func (q *quota) release(j *job) {
	q.reserved -= j.reserved
	j.reserved = 0
}

// take uses up the seconds set aside for j.
func (q *quota) take(j *job) {
	q.seconds = max(0, q.seconds-j.reserved)
	q.release(j)
}

// spend takes credits, and reports whether there were enough.
func (q *quota) spend(credits int) bool {
	if q.credits < credits {
		return false
	}
	q.credits -= credits
	return true
}
