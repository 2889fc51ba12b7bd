package minutes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// MaxRecordingSize is the largest size of a recording that this package uploads, in bytes (1 GiB). The
// service rejects most recordings over 10^9 bytes, one gigabyte (section 8).
const MaxRecordingSize = 1 << 30

// Source opens a recording for one upload. Use [FromFile], [FromReader] or [FromReaderAt], or write your
// own Source, for example to read from a database. The Client calls it with the context of the upload, and
// each successful call must return a new Recording, because the Client closes the Recording at the end. An
// error of closing no longer matters then, so it is only logged.
type Source func(ctx context.Context) (Recording, error)

// Recording is what a [Source] opens: audio that the Client can read again for each attempt.
type Recording struct {
	Audio       io.ReaderAt // each attempt reads from offset 0
	Size        int64       // in bytes, from 1 to MaxRecordingSize
	ContentType string      // MIME type, such as "audio/mpeg"
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

func checkContentType(param, contentType string) error {
	kind, _, err := mime.ParseMediaType(contentType)
	// In a header, it loses surrounding space, which breaks the signature, and must not have control characters.
	unchanged := strings.TrimSpace(contentType) == contentType && !strings.ContainsFunc(contentType, unicode.IsControl)
	return checkThat(param, err == nil && unchanged && strings.Contains(kind, "/"), "is not a MIME type")
}

// FromFile returns a Source for a file, and finds the content type from its content and extension.
//
// Errors of the Source: the error of opening or reading the file (compare with [io/fs.ErrNotExist]), or a
// *[ParamError] that names the file: [ErrRecordingEmpty], [ErrRecordingTooLarge], [ErrRecordingFormat], or
// a file that is not regular.
func FromFile(path string) Source {
	return func(ctx context.Context) (Recording, error) {
		alive(ctx)
		info, err := os.Stat(path) // first, since opening a named pipe would block
		if err != nil {
			return Recording{}, err
		}
		regular := checkThat("path", info.Mode().IsRegular(), "it is not a regular file")
		if err := cmp.Or(regular, checkSize("path", info.Size())); err != nil {
			return Recording{}, fileError(path, err)
		}
		f, err := os.Open(path)
		if err != nil {
			return Recording{}, err
		}
		contentType, err := findContentType("path", f, filepath.Ext(path))
		if err != nil {
			_ = f.Close() // it was only read
			return Recording{}, fileError(path, err)
		}
		return Recording{f, info.Size(), contentType}, nil
	}
}

// fileError adds the name of the file to a ParamError.
func fileError(path string, err error) error {
	if bad, ok := err.(*ParamError); ok {
		bad.Reason = strconv.Quote(path) + ": " + bad.Reason
	}
	return err
}

// FromReaderAt returns a Source for size bytes of ra, such as the file of a web form. The Client does not
// close ra, and finds the type from the content if contentType is empty.
//
// Errors of the Source: the error of reading ra, or a *[ParamError]: [ErrRecordingEmpty],
// [ErrRecordingTooLarge], [ErrRecordingFormat], or an invalid parameter.
func FromReaderAt(ra io.ReaderAt, size int64, contentType string) Source {
	return func(ctx context.Context) (Recording, error) {
		err, found := cmp.Or(checkGiven("ra", ra != nil), checkSize("size", size)), contentType
		if err == nil && contentType == "" {
			alive(ctx)
			found, err = findContentType("ra", ra, "")
		}
		if err != nil {
			return Recording{}, err
		}
		return Recording{struct{ io.ReaderAt }{ra}, size, found}, nil // which cannot be closed
	}
}

// FromReader returns a Source that copies r to a temporary file, because an upload needs the length first
// and may be retried. The Client deletes the file when the upload ends. The Source works only once, because
// then r has been read. It finds the type from the content if contentType is empty.
//
// Errors of the Source: the error of reading r, of writing the file, or of the context; an error if a read
// takes longer than UploadTimeouts.Stall, or if the Source was opened before; or a *[ParamError] with the
// same causes as in [FromReaderAt].
func FromReader(r io.Reader, contentType string) Source {
	var opened atomic.Bool
	return func(ctx context.Context) (Recording, error) {
		err := checkGiven("r", r != nil)
		if contentType != "" {
			err = cmp.Or(err, checkContentType("contentType", contentType))
		}
		if err != nil {
			return Recording{}, err
		}
		if opened.Swap(true) {
			return Recording{}, errors.New("minutes: a recording from FromReader can be opened only once, and r has been read")
		}
		f, err := os.CreateTemp("", "minutes-recording-*")
		if err != nil {
			return Recording{}, err
		}
		rec := Recording{Audio: &spool{f}, ContentType: contentType}
		rec.Size, err = io.Copy(f, io.LimitReader(&liveReader{ctx, r}, MaxRecordingSize+1))
		err = cmp.Or(err, checkSize("r", rec.Size))
		if err == nil && contentType == "" {
			rec.ContentType, err = findContentType("r", f, "")
		}
		if err != nil {
			return Recording{}, errors.Join(err, rec.Close())
		}
		return rec, nil
	}
}

// liveReader reads until ctx is done, and calls alive before each read.
type liveReader struct {
	ctx context.Context
	r   io.Reader
}

func (l *liveReader) Read(p []byte) (int, error) {
	if l.ctx.Err() != nil {
		return 0, context.Cause(l.ctx)
	}
	alive(l.ctx)
	return l.r.Read(p)
}

// spool is a temporary file that Close deletes.
type spool struct{ *os.File }

func (s *spool) Close() error {
	return errors.Join(s.File.Close(), os.Remove(s.Name()))
}

// openRecording opens the recording of source and checks it. If source blocks although ctx is done,
// openRecording returns, and the recording is closed if source opens it later. If a Source of this
// package blocks for stall, openRecording calls abort, which ends ctx; of any other Source, nobody
// knows whether it makes progress.
func openRecording(ctx context.Context, abort context.CancelCauseFunc, source Source, stall time.Duration) (Recording, error) {
	watchdog := time.AfterFunc(stall, func() {
		abort(fmt.Errorf("minutes: reading the recording blocked for %v: %w", stall, os.ErrDeadlineExceeded))
	})
	watchdog.Stop() // until the first call of alive
	defer watchdog.Stop()
	ctx = context.WithValue(ctx, aliveKey{}, func() { watchdog.Reset(stall) })
	return storage.Run(ctx, func() (Recording, error) {
		rec, err := source(ctx)
		if err != nil {
			return Recording{}, err
		}
		if err = cmp.Or(
			checkGiven("recording.Audio", rec.Audio != nil),
			checkSize("recording.Size", rec.Size),
			checkContentType("recording.ContentType", rec.ContentType),
		); err != nil {
			return Recording{}, errors.Join(err, rec.Close())
		}
		return rec, nil
	}, func(late Recording) { _ = late.Close() })
}

type aliveKey struct{}

// alive reports to the Client that a Source of this package is about to read, and has not blocked before.
func alive(ctx context.Context) {
	if f, ok := ctx.Value(aliveKey{}).(func()); ok {
		f()
	}
}

// findContentType finds the MIME type of the recording from the first bytes, and from ext if the
// bytes leave the type open. Errors name param.
func findContentType(param string, audio io.ReaderAt, ext string) (string, error) {
	head := make([]byte, 16)
	n, err := audio.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return "", err
	}
	found, ext := sniff(string(head[:n])), strings.ToLower(ext)
	if found == "" || slices.Contains(sameContainer[found], ext) {
		found = typesByExtension[ext]
	}
	if found == "" {
		return "", &ParamError{Param: param, Reason: ErrRecordingFormat.Error(), Err: ErrRecordingFormat}
	}
	return found, nil
}

// sniff returns the MIME type that the first bytes show, or "".
func sniff(head string) string {
	for _, m := range magic {
		if len(head) >= m.at && strings.HasPrefix(head[m.at:], m.bytes) {
			return m.contentType
		}
	}
	return ""
}

var magic = []struct {
	at                 int
	bytes, contentType string
}{
	{0, "fLaC", "audio/flac"}, {0, "OggS", "audio/ogg"}, {0, "ID3", "audio/mpeg"}, {0, "#!AMR", "audio/amr"},
	{8, "WAVE", "audio/wav"}, {8, "AIFF", "audio/aiff"}, {8, "AVI ", "video/avi"},
	{4, "ftypM4A", "audio/mp4"}, {4, "ftypqt", "video/quicktime"}, {4, "ftyp", "video/mp4"},
	{0, "\x1a\x45\xdf\xa3", "video/webm"}, // also Matroska
	// The first two bytes of a frame: ADTS with and without a checksum, and layer III of MPEG 1, 2 and 2.5.
	{0, "\xff\xf0", "audio/aac"}, {0, "\xff\xf1", "audio/aac"}, {0, "\xff\xf8", "audio/aac"}, {0, "\xff\xf9", "audio/aac"},
	{0, "\xff\xfa", "audio/mpeg"}, {0, "\xff\xfb", "audio/mpeg"}, {0, "\xff\xf2", "audio/mpeg"}, {0, "\xff\xf3", "audio/mpeg"},
	{0, "\xff\xe2", "audio/mpeg"}, {0, "\xff\xe3", "audio/mpeg"},
}

// sameContainer lists the extensions of other types whose files begin with the same bytes.
var sameContainer = map[string][]string{
	"video/mp4":  {".m4a", ".m4b", ".m4v", ".mov", ".3gp"},
	"video/webm": {".mka", ".mkv", ".weba"},
}

var typesByExtension = map[string]string{
	".aac": "audio/aac", ".aif": "audio/aiff", ".aiff": "audio/aiff", ".amr": "audio/amr",
	".avi": "video/avi", ".flac": "audio/flac", ".m4a": "audio/mp4", ".m4b": "audio/mp4",
	".m4v": "video/mp4", ".mka": "audio/x-matroska", ".mkv": "video/x-matroska", ".mov": "video/quicktime",
	".mp3": "audio/mpeg", ".mp4": "video/mp4", ".mpeg": "video/mpeg", ".mpg": "video/mpeg",
	".oga": "audio/ogg", ".ogg": "audio/ogg", ".opus": "audio/ogg", ".wav": "audio/wav",
	".weba": "audio/webm", ".webm": "video/webm", ".wma": "audio/x-ms-wma", ".3gp": "video/3gpp",
}
