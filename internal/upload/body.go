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

// Recording is what is uploaded.
type Recording struct {
	Audio       io.ReaderAt
	Size        int64
	ContentType string
}

// body reads the recording from its beginning, for one attempt. An abandoned attempt that
// still reads disturbs no other, since each has its own body.
type body struct {
	Recording
	ctx   context.Context         // of the attempt; nothing is read after its end
	abort context.CancelCauseFunc // ends ctx
	moved func(sent int64)        // called after each part; may be nil
	sent  atomic.Int64            // how far it has read

	// lock is held during a Read. It is no mutex: Audio and moved may sleep, and time in a
	// synctest bubble stops while a goroutine waits for a mutex.
	lock chan struct{}
	err  error // the recording's, or errGoexit
}

func newBody(ctx context.Context, rec Recording) (*body, context.CancelCauseFunc) {
	ctx, abort := context.WithCancelCause(ctx)
	return &body{Recording: rec, ctx: ctx, abort: abort, lock: make(chan struct{}, 1)}, abort
}

func (b *body) Read(p []byte) (int, error) {
	b.lock <- struct{}{}
	defer func() {
		if errors.Is(b.err, errGoexit) {
			b.abort(errGoexit) // a transport does not notice
		}
		<-b.lock
	}()
	at := b.sent.Load()
	switch {
	case b.ctx.Err() != nil:
		return 0, context.Cause(b.ctx)
	case at >= b.Size:
		return 0, io.EOF
	}
	// Only the next Read shows that something moves, so none takes much.
	const most = 32 << 10
	p = p[:min(int64(len(p)), most, b.Size-at)]
	b.err = errGoexit // unless Audio and moved return
	n, err := b.Audio.ReadAt(p, at)
	if n < 0 || n > len(p) {
		n, err = 0, fmt.Errorf("ReadAt returned %d for %d bytes", n, len(p))
	}
	at += int64(n)
	switch {
	case n == len(p):
		err = nil // io.EOF may come with the last byte
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("it ended after %d of %d bytes: %w", at, b.Size, io.ErrUnexpectedEOF)
	case n == 0 && err == nil:
		err = io.ErrNoProgress
	}
	b.sent.Store(at)
	if n > 0 && b.moved != nil && b.ctx.Err() == nil {
		b.moved(at)
	}
	b.err = err
	return n, err
}

// end waits for a Read that is under way, and returns what went wrong with the recording or a
// callback. b.ctx has ended, so no other Read begins.
func (b *body) end() error {
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	return b.err
}

// addMD5 adds the header Content-MD5, unless the URL's signature may not allow a header that
// it does not cover. Then a store never keeps a part of the recording for all of it.
func (u *Upload) addMD5(ctx context.Context) error {
	covers := u.target.Query().Get("X-Amz-Algorithm") != "AWS4-HMAC-SHA256"
	if u.WithoutMD5 || covers || u.header.Get("Content-Md5") != "" {
		return nil
	}
	sum, err := u.digest(ctx)
	if err == nil {
		u.header.Set("Content-Md5", sum)
	}
	return err
}

// digest returns the MD5 of the recording as the header Content-MD5 has it.
func (u *Upload) digest(ctx context.Context) (string, error) {
	b, cancel := newBody(ctx, u.Recording)
	defer cancel(nil)
	hash := md5.New()
	readErr, err := run(ctx, func() error {
		_, err := io.Copy(hash, b)
		return err
	})
	if err = cmp.Or(err, readErr); err != nil {
		return "", u.unreadable(err)
	}
	return base64.StdEncoding.EncodeToString(hash.Sum(nil)), nil
}

func (u *Upload) unreadable(err error) error {
	if errors.Is(err, errGoexit) {
		return err
	}
	return fmt.Errorf("the recording could not be read: %w", u.mask.Err(err))
}
