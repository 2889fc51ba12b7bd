package rest

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// facts is everything that a decision depends on.
type facts struct {
	outcome
	number, maxRetries int // the attempt's number, from 1
	repeatable         bool
	once               bool
	polledPage         bool          // the poller asked for a page of the listing
	wait               time.Duration // drawn for the next attempt
	pauseLeft          time.Duration // of the rate-limit pause
	timeLeft           time.Duration // until the context's deadline
	ctxDone            bool
}

// decision is what follows an attempt.
type decision struct {
	retry   bool
	wait    time.Duration // before the retry
	pause   bool          // begin a rate-limit pause of wait
	stopped bool          // the context is done, which alone prevents a retry of this response
}

// facts gathers what decide needs to know.
func (k *call) facts(ctx context.Context) facts {
	f := facts{
		outcome:    k.outcome,
		number:     k.number,
		maxRetries: k.client.Retries.Max,
		repeatable: k.repeatable(),
		once:       k.Once,
		polledPage: k.Once && k.Route.Operation == route.MeetingsList,
		wait:       k.client.Retries.Wait(k.number, k.outcome.retryAfter),
		pauseLeft:  k.client.pauseLeft(),
		timeLeft:   math.MaxInt64,
		ctxDone:    ctx.Err() != nil,
	}
	if deadline, ok := ctx.Deadline(); ok {
		f.timeLeft = time.Until(deadline)
	}
	return f
}

// decide decides what follows an attempt. If a retry would come too late for the
// deadline, or Retry-After is over a minute, the caller gets the response at once.
func decide(f facts) decision {
	allowed := f.retryAllowed()
	return decision{
		retry:   allowed && !f.ctxDone && f.retryAfter <= backoff.Longest && max(f.wait, f.pauseLeft) < f.timeLeft,
		wait:    f.wait,
		pause:   f.rateLimited() && !f.polledPage, // the poller slows its pages down itself
		stopped: allowed && f.ctxDone && f.err == nil,
	}
}

// retryAllowed reports whether another attempt does no harm.
func (f facts) retryAllowed() bool {
	switch {
	case f.once || f.number > f.maxRetries || backoff.Permanent(f.err):
		return false
	case f.neverSent || f.rateLimited(): // the service did nothing
		return true
	case f.err != nil:
		return f.repeatable
	}
	switch f.status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return f.repeatable
	}
	return false
}

// repeatable reports whether the request may be sent again although an earlier attempt
// may have taken effect.
func (k *call) repeatable() bool {
	return k.Route.Repeat == route.Always || k.Route.Repeat == route.WithExternalID && k.HasExternalID
}
