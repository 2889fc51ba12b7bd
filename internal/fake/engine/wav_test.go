package engine

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// chunk is a chunk of a WAV file in this byte order, with the length that its writer declares.
func chunk(order binary.AppendByteOrder, name string, declared uint32, content string) string {
	return name + string(order.AppendUint32(nil, declared)) + content
}

// format is the content of a fmt chunk up to the bytes of a second, and of other bytes.
func format(order binary.AppendByteOrder, tag, channels uint16, perSecond, byteRate uint32, frame, bits uint16) string {
	b := order.AppendUint16(nil, tag)
	b = order.AppendUint16(b, channels)
	b = order.AppendUint32(b, perSecond)
	b = order.AppendUint32(b, byteRate)
	b = order.AppendUint16(b, frame)
	return string(order.AppendUint16(b, bits))
}

// Headers as these programs write them: Debian 12's packages, versions in the table. Each recording
// has three seconds. The bytes of the headers are composed here.
func TestWAVHeader_IsReadAsRealProgramsWriteIt(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	be := binary.BigEndian
	const seconds = 3
	stereo := format(le, 1, 2, 48_000, 192_000, 4, 16) // 3 s are 576,000 bytes
	mono := format(le, 1, 1, 16_000, 32_000, 2, 16)
	stereo24 := format(le, 0xfffe, 2, 48_000, 288_000, 6, 24) + "\x16\x00" + strings.Repeat("\x00", 22)
	float := format(le, 3, 1, 8_000, 32_000, 4, 32)
	muLaw := format(le, 7, 1, 8_000, 8_000, 1, 8)
	list := chunk(le, "LIST", 26, "INFOISFT\x0e\x00\x00\x00Lavf59.27.100\x00")
	ds64 := func(data uint64, samples uint64) string {
		b := le.AppendUint64(nil, data+96)
		b = le.AppendUint64(b, data)
		b = le.AppendUint64(b, samples)
		return chunk(le, "ds64", 28, string(b)+"\x00\x00\x00\x00")
	}
	riff := func(size uint32) string { return chunk(le, "RIFF", size, "WAVE") }
	rf64 := chunk(le, "RF64", math.MaxUint32, "WAVE")
	fmt16 := func(content string) string { return chunk(le, "fmt ", uint32(len(content)), content) }
	unknown := func(size uint32) string { return chunk(le, "data", size, "") }
	for _, test := range []struct {
		program, header string
		rate            int
		after           string // what follows the data
	}{
		{"ffmpeg 5.1.9 -f wav pipe:1",
			riff(math.MaxUint32) + fmt16(stereo) + list + unknown(math.MaxUint32), 192_000, ""},
		{"ffmpeg 5.1.9 x.wav", riff(96_106) + fmt16(mono) + list + unknown(96_000), 32_000, ""},
		{"ffmpeg 5.1.9 -rf64 always x.wav", rf64 + ds64(96_000, 48_000) + fmt16(mono) + list +
			unknown(math.MaxUint32), 32_000, ""},
		{"ffmpeg 5.1.9 -rf64 always -f wav pipe:1", rf64 + ds64(0, 0) + fmt16(mono) + list +
			unknown(math.MaxUint32), 32_000, ""},
		{"ffmpeg 5.1.9 -rf64 auto x.wav", riff(96_106) + chunk(le, "JUNK", 28, strings.Repeat("\x00", 28)) +
			fmt16(mono) + list + unknown(96_000), 32_000, ""},
		{"ffmpeg 5.1.9 -write_bext 1 x.wav", riff(96_680) + fmt16(mono) +
			chunk(le, "bext", 602, strings.Repeat("\x00", 602)) + list + unknown(96_000), 32_000, ""},
		{"ffmpeg 5.1.9 -c:a pcm_mulaw x.wav", riff(24_084) + fmt16(muLaw+"\x00\x00") +
			chunk(le, "fact", 4, "\xc0\x5d\x00\x00") + list + unknown(24_000), 8_000, ""},
		{"SoX 14.4.2 -t wav - of raw samples", riff(0x7ffff024) + fmt16(stereo) + unknown(0x7ffff000), 192_000, ""},
		{"SoX 14.4.2 -b 24 x.wav", riff(864_072) + fmt16(stereo24) +
			chunk(le, "fact", 4, "\x80\x32\x02\x00") + unknown(864_000), 288_000, ""},
		{"SoX 14.4.2 -B x.wav", chunk(be, "RIFX", 576_036, "WAVE") +
			chunk(be, "fmt ", 16, format(be, 1, 2, 48_000, 192_000, 4, 16)) +
			chunk(be, "data", 576_000, ""), 192_000, ""},
		{"GStreamer 1.22.0 wavenc ! fdsink", riff(0x7fff0024) + fmt16(stereo) + unknown(0x7fff0000), 192_000,
			chunk(le, "LIST", 4, "INFO")},
		{"GStreamer 1.22.0 mulawenc ! wavenc", riff(24_048) + fmt16(muLaw) + unknown(24_000), 8_000,
			chunk(le, "LIST", 4, "INFO")},
		{"LAME 3.100 --decode x.mp3 -", riff(0x80000023) + fmt16(stereo) + unknown(0x7fffffff), 192_000, ""},
		{"mpg123 1.31.2 -w -", riff(36) + fmt16(stereo) + unknown(0), 192_000, ""},
		{"flac 1.4.2 -d -c of a FLAC of unknown length", riff(0) + fmt16(stereo) + unknown(0), 192_000, ""},
		{"flac 1.4.2 -d --force-rf64-format", rf64 + ds64(576_000, 144_000) + fmt16(stereo) +
			unknown(math.MaxUint32), 192_000, ""},
		{"arecord 1.2.8 -t wav", riff(0x80000024) + fmt16(mono) + unknown(0x80000000), 32_000, ""},
		{"arecord 1.2.8 -d 3 -t wav", riff(96_036) + fmt16(mono) + unknown(96_000), 32_000, ""},
		{"espeak-ng 1.51 --stdout", riff(0x7ffff024) + fmt16(format(le, 1, 1, 22_050, 44_100, 2, 16)) +
			unknown(0x7ffff000), 44_100, ""},
		{"libsndfile 1.2.0 sndfile-convert x.rf64", rf64 + ds64(864_000, 144_000) + fmt16(stereo24) +
			unknown(math.MaxUint32), 288_000, ""},
		{"libsndfile 1.2.0 sndfile-convert -float32", riff(96_072) + fmt16(float) +
			chunk(le, "fact", 4, "\xc0\x5d\x00\x00") + chunk(le, "PEAK", 16, strings.Repeat("\x01", 16)) +
			unknown(96_000), 32_000, ""},
		{"id3v2 0.1.12 -t x.wav", "ID3\x03\x00\x00\x00\x00\x0b\x52" + strings.Repeat("\x00", 1_490) +
			riff(576_036) + fmt16(stereo) + unknown(576_000), 192_000, "TAG" + strings.Repeat("\x00", 125)},
		// RF64 with much behind the data, as a broadcaster's editor may leave it.
		{"a long chunk behind RF64", rf64 + ds64(576_000, 144_000) + fmt16(stereo) + unknown(math.MaxUint32), 192_000,
			chunk(le, "iXML", 1<<20, strings.Repeat(" ", 1<<20))},
	} {
		t.Run(test.program, func(t *testing.T) {
			t.Parallel()
			recording := test.header + strings.Repeat("\x7f", seconds*test.rate) + test.after
			length := readWAVHeader(strings.NewReader(recording)).length(int64(len(recording)))
			assert.InDelta(t, seconds, length.Seconds(), 0.1)
		})
	}
}

// The length of compressed audio in WAV is an estimate: the bytes of a second that programs declare
// for it may be 0, as ffmpeg does for MP3, or wrong, as for ADPCM.
func TestWAVHeader_EstimatesCompressedAudio(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	mp3 := "RIFF\x00\x00\x00\x00WAVE" + chunk(le, "fmt ", 30, format(le, 85, 1, 16_000, 0, 576, 0)+
		strings.Repeat("\x00", 14)) + chunk(le, "data", 160_000, strings.Repeat("\x7f", 160_000))
	length := readWAVHeader(strings.NewReader(mp3)).length(int64(len(mp3)))
	assert.Equal(t, 10*time.Second, length.Round(time.Second))
}

func FuzzWAVHeader(f *testing.F) {
	f.Add("RIFF\xff\xff\xff\x7fWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00data\x00")
	f.Add("RF64\xff\xff\xff\xffWAVEds64\x1c\x00\x00\x00" + strings.Repeat("\xff", 28) + "data\xff\xff\xff\xff")
	f.Add("ID3\x03\x00\x00\x00\x00\x00\x02xxRIFX")
	f.Fuzz(func(t *testing.T, recording string) {
		size := int64(len(recording))
		length := readWAVHeader(strings.NewReader(recording)).length(size)
		assert.GreaterOrEqual(t, length, time.Duration(0))
		assert.LessOrEqual(t, length, time.Duration(size)*time.Second)
	})
}
