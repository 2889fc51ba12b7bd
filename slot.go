package minutes

import (
	"context"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// A slot is a place of a bounded number of things under way, such as uploads. A slot belongs to one
// goroutine. The zero slot bounds nothing.
type slot struct {
	tokens   chan struct{} // holds a token for each slot that is in use
	acquired bool
}

// acquire waits for one of the places and takes it, unless the slot holds one already.
func (s *slot) acquire(ctx context.Context) error {
	if s.acquired || s.tokens == nil {
		return nil
	}
	select {
	case s.tokens <- struct{}{}:
		s.acquired = true
		return nil
	case <-ctx.Done():
		return rest.WithCause(ctx, nil)
	}
}

// free gives the place back, if the slot holds one.
func (s *slot) free() {
	if s.acquired {
		s.acquired = false
		<-s.tokens
	}
}
