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
	"github.com/meeting-minutes/minutes-go/internal/roundtrip"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// WaitOptions tune a wait; the zero value, or nil, is fine.
type WaitOptions struct {
	// Until is the state of the happy path to wait for: at it, or past it, the
	// wait is over. Empty means StatusMinutesReady. WaitForMinutes and
	// WaitAllForMinutes ignore it.
	Until Status
	// Interval is the least time between two GETs of the meeting by waits. The
	// floor of thirty seconds, or what the service's Cache-Control asks beyond that,
	// holds in any case. What a page of the listing shows earlier is told earlier.
	Interval time.Duration
	// LookedAt is when another process last looked at the meeting, such as this one
	// before a restart: the first look waits for what is left of the floor. Where that
	// is not known, the time at which this process began does, which is later. The
	// zero time, one in the future and one longer ago mean nothing.
	LookedAt time.Time
	// NoAudio ends the wait with ErrNoAudio, in a *WaitError, at the first look
	// that finds the meeting without audio so long after its creation
	// (Meeting.CreatedAt, compared with this machine's clock). 0 waits on.
	NoAudio time.Duration
	// OnStatus is told of the first look and of each change of status. It runs
	// on the goroutine that waits.
	OnStatus func(*Meeting)
	// Format is the form of the minutes that WaitForMinutes and
	// WaitAllForMinutes fetch; empty is the service's default, HTML.
	Format Format
}

// ErrNoAudio ends a wait as [WaitOptions].NoAudio says, and a [MeetingsService.Finish]
// that has nothing to upload to a meeting without audio. It is this package's own, not
// the service's.
var ErrNoAudio = errors.New("minutes: the meeting has no audio")

// fill checks the options, and puts defaults into their places.
func (o *WaitOptions) fill() error {
	o.Until = cmp.Or(o.Until, StatusMinutesReady)
	o.Interval = min(o.Interval, 1e5*time.Hour) // no time that it is added to overflows
	return cmp.Or(
		checkThat("opts.Until", o.Until.rank() > 0, "is not a state of the happy path"),
		checkThat("opts.Interval", o.Interval >= 0, "must not be negative"),
		checkThat("opts.NoAudio", o.NoAudio >= 0, "must not be negative"),
		checkThat("opts.Format", utf8.ValidString(string(o.Format)), noUTF8),
	)
}

// Wait follows a meeting until its minutes are ready, or until WaitOptions.Until. It
// looks at once and then never sooner than thirty seconds after this Client last saw
// the meeting by itself, which is what the service asks for (section 6). Lost
// connections and faults of the service are waited out, a turn for each; twenty in a
// row, nine minutes and more, end the wait. A service that is out fails everybody's
// looks with one. A 429 slows all of the Client's waits down, and ends none. A wait
// has no time limit but ctx and WaitOptions.NoAudio.
//
// A look is whatever this Client sees of a single meeting: a wait's GET, the reply of
// Get, Create, Update and FindByExternalID, the check after an upload whose reply was
// lost. A wait that begins within thirty seconds of one is served from what was seen.
// After an upload, or a request for an upload URL, the next look is made at once.
//
// All waits of a Client share one poller, which reads pages of the listing where they
// show many meetings that are waited for, and single meetings elsewhere: thousands of
// waits cost few requests. A page read for others may show a meeting soon after its
// GET; the interface asks the thirty seconds of the single meeting only. Both need the
// scope meetings:read. Where very many waits begin at once, first looks are spread over
// a turn, thirty seconds or longer where it takes more than some three hundred requests.
//
// Errors: *MeetingFailedError, with the meeting, where it ended in a failure state;
// *WaitError, with the meeting as last seen, for every other end: ctx, ErrNotFound (the
// meeting is gone), a refused key (ErrUnauthenticated and the codes of 403), ErrNoAudio,
// or twenty failed looks in a row. Where ctx ends while looks fail, or are held back,
// the *Error of the last one is found in it, too. *ParamError for an id or an option
// that cannot be used.
func (s *MeetingsService) Wait(ctx context.Context, id string, opts *WaitOptions) (*Meeting, error) {
	w, err := opts.waiter(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.core().wait(ctx, id, w)
}

// waiter is what waits for one meeting, as the options say.
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

// forMinutes is a copy of the options, with which a wait ends when the minutes are
// ready.
//
//go:noinline
func (o *WaitOptions) forMinutes() *WaitOptions {
	opts := *cmp.Or(o, new(WaitOptions))
	opts.Until = StatusMinutesReady
	return &opts
}

// finishedMinutes fetches the minutes that a meeting's status says are there. It is
// no part of its caller, so that a goroutine that waits has a small stack.
//
//go:noinline
func (s *MeetingsService) finishedMinutes(ctx context.Context, m *Meeting, format Format) (*Minutes, error) {
	return fetchReady(ctx, m, func(ctx context.Context, id string) (*Minutes, error) { return s.Minutes(ctx, id, format) })
}

// fetchReady fetches what the meeting's status says is there.
func fetchReady[T any](ctx context.Context, m *Meeting, fetch func(ctx context.Context, id string) (T, error)) (T, error) {
	const maxFailed = 20
	for failed, since := 1, time.Now(); ; failed++ {
		out, err := fetch(ctx, m.ID)
		if err == nil {
			return out, nil
		}
		failure := failureOf(err)
		if failure.RateLimited || errors.Is(err, ErrMinutesNotReady) || errors.Is(err, ErrTranscriptNotReady) {
			failed, since = 0, time.Now() // refused for now, which is no failure
		}
		switch {
		case failed > 0 && !failure.Transient:
		case failed == maxFailed:
			err = fmt.Errorf("%d requests in a row failed, over %v: %w", failed, time.Since(since).Round(time.Second), err)
		case backoff.Sleep(ctx, max(30*time.Second, failure.RetryAfter)) != nil:
			err = endOf(ctx, err)
		default:
			continue
		}
		return out, &WaitError{MeetingID: m.ID, Meeting: m, Err: err}
	}
}

// waiter is one Wait, or one WaitAll for many meetings; see poll.Waiter. There may be
// many, so it is kept small.
type waiter struct {
	WaitOptions
	after time.Duration // a look that was asked for since then ends the wait, where not 0
	ready chan struct{} // holds one when there are events

	mu     sync.Mutex
	events []event
}

// event is what a waiter hears of a meeting.
type event struct {
	meeting *Meeting
	err     error
	over    bool // this meeting's wait is over
}

func newWaiter(o *WaitOptions) (*waiter, error) {
	w := &waiter{WaitOptions: *cmp.Or(o, new(WaitOptions)), ready: make(chan struct{}, 1)}
	return w, w.fill()
}

// Interval is for the poller.
func (w *waiter) Interval() time.Duration { return w.WaitOptions.Interval }

// See is for the poller.
func (w *waiter) See(s poll.Sighting, changed bool, asked time.Duration) (over bool) {
	m := s.Value.(seenMeeting).Meeting
	noAudio := w.NoAudio > 0 && m.Status == StatusCreated && time.Since(m.CreatedAt.Time()) >= w.NoAudio
	arrived := m.Status.rank() >= w.Until.rank() || w.after != 0 && asked >= w.after
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

// Fail is for the poller.
func (w *waiter) Fail(last poll.Sighting, err error) {
	w.hear(event{err: &WaitError{MeetingID: last.ID, Meeting: meetingOf(last), Err: err}, over: true})
}

// hear never blocks: a waiter that is busy takes several events at once.
func (w *waiter) hear(e event) {
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// listen tells OnStatus what w has to hear, and returns the waits that are over.
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

// wait blocks until the meeting has come to where the options want it.
//
// Ten thousand goroutines may block here, so their stacks are kept small: one that
// grew beyond its first two kilobytes stays at four. What takes room is done in
// functions that return before that.
func (c *core) wait(ctx context.Context, id string, w *waiter) (*Meeting, error) {
	c.poller.Join(w, id, w.LookedAt)
	defer c.poller.Leave(w, id) // also where OnStatus panics, or ends its goroutine, as a test's FailNow does
	for done := false; ; {
		select {
		case <-w.ready:
		case <-ctx.Done(): // what has arrived meanwhile counts all the same
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

// endOf is the end of a context, with what had kept the caller waiting before, if
// anything had.
func endOf(ctx context.Context, trouble error) error {
	end := backoff.ContextError(ctx)
	if trouble == nil {
		return end
	}
	return fmt.Errorf("%w; before that: %w", end, trouble)
}

// hasAudio reports whether a meeting has its audio, after an upload that may have
// put it there. Every status but created says so, a failure too. The answer comes
// from the poller's next look, so that none is made within the floor.
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

// polled is what the poller asks: single meetings and pages of the listing.
type polled struct{ core *core }

// seenMeeting is a meeting as the poller keeps it.
type seenMeeting struct{ *Meeting }

// Copy is for the poller. It reuses the memory of the copy before.
func (m seenMeeting) Copy(over poll.Value) poll.Value {
	if old, ok := over.(seenMeeting); ok {
		m.copyTo(old.Meeting)
		return old
	}
	return seenMeeting{m.clone()}
}

func sightingOf(m *Meeting) poll.Sighting {
	return poll.Sighting{ID: m.ID, State: string(m.Status.intern()), Final: m.Status.Final(), Value: seenMeeting{m}}
}

// meetingOf is a copy of the meeting as last seen, or what is left of it.
func meetingOf(s poll.Sighting) *Meeting {
	switch m, whole := s.Value.(seenMeeting); {
	case whole:
		return m.clone()
	case s.State != "":
		return &Meeting{ID: s.ID, Status: Status(s.State)}
	}
	return nil
}

// Look is a GET of a meeting that is not repeated, and the max-age of its
// Cache-Control.
func (p polled) Look(ctx context.Context, id string, wanted func() bool) (poll.Sighting, time.Duration, *poll.Failure) {
	m, reply, err := doReply[Meeting](ctx, p.core, rest.Request{Operation: route.MeetingsGet, ID: id, Once: true, Wanted: wanted})
	if err != nil {
		return poll.Sighting{}, 0, failureOf(err)
	}
	seconds := uint64(0)
	if found := maxAge.FindStringSubmatch(reply.Header.Get("Cache-Control")); found != nil {
		seconds, _ = strconv.ParseUint(found[1], 10, 31) // beyond the range it is the most there is
	}
	return sightingOf(m), time.Duration(seconds) * time.Second, nil
}

var maxAge = regexp.MustCompile(`(?i)(?:^|,)\s*max-age\s*=\s*"?([0-9]+)`)

// Page reads a page of the listing, once.
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

// failureOf is how a failed request looks to a wait. What may pass is no reply, a
// reply that makes no sense, a fault of the service or of something in front of it.
func failureOf(err error) *poll.Failure {
	f := &poll.Failure{Err: err, RateLimited: errors.Is(err, ErrRateLimited)}
	if e, ok := errors.AsType[*Error](err); ok {
		f.RetryAfter = min(e.RetryAfter, 5*time.Minute)
		lasts := KeyRefused(err) || roundtrip.Untrusted(err)
		f.Transient = !lasts && (e.Code == "" && e.StatusCode != http.StatusForbidden || Retryable(err))
	}
	return f
}
