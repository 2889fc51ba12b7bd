package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// body reads the recording of an attempt once, from its beginning. Each Read restarts the watchdog,
// which ends the attempt if the next Read comes too late or takes too long.
type body struct {
	*Put
	ctx      context.Context // nothing is read once it is done
	abort    context.CancelCauseFunc
	watchdog *time.Timer
	sent     atomic.Int64 // bytes read
	// turn has a token while a Read runs. It is a channel because a mutex would stop the virtual time
	// of a test whose Audio sleeps.
	turn chan struct{}
}

// stalled ends the attempt because nothing has happened for too long.
func (b *body) stalled() {
	sent, limit := b.sent.Load(), b.Stall
	what := errors.New("no byte moved")
	switch {
	case len(b.turn) > 0: // in Audio or Progress
		what = fmt.Errorf("%w blocked", ErrUnreadable)
	case sent == b.Size:
		what, limit = errors.New("no response"), b.Response
	}
	b.abort(fmt.Errorf("%w for %v, after %d of %d bytes: %w", what, limit, sent, b.Size, ErrStalled))
}

// Read reads the next part of the recording.
func (b *body) Read(p []byte) (int, error) {
	const most = 32 << 10 // a slow connection could need longer than Stall to send more
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-b.ctx.Done():
	}
	sent := b.sent.Load()
	switch {
	case b.ctx.Err() != nil:
		return 0, context.Cause(b.ctx)
	case sent == b.Size:
		return 0, io.EOF
	}
	b.watchdog.Reset(b.Stall)
	p = p[:min(int64(len(p)), most, b.Size-sent)]
	n, err := b.Audio.ReadAt(p, sent)
	if n < len(p) { // otherwise err is nil, or io.EOF with the last byte
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("it ended after %d of %d bytes: %w", sent+int64(n), b.Size, io.ErrUnexpectedEOF)
		}
		b.abort(fmt.Errorf("%w: %w", ErrUnreadable, err))
	}
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	sent = b.sent.Add(int64(n))
	if b.Progress != nil {
		b.Progress(sent, b.Size)
	}
	switch {
	case b.ctx.Err() != nil: // Progress blocked
	case sent == b.Size:
		b.watchdog.Reset(b.Response)
	default:
		b.watchdog.Reset(b.Stall)
	}
	return n, nil
}

// end stops all reading. Unless a Read blocks, none is running afterwards.
func (b *body) end() {
	b.abort(nil)
	select {
	case b.turn <- struct{}{}: // for ever
	case <-time.After(grace):
	}
	b.watchdog.Stop()
}

// grace is how long to wait for a call after its context is done, since it needs a moment to notice.
const grace = 100 * time.Millisecond

// Run calls f on another goroutine and returns what f returns. If f blocks although ctx is done, Run
// returns the cause of ctx, and f may still be running. If f succeeds after that, late gets the value.
func Run[T any](ctx context.Context, f func() (T, error), late func(T)) (T, error) {
	var value T
	err := errors.New("the call ended its goroutine") // as a test's FailNow does
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		value, err = f()
	}()
	select {
	case <-ended:
		return value, err
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return value, err
	case <-time.After(grace):
	}
	go func() {
		if <-ended; err == nil {
			late(value)
		}
	}()
	return *new(T), context.Cause(ctx)
}
