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
	// UploadStartedAt is when a PUT of the recording last began; zero means never. For audio from
	// an unknown PUT, UploadStartedAt is the time of the poll that found the audio. Before the
	// first poll, the Client does not know whether another process is uploading. So the Client sets
	// UploadStartedAt to the current time, as if an upload had begun. If the response to the poll
	// shows no audio, the Client sets UploadStartedAt back to zero.
	UploadStartedAt time.Time `json:"upload_started_at,omitzero"`
}

// Store keeps a [MeetingState] for each meeting that the Client polls or uploads to. Processes
// that share a Store also share the poll interval, whether they run at the same time or one after
// the other. The Client calls a Store on many goroutines. All methods must obey ctx. [DirStore] is
// a Store in a directory, and examples/webservice has one in SQLite.
type Store interface {
	// Load returns the MeetingState of the meeting id, or the zero value if there is none.
	Load(ctx context.Context, id string) (MeetingState, error)
	// Save compares the stored state with old, which Load has returned. If both are equal, Save
	// stores next and returns true. Otherwise Save changes nothing and returns false. Save must be
	// atomic, also between processes. Times are in UTC and whole milliseconds.
	Save(ctx context.Context, id string, old, next MeetingState) (saved bool, err error)
	// Delete deletes the MeetingState of a meeting, if there is one.
	Delete(ctx context.Context, id string) error
}

// WithStore keeps the times of polls and uploads in s. This has two effects:
//
//   - Two polls of a meeting are at least thirty seconds apart even if different processes make
//     them, at the same time or after a kill -9.
//   - [MeetingsService.Resume] and [MeetingsService.Process] know whether another process started
//     an upload. Before they upload, they wait up to thirty seconds for the audio.
//
// Before each poll and each PUT of a recording, the Client calls Load and Save. The first poll of
// a meeting can need two calls of each. Pages of the listing need none. If s fails, the Client
// does not send the request, and counts a failed poll or a failed attempt of the upload. If a
// stored time is in the future, the Client uses the current time instead.
//
// The Client deletes the MeetingState when a wait finds the meeting final or gone, or when
// [MeetingsService.Delete] succeeds. Otherwise it remains in s. Without a Store, Process and
// Resume work after a crash, too, but a poll may come too soon.
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
	return before, storeError("saving", id, errors.New("ten attempts failed, because other processes changed it first"))
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

type claim struct {
	before MeetingState
	wait   time.Duration // if positive, another process has polled, and this one must wait so long
	err    error
}

// claimPoll records in the store that a poll of a meeting is about to be sent.
func (c *core) claimPoll(ctx context.Context, id string) (r claim) {
	r.before, r.err = c.change(ctx, id, func(s MeetingState, now time.Time) MeetingState {
		r.wait = s.PolledAt.Add(max(sharedInterval, time.Duration(c.maxAge.Load()))).Sub(now)
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

// pollEnded records the result of a poll in the store: an unknown meeting has no audio, or there
// is audio without a known upload.
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

// deleteState deletes the state of a meeting that is final or gone. A state that remains only
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
