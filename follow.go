package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
)

// FollowOptions tune [MeetingsService.Follow]; the zero value, or nil, is fine.
type FollowOptions struct {
	// Since is when the oldest meeting that Follow yields was created. Meetings created up to
	// two minutes earlier may be yielded, too, since clocks differ. After a restart, use the
	// time of the first run, or a time before the oldest meeting that may still be unfinished.
	// A zero Since means from now on.
	Since time.Time
	// Skip reports whether you do not want a meeting, for example because an earlier run has
	// handled it. Follow calls it on the goroutine of the loop, when it finds the meeting in
	// the listing, and possibly again before it yields the meeting. Nil skips none.
	Skip func(*Meeting) bool
	// Until is the state at which a meeting is yielded, as in WaitOptions. Empty means
	// StatusMinutesReady. The minutes are fetched only then.
	Until      Status
	Format     Format // of the minutes; empty is the service's default, HTML
	Transcript bool   // fetch the transcript with the minutes
	// AudioTimeout is as in WaitOptions: a meeting without audio this long after its creation
	// is yielded with ErrNoAudio. 0 means no limit.
	AudioTimeout time.Duration
}

// Follow yields each meeting of the organisation that the key can see, whoever created it,
// as its minutes become ready or it fails. It runs until ctx ends or the loop is left. It
// takes the place of a webhook, which the service does not have.
//
//   - It finds meetings on the first page of the listing, about every thirty seconds, and on
//     further pages if there are many new ones. It then waits for them as
//     [MeetingsService.Wait] does.
//   - It polls a meeting without audio less often the older it is, after a thirtieth of its
//     age, so that abandoned meetings cost little. It drops deleted meetings.
//   - It yields a meeting once, in no particular order. The next run of the program may yield
//     it again: store the ids of the meetings that you have handled, and let Skip look there.
//     Follow itself stores nothing.
//   - While the loop's body runs, Follow fetches at most eight minutes in advance, but goes on
//     polling.
//   - A failure of the listing, or of polls, delays meetings but loses none and does not end
//     Follow. It misses no meeting that appears in the listing up to two minutes late, which
//     includes the difference between the clocks.
//
// It needs the scopes meetings:read and minutes:read. Assumed: the listing is ordered by
// creation or by change, newest first.
//
// Each Result has Meeting, and Minutes if they are fetched. Errors with a Result concern
// one meeting: *MeetingFailedError if it failed; *WaitError, with ErrNoAudio after
// AudioTimeout, or if the service rejects the request for the meeting or its minutes. Errors without a Result
// end Follow: *ParamError for invalid options; a *WaitError without a MeetingID if the
// service rejects the key (see [KeyRejected]) or ctx ends.
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
		a.fetch(f.result, func(r *Result) (err error) {
			if a.waiter.Until == StatusMinutesReady {
				r.Minutes, err = s.fetchMinutes(a.ctx, r.Meeting, o.Format)
				if err == nil && o.Transcript {
					r.Transcript, err = fetchReady(a.ctx, r.Meeting, s.Transcript)
				}
			}
			return err
		})
		f.fetch, a.over, a.waiter.OnStatus, a.canceled = a.over, f.waitOver, f.found, f.canceled
		if o.Since.IsZero() {
			o.Since = time.Now()
		}
		a.core.poller.Follow(patient{a.waiter}, o.Since)
		defer a.core.poller.Unfollow(patient{a.waiter})
		a.run(ctx, none)
	}
}

// patient is a waiter that polls a meeting without audio less often the older it is.
type patient struct{ *waiter }

// Interval implements poll.Waiter.
func (p patient) Interval(last poll.Snapshot) time.Duration {
	if last.State != string(StatusCreated) {
		return 0
	}
	return time.Since(time.Unix(last.Created, 0)) / 30
}

// follower is one Follow. Its waitAll has joined the meetings that were found, and neither
// skipped nor yielded yet.
type follower struct {
	*waitAll
	skip  func(*Meeting) bool
	fetch func(*Meeting, error) bool // called if the wait for a meeting in joined is over
	loop  func(*Result, error) bool  // the body
}

// found is called for each status of a meeting that a poll or a page shows.
func (f *follower) found(m *Meeting) {
	if _, known := f.joined[m.ID]; known {
		return
	}
	if f.skip != nil && f.skip(m) {
		f.core.poller.Leave(patient{f.waiter}, m.ID)
		return
	}
	f.joined[m.ID] = struct{}{}
}

// waitOver is called when the wait for a meeting is over.
func (f *follower) waitOver(m *Meeting, err error) bool {
	if m == nil {
		return f.result(&Result{Meeting: meetingIn(err)}, err)
	}
	if _, wanted := f.joined[m.ID]; !wanted {
		return true
	}
	return f.fetch(m, nil)
}

// result yields what there is of a meeting in the end. If requests failed, it waits again.
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
	if failureOf(err).Transient {
		f.core.poller.Join(patient{f.waiter}, id)
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
