package upload

import (
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// history sums up the attempts so far.
type history struct {
	attempts    int  // that have ended
	retries     int  // that are allowed
	shared      bool // other workers may upload to the meeting
	sentAll     bool // an attempt handed over the whole recording
	maybeStored bool // an attempt may have stored audio
	urlUsed     bool // an attempt may have used up the current URL
	renewed     bool // an expired URL was replaced
}

// step is something to do between two attempts.
type step int

const (
	check  step = iota // check whether the audio arrived
	newURL             // get a new upload URL
)

// decision is what follows an attempt.
type decision struct {
	stored    bool          // the audio is there: the upload is over
	retry     bool          // make another attempt, after the wait and the steps
	without   string        // the header that the next attempts leave out
	wait      time.Duration // then the steps begin
	steps     []step        // to do until a check finds audio or a step fails
	checks    int           // how often to check if there is no new URL, and so no retry
	partial   bool          // audio that a check finds is only a part of the recording
	retryable bool          // if the upload fails now, another one may succeed later
}

// decide holds every rule for what follows an attempt. wait is the random wait before a
// retry. The history that it returns includes the attempt.
func decide(h history, o Outcome, wait time.Duration) (decision, history) {
	v, before := judge(o), h
	h.attempts++
	h.sentAll = h.sentAll || o.Sent == o.Size
	h.maybeStored, h.urlUsed = h.maybeStored || v == maybeStored, h.urlUsed || v == maybeStored
	h.renewed = h.renewed || v == expired
	d := decision{retry: true, retryable: v != permanent, partial: !h.sentAll && !h.shared}
	// The same URL writes the same object, so a lost attempt uses it once more.
	renew := o.urlLeft <= wait || v != notStored && before.urlUsed
	switch {
	case v == stored:
		return decision{stored: true}, h
	case o.StatusCode == http.StatusExpectationFailed && o.expect: // RFC 9110, section 10.1.1
		h.retries++ // this retry is free
		return decision{retry: true, without: "Expect"}, h
	case v == permanent: // perhaps only because an earlier attempt used up the URL
		d.retry = before.urlUsed && o.StatusCode != 0
	case v == expired:
		d.retry, renew = !before.renewed, true
	}
	if o.noTime || o.RetryAfter > backoff.Longest {
		h.retries, wait = 0, 0
	}
	d.retry = d.retry && h.attempts <= h.retries
	switch {
	case h.maybeStored && h.sentAll && h.retries > 0:
		d.checks = 2 // the service may take seconds to notice the audio
	case h.maybeStored || h.shared:
		d.checks = 1
	}
	if !d.retry || v == maybeStored || v == permanent {
		d.steps = slices.Repeat([]step{check}, d.checks)
	}
	switch {
	case !d.retry || !renew:
	case h.sentAll: // if the meeting has audio, it gets no new URL
		d.steps = append(d.steps, newURL)
	default: // right after newURL, a check need not wait
		d.steps = append([]step{newURL}, d.steps...)
	}
	if d.retry || len(d.steps) > 0 {
		d.wait = wait
	}
	return d, h
}

// verdict says what an attempt did to the audio and to the URL.
type verdict int

const (
	permanent   verdict = iota // nothing, and another attempt would end as this one
	stored                     // the audio is there
	notStored                  // nothing: the URL is as good as before
	maybeStored                // the audio may be there, and the URL used up
	expired                    // nothing, since the URL is past its time
)

var saysExpired = regexp.MustCompile("(?i)expired")

// judge reads the store's response, or its absence. The codes are S3's.
func judge(o Outcome) verdict {
	says := saysExpired.MatchString(o.Code) || saysExpired.MatchString(o.Message)
	switch code := o.StatusCode; {
	case o.aborted, o.untrusted && o.Sent == 0:
		return permanent
	case code/100 == 2:
		return stored
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests,
		code == http.StatusBadRequest && o.Code == "RequestTimeout", // S3's 408
		code == http.StatusConflict && o.Code == "OperationAborted":
		return notStored
	case code == http.StatusForbidden && (says || o.urlLeft <= 0), code == http.StatusBadRequest && says:
		return expired
	case code == 0, code == 499, code == http.StatusInternalServerError, code == http.StatusBadGateway,
		code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout,
		code >= 520 && code <= 527: // of an edge
		if o.Sent == 0 { // not a byte of the recording was handed over
			return notStored
		}
		return maybeStored
	}
	return permanent
}
