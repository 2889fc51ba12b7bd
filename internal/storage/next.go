package storage

import (
	"net/http"
	"regexp"
)

// End is how an attempt failed.
type End struct {
	Failure
	None    bool // nothing of the recording was handed over
	Whole   bool // all of it was
	Late    bool // the upload URL is past its time
	Hurried bool // there is no time for another attempt
}

// State is what is known after some attempts.
type State struct {
	Attempt   int  // that has ended, from 1
	Repeats   int  // that are allowed
	Uses      int  // attempts with this URL that may have spent it
	Unsettled bool // some attempt may have put audio in place
	Whole     bool // some attempt handed over the whole recording
	Renewed   bool // an expired URL was replaced, which is done once
	NoExpect  bool // something on the way cannot take Expect
}

// Step is what follows a failed attempt: a wait, looks for the audio, and another
// attempt or the failure.
type Step struct {
	Again  bool // another attempt, unless a look finds the audio
	Fresh  bool // with a new URL
	AtOnce bool // without the wait
	Looks  int  // at most
}

// verdict is what a failure says about another attempt.
type verdict int

const (
	hopeless  verdict = iota // it would end as this one
	untouched                // nothing was done, and the URL is as good as before
	ambiguous                // the audio may be in place
	expired                  // the URL is past its time
	unexpect                 // the header Expect is in the way (RFC 9110, section 10.1.1)
)

// Next decides what follows a failed attempt.
func (s State) Next(end End) (Step, State) {
	looked := s.Unsettled // since the attempts before, as often as these called for
	s.Whole = s.Whole || end.Whole
	step, news := Step{Again: true}, false
	switch s.judge(end) {
	case unexpect:
		s.NoExpect = true
		s.Attempt-- // it does not count
		return Step{Again: true, AtOnce: true}, s
	case ambiguous:
		s.Uses++
		s.Unsettled = true
		step.Fresh, news = s.Uses > 1, !end.None || !looked
	case expired:
		step.Again, step.Fresh = !s.Renewed, true
		s.Renewed = true
	case hopeless:
		// A URL that may have served already may be spent.
		step.Again, step.Fresh, news = s.Uses > 0 && end.Kind == Refused, true, true
	}
	step.Again = step.Again && s.Attempt <= s.Repeats && !end.Hurried
	step.Looks = s.Patience()
	switch {
	case step.Again && !news: // since the last look
		step.Looks = 0
	case end.Hurried, step.Again && !end.Whole:
		step.Looks = min(1, step.Looks)
	case step.Again:
		step.Looks = min(2, step.Looks)
	}
	return step, s
}

// Patience is how often to look for the audio before a failure is told: as
// often as there are repeats left, and twice at least, since the service may take
// seconds to notice the audio. A recording that was never handed over as a whole
// is not waited for.
func (s State) Patience() int {
	switch {
	case !s.Unsettled:
		return 0
	case !s.Whole || s.Repeats == 0:
		return 1
	}
	return max(2, s.Repeats-s.Attempt+1)
}

// Passes reports a failure that another upload, later and with a URL of its own,
// may not meet.
func (e End) Passes() bool { return State{NoExpect: true}.judge(e) != hopeless }

var saysExpired = regexp.MustCompile("(?i)expired")

func (s State) judge(end End) verdict {
	switch end.Kind {
	case NeverSent:
		return untouched
	case Lost:
		return ambiguous
	case Untrusted, Unreadable:
		return hopeless
	}
	says := saysExpired.MatchString(end.Code) || saysExpired.MatchString(end.Message)
	switch code := end.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests,
		code == http.StatusBadRequest && end.Code == "RequestTimeout", // what S3 says in place of a 408
		code == http.StatusConflict && end.Code == "OperationAborted":
		return untouched
	case code == http.StatusForbidden && (end.Late || says), code == http.StatusBadRequest && says:
		return expired
	case code == http.StatusExpectationFailed && !s.NoExpect:
		return unexpect
	case code == 499, code == http.StatusInternalServerError, code == http.StatusBadGateway,
		code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout,
		code >= 520 && code <= 527: // of an edge
		return ambiguous
	}
	return hopeless
}
