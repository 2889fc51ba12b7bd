package upload

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// history sums up the attempts so far.
type history struct {
	attempts    int  // number of attempts that have ended
	retries     int  // the limit of retries, from the policy
	shared      bool // other workers may upload to the meeting
	sentAll     bool // an attempt sent the whole recording
	maybeStored bool // audio may be stored: an attempt was unclear, or got a gateway's error
	urlUsed     bool // the current URL may be used up: an attempt with it was unclear
	renewed     bool // an expired URL was replaced
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

// decision is what follows an attempt.
type decision struct {
	done      bool          // the recording is stored, so the upload is over
	wait      time.Duration // before the checks and the retry
	checks    int           // how many times to check whether the audio arrived
	retry     bool          // if no check finds audio, make another attempt
	newURL    bool          // get a new upload URL for it
	retryable bool          // if the upload fails now, another upload may succeed later
}

// decide holds every rule for what follows an attempt. wait is the random wait before a
// retry, and timeLeft the time until the context's deadline. It returns h with the attempt added.
func decide(h history, o Outcome, wait, timeLeft time.Duration) (decision, history) {
	v, usedBefore := judge(o), h.urlUsed
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
		d.retry = o.StatusCode == 0 // after a 2xx that proves nothing, a retry would get the same response
		h.maybeStored, h.urlUsed = true, true
	case expired:
		d.retry = !h.renewed
		h.renewed = true
	case permanent:
		// If an earlier, unclear attempt used up the URL, a retry with a new URL may succeed.
		d.retry = usedBefore && o.StatusCode != 0
	}
	inTime := wait < timeLeft && o.RetryAfter <= backoff.Longest
	d.retry = d.retry && inTime && h.attempts <= h.retries
	if !d.retry || v == unclear || v == permanent {
		d.checks = h.checks()
	}
	if inTime && (d.retry || d.checks > 0) {
		d.wait = wait
	}
	// Get a new URL if the current one has expired, or expires before the retry. Also get one after
	// a second unclear attempt, or if storage rejects the URL after an unclear attempt. After the
	// first unclear attempt, keep the URL: most storage accepts a second PUT, and overwrites the object.
	d.newURL = d.retry && (v == expired || o.urlLeft <= wait || usedBefore && v != temporary)
	return d, h
}

// verdict says whether an attempt succeeded, and whether another attempt with its URL may succeed.
type verdict int

const (
	permanent verdict = iota // it failed, and another with this URL would fail, too
	stored                   // it stored the recording
	temporary                // it failed, but another with this URL may succeed
	unclear                  // it may have stored audio and used up this URL, but the response is lost or proves nothing
	expired                  // it failed because this URL has expired
)

// judge returns the verdict on an attempt. The codes are S3's.
func judge(o Outcome) verdict {
	saysExpired := strings.Contains(strings.ToLower(o.Code+" "+o.Message), "expired")
	switch status := o.StatusCode; {
	case o.noRetry:
		return permanent
	case status/100 == 2 && o.Message == "":
		return stored
	case status/100 == 2, status == 0 && o.Sent > 0:
		return unclear
	case status == 0, o.rejectedHeader != "", slices.Contains(temporaryCodes, o.Code),
		status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status == 499,
		status == http.StatusInternalServerError, status == http.StatusBadGateway,
		status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout,
		status >= 520 && status <= 527: // of Cloudflare, in front of storage
		return temporary
	case status == http.StatusForbidden && (saysExpired || o.urlLeft <= 0), status == http.StatusBadRequest && saysExpired:
		return expired
	}
	return permanent
}

// temporaryCodes lists S3's codes for 400 and 409 after which a retry may succeed.
var temporaryCodes = []string{"RequestTimeout", "IncompleteBody", "BadDigest", "OperationAborted", "ConditionalRequestConflict"}

// mayRejectMD5 matches the code or the message of a response that may reject Content-MD5: as
// invalid, as not covered by the signature, or as not implemented.
var mayRejectMD5 = regexp.MustCompile("(?i)digest|md5|signature|not signed|notimplemented")

// rejectedHeader returns the optional header that storage rejected, or "".
func rejectedHeader(r Response, sent http.Header) string {
	switch {
	case r.StatusCode == http.StatusExpectationFailed && sent.Get("Expect") != "": // RFC 9110, section 10.1.1
		return "Expect"
	case sent.Get("Content-Md5") != "" && r.Code != "BadDigest" && r.StatusCode/100 > 3 && mayRejectMD5.MatchString(r.Code+r.Message):
		return "Content-Md5"
	}
	return ""
}
