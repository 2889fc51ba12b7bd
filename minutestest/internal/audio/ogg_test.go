package audio

import (
	"math"
	"testing"
	"time"
)

// oggPage is a page of one packet, which it completes.
func oggPage(flags byte, serial uint32, granule int64, body []byte) []byte {
	lacing := join(repeat([]byte{255}, len(body)/255), []byte{byte(len(body) % 255)})
	return oggRawPage(flags, serial, granule, lacing, body)
}

func oggRawPage(flags byte, serial uint32, granule int64, lacing, body []byte) []byte {
	return join([]byte("OggS\x00"), []byte{flags}, le64(uint64(granule)), le32(serial), le32(0), le32(0), []byte{byte(len(lacing))}, lacing, body)
}

func opusHead(serial uint32) []byte {
	return oggPage(oggBegin, serial, 0, join([]byte("OpusHead\x01\x01"), le16(312), le32(16000), zeros(3)))
}

func oggCases() []testCase {
	audio := func(serial uint32, granule int64) []byte { return oggPage(0, serial, granule, zeros(300)) }
	tags := func(serial uint32) []byte { return oggPage(0, serial, 0, []byte("OpusTags")) }
	opus := join(opusHead(1), tags(1), audio(1, 960), audio(1, 48312))
	theora := oggPage(oggBegin, 7, 0, join([]byte("\x80theora"), zeros(35)))
	vorbis := oggPage(oggBegin, 1, 0, join([]byte("\x01vorbis"), zeros(4), []byte{1}, le32(8000), zeros(12), []byte{0xB8, 1}))
	speex := oggPage(oggBegin, 1, 0, join([]byte("Speex   "), zeros(28), le32(8000), zeros(16), le32(160), zeros(4), le32(2), zeros(12)))
	flac := oggPage(oggBegin, 1, 0, join([]byte("\x7FFLAC\x01\x00\x00\x01"), flacStream(0, 34, 8000, 0)))
	packets50 := repeat([]byte{10}, 50)
	return []testCase{
		{"Opus", opus, time.Second},
		{"Vorbis", join(vorbis, tags(1), audio(1, 500), audio(1, 8000)), time.Second},
		{"Speex", join(speex, tags(1), audio(1, 320), audio(1, 8000)), time.Second},
		{"FLAC", join(flac, tags(1), audio(1, 4096), audio(1, 8000)), time.Second},
		{"nothing but headers", join(opusHead(1), tags(1)), 0},
		{"less than the pre-skip", join(opusHead(1), tags(1), audio(1, 300)), 0},
		{"no audio", join(theora, audio(7, 8000)), 0},
		{"Opus, cut", join(oggPage(oggBegin, 1, 0, []byte("OpusHead")), audio(1, 960), audio(1, 8000)), 0},
		{"Vorbis, cut", join(oggPage(oggBegin, 1, 0, []byte("\x01vorbis")), audio(1, 960), audio(1, 8000)), 0},
		{"Speex, cut", join(oggPage(oggBegin, 1, 0, []byte("Speex   ")), audio(1, 960), audio(1, 8000)), 0},
		{"FLAC, cut", join(oggPage(oggBegin, 1, 0, []byte("\x7FFLAC")), audio(1, 960), audio(1, 8000)), 0},
		{"Speex of an unknown frame size", join(with(speex, oggHeaderSize+1+56, le32(0)), tags(1), audio(1, 320), audio(1, 8000)), time.Second},
		{"a link of less than the pre-skip", join(opus, opusHead(1), tags(1), audio(1, 300)), time.Second},
		{"a page on which no packet ends", join(opus, oggRawPage(0, 1, -1, []byte{255}, zeros(255))), time.Second},
		{"a position on a page where no packet ends", join(opus, oggRawPage(0, 1, 96312, []byte{255}, zeros(255))), time.Second},
		{"a negative position", join(opus, audio(1, math.MinInt64)), time.Second},
		{"the last page is truncated", join(opus, audio(1, 96312)[:200]), time.Second},
		{"the last page is truncated in its header", join(opus, audio(1, 96312)[:20]), time.Second},
		{"rubbish between pages", join(opusHead(1), tags(1), audio(1, 960), []byte("OggOgg rubbish Ogg"), audio(1, 48312)), time.Second},
		{"a page of another version", join(opus, with(audio(1, 96312), 4, []byte{1})), time.Second},
		{"multiplexed with a picture", join(theora, opusHead(1), audio(7, 1<<40), tags(1), audio(1, 960), audio(1, 48312), audio(7, 1<<40)), time.Second},
		{"of two tracks the first", join(opusHead(1), opusHead(2), tags(1), tags(2), audio(1, 960), audio(2, 960), audio(1, 48312), audio(2, 96312)), time.Second},
		{"chained", join(opus, opusHead(2), tags(2), audio(2, 960), audio(2, 96312)), 3 * time.Second},
		{"chained with the same serial number", join(opus, opus), 2 * time.Second},
		{"a chain of three", join(opus, opus, opus), 3 * time.Second},
		{"chained with another codec", join(opus, flac, audio(1, 4000)), 1500 * ms},
		{"from a broadcast", join(opusHead(1), tags(1), oggRawPage(0, 1, 48000*3600, packets50, zeros(500)), audio(1, 48000*3601+312)), 2 * time.Second},
		{"long packets from the start", join(opusHead(1), tags(1), oggRawPage(0, 1, 50*5760, packets50, zeros(500)), audio(1, 480312)), 10 * time.Second},
		{"Vorbis from a broadcast", join(vorbis, tags(1), oggRawPage(0, 1, 1<<40, packets50, zeros(500)), audio(1, 1<<40+8000)), time.Second + 50*1024*time.Second/8000},
		{"billions of years", join(opusHead(1), tags(1), audio(1, 960), audio(1, math.MaxInt64)), 0},
		{"billions of years in a link", join(opusHead(1), tags(1), audio(1, 960), audio(1, math.MaxInt64), opus), 0},
	}
}

func TestOgg(t *testing.T) {
	t.Parallel()
	run(t, oggCases())
}
