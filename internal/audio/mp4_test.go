package audio

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func mp4Box(kind string, body ...[]byte) []byte {
	b := join(body...)
	return join(be32(uint32(len(b)+8)), []byte(kind), b)
}

func mp4LargeBox(kind string, size uint64, body []byte) []byte {
	return join(be32(1), []byte(kind), be64(size), body)
}

func mvhd0(timescale, duration uint32) []byte {
	return mp4Box("mvhd", zeros(4+8), be32(timescale), be32(duration), zeros(80))
}

func mvhd1(timescale uint32, duration uint64) []byte {
	return mp4Box("mvhd", []byte{1, 0, 0, 0}, zeros(16), be32(timescale), be64(duration), zeros(80))
}

func mp4Cases() []testCase {
	ftyp := mp4Box("ftyp", []byte("M4A \x00\x00\x02\x00isom"))
	moov := mp4Box("moov", mvhd0(600, 900), mp4Box("trak", zeros(100)))
	mdat := mp4Box("mdat", zeros(5000))
	toEOF := join(be32(0), []byte("mdat"), moov, zeros(100))
	return []testCase{
		{"moov first", join(ftyp, moov, mdat), 1500 * ms},
		{"moov last", join(ftyp, mp4Box("free"), mdat, moov), 1500 * ms},
		{"no ftyp", join(moov, mdat), 1500 * ms},
		{"mdat first", join(mdat, moov), 1500 * ms},
		{"QuickTime", join(mp4Box("wide"), mdat, moov), 1500 * ms},
		{"64-bit times", join(ftyp, mp4Box("moov", mvhd1(1e9, 5e9)), mdat), 5 * time.Second},
		{"64-bit sizes", join(ftyp, mp4LargeBox("mdat", 16+300, zeros(300)), mp4LargeBox("moov", 16+108, mvhd0(600, 900))), 1500 * ms},
		{"mdat to the end", join(ftyp, moov, toEOF), 1500 * ms},
		{"moov is not looked for inside mdat", join(ftyp, toEOF), 0},
		{"moov to the end", join(ftyp, mdat, be32(0), []byte("moov"), mvhd0(600, 900)), 1500 * ms},
		{"no moov", join(ftyp, mdat), 0},
		{"cut", join(ftyp, mdat, moov[:8+20]), 0},
		{"unknown, 32 bits", join(ftyp, mp4Box("moov", mvhd0(600, math.MaxUint32)), mdat), 0},
		{"unknown, 64 bits", join(ftyp, mp4Box("moov", mvhd1(600, math.MaxUint64)), mdat), 0},
		{"no timescale", join(ftyp, mp4Box("moov", mvhd0(0, 900)), mdat), 0},
		{"billions of years", join(ftyp, mp4Box("moov", mvhd1(1, math.MaxUint64-1)), mdat), 0},
		{"fragments", join(ftyp, mp4Box("moov", mvhd0(600, 0), mp4Box("mvex", mp4Box("mehd", zeros(4), be32(900)))), mdat), 1500 * ms},
		{"fragments, 64 bits", join(ftyp, mp4Box("moov", mvhd0(600, 0), mp4Box("mvex", mp4Box("mehd", be32(1<<24), be64(900)))), mdat), 1500 * ms},
		{"fragments of unknown duration", join(ftyp, mp4Box("moov", mvhd0(600, 0), mp4Box("mvex", mp4Box("trex", zeros(24)))), mdat), 0},
		{"fragments, and -1 for the movie", join(ftyp, mp4Box("moov", mvhd1(600, math.MaxUint64), mp4Box("mvex", mp4Box("mehd", zeros(4), be32(900)))), mdat), 1500 * ms},
		{"a box too short for its header", join(ftyp, be32(7), []byte("fre"), moov), 0},
		{"a large box too short for its header", join(ftyp, mp4LargeBox("free", 15, nil), moov), 0},
		{"a large box of no size", join(ftyp, mp4LargeBox("free", 0, nil), moov), 0},
		{"mvhd too short", join(ftyp, mp4Box("moov", mvhd0(600, 900), mp4Box("mvhd", zeros(15))), mdat), 1500 * ms},
		{"a box of 2^64-1 bytes", join(ftyp, mp4LargeBox("mdat", math.MaxUint64, nil), moov), 0},
	}
}

func TestMP4(t *testing.T) {
	t.Parallel()
	run(t, mp4Cases())
}

// TestMP4Huge has moov behind more media data than fits in 32 bits.
func TestMP4Huge(t *testing.T) {
	t.Parallel()
	const size = 6 << 30
	var m Meter
	_, _ = m.Write(join(mp4Box("ftyp", zeros(8)), mp4LargeBox("mdat", 16+size, nil)))
	piece := zeros(1 << 20)
	for range size / len(piece) {
		_, _ = m.Write(piece)
	}
	_, _ = m.Write(mp4Box("moov", mvhd0(600, 900)))
	d, ok := m.Duration()
	assert.Equal(t, 1500*ms, d)
	assert.True(t, ok)
}
