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
	// two minutes before the loop begins, by the service's clock.
	//
	// For a program that restarts, set Handled, and set Since so far back that it covers its longest
	// outage plus the longest time from the creation of a meeting to its minutes: a meeting that is
	// created a week before its recording is uploaded is still yielded if Since is a month ago. At
	// the start, Follow reads the list back to Since, with one request per fifty meetings, and
	// calls Handled for each meeting; with Once, only for those that are ready or have failed.
	Since time.Time
	// Handled reports whether you need no further Result of a meeting: because its minutes are in
	// your database, because it has failed and you have noted that, or because it does not concern
	// you. Follow yields a meeting until Handled returns true. It asks when it finds a meeting, again
	// just before each Result, and after the loop's body; but other meetings may come in between, so
	// look the meeting up by its id, and not in a variable that the body sets. If Handled returns
	// false after the body, Follow yields the meeting again after 10 minutes, then 20, 40 and so on,
	// up to a day.
	// So if you cannot store a result, log that and go on with the loop. To give a meeting up after
	// some attempts, note it as such and return true. Count only errors that are the meeting's own, so
	// neither those for which Retryable is true nor ErrInsufficientScope, and count in your database,
	// because a restart begins with ten minutes again.
	//
	// If you cannot tell, because the look-up failed, return false. Once Handled has returned true,
	// this run of Follow never yields the meeting again, so do not return true for what another
	// process has merely claimed. Follow calls Handled on the goroutine of the loop. If it is nil,
	// Follow yields each meeting once, and again only after an error that is not a
	// *MeetingFailedError.
	Handled func(*Meeting) bool
	// Once makes Follow end, without an error, when it has yielded what is ready now: the meetings since
	// Since that have reached Until or have failed. The others are left to the next run. Since must be
	// set, and each meeting is yielded at most once. Follow then makes no poll, only requests for list
	// pages and texts, so that a cron job cannot break the thirty seconds between two polls. Set a
	// deadline on ctx, because even with Once, Follow keeps trying during an outage of the list. If the
	// texts of a meeting fail for ten minutes, its Result has the error, and the next run tries again;
	// so let the deadline be later than that. AudioTimeout and OnStatus must not be set.
	Once bool
	// Until is the status at which Follow yields a meeting (default StatusMinutesReady), like
	// WaitOptions.Until. With an earlier status, Follow fetches no minutes.
	Until Status
	// Format and Transcript work like those of ProcessOptions.
	Format     Format
	Transcript bool
	// AudioTimeout limits how long a meeting may stay without audio after its creation. After that
	// time, Follow yields the meeting with ErrNoAudio. It then tries again as after every error that is
	// not final: after ten minutes, and then ever later, up to a day. So if a recording does arrive, its
	// minutes may come up to a day late. 0 means no limit.
	AudioTimeout time.Duration
	// OnStatus is called with the first status of each meeting that is not handled, and with each
	// change, on the goroutine of the loop.
	OnStatus func(*Meeting)
}

// waitOptions returns the options of the wait for each meeting.
func (o *FollowOptions) waitOptions() *WaitOptions {
	return &WaitOptions{
		Until: o.Until, Format: o.Format, Transcript: o.Transcript, AudioTimeout: o.AudioTimeout, OnStatus: o.OnStatus,
	}
}

func (o *FollowOptions) checkOnce() error {
	if !o.Once {
		return nil
	}
	const waitsForNothing = "is not used, because Follow waits for nothing if Once is set"
	return cmp.Or(
		checkThat("opts.Since", !o.Since.IsZero(), "must be set if Once is set"),
		checkThat("opts.AudioTimeout", o.AudioTimeout == 0, waitsForNothing),
		checkThat("opts.OnStatus", o.OnStatus == nil, waitsForNothing),
	)
}

// Follow yields a [Result] when a meeting reaches Until or fails. It covers each meeting that the
// key can see and that was created at or after Since, and yields each at least once, in no
// particular order. It needs the scopes meetings:read and minutes:read. Follow runs until ctx is
// done, you leave the loop, or the service rejects the key or the request for the list; with
// FollowOptions.Once, it yields what is ready and ends. It assumes that the list is ordered by
// creation, because [section 4.2] only says "newest first".
//
//   - Follow stores nothing, so the next run, and every other process that follows, yields the same
//     meetings again. Store the ids of those that you have handled, and let Handled look them up.
//   - Follow finds a new meeting within half a minute, or later if more requests are due than fit
//     into that time ([docs/polling.md]). One that appears late in the list, below newer ones, it finds
//     within an hour. It polls a meeting without audio less and less often, after a month once a day.
//   - While the body of the loop runs, Follow goes on polling, but it fetches the minutes of only a
//     few meetings ahead of the loop.
//   - If reading the list fails, but the service did not reject the key or the request, Follow logs
//     a warning and tries again.
//
// Follow leaves out a meeting that is deleted before its minutes are ready. If the list shows it again
// later, for example because it was only hidden, so does Follow. Each Result has MeetingID and
// Meeting, and Minutes if they were fetched. Result.Err concerns one meeting, so it never stops the
// others:
//
//   - *[MeetingFailedError]: the meeting reached a failure status. This is final.
//   - *[WaitError] with [ErrNoAudio]: the meeting has no audio after AudioTimeout.
//   - *[WaitError] with an *[Error]: the service rejected the request for the meeting, its minutes
//     or its transcript, or a failure such as an untrusted certificate lasted for ten minutes.
//
// As in Wait, a 429, a 5xx or a lost connection gives no Result, however long it lasts, or with Once
// for ten minutes: Follow asks again, the log warns once, and [Client.Stats] counts the meeting.
//
// A meeting that is deleted after its minutes became ready gives one Result with [ErrNotFound].
//
// Only a *MeetingFailedError is final, so note it like a success, and let Handled return true. All
// other errors may be temporary, even if [Retryable] is false: Follow tries again after ten minutes,
// and then after ever longer times, up to a day, until Handled returns true.
//
// Follow says nothing about a meeting after that: a later rename, move or deletion yields nothing.
// To notice deletions, compare [MeetingsService.All] with your table once a day. In the body,
// time.Since(result.Meeting.UpdatedAt.Time()) is how long ago the minutes became ready.
//
// An error as the second value comes with a nil Result and ends Follow. It is a *[WaitError] if ctx
// is done, even if only the body was still busy with the last Result. If the list could not be read,
// the error contains the last failure. It is also a *[WaitError] if the service rejected the key or the
// request for the list, and a *[ParamError] if ctx is nil or an option is invalid.
//
// [section 4.2]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#42-meetings
// [docs/polling.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/polling.md
func (s *MeetingsService) Follow(ctx context.Context, opts *FollowOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o := *cmp.Or(opts, new(FollowOptions))
		wait, err := o.waitOptions().checked()
		err = cmp.Or(err, o.checkOnce(), checkGiven("ctx", ctx != nil))
		if err != nil {
			yield(nil, err)
			return
		}
		body := func(r *Result, err error) bool {
			ended, last := err.(*WaitError)
			if last && ctx.Err() != nil {
				ended.Err = rest.Join(s.core.poller.ListTrouble(), ended.Err)
			}
			return yield(r, err)
		}
		var d *poll.Discovery[*Meeting]
		discover := func(ctx context.Context, yield func(*Meeting) bool) error {
			// The service's times are in seconds. The zero time stays zero.
			d = s.core.poller.Discover(o.Since.Truncate(time.Second))
			defer d.Cancel()
			return yieldFound(ctx, d, o.Once, yield)
		}
		parallel(ctx, body, discover, func(ctx context.Context, l *loop, m *Meeting) {
			f := following{core: s.core, loop: l, opts: wait, handled: o.Handled, discovery: d, meeting: m}
			if o.Once {
				f.patience = poll.Hopeless
				f.yieldIfReady(ctx)
			} else {
				f.untilHandled(ctx)
			}
		})
	}
}

// yieldFound yields the meetings that d finds, until ctx is done or, with once, the list has been read.
func yieldFound(
	ctx context.Context, d *poll.Discovery[*Meeting], once bool, yield func(*Meeting) bool,
) error {
	for {
		found, read, err := d.Next(ctx)
		for _, m := range found {
			if !yield(m.Meeting.clone()) {
				return nil // the loop has left or stopped already
			}
		}
		if err != nil || once && read {
			return err
		}
	}
}

// following is what Follow does for each meeting.
type following struct {
	core    *core
	loop    *loop
	opts    WaitOptions
	handled func(*Meeting) bool // may be nil
	// discovery has found the meeting.
	discovery *poll.Discovery[*Meeting]
	// meeting is the last snapshot.
	meeting *Meeting
	// patience is the longest time for which a fetch may fail; 0 means for ever.
	patience time.Duration
	// fetched means that the last Result had the minutes, so the next one needs no poll.
	fetched bool
}

// untilHandled waits for the meeting and yields it, and again ever later, until it is handled. If
// nobody ever marks it, each Result costs one request: a fetch, or a poll if there is nothing to
// fetch.
func (f *following) untilHandled(ctx context.Context) {
	const first = 10 * time.Minute
	const longest = 24 * time.Hour
	if f.isHandled(ctx) {
		return
	}
	for delay := first; f.waitAndYield(ctx); delay = min(2*delay, longest) {
		if rest.Sleep(ctx, delay) != nil {
			return
		}
	}
}

// isHandled asks Handled, unless the loop is ending: then it returns true.
func (f *following) isHandled(ctx context.Context) bool {
	handled := true
	f.loop.onLoop(func() { handled = ctx.Err() != nil || f.handled != nil && f.handled(f.meeting.clone()) })
	return handled
}

// yieldIfReady yields the meeting if it is ready, or has failed, as a list page has just shown it.
func (f *following) yieldIfReady(ctx context.Context) {
	g := f.opts.goal()
	next, err := g.judge(poll.Snapshot[*Meeting]{Meeting: f.meeting}, time.Now())
	if next == done && !f.isHandled(ctx) {
		f.fetchAndYield(ctx, err)
	}
}

// waitAndYield waits for the meeting and yields it. again means that it is not handled yet.
func (f *following) waitAndYield(ctx context.Context) (again bool) {
	err := f.wait(ctx)
	if yieldsNothing(ctx, err) {
		f.discovery.Forget(f.meeting.ID) // a page that shows it again, maybe much later, brings it back
		return false
	}
	return f.fetchAndYield(ctx, err)
}

// fetchAndYield fetches what the options ask for, unless the wait ended with err, and yields it. again
// means that the meeting is not handled yet.
func (f *following) fetchAndYield(ctx context.Context, err error) (again bool) {
	// First the slot, which may take long, and then Handled, right before the fetch.
	unseen := slot{tokens: f.loop.unseen}
	defer unseen.free()
	if unseen.acquire(ctx) != nil || f.isHandled(ctx) {
		return false
	}
	r := &Result{MeetingID: f.meeting.ID, Meeting: f.meeting.clone(), Err: err}
	if err == nil && f.opts.fetches() {
		r.Err = f.core.fetch(ctx, r, f.opts, &unseen, f.patience)
		f.abortIfKeyRejected(r.Err)
		if yieldsNothing(ctx, r.Err) {
			return false
		}
		deleted := f.fetched && errors.Is(r.Err, ErrNotFound) // probably: the next poll will tell
		f.fetched = r.Err == nil
		if deleted {
			return true
		}
	}
	if !f.loop.yield(r) {
		return false
	}
	if f.handled != nil {
		return !f.isHandled(ctx)
	}
	_, failed := errors.AsType[*MeetingFailedError](r.Err)
	return r.Err != nil && !failed
}

// wait waits for the meeting, unless it was ready before.
func (f *following) wait(ctx context.Context) error {
	if f.fetched {
		return nil
	}
	g := f.opts.goal()
	g.onStatus = f.loop.onStatus(f.opts.OnStatus)
	g.rarely = true
	seen, err := f.core.waitFor(ctx, f.meeting.ID, g)
	f.meeting = cmp.Or(seen, f.meeting)
	f.abortIfKeyRejected(err)
	return err
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
