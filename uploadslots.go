package minutes

import (
	"context"
	"fmt"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// uploadSlots limits a Client's concurrent uploads. It contains a token for each.
type uploadSlots chan struct{}

// acquire waits for a slot. It takes a free slot even if ctx is done.
func (s uploadSlots) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &StorageError{causes: []error{fmt.Errorf("waiting for an upload slot: %w", backoff.ContextError(ctx))}}
	}
}

func (s uploadSlots) release() { <-s }
