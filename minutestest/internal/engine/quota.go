package engine

import "fmt"

// quota is what an organisation has left, and when it is topped up.
type quota struct {
	credits  int
	seconds  int // as Usage shows them
	reserved int // of seconds, set aside for recordings under way (D23)

	periodCredits int
	periodSeconds int

	resetDate date // 0: never
	resetDay  int  // of the month, kept through shorter months
	resetAt   instant
	// armed says that resetAt is known to lie ahead. A date that had passed
	// before the organisation was first used is shown and never comes.
	armed bool
}

// newQuota makes the quota o asks for. now is when the organisation begins.
func newQuota(place string, o *Organisation, now instant) (quota, error) {
	q := quota{
		credits: value(o.Credits, defaultCredits),
		seconds: value(o.TranscribeSeconds, defaultTranscribeSeconds),
	}
	q.periodCredits = value(o.PeriodCredits, q.credits)
	q.periodSeconds = value(o.PeriodTranscribeSeconds, q.seconds)
	if q.credits < 0 || q.seconds < 0 || q.periodCredits < 0 || q.periodSeconds < 0 {
		return q, &configError{place, "quota cannot be negative"}
	}
	if o.NextResetAt != "" {
		if err := q.resetOn(o.NextResetAt, now); err != nil {
			return q, &configError{place + ".next_reset_at", err.Error()}
		}
	}
	return q, nil
}

// resetOn sets the date of the next top-up.
func (q *quota) resetOn(s string, now instant) error {
	q.resetDate, q.armed = 0, false
	if s == "" {
		return nil
	}
	d, ok := parseDate(s)
	if !ok {
		return fmt.Errorf("%q is not a date as YYYY-MM-DD", s)
	}
	q.resetDate, q.resetDay = d, d.day()
	if at, ok := d.midnight(); ok {
		q.resetAt, q.armed = at, now < at
	}
	return nil
}

// free is what a recording that arrives now can have.
func (q *quota) free() int { return q.seconds - q.reserved }

// waiting reports whether a request at now has to do with the top-up: it is
// due, or now lies before a date that was taken for gone (a synctest bubble
// begins in the year 2000).
func (q *quota) waiting(now instant) bool {
	if q.resetDate == 0 {
		return false
	}
	if q.armed {
		return q.resetAt <= now
	}
	return now < q.resetAt
}

// topUp brings back the period's quota, and sets the date of the next top-up
// a month on.
func (q *quota) topUp() {
	q.credits, q.seconds = q.periodCredits, q.periodSeconds
	q.resetDate = q.resetDate.nextMonth(q.resetDay)
	q.resetAt, q.armed = q.resetDate.midnight()
}

// release gives back the seconds set aside for j.
func (q *quota) release(j *job) {
	q.reserved -= j.reserved
	j.reserved = 0
}

// take lets j have the seconds set aside for it.
func (q *quota) take(j *job) {
	q.seconds = max(0, q.seconds-j.reserved)
	q.release(j)
}

// spend takes credits, if there are that many.
func (q *quota) spend(credits int) bool {
	if q.credits < credits {
		return false
	}
	q.credits -= credits
	return true
}
