package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// MaxRecordingSize is the largest recording that this package uploads, in bytes (1 GiB). The
// service's own limit is lower, about 10^9 bytes, but not exact ([section 8]). So a recording between
// the two is sent, but may be rejected.
//
// [section 8]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#8-limits-and-costs
const MaxRecordingSize = 1 << 30

// Source opens a recording for one upload. Use [FromFile], [FromReader] or [FromReaderAt], or write
// your own Source, for example to read from a database or a URL (see [docs/uploads.md]). The Client
// calls it with the context of the upload, and each successful call must return a new Recording,
// because the Client closes the Recording at the end. By then the upload is over, so an error from
// Close is only logged.
//
// A Source that blocks keeps its upload slot until ctx is done. The Client calls a Source on a
// goroutine of its own, so a panic in it ends the program.
//
// [docs/uploads.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/uploads.md
type Source func(ctx context.Context) (Recording, error)

// Recording is what a [Source] opens: audio that the Client can read again for each attempt.
type Recording struct {
	// Audio is what to upload. Each attempt reads it from offset 0.
	//
	// If Audio is an *os.File, or another type with a method Stat, Size must be the size of the
	// file. If the file changes during the upload, the upload fails, and nothing is stored. To
	// upload a part of a file, use an [io.SectionReader].
	Audio io.ReaderAt
	// Size is the length in bytes, from 1 to MaxRecordingSize.
	Size int64
	// ContentType is a MIME type, such as "audio/mpeg". A type of audio or video is sent as it is,
	// whatever the bytes are, except that parameters that cannot be parsed are dropped. Another
	// type of an application is sent only if the content does not show its own. Everything else
	// (empty, application/octet-stream, image, text, multipart, "mp3") says nothing, so the Client
	// finds the type from the content, or fails with ErrRecordingFormat.
	ContentType string
}

// Close closes Audio if Audio is an io.Closer, and otherwise does nothing.
func (r Recording) Close() error {
	if c, ok := r.Audio.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func checkSize(param string, size int64) error {
	switch {
	case size <= 0:
		return &ParamError{Param: param, Reason: ErrRecordingEmpty.Error(), Err: ErrRecordingEmpty}
	case size > MaxRecordingSize:
		return &ParamError{Param: param, Reason: ErrRecordingTooLarge.Error(), Err: ErrRecordingTooLarge}
	}
	return nil
}

// openRecording opens the recording of source, checks it and completes its content type. If source
// blocks although ctx is done, openRecording returns, and the recording is closed if source opens
// it later.
func openRecording(ctx context.Context, source Source) (Recording, error) {
	return storage.Run(ctx, func() (Recording, error) {
		rec, err := source(ctx)
		if err != nil {
			return Recording{}, err
		}
		err = cmp.Or(checkGiven("recording.Audio", rec.Audio != nil), checkSize("recording.Size", rec.Size))
		if err == nil {
			rec.ContentType, err = findContentType(
				"recording.ContentType", rec.ContentType, "", rec.Audio, rec.Size,
			)
		}
		if err != nil {
			return Recording{}, errors.Join(err, rec.Close())
		}
		return rec, nil
	}, func(late Recording) { _ = late.Close() })
}

// FromFile returns a Source for a file, and finds the content type from its content, or from its
// extension if the content does not show it. Content that is recognisably not a recording, such as
// text, or not a whole one, such as an MP4 file that its recorder did not finish, is an
// [ErrRecordingFormat] whatever the extension. To declare a type, return the file from a Source of
// your own (see [docs/uploads.md]). If the file changes during an upload, the upload fails without
// storing it, with an error that is [Retryable].
//
// Errors of the Source: the error of opening or reading the file (compare with
// [io/fs.ErrNotExist]), or a *[ParamError] that names the file: [ErrRecordingEmpty],
// [ErrRecordingTooLarge], [ErrRecordingFormat], or a path that is a URL or does not lead to a
// regular file.
//
// [docs/uploads.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/uploads.md
func FromFile(path string) Source {
	return func(context.Context) (Recording, error) {
		info, err := os.Stat(path) // first, since opening a named pipe would block
		if err != nil {
			return Recording{}, cmp.Or(checkNotURL(path), checkNotPattern(path, err), err)
		}
		if !info.Mode().IsRegular() {
			return Recording{}, fileError(path, &ParamError{Param: "path", Reason: "it is not a regular file"})
		}
		f, err := os.Open(path)
		if err != nil {
			return Recording{}, err
		}
		rec, err := describeFile(f)
		if err != nil {
			_ = f.Close() // it was only read
			return Recording{}, fileError(path, err)
		}
		return rec, nil
	}
}

// describeFile returns a file as a Recording.
func describeFile(f *os.File) (Recording, error) {
	info, err := f.Stat()
	if err != nil {
		return Recording{}, err
	}
	err = checkSize("path", info.Size())
	if err != nil {
		return Recording{}, err
	}
	contentType, err := findContentType("path", "", filepath.Ext(f.Name()), f, info.Size())
	if err != nil {
		return Recording{}, err
	}
	return Recording{Audio: f, Size: info.Size(), ContentType: contentType}, nil
}

// fileError adds the name of the file to a ParamError.
func fileError(path string, err error) error {
	if bad, ok := err.(*ParamError); ok {
		bad.Reason = strconv.Quote(path) + ": " + bad.Reason
	}
	return err
}

// urlPattern matches a URL up to its host, which is the group. path/filepath leaves one slash of two.
var urlPattern = regexp.MustCompile(`(?i)^data:|(?:^|[/\\ :])(?:[a-z][a-z0-9+.-]*://|https?:/)([^/?#]*)`)

// checkNotURL returns an error if path is a URL, even one with a directory before it. It shows only
// the host, because the rest may be secret.
func checkNotURL(path string) error {
	found := urlPattern.FindStringSubmatch(path)
	if found == nil {
		return nil
	}
	host := found[1][strings.LastIndex(found[1], "@")+1:] // without user and password
	return &ParamError{Param: "path", Reason: fmt.Sprintf(
		"is a URL (of host %.100q), not the path of a file; to upload from a URL, see docs/uploads.md", host,
	)}
}

// checkNotPattern returns an error that wraps err if path, which does not exist, is a pattern for several
// files.
func checkNotPattern(path string, err error) error {
	if !strings.ContainsAny(path, "*?[") || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	reason := "there is no such file, and FromFile takes one path and no pattern; see filepath.Glob"
	return fileError(path, &ParamError{Param: "path", Reason: reason, Err: err})
}

// FromReaderAt returns a Source for size bytes of ra, such as the file of a web form. The Client
// does not close ra. What contentType may be, and when the Client finds the type from the content,
// is as in [Recording]. As there, if ra is a file, size must be the file's size.
//
// Errors of the Source: a *[ParamError] if a parameter is invalid. For an invalid size it wraps
// [ErrRecordingEmpty] or [ErrRecordingTooLarge].
func FromReaderAt(ra io.ReaderAt, size int64, contentType string) Source {
	return func(context.Context) (Recording, error) {
		err := cmp.Or(checkGiven("ra", ra != nil), checkSize("size", size))
		if err != nil {
			return Recording{}, err
		}
		return Recording{Audio: withoutClose(ra), Size: size, ContentType: contentType}, nil
	}
}

// withoutClose hides the method Close of ra, but not Stat.
func withoutClose(ra io.ReaderAt) io.ReaderAt {
	type stater interface{ Stat() (fs.FileInfo, error) }
	if file, ok := ra.(stater); ok {
		return struct {
			io.ReaderAt
			stater
		}{ra, file}
	}
	return struct{ io.ReaderAt }{ra}
}

// FromReader returns a Source that copies r to a temporary file, because an upload needs the length
// first and may be retried. The file is in [os.TempDir], and is gone when the upload ends. The
// Source works only once, because then r has been read. What contentType may be, and when the Client
// finds the type from the content, is as in [Recording].
//
// Errors of the Source:
//   - The error of reading r, of writing the file, or of the context.
//   - An error if one read takes longer than a minute, if a hundred reads in a row return nothing
//     ([io.ErrNoProgress]), or if the Source was opened before.
//   - *[ParamError]: r is nil, has no bytes ([ErrRecordingEmpty]) or too many
//     ([ErrRecordingTooLarge]).
func FromReader(r io.Reader, contentType string) Source {
	var opened atomic.Bool
	return func(ctx context.Context) (Recording, error) {
		err := checkGiven("r", r != nil)
		if err != nil {
			return Recording{}, err
		}
		if opened.Swap(true) {
			return Recording{}, errors.New("minutes: a Source from FromReader opens only once, since r has been read")
		}
		copied, err := newSpool()
		if err != nil {
			return Recording{}, err
		}
		size, err := copied.fill(ctx, r)
		err = cmp.Or(err, checkSize("r", size))
		if err != nil {
			return Recording{}, errors.Join(err, copied.Close())
		}
		return Recording{Audio: copied, Size: size, ContentType: contentType}, nil
	}
}

// spool is a temporary file with the copy of a recording. If the system allows it, the file is
// removed as soon as it is open, so that a program that is killed leaves nothing behind.
type spool struct {
	file *os.File
	// left is the path if the file could not be removed while it is open, as on Windows; otherwise
	// "".
	left string
}

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "minutes-recording-*")
	if err != nil {
		return nil, spoolError(err)
	}
	s := &spool{file: f}
	if os.Remove(f.Name()) != nil {
		s.left = f.Name()
	}
	return s, nil
}

// spoolError says which directory is meant and how to choose another, because a container may have
// a small one, a read-only one or none.
func spoolError(err error) error {
	return fmt.Errorf("minutes: copying the recording to a temporary file in %s: %w; "+
		"let TMPDIR (on Windows TMP) name a directory that has room for it", os.TempDir(), err)
}

// readerTimeout is how long a read of the reader of FromReader may take, since four readers that
// block would otherwise stop all uploads.
const readerTimeout = time.Minute

// fill copies r, and returns its length. It returns soon after ctx is done or a read has taken too
// long, even if that read still blocks.
func (s *spool) fill(ctx context.Context, r io.Reader) (int64, error) {
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	watchdog := time.AfterFunc(readerTimeout, func() {
		abort(fmt.Errorf("minutes: reading the recording blocked for %v: %w", readerTimeout, os.ErrDeadlineExceeded))
	})
	defer watchdog.Stop()
	watched := &watchedReader{ctx: ctx, r: io.LimitReader(r, MaxRecordingSize+1), watchdog: watchdog}
	size, err := storage.Run(ctx, func() (int64, error) { return io.Copy(s.file, watched) }, func(int64) {})
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Path == s.file.Name() {
		err = spoolError(err)
	}
	return size, err
}

// ReadAt reads the copy.
func (s *spool) ReadAt(p []byte, at int64) (int, error) { return s.file.ReadAt(p, at) }

// Close deletes the copy.
func (s *spool) Close() error {
	err := s.file.Close()
	if s.left != "" {
		err = errors.Join(err, os.Remove(s.left))
	}
	return err
}

// watchedReader reads until ctx is done, and restarts the watchdog before each read. A reader that
// again and again returns nothing, and no error, would otherwise keep a processor busy for ever.
type watchedReader struct {
	ctx      context.Context
	r        io.Reader
	watchdog *time.Timer
	empty    int // reads in a row that returned nothing
}

func (w *watchedReader) Read(p []byte) (int, error) {
	const most = 100 // as in bufio
	switch {
	case w.ctx.Err() != nil:
		return 0, context.Cause(w.ctx)
	case w.empty == most:
		return 0, io.ErrNoProgress
	}
	w.watchdog.Reset(readerTimeout)
	n, err := w.r.Read(p)
	if n > 0 {
		w.empty = 0
	} else {
		w.empty++
	}
	return n, err
}
