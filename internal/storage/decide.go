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
	// Stored means that the upload is done: storage has the recording.
	Stored Step = iota
	// Retry is another attempt, to the same URL unless it has expired by then.
	Retry
	// Renew is another attempt, to a new URL.
	Renew
	// GiveUp means that the upload has failed, unless Decision.Poll finds audio.
	GiveUp
)

// Decision is what follows an attempt.
type Decision struct {
	// Step is what happens after Wait and Poll.
	Step Step
	// Wait is how long to wait first.
	Wait time.Duration
	// Poll means to poll the meeting after Wait. If it has audio, the upload has succeeded.
	Poll bool
}

// State is what Decide knows about an upload. The caller sets the fields up to LastStored, and Decide the
// others.
type State struct {
	// MaxRetries is after how many retries an upload gives up, if Patience has passed by then. 0
	// switches retries off.
	MaxRetries int
	// Shared means that other workers may upload to the meeting, and that their audio is as good.
	Shared bool
	// Deadline is the caller's; zero if there is none.
	Deadline time.Time
	// URLExpires is when the service lets the upload URL expire.
	URLExpires time.Time
	// LastStored is when storage took any recording of the Client last; zero if it never did.
	LastStored time.Time

	// Attempts is how many attempts have ended.
	Attempts int
	// FirstFailure is when the first of them failed.
	FirstFailure time.Time
	// MayHaveArrived means that an attempt may have stored the recording, although storage did not say
	// so. It stays true even after a poll has shown no audio, because the service may be slow to notice.
	MayHaveArrived bool
	// WithoutExpect means that storage rejected the header Expect, so the next attempts omit it.
	WithoutExpect bool
}

const (
	// Patience is how long an upload keeps trying after its first failure, so that a short outage of
	// the network or of storage ends no upload.
	Patience = time.Minute
	// settling is how long the service may take to notice audio that has arrived.
	settling = 5 * time.Second
)

// Decide returns what follows an attempt that has ended now, and s with the attempt added. wait is
// the random backoff, plus the Retry-After of the outcome; one beyond rest.MaxRetryAfter ends the
// upload.
func Decide(s State, o Outcome, now time.Time, wait time.Duration) (Decision, State) {
	next := nextStep(s, o, now)
	s.Attempts++
	if next.Step == Stored {
		return next, s
	}
	s.FirstFailure = cmp.Or(s.FirstFailure, now)
	// nextStep says Poll if storage may have the recording. A gateway may report an error although the
	// storage behind it has it.
	s.MayHaveArrived = s.MayHaveArrived || next.Poll || o.StatusCode >= 499 && o.Sent > 0
	s.WithoutExpect = s.WithoutExpect || o.StatusCode == http.StatusExpectationFailed
	next.Wait = max(next.Wait, wait)
	failing := s.FirstFailure
	if o.Busy() && s.LastStored.After(failing) { // storage works, and this upload waits for its turn
		failing = s.LastStored
	}
	exhausted := s.MaxRetries == 0 || s.Attempts > s.MaxRetries && now.Sub(failing) >= Patience
	tooLate := !s.inTime(now, next.Wait) || o.RetryAfter > rest.MaxRetryAfter
	if next.Step == GiveUp || exhausted || tooLate {
		return s.giveUp(o, now), s
	}
	return next, s
}

// nextStep returns what an outcome calls for, without a limit on attempts or time.
func nextStep(s State, o Outcome, now time.Time) Decision {
	status := o.StatusCode
	switch {
	case errors.Is(o.Err, ErrUnreadable), rest.Misconfigured(o.Err): // the next attempt would fail, too
		return Decision{Step: GiveUp}
	case status/100 == 2 && o.Message == "":
		return Decision{Step: Stored}
	case status/100 == 2, status == 0 && o.Sent > 0:
		// Poll: storage may have the recording. Renew: even a part of it may have used up a URL that is
		// good for one PUT.
		return Decision{Step: Renew, Wait: settling, Poll: true}
	case status == 0:
		return Decision{Step: Retry}
	case status == http.StatusExpectationFailed && !s.WithoutExpect: // RFC 9110, section 10.1.1
		return Decision{Step: Retry}
	case blamesTime(status, o.Code, o.Message), status == http.StatusForbidden && !now.Before(s.URLExpires):
		return Decision{Step: Renew}
	case mayAcceptLater(status, o.Code):
		return Decision{Step: Retry}
	}
	return Decision{Step: GiveUp}
}

// inTime reports whether a wait ends before the caller's deadline.
func (s State) inTime(now time.Time, wait time.Duration) bool {
	return s.Deadline.IsZero() || now.Add(wait).Before(s.Deadline)
}

// giveUp asks first whether there is audio after all, if an attempt may have stored it, or if storage
// rejected the last one, because another worker may have been faster.
func (s State) giveUp(o Outcome, now time.Time) Decision {
	d := Decision{Step: GiveUp, Poll: s.MayHaveArrived || s.Shared && o.StatusCode != 0}
	if d.Poll && s.inTime(now, settling) {
		d.Wait = settling
	}
	return d
}

// blamesTime reports whether storage rejected the URL because it has expired, or because the clocks of
// storage and of the service differ. A new URL or a little time can cure both.
func blamesTime(status int, code, message string) bool {
	if !slices.Contains([]int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}, status) {
		return false
	}
	text := strings.ToLower(code + " " + message)
	return slices.ContainsFunc([]string{
		"expired",              // ExpiredToken, ExpiredRequest, RequestExpired, "Request has expired"
		"skewed",               // RequestTimeTooSkewed
		"not valid yet",        // of MinIO, for a URL from the future
		"not yet valid",        // of others, for the same
		"no longer valid",      // for a URL or a signing key from the past
		"tokenrefreshrequired", // for the service's own credentials
	}, func(part string) bool { return strings.Contains(text, part) })
}

// mayAcceptLater reports whether storage may accept the same PUT later.
func mayAcceptLater(status int, code string) bool {
	return status >= 500 || slices.Contains([]int{408, 429, 499}, status) || slices.Contains([]string{
		"RequestTimeout", "IncompleteBody", "ClientDisconnect", // the connection was lost
		"OperationAborted", "ConditionalRequestConflict", // another request came at the same time
	}, code)
}

// Retryable reports whether another upload may succeed later, after one that ended with such a
// response, or without one if status is 0.
func Retryable(status int, code, message string) bool {
	return status == 0 || status/100 == 2 || mayAcceptLater(status, code) || blamesTime(status, code, message)
}
