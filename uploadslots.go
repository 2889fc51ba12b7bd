package minutes

import (
	"context"
	"fmt"
	"sync"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// uploadSlots limits a Client's concurrent uploads. It has no channel, so that several synctest
// bubbles can use a Client, one after the other.
type uploadSlots struct {
	limit int

	mu       sync.Mutex
	used     int
	released sync.Cond
}

// acquire waits for a slot. It acquires a free slot even if ctx is done; the first request will
// return the error of ctx.
func (s *uploadSlots) acquire(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released.L = &s.mu
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.released.Broadcast()
	})
	defer stop()
	for s.used >= s.limit {
		s.released.Wait()
		if ctx.Err() != nil {
			s.released.Signal() // a slot may have been meant for this upload
			return &StorageError{causes: []error{fmt.Errorf("waiting for an upload slot: %w", backoff.ContextError(ctx))}}
		}
	}
	s.used++
	return nil
}

func (s *uploadSlots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.released.Signal()
}
