package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
)

// WaitAll waits for many meetings, each like [MeetingsService.Wait], and yields a Result when a wait
// ends. If Until is minutes_ready, WaitAll fetches the minutes, as Process does. The key needs the
// scope meetings:read and, to fetch minutes, minutes:read.
//
//   - WaitAll yields a repeated id once. An error for one meeting does not end other waits.
//   - WaitAll ranges over ids on another goroutine.
//   - If the service rejects the key (see [KeyRejected]), all waits fail: leave the loop.
//
// Errors:
//   - *[MeetingFailedError] or *[WaitError] for one meeting, with its id, as for Wait. For an unusable
//     id, the *WaitError wraps a *[ParamError].
//   - *[WaitError] without a MeetingID: ctx ended. WaitAll yields it last, for all remaining ids.
//   - *[ParamError]: ids is nil or opts are invalid. WaitAll yields nothing else.
func (s *MeetingsService) WaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o := *cmp.Or(opts, new(WaitOptions))
		var fetch func(context.Context, *Result) error
		if cmp.Or(o.Until, StatusMinutesReady) == StatusMinutesReady {
			fetch = func(ctx context.Context, r *Result) error { return s.fetchResult(ctx, r, o.Format, o.Transcript) }
		}
		s.waitAll(ctx, ids, &o, fetch, yield)
	}
}

// waitAll is the loop of WaitAll.
func (s *MeetingsService) waitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions,
	fetch func(context.Context, *Result) error, yield func(*Result, error) bool) {
	a, err := s.newWaitAll(ctx, ids, opts)
	if err != nil {
		yield(nil, err)
		return
	}
	a.fetch, a.yield = fetch, yield
	defer func() { _ = a.leave() }()
	a.run(ctx, ids)
}

// meetingIn returns the last snapshot of the meeting in a wait's error, or nil.
func meetingIn(err error) *Meeting {
	if failed, ok := errors.AsType[*MeetingFailedError](err); ok {
		return failed.Meeting
	}
	if wait, ok := errors.AsType[*WaitError](err); ok {
		return wait.Meeting
	}
	return nil
}

// waitAll is one WaitAll or Follow.
type waitAll struct {
	collector[string]
	core   *core
	waiter *waiter
	joined map[string]struct{}                  // every id that was read; Follow removes those yielded
	fetch  func(context.Context, *Result) error // called on another goroutine if a wait succeeds; may be nil
}

func (s *MeetingsService) newWaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) (*waitAll, error) {
	w, err := newWaiter(opts)
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("ids", ids != nil)); err != nil {
		return nil, err
	}
	a := &waitAll{core: s.core(), waiter: w, joined: make(map[string]struct{})}
	a.begin, a.events, a.dispatch, a.canceled = a.join, w.ready, a.dispatchEvents, a.cutShort
	return a, nil
}

func (a *waitAll) join(id string) bool {
	if _, repeated := a.joined[id]; repeated {
		return true
	}
	a.joined[id] = struct{}{}
	if err := checkID("ids", id); err != nil {
		return a.yield(&Result{MeetingID: id}, &WaitError{MeetingID: id, Err: err})
	}
	a.waiting++
	a.core.poller.Join(a.waiter, id)
	return true
}

// dispatchEvents calls OnStatus for each change, and over at the end of each wait.
func (a *waitAll) dispatchEvents() bool {
	for _, e := range a.waiter.dispatch() {
		a.waiting--
		if !a.over(&Result{MeetingID: e.id, Meeting: cmp.Or(e.meeting, meetingIn(e.err))}, e.err) {
			return false
		}
	}
	return true
}

// over yields the result of a wait. If the wait has succeeded, over fetches the minutes first.
func (a *waitAll) over(r *Result, err error) bool {
	if err != nil || a.fetch == nil {
		return a.yield(r, err)
	}
	if _, wanted := a.joined[r.Meeting.ID]; wanted { // else Follow skips it
		a.ready = append(a.ready, func() { a.start(r, func() error { return a.fetch(a.ctx, r) }) })
		a.startReady() // before the loop's body runs again
	}
	return true
}

// cutShort yields the waits that are over, and one error for all other meetings.
func (a *waitAll) cutShort(unread bool) bool {
	trouble := a.leave()
	if !a.dispatchEvents() {
		return false
	}
	unread, a.waiting = unread || a.waiting > 0, 0
	return !unread || a.yield(nil, &WaitError{Err: endOf(a.ctx, trouble)})
}

// leave ends all waits. It returns why polls failed or were held back, or nil.
func (a *waitAll) leave() (trouble error) {
	for id := range a.joined {
		if _, t := a.core.poller.Leave(a.waiter, id); t != nil {
			trouble = t
		}
	}
	return trouble
}
