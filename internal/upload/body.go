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

// Recording is what is uploaded.
type Recording struct {
	Audio       io.ReaderAt
	Size        int64
	ContentType string
}

// body reads the recording from its beginning, for one attempt. Each attempt has its own, so a former attempt that
// still reads disturbs no other.
type body struct {
	Recording
	ctx   context.Context         // of the attempt; after its end, nothing is read
	abort context.CancelCauseFunc // ends ctx
	sent  *atomic.Int64           // bytes read so far; also read by others
	moved func(sent, total int64) // called after each Read

	// lock is held during a Read. It is no mutex, since the recording and moved may take their time, and a synctest
	// bubble does not see that a goroutine that waits for a mutex waits for time to pass.
	lock  chan struct{}
	chunk int       // the most that the next Read returns
	last  time.Time // of the last Read
	err   error     // the recording's, or errGoexit
}

func (b *body) Read(p []byte) (int, error) {
	b.lock <- struct{}{}
	defer func() {
		if b.err == errGoexit {
			b.abort(b.err) // the transport will not notice by itself
		}
		<-b.lock
	}()
	at := b.sent.Load()
	switch {
	case b.ctx.Err() != nil:
		return 0, context.Cause(b.ctx)
	case at >= b.Size:
		return 0, io.EOF
	case len(p) == 0: // must not set chunk to 0
		return 0, nil
	}
	// Reads begin small, and become small again if the network is slow: only the next Read shows that it moves.
	b.chunk = min(2*b.chunk, len(p))
	if time.Since(b.last) > time.Second {
		b.chunk = 1 << 10
	}
	b.last = time.Now()
	b.err = errGoexit // unless the callbacks return
	n, err := b.readAt(p[:min(int64(len(p)), int64(b.chunk), b.Size-at)], at)
	at += int64(n)
	b.sent.Store(at)
	if n > 0 && b.ctx.Err() == nil {
		b.moved(at, b.Size)
	}
	b.err = err
	return n, err
}

// readAt reads from the recording, and rejects results that break the rules of io.ReaderAt.
func (b *body) readAt(p []byte, at int64) (int, error) {
	n, err := b.Audio.ReadAt(p, at)
	switch {
	case n < 0 || n > len(p):
		return 0, errors.New("its ReadAt returned an impossible count")
	case n == len(p):
		return n, nil // io.EOF may come with the last byte
	case err == io.EOF:
		return n, fmt.Errorf("it ended after %d of %d bytes: %w", at+int64(n), b.Size, io.ErrUnexpectedEOF)
	case n == 0 && err == nil:
		return 0, io.ErrNoProgress
	}
	return n, err
}

// digest returns the MD5 of the recording, for the header Content-MD5.
func (u *Upload) digest(ctx context.Context) (string, error) {
	hash := md5.New()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	readErr, err := run(ctx, func() error {
		_, err := io.Copy(hash, &body{
			Recording: u.Recording, ctx: ctx, abort: cancel, sent: new(atomic.Int64), moved: func(_, _ int64) {}, lock: make(chan struct{}, 1),
		})
		return err
	})
	if err = cmp.Or(err, readErr); err != nil {
		return "", u.unreadable(err)
	}
	return base64.StdEncoding.EncodeToString(hash.Sum(nil)), nil
}

func (u *Upload) unreadable(err error) error {
	if err == errGoexit {
		return err
	}
	return fmt.Errorf("the recording could not be read: %w", u.mask.Err(err))
}
