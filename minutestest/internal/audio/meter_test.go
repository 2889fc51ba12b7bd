package audio

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// measure writes data in pieces of several sizes and returns the duration that all of them agree on.
func measure(t testing.TB, data []byte) (time.Duration, bool) {
	t.Helper()
	d, ok := measureIn(t, data, len(data))
	for _, size := range []int{1, 7, 13, 4096} {
		d2, ok2 := measureIn(t, data, size)
		require.Equal(t, d, d2, "pieces of %d bytes", size)
		require.Equal(t, ok, ok2, "pieces of %d bytes", size)
	}
	return d, ok
}

// measureIn writes data in pieces of one size. On the way it asks for the duration, which must not change the outcome.
func measureIn(t testing.TB, data []byte, size int) (time.Duration, bool) {
	t.Helper()
	var m Meter
	var lent []byte
	for piece := range slices.Chunk(data, max(size, 1)) {
		lent = append(lent[:0], piece...) // a Writer must not refer to its argument afterwards, nor write to it
		n, err := m.Write(lent)
		if err != nil || n != len(piece) || !bytes.Equal(lent, piece) {
			require.Fail(t, "Write", "%d bytes of %d, %v", n, len(piece), err)
		}
		m.Duration()
	}
	require.LessOrEqual(t, len(m.buf), 9000, "memory")
	d, ok := m.Duration()
	if ok {
		require.Positive(t, d)
		require.LessOrEqual(t, d, maxDuration)
	} else {
		require.Zero(t, d)
	}
	return d, ok
}

// testCase is a recording built by hand; want 0 is unknown.
type testCase struct {
	name string
	data []byte
	want time.Duration
}

func run(t *testing.T, cases []testCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, ok := measure(t, c.data)
			assert.Equal(t, c.want, d)
			assert.Equal(t, c.want > 0, ok)
		})
	}
}

func join(parts ...[]byte) []byte   { return bytes.Join(parts, nil) }
func le16(v uint16) []byte          { return binary.LittleEndian.AppendUint16(nil, v) }
func le32(v uint32) []byte          { return binary.LittleEndian.AppendUint32(nil, v) }
func le64(v uint64) []byte          { return binary.LittleEndian.AppendUint64(nil, v) }
func be32(v uint32) []byte          { return binary.BigEndian.AppendUint32(nil, v) }
func be64(v uint64) []byte          { return binary.BigEndian.AppendUint64(nil, v) }
func zeros(n int) []byte            { return make([]byte, n) }
func repeat(b []byte, n int) []byte { return bytes.Repeat(b, n) }
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func TestMeter(t *testing.T) {
	t.Parallel()
	oneSecond := join(riffHeader("RIFF"), wavFmt(1, 8000, 1, 8), riffChunk("data", zeros(8000)))
	run(t, []testCase{
		{name: "nothing", data: nil},
		{name: "too short to decide", data: []byte("RIFF")},
		{name: "text", data: repeat([]byte("hello, this is no recording\n"), 100)},
		{name: "noise", data: noise(1 << 16)},
		{name: "zeros", data: zeros(1 << 16)},
		{name: "ones", data: repeat([]byte{0xFF}, 1<<16)},
		{name: "a RIFF file of another form", data: join([]byte("RIFF\x00\x00\x00\x00AVI "), repeat(mp3Frame, 100))},
		{name: "a RIFF file of another form with chunks like ours", data: with(oneSecond, 8, []byte("XXXX"))},
		{name: "Matroska", data: join([]byte{0x1A, 0x45, 0xDF, 0xA3}, zeros(12), repeat(mp3Frame, 100))},
		{name: "an ID3v2 tag alone", data: id3v2(100, false)},
		{name: "WAV behind an ID3v2 tag", data: join(id3v2(100, false), oneSecond), want: time.Second},
	})
}

func TestMeter_AllowsMoreWritesAfterDuration(t *testing.T) {
	t.Parallel()
	var m Meter
	_, _ = m.Write(join(riffHeader("RIFF"), wavFmt(1, 8000, 1, 8), riffChunk("data", zeros(8000))[:8+4000]))
	d, ok := m.Duration()
	assert.Equal(t, 500*ms, d)
	assert.True(t, ok)
	_, _ = m.Write(zeros(4000))
	d, ok = m.Duration()
	assert.Equal(t, time.Second, d)
	assert.True(t, ok)
}

func TestDurationOf(t *testing.T) {
	t.Parallel()
	const years = 365 * 24 * 3600
	for _, c := range []struct {
		units, perSecond uint64
		want             time.Duration
	}{
		{0, 1, 0},
		{1, 0, 0},
		{44100, 44100, time.Second},
		{1, 3, 333333333},
		{10 * years, 1, maxDuration},
		{10*years + 1, 1, maxDuration + 1},
		{toEnd, 1, maxDuration + 1},
		{toEnd, toEnd, time.Second},
		{toEnd, 1 << 40, (1<<24-1)*time.Second + 999999999},
	} {
		assert.Equal(t, c.want, durationOf(c.units, c.perSecond), "%d / %d", c.units, c.perSecond)
	}
	assert.Equal(t, maxDuration+1, addDurations(maxDuration+1, maxDuration+1))
}

// TestWrite_DoesNotAllocate goes on for long enough that a buffer which is not used again would show.
func TestWrite_DoesNotAllocate(t *testing.T) {
	rows := mp4Full("trun", 0x300, be32(50), zeros(8*50))
	for name, data := range map[string][]byte{
		"frames":        repeat(mp3Frame, 500),
		"false headers": join(mp3Frame, repeat(mp3Frame[:5], 5000)),
		"fragments":     join(mp4Init(mp4Sound(1, 1000)), repeat(mp4Moof(mp4Tfhd(1), mp4Tfdt(0), rows), 50)),
	} {
		var m Meter
		write := func() {
			for p := range slices.Chunk(data, 100) {
				_, _ = m.Write(p)
			}
		}
		write()
		assert.Zero(t, testing.AllocsPerRun(3, write), name)
	}
}

// FuzzMeter demands of any input: no panic, a bounded duration, bounded memory, and the same result however it is cut.
func FuzzMeter(f *testing.F) {
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join("testdata", file.name))
		require.NoError(f, err)
		f.Add(data[:min(len(data), 3000)], uint16(5), uint64(1))
	}
	for _, c := range slices.Concat(wavCases(), mpegCases(), flacCases(), oggCases(), mp4Cases(), mp4FragmentCases()) {
		f.Add(c.data[:min(len(c.data), 4000)], uint16(3), uint64(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint16, seed uint64) {
		d, ok := measureIn(t, data, len(data))
		for _, n := range []int{1, int(size)} {
			d2, ok2 := measureIn(t, data, n)
			require.Equal(t, d, d2)
			require.Equal(t, ok, ok2)
		}
		var m Meter
		random := rand.New(rand.NewPCG(seed, 0))
		for rest := data; len(rest) > 0; {
			n := random.IntN(min(len(rest), 100)) + 1
			_, _ = m.Write(rest[:n])
			rest = rest[n:]
		}
		d2, ok2 := m.Duration()
		require.Equal(t, d, d2)
		require.Equal(t, ok, ok2)
	})
}

func BenchmarkMeter(b *testing.B) {
	const size = 64 << 20
	video := join(mp4Box("ftyp", []byte("isom\x00\x00\x02\x00")), mp4LargeBox("mdat", size, nil))
	recordings := []struct {
		name string
		data []byte
		end  []byte
	}{
		{name: "WAV", data: join(riffHeader("RIFF"), wavFmt(1, 48000, 2, 16), []byte("data"), le32(size))},
		{name: "MP4", data: video, end: mp4Box("moov", mvhd0(1000, 1000))},
		{name: "MP3", data: repeat(mp3Frame, size/len(mp3Frame))},
		{name: "Ogg", data: join(opusHead(1), repeat(oggPage(0, 1, 48000, zeros(4000)), size/4000))},
		{name: "noise", data: noise(size)},
		{name: "ones", data: repeat([]byte{0xFF}, size)},
		{name: "false-headers", data: repeat(mp3Frame[:5], size/5)},
	}
	for _, r := range recordings {
		data := join(r.data, zeros(max(0, size-len(r.data))), r.end)
		for _, piece := range []int{512, 32 << 10} {
			b.Run(r.name+"/"+map[int]string{512: "512B", 32 << 10: "32KiB"}[piece], func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					var m Meter
					for p := range slices.Chunk(data, piece) {
						_, _ = m.Write(p)
					}
					m.Duration()
				}
			})
		}
	}
}

var _ io.Writer = (*Meter)(nil)
