package minutes

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// tryBody is the body of one try of an upload. Each try has a reader of its
// own, so that one that was abandoned but still reads disturbs no other.
type tryBody interface {
	io.ReadCloser
	sentSoFar() int64
	// detach ends the body's use and returns what went wrong with the
	// recording, if anything did.
	detach() error
}

// body opens the recording for one try. Where nobody watches the progress and
// nothing stands between file and socket, the body is a file again, which the
// kernel can send by itself.
func (u *upload) body() tryBody {
	if u.progress == nil && u.target.Scheme == "http" {
		if f, ok := reopen(u.rec); ok {
			return f
		}
	}
	return &sectionBody{audio: u.rec.Audio, total: u.rec.Size, progress: u.progress, turn: make(chan struct{}, 1)}
}

// sectionBody reads the recording from its beginning and never gives more than
// its size.
type sectionBody struct {
	audio    io.ReaderAt
	total    int64
	progress func(sent, total int64)

	sent atomic.Int64 // also looked at while a Read is under way

	// turn is held while audio is read and progress runs, so that neither
	// happens after detach. It is no mutex, for both may take their time, and a
	// synctest bubble cannot tell that a mutex waits for time to pass.
	turn     chan struct{}
	chunk    int       // how much the next Read gives at most
	last     time.Time // when the last Read was
	detached bool
	err      error // the recording's
}

// Reads begin small and get small again when the network takes its time, since
// movement only shows when more is asked for.
const (
	smallChunk = 1 << 10
	largeChunk = 1 << 20
	slowChunk  = time.Second
)

func (b *sectionBody) Read(p []byte) (int, error) {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	if b.detached {
		return 0, errAbandoned
	}
	at := b.sent.Load()
	if at >= b.total {
		return 0, io.EOF
	}
	if now := time.Now(); now.Sub(b.last) > slowChunk {
		b.chunk, b.last = smallChunk, now
	} else {
		b.chunk, b.last = min(2*b.chunk, largeChunk), now
	}
	p = p[:min(int64(len(p)), int64(b.chunk), b.total-at)]
	n, err := b.audio.ReadAt(p, at)
	at += int64(n)
	switch {
	case n == len(p):
		err = nil // io.EOF may come with the last byte
	case err == io.EOF:
		err = fmt.Errorf("it ended after %d of %d bytes: %w", at, b.total, io.ErrUnexpectedEOF)
	}
	b.sent.Store(at)
	b.err = err
	if b.progress != nil && n > 0 {
		b.progress(at, b.total)
	}
	return n, err
}

var errAbandoned = errors.New("this try was abandoned")

// Close is for the transport; the recording stays open for the next try.
func (b *sectionBody) Close() error { return nil }

func (b *sectionBody) sentSoFar() int64 { return b.sent.Load() }

func (b *sectionBody) detach() error {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	b.detached = true
	return b.err
}
