package rest

import (
	"errors"
	"net/http"
	"time"
)

// limit waits before every attempt until the throttle lets it through, and tells the throttle how
// the attempt ended. The wait is outside the attempt's time limit.
type limit struct {
	next     http.RoundTripper
	throttle *Throttle
}

func (l *limit) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	k := callOf(ctx)
	if err := l.throttle.Wait(ctx, k.Background); err != nil {
		return nil, &notSentError{err}
	}
	if k.Send != nil && !k.Send() {
		return nil, &notSentError{errCalledOff}
	}
	sentAt := time.Now()
	resp, err := l.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		k.attempt.Pause = l.throttle.Limited(sentAt, retryAfterOf(resp))
	} else {
		l.throttle.Ended()
	}
	return resp, err
}

var errCalledOff = errors.New("canceled before it was sent")

// notSentError reports that there was no attempt.
type notSentError struct{ reason error }

func (e *notSentError) Error() string { return e.reason.Error() }
func (e *notSentError) Unwrap() error { return e.reason }
