package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// FollowOptions configures [MeetingsService.Follow]. A nil pointer or a zero field selects the
// default.
type FollowOptions struct {
	// Since is compared with Meeting.CreatedAt, and Follow leaves out older meetings. The default is two
	// minutes before the call, because the service's clock may be behind. For a program that restarts,
	// set Since to a time that covers its longest outage, such as a week ago, and set Skip.
	Since time.Time
	// Skip reports whether Follow leaves out a meeting, for example because an earlier run handled it.
	// Follow calls Skip on the goroutine of the loop when it finds a meeting, maybe hours before it yields
	// it. After an error that may go away, it calls Skip again ten minutes later, before it tries again. If
	// Skip is nil, Follow leaves out none.
	Skip func(*Meeting) bool
	// Until is the status at which Follow yields a meeting (default StatusMinutesReady). With an
	// earlier status, Follow fetches no minutes.
	Until      Status
	Format     Format // of the minutes; if empty, the service chooses HTML
	Transcript bool   // also fetch the transcript, if Until is StatusMinutesReady
	// AudioTimeout limits how long a meeting may stay without audio after its creation. After that
	// time, Follow yields the meeting with ErrNoAudio. 0 means no limit.
	AudioTimeout time.Duration
	// OnStatus is called with the first status of each meeting that Skip lets through, and with each
	// change, on the goroutine of the loop.
	OnStatus func(*Meeting)
}

// Follow yields each meeting that the key can see and that was created at or after Since, when it reaches
// Until or fails: at least once, in no particular order. It needs the scopes meetings:read and
// minutes:read. Follow runs until ctx is done, you leave the loop, or the service rejects the key or the
// request for the list. That the list is ordered by creation is assumed, because section 4.2 only says
// "newest first".
//
//   - Follow stores nothing, so the next run, and every other process that follows, yields the same
//     meetings again. Store the ids of those that you have handled, and let Skip look them up.
//   - Follow finds a new meeting within half a minute, or later if more than about 300 need single GETs
//     (docs/polling.md). It polls a meeting without audio ever less often: at intervals of a thirtieth of its
//     age, so daily after thirty days.
//   - While the body of the loop runs, Follow goes on polling.
//   - If the list fails for another reason, Follow logs a warning and tries again.
//
// Follow leaves out a meeting that is deleted before its minutes are ready. Each Result has MeetingID and
// Meeting, and Minutes if they were fetched. Errors with a Result concern one meeting, so they never stop
// the others:
//
//   - *[MeetingFailedError]: the meeting reached a failure status.
//   - *[WaitError] with [ErrNoAudio]: the meeting has no audio after AudioTimeout.
//   - *[WaitError] with an *[Error]: the service rejected the request for the meeting, its minutes or its
//     transcript, or a failure such as an untrusted certificate lasted for ten minutes. This may go away,
//     even if [Retryable] is false, so do not mark the meeting as handled. Follow tries again after ten
//     minutes if Skip is set and then returns false; without Skip, never.
//
// A nil Result ends Follow. The error is a *[WaitError] if ctx is done or the service rejected the key or
// the request for the list, and a *[ParamError] if an option is invalid.
func (s *MeetingsService) Follow(ctx context.Context, opts *FollowOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o := *cmp.Or(opts, new(FollowOptions))
		wait, err := (&WaitOptions{Until: o.Until, Format: o.Format, Transcript: o.Transcript, AudioTimeout: o.AudioTimeout, OnStatus: o.OnStatus}).checked()
		if err = cmp.Or(err, checkGiven("ctx", ctx != nil)); err != nil {
			yield(nil, err)
			return
		}
		if o.Since.IsZero() {
			o.Since = time.Now().Add(-2 * time.Minute)
		}
		discover := func(ctx context.Context, yield func(*Meeting) bool) error {
			d := s.core.poller.Discover(o.Since.Truncate(time.Second)) // the service's times are in seconds
			defer d.Cancel()
			for {
				found, err := d.Next(ctx)
				for _, m := range found {
					if !yield(m.Meeting.clone()) {
						return nil
					}
				}
				if err != nil {
					return err
				}
			}
		}
		parallel(ctx, yield, discover, func(ctx context.Context, l *loop, m *Meeting) {
			g := goal{WaitOptions: wait, patient: true}
			g.OnStatus = l.onStatus(o.OnStatus)
			s.followOne(ctx, l, m, g, o.Skip)
		})
	}
}

// followOne waits for one meeting and yields it, and again ten minutes after an error that may pass. It
// stops the loop if the service rejects the key.
func (s *MeetingsService) followOne(ctx context.Context, l *loop, m *Meeting, g goal, skip func(*Meeting) bool) {
	for again := true; again; again = rest.Sleep(ctx, 10*time.Minute) == nil {
		skipped := false
		if !l.do(func() { skipped = skip != nil && skip(m) }) || skipped {
			return
		}
		r := &Result{MeetingID: m.ID, Meeting: m}
		err := s.waitAndFetch(ctx, r, g)
		switch e, _ := errors.AsType[*Error](err); {
		case ctx.Err() != nil, errors.Is(err, ErrNotFound) && e.Operation == OpMeetingsGet: // or someone deleted the meeting
			return
		case KeyRejected(err):
			l.stop(err)
			return
		case !l.yield(r, err) || e == nil || skip == nil:
			return
		}
	}
}
