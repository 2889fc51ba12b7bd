package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"

	"github.com/meeting-minutes/minutes-go/internal/poll"
)

// WaitAll waits for many meetings, as [MeetingsService.Wait] does for one, and yields
// each once, as it ends: the meeting if it came to WaitOptions.Until, else the
// error, which names it (*MeetingFailedError or *WaitError, with the meeting if one
// was seen). An id given twice is yielded once. One meeting's failure does not end the others' wait. When ctx ends, one
// *WaitError is yielded, and the sequence stops.
//
// ids is read on a goroutine of its own: while it blocks, what has ended is yielded
// all the same, and ctx is obeyed. When the loop is left, the yield of ids returns
// false at the next id. A key that is refused is refused for every meeting (see
// [KeyRefused]): leave the loop. It needs the scope meetings:read.
//
// A wait takes about 200 bytes; the ids themselves are kept to the end. To keep it
// so small, a WaitError of a wait among more than a thousand has only ID and Status
// of the meeting as last seen.
func (s *MeetingsService) WaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Meeting, error] {
	return func(yield func(*Meeting, error) bool) {
		all, err := s.newWaitAll(ctx, ids, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		all.ended = yield
		all.run(ids)
	}
}

// WaitAllForMinutes is [MeetingsService.WaitAll] until the minutes are ready,
// and fetches them as [MeetingsService.WaitForMinutes] does, in
// WaitOptions.Format, a few at a time. It needs the scopes meetings:read and
// minutes:read. Each Result has Meeting and Minutes, or, with an error, the
// Meeting if one was seen; the error names it even so, in its Meeting or as
// WaitError.MeetingID. The Result is nil only if ids or opts cannot be used.
//
// Errors: those of WaitAll and WaitForMinutes. When ctx ends, the fetches under
// way end with their errors, one *WaitError without a MeetingID is yielded for all
// that still waits, and the sequence stops.
func (s *MeetingsService) WaitAllForMinutes(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		opts := opts.forMinutes()
		all, err := s.newWaitAll(ctx, ids, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		room := make(chan struct{}, maxFetches)
		all.ended = func(m *Meeting, err error) bool {
			if err != nil {
				return yield(&Result{Meeting: meetingIn(err)}, err)
			}
			all.fetching++
			go func() {
				room <- struct{}{}
				defer func() { <-room }()
				result, err := &Result{Meeting: m}, errEndedGoroutine // unless the fetch returns
				defer func() { all.fetched <- func() bool { return yield(result, err) } }()
				result.Minutes, err = s.finishedMinutes(all.ctx, m, opts.Format)
			}()
			return true
		}
		all.run(ids)
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

// waitAll is one WaitAll, or one WaitAllForMinutes, under way.
type waitAll struct {
	ctx      context.Context // ends when the loop is left, at the latest
	cancel   context.CancelFunc
	poller   *poll.Poller
	waiter   *waiter
	ids      []string                   // all that were joined
	waiting  int                        // how many of them have not ended
	known    map[string]struct{}        // ids taken so far, to skip repeats; nil once ids has ended
	ended    func(*Meeting, error) bool // called when the wait for a meeting ends; false: the loop was left
	fetching int                        // fetches begun and not yet received from fetched; 0 in a WaitAll
	fetched  chan func() bool           // each func yields one fetched result
}

// newWaitAll checks the input.
func (s *MeetingsService) newWaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) (*waitAll, error) {
	w, err := newWaiter(opts)
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("ids", ids != nil)); err != nil {
		return nil, err
	}
	a := &waitAll{poller: s.core().poller, waiter: w, known: make(map[string]struct{}), fetched: make(chan func() bool)}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a, nil
}

// run yields until all has ended or the loop was left. The case of a nil channel never comes.
func (a *waitAll) run(ids iter.Seq[string]) {
	defer func() {
		a.cancel()
		_ = a.leave()
		for ; a.fetching > 0; a.fetching-- {
			<-a.fetched
		}
	}()
	next, end := background(a.ctx, ids)
	ready, done := a.waiter.ready, a.ctx.Done()
	for goOn := true; goOn && (next != nil || a.waiting > 0 || a.fetching > 0); {
		select {
		case id, more := <-next:
			if more {
				goOn = a.add(id)
				break // of the select
			}
			next, a.known = nil, nil
			end()
		case <-ready:
			goOn = a.tell()
		case give := <-a.fetched:
			a.fetching--
			goOn = give()
		case <-done:
			goOn = a.tell()
			if goOn && (next != nil || a.waiting > 0) {
				goOn = a.ended(nil, &WaitError{Err: endOf(a.ctx, a.leave())})
			}
			next, ready, done = nil, nil, nil // only fetches are still to end
		}
	}
}

// add begins to wait for a meeting. Like tell, it returns false if the loop was left.
func (a *waitAll) add(id string) bool {
	if _, again := a.known[id]; again {
		return true
	}
	a.known[id] = struct{}{}
	if err := checkID("ids", id); err != nil {
		return a.ended(nil, &WaitError{MeetingID: id, Err: err})
	}
	a.waiting++
	a.ids = append(a.ids, id)
	a.poller.Join(a.waiter, id, a.waiter.LookedAt)
	return true
}

// tell calls OnStatus for what has changed, and a.ended for each wait that is over.
func (a *waitAll) tell() bool {
	for _, e := range a.waiter.listen() {
		a.waiting--
		if !a.ended(e.meeting, e.err) {
			return false
		}
	}
	return true
}

// leave ends all waits and returns why a look failed or was held back, or nil.
func (a *waitAll) leave() (trouble error) {
	for _, id := range a.ids {
		if _, kept := a.poller.Leave(a.waiter, id); trouble == nil {
			trouble = kept
		}
	}
	a.waiting = 0
	return trouble
}

// background reads seq on a goroutine of its own, so that the receiver is not blocked.
// After ctx has ended, the yield of seq returns false. When seq ends before that, the
// channel is closed. The func then repeats, on the caller's goroutine, how seq ended:
// return, panic or Goexit.
func background[T any](ctx context.Context, seq iter.Seq[T]) (<-chan T, func()) {
	next, ended := make(chan T), runtime.Goexit // unless seq returns or panics
	go func() {
		returned := false
		defer func() {
			switch panicked := recover(); {
			case panicked != nil:
				ended = func() { panic(panicked) }
			case returned && ctx.Err() != nil:
				return // the receiver watches ctx itself
			case returned:
				ended = func() {}
			}
			close(next)
		}()
		for v := range seq { // a seq that ignores a false yield panics here, which ends it
			select {
			case next <- v:
				continue
			case <-ctx.Done():
			}
			break
		}
		returned = true
	}()
	return next, func() { ended() }
}
