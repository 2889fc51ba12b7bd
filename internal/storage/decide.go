package storage

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// Step is how an upload goes on after an attempt.
type Step int

const (
	Stored Step = iota // not at all: storage has the recording
	Retry              // with another attempt, to the same URL
	Renew              // with another attempt, to a new URL
	GiveUp             // not at all: the upload has failed
)

// Decision is what follows an attempt.
type Decision struct {
	Step Step
	Wait time.Duration // before anything else
	// Ask means: before Step, poll the meeting. If it has audio, the upload has succeeded.
	Ask bool
}

// State is what Decide knows about an upload. Decide keeps it up to date, from Attempts on.
type State struct {
	MaxRetries int       // 0 switches retries off
	Shared     bool      // other workers may upload to the meeting, and their audio is as good
	Deadline   time.Time // of the caller; zero: none
	URLExpires time.Time

	Attempts      int       // that have ended
	FirstFailure  time.Time // when the first of them failed
	Arrived       bool      // an attempt may have stored the recording, although nobody said so
	Renewed       bool      // an expired URL was replaced
	WithoutExpect bool      // storage rejected the header Expect, so the next attempts omit it
}

const (
	// Patience is how long an upload keeps trying after its first failure, so that a short outage of
	// the network or of storage ends no upload.
	Patience = time.Minute
	// settling is how long the service may take to notice audio that has arrived.
	settling = 5 * time.Second
)

// Decide returns what follows an attempt that has ended now, and s with the attempt added. wait is
// random, and at least the Retry-After of the outcome.
func Decide(s State, o Outcome, now time.Time, wait time.Duration) (Decision, State) {
	s.Attempts++
	d := Decision{Step: GiveUp, Wait: wait}
	switch status := o.StatusCode; {
	case errors.Is(o.Err, ErrUnreadable), rest.Misconfigured(o.Err): // the next attempt would fail, too
	case status/100 == 2 && o.Message == "":
		return Decision{Step: Stored}, s
	case status/100 == 2, status == 0 && o.Sent > 0: // storage may have the recording, and accept only one PUT for a URL
		s.Arrived = true
		d = Decision{Step: Renew, Wait: max(wait, settling), Ask: true}
	case status == 0:
		d.Step = Retry
	case status == http.StatusExpectationFailed && !s.WithoutExpect: // RFC 9110, section 10.1.1
		d.Step, s.WithoutExpect = Retry, true
	case !s.Renewed && (saysExpired(status, o.Code, o.Message) || status == http.StatusForbidden && !now.Before(s.URLExpires)):
		d.Step, s.Renewed = Renew, true
	case temporary(status, o.Code):
		// A gateway may report an error although the storage behind it has the recording.
		d.Step, s.Arrived = Retry, s.Arrived || status >= 499 && o.Sent > 0
	}
	s.FirstFailure = cmp.Or(s.FirstFailure, now)
	inTime := func(wait time.Duration) bool { return s.Deadline.IsZero() || now.Add(wait).Before(s.Deadline) }
	tried := s.Attempts > s.MaxRetries && now.Sub(s.FirstFailure) >= Patience
	if s.MaxRetries == 0 || tried || !inTime(d.Wait) || o.RetryAfter > rest.MaxRetryAfter {
		d.Step = GiveUp
	}
	switch {
	case d.Step == Retry && !now.Add(d.Wait).Before(s.URLExpires):
		d.Step = Renew
	case d.Step == GiveUp:
		// A rejection may mean that another worker was faster.
		d = Decision{Step: GiveUp, Ask: s.Arrived || s.Shared && o.StatusCode != 0}
		if d.Ask && inTime(settling) {
			d.Wait = settling
		}
	}
	return d, s
}

// saysExpired reports whether storage says that it rejected the URL because it has expired.
func saysExpired(status int, code, message string) bool {
	return (status == http.StatusForbidden || status == http.StatusBadRequest) &&
		strings.Contains(strings.ToLower(code+" "+message), "expired")
}

// temporary reports whether storage may accept the same PUT later.
func temporary(status int, code string) bool {
	return status >= 500 || slices.Contains([]int{408, 429, 499}, status) ||
		slices.Contains([]string{"RequestTimeout", "IncompleteBody", "OperationAborted"}, code)
}

// Retryable reports whether another upload may succeed later, after one that ended with such a
// response, or without one if status is 0.
func Retryable(status int, code, message string) bool {
	return status == 0 || status/100 == 2 || temporary(status, code) || saysExpired(status, code, message)
}
