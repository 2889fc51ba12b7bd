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

// refused is the outcome of a reply that is no success. late: the URL is past its time.
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
	Uses      int  // attempts with this URL that may have spent it
	Unsettled bool // some attempt may have put audio in place
	Whole     bool // some attempt handed over the whole recording
	Renewed   bool // an expired URL was replaced, which is done once
}

// Step is what follows a failed attempt.
type Step struct {
	Again bool // another attempt, unless a look finds the audio
	Fresh bool // with a new URL
	Looks int  // at most, before that
}

// Next takes in how an attempt failed, and decides what follows. The URL at hand is
// used again once, since it writes the same object.
func (s *State) Next(r Result) Step {
	step := Step{Again: r.Outcome != Hopeless, Fresh: r.Outcome != Untouched && s.Uses > 0}
	news := false // since the last look
	switch r.Outcome {
	case Hopeless: // as a URL is that an attempt before has spent
		step.Again, news = step.Fresh && r.StatusCode != 0, true
	case Expired:
		step.Again, step.Fresh = !s.Renewed, true
		s.Renewed = true
	case Ambiguous:
		news = r.Sent > 0 || !s.Unsettled
		s.Uses++
		s.Unsettled = true
	}
	s.Whole = s.Whole || r.Whole
	step.Again = step.Again && s.Attempt <= s.Repeats
	switch {
	case !step.Again:
		step.Looks = s.Looks()
	case news && r.Whole:
		step.Looks = min(2, s.Looks())
	case news:
		step.Looks = min(1, s.Looks())
	}
	return step
}

// Looks is how often to look for the audio before a failure is told: as often as
// there are repeats left, and twice at least, since the service may take seconds to
// notice it. A recording that was never handed over as a whole is not waited for, nor
// where no repeats are allowed.
func (s *State) Looks() int {
	switch {
	case !s.Unsettled:
		return 0
	case !s.Whole || s.Repeats == 0:
		return 1
	}
	return max(2, s.Repeats-s.Attempt+1)
}
