package minutes

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// Event reports what happens inside a Client, for [WithObserver]: an [Attempt], a
// [RateLimited] or a [PollCycle]. Later versions may have more. No event holds a secret.
type Event interface{ event() }

func (Attempt) event()     {}
func (RateLimited) event() {}
func (PollCycle) event()   {}

// Attempt reports one attempt of a request that has ended: of an API call, of a poll, of a
// page for the poller, or of the upload of a recording.
type Attempt struct {
	Operation Operation // OpUpload for the PUT to storage
	MeetingID string    // "" if the path names no meeting
	Number    int       // counts the attempts of a call from 1, those of an upload over all its URLs
	Poll      bool      // made by the poller, whose context is no caller's

	StatusCode int       // of the response, 0 if there was none
	Code       ErrorCode // of an error response of the service or the store
	RequestID  string    // of an error response, for support requests
	// Header is that of the response, without cookies, the API key and the query of a
	// Location. It is nil if there was none, and for uploads.
	Header http.Header
	Err    error // why there was no response; nil if there was one
	// Stalled reports that the Client gave up an upload, see [WithUploadTimeouts].
	Stalled  bool
	Sent     int64         // bytes of the recording that were sent; 0 for API calls
	Duration time.Duration // of this attempt, with reading its response

	// WillRetry reports that another attempt follows, after Wait. After an upload the Client
	// may poll the meeting first, and then need no retry.
	WillRetry bool
	RetryIn   time.Duration // before the next attempt; 0 if none follows
}

// RateLimited reports that a 429 paused all of the Client's requests. Observers receive it
// when a pause begins or is extended. Uploads go on.
type RateLimited struct {
	Operation Operation     // that got the 429
	Pause     time.Duration // from now on; a minute at most
}

// PollCycle reports the poller's requests in one cycle of thirty seconds or longer. Its
// context is no caller's.
type PollCycle struct {
	Duration time.Duration // shorter than a cycle if no wait is left
	Waits    int           // meetings that are awaited at its end
	Pages    int           // requests for pages of the listing
	Gets     int           // GETs of single meetings
}

// AttemptFromContext returns the attempt that a request's context belongs to: its Operation,
// MeetingID, Number and Poll. Use it in your own transport (see [WithHTTPClient]) to name
// spans and metrics without ids. It works in an observer, too. ok is false for any other
// context.
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

// reportAttempt reports an attempt that has ended, of an API call or an upload, to the log
// and the observer. Only the log shows the request.
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

// PollFailed implements poll.Observer.
func (p polled) PollFailed(id string, inARow int, several bool, err error) {
	if several {
		p.core.log.LogAttrs(context.Background(), slog.LevelWarn, "minutes: polls of a meeting fail, and its wait goes on",
			slog.String("meeting", singleLine(id)), slog.Int("in_a_row", inARow), slog.String("error", singleLine(err.Error())))
	}
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
