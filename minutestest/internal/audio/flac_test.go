package audio

import (
	"testing"
	"time"
)

func flacStream(kind byte, size uint32, rate, samples uint64) []byte {
	return join([]byte("fLaC"), be32(uint32(kind)<<24|size), []byte{16, 0, 16, 0}, zeros(6), be64(rate<<44|15<<36|samples), zeros(16))
}

func flacCases() []testCase {
	plain := flacStream(0x80, 34, 48000, 48000*3/2)
	return []testCase{
		{"plain", join(plain, zeros(1000)), 1500 * ms},
		{"more than 32 bits of samples", flacStream(0, 34, 1<<19, 1<<35), 65536 * time.Second},
		{"unknown number of samples", flacStream(0, 34, 48000, 0), 0},
		{"no rate", flacStream(0, 34, 0, 48000), 0},
		{"a hundred years", flacStream(0, 34, 20, 1<<36-1), 0},
		{"cut", plain[:41], 0},
		{"another block first", flacStream(4, 34, 48000, 48000), 0},
		{"a block too short", flacStream(0, 33, 48000, 48000), 0},
		{"behind a tag", join(id3v2(300, false), plain), 1500 * ms},
		{"behind a tag with a footer", join(id3v2(300, true), plain), 1500 * ms},
		{"behind two tags", join(id3v2(300, true), id3v2(0, false), plain), 1500 * ms},
	}
}

func TestFLAC(t *testing.T) {
	t.Parallel()
	run(t, flacCases())
}
