package upload

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// verdict says how an attempt ended.
type verdict int

const (
	permanent verdict = iota // the attempt failed, and another with the same URL would fail, too
	stored                   // the attempt stored the recording
	temporary                // the attempt failed, but another with the same URL may succeed
	unclear                  // the attempt may have stored audio: its response is lost or proves nothing
	expired                  // the attempt failed because its URL has expired
)

// judge returns the verdict on an attempt.
func judge(o Outcome) verdict {
	saysExpired := strings.Contains(strings.ToLower(o.Code+" "+o.Message), "expired")
	switch status := o.StatusCode; {
	case o.noRetry:
		return permanent
	case status/100 == 2 && o.Message == "":
		return stored
	case status/100 == 2, status == 0 && o.Sent > 0:
		return unclear
	case status == 0, o.rejectedHeader != "", slices.Contains(temporaryCodes, o.Code), slices.Contains(temporaryStatuses, status),
		status >= 520 && status <= 527: // of Cloudflare, in front of storage
		return temporary
	case status == http.StatusForbidden && (saysExpired || o.urlLeft <= 0), status == http.StatusBadRequest && saysExpired:
		return expired
	}
	return permanent
}

var temporaryStatuses = []int{408, 429, 499, 500, 502, 503, 504}

// temporaryCodes lists S3's codes for 400 and 409 after which a retry may succeed.
var temporaryCodes = []string{"RequestTimeout", "IncompleteBody", "BadDigest", "OperationAborted", "ConditionalRequestConflict"}

// headerRejectedBy returns the optional header that the response rejects, or "".
func headerRejectedBy(r Response, sent http.Header) string {
	switch {
	case r.StatusCode == http.StatusExpectationFailed && sent.Get("Expect") != "": // RFC 9110, section 10.1.1
		return "Expect"
	case sent.Get("Content-Md5") != "" && r.Code != "BadDigest" && r.StatusCode/100 > 3 && causedByMD5.MatchString(r.Code+r.Message):
		return "Content-Md5"
	}
	return ""
}

// causedByMD5 matches the code or the message of errors that Content-MD5 can cause. Storage may find
// the header invalid, not covered by the signature, or not implemented.
var causedByMD5 = regexp.MustCompile("(?i)digest|md5|signature|not signed|notimplemented")

// history sums up the attempts so far.
type history struct {
	attempts    int  // number of attempts that have ended
	maxRetries  int  // from the policy
	shared      bool // other workers may upload to the meeting
	sentAll     bool // an attempt sent the whole recording
	maybeStored bool // an attempt may have stored audio
	renewed     bool // an expired URL was replaced
	// urlMaybeUsedUp means that an attempt with the current URL was unclear. Some storage accepts
	// only one PUT for each URL.
	urlMaybeUsedUp bool
}

// checks returns how many times to check whether the audio arrived.
func (h history) checks() int {
	switch {
	case h.maybeStored && h.sentAll:
		return 2 // the service may take seconds to notice the audio
	case h.maybeStored || h.shared:
		return 1
	}
	return 0
}

// decision is what follows an attempt: a wait, checks whether the audio arrived, and a retry if no
// check finds audio.
type decision struct {
	done      bool // the recording is stored, so nothing follows
	wait      time.Duration
	checks    int // number of checks
	retry     bool
	needsURL  bool // get a new upload URL before the retry
	retryable bool // if the upload fails now, another upload may succeed later
}

// decide returns what follows an attempt, and h with the attempt added. wait is the random wait
// before a retry, and timeLeft the time until the context's deadline.
func decide(h history, o Outcome, wait, timeLeft time.Duration) (decision, history) {
	v, before := judge(o), h
	d := decision{done: v == stored, retryable: v != permanent}
	h.attempts++
	h.sentAll = h.sentAll || o.Sent == o.Size
	switch v {
	case stored:
		return d, h
	case temporary:
		d.retry = true
		// A gateway may report an error although the storage behind it has the recording.
		h.maybeStored = h.maybeStored || o.StatusCode >= 499 && o.Sent > 0
	case unclear:
		d.retry = o.StatusCode == 0 // an immediate retry after a 2xx would probably get the same 2xx
		h.maybeStored, h.urlMaybeUsedUp = true, true
	case expired:
		d.retry = !h.renewed
		h.renewed = true
	case permanent:
		d.retry = before.urlMaybeUsedUp && o.StatusCode != 0 // a new URL may succeed
	}
	inTime := wait < timeLeft && o.RetryAfter <= backoff.Longest
	d.retry = d.retry && inTime && h.attempts <= h.maxRetries
	if !d.retry || v == unclear || v == permanent {
		d.checks = h.checks()
	}
	if inTime && (d.retry || d.checks > 0) {
		d.wait = wait
	}
	// Most storage accepts a second PUT to the same URL, so the retry after the first unclear
	// attempt uses the same URL.
	d.needsURL = d.retry && (v == expired || o.urlLeft <= wait || before.urlMaybeUsedUp && v != temporary)
	return d, h
}
