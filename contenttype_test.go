package minutes_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Errors of content that is not a recording.
const (
	noFormat = "the format of the recording is not known"
	notText  = "the content is text/plain, not a recording"
)

// The first bytes of recordings, by container.
const (
	magicWAV    = "RIFF\x24\x00\x00\x00WAVEfmt "
	magicRF64   = "RF64\xff\xff\xff\xffWAVEds64\x1c\x00\x00\x00"
	magicW64    = "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00"
	magicFLAC   = "fLaC\x00\x00\x00\x22"
	magicOgg    = "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x00\x00\x00\x00\xaa\xbb\xcc\xdd\x01"
	magicOpus   = magicOgg + "\x13OpusHead"
	magicTheora = magicOgg + "\x2a\x80theora"
	magicID3    = "ID3\x04\x00\x00\x00\x00\x00\x05title" // with five bytes
	movie       = "\x00\x00\x00\x08moov"
	magicM4A    = "\x00\x00\x00\x10ftypM4A \x00\x00\x00\x00" + movie
	magicMP4    = "\x00\x00\x00\x10ftypisom\x00\x00\x02\x00" + movie
	magic3GP    = "\x00\x00\x00\x10ftyp3gp4\x00\x00\x03\x00" + movie
	magicQT     = "\x00\x00\x00\x10ftypqt  \x00\x00\x02\x00" + movie
	magicWebM   = magicEBML + "\x84webm"
	magicEBML   = "\x1a\x45\xdf\xa3\xa3\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82"
	magicMKV    = magicEBML + "\x88matroska"
	magicASF    = "\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c"
	magicAIFF   = "FORM\x00\x00\x00\x2eAIFFCOMM"
	magicAIFC   = "FORM\x00\x00\x00\x2eAIFCFVER"
	magicCAF    = "caff\x00\x01\x00\x00desc"
	magicAU     = ".snd\x00\x00\x00\x18"
	magicAMR    = "#!AMR\n\x3c\x08"
	magicAMRWB  = "#!AMR-WB\n\x04"
	magicAVI    = "RIFF\x24\x00\x00\x00AVI LIST"
	unknown     = "\x01\x02\x03\x04 no recording anybody knows"
)

// Recordings of three frames each.
var (
	magicMP3    = frames("\xff\xfb\x90\x64", 417)
	magicMP3LSF = frames("\xff\xf3\x84\xc4", 192) // MPEG-2, half the sampling rate
	magicMP2    = frames("\xff\xfd\xa4\x04", 576)
	magicADTS   = frames("\xff\xf1\x50\x80\x02\x00\x00", 16)
)

func frames(header string, length int) string {
	return strings.Repeat(header+strings.Repeat("\x00", length-len(header)), 3)
}

// packets returns three packets of an MPEG transport stream.
func packets(before string) string {
	return strings.Repeat(before+"G"+strings.Repeat("\x00", 187), 3)
}

func TestFromFile_FindsContentType(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, test := range []struct{ name, content, want string }{
		// The content decides, whatever the name says.
		{"a.wav", magicWAV, "audio/wav"},
		{"a.mp3", magicWAV, "audio/wav"},
		{"a.wav", magicRF64, "audio/wav"},
		{"a.wav", "BW64" + magicRF64[4:], "audio/wav"},
		{"a.wav", "RIFX" + magicWAV[4:], "audio/wav"},
		{"a.wav", magicW64, "audio/x-w64"},
		{"a.flac", magicFLAC, "audio/flac"},
		{"a.opus", magicOpus, "audio/ogg"},
		{"a.mp3", magicOpus, "audio/ogg"},
		{"a.ogg", magicTheora, "video/ogg"},
		{"a", magicID3 + magicMP3, "audio/mpeg"},
		{"a", magicID3, "audio/mpeg"},
		{"a.mp3", magicID3 + magicFLAC, "audio/flac"},
		{"a.mp3", magicID3 + magicADTS, "audio/aac"},
		{"a.mp3", "ID3\x04\x00\x00\x00\x00\x01\x01" + strings.Repeat("x", 129) + magicFLAC, "audio/flac"},
		{"a", magicMP3, "audio/mpeg"},
		{"a", magicMP3LSF, "audio/mpeg"},
		{"a.wav", magicMP2, "audio/mpeg"},
		{"a", magicADTS, "audio/aac"},
		{"a.m4a", magicADTS, "audio/aac"},
		{"a", "ADIF\x00\x00", "audio/aac"},
		{"a.m4a", magicM4A, "audio/mp4"},
		{"a.mp4", magicM4A, "audio/mp4"},
		{"a.aiff", magicAIFF, "audio/aiff"},
		{"a.wav", magicAIFC, "audio/aiff"},
		{"a.caf", magicCAF, "audio/x-caf"},
		{"a.wav", magicCAF, "audio/x-caf"},
		{"a", magicAU, "audio/basic"},
		{"a", magicAMR, "audio/amr"},
		{"a.amr", magicAMRWB, "audio/amr-wb"},
		{"a.amr", "\x02#!SILK_V3", "audio/silk"},
		{"a", "\x02dss\x00", "audio/x-dss"},
		{"a.dss", "\x03ds2\x00", "audio/x-ds2"},
		{"a", magicAVI, "video/avi"},
		{"a.mp4", "FLV\x01\x05", "video/x-flv"},
		{"a.vob", "\x00\x00\x01\xba\x44", "video/mpeg"},
		{"a.ts", packets(""), "video/mp2t"},
		{"a.mts", packets("\x00\x00\x00\x00"), "video/mp2t"},
		{"a.wav", magicMP4, "video/mp4"},
		// Containers for both sound and film: the brand decides, then the name.
		{"a.mp4", magicMP4, "video/mp4"},
		{"a.m4a", magicMP4, "audio/mp4"},
		{"a.3gp", magicMP4, "video/3gpp"},
		{"a.mp4", magic3GP, "video/3gpp"},
		{"a.m4a", magic3GP, "audio/mp4"},
		{"a.3ga", magic3GP, "audio/3gpp"},
		{"a", magicQT, "video/quicktime"},
		{"a", "\x00\x00\x00\x08wide\x00\x00\x00\x0amdat\x01\x02" + movie, "video/quicktime"},
		{"a.webm", magicWebM, "video/webm"},
		{"a.weba", magicWebM, "audio/webm"},
		{"a.mkv", magicWebM, "video/webm"},
		{"a.mkv", magicMKV, "video/x-matroska"},
		{"a.mka", magicMKV, "audio/x-matroska"},
		{"a", magicASF, "video/x-ms-asf"},
		{"a.wma", magicASF, "audio/x-ms-wma"},
		{"a.wmv", magicASF, "video/x-ms-wmv"},
		// If the content is ambiguous, the name decides.
		{"a.MP3", unknown, "audio/mpeg"},
		{"a.mpg", unknown, "video/mpeg"},
		{"a.opus", unknown, "audio/ogg"},
		{"a.wma", unknown, "audio/x-ms-wma"},
		{"a.mp3", strings.Repeat("\x00", 600) + magicMP3, "audio/mpeg"}, // silence of an encoder
		{"a.mp3", frames("\xff\xfb\x90\x64", 400), "audio/mpeg"},        // frames that do not meet
	} {
		t.Run(test.name+" "+test.want, func(t *testing.T) {
			path := filepath.Join(dir, test.name)
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
			rec, err := minutes.FromFile(path)(t.Context())
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

// A file that is not a recording is rejected before any request, even if its name says otherwise.
func TestFromFile_RejectsOtherFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const unknownFormat = "the format of the recording is not known; if it is audio or video, " +
		"declare its type, as in Recording.ContentType"
	const unfinished = "the content is an MP4 file without an index (moov), " +
		"so the recorder did not finish it, or its end is missing"
	const ftyp = "\x00\x00\x00\x10ftypisom\x00\x00\x02\x00\x00\x00\x00\x08free"
	for _, test := range []struct{ name, content, want string }{
		{"a", unknown, unknownFormat},
		{"a.doc", unknown, unknownFormat},
		{"a.txt", "Minutes of the meeting", "the content is text/plain, not a recording"},
		{"utf16.mp3", "\xff\xfea\x00", "the content is text/plain, not a recording"},
		{"notes.mp3", "Minutes of the meeting", "the content is text/plain, not a recording"},
		{"page.mp3", "\n<!DOCTYPE html><title>Log in</title>", "the content is text/html, not a recording"},
		{"page.m4a", "<html><body>404", "the content is text/html, not a recording"},
		{"feed.mp4", `<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>`,
			"the content is text/xml, not a recording"},
		{"error.mp4", `{"error":{"code":"NOT_FOUND"}}`, "the content is text/plain, not a recording"},
		{"code.ts", "export const minutes = 1;", "the content is text/plain, not a recording"},
		{"scan.mp3", "%PDF-1.7\n\x00", "the content is application/pdf, not a recording"},
		{"cover.m4a", "\x89PNG\x0d\x0a\x1a\x0a", "the content is image/png, not a recording"},
		{"plan.mov", "The wide area network is down.", "the content is text/plain, not a recording"},
		{"plan.caf", "caffeine, said Ada", "the content is text/plain, not a recording"},
		{"plan.mp3", "ID3 tags, chapter one", "the content is text/plain, not a recording"},
		{"plan.amr", "#!AMR\nexit 1", "the content is text/plain, not a recording"},
		{"plan.wav", "RIFFRAFFWAVES", "the content is text/plain, not a recording"},
		// What recorders leave that were killed: the length of the data is to be filled in.
		{"ffmpeg.mp4", ftyp + "\x00\x00\x00\x00mdat sound", unfinished},
		{"android.mp4", ftyp + "\x00\x00\x00\x01mdat???????? sound", unfinished},
		{"cut.m4a", ftyp + "\x00\x00\x10\x00mdat sound", unfinished},
		{"cut.3gp", ftyp, unfinished},
		{"ffmpeg.mov", "\x00\x00\x00\x08wide\x00\x00\x00\x00mdat sound", unfinished},
		{"album.mp3", "PK\x03\x04\x14\x00", "the content is application/zip, not a recording"},
	} {
		t.Run(test.name+" "+test.want, func(t *testing.T) {
			path := filepath.Join(dir, test.name)
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
			rec, err := minutes.FromFile(path)(t.Context())
			require.Zero(t, rec)
			testkit.RequireParamError(t, err, "path", "")
			require.ErrorIs(t, err, minutes.ErrRecordingFormat)
			require.EqualError(t, err, "minutes: path: "+strconv.Quote(path)+": "+test.want)
		})
	}
}

// A declared type of audio or video counts, whatever the content is. Another application type counts
// if the content shows none, and everything else says nothing.
func TestUpload_CompletesContentType(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ declared, content, want string }{
		{"audio/x-own", magicMP3, "audio/x-own"},
		{"Video/X-Own", magicMP3, "Video/X-Own"},
		{"audio/mpeg", "text of a test", "audio/mpeg"},
		{" audio/mpeg\n", unknown, "audio/mpeg"},
		{"audio/L16; rate=16000;  channels=2", unknown, "audio/L16; rate=16000;  channels=2"},
		{`video/webm; codecs="vp8, opus"`, unknown, `video/webm; codecs="vp8, opus"`},
		// MediaRecorder of Chromium 156 names its types like this.
		{"video/webm;codecs=vp8,opus", unknown, "video/webm"},
		{"video/mp4;codecs=vp9,opus", unknown, "video/mp4"},
		{"video/x-matroska;codecs=avc1,opus", unknown, "video/x-matroska"},
		{"audio/webm;codecs=opus", unknown, "audio/webm;codecs=opus"},
		{"audio/mpeg; rate=1; rate=2", unknown, "audio/mpeg"},
		{"audio/mpeg; title=\"\xc3\xa9\"", unknown, "audio/mpeg"},
		{"audio/wav;\r\nX-Evil: 1", unknown, "audio/wav"},

		{"application/mp4", magicMP4, "video/mp4"},
		{"application/ogg", magicOpus, "audio/ogg"},
		{"application/mxf", unknown, "application/mxf"},
		{"application/x-own; rate=8000", unknown, "application/x-own; rate=8000"},

		{"", magicCAF, "audio/x-caf"},
		{"application/octet-stream", magicMP3, "audio/mpeg"},
		{"binary/octet-stream", magicMP4, "video/mp4"},
		{"Application/Octet-Stream; charset=binary", magicWAV, "audio/wav"},
		{"application/x-www-form-urlencoded", magicM4A, "audio/mp4"},
		{"multipart/form-data; boundary=x", magicFLAC, "audio/flac"},
		{"image/png", magicWAV, "audio/wav"},
		{"mp3", magicMP3, "audio/mpeg"},
		{"file", magicMP3, "audio/mpeg"},
		{"audio", magicMP3, "audio/mpeg"},
		{"audio/*", magicMP3, "audio/mpeg"},
		{"audio/", magicMP3, "audio/mpeg"},
		{"/mpeg", magicMP3, "audio/mpeg"},
		{"audio/mpeg, audio/mpeg", magicMP3, "audio/mpeg"},
		{"audio/wav\r\nX-Evil: 1", magicMP3, "audio/mpeg"},
		{"audio/w\xc3\xa4v", magicWAV, "audio/wav"},

		{"", unknown, noFormat},
		{"mp3", unknown, noFormat},
		{"image/png", unknown, noFormat},
		{"text/html", unknown, noFormat},
		{"multipart/form-data; boundary=x", unknown, noFormat},
		{"application/octet-stream", unknown, noFormat},
		{"application/x-www-form-urlencoded", unknown, noFormat},
		{"", "text", notText},
		{"text/html; charset=utf-8", "<html>Log in", "the content is text/html, not a recording"},
		{"application/octet-stream", `{"error":"expired"}`, notText},
		{"application/json", `{"error":"expired"}`, notText},
		{"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data\r\n\r\n" + magicFLAC, noFormat},
	} {
		audio := strings.NewReader(test.content)
		for name, source := range map[string]minutes.Source{
			"FromReaderAt": minutes.FromReaderAt(audio, audio.Size(), test.declared),
			"FromReader":   minutes.FromReader(strings.NewReader(test.content), test.declared),
			"own": testkit.Opened(minutes.Recording{
				Audio: audio, Size: audio.Size(), ContentType: test.declared,
			}),
		} {
			t.Run(name+" "+test.declared+" "+test.want, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := minutestest.NewServer(t)
					id := testkit.Waiting(t, srv)
					err := direct(srv).Meetings.Upload(t.Context(), id, source, nil)
					puts := srv.Requests(minutes.OpUpload)
					if test.want != noFormat && !strings.Contains(test.want, " not a ") {
						require.NoError(t, err)
						require.Len(t, puts, 1)
						require.Equal(t, []string{test.want}, puts[0].Header["Content-Type"])
						return
					}
					testkit.RequireParamError(t, err, "recording.ContentType", "")
					require.ErrorIs(t, err, minutes.ErrRecordingFormat)
					require.ErrorContains(t, err, test.want)
					require.Empty(t, puts)
				})
			})
		}
	}
}

func TestUpload_ReturnsErrorOfReadingTheFirstBytes(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk fell off")
	audio := testbase.ReaderAtFunc(func([]byte, int64) (int, error) { return 0, broken })
	err := testkit.Silent(t).Meetings.Upload(t.Context(), "mtg_1", minutes.FromReaderAt(audio, 10, ""), nil)
	require.ErrorIs(t, err, broken)
}
