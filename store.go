package minutes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// MeetingState is what a [Store] keeps of a meeting. It holds no secret.
type MeetingState struct {
	// PolledAt is when a wait last sent a GET of the meeting, or was about to.
	PolledAt time.Time `json:"polled_at,omitzero"`
	// UploadStartedAt is when a PUT of the recording last began, or when a poll first found
	// audio from elsewhere. It is zero if neither has happened. The first poll sets it until
	// the response shows that the meeting has no audio.
	UploadStartedAt time.Time `json:"upload_started_at,omitzero"`
}

// Store keeps a [MeetingState] for each meeting that the Client waits for or uploads to.
// Processes that share a Store, one after the other or at the same time, poll a meeting as
// one process would. The Client calls its methods on many goroutines; they must obey ctx.
// [DirStore] is one in a directory, and examples/webservice has one with SQLite.
type Store interface {
	// Load returns the state of the meeting with this id, or the zero state if there is none.
	Load(ctx context.Context, id string) (MeetingState, error)
	// Save replaces old, which Load returned, by next. If the stored state is not old any
	// more, it changes nothing and returns false. The comparison and the change must be
	// one step, also for other processes. Times are in UTC and whole milliseconds.
	Save(ctx context.Context, id string, old, next MeetingState) (saved bool, err error)
	// Delete deletes the state of a meeting, if there is one.
	Delete(ctx context.Context, id string) error
}

// WithStore keeps what a restart needs in s:
//
//   - The thirty seconds between two GETs of a meeting by waits hold across restarts, a
//     kill -9 included, and between processes that share s.
//   - [MeetingsService.Resume] and [MeetingsService.Process] know whether another process
//     began an upload, and let it end first.
//
// The Client saves before each GET of a wait and before each PUT of a recording: one Load and
// one Save, or two of each for the first poll. Pages of the listing need no save. It deletes the state once it sees that the
// meeting has ended or is gone; if nobody waits for that, the state remains in s. A time in
// the future counts as now.
//
// If s fails, the Client does not send the request: a GET counts as a failed poll, and a PUT
// as a failed attempt of the upload. Without a store, Process and Resume lose nothing after a
// crash either, but a poll may come too soon.
func WithStore(s Store) Option {
	return option("WithStore", s != nil, "must not be nil", func(c *core) { c.store = s })
}

// sharedInterval is the shortest time between polls of a meeting by two processes. The GET of
// the other may have taken up to two seconds longer to arrive, since it may need a connection.
const sharedInterval = 32 * time.Second

// change replaces the state of a meeting by what next returns for it. It returns the state
// before.
func (c *core) change(ctx context.Context, id string, next func(s MeetingState, now time.Time) MeetingState) (before MeetingState, err error) {
	if c.store == nil {
		return before, nil
	}
	for range 10 {
		now := time.Now().UTC().Truncate(time.Millisecond)
		stored, err := c.store.Load(ctx, id)
		if err != nil {
			return before, storeError("loading", id, err)
		}
		before = MeetingState{notAfter(stored.PolledAt, now), notAfter(stored.UploadStartedAt, now)}
		changed := next(before, now)
		if changed == stored {
			return before, nil
		}
		saved, err := c.store.Save(ctx, id, stored, changed)
		if err != nil {
			return before, storeError("saving", id, err)
		}
		if saved {
			return before, nil
		}
	}
	return before, storeError("saving", id, errors.New("ten changes in a row came too late"))
}

// notAfter returns t, or now if t is in the future.
func notAfter(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

func storeError(doing, id string, err error) error {
	return fmt.Errorf("minutes: %s the state of meeting %s in the store: %w", doing, singleLine(id), err)
}

// claim is the outcome of claimPoll.
type claim struct {
	before MeetingState
	wait   time.Duration // if positive, another process has made a poll: how long to wait
	err    error
}

// claimPoll records in the store that a poll of a meeting is about to be sent.
func (c *core) claimPoll(ctx context.Context, id string) (r claim) {
	r.before, r.err = c.change(ctx, id, func(s MeetingState, now time.Time) MeetingState {
		r.wait = s.PolledAt.Add(max(sharedInterval, time.Duration(c.maxAge.Load()))).Sub(now)
		if r.wait <= 0 {
			if s == (MeetingState{}) { // nothing is known: an upload may have begun
				s.UploadStartedAt = now
			}
			s.PolledAt = now
		}
		return s
	})
	return r
}

// uploadBegins records in the store that a PUT is about to be sent.
func (c *core) uploadBegins(ctx context.Context, id string) error {
	_, err := c.change(ctx, id, func(s MeetingState, now time.Time) MeetingState {
		s.UploadStartedAt = now
		return s
	})
	return err
}

// pollEnded records in the store what a poll has found out: that a meeting about which nothing
// was known has no audio, or that somebody else has uploaded some.
func (c *core) pollEnded(ctx context.Context, m *Meeting, before MeetingState) {
	unknown, noAudio := before == MeetingState{}, m.Status == StatusCreated
	if c.store == nil || unknown != noAudio || !before.UploadStartedAt.IsZero() {
		return
	}
	_, _ = c.change(ctx, m.ID, func(s MeetingState, now time.Time) MeetingState {
		if !noAudio {
			s.UploadStartedAt = now
		} else if s.UploadStartedAt.Equal(s.PolledAt) { // no upload has begun since
			s.UploadStartedAt = time.Time{}
		}
		return s
	})
}

// loadState is claimPoll without the claim.
func (c *core) loadState(ctx context.Context, id string) (r claim) {
	r.before, r.err = c.change(ctx, id, func(s MeetingState, _ time.Time) MeetingState { return s })
	return r
}

// waitOver deletes the state of a meeting whose wait is over if the meeting has ended.
func (c *core) waitOver(ctx context.Context, e event) {
	switch err := e.err.(type) {
	case nil:
		if e.meeting.Status.Final() {
			c.deleteState(ctx, e.meeting.ID)
		}
	case *MeetingFailedError:
		c.deleteState(ctx, err.Meeting.ID)
	case *WaitError:
		if errors.Is(err, ErrNotFound) {
			c.deleteState(ctx, err.MeetingID)
		}
	}
}

// deleteState deletes the state of a meeting that has ended. If that fails, the state only
// takes up space.
func (c *core) deleteState(ctx context.Context, id string) {
	if c.store == nil {
		return
	}
	if err := c.store.Delete(ctx, id); err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "minutes: the store did not delete the state of a meeting",
			slog.String("meeting", singleLine(id)), slog.String("error", singleLine(err.Error())))
	}
}
