package rest

import (
	"errors"
	"net/http"
	"time"
)

// limit waits before every attempt until the throttle lets it through, and reports a 429 to the throttle. The wait is outside
// the attempt's time limit.
type limit struct {
	next     http.RoundTripper
	throttle *Throttle
}

// errNotSent means that there was no attempt.
var errNotSent = errors.New("canceled before it was sent")

func (l *limit) RoundTrip(req *http.Request) (*http.Response, error) {
	k := callOf(req.Context())
	err := l.throttle.Wait(req.Context(), k.Background)
	switch {
	case errors.Is(err, ErrPaused):
		k.response.RetryAfter = l.throttle.Left()
	case err == nil && k.Send != nil && !k.Send():
		err = errNotSent
	}
	if err != nil {
		k.failure = Join(k.failure, err)
		return nil, errNotSent
	}
	sentAt := time.Now()
	resp, err := l.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		pause := max(min(k.response.RetryAfter, MaxRetryAfter), Delay(k.attempt.Number-1, 0))
		k.attempt.Pause = l.throttle.Limited(sentAt, pause)
	}
	return resp, err
}
