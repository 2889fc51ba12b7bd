package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// WaitOptions tune a wait; the zero value, or nil, is fine.
type WaitOptions struct {
	// Until is the state of the happy path to wait for: at it, or past it, the
	// wait ends. Empty means StatusMinutesReady. WaitForMinutes and
	// WaitAllForMinutes ignore it.
	Until Status
	// Interval is the least time between two GETs of the meeting by waits. The
	// floor of thirty seconds, or what the service's Cache-Control asks beyond that,
	// holds in any case. What a page of the listing shows earlier is told earlier.
	Interval time.Duration
	// LookedAt is when another process last looked at the meeting, such as this one
	// before a restart: the first look waits for what is left of the floor. If it is
	// not known, use the start of this process. The zero time, one in the future and
	// one longer ago mean nothing.
	LookedAt time.Time
	// NoAudio ends the wait with ErrNoAudio, in a *WaitError, at the first look
	// that finds the meeting without audio so long after its creation
	// (Meeting.CreatedAt, compared with this machine's clock). 0 waits on.
	NoAudio time.Duration
	// OnStatus is called after the first look and at each change of status, on
	// the goroutine that waits.
	OnStatus func(*Meeting)
	// Format is the form of the minutes that WaitForMinutes and
	// WaitAllForMinutes fetch; empty is the service's default, HTML.
	Format Format
}

// ErrNoAudio ends a wait as [WaitOptions].NoAudio says, and a [MeetingsService.Finish]
// that has nothing to upload to a meeting without audio. It is this package's own, not
// the service's.
var ErrNoAudio = errors.New("minutes: the meeting has no audio")

// fill sets defaults and checks the options.
func (o *WaitOptions) fill() error {
	o.Until = cmp.Or(o.Until, StatusMinutesReady)
	o.Interval = min(o.Interval, 1e5*time.Hour) // so that adding it to a time never overflows
	return cmp.Or(
		checkThat("opts.Until", o.Until.rank() > 0, "is not a state of the happy path"),
		checkThat("opts.Interval", o.Interval >= 0, "must not be negative"),
		checkThat("opts.NoAudio", o.NoAudio >= 0, "must not be negative"),
		checkThat("opts.Format", utf8.ValidString(string(o.Format)), notUTF8),
	)
}

// Wait follows a meeting until its minutes are ready, or until WaitOptions.Until. It
// looks at once and then never sooner than thirty seconds after this Client last saw
// the meeting by itself, which is what the service asks for (section 6). Lost
// connections and faults of the service are waited out, a turn for each; twenty in a
// row, nine minutes and more, end the wait. During an outage one failed look counts
// for every wait. A 429 slows all of the Client's waits down, and ends none. A wait
// has no time limit but ctx and WaitOptions.NoAudio.
//
// A look is whatever this Client sees of a single meeting: a wait's GET, the reply of
// Get, Create, Update and FindByExternalID, the check after an upload whose reply was
// lost. A wait that begins within thirty seconds of one is served from what was seen.
// After an upload, or a request for an upload URL, the next look is made at once.
//
// All waits of a Client share one poller, which reads pages of the listing if they
// show many meetings that are waited for, and single meetings otherwise: thousands of
// waits cost few requests. A page read for others may show a meeting soon after its
// GET; the interface asks the thirty seconds of the single meeting only. Both need the
// scope meetings:read. If very many waits begin at once, first looks are spread over
// a turn, thirty seconds or longer if it takes more than some three hundred requests.
//
// Errors: *MeetingFailedError, with the meeting, if it ended in a failure state;
// *WaitError, with the meeting as last seen, for every other end: ctx, ErrNotFound (the
// meeting is gone), a refused key (ErrUnauthenticated and the codes of 403), ErrNoAudio,
// or twenty failed looks in a row. If ctx ends while looks fail, or are held back,
// the *Error of the last one is found in it, too. *ParamError for an id or an option
// that cannot be used.
func (s *MeetingsService) Wait(ctx context.Context, id string, opts *WaitOptions) (*Meeting, error) {
	w, err := opts.waiter(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.core().wait(ctx, id, w)
}

// waiter checks what Wait was given and returns the waiter for it.
//
//go:noinline
func (o *WaitOptions) waiter(ctx context.Context, id string) (*waiter, error) {
	w, err := newWaiter(o)
	err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkID("id", id))
	if err == nil && ctx.Err() != nil {
		err = &WaitError{MeetingID: id, Err: backoff.ContextError(ctx)}
	}
	return w, err
}

// WaitForMinutes waits as [MeetingsService.Wait] does until the minutes are
// ready and fetches them, in WaitOptions.Format. Minutes that are not there yet
// although the status says so are waited for, a turn at a time, and so is a 429;
// a service that fails to serve them is asked up to twenty times, each with the
// repeats of any other call. It needs the scopes meetings:read and minutes:read.
//
// Errors: those of Wait; those of [MeetingsService.Minutes], in a *WaitError.
func (s *MeetingsService) WaitForMinutes(ctx context.Context, id string, opts *WaitOptions) (*Minutes, error) {
	w, err := opts.forMinutes().waiter(ctx, id)
	if err != nil {
		return nil, err
	}
	m, err := s.core().wait(ctx, id, w) // by way of Wait, the stack would be larger
	if err != nil {
		return nil, err
	}
	return s.finishedMinutes(ctx, m, w.Format)
}

// forMinutes returns a copy of the options, with Until set to StatusMinutesReady.
//
//go:noinline
func (o *WaitOptions) forMinutes() *WaitOptions {
	opts := *cmp.Or(o, new(WaitOptions))
	opts.Until = StatusMinutesReady
	return &opts
}

// finishedMinutes fetches the minutes when the meeting's status says that they are
// ready. It is kept out of its caller so that a goroutine that waits needs less stack.
//
//go:noinline
func (s *MeetingsService) finishedMinutes(ctx context.Context, m *Meeting, format Format) (*Minutes, error) {
	return fetchReady(ctx, m, func(ctx context.Context, id string) (*Minutes, error) { return s.Minutes(ctx, id, format) })
}

// fetchReady fetches what is ready by the meeting's status, if need be again and again.
func fetchReady[T any](ctx context.Context, m *Meeting, fetch func(ctx context.Context, id string) (T, error)) (T, error) {
	const maxFailed = 20
	failed, since := 0, time.Now()
	for {
		out, err := fetch(ctx, m.ID)
		if err == nil {
			return out, nil
		}
		failure := failureOf(err)
		failed++
		notYet := failure.RateLimited || errors.Is(err, ErrMinutesNotReady) || errors.Is(err, ErrTranscriptNotReady)
		if notYet {
			failed, since = 0, time.Now()
		}
		if notYet || failure.Transient && failed < maxFailed {
			if backoff.Sleep(ctx, max(30*time.Second, failure.RetryAfter)) == nil {
				continue
			}
			err = endOf(ctx, err)
		} else if failure.Transient {
			err = fmt.Errorf("%d requests in a row failed, over %v: %w", failed, time.Since(since).Round(time.Second), err)
		}
		return out, &WaitError{MeetingID: m.ID, Meeting: m, Err: err}
	}
}

// waiter is one Wait, or one WaitAll for many meetings; see poll.Waiter. There may be
// many, so it is kept small.
type waiter struct {
	WaitOptions
	after time.Duration // a look sent at or after this time ends the wait; 0: not used
	ready chan struct{} // holds a token when there are events

	mu     sync.Mutex
	events []event
}

// event is news of a meeting for a waiter.
type event struct {
	meeting *Meeting
	err     error
	over    bool // this meeting's wait is over
}

func newWaiter(o *WaitOptions) (*waiter, error) {
	w := &waiter{WaitOptions: *cmp.Or(o, new(WaitOptions)), ready: make(chan struct{}, 1)}
	return w, w.fill()
}

// Interval implements poll.Waiter.
func (w *waiter) Interval() time.Duration { return w.WaitOptions.Interval }

// See implements poll.Waiter.
func (w *waiter) See(s poll.Sighting, changed bool, sentAt time.Duration) (over bool) {
	m := s.Value.(seenMeeting).Meeting
	noAudio := w.NoAudio > 0 && m.Status == StatusCreated && time.Since(m.CreatedAt.Time()) >= w.NoAudio
	arrived := m.Status.rank() >= w.Until.rank() || w.after != 0 && sentAt >= w.after
	over = arrived || noAudio || m.Status.Failed()
	if !over && (!changed || w.OnStatus == nil) {
		return false
	}
	e := event{meeting: m.clone(), over: over}
	switch {
	case m.Status.Failed():
		e.err = &MeetingFailedError{Status: m.Status, Meeting: e.meeting}
	case noAudio && !arrived:
		e.err = &WaitError{MeetingID: m.ID, Meeting: e.meeting, Err: ErrNoAudio}
	}
	w.hear(e)
	return over
}

// Fail implements poll.Waiter.
func (w *waiter) Fail(last poll.Sighting, err error) {
	w.hear(event{err: &WaitError{MeetingID: last.ID, Meeting: meetingOf(last), Err: err}, over: true})
}

// hear adds an event. It never blocks; events queue up.
func (w *waiter) hear(e event) {
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// listen takes the events, calls OnStatus, and returns the events that end a wait. In
// an event with an error it sets the meeting to nil.
//
//go:noinline
func (w *waiter) listen() (over []event) {
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
//
// Ten thousand goroutines may block here, so their stacks are kept small: a stack that
// has grown beyond its first two kilobytes stays at four. What needs more stack is done
// in functions that return before wait blocks.
func (c *core) wait(ctx context.Context, id string, w *waiter) (*Meeting, error) {
	c.poller.Join(w, id, w.LookedAt)
	defer c.poller.Leave(w, id) // even if OnStatus panics or ends its goroutine, as a test's FailNow does
	for done := false; ; {
		select {
		case <-w.ready:
		case <-ctx.Done(): // take what has arrived, then leave
			done = true
		}
		if over := w.listen(); over != nil {
			return over[0].meeting, over[0].err
		}
		if done {
			return nil, c.leave(ctx, w, id)
		}
	}
}

// leave ends a wait whose ctx is done.
func (c *core) leave(ctx context.Context, w *waiter, id string) error {
	last, trouble := c.poller.Leave(w, id)
	return &WaitError{MeetingID: id, Meeting: meetingOf(last), Err: endOf(ctx, trouble)}
}

// endOf returns the error of a context that is done, joined with trouble, if any.
func endOf(ctx context.Context, trouble error) error {
	end := backoff.ContextError(ctx)
	if trouble == nil {
		return end
	}
	return fmt.Errorf("%w; before that: %w", end, trouble)
}

// hasAudio reports whether a meeting has audio: every status but created says so, a
// failure too. It waits for the poller's next look, so none is made within the floor.
func (c *core) hasAudio(ctx context.Context, id string) (bool, error) {
	w, _ := newWaiter(&WaitOptions{Until: StatusAudioUploaded})
	w.after = c.poller.Now()
	m, err := c.wait(ctx, id, w)
	switch err := err.(type) {
	case *WaitError:
		return false, err.Err
	case *MeetingFailedError:
		return true, nil
	}
	return err == nil && m.Status != StatusCreated, err
}

// polled implements poll.Service here and poll.Observer in observe.go.
type polled struct{ core *core }

// seenMeeting is a meeting as the poller keeps it. It implements poll.Value.
type seenMeeting struct{ *Meeting }

// Copy implements poll.Value. It overwrites reuse, if that is a meeting.
func (m seenMeeting) Copy(reuse poll.Value) poll.Value {
	if old, ok := reuse.(seenMeeting); ok {
		m.copyTo(old.Meeting)
		return old
	}
	return seenMeeting{m.clone()}
}

func sightingOf(m *Meeting) poll.Sighting {
	return poll.Sighting{ID: m.ID, State: string(m.Status.intern()), Final: m.Status.Final(), Value: seenMeeting{m}}
}

// meetingOf returns a copy of what was kept of the meeting as last seen, or nil.
func meetingOf(s poll.Sighting) *Meeting {
	switch m, whole := s.Value.(seenMeeting); {
	case whole:
		return m.clone()
	case s.State != "":
		return &Meeting{ID: s.ID, Status: Status(s.State)}
	}
	return nil
}

// Look makes one GET of a meeting. It returns also the max-age of its Cache-Control.
func (p polled) Look(ctx context.Context, id string, wanted func() bool) (poll.Sighting, time.Duration, *poll.Failure) {
	m, resp, err := doResponse[Meeting](ctx, p.core, rest.Request{Operation: route.MeetingsGet, ID: id, Once: true, Wanted: wanted})
	if err != nil {
		return poll.Sighting{}, 0, failureOf(err)
	}
	seconds := uint64(0)
	if found := maxAge.FindStringSubmatch(resp.Header.Get("Cache-Control")); found != nil {
		seconds, _ = strconv.ParseUint(found[1], 10, 31) // out of range, it is the largest number
	}
	return sightingOf(m), time.Duration(seconds) * time.Second, nil
}

var maxAge = regexp.MustCompile(`(?i)(?:^|,)\s*max-age\s*=\s*"?([0-9]+)`)

// Page makes one GET of a page of the listing.
func (p polled) Page(ctx context.Context, cursor string) ([]poll.Sighting, string, *poll.Failure) {
	params := &MeetingListParams{Limit: maxLimit, Cursor: cursor}
	page, err := do[MeetingPage](ctx, p.core, rest.Request{Operation: route.MeetingsList, Query: params, Once: true})
	if err != nil {
		return nil, "", failureOf(err)
	}
	seen := make([]poll.Sighting, len(page.Meetings))
	for i, m := range page.Meetings {
		seen[i] = sightingOf(m)
	}
	return seen, page.NextCursor, nil
}

// failureOf says what a failed request means to a wait. Transient are: no reply at all,
// a reply that makes no sense, a fault of the service or of something in front of it.
// A failure that is neither Transient nor RateLimited ends the wait (see poll.Poller.look).
func failureOf(err error) *poll.Failure {
	f := &poll.Failure{Err: err, RateLimited: errors.Is(err, ErrRateLimited)}
	if e, ok := errors.AsType[*Error](err); ok {
		f.RetryAfter = min(e.RetryAfter, 5*time.Minute)
		permanent := KeyRefused(err) || backoff.Untrusted(err)
		f.Transient = !permanent && (e.Code == "" && e.StatusCode != http.StatusForbidden || Retryable(err))
	}
	return f
}
