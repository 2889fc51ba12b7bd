package minutes

import (
	"context"
	"log/slog"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// Event is something that went on inside a Client, for [WithObserver]: an
// [Attempt], a [CoolDown], a [FailedLook] or a [PollTurn]. Later versions may have
// more. No event holds a secret.
type Event interface{ event() }

func (Attempt) event()    {}
func (CoolDown) event()   {}
func (FailedLook) event() {}
func (PollTurn) event()   {}

// Attempt is one attempt of a request that has ended: of an API call, of a look
// or a page for those who wait, or of the upload of a recording.
type Attempt struct {
	Operation Operation // OpUpload for the PUT to storage
	MeetingID string    // "" where the path names no meeting
	Number    int       // counts the attempts of a call from 1, those of an upload over all its URLs
	Poll      bool      // asked by the poller for those who wait; it has no caller's context

	StatusCode int   // of the reply, 0 where none came
	Code       Code  // the service's or the store's, of a refusal
	Err        error // why there was no reply; nil where there was one
	// Stalled says that an upload was given up as [WithUploadTimeouts] says.
	Stalled  bool
	Sent     int64         // how much of the recording was handed over; 0 for API calls
	Duration time.Duration // of this attempt, the reading of its reply included

	// Again says that another attempt is to follow, after Wait. After an upload,
	// the meeting may be looked at first, which may spare the repeat.
	Again bool
	Wait  time.Duration // before the next attempt; 0 where none follows
}

// CoolDown tells that a 429 holds all of the Client's requests back. It is told
// when a cool-down begins and when it is made longer. Uploads go on.
type CoolDown struct {
	Operation Operation     // that the 429 answered
	For       time.Duration // from now on; a minute at most
}

// FailedLook tells that a wait's look at a meeting failed: by a refusal, which
// ends the wait, or by anything that may pass. A 429 is none, and neither is a
// page that fails.
type FailedLook struct {
	MeetingID string // that was looked at
	// InARow counts the failed looks since the meeting was last seen. In an outage,
	// a look that fails for one meeting counts for all. At twenty the wait ends.
	InARow int
	Err    error // why; an *Error where the service or the network was at fault
}

// PollTurn tells what was asked for those who wait in a turn, thirty seconds or
// longer. Its context is no caller's.
type PollTurn struct {
	Duration time.Duration // shorter than a turn where nobody waits any more
	Waits    int           // meetings waited for at its end
	Pages    int           // of the listing, that were asked for
	Looks    int           // GETs of single meetings
}

// FromContext returns the attempt that a request's context belongs to: its
// Operation, MeetingID, Number and Poll. It is for a transport of one's own (see
// [WithHTTPClient]), whose spans and metrics are named by it without ids in their
// names. It works in an observer, too. ok is false for any other context.
func FromContext(ctx context.Context) (a Attempt, ok bool) {
	try, ok := ctx.Value(rest.Try{}).(rest.Try)
	return Attempt{Operation: Operation(try.Operation), MeetingID: try.ID, Number: try.Number, Poll: try.Once}, ok
}

// attempted tells of an attempt of an API call.
func (c *core) attempted(ctx context.Context, a rest.Attempt) {
	e, _ := FromContext(ctx)
	e.MeetingID = c.Mask.Text(e.MeetingID)
	e.Duration, e.Again = a.Took, a.Again
	if a.Again {
		e.Wait = a.Wait
	}
	requestID := ""
	if a.Err != nil {
		e.Err = c.Mask.Err(a.Err)
	} else if e.StatusCode = a.Status; a.Status/100 != 2 {
		refusal := c.failed(a.Failure)
		e.Code, requestID = refusal.Code, refusal.RequestID
	}
	c.tried(ctx, e, requestID, slog.String("method", a.Route.Method), slog.String("path", plain(c.Mask.Text(a.Path))))
	if a.CoolDown > 0 {
		c.log.LogAttrs(ctx, slog.LevelInfo, "minutes: requests are held back after a 429",
			slog.String("operation", string(e.Operation)), slog.Duration("for", a.CoolDown))
		c.observer(ctx, CoolDown{e.Operation, a.CoolDown})
	}
}

// tried tells of an attempt that has ended, of an API call or an upload. The log
// is told of its request besides.
func (c *core) tried(ctx context.Context, e Attempt, requestID string, request ...slog.Attr) {
	if c.log.Enabled(ctx, slog.LevelDebug) {
		attrs := append([]slog.Attr{slog.String("operation", string(e.Operation))}, request...)
		attrs = append(attrs, slog.Int("attempt", e.Number), slog.Int("status", e.StatusCode))
		switch {
		case e.Err != nil:
			attrs = append(attrs, slog.String("error", plain(e.Err.Error())))
		case e.StatusCode/100 != 2:
			attrs = append(attrs, slog.String("code", plain(string(e.Code))), slog.String("request_id", plain(requestID)))
		}
		if e.Again {
			attrs = append(attrs, slog.Duration("wait", e.Wait))
		}
		c.log.LogAttrs(ctx, slog.LevelDebug, "minutes: try of a request", attrs...)
	}
	c.observer(ctx, e)
}

// PollFailed implements poll.Observer.
func (p polled) PollFailed(id string, inARow int, several bool, err error) {
	ctx := context.Background()
	if several {
		p.core.log.LogAttrs(ctx, slog.LevelWarn, "minutes: looks at a meeting fail, and its wait goes on",
			slog.String("meeting", plain(id)), slog.Int("in_a_row", inARow), slog.String("error", plain(err.Error())))
	}
	p.core.observer(ctx, FailedLook{id, inARow, err})
}

// PollsRecovered implements poll.Observer.
func (p polled) PollsRecovered(id string, failed int) {
	p.core.log.LogAttrs(context.Background(), slog.LevelWarn, "minutes: looks at a meeting work again",
		slog.String("meeting", plain(id)), slog.Int("failed", failed))
}

// CycleEnded implements poll.Observer.
func (p polled) CycleEnded(c poll.Cycle) {
	p.core.observer(context.Background(), PollTurn{c.Took, c.Waits, c.Pages, c.Polls})
}
