package minutes

import (
	"context"
	"errors"
	"iter"
	"runtime"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// WaitAll waits for many meetings, as [MeetingsService.Wait] does for one, and
// yields each once, as it ends: the meeting where it came to
// WaitOptions.Until, else the error, which names it (*MeetingFailedError or
// *WaitError, with the meeting where one was seen). An id that comes again while
// ids are being read is yielded once all the same. One meeting's failure does
// not end the others' wait. When ctx ends, one *WaitError is yielded, and the
// sequence stops.
//
// ids is read on a goroutine of its own: while it blocks, what has ended is
// yielded all the same, and ctx is obeyed. When the loop is left, the yield of ids
// returns false at the next id. A key that is refused is refused for every meeting
// (see [KeyRefused]): leave the loop. It needs the scope meetings:read.
//
// A wait takes about 200 bytes; the ids themselves are kept to the end. To keep it
// so small, a WaitError of a wait among more than a thousand has only ID and Status
// of the meeting as last seen.
func (s *MeetingsService) WaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Meeting, error] {
	return func(yield func(*Meeting, error) bool) {
		o, err := opts.orDefault("")
		if err = checkInput(ctx, "ids", ids == nil, err); err != nil {
			yield(nil, err)
			return
		}
		all := waitAll{poller: s.core().poller, options: o, waiter: newWaiter(o), known: make(map[string]struct{})}
		all.run(ctx, ids, yield)
	}
}

// checkInput refuses what no sequence can work with.
func checkInput(ctx context.Context, input string, missing bool, err error) error {
	switch {
	case err != nil:
		return err
	case ctx == nil:
		return &ParamError{"ctx", "must not be nil"}
	case missing:
		return &ParamError{input, "must not be nil"}
	}
	return nil
}

// waitAll is one WaitAll at work. Which meeting is looked at when, by a page or by
// itself, internal/poll decides.
type waitAll struct {
	poller  *poller
	options WaitOptions
	waiter  *waiter
	ids     []string // all that were waited for
	waiting int
	known   map[string]struct{} // while ids are read: what comes again is no other
}

func (a *waitAll) run(ctx context.Context, ids iter.Seq[string], yield func(*Meeting, error) bool) {
	defer a.leave()
	in := background(ids)
	defer in.stop()
	next := in.next
	for next != nil || a.waiting > 0 {
		select {
		case id, more := <-next:
			if !more {
				next, a.known = nil, nil
				in.end()
			} else if !a.add(id, yield) {
				return
			}
		case <-a.waiter.ready:
			if !a.tell(yield) {
				return
			}
		case <-ctx.Done():
			if a.tell(yield) && (next != nil || a.waiting > 0) {
				yield(nil, &WaitError{Err: a.interrupted(ctx)})
			}
			return
		}
	}
}

// add begins to wait for a meeting.
func (a *waitAll) add(id string, yield func(*Meeting, error) bool) bool {
	if _, again := a.known[id]; again {
		return true
	}
	a.known[id] = struct{}{}
	if err := checkID("ids", id); err != nil {
		return yield(nil, &WaitError{MeetingID: id, Err: err})
	}
	a.waiting++
	a.ids = append(a.ids, id)
	a.poller.Join(a.waiter, id, a.options.LookedAt)
	return true
}

// tell yields what has ended. It reports false when the loop was left.
func (a *waitAll) tell(yield func(*Meeting, error) bool) bool {
	for _, e := range a.waiter.take() {
		if a.options.OnStatus != nil && e.meeting != nil {
			a.options.OnStatus(e.meeting)
		}
		if !e.over {
			continue
		}
		a.waiting--
		if e.err != nil {
			e.meeting = nil
		}
		if !yield(e.meeting, e.err) {
			return false
		}
	}
	return true
}

// leave ends whatever is still waited for.
func (a *waitAll) leave() {
	if a.waiting == 0 {
		return
	}
	for _, id := range a.ids {
		a.poller.Leave(a.waiter, id)
	}
}

// interrupted is why a wait for many ends before they do: ctx, and what has
// kept one of them from being looked at, if anything did.
func (a *waitAll) interrupted(ctx context.Context) error {
	for _, id := range a.ids {
		if _, trouble := a.poller.Leave(a.waiter, id); trouble != nil {
			return afterTrouble(backoff.ContextError(ctx), trouble)
		}
	}
	return backoff.ContextError(ctx)
}

// maxFetches is how many minutes a WaitAllForMinutes fetches at a time.
const maxFetches = 8

// WaitAllForMinutes is [MeetingsService.WaitAll] until the minutes are ready,
// and fetches them as [MeetingsService.WaitForMinutes] does, in
// WaitOptions.Format, a few at a time. It needs the scopes meetings:read and
// minutes:read. Each Result has Meeting and Minutes, or, with an error, the
// Meeting where one was seen; the error names it in any case, as
// WaitError.MeetingID does. The Result is nil only where ids or opts cannot be used.
//
// Errors: those of WaitAll and WaitForMinutes. When ctx ends, the fetches under
// way end with their errors, one *WaitError is yielded for all that still waits,
// and the sequence stops.
func (s *MeetingsService) WaitAllForMinutes(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.orDefault(StatusMinutesReady)
		if err = checkInput(ctx, "ids", ids == nil, err); err != nil {
			yield(nil, err)
			return
		}
		s.waitAllForMinutes(ctx, ids, o, yield)
	}
}

func (s *MeetingsService) waitAllForMinutes(ctx context.Context, ids iter.Seq[string], o WaitOptions, yield func(*Result, error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type ended struct {
		result *Result
		err    error
		seen   *Meeting // in place of an end: what OnStatus is to hear
	}
	waits := background(func(out func(ended) bool) {
		o, more := o, true
		if o.OnStatus != nil {
			o.OnStatus = func(m *Meeting) { more = more && out(ended{seen: m}) }
		}
		for m, err := range s.WaitAll(ctx, ids, &o) {
			if m == nil {
				m = meetingIn(err)
			}
			if more = more && out(ended{result: &Result{Meeting: m}, err: err}); !more {
				return
			}
		}
	})
	defer waits.stop()
	fetched := make(chan ended, maxFetches)
	for more, fetching := true, 0; more || fetching > 0; {
		next := waits.next
		if !more || fetching == maxFetches {
			next = nil
		}
		var e ended
		select {
		case e, more = <-next:
			if !more {
				waits.end()
				continue
			}
			if e.seen != nil {
				o.OnStatus(e.seen)
				continue
			}
			if e.err == nil {
				fetching++
				go func() {
					e.result.Minutes, e.err = s.finishedMinutes(ctx, e.result.Meeting, o.Format)
					fetched <- e
				}()
				continue
			}
		case e = <-fetched:
			fetching--
		}
		if !yield(e.result, e.err) {
			return
		}
	}
}

// meetingIn is the meeting as last seen by a wait that failed.
func meetingIn(err error) *Meeting {
	if failed, ok := errors.AsType[*MeetingFailedError](err); ok {
		return failed.Meeting
	}
	if wait, ok := errors.AsType[*WaitError](err); ok {
		return wait.Meeting
	}
	return nil
}

// reader reads a caller's sequence on a goroutine of its own, so that who takes
// from it can do other things while the sequence blocks.
type reader[T any] struct {
	next chan T // closed at the end
	left chan struct{}
	how  any  // the sequence's panic
	exit bool // the sequence ended its goroutine
}

func background[T any](seq iter.Seq[T]) *reader[T] {
	r := &reader[T]{next: make(chan T), left: make(chan struct{})}
	go func() {
		defer close(r.next)
		r.exit = true
		defer func() {
			if r.how = recover(); r.how != nil {
				r.exit = false
			}
		}()
		for v := range seq {
			select {
			case r.next <- v:
				continue
			case <-r.left:
			}
			break
		}
		r.exit = false
	}()
	return r
}

// stop takes no more; the sequence is told so at its next element.
func (r *reader[T]) stop() { close(r.left) }

// end ends the taker as the sequence ended: a panic, or a runtime.Goexit, goes on
// where the loop is.
func (r *reader[T]) end() {
	switch {
	case r.how != nil:
		panic(r.how)
	case r.exit:
		runtime.Goexit()
	}
}
