package storage

import (
	"net/http"
	"regexp"
)

// Outcome is what a Put came to, and what that says about another attempt.
type Outcome int

const (
	Hopeless  Outcome = iota // another would end as this one
	Stored                   // the store has taken the recording
	Untouched                // nothing was done, and the URL is as good as before
	Ambiguous                // the audio may be in place, and the URL spent
	Expired                  // the URL is past its time
)

var saysExpired = regexp.MustCompile("(?i)expired")

// refused is the outcome of a reply other than a success. late: the URL is past its
// time.
func (r Result) refused(late bool) Outcome {
	says := saysExpired.MatchString(r.Code) || saysExpired.MatchString(r.Message)
	switch code := r.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests,
		code == http.StatusBadRequest && r.Code == "RequestTimeout", // what S3 says in place of a 408
		code == http.StatusConflict && r.Code == "OperationAborted":
		return Untouched
	case code == http.StatusForbidden && (late || says), code == http.StatusBadRequest && says:
		return Expired
	case code == 499, code == http.StatusInternalServerError, code == http.StatusBadGateway,
		code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout,
		code >= 520 && code <= 527: // of an edge
		return Ambiguous
	}
	return Hopeless
}

// State is what is known after some attempts.
type State struct {
	Attempt   int  // that has ended, from 1
	Repeats   int  // that are allowed
	Unsettled bool // some attempt may have put audio in place
	Whole     bool // some attempt handed over the whole recording
	Renewed   bool // an expired URL was replaced, which is done once
}

// Step is what follows a failed attempt: looks for the audio, and another attempt
// or the failure.
type Step struct {
	Again bool // another attempt, unless a look finds the audio
	Fresh bool // with a new URL
	Looks int  // at most
}

// Next decides what follows a failed attempt.
func (s State) Next(r Result) (Step, State) {
	s.Whole = s.Whole || r.Whole
	step := Step{Again: r.Outcome != Hopeless && s.Attempt <= s.Repeats}
	switch r.Outcome {
	case Ambiguous:
		step.Fresh = true
		s.Unsettled = true
	case Expired:
		step.Again, step.Fresh = step.Again && !s.Renewed, true
		s.Renewed = true
	}
	if r.Outcome == Ambiguous || !step.Again {
		step.Looks = s.Looks()
	}
	return step, s
}

// Looks is how often to look for the audio before it is sent again, and before a
// failure is told. The service may take seconds to notice a whole recording.
func (s State) Looks() int {
	switch {
	case !s.Unsettled:
		return 0
	case !s.Whole:
		return 1
	}
	return 2
}
