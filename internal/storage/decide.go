package storage

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// Step is what follows an attempt.
type Step int

// The steps. A step that retries comes after Decision.Wait.
const (
	Stored Step = iota // nothing: storage has the recording
	Retry              // another attempt with the same URL
	Renew              // another attempt with a new URL
	// Ask means: poll the meeting. If it has audio, the upload has succeeded. Otherwise make another
	// attempt with a new URL, because some storage accepts only one PUT for each URL.
	Ask
	// AskLast means: poll the meeting. If it has audio, the upload has succeeded. Otherwise it has
	// failed.
	AskLast
	GiveUp // the upload has failed
)

// Decision is what follows an attempt, and how long to wait before that.
type Decision struct {
	Step Step
	Wait time.Duration
}

// Retries reports whether another attempt follows, unless the meeting has audio.
func (d Decision) Retries() bool { return d.Step == Retry || d.Step == Renew || d.Step == Ask }

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
	step := GiveUp
	switch status := o.StatusCode; {
	case o.Unreadable: // another attempt would read the same
	case status/100 == 2 && !o.Unproven:
		return Decision{Step: Stored}, h
	case status/100 == 2, status == 0 && o.Sent > 0: // storage may have the recording
		step, h.Arrived = Ask, true
	case status == 0 && rest.Permanent(o.Err): // such as an untrusted certificate
	case status == 0:
		step = Retry
	case status == http.StatusExpectationFailed && !h.WithoutExpect: // RFC 9110, section 10.1.1
		step, h.WithoutExpect = Retry, true
	case expired(o, t) && !h.Renewed:
		step, h.Renewed = Renew, true
	case temporary(status, o.Code):
		// A gateway may report an error although the storage behind it has the recording.
		step, h.Arrived = Retry, h.Arrived || status >= 499 && o.Sent > 0
	}
	if h.FirstFailure.IsZero() {
		h.FirstFailure = t.Now
	}
	wait := t.Wait
	if step == Ask {
		wait = max(wait, settling)
	}
	tried := h.Attempts > h.MaxRetries && t.Now.Sub(h.FirstFailure) >= spread
	inTime := t.Deadline.IsZero() || t.Now.Add(wait).Before(t.Deadline)
	switch {
	case step == GiveUp, h.MaxRetries == 0, tried, !inTime, o.RetryAfter > rest.MaxRetryAfter:
		return lastStep(h, o, t), h
	case step == Retry && !t.Now.Add(wait).Before(t.URLExpires):
		step = Renew
	}
	return Decision{step, wait}, h
}

// lastStep returns what follows the last attempt.
func lastStep(h History, o Outcome, t Times) Decision {
	// A rejection may mean that another worker was faster.
	if !h.Arrived && (!h.Shared || o.StatusCode == 0) {
		return Decision{Step: GiveUp}
	}
	if !t.Deadline.IsZero() && !t.Now.Add(settling).Before(t.Deadline) {
		return Decision{Step: AskLast}
	}
	return Decision{AskLast, settling}
}

// expired reports whether storage rejected the URL because it has expired.
func expired(o Outcome, t Times) bool {
	return saysExpired(o.StatusCode, o.Code, o.Message) || o.StatusCode == http.StatusForbidden && !t.Now.Before(t.URLExpires)
}

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
