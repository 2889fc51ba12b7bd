package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
)

// FollowOptions tune [MeetingsService.Follow]. Zero fields, and nil, mean the defaults.
type FollowOptions struct {
	// Since is the creation time of the oldest meetings to yield. Because clocks differ, Follow also
	// yields meetings that were created up to two minutes before Since. A zero Since means the time
	// of the call. To continue after a restart, set Since in the first run, and use it again.
	Since time.Time
	// Skip reports whether Follow leaves out a meeting, for example because an earlier run handled
	// the meeting. Follow calls Skip on the goroutine of the loop, maybe several times for a
	// meeting. Nil skips none.
	Skip func(*Meeting) bool
	// Until is the state at which Follow yields a meeting (default StatusMinutesReady). With an
	// earlier state, Follow fetches no minutes.
	Until      Status
	Format     Format // of the minutes; if empty, the service chooses HTML
	Transcript bool   // also fetch the transcript, if Until is StatusMinutesReady
	// AudioTimeout limits how long a meeting may stay without audio after its creation. After that
	// time, Follow yields the meeting with ErrNoAudio. 0 means no limit.
	AudioTimeout time.Duration
}

// Follow yields each meeting of the organisation that the key can see, when the minutes are ready
// or when the meeting fails. FollowOptions.Since selects the meetings by creation time. Follow runs
// until ctx ends, you leave the loop, or the service rejects the key. The key needs the scopes
// meetings:read and minutes:read. Assumed: the listing is ordered by CreatedAt. Follow also works if
// it is ordered by UpdatedAt.
//
//   - Follow yields a meeting once, in no particular order. It leaves out deleted meetings.
//   - Follow stores nothing, so the next run of the program may yield a meeting again. To prevent
//     that, store the ids that you have handled, and let Skip look them up.
//   - After a temporary failure, Follow tries again. Meetings may be late, but none is lost.
//   - While the body of the loop runs, Follow continues to poll.
//
// See docs/polling.md for how Follow finds and polls meetings.
//
// Each Result has Meeting, and Minutes if they were fetched. Errors with a Result concern one
// meeting:
//   - *[MeetingFailedError]: the meeting reached a failure state.
//   - *[WaitError] with [ErrNoAudio]: the meeting has no audio after AudioTimeout.
//   - *[WaitError] with an *[Error]: the service rejected the request for the meeting or the minutes.
//
// Errors without a Result end Follow:
//   - *[ParamError]: an option is invalid.
//   - *[WaitError] without a MeetingID: ctx ended, or the service rejected the key; see
//     [KeyRejected].
func (s *MeetingsService) Follow(ctx context.Context, opts *FollowOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o := *cmp.Or(opts, new(FollowOptions))
		f := &follower{skip: o.Skip, loop: yield}
		none := func(func(string) bool) { <-f.ctx.Done() } // the poller finds the meetings
		a, err := s.newWaitAll(ctx, none, &WaitOptions{Until: o.Until, Format: o.Format, AudioTimeout: o.AudioTimeout})
		if err != nil {
			yield(nil, err)
			return
		}
		f.waitAll = a
		if a.waiter.Until == StatusMinutesReady {
			a.fetch = func(ctx context.Context, r *Result) error { return s.fetchResult(ctx, r, o.Format, o.Transcript) }
		}
		a.yield, a.canceled, a.waiter.OnStatus, a.waiter.relaxed = f.result, f.canceled, f.found, true
		if o.Since.IsZero() {
			o.Since = time.Now()
		}
		a.core.poller.Follow(a.waiter, o.Since)
		defer a.core.poller.Unfollow(a.waiter)
		a.run(ctx, none)
	}
}

// follower is one Follow. joined contains the meetings that Follow has found, and neither skipped
// nor yielded.
type follower struct {
	*waitAll
	skip func(*Meeting) bool
	loop func(*Result, error) bool // the body of the loop
}

// found is called with each status of a meeting that a response shows.
func (f *follower) found(m *Meeting) {
	if _, known := f.joined[m.ID]; known {
		return
	}
	if f.skip != nil && f.skip(m) {
		f.core.poller.Leave(f.waiter, m.ID)
		return
	}
	f.joined[m.ID] = struct{}{}
}

// result yields a meeting. After a temporary failure, it waits for the meeting again.
func (f *follower) result(r *Result, err error) bool {
	if e, ok := errors.AsType[*Error](err); ok && KeyRejected(e) {
		f.loop(nil, &WaitError{Err: e})
		return false
	}
	var id string
	if wait, ok := errors.AsType[*WaitError](err); ok {
		id = wait.MeetingID
	} else {
		id = r.Meeting.ID
	}
	if _, wanted := f.joined[id]; !wanted {
		return true
	}
	if failureOf(err).Transient || errors.Is(err, poll.ErrPollsFailed) {
		f.core.poller.Join(f.waiter, id)
		return true
	}
	delete(f.joined, id)
	return errors.Is(err, ErrNotFound) || f.loop(r, err)
}

// canceled ends the loop.
func (f *follower) canceled(bool) bool {
	f.loop(nil, &WaitError{Err: endOf(f.ctx, nil)})
	return false
}
