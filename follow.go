package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// FollowOptions configures [MeetingsService.Follow]. A nil pointer or a zero field selects the
// default. A field that the call cannot use is a *[ParamError].
type FollowOptions struct {
	// Since is compared with Meeting.CreatedAt, and Follow leaves out older meetings. The default is
	// two minutes before the loop begins, because the service's clock may be behind.
	//
	// For a program that restarts, set Skip, and set Since so far back that it covers its longest
	// outage plus the longest time from the creation of a meeting to its minutes: a meeting that is
	// created a week before its recording is uploaded is still yielded if Since is a month ago. At
	// the start, Follow reads the list back to Since, with one request per fifty meetings, and
	// calls Skip for each meeting.
	Since time.Time
	// Skip reports whether Follow leaves out a meeting, for example because an earlier run, or
	// another process, has handled it. Follow calls Skip on the goroutine of the loop: when it
	// finds a meeting; before it fetches and yields it, maybe hours later; and before each new try
	// after an error. Once Skip has returned true, this run of Follow never yields the meeting
	// again. So return true only for meetings that are handled, and not for those that another
	// process has merely claimed. If Skip is nil, Follow leaves out none.
	Skip func(*Meeting) bool
	// Until is the status at which Follow yields a meeting (default StatusMinutesReady). With an
	// earlier status, Follow fetches no minutes.
	Until Status
	// Format is the format of the minutes. If it is empty, the service chooses HTML.
	Format Format
	// Transcript makes Follow fetch the transcript as well, after the minutes.
	Transcript bool
	// AudioTimeout limits how long a meeting may stay without audio after its creation. After that
	// time, Follow yields the meeting with ErrNoAudio, and then goes on with it, as after every
	// error that is not final. 0 means no limit.
	AudioTimeout time.Duration
	// OnStatus is called with the first status of each meeting that Skip lets through, and with
	// each change, on the goroutine of the loop.
	OnStatus func(*Meeting)
}

// waitOptions returns the options of the wait for each meeting.
func (o *FollowOptions) waitOptions() *WaitOptions {
	return &WaitOptions{
		Until: o.Until, Format: o.Format, Transcript: o.Transcript, AudioTimeout: o.AudioTimeout, OnStatus: o.OnStatus,
	}
}

// Follow yields a [Result] when a meeting reaches Until or fails. It covers each meeting that the
// key can see and that was created at or after Since, and yields each at least once, in no
// particular order. It needs the scopes meetings:read and minutes:read. Follow runs until ctx is
// done, you leave the loop, or the service rejects the key or the request for the list. It assumes
// that the list is ordered by creation, because [section 4.2] only says "newest first".
//
//   - Follow stores nothing, so the next run, and every other process that follows, yields the same
//     meetings again. Store the ids of those that you have handled, and let Skip look them up.
//   - Follow finds a new meeting within half a minute, or later if more requests are due than fit
//     into that time ([docs/polling.md]). It polls a meeting without audio ever less often: at
//     intervals of a thirtieth of its age, so daily after thirty days.
//   - While the body of the loop runs, Follow goes on polling, but it fetches the minutes of only a
//     few meetings ahead of the loop.
//   - If reading the list fails, but the service did not reject the key or the request, Follow logs
//     a warning and tries again.
//
// Follow leaves out a meeting that is deleted before its minutes are ready. If the list shows it again
// later, for example because it was only hidden, so does Follow. Each Result has MeetingID and
// Meeting, and Minutes if they were fetched. Result.Err concerns one meeting, so it
// never stops the others:
//
//   - *[MeetingFailedError]: the meeting reached a failure status. This is final.
//   - *[WaitError] with [ErrNoAudio]: the meeting has no audio after AudioTimeout.
//   - *[WaitError] with an *[Error]: the service rejected the request for the meeting, its minutes
//     or its transcript, or a failure such as an untrusted certificate lasted for ten minutes.
//
// Only a *MeetingFailedError is final. All other errors may be temporary, even if [Retryable] is
// false, so do not mark the meeting as handled: Follow tries again after ten minutes, and then
// after ever longer times, up to a day, until Skip returns true.
//
// An error as the second value comes with a nil Result and ends Follow. It is a *[WaitError] if ctx
// is done or the service rejected the key or the request for the list, and a *[ParamError] if ctx is
// nil or an option is invalid.
//
// [section 4.2]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#42-meetings
// [docs/polling.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/polling.md
func (s *MeetingsService) Follow(ctx context.Context, opts *FollowOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o := *cmp.Or(opts, new(FollowOptions))
		wait, err := o.waitOptions().checked()
		err = cmp.Or(err, checkGiven("ctx", ctx != nil))
		if err != nil {
			yield(nil, err)
			return
		}
		if o.Since.IsZero() {
			o.Since = time.Now().Add(-2 * time.Minute)
		}
		var d *poll.Discovery[*Meeting]
		discover := func(ctx context.Context, yield func(*Meeting) bool) error {
			d = s.core.poller.Discover(o.Since.Truncate(time.Second)) // the service's times are in seconds
			defer d.Cancel()
			for {
				found, err := d.Next(ctx)
				for _, m := range found {
					if !yield(m.Meeting.clone()) {
						return nil // the loop has left or stopped already
					}
				}
				if err != nil {
					return err
				}
			}
		}
		parallel(ctx, yield, discover, func(ctx context.Context, l *loop, m *Meeting) {
			f := following{core: s.core, loop: l, opts: wait, skip: o.Skip, discovery: d}
			f.untilHandled(ctx, m)
		})
	}
}

// following is what Follow does for each meeting.
type following struct {
	core *core
	loop *loop
	opts WaitOptions
	skip func(*Meeting) bool // may be nil
	// discovery has found the meeting.
	discovery *poll.Discovery[*Meeting]
}

// untilHandled waits for a meeting and yields it, and again ever later after an error that may be
// temporary.
func (f *following) untilHandled(ctx context.Context, m *Meeting) {
	const first, longest = 10 * time.Minute, 24 * time.Hour
	if f.skips(ctx, m) {
		return
	}
	delay := first
	for f.waitAndYield(ctx, m) {
		if rest.Sleep(ctx, delay) != nil || f.skips(ctx, m) {
			return
		}
		delay = min(2*delay, longest)
	}
}

// skips asks Skip, unless the loop is ending: then it returns true.
func (f *following) skips(ctx context.Context, m *Meeting) bool {
	skipped := true
	f.loop.onLoop(func() { skipped = ctx.Err() != nil || f.skip != nil && f.skip(m) })
	return skipped
}

// waitAndYield waits for a meeting and yields it. again means that the error may be temporary.
func (f *following) waitAndYield(ctx context.Context, m *Meeting) (again bool) {
	r := &Result{MeetingID: m.ID, Meeting: m}
	g := f.opts.goal()
	g.onStatus = f.loop.onStatus(f.opts.OnStatus)
	g.rarely = true
	unseen := slot{tokens: f.loop.unseen}
	defer unseen.free()

	seen, err := f.core.waitFor(ctx, m.ID, g)
	r.Meeting = cmp.Or(seen, m)
	f.abortIfKeyRejected(err)
	if yieldsNothing(ctx, err) {
		f.discovery.Forget(m.ID) // a page that shows it again, maybe much later, brings it back
		return false
	}
	// First the slot, which may take long, and then Skip, right before the fetch.
	if unseen.acquire(ctx) != nil || f.skips(ctx, r.Meeting) {
		return false
	}
	if err == nil && f.opts.fetches() {
		err = f.core.fetch(ctx, r, f.opts, &unseen)
		f.abortIfKeyRejected(err)
		if yieldsNothing(ctx, err) {
			return false
		}
	}
	r.Err = err
	_, failed := errors.AsType[*MeetingFailedError](err)
	return f.loop.yield(r) && err != nil && !failed
}

// abortIfKeyRejected aborts the loop if the service rejected the key. That cancels the ctx of every
// meeting.
func (f *following) abortIfKeyRejected(err error) {
	rejection := endsAll(err)
	if rejection != nil {
		f.loop.abort(rejection)
	}
}

// yieldsNothing reports whether a meeting has no Result: ctx is done, which the loop reports, or err
// says that the meeting is gone.
func yieldsNothing(ctx context.Context, err error) bool {
	e, isAPI := errors.AsType[*Error](err)
	gone := isAPI && e.Code == ErrNotFound && e.Operation == OpMeetingsGet
	return ctx.Err() != nil || gone
}
