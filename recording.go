package minutes

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// MaxRecordingSize is the size in bytes of the largest recording that this package uploads
// (1 GiB). The service rejects most files of over one gigabyte (section 8).
const MaxRecordingSize = 1 << 30

// Recording is an audio file to upload. Fill it in yourself, or use [OpenRecording] or
// [RecordingFromReader].
type Recording struct {
	Audio       io.ReaderAt // read from offset 0, again for each attempt
	Size        int64       // in bytes, from 1 to MaxRecordingSize
	ContentType string      // MIME type, such as "audio/mpeg"
}

// Close closes Audio if that is an io.Closer.
func (r Recording) Close() error {
	if c, ok := r.Audio.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// check rejects, before any request, what cannot become minutes.
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

// OpenRecording opens an audio or video file for upload and finds its content type from
// its content and name. Close the Recording after use.
//
// Errors: that of opening the file (compare with [io/fs.ErrNotExist]), or a *ParamError,
// which does not show the path: ErrRecordingEmpty, ErrRecordingTooLarge, ErrRecordingFormat,
// or for a file that is not regular.
func OpenRecording(path string) (Recording, error) {
	info, err := os.Stat(path) // first, since opening a named pipe would block
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

// RecordingFromReader copies r to a temporary file, since an upload needs the length
// beforehand and may be retried. Close the Recording to delete the file. If contentType is
// empty, it is found from the content.
//
// Errors: that of reading r or writing the file, or a *ParamError: ErrRecordingEmpty,
// ErrRecordingTooLarge, ErrRecordingFormat, or for a parameter that cannot be used.
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

// spool is a temporary file that Close deletes.
type spool struct{ *os.File }

func (s *spool) Close() error {
	return errors.Join(s.File.Close(), os.Remove(s.Name()))
}

// findContentType finds the MIME type of the recording that param names: from its first
// bytes, and from its name if these leave it open.
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
	return found, checkThat(param, found != "", ErrRecordingFormat.Reason)
}

// sniff returns the MIME type that the first bytes show, or "".
func sniff(head string) string {
	for _, m := range magic {
		if len(head) >= m.at && strings.HasPrefix(head[m.at:], m.bytes) {
			return m.contentType
		}
	}
	switch {
	case len(head) < 2 || head[0] != 0xff:
		return ""
	case head[1]&0xf6 == 0xf0: // an ADTS frame
		return "audio/aac"
	case head[1]&0xe6 == 0xe2: // an MPEG layer III frame
		return "audio/mpeg"
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
	{0, "\x1a\x45\xdf\xa3", "video/webm"}, // Matroska begins like that, too
}

// sameContainer lists the names of recordings that begin like one of the type.
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
