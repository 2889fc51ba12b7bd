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

// Next takes in how an attempt failed, and decides whether another follows, unless
// a look finds the audio before, and how many looks there may be.
func (s *State) Next(r Result) (again bool, looks int) {
	again = r.Outcome != Hopeless && s.Attempt <= s.Repeats && !(r.Outcome == Expired && s.Renewed)
	s.Unsettled = s.Unsettled || r.Outcome == Ambiguous
	s.Whole = s.Whole || r.Whole
	s.Renewed = s.Renewed || r.Outcome == Expired
	if r.Outcome == Ambiguous || !again {
		looks = s.Looks()
	}
	return again, looks
}

// Looks is how often to look for the audio before it is sent again, and before a
// failure is told. The service may take seconds to notice a whole recording.
func (s *State) Looks() int {
	switch {
	case !s.Unsettled:
		return 0
	case !s.Whole:
		return 1
	}
	return 2
}
