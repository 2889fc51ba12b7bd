package rest

import (
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// circumstances is what a decision depends on, besides the outcome.
type circumstances struct {
	retriesLeft int
	repeatable  bool
	polledPage  bool          // the request is a poll of a page of the listing
	wait        time.Duration // random, before the next attempt
	pauseLeft   time.Duration // of the rate-limit pause
	timeLeft    time.Duration // until the context is done
}

// decision is what follows an attempt.
type decision struct {
	retry bool
	wait  time.Duration // before the retry
	pause time.Duration // of all requests; 0 for none
}

// decide decides what follows an attempt. There is no retry if it would be after the deadline, or
// if Retry-After is over a minute.
func decide(o Outcome, now circumstances) (d decision) {
	if o.rateLimited() && !now.polledPage { // the poller itself then asks for fewer pages
		d.pause = min(max(now.wait, 1), backoff.Longest) // 0 would mean no pause
	}
	if o.worthRetrying(now.repeatable) && now.retriesLeft > 0 &&
		o.retryAfter <= backoff.Longest && max(now.wait, now.pauseLeft) < now.timeLeft {
		d.retry, d.wait = true, now.wait
	}
	return d
}

// worthRetrying reports whether another attempt is safe and may succeed.
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
