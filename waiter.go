package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// WaitOptions configures a wait. A nil pointer or a zero field selects the default. A field that
// the call cannot use is a *[ParamError].
type WaitOptions struct {
	// Until is the status to wait for (default StatusMinutesReady). A later status in the normal
	// order also ends the wait, and so does a failure status that only follows Until:
	// StatusMinutesFailed if Until is StatusTranscribed or StatusGeneratingMinutes, and that or
	// StatusTranscriptionFailed if Until is StatusAudioUploaded or StatusTranscribing. WaitForMinutes
	// always waits for StatusMinutesReady.
	Until Status
	// Format is the format of the minutes that WaitForMinutes and WaitAll fetch: FormatHTML (the
	// default) or FormatMarkdown. (For another, call MeetingsService.Minutes.)
	Format Format
	// Transcript makes WaitForMinutes and WaitAll fetch the transcript as well, after the minutes. With
	// WaitAll, Until must be StatusTranscribed or later; with an earlier one than StatusMinutesReady, it
	// fetches only the transcript, even if the minutes have failed meanwhile.
	Transcript bool
	// AudioTimeout limits how long the meeting may stay without audio, counted from
	// Meeting.CreatedAt by this machine's clock. If a poll after that time still shows no audio,
	// the wait ends with ErrNoAudio. 0 means no limit.
	AudioTimeout time.Duration
	// OnStatus is called with the first status that the wait sees, and with each change after that,
	// on the caller's goroutine: WaitAll calls it between two runs of the loop's body.
	OnStatus func(*Meeting)
}

// ErrNoAudio means that the meeting still had no audio when AudioTimeout had passed, or ten minutes
// after an upload by Process, ProcessAll or Resume. Resume also returns it if it has no
// recording for a meeting without audio. The recording can still be uploaded, so [Retryable] is
// true for ErrNoAudio. It is not a code of the service.
var ErrNoAudio = errors.New("minutes: the meeting has no audio")

// Wait waits until a meeting reaches minutes_ready, or WaitOptions.Until, and returns the meeting.
// It needs the scope meetings:read.
//
// Wait has no overall timeout, because a recording may take hours, so set a deadline on ctx. Wait
// goes on through a 429, a 5xx (even from a proxy) and a lost connection, however long they last. It
// also goes on if this package does not know the status, and logs a warning: to end it there, cancel
// ctx in OnStatus.
//
// All waits of a Client share one poller. It polls a meeting at most once in thirty seconds
// ([section 6]), or less often if the service asks for that with Cache-Control. If a response has
// shown the meeting in the last thirty seconds, Wait starts from that instead of polling at once.
// See [docs/polling.md].
//
// Errors:
//   - *[MeetingFailedError]: the meeting reached a failure status.
//   - *[WaitError] with ctx's error, and with the last failure if polls were failing.
//   - *[WaitError] with [ErrNoAudio]; or with an *[Error] if the meeting is gone ([ErrNotFound]),
//     or the service rejected the key or the request.
//   - *[WaitError] with the last failure: an untrusted certificate, a 3xx or 4xx that is not the
//     service's, or a response that does not match the API reference. Such failures only end a wait
//     if nothing else has come for ten minutes.
//   - *[ParamError]: id or an option is invalid, or Format or Transcript is set, because Wait
//     fetches nothing.
//
// [section 6]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#6-waiting
// [docs/polling.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/polling.md
func (s *MeetingsService) Wait(ctx context.Context, id string, opts *WaitOptions) (*Meeting, error) {
	o, err := opts.checked()
	err = cmp.Or(err,
		checkThat("opts.Format", o.Format == "", fetchesNothing),
		checkThat("opts.Transcript", !o.Transcript, fetchesNothing),
		checkGiven("ctx", ctx != nil),
		s.core.checkID("id", id),
	)
	if err != nil {
		return nil, err
	}
	m, err := s.core.waitFor(ctx, id, o.goal())
	if err != nil {
		return nil, err
	}
	return m, nil
}

const fetchesNothing = "is not used, because Wait fetches nothing; call WaitForMinutes"

// WaitForMinutes waits until the minutes are ready, like [MeetingsService.Wait], and fetches them,
// and with WaitOptions.Transcript the transcript. It needs the scopes meetings:read and
// minutes:read. If it fails, the Result holds everything from before the failure.
//
// Errors:
//   - *[ParamError] with a nil Result: id or an option is invalid, or Until is set to any other
//     status than minutes_ready.
//   - The errors of Wait.
//   - Those of [MeetingsService.Minutes] and [MeetingsService.Transcript], in a *[WaitError]. But
//     if the text is not ready, or after a failure that would not end a Wait, WaitForMinutes asks
//     again.
func (s *MeetingsService) WaitForMinutes(ctx context.Context, id string, opts *WaitOptions) (*Result, error) {
	o, err := opts.checked()
	err = cmp.Or(err,
		checkThat("opts.Until", o.fetchesMinutes(),
			"is not used, because WaitForMinutes waits for minutes_ready; call Wait"),
		checkGiven("ctx", ctx != nil),
		s.core.checkID("id", id),
	)
	if err != nil {
		return nil, err
	}
	r := &Result{MeetingID: id}
	return r, s.core.waitAndFetch(ctx, r, o, o.goal(), new(slot)) // without a bound
}

// checked checks the options and returns a copy with defaults.
func (o *WaitOptions) checked() (WaitOptions, error) {
	opts := *cmp.Or(o, new(WaitOptions))
	opts.Until = cmp.Or(opts.Until, StatusMinutesReady)
	known := slices.Contains([]Format{"", FormatHTML, FormatMarkdown}, opts.Format)
	return opts, cmp.Or(
		checkThat("opts.Until", opts.Until.rank() > 0, "is not a status of the normal order"),
		checkThat("opts.Format", known, "is neither html nor markdown"),
		checkThat("opts.Format", opts.fetchesMinutes() || opts.Format == "",
			"is not used, because no minutes are fetched if Until is an earlier status than minutes_ready"),
		checkThat("opts.Transcript", !opts.Transcript || opts.Until.reached(StatusTranscribed),
			"is not used, because there is no transcript if Until is an earlier status than transcribed"),
		checkThat("opts.AudioTimeout", opts.AudioTimeout >= 0, "must not be negative"),
		checkThat("opts.AudioTimeout", opts.AudioTimeout == 0 || opts.Until != StatusCreated,
			"is not used, because a meeting has no audio when it is created"),
	)
}

// fetches reports whether anything is fetched when the wait has ended.
func (o *WaitOptions) fetches() bool { return o.fetchesMinutes() || o.Transcript }

func (o *WaitOptions) fetchesMinutes() bool { return o.Until == StatusMinutesReady }

func (o *WaitOptions) goal() goal {
	return goal{until: o.Until, audioTimeout: o.AudioTimeout, onStatus: o.OnStatus}
}

// WaitAll waits for many meetings, each like [MeetingsService.Wait], and yields a [Result] for each
// when its wait ends, in no particular order. If Until is minutes_ready, WaitAll fetches the
// minutes as well, and with WaitOptions.Transcript it fetches the transcript. It needs the scope meetings:read
// and, for fetches, minutes:read.
//
//   - Result.Err is the error of one meeting, and does not end the other waits. A repeated id is
//     yielded once.
//   - WaitAll ranges over ids on another goroutine, so ids may block, and a panic in it ends the
//     program. The body of the loop must not change what ids reads. For example, do not delete from
//     a map whose keys are the ids; pass slices.Values of a copy. The goroutine ends no later
//     than the loop, unless ids is busy at that moment: then it ends when ids next yields, and the
//     loop does not take that id.
//   - If you leave the loop, the remaining waits end, but the service goes on processing their
//     meetings.
//   - If the body of the loop is slow, WaitAll fetches the minutes of only a few meetings ahead of
//     it.
//
// Each Result has MeetingID, and Meeting if a response has shown it. Result.Err is an error of
// WaitForMinutes (or of Wait, if Until is an earlier status), or a *[WaitError] with a
// *[ParamError] for an unusable id. When ctx is done or the service rejects the key, WaitAll reads no
// further id, and each one that is still pending gets a Result, usually with that error.
//
// An error as the second value comes with a nil Result and ends the loop, once each id that the loop
// took has had its own Result. It is a *[WaitError] if ctx is done, even if only the body was still
// busy with the last Result, or if the service rejected the key (see [KeyRejected]). It is a
// *[ParamError] if ctx or ids is nil or opts are invalid.
func (s *MeetingsService) WaitAll(
	ctx context.Context, ids iter.Seq[string], opts *WaitOptions,
) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.checked()
		err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("ids", ids != nil))
		if err != nil {
			yield(nil, err)
			return
		}
		seen := make(map[string]bool)
		inputs := func(readingCtx context.Context, yield func(string) bool) error {
			ids(func(id string) bool {
				if seen[id] { // even a sequence that only repeats itself must end
					return readingCtx.Err() == nil
				}
				seen[id] = true
				return yield(id)
			})
			return nil
		}
		parallel(ctx, yield, inputs, func(ctx context.Context, l *loop, id string) {
			unseen := slot{tokens: l.unseen}
			defer unseen.free()
			l.yield(s.core.waitForOne(ctx, l, id, o, &unseen))
		})
	}
}

// waitForOne waits for one meeting of a loop.
func (c *core) waitForOne(ctx context.Context, l *loop, id string, o WaitOptions, unseen *slot) *Result {
	r := &Result{MeetingID: id}
	err := c.checkID("ids", id)
	if err != nil {
		r.MeetingID = c.mask.Text(id)
		r.Err = &WaitError{MeetingID: r.MeetingID, Err: err}
		return r
	}
	g := o.goal()
	g.onStatus = l.onStatus(o.OnStatus)
	r.Err = c.waitAndFetch(ctx, r, o, g, unseen)
	return r
}

// waitAndFetch waits for r.MeetingID, and then fetches what the options ask for. After a successful
// fetch, unseen is held.
func (c *core) waitAndFetch(ctx context.Context, r *Result, o WaitOptions, g goal, unseen *slot) error {
	m, err := c.waitFor(ctx, r.MeetingID, g)
	r.Meeting = cmp.Or(m, r.Meeting)
	if err != nil || !o.fetches() {
		return err
	}
	return c.fetch(ctx, r, o, unseen, 0)
}

// goal is what a wait waits for.
type goal struct {
	until        Status
	audioTimeout time.Duration  // counts from the meeting's creation; 0 means no limit
	audioBy      time.Time      // if not zero, replaces audioTimeout
	onStatus     func(*Meeting) // may be nil
	rarely       bool           // poll an old meeting without audio, or a stuck one, less often: for Follow
}

// verdict is what a wait does after a snapshot.
type verdict int

const (
	goOn     verdict = iota // wait for the next snapshot
	askAgain                // the same, but the next one must be that of a GET
	done
)

// judge decides whether a snapshot ends the wait, and with which error. A list page may be old, so
// only a GET that was sent late enough proves that the meeting has no audio.
func (g *goal) judge(s poll.Snapshot[*Meeting], now time.Time) (verdict, error) {
	m := s.Meeting
	switch {
	case m.Status.reached(g.until):
		return done, nil
	case m.Status.Failed():
		return done, &MeetingFailedError{MeetingID: m.ID, Status: m.Status, Meeting: m}
	case m.Status != StatusCreated:
		return goOn, nil
	}
	audioBy := g.audioBy
	if audioBy.IsZero() && g.audioTimeout > 0 {
		audioBy = m.CreatedAt.Time().Add(g.audioTimeout)
	}
	switch {
	case audioBy.IsZero() || now.Before(audioBy):
		return goOn, nil
	case s.Page || s.Sent.At.Before(audioBy):
		return askAgain, nil
	}
	return done, &WaitError{MeetingID: m.ID, Meeting: m, Err: ErrNoAudio}
}

// waitFor waits for a goal, and calls its onStatus. It returns the meeting as last seen, even with an
// error.
func (c *core) waitFor(ctx context.Context, id string, g goal) (*Meeting, error) {
	var last Status
	return c.eachSnapshot(ctx, id, g.rarely, func(s poll.Snapshot[*Meeting]) (verdict, error) {
		status := s.Meeting.Status
		if status != last {
			last = status
			c.warnIfUnknown(status)
			if g.onStatus != nil {
				g.onStatus(s.Meeting)
			}
		}
		return g.judge(s, time.Now())
	})
}

// look returns the meeting. If it has audio, any snapshot will do, because that never changes.
// Otherwise only a response about the meeting alone will do, not a list page. Its request must have
// been sent at a time or later and, if fresh is set, after look was called.
func (c *core) look(ctx context.Context, id string, fresh bool, by time.Time) (*Meeting, error) {
	called := c.poller.Sending() // later requests have higher numbers
	return c.eachSnapshot(ctx, id, false, func(s poll.Snapshot[*Meeting]) (verdict, error) {
		early := fresh && s.Sent.Number < called.Number || s.Sent.At.Before(by)
		switch {
		case s.Meeting.Status != StatusCreated:
			return done, nil
		case s.Page || early:
			return askAgain, nil
		}
		return done, nil
	})
}

// eachSnapshot calls judge with each snapshot of a meeting until judge or the poller ends the wait, or ctx
// is done. It returns the meeting as last seen, even with an error.
func (c *core) eachSnapshot(
	ctx context.Context, id string, rarely bool, judge func(poll.Snapshot[*Meeting]) (verdict, error),
) (last *Meeting, err error) {
	if ctx.Err() != nil {
		return nil, &WaitError{MeetingID: id, Err: rest.WithCause(ctx, nil)}
	}
	sub := c.poller.Subscribe(id, rarely)
	defer func() { _ = sub.Cancel() }() // its error only matters when ctx is done
	for {
		var u poll.Update[*Meeting]
		select {
		case u = <-sub.C():
		case <-ctx.Done():
			return last, &WaitError{MeetingID: id, Meeting: last, Err: rest.WithCause(ctx, sub.Cancel())}
		}
		if u.Snapshot.Meeting != nil {
			last = u.Snapshot.Meeting.clone()
			u.Snapshot.Meeting = last
		}
		if u.Err != nil { // which is newer than the snapshot
			return last, &WaitError{MeetingID: id, Meeting: last, Err: u.Err}
		}
		next, err := judge(u.Snapshot)
		switch next {
		case done:
			return last, err
		case askAgain:
			c.poller.Ask(id, false)
		}
	}
}

// warnIfUnknown warns, once for each Client, of a status that this version does not know, because a
// wait never ends at such a status.
func (c *core) warnIfUnknown(s Status) {
	if s.Failed() || s.rank() > 0 {
		return
	}
	_, warned := c.unknownStatuses.LoadOrStore(s, true)
	if !warned {
		c.log.Warn("minutes: a meeting has an unknown status, and its wait continues",
			slog.String("status", singleLine(string(s))))
	}
}
