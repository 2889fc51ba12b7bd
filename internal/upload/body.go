package upload

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Recording is the recording to upload.
type Recording struct {
	Audio       io.ReaderAt
	Size        int64
	ContentType string
}

// body reads the recording once, from its beginning.
type body struct {
	Recording
	ctx   context.Context         // nothing is read after its end
	abort context.CancelCauseFunc // ends ctx
	moved func(at int64)          // called after each part; may be nil
	at    atomic.Int64            // the offset of the next part

	// lock is held during a Read. It is a channel because Audio and moved may sleep: in a
	// synctest bubble, time stops while a goroutine waits for a mutex.
	lock chan struct{}
	err  error // of the recording, or errGoexit
}

func newBody(ctx context.Context, rec Recording) (*body, context.CancelCauseFunc) {
	ctx, abort := context.WithCancelCause(ctx)
	return &body{Recording: rec, ctx: ctx, abort: abort, lock: make(chan struct{}, 1)}, abort
}

// Read reads the next part of the recording. Parts are small, because each part restarts the
// stall timer: on a slow connection, a large part would look like a stall.
func (b *body) Read(p []byte) (int, error) {
	const longest = 32 << 10
	b.lock <- struct{}{}
	defer func() {
		if errors.Is(b.err, errGoexit) {
			b.abort(errGoexit) // Audio or moved called runtime.Goexit, so this Read never returns
		}
		<-b.lock
	}()
	at := b.at.Load()
	switch {
	case b.ctx.Err() != nil:
		return 0, context.Cause(b.ctx)
	case at >= b.Size:
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), longest, b.Size-at)]
	b.err = errGoexit // remains if Audio or moved does not return
	n, err := b.Audio.ReadAt(p, at)
	at += int64(n)
	switch {
	case n == len(p):
		err = nil // even io.EOF, which may accompany the last byte
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("it ended after %d of %d bytes: %w", at, b.Size, io.ErrUnexpectedEOF)
	case n == 0 && err == nil:
		err = io.ErrNoProgress
	}
	if err != nil {
		err = fmt.Errorf("the recording could not be read: %w", err)
	}
	b.at.Store(at)
	if n > 0 && b.moved != nil && b.ctx.Err() == nil {
		b.moved(at)
	}
	b.err = err
	return n, err
}

// wait waits for a Read that is running, and returns err. ctx must have ended, so that no Read begins.
func (b *body) wait() error {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	return b.err
}

// digest returns the MD5 of a recording in the form of the header Content-MD5.
func digest(ctx context.Context, rec Recording) (string, error) {
	b, cancel := newBody(ctx, rec)
	defer cancel(nil)
	hash := md5.New()
	readErr, err := run(ctx, func() error {
		_, err := io.Copy(hash, b)
		return err
	})
	if err = cmp.Or(err, readErr); err != nil {
		return "", err // do not use hash: a goroutine of run may still write to it
	}
	return base64.StdEncoding.EncodeToString(hash.Sum(nil)), nil
}
