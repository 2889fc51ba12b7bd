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

// WaitOptions tune a wait. Zero fields, and nil, mean the defaults.
type WaitOptions struct {
	// Until is the state to wait for (default StatusMinutesReady). A later state on the happy path
	// also ends the wait. WaitForMinutes ignores Until.
	Until Status
	// AudioTimeout limits how long a meeting may stay without audio, counted from
	// Meeting.CreatedAt by this machine's clock. If the first poll after that time shows no audio,
	// the wait ends with ErrNoAudio. 0 means no limit.
	AudioTimeout time.Duration
	// OnStatus is called with the first status that the wait finds, and with each change that a
	// response shows. Wait calls OnStatus on the caller's goroutine, and WaitAll on the goroutine
	// of the loop.
	OnStatus func(*Meeting)
	// Format is the format of the minutes that WaitForMinutes and WaitAll fetch. If Format is empty,
	// the service chooses HTML.
	Format Format
	// Transcript makes WaitAll fetch the transcript as well, if Until is StatusMinutesReady.
	Transcript bool
}

// ErrNoAudio means that a wait ended because the meeting has no audio. ErrNoAudio is not a code of
// the service.
var ErrNoAudio = errors.New("minutes: the meeting has no audio")

// Wait waits until a meeting reaches minutes_ready, or the state WaitOptions.Until, and returns
// the meeting. The key needs the scope meetings:read.
//
//   - The Client polls a meeting at most once in thirty seconds (section 6), except after an upload.
//     If the service asks for a longer time with Cache-Control, the Client waits longer, up to five
//     minutes.
//   - If a response has shown the meeting in the last thirty seconds, the wait begins with that
//     response. Otherwise the wait begins with a poll.
//   - If many meetings are awaited, the Client reads pages of the listing instead of polling each.
//   - A wait has no time limit of its own: use a deadline of ctx.
//
// See docs/polling.md for details.
//
// Errors:
//   - *[MeetingFailedError]: the meeting reached a failure state.
//   - *[WaitError] with the error of ctx. If polls were failing when ctx ended, the *WaitError
//     also wraps the last *[Error].
//   - *[WaitError] with [ErrNotFound] or [ErrNoAudio].
//   - *[WaitError] with an *[Error]: the service rejected the key or the request.
//   - *[WaitError] with the last error: twenty polls in a row failed, over at least nine minutes.
//   - *[ParamError]: id or an option is invalid.
func (s *MeetingsService) Wait(ctx context.Context, id string, opts *WaitOptions) (*Meeting, error) {
	w, err := newWaiter(opts)
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkID("id", id)); err != nil {
		return nil, err
	}
	return s.core().wait(ctx, id, w)
}

// WaitForMinutes waits until the minutes are ready, like [MeetingsService.Wait], and returns the
// minutes in WaitOptions.Format. The key needs the scopes meetings:read and minutes:read.
//
// If the request for the minutes fails for a temporary reason, WaitForMinutes repeats the request
// after thirty seconds. See docs/errors.md for the limits.
//
// Errors: those of Wait, and those of [MeetingsService.Minutes] in a *WaitError.
func (s *MeetingsService) WaitForMinutes(ctx context.Context, id string, opts *WaitOptions) (*Minutes, error) {
	o := *cmp.Or(opts, new(WaitOptions))
	o.Until = StatusMinutesReady
	m, err := s.Wait(ctx, id, &o)
	if err != nil {
		return nil, err
	}
	r := &Result{Meeting: m}
	err = s.fetchResult(ctx, r, o.Format, false)
	return r.Minutes, err
}

// fetchResult fetches the minutes of r.Meeting, and the transcript if transcript is true.
func (s *MeetingsService) fetchResult(ctx context.Context, r *Result, format Format, transcript bool) (err error) {
	r.Minutes, err = fetchReady(ctx, r.Meeting, func(ctx context.Context, id string) (*Minutes, error) { return s.Minutes(ctx, id, format) })
	if err == nil && transcript {
		r.Transcript, err = fetchReady(ctx, r.Meeting, s.Transcript)
	}
	return err
}

// fetchReady calls fetch until the minutes or the transcript are ready.
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
	after   time.Duration // a poll sent at or after this time ends the wait; 0: none does
	audioBy time.Time     // the wait ends with ErrNoAudio at this time; zero: never
	relaxed bool          // old meetings without audio are polled less often
	ready   chan struct{} // contains a token while there are events

	mu     sync.Mutex
	events []event
}

// event is news of a meeting for a waiter.
type event struct {
	id      string
	meeting *Meeting // for OnStatus, and the result of the wait if err is nil
	err     error
	changed bool // OnStatus has not been called with this status
	over    bool // this meeting's wait is over
}

// newWaiter sets the defaults of o and checks o.
func newWaiter(o *WaitOptions) (*waiter, error) {
	w := &waiter{WaitOptions: *cmp.Or(o, new(WaitOptions)), ready: make(chan struct{}, 1)}
	w.Until = cmp.Or(w.Until, StatusMinutesReady)
	return w, cmp.Or(
		checkThat("opts.Until", w.Until.rank() > 0, "is not a state of the happy path"),
		checkThat("opts.AudioTimeout", w.AudioTimeout >= 0, "must not be negative"),
		checkThat("opts.Format", utf8.ValidString(string(w.Format)), notUTF8),
	)
}

// Interval implements poll.Waiter.
func (w *waiter) Interval(last poll.Snapshot) time.Duration {
	if w.relaxed && last.State == string(StatusCreated) {
		return time.Since(time.Unix(last.Created, 0)) / 30
	}
	return 0
}

// Notify implements poll.Waiter.
func (w *waiter) Notify(s poll.Snapshot, changed bool, sentAt time.Duration) (over, confirm bool) {
	m := s.Value.(*Meeting)
	checked := w.after != 0 && sentAt >= w.after
	late := w.AudioTimeout > 0 && time.Since(m.CreatedAt.Time()) >= w.AudioTimeout ||
		!w.audioBy.IsZero() && !time.Now().Before(w.audioBy)
	noAudio := late && m.Status == StatusCreated
	if s.Page && m.Status == StatusCreated { // a page may be old, so only a poll proves that there is no audio
		confirm = checked || noAudio
		checked, noAudio = false, false
	}
	arrived := m.Status.rank() >= w.Until.rank() || checked
	over = arrived || noAudio || m.Status.Failed()
	if !over && (!changed || w.OnStatus == nil) {
		return false, confirm
	}
	e := event{id: m.ID, meeting: m.clone(), changed: changed, over: over}
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
	w.enqueue(event{id: id, err: &WaitError{MeetingID: id, Meeting: meetingOf(last), Err: err}, over: true})
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
		if w.OnStatus != nil && e.changed {
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
	defer c.poller.Leave(w, id) // even if OnStatus panics or ends the goroutine
	for {
		select {
		case <-w.ready:
		case <-ctx.Done(): // if the wait is already over, the first event has the result
			last, trouble := c.poller.Leave(w, id)
			w.Fail(id, last, endOf(ctx, trouble))
		}
		if over := w.dispatch(); over != nil {
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
