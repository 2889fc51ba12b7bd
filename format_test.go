package minutes

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func zeros(n int) string { return strings.Repeat("\x00", n) }

// box is a box of MP4 with n more bytes.
func box(kind, content string, n int) string {
	size := binary.BigEndian.AppendUint32(nil, uint32(8+len(content)+n))
	return string(size) + kind + content + zeros(n)
}

// frames is three frames of this length with this header.
func frames(header string, length int) string {
	return strings.Repeat(header+zeros(length-len(header)), 3)
}

// oggPages is the first pages of streams whose identification headers these are.
func oggPages(headers ...string) string {
	all := ""
	for i, header := range headers {
		all += "OggS\x00\x02" + zeros(8) + string(rune('A'+i)) + zeros(11) + "\x01" + string(rune(len(header))) + header
	}
	return all
}

// How recordings of real programs begin, from Debian 12's packages: each is declared right by its
// content alone, whichever Source it comes from. The bytes are composed here.
func TestSources_RecogniseRecordingsOfRealPrograms(t *testing.T) {
	t.Parallel()
	const opus = "OpusHead\x01\x02\x38\x01\x80\xbb\x00\x00\x00\x00\x00"
	const vp8 = "OVP80\x01\x01\x00\x00\xa0\x00\x78"
	const gstEBML = "\x1a\x45\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x10\x42\x82"
	const ebml = "\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82"
	vorbis := "\x01vorbis" + zeros(23)
	moov := box("moov", "", 100)
	mdat := box("mdat", "", 1000)
	mp3 := frames("\xff\xfb\x94\x64", 384)
	id3 := "ID3\x04\x00\x00\x00\x00\x00\x23" + zeros(35)
	fmtChunk := "fmt \x10\x00\x00\x00\x01\x00\x02\x00"
	for _, test := range []struct{ program, begin, want string }{
		{"ffmpeg 5.1.9 -f wav pipe:1", "RIFF\xff\xff\xff\xffWAVE" + fmtChunk, "audio/wav"},
		{"ffmpeg 5.1.9 -rf64 always", "RF64\xff\xff\xff\xffWAVEds64\x1c\x00\x00\x00", "audio/wav"},
		{"SoX 14.4.2 -B x.wav", "RIFX\x00\x08\xca\x24WAVEfmt \x00\x00\x00\x10", "audio/wav"},
		{"id3v2 0.1.12 -t x.wav", id3 + "RIFF\x24\xca\x08\x00WAVE" + fmtChunk, "audio/wav"},
		{"libsndfile 1.2.0 x.w64", "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00", "audio/x-w64"},
		{"ffmpeg 5.1.9 -write_id3v2 1 x.aiff", "FORM\x00\x01\x77\x2eAIFFCOMM\x00\x00\x00\x12", "audio/aiff"},
		{"SoX 14.4.2 x.aifc", "FORM\x00\x08\xca\x4aAIFCFVER\x00\x00\x00\x04", "audio/aiff"},
		{"mpg123 1.31.2 --au -", ".snd\x00\x00\x00\x18\xff\xff\xff\xff\x00\x00\x00\x03", "audio/basic"},
		{"SoX 14.4.2 -L x.au", "\x00ds.\x2c\x00\x00\x00\x00\xca\x08\x00\x03\x00\x00\x00", "audio/basic"},
		{"libsndfile 1.2.0 -endian=little x.au", "dns.\x18\x00\x00\x00\x00\xca\x08\x00\x03\x00\x00\x00", "audio/basic"},
		{"ffmpeg 5.1.9 -f caf pipe:1", "caff\x00\x01\x00\x00desc" + zeros(7) + "\x20", "audio/x-caf"},
		{"flac 1.4.2", "fLaC\x00\x00\x00\x22\x10\x00\x10\x00", "audio/flac"},
		{"id3v2 0.1.12 -t x.flac", id3 + "fLaC\x00\x00\x00\x22\x10\x00\x10\x00", "audio/flac"},
		{"SoX 14.4.2 x.amr-nb", "#!AMR\n\x04\xf8\x71\x8b\xd1", "audio/amr"},

		{"ffmpeg 5.1.9 -f mp3 pipe:1", id3 + mp3, "audio/mpeg"},
		{"LAME 3.100 -t", mp3, "audio/mpeg"},
		{"LAME 3.100 --resample 8 -b 16", frames("\xff\xe3\x28\xc4", 144), "audio/mpeg"},
		{"LAME 3.100 -p", frames("\xff\xfa\x94\x64\xd0\x08", 384), "audio/mpeg"},
		{"LAME 3.100 --freeformat", "\xff\xfb\x04\x64" + zeros(32) + "Info\x00\x00\x00\x0f", "audio/mpeg"},
		{"LAME 3.100 --freeformat -m m", "\xff\xf3\x08\xc4" + zeros(9) + "Info\x00\x00\x00\x0f" + zeros(40),
			"audio/mpeg"},
		{"twolame 0.4.0", frames("\xff\xfd\xa4\x04\x99", 576), "audio/mpeg"},
		{"twolame 0.4.0, 16 kHz", frames("\xff\xf5\x88\xc4", 576), "audio/mpeg"},
		{"GStreamer 1.22.0 apev2mux", "APETAGEX\xd0\x07\x00\x00\x2f\x00\x00\x00\x01" + zeros(6) +
			"\xa0" + zeros(8) + zeros(47) + mp3, "audio/mpeg"},
		{"ffmpeg 5.1.9 x.aac", frames("\xff\xf1\x4c\x80\x04\x00\xfc", 32), "audio/aac"},
		{"ffmpeg 5.1.9 -f adts -write_mpeg2 1", frames("\xff\xf9\x4c\x80\x04\x00\xfc", 32), "audio/aac"},
		{"ffmpeg 5.1.9 -f adts -write_id3v2 1", id3 + frames("\xff\xf1\x4c\x80\x04\x00\xfc", 32), "audio/aac"},
		{"ffmpeg 5.1.9 -f latm", frames("\x56\xe0\x1d\x20\x00\x11", 32), "audio/mp4a-latm"},

		{"ffmpeg 5.1.9 x.m4a", box("ftyp", "M4A \x00\x00\x02\x00M4A isomiso2", 0) + box("free", "", 0) + mdat + moov,
			"audio/mp4"},
		{"AtomicParsley 20210715 x.m4a", box("ftyp", "M4A \x00\x00\x02\x00", 0) + moov + box("free", "", 9) + mdat,
			"audio/mp4"},
		{"ffmpeg 5.1.9 x.mp4", box("ftyp", "isom\x00\x00\x02\x00isom", 0) + box("free", "", 0) + mdat + moov,
			"video/mp4"},
		{"GStreamer 1.22.0 mp4mux", box("ftyp", "mp42\x00\x00\x00\x00", 0) + box("free", "", 0) + mdat + moov,
			"video/mp4"},
		{"Chromium 156 MediaRecorder audio/mp4", box("ftyp", "isom\x00\x00\x02\x00vp09", 0) + moov + box("moof", "", 9),
			"video/mp4"},
		{"ffmpeg 5.1.9 -hls_segment_type fmp4, a segment", box("styp", "msdh\x00\x00\x00\x00", 0) + box("sidx", "", 9) +
			box("moof", "", 9) + mdat, "video/mp4"},
		{"ffmpeg 5.1.9 x.mov", box("ftyp", "qt  \x00\x00\x02\x00", 0) + box("wide", "", 0) + mdat + moov,
			"video/quicktime"},
		{"GStreamer 1.22.0 3gppmux", box("ftyp", "3gp4\x00\x00\x00\x00", 0) + mdat + moov, "video/3gpp"},
		{"ffmpeg 5.1.9 x.3g2", box("ftyp", "3g2a\x00\x01\x00\x00", 0) + mdat + moov, "video/3gpp2"},

		{"opusenc 0.2", oggPages(opus), "audio/ogg"},
		{"oggenc 1.4.2", oggPages(vorbis), "audio/ogg"},
		{"speexenc 1.2.1", oggPages("Speex   1.2.1" + zeros(67)), "audio/ogg"},
		{"flac 1.4.2 --ogg", oggPages("\x7fFLAC\x01\x00\x00\x01fLaC\x00\x00\x00\x22"), "audio/ogg"},
		{"ffmpeg 5.1.9 x.ogv, Theora behind Vorbis", oggPages(vorbis, "\x80theora\x03\x02\x01"), "video/ogg"},
		{"GStreamer 1.22.0 oggmux, VP8 and Vorbis", oggPages(vp8, vorbis), "video/ogg"},
		{"GStreamer 1.22.0 oggmux, Opus and VP8", oggPages(opus, vp8), "video/ogg"},
		{"GStreamer 1.22.0 webmmux", gstEBML +
			"\x85webm\x00\x42\x87\x81\x02\x42\x85\x81\x02\x18\x53\x80\x67" + zeros(180) +
			"GStreamer matroskamux", "video/webm"},
		{"GStreamer 1.22.0 matroskamux", gstEBML + "\x89matroska\x00\x42\x87\x81\x02", "video/x-matroska"},
		{"mkvmerge 74.0.0 --webm", ebml + "\x84webm\x42\x87\x81\x04", "video/webm"},
		{"mkvmerge 74.0.0 x.mka", ebml + "\x88matroska\x42\x87\x81\x04", "video/x-matroska"},
		{"Firefox ESR 153 MediaRecorder", "\x1a\x45\xdf\xa3\x01" + zeros(6) + "\x1f\x42\x86\x81\x01\x42\x82\x84webm",
			"video/webm"},
		{"VLC 3 mux=asf", "\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c", "video/x-ms-asf"},
		{"mencoder x.avi", "RIFF\x00\x10\x00\x00AVI LIST\x26\x01\x00\x00", "video/avi"},
		{"GStreamer 1.22.0 flvmux streamable=true", "FLV\x01\x04\x00\x00\x00\x09", "video/x-flv"},
		{"ffmpeg 5.1.9 x.mpg", "\x00\x00\x01\xba\x21\x00\x01\x00\x01", "video/mpeg"},
		{"ffmpeg 5.1.9 x.m1v", "\x00\x00\x01\xb3\x0a\x00\x78\x13", "video/mpeg"},
		{"ffmpeg 5.1.9 x.ts", strings.Repeat("G\x40\x11\x10"+zeros(184), 3), "video/mp2t"},
		{"GStreamer 1.22.0 mpegtsmux m2ts-mode=true", strings.Repeat("\x21\x56\x02\xfeG\x40\x00\x31"+zeros(184), 3),
			"video/mp2t"},
	} {
		t.Run(test.program, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "recording")
			require.NoError(t, os.WriteFile(path, []byte(test.begin), 0o600))
			for name, source := range map[string]Source{
				"FromFile":     FromFile(path),
				"FromReader":   FromReader(strings.NewReader(test.begin), ""),
				"FromReaderAt": FromReaderAt(strings.NewReader(test.begin), int64(len(test.begin)), ""),
			} {
				rec, err := openRecording(context.Background(), source)
				require.NoError(t, err, name)
				assert.Equal(t, test.want, rec.ContentType, name)
				assert.NoError(t, rec.Close())
			}
		})
	}
}

// Neither noise nor quiet PCM without a header, which is full of the sync words of MP3 and AAC, is
// taken for a recording.
func TestSniff_HasNoFalsePositives(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	sample := map[string]func() uint16{
		"noise":                func() uint16 { return uint16(random.Uint32()) },
		"quiet PCM":            func() uint16 { return uint16(random.IntN(33) - 16) },
		"little-endian PCM":    func() uint16 { return uint16(random.IntN(33)-16) << 8 },
		"quiet lines of µ-law": func() uint16 { return 0xfff0 | uint16(random.IntN(16)) | uint16(random.IntN(16))<<8 },
	}
	for name, next := range sample {
		buffer := make([]byte, 2048)
		for range 500 {
			for i := 0; i < len(buffer); i += 2 {
				binary.BigEndian.PutUint16(buffer[i:], next())
			}
			buffer[0] = 0xff // the first byte of most sync words
			// It may look like UTF-16, which is an error.
			found, _ := sniff("recording", "", strings.NewReader(string(buffer)), int64(len(buffer)))
			require.Empty(t, found, name)
		}
	}
}

func TestSniff_AllocatesLittle(t *testing.T) {
	for name, begin := range map[string]string{
		"MP3": frames("\xff\xfb\x94\x64", 384),
		"MP4": box("ftyp", "M4A ", 8) + box("mdat", "", 99) + box("moov", "", 9),
	} {
		audio := strings.NewReader(begin)
		allocations := testing.AllocsPerRun(100, func() { _, _ = sniff("recording", "", audio, audio.Size()) })
		require.LessOrEqual(t, allocations, 2.0, name)
	}
}

// countingReader counts the reads of a recording.
type countingReader struct {
	io.ReaderAt
	reads int
}

func (r *countingReader) ReadAt(p []byte, at int64) (int, error) {
	r.reads++
	return r.ReaderAt.ReadAt(p, at)
}

func FuzzSniff(f *testing.F) {
	f.Add("ID3\x04\x00\x10\x7f\x7f\x7f\x7f")
	f.Add("APETAGEX\xd0\x07\x00\x00\xff\xff\xff\xff" + zeros(20) + "ID3")
	f.Add(box("ftyp", "isom", 0) + "\x00\x00\x00\x01mdat\xff\xff\xff\xff\xff\xff\xff\xff")
	f.Add("\x1a\x45\xdf\xa3\x42\x82")
	f.Add(frames("\xff\xf1\x4c\x80\x04\x00\xfc", 32))
	f.Add("\x56\xe0\x00")
	f.Fuzz(func(t *testing.T, begin string) {
		audio := &countingReader{ReaderAt: strings.NewReader(begin)}
		found, err := sniff("recording", "", audio, int64(len(begin)))
		require.True(t, err == nil || found == "")
		require.True(t, found == "" || isMedia(found))
		require.Less(t, audio.reads, 100)
	})
}
