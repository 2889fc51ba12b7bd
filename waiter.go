package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
// recording for a meeting without audio. The recording can still be uploaded, so [Retryable] is true
// for ErrNoAudio. It is not a code of the service.
var ErrNoAudio = errors.New("minutes: the meeting has no audio")

// Wait waits until a meeting reaches minutes_ready, or WaitOptions.Until, and returns the meeting.
// The key needs the scope meetings:read.
//
// All waits of a Client share one poller. It polls a meeting at most once in thirty seconds (section
// 6), or less often if the service asks for that with Cache-Control. If a response has shown the
// meeting in the last thirty seconds, Wait starts from that; otherwise it polls at once. See
// docs/polling.md.
//
// Wait has no overall timeout, because a recording may take hours: set a deadline on ctx. A 429, a
// 5xx or a lost connection never ends a wait.
//
// Errors:
//   - *[MeetingFailedError]: the meeting reached a failure status.
//   - *[WaitError] with the error of ctx, and with the last failure if polls were failing.
//   - *[WaitError] with [ErrNoAudio], or with an *[Error]: the meeting is gone ([ErrNotFound]), or the
//     service rejected the key or the request.
//   - *[WaitError] with the last failure: for ten minutes, no response about the meeting came from
//     the service itself, for example because a proxy answered or the certificate is not trusted.
//   - *[ParamError]: id or an option is invalid.
func (s *MeetingsService) Wait(ctx context.Context, id string, opts *WaitOptions) (*Meeting, error) {
	o, err := opts.checked()
	if err = cmp.Or(err, checkGiven("ctx", ctx != nil), s.core.checkID("id", id)); err != nil {
		return nil, err
	}
	return s.core.wait(ctx, id, o.goal())
}

// WaitForMinutes waits until the minutes are ready, like [MeetingsService.Wait], and returns them in
// WaitOptions.Format. The key needs the scopes meetings:read and minutes:read.
//
// Errors: those of Wait, and those of [MeetingsService.Minutes] in a *WaitError. A failure that may
// pass does not end WaitForMinutes: it asks again after thirty seconds.
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

func (o *WaitOptions) goal() goal {
	return goal{until: o.Until, audioTimeout: o.AudioTimeout, onStatus: o.OnStatus}
}

// goal is what a wait waits for.
type goal struct {
	until        Status
	audioTimeout time.Duration // after Meeting.CreatedAt; 0: no limit
	audioBy      time.Time     // if not zero, replaces audioTimeout
	ask          bool          // the answer to a poll that was sent at or after askedSince ends the wait, too
	askedSince   time.Time
	onStatus     func(*Meeting)
	patient      bool // the wait of Follow: old meetings without audio are polled less often
}

// A snapshot is a meeting as one response showed it.
type snapshot = poll.Snapshot[*Meeting]

// judge decides whether a snapshot ends the wait. A list page may be old, so only a poll proves that
// a meeting has no audio: then judge returns confirm.
func (g goal) judge(s snapshot, now time.Time) (over, confirm bool, err error) {
	m := s.Meeting
	audioBy := g.audioBy
	if audioBy.IsZero() && g.audioTimeout > 0 {
		audioBy = m.CreatedAt.Time().Add(g.audioTimeout)
	}
	switch {
	case m.Status.Failed():
		return true, false, &MeetingFailedError{MeetingID: m.ID, Status: m.Status, Meeting: m}
	case m.Status.rank() >= g.until.rank():
		return true, false, nil
	case g.ask && !s.Page && !s.SentAt.Before(g.askedSince):
		return true, false, nil
	case m.Status != StatusCreated || audioBy.IsZero() || now.Before(audioBy):
		return false, g.ask, nil
	case s.Page || s.SentAt.Before(audioBy):
		return false, true, nil
	}
	return true, false, &WaitError{MeetingID: m.ID, Meeting: m, Err: ErrNoAudio}
}

// wait blocks until judge or the poller ends the wait, or ctx is done.
func (c *core) wait(ctx context.Context, id string, g goal) (*Meeting, error) {
	var last *Meeting
	if ctx.Err() != nil {
		return nil, &WaitError{MeetingID: id, Err: endOf(ctx, nil)}
	}
	sub := c.poller.Subscribe(id, g.patient)
	defer func() { _ = sub.Cancel() }() // its error only matters when ctx is done
	for {
		var u poll.Update[*Meeting]
		select {
		case u = <-sub.C():
		case <-ctx.Done():
			return nil, &WaitError{MeetingID: id, Meeting: last, Err: endOf(ctx, sub.Cancel())}
		}
		if u.Snapshot.Meeting != nil {
			m := u.Snapshot.Meeting.clone()
			changed := last == nil || last.Status != m.Status
			u.Snapshot.Meeting, last = m, m
			if changed && g.onStatus != nil {
				g.onStatus(m)
			}
		}
		if u.Err != nil {
			return nil, &WaitError{MeetingID: id, Meeting: last, Err: u.Err}
		}
		over, confirm, err := g.judge(u.Snapshot, time.Now())
		switch {
		case err != nil:
			return nil, err
		case over:
			return last, nil
		case confirm:
			sub.Confirm()
		}
	}
}

// look returns the meeting as a poll shows it that was sent at or after since. A response that is
// already there counts if it is not older than that.
func (c *core) look(ctx context.Context, id string, since time.Time) (*Meeting, error) {
	g := goal{until: StatusAudioUploaded, askedSince: since, ask: true}
	return c.wait(ctx, id, g)
}

// endOf returns the error of a context that is done, joined with trouble, if any.
func endOf(ctx context.Context, trouble error) error {
	end := rest.WithCause(ctx, nil)
	if trouble == nil {
		return end
	}
	return fmt.Errorf("%w; before that: %w", end, trouble)
}

// WaitAll waits for many meetings, each like [MeetingsService.Wait], and yields each when its wait
// ends, in no particular order. If Until is minutes_ready, WaitAll fetches the minutes as well, and
// with WaitOptions.Transcript the transcript. The key needs the scope meetings:read and, for fetches,
// minutes:read.
//
//   - WaitAll yields a repeated id once. An error of one meeting does not end the other waits.
//   - WaitAll ranges over ids on another goroutine, so ids may block.
//   - If you leave the loop, the remaining waits end; their meetings go on.
//
// Each Result has MeetingID, and Meeting if a response has shown it. Errors with a Result concern
// this meeting: those of Wait, Minutes and Transcript, and a *[WaitError] with a *[ParamError] for an
// unusable id.
//
// A nil Result ends the loop. Before that, each id that was read has had its own Result. The error is
// a *[WaitError] if ctx is done or the service rejected the key (see [KeyRejected]), and a
// *[ParamError] if ids is nil or opts are invalid.
func (s *MeetingsService) WaitAll(ctx context.Context, ids iter.Seq[string], opts *WaitOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		o, err := opts.checked()
		if err = cmp.Or(err, checkGiven("ctx", ctx != nil), checkGiven("ids", ids != nil)); err != nil {
			yield(nil, err)
			return
		}
		parallel(ctx, unique(ids), yield, func(ctx context.Context, l *loop, id string) {
			g, r := o.goal(), &Result{MeetingID: id}
			g.onStatus = l.onStatus(o.OnStatus)
			err := s.core.checkID("ids", id)
			if err == nil {
				err = s.waitAndFetch(ctx, r, g, o.Format, o.Transcript)
			} else {
				r.MeetingID = s.core.mask(id)
				err = &WaitError{MeetingID: r.MeetingID, Err: err}
			}
			l.yield(r, err)
		})
	}
}

// unique leaves out what seq has yielded before.
func unique(seq iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := make(map[string]struct{})
		for v := range seq {
			if _, repeated := seen[v]; repeated {
				continue
			}
			seen[v] = struct{}{}
			if !yield(v) {
				return
			}
		}
	}
}

// waitAndFetch waits for r.MeetingID. If the goal is minutes_ready, it fetches the minutes, and the
// transcript if transcript is set.
func (s *MeetingsService) waitAndFetch(ctx context.Context, r *Result, g goal, format Format, transcript bool) error {
	m, err := s.core.wait(ctx, r.MeetingID, g)
	r.Meeting = cmp.Or(m, meetingIn(err), r.Meeting)
	if err != nil || g.until != StatusMinutesReady {
		return err
	}
	r.Minutes, err = fetch(ctx, s.core, m, func(ctx context.Context) (*Minutes, error) { return s.Minutes(ctx, m.ID, format) })
	if err == nil && transcript {
		r.Transcript, err = fetch(ctx, s.core, m, func(ctx context.Context) (*Transcript, error) { return s.Transcript(ctx, m.ID) })
	}
	return err
}

// meetingIn returns the last snapshot of the meeting in a wait's error, or nil.
func meetingIn(err error) *Meeting {
	if failed, ok := errors.AsType[*MeetingFailedError](err); ok {
		return failed.Meeting
	}
	if wait, ok := errors.AsType[*WaitError](err); ok {
		return wait.Meeting
	}
	return nil
}
