package audio

import (
	"bytes"
	"encoding/binary"
	"time"
)

const (
	oggMagic      = "OggS"
	oggHeaderSize = 27
	oggIDSize     = 68 // as much of an identification packet as any codec needs

	oggBegin = 0x02 // flag of a logical stream's first page

	opusRate = 48000 // for any rate of the original
)

// oggStream is the codec of a logical stream, and its position.
type oggStream struct {
	rate    uint64 // granules a second, 0 if it is no audio
	preSkip uint64 // granules that a decoder discards at the start

	longest uint64 // granules in the longest packet that can be
	usual   uint64 // granules in a packet as encoders make them

	started bool   // a page with audio has been seen
	start   uint64 // granule position of its beginning
	last    uint64 // latest granule position
}

// oggParser reads Ogg pages. The duration is the granule position of the last page of the first audio stream. Links of
// a chain, each with its streams, add up. Pages are not checked against their checksum.
type oggParser struct {
	stream oggStream
	serial uint32
	page   oggStream     // stream after the page of the last advance is complete
	begun  bool          // all of the link's streams have started: the next start is the next link's
	links  time.Duration // the links before this one
}

func (o *oggParser) parse(window []byte) (advance uint64, need int) {
	o.stream = o.page
	if !bytes.HasPrefix(window, []byte(oggMagic)) {
		return oggResync(window)
	}
	if len(window) < oggHeaderSize {
		return 0, oggHeaderSize
	}
	le := binary.LittleEndian
	version, flags := window[4], window[5]
	granule, serial := int64(le.Uint64(window[6:])), le.Uint32(window[14:])
	header := oggHeaderSize + int(window[26])
	if version != 0 {
		return 1, 0
	}
	if len(window) < header {
		return 0, header
	}
	size, packets := 0, uint64(0)
	for _, lacing := range window[oggHeaderSize:header] {
		size += int(lacing)
		if lacing < 255 {
			packets++ // complete on this page
		}
	}

	if flags&oggBegin == 0 {
		o.begun = true
		if serial == o.serial && o.stream.rate > 0 && granule > 0 && packets > 0 { // -1: no packet ends here
			o.page = o.stream.at(uint64(granule), packets)
		}
		return uint64(header + size), 0
	}
	id := header + min(size, oggIDSize)
	if len(window) < id {
		return 0, id
	}
	if o.begun {
		o.links = addDurations(o.links, o.stream.duration())
		o.stream, o.page, o.begun = oggStream{}, oggStream{}, false
	}
	if o.stream.rate == 0 {
		o.page, o.serial = parseOggID(window[header:id]), serial
	}
	return uint64(header + size), 0
}

// oggResync advances to the next page, or as far as none can begin.
func oggResync(window []byte) (advance uint64, need int) {
	if k := bytes.Index(window, []byte(oggMagic)); k > 0 {
		return uint64(k), 0
	}
	if len(window) < len(oggMagic) {
		return 0, len(oggMagic)
	}
	return uint64(len(window) - len(oggMagic) + 1), 0
}

func (o *oggParser) duration(missing uint64, _ []byte) time.Duration {
	s := o.page
	if missing > 0 { // a page that has been cut is lost
		s = o.stream
	}
	return addDurations(o.links, s.duration())
}

// at returns the stream after a page that ends at granule and completes some packets.
func (s oggStream) at(granule, packets uint64) oggStream {
	if !s.started {
		s.started = true
		// A stream that was recorded from a broadcast counts from the broadcast's start, not from its own.
		if s.longest > 0 && granule > packets*s.longest {
			s.start = granule - packets*s.usual
		}
	}
	s.last = granule
	return s
}

func (s oggStream) duration() time.Duration {
	if skip := s.start + s.preSkip; s.last > skip {
		return durationOf(s.last-skip, s.rate)
	}
	return 0
}

// parseOggID reads the identification packet that begins a logical stream. It returns a stream without a rate where
// that is no audio.
func parseOggID(b []byte) (s oggStream) {
	le := binary.LittleEndian
	switch {
	case bytes.HasPrefix(b, []byte("OpusHead")) && len(b) >= 19:
		s.rate = opusRate
		s.preSkip = uint64(le.Uint16(b[10:]))
		s.longest = opusRate * 120 / 1000
		s.usual = opusRate * 20 / 1000
	case bytes.HasPrefix(b, []byte("\x01vorbis")) && len(b) >= 30:
		s.rate = uint64(le.Uint32(b[12:]))
		s.longest = 1 << (b[28] >> 4) / 2 // half of the long block: blocks overlap
		s.usual = s.longest
	case bytes.HasPrefix(b, []byte("\x7FFLAC")) && len(b) >= 17+flacStreamInfoSize:
		info := parseFLACStreamInfo(b[17:])
		s.rate = info.rate
		s.longest = info.maxBlock
		s.usual = s.longest
	case bytes.HasPrefix(b, []byte("Speex   ")) && len(b) >= 68:
		s.rate = uint64(le.Uint32(b[36:]))
		s.longest = uint64(le.Uint16(b[56:])) * max(1, uint64(le.Uint16(b[64:]))) // frame size, frames in a packet
		s.usual = s.longest
	}
	return s
}
