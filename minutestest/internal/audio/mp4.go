package audio

import (
	"encoding/binary"
	"time"
)

// mp4Parser reads ISO base media files (MP4, M4A, 3GP) and QuickTime movies. The duration is in the movie header box
// mvhd, in moov, before or after the media data. A fragmented movie may have it in mehd, in moov's mvex, but writers of
// fragments rarely know it beforehand, so the parser also adds the fragments up. mvhd may cover only the part before
// the fragments, so the longest of the three counts.
//
// Boxes are read as one flat sequence: stepping into a box is stepping over its header alone.
type mp4Parser struct {
	timescale uint64
	movie     uint64 // duration of the movie box, in units of the timescale; 0 is unknown
	extended  uint64 // duration with all fragments as mehd has it, likewise
	fragments mp4Fragments
	done      bool
}

func (m *mp4Parser) parse(window []byte) (advance uint64, need int) {
	be := binary.BigEndian
	if m.done {
		return toEnd, 0
	}
	if m.fragments.rows > 0 {
		return m.fragments.parseRows(window)
	}
	header := 8
	if len(window) < header {
		return 0, header
	}
	size := uint64(be.Uint32(window))
	kind := string(window[4:8])
	switch size {
	case 0: // the box extends to the end of the file
		size = toEnd
	case 1:
		header = 16
		if len(window) < header {
			return 0, header
		}
		size = be.Uint64(window[8:])
	}
	if size < uint64(header) {
		m.done = true
		return toEnd, 0
	}

	switch kind {
	case "moov", "mvex", "trak", "edts", "mdia", "minf", "stbl", "moof", "traf":
		m.fragments.enter(kind)
		return uint64(header), 0
	case "tkhd", "mdhd", "smhd", "elst", "stts", "trex", "tfhd", "tfdt", "trun":
		advance, need = m.fragments.parse(kind, window[header:], size-uint64(header))
		if need > 0 {
			return 0, header + need
		}
		return uint64(header) + advance, 0
	case "mvhd", "mehd":
		// One byte of version, three of flags. Version 1 has times of 64 bits, version 0 of 32.
		full := header + 4
		if len(window) < full {
			return 0, full
		}
		word := 4
		if window[header] == 1 {
			word = 8
		}
		before := 0 // what precedes the duration
		if kind == "mvhd" {
			before = 2*word + 4 // created, modified, timescale
		}
		end := full + before + word
		if size < uint64(end) {
			break
		}
		if len(window) < end {
			return 0, end
		}
		d := mp4Time(window[end-word : end])
		if kind == "mehd" {
			m.extended = d
			break
		}
		m.timescale = uint64(be.Uint32(window[full+2*word:]))
		m.movie = d
	}
	return size, 0
}

func (m *mp4Parser) duration(uint64, []byte) time.Duration {
	d := longer(0, durationOf(m.movie, m.timescale))
	d = longer(d, durationOf(m.extended, m.timescale))
	return longer(d, m.fragments.duration())
}
