// Package audio measures how long a recording is in a single pass over its bytes.
//
// A [Meter] is an io.Writer: the receiver of an upload writes it through the Meter as it arrives, and asks for the
// duration at the end. The Meter stores nothing, decodes nothing and runs no goroutine. It skips audio data, so the
// cost depends on the number of frames, pages, boxes and rows of their tables, not on the number of bytes.
//
// The container is found by its content, never by a file name or a content type: WAV (RIFF, RF64, BW64), MPEG audio
// (layers I to III, known as MP3), FLAC, Ogg (Opus, Vorbis, FLAC, Speex) and ISO media (MP4, M4A, MOV).
package audio

import (
	"bytes"
	"math"
	"math/bits"
	"time"
)

// maxDuration is the longest recording that is believed. A header that promises more is damaged or hostile.
const maxDuration = 10 * 365 * 24 * time.Hour

// toEnd is an advance that no input outlasts.
const toEnd = math.MaxUint64

// Meter measures the duration of the one recording that is written to it. The zero value is ready to use. Its memory is
// a few kilobytes whatever the recording holds, and what it finds does not depend on how the bytes are cut into writes.
//
// A Meter is not safe for concurrent use.
type Meter struct {
	parser  parser // nil until the container is known
	missing uint64 // bytes still to come of what the parser has stepped over
	need    int    // the parser cannot go on with less than this
	rest    []byte // bytes that the parser has not stepped over yet; empty while missing > 0
	buf     []byte // what rest lies in
}

// A parser reads one container. It never holds on to the window.
type parser interface {
	// parse reads the bytes from the current position on; there is at least one. It returns how far to advance (which
	// may be beyond the window's end), or 0 and the window's length that it needs, which is always more than it got. It
	// may read all of the window, but must do the same for a longer one, in one step or in several.
	parse(window []byte) (advance uint64, need int)

	// duration returns the duration if the recording ends here, or zero if it is unknown. missing counts the bytes of
	// the last advance that did not arrive. rest is the window that parse could not process. duration changes nothing.
	duration(missing uint64, rest []byte) time.Duration
}

// Write takes the next bytes of the recording. It takes all of them and never fails.
func (m *Meter) Write(p []byte) (int, error) {
	n, all := len(p), p
	fresh := 0 // bytes at the end of rest that are from p
	for {
		switch {
		case m.missing > 0:
			k := min(m.missing, uint64(len(p)))
			m.missing -= k
			p = p[k:]
			if len(p) == 0 {
				return n, nil
			}
		case len(m.rest) > 0: // A header that lies across two writes: complete only that.
			if lack := m.need - len(m.rest); lack > 0 {
				k := min(lack, len(p))
				m.keep(p[:k])
				p = p[k:]
				fresh += k
				if k < lack {
					return n, nil
				}
			}
			advance, need := m.parse(m.rest)
			m.need = need
			k := min(advance, uint64(len(m.rest)))
			m.rest = m.rest[k:]
			m.missing = advance - k
			if len(m.rest) <= fresh { // Nothing older is left: go on without a copy.
				p = all[n-len(p)-len(m.rest):]
				m.rest, fresh = m.rest[:0], 0
			}
		case len(p) > 0: // The usual case, without a copy.
			advance, need := m.parse(p)
			if advance == 0 {
				m.need = need
				m.keep(p)
				return n, nil
			}
			m.missing = advance
		default:
			return n, nil
		}
	}
}

// keep appends p to rest, within a buffer that is a few times as long as the longest window a parser needs, so that
// moving the bytes to its front stays rare.
func (m *Meter) keep(p []byte) {
	if len(m.rest)+len(p) > cap(m.rest) {
		if size := 3 * (len(m.rest) + len(p)); size > len(m.buf) {
			buf := make([]byte, max(size, 128))
			copy(buf, m.rest)
			m.buf = buf
		} else {
			copy(m.buf, m.rest)
		}
		m.rest = m.buf[:len(m.rest)]
	}
	m.rest = append(m.rest, p...)
}

// Duration returns the duration of the bytes written so far. ok is false if the container is unknown, damaged or does
// not contain it; d is positive if ok is true. More may be written afterwards.
func (m *Meter) Duration() (d time.Duration, ok bool) {
	if m.parser == nil {
		return 0, false
	}
	d = m.parser.duration(m.missing, m.rest)
	if d <= 0 || d > maxDuration {
		return 0, false
	}
	return d, true
}

func (m *Meter) parse(window []byte) (advance uint64, need int) {
	if m.parser == nil {
		if m.parser, advance, need = sniff(window); m.parser == nil {
			return advance, need
		}
	}
	return m.parser.parse(window)
}

// sniff finds the container. An ID3v2 tag may precede any of them; it is stepped over without deciding.
func sniff(window []byte) (p parser, advance uint64, need int) {
	const enough = 12 // RIFF's form type ends there
	if len(window) < enough {
		return nil, 0, enough
	}
	if size := id3v2Size(window); size > 0 {
		return nil, size, 0
	}
	magic, kind := string(window[:4]), string(window[8:12])
	switch {
	case magic == "RIFF" || magic == "RF64" || magic == "BW64":
		if kind == "WAVE" {
			return new(wavParser), 0, 0
		}
		return new(unknownParser), 0, 0
	case magic == "fLaC":
		return new(flacParser), 0, 0
	case magic == "OggS":
		return new(oggParser), 0, 0
	case bytes.Equal(window[:4], []byte{0x1A, 0x45, 0xDF, 0xA3}): // Matroska and WebM
		return new(unknownParser), 0, 0
	}
	switch string(window[4:8]) {
	case "ftyp", "moov", "mdat", "free", "skip", "wide", "pnot", "styp":
		return new(mp4Parser), 0, 0
	}
	// MPEG audio has no magic number and may follow rubbish, so it is what all else is taken for. It asks for proof.
	return new(mpegParser), 0, 0
}

// unknownParser handles a container that is known not to be one of ours.
type unknownParser struct{}

func (*unknownParser) parse([]byte) (uint64, int)            { return toEnd, 0 }
func (*unknownParser) duration(uint64, []byte) time.Duration { return 0 }

// durationOf is the time that units take at perSecond of them. It is more than maxDuration if that would overflow,
// and 0 where perSecond is 0.
func durationOf(units, perSecond uint64) time.Duration {
	if perSecond == 0 {
		return 0
	}
	hi, lo := bits.Mul64(units, uint64(time.Second))
	if hi >= perSecond {
		return maxDuration + 1
	}
	d, _ := bits.Div64(hi, lo, perSecond)
	return time.Duration(min(d, uint64(maxDuration+1)))
}

// addDurations adds what durationOf returns, without overflow.
func addDurations(a, b time.Duration) time.Duration {
	return min(a+b, maxDuration+1)
}
