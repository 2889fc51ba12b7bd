package rest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

type Throttle struct {
	mu       sync.Mutex
	limit    *rate.Limiter
	until    time.Time // end of the pause
	began    time.Time // of the pause
	row      int
	allowed  float64 // requests a second; 0: no bound
	tokens   float64
	at       time.Time
	sent     []time.Time
	users, bgs, inRow    int
	lastGrow time.Time
}

const growth = 0.001 // grown = growth * t * t

func NewThrottle(limit *rate.Limiter) *Throttle { return &Throttle{limit: limit} }

func (t *Throttle) Wait(ctx context.Context, background bool) error {
	t.mu.Lock()
	if !background {
		t.users++
		defer func() { t.mu.Lock(); t.users--; t.mu.Unlock() }()
	}
	if background {
		t.bgs++
		defer func() { t.mu.Lock(); t.bgs--; t.mu.Unlock() }()
	}
	for {
		now := time.Now()
		d := t.until.Sub(now)
		if t.allowed > 0 {
			x, y := max(0, t.at.Sub(t.began).Seconds()), now.Sub(t.began).Seconds()
			t.allowed += growth * (y*y - x*x)
			t.tokens = min(1, t.tokens+t.allowed*now.Sub(t.at).Seconds())
			t.at = now
			if t.tokens < 1 {
				d = max(d, time.Duration((1-t.tokens)/t.allowed*float64(time.Second))+time.Millisecond)
			}
		}
		if background && t.users > 0 && t.inRow < 3 {
			d = max(d, 50*time.Millisecond)
		}
		if !background && t.bgs > 0 && t.inRow >= 3 {
			d = max(d, 10*time.Millisecond)
		}
		if d <= 0 {
			r := t.limit.ReserveN(now, 1)
			if r.DelayFrom(now) == 0 {
				break
			}
			d = r.DelayFrom(now)
			r.CancelAt(now)
		}
		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
		}
		t.mu.Lock()
	}
	now := time.Now()
	t.tokens--
	if background {
		t.inRow = 0
	} else {
		t.inRow++
	}
	t.sent = append(t.sent, now)
	for now.Sub(t.sent[0]) > 10*time.Second {
		t.sent = t.sent[1:]
	}
	if t.allowed > 0 && t.allowed > 4*float64(len(t.sent))/10+1 {
		t.allowed = 0
	}
	t.mu.Unlock()
	return nil
}
func (t *Throttle) Ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row = 0
}
func (t *Throttle) Limited(sentAt time.Time, retryAfter time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if !sentAt.After(t.began) {
		return 0
	}
	t.row++
	d := max(retryAfter, time.Duration(rand.Float64()*float64(time.Second<<min(t.row, 4))))
	t.began = now
	t.until = now.Add(d)
	if t.allowed == 0 {
		t.allowed = max(0.5, float64(len(t.sent))/max(1, now.Sub(t.sent[0]).Seconds()))
		t.tokens, t.at = 0, now
	}
	t.allowed = max(0.02, t.allowed/2)
	return d
}
func (t *Throttle) Left() time.Duration { return 0 }
