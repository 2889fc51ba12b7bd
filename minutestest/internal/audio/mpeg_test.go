package audio

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mp3Frame is a frame of MPEG-1 layer III at 48 kHz and 128 kbit/s, stereo: 384 bytes, 24 ms.
var mp3Frame = frame(0xFB, 0x94, 0x00, 384)

func frame(b1, b2, b3 byte, size int) []byte {
	f := zeros(size)
	copy(f, []byte{0xFF, b1, b2, b3})
	return f
}

func with(frame []byte, at int, b ...[]byte) []byte {
	f := join(frame)
	copy(f[at:], join(b...))
	return f
}

// id3v2 is a tag of n bytes full of data that looks like frames.
func id3v2(n int, footer bool) []byte {
	h := []byte{'I', 'D', '3', 4, 0, 0, 0, 0, byte(n >> 7), byte(n & 0x7F)}
	body := repeat(mp3Frame, n/len(mp3Frame)+1)[:n]
	if !footer {
		return join(h, body)
	}
	h[5] = 0x10
	return join(h, body, with(h, 0, []byte("3DI")))
}

func mpegCases() []testCase {
	frames := func(n int) []byte { return repeat(mp3Frame, n) }
	const each = 24 * ms
	xing := func(declared uint32, trim ...byte) []byte {
		return with(mp3Frame, 36, []byte("Xing"), be32(15), be32(declared), zeros(4+100+4), []byte("LAME3.100"), zeros(12), trim)
	}
	ape := join([]byte("APETAGEX"), le32(2000), le32(2000), le32(1), le32(1<<31|1<<29), zeros(8), frames(6)[:2000])
	apeFooter := join([]byte("APETAGEX"), le32(2000), le32(32), le32(0), le32(0), zeros(8))
	other := frame(0xF3, 0x44, 0x00, 96) // MPEG-2 layer III, 24 kHz, 32 kbit/s: 24 ms
	longer := frame(0xE3, 0x18, 0, 72)   // MPEG-2.5 layer III, 8 kHz, 8 kbit/s: 72 ms
	id3v1 := join([]byte("TAG"), zeros(7), longer, longer[:46])
	return []testCase{
		{"constant bit rate", frames(10), 10 * each},
		{"variable bit rate", join(frames(2), frame(0xFB, 0x14, 0, 96), frame(0xFB, 0xE4, 0, 960), frames(2)), 6 * each},
		{"padding", join(frame(0xFB, 0x92, 0, 418), frame(0xFB, 0x90, 0, 417), frame(0xFB, 0x92, 0, 418)), 3 * 1152 * time.Second / 44100},
		{"one frame", frames(1), each},
		{"one frame, truncated", mp3Frame[:383], 0},
		{"two frames", frames(2), 2 * each},
		{"free format", repeat(frame(0xFB, 0x04, 0, 384), 10), 0},
		{"layer I", repeat(frame(0xFF, 0x14, 0, 32), 10), 10 * 8 * ms},
		{"layer I with padding", repeat(frame(0xFF, 0x16, 0, 36), 10), 10 * 8 * ms},
		{"layer II", repeat(frame(0xFD, 0x14, 0, 96), 10), 10 * each},
		{"MPEG-2 layer I", repeat(frame(0xF7, 0x14, 0, 64), 10), 10 * 16 * ms},
		{"MPEG-2 layer II", repeat(frame(0xF5, 0x14, 0, 48), 10), 10 * 48 * ms},
		{"MPEG-2 layer III", repeat(other, 10), 10 * each},
		{"MPEG-2.5 layer III", repeat(longer, 10), 10 * 72 * ms},
		{"MPEG-2.5 layer II, the longest frame", repeat(frame(0xE5, 0xE8, 0, 2880), 3), 3 * 144 * ms},

		{"Xing is no audio", join(xing(4, 0, 0, 0), frames(4)), 4 * each},
		{"Info is no audio", join(with(mp3Frame, 36, []byte("Info")), frames(4)), 4 * each},
		{"Xing in mono", join(with(frame(0xFB, 0x94, 0xC0, 384), 21, []byte("Xing")), repeat(frame(0xFB, 0x94, 0xC0, 384), 4)), 4 * each},
		{"Xing in MPEG-2", join(with(other, 21, []byte("Xing")), repeat(other, 4)), 4 * each},
		{"Xing in MPEG-2, mono", join(with(frame(0xF3, 0x44, 0xC0, 96), 13, []byte("Xing")), repeat(frame(0xF3, 0x44, 0xC0, 96), 4)), 4 * each},
		{"Xing behind a checksum", join(with(frame(0xFA, 0x94, 0, 384), 38, []byte("Info")), repeat(frame(0xFA, 0x94, 0, 384), 4)), 4 * each},
		{"VBRI is no audio", join(with(mp3Frame, 36, []byte("VBRI")), frames(4)), 4 * each},
		{"VBRI in mono is at the same place", join(with(frame(0xFB, 0x94, 0xC0, 384), 36, []byte("VBRI")), repeat(frame(0xFB, 0x94, 0xC0, 384), 4)), 4 * each},
		{"Xing belongs to layer III", join(with(frame(0xFD, 0x84, 0, 384), 36, []byte("Xing")), repeat(frame(0xFD, 0x84, 0, 384), 4)), 5 * each},
		{"delay and padding", join(xing(4, 0x24, 0x04, 0x80), frames(4)), 4*each - (576+1152)*time.Second/48000},
		{"Xing of a longer file", join(xing(1e9, 0x24, 0x04, 0x80), frames(4)), 4 * each},
		{"Xing of a shorter file", join(xing(3, 0x24, 0x04, 0x80), frames(4)), 4 * each},
		{"more padding than audio", join(xing(1, 0xFF, 0xFF, 0xFF), frames(1)), each},
		{"Xing twice", join(xing(4, 0x24, 0x04, 0x80), frames(4), id3v1, xing(3, 0x24, 0x04, 0x80), frames(3)), 7*each - 2*(576+1152)*time.Second/48000},
		{"Xing in a short frame", join(with(frame(0xFB, 0x14, 0, 96), 36, []byte("Xing"), be32(15), be32(2)), repeat(frame(0xFB, 0x14, 0, 96), 2)), 2 * each},

		{"Xing in the audio", join(with(mp3Frame, 100, []byte("Xing")), frames(4)), 5 * each},
		{"Xing at the end of a frame", join(with(frame(0xF3, 0x14, 0xC0, 24), 13, []byte("Xing"), be32(1)), repeat(frame(0xF3, 0x14, 0xC0, 24), 4)), 4 * each},
		{"Xing with a LAME tag at the end of a frame", join(with(frame(0xF3, 0x24, 0xC0, 48), 13, []byte("Xing"), be32(1), be32(4), []byte("LAME3.100")), repeat(frame(0xF3, 0x24, 0xC0, 48), 4)), 4 * each},
		{"Xing without a count", join(with(mp3Frame, 36, []byte("Xing"), be32(0), be32(4), []byte("LAME3.100"), zeros(12), []byte{0x24, 0x04, 0x80}), frames(4)), 4 * each},

		{"ID3v2", join(id3v2(2000, false), frames(4)), 4 * each},
		{"ID3v2 with a footer", join(id3v2(2000, true), frames(4)), 4 * each},
		{"ID3v2 of a forbidden size is rubbish", join([]byte("ID3\x04\x00\x00\x80\x00\x00\x00"), frames(4)), 4 * each},
		{"ID3v2 in between", join(frames(3), id3v2(2000, false), frames(4)), 7 * each},
		{"ID3v1", join(frames(4), id3v1), 4 * each},
		{"ID3v1 in between", join(frames(3), id3v1, frames(4)), 7 * each},
		{"APE tag", join(frames(4), ape, apeFooter, id3v1), 4 * each},
		{"APE tag in between", join(frames(3), ape, apeFooter, frames(4)), 7 * each},

		{"rubbish before", join([]byte("hello, world"), frames(4)), 4 * each},
		{"zeros before", join(zeros(1000), frames(4)), 4 * each},
		{"rubbish in between", join(frames(3), []byte("rubbish"), frames(4)), 7 * each},
		{"rubbish after", join(frames(4), []byte("rubbish")), 4 * each},
		{"a false header before", join(mp3Frame[:100], frames(4)), 4 * each},
		{"a false header in between", join(frames(3), mp3Frame[:100], frames(4)), 7 * each},
		{"mostly rubbish", join(frames(4), []byte("x"), noise(8*384)), 0},
		{"the last frame is truncated", join(frames(4), mp3Frame[:383]), 4 * each},
		{"the second frame is truncated", join(frames(1), mp3Frame[:383]), each},
		{"a tag is truncated", join(frames(4), id3v2(2000, false)[:500]), 4 * each},
		{"one frame after rubbish", join(frames(4), []byte("rubbish"), mp3Frame), 4 * each},
		{"one frame before another stream", join([]byte("x"), mp3Frame, repeat(longer, 9)), 9 * 72 * ms},
		{"as much rubbish as frames", join(frames(2), zeros(2*384)), 2 * each},
		{"more rubbish than frames", join(frames(2), zeros(2*384+1)), 0},
		{"another stream follows", join(frames(4), repeat(longer, 5)), 4*each + 5*72*ms},
		{"another stream in between", join(frames(4), repeat(longer, 5), frames(2)), 6*each + 5*72*ms},
	}
}

func TestMPEG(t *testing.T) {
	t.Parallel()
	run(t, mpegCases())
}

// TestMPEGHeader has the sizes of frames as the standards' formula gives them, and each kind of header that is none.
func TestMPEGHeader(t *testing.T) {
	t.Parallel()
	for bits, want := range map[uint32]struct {
		size int
		rate int
	}{
		0xFFFB9064: {417, 44100}, 0xFFFBE264: {1045, 44100}, 0xFFF38064: {208, 22050},
		0xFFE31864: {72, 8000}, 0xFFFD9064: {522, 44100}, 0xFFFF9064: {312, 44100},
	} {
		h, ok := parseMPEGHeader(binary.BigEndian.AppendUint32(nil, bits))
		require.True(t, ok, "%x", bits)
		assert.Equal(t, want.size, h.size, "%x", bits)
		assert.Equal(t, want.rate, h.stream.rate, "%x", bits)
	}
	for _, bits := range []uint32{0xFEFB9064, 0xFFDB9064, 0xFFEB9064, 0xFFF99064, 0xFFFB0064, 0xFFFBF064, 0xFFFB9C64} {
		_, ok := parseMPEGHeader(binary.BigEndian.AppendUint32(nil, bits))
		assert.False(t, ok, "%x", bits)
	}
}
