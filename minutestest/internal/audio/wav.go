package audio

import (
	"encoding/binary"
	"math"
	"time"
)

// Format tags of a WAV file's fmt chunk whose blocks hold one sample of each channel.
const (
	waveFormatPCM        = 0x0001
	waveFormatIEEEFloat  = 0x0003
	waveFormatALaw       = 0x0006
	waveFormatMuLaw      = 0x0007
	waveFormatExtensible = 0xFFFE // the tag proper is in the extension
)

// wavParser reads RIFF/WAVE and its 64-bit forms RF64 and BW64.
//
// Writers that cannot seek leave a placeholder as the size of the data chunk: 0, 0xFFFFFFFF, or a number near 2 or 4 GiB.
// Only the data that is present counts, so the last ones need no special care.
type wavParser struct {
	started  bool   // past the RIFF header
	inData   bool   // the last advance was over the data chunk
	done     bool   // what follows the data chunk does not matter
	data     uint64 // size of the data chunk, toEnd if unknown
	data64   uint64 // size of the data chunk as the ds64 chunk has it
	fact     uint64 // samples per channel as the fact chunk has it
	tag      uint16
	rate     uint64
	byteRate uint64
	block    uint64 // bytes of one block
}

func (w *wavParser) parse(window []byte) (advance uint64, need int) {
	le := binary.LittleEndian
	if !w.started { // RIFF, size, WAVE; the size says nothing that the chunks do not
		if len(window) < 12 {
			return 0, 12
		}
		w.started = true
		return 12, 0
	}
	if w.inData {
		w.inData, w.done = false, true
	}
	if w.done {
		return toEnd, 0
	}

	const header = 8
	if len(window) < header {
		return 0, header
	}
	size := uint64(le.Uint32(window[4:]))
	body := window[header:]
	switch string(window[:4]) {
	case "ds64":
		if size >= 16 {
			if len(body) < 16 {
				return 0, header + 16
			}
			w.data64 = le.Uint64(body[8:])
		}
	case "fmt ":
		want := int(min(size, 26))
		if len(body) < want {
			return 0, header + want
		}
		if want < 16 {
			w.done = true
			return toEnd, 0
		}
		w.tag = le.Uint16(body)
		w.rate = uint64(le.Uint32(body[4:]))
		w.byteRate = uint64(le.Uint32(body[8:]))
		w.block = uint64(le.Uint16(body[12:]))
		if w.block == 0 {
			w.block = uint64(le.Uint16(body[2:])) * ((uint64(le.Uint16(body[14:])) + 7) / 8)
		}
		if w.tag == waveFormatExtensible && want == 26 {
			w.tag = le.Uint16(body[24:]) // the sub-format's GUID begins with it
		}
	case "fact":
		if size >= 4 {
			if len(body) < 4 {
				return 0, header + 4
			}
			w.fact = uint64(le.Uint32(body))
		}
	case "data":
		if size == math.MaxUint32 && w.data64 > 0 {
			size = w.data64
		}
		if size == 0 || size >= math.MaxUint32 && w.data64 == 0 {
			size = toEnd
		}
		w.inData, w.data = true, min(size, toEnd-header)
		return header + w.data, 0
	}
	return header + size + size&1, 0 // chunks begin at even offsets
}

func (w *wavParser) duration(missing uint64, _ []byte) time.Duration {
	present := w.data
	if w.inData {
		present -= missing
	}
	switch w.tag {
	case waveFormatPCM, waveFormatIEEEFloat, waveFormatALaw, waveFormatMuLaw:
		if w.block > 0 {
			return durationOf(present/w.block, w.rate)
		}
	default:
		// A compressed stream's own count is exact, but says nothing about data that has been cut.
		if w.fact > 0 && present > 0 && present == w.data {
			return durationOf(w.fact, w.rate)
		}
	}
	return durationOf(present, w.byteRate)
}
