package engine

import (
	"fmt"
	"time"
)

// quota is the allowance that an organisation has left, and its next top-up.
type quota struct {
	credits  int
	seconds  int // as Usage shows them
	reserved int // of seconds, set aside for recordings under way (D23)

	periodCredits int
	periodSeconds int

	resetDate string // "": never
	resetDay  int    // of the month, kept through shorter months
	resetAt   time.Time
	// armed: resetAt was still to come at some request. A date that had passed
	// before the organisation was first used is shown and never comes.
	armed bool
}

// newQuota returns the quota that o sets. now is when the organisation begins.
func newQuota(place string, o *Organisation, now time.Time) (quota, error) {
	q := quota{credits: value(o.Credits, defaultCredits), seconds: value(o.TranscribeSeconds, defaultTranscribeSeconds)}
	q.periodCredits = value(o.PeriodCredits, q.credits)
	q.periodSeconds = value(o.PeriodTranscribeSeconds, q.seconds)
	if err := q.resetOn(o.NextResetAt, now); err != nil {
		return q, &configError{place + ".next_reset_at", err.Error()}
	}
	return q, nil
}

// resetOn sets the date of the next top-up.
func (q *quota) resetOn(date string, now time.Time) error {
	q.resetDate, q.armed = date, false
	if date == "" {
		return nil
	}
	at, err := time.Parse(time.DateOnly, date)
	if err != nil || !validDate(date) {
		return fmt.Errorf("%q is not a date as YYYY-MM-DD", date)
	}
	q.resetAt, q.resetDay = at, at.Day()
	q.arm(now)
	return nil
}

// arm sets armed if a request is from before the top-up, which may have counted
// as past: a synctest bubble begins in the year 2000.
func (q *quota) arm(now time.Time) {
	q.armed = q.armed || q.resetDate != "" && now.Before(q.resetAt)
}

// free returns the seconds that a recording that arrives now can have.
func (q *quota) free() int { return q.seconds - q.reserved }

// topUp restores the period's quota, and sets the date of the next top-up a
// month later.
func (q *quota) topUp() {
	q.credits, q.seconds = q.periodCredits, q.periodSeconds
	q.resetDate = nextMonth(q.resetDate, q.resetDay)
	q.resetAt, _ = time.Parse(time.DateOnly, q.resetDate)
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
