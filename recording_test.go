package minutes_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The first bytes of recordings, by container.
const (
	magicWAV    = "RIFF\x24\x00\x00\x00WAVEfmt "
	magicFLAC   = "fLaC\x00\x00\x00\x22"
	magicOgg    = "OggS\x00\x02"
	magicID3    = "ID3\x04\x00\x00\x00\x00\x00\x21"
	magicMP3    = "\xff\xfb\x90\x64"
	magicMP3LSF = "\xff\xf3\x84\xc4" // MPEG-2, half the sampling rate
	magicADTS   = "\xff\xf1\x50\x80"
	magicM4A    = "\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00"
	magicMP4    = "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00"
	magicQT     = "\x00\x00\x00\x14ftypqt  \x00\x00\x02\x00"
	magicEBML   = "\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm"
	magicAIFF   = "FORM\x00\x00\x00\x2eAIFFCOMM"
	magicAMR    = "#!AMR\n\x3c"
	magicAVI    = "RIFF\x24\x00\x00\x00AVI LIST"
	unknown     = "\x01\x02\x03\x04 no recording anybody knows"
)

func TestFromFile_FindsContentType(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, content, want string }{
		// The content decides.
		{"a.wav", magicWAV, "audio/wav"},
		{"a.mp3", magicWAV, "audio/wav"},
		{"a.flac", magicFLAC, "audio/flac"},
		{"a.ogg", magicOgg, "audio/ogg"},
		{"a", magicID3, "audio/mpeg"},
		{"a", magicMP3, "audio/mpeg"},
		{"a", magicMP3LSF, "audio/mpeg"},
		{"a", magicADTS, "audio/aac"},
		{"a.m4a", magicM4A, "audio/mp4"},
		{"a.aiff", magicAIFF, "audio/aiff"},
		{"a", magicAMR, "audio/amr"},
		{"a", magicAVI, "video/avi"},
		// Containers for both sound and film: the brand decides, then the name.
		{"a.mp4", magicMP4, "video/mp4"},
		{"a.m4a", magicMP4, "audio/mp4"},
		{"a.3gp", magicMP4, "video/3gpp"},
		{"a", magicQT, "video/quicktime"},
		{"a.webm", magicEBML, "video/webm"},
		{"a.weba", magicEBML, "audio/webm"},
		{"a.mkv", magicEBML, "video/x-matroska"},
		// If the content is ambiguous, the name decides.
		{"a.MP3", unknown, "audio/mpeg"},
		{"a.mpg", unknown, "video/mpeg"},
		{"a.opus", unknown, "audio/ogg"},
		{"a.wma", unknown, "audio/x-ms-wma"},
		{"a.mp3", "\xff", "audio/mpeg"},
		{"a.m4a", "\x00\x00\x00\x20ftyp", "audio/mp4"},
		// Neither decides.
		{"a", unknown, ""},
		{"a.txt", "Minutes of the meeting", ""},
		{"utf16.txt", "\xff\xfea\x00", ""},
	} {
		t.Run(test.name+" "+test.want, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), test.name)
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
			rec, err := minutes.FromFile(path)(t.Context())
			if test.want == "" {
				require.Zero(t, rec)
				testkit.RequireParamError(t, err, "path", "")
				require.ErrorIs(t, err, minutes.ErrRecordingFormat)
				require.ErrorContains(t, err, strconv.Quote(path)+": the recording is in no known audio or video format")
				require.ErrorContains(t, err, "pass its content type to FromReader or FromReaderAt")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, rec.ContentType)
			require.EqualValues(t, len(test.content), rec.Size)
			got, err := io.ReadAll(io.NewSectionReader(rec.Audio, 0, rec.Size))
			require.NoError(t, err)
			require.Equal(t, test.content, string(got))
			require.NoError(t, rec.Close())
			require.ErrorIs(t, rec.Close(), os.ErrClosed)
		})
	}
}

// FromFile rejects a named pipe without opening it, since that would wait for a writer.
func TestFromFile_RejectsInvalidFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sized := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(magicWAV), 0o600))
		require.NoError(t, os.Truncate(path, size))
		return path
	}
	empty := sized("empty.wav", 0)
	unusable := map[string]error{empty: minutes.ErrRecordingEmpty, sized("big.wav", minutes.MaxRecordingSize+1): minutes.ErrRecordingTooLarge, dir: nil, os.DevNull: nil}
	if mkfifo, err := exec.LookPath("mkfifo"); err == nil {
		pipe := filepath.Join(dir, "pipe.wav")
		require.NoError(t, exec.Command(mkfifo, pipe).Run())
		unusable[pipe] = nil
	}
	for path, kind := range unusable {
		rec, err := minutes.FromFile(path)(t.Context())
		require.Zero(t, rec, path)
		testkit.RequireParamError(t, err, "path", "")
		require.ErrorContains(t, err, strconv.Quote(path)+": ")
		require.Equal(t, kind, errors.Unwrap(err))
	}
	for _, path := range []string{filepath.Join(dir, "missing.wav"), "", filepath.Join(empty, "x")} {
		rec, err := minutes.FromFile(path)(t.Context())
		require.Zero(t, rec, path)
		_, ok := errors.AsType[*fs.PathError](err)
		require.True(t, ok, "%s: %v", path, err)
	}
	rec, err := minutes.FromFile(sized("largest.wav", minutes.MaxRecordingSize))(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, minutes.MaxRecordingSize, rec.Size)
	require.NoError(t, rec.Close())
}

// spooled sets the directory for temporary files of a test, and returns a function that lists them.
func spooled(t *testing.T) func() []os.DirEntry {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	return func() []os.DirEntry {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		return entries
	}
}

func TestFromReader_CopiesTheRecording(t *testing.T) {
	files := spooled(t)
	for _, test := range []struct{ content, contentType, want string }{
		{unknown, "audio/x-own; rate=8000", "audio/x-own; rate=8000"},
		{magicFLAC + strings.Repeat("x", 100_000), "", "audio/flac"},
	} {
		source := minutes.FromReader(strings.NewReader(test.content), test.contentType)
		rec, err := source(t.Context())
		require.NoError(t, err)
		require.Len(t, files(), 1)
		require.Equal(t, test.want, rec.ContentType)
		require.EqualValues(t, len(test.content), rec.Size)
		for range 2 { // an upload may have to begin again
			got, err := io.ReadAll(io.NewSectionReader(rec.Audio, 0, rec.Size))
			require.NoError(t, err)
			require.Equal(t, test.content, string(got))
		}
		require.NoError(t, rec.Close())
		require.Empty(t, files(), "closing deletes the copy")
		_, err = source(t.Context())
		require.ErrorContains(t, err, "only once")
	}
}

func TestFromReader_RejectsInvalidInput(t *testing.T) {
	files := spooled(t)
	broken := errors.New("the microphone fell off")
	for name, test := range map[string]struct {
		r           io.Reader
		contentType string
		param       string
	}{
		"no reader":               {nil, "audio/wav", "r"},
		"empty":                   {strings.NewReader(""), "audio/wav", "r"},
		"type not found":          {strings.NewReader(unknown), "", "r"},
		"no MIME type":            {testbase.Failing(broken), "wav", "contentType"}, // before a byte is read
		"MIME type with a header": {testbase.Failing(broken), "audio/wav\r\nX-Evil: 1", "contentType"},
		"over 1 GiB":              {io.LimitReader(testbase.ReaderFunc(func(p []byte) (int, error) { return len(p), nil }), minutes.MaxRecordingSize+5), "audio/wav", "r"},
	} {
		if name == "over 1 GiB" && (!testbase.Long() || testbase.UnderRace) {
			continue // it writes as much
		}
		rec, err := minutes.FromReader(test.r, test.contentType)(t.Context())
		require.Zero(t, rec, name)
		testkit.RequireParamError(t, err, test.param, test.contentType)
		require.Empty(t, files(), name)
	}
	rec, err := minutes.FromReader(io.MultiReader(strings.NewReader(magicWAV), testbase.Failing(broken)), "audio/wav")(t.Context())
	require.Zero(t, rec)
	require.ErrorIs(t, err, broken)
	require.Empty(t, files(), "nothing is left of a recording that broke off")

	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	t.Setenv("TMP", missing)
	_, err = minutes.FromReader(strings.NewReader(magicWAV), "")(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Upload rejects invalid recordings before any request.
func TestUpload_RejectsInvalidRecordings(t *testing.T) {
	t.Parallel()
	audio := bytes.NewReader([]byte(magicWAV))
	for name, test := range map[string]struct {
		rec   minutes.Recording
		param string
	}{
		"zero":                      {minutes.Recording{}, "recording.Audio"},
		"no audio":                  {minutes.Recording{Size: 1, ContentType: "audio/wav"}, "recording.Audio"},
		"over 1 GiB":                {minutes.Recording{Audio: audio, Size: minutes.MaxRecordingSize + 1, ContentType: "audio/wav"}, "recording.Size"},
		"no content type":           {minutes.Recording{Audio: audio, Size: 1}, "recording.ContentType"},
		"blank after content type":  {minutes.Recording{Audio: audio, Size: 1, ContentType: "audio/wav "}, "recording.ContentType"},
		"content type and a header": {minutes.Recording{Audio: audio, Size: 1, ContentType: "audio/wav\r\nX-Evil: 1"}, "recording.ContentType"},
		"content type beyond ASCII": {minutes.Recording{Audio: audio, Size: 1, ContentType: "audio/wäv"}, "recording.ContentType"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.RequireParamError(t, testkit.Silent(t).Meetings.Upload(context.Background(), "mtg_1", testkit.Opened(test.rec), nil), test.param, test.rec.ContentType)
		})
	}
	largest := minutes.Recording{Audio: audio, Size: minutes.MaxRecordingSize, ContentType: "audio/wav"}
	client, requests := testkit.OneResponse(t, 403, "")
	require.Error(t, client.Meetings.Upload(t.Context(), "mtg_1", testkit.Opened(largest), nil))
	require.Len(t, requests(), 1, "1 GiB may be asked for")
	require.NoError(t, minutes.Recording{}.Close(), "closing what cannot be closed does nothing")
	require.NoError(t, minutes.Recording{Audio: audio}.Close())
}

// A reader that blocks ends the upload with its context, or after a minute without a byte; a slow one
// does not. Nothing is left of it.
func TestFromReader_EndsIfReaderBlocks(t *testing.T) {
	files := spooled(t)
	cause := errors.New("enough")
	for name, test := range map[string]struct {
		pause, cancel, want time.Duration
		is                  error
	}{
		"slow":    {50 * time.Second, time.Hour, 150 * time.Second, nil},
		"blocked": {2 * time.Minute, time.Hour, time.Minute, os.ErrDeadlineExceeded},
		"ctx":     {2 * time.Minute, time.Second, time.Second, cause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(test.cancel, func() { cancel(cause) })
				parts := strings.NewReader("ab")
				source := minutes.FromReader(testbase.ReaderFunc(func(p []byte) (int, error) {
					time.Sleep(test.pause)
					return parts.Read(p[:1])
				}), "audio/wav")
				start := time.Now()
				require.ErrorIs(t, testkit.Client(srv).Meetings.Upload(ctx, testkit.Waiting(t, srv), source, nil), test.is)
				require.InDelta(t, test.want, time.Since(start), float64(time.Second))
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Empty(t, files())
			})
		})
	}
}
