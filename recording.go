package minutes

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// MaxRecordingSize is the size in bytes beyond which this package does not even
// try an upload (1 GiB). The service refuses files of over one gigabyte
// in most cases (section 8).
const MaxRecordingSize = 1 << 30

// Recording is an audio file to upload. Fill it from whatever can be read at
// any offset, or use [OpenRecording] or [RecordingFromReader].
type Recording struct {
	Audio       io.ReaderAt // read from offset 0, again for each try
	Size        int64       // in bytes, from 1 to MaxRecordingSize
	ContentType string      // MIME type, such as "audio/mpeg"
}

// Close closes Audio where it can be closed.
func (r Recording) Close() error {
	if c, ok := r.Audio.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// check refuses, before any request, what cannot become minutes.
func (r Recording) check() error {
	return cmp.Or(checkGiven("recording.Audio", r.Audio != nil),
		checkSize("recording.Size", r.Size), checkContentType("recording.ContentType", r.ContentType))
}

func checkSize(param string, size int64) error {
	return cmp.Or(
		checkThat(param, size > 0, ErrRecordingEmpty.Reason),
		checkThat(param, size <= MaxRecordingSize, ErrRecordingTooLarge.Reason),
	)
}

func checkContentType(param, contentType string) error {
	kind, _, err := mime.ParseMediaType(contentType)
	spaced := strings.TrimSpace(contentType) != contentType // which would not arrive as it was signed
	return cmp.Or(
		checkThat(param, contentType != "", "must not be empty"),
		checkThat(param, err == nil && !spaced && strings.Contains(kind, "/"), "is not a MIME type"),
		checkThat(param, !strings.ContainsFunc(contentType, unicode.IsControl), "holds a control character"),
	)
}

// OpenRecording opens an audio or video file for upload and finds its content
// type from content and name. Close the Recording after use.
//
// Errors: that of opening the file (compare with [io/fs.ErrNotExist]), or a
// *ParamError, which does not repeat the path, for what is no regular file, or is
// ErrRecordingEmpty, ErrRecordingTooLarge (over 1 GiB) or ErrRecordingFormat, whose
// content type does not show; fill a Recording by hand then.
func OpenRecording(path string) (Recording, error) {
	// Looked at before it is opened: opening a named pipe would block.
	info, err := os.Stat(path)
	if err != nil {
		return Recording{}, err
	}
	regular := checkThat("path", info.Mode().IsRegular(), "is not a regular file")
	if err := cmp.Or(regular, checkSize("path", info.Size())); err != nil {
		return Recording{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return Recording{}, err
	}
	contentType, err := findContentType("path", f, filepath.Ext(path))
	if err != nil {
		_ = f.Close() // it was only read
		return Recording{}, err
	}
	return Recording{f, info.Size(), contentType}, nil
}

// RecordingFromReader copies r to a temporary file, since an upload needs its
// length beforehand and may have to begin again. Close the Recording to delete
// the file. An empty contentType is found from the content where it shows.
//
// Errors: that of reading r or writing the file, or a *ParamError where r is nil,
// or contentType no MIME type, or for ErrRecordingEmpty, ErrRecordingTooLarge (over
// 1 GiB) and ErrRecordingFormat.
func RecordingFromReader(r io.Reader, contentType string) (Recording, error) {
	if r == nil {
		return Recording{}, &ParamError{"r", "must not be nil"}
	}
	if err := checkContentType("contentType", contentType); contentType != "" && err != nil {
		return Recording{}, err
	}
	f, err := os.CreateTemp("", "minutes-recording-*")
	if err != nil {
		return Recording{}, err
	}
	rec := Recording{Audio: &spool{f}, ContentType: contentType}
	rec.Size, err = io.Copy(f, io.LimitReader(r, MaxRecordingSize+1))
	err = cmp.Or(err, checkSize("r", rec.Size))
	if err == nil && contentType == "" {
		rec.ContentType, err = findContentType("r", f, "")
	}
	if err != nil {
		return Recording{}, errors.Join(err, rec.Close())
	}
	return rec, nil
}

// spool is a temporary file that goes away when it is closed.
type spool struct{ *os.File }

func (s *spool) Close() error {
	return errors.Join(s.File.Close(), os.Remove(s.Name()))
}

// findContentType finds the MIME type of the recording that param names.
func findContentType(param string, audio io.ReaderAt, ext string) (string, error) {
	head := make([]byte, 512) // as much as is looked at
	n, err := audio.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return "", err
	}
	contentType := contentTypeOf(string(head[:n]), ext)
	return contentType, checkThat(param, contentType != "", ErrRecordingFormat.Reason)
}

// contentTypeOf finds the MIME type of a recording from its first bytes, and
// from its name where these leave it open; "" where neither tells.
func contentTypeOf(head, ext string) string {
	ext = strings.ToLower(ext)
	named := typesByExtension[ext]
	switch {
	case strings.HasPrefix(head, "fLaC"):
		return "audio/flac"
	case strings.HasPrefix(head, "OggS"):
		return "audio/ogg"
	case len(head) >= 12 && head[4:8] == "ftyp":
		// One container for sound, films and Apple's own; the brand or the name
		// tells which.
		switch {
		case named == "audio/mp4" || head[8:11] == "M4A":
			return "audio/mp4"
		case head[8:10] == "qt":
			return "video/quicktime"
		case strings.HasPrefix(named, "video/"):
			return named
		}
		return "video/mp4"
	case strings.HasPrefix(head, "#!AMR"):
		return "audio/amr"
	case len(head) >= 2 && head[0] == 0xff && head[1]&0xf6 == 0xf0: // an ADTS frame
		return "audio/aac"
	case len(head) >= 2 && head[0] == 0xff && head[1]&0xe6 == 0xe2: // an MPEG layer III frame
		return "audio/mpeg"
	}
	switch sniffed := http.DetectContentType([]byte(head)); sniffed {
	case "audio/wave":
		return "audio/wav"
	case "audio/mpeg", "audio/aiff", "video/avi":
		return sniffed
	case "video/webm": // which is how Matroska begins, too
		if !strings.HasPrefix(named, "audio/") && ext != ".mkv" {
			return sniffed
		}
	}
	return named
}

var typesByExtension = map[string]string{
	".aac": "audio/aac", ".aif": "audio/aiff", ".aiff": "audio/aiff", ".amr": "audio/amr",
	".avi": "video/avi", ".flac": "audio/flac", ".m4a": "audio/mp4", ".m4b": "audio/mp4",
	".m4v": "video/mp4", ".mka": "audio/x-matroska", ".mkv": "video/x-matroska", ".mov": "video/quicktime",
	".mp3": "audio/mpeg", ".mp4": "video/mp4", ".mpeg": "video/mpeg", ".mpg": "video/mpeg",
	".oga": "audio/ogg", ".ogg": "audio/ogg", ".opus": "audio/ogg", ".wav": "audio/wav",
	".weba": "audio/webm", ".webm": "video/webm", ".wma": "audio/x-ms-wma", ".3gp": "video/3gpp",
}
