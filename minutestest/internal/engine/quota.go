package engine

import (
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// quota is the allowance that an organisation has left, and its next top-up.
type quota struct {
	credits, seconds             int // as Usage shows them
	reserved                     int // of seconds, set aside for recordings under way (D23)
	periodCredits, periodSeconds int // what a top-up restores

	resetDate string    // "": never
	resetAt   time.Time // zero: never, also if the date had passed when it was set
}

// newQuota returns the quota of a complete organisation. now is when it begins.
func newQuota(o *world.Organisation, now time.Time) quota {
	q := quota{credits: *o.Credits, seconds: *o.TranscribeSeconds, periodCredits: *o.Credits, periodSeconds: *o.TranscribeSeconds, resetDate: o.NextResetAt}
	if at, err := time.Parse(time.DateOnly, q.resetDate); err == nil && now.Before(at) {
		q.resetAt = at
	}
	return q
}

// updated returns the quota after an update of o. The amount that a top-up restores stays.
func (q quota) updated(o *world.Organisation, now time.Time) quota {
	after := newQuota(o, now)
	after.reserved, after.periodCredits, after.periodSeconds = q.reserved, q.periodCredits, q.periodSeconds
	return after
}

// toppedUpBy reports whether a top-up is due at a time.
func (q *quota) toppedUpBy(at time.Time) bool { return !q.resetAt.IsZero() && !q.resetAt.After(at) }

// topUp restores the period's quota. The next top-up is a month later.
func (q *quota) topUp() {
	q.credits, q.seconds = q.periodCredits, q.periodSeconds
	q.resetAt = q.resetAt.AddDate(0, 1, 0)
	q.resetDate = q.resetAt.Format(time.DateOnly)
}

// reserve sets the seconds of a recording aside, and reports whether there were enough.
func (q *quota) reserve(j *job) bool {
	if j.seconds > q.seconds-q.reserved {
		return false
	}
	j.reserved = j.seconds
	q.reserved += j.seconds
	return true
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
