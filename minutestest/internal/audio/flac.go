package audio

import (
	"encoding/binary"
	"time"
)

const flacStreamInfoSize = 34

// flacStreamInfo is what the STREAMINFO block of a FLAC stream says about time.
type flacStreamInfo struct {
	maxBlock uint64 // samples in the longest block
	rate     uint64
	samples  uint64 // 0 if the encoder did not know
}

func parseFLACStreamInfo(b []byte) flacStreamInfo {
	bits := binary.BigEndian.Uint64(b[10:]) // rate:20 channels:3 depth:5 samples:36
	return flacStreamInfo{
		maxBlock: uint64(binary.BigEndian.Uint16(b[2:])),
		rate:     bits >> 44,
		samples:  bits & (1<<36 - 1),
	}
}

// flacParser reads a native FLAC stream, whose first metadata block is STREAMINFO.
type flacParser struct {
	info flacStreamInfo
	done bool
}

func (f *flacParser) parse(window []byte) (advance uint64, need int) {
	const header = 4 + 4 // fLaC and the metadata block's header
	if !f.done {
		if len(window) < header+flacStreamInfoSize {
			return 0, header + flacStreamInfoSize
		}
		f.done = true
		kind, size := window[4]&0x7F, binary.BigEndian.Uint32(window[4:])&0xFFFFFF
		if kind == 0 && size >= flacStreamInfoSize {
			f.info = parseFLACStreamInfo(window[header:])
		}
	}
	return toEnd, 0
}

func (f *flacParser) duration(uint64, []byte) time.Duration {
	return durationOf(f.info.samples, f.info.rate)
}
