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
		{"moov inside mdat is ignored", join(ftyp, toEOF), 0},
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
		{"a large box without a size", join(ftyp, mp4LargeBox("free", 0, nil), moov), 0},
		{"mvhd too short", join(ftyp, mp4Box("moov", mvhd0(600, 900), mp4Box("mvhd", zeros(15))), mdat), 1500 * ms},
		{"a box of 2^64-1 bytes", join(ftyp, mp4LargeBox("mdat", math.MaxUint64, nil), moov), 0},
	}
}

// mp4Full is a box that begins with its version, shifted by 24 bits, and its flags.
func mp4Full(kind string, versionAndFlags uint32, fields ...[]byte) []byte {
	return mp4Box(kind, be32(versionAndFlags), join(fields...))
}

// mp4Trak is a track as encoders write it; other boxes of moov's trak come between its header and its media, those of
// the sample table at the end.
func mp4Trak(id, timescale uint32, media string, edits []byte, table ...[]byte) []byte {
	return mp4Box("trak",
		mp4Full("tkhd", 7, zeros(8), be32(id), zeros(68)),
		edits,
		mp4Box("mdia",
			mp4Full("mdhd", 0, zeros(8), be32(timescale), zeros(8)),
			mp4Full("hdlr", 0, zeros(21)),
			mp4Box("minf", mp4Full(media, 0, zeros(4)), mp4Box("stbl", table...))))
}

func mp4Sound(id, timescale uint32) []byte { return mp4Trak(id, timescale, "smhd", nil) }

// mp4Init is a movie whose duration is not known.
func mp4Init(boxes ...[]byte) []byte {
	return join(mp4Box("ftyp", zeros(8)), mp4Box("moov", mvhd0(600, 0), join(boxes...)))
}

func mp4Trex(id, sample uint32) []byte {
	return mp4Box("mvex", mp4Full("trex", 0, be32(id), be32(1), be32(sample), zeros(8)))
}

// mp4Moof is a fragment of one track, and its media data.
func mp4Moof(boxes ...[]byte) []byte {
	return join(mp4Box("moof", mp4Full("mfhd", 0, zeros(4)), mp4Box("traf", boxes...)), mp4Box("mdat", zeros(50)))
}

func mp4Tfhd(id uint32) []byte { return mp4Full("tfhd", 0x020000, be32(id)) }

func mp4Tfdt(at uint32) []byte { return mp4Full("tfdt", 0, be32(at)) }

func mp4Trun(count uint32) []byte { return mp4Full("trun", 0, be32(count)) }

func mp4Elst(version uint32, entries ...[]byte) []byte {
	return mp4Box("edts", mp4Full("elst", version<<24, be32(uint32(len(entries))), join(entries...)))
}

func mp4FragmentCases() []testCase {
	// A tenth of a second in each sample, unless it says otherwise.
	init := mp4Init(mp4Sound(1, 1000), mp4Trex(1, 100))
	five := mp4Moof(mp4Tfhd(1), mp4Tfdt(0), mp4Trun(5))
	told := join(mp4Box("ftyp", zeros(8)), mp4Box("moov", mvhd0(600, 900), mp4Sound(1, 1000), mp4Trex(1, 100)))
	never := be32(math.MaxUint32)
	edited := func(media string, edits []byte) []byte {
		return join(mp4Init(mp4Trak(1, 1000, media, edits), mp4Trex(1, 100)), five)
	}
	many := func(others int) []byte {
		var traks []byte
		for i := range others {
			traks = append(traks, mp4Sound(uint32(100+i), 1000)...)
		}
		return join(mp4Init(traks, mp4Sound(1, 1000), mp4Trex(1, 100)), five)
	}
	var unknown []byte
	for i := range mp4MaxTracks {
		unknown = append(unknown, mp4Moof(mp4Tfhd(uint32(100+i)), mp4Trun(50))...)
	}
	return []testCase{
		{"sample duration from trex", join(init, five), 500 * ms},
		{"sample duration from tfhd", join(init, mp4Moof(mp4Full("tfhd", 0x08, be32(1), be32(20)), mp4Trun(5))), 100 * ms},
		{"sample duration from tfhd, behind other fields", join(init, mp4Moof(mp4Full("tfhd", 0x3B, be32(1), be64(math.MaxUint64), never, be32(20), never, never), mp4Trun(5))), 100 * ms},
		{"sample duration from tfhd, for one fragment only", join(init, mp4Moof(mp4Full("tfhd", 0x08, be32(1), be32(20)), mp4Trun(5)), mp4Moof(mp4Tfhd(1), mp4Trun(5))), 600 * ms},
		{"tfhd with other fields than a duration", join(init, mp4Moof(mp4Full("tfhd", 0x32, be32(1), be32(7), never, never), mp4Trun(5))), 500 * ms},
		{"sample duration missing", join(mp4Init(mp4Sound(1, 1000)), five), 0},
		{"per-sample durations", join(init, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x100, be32(3), be32(10), be32(20), be32(5)))), 35 * ms},
		{"per-sample durations among other fields", join(init, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0xF05, be32(2), never, never, be32(10), never, never, never, be32(20), never, never, never))), 30 * ms},
		{"per-sample fields without durations", join(init, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x201, be32(2), never, never, never))), 200 * ms},
		{"a long table", join(init, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x300, be32(5000), repeat(join(be32(2), never), 5000)))), 10 * time.Second},
		{"several runs", join(init, mp4Moof(mp4Tfhd(1), mp4Tfdt(1000), mp4Full("trun", 0x100, be32(1), be32(10)), mp4Trun(2))), 1210 * ms},
		{"a run in a large box", join(init, mp4Moof(mp4Tfhd(1), mp4LargeBox("trun", 16+12, join(be32(0x100), be32(1), be32(10)))), five), 500 * ms},
		{"several fragments", join(init, five, mp4Moof(mp4Tfhd(1), mp4Tfdt(500), mp4Trun(7))), 1200 * ms},
		{"a gap", join(init, five, mp4Moof(mp4Tfhd(1), mp4Tfdt(2000), mp4Trun(1))), 2100 * ms},
		{"fragments out of order", join(init, mp4Moof(mp4Tfhd(1), mp4Tfdt(500), mp4Trun(7)), five), 1200 * ms},
		{"per-sample durations out of order", join(init, mp4Moof(mp4Tfhd(1), mp4Tfdt(500), mp4Trun(7)), mp4Moof(mp4Tfhd(1), mp4Tfdt(0), mp4Full("trun", 0x100, be32(1), be32(10)))), 1200 * ms},
		{"no tfdt", join(init, mp4Moof(mp4Tfhd(1), mp4Trun(5)), mp4Moof(mp4Tfhd(1), mp4Trun(7))), 1200 * ms},
		{"tfdt of 64 bits", join(init, mp4Moof(mp4Tfhd(1), mp4Full("tfdt", 1<<24, be64(1<<32)), mp4Trun(5))), 1<<32*ms + 500*ms},
		{"tfdt of all ones", join(init, mp4Moof(mp4Tfhd(1), mp4Tfdt(math.MaxUint32), mp4Trun(5))), (math.MaxUint32 + 500) * ms},
		{"tfdt without samples", join(init, five, mp4Moof(mp4Tfhd(1), mp4Tfdt(2000))), 500 * ms},
		{"only the first samples in moov, no tfdt", join(mp4Init(mp4Trak(1, 1000, "smhd", nil, mp4Full("stts", 0, be32(2), be32(3), be32(100), be32(1), be32(50))), mp4Trex(1, 100)), mp4Moof(mp4Tfhd(1), mp4Trun(5))), 850 * ms},
		{"samples in moov are mvhd's, not the table's", join(mp4Box("ftyp", zeros(8)), mp4Box("moov", mvhd0(600, 900), mp4Trak(1, 1000, "smhd", nil, mp4Full("stts", 0, be32(1), be32(17), be32(100))))), 1500 * ms},
		{"trex before the track", join(mp4Init(mp4Trex(1, 100), mp4Sound(1, 1000)), five), 500 * ms},
		{"64-bit times of a track", join(mp4Init(mp4Box("trak", mp4Full("tkhd", 1<<24, zeros(16), be32(1), zeros(72)), mp4Box("mdia", mp4Full("mdhd", 1<<24, zeros(16), be32(1000), zeros(12)))), mp4Trex(1, 100)), five), 500 * ms},

		{"two tracks", join(mp4Init(mp4Trak(1, 25, "vmhd", nil), mp4Sound(2, 8000), mp4Trex(1, 1), mp4Trex(2, 1024)),
			mp4Moof(mp4Tfhd(1), mp4Tfdt(0), mp4Trun(50)), mp4Moof(mp4Tfhd(2), mp4Tfdt(0), mp4Trun(10)),
			mp4Moof(mp4Tfhd(2), mp4Tfdt(10240), mp4Trun(1)), mp4Moof(mp4Tfhd(1), mp4Tfdt(50), mp4Trun(1))), 2040 * ms},
		{"two tracks in one fragment", join(mp4Init(mp4Trak(1, 25, "vmhd", nil), mp4Sound(2, 8000), mp4Trex(1, 1), mp4Trex(2, 1000)),
			mp4Box("moof", mp4Box("traf", mp4Tfhd(1), mp4Trun(50)), mp4Box("traf", mp4Tfhd(2), mp4Trun(20)))), 2500 * ms},
		{"as many tracks as are measured", many(mp4MaxTracks - 1), 500 * ms},
		{"too many tracks", many(mp4MaxTracks), 0},

		{"mvhd is longer", join(told, five), 1500 * ms},
		{"fragments are longer than mvhd", join(told, mp4Moof(mp4Tfhd(1), mp4Trun(20))), 2 * time.Second},
		{"mehd is longer", join(mp4Init(mp4Box("mvex", mp4Full("mehd", 0, be32(900))), mp4Sound(1, 1000), mp4Trex(1, 100)), five), 1500 * ms},
		{"mehd is longer than mvhd", join(mp4Box("ftyp", zeros(8)), mp4Box("moov", mvhd0(600, 300), mp4Box("mvex", mp4Full("mehd", 0, be32(900))))), 1500 * ms},

		{"an edit list", edited("smhd", mp4Elst(0, join(be32(0), be32(50), be32(1<<16)))), 450 * ms},
		{"an edit list of 64 bits", edited("smhd", mp4Elst(1, join(be64(0), be64(50), be32(1<<16)))), 450 * ms},
		{"an edit list that leaves out weeks", join(mp4Init(mp4Trak(1, 1000, "smhd", mp4Elst(1, join(be64(0), be64(1<<31), be32(1<<16)))), mp4Trex(1, 100)), mp4Moof(mp4Tfhd(1), mp4Tfdt(1<<31), mp4Trun(5))), 500 * ms},
		{"an edit list that begins with nothing", edited("smhd", mp4Elst(0, join(be32(9), never, be32(1<<16)), join(be32(0), be32(50), be32(1<<16)), join(be32(0), be32(70), be32(1<<16)))), 450 * ms},
		{"an edit list that begins with nothing, 64 bits", edited("smhd", mp4Elst(1, join(be64(9), be64(math.MaxUint64), be32(1<<16)), join(be64(0), be64(50), be32(1<<16)))), 450 * ms},
		{"an edit list with nothing in it", edited("smhd", mp4Elst(0, join(be32(9), never, be32(1<<16)))), 500 * ms},
		{"an edit list at 0", edited("smhd", mp4Elst(0, join(be32(0), be32(0), be32(1<<16)), join(be32(0), be32(70), be32(1<<16)))), 500 * ms},
		{"an edit list beyond the end", edited("smhd", mp4Elst(0, join(be32(0), be32(501), be32(1<<16)))), 0},
		{"a picture's edit list", edited("vmhd", mp4Elst(0, join(be32(0), be32(50), be32(1<<16)))), 500 * ms},

		{"moov missing", join(mp4Box("styp", zeros(8)), five, five), 0},
		{"moov after the fragments", join(mp4Box("styp", zeros(8)), five, told), 1500 * ms},
		{"a fragment of an unknown track", join(told, mp4Moof(mp4Tfhd(2), mp4Tfdt(0), mp4Trun(50)), mp4Moof(mp4Tfhd(2), mp4Full("trun", 0x100, be32(1), be32(9000)))), 1500 * ms},
		{"a fragment of an unknown track behind one of a known track", join(init, five, mp4Moof(mp4Tfhd(2), mp4Trun(50))), 500 * ms},
		{"fragments of many unknown tracks", join(mp4Box("styp", zeros(8)), unknown, init, five), 500 * ms},
		{"a fragment without tfhd", join(init, five, mp4Moof(mp4Tfdt(9000), mp4Trun(50))), 500 * ms},
		{"a fragment whose tfhd is too short", join(init, five, mp4Moof(mp4Full("tfhd", 0, zeros(3)), mp4Trun(50))), 500 * ms},
		{"tfhd too short for its duration", join(init, mp4Moof(mp4Full("tfhd", 0x0A, be32(1), be32(7), zeros(3)), mp4Trun(5))), 500 * ms},
		{"tfdt too short", join(init, five, mp4Moof(mp4Tfhd(1), mp4Full("tfdt", 1<<24, be32(9000)), mp4Trun(5))), 1 * time.Second},
		{"trun too short for its fields", join(init, five, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x005, be32(9), be32(0)))), 500 * ms},
		{"trun too short for its count", join(init, five, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0, zeros(3)))), 500 * ms},
		{"truncated trun", join(init, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x300, be32(9), repeat(be32(10), 18)))[:8+16+8+16+16+8*5+7]), 50 * ms},
		{"trun longer than its box", join(init, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x300, be32(9), repeat(be32(10), 2*2+1))), mp4Moof(mp4Tfhd(1), mp4Tfdt(100), mp4Trun(1))), 200 * ms},
		{"trun longer than its box, without durations", join(init, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x200, be32(9), repeat(be32(10), 2)))), 200 * ms},
		{"trun shorter than its box", join(init, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x100, be32(2), repeat(be32(10), 9))), five), 500 * ms},
		{"trun of no sample", join(init, five, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x100, be32(0)), mp4Trun(1))), 600 * ms},
		{"trun of no sample, but with a table", join(init, five, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x100, be32(0), be32(9000)), mp4Trun(1))), 600 * ms},
		{"trun of 2^32-1 samples", join(told, mp4Moof(mp4Tfhd(1), mp4Trun(math.MaxUint32))), 1500 * ms},
		{"trun of 2^32-1 samples, each of 2^32-1", join(told, repeat(mp4Moof(mp4Full("tfhd", 0x08, be32(1), never), mp4Trun(math.MaxUint32)), 3)), 1500 * ms},
		{"trun of 2^32-1 samples, with durations", join(init, mp4Moof(mp4Tfhd(1), mp4Full("trun", 0x100, never, be32(10), be32(20)), mp4Trun(5))), 530 * ms},
		{"tfdt beyond belief", join(init, mp4Moof(mp4Tfhd(1), mp4Full("tfdt", 1<<24, be64(math.MaxUint64)), mp4Trun(5))), 0},
		{"implausible tfdt, and mvhd", join(told, mp4Moof(mp4Tfhd(1), mp4Full("tfdt", 1<<24, be64(math.MaxUint64)), mp4Trun(5))), 1500 * ms},
		{"samples beyond belief", join(init, mp4Moof(mp4Tfhd(1), mp4Full("tfdt", 1<<24, be64(math.MaxUint64)), mp4Full("trun", 0x100, be32(1), be32(9)))), 0},
		{"one track beyond belief", join(mp4Init(mp4Sound(1, 1000), mp4Sound(2, 1000), mp4Trex(1, 100)), five, mp4Moof(mp4Tfhd(2), mp4Full("tfdt", 1<<24, be64(1<<62)), mp4Full("trun", 0x100, be32(1), be32(9)))), 500 * ms},
		{"a movie beyond belief, with fragments", join(mp4Box("ftyp", zeros(8)), mp4Box("moov", mvhd1(1, math.MaxUint64-1), mp4Sound(1, 1000), mp4Trex(1, 100)), five), 500 * ms},
		{"a track of no timescale", join(told, mp4Box("moov", mp4Sound(2, 0)), mp4Moof(mp4Full("tfhd", 0x08, be32(2), be32(9000)), mp4Trun(5))), 1500 * ms},
		{"tkhd too short", join(told, mp4Box("trak", mp4Full("tkhd", 0, zeros(11)), mp4Full("mdhd", 0, zeros(8), be32(1), zeros(8))), five), 1500 * ms},
		{"mdhd too short", join(mp4Init(mp4Sound(1, 1000), mp4Trex(1, 100), mp4Box("trak", mp4Full("tkhd", 0, zeros(8), be32(1)), mp4Full("mdhd", 0, zeros(11)))), five), 500 * ms},
		{"trex too short", join(init, mp4Full("trex", 0, be32(1), be32(1), zeros(3)), five), 500 * ms},
		{"elst too short", edited("smhd", mp4Box("edts", mp4Full("elst", 0, zeros(3)))), 500 * ms},
		{"an empty fragment box", join(told, mp4Moof(mp4Box("tfhd"), mp4Box("tfdt"), mp4Box("trun")), mp4Box("trun")), 1500 * ms},
		{"a box too short for its header in a fragment", join(told, five, mp4Moof(mp4Tfhd(1), be32(7), []byte("trun")), five), 1500 * ms},
		{"the last fragment runs to the end", join(init, be32(0), []byte("moof"), be32(0), []byte("traf"), mp4Tfhd(1), be32(0), []byte("trun"), be32(0x100), be32(7), repeat(be32(10), 5), zeros(3)), 50 * ms},
	}
}

func TestMP4_AddsFragments(t *testing.T) {
	t.Parallel()
	run(t, mp4FragmentCases())
}

func TestMP4(t *testing.T) {
	t.Parallel()
	run(t, mp4Cases())
}

// TestMP4_HugeFile has moov behind more media data than fits in 32 bits.
func TestMP4_HugeFile(t *testing.T) {
	t.Parallel()
	const size uint64 = 6 << 30
	var m Meter
	_, _ = m.Write(join(mp4Box("ftyp", zeros(8)), mp4LargeBox("mdat", 16+size, nil)))
	piece := zeros(1 << 20)
	for range size / uint64(len(piece)) {
		_, _ = m.Write(piece)
	}
	_, _ = m.Write(mp4Box("moov", mvhd0(600, 900)))
	d, ok := m.Duration()
	assert.Equal(t, 1500*ms, d)
	assert.True(t, ok)
}
