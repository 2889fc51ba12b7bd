package upload

import (
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// history is what the attempts so far have in common.
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
	stored     bool // the audio is there: the upload is over
	retryable  bool // if the upload fails now, another upload may succeed later
	wait       time.Duration
	steps      []step // to do after that, until a check finds audio or a step fails
	partial    bool   // audio that a check finds is only a part of the recording
	lastChecks int    // how often to check if there is no new URL, and so no retry
	retry      bool   // make another attempt
	without    string // the header that the next attempts leave out
}

// decide holds every rule for what follows an attempt. wait is the random wait before a retry. The history that
// it returns includes the attempt.
func decide(h history, o outcome, wait time.Duration) (decision, history) {
	v, before := judge(o), h
	h.attempts++
	h.sentAll = h.sentAll || o.sentAll
	h.maybeStored = h.maybeStored || v == maybeStored
	h.urlUsed = h.urlUsed || v == maybeStored
	h.renewed = h.renewed || v == expired
	d := decision{retry: true, retryable: v != permanent, partial: !h.sentAll && !h.shared}
	checks, renew := 0, false
	switch {
	case v == stored:
		return decision{stored: true}, h
	case o.StatusCode == http.StatusExpectationFailed && o.expect: // RFC 9110, section 10.1.1
		h.retries++ // this retry is free
		return decision{retry: true, without: "Expect"}, h
	case v == permanent: // perhaps only because an earlier attempt used up the URL
		d.retry, renew, checks = before.urlUsed && o.StatusCode != 0, true, 1
	case v == maybeStored: // the same URL writes the same object; but it may be used up
		renew, checks = before.urlUsed, 1
	case v == expired:
		d.retry, renew = !before.renewed, true
	}
	if checks > 0 && o.sentAll {
		checks = 2 // the service may take seconds to notice the audio
	}
	if o.noTime || o.RetryAfter > backoff.Longest {
		h.retries, wait = 0, 0
	}
	d.lastChecks = h.lastChecks()
	if d.retry = d.retry && h.attempts <= h.retries; !d.retry {
		checks = d.lastChecks
	}
	d.steps = slices.Repeat([]step{check}, checks)
	switch renew = renew || o.urlLeft <= wait; {
	case renew && d.retry && h.sentAll: // a meeting that has audio gets no new URL
		d.steps = append(d.steps, newURL)
	case renew && d.retry: // a check right after newURL need not wait
		d.steps = append([]step{newURL}, d.steps...)
	}
	if d.retry || checks > 0 {
		d.wait = wait
	}
	return d, h
}

// lastChecks is how often to check for the audio before an upload fails: as often as there are retries left,
// and at least twice, since the service may take seconds to notice it. Once is enough if there is little
// to hope for: no attempt sent everything, no retries are allowed, or only another worker's audio may be there.
func (h history) lastChecks() int {
	switch {
	case h.maybeStored && h.sentAll && h.retries > 0:
		return max(2, h.retries-h.attempts+1)
	case h.maybeStored || h.shared:
		return 1
	}
	return 0
}

// verdict says whether an attempt stored the audio, and whether another can.
type verdict int

const (
	permanent   verdict = iota // another attempt would end as this one
	stored                     // the audio is there
	notStored                  // no audio, and the URL is as good as before
	maybeStored                // the audio may be there, and the URL used up
	expired                    // the URL is past its time
)

var saysExpired = regexp.MustCompile("(?i)expired")

// judge reads the store's response, or its absence. The codes are S3's.
func judge(o outcome) verdict {
	says := saysExpired.MatchString(o.Code) || saysExpired.MatchString(o.Message)
	switch code := o.StatusCode; {
	case o.aborted, o.untrusted && o.sent == 0:
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
		if o.sent == 0 { // not a byte of the recording was handed over
			return notStored
		}
		return maybeStored
	}
	return permanent
}
