package minutes

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// WaitOptions configures a wait. A nil pointer or a zero field selects the default.
type WaitOptions struct {
	// Until is the status to wait for (default StatusMinutesReady). A later status in the normal order
	// also ends the wait. WaitForMinutes ignores Until.
	Until Status
	// Format is the format of the minutes that WaitForMinutes and WaitAll fetch. If Format is empty,
	// the service chooses HTML.
	Format Format
	// Transcript makes WaitAll fetch the transcript as well, if Until is StatusMinutesReady.
	Transcript bool
	// AudioTimeout limits how long the meeting may stay without audio, counted from
	// Meeting.CreatedAt by this machine's clock. If a poll after that time still shows no audio, the
	// wait ends with ErrNoAudio. 0 means no limit.
	AudioTimeout time.Duration
	// OnStatus is called with the first status that the wait sees, and with each change after that.
	// Wait calls OnStatus on its caller's goroutine, and WaitAll on the goroutine of the loop.
	OnStatus func(*Meeting)
}

// ErrNoAudio means that AudioTimeout has passed and no response showed audio, or that Resume has no
// recording for a meeting without audio. The recording can still be uploaded, so [Retryable] is true for
// ErrNoAudio. It is not a code of the service.
var ErrNoAudio = errors.New("minutes: the meeting has no audio")

// Wait waits until a meeting reaches minutes_ready, or WaitOptions.Until, and returns the meeting. It needs
// the scope meetings:read. Wait has no overall timeout, because a recording may take hours, so set a
// deadline on ctx: a 429, a 5xx (even a proxy's) or a lost connection never ends a wait.
//
// All waits of a Client share one poller. It polls a meeting at most once in thirty seconds (section 6), or
// less often if the service asks for that with Cache-Control. If a response has shown the meeting in the
// last thirty seconds, Wait starts from that instead of polling at once. See docs/polling.md.
//
// Errors:
//   - *[MeetingFailedError]: the meeting reached a failure status.
//   - *[WaitError] with the error of ctx, and with the last failure if polls were failing.
//   - *[WaitError] with [ErrNoAudio]; or with an *[Error] if the meeting is gone ([ErrNotFound]), or the
//     service rejected the key or the request.
//   - *[WaitError] with the last failure: an untrusted certificate, a 3xx or 4xx that is not the service's,
//     or a response that does not match the API reference, if such failures began ten minutes ago and no
//     poll has succeeded since.
//   - *[ParamError]: id or an option is invalid.
func (s *MeetingsService) Wait(ctx context.Context, id string, opts *WaitOptions) (*Meeting, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), s.core.checkID("id", id)); err != nil {
		return nil, err
	}
	m, err := s.core.wait(ctx, id, goal{WaitOptions: o})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// WaitForMinutes waits until the minutes are ready, like [MeetingsService.Wait], and returns them in
// WaitOptions.Format. It needs the scopes meetings:read and minutes:read.
//
// Errors: those of Wait, and those of [MeetingsService.Minutes] in a *WaitError. But after
// [ErrMinutesNotReady], or a failure that would not end a Wait, WaitForMinutes asks for the minutes again
// thirty seconds later.
func (s *MeetingsService) WaitForMinutes(ctx context.Context, id string, opts *WaitOptions) (*Minutes, error) {
	o := *cmp.Or(opts, new(WaitOptions))
	o.Until = StatusMinutesReady
	m, err := s.Wait(ctx, id, &o)
	if err != nil {
		return nil, err
	}
	return fetch(ctx, s.core, m, func(ctx context.Context) (*Minutes, error) { return s.Minutes(ctx, id, o.Format) })
}

// checked checks the options and returns a copy with defaults.
func (o *WaitOptions) checked() (WaitOptions, error) {
	opts := *cmp.Or(o, new(WaitOptions))
	opts.Until = cmp.Or(opts.Until, StatusMinutesReady)
	switch {
	case opts.Until.rank() == 0:
		return opts, &ParamError{Param: "opts.Until", Reason: "is not a status of the normal order"}
	case opts.AudioTimeout < 0:
		return opts, &ParamError{Param: "opts.AudioTimeout", Reason: "must not be negative"}
	}
	return opts, nil
}

// goal is what a wait waits for.
type goal struct {
	WaitOptions
	audioBy time.Time // if not zero, replaces AudioTimeout
	look    bool      // the answer to a poll ends the wait, too, if its number is at least since
	since   int64     // see look
	patient bool      // the wait of Follow: old meetings without audio are polled less often
}

// judge decides whether a snapshot ends the wait. A list page may be old, so only a poll proves that
// a meeting has no audio: then judge returns confirm.
func (g goal) judge(s poll.Snapshot[*Meeting], now time.Time) (over, confirm bool, err error) {
	m := s.Meeting
	audioBy := g.audioBy
	if audioBy.IsZero() && g.AudioTimeout > 0 {
		audioBy = m.CreatedAt.Time().Add(g.AudioTimeout)
	}
	switch {
	case m.Status.Failed():
		return true, false, &MeetingFailedError{MeetingID: m.ID, Status: m.Status, Meeting: m}
	case m.Status.rank() >= g.Until.rank(), g.look && !s.Page && s.Sent.Number >= g.since:
		return true, false, nil
	case m.Status != StatusCreated || audioBy.IsZero() || now.Before(audioBy):
		return false, g.look, nil
	case s.Page || s.Sent.At.Before(audioBy):
		return false, true, nil
	}
	return true, false, &WaitError{MeetingID: m.ID, Meeting: m, Err: ErrNoAudio}
}

// wait blocks until judge or the poller ends the wait, or ctx is done. It returns the meeting as last
// seen, even with an error.
func (c *core) wait(ctx context.Context, id string, g goal) (last *Meeting, err error) {
	if ctx.Err() != nil {
		return nil, &WaitError{MeetingID: id, Err: rest.WithCause(ctx, nil)}
	}
	sub := c.poller.Subscribe(id, g.patient)
	defer func() { _ = sub.Cancel() }() // its error only matters when ctx is done
	for {
		var u poll.Update[*Meeting]
		select {
		case u = <-sub.C():
		case <-ctx.Done():
			return last, &WaitError{MeetingID: id, Meeting: last, Err: rest.WithCause(ctx, sub.Cancel())}
		}
		if u.Snapshot.Meeting != nil {
			m := u.Snapshot.Meeting.clone()
			changed := last == nil || last.Status != m.Status
			u.Snapshot.Meeting, last = m, m
			if changed && g.OnStatus != nil {
				g.OnStatus(m)
			}
		}
		if u.Err != nil {
			return last, &WaitError{MeetingID: id, Meeting: last, Err: u.Err}
		}
		over, confirm, err := g.judge(u.Snapshot, time.Now())
		if over {
			return last, err
		}
		if confirm {
			c.poller.Ask(id, false)
		}
	}
}

// look returns the meeting as a poll shows it. fresh means that the poll must be sent from now on;
// otherwise the last response counts as well.
func (c *core) look(ctx context.Context, id string, fresh bool) (*Meeting, error) {
	g := goal{WaitOptions: WaitOptions{Until: StatusAudioUploaded}, look: true}
	if fresh {
		g.since = c.poller.Sending().Number
	}
	return c.wait(ctx, id, g)
}

// WaitAll waits for many meetings, each like [MeetingsService.Wait], and yields each when its wait ends, in
// no particular order. If Until is minutes_ready, WaitAll fetches the minutes as well, and with
// WaitOptions.Transcript the transcript. It needs the scope meetings:read and, for fetches, minutes:read.
//
//   - An error that concerns one meeting does not end the other waits. A repeated id is yielded once.
//   - WaitAll ranges over ids on another goroutine, so ids may block.
//   - If you leave the loop, the remaining waits end, but their meetings go on.
//
// Each Result has MeetingID, and Meeting if a response has shown it. Errors are those of Wait, Minutes
// and Transcript, or a *[WaitError] with a *[ParamError] for an unusable id. When ctx is done or the
// service rejects the key, each id that is still pending gets a Result with the error of that.
//
// A nil Result ends the loop early, once each id that was read has had its own Result. The error is a
// *[WaitError] if ctx is done or the service rejected the key (see [KeyRejected]), and a *[ParamError] if
// ids is nil or opts are invalid.
func (s *MeetingsService) WaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.checked()
		if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("ids", ids != nil)); err != nil {
			yield(nil, err)
			return
		}
		seen := make(map[string]bool)
		inputs := func(_ context.Context, yield func(string) bool) error {
			ids(func(id string) bool {
				repeated := seen[id]
				seen[id] = true
				return repeated || yield(id)
			})
			return nil
		}
		parallel(ctx, yield, inputs, func(ctx context.Context, l *loop, id string) {
			g, r := goal{WaitOptions: o}, &Result{MeetingID: id}
			g.OnStatus = l.onStatus(o.OnStatus)
			if err := s.core.checkID("ids", id); err != nil {
				r.MeetingID = s.core.mask.Text(id)
				l.yield(r, &WaitError{MeetingID: r.MeetingID, Err: err})
				return
			}
			l.yield(r, s.waitAndFetch(ctx, r, g))
		})
	}
}

// waitAndFetch waits for r.MeetingID. If the goal is minutes_ready, it fetches the minutes, and the
// transcript if Transcript is set.
func (s *MeetingsService) waitAndFetch(ctx context.Context, r *Result, g goal) error {
	m, err := s.core.wait(ctx, r.MeetingID, g)
	r.Meeting = cmp.Or(m, r.Meeting)
	if err != nil || g.Until != StatusMinutesReady {
		return err
	}
	r.Minutes, err = fetch(ctx, s.core, m, func(ctx context.Context) (*Minutes, error) { return s.Minutes(ctx, m.ID, g.Format) })
	if err == nil && g.Transcript {
		r.Transcript, err = fetch(ctx, s.core, m, func(ctx context.Context) (*Transcript, error) { return s.Transcript(ctx, m.ID) })
	}
	return err
}
