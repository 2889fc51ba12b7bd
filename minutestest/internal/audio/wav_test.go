package audio

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func riffHeader(magic string) []byte {
	return join([]byte(magic), le32(math.MaxUint32), []byte("WAVE"))
}

func riffChunk(id string, body []byte) []byte {
	return join([]byte(id), le32(uint32(len(body))), body, zeros(len(body)&1))
}

func wavFmt(tag uint16, rate uint32, channels, bits uint16) []byte {
	block := channels * bits / 8
	return riffChunk("fmt ", join(le16(tag), le16(channels), le32(rate), le32(rate*uint32(block)), le16(block), le16(bits)))
}

func wavCases() []testCase {
	riff, pcm := riffHeader("RIFF"), wavFmt(waveFormatPCM, 8000, 1, 8)
	second := zeros(8000)
	extensible := riffChunk("fmt ", join(le16(waveFormatExtensible), le16(2), le32(8000), le32(1), le16(6), le16(24),
		le16(22), le16(24), le32(3), le16(waveFormatPCM), zeros(14)))
	gsm := riffChunk("fmt ", join(le16(0x31), le16(1), le32(8000), le32(1625), le16(65), le16(0)))
	noBlock := riffChunk("fmt ", join(le16(waveFormatPCM), le16(2), le32(8000), le32(0), le16(0), le16(12)))
	noBlockNoBits := riffChunk("fmt ", join(le16(waveFormatPCM), le16(2), le32(8000), le32(16000), le16(0), le16(0)))
	ds64 := func(size uint64) []byte { return riffChunk("ds64", join(le64(0), le64(size), le64(0), le32(0))) }
	placeholder := join([]byte("data"), le32(math.MaxUint32))
	return []testCase{
		{"plain", join(riff, pcm, riffChunk("data", second)), time.Second},
		{"chunks around the data", join(riff, riffChunk("JUNK", zeros(28)), pcm, riffChunk("data", second), riffChunk("LIST", zeros(4000))), time.Second},
		{"an odd chunk is padded", join(riff, riffChunk("LIST", zeros(33)), pcm, riffChunk("data", second)), time.Second},
		{"size 0", join(riff, pcm, []byte("data"), le32(0), second), time.Second},
		{"size -1", join(riff, pcm, placeholder, second), time.Second},
		{"size near 2 GiB", join(riff, pcm, []byte("data"), le32(0x7FFFF000), second), time.Second},
		{"cut", join(riff, pcm, riffChunk("data", second)[:8+2000]), 250 * ms},
		{"truncated in a header", join(riff, pcm, []byte("dat")), 0},
		{"no data", join(riff, pcm), 0},
		{"empty data", join(riff, pcm, riffChunk("data", nil)), 0},
		{"no fmt", join(riff, riffChunk("data", second)), 0},
		{"short fmt", join(riff, riffChunk("fmt ", zeros(12)), pcm, riffChunk("data", second)), 0},
		{"half a block does not count", join(riff, wavFmt(waveFormatPCM, 1000, 2, 16), riffChunk("data", zeros(4003))), time.Second},
		{"float", join(riff, wavFmt(waveFormatIEEEFloat, 1000, 1, 32), riffChunk("data", zeros(4000))), time.Second},
		{"extensible", join(riff, extensible, riffChunk("data", zeros(48000))), time.Second},
		{"extensible, another sub-format", join(riff, riffChunk("fmt ", join(le16(waveFormatExtensible), le16(2), le32(8000), le32(4000), le16(6), le16(24),
			le16(22), le16(24), le32(3), le16(0x55), zeros(14))), riffChunk("data", second)), 2 * time.Second},
		{"extensible without an extension", join(riff, wavFmt(waveFormatExtensible, 8000, 1, 8), riffChunk("data", second)), time.Second},
		{"two data chunks", join(riff, pcm, riffChunk("data", second), riffChunk("data", zeros(100))), time.Second},
		{"no block size", join(riff, noBlock, riffChunk("data", zeros(32000))), time.Second},
		{"byte rate only", join(riff, noBlockNoBits, riffChunk("data", zeros(16000))), time.Second},
		{"no rate", join(riff, wavFmt(waveFormatPCM, 0, 1, 8), riffChunk("data", second)), 0},
		{"compressed with fact", join(riff, gsm, riffChunk("fact", le32(7999)), riffChunk("data", zeros(1625))), 7999 * time.Second / 8000},
		{"compressed without fact", join(riff, gsm, riffChunk("data", zeros(3250))), 2 * time.Second},
		{"fact without data", join(riff, gsm, riffChunk("fact", le32(7999))), 0},
		{"fact too short", join(riff, gsm, riffChunk("fact", le16(8000)), riffChunk("data", zeros(3250))), 2 * time.Second},
		{"fact does not cover truncated data", join(riff, gsm, riffChunk("fact", le32(80000)), riffChunk("data", zeros(16250))[:8+3250]), 2 * time.Second},
		{"fact says nothing of PCM", join(riff, pcm, riffChunk("fact", le32(80000)), riffChunk("data", second)), time.Second},
		{"RF64", join(riffHeader("RF64"), ds64(8000), pcm, placeholder, second, riffChunk("LIST", zeros(4000))), time.Second},
		{"BW64", join(riffHeader("BW64"), ds64(8000), pcm, placeholder, second, riffChunk("LIST", zeros(4000))), time.Second},
		{"RF64 of unknown size", join(riffHeader("RF64"), ds64(0), pcm, placeholder, second), time.Second},
		{"RF64 of size -1", join(riffHeader("RF64"), ds64(math.MaxUint64), pcm, placeholder, second), time.Second},
		{"RF64 with a short ds64", join(riffHeader("RF64"), riffChunk("ds64", zeros(8)), riffChunk("\x10\x00\x00\x00", nil), pcm, placeholder, second), time.Second},
		{"RF64 with a size of its own", join(riffHeader("RF64"), ds64(4000), pcm, riffChunk("data", second)), time.Second},
		{"a chunk larger than the file", join(riff, []byte("JUNK"), le32(math.MaxUint32), pcm, riffChunk("data", second)), 0},
		{"a hundred years", join(riff, riffChunk("fmt ", join(le16(2), le16(1), le32(1), le32(1), le16(1), le16(8))), riffChunk("fact", le32(math.MaxUint32)), riffChunk("data", second)), 0},
	}
}

// TestWAV_DataOver4GiB has more data than a 32-bit size can express, from a writer that could not seek.
func TestWAV_DataOver4GiB(t *testing.T) {
	t.Parallel()
	var m Meter
	_, _ = m.Write(join(riffHeader("RIFF"), wavFmt(waveFormatPCM, 48000, 2, 16), []byte("data"), le32(math.MaxUint32)))
	piece := zeros(192000)
	for range 36000 {
		_, _ = m.Write(piece)
	}
	d, ok := m.Duration()
	assert.Equal(t, 10*time.Hour, d)
	assert.True(t, ok)
}

func TestWAV(t *testing.T) {
	t.Parallel()
	run(t, wavCases())
}
