package storage

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

// body reads a recording from its beginning, for one request, and never gives
// more than its size. Each request has one of its own, so that one that was
// abandoned but still reads disturbs no other.
type body struct {
	Recording
	ctx   context.Context         // of the request: once it has ended, nothing is read
	sent  *atomic.Int64           // also looked at while a Read is under way
	moved func(sent, total int64) // told of what was read

	// turn is held while the recording is read and moved runs. It is no
	// mutex, for both may take their time, and a synctest bubble cannot tell that
	// a mutex waits for time to pass.
	turn  chan struct{}
	chunk int       // how much the next Read gives at most
	last  time.Time // when the last Read ended
	err   error     // the recording's
}

func newBody(ctx context.Context, rec Recording, sent *atomic.Int64, moved func(sent, total int64)) *body {
	return &body{Recording: rec, ctx: ctx, sent: sent, moved: moved, turn: make(chan struct{}, 1)}
}

func (b *body) Read(p []byte) (int, error) {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	at := b.sent.Load()
	switch {
	case b.ctx.Err() != nil:
		return 0, context.Cause(b.ctx)
	case at >= b.Size:
		return 0, io.EOF
	case len(p) == 0: // which must not make the portions nothing
		return 0, nil
	}
	// Reads begin small and get small again when the network takes its time, since
	// movement only shows when more is asked for.
	b.chunk = min(2*b.chunk, len(p))
	if time.Since(b.last) > time.Second {
		b.chunk = 1 << 10
	}
	n, err := b.readAt(p[:min(int64(len(p)), int64(b.chunk), b.Size-at)], at)
	b.last = time.Now() // a slow disk is not a slow network
	at += int64(n)
	b.sent.Store(at)
	b.err = err
	if n > 0 && b.ctx.Err() == nil {
		b.moved(at, b.Size)
	}
	return n, err
}

// readAt reads what it can, and refuses what is not as io.ReaderAt has it.
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

// Close is for the transport; the recording stays open for other requests.
func (b *body) Close() error { return nil }

// detach waits for a Read that is under way and returns what went wrong with
// the recording, if anything did. The body's context has ended: there is no
// other Read.
func (b *body) detach() error {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	return b.err
}

// Digest reads the recording once, for its MD5. It obeys ctx as Do does.
func (p *Put) Digest(ctx context.Context) error {
	hash := md5.New()
	failed, err := obey(ctx, func() error {
		_, err := io.Copy(hash, newBody(ctx, p.Recording, new(atomic.Int64), func(_, _ int64) {}))
		return err
	})
	if err = cmp.Or(err, failed); err != nil {
		return p.unreadable(err)
	}
	p.Recording.MD5 = base64.StdEncoding.EncodeToString(hash.Sum(nil))
	return nil
}

func (p *Put) unreadable(err error) error {
	return fmt.Errorf("the recording could not be read: %w", p.Mask.Err(err))
}
