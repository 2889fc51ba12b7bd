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
	refused     bool // a 5xx says that nothing was stored, but a gateway may not know
	urlUsed     bool // an attempt may have used up the current URL
	renewed     bool // an expired URL was replaced
}

// checks returns how often to check whether the audio arrived, before giving up.
func (h history) checks() int {
	switch {
	case h.maybeStored && h.sentAll:
		return 2 // the service may take seconds to notice the audio
	case h.maybeStored || h.refused || h.shared:
		return 1
	}
	return 0
}

// decision is what follows an attempt.
type decision struct {
	stored    bool          // the audio is there: the upload is over
	wait      time.Duration // then the checks begin
	checks    int           // how often to check whether the audio arrived
	retry     bool          // make another attempt if no check finds it
	newURL    bool          // with a new upload URL
	retryable bool          // if the upload fails now, another one may succeed later
}

// decide holds every rule for what follows an attempt. wait is the random wait before a
// retry. The history that it returns includes the attempt.
func decide(h history, o Outcome, wait time.Duration) (decision, history) {
	v, used := judge(o), h.urlUsed
	d := decision{stored: v == stored, retryable: v != permanent}
	h.attempts++
	h.sentAll = h.sentAll || o.Sent == o.Size
	h.maybeStored, h.urlUsed = h.maybeStored || v == maybeStored, used || v == maybeStored
	h.refused = h.refused || o.StatusCode >= 499 && o.Sent > 0
	switch v {
	case stored:
		return d, h
	case permanent: // perhaps only because an earlier attempt used up the URL
		d.retry = used && o.StatusCode != 0
	case expired:
		d.retry, h.renewed = !h.renewed, true
	default:
		d.retry = o.StatusCode/100 != 2 // who takes a URL without its recording would do so again
	}
	if o.noTime || o.RetryAfter > backoff.Longest {
		d.retry, wait = false, 0
	}
	d.retry = d.retry && h.attempts <= h.retries
	if !d.retry || v == maybeStored || v == permanent {
		d.checks = h.checks()
	}
	// The same URL writes the same object, so a lost attempt uses it once more.
	d.newURL = d.retry && (v == expired || o.urlLeft <= wait || used && v != notStored)
	if d.retry || d.checks > 0 {
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
	case o.permanent:
		return permanent
	case code/100 == 2 && o.Message == "":
		return stored
	case code/100 == 2, code == 0 && o.Sent > 0:
		return maybeStored
	case code == 0, o.without != "", slices.Contains(passing, o.Code),
		code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code == 499,
		code == http.StatusInternalServerError, code == http.StatusBadGateway,
		code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout,
		code >= 520 && code <= 527: // of an edge
		return notStored
	case code == http.StatusForbidden && (says || o.urlLeft <= 0), code == http.StatusBadRequest && says:
		return expired
	}
	return permanent
}

// passing lists S3's codes of 400 and 409 after which another attempt may succeed.
var passing = []string{"RequestTimeout", "IncompleteBody", "BadDigest", "OperationAborted", "ConditionalRequestConflict"}

var aboutDigest = regexp.MustCompile("(?i)digest|md5|signature|not signed|notimplemented")

// rejected returns the header that the store rejected, if the next attempts can leave it out.
func rejected(r Response, sent http.Header) string {
	switch {
	case r.StatusCode == http.StatusExpectationFailed && sent.Get("Expect") != "": // RFC 9110, section 10.1.1
		return "Expect"
	case sent.Get("Content-Md5") != "" && r.Code != "BadDigest" && r.StatusCode/100 > 3 && aboutDigest.MatchString(r.Code+r.Message):
		return "Content-Md5"
	}
	return ""
}
