package minutes

import (
	"context"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/failure"
	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// fetch fetches the minutes of r.Meeting, and the transcript if the options ask for it. It asks
// again until they are ready, and after each failure that may be temporary. Each request is one
// attempt, for which the fetch holds one of the Client's eight slots. unseen is held during the
// requests and after success. Between two requests neither is held, so meetings whose minutes are
// never ready do not stop the others.
func (c *core) fetch(ctx context.Context, r *Result, o WaitOptions, unseen *slot) error {
	requesting := slot{tokens: c.fetchSlots}
	defer requesting.free()
	var failures fetchFailures
	var last error
	for {
		err := unseen.acquire(ctx)
		if err == nil {
			err = requesting.acquire(ctx)
		}
		if err != nil {
			return &WaitError{MeetingID: r.MeetingID, Meeting: r.Meeting, Err: rest.Join(last, err)}
		}
		last = c.fetchTexts(ctx, r, o)
		if last == nil {
			return nil
		}
		unseen.free()
		delay, again := failures.next(last, c.unknownYet(r.MeetingID, last), time.Now())
		if again && failures.inARow > 0 {
			// An outage gets few requests, however many meetings are ready.
			_ = rest.Sleep(ctx, time.Second)
		}
		requesting.free()
		if !again || rest.Sleep(ctx, delay) != nil {
			return &WaitError{MeetingID: r.MeetingID, Meeting: r.Meeting, Err: rest.WithCause(ctx, last)}
		}
	}
}

// fetchTexts makes one attempt at each text that r lacks, until one fails.
func (c *core) fetchTexts(ctx context.Context, r *Result, o WaitOptions) (err error) {
	if o.fetchesMinutes() && r.Minutes == nil {
		in := minutesRequest(r.MeetingID, o.Format)
		in.Once = true
		r.Minutes, _, err = call[Minutes](ctx, c, OpMeetingsMinutes, in)
	}
	if err == nil && o.Transcript {
		in := transcriptRequest(r.MeetingID)
		in.Once = true
		r.Transcript, _, err = call[Transcript](ctx, c, OpMeetingsTranscript, in)
	}
	return err
}

// fetchFailures decides after each failure of a fetch whether and when it asks again.
type fetchFailures struct {
	inARow       int       // without a good response, such as one that says that the minutes are not ready
	foreignSince time.Time // when the present row of foreign failures began; zero if something else came last
}

// next returns the delay before the next request. Like a wait, a fetch ends after ten
// minutes of nothing but foreign failures. unknownYet is what core.unknownYet says of err.
func (f *fetchFailures) next(err error, unknownYet bool, now time.Time) (delay time.Duration, again bool) {
	kind := kindOf(err)
	ends := failure.Means[kind].EndsWait
	switch {
	case kind == failure.NotReady && ends == failure.Never:
		*f = fetchFailures{}
		return poll.Interval, true
	case ends == failure.Never, unknownYet:
		f.foreignSince = time.Time{}
	case ends != failure.Later && ends != failure.AllLater:
		return 0, false
	case f.foreignSince.IsZero():
		f.foreignSince = now
	case now.Sub(f.foreignSince) >= poll.Hopeless:
		return 0, false
	}
	asked, _ := RetryAfter(err)
	delay = rest.Delay(f.inARow, min(asked, poll.MaxAsked))
	f.inARow++
	return delay, true
}
