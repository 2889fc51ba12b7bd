package upload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// ErrPartialAudio is among the Causes if the meeting has audio, but no attempt sent the whole
// recording. With Shared, that is no error.
var ErrPartialAudio = errors.New("the meeting has audio, but no attempt sent the whole recording")

// check checks up to n times whether the audio arrived.
func (u *Upload) check(ctx context.Context, n int) (hasAudio bool, err error) {
	for range n {
		if backoff.Left(ctx) <= time.Until(u.nextPollAt) {
			return false, nil // ctx would end before the check
		}
		hasAudio, err = u.API.HasAudio(ctx)
		u.nextPollAt = time.Now().Add(pollInterval)
		switch {
		case err != nil:
			return false, fmt.Errorf("checking whether the audio arrived: %w", err)
		case hasAudio && !u.past.sentAll && !u.Shared:
			return false, ErrPartialAudio
		case hasAudio:
			return true, nil
		}
	}
	return false, nil
}
