package minutes

import (
	"io"
	"os"
	"runtime"
	"sync/atomic"
)

// fileBody lets net/http hand a file to the kernel (sendfile). It is a file of
// its own, since the kernel moves the file's offset.
type fileBody struct {
	*os.File
	seen atomic.Int64
}

// reopen opens the recording's file once more, if it is one, still stands under
// its name, and is exactly as long as the upload.
func reopen(rec Recording) (*fileBody, bool) {
	f, ok := rec.Audio.(*os.File)
	if !ok || runtime.GOOS != "linux" {
		// Elsewhere the offset moves when all has been sent, which would look
		// like a stall.
		return nil, false
	}
	old, err := f.Stat()
	if err != nil || !old.Mode().IsRegular() || old.Size() != rec.Size {
		return nil, false
	}
	again, err := os.Open(f.Name())
	if err != nil {
		return nil, false
	}
	if now, err := again.Stat(); err != nil || !os.SameFile(old, now) {
		_ = again.Close() // only read
		return nil, false
	}
	return &fileBody{File: again}, true
}

// sentSoFar is the file's offset, which the kernel moves as it sends. The
// transport closes the file when it is done with it; then it is the offset that
// was seen last.
func (b *fileBody) sentSoFar() int64 {
	if at, err := b.Seek(0, io.SeekCurrent); err == nil {
		b.seen.Store(at)
	}
	return b.seen.Load()
}

// detach closes the file, which the transport should have done. It finds
// nothing wrong: a file that changed shows as a broken upload, and the next try
// reads it in sections and finds out.
func (b *fileBody) detach() error {
	b.sentSoFar()
	_ = b.Close() // only read, and most often closed already
	return nil
}

// asFile gives net/http the file itself, since it looks for that type.
func asFile(body tryBody) io.ReadCloser {
	if f, ok := body.(*fileBody); ok {
		return f.File
	}
	return body
}
