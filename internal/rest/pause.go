package rest

import (
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
)

// pause is the rate-limit pause of a Client: a 429 says that all requests together are
// too many.
type pause struct {
	mu    sync.Mutex
	until time.Time
}

// begin holds back every request for d. It returns d, or 0 if a longer pause is running.
func (p *pause) begin(d time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.until) {
		p.until = until
		return d
	}
	return 0
}

// left returns how much is left of the pause. It is over at 0 or less.
func (p *pause) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := time.Until(p.until); d <= backoff.Longest {
		return d
	}
	return 0 // the pause began by the clock of another synctest bubble
}
