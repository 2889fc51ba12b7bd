package minutes

import (
	"context"
	"errors"
	"iter"
	"time"
)

// WaitOptions tune a wait; the zero value, or nil, is fine.
type WaitOptions struct {
	// Until is the state of the happy path to wait for: at it, or past it, the
	// wait is over. Empty means StatusMinutesReady. WaitForMinutes ignores it.
	Until Status
	// Interval is the least time between two looks at the meeting. The floor of
	// thirty seconds, or what the service's Cache-Control asks beyond that,
	// holds in any case. Where one request shows many meetings, one that is not
	// due may be shown along with one that is; it is not reported.
	Interval time.Duration
	// OnStatus is told of the first look and of each change of status. It runs
	// on the goroutine that waits.
	OnStatus func(*Meeting)
	// Format is the form of the minutes that WaitForMinutes fetches; empty is
	// the service's default, HTML.
	Format Format
}

func (o *WaitOptions) orDefault() (WaitOptions, error) {
	if o == nil {
		return WaitOptions{Until: StatusMinutesReady}, nil
	}
	opts := *o
	if opts.Until == "" {
		opts.Until = StatusMinutesReady
	}
	switch {
	case opts.Until.rank() == 0:
		return opts, &ParamError{"opts.Until", "is not a state of the happy path"}
	case opts.Interval < 0:
		return opts, &ParamError{"opts.Interval", "must not be negative"}
	}
	opts.Interval = min(opts.Interval, maxInterval)
	return opts, checkTexts(text{"opts.Format", string(opts.Format)})
}

// Wait follows a meeting until its minutes are ready, or until
// WaitOptions.Until. It looks at once and then never sooner than thirty seconds
// after the last look at that meeting by anyone in this Client, which is what
// the service asks for (section 6). Lost connections and faults of the service
// are waited out, a turn for each; twenty in a row, some ten minutes, end the
// wait. A 429 slows all of the Client's waits down, and ends none. Other time
// limits than ctx a wait has none. A meeting without audio is waited for, too.
//
// Looks are what waits do, and the check after an upload whose reply was lost. A
// Get or List of the caller's own is none: the service sees it all the same, so
// show a status in OnStatus rather than by a Get before or beside a wait.
//
// All waits of a Client share one poller, which reads pages of the listing
// where they show many meetings that are waited for, and single meetings
// elsewhere: thousands of waits cost few requests. Where very many begin at
// once, first looks are spread over a turn.
//
// Errors: *MeetingFailedError, with the meeting, where it ended in a failure
// state; *WaitError, with the meeting as last seen, for every other end: ctx,
// ErrNotFound (the meeting is gone), a refused key (ErrUnauthenticated and the
// codes of 403), or twenty failed looks in a row. Where ctx ends while looks
// fail, or are held back, the *Error of the last one is found in it, too.
// *ParamError for an id or an option that cannot be used.
func (s *MeetingsService) Wait(ctx context.Context, id string, opts *WaitOptions) (*Meeting, error) {
	w, err := opts.waiter(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.core().poller.wait(ctx, id, w)
}

// waiter is what waits for one meeting, as the options say.
//
//go:noinline
func (o *WaitOptions) waiter(ctx context.Context, id string) (*waiter, error) {
	opts, err := o.orDefault()
	if err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, &ParamError{"ctx", "must not be nil"}
	}
	if err := checkID("id", id); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, &WaitError{MeetingID: id, Err: ctxError(ctx)}
	}
	return newWaiter(opts), nil
}

// WaitForMinutes waits as [MeetingsService.Wait] does until the minutes are
// ready and fetches them, in WaitOptions.Format. Minutes that are not there yet
// although the status says so are waited for, a turn at a time; so is a service
// that fails to serve them, up to twenty times, each with the repeats of any
// other call.
//
// Errors: those of Wait; those of [MeetingsService.Minutes], in a *WaitError.
func (s *MeetingsService) WaitForMinutes(ctx context.Context, id string, opts *WaitOptions) (*Minutes, error) {
	var own WaitOptions
	if opts != nil {
		own = *opts
	}
	own.Until = StatusMinutesReady
	m, err := s.Wait(ctx, id, &own)
	if err != nil {
		return nil, err
	}
	return s.finishedMinutes(ctx, m, own.Format)
}

// finishedMinutes fetches the minutes of a meeting whose status says that they
// are there. It stands apart so that a goroutine that waits needs no room for
// it.
//
//go:noinline
func (s *MeetingsService) finishedMinutes(ctx context.Context, m *Meeting, format Format) (*Minutes, error) {
	for failed := 1; ; failed++ {
		minutes, err := s.Minutes(ctx, m.ID, format)
		if err == nil {
			return minutes, nil
		}
		notYet := errors.Is(err, ErrMinutesNotReady)
		if notYet {
			failed = 0
		}
		if ctx.Err() == nil && (notYet || transient(err) && failed < maxFailedLooks) {
			if sleep(ctx, max(pollFloor, askedFor(err))) == nil {
				continue
			}
			err = afterTrouble(ctxError(ctx), err)
		}
		return nil, &WaitError{MeetingID: m.ID, Meeting: m, Err: err}
	}
}

// WaitAll waits for many meetings, as [MeetingsService.Wait] does for one, and
// yields each once, as it ends: the meeting where it came to
// WaitOptions.Until, else the error, which names it (*MeetingFailedError or
// *WaitError, with the meeting where one was seen). An id that comes again while
// ids are being read is yielded once all the same. One meeting's failure does
// not end the others' wait. When ctx ends, one *WaitError is yielded, and the
// sequence stops.
//
// ids is read on the goroutine that runs the loop, as fast as it gives: while it
// blocks, nothing is yielded and ctx is not looked at. For ids that come one at
// a time, call Wait in a goroutine for each, which costs no more requests. A
// key that is refused is refused for every meeting: leave the loop. What is held
// is what still waits, about 200 bytes each. For that, in a WaitError of a wait
// among more than a thousand, the meeting as last seen has only ID and Status.
func (s *MeetingsService) WaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Meeting, error] {
	return func(yield func(*Meeting, error) bool) {
		o, err := opts.orDefault()
		switch {
		case err != nil:
		case ctx == nil:
			err = &ParamError{"ctx", "must not be nil"}
		case ids == nil:
			err = &ParamError{"ids", "must not be nil"}
		}
		if err != nil {
			yield(nil, err)
			return
		}
		s.core().poller.waitAll(ctx, ids, o, yield)
	}
}
