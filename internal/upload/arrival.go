package upload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// pollInterval is the minimum time between two polls of a meeting.
const pollInterval = 30 * time.Second

// ErrPartialAudio is among the Causes if the meeting has audio, but no attempt sent the whole
// recording.
var ErrPartialAudio = errors.New("the meeting has audio, but no attempt sent the whole recording")

// check checks up to n times whether the audio arrived.
func (u *Upload) check(ctx context.Context, n int) (found bool, err error) {
	for range n {
		if backoff.Left(ctx) <= time.Until(u.nextCheck) {
			return false, nil // ctx would end before the check
		}
		found, err = u.API.HasAudio(ctx)
		u.nextCheck = time.Now().Add(pollInterval)
		switch {
		case err != nil:
			return false, fmt.Errorf("checking whether the audio arrived: %w", err)
		case found && !u.past.sentAll && !u.Shared:
			return false, ErrPartialAudio
		case found:
			return true, nil
		}
	}
	return false, nil
}
