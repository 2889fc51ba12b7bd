package minutes

import (
	"context"
	"log/slog"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// AttemptInfo says what an attempt is for. Your own transport gets it from [AttemptFromContext],
// and can label metrics and traces with it.
type AttemptInfo struct {
	Operation Operation // OpUpload for the PUT to storage
	MeetingID string    // empty if the path has no meeting
	// Number counts from 1 in each call. An upload with a new URL goes on counting.
	Number int
	// Shared reports that the poller makes the request for all waits, so its context is not that of
	// a call.
	Shared bool
}

// Attempt describes one finished attempt at an API call, a poller request or an upload. It contains
// no secret, so an observer can log it.
type Attempt struct {
	AttemptInfo
	Method string // of the request
	// URL is that of the request, without the query, because the query of an upload URL is a
	// credential.
	URL string

	StatusCode int           // of the response; 0 if there was none
	Code       ErrorCode     // of an error response of the service or of storage
	RequestID  string        // of an error response, for support requests
	Err        error         // why there was no response; nil if there was one
	Stalled    bool          // the upload exceeded one of the UploadTimeouts
	Sent       int64         // bytes of the recording that were sent; 0 for API calls
	Duration   time.Duration // of this attempt, including the response

	// WillRetry reports that the Client plans another attempt, within RetryIn. For an upload, the
	// Client may poll the meeting first, and find that the audio has arrived.
	WillRetry bool
	// RetryIn is the longest backoff before the next attempt. Polls and queued requests may add to it.
	// 0 means no retry.
	RetryIn time.Duration
	// Pause is for how long all API requests pause, if this attempt got a 429 that started or
	// extended the pause. Otherwise it is 0.
	Pause time.Duration
}

// AttemptFromContext shows your own transport what an attempt is for, from the context of its
// request. If ctx is any other context, ok is false.
func AttemptFromContext(ctx context.Context) (info AttemptInfo, ok bool) {
	a := rest.AttemptOf(ctx)
	if a == nil {
		return AttemptInfo{}, false
	}
	return infoOf(a), true
}

func infoOf(a *rest.AttemptReport) AttemptInfo {
	r := a.Request
	return AttemptInfo{
		Operation: Operation(r.Operation), MeetingID: r.MeetingID, Number: a.Number, Shared: r.Background,
	}
}

// observeRequest reports an attempt at an API call.
func (c *core) observeRequest(ctx context.Context, a rest.AttemptReport) {
	e := Attempt{
		AttemptInfo: infoOf(&a),
		Method:      a.Request.Method,
		URL:         c.mask.Text(c.base.String() + a.Request.Path),
		StatusCode:  a.Status,
		Err:         a.Err,
		Duration:    a.Took,
		WillRetry:   a.WillRetry,
		RetryIn:     a.RetryIn,
		Pause:       a.Pause,
	}
	if a.Response == nil { // maybe because its body broke off
		e.StatusCode = 0
	} else if a.Status/100 != 2 {
		failure := c.newError(a.Response, nil)
		e.Code = failure.Code
		e.RequestID = failure.RequestID
	}
	c.observe(ctx, e)
}

func (c *core) observe(ctx context.Context, a Attempt) {
	for _, observer := range c.observers {
		observer(ctx, a)
	}
}

// logAttempts returns the observer of [WithLogger].
func logAttempts(l *slog.Logger) func(context.Context, Attempt) {
	return func(ctx context.Context, a Attempt) {
		l.LogAttrs(ctx, slog.LevelDebug, "minutes: request attempt", attrsOf(a)...)
		if a.Pause > 0 {
			l.LogAttrs(ctx, slog.LevelInfo, "minutes: rate limited; all API requests pause",
				slog.String("operation", string(a.Operation)), slog.Duration("for", a.Pause))
		}
	}
}

func attrsOf(a Attempt) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("operation", string(a.Operation)),
		slog.String("method", a.Method),
		slog.String("url", singleLine(a.URL)),
		slog.Int("attempt", a.Number),
		slog.Int("status", a.StatusCode),
	}
	if a.Operation == OpUpload {
		attrs = append(attrs, slog.String("meeting", singleLine(a.MeetingID)), slog.Int64("sent", a.Sent))
	}
	switch {
	case a.Err != nil:
		attrs = append(attrs, slog.String("error", singleLine(a.Err.Error())))
	case a.StatusCode/100 != 2:
		code := singleLine(string(a.Code))
		attrs = append(attrs, slog.String("code", code), slog.String("request_id", singleLine(a.RequestID)))
	}
	if a.WillRetry {
		attrs = append(attrs, slog.Duration("wait", a.RetryIn))
	}
	return attrs
}

// logTrouble logs that polling begins to fail, and that it works again.
func (c *core) logTrouble(err error) {
	if err == nil {
		c.log.Warn("minutes: polling works again")
		return
	}
	c.log.Warn("minutes: polling is failing; waits continue", "error", singleLine(err.Error()))
}

// logFetch logs, if changed is set, that fetches begin to fail, with the first of them, or that they work
// again.
func (c *core) logFetch(ctx context.Context, r *Result, changed bool, err error) {
	switch {
	case !changed:
	case err == nil:
		c.log.WarnContext(ctx, "minutes: fetching minutes works again")
	default:
		c.log.WarnContext(ctx, "minutes: fetching minutes or a transcript is failing; the call continues",
			slog.String("meeting", singleLine(r.MeetingID)), slog.String("error", singleLine(err.Error())))
	}
}
