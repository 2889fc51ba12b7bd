package minutes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// MeetingState has the times that a [Store] keeps for a meeting. It contains no secret.
type MeetingState struct {
	// PolledAt is when the Client last began to poll the meeting.
	PolledAt time.Time `json:"polled_at,omitzero"`
	// UploadStartedAt is when a PUT of the recording last began; zero means never. The Client also
	// sets UploadStartedAt if another process may have begun a PUT; see docs/restarts.md.
	UploadStartedAt time.Time `json:"upload_started_at,omitzero"`
}

// Store keeps a [MeetingState] for each meeting that the Client polls or uploads to; see
// [WithStore]. The Client calls a Store on many goroutines. All methods must obey ctx. [DirStore] is
// a Store in a directory, and examples/webservice has one in SQLite.
type Store interface {
	// Load returns the MeetingState of the meeting id, or the zero value if there is none.
	Load(ctx context.Context, id string) (MeetingState, error)
	// If the stored state equals old, Save stores next and returns true. Otherwise Save changes
	// nothing and returns false. Save must be atomic, also between processes. old is a state that
	// Load returned. Times are in UTC and whole milliseconds.
	Save(ctx context.Context, id string, old, next MeetingState) (saved bool, err error)
	// Delete deletes the MeetingState of a meeting, if there is one.
	Delete(ctx context.Context, id string) error
}

// WithStore keeps the times of polls and uploads in s. Before each poll and each attempt of an
// upload, the Client saves the current time. Two things change:
//
//   - Two polls of a meeting are at least thirty seconds apart even if different processes make
//     them, for example before and after a crash.
//   - If another process has just started an upload, [MeetingsService.Resume] and
//     [MeetingsService.Process] wait for its audio, up to thirty seconds.
//
// If s fails, the Client does not send the request. The poll or the attempt of the upload counts as
// failed. The Client deletes the times of a meeting that is deleted or has reached a final state. See
// docs/restarts.md.
func WithStore(s Store) Option {
	return option("WithStore", s != nil, "must not be nil", func(c *core) { c.store = s })
}

// sharedInterval is the shortest time between polls of a meeting by two processes. If the first
// GET needed a new connection, it may have arrived up to two seconds later.
const sharedInterval = 32 * time.Second

// change calls next with the state of a meeting, stores the result, and returns the state before.
func (c *core) change(ctx context.Context, id string, next func(s MeetingState, now time.Time) MeetingState) (before MeetingState, err error) {
	if c.store == nil {
		return before, nil
	}
	for range 10 {
		now := time.Now().UTC().Truncate(time.Millisecond).Add(time.Millisecond) // rounded up: no poll is early
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
	return before, storeError("saving", id, errors.New("ten attempts failed, because other processes changed it first"))
}

func notAfter(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

func storeError(doing, id string, err error) error {
	return fmt.Errorf("minutes: %s the state of meeting %s in the store: %w", doing, singleLine(id), err)
}

type claim struct {
	before MeetingState
	wait   time.Duration // if positive, another process has polled, and this one must wait so long
	err    error
}

// claimPoll records in the store that a poll of a meeting is about to be sent.
func (c *core) claimPoll(ctx context.Context, id string) (r claim) {
	r.before, r.err = c.change(ctx, id, func(s MeetingState, now time.Time) MeetingState {
		r.wait = time.Until(s.PolledAt.Add(max(sharedInterval, time.Duration(c.maxAge.Load()))))
		if r.wait <= 0 {
			if s == (MeetingState{}) { // nothing is known, so an upload may be running
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

// pollEnded records in the store that a meeting without a state has no audio, or that a meeting has
// audio from an unknown upload.
func (c *core) pollEnded(ctx context.Context, m *Meeting, before MeetingState) {
	unknown, noAudio := before == MeetingState{}, m.Status == StatusCreated
	if c.store == nil || unknown != noAudio || !before.UploadStartedAt.IsZero() {
		return
	}
	_, _ = c.change(ctx, m.ID, func(s MeetingState, now time.Time) MeetingState {
		if !noAudio {
			s.UploadStartedAt = now
		} else if s.UploadStartedAt.Equal(s.PolledAt) { // no upload started since the poll
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

// waitOver deletes the state of a meeting after a wait, if the meeting is final or gone.
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

// deleteState deletes the state of a meeting. A state that remains only takes up space.
func (c *core) deleteState(ctx context.Context, id string) {
	if c.store == nil {
		return
	}
	if err := c.store.Delete(ctx, id); err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "minutes: the store did not delete the state of a meeting",
			slog.String("meeting", singleLine(id)), slog.String("error", singleLine(err.Error())))
	}
}
