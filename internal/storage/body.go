package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// body reads the recording of an attempt once, from its beginning. Each Read restarts the watchdog,
// which ends the attempt if the next Read comes too late or takes too long.
type body struct {
	put      *Put
	ctx      context.Context // nothing is read once it is done
	abort    context.CancelCauseFunc
	watchdog *time.Timer
	audio    *io.SectionReader
	at       atomic.Int64 // bytes read
	reading  atomic.Bool  // Audio or Progress is running
	// turn has a token while a Read runs. It is a channel because a mutex would stop the virtual time
	// of a test whose Audio sleeps.
	turn chan struct{}
}

func newBody(ctx context.Context, p *Put) *body {
	b := &body{put: p, audio: io.NewSectionReader(p.Audio, 0, p.Size), turn: make(chan struct{}, 1)}
	b.ctx, b.abort = context.WithCancelCause(ctx)
	b.watchdog = time.AfterFunc(p.Stall, b.stalled)
	return b
}

// stalled ends the attempt because nothing has happened for too long. The error is no
// context.DeadlineExceeded, which is about the caller's context.
func (b *body) stalled() {
	at, p := b.at.Load(), b.put
	e := &abortError{stalled: true, unreadable: b.reading.Load()}
	switch {
	case e.unreadable:
		e.error = fmt.Errorf("reading the recording blocked for %v, after %d of %d bytes: %w", p.Stall, at, p.Size, os.ErrDeadlineExceeded)
	case at == p.Size:
		e.error = fmt.Errorf("no response for %v after the whole recording was sent: %w", p.Response, os.ErrDeadlineExceeded)
	default:
		e.error = fmt.Errorf("no byte moved for %v, after %d of %d: %w", p.Stall, at, p.Size, os.ErrDeadlineExceeded)
	}
	b.abort(e)
}

// maxRead limits a Read, because a slow connection could need longer than Stall to send more.
const maxRead = 32 << 10

// Read reads the next part of the recording.
func (b *body) Read(p []byte) (int, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-b.ctx.Done():
	}
	at, size := b.at.Load(), b.put.Size
	switch {
	case b.ctx.Err() != nil:
		return 0, context.Cause(b.ctx)
	case at == size:
		return 0, io.EOF
	}
	b.watchdog.Reset(b.put.Stall)
	b.reading.Store(true)
	p = p[:min(int64(len(p)), maxRead, size-at)]
	n, err := b.audio.Read(p)
	if b.ctx.Err() != nil { // it blocked for too long
		return 0, context.Cause(b.ctx)
	}
	if n < len(p) {
		err = b.unreadable(at+int64(n), err)
	} else {
		err = nil // even io.EOF, which may accompany the last byte
	}
	at = b.at.Add(int64(n))
	if n > 0 && b.put.Progress != nil {
		b.put.Progress(at, size)
	}
	b.reading.Store(false)
	if b.ctx.Err() == nil {
		b.watchdog.Reset(b.limit(at))
	}
	return n, err
}

// limit is how long the watchdog waits after a Read.
func (b *body) limit(at int64) time.Duration {
	if at == b.put.Size {
		return b.put.Response
	}
	return b.put.Stall
}

// unreadable ends the attempt because the recording could be read only up to at.
func (b *body) unreadable(at int64, err error) error {
	switch {
	case err == nil:
		err = io.ErrNoProgress
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("it ended after %d of %d bytes: %w", at, b.put.Size, io.ErrUnexpectedEOF)
	}
	err = &abortError{error: fmt.Errorf("reading the recording: %w", err), unreadable: true}
	b.abort(err)
	return err
}

// end stops all reading. Unless a Read blocks, none is running afterwards.
func (b *body) end() {
	b.abort(nil)
	b.watchdog.Stop()
	select {
	case b.turn <- struct{}{}: // for ever
	case <-time.After(grace):
	}
}
