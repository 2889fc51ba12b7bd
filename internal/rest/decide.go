package rest

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

// step is how a call goes on after an attempt.
type step int

const (
	// stop: the caller gets what the call has.
	stop step = iota
	// retry: another attempt follows.
	retry
	// outOfTime: another attempt is due, but only after the caller's deadline.
	outOfTime
)

// decision is what follows an attempt.
type decision struct {
	step step
	// least and most are the bounds of the random wait before a retry.
	least, most time.Duration
	// within is how long it takes at most until the retry: the longer of its wait and the pause.
	within time.Duration
	// dropResponse means that the response of an earlier attempt says nothing about the call any more.
	dropResponse bool
}

// delay returns how long to wait before the retry. It is random, so that clients that failed together
// do not retry together.
func (d decision) delay() time.Duration { return d.least + rand.N(d.most-d.least+1) }

// outcome is how an attempt ended.
type outcome struct {
	// unsent means that the attempt was not made.
	unsent bool
	// status is that of the response, even if its body broke off. It is 0 if there was none.
	status int
	// err is that of the transport, or nil after a whole response.
	err error
	// unconnected means that there was no connection, so that nothing was sent. Not every err says so:
	// that of a TLS handshake that broke off may be io.EOF.
	unconnected bool
	// retryAfter is how long the response asks to wait.
	retryAfter time.Duration
	// pause is for how long 429s hold the next request back.
	pause time.Duration
	// key is what became of the API key after a 401.
	key keyChange
}

// keyChange says whether there is another API key after the service has rejected one.
type keyChange int

const (
	sameKey keyChange = iota
	newKey
	noKey // getting it failed
)

// state is what decide knows about a call. The caller sets the fields up to deadline, and decide the
// others.
type state struct {
	// maxRetries is after how many retries a call gives up, if patience has passed by then. 0 switches
	// retries off.
	maxRetries int
	// patience is how long a call keeps trying after its first failure.
	patience time.Duration
	// repeatable means that sending the request twice has the same effect as sending it once.
	repeatable bool
	// once means that nothing but a new key leads to another attempt.
	once bool
	// deadline is the caller's; zero if there is none.
	deadline time.Time

	// attempts is how many attempts have ended.
	attempts int
	// firstFailure is the end of the first attempt that was worth retrying.
	firstFailure time.Time
	// responded is the status of the last response that still counts; 0 if there is none.
	responded int
	// mayHaveTakenEffect means that the service may have carried out the request, in any attempt.
	mayHaveTakenEffect bool
}

// decide returns what follows an attempt that has ended now, and s with the attempt added.
func decide(s state, o outcome, now time.Time) (decision, state) {
	if !o.unsent {
		s.attempts++
	}
	rejected := o.status/100 == 4 // so nothing was done
	mayHaveArrived := !o.neverArrived() && !rejected
	s.mayHaveTakenEffect = s.mayHaveTakenEffect || mayHaveArrived
	if o.status != 0 {
		s.responded = o.status
	}
	next := decision{dropResponse: s.misleads(o, mayHaveArrived)}
	if next.dropResponse {
		s.responded = 0
	}
	if o.unsent || o.key == noKey {
		return next, s
	}
	due := false
	if !s.once && s.worthRetrying(o) {
		s.firstFailure = cmp.Or(s.firstFailure, now)
		due = s.hasRetries(now)
		next.most = longestDelay(s.attempts-1, o.retryAfter)
		next.least = next.most - longestDelay(s.attempts-1, 0)/2
	}
	if o.key == newKey { // which need not wait
		due = true
		next.least = 0
		next.most = 0
	}
	next.within = max(next.most, o.pause)
	switch {
	case !due:
		return decision{dropResponse: next.dropResponse}, s
	case !s.deadline.IsZero() && s.deadline.Sub(now) <= next.within:
		next.step = outOfTime
	default:
		next.step = retry
	}
	return next, s
}

// neverArrived reports whether the server cannot have received the request of the attempt.
func (o outcome) neverArrived() bool { return o.unsent || o.unconnected || NeverSent(o.err) }

// misleads reports whether the response that the call has, of this attempt or an earlier one, would
// say something wrong. A 4xx says that nothing was done, which is not certain once a later attempt was
// lost. A 401 concerns a key; if there should be a newer one, it says nothing about that.
func (s state) misleads(o outcome, mayHaveArrived bool) bool {
	newerKey := o.status == 0 || o.key == noKey // a 401 leads to another attempt only with a new key
	return s.responded == http.StatusUnauthorized && newerKey || s.responded/100 == 4 && mayHaveArrived
}

// worthRetrying reports whether another attempt is safe and may succeed.
func (s state) worthRetrying(o outcome) bool {
	kind := KindOf(o.status, o.err)
	if kind == failure.Lost && o.unconnected {
		kind = failure.NotConnected
	}
	retried := failure.Means[kind].Retried
	safe := retried == failure.Always || retried == failure.IfSafe && s.repeatable
	return safe && o.retryAfter <= MaxRetryAfter
}

// hasRetries reports whether there are retries left, of maxRetries or because of patience.
func (s state) hasRetries(now time.Time) bool {
	patient := s.maxRetries > 0 && now.Sub(s.firstFailure) < s.patience
	return s.attempts <= s.maxRetries || patient
}

// KindOf returns the kind of a failure, from the status of the response, which is 0 if there was
// none, and from the error of the transport. A code of the service, which this package does not
// know, may say more.
func KindOf(status int, err error) failure.Kind {
	switch {
	case Misconfigured(err):
		return failure.Misconfigured
	case status == http.StatusTooManyRequests:
		return failure.RateLimited
	case status == http.StatusUnauthorized:
		return failure.KeyDoubted
	case slices.Contains([]int{500, 502, 503, 504}, status):
		return failure.ServerFailed
	case status == http.StatusRequestTimeout, status >= 500:
		return failure.ServerUnsure
	case NeverSent(err):
		return failure.NotConnected
	case err != nil, status == 0:
		return failure.Lost
	case status/100 == 2:
		return failure.None
	}
	return failure.ForeignStatus
}
