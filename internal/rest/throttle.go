package rest

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

type Throttle struct{ limit *rate.Limiter }

func NewThrottle(limit *rate.Limiter) *Throttle                                       { return &Throttle{limit} }
func (t *Throttle) Wait(ctx context.Context, background bool) error                   { return t.limit.Wait(ctx) }
func (t *Throttle) Ended()                                                            {}
func (t *Throttle) Limited(sentAt time.Time, retryAfter time.Duration) time.Duration { return 0 }
func (t *Throttle) Left() time.Duration                                               { return 0 }
