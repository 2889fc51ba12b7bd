package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"time"
)

// body reads the recording of an attempt once, from its beginning. Each Read restarts the watchdog,
// which ends the attempt if the next Read comes too late or takes too long.
type body struct {
	*Put
	// ctx is that of the attempt: once it is done, nothing is read.
	ctx context.Context
	// abort ends ctx.
	abort context.CancelCauseFunc
	// connection is that of the attempt.
	connection connection
	// watchdog calls stalled.
	watchdog *time.Timer
	// sent is how many bytes have been read.
	sent atomic.Int64
	// turn has a token while a Read runs. It is a channel because a mutex would stop the virtual time
	// of a test whose Audio sleeps.
	turn chan struct{}
	// modified is when Audio had been written to last before the first byte was read, if Audio is a file.
	modified time.Time
}

// stalled ends the attempt because nothing has happened for too long.
func (b *body) stalled() {
	sent := b.sent.Load()
	what := errors.New("no byte moved")
	timeout := b.Stall
	switch {
	case len(b.turn) > 0: // in Audio or Progress
		what = fmt.Errorf("%w blocked", ErrUnreadable)
	case sent == b.Size:
		what = errors.New("no response")
		timeout = b.Response
	}
	b.abort(fmt.Errorf("%w for %v, after %d of %d bytes: %w", what, timeout, sent, b.Size, ErrStalled))
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
		return b.brokenOff()
	case sent == b.Size:
		return 0, io.EOF
	}
	b.watchdog.Reset(b.Stall)
	p = p[:min(int64(len(p)), most, b.Size-sent)]
	err := b.fill(p, sent)
	if err != nil {
		b.abort(fmt.Errorf("%w: %w", ErrUnreadable, err))
	}
	if b.ctx.Err() != nil {
		return b.brokenOff()
	}
	sent = b.sent.Add(int64(len(p)))
	if b.Progress != nil {
		b.Progress(sent, b.Size)
	}
	switch {
	case b.ctx.Err() != nil: // the attempt has ended, perhaps while Progress blocked
	case sent == b.Size:
		b.watchdog.Reset(b.Response)
	default:
		b.watchdog.Reset(b.Stall)
	}
	return len(p), nil
}

// brokenOff is what Read returns once ctx is done. The transport would close the connection in an
// orderly way, so it is reset before.
func (b *body) brokenOff() (int, error) {
	b.connection.reset()
	return 0, context.Cause(b.ctx)
}

// fill reads all of p at an offset. It checks a file before the first byte, so that no attempt is made in
// vain, and after the last byte, so that storage never gets that byte if the ones before are of another
// recording.
func (b *body) fill(p []byte, at int64) error {
	if at == 0 {
		modified, err := b.checkFile()
		if err != nil {
			return err
		}
		b.modified = modified
	}
	n, err := b.Audio.ReadAt(p, at)
	soFar := at + int64(n)
	if n == len(p) && soFar < b.Size {
		return nil
	}
	modified, changed := b.checkFile()
	switch {
	case changed != nil:
		return changed
	case !modified.Equal(b.modified):
		return fmt.Errorf("%w; %s", ErrChanged, untilComplete)
	case n == len(p): // err is nil, or io.EOF with the last byte
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("it ended after %d of %d bytes: %w", soFar, b.Size, io.ErrUnexpectedEOF)
	}
	return err
}

const untilComplete = "upload it once nothing writes to it any more"

// checkFile returns an error if Audio is a file of another size, and otherwise when someone last wrote
// to it.
func (b *body) checkFile() (modified time.Time, err error) {
	file, ok := b.Audio.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return time.Time{}, nil
	}
	info, err := file.Stat()
	if err != nil {
		return time.Time{}, err
	}
	if info.Size() != b.Size {
		return time.Time{}, fmt.Errorf("%w from %d to %d bytes; %s", ErrChanged, b.Size, info.Size(), untilComplete)
	}
	return info.ModTime(), nil
}

// endReads stops all reading. Unless a Read blocks, none is running afterwards.
func (b *body) endReads() {
	b.abort(nil)
	select {
	case b.turn <- struct{}{}: // no Read is running, and none can begin
	case <-time.After(grace):
	}
	b.watchdog.Stop()
}
