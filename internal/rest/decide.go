package rest

import (
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// circumstances is everything that a decision depends on besides the outcome.
type circumstances struct {
	retriesLeft int
	repeatable  bool
	polledPage  bool          // the poller asked for a page of the listing
	wait        time.Duration // drawn for the next attempt
	pauseLeft   time.Duration // of the rate-limit pause
	timeLeft    time.Duration // until the context is done
}

// decision is what follows an attempt.
type decision struct {
	retry bool
	wait  time.Duration // before the retry
	pause time.Duration // of all requests; 0: none
}

// decide decides what follows an attempt. If a retry would come too late for the
// deadline, or Retry-After is over a minute, the caller gets the response at once.
func decide(o Outcome, now circumstances) (d decision) {
	if o.rateLimited() && !now.polledPage { // the poller slows its pages down itself
		d.pause = min(max(now.wait, 1), backoff.Longest) // 0 would be none
	}
	if o.worthRetrying(now.repeatable) && now.retriesLeft > 0 &&
		o.retryAfter <= backoff.Longest && max(now.wait, now.pauseLeft) < now.timeLeft {
		d.retry, d.wait = true, now.wait
	}
	return d
}

// worthRetrying reports whether another attempt may succeed and does no harm.
func (o Outcome) worthRetrying(repeatable bool) bool {
	switch {
	case backoff.Permanent(o.Err):
		return false
	case o.neverSent || o.rateLimited(): // the service did nothing
		return true
	case o.Err != nil:
		return repeatable
	}
	switch o.Status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return repeatable
	}
	return false
}

// repeatable reports whether the request may be sent again although an earlier attempt
// may have taken effect.
func (k *call) repeatable() bool {
	return k.Route.Repeat == route.Always || k.Route.Repeat == route.WithExternalID && k.in.HasExternalID
}
