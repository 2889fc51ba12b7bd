package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
)

// WaitAll waits for many meetings, as [MeetingsService.Wait] does for one, and yields each
// as its wait ends: the meeting if it reached WaitOptions.Until, otherwise the error, which
// names it (*MeetingFailedError or *WaitError, with the meeting if one was seen). It yields
// a repeated id once. One meeting's failure does not end the other waits. When ctx ends,
// WaitAll yields one *WaitError without a MeetingID and stops.
//
// WaitAll reads ids on another goroutine: while ids blocks, it still yields what has ended,
// and obeys ctx. After the loop is left, the yield of ids returns false. If the service
// rejects the key, it rejects it for every meeting (see [KeyRejected]): leave the loop. It
// needs the scope meetings:read.
func (s *MeetingsService) WaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Meeting, error] {
	return func(yield func(*Meeting, error) bool) {
		a, err := s.newWaitAll(ctx, ids, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		a.over = yield
		defer func() { _ = a.leave() }()
		a.run(ctx, ids)
	}
}

// WaitAllForMinutes is [MeetingsService.WaitAll] until the minutes are ready, and fetches
// them as [MeetingsService.WaitForMinutes] does, in WaitOptions.Format, a few at a time. It
// needs the scopes meetings:read and minutes:read. Each Result has Meeting and Minutes. With
// an error it has the Meeting if one was seen; the error names it in any case, in its
// Meeting or as WaitError.MeetingID. The Result is nil only if ids or opts are invalid.
//
// Errors: those of WaitAll and WaitForMinutes. When ctx ends, the fetches under way end with
// their errors; WaitAllForMinutes yields these, one *WaitError without a MeetingID for all
// other meetings, and stops.
func (s *MeetingsService) WaitAllForMinutes(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o := *cmp.Or(opts, new(WaitOptions))
		o.Until = StatusMinutesReady
		a, err := s.newWaitAll(ctx, ids, &o)
		if err != nil {
			yield(nil, err)
			return
		}
		var ready []*Meeting // whose minutes are to be fetched
		fetch := func() bool {
			for ; len(ready) > 0 && a.running < maxFetches; ready = ready[1:] {
				result := &Result{Meeting: ready[0]}
				a.start(result, func() (err error) {
					result.Minutes, err = s.fetchMinutes(a.ctx, result.Meeting, o.Format)
					return err
				})
			}
			return true
		}
		a.over = func(m *Meeting, err error) bool {
			if err != nil {
				return yield(&Result{Meeting: meetingIn(err)}, err)
			}
			ready = append(ready, m)
			return fetch()
		}
		a.yield = func(r *Result, err error) bool { return yield(r, err) && fetch() }
		defer func() { _ = a.leave() }()
		a.run(ctx, ids)
	}
}

// maxFetches is how many minutes are fetched, and not yet yielded, at a time.
const maxFetches = 8

// meetingIn returns the meeting as a failed wait saw it last, or nil.
func meetingIn(err error) *Meeting {
	if failed, ok := errors.AsType[*MeetingFailedError](err); ok {
		return failed.Meeting
	}
	if wait, ok := errors.AsType[*WaitError](err); ok {
		return wait.Meeting
	}
	return nil
}

// waitAll is one WaitAll or WaitAllForMinutes.
type waitAll struct {
	collector[string]
	core   *core
	waiter *waiter
	joined map[string]struct{}        // every id that was read
	over   func(*Meeting, error) bool // called when the wait for a meeting is over; false: the loop was left
}

// newWaitAll checks the input.
func (s *MeetingsService) newWaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) (*waitAll, error) {
	w, err := newWaiter(opts)
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("ids", ids != nil)); err != nil {
		return nil, err
	}
	a := &waitAll{core: s.core(), waiter: w, joined: make(map[string]struct{})}
	a.begin, a.events, a.dispatch, a.canceled = a.join, w.ready, a.dispatchEvents, a.cutShort
	return a, nil
}

// join begins to wait for a meeting.
func (a *waitAll) join(id string) bool {
	if _, repeated := a.joined[id]; repeated {
		return true
	}
	a.joined[id] = struct{}{}
	if err := checkID("ids", id); err != nil {
		return a.over(nil, &WaitError{MeetingID: id, Err: err})
	}
	a.waiting++
	a.core.poller.Join(a.waiter, id)
	return true
}

// dispatchEvents calls OnStatus for each change, and over for each wait that is over.
func (a *waitAll) dispatchEvents() bool {
	for _, e := range a.waiter.dispatch() {
		a.waiting--
		a.core.waitOver(a.ctx, e)
		if !a.over(e.meeting, e.err) {
			return false
		}
	}
	return true
}

// cutShort yields what has ended and one error for everything else.
func (a *waitAll) cutShort(unread bool) bool {
	trouble := a.leave()
	if !a.dispatchEvents() {
		return false
	}
	unread, a.waiting = unread || a.waiting > 0, 0
	return !unread || a.over(nil, &WaitError{Err: endOf(a.ctx, trouble)})
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
