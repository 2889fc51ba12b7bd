package storage

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
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
	// Retry is another attempt, to the same URL unless it has expired by then. No byte of the recording
	// was sent to it.
	Retry
	// Renew is another attempt, to a new URL.
	Renew
	// GiveUp means that the upload has failed, unless a poll finds audio.
	GiveUp
)

// Decision is what follows an attempt.
type Decision struct {
	// Step is what happens after Delay and the polls.
	Step Step
	// Delay is how long to wait first.
	Delay time.Duration
	// AudioBy, unless zero, means to poll the meeting after Delay until it has audio, or until a poll at
	// this time or later shows none. If it has audio, the upload has succeeded.
	AudioBy time.Time
}

// State is what Decide knows about an upload. The caller sets the fields up to LastStored, and Decide the
// others.
type State struct {
	// Size is that of the recording in bytes.
	Size int64
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
	// Whole is how many of them sent the whole recording.
	Whole int
	// FirstFailure is when the first of them failed.
	FirstFailure time.Time
	// MayHaveArrived means that an attempt may have stored the recording, although storage did not say
	// so. It stays true even after a poll has shown no audio, because the service may be slow to notice.
	MayHaveArrived bool
	// Rejected means that storage rejected a URL as if another attempt or worker had used it. The same
	// rejection of a new URL is final, unless audio appears.
	Rejected bool
	// WithoutExpect means that the next attempt omits the header Expect.
	WithoutExpect bool
}

const (
	// Patience is how long an upload keeps trying after its first failure, so that a short outage of
	// the network or of storage ends no upload.
	Patience = time.Minute
	// settling is how long the service usually takes to notice audio that has arrived.
	settling = 5 * time.Second
	// maxWhole is how often a recording is sent whole. Rejections before the body are free.
	maxWhole = 3
)

// Decide returns what follows an attempt that has ended now, and s with the attempt added. delay is
// the random backoff, plus the Retry-After of the outcome; one beyond rest.MaxRetryAfter ends the
// upload.
func Decide(s State, o Outcome, now time.Time, delay time.Duration) (Decision, State) {
	next := nextStep(s, o, now) // which needs s as it was before this attempt
	s = s.with(o, now)
	if next.Step == Stored {
		return next, s
	}
	next.Delay = max(next.Delay, delay)
	if s.Whole == maxWhole-1 { // the recording can be sent whole only once more
		next = s.untilPatienceEnds(next, now)
	}
	failing := s.FirstFailure
	if o.Busy() && s.LastStored.After(failing) { // storage works, and this upload waits for its turn
		failing = s.LastStored
	}
	exhausted := s.MaxRetries == 0 || s.Whole >= maxWhole ||
		s.Attempts > s.MaxRetries && now.Sub(failing) >= Patience
	tooLate := !s.inTime(now, next.Delay) || o.RetryAfter > rest.MaxRetryAfter
	if next.Step == GiveUp || exhausted || tooLate {
		return s.giveUp(o, now), s
	}
	return next, s
}

// nextStep returns what an outcome calls for, without a limit on attempts or time.
func nextStep(s State, o Outcome, now time.Time) Decision {
	// Poll: the service may show audio by then. Renew: even a part of the recording may have used up a
	// URL that is good for one PUT.
	pollAndRenew := Decision{Step: Renew, Delay: settling, AudioBy: now.Add(settling)}
	switch {
	case errors.Is(o.Err, ErrUnreadable), rest.Misconfigured(o.Err): // the next attempt would fail, too
		return Decision{Step: GiveUp}
	case o.StatusCode/100 == 2 && o.Message == "":
		return Decision{Step: Stored}
	case lost(o), s.usedUp(o, now) && !s.Rejected:
		return pollAndRenew
	case s.expired(o, now):
		return Decision{Step: Renew}
	case o.StatusCode != 0 && !mayAcceptLater(o.StatusCode, o.Code) && (!blamesExpect(o) || s.WithoutExpect):
		return Decision{Step: GiveUp}
	case o.Sent > 0:
		return Decision{Step: Renew}
	}
	return Decision{Step: Retry}
}

// with returns s with an attempt added.
func (s State) with(o Outcome, now time.Time) State {
	s.Attempts++
	if o.StatusCode/100 == 2 && o.Message == "" {
		return s
	}
	s.FirstFailure = cmp.Or(s.FirstFailure, now)
	if o.Sent > 0 && o.Sent == s.Size {
		s.Whole++
	}
	s.Rejected = s.Rejected || s.usedUp(o, now)
	// A gateway may report an error although the storage behind it has the recording.
	s.MayHaveArrived = s.MayHaveArrived || lost(o) || o.Sent > 0 && mayAcceptLater(o.StatusCode, o.Code)
	switch {
	case blamesExpect(o):
		s.WithoutExpect = true
	case (o.StatusCode == http.StatusInternalServerError || o.StatusCode == http.StatusBadGateway) && o.Code == "":
		// Perhaps a gateway that rejects the header without saying so. One attempt shows it. Further ones
		// would send the recording in vain while the storage behind the gateway is down.
		s.WithoutExpect = s.Attempts == 1
	}
	return s
}

// inTime reports whether a delay ends before the caller's deadline.
func (s State) inTime(now time.Time, delay time.Duration) bool {
	return s.Deadline.IsZero() || now.Add(delay).Before(s.Deadline)
}

// untilPatienceEnds returns a Decision to wait, or to poll, until the recording may be sent for the last
// time, so that this comes after a short outage.
func (s State) untilPatienceEnds(d Decision, now time.Time) Decision {
	end := s.FirstFailure.Add(Patience)
	switch {
	case !s.inTime(now, end.Sub(now)):
	case d.AudioBy.IsZero():
		d.Delay = max(d.Delay, end.Sub(now))
	default:
		d.AudioBy = later(d.AudioBy, end)
	}
	return d
}

// giveUp polls first whether there is audio after all, if an attempt may have stored it, or if storage
// rejected the last one, because another worker may have been faster.
func (s State) giveUp(o Outcome, now time.Time) Decision {
	d := Decision{Step: GiveUp}
	switch {
	case !s.MayHaveArrived && !(s.Shared && o.StatusCode != 0):
	case !s.inTime(now, settling):
		d.AudioBy = now
	default:
		d.Delay = settling
		d.AudioBy = now.Add(settling)
		if s.MayHaveArrived || s.Rejected {
			d.AudioBy = later(d.AudioBy, s.AudioBy(now))
		}
	}
	return d
}

// AudioBy returns until when the service may not show audio that has arrived.
func (s State) AudioBy(now time.Time) time.Time {
	if s.MaxRetries == 0 {
		return now
	}
	return cmp.Or(s.FirstFailure, now).Add(Patience)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lost reports whether storage may have the recording, or a part of it, although it did not say so.
func lost(o Outcome) bool {
	noResponse := o.StatusCode == 0 && o.Sent > 0 && !errors.Is(o.Err, ErrUnreadable)
	return noResponse || o.StatusCode/100 == 2 && o.Message != ""
}

// expired reports whether storage rejected a URL that a new one can replace: it has expired, or clocks
// differ.
func (s State) expired(o Outcome, now time.Time) bool {
	// 401 is that of Swift.
	rejected := o.StatusCode == http.StatusUnauthorized || o.StatusCode == http.StatusForbidden
	return blamesTime(o.StatusCode, o.Code, o.Message) || rejected && !now.Before(s.URLExpires)
}

// usedUp reports whether storage rejected a URL as it does if another attempt or worker has used it, and
// one may have done so.
func (s State) usedUp(o Outcome, now time.Time) bool {
	rejections := []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusPreconditionFailed,
	}
	return (s.MayHaveArrived || s.Shared) && slices.Contains(rejections, o.StatusCode) &&
		!s.expired(o, now) && !mayAcceptLater(o.StatusCode, o.Code)
}

var expectHeader = regexp.MustCompile(`(?i)\bexpect\b`)

// blamesExpect reports whether the header Expect was rejected: by storage with a 417 (RFC 9110, section
// 10.1.1), or by a gateway whose text names it, such as those on Node's undici.
func blamesExpect(o Outcome) bool {
	return o.StatusCode == http.StatusExpectationFailed || o.StatusCode >= 400 && expectHeader.MatchString(o.Message)
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
