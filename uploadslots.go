package minutes

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// uploadSlots limits a Client's concurrent uploads, first come, first served. Its channels are
// made when they are needed, so that a Client can be used in any synctest bubble.
type uploadSlots struct {
	limit int

	mu    sync.Mutex
	used  int
	queue []chan struct{} // of waiting uploads; closed to hand over a slot
}

// acquire waits for a slot. It takes a free slot even if ctx is done; the first request reports that.
func (s *uploadSlots) acquire(ctx context.Context) error {
	s.mu.Lock()
	if s.used < s.limit {
		s.used++
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.queue = append(s.queue, turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.queue, turn)
	if at < 0 { // the slot came at the same moment
		return nil
	}
	s.queue = slices.Delete(s.queue, at, at+1)
	return &StorageError{causes: []error{fmt.Errorf("waiting for an upload slot: %w", backoff.ContextError(ctx))}}
}

// release gives a slot back.
func (s *uploadSlots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.used--
		return
	}
	close(s.queue[0])
	s.queue = s.queue[1:]
}
