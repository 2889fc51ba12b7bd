package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/poll"
)

// WaitOptions tune a wait; the zero value, or nil, is fine.
type WaitOptions struct {
	// Until is the state to wait for. A later one in the normal order ends the wait, too.
	// Empty means StatusMinutesReady. WaitForMinutes and WaitAllForMinutes ignore it.
	Until Status
	// Interval is the shortest time between two polls of the meeting. It cannot be shorter
	// than thirty seconds, or than the service's Cache-Control says. A page of the listing
	// may show a change earlier.
	Interval time.Duration
	// AudioTimeout ends the wait with ErrNoAudio, in a *WaitError, at the first GET that
	// finds the meeting without audio this long after its creation (Meeting.CreatedAt,
	// compared with this machine's clock). 0 means no limit.
	AudioTimeout time.Duration
	// OnStatus is called after the first poll and for each change of status that a poll
	// finds, on the goroutine that waits. For WaitAll that is the goroutine of the loop,
	// between two iterations.
	OnStatus func(*Meeting)
	// Format is the form of the minutes that WaitForMinutes and WaitAllForMinutes fetch.
	// Empty is the service's default, HTML.
	Format Format
}

// ErrNoAudio ends a wait as [WaitOptions].AudioTimeout says, and a [MeetingsService.Resume]
// without a recording for a meeting without audio. This package defines it, not the
// service.
var ErrNoAudio = errors.New("minutes: the meeting has no audio")

// fill sets defaults and checks the options.
func (o *WaitOptions) fill() error {
	o.Until = cmp.Or(o.Until, StatusMinutesReady)
	o.Interval = min(o.Interval, 1e5*time.Hour) // so that adding it to a time never overflows
	return cmp.Or(
		checkThat("opts.Until", o.Until.rank() > 0, "is not a state of the happy path"),
		checkThat("opts.Interval", o.Interval >= 0, "must not be negative"),
		checkThat("opts.AudioTimeout", o.AudioTimeout >= 0, "must not be negative"),
		checkThat("opts.Format", utf8.ValidString(string(o.Format)), notUTF8),
	)
}

// Wait waits until the minutes of a meeting are ready, or until WaitOptions.Until.
//
// It polls at once, and then at least thirty seconds after this Client last saw the single
// meeting, as the service asks (section 6). If very many waits begin at once, the Client
// spreads their first polls, over thirty seconds for about three hundred requests.
//
//   - Every response about a single meeting counts as a poll: to a wait's GET, to Get, Create,
//     Update and FindByExternalID, and to the check after an upload whose response was lost.
//     A wait that begins within thirty seconds of one uses its result.
//   - After an upload, or a request for an upload URL, the next poll is immediate.
//   - All waits of a Client share one poller. It reads pages of the listing if they show many
//     awaited meetings: thousands of waits cost few requests. A page may show a meeting soon
//     after its GET, or the reverse.
//   - The wait goes on after most failures: see Errors. During an outage one failed poll
//     counts for every wait. A 429 slows all waits down and ends none.
//   - The only time limits are ctx and WaitOptions.AudioTimeout.
//
// It needs the scope meetings:read.
//
// Errors: *MeetingFailedError, with the meeting, if it ended in a failure state;
// *WaitError, with the meeting as last seen, for every other end: ctx, ErrNotFound (the
// meeting is gone), a rejected key (ErrUnauthenticated and the codes of 403), ErrNoAudio,
// or twenty failed polls in a row, over nine minutes or more. If ctx ends while polls fail or
// are held back, it also contains the last *Error. *ParamError for an invalid id or option.
func (s *MeetingsService) Wait(ctx context.Context, id string, opts *WaitOptions) (*Meeting, error) {
	w, err := newWaiter(opts)
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkID("id", id)); err != nil {
		return nil, err
	}
	return s.core().wait(ctx, id, w)
}

// WaitForMinutes waits as [MeetingsService.Wait] does until the minutes are ready and
// fetches them, in WaitOptions.Format. If the service answers "not ready" all the same, or
// 429, it asks again every thirty seconds. If requests fail, it makes up to twenty, each
// with the retries of any other call. It needs the scopes meetings:read and minutes:read.
//
// Errors: those of Wait; those of [MeetingsService.Minutes], in a *WaitError.
func (s *MeetingsService) WaitForMinutes(ctx context.Context, id string, opts *WaitOptions) (*Minutes, error) {
	o := *cmp.Or(opts, new(WaitOptions))
	o.Until = StatusMinutesReady
	m, err := s.Wait(ctx, id, &o)
	if err != nil {
		return nil, err
	}
	return s.fetchMinutes(ctx, m, o.Format)
}

// fetchMinutes fetches minutes that are ready by the meeting's status.
func (s *MeetingsService) fetchMinutes(ctx context.Context, m *Meeting, format Format) (*Minutes, error) {
	return fetchReady(ctx, m, func(ctx context.Context, id string) (*Minutes, error) { return s.Minutes(ctx, id, format) })
}

// fetchReady fetches what should be ready by the meeting's status, and retries if it is not.
func fetchReady[T any](ctx context.Context, m *Meeting, fetch func(ctx context.Context, id string) (T, error)) (T, error) {
	const maxFailed = 20
	for failed := 1; ; failed++ {
		out, err := fetch(ctx, m.ID)
		if err == nil {
			return out, nil
		}
		failure := failureOf(err)
		if failure.RateLimited || errors.Is(err, ErrMinutesNotReady) || errors.Is(err, ErrTranscriptNotReady) {
			failed = 0
		} else if failed == maxFailed || !failure.Transient {
			if failure.Transient {
				err = fmt.Errorf("%d requests in a row failed: %w", failed, err)
			}
			return out, &WaitError{MeetingID: m.ID, Meeting: m, Err: err}
		}
		if backoff.Sleep(ctx, max(30*time.Second, failure.RetryAfter)) != nil {
			return out, &WaitError{MeetingID: m.ID, Meeting: m, Err: endOf(ctx, err)}
		}
	}
}

// waiter is one Wait, or one WaitAll for many meetings; see poll.Waiter.
type waiter struct {
	WaitOptions
	after   time.Duration // a poll sent at or after this time ends the wait; 0: not used
	audioBy time.Time     // as AudioTimeout, but a time; zero: not used
	ready   chan struct{} // holds a token when there are events

	mu     sync.Mutex
	events []event
}

// event is news of a meeting for a waiter.
type event struct {
	meeting *Meeting // for OnStatus, and the result of the wait if err is nil
	err     error
	over    bool // this meeting's wait is over
}

func newWaiter(o *WaitOptions) (*waiter, error) {
	w := &waiter{WaitOptions: *cmp.Or(o, new(WaitOptions)), ready: make(chan struct{}, 1)}
	return w, w.fill()
}

// Interval implements poll.Waiter.
func (w *waiter) Interval(poll.Snapshot) time.Duration { return w.WaitOptions.Interval }

// Notify implements poll.Waiter.
func (w *waiter) Notify(s poll.Snapshot, changed bool, sentAt time.Duration) (over, confirm bool) {
	m := s.Value.(*Meeting)
	checked := w.after != 0 && sentAt >= w.after
	late := w.AudioTimeout > 0 && time.Since(m.CreatedAt.Time()) >= w.AudioTimeout ||
		!w.audioBy.IsZero() && !time.Now().Before(w.audioBy)
	noAudio := late && m.Status == StatusCreated
	if s.Page && m.Status == StatusCreated { // which may be too old to prove that there is no audio
		confirm = checked || noAudio
		checked, noAudio = false, false
	}
	arrived := m.Status.rank() >= w.Until.rank() || checked
	over = arrived || noAudio || m.Status.Failed()
	if !over && (!changed || w.OnStatus == nil) {
		return false, confirm
	}
	e := event{meeting: m.clone(), over: over}
	switch {
	case m.Status.Failed():
		e.err = &MeetingFailedError{Status: m.Status, Meeting: e.meeting}
	case noAudio && !arrived:
		e.err = &WaitError{MeetingID: m.ID, Meeting: e.meeting, Err: ErrNoAudio}
	}
	w.enqueue(e)
	return over, confirm
}

// Fail implements poll.Waiter.
func (w *waiter) Fail(id string, last poll.Snapshot, err error) {
	w.enqueue(event{err: &WaitError{MeetingID: id, Meeting: meetingOf(last), Err: err}, over: true})
}

// enqueue adds an event. It never blocks.
func (w *waiter) enqueue(e event) {
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// dispatch takes the events, calls OnStatus, and returns the events that end a wait.
func (w *waiter) dispatch() (over []event) {
	w.mu.Lock()
	events := w.events
	w.events = nil
	w.mu.Unlock()
	for _, e := range events {
		if w.OnStatus != nil && e.meeting != nil {
			w.OnStatus(e.meeting)
		}
		if e.err != nil {
			e.meeting = nil
		}
		if e.over {
			over = append(over, e)
		}
	}
	return over
}

// wait blocks until the wait for the meeting is over, or ctx is done.
func (c *core) wait(ctx context.Context, id string, w *waiter) (*Meeting, error) {
	if ctx.Err() != nil {
		return nil, &WaitError{MeetingID: id, Err: backoff.ContextError(ctx)}
	}
	c.poller.Join(w, id)
	defer c.poller.Leave(w, id) // even if OnStatus panics or ends its goroutine
	for {
		select {
		case <-w.ready:
		case <-ctx.Done(): // if the wait is over already, the first event says so
			last, trouble := c.poller.Leave(w, id)
			w.Fail(id, last, endOf(ctx, trouble))
		}
		if over := w.dispatch(); over != nil {
			c.waitOver(ctx, over[0])
			return over[0].meeting, over[0].err
		}
	}
}

// endOf returns the error of a context that is done, joined with trouble, if any.
func endOf(ctx context.Context, trouble error) error {
	end := backoff.ContextError(ctx)
	if trouble == nil {
		return end
	}
	return fmt.Errorf("%w; before that: %w", end, trouble)
}
