package minutes

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// Event reports an event inside a Client, for [WithObserver]: an [Attempt], a [RateLimited] or a
// [PollCycle]. Later versions may add types. No Event contains a secret.
type Event interface{ event() }

func (Attempt) event()     {}
func (RateLimited) event() {}
func (PollCycle) event()   {}

// Attempt reports the end of one attempt of an API call, a request for waits, or an upload.
type Attempt struct {
	Operation Operation // OpUpload for the PUT to storage
	MeetingID string    // empty if the path has no meeting
	Number    int       // number of the attempt in its call, from 1; an upload counts across upload URLs
	Poll      bool      // the request was made for waits, so the context is not the caller's

	StatusCode int           // of the response; 0 if there was none
	Code       ErrorCode     // of an error response of the service or of storage
	RequestID  string        // of an error response, for support requests
	Header     http.Header   // without cookies, the API key and the query of a Location; nil for uploads
	Err        error         // why there was no response; nil if there was one
	Stalled    bool          // the upload exceeded one of the UploadTimeouts
	Sent       int64         // number of bytes of the recording that were sent; 0 for API calls
	Duration   time.Duration // of this attempt, including the response

	// WillRetry reports that the Client plans another attempt after RetryIn. For an upload, the
	// Client may poll the meeting first, and find that the audio has arrived.
	WillRetry bool
	RetryIn   time.Duration // wait before the next attempt; 0 without a retry
}

// RateLimited reports that a 429 paused all API requests of the Client, or extended such a pause.
type RateLimited struct {
	Operation Operation     // of the request that got the 429
	Pause     time.Duration // from now; at most a minute
}

// PollCycle reports the requests for waits in one cycle, of thirty seconds or longer.
type PollCycle struct {
	Duration time.Duration // shorter than thirty seconds if the last wait has ended
	Waits    int           // number of awaited meetings at the end of the cycle
	Pages    int           // number of requests for pages of the listing
	Gets     int           // number of polls
}

// AttemptFromContext returns Operation, MeetingID, Number and Poll of the attempt to which the
// context of a request belongs, for your own transport or observer. ok is false for any other context.
func AttemptFromContext(ctx context.Context) (a Attempt, ok bool) {
	info, ok := rest.AttemptOf(ctx)
	return Attempt{Operation: Operation(info.Operation), MeetingID: info.ID, Number: info.Number, Poll: info.Poll}, ok
}

// observeAttempt reports an attempt of an API call.
func (c *core) observeAttempt(ctx context.Context, a rest.Attempt) {
	e, _ := AttemptFromContext(ctx)
	e.MeetingID = c.Mask.Text(e.MeetingID)
	e.Duration, e.WillRetry, e.RetryIn = a.Took, a.Retry, a.Wait
	r := a.Response
	if a.Err != nil {
		e.Err = c.Mask.Err(a.Err)
	} else if e.StatusCode, e.Header = a.Status, c.Mask.Header(r.Header); a.Status/100 != 2 {
		failure := c.newError(r)
		e.Code, e.RequestID = failure.Code, failure.RequestID
	}
	c.reportAttempt(ctx, e, slog.String("method", r.Route.Method), slog.String("path", singleLine(c.Mask.Text(r.Path))))
	if a.Pause > 0 {
		c.log.LogAttrs(ctx, slog.LevelInfo, "minutes: a 429 pauses all requests",
			slog.String("operation", string(e.Operation)), slog.Duration("for", a.Pause))
		c.observer(ctx, RateLimited{e.Operation, a.Pause})
	}
}

// reportAttempt reports an attempt of an API call or an upload to the log and the observer. Only
// the log shows request.
func (c *core) reportAttempt(ctx context.Context, e Attempt, request ...slog.Attr) {
	if c.log.Enabled(ctx, slog.LevelDebug) {
		attrs := append([]slog.Attr{slog.String("operation", string(e.Operation))}, request...)
		attrs = append(attrs, slog.Int("attempt", e.Number), slog.Int("status", e.StatusCode))
		switch {
		case e.Err != nil:
			attrs = append(attrs, slog.String("error", singleLine(e.Err.Error())))
		case e.StatusCode/100 != 2:
			attrs = append(attrs, slog.String("code", singleLine(string(e.Code))), slog.String("request_id", singleLine(e.RequestID)))
		}
		if e.WillRetry {
			attrs = append(attrs, slog.Duration("wait", e.RetryIn))
		}
		c.log.LogAttrs(ctx, slog.LevelDebug, "minutes: attempt of a request", attrs...)
	}
	c.observer(ctx, e)
}

// PollsFail implements poll.Observer.
func (p polled) PollsFail(id string, inARow int, err error) {
	p.core.log.LogAttrs(context.Background(), slog.LevelWarn, "minutes: polls of a meeting fail, and its wait continues",
		slog.String("meeting", singleLine(id)), slog.Int("in_a_row", inARow), slog.String("error", singleLine(err.Error())))
}

// PollsRecovered implements poll.Observer.
func (p polled) PollsRecovered(id string, failed int) {
	p.core.log.LogAttrs(context.Background(), slog.LevelWarn, "minutes: polls of a meeting succeed again",
		slog.String("meeting", singleLine(id)), slog.Int("failed", failed))
}

// CycleEnded implements poll.Observer.
func (p polled) CycleEnded(c poll.Cycle) {
	p.core.observer(context.Background(), PollCycle{c.Took, c.Waits, c.Pages, c.Polls})
}
