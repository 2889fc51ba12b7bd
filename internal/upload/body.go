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
	"time"
)

// Recording is the recording to upload.
type Recording struct {
	Audio       io.ReaderAt
	Size        int64
	ContentType string
}

// errGoexit means that a callback called runtime.Goexit, as a test's FailNow does. Since such a call
// does not return, an error variable is set to errGoexit before the call, and to another value after.
var errGoexit = errors.New("a callback ended its goroutine (runtime.Goexit)")

// run calls f on another goroutine and returns its result. If f still runs 100 ms after the end of
// ctx, run returns the cause of ctx, and f ends later.
func run[T any](ctx context.Context, f func() T) (T, error) {
	var result, none T
	err := errGoexit
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = f(), nil
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		select {
		case <-ended:
		case <-time.After(100 * time.Millisecond): // f needs a moment to notice the end of ctx
			return none, context.Cause(ctx)
		}
	}
	return result, err
}

// body reads the recording once, from its beginning.
type body struct {
	Recording
	ctx    context.Context         // nothing is read after its end
	abort  context.CancelCauseFunc // ends ctx
	onRead func(at int64)          // called after each read; may be nil
	at     atomic.Int64            // number of bytes read

	// lock contains a token during a Read. With a mutex, tests in a synctest bubble would hang if
	// Audio sleeps.
	lock chan struct{}
	err  error // of the last read of the recording, or errGoexit
}

func newBody(ctx context.Context, rec Recording) *body {
	ctx, abort := context.WithCancelCause(ctx)
	return &body{Recording: rec, ctx: ctx, abort: abort, lock: make(chan struct{}, 1)}
}

// maxRead limits a Read, since a slow connection could need longer than Timeouts.Stall for a larger
// part.
const maxRead = 32 << 10

// Read reads the next part of the recording.
func (b *body) Read(p []byte) (int, error) {
	b.lock <- struct{}{}
	defer func() {
		if errors.Is(b.err, errGoexit) {
			b.abort(errGoexit) // the transport waits for this Read, which never returns
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
	p = p[:min(int64(len(p)), maxRead, b.Size-at)]
	b.err = errGoexit
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
	if n > 0 && b.onRead != nil && b.ctx.Err() == nil {
		b.onRead(at)
	}
	b.err = err
	return n, err
}

// wait waits until no Read is running, and returns err. Call abort first, so that no Read begins.
func (b *body) wait() error {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	return b.err
}

// digest returns the MD5 of a recording in the form of the header Content-MD5.
func digest(ctx context.Context, rec Recording) (string, error) {
	b := newBody(ctx, rec)
	defer b.abort(nil)
	hash := md5.New()
	readErr, err := run(ctx, func() error {
		_, err := io.Copy(hash, b)
		return err
	})
	if err = cmp.Or(err, readErr); err != nil {
		return "", err // the goroutine of run may still write to hash
	}
	return base64.StdEncoding.EncodeToString(hash.Sum(nil)), nil
}
