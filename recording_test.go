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
	"runtime"
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
	unusable := map[string]error{
		empty: minutes.ErrRecordingEmpty,
		sized("big.wav", minutes.MaxRecordingSize+1): minutes.ErrRecordingTooLarge,
		dir:        nil,
		os.DevNull: nil,
	}
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

// FromFile says that a URL is not a path, and shows nothing of it but the host, because the rest
// may be secret.
func TestFromFile_RejectsURLs(t *testing.T) {
	t.Parallel()
	for path, host := range map[string]string{
		"https://storage.example/rec.mp3?X-Amz-Signature=feedface":  `"storage.example"`,
		"http://ada:feedface@storage.example:8080?token=feedface/x": `"storage.example:8080"`,
		"s3://recordings/feedface.wav":                              `"recordings"`,
		"file:///home/feedface/rec.wav":                             `""`,
		"https://storage.example/%zz?feedface":                      `"storage.example"`,
		"https://?feedface":                                         `""`,
		" HTTPS://storage.example?feedface":                         `"storage.example"`,
		"data:audio/mpeg;base64,feedface":                           `""`,
		filepath.Clean("https://storage.example/a?feedface"):        `"storage.example"`,
		filepath.Join("home", "https://storage.example/a?feedface"): `"storage.example"`,
	} {
		rec, err := minutes.FromFile(path)(t.Context())
		require.Zero(t, rec, path)
		testkit.RequireParamError(t, err, "path", path)
		require.ErrorContains(t, err, "is a URL (of host "+host+"), not the path of a file")
		require.NotContains(t, err.Error(), "feedface")
	}
	_, err := minutes.FromFile(filepath.Join(t.TempDir(), "x://y"))(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist, "a path may look like that")
}

func TestFromFile_SaysThatAPatternIsNotAPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	patterns := map[string]bool{"*.m4a": true, "call[1].m4a": true, "what?.m4a": true, "call.m4a": false}
	for name, isPattern := range patterns {
		_, err := minutes.FromFile(filepath.Join(dir, name))(t.Context())
		require.ErrorIs(t, err, fs.ErrNotExist)
		if isPattern {
			testkit.RequireParamError(t, err, "path", "")
			require.ErrorContains(t, err, "no pattern")
		}
	}
	existing := filepath.Join(dir, "[1].wav")
	require.NoError(t, os.WriteFile(existing, []byte("RIFF\x24\x00\x00\x00WAVEfmt "), 0o600))
	rec, err := minutes.FromFile(existing)(t.Context())
	require.NoError(t, err)
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

// If the system allows it, the copy has no name while it is open, so a program that is killed
// leaves nothing behind.
func TestFromReader_CopiesTheRecording(t *testing.T) {
	files := spooled(t)
	content := magicFLAC + strings.Repeat("x", 100_000)
	source := minutes.FromReader(strings.NewReader(content), "audio/x-own; rate=8000")
	rec, err := source(t.Context())
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Empty(t, files())
	}
	require.Equal(t, "audio/x-own; rate=8000", rec.ContentType)
	require.EqualValues(t, len(content), rec.Size)
	for range 2 { // an upload may have to begin again
		got, err := io.ReadAll(io.NewSectionReader(rec.Audio, 0, rec.Size))
		require.NoError(t, err)
		require.Equal(t, content, string(got))
	}
	require.NoError(t, rec.Close())
	require.Empty(t, files(), "closing deletes the copy")
	_, err = rec.Audio.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = source(t.Context())
	require.ErrorContains(t, err, "only once")
}

func TestFromReader_RejectsInvalidInput(t *testing.T) {
	files := spooled(t)
	broken := errors.New("the microphone fell off")
	endless := testbase.ReaderFunc(func(p []byte) (int, error) { return len(p), nil })
	for name, test := range map[string]struct {
		r           io.Reader
		contentType string
		param       string
	}{
		"no reader":  {nil, "audio/wav", "r"},
		"empty":      {strings.NewReader(""), "audio/wav", "r"},
		"over 1 GiB": {io.LimitReader(endless, minutes.MaxRecordingSize+5), "audio/wav", "r"},
	} {
		if name == "over 1 GiB" && (!testbase.Long() || testbase.UnderRace) {
			continue // it writes as much
		}
		rec, err := minutes.FromReader(test.r, test.contentType)(t.Context())
		require.Zero(t, rec, name)
		testkit.RequireParamError(t, err, test.param, test.contentType)
		require.Empty(t, files(), name)
	}
	breaking := io.MultiReader(strings.NewReader(magicWAV), testbase.Failing(broken))
	rec, err := minutes.FromReader(breaking, "audio/wav")(t.Context())
	require.Zero(t, rec)
	require.ErrorIs(t, err, broken)
	require.NotContains(t, err.Error(), "TMPDIR", "not the fault of the copy")
	require.Empty(t, files(), "nothing is left of a recording that broke off")
}

// If there is no directory for the copy, or no room in it, the error names the directory and says
// how to choose another.
func TestFromReader_SaysWhereTheCopyGoes(t *testing.T) {
	for name, dir := range map[string]string{
		"missing": filepath.Join(t.TempDir(), "missing"),
		"a file":  filepath.Join(t.TempDir(), "file"),
	} {
		if name == "a file" {
			require.NoError(t, os.WriteFile(dir, nil, 0o600))
		}
		t.Setenv("TMPDIR", dir)
		t.Setenv("TMP", dir)
		_, err := minutes.FromReader(strings.NewReader(magicWAV), "audio/wav")(t.Context())
		_, ok := errors.AsType[*fs.PathError](err)
		require.True(t, ok, "%s: %v", name, err)
		require.ErrorContains(t, err, "minutes: copying the recording to a temporary file in "+dir+": ")
		require.ErrorContains(t, err, "let TMPDIR (on Windows TMP) name a directory that has room for it")
	}
}

// Upload rejects invalid recordings before any request.
func TestUpload_RejectsInvalidRecordings(t *testing.T) {
	t.Parallel()
	audio := bytes.NewReader([]byte(magicWAV))
	for name, test := range map[string]struct {
		rec   minutes.Recording
		param string
	}{
		"zero":       {minutes.Recording{}, "recording.Audio"},
		"no audio":   {minutes.Recording{Size: 1, ContentType: "audio/wav"}, "recording.Audio"},
		"no size":    {minutes.Recording{Audio: audio, ContentType: "audio/wav"}, "recording.Size"},
		"over 1 GiB": {minutes.Recording{Audio: audio, Size: minutes.MaxRecordingSize + 1}, "recording.Size"},
		"no format":  {minutes.Recording{Audio: strings.NewReader(unknown), Size: 9}, "recording.ContentType"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := false
			if test.rec.Audio != nil {
				test.rec.Audio = withClose{test.rec.Audio, func() { closed = true }}
			}
			err := testkit.Silent(t).Meetings.Upload(context.Background(), "mtg_1", testkit.Opened(test.rec), nil)
			testkit.RequireParamError(t, err, test.param, test.rec.ContentType)
			require.Equal(t, test.rec.Audio != nil, closed)
		})
	}
	largest := minutes.Recording{Audio: audio, Size: minutes.MaxRecordingSize, ContentType: "audio/wav"}
	client, requests := testkit.OneResponse(t, 403, "")
	require.Error(t, client.Meetings.Upload(t.Context(), "mtg_1", testkit.Opened(largest), nil))
	require.Len(t, requests(), 1, "1 GiB may be asked for")
	require.NoError(t, minutes.Recording{}.Close(), "closing what cannot be closed does nothing")
	require.NoError(t, minutes.Recording{Audio: audio}.Close())
}

// A reader that returns neither bytes nor an error fails, instead of keeping a processor busy, unless it
// only does so now and then.
func TestFromReader_EndsIfNothingComes(t *testing.T) {
	t.Parallel()
	some := strings.NewReader("audio")
	reads := 0
	r := testbase.ReaderFunc(func(p []byte) (int, error) {
		reads++
		if reads%100 != 0 {
			return 0, nil
		}
		n, _ := some.Read(p[:1])
		return n, nil
	})
	_, err := minutes.FromReader(r, "audio/mpeg")(t.Context())
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.Equal(t, 5*100+100, reads)
}

// A reader that blocks ends the upload with its context, or after a minute without a byte; a slow
// one does not. Nothing is left of it.
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
				id := testkit.Waiting(t, srv)
				require.ErrorIs(t, testkit.Client(srv).Meetings.Upload(ctx, id, source, nil), test.is)
				require.InDelta(t, test.want, time.Since(start), float64(time.Second))
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Empty(t, files())
			})
		})
	}
}
