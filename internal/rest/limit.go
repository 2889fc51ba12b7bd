package rest

import (
	"net/http"
	"time"
)

// limit waits before every attempt until the throttle permits it, and reports each response to the
// throttle. The wait is outside the attempt's timeout.
type limit struct {
	next     http.RoundTripper
	throttle *Throttle
}

func (l *limit) RoundTrip(req *http.Request) (*http.Response, error) {
	k := callOf(req.Context())
	err := l.throttle.Wait(req.Context(), k.Background)
	if err == nil && k.Send != nil && !k.Send() {
		err = errCalledOff
	}
	if err != nil {
		return nil, notSent{err}
	}
	sentAt := time.Now()
	resp, err := l.next.RoundTrip(req)
	switch {
	case err != nil: // no response, so nothing is known about the limit
	case resp.StatusCode == http.StatusTooManyRequests:
		// All calls pause for the Retry-After of this 429 (at most a minute), which wholeResponse has stored,
		// and at least for one Delay. The retry of this call has a Delay of its own.
		k.attempt.Pause = l.throttle.Limited(Rejection{
			SentAt:     sentAt,
			Background: k.Background,
			RetryAfter: min(k.response.RetryAfter, MaxRetryAfter),
			Delay:      Delay(k.attempt.Number-1, 0),
		})
	default:
		l.throttle.Accepted()
	}
	return resp, err
}
