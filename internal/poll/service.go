package poll

import (
	"context"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

// Service makes the Poller's requests: one attempt each, without retries. It returns soon after ctx
// is done. It calls send just before the request goes out, while it holds no lock that send takes.
// If send returns false, it fails without a request.
type Service[M any] interface {
	Get(ctx context.Context, id string, send func() bool) (s Snapshot[M], f *Failure)
	// Page reads the list page at cursor, which is empty for the first page.
	Page(ctx context.Context, cursor string, send func() bool) (Page[M], *Failure)
}

// Page is one page of the list.
type Page[M any] struct {
	Shown []Snapshot[M]
	// Next is the cursor of the next page. It is empty at the end of the list.
	Next string
	// Now is the service's time. It is zero if the service did not say.
	Now time.Time
}

// Snapshot is one meeting as a response showed it.
type Snapshot[M any] struct {
	ID string
	// Final means that the status no longer changes.
	Final bool
	// Idle means that the meeting has no audio yet.
	Idle bool
	// Created and Updated are the service's times. Its machines have clocks of their own, which may
	// differ by minutes.
	Created, Updated time.Time
	// Meeting is the meeting as the caller keeps it.
	Meeting M
	// MaxAge is how long the service asks not to poll the meeting again. It is 0 if the service did
	// not say.
	MaxAge time.Duration

	// Page means that a list page showed the meeting, so the snapshot may be old. The Poller sets
	// it.
	Page bool
	// Sent is the request that showed the meeting. The Poller sets it.
	Sent Sent
}

// Sent says when a request was sent.
type Sent struct {
	// Number shows which of two requests was sent later, because the Poller counts them. Times
	// cannot, because two requests may have the same time.
	Number int64
	// At is the time of this machine's clock.
	At time.Time
}

// Failure is the outcome of a request that failed. A failure that ends a wait Later is called
// foreign here, because another server, or nobody, has answered.
type Failure struct {
	Err  error
	Kind failure.Kind
	// RetryAfter is how long the service asks to wait. It is 0 if the service did not say.
	RetryAfter time.Duration
}

// ends says when the failure ends a wait.
func (f *Failure) ends() failure.End { return failure.Means[f.Kind].EndsWait }
