package storage

import (
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

// History is what Decide has learnt about an upload. The caller sets MaxRetries and Shared.
type History struct {
	MaxRetries    int       // 0 switches retries off
	Shared        bool      // other workers may upload to the meeting, and their audio is as good
	Attempts      int       // that have ended
	FirstFailure  time.Time // when the first of them failed
	Arrived       bool      // an attempt may have stored the recording, although nobody said so
	Renewed       bool      // an expired URL was replaced
	WithoutExpect bool      // storage rejected the header Expect, so the next attempts omit it
}

// Times are the times that Decide depends on.
type Times struct {
	Now        time.Time
	URLExpires time.Time
	Deadline   time.Time     // of the caller; zero: none
	Wait       time.Duration // random; at least the Retry-After of the outcome
}

const (
	// spread is how long an upload keeps trying after its first failure, so that a short outage of
	// the network or of storage ends no upload.
	spread = time.Minute
	// settling is how long the service may take to notice audio that has arrived.
	settling = 5 * time.Second
)

// Decide returns what follows an attempt, and h with the attempt added.
func Decide(h History, o Outcome, t Times) (Decision, History) {
	h.Attempts++
	d := Decision{Step: GiveUp, Wait: t.Wait}
	switch status := o.StatusCode; {
	case errors.Is(o.Err, ErrUnreadable): // another attempt would read the same
	case status/100 == 2 && o.Message == "":
		return Decision{Step: Stored}, h
	case status/100 == 2, status == 0 && o.Sent > 0: // storage may have the recording, and accept only one PUT for a URL
		h.Arrived = true
		d = Decision{Step: Renew, Wait: max(t.Wait, settling), Ask: true}
	case status == 0 && rest.Permanent(o.Err): // such as an untrusted certificate
	case status == 0:
		d.Step = Retry
	case status == http.StatusExpectationFailed && !h.WithoutExpect: // RFC 9110, section 10.1.1
		d.Step, h.WithoutExpect = Retry, true
	case !h.Renewed && (saysExpired(status, o.Code, o.Message) || status == http.StatusForbidden && !t.Now.Before(t.URLExpires)):
		d.Step, h.Renewed = Renew, true
	case temporary(status, o.Code):
		// A gateway may report an error although the storage behind it has the recording.
		d.Step, h.Arrived = Retry, h.Arrived || status >= 499 && o.Sent > 0
	}
	if h.FirstFailure.IsZero() {
		h.FirstFailure = t.Now
	}
	inTime := func(wait time.Duration) bool { return t.Deadline.IsZero() || t.Now.Add(wait).Before(t.Deadline) }
	tried := h.Attempts > h.MaxRetries && t.Now.Sub(h.FirstFailure) >= spread
	if h.MaxRetries == 0 || tried || !inTime(d.Wait) || o.RetryAfter > rest.MaxRetryAfter {
		d.Step = GiveUp
	}
	switch {
	case d.Step == Retry && !t.Now.Add(d.Wait).Before(t.URLExpires):
		d.Step = Renew
	case d.Step == GiveUp:
		// A rejection may mean that another worker was faster.
		d = Decision{Step: GiveUp, Ask: h.Arrived || h.Shared && o.StatusCode != 0}
		if d.Ask && inTime(settling) {
			d.Wait = settling
		}
	}
	return d, h
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
