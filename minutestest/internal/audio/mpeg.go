package audio

import (
	"bytes"
	"encoding/binary"
	"time"
)

// mpegHeader is what an MPEG audio frame's four-byte header says about time.
type mpegHeader struct {
	stream mpegStream
	size   int // of the frame, header included
	lsf    bool
	mono   bool
}

// mpegStream is what stays the same from frame to frame. Bit rates and channel modes may change.
type mpegStream struct {
	version, layer byte // as coded
	rate           int  // samples a second
	perFrame       int  // samples in a frame
}

// Bit rates in kbit/s by coded index, free format (0) and the forbidden 15 left out.
var mpegBitRates = [5][14]int{
	{32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448}, // MPEG-1 layer I
	{32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},    // MPEG-1 layer II
	{32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},     // MPEG-1 layer III
	{32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},    // MPEG-2 and 2.5 layer I
	{8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},         // MPEG-2 and 2.5 layers II and III
}

const mpegHeaderSize = 4

// isMPEGHeader reports whether b begins with the sync word and no forbidden value follows.
func isMPEGHeader(b []byte) bool {
	version, layer, bitRate, rate := b[1]>>3&3, b[1]>>1&3, b[2]>>4, b[2]>>2&3
	return b[0] == 0xFF && b[1] >= 0xE0 && version != 1 && layer != 0 && bitRate != 0 && bitRate != 15 && rate != 3
}

// parseMPEGHeader reads a frame header. Free format, whose frames do not show their size, is not supported.
func parseMPEGHeader(b []byte) (h mpegHeader, ok bool) {
	if !isMPEGHeader(b) {
		return h, false
	}
	version, layer := b[1]>>3&3, b[1]>>1&3 // version: 0 is 2.5, 2 is 2, 3 is 1; layer: 3 is I, 2 is II, 1 is III
	bitRate, rate := int(b[2]>>4), int(b[2]>>2&3)
	h.lsf = version != 3 // MPEG-2's lower sampling frequencies
	h.mono = b[3]>>6 == 3
	padding := int(b[2] >> 1 & 1)

	s := mpegStream{version: version, layer: layer, rate: [3]int{44100, 48000, 32000}[rate]}
	switch version {
	case 2:
		s.rate /= 2
	case 0:
		s.rate /= 4
	}
	table := 3 - int(layer)
	if h.lsf {
		table = min(table+3, 4)
	}
	bits := mpegBitRates[table][bitRate-1] * 1000
	switch {
	case layer == 3:
		s.perFrame = 384
		h.size = (12*bits/s.rate + padding) * 4
	case layer == 1 && h.lsf:
		s.perFrame = 576
		h.size = 72*bits/s.rate + padding
	default:
		s.perFrame = 1152
		h.size = 144*bits/s.rate + padding
	}
	h.stream = s
	return h, true
}

// mpegParser walks the frames of MPEG audio. It counts every frame, at constant and at variable bit rate. It does not
// trust the count in a Xing, Info or VBRI header, since tools cut and join files without updating it. If the count
// agrees, the encoder's delay and padding are subtracted, so that a recording is as long as before it was encoded.
//
// Out of step, a header counts only if another one follows at the position that it gives: in noise, one in a few
// thousand positions looks like a header, but hardly ever two in a row.
type mpegParser struct {
	stream  mpegStream
	inStep  bool // a header of stream is expected here
	rubble  bool // the last advance was over bytes that are neither frame nor tag, so only a header ends them
	counted bool // the last advance was over a frame that counts

	frames   uint64        // of stream
	declared uint64        // frames of stream, as its Xing header has it
	trim     uint64        // samples of delay and padding in them
	before   time.Duration // of the streams before this one

	framed  uint64 // bytes in frames
	rubbish uint64 // bytes in neither frames nor tags
}

func (m *mpegParser) parse(window []byte) (advance uint64, need int) {
	m.counted = false
	if m.rubble && window[0] != 0xFF {
		return m.skipRubbish(window), 0
	}
	if len(window) < mpegHeaderSize {
		return 0, mpegHeaderSize
	}
	if size, need := mpegTagSize(window); need > 0 {
		return 0, need
	} else if size > 0 {
		m.inStep = false // files are joined with their tags in them: another stream may begin here
		return size, 0
	}
	h, ok := parseMPEGHeader(window)
	if !ok {
		m.inStep = false
		return m.skipRubbish(window), 0
	}
	if m.inStep && h.stream == m.stream {
		return m.count(h), 0
	}

	m.inStep = false
	if need := h.size + mpegHeaderSize; len(window) < need {
		return 0, need
	}
	if next, ok := parseMPEGHeader(window[h.size:]); !ok || next.stream != h.stream {
		return m.skipRubbish(window), 0
	}
	m.inStep, m.rubble = true, false
	info, isInfo := parseMPEGInfo(h, window[:h.size])
	if isInfo || h.stream != m.stream {
		m.before = addDurations(m.before, m.streamDuration(m.frames))
		m.stream, m.frames, m.declared, m.trim = h.stream, 0, info.frames, info.trim
	}
	if isInfo { // a frame of silence that players leave out
		m.framed += uint64(h.size)
		return uint64(h.size), 0
	}
	return m.count(h), 0
}

func (m *mpegParser) count(h mpegHeader) (advance uint64) {
	m.counted = true
	m.frames++
	m.framed += uint64(h.size)
	return uint64(h.size)
}

// skipRubbish advances by one byte at least, to the next position that looks like a header or is too close to the
// window's end to decide.
func (m *mpegParser) skipRubbish(window []byte) (advance uint64) {
	i := 1
	for i < len(window) {
		if window[i] != 0xFF {
			k := bytes.IndexByte(window[i:], 0xFF)
			if k < 0 {
				i = len(window)
				break
			}
			i += k
		}
		if len(window)-i < mpegHeaderSize || isMPEGHeader(window[i:]) {
			break
		}
		i++
	}
	m.rubble = true
	m.rubbish += uint64(i)
	return uint64(i)
}

func (m *mpegParser) streamDuration(frames uint64) time.Duration {
	samples := frames * uint64(m.stream.perFrame)
	if frames == m.declared && m.trim < samples {
		samples -= m.trim
	}
	return durationOf(samples, uint64(m.stream.rate))
}

func (m *mpegParser) duration(missing uint64, rest []byte) time.Duration {
	if m.framed < m.rubbish { // not MPEG audio, but something that resembles it in places
		return 0
	}
	frames := m.frames
	if m.counted && missing > 0 {
		frames--
	}
	d := addDurations(m.before, m.streamDuration(frames))
	if len(rest) >= mpegHeaderSize && !m.rubble { // a frame that nothing follows
		if h, ok := parseMPEGHeader(rest); ok && h.size <= len(rest) {
			d = addDurations(d, durationOf(uint64(h.stream.perFrame), uint64(h.stream.rate)))
		}
	}
	return d
}

// mpegTagSize returns the size of the tag that the window begins with, 0 if there is none, or else the number of bytes
// that it needs to decide.
func mpegTagSize(window []byte) (size uint64, need int) {
	const apeHeaderSize = 32
	switch {
	case string(window[:3]) == "ID3":
		if len(window) < id3v2HeaderSize {
			return 0, id3v2HeaderSize
		}
		return id3v2Size(window), 0
	case string(window[:3]) == "TAG": // ID3v1
		return 128, 0
	case string(window[:4]) == "APET":
		if len(window) < apeHeaderSize {
			return 0, apeHeaderSize
		}
		if string(window[:8]) != "APETAGEX" {
			return 0, 0
		}
		if flags := binary.LittleEndian.Uint32(window[20:]); flags&(1<<29) == 0 {
			return apeHeaderSize, 0 // a footer
		}
		return apeHeaderSize + uint64(binary.LittleEndian.Uint32(window[12:])), 0
	}
	return 0, 0
}

// mpegInfo is what the Xing or Info header in a stream's first frame adds. Both are 0 if it does not say.
type mpegInfo struct {
	frames uint64
	trim   uint64 // samples
}

// parseMPEGInfo reports whether a frame carries a Xing, Info or VBRI header instead of audio.
func parseMPEGInfo(h mpegHeader, frame []byte) (info mpegInfo, ok bool) {
	if h.stream.layer != 1 {
		return info, false
	}
	// Xing and Info follow the side information, VBRI is always where it ends in MPEG-1 stereo.
	at := mpegHeaderSize + 32
	if hasPrefixAt(frame, at, "VBRI") {
		return info, true
	}
	switch {
	case h.lsf && h.mono:
		at = mpegHeaderSize + 9
	case h.lsf || h.mono:
		at = mpegHeaderSize + 17
	}
	const crc = 2 // some writers count the checksum in, some do not
	for _, at := range [...]int{at, at + crc} {
		if hasPrefixAt(frame, at, "Xing") || hasPrefixAt(frame, at, "Info") {
			return parseXing(frame[at+4:]), true
		}
	}
	return info, false
}

// parseXing reads a Xing header from its flags on, and the LAME tag behind it.
func parseXing(b []byte) (info mpegInfo) {
	if len(b) < 8 {
		return info
	}
	flags := binary.BigEndian.Uint32(b)
	if flags&1 == 0 {
		return info
	}
	info.frames = uint64(binary.BigEndian.Uint32(b[4:]))
	at := 8
	if flags&2 != 0 { // size in bytes
		at += 4
	}
	if flags&4 != 0 { // table of contents
		at += 100
	}
	if flags&8 != 0 { // quality
		at += 4
	}
	if hasPrefixAt(b, at, "LAME") || hasPrefixAt(b, at, "Lavf") || hasPrefixAt(b, at, "Lavc") {
		if at += 21; at+3 <= len(b) { // delay:12 padding:12
			bits := uint64(b[at])<<16 | uint64(b[at+1])<<8 | uint64(b[at+2])
			info.trim = bits>>12 + bits&0xFFF
		}
	}
	return info
}

func hasPrefixAt(b []byte, at int, prefix string) bool {
	return len(b) >= at && bytes.HasPrefix(b[at:], []byte(prefix))
}
