package poll

import (
	"context"
	"time"
)

type Snapshot[M any] struct {
	ID               string
	Final, Idle      bool
	Created, Updated time.Time
	Meeting          M
	Page             bool
	SentAt           time.Time
}
type Kind int

const (
	RateLimited Kind = iota
	Transient
	Passing
	Rejected
	KeyRejected
)

type Failure struct {
	Err        error
	Kind       Kind
	RetryAfter time.Duration
}
type Service[M any] interface {
	Get(ctx context.Context, id string, send func() bool) (s Snapshot[M], maxAge time.Duration, f *Failure)
	Page(ctx context.Context, cursor string, send func() bool) (shown []Snapshot[M], next string, f *Failure)
}
type Trouble struct{ Err error }
type Poller[M any] struct{}

func New[M any](svc Service[M], log func(Trouble)) *Poller[M]           { return nil }
func (p *Poller[M]) Subscribe(id string, patient bool) *Subscription[M] { return nil }
func (p *Poller[M]) Record(s Snapshot[M])                               {}
func (p *Poller[M]) Changed(id string)                                  {}
func (p *Poller[M]) Follow(since time.Time) *Follower[M]                { return nil }

type Subscription[M any] struct{}

func (s *Subscription[M]) C() <-chan Update[M] { return nil }
func (s *Subscription[M]) Confirm()            {}
func (s *Subscription[M]) Cancel() error       { return nil }

type Update[M any] struct {
	Snapshot Snapshot[M]
	Has      bool
	Err      error
}
type Follower[M any] struct{}

func (f *Follower[M]) Next(ctx context.Context) ([]Snapshot[M], error) { return nil, nil }
func (f *Follower[M]) Cancel()                                         {}
